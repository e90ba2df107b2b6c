//! A sender's figures.

use crate::refusal::Refusals;

/// Counters of a sender, cumulative since it began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Discoveries that have ended.
    pub(super) discoveries: u64,
    /// Discoveries about newcomers alone that have ended.
    pub(super) partial_discoveries: u64,
    /// Requests sent.
    pub(super) requests: u64,
    /// Responses that counted.
    pub(super) responses: u64,
    /// Responses that came when none were expected.
    pub(super) late: u64,
    /// Responses that said what another had said otherwise.
    pub(super) contradictions: u64,
    /// Data of the application.
    pub(super) data: u64,
    /// Packets to one receiver.
    pub(super) unicast: u64,
    /// Packets with a list.
    pub(super) packets: u64,
    /// Receivers in their lists.
    pub(super) listed: u64,
    /// Bytes of the headers with the lists.
    pub(super) header_bytes: u64,
    /// Data that was longer than a packet can be, or not of IPv6.
    pub(super) unsendable: u64,
    /// Responses that were dropped.
    pub(super) refusals: Refusals,
}

impl Counters {
    pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("meadcast_sender_discoveries", self.discoveries);
        report("meadcast_sender_partial_discoveries", self.partial_discoveries);
        report("meadcast_sender_requests", self.requests);
        report("meadcast_sender_responses", self.responses);
        report("meadcast_sender_responses_late", self.late);
        report("meadcast_sender_contradictions", self.contradictions);
        report("meadcast_sender_data", self.data);
        report("meadcast_sender_unicast", self.unicast);
        report("meadcast_sender_packets", self.packets);
        report("meadcast_sender_listed", self.listed);
        report("meadcast_sender_header_bytes", self.header_bytes);
        report("meadcast_sender_unsendable", self.unsendable);
        self.refusals.counters(report);
    }
}
