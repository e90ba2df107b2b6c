//! Packets between encoder, recoder and decoder, and the errors in them.

use core::fmt;

use super::Density;

/// Number and length of a generation's symbols.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Shape {
    symbols: usize,
    symbol_len: usize,
}

impl Shape {
    /// The maximum number of symbols of a generation. Chosen: a decoder holds the square of their number in
    /// coefficients, 16 MB; a larger one is not decoded in good time.
    pub const MAX_SYMBOLS: usize = 4_096;
    /// Maximum length of a symbol, in bytes: more than a UDP datagram holds.
    pub const MAX_SYMBOL_LEN: usize = 65_536;

    /// `symbols` symbols of `symbol_len` bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Shape`] if one of them is 0 or exceeds its maximum.
    pub const fn new(symbols: usize, symbol_len: usize) -> Result<Self, Error> {
        let (some, fit) = (
            symbols > 0 && symbol_len > 0,
            symbols <= Self::MAX_SYMBOLS && symbol_len <= Self::MAX_SYMBOL_LEN,
        );
        if some && fit { Ok(Self { symbols, symbol_len }) } else { Err(Error::Shape { symbols, symbol_len }) }
    }

    /// The number of symbols of a generation, k.
    pub const fn symbols(&self) -> usize {
        self.symbols
    }

    /// The length of a symbol in bytes.
    pub const fn symbol_len(&self) -> usize {
        self.symbol_len
    }

    pub(super) fn check_payload(&self, payload: &[u8]) -> Result<(), Error> {
        match payload.len() {
            found if found == self.symbol_len => Ok(()),
            found => Err(Error::PayloadLength { expected: self.symbol_len, found }),
        }
    }

    pub(super) fn check_vector(&self, vector: &[u8]) -> Result<(), Error> {
        match vector.len() {
            found if found == self.symbols => Ok(()),
            found => Err(Error::VectorLength { expected: self.symbols, found }),
        }
    }

    pub(super) fn check_index(&self, index: usize) -> Result<(), Error> {
        if index < self.symbols { Ok(()) } else { Err(Error::Index { symbols: self.symbols, index }) }
    }
}

/// A coded packet, borrowed.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// The generation it belongs to.
    pub generation: u32,
    /// Coding by which its payload was made.
    pub coding: Coding<'a>,
    /// A symbol, or a combination of symbols.
    pub payload: &'a [u8],
}

/// Coding by which a payload was made of a generation's symbols.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Coding<'a> {
    /// It is the symbol of that index.
    Symbol(usize),
    /// The combination with these coefficients, one in each byte; [`unpack`](super::unpack) them first. In the smaller
    /// fields, what a byte holds beyond an element is ignored.
    Vector(&'a [u8]),
    /// The combination with the [`Coefficients`](super::Coefficients) of a seed.
    Seed(u64, Density),
}

/// The effect of a packet on the recoder or decoder that it was given to.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It raised the rank.
    Innovative,
    /// Not innovative, and ignored: a duplicate, or a combination of known symbols.
    Redundant,
}

/// Why something was refused; nothing has changed then.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// A shape that is empty or too large.
    Shape {
        /// Symbols asked for.
        symbols: usize,
        /// Their length asked for, in bytes.
        symbol_len: usize,
    },
    /// A payload, or a buffer for one, that is not as long as a symbol.
    PayloadLength {
        /// The length of a symbol in bytes.
        expected: usize,
        /// The length of the payload.
        found: usize,
    },
    /// A coefficient vector that has not one coefficient for each symbol.
    VectorLength {
        /// The number of symbols.
        expected: usize,
        /// The number of coefficients.
        found: usize,
    },
    /// A packet of another generation.
    Generation {
        /// The one at work.
        expected: u32,
        /// The packet's.
        found: u32,
    },
    /// A symbol that the generation does not have, or that the encoder has not been given yet.
    Index {
        /// Number of symbols.
        symbols: usize,
        /// The index asked for.
        index: usize,
    },
    /// A packet of a sliding window that reaches back to symbols already forgotten, or beyond the last number there is.
    Outside {
        /// The first symbol of the window.
        start: u64,
        /// The first symbol of the packet.
        first: u64,
    },
    /// The generation already has all its symbols.
    Full,
    /// There is nothing yet to combine.
    Empty,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Shape { symbols, symbol_len } => write!(
                f,
                "a generation of {symbols} symbols of {symbol_len} bytes: expected 1 to {} of 1 to {} bytes",
                Shape::MAX_SYMBOLS,
                Shape::MAX_SYMBOL_LEN
            ),
            Self::PayloadLength { expected, found } => {
                write!(f, "a payload of {found} bytes: expected a symbol's {expected}")
            }
            Self::VectorLength { expected, found } => {
                write!(f, "a vector of {found} coefficients: expected one for each of {expected} symbols")
            }
            Self::Generation { expected, found } => {
                write!(f, "a packet of generation {found}: expected {expected}")
            }
            Self::Index { symbols, index } => write!(f, "symbol {index}: there are {symbols}"),
            Self::Outside { start, first } => {
                write!(f, "a combination from symbol {first} on: the window begins with {start}")
            }
            Self::Full => f.write_str("the generation has all its symbols"),
            Self::Empty => f.write_str("there is nothing to combine yet"),
        }
    }
}

impl core::error::Error for Error {}
