//! The replication controllers that bring messages to neighbours without being asked.

use std::collections::{BTreeMap, VecDeque};

use hopcast_core::{Duration, Instant};

use super::cache::Cache;
use super::config::Replication;
use super::neighbours::Neighbours;
use super::series::{Catalogue, SeriesId};
use super::wire::{MemberId, MessageId};
use crate::runs::Runs;

/// Messages that are pushed to neighbours.
#[derive(Debug)]
pub(super) struct Pushes {
    policy: Replication,
    /// Time after which a message that was to be pushed, and was not sent by anybody, is pushed again.
    again_after: Duration,
    /// Time after which who has heard a message says so.
    settles: Duration,
    /// Neighbours that may lack something, and the order in which they take turns.
    behind: BTreeMap<MemberId, Behind>,
    turns: VecDeque<MemberId>,
    /// The messages that were pushed or heard of late, and their order by that.
    recent: BTreeMap<MessageId, Recent>,
    ages: BTreeMap<u64, MessageId>,
    noted: u64,
    /// Messages that were forgotten for the sake of later ones.
    forgotten: u64,
}

/// A neighbour that may lack something.
#[derive(Clone, Copy, Debug)]
struct Behind {
    /// When its summary came, and [`Pushes::forgotten`] then.
    told: Instant,
    forgotten: u64,
    /// The message that was found last for it since.
    last: Option<MessageId>,
}

/// When a message was pushed or heard last.
#[derive(Clone, Copy, Debug)]
struct Recent {
    at: Instant,
    /// Whether all of it has been on the network since.
    was_sent: bool,
    /// Its place in the order.
    age: u64,
}

/// Messages that are remembered, and those that are pushed at a time.
const MAX_RECENT: usize = 8192;
const MAX_AT_A_TIME: usize = 64;

impl Pushes {
    /// Pushes by a controller. Neighbours say what they hold within `settles` after news of it.
    pub(super) const fn new(policy: Replication, again_after: Duration, settles: Duration) -> Self {
        Self {
            policy,
            again_after,
            settles,
            behind: BTreeMap::new(),
            turns: VecDeque::new(),
            recent: BTreeMap::new(),
            ages: BTreeMap::new(),
            noted: 0,
            forgotten: 0,
        }
    }

    /// A neighbour has said what it holds.
    pub(super) fn told(&mut self, now: Instant, member: MemberId, neighbours: &Neighbours) {
        let is_served = match &self.policy {
            Replication::None | Replication::Pull => false,
            Replication::Push => true,
            Replication::Convoy(after) => {
                neighbours.get(member).is_some_and(|neighbour| now.since(neighbour.since) >= *after)
            }
            Replication::Targets(nodes) => nodes.contains(&member.node),
        };
        if !is_served {
            return;
        }
        let behind = Behind { told: now, forgotten: self.forgotten, last: None };
        if self.behind.insert(member, behind).is_none() {
            self.turns.push_back(member);
        }
        // There are no more than neighbours, of which the number is bounded.
        if self.behind.len() > neighbours.known() {
            self.behind.retain(|&member, _| neighbours.get(member).is_some());
            self.turns.retain(|member| self.behind.contains_key(member));
        }
    }

    /// The last part of a message was sent, by this member or another.
    pub(super) fn sent(&mut self, now: Instant, message: MessageId) {
        if !matches!(self.policy, Replication::None | Replication::Pull) {
            self.note(now, message, true);
        }
    }

    /// Whether some neighbour may lack something.
    pub(super) fn has_more(&self) -> bool {
        !self.behind.is_empty()
    }

    /// The messages that are pushed next, once those before have been sent; none if no neighbour lacks any more.
    pub(super) fn next(
        &mut self,
        now: Instant,
        catalogue: &Catalogue,
        cache: &Cache,
        neighbours: &Neighbours,
    ) -> Vec<MessageId> {
        while let Some(member) = self.turns.pop_front() {
            let Some(mut behind) = self.behind.remove(&member) else { continue };
            let found = self.lacked(now, (member, behind), catalogue, cache, neighbours);
            if let Some(&last) = found.last() {
                behind.last = Some(last);
                self.behind.insert(member, behind);
                self.turns.push_back(member);
                return found;
            }
        }
        Vec::new()
    }

