//! Random joins, leaves, crashes, partitions, also of one direction, messages and streams: what must hold whatever
//! happens.

use std::collections::BTreeMap;

use hopcast_core::Stream;

use super::random_streams::Streams;
use super::views::quick;
use super::*;
use crate::nakack::Ordering;
use crate::nakack::wire::ViewId;

/// Places for members; one that has gone makes room for another.
const PLACES: usize = 7;
/// Operations between two rests, in which all must agree.
const BETWEEN_RESTS: usize = 250;

struct World {
    net: Net,
    random: Stream,
    stack: Stack,
    /// The run of the member in each place, and whether it is alive.
    places: Vec<(u16, bool)>,
    /// Messages that each run has sent.
    sent: BTreeMap<MemberId, u32>,
    streams: Streams,
    /// Events of those that have gone.
    past: Vec<(MemberId, Vec<Event>)>,
    ordering: Ordering,
    operations: usize,
}

impl World {
    fn new(seed: u64, ordering: Ordering) -> Self {
        let mut net = Net::new(seed);
        let stack = Stack { order: ordering, fragment: 300, credits: 20_000, buffer: 60_000, ..quick() };
        let random = net.seed.stream(&["operations"], 0);
        for place in 0..PLACES {
            let member = add(&mut net, Start::Discovered, &stack, lossy(0.05));
            assert_eq!(member, place);
        }
        let mut world = Self {
            net,
            random,
            stack,
            places: vec![(0, false); PLACES],
            sent: BTreeMap::new(),
            streams: Streams::default(),
            past: Vec::new(),
            ordering,
            operations: 0,
        };
        for place in 0..PLACES {
            world.begin(place);
        }
        world
    }

    fn id(&self, place: usize) -> MemberId {
        MemberId { run: self.places[place].0, ..id(place) }
    }

    fn alive(&self) -> Vec<usize> {
        (0..PLACES).filter(|&place| self.places[place].1).collect()
    }

    /// A new member begins in a place.
    fn begin(&mut self, place: usize) {
        self.places[place] = (self.places[place].0 + 1, true);
        let config = Config {
            member: self.id(place),
            hears_itself: true,
            ..config(place, Start::Discovered, &self.stack)
        };
        let random = self.random.fork();
        // Numbers that wrap in the midst of a view.
        let mut session = Member::beginning(config, random, (1 << 32) - 5);
        session.wake(self.net.now);
        self.net.members[place].session = session;
        self.net.members[place].is_cut = false;
    }

    /// The member in a place is gone.
    fn end(&mut self, place: usize) {
        let log = std::mem::take(&mut self.net.members[place].session.log);
        self.streams.end(place);
        self.past.push((self.id(place), log));
        self.places[place].1 = false;
        self.net.members[place].is_cut = true;
    }

    fn operate(&mut self) {
        self.operations += 1;
        let place = self.random.below(PLACES as u64) as usize;
        let is_alive = self.places[place].1;
        match self.random.below(100) {
            0..3 if !is_alive => self.begin(place),
            3 if is_alive && self.alive().len() > 2 => self.end(place),
            4 if is_alive => {
                let now = self.net.now;
                self.net.members[place].session.leave(now);
            }
            5 => {
                for member in &mut self.net.members {
                    member.part = self.random.below(2) as u8;
                }
            }
            6 | 7 => {
                self.net.members.iter_mut().for_each(|member| member.part = 0);
                self.net.unheard.clear();
            }
            8 => self.net.members[place].link.loss = 0.4 * self.random.uniform(),
            9..45 if is_alive => {
                let sender = self.id(place);
                let number = self.sent.entry(sender).or_default();
                *number += 1;
                let max = if self.random.chance(0.1) { 2000 } else { 100 };
                let len = self.random.below(max) as usize;
                let bytes = [&number.to_be_bytes()[..], &vec![7; len]].concat();
                give_datagram(&mut self.net, place, &bytes);
            }
            45..58 if is_alive => {
                let max = if self.random.chance(0.1) { 3000 } else { 300 };
                let len = self.random.below(max) as usize;
                self.streams.write(&mut self.net, place, len);
            }
            58..60 if is_alive => self.streams.finish(&mut self.net, place),
            // One way only.
            60 => _ = self.net.unheard.insert((place, self.random.below(PLACES as u64) as usize)),
            61..98 => {
                let time = Duration::from_micros(self.random.below(40_000));
                run_for(&mut self.net, time);
            }
            98.. => {
                let time = Duration::from_millis(self.random.below(6000));
                run_for(&mut self.net, time);
            }
            _ => {}
        }
        for place in 0..PLACES {
            self.look(place);
        }
        self.check_memory();
        self.check_stability();
    }

