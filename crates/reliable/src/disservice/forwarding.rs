//! The forwarding controllers: which fragments a member sends on.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_core::{Duration, Instant, Stream};

use super::config::Forwarding;
use super::neighbours::Neighbours;
use super::recent::Recent;
use super::wire::{MemberId, MessageId};

/// Fragments that may be sent on.
#[derive(Debug)]
pub(super) struct Forwards {
    policy: Forwarding,
    delay: Duration,
    random: Stream,
    /// Fragments that wait, with the members that were heard to send them.
    waiting: BTreeMap<(MessageId, u32), BTreeSet<MemberId>>,
    due: BTreeSet<(Instant, MessageId, u32)>,
    /// Fragments that were considered of late, so that none is sent on twice.
    considered: Recent<(MessageId, u32)>,
}

/// Forwarding history: time for which a fragment is not sent on again (DisService's).
const HISTORY: Duration = Duration::from_secs(10);
/// Fragments that wait at a time, and that are remembered, at most. Chosen: 10 s of 10 Mbit/s.
const MAX_WAITING: usize = 1024;
const MAX_HISTORY: usize = 16_384;

impl Forwards {
    pub(super) const fn new(policy: Forwarding, delay: Duration, random: Stream) -> Self {
        Self {
            policy,
            delay,
            random,
            waiting: BTreeMap::new(),
            due: BTreeSet::new(),
            considered: Recent::new(HISTORY, MAX_HISTORY),
        }
    }

    /// When the next is due.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.due.first().map(|&(at, ..)| at)
    }

    /// A fragment was heard from a member; `is_new` says whether it was new here.
    pub(super) fn heard(&mut self, now: Instant, id: MessageId, index: u32, from: MemberId, is_new: bool) {
        if let Some(senders) = self.waiting.get_mut(&(id, index)) {
            senders.insert(from);
            return;
        }
        if !is_new || self.policy == Forwarding::None || self.waiting.len() >= MAX_WAITING {
            return;
        }
        if self.considered.has(now, (id, index)) {
            return;
        }
        self.considered.note(now, (id, index));
        if let Forwarding::Probabilistic(share) = self.policy
            && !self.random.chance(share)
        {
            return;
        }
        let due = now + self.delay.mul_f64(self.random.uniform());
        self.waiting.insert((id, index), BTreeSet::from([from]));
        self.due.insert((due, id, index));
    }

    /// The next fragment to be sent on.
    pub(super) fn next(&mut self, now: Instant, neighbours: &Neighbours) -> Option<(MessageId, u32)> {
        while let Some(&(at, id, index)) = self.due.first()
            && at <= now
        {
            self.due.pop_first();
            if let Some(senders) = self.waiting.remove(&(id, index))
                && self.is_needed(now, id, &senders, neighbours)
            {
                return Some((id, index));
            }
        }
        None
    }

    /// Whether a neighbour may lack what these members were heard to send.
    fn is_needed(
        &self,
        now: Instant,
        id: MessageId,
        senders: &BTreeSet<MemberId>,
        neighbours: &Neighbours,
    ) -> bool {
        let mut others = neighbours
            .present(now)
            .filter(|(member, _)| !senders.contains(member) && *member != id.publisher);
        match self.policy {
            Forwarding::None => false,
            Forwarding::Probabilistic(_) => true,
            Forwarding::Stateful => others.next().is_some(),
            Forwarding::WorldState => others.any(|(_, neighbour)| {
                // Of a series that it has not heard of it has nothing.
                neighbour.told(id.into()).is_none_or(|told| told.is_wanted && !told.holds(id.sequence))
            }),
            Forwarding::Topology => {
                others.any(|(_, neighbour)| !senders.iter().any(|sender| neighbour.hears(sender.node)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::super::tests::member;
    use super::super::wire::{Sent, Series, Summary};
    use super::*;

    const ID: MessageId = MessageId { group: 1, publisher: MemberId { node: 9, run: 1 }, sequence: 4 };

    /// Neighbours 1 and 2, of which 2 hears 1 and holds what `held` says.
    fn neighbours(held: u32) -> Neighbours {
        let mut neighbours = Neighbours::new(Duration::from_secs(30));
        for (node, heard) in [(1, vec![2]), (2, vec![1])] {
            let from = Sent { member: member(node), transmission: 0 };
            neighbours.heard(Instant::ZERO, from, None);
            let series = Series {
                group: 1,
                publisher: member(9),
                is_wanted: true,
                newest: 4,
                held: std::iter::once(0..held).collect(),
                said: None,
            };
            let summary = Summary { from, neighbours: 1, heard, is_all: true, series: vec![series] };
            neighbours.summary(Instant::ZERO, &summary);
        }
        neighbours
    }

    /// Whether a fragment that these were heard to send is sent on.
    fn sends_on(policy: Forwarding, held: u32, senders: &[u32]) -> bool {
        let random = Seed::new(1, 0).stream(&["test"], 0);
        let mut forwards = Forwards::new(policy, Duration::from_millis(10), random);
        senders.iter().for_each(|&node| forwards.heard(Instant::ZERO, ID, 0, member(node), true));
        let now = Instant::ZERO + Duration::from_millis(10);
        let found = forwards.next(now, &neighbours(held));
        // Never twice.
        forwards.heard(now, ID, 0, member(3), true);
        assert_eq!((forwards.next(now + HISTORY, &neighbours(held)), forwards.deadline()), (None, None));
        forwards.heard(now + HISTORY * 2, ID, 0, member(3), true);
        assert_eq!(
            forwards.deadline().is_some(),
            matches!(
                policy,
                Forwarding::Probabilistic(1.0)
                    | Forwarding::Stateful
                    | Forwarding::WorldState
                    | Forwarding::Topology
            )
        );
        found == Some((ID, 0))
    }

    #[test]
    fn each_controller_sends_on_what_its_neighbours_may_lack() {
        assert!(!sends_on(Forwarding::None, 0, &[1]));
        assert!(sends_on(Forwarding::Probabilistic(1.0), 5, &[1, 2]), "whatever they have");
        assert!(!sends_on(Forwarding::Probabilistic(0.0), 0, &[1]));
        assert!(sends_on(Forwarding::Stateful, 0, &[1]) && !sends_on(Forwarding::Stateful, 0, &[1, 2]));
        assert!(sends_on(Forwarding::WorldState, 4, &[1]) && !sends_on(Forwarding::WorldState, 5, &[1]));
        assert!(sends_on(Forwarding::Topology, 0, &[3]), "nobody says that it hears node 3");
        assert!(!sends_on(Forwarding::Topology, 0, &[1]), "node 2 hears node 1");
    }
}
