//! The status of a running node: one document, of which `hopcast node status` and Prometheus get views.
//!
//! The thread that carries data publishes a new [`Status`] twice a second; other threads answer requests with the last
//! one. So no request can delay data. Tables of services may be long: they are in a status only if somebody has asked
//! since the one before, and who asks waits for that.

pub(crate) mod answer;
pub mod ask;
mod error;
pub mod table;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use hopcast_core::Instant;
use hopcast_stack::service::StatusTable;
use hopcast_wire::ethernet;
use serde::{Deserialize, Serialize};

pub use self::error::{AnswerError, AskError};

/// A node at one moment. Counters begin at its start.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its name.
    pub node: String,
    /// The program's version.
    pub program: String,
    /// Its version of the protocol between nodes.
    pub speaks: u8,
    /// The number of its process.
    pub process: u32,
    /// Time since its start.
    pub uptime_s: f64,
    /// The address on which it receives.
    pub listen: String,
    /// Whether its traffic is encrypted.
    pub encrypted: bool,
    /// Its neighbours.
    pub peers: Vec<PeerStatus>,
    /// Its carriers.
    pub carriers: Vec<CarrierStatus>,
    /// Its groups.
    #[serde(default)]
    pub groups: Vec<GroupStatus>,
    /// What it does for its host.
    #[serde(default)]
    pub host: Vec<HostStatus>,
    /// Datagrams that it dropped, by cause.
    pub dropped: BTreeMap<String, u64>,
    /// Requests that were turned away because of too many others.
    #[serde(default)]
    pub turned_away: u64,
    /// Counters of its sockets and devices, by name.
    pub sockets: BTreeMap<String, u64>,
}

/// A neighbour.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerStatus {
    /// Its name.
    pub name: String,
    /// `up`, `down`, `unknown`, or `version` if it has another version.
    pub state: String,
    /// Time since it came up or went down.
    pub since_s: Option<f64>,
    /// Its address.
    pub address: Option<String>,
    /// Time since its last datagram.
    pub silent_s: Option<f64>,
    /// Round-trip time, smoothed.
    pub round_trip_ms: Option<f64>,
    /// Recent share of its datagrams that were lost.
    pub loss_in: Option<f64>,
    /// Recent share of datagrams to it that were lost.
    pub loss_out: Option<f64>,
    /// Rate of UDP payload from it.
    pub rate_in_mbps: f64,
    /// Rate of UDP payload to it.
    pub rate_out_mbps: f64,
    /// Datagrams from it.
    pub datagrams_in: u64,
    /// Datagrams to it.
    pub datagrams_out: u64,
    /// UDP payload from it, in bytes.
    pub bytes_in: u64,
    /// UDP payload to it, in bytes.
    pub bytes_out: u64,
    /// Number of restarts.
    pub restarts: u64,
    /// Number of changes of its address.
    pub moves: u64,
    /// Hellos in its name that were rejected.
    #[serde(default)]
    pub disbelieved: u64,
    /// Maximum length of IP packets that reach it whole, if full ones do not.
    #[serde(default)]
    pub path_mtu: Option<u16>,
}

/// A carrier: packets or TCP connections to a far site, or passed on between two peers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CarrierStatus {
    /// The far site, or the two peers.
    pub name: String,
    /// The peers through which the far site is reached.
    #[serde(default)]
    pub via: String,
    /// `packets` or `tcp`.
    pub carries: String,
    /// `site` or `relay`.
    pub role: String,
    /// Its channel.
    pub channel: u8,
    /// Current number of connections.
    pub connections: u64,
    /// Counters of its machines, by name.
    pub counters: BTreeMap<String, u64>,
}

impl CarrierStatus {
    /// A counter by its name; zero if there is none.
    pub fn count(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// Mean rank of finished batches; `None` before there is one.
    pub fn mean_rank(&self) -> Option<f64> {
        let ranks = self.counters.iter().filter_map(|(name, &batches)| {
            let rank: u64 = name.strip_prefix("rank_")?.parse().ok()?;
            Some((rank * batches, batches))
        });
        let (ranks, batches) = ranks.fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1));
        (batches > 0).then(|| ranks as f64 / batches as f64)
    }
}

