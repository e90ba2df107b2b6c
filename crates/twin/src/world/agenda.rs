//! The next actor to wake: a heap with one entry for each actor that has a deadline.

use hopcast_core::Instant;

/// The actors' deadlines, soonest first.
///
/// At one instant the actor with the lower number goes first. The world numbers the script before the links and the
/// links before the nodes, so that a change scheduled for an instant is in force for every frame of that instant,
/// and what links deliver at an instant is there when timers of that instant go off.
///
/// The heap is indexed: when an actor's deadline changes its entry is moved, so that there are no stale entries and the
/// agenda's size is bounded by that of the network, however long a run is.
pub(super) struct Agenda {
    /// A four-ary heap.
    heap: Vec<Entry>,
    /// Each actor's index in the heap, or `ABSENT`.
    place: Vec<u32>,
}

/// A deadline in nanoseconds in the upper bits, and its actor's number in the lower [`ACTOR_BITS`], as a single number
/// to compare.
type Entry = u128;

/// Number of bits of an actor's number.
const ACTOR_BITS: u32 = 32;
/// Index of an actor that is not in the heap.
const ABSENT: u32 = u32::MAX;
/// Children of a node of the heap. Chosen: a heap of four is half as deep as one of two, and its children share a cache
/// line.
const ARITY: usize = 4;

fn entry(at: Instant, actor: usize) -> Entry {
    Entry::from(at.as_nanos()) << ACTOR_BITS | actor as Entry
}

fn at(entry: Entry) -> Instant {
    Instant::from_nanos((entry >> ACTOR_BITS) as u64)
}

fn actor(entry: Entry) -> usize {
    entry as u32 as usize
}

/// The earliest of some entries, and its index among them.
#[inline]
fn soonest(entries: &[Entry]) -> Option<(usize, Entry)> {
    let (&first, rest) = entries.split_first()?;
    let mut soonest = (0, first);
    for (place, &entry) in (1..).zip(rest) {
        if entry < soonest.1 {
            soonest = (place, entry);
        }
    }
    Some(soonest)
}

impl Agenda {
    pub(super) fn new(actors: usize) -> Self {
        Self { heap: Vec::with_capacity(actors), place: vec![ABSENT; actors] }
    }

    /// The next deadline and its actor.
    pub(super) fn next(&self) -> Option<(Instant, usize)> {
        self.heap.first().map(|&first| (at(first), actor(first)))
    }

    /// Sets or clears the deadline of `actor`.
    pub(super) fn set(&mut self, actor: usize, deadline: Option<Instant>) {
        let place = self.place[actor];
        match (deadline, place) {
            (None, ABSENT) => {}
            (None, place) => self.remove(place as usize),
            (Some(at), ABSENT) => {
                let entry = entry(at, actor);
                self.heap.push(entry);
                self.rise(self.heap.len() - 1, entry);
            }
            (Some(at), place) => {
                let (place, entry) = (place as usize, entry(at, actor));
                match entry.cmp(&self.heap[place]) {
                    core::cmp::Ordering::Less => self.rise(place, entry),
                    core::cmp::Ordering::Greater => self.sink(place, entry),
                    core::cmp::Ordering::Equal => {}
                }
            }
        }
    }

    fn remove(&mut self, place: usize) {
        let removed = self.heap.swap_remove(place);
        self.place[actor(removed)] = ABSENT;
        if let Some(&moved) = self.heap.get(place) {
            if moved < removed {
                self.rise(place, moved);
            } else {
                self.sink(place, moved);
            }
        }
    }

    /// Puts `entry` at `place`, or above it as far as the order of the heap requires.
    fn rise(&mut self, mut place: usize, entry: Entry) {
        while place > 0 {
            let parent = (place - 1) / ARITY;
            let above = self.heap[parent];
            if above <= entry {
                break;
            }
            self.put(place, above);
            place = parent;
        }
        self.put(place, entry);
    }

    /// Puts `entry` at `place`, or below it as far as the order of the heap requires.
    fn sink(&mut self, mut place: usize, entry: Entry) {
        loop {
            let first = place * ARITY + 1;
            let children = self.heap.get(first..).unwrap_or_default();
            // All nodes except one have no children or the full number, which the compiler can unroll.
            let soonest = match children.first_chunk::<ARITY>() {
                Some(all) => soonest(all),
                None => soonest(children),
            };
            let Some((child, soonest)) = soonest else { break };
            if entry <= soonest {
                break;
            }
            self.put(place, soonest);
            place = first + child;
        }
        self.put(place, entry);
    }

    fn put(&mut self, place: usize, entry: Entry) {
        self.heap[place] = entry;
        self.place[actor(entry)] = place as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    proptest! {
        #[test]
        fn the_agenda_is_a_sorted_map_of_deadlines(
            moves in prop::collection::vec((0usize..20, prop::option::of(0u64..50)), 1..300),
        ) {
            let mut agenda = Agenda::new(20);
            let mut model = BTreeMap::new();
            for (actor, at) in moves {
                let at = at.map(Instant::from_nanos);
                agenda.set(actor, at);
                match at {
                    Some(at) => model.insert(actor, at),
                    None => model.remove(&actor),
                };
                let expected = model.iter().map(|(&actor, &at)| (at, actor)).min();
                prop_assert_eq!(agenda.next(), expected);
            }
            while let Some((at, actor)) = agenda.next() {
                prop_assert_eq!(model.remove(&actor), Some(at));
                agenda.set(actor, None);
            }
            prop_assert!(model.is_empty());
        }
    }
}
