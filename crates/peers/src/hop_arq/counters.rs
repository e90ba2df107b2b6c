//! The counters of a hop-by-hop ARQ.

/// Cumulative figures of one node, by the names under which results show them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub packets_sent: u64,
    pub packets_received: u64,
    pub retransmits: u64,
    pub timeouts: u64,
    pub needless_retransmits: u64,
    pub duplicates_received: u64,
    pub acks_sent: u64,
    pub acks_received: u64,
    pub pauses: u64,
    pub malformed: u64,
    pub out_of_window: u64,
    pub foreign: u64,
    pub wrong_items: u64,
    pub sessions_lost: u64,
    pub streams_opened: u64,
    pub streams_accepted: u64,
    pub streams_refused: u64,
    pub streams_broken: u64,
}

impl Counters {
    pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
        for (name, value) in [
            ("packets_sent", self.packets_sent),
            ("packets_received", self.packets_received),
            ("retransmits", self.retransmits),
            ("timeouts", self.timeouts),
            ("needless_retransmits", self.needless_retransmits),
            ("duplicates_received", self.duplicates_received),
            ("acks_sent", self.acks_sent),
            ("acks_received", self.acks_received),
            ("pauses", self.pauses),
            ("malformed", self.malformed),
            ("out_of_window", self.out_of_window),
            ("foreign", self.foreign),
            ("wrong_items", self.wrong_items),
            ("sessions_lost", self.sessions_lost),
            ("streams_opened", self.streams_opened),
            ("streams_accepted", self.streams_accepted),
            ("streams_refused", self.streams_refused),
            ("streams_broken", self.streams_broken),
        ] {
            report(name, value);
        }
    }
}
