//! The counters of a TCP.

/// Cumulative figures over all connections, by the names under which results show them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counters {
    pub segments_sent: u64,
    pub segments_received: u64,
    pub retransmits: u64,
    pub segments_lost: u64,
    pub rto_timeouts: u64,
    pub tlp_probes: u64,
    pub tlp_recoveries: u64,
    pub fast_recoveries: u64,
    pub spurious_recoveries: u64,
    pub spurious_timeouts: u64,
    pub dup_acks: u64,
    pub duplicates_reported: u64,
    pub duplicates_received: u64,
    pub out_of_order_received: u64,
    pub receive_buffer_full: u64,
    pub checksum_errors: u64,
    pub malformed: u64,
    pub paws_rejected: u64,
    pub out_of_window: u64,
    pub challenge_acks: u64,
    pub not_for_us: u64,
    pub resets_sent: u64,
    pub resets_received: u64,
    pub connections_opened: u64,
    pub connections_accepted: u64,
    pub connections_refused: u64,
    pub connections_timed_out: u64,
    pub syn_retransmits: u64,
    pub syns_dropped: u64,
    pub mtu_reductions: u64,
    pub credit_violations: u64,
    pub wrong_items: u64,
}

impl Counters {
    pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
        macro_rules! all {
            ($($name:ident)*) => { $(report(stringify!($name), self.$name);)* };
        }
        all!(segments_sent segments_received retransmits segments_lost rto_timeouts tlp_probes tlp_recoveries fast_recoveries
            spurious_recoveries spurious_timeouts dup_acks duplicates_reported duplicates_received
            out_of_order_received receive_buffer_full checksum_errors malformed paws_rejected out_of_window challenge_acks
            not_for_us resets_sent resets_received connections_opened connections_accepted connections_refused
            connections_timed_out syn_retransmits syns_dropped mtu_reductions credit_violations wrong_items);
    }
}
