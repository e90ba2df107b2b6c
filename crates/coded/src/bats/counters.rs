//! What a node counts.

use super::sender::Cause;
use super::span::MOST;
use super::wire::{Coding, Data};

/// The figures of a node; see [`Node`](super::Node)'s counters.
#[derive(Debug)]
pub(super) struct Counters {
    /// DATA sent, by cause: first, repair, idle, probe.
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
    pub(super) stale: u64,
    /// Batches that were given up, and symbols that the sink gave up.
    pub(super) given_up: u64,
    pub(super) symbols: u64,
    pub(super) delivered: u64,
    pub(super) lost: u64,
    /// The ranks that batches had when they were over.
    pub(super) ranks: [u64; MOST + 1],
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
            stale: 0,
            given_up: 0,
            symbols: 0,
            delivered: 0,
            lost: 0,
            ranks: [0; MOST + 1],
        }
    }
}

impl Counters {
    /// A DATA frame is sent, with so many bytes of payload.
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

    pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let figures = [
            ("packets_first", self.packets[Cause::First as usize]),
            ("packets_repair", self.packets[Cause::Repair as usize]),
            ("packets_idle_repair", self.packets[Cause::Idle as usize]),
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
            ("received_malformed", self.malformed),
            ("received_foreign", self.foreign),
            ("received_stale", self.stale),
            ("batches_given_up", self.given_up),
            ("symbols_sent", self.symbols),
            ("symbols_delivered", self.delivered),
            ("symbols_lost", self.lost),
        ];
        for (name, figure) in figures {
            report(name, figure);
        }
        for (name, &figure) in RANKS.iter().zip(&self.ranks) {
            if figure > 0 {
                report(name, figure);
            }
        }
    }
}

const RANKS: [&str; MOST + 1] = [
    "rank_0", "rank_1", "rank_2", "rank_3", "rank_4", "rank_5", "rank_6", "rank_7", "rank_8", "rank_9", "rank_10",
    "rank_11", "rank_12", "rank_13", "rank_14", "rank_15", "rank_16", "rank_17", "rank_18", "rank_19", "rank_20",
    "rank_21", "rank_22", "rank_23", "rank_24", "rank_25", "rank_26", "rank_27", "rank_28", "rank_29", "rank_30",
    "rank_31", "rank_32",
];
