//! The numbers by which frames name their type, and batches their size.

use super::super::config::BatchSize;

// The types of frames, in the upper half of their first byte, as the drawings of [`wire`](super) have them.
pub(super) const DATA: u8 = 1;
pub(super) const INFO: u8 = 2;
pub(super) const REPORT: u8 = 3;
pub(super) const END_TO_END: u8 = 4;
pub(super) const CHALLENGE: u8 = 5;

/// RFC 9426, section 4.2: the code of M in GF(256).
pub(super) const fn mq(batch: BatchSize) -> u8 {
    match batch {
        BatchSize::M4 => 0b001,
        BatchSize::M8 => 0b011,
        BatchSize::M16 => 0b101,
        BatchSize::M32 => 0b111,
    }
}

/// The opposite; codes of GF(2) are not of this protocol.
pub(super) fn batch_size(code: u8) -> Option<BatchSize> {
    BatchSize::ALL.into_iter().find(|&batch| mq(batch) == code)
}
