//! The figures of a router's PIM.

use super::refusal::Refusal;

/// Counters, cumulative since the router began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Hello messages sent, and heard.
    pub(super) hellos: u64,
    pub(super) hellos_heard: u64,
    /// Join/Prune messages sent, and heard.
    pub(super) join_prunes: u64,
    pub(super) join_prunes_heard: u64,
    /// Joins and prunes in the messages sent.
    pub(super) joins: u64,
    pub(super) prunes: u64,
    /// Joins that another router of the link had sent already.
    pub(super) joins_suppressed: u64,
    /// Prunes of other routers of the link that a join was to override.
    pub(super) prunes_overridden: u64,
    /// Asserts sent, and heard.
    pub(super) asserts: u64,
    pub(super) asserts_heard: u64,
    /// Memberships of any source, for which there is no source tree.
    pub(super) members_of_any_source: u64,
    /// Items that the port does not carry, and packets on an interface without an address of their IP version.
    pub(super) wrong_items: u64,
    refused: [u64; Refusal::ALL.len()],
}

impl Counters {
    pub(super) const fn refuse(&mut self, reason: Refusal) {
        self.refused[reason as usize] += 1;
    }

    pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let Self {
            hellos,
            hellos_heard,
            join_prunes,
            join_prunes_heard,
            joins,
            prunes,
            joins_suppressed,
            prunes_overridden,
            asserts,
            asserts_heard,
            members_of_any_source,
            wrong_items,
            refused,
        } = *self;
        report("pim_hellos", hellos);
        report("pim_hellos_heard", hellos_heard);
        report("pim_join_prunes", join_prunes);
        report("pim_join_prunes_heard", join_prunes_heard);
        report("pim_joins", joins);
        report("pim_prunes", prunes);
        report("pim_joins_suppressed", joins_suppressed);
        report("pim_prunes_overridden", prunes_overridden);
        report("pim_asserts", asserts);
        report("pim_asserts_heard", asserts_heard);
        report("pim_members_of_any_source", members_of_any_source);
        report("pim_wrong_items", wrong_items);
        Refusal::ALL.iter().zip(refused).for_each(|(&(_, name), count)| report(name, count));
    }
}