    /// Takes what a member's application was handed, if it is still there.
    fn look(&mut self, place: usize) {
        if self.places[place].1 {
            self.streams.look(&mut self.net, place);
            if self.net.members[place].session.has_left() {
                self.end(place);
            }
        } else {
            self.net.members[place].up.clear();
        }
    }

    /// Nobody holds more than flow control and stability let it, whatever the others do.
    fn check_memory(&self) {
        for place in self.alive() {
            let held = self.net.members[place].session.held();
            let bound = PLACES as u64 * 2 * (self.stack.buffer + self.stack.credits);
            assert!(held <= bound, "member {place} holds {held} bytes");
        }
    }

    /// All in a view have what one of them has forgotten.
    fn check_stability(&self) {
        let alive = self.alive();
        for (&one, &other) in alive.iter().flat_map(|one| alive.iter().map(move |other| (one, other))) {
            let [one, other] = [one, other].map(|place| self.net.members[place].session.epoch());
            if one.view() == other.view() {
                for rank in 0..one.view().members.len() as u16 {
                    assert!(one.numbers(rank).0 <= other.numbers(rank).1, "of {rank} in {:?}", one.view().id);
                }
            }
        }
    }

    /// All is quiet, and those that are there find together: then what they saw is compared.
    fn rest(&mut self) {
        self.net.unheard.clear();
        for member in &mut self.net.members {
            member.part = 0;
            member.link.loss = 0.05;
        }
        if self.alive().is_empty() {
            self.begin(0);
        }
        let mut agreed = false;
        for _ in 0..60 {
            run_for(&mut self.net, Duration::from_secs(2));
            for place in 0..PLACES {
                self.look(place);
            }
            let alive = self.alive();
            if alive.is_empty() {
                break;
            }
            let ids: Vec<_> = alive.iter().map(|&place| self.id(place)).collect();
            let first = self.net.members[alive[0]].session.view();
            agreed = alive.iter().all(|&place| {
                let session = &self.net.members[place].session;
                session.view() == first && session.is_stable() && session.held() == 0
            }) && first.members.len() == ids.len()
                && ids.iter().all(|&id| first.has(id));
            if agreed {
                break;
            }
        }
        let alive = self.alive();
        let state = |&place: &usize| {
            let session = &self.net.members[place].session;
            let members = session.view().members.iter().map(|&(id, _)| (id.node, id.run));
            format!(
                "{:?} {:?}: {:?}\n    {}",
                self.id(place),
                session.view().id,
                members.collect::<Vec<_>>(),
                session.state()
            )
        };
        let states: Vec<_> = alive.iter().map(state).collect();
        assert!(agreed || alive.is_empty(), "after {} operations:\n{}", self.operations, states.join("\n"));
        self.compare();
        self.streams.compare(&alive);
    }

    /// Whether a member is still there.
    fn is_in(&self, member: MemberId) -> bool {
        self.alive().into_iter().any(|place| self.id(place) == member)
    }

