//! A querier's figures.

/// Counters of a querier, cumulative since the router began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Queries sent.
    pub(super) queries: u64,
    /// Queries of other routers received.
    pub(super) queries_heard: u64,
    /// Reports and leaves received.
    pub(super) reports: u64,
    /// Reports, or records of them, that were ignored: of a group that is never reported, of any source of a
    /// source-specific group, or from an unspecified address.
    pub(super) reports_ignored: u64,
    /// Leaves ignored because queries would exceed their maximum rate: the group or source stays until its timer ends.
    pub(super) leaves_ignored: u64,
    /// Records of new groups beyond the maximum.
    pub(super) groups_refused: u64,
    /// Sources beyond the maximum.
    pub(super) sources_refused: u64,
    /// Packets that do not parse, or are not from the link.
    pub(super) malformed: u64,
    /// Items that the port does not carry, and packets on an interface without an address of their IP version.
    pub(super) wrong_items: u64,
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
            wrong_items,
        } = *self;
        report("querier_queries", queries);
        report("querier_queries_heard", queries_heard);
        report("querier_reports", reports);
        report("querier_reports_ignored", reports_ignored);
        report("querier_leaves_ignored", leaves_ignored);
        report("querier_groups_refused", groups_refused);
        report("querier_sources_refused", sources_refused);
        report("querier_malformed", malformed);
        report("querier_wrong_items", wrong_items);
    }
}
