//! The replication controllers that bring messages to neighbours without being asked.

mod hold_off;

use std::collections::{BTreeMap, VecDeque};

use hopcast_core::{Duration, Instant, Stream, earliest};

use hold_off::HoldOffs;

use super::cache::Cache;
use super::config::Replication;
use super::neighbours::{Neighbour, Neighbours};
use super::series::{Catalogue, SeriesId};
use super::wire::{MemberId, MessageId};

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
    /// When one of them may be brought something, unless that is put off until then.
    next: Instant,
    hold_offs: HoldOffs,
    /// The messages that were pushed or heard of late, and their order by that.
    recent: BTreeMap<MessageId, Recent>,
    ages: BTreeMap<u64, MessageId>,
    noted: u64,
}

/// A neighbour that may lack something.
#[derive(Clone, Copy, Debug)]
struct Behind {
    /// When its last summary came.
    told: Instant,
    /// The message that was found last for it since: none before it is looked at again, also because some that were
    /// pushed may be forgotten.
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

/// Messages that are remembered.
const MAX_RECENT: usize = 8192;

impl Pushes {
    /// Pushes by a controller. Neighbours say what they hold within `settles` after news of it; who pushes is heard
    /// again within a `gap`.
    pub(super) const fn new(
        policy: Replication,
        again_after: Duration,
        settles: Duration,
        gap: Duration,
    ) -> Self {
        Self {
            policy,
            again_after,
            settles,
            behind: BTreeMap::new(),
            turns: VecDeque::new(),
            next: Instant::ZERO,
            hold_offs: HoldOffs::new(gap, again_after),
            recent: BTreeMap::new(),
            ages: BTreeMap::new(),
            noted: 0,
        }
    }

    /// A neighbour has said what it holds.
    pub(super) fn told(
        &mut self,
        now: Instant,
        member: MemberId,
        neighbours: &Neighbours,
        random: &mut Stream,
    ) {
        let Some(neighbour) = neighbours.get(member) else { return };
        let is_served = match &self.policy {
            Replication::None | Replication::Pull => false,
            Replication::Push => true,
            Replication::Convoy(after) => now.since(neighbour.since) >= *after,
            Replication::Targets(nodes) => nodes.contains(&member.node),
        };
        if !is_served {
            return;
        }
        let interface = neighbour.interface();
        let is_first = self.behind.is_empty();
        let was_held_off = self.is_any_behind_on(interface, neighbours);
        if self.behind.insert(member, Behind { told: now, last: None }).is_none() {
            self.turns.push_back(member);
        }
        // There are no more than neighbours, of which the number is bounded.
        if self.behind.len() > neighbours.known() {
            self.behind.retain(|&member, _| neighbours.get(member).is_some());
            self.turns.retain(|member| self.behind.contains_key(member));
        }
        if neighbours.are_others_on(now, interface, member) {
            self.hold_offs.told(now, (interface, was_held_off), neighbours.known(), random);
        }
        let next = self.hold_offs.until(now, interface, member).unwrap_or(now);
        self.next = if is_first { next } else { next.min(self.next) };
    }

    /// Another member was heard to send a repair on an interface: unless it goes on, this one does.
    pub(super) fn heard_repair(
        &mut self,
        now: Instant,
        (interface, from): (Option<u32>, MemberId),
        neighbours: &Neighbours,
        random: &mut Stream,
    ) {
        if self.is_on() {
            let is_held_off = self.is_any_behind_on(interface, neighbours);
            self.hold_offs.heard(now, (interface, from, is_held_off), neighbours.known(), random);
        }
    }

    /// Whether a neighbour on an interface may lack something, even if it repairs something else itself: of two that
    /// repair, each is held off for the sake of the other.
    fn is_any_behind_on(&self, interface: Option<u32>, neighbours: &Neighbours) -> bool {
        let is_on =
            |&member: &MemberId| neighbours.get(member).is_some_and(|other| other.interface() == interface);
        self.behind.keys().any(is_on)
    }

