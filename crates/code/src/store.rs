//! A fixed number of slots for symbols in one allocation, each at a multiple of a cache line.

use core::ops::Range;

use crate::field::Symbols;

const LINE: usize = 64;

/// Slots of `len` bytes. Vectors that straddle no cache line are faster by a third (`codes-speed.md`: 77 against 55).
#[derive(Debug)]
pub(crate) struct Store {
    bytes: Vec<u8>,
    len: usize,
    /// Where each slot begins.
    at: Vec<usize>,
}

impl Store {
    /// `slots` slots, all zero. The pages of those that are never used cost no memory.
    pub(crate) fn new(slots: usize, len: usize) -> Self {
        let stride = len.next_multiple_of(LINE);
        let bytes = vec![0; slots * stride + LINE];
        let first = bytes.as_ptr().align_offset(LINE).min(LINE);
        Self { bytes, len, at: (0..slots).map(|slot| first + slot * stride).collect() }
    }

    pub(crate) fn slots(&self) -> usize {
        self.at.len()
    }

    pub(crate) fn slot(&self, slot: usize) -> &[u8] {
        &self.bytes[self.at[slot]..][..self.len]
    }

    pub(crate) fn slot_mut(&mut self, slot: usize) -> &mut [u8] {
        &mut self.bytes[self.at[slot]..][..self.len]
    }

    /// Where a slot begins, for [`symbols_at`](Self::symbols_at).
    pub(crate) fn offset(&self, slot: usize) -> usize {
        self.at[slot]
    }

    pub(crate) fn symbols(&self, slots: Range<usize>) -> Symbols<'_, &[u8]> {
        Symbols::new(&self.bytes, &self.at[slots], self.len)
    }

    pub(crate) fn symbols_mut(&mut self, slots: Range<usize>) -> Symbols<'_, &mut [u8]> {
        Symbols::new(&mut self.bytes, &self.at[slots], self.len)
    }

    /// Slots by their offsets, in any order.
    pub(crate) fn symbols_at<'a>(&'a mut self, offsets: &'a [usize]) -> Symbols<'a, &'a mut [u8]> {
        Symbols::new(&mut self.bytes, offsets, self.len)
    }
}
