//! Figures of a host's membership.

/// Cumulative since the host began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Packets of reports sent.
    pub(super) reports: u64,
    /// Queries received.
    pub(super) queries: u64,
    /// Reports not sent because another host's did for both (versions 1 and 2).
    pub(super) suppressed: u64,
    /// Packets of IGMP or MLD that do not read, or are not from the link.
    pub(super) malformed: u64,
    /// Packets and wishes for an interface that there is not.
    pub(super) misplaced: u64,
    /// Wishes for a group for which there was no room: it is not reported.
    pub(super) groups_refused: u64,
    /// Sources not reported: no room for them, none of the group's IP version, or any source of a source-specific
    /// group.
    pub(super) sources_refused: u64,
}

impl Counters {
    pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let Self { reports, queries, suppressed, malformed, misplaced, groups_refused, sources_refused } =
            *self;
        report("membership_reports", reports);
        report("membership_queries", queries);
        report("membership_suppressed", suppressed);
        report("membership_malformed", malformed);
        report("membership_misplaced", misplaced);
        report("membership_groups_refused", groups_refused);
        report("membership_sources_refused", sources_refused);
    }
}
