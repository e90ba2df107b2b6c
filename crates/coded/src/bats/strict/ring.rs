//! The batches that a node has at hand: those that packets are coming of, and those that were, for a while.

use std::collections::VecDeque;

use hopcast_core::{Duration, Instant};

use super::super::batch::Batch;
use super::super::span::MAX_SYMBOLS;
use super::super::wire::BatchHeader;

/// Batches in the order in which their first packets came.
#[derive(Debug)]
pub(super) struct Ring {
    slots: VecDeque<Slot>,
    /// The serial number of the first of them.
    first: u64,
    /// All before this one are over: enough have come since that no packet of theirs is expected.
    closed: u64,
    /// The serial numbers of the batches by block and number, in that order: they mostly begin at the end, and are over
    /// at the front.
    places: VecDeque<((u64, u16), u64)>,
    max_slots: usize,
    spare: Vec<Batch>,
    /// The greatest block that was heard of.
    block: u64,
    /// Number of batches that were over with each rank; fades.
    ranks: [f64; MAX_SYMBOLS + 1],
}

/// A batch.
#[derive(Debug)]
pub(super) struct Slot {
    pub(super) block: u64,
    pub(super) header: BatchHeader,
    /// Number of interleaved batches, as a power of two.
    pub(super) depth: u8,
    pub(super) batch: Batch,
    /// Time at which the newest of it was made, or came, if that is all that is known.
    newest: Instant,
    /// Nothing has come for a while.
    settled: bool,
    closed: bool,
}

/// Batches after which what is known of ranks has faded to 1/e: blockwise adaptive recoding has blocks of this order.
/// Chosen; fewer are noisy, more follow a change late.
const MEMORY: f64 = 256.0;
/// Batches whose memory is kept to be used again: those of two blocks as they are by default, which are over at once.
/// Chosen: fewer, and each block allocates; more is memory for nothing, of some 4 kB a batch.
const SPARE: usize = 64;

impl Ring {
    /// A ring of at most `max_slots` batches, in a session that is at `block`.
    pub(super) fn new(max_slots: usize, block: u64) -> Self {
        Self {
            slots: VecDeque::new(),
            first: 0,
            closed: 0,
            places: VecDeque::new(),
            max_slots: max_slots.max(2),
            spare: Vec::new(),
            block,
            ranks: [0.0; MAX_SYMBOLS + 1],
        }
    }

    /// The serial number of the first batch at hand, and that after the last.
    pub(super) const fn first(&self) -> u64 {
        self.first
    }

    pub(super) fn end(&self) -> u64 {
        self.first + self.slots.len() as u64
    }

    /// The greatest block so far.
    pub(super) const fn block(&self) -> u64 {
        self.block
    }

    pub(super) fn get(&self, serial: u64) -> Option<&Slot> {
        self.slots.get(serial.checked_sub(self.first)? as usize)
    }

    fn get_mut(&mut self, serial: u64) -> Option<&mut Slot> {
        self.slots.get_mut(serial.checked_sub(self.first)? as usize)
    }

    /// Number of batches that were over with each rank, from 0 on.
    pub(super) const fn ranks(&self) -> &[f64; MAX_SYMBOLS + 1] {
        &self.ranks
    }

    /// The mean rank of batches that were over; `None` before any was.
    pub(super) fn mean(&self) -> Option<f64> {
        let sum: f64 = self.ranks.iter().sum();
        let ranks = self.ranks.iter().enumerate().map(|(rank, share)| rank as f64 * share);
        (sum > 0.0).then(|| ranks.sum::<f64>() / sum)
    }

    /// Whether all of a batch has come that is expected.
    pub(super) fn is_over(&self, serial: u64) -> bool {
        serial < self.closed || self.get(serial).is_some_and(|slot| slot.closed || slot.settled)
    }

    /// Whether there is a batch that may yet settle.
    pub(super) fn is_open(&self) -> bool {
        (self.closed.max(self.first)..self.end()).any(|serial| !self.is_over(serial))
    }

    /// The place of a batch, a new one if it has none. The batches are over that have serial numbers from the one
    /// before the call up to the other.
    pub(super) fn admit(
        &mut self,
        block: u64,
        header: BatchHeader,
        depth: u8,
    ) -> (u64, core::ops::Range<u64>) {
        let key = (block, header.id);
        if let Ok(at) = self.place(key) {
            return (self.places[at].1, 0..0);
        }
        if self.slots.len() >= self.max_slots {
            self.drop_first();
        }
        let batch = self.spare.pop().unwrap_or_default();
        self.slots.push_back(Slot {
            block,
            header,
            depth,
            batch,
            newest: Instant::ZERO,
            settled: false,
            closed: false,
        });
        let serial = self.end() - 1;
        if let Err(at) = self.place(key) {
            self.places.insert(at, (key, serial));
        }
        self.block = self.block.max(block);
        let before = self.closed.max(self.first);
        self.closed = before.max((serial + 1).saturating_sub(1 << depth));
        for over in before..self.closed {
            let rank = self.get(over).map_or(0, |slot| slot.batch.rank());
            self.count(rank);
        }
        (serial, before..self.closed)
    }

