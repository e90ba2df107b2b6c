//! The members that are heard, and their state by their own summaries.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use hopcast_core::{Duration, Instant, Stream};

use super::series::SeriesId;
use super::wire::{MAX_HELD, MemberId, MessageId, Sent, Series, Summary};
use crate::runs::Runs;

/// A member that is heard.
#[derive(Clone, Debug)]
pub(super) struct Neighbour {
    /// Since when it has been heard without a long pause.
    pub(super) since: Instant,
    last: Instant,
    /// The interface on which it was heard last.
    interface: Option<u32>,
    /// Its transmission that was heard last.
    pub(super) transmission: u16,
    /// Its statements about series, by their names. Of most networks each member knows a few, and a map takes 1.5 kB
    /// for one.
    series: Vec<(SeriesId, Told)>,
    /// Nodes that it hears, by its own summary.
    nodes: BTreeSet<u32>,
    /// Requests in a row that it has not answered, and when the last was given up.
    unanswered: u32,
    given_up: Instant,
}

/// State of a series at a neighbour, by its last summaries.
#[derive(Clone, Debug)]
pub(super) struct Told {
    pub(super) is_wanted: bool,
    pub(super) newest: u32,
    /// Messages that it holds of the latest, from the first on of which it said whether it does, and when it said that.
    latest: Runs,
    from: u32,
    said_at: Instant,
    /// Some before those: where not all fit a summary, some summaries speak of others.
    earlier: Option<Box<Earlier>>,
}

/// Messages before the latest of which a neighbour has said whether it holds them.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Earlier {
    said: Range<u32>,
    held: Runs,
    said_at: Instant,
}

/// The members that are heard.
#[derive(Debug)]
pub(super) struct Neighbours {
    all: BTreeMap<MemberId, Neighbour>,
    /// Series that all of them have said something of.
    told: usize,
    dead_after: Duration,
}

/// Neighbours at most; the one that was silent for longest makes room. Chosen: as many as stations on a large segment.
const MAX_NEIGHBOURS: usize = 1024;
/// Series that a neighbour is remembered to have said something of. Chosen: those of 10 summaries.
const MAX_TOLD: usize = 1000;
/// Series that all neighbours together are. Chosen: 200 of each of 600 neighbours, in some 50 MB.
const MAX_TOLD_BY_ALL: usize = 1 << 17;
/// Series of a neighbour up to which no room is taken for more.
const FEW_SERIES: usize = 8;
/// Unanswered requests after which a neighbour counts as one that does not answer, and the time after which it is tried
/// again. Chosen: at 20 % loss each way one in eight requests is lost with its answer.
const MAX_UNANSWERED: u32 = 2;
const RETRIED_AFTER: Duration = Duration::from_secs(60);

/// Members among which each speaks for itself; of more, most leave it to others. Chosen: more than the ten nodes of the
/// tactical experiment, where to wait for others costs time and saves little.
pub(super) const FEW: usize = 16;

impl Neighbours {
    pub(super) const fn new(dead_after: Duration) -> Self {
        Self { all: BTreeMap::new(), told: 0, dead_after }
    }

    /// A packet of a member was heard. Whether it is a new neighbour, or one that is back.
    pub(super) fn heard(&mut self, now: Instant, from: Sent, interface: Option<u32>) -> bool {
        if let Some(known) = self.all.get_mut(&from.member)
            && now.since(known.last) < self.dead_after
        {
            (known.last, known.interface) = (now, interface);
            if from.transmission.wrapping_sub(known.transmission) < 1 << 15 {
                known.transmission = from.transmission;
            }
            return false;
        }
        self.forget_other_runs(now, from.member);
        if self.all.len() >= MAX_NEIGHBOURS
            && let Some((&oldest, _)) = self.all.iter().min_by_key(|(_, neighbour)| neighbour.last)
        {
            self.forget(oldest);
        }
        let new = Neighbour {
            since: now,
            last: now,
            interface,
            transmission: from.transmission,
            series: Vec::new(),
            nodes: BTreeSet::new(),
            unanswered: 0,
            given_up: Instant::ZERO,
        };
        self.forget(from.member);
        self.all.insert(from.member, new);
        true
    }