/// A service for what the host forwards, or a group of hosts to which its programs send.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HostStatus {
    /// The service's name, or the address that programs send to.
    pub name: String,
    /// `service` or `sender`.
    pub role: String,
    /// The service or delivery, with the options that are not the default.
    pub over: String,
    /// The device of a service between interfaces.
    #[serde(default)]
    pub tap: Option<String>,
    /// How a sender serves the members now, in lines for people.
    pub shown: String,
    /// Tables of what the service knows, without empty ones; none in a status for which nobody has asked.
    #[serde(default)]
    pub tables: Vec<TableStatus>,
    /// Counters of its machine, by name.
    pub counters: BTreeMap<String, u64>,
}

/// A table of what a service knows: `batctl o` of a mesh, say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TableStatus {
    /// Its name.
    pub table: String,
    /// The names of its columns.
    pub columns: Vec<String>,
    /// Its rows, each with a cell for each column; times are how long ago they were.
    pub rows: Vec<Vec<String>>,
    /// Number of rows that are left out.
    #[serde(default)]
    pub left_out: usize,
}

impl TableStatus {
    /// Maximum number of rows. Chosen: the thread that carries data writes them when somebody asks.
    const MAX_ROWS: usize = 1000;

    pub(crate) fn of(table: &StatusTable, now: Instant) -> Self {
        let ago = |at: Instant| format!("{:.3} s", now.since(at).as_secs_f64());
        let (rows, left_out) = table.text(Self::MAX_ROWS, ethernet::text, ago);
        let columns = table.columns.iter().map(ToString::to_string).collect();
        Self { table: table.name.to_owned(), columns, rows, left_out }
    }
}

impl HostStatus {
    /// A counter by its name; zero if there is none.
    pub fn count(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }
}

/// A group of sites that share files and messages, as this one sees it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupStatus {
    /// Its name.
    pub name: String,
    /// Its channel.
    pub channel: u8,
    /// The transport that carries it.
    pub over: String,
    /// The other members.
    pub members: Vec<GroupMemberStatus>,
    /// Files that this site offers, and those of them that every member has.
    pub files_offered: u64,
    /// See above.
    pub files_everywhere: u64,
    /// The files that were found last, the newest at the end.
    pub files: Vec<GroupFile>,
    /// Messages of this site's programs.
    pub messages_sent: u64,
    /// Bytes that files of others take, and that they may take.
    pub received_bytes: u64,
    /// See above.
    pub quota: u64,
    /// The amounts that this site holds for others, over a transport whose members do.
    #[serde(default)]
    pub held: Option<HeldStatus>,
    /// Counters of its machines, by name.
    pub counters: BTreeMap<String, u64>,
}

/// Amounts that a site holds of a group whose members hold messages for each other: files and messages of programs
/// together, its own and others'.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldStatus {
    /// Files of the directory that have been published, and those that have not been yet.
    pub files_published: u64,
    /// See above.
    pub files_due: u64,
    /// Files of others that wait to be written.
    pub files_waiting: u64,
    /// Files and messages that it holds something of.
    pub messages: u64,
    /// Bytes of memory that they take, and may take.
    pub bytes: u64,
    /// See above.
    pub max_bytes: u64,
    /// Bytes that it has published and not sent yet.
    pub unsent_bytes: u64,
    /// Bytes of its store on disk; `None` without one.
    pub disk_bytes: Option<u64>,
    /// Files and messages that it dropped for want of room since its start, and because their time was over.
    pub dropped: u64,
    /// See above.
    pub expired: u64,
}