    fn compare(&mut self) {
        let mut logs = std::mem::take(&mut self.past);
        let alive = self.alive();
        for &place in &alive {
            logs.push((self.id(place), self.net.members[place].session.log.clone()));
        }
        let segments: Vec<_> = logs
            .iter()
            .flat_map(|(member, log)| segments(log).into_iter().map(|found| (*member, found)))
            .collect();
        let mut members: BTreeMap<ViewId, &View> = BTreeMap::new();
        let mut together: BTreeMap<(ViewId, Option<ViewId>), (MemberId, &Segment<'_>)> = BTreeMap::new();
        for (member, segment) in &segments {
            let id = segment.view.id;
            assert_eq!(*members.entry(id).or_insert(segment.view), segment.view, "two views of one name");
            assert!(segment.view.has(*member), "a view without its member");
            assert!(segment.next.is_none_or(|next| next.id.number > id.number), "views go on");
            // Of one that died in this view it is not known how far it would have come.
            let is_last = segment.next.is_none() && !self.is_in(*member);
            if segment.has_left || is_last {
                continue;
            }
            let &mut (first, same) =
                together.entry((id, segment.next.map(|next| next.id))).or_insert((*member, segment));
            assert_eq!(same.by_sender(), segment.by_sender(), "{first:?} and {member:?} in {id:?}");
            if self.ordering == Ordering::Total {
                assert_eq!(same.units, segment.units, "{first:?} and {member:?} in {id:?}");
            }
        }
        // A sender that takes a member along to its next view has brought it everything.
        for (sender, own) in &segments {
            for (member, theirs) in segments.iter().filter(|(_, theirs)| theirs.view == own.view) {
                let goes_along = own.next.is_some_and(|next| next.has(*member))
                    && theirs.next.is_some_and(|next| next.has(*sender));
                assert!(
                    !goes_along || own.of(*sender) == theirs.of(*sender),
                    "{sender:?} to {member:?} in {:?}",
                    own.view.id
                );
            }
        }
        for (member, log) in &logs {
            let mut last: BTreeMap<MemberId, u32> = BTreeMap::new();
            for event in log {
                if let Event::Unit(from, bytes) = event {
                    let number = number(bytes);
                    let before = last.insert(*from, number);
                    assert!(
                        before.is_none_or(|before| before < number),
                        "{member:?} of {from:?}: {number} again"
                    );
                }
            }
        }
        // What was seen of the last view is alike, and needs no more comparing.
        for place in alive {
            let log = &mut self.net.members[place].session.log;
            let view = log.iter().rposition(|event| matches!(event, Event::View(_)));
            let view = view.map(|at| log[at].clone());
            log.clear();
            log.extend(view);
        }
    }
}

/// Events of one view that a member saw.
struct Segment<'a> {
    view: &'a View,
    units: Vec<(MemberId, Seen<'a>)>,
    /// The view after it, and whether the member has left instead.
    next: Option<&'a View>,
    has_left: bool,
}

impl<'a> Segment<'a> {
    fn of(&self, sender: MemberId) -> Vec<Seen<'a>> {
        self.units.iter().filter(|(from, _)| *from == sender).map(|&(_, unit)| unit).collect()
    }

    fn by_sender(&self) -> BTreeMap<MemberId, Vec<Seen<'a>>> {
        self.units.iter().map(|&(from, _)| (from, self.of(from))).collect()
    }
}

/// A unit that a member saw: its number, or a piece of a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Seen<'a> {
    Unit(u32),
    Piece(&'a Piece),
}

fn number(bytes: &[u8]) -> u32 {
    bytes.first_chunk().map_or(0, |bytes| u32::from_be_bytes(*bytes))
}

fn segments(log: &[Event]) -> Vec<Segment<'_>> {
    let mut found: Vec<Segment<'_>> = Vec::new();
    for event in log {
        let (from, unit) = match event {
            Event::View(view) => {
                if let Some(last) = found.last_mut() {
                    last.next = view.as_ref();
                    last.has_left = view.is_none();
                }
                if let Some(view) = view {
                    found.push(Segment { view, units: Vec::new(), next: None, has_left: false });
                }
                continue;
            }
            Event::Unit(from, bytes) => (*from, Seen::Unit(number(bytes))),
            Event::Piece(from, piece) => (*from, Seen::Piece(piece)),
        };
        if let Some(last) = found.last_mut() {
            last.units.push((from, unit));
        }
    }
    found
}

fn explore(seed: u64, ordering: Ordering, operations: usize) {
    let mut world = World::new(seed, ordering);
    for operation in 1..=operations {
        world.operate();
        if operation % BETWEEN_RESTS == 0 {
            world.rest();
        }
    }
    let (opened, read) = world.streams.counted();
    assert!(
        opened > operations as u64 / 200 && read > 20 * operations as u64,
        "{opened} streams, {read} bytes"
    );
}

#[test]
fn views_agree_and_messages_keep_their_senders_order_whatever_happens() {
    for seed in 0..OPERATIONS / 2000 {
        explore(seed, Ordering::Fifo, 2000);
    }
}

#[test]
fn views_agree_and_all_have_one_order_whatever_happens() {
    for seed in 0..OPERATIONS / 2000 {
        explore(1000 + seed, Ordering::Total, 2000);
    }
}

/// Operations of each of the tests.
const OPERATIONS: u64 = 50_000;
