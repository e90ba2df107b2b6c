//! Figures of a host's membership.

/// Cumulative since the host began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    pub(super) reports: u64,
    pub(super) queries: u64,
    pub(super) suppressed: u64,
    pub(super) malformed: u64,
    pub(super) misplaced: u64,
    pub(super) groups_refused: u64,
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
