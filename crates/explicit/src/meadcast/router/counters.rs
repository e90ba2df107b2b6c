//! A router's figures.

use crate::refusal::Refusals;

/// Counters of a router, cumulative since it began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Requests of discovery.
    pub(super) requests: u64,
    /// Responses to them.
    pub(super) responses: u64,
    /// Packets of data.
    pub(super) data: u64,
    /// Copies for other routers.
    pub(super) copies: u64,
    /// Packets that went on whole, since the paths of their receivers part farther on.
    pub(super) held: u64,
    /// Plain packets to receivers.
    pub(super) unicast: u64,
    /// Of these, those to receivers of other routers.
    pub(super) premature: u64,
    /// Packets that went on as they were.
    pub(super) passed: u64,
    /// Items that the port does not carry.
    pub(super) wrong_items: u64,
    /// Packets that were dropped.
    pub(super) refusals: Refusals,
}

impl Counters {
    pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("meadcast_requests", self.requests);
        report("meadcast_responses", self.responses);
        report("meadcast_data", self.data);
        report("meadcast_copies", self.copies);
        report("meadcast_held", self.held);
        report("meadcast_unicast", self.unicast);
        report("meadcast_premature", self.premature);
        report("meadcast_passed", self.passed);
        report("meadcast_wrong_items", self.wrong_items);
        self.refusals.counters(report);
    }
}
