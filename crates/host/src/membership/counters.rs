//! Figures of a host's membership.

/// Counters of a host's membership, cumulative since the host began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Packets of reports sent.
    pub(super) reports: u64,
    /// Queries received.
    pub(super) queries: u64,
    /// Reports not sent because another host had reported the same group (versions 1 and 2).
    pub(super) suppressed: u64,
    /// Packets of IGMP or MLD that do not parse, or are not from the link.
    pub(super) malformed: u64,
    /// Packets and changes of membership on an interface that does not exist.
    pub(super) wrong_items: u64,
    /// Groups beyond the maximum, which are not reported.
    pub(super) groups_refused: u64,
    /// Sources not reported: beyond the maximum, not of the group's IP version, or any source of a source-specific
    /// group.
    pub(super) sources_refused: u64,
}

impl Counters {
    pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let Self { reports, queries, suppressed, malformed, wrong_items, groups_refused, sources_refused } =
            *self;
        report("membership_reports", reports);
        report("membership_queries", queries);
        report("membership_suppressed", suppressed);
        report("membership_malformed", malformed);
        report("membership_wrong_items", wrong_items);
        report("membership_groups_refused", groups_refused);
        report("membership_sources_refused", sources_refused);
    }
}
