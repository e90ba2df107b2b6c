//! Where the bytes of an object are: RFC 5052, section 9.1.

use super::Unsupported;
use crate::norm::wire::{Fec, Fti};

/// Division of an object of known size into blocks and segments.
///
/// The first blocks may have one source symbol more than the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    size: u64,
    segment: u16,
    count: u32,
    /// Number of source symbols of a small block; a large one has one more.
    small: u16,
    /// Number of large blocks, which are the first.
    large: u32,
}

impl Blocks {
    /// Division of `size` bytes into segments of `segment` bytes, and blocks of at most `max_source` of them, numbered
    /// as `fec` has it. Of nothing there are no blocks.
    ///
    /// # Errors
    /// [`Unsupported::Blocks`] if there are more blocks than numbers.
    ///
    /// # Panics
    /// If `segment` or `max_source` is 0, which no [`Fti`] that was parsed has.
    pub fn new(size: u64, segment: u16, max_source: u16, fec: Fec) -> Result<Self, Unsupported> {
        let segments = size.div_ceil(segment as u64);
        let blocks = segments.div_ceil(max_source as u64);
        let numbers = 1 << fec.block_bits();
        if blocks > numbers || blocks > u32::MAX as u64 {
            return Err(Unsupported::Blocks { blocks, numbers });
        }
        let small = segments.checked_div(blocks).unwrap_or(0);
        let large = segments - small * blocks;
        Ok(Self { size, segment, count: blocks as u32, small: small as u16, large: large as u32 })
    }

    /// Division of the object that has this FTI.
    ///
    /// # Errors
    /// As for [`new`](Self::new).
    pub fn of(fti: &Fti) -> Result<Self, Unsupported> {
        Self::new(fti.object_size, fti.segment, fti.source, fti.fec)
    }

    /// Number of blocks.
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Size of the object in bytes.
    pub const fn size(&self) -> u64 {
        self.size
    }

    /// Number of source symbols of a block; 0 if there is no such block.
    pub const fn source(&self, block: u32) -> u16 {
        if block >= self.count {
            0
        } else if block < self.large {
            self.small + 1
        } else {
            self.small
        }
    }

    /// Place in the object of a block's first byte.
    pub const fn block_offset(&self, block: u32) -> u64 {
        let block = if block < self.count { block } else { self.count };
        let larger = if block < self.large { block } else { self.large };
        let offset = (block as u64 * self.small as u64 + larger as u64) * self.segment as u64;
        if offset < self.size { offset } else { self.size }
    }

    /// Place in the object of a source symbol's first byte.
    pub const fn offset(&self, block: u32, symbol: u16) -> u64 {
        let offset = self.block_offset(block) + symbol as u64 * self.segment as u64;
        if offset < self.size { offset } else { self.size }
    }

    /// Length of a source symbol in bytes: a segment's, but of the last one what is left; 0 if there is no such symbol.
    pub const fn segment_len(&self, block: u32, symbol: u16) -> usize {
        if symbol >= self.source(block) {
            return 0;
        }
        let left = self.size - self.offset(block, symbol);
        if left < self.segment as u64 { left as usize } else { self.segment as usize }
    }
}
