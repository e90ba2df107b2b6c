//! Lengths of the fixed parts of packets, in bytes ([`wire`](super::wire) draws them).

use hopcast_code::field::Gf2;
use hopcast_code::rlnc::packed_len;

/// The header that every packet has: version and type, flags, check and association.
pub(super) const COMMON: usize = 10;
/// An ENC packet's header, without vector or index: block, sequence and number added.
pub(super) const ENC: usize = COMMON + 7;

/// A block's bitmap.
pub(super) fn bitmap_len(block: u8) -> usize {
    packed_len::<Gf2>(usize::from(block))
}
