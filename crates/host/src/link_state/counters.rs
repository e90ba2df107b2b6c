//! The figures of a router's link-state routing.

use super::refusal::Refusal;

/// Counters, cumulative since the router began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Hello messages sent, and heard.
    pub(super) hellos: u64,
    pub(super) hellos_heard: u64,
    /// Neighbours that both routers have come to hear, and such that were lost.
    pub(super) neighbours_found: u64,
    pub(super) neighbours_lost: u64,
    /// Messages with advertisements, with their headers, with acknowledgements and with requests that were sent.
    pub(super) updates: u64,
    pub(super) offers: u64,
    pub(super) acknowledgements: u64,
    pub(super) requests: u64,
    /// Advertisements in the messages sent, and those among them that were sent again.
    pub(super) advertisements: u64,
    pub(super) retransmissions: u64,
    /// Instances of own advertisements made, and of others' taken.
    pub(super) originated: u64,
    pub(super) installed: u64,
    /// Advertisements that were there already.
    pub(super) repeated: u64,
    /// Own advertisements that somebody else made newer.
    pub(super) contested: u64,
    /// Advertisements whose time was over.
    pub(super) expired: u64,
    /// Computations of routes, and those that changed the table.
    pub(super) computations: u64,
    pub(super) route_changes: u64,
    /// Messages that no packet of the link can carry.
    pub(super) unsendable: u64,
    /// Items that the port does not carry, and packets on an interface that does not exist.
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
            neighbours_found,
            neighbours_lost,
            updates,
            offers,
            acknowledgements,
            requests,
            advertisements,
            retransmissions,
            originated,
            installed,
            repeated,
            contested,
            expired,
            computations,
            route_changes,
            unsendable,
            wrong_items,
            refused,
        } = *self;
        report("link_state_hellos", hellos);
        report("link_state_hellos_heard", hellos_heard);
        report("link_state_neighbours_found", neighbours_found);
        report("link_state_neighbours_lost", neighbours_lost);
        report("link_state_updates", updates);
        report("link_state_offers", offers);
        report("link_state_acknowledgements", acknowledgements);
        report("link_state_requests", requests);
        report("link_state_advertisements", advertisements);
        report("link_state_retransmissions", retransmissions);
        report("link_state_originated", originated);
        report("link_state_installed", installed);
        report("link_state_repeated", repeated);
        report("link_state_contested", contested);
        report("link_state_expired", expired);
        report("link_state_computations", computations);
        report("link_state_route_changes", route_changes);
        report("link_state_unsendable", unsendable);
        report("link_state_wrong_items", wrong_items);
        Refusal::ALL.iter().zip(refused).for_each(|(&(_, name), count)| report(name, count));
    }
}
