//! The batches that a node holds, in each direction: a window over the session's batches that moves with what has been
//! delivered.

use hopcast_core::{Duration, Instant};

use super::super::batch::Batch;
use super::super::shape::Shape;
use super::super::wire;

/// The batches from the floor on, at most a window of them.
#[derive(Debug)]
pub(super) struct Store {
    shape: Shape,
    slots: Vec<Slot>,
    /// The first symbol that is still of use to somebody.
    floor: u64,
    /// The first batch that is not done.
    base: u64,
    /// After the last batch that something is known of.
    end: u64,
    /// After the last symbol that is known of.
    top: u64,
}

/// A place for a batch, used again and again.
#[derive(Debug, Default)]
pub(super) struct Slot {
    /// The packets of a source or a relay; a sink has them elsewhere.
    pub(super) batch: Batch,
    pub(super) rank: u8,
    /// Complete, or given up.
    done: bool,
    /// After the last symbol that it holds something of, counted from the session's first.
    top: u64,
    /// Time at which that symbol was made, or heard of here: nothing in the batch is newer.
    newest: Instant,
    /// When the oldest of each of its packets was made, or heard of here, in the order in which they came, and which
    /// symbol it is, if it is one. None at a sink, and where delivery is reliable.
    made: Vec<(Option<u8>, Instant)>,
}

impl Slot {
    /// Time at which the latest of it was made, or heard of here.
    pub(super) const fn newest(&self) -> Instant {
        self.newest
    }

    /// Time at which a packet was made, by its place among those that came.
    pub(super) fn made(&self, place: u8) -> Instant {
        let made = self.made.get(usize::from(place)).or(self.made.last());
        made.map_or(self.newest, |&(_, made)| made)
    }

    /// Time at which a combination that has just come was made. Each is taken to stand for one of the symbols that are
    /// missing, in their order; that symbol is taken to be as old as the nearest one before it.
    fn made_of_combination(&self) -> Option<Instant> {
        let mut missing = !self.batch.symbols();
        let combinations = u32::from(self.batch.rank()) - self.batch.symbols().count_ones();
        (1..combinations).for_each(|_| missing &= missing.saturating_sub(1));
        let stands_for = missing.trailing_zeros();
        let before =
            self.made.iter().filter(|(symbol, _)| symbol.is_some_and(|at| u32::from(at) < stands_for));
        before.max_by_key(|(symbol, _)| *symbol).map(|&(_, made)| made)
    }
}

impl Store {
    /// Batches of this shape, `window` of them at most, beginning with the symbol `floor`.
    pub(super) fn new(shape: Shape, window: usize, floor: u64) -> Self {
        let first = floor / shape.symbols();
        let mut slots = Vec::new();
        slots.resize_with(window, Slot::default);
        Self { shape, slots, floor, base: first, end: first, top: floor }
    }

    pub(super) const fn shape(&self) -> Shape {
        self.shape
    }

    pub(super) fn window(&self) -> u64 {
        self.slots.len() as u64
    }

    /// The first symbol that is still of use.
    pub(super) const fn floor(&self) -> u64 {
        self.floor
    }

    /// Its batch, the first one held.
    pub(super) const fn first(&self) -> u64 {
        self.floor / self.shape.symbols()
    }

    pub(super) const fn base(&self) -> u64 {
        self.base
    }

    pub(super) const fn end(&self) -> u64 {
        self.end
    }

    pub(super) const fn top(&self) -> u64 {
        self.top
    }

    /// After the last symbol that there may be a place for.
    pub(super) fn limit(&self) -> u64 {
        (self.first() + self.window()) * self.shape.symbols()
    }

    pub(super) fn holds(&self, number: u64) -> bool {
        number >= self.first() && number < self.end
    }

    /// A batch that is held.
    pub(super) fn get(&self, number: u64) -> &Slot {
        &self.slots[(number % self.window()) as usize]
    }

    fn slot(&mut self, number: u64) -> &mut Slot {
        let at = number % self.window();
        &mut self.slots[at as usize]
    }

    /// Whether nothing more is needed of a batch.
    pub(super) fn is_done(&self, number: u64) -> bool {
        number < self.first() || self.holds(number) && self.get(number).done
    }

    /// Makes a place for a batch and those before it. `None` if it is over, or beyond the window.
    pub(super) fn admit(&mut self, now: Instant, number: u64) -> Option<&mut Slot> {
        if number < self.first() || number - self.first() >= self.window() {
            return None;
        }
        while self.end <= number {
            let end = self.end;
            let slot = self.slot(end);
            slot.batch.clear();
            (slot.rank, slot.done, slot.top, slot.newest) = (0, false, 0, now);
            slot.made.clear();
            self.end += 1;
        }
        Some(self.slot(number))
    }