/// Another member of a group.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupMemberStatus {
    /// Its name.
    pub name: String,
    /// Whether it is up.
    pub up: bool,
    /// Whether it is no peer: what it publishes comes by others.
    #[serde(default)]
    pub afar: bool,
    /// Time since it said last what it has, or asked.
    pub silent_s: Option<f64>,
    /// Files of this site that it has.
    pub files_has: u64,
    /// Files of which it lacks something.
    pub files_lacks: u64,
    /// Files that it does not take.
    pub files_refuses: u64,
    /// Files of which it has not said what it has.
    pub files_unknown: u64,
    /// Messages of this site that it has, and the number of the last of them.
    pub messages_has: u64,
    /// See above.
    pub messages_last: u64,
    /// Files of it that have come since the start.
    pub files_received: u64,
    /// Bytes of those.
    pub bytes_received: u64,
    /// Messages of it that have come, over a transport whose members hold them for each other.
    #[serde(default)]
    pub messages_received: u64,
}

/// A file that this site offers.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupFile {
    /// Its name.
    pub name: String,
    /// Its length.
    pub bytes: u64,
    /// State at each member: `has`, a percentage, `asked`, `down`, or why it does not take it.
    pub members: BTreeMap<String, String>,
}

/// The last published status.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board {
    last: Arc<Mutex<Last>>,
    is_published: Arc<Condvar>,
    /// Whether the node has services with tables.
    has_tables: Arc<AtomicBool>,
    /// Number of requests for tables.
    asked: Arc<AtomicU64>,
    /// Number of requests that were turned away.
    turned_away: Arc<AtomicU64>,
}

/// A published status.
#[derive(Debug, Default)]
struct Last {
    status: Arc<Status>,
    /// Number of requests for tables before it: those are answered by it.
    answers: u64,
}

/// Maximum time for which a request waits for tables. Chosen; shorter leaves them out while the thread that carries
/// data is busy, with longer whoever asks has given up.
const TABLES_TIMEOUT: std::time::Duration = std::time::Duration::from_millis(1500);

impl Board {
    /// Notes a request that was turned away.
    fn turned_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    /// Number of requests that were turned away.
    pub(crate) fn count_turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }

    /// Has requests wait for tables from now on.
    pub(crate) fn expect_tables(&self) {
        self.has_tables.store(true, Ordering::Relaxed);
    }

    /// Number of requests for tables so far.
    pub(crate) fn asked(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// Publishes a status, unless the last one is being read at this moment: then the next one follows soon. It answers
    /// the first `answers` requests for tables. Whether it is published.
    pub(crate) fn publish(&self, status: Status, answers: u64) -> bool {
        let Ok(mut last) = self.last.try_lock() else { return false };
        *last = Last { status: Arc::new(status), answers };
        self.is_published.notify_all();
        true
    }

    /// The last status, which may have no tables.
    pub(crate) fn read(&self) -> Arc<Status> {
        // A poisoned lock still guards a whole status.
        Arc::clone(&self.last.lock().unwrap_or_else(PoisonError::into_inner).status)
    }

    /// The next status with tables, if there are any; the last one if none is published in time.
    pub(crate) fn read_with_tables(&self) -> Arc<Status> {
        if !self.has_tables.load(Ordering::Relaxed) {
            return self.read();
        }
        let number = self.asked.fetch_add(1, Ordering::Relaxed) + 1;
        let last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        let is_later = |last: &mut Last| last.answers < number;
        let (last, _) = self
            .is_published
            .wait_timeout_while(last, TABLES_TIMEOUT, is_later)
            .unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&last.status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(node: &str) -> Status {
        Status { node: node.to_owned(), ..Status::default() }
    }

    #[test]
    fn a_request_for_tables_waits_for_a_status_that_is_made_after_it() {
        let board = Board::default();
        assert!(board.publish(named("without"), board.asked()));
        assert_eq!((board.read_with_tables().node.as_str(), board.asked()), ("without", 0));
        board.expect_tables();
        let asker = std::thread::spawn({
            let board = board.clone();
            move || board.read_with_tables()
        });
        while board.asked() == 0 {
            std::thread::yield_now();
        }
        // One that was begun before the request.
        while !board.publish(named("early"), 0) {}
        while !board.publish(named("late"), 1) {}
        assert_eq!(asker.join().unwrap().node, "late");
        assert_eq!(board.read().node, "late");
    }
}
