//! The counters of a KCP.

/// Cumulative figures over all conversations, by the names under which results show them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub datagrams_sent: u64,
    pub datagrams_received: u64,
    pub segments_sent: u64,
    pub segments_received: u64,
    pub retransmits: u64,
    pub acks_sent: u64,
    pub parity_sent: u64,
    pub parity_received: u64,
    pub datagrams_recovered: u64,
    pub malformed: u64,
    pub out_of_window: u64,
    pub foreign: u64,
    pub wrong_items: u64,
    pub resets_sent: u64,
    pub resets_received: u64,
    pub streams_opened: u64,
    pub streams_accepted: u64,
    pub streams_refused: u64,
    pub streams_broken: u64,
    pub streams_timed_out: u64,
}

impl Counters {
    pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
        for (name, value) in [
            ("datagrams_sent", self.datagrams_sent),
            ("datagrams_received", self.datagrams_received),
            ("segments_sent", self.segments_sent),
            ("segments_received", self.segments_received),
            ("retransmits", self.retransmits),
            ("acks_sent", self.acks_sent),
            ("parity_sent", self.parity_sent),
            ("parity_received", self.parity_received),
            ("datagrams_recovered", self.datagrams_recovered),
            ("malformed", self.malformed),
            ("out_of_window", self.out_of_window),
            ("foreign", self.foreign),
            ("wrong_items", self.wrong_items),
            ("resets_sent", self.resets_sent),
            ("resets_received", self.resets_received),
            ("streams_opened", self.streams_opened),
            ("streams_accepted", self.streams_accepted),
            ("streams_refused", self.streams_refused),
            ("streams_broken", self.streams_broken),
            ("streams_timed_out", self.streams_timed_out),
        ] {
            report(name, value);
        }
    }
}
