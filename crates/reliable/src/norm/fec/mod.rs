//! Blocks of an object, and the parity that repairs them (RFC 5052, section 9.1; RFC 5510).
//!
//! An object is cut into **segments** of one length, its **source symbols**; only the last may be shorter. They are
//! grouped into **blocks** of nearly the same number ([`Blocks`]), and each block has **parity symbols**, any of which
//! stands in for any source symbol ([`Codec`]). A stream has blocks of the maximum number of source symbols each, and
//! its symbols may all be shorter than a segment.
//!
//! Within a block, encoding symbol ids count the source symbols first, then the parity symbols: the first parity symbol
//! of a block of 6 has the id 6, whatever the maximum is. The code, however, is that for the maximum, *shortened*: the
//! source symbols that a block lacks count as zeros. So do the bytes that a symbol lacks, and a parity symbol is as
//! long as the longest source symbol of its block. This is how libnorm has it; the parity in the tests is its own.
//!
//! # Scope and departures
//!
//! The code is Reed-Solomon over GF(2^8) with the points of [`Points::Rizzo`](hopcast_code::reed_solomon::Points),
//! which libnorm has for encoding ids 5, 2 with m = 8, and 129 with instance 0. RFC 5510 has other points. m = 16 is
//! refused ([`Unsupported::Field`]): libnorm uses it where a block and its parity have more than 255 symbols.

mod blocks;
mod codec;

#[cfg(test)]
mod tests;

pub use blocks::Blocks;
pub use codec::{Codec, Undecodable};

/// An object that cannot be decoded here, for what its FTI says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// Elements of another size than 8 bits.
    #[error("a code over GF(2^{0}): only 8-bit elements are supported")]
    Field(u8),
    /// Several symbols in a packet.
    #[error("{0} symbols in a packet: only one is supported")]
    Group(u8),
    /// A code of encoding id 129 other than 0.
    #[error("FEC instance {0} of encoding id 129: only 0 is supported")]
    Instance(u16),
    /// More symbols in a block than the code has.
    #[error("blocks of {source_symbols} source and {parity} parity symbols: the code has 255 at most")]
    Symbols {
        /// Maximum number of source symbols of a block.
        source_symbols: u16,
        /// Number of parity symbols of a block.
        parity: u16,
    },
    /// More blocks than there are numbers for.
    #[error("an object of {blocks} blocks: there are numbers for {numbers}")]
    Blocks {
        /// Number of blocks of the object.
        blocks: u64,
        /// Number of block numbers.
        numbers: u64,
    },
}
