//! Transmission information for tests.

use super::{Fec, Fti};

/// Of an object of 20,000 bytes, in blocks of at most 8 segments of 1000 bytes with 4 parity symbols.
pub(crate) const EXAMPLE: Fti = Fti {
    fec: Fec::ReedSolomon8,
    object_size: 20_000,
    segment: 1000,
    source: 8,
    parity: 4,
    field: 0,
    group: 0,
    instance: 0,
};