    fn forget(&mut self, member: MemberId) {
        self.told -= self.all.remove(&member).map_or(0, |neighbour| neighbour.series.len());
    }

    /// A node that has begun again is not a neighbour twice.
    fn forget_other_runs(&mut self, now: Instant, member: MemberId) {
        let of_node = MemberId { run: 0, ..member }..=MemberId { run: u16::MAX, ..member };
        let is_silent = |neighbour: &Neighbour| now.since(neighbour.last) >= self.dead_after;
        let others = self.all.range(of_node).filter(|(other, known)| **other != member && is_silent(known));
        let others: Vec<MemberId> = others.map(|(&other, _)| other).collect();
        others.into_iter().for_each(|other| self.forget(other));
    }

    /// A neighbour has said what it knows and holds.
    pub(super) fn summary(&mut self, now: Instant, summary: &Summary) {
        let Some(neighbour) = self.all.get_mut(&summary.from.member) else { return };
        self.told -= neighbour.series.len();
        neighbour.nodes = summary.heard.iter().copied().collect();
        if summary.is_all {
            let said: BTreeSet<SeriesId> = summary.series.iter().map(SeriesId::from).collect();
            neighbour.series.retain(|(id, _)| said.contains(id));
        }
        for series in &summary.series {
            let is_full =
                neighbour.series.len() >= MAX_TOLD || self.told + neighbour.series.len() >= MAX_TOLD_BY_ALL;
            match neighbour.place(series.into()) {
                Err(place) if !is_full => {
                    if neighbour.series.len() < FEW_SERIES {
                        neighbour.series.reserve_exact(1);
                    }
                    neighbour.series.insert(place, (series.into(), Told::new(now, series)));
                }
                Err(_) => {}
                // Most of them say the same again.
                Ok(place) => neighbour.series[place].1.update(now, series),
            }
        }
        self.told += neighbour.series.len();
    }

    /// The neighbours that are there.
    pub(super) fn present(&self, now: Instant) -> impl Iterator<Item = (MemberId, &Neighbour)> {
        let is_there =
            move |(_, neighbour): &(&MemberId, &Neighbour)| now.since(neighbour.last) < self.dead_after;
        self.all.iter().filter(is_there).map(|(&member, neighbour)| (member, neighbour))
    }

    /// Whether there are neighbours on an interface other than this one.
    pub(super) fn are_others_on(&self, now: Instant, interface: Option<u32>, than: MemberId) -> bool {
        self.present(now).any(|(member, other)| member != than && other.interface == interface)
    }

    pub(super) fn count(&self, now: Instant) -> usize {
        self.present(now).count()
    }

    /// Number of interfaces on which somebody is heard; `None` if it is not known of all on which they are.
    pub(super) fn interfaces(&self, now: Instant) -> Option<usize> {
        let interfaces = self.present(now).map(|(_, neighbour)| neighbour.interface);
        interfaces.collect::<Option<BTreeSet<_>>>().map(|interfaces| interfaces.len())
    }

    /// Number of members that are remembered, even if they were silent for long.
    pub(super) fn known(&self) -> usize {
        self.all.len()
    }

    /// Whether more than [`FEW`] are remembered.
    pub(super) fn is_crowd(&self) -> bool {
        self.known() > FEW
    }

    /// The nodes that were heard last, `max` at most.
    pub(super) fn nodes(&self, now: Instant, max: usize) -> Vec<u32> {
        let mut present: Vec<_> =
            self.present(now).map(|(member, neighbour)| (neighbour.last, member.node)).collect();
        present.sort_by(|a, b| b.cmp(a));
        present.into_iter().take(max).map(|(_, node)| node).collect()
    }

    pub(super) fn get(&self, member: MemberId) -> Option<&Neighbour> {
        self.all.get(&member)
    }