    /// Messages that a neighbour lacks by its last summary, and that were neither pushed nor heard since.
    fn lacked(
        &mut self,
        now: Instant,
        (member, behind): (MemberId, Behind),
        catalogue: &Catalogue,
        cache: &Cache,
        neighbours: &Neighbours,
    ) -> Vec<MessageId> {
        let mut found = Vec::new();
        let Some(neighbour) = neighbours.get(member) else { return found };
        let nothing = Runs::new();
        // Where some that were pushed since its summary may be forgotten, none is looked at twice.
        let after = behind.last.filter(|_| behind.forgotten != self.forgotten);
        for (id, series) in catalogue.iter().filter(|(id, _)| id.publisher != member) {
            let first = match after {
                Some(after) if id < after.into() => continue,
                Some(after) if id == after.into() => u64::from(after.sequence) + 1,
                Some(_) | None => 0,
            };
            let told = neighbour.told(id).map_or(&nothing, |told| &told.held);
            let lacked = series.held.runs().flat_map(|run| told.gaps(run.start.max(first)..run.end));
            for message in lacked.map(|number| SeriesId::message(id, number as u32)) {
                let is_told = self.recent.get(&message).is_none_or(|recent| match recent.was_sent {
                    // Who came later has not heard it.
                    true => behind.told >= recent.at + self.settles || neighbour.since > recent.at,
                    false => now >= recent.at + self.again_after,
                });
                if !is_told || cache.get(message).is_none() {
                    continue;
                }
                self.note(now, message, false);
                found.push(message);
                if found.len() >= MAX_AT_A_TIME {
                    return found;
                }
            }
        }
        found
    }