    /// This member sends part of a message again.
    pub(super) fn sends_repair(&mut self, now: Instant) {
        self.hold_offs.goes_on(now);
    }

    /// The last part of a message was sent, by this member or another.
    pub(super) fn sent(&mut self, now: Instant, message: MessageId) {
        if self.is_on() {
            self.note(now, message, true);
        }
    }

    /// Whether messages are pushed at all.
    pub(super) const fn is_on(&self) -> bool {
        !matches!(self.policy, Replication::None | Replication::Pull)
    }

    /// When to look for what is pushed next; `None` if no neighbour may lack anything.
    pub(super) fn deadline(&self) -> Option<Instant> {
        (!self.behind.is_empty()).then_some(self.next)
    }

    /// The message that is pushed next, once the one before has been sent: those that lack some take turns. None if no
    /// neighbour lacks any more, or others are left to push it.
    pub(super) fn next(
        &mut self,
        now: Instant,
        catalogue: &Catalogue,
        cache: &Cache,
        neighbours: &Neighbours,
    ) -> Option<MessageId> {
        if self.deadline().is_none_or(|at| at > now) {
            return None;
        }
        let mut held_off: Option<Instant> = None;
        for _ in 0..self.turns.len() {
            let member = self.turns.pop_front()?;
            let Some(behind) = self.behind.get(&member).copied() else { continue };
            let Some(neighbour) = neighbours.get(member) else {
                self.behind.remove(&member);
                continue;
            };
            let interface = neighbour.interface();
            if let Some(until) = self.hold_offs.until(now, interface, member) {
                held_off = earliest(held_off, Some(until));
                self.turns.push_back(member);
                continue;
            }
            let Some(found) = self.lacked(now, (member, neighbour), behind, catalogue, cache) else {
                self.behind.remove(&member);
                continue;
            };
            self.note(now, found, false);
            self.behind.insert(member, Behind { last: Some(found), ..behind });
            self.turns.push_back(member);
            self.hold_offs.brings(now, interface);
            return Some(found);
        }
        self.next = held_off.unwrap_or(now);
        None
    }

    /// The next message that a neighbour lacks by its last summaries, and that was neither pushed nor heard since.
    fn lacked(
        &self,
        now: Instant,
        (member, neighbour): (MemberId, &Neighbour),
        behind: Behind,
        catalogue: &Catalogue,
        cache: &Cache,
    ) -> Option<MessageId> {
        let after = behind.last.map(SeriesId::from);
        for (id, series) in catalogue.iter_from(after).filter(|(id, _)| id.publisher != member) {
            let first = behind.last.filter(|_| after == Some(id)).map_or(0, |last| last.sequence + 1);
            let runs = series.held.runs().map(|run| run.start.max(first.into())..run.end);
            let lacked = runs.flat_map(|run| {
                let told = neighbour.told(id);
                // Of a series that it has not heard of it has nothing.
                let all = told.is_none().then_some(run.clone());
                let said = told.map(|told| told.lacked(run));
                let all = all.into_iter().flatten().map(|number| (number, behind.told));
                all.chain(said.into_iter().flatten())
            });
            let mut lacked = lacked.map(|(number, said_at)| (id.message(number as u32), said_at));
            let found = lacked.find(|(message, said_at)| {
                let is_told = self.recent.get(message).is_none_or(|recent| match recent.was_sent {
                    // Who came later has not heard it.
                    true => *said_at >= recent.at + self.settles || neighbour.since > recent.at,
                    false => now >= recent.at + self.again_after,
                });
                is_told && cache.get(*message).is_some()
            });
            if let Some((message, _)) = found {
                return Some(message);
            }
        }
        None
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
        }
    }
}

#[cfg(test)]
mod tests {
    use std::ops::Range;

    use hopcast_core::Seed;

    use super::super::bodies::Bodies;
    use super::super::cache::Value;
    use super::super::message::Message;
    use super::super::tests::{id, member};
    use super::super::wire::{MAX_HELD, Sent, Series, Shape, Summary};
    use super::*;

