//! A querier's figures.

/// Cumulative since the router began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) queries: u64,
    pub(super) queries_heard: u64,
    pub(super) reports: u64,
    pub(super) reports_ignored: u64,
    pub(super) leaves_ignored: u64,
    pub(super) groups_refused: u64,
    pub(super) sources_refused: u64,
    pub(super) malformed: u64,
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