    /// Whether a member is a neighbour that is known to hold a message.
    pub(super) fn holds(&self, member: MemberId, id: MessageId) -> bool {
        self.get(member).is_some_and(|neighbour| neighbour.holds(member, id))
    }

    /// The neighbour that is to be asked for messages: one that is known to hold most of them, if it answers; where
    /// there are several, the one that answers already (`current`), or one at random.
    pub(super) fn server(
        &self,
        now: Instant,
        wanted: &[MessageId],
        (except, current): (&[MemberId], Option<MemberId>),
        random: &mut Stream,
    ) -> Option<MemberId> {
        let candidates = self.present(now).filter(|(member, _)| !except.contains(member));
        let rated = candidates.map(|(member, neighbour)| {
            let holds = wanted.iter().filter(|id| neighbour.holds(member, **id)).count();
            let is_current = current == Some(member);
            (
                (neighbour.answers(now), holds, is_current, u32::MAX - neighbour.unanswered, random.bits()),
                member,
            )
        });
        rated.max().map(|(_, member)| member)
    }

    /// The neighbours that lack a message themselves, as far as is known: what one of them sends says nothing new to
    /// it.
    pub(super) fn wanting(&self, now: Instant, id: MessageId) -> Vec<MemberId> {
        let lacks = |&(member, neighbour): &(MemberId, &Neighbour)| {
            neighbour.told(id.into()).is_some_and(|told| told.is_wanted) && !neighbour.holds(member, id)
        };
        self.present(now).filter(lacks).map(|(member, _)| member).collect()
    }

    /// One of the neighbours that are there and answer, at random, but for some.
    pub(super) fn any(&self, now: Instant, except: &[MemberId], random: &mut Stream) -> Option<MemberId> {
        let answers =
            |(member, neighbour): &(MemberId, &Neighbour)| !except.contains(member) && neighbour.answers(now);
        let found: Vec<MemberId> = self.present(now).filter(answers).map(|(member, _)| member).collect();
        (!found.is_empty()).then(|| found[random.below(found.len() as u64) as usize])
    }

    /// The messages of a series that some neighbour is known to hold; `None` for all, where its publisher is there.
    pub(super) fn held(&self, now: Instant, id: SeriesId) -> Option<Runs> {
        let mut held = Runs::default();
        for (member, neighbour) in self.present(now) {
            if member == id.publisher {
                return None;
            }
            if let Some(told) = neighbour.told(id) {
                told.held().for_each(|run| held.insert_run(run));
            }
        }
        Some(held)
    }

    /// Whether some of these messages of a series are held by no neighbour on an interface, as far as is known.
    pub(super) fn lack(
        &self,
        now: Instant,
        id: SeriesId,
        interface: Option<u32>,
        mut messages: Runs,
    ) -> bool {
        for (member, neighbour) in self.present(now).filter(|(_, other)| other.interface == interface) {
            if member == id.publisher || messages.is_empty() {
                return false;
            }
            if let Some(told) = neighbour.told(id) {
                told.held().for_each(|run| messages.remove_run(run));
            }
        }
        !messages.is_empty()
    }

    /// A neighbour has not answered a request.
    pub(super) fn unanswered(&mut self, now: Instant, member: MemberId) {
        if let Some(neighbour) = self.all.get_mut(&member) {
            neighbour.unanswered = neighbour.unanswered.saturating_add(1);
            neighbour.given_up = now;
        }
    }

    /// A neighbour has answered a request.
    pub(super) fn answered(&mut self, member: MemberId) {
        if let Some(neighbour) = self.all.get_mut(&member) {
            neighbour.unanswered = 0;
        }
    }
}

impl Told {
    fn new(now: Instant, series: &Series) -> Self {
        // It has said nothing yet.
        let (is_wanted, newest) = (series.is_wanted, series.newest);
        let mut told =
            Self { is_wanted, newest, latest: Runs::new(), from: u32::MAX, said_at: now, earlier: None };
        told.update(now, series);
        told
    }