    /// Remembers a message; the one that was noted before all others makes room.
    fn note(&mut self, now: Instant, message: MessageId, was_sent: bool) {
        self.noted += 1;
        let age = self.noted;
        if let Some(before) = self.recent.insert(message, Recent { at: now, was_sent, age }) {
            self.ages.remove(&before.age);
        }
        self.ages.insert(age, message);
        if self.recent.len() > MAX_RECENT
            && let Some((_, oldest)) = self.ages.pop_first()
        {
            self.recent.remove(&oldest);
            self.forgotten += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::cache::Value;
    use super::super::message::Message;
    use super::super::tests::{id, member};
    use super::super::wire::{Sent, Series, Shape, Summary};
    use super::*;

    const SETTLES: Duration = Duration::from_secs(5);
    const AGAIN: Duration = Duration::from_secs(30);
    const OWN: MemberId = member(1);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    /// A member that holds messages, and its neighbours.
    struct Holder {
        pushes: Pushes,
        catalogue: Catalogue,
        cache: Cache,
        neighbours: Neighbours,
    }

    impl Holder {
        /// One that holds the first messages of publisher 9.
        fn new(policy: Replication, held: u32) -> Self {
            let mut holder = Self {
                pushes: Pushes::new(policy, AGAIN, SETTLES),
                catalogue: Catalogue::new(Duration::from_secs(1000)),
                cache: Cache::new(1 << 24),
                neighbours: Neighbours::new(Duration::from_secs(100)),
            };
            (0..held).for_each(|sequence| holder.hold(id(sequence)));
            holder
        }

        fn hold(&mut self, id: MessageId) {
            let shape = Shape { length: 3, fragment: 3, chunk: 1, digest: 0 };
            self.catalogue.heard(at(0), OWN, id);
            self.catalogue.get_mut(id.into()).unwrap().whole(id.sequence, 0);
            self.cache.insert(id, Message::whole(at(0), shape, None, b"abc"), Value::Others);
        }

        /// A neighbour says that it holds these of the messages.
        fn hears(&mut self, second: u64, from: MemberId, held: std::ops::Range<u32>) {
            let from = Sent { member: from, transmission: 0 };
            self.neighbours.heard(at(second), from, None);
            let held = std::iter::once(held).filter(|held| !held.is_empty()).collect();
            let series = Series { group: 1, publisher: member(9), is_wanted: true, newest: 999, held };
            let summary = Summary { from, neighbours: 1, heard: vec![], is_all: true, series: vec![series] };
            self.neighbours.summary(&summary);
            self.pushes.told(at(second), from.member, &self.neighbours);
        }

        fn next(&mut self, second: u64) -> Vec<u32> {
            let Self { pushes, catalogue, cache, neighbours } = self;
            let found = pushes.next(at(second), catalogue, cache, neighbours);
            found.into_iter().map(|id| id.sequence).collect()
        }

        /// All that is pushed and sent by a second.
        fn all(&mut self, second: u64) -> Vec<u32> {
            let mut found = Vec::new();
            while self.pushes.has_more() {
                let next = self.next(second);
                next.iter().for_each(|&sequence| self.pushes.sent(at(second), id(sequence)));
                found.extend(next);
            }
            found
        }
    }

    #[test]
    fn each_controller_pushes_to_those_that_it_is_for() {
        for (policy, second, expected) in [
            (Replication::None, 0, vec![]),
            (Replication::Pull, 0, vec![]),
            (Replication::Push, 0, vec![3, 4]),
            (Replication::Convoy(Duration::from_secs(10)), 9, vec![]),
            (Replication::Convoy(Duration::from_secs(10)), 10, vec![3, 4]),
            (Replication::Targets(vec![3, 2]), 0, vec![3, 4]),
            (Replication::Targets(vec![3]), 0, vec![]),
        ] {
            let what = format!("{policy:?}");
            let mut holder = Holder::new(policy, 5);
            holder.neighbours.heard(at(0), Sent { member: member(2), transmission: 0 }, None);
            holder.hears(second, member(2), 0..3);
            assert_eq!(holder.pushes.has_more(), !expected.is_empty(), "{what}");
            assert_eq!(holder.next(second), expected, "{what}");
        }
    }

    #[test]
    fn all_that_a_neighbour_lacks_is_pushed_after_one_summary() {
        let mut holder = Holder::new(Replication::Push, 200);
        holder.hears(0, member(2), 0..10);
        assert_eq!(holder.next(0), (10..10 + MAX_AT_A_TIME as u32).collect::<Vec<_>>(), "in parts");
        assert_eq!(holder.all(0), (10 + MAX_AT_A_TIME as u32..200).collect::<Vec<_>>());
        assert!(!holder.pushes.has_more() && holder.next(0).is_empty());
    }

    #[test]
    fn neighbours_take_turns_and_what_one_of_them_was_sent_the_others_have_heard() {
        let mut holder = Holder::new(Replication::Push, 290);
        holder.hears(0, member(2), 0..100);
        holder.hears(0, member(3), 0..150);
        let turn = MAX_AT_A_TIME as u32;
        assert_eq!(holder.next(0), (100..100 + turn).collect::<Vec<_>>());
        assert_eq!(holder.next(0), (100 + turn..100 + 2 * turn).collect::<Vec<_>>());
        assert_eq!(holder.next(0), (100 + 2 * turn..290).collect::<Vec<_>>());
        assert_eq!(holder.next(0), [], "each once");
    }

    #[test]
    fn what_was_lost_is_pushed_again_once_a_later_summary_lacks_it() {
        let mut holder = Holder::new(Replication::Push, 2);
        holder.hears(10, member(2), 0..0);
        assert_eq!(holder.all(10), [0, 1]);
        // It may be under way when these are said.
        holder.hears(13, member(2), 0..0);
        assert_eq!(holder.all(13), []);
        // Of two summaries the later one counts.
        holder.hears(14, member(2), 0..0);
        holder.hears(15, member(2), 0..1);
        assert_eq!(holder.all(15), [1], "5 s after it was sent");
        holder.hears(21, member(2), 0..2);
        assert_eq!(holder.all(21), []);
        // A neighbour that was not there has not heard it.
        holder.pushes.sent(at(30), id(0));
        holder.hears(30, member(3), 1..2);
        assert_eq!(holder.all(30), []);
        holder.hears(31, member(4), 1..2);
        assert_eq!(holder.all(31), [0]);
    }

    #[test]
    fn what_others_send_is_not_pushed_and_what_nobody_sent_is_after_a_time() {
        let mut holder = Holder::new(Replication::Push, 3);
        holder.neighbours.heard(at(0), Sent { member: member(2), transmission: 0 }, None);
        holder.pushes.sent(at(10), id(1));
        holder.hears(10, member(2), 0..0);
        assert_eq!(holder.next(10), [0, 2]);
        holder.pushes.sent(at(10), id(0));
        // Message 2 was dropped before it was sent.
        holder.hears(39, member(2), 0..2);
        assert_eq!(holder.next(39), []);
        holder.hears(40, member(2), 0..2);
        assert_eq!(holder.next(40), [2]);
    }

    #[test]
    fn a_publisher_is_not_sent_its_own_and_what_is_not_held_to_nobody() {
        let mut holder = Holder::new(Replication::Push, 3);
        holder.hears(0, member(9), 0..0);
        assert_eq!(holder.next(0), []);
        holder.cache.remove(id(1));
        holder.hears(0, member(2), 0..0);
        assert_eq!(holder.next(0), [0, 2]);
        // Of a series that a neighbour has not heard of it has nothing.
        let other = MessageId { group: 2, ..id(7) };
        holder.hold(other);
        holder.hears(2, member(3), 0..3);
        assert_eq!(holder.next(2), [7]);
    }

    #[test]
    fn what_is_remembered_is_bounded_and_more_than_that_is_pushed_once_to_all() {
        let held = 2 * MAX_RECENT as u32 + 10;
        let mut holder = Holder::new(Replication::Push, held);
        holder.hears(0, member(2), 0..0);
        holder.hears(0, member(3), 0..5);
        assert_eq!(holder.all(0), (0..held).collect::<Vec<_>>());
        assert_eq!((holder.pushes.recent.len(), holder.pushes.ages.len()), (MAX_RECENT, MAX_RECENT));
        holder.hears(1, member(2), 0..held - 10);
        assert_eq!(holder.all(1), [], "the last were sent just now");
    }

    #[test]
    fn invented_messages_keep_no_neighbour_from_what_it_lacks() {
        let mut holder = Holder::new(Replication::Push, 100);
        let invented = |sequence| MessageId { publisher: member(66), ..id(sequence) };
        (0..2 * MAX_RECENT as u32).for_each(|sequence| holder.pushes.sent(at(0), invented(sequence)));
        holder.hears(0, member(2), 0..0);
        let first = holder.next(0);
        assert_eq!(first, (0..MAX_AT_A_TIME as u32).collect::<Vec<_>>());
        // One that is heard again and again takes one place.
        (0..MAX_RECENT).for_each(|_| holder.pushes.sent(at(0), invented(0)));
        assert!(first.iter().all(|&sequence| holder.pushes.recent.contains_key(&id(sequence))));
        (0..2 * MAX_RECENT as u32).for_each(|sequence| holder.pushes.sent(at(0), invented(sequence)));
        assert_eq!(holder.all(0), (MAX_AT_A_TIME as u32..100).collect::<Vec<_>>(), "none twice");
    }

    #[test]
    fn who_is_no_neighbour_any_more_takes_no_turn() {
        let mut holder = Holder::new(Replication::Push, 1);
        (10..5000).for_each(|node| holder.hears(u64::from(node), member(node), 0..0));
        let known = holder.neighbours.known();
        assert!(known < 4990, "{known}");
        assert_eq!((holder.pushes.behind.len(), holder.pushes.turns.len()), (known, known));
        assert!(holder.pushes.behind.contains_key(&member(4999)));
    }
}
