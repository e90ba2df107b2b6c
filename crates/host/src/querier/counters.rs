//! A querier's figures.

/// Cumulative since the router began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Queries sent.
    pub(super) queries: u64,
    /// Queries of other routers.
    pub(super) queries_heard: u64,
    /// Reports and leaves received.
    pub(super) reports: u64,
    /// Reports, or records of them, that mean nothing: of a group that is not reported, of any source of a
    /// source-specific group, or from no address.
    pub(super) reports_ignored: u64,
    /// Leaves passed over because queries would exceed their rate: the group or source goes on until its timer ends.
    pub(super) leaves_ignored: u64,
    /// Records of a new group for which there was no room.
    pub(super) groups_refused: u64,
    /// Sources for which there was no room.
    pub(super) sources_refused: u64,
    /// Packets that do not read, or are not from the link.
    pub(super) malformed: u64,
    /// Items that the port does not carry, and packets by an interface that speaks no such version.
    pub(super) misplaced: u64,
}

impl Counters {
    pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let Self {
            queries,
            queries_heard,
            reports,
            reports_ignored,
            leaves_ignored,
            groups_refused,
            sources_refused,
            malformed,
            misplaced,
        } = *self;
        report("querier_queries", queries);
        report("querier_queries_heard", queries_heard);
        report("querier_reports", reports);
        report("querier_reports_ignored", reports_ignored);
        report("querier_leaves_ignored", leaves_ignored);
        report("querier_groups_refused", groups_refused);
        report("querier_sources_refused", sources_refused);
        report("querier_malformed", malformed);
        report("querier_misplaced", misplaced);
    }
}