    /// Whether it is known to hold a message.
    pub(super) fn holds(&self, sequence: u32) -> bool {
        let holds = |runs: &Runs| runs.contains(sequence.into());
        holds(&self.latest) || self.earlier.as_ref().is_some_and(|earlier| holds(&earlier.held))
    }

    /// Messages that it is known to hold, as runs.
    fn held(&self) -> impl Iterator<Item = Range<u64>> + '_ {
        self.earlier.iter().flat_map(|earlier| earlier.held.runs()).chain(self.latest.runs())
    }

    /// Messages of a range that it has said not to hold, ascending, each with the time at which it said so last.
    pub(super) fn lacked(&self, range: Range<u64>) -> impl Iterator<Item = (u64, Instant)> + '_ {
        let within = move |said: Range<u32>| {
            let start = range.start.max(said.start.into());
            start..range.end.min(said.end.into()).max(start)
        };
        let latest = self.latest.gaps(within(self.from..u32::MAX)).map(|number| (number, self.said_at));
        let earlier = self.earlier.iter().flat_map(move |earlier| {
            let gaps = earlier.held.gaps(within(earlier.said.clone()));
            gaps.map(|number| (number, earlier.said_at))
        });
        earlier.chain(latest)
    }

    fn update(&mut self, now: Instant, series: &Series) {
        (self.is_wanted, self.newest) = (series.is_wanted, series.newest);
        let from = match &series.said {
            Some(said) if said.end <= series.newest => {
                return self.set_earlier(now, said.clone(), Runs::of(&series.held));
            }
            Some(said) => said.start,
            // It may hold more before as many as fit.
            None => series.held.first().filter(|_| series.held.len() >= MAX_HELD).map_or(0, |run| run.start),
        };
        (self.from, self.said_at) = (from, now);
        if !self.latest.ranges().eq(series.held.iter().cloned()) {
            self.latest = Runs::of(&series.held);
        }
        if let Some(Earlier { said, held, said_at }) = self.earlier.take().map(|earlier| *earlier) {
            self.set_earlier(said_at, said, held);
        }
    }

    /// What it holds of messages before the latest.
    fn set_earlier(&mut self, said_at: Instant, said: Range<u32>, mut held: Runs) {
        let said = said.start..said.end.min(self.from);
        held.remove_run(said.end.into()..u64::MAX);
        self.earlier = (!said.is_empty()).then(|| Box::new(Earlier { said, held, said_at }));
    }
}

impl Neighbour {
    /// Whether it answers requests, as far as is known.
    pub(super) fn answers(&self, now: Instant) -> bool {
        self.unanswered < MAX_UNANSWERED || now.since(self.given_up) >= RETRIED_AFTER
    }

    /// The interface on which it was heard last.
    pub(super) const fn interface(&self) -> Option<u32> {
        self.interface
    }

    /// Whether it is known to hold a message.
    pub(super) fn holds(&self, member: MemberId, id: MessageId) -> bool {
        id.publisher == member || self.told(id.into()).is_some_and(|told| told.holds(id.sequence))
    }

    /// State of a series there, by its last summary.
    pub(super) fn told(&self, id: SeriesId) -> Option<&Told> {
        self.place(id).ok().map(|place| &self.series[place].1)
    }

    /// Place of a series among those that it has said something of, or the one that it would have.
    fn place(&self, id: SeriesId) -> Result<usize, usize> {
        self.series.binary_search_by_key(&id, |&(id, _)| id)
    }

