//! Memory that a sender's objects take.

use std::ops::{AddAssign, SubAssign};

/// Bytes that are held.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Held {
    /// Bytes of incomplete objects and blocks, and of decoded blocks of streams that wait for earlier ones: symbols,
    /// infos, and a minimum for each piece.
    pub(super) incomplete: u64,
    /// Bytes of decoded blocks of objects of known size.
    pub(super) decoded: u64,
}

/// Bytes that a symbol takes beside its own: the minimum that the allocator and the map need for it. Without it, empty
/// symbols would cost nothing.
pub(super) const SYMBOL: u64 = 64;
/// Bytes that a block takes beside its symbols.
pub(super) const BLOCK: u64 = 256;
/// Bytes that an object takes beside its blocks.
pub(super) const OBJECT: u64 = 1024;

impl AddAssign for Held {
    fn add_assign(&mut self, more: Self) {
        self.incomplete += more.incomplete;
        self.decoded += more.decoded;
    }
}

impl SubAssign for Held {
    fn sub_assign(&mut self, less: Self) {
        self.incomplete -= less.incomplete;
        self.decoded -= less.decoded;
    }
}
