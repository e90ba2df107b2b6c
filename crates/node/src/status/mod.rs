//! What a running node says of itself: one document, which `hopcast node status` and Prometheus are given views of.
//!
//! The thread that carries data puts a new [`Status`] up twice a second; whoever asks is told the last one, by another
//! thread. So nobody who asks can hold data up.

pub(crate) mod answer;
pub mod ask;
mod error;
pub mod table;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use serde::{Deserialize, Serialize};

pub use self::error::{AnswerError, AskError};

/// A node at one moment. Counts are since it was started.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Status {
    /// Its name.
    pub node: String,
    /// The program's version.
    pub program: String,
    /// The version that it speaks with its peers.
    pub speaks: u8,
    /// The process.
    pub process: u32,
    /// For how long it has been running.
    pub uptime_s: f64,
    /// Where it receives.
    pub listen: String,
    /// Whether what it carries is encrypted.
    pub encrypted: bool,
    /// Its neighbours.
    pub peers: Vec<PeerStatus>,
    /// What it carries.
    pub carriers: Vec<CarrierStatus>,
    /// Datagrams that it dropped, by cause.
    pub dropped: BTreeMap<String, u64>,
    /// How many asked for this while too many others did, and were turned away.
    #[serde(default)]
    pub turned_away: u64,
    /// What its sockets and devices did.
    pub sockets: BTreeMap<String, u64>,
}

/// A neighbour.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PeerStatus {
    /// Its name.
    pub name: String,
    /// `up`, `down`, `unknown`, or `version` if it speaks another one.
    pub state: String,
    /// For how long it has been up or down.
    pub since_s: Option<f64>,
    /// Where it is.
    pub address: Option<String>,
    /// For how long nothing has come of it.
    pub silent_s: Option<f64>,
    /// There and back, smoothed.
    pub round_trip_ms: Option<f64>,
    /// The share of its datagrams that did not come here, lately.
    pub loss_in: Option<f64>,
    /// The share of this node's datagrams that did not come there, lately.
    pub loss_out: Option<f64>,
    /// What comes of it, in bytes of UDP payload.
    pub rate_in_mbps: f64,
    /// What goes to it.
    pub rate_out_mbps: f64,
    /// Datagrams from it.
    pub datagrams_in: u64,
    /// Datagrams to it.
    pub datagrams_out: u64,
    /// Bytes of those from it.
    pub bytes_in: u64,
    /// Bytes of those to it.
    pub bytes_out: u64,
    /// How often it was started anew.
    pub restarts: u64,
    /// How often it has moved.
    pub moves: u64,
    /// Hellos in its name that were not believed.
    #[serde(default)]
    pub disbelieved: u64,
    /// The longest IP packet that was found to get there whole, where a full one does not.
    #[serde(default)]
    pub path_mtu: Option<u16>,
}

/// Something that is carried.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct CarrierStatus {
    /// The far site, or the two peers between which it is passed on.
    pub name: String,
    /// Of a far site, the peers through which it is reached.
    #[serde(default)]
    pub via: String,
    /// `packets` or `tcp`.
    pub carries: String,
    /// `site` or `relay`.
    pub role: String,
    /// Its channel.
    pub channel: u8,
    /// Connections at this moment.
    pub connections: u64,
    /// What its machines count.
    pub counters: BTreeMap<String, u64>,
}

impl CarrierStatus {
    /// A figure by its name; zero if nothing counts it.
    pub fn count(&self, name: &str) -> u64 {
        self.counters.get(name).copied().unwrap_or(0)
    }

    /// The mean rank of the batches that are over; `None` before there is one.
    pub fn mean_rank(&self) -> Option<f64> {
        let ranks = self.counters.iter().filter_map(|(name, &batches)| {
            let rank: u64 = name.strip_prefix("rank_")?.parse().ok()?;
            Some((rank * batches, batches))
        });
        let (ranks, batches) = ranks.fold((0, 0), |sum, next| (sum.0 + next.0, sum.1 + next.1));
        (batches > 0).then(|| ranks as f64 / batches as f64)
    }
}

/// The last status, for who asks.
#[derive(Clone, Debug, Default)]
pub(crate) struct Board {
    last: Arc<Mutex<Arc<Status>>>,
    /// How many have asked while too many others did.
    turned_away: Arc<AtomicU64>,
}

impl Board {
    /// Somebody who asked was turned away.
    fn turned_away(&self) {
        self.turned_away.fetch_add(1, Ordering::Relaxed);
    }

    /// How many were.
    pub(crate) fn count_turned_away(&self) -> u64 {
        self.turned_away.load(Ordering::Relaxed)
    }

    /// Puts a status up, unless somebody is just reading: then the next one will do.
    pub(crate) fn put_up(&self, status: Status) {
        if let Ok(mut last) = self.last.try_lock() {
            *last = Arc::new(status);
        }
    }

    pub(crate) fn read(&self) -> Arc<Status> {
        // Nothing can be half written.
        Arc::clone(&self.last.lock().unwrap_or_else(PoisonError::into_inner))
    }
}
