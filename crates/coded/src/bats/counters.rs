//! The counters of a node.

use super::packet::Cause;
use super::span::MAX_SYMBOLS;
use super::wire::{Coding, Data, Info};

/// The figures of a node; see [`Node`](super::Node)'s counters.
#[derive(Debug)]
pub(super) struct Counters {
    /// DATA sent, by cause: first, repair, ahead, probe.
    pub(super) packets: [u64; 4],
    /// Of those, combinations.
    pub(super) recoded: u64,
    pub(super) reports_sent: u64,
    pub(super) payload_bytes: u64,
    pub(super) header_bytes: u64,
    pub(super) vector_bytes: u64,
    pub(super) report_bytes: u64,
    pub(super) info_bytes: u64,
    pub(super) innovative: u64,
    pub(super) redundant: u64,
    /// Packets for batches beyond the window.
    pub(super) beyond: u64,
    pub(super) repeated: u64,
    pub(super) malformed: u64,
    pub(super) foreign: u64,
    pub(super) wrong_items: u64,
    /// Datagrams that have come back.
    pub(super) own: u64,
    pub(super) stale: u64,
    /// Challenges to neighbours that announced another session.
    pub(super) challenges: u64,
    /// Batches that were given up, and symbols that the sink gave up.
    pub(super) given_up: u64,
    /// Branches that were given up.
    pub(super) branches: u64,
    pub(super) symbols: u64,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// The ranks that batches had when they were over.
    pub(super) ranks: [u64; MAX_SYMBOLS + 1],
    /// Batches by how many packets were sent of them to a child (their recoding number), and by how many of those the
    /// child's rank lacks: lost, or nothing new.
    pub(super) sent_as: [u64; PACKETS],
    pub(super) lacking: [u64; PACKETS],
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            packets: [0; 4],
            recoded: 0,
            reports_sent: 0,
            payload_bytes: 0,
            header_bytes: 0,
            vector_bytes: 0,
            report_bytes: 0,
            info_bytes: 0,
            innovative: 0,
            redundant: 0,
            beyond: 0,
            repeated: 0,
            malformed: 0,
            foreign: 0,
            wrong_items: 0,
            own: 0,
            stale: 0,
            challenges: 0,
            given_up: 0,
            branches: 0,
            symbols: 0,
            delivered: 0,
            lost: 0,
            ranks: [0; MAX_SYMBOLS + 1],
            sent_as: [0; PACKETS],
            lacking: [0; PACKETS],
        }
    }
}

impl Counters {
    /// A datagram is sent with a report of `report` bytes, and what stands behind it, and with INFO.
    pub(super) fn control(&mut self, report: usize, info: Option<&Info>) {
        self.reports_sent += u64::from(report > 0);
        self.report_bytes += report as u64;
        self.info_bytes += info.map_or(0, Info::len) as u64;
    }

    /// A DATA frame is sent, with `payload` bytes of payload.
    pub(super) fn sent(&mut self, cause: Cause, data: &Data<'_>, payload: usize) {
        self.packets[cause as usize] += 1;
        let vector = match data.coding {
            Coding::Symbol(_) => 0,
            Coding::Vector { vector, .. } => vector.len(),
        };
        self.recoded += u64::from(vector > 0);
        self.payload_bytes += payload as u64;
        self.vector_bytes += vector as u64;
        self.header_bytes += (1 + data.header_len() - vector) as u64;
    }

    /// A batch is over for a child that was sent `packets` packets of it, and then had this rank.
    pub(super) fn batch_over(&mut self, packets: u8, rank: u8) {
        let at = |count: u8| usize::from(count).min(PACKETS - 1);
        if packets > 0 {
            self.sent_as[at(packets)] += 1;
            self.lacking[at(packets.saturating_sub(rank))] += 1;
        }
    }

    pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let figures = [
            ("packets_first", self.packets[Cause::First as usize]),
            ("packets_repair", self.packets[Cause::Repair as usize]),
            ("packets_ahead", self.packets[Cause::Ahead as usize]),
            ("packets_probe", self.packets[Cause::Probe as usize]),
            ("packets_recoded", self.recoded),
            ("reports_sent", self.reports_sent),
            ("bytes_payload", self.payload_bytes),
            ("bytes_headers", self.header_bytes),
            ("bytes_vectors", self.vector_bytes),
            ("bytes_reports", self.report_bytes),
            ("bytes_info", self.info_bytes),
            ("received_innovative", self.innovative),
            ("received_redundant", self.redundant),
            ("received_beyond_window", self.beyond),
            ("received_repeated", self.repeated),
            ("malformed", self.malformed),
            ("foreign", self.foreign),
            ("wrong_items", self.wrong_items),
            ("received_own", self.own),
            ("received_stale", self.stale),
            ("batches_given_up", self.given_up),
            ("branches_given_up", self.branches),
            ("symbols_sent", self.symbols),
            ("symbols_delivered", self.delivered),
            ("symbols_lost", self.lost),
        ];
        for (name, figure) in figures {
            report(name, figure);
        }
        if self.challenges > 0 {
            report("challenges_sent", self.challenges);
        }
        let ranks = RANKS.iter().zip(&self.ranks);
        let sent_as = SENT_AS.iter().zip(&self.sent_as);
        let lacking = LACKING.iter().zip(&self.lacking);
        for (name, &figure) in ranks.chain(sent_as).chain(lacking).filter(|(_, figure)| **figure > 0) {
            report(name, figure);
        }
    }
}

/// Number of counts of packets of a batch that are distinguished; the last stands for more, too. Chosen: twice as many
/// as the largest batch has.
const PACKETS: usize = 65;

/// Names that end with a number.
macro_rules! numbered {
    ($name:literal: $($number:literal)*) => { [$(concat!($name, $number)),*] };
}

/// The names of the distributions that follow, by batch.
macro_rules! distributions {
    ($($number:literal)*) => {
        const SENT_AS: [&str; PACKETS] = numbered!("batch_packets_": $($number)*);
        const LACKING: [&str; PACKETS] = numbered!("batch_losses_": $($number)*);
    };
}

const RANKS: [&str; MAX_SYMBOLS + 1] = numbered!("rank_":
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32);

distributions!(
    0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32
    33 34 35 36 37 38 39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64
);
