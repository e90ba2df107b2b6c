//! The next actor to wake: a heap with one entry for each actor that has a deadline.

use hopcast_core::Instant;

/// The actors' deadlines, soonest first.
///
/// At one instant the actor with the lower number goes first. The world numbers the script before the links and the
/// links before the nodes, so that a change scheduled for an instant is in force for every frame of that instant,
/// and what links deliver at an instant is there when timers of that instant go off.
///
/// The heap is indexed: an actor whose deadline moves is moved, so that no stale entry is ever left behind and the
/// agenda's size is that of the network, however long it runs.
pub(super) struct Agenda {
    /// A four-ary heap of (deadline, actor).
    heap: Vec<(Instant, u32)>,
    /// Each actor's place in the heap, or `ABSENT`.
    place: Vec<u32>,
}

/// No place.
const ABSENT: u32 = u32::MAX;
/// Children of a node of the heap. Chosen: a heap of four is half as deep as one of two, and its children share a cache
/// line.
const ARITY: usize = 4;

impl Agenda {
    pub(super) fn new(actors: usize) -> Self {
        Self { heap: Vec::with_capacity(actors), place: vec![ABSENT; actors] }
    }

    /// The next deadline and whose it is.
    pub(super) fn next(&self) -> Option<(Instant, usize)> {
        self.heap.first().map(|&(at, actor)| (at, actor as usize))
    }

    /// Gives `actor` a new deadline, or none.
    pub(super) fn set(&mut self, actor: usize, deadline: Option<Instant>) {
        let place = self.place[actor];
        match (deadline, place) {
            (None, ABSENT) => {}
            (None, place) => self.remove(place as usize),
            (Some(at), ABSENT) => {
                self.heap.push((at, actor as u32));
                self.rise(self.heap.len() - 1);
            }
            (Some(at), place) => {
                let place = place as usize;
                let before = core::mem::replace(&mut self.heap[place].0, at);
                match at.cmp(&before) {
                    core::cmp::Ordering::Less => self.rise(place),
                    core::cmp::Ordering::Greater => self.sink(place),
                    core::cmp::Ordering::Equal => {}
                }
            }
        }
    }

    fn remove(&mut self, place: usize) {
        let (_, actor) = self.heap.swap_remove(place);
        self.place[actor as usize] = ABSENT;
        if place < self.heap.len() {
            // Whichever of the two does not apply leaves the entry that now stands at `place` where it is.
            self.rise(place);
            self.sink(place);
        }
    }

    fn rise(&mut self, mut place: usize) {
        let entry = self.heap[place];
        while place > 0 {
            let parent = (place - 1) / ARITY;
            if self.heap[parent] <= entry {
                break;
            }
            self.heap[place] = self.heap[parent];
            self.place[self.heap[place].1 as usize] = place as u32;
            place = parent;
        }
        self.heap[place] = entry;
        self.place[entry.1 as usize] = place as u32;
    }

    fn sink(&mut self, mut place: usize) {
        let entry = self.heap[place];
        loop {
            let first = place * ARITY + 1;
            let end = (first + ARITY).min(self.heap.len());
            let Some(child) = (first..end).min_by_key(|&child| self.heap[child]) else { break };
            if entry <= self.heap[child] {
                break;
            }
            self.heap[place] = self.heap[child];
            self.place[self.heap[place].1 as usize] = place as u32;
            place = child;
        }
        self.heap[place] = entry;
        self.place[entry.1 as usize] = place as u32;
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