    const SETTLES: Duration = Duration::from_secs(5);
    const AGAIN: Duration = Duration::from_secs(30);
    const GAP: Duration = Duration::from_millis(100);
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
        random: Stream,
    }

    impl Holder {
        /// One that holds the first messages of publisher 9.
        fn new(policy: Replication, held: u32) -> Self {
            let mut holder = Self {
                pushes: Pushes::new(policy, AGAIN, SETTLES, GAP),
                catalogue: Catalogue::new(Duration::from_secs(1000)),
                cache: Cache::new(1 << 24, Bodies::default()),
                neighbours: Neighbours::new(Duration::from_secs(100)),
                random: Seed::new(1, 0).stream(&["test"], 0),
            };
            (0..held).for_each(|sequence| holder.hold(id(sequence)));
            holder
        }

        fn hold(&mut self, id: MessageId) {
            let shape = Shape { length: 3, fragment: 3, chunk: 1, digest: 0 };
            self.catalogue.heard(at(0), OWN, id);
            self.catalogue.get_mut(id.into()).unwrap().whole(id.sequence, 0);
            self.cache.insert(id, Message::whole(shape, None, b"abc"), Value::Others);
        }

        /// A neighbour says that it holds these of the messages.
        fn hears(&mut self, second: u64, from: MemberId, held: Range<u32>) {
            self.hears_page(second, from, held, None);
        }

        /// A neighbour says that it holds these of some of the messages.
        fn hears_page(&mut self, second: u64, from: MemberId, held: Range<u32>, said: Option<Range<u32>>) {
            let from = Sent { member: from, transmission: 0 };
            self.neighbours.heard(at(second), from, None);
            let held = std::iter::once(held).filter(|held| !held.is_empty()).collect();
            let series = Series { group: 1, publisher: member(9), is_wanted: true, newest: 999, held, said };
            let summary = Summary { from, neighbours: 1, heard: vec![], is_all: true, series: vec![series] };
            self.neighbours.summary(at(second), &summary);
            self.pushes.told(at(second), from.member, &self.neighbours, &mut self.random);
        }

        /// The message that is pushed next, when all that waited for others have waited long enough.
        fn next(&mut self, second: u64) -> Option<u32> {
            let Self { pushes, catalogue, cache, neighbours, .. } = self;
            let soon = at(second) + GAP * 4;
            pushes.next(soon, catalogue, cache, neighbours).map(|id| id.sequence)
        }

        /// All that is pushed and sent by a second.
        fn all(&mut self, second: u64) -> Vec<u32> {
            let mut found = Vec::new();
            while let Some(sequence) = self.next(second) {
                self.pushes.sent(at(second), id(sequence));
                found.push(sequence);
            }
            assert_eq!(self.pushes.deadline(), None);
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
            assert_eq!(holder.pushes.deadline().is_some(), !expected.is_empty(), "{what}");
            assert_eq!(holder.all(second), expected, "{what}");
        }
    }

    #[test]
    fn all_that_a_neighbour_lacks_is_pushed_after_one_summary() {
        let mut holder = Holder::new(Replication::Push, 200);
        holder.hears(0, member(2), 0..10);
        assert_eq!(holder.all(0), (10..200).collect::<Vec<_>>());
        assert_eq!(holder.next(0), None);
    }

    #[test]
    fn neighbours_take_turns_and_what_one_of_them_was_sent_the_others_have_heard() {
        let mut holder = Holder::new(Replication::Push, 290);
        holder.hears(0, member(2), 0..100);
        holder.hears(0, member(3), 0..150);
        let first: Vec<_> = (0..4).map(|_| holder.next(0).unwrap()).collect();
        assert_eq!(first, [100, 150, 101, 151]);
        let mut rest = holder.all(0);
        rest.sort_unstable();
        assert_eq!(rest, (102..150).chain(152..290).collect::<Vec<_>>(), "each once");
    }

    #[test]
    fn what_a_neighbour_had_no_room_to_say_that_it_holds_is_not_pushed() {
        let mut holder = Holder::new(Replication::Push, 100);
        let from = Sent { member: member(2), transmission: 0 };
        holder.neighbours.heard(at(0), from, None);
        for (runs, expected) in [(MAX_HELD as u32 - 1, 0..10), (MAX_HELD as u32, 0..0)] {
            let held: Vec<_> = (0..runs).map(|run| 10 + run * 2..11 + run * 2).collect();
            let series =
                Series { group: 1, publisher: member(9), is_wanted: true, newest: 99, held, said: None };
            let summary = Summary { from, neighbours: 1, heard: vec![], is_all: true, series: vec![series] };
            holder.neighbours.summary(at(10), &summary);
            holder.pushes.told(at(10), member(2), &holder.neighbours, &mut holder.random);
            let found = holder.all(10);
            assert!(found.contains(&11) && found.contains(&99), "{found:?}");
            let found: Vec<_> = found.into_iter().filter(|&sequence| sequence < 10).collect();
            assert_eq!(found, expected.collect::<Vec<_>>(), "{runs} runs");
            holder.pushes.recent.clear();
        }
    }

    #[test]
    fn while_another_pushes_it_is_left_to_it_and_then_gone_on_with() {
        let mut holder = Holder::new(Replication::Push, 9);
        holder.neighbours.heard(at(0), Sent { member: member(3), transmission: 0 }, None);
        holder.hears(0, member(2), 0..0);
        let begins = holder.pushes.deadline().unwrap();
        assert!(begins > at(0) && begins <= at(0) + GAP, "{begins:?}");
        let next = |holder: &mut Holder, now| {
            let Holder { pushes, catalogue, cache, neighbours, .. } = holder;
            pushes.next(now, catalogue, cache, neighbours).map(|id| id.sequence)
        };
        assert_eq!((next(&mut holder, at(0)), next(&mut holder, begins)), (None, Some(0)));
        // Another has begun at the same time, and goes on for a second.
        for sequence in 0..5 {
            let now = at(1) + GAP * u64::from(sequence);
            holder.pushes.heard_repair(now, (None, member(3)), &holder.neighbours, &mut holder.random);
            holder.pushes.sent(now, id(sequence));
            assert_eq!(next(&mut holder, now), None);
        }
        assert_eq!(next(&mut holder, at(1) + GAP * 5 - Duration::from_millis(1)), None);
        assert_eq!(holder.all(2), [5, 6, 7, 8]);
        // A neighbour that is alone on its link waits for nobody.
        holder.neighbours.heard(at(3), Sent { member: member(4), transmission: 0 }, Some(7));
        let from = Sent { member: member(4), transmission: 1 };
        let summary = Summary { from, neighbours: 1, heard: vec![], is_all: true, series: vec![] };
        holder.neighbours.summary(at(3), &summary);
        holder.pushes.told(at(3), member(4), &holder.neighbours, &mut holder.random);
        assert_eq!(holder.next(3), Some(0));
    }

    /// Time of the first push of a holder that hears a repair each `GAP`, by the member of each step; from 60 s on
    /// member 2 lacks something.
    fn first_push_beside(repairer: impl Fn(u32) -> MemberId) -> Option<Instant> {
        let mut holder = Holder::new(Replication::Push, 9);
        holder.neighbours.heard(at(0), Sent { member: member(3), transmission: 0 }, None);
        let mut pushed_at = None;
        for step in 0..1200_u32 {
            let now = at(0) + GAP * u64::from(step);
            if step == 601 {
                holder.hears(60, member(2), 0..0);
            }
            let Holder { pushes, catalogue, cache, neighbours, random } = &mut holder;
            pushes.heard_repair(now, (None, repairer(step)), neighbours, random);
            if pushes.next(now, catalogue, cache, neighbours).is_some() {
                pushed_at = pushed_at.or(Some(now));
            }
        }
        pushed_at
    }

    #[test]
    fn what_it_leaves_to_another_that_never_ends_it_brings_after_a_time_from_when_it_was_lacked() {
        assert_eq!(first_push_beside(|_| member(3)), Some(at(90)));
    }

    /// One of two that repair lacks something itself: its repairs counted as a time without anything to bring.
    #[test]
    fn repairs_without_end_by_two_of_which_one_lacks_something_are_left_to_them_for_no_longer() {
        assert_eq!(first_push_beside(|step| member(2 + step % 2)), Some(at(90)));
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
    fn what_was_brought_since_a_page_that_lacks_it_is_not_pushed_for_a_summary_of_another_page() {
        let mut holder = Holder::new(Replication::Push, 4);
        let (earlier, latest) = (Some(0..2), Some(2..1000));
        holder.hears_page(8, member(2), 0..0, earlier.clone());
        holder.hears_page(10, member(2), 2..3, latest.clone());
        assert_eq!(holder.all(10), [0, 1, 3]);
        holder.hears_page(20, member(2), 0..1, earlier);
        assert_eq!(holder.all(20), [1], "of the latest it has said nothing since");
        holder.hears_page(30, member(2), 2..4, latest.clone());
        assert_eq!(holder.all(30), [], "of those before it has said nothing since");
        holder.hears_page(31, member(2), 2..3, latest);
        assert_eq!(holder.all(31), [3], "it was lost");
    }

    #[test]
    fn what_others_send_is_not_pushed_and_what_nobody_sent_is_after_a_time() {
        let mut holder = Holder::new(Replication::Push, 3);
        holder.neighbours.heard(at(0), Sent { member: member(2), transmission: 0 }, None);
        holder.pushes.sent(at(10), id(1));
        holder.hears(10, member(2), 0..0);
        assert_eq!((holder.next(10), holder.next(10), holder.next(10)), (Some(0), Some(2), None));
        holder.pushes.sent(at(10), id(0));
        // Message 2 was dropped before it was sent.
        holder.hears(39, member(2), 0..2);
        assert_eq!(holder.next(39), None);
        holder.hears(41, member(2), 0..2);
        assert_eq!(holder.next(41), Some(2));
    }

    #[test]
    fn a_publisher_is_not_sent_its_own_and_what_is_not_held_to_nobody() {
        let mut holder = Holder::new(Replication::Push, 3);
        holder.hears(0, member(9), 0..0);
        assert_eq!(holder.next(0), None);
        holder.cache.remove(id(1));
        holder.hears(0, member(2), 0..0);
        assert_eq!(holder.all(0), [0, 2]);
        // Of a series that a neighbour has not heard of it has nothing.
        let other = MessageId { group: 2, ..id(7) };
        holder.hold(other);
        holder.hears(2, member(3), 0..3);
        assert_eq!(holder.next(2), Some(7));
    }

    #[test]
    fn what_is_remembered_is_bounded_and_more_than_that_is_pushed_once_to_all() {
        let held = 2 * MAX_RECENT as u32 + 10;
        let mut holder = Holder::new(Replication::Push, held);
        holder.hears(0, member(2), 0..0);
        holder.hears(0, member(3), 0..5);
        let mut found = holder.all(0);
        found.sort_unstable();
        assert_eq!(found, (0..held).collect::<Vec<_>>());
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
        let first: Vec<_> = (0..64).filter_map(|_| holder.next(0)).collect();
        assert_eq!(first, (0..64).collect::<Vec<_>>());
        // One that is heard again and again takes one place.
        (0..MAX_RECENT).for_each(|_| holder.pushes.sent(at(0), invented(0)));
        assert!(first.iter().all(|&sequence| holder.pushes.recent.contains_key(&id(sequence))));
        (0..2 * MAX_RECENT as u32).for_each(|sequence| holder.pushes.sent(at(0), invented(sequence)));
        assert_eq!(holder.all(0), (64..100).collect::<Vec<_>>(), "none twice");
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