    /// Place of a batch's serial number, or the place that it would have.
    fn place(&self, key: (u64, u16)) -> Result<usize, usize> {
        self.places.binary_search_by_key(&key, |&(key, _)| key)
    }

    /// A batch that will not grow any more.
    pub(super) fn close(&mut self, serial: u64) {
        if let Some(slot) = self.get_mut(serial) {
            slot.closed = true;
        }
    }

    /// Takes a packet for a batch with what `push` does. Whether it was innovative.
    pub(super) fn grow(&mut self, serial: u64, push: impl FnOnce(&mut Batch) -> bool) -> bool {
        let Some(slot) = self.get_mut(serial) else { return false };
        let innovative = push(&mut slot.batch);
        slot.settled &= !innovative;
        innovative
    }

    /// Notes when something that a batch has grown by was made.
    pub(super) fn made(&mut self, serial: u64, made: Instant) {
        if let Some(slot) = self.get_mut(serial) {
            slot.newest = slot.newest.max(made);
        }
    }

    /// Time at which all there is of the first block at hand is older than `after`: no application waits for it any
    /// more.
    pub(super) fn expires(&self, after: Duration) -> Option<Instant> {
        // The last block delays nothing that could be in time, and what is sent of it finds out when a link returns.
        let block = self.slots.front().map(|slot| slot.block).filter(|&block| block < self.block)?;
        // The batches of a block repair each other, so that none is too old before all are.
        let newest = self.slots.iter().take_while(|slot| slot.block == block).map(|slot| slot.newest).max();
        newest.map(|newest| newest + after)
    }

    /// Nothing has come for a while: the batches that are thereby over, and perhaps some others.
    pub(super) fn settle(&mut self) -> core::ops::Range<u64> {
        let begin = self.closed.max(self.first);
        for serial in begin..self.end() {
            if let Some(slot) = self.get_mut(serial) {
                slot.settled = true;
            }
        }
        begin..self.end()
    }

    /// The session is at least at `block`: batches of earlier ones are of no use.
    pub(super) fn drop_before(&mut self, block: u64) {
        self.block = self.block.max(block);
        while self.slots.front().is_some_and(|slot| slot.block < block) {
            self.drop_first();
        }
    }

    /// Drops the batches of the first block at hand.
    pub(super) fn drop_block(&mut self) {
        let Some(block) = self.slots.front().map(|slot| slot.block) else { return };
        while self.slots.front().is_some_and(|slot| slot.block == block) {
            self.drop_first();
        }
    }

    fn drop_first(&mut self) {
        let Some(slot) = self.slots.pop_front() else { return };
        if let Ok(at) = self.place((slot.block, slot.header.id)) {
            self.places.remove(at);
        }
        self.first += 1;
        if self.spare.len() < SPARE {
            let mut batch = slot.batch;
            batch.clear();
            self.spare.push(batch);
        }
    }

    fn count(&mut self, rank: u8) {
        let sum: f64 = self.ranks.iter().sum();
        if sum > MEMORY {
            self.ranks.iter_mut().for_each(|share| *share *= 1.0 - 1.0 / MEMORY);
        }
        self.ranks[usize::from(rank).min(MAX_SYMBOLS)] += 1.0;
    }

    /// Number of batches at hand.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bats::BatchSize;

    #[test]
    fn the_ranks_are_those_of_the_last_256_batches() {
        let mut ring = Ring::new(64, 0);
        assert_eq!(ring.mean(), None);
        (0..2000).for_each(|_| ring.count(16));
        assert!(ring.mean().is_some_and(|mean| (mean - 16.0).abs() < 1e-9));
        (0..256).for_each(|_| ring.count(0));
        // All but 1/e is new.
        let mean = ring.mean().unwrap();
        assert!((mean - 16.0 / core::f64::consts::E).abs() < 0.1, "{mean}");
    }

    #[test]
    fn the_memory_of_64_batches_is_kept_to_be_used_again() {
        let mut ring = Ring::new(128, 0);
        for id in 0..80 {
            ring.admit(0, BatchHeader { block: 256, batch: BatchSize::M16, id }, 0);
        }
        ring.drop_before(1);
        assert_eq!((ring.len(), ring.first(), ring.end(), ring.spare.len()), (0, 80, 80, 64));
        ring.admit(1, BatchHeader { block: 256, batch: BatchSize::M16, id: 0 }, 0);
        assert_eq!(ring.spare.len(), 63);
    }
}