    /// Whether it hears a node, by its own summary.
    pub(super) fn hears(&self, node: u32) -> bool {
        self.nodes.contains(&node)
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::super::tests::member;
    use super::*;

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn hear(neighbours: &mut Neighbours, second: u64, node: u32) -> bool {
        neighbours.heard(at(second), Sent { member: member(node), transmission: 0 }, None)
    }

    #[test]
    fn a_neighbour_that_was_silent_for_long_is_new_again() {
        let mut neighbours = Neighbours::new(Duration::from_secs(30));
        assert!(hear(&mut neighbours, 0, 1));
        assert!(!hear(&mut neighbours, 29, 1));
        assert_eq!((neighbours.count(at(58)), neighbours.count(at(59))), (1, 0));
        assert!(hear(&mut neighbours, 59, 1));
    }

    #[test]
    fn who_holds_it_and_answers_is_asked() {
        let mut neighbours = Neighbours::new(Duration::from_secs(1000));
        let mut random = Seed::new(1, 0).stream(&["test"], 0);
        (1..=3).for_each(|node| _ = hear(&mut neighbours, 0, node));
        let id = |sequence| MessageId { group: 1, publisher: member(9), sequence };
        let series = vec![Series {
            group: 1,
            publisher: member(9),
            is_wanted: false,
            newest: 4,
            held: std::iter::once(3..5).collect(),
            said: None,
        }];
        let from = Sent { member: member(2), transmission: 1 };
        neighbours.summary(at(0), &Summary { from, neighbours: 0, heard: vec![], is_all: true, series });
        let server = |neighbours: &Neighbours, second, random: &mut Stream| {
            neighbours.server(at(second), &[id(3)], (&[member(7)], None), random)
        };
        assert!((0..50).all(|_| server(&neighbours, 1, &mut random) == Some(member(2))));
        (0..MAX_UNANSWERED).for_each(|_| neighbours.unanswered(at(1), member(2)));
        let others: BTreeSet<_> = (0..50).map(|_| server(&neighbours, 2, &mut random)).collect();
        assert_eq!(others, BTreeSet::from([Some(member(1)), Some(member(3))]), "it does not answer");
        assert_eq!(server(&neighbours, 61, &mut random), Some(member(2)), "it is tried again");
        neighbours.answered(member(2));
        assert_eq!(server(&neighbours, 2, &mut random), Some(member(2)));
        let all = [member(1), member(2), member(3)];
        assert_eq!(neighbours.server(at(2), &[id(3)], (&all, None), &mut random), None);
    }

    #[test]
    fn what_a_neighbour_says_of_earlier_messages_stands_beside_the_latest_until_those_begin_before_it() {
        let series = |held: &[Range<u32>], said: Option<Range<u32>>| Series {
            group: 1,
            publisher: member(9),
            is_wanted: false,
            newest: 99,
            held: held.to_vec(),
            said,
        };
        let lacked = |told: &Told| {
            Runs::of(&told.lacked(0..100).map(|(at, _)| at as u32..at as u32 + 1).collect::<Vec<_>>())
        };
        let mut told = Told::new(at(0), &series(&[52..60, 70..99], Some(50..100)));
        assert_eq!(lacked(&told), Runs::of(&[50..52, 60..70, 99..100]));
        told.update(at(0), &series(&[12..15, 20..48], Some(10..50)));
        assert_eq!(lacked(&told), Runs::of(&[10..12, 15..20, 48..52, 60..70, 99..100]));
        assert!(told.holds(12) && told.holds(98) && !told.holds(9) && !told.holds(50));
        // It has others by now, and more of the latest fit.
        told.update(at(0), &series(&[40..60, 70..100], Some(30..100)));
        assert_eq!(lacked(&told), Runs::of(&[10..12, 15..20, 30..40, 60..70]));
        told.update(at(0), &series(&[0..2, 3..5], Some(0..35)));
        assert_eq!(
            lacked(&told),
            Runs::of(&[2..3, 5..40, 60..70]),
            "of the latest those count that were said as such"
        );
        told.update(at(0), &series(&[0..60, 70..100], None));
        assert_eq!((lacked(&told), told.earlier), (Runs::one(60..70), None));
    }

    #[test]
    fn a_crowd_of_invented_neighbours_is_bounded() {
        let mut neighbours = Neighbours::new(Duration::from_secs(30));
        (0..5000).for_each(|node| _ = hear(&mut neighbours, u64::from(node) / 1000, node));
        assert_eq!(neighbours.all.len(), MAX_NEIGHBOURS);
    }
}