    /// Notes that a batch has grown to a rank, and reaches up to a symbol, whose newest data was made at `newest`.
    pub(super) fn grown(&mut self, number: u64, rank: u8, top: u64, newest: Instant) {
        let complete = u64::from(rank) == self.shape.symbols();
        let slot = self.slot(number);
        slot.rank = rank;
        if top > slot.top {
            (slot.top, slot.newest) = (top, newest);
        }
        slot.done |= complete;
        self.top = self.top.max(top);
        self.advance_base();
    }

    /// Notes when the oldest data was made of the packet with which a batch has just grown: of the symbol `index`, or
    /// of a combination; where that is not known, it is reckoned.
    pub(super) fn dated(&mut self, number: u64, index: Option<u8>, oldest: Option<Instant>) {
        let slot = self.slot(number);
        let oldest = oldest.or_else(|| slot.made_of_combination()).unwrap_or(slot.newest);
        slot.made.push((index, oldest));
    }

    /// Nothing before this symbol is of use any more. Whether that is news.
    pub(super) fn advance(&mut self, now: Instant, floor: u64) -> bool {
        if floor <= self.floor {
            return false;
        }
        let (before, first) = (self.first(), floor / self.shape.symbols());
        for number in before..first.min(self.end) {
            let slot = self.slot(number);
            slot.batch.clear();
            slot.rank = 0;
        }
        self.floor = floor;
        self.top = self.top.max(floor);
        self.end = self.end.max(first);
        self.base = self.base.max(first);
        if !floor.is_multiple_of(self.shape.symbols()) {
            self.admit(now, first);
        }
        self.advance_base();
        true
    }

    /// Up to which symbol everything is older than that; the last batch never is, as it may still be filled.
    pub(super) fn expired(&self, now: Instant, after: Duration) -> u64 {
        let mut number = self.first();
        while number + 1 < self.end && self.get(number).newest + after <= now {
            number += 1;
        }
        if number == self.first() { self.floor } else { number * self.shape.symbols() }
    }

    /// Time at which the first batch is too old.
    pub(super) fn expires(&self, after: Duration) -> Option<Instant> {
        let first = self.first();
        (first + 1 < self.end).then(|| self.get(first).newest + after)
    }

    /// Writes the list of a report, of at most `limit` bytes. Whether nothing is left out.
    pub(super) fn list(&self, list: &mut Vec<u8>, limit: usize) -> bool {
        for number in self.base..self.end {
            let slot = self.get(number);
            wire::list_rank(list, (!slot.done).then_some(slot.rank));
            if list.len() == limit {
                return number + 1 == self.end;
            }
        }
        true
    }

    /// Whether the last batch is too old as well.
    pub(super) fn is_over(&self, now: Instant, after: Duration) -> bool {
        let last = self.end.checked_sub(1).filter(|&last| self.holds(last));
        last.is_some_and(|last| self.get(last).newest + after <= now)
    }

    fn advance_base(&mut self) {
        while self.base < self.end && self.get(self.base).done {
            self.base += 1;
        }
    }

    /// Number of batches that it keeps packets of, for tests of what is held.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        self.slots.iter().filter(|slot| slot.batch.rank() > 0).count()
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Buffer;

    use super::*;
    use crate::bats::Config;

    #[test]
    fn a_combination_is_as_old_as_the_symbol_before_the_one_that_it_stands_for() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut store = Store::new(Shape::begun(&Config::default(), u16::MAX), 4, 0);
        let mut take = |now: u64, symbol: Option<u8>| {
            let slot = store.admit(at(now), 0).unwrap();
            match symbol {
                Some(symbol) => slot.batch.push_symbol(symbol, Buffer::copy_from(&[1])),
                None => slot.batch.push_coded([now as u8; 32], Buffer::copy_from(&[1])),
            };
            let rank = slot.batch.rank();
            store.grown(0, rank, u64::from(symbol.unwrap_or(0)) + 1, at(now));
            store.dated(0, symbol, symbol.map(|symbol| at(symbol.into())));
            store.get(0).made(rank - 1)
        };
        // Symbols 0, 1, 4 and 5 come, of which each was made a millisecond after the one before.
        for symbol in [0, 1, 4, 5] {
            assert_eq!(take(100, Some(symbol)), at(symbol.into()));
        }
        assert_eq!(take(101, None), at(1), "it stands for 2");
        assert_eq!(store.get(0).newest(), at(100));
    }
}
