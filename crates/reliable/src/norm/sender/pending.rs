//! Blocks of which something is to be sent again, and the order in which they have their turns.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_core::{Duration, Instant};

/// An object and a block of it.
pub(super) type Place = (u64, u32);

/// Blocks to be repaired. Each operation costs the logarithm of their number.
#[derive(Clone, Debug, Default)]
pub(super) struct Pending {
    queues: BTreeMap<Place, Queue>,
    /// Blocks whose turn may come, in their order.
    ready: BTreeSet<Place>,
    /// Blocks that wait for other requests of the round, by the time of the first one.
    waiting: BTreeSet<(Instant, Place)>,
    /// Blocks that were repaired more often than anybody with a usable path needs.
    spent: BTreeSet<Place>,
    /// The block that is being repaired, and how many symbols of it are left of its turn.
    turn: Option<(Place, u16)>,
}

/// The place at which a block waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Queue {
    Ready,
    Waiting(Instant),
    Spent,
}

impl Pending {
    /// Adds a block that was first asked for at a time; one that is `spent` comes after all else.
    pub(super) fn insert(&mut self, place: Place, asked: Instant, spent: bool) {
        if self.queues.contains_key(&place) {
            return;
        }
        let queue = if spent { Queue::Spent } else { Queue::Waiting(asked) };
        self.queues.insert(place, queue);
        match queue {
            Queue::Spent => self.spent.insert(place),
            _ => self.waiting.insert((asked, place)),
        };
    }

    /// Removes a block. False if it was none of them.
    pub(super) fn remove(&mut self, place: Place) -> bool {
        let Some(queue) = self.queues.remove(&place) else { return false };
        match queue {
            Queue::Ready => self.ready.remove(&place),
            Queue::Waiting(asked) => self.waiting.remove(&(asked, place)),
            Queue::Spent => self.spent.remove(&place),
        }
    }

    /// Removes the blocks of an object. False if there were none.
    pub(super) fn remove_object(&mut self, object: u64) -> bool {
        let mut any = false;
        while let Some((&place, _)) = self.queues.range((object, 0)..=(object, u32::MAX)).next() {
            any |= self.remove(place);
        }
        any
    }

    pub(super) fn contains(&self, place: Place) -> bool {
        self.queues.contains_key(&place)
    }

    /// Whether something of an object is to be repaired.
    pub(super) fn has_object(&self, object: u64) -> bool {
        self.queues.range((object, 0)..=(object, u32::MAX)).next().is_some()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queues.is_empty()
    }

    /// All of them, in their order.
    pub(super) fn places(&self) -> impl Iterator<Item = Place> {
        self.queues.keys().copied()
    }

    /// The block to repair now: each has its turn, of as many symbols as `symbols` says when it begins. With `wait`
    /// there are new data to send meanwhile, and requests of one round are waited for that long.
    pub(super) fn next(
        &mut self,
        now: Instant,
        wait: Option<Duration>,
        symbols: impl Fn(Place) -> u16,
    ) -> Option<Place> {
        if let Some((place, left @ 1..)) = self.turn
            && self.contains(place)
        {
            self.turn = Some((place, left - 1));
            return Some(place);
        }
        while let Some(&(asked, place)) = self.waiting.first()
            && asked + wait.unwrap_or_default() <= now
        {
            self.waiting.pop_first();
            self.queues.insert(place, Queue::Ready);
            self.ready.insert(place);
        }
        let after = self.turn.map_or((0, 0), |((object, block), _)| (object, block.saturating_add(1)));
        let in_turn = |of: &BTreeSet<Place>| of.range(after..).next().or_else(|| of.first()).copied();
        let spent = if wait.is_none() { in_turn(&self.spent) } else { None };
        let next = in_turn(&self.ready).or(spent)?;
        self.turn = Some((next, symbols(next).saturating_sub(1)));
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WAIT: Option<Duration> = Some(Duration::from_millis(10));

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    #[test]
    fn each_block_has_its_turn_and_requests_of_a_round_are_waited_for() {
        let mut pending = Pending::default();
        pending.insert((1, 4), at(0), false);
        pending.insert((1, 2), at(5), false);
        assert_eq!(pending.next(at(9), WAIT, |_| 2), None);
        assert_eq!(pending.next(at(10), WAIT, |_| 2), Some((1, 4)));
        assert_eq!(pending.next(at(20), WAIT, |_| 2), Some((1, 4)));
        assert_eq!(pending.next(at(20), WAIT, |_| 1), Some((1, 2)));
        assert_eq!(pending.next(at(20), WAIT, |_| 1), Some((1, 4)));
        assert!(pending.remove((1, 4)) && !pending.remove((1, 4)));
        assert_eq!(pending.next(at(20), None, |_| 1), Some((1, 2)));
    }

    #[test]
    fn what_was_repaired_too_often_comes_when_there_is_nothing_else() {
        let mut pending = Pending::default();
        pending.insert((1, 1), at(0), true);
        pending.insert((1, 2), at(0), false);
        assert_eq!(pending.next(at(20), WAIT, |_| 1), Some((1, 2)));
        pending.remove((1, 2));
        assert_eq!(pending.next(at(20), WAIT, |_| 1), None);
        assert_eq!(pending.next(at(20), None, |_| 1), Some((1, 1)));
        assert!(pending.has_object(1) && pending.remove_object(1) && pending.is_empty());
    }
}
