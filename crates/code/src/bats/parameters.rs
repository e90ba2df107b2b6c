//! The parameters that both ends must share, and the header that carries some of them.

use core::fmt;

use super::Degrees;
use crate::field::{Field, Gf2, Gf256};
use crate::rlnc::packed_len;

/// The field of the inner code's coefficients. (The outer code's field is always GF(2^8): RFC 9426, section 3.)
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum InnerField {
    /// q = 2: short coefficient vectors, and recoding is XOR.
    Gf2,
    /// q = 256: a random combination of what has any rank is innovative nearly always.
    Gf256,
}

/// Number of packets of a batch, M, and the field q that relays combine them over.
///
/// There are eight, numbered by three bits of the header (RFC 9426, table 1).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct BatchSize {
    packets: usize,
    field: InnerField,
}

impl BatchSize {
    /// All of them, in the order of their codes.
    pub const ALL: [Self; 8] = [
        Self { packets: 16, field: InnerField::Gf2 },
        Self { packets: 4, field: InnerField::Gf256 },
        Self { packets: 32, field: InnerField::Gf2 },
        Self { packets: 8, field: InnerField::Gf256 },
        Self { packets: 64, field: InnerField::Gf2 },
        Self { packets: 16, field: InnerField::Gf256 },
        Self { packets: 128, field: InnerField::Gf2 },
        Self { packets: 32, field: InnerField::Gf256 },
    ];

    /// `packets` packets with coefficients in `field`.
    ///
    /// # Errors
    ///
    /// [`Error::BatchSize`] unless it is 4, 8, 16 or 32 over GF(2^8) or 16, 32, 64 or 128 over GF(2).
    pub fn new(packets: usize, field: InnerField) -> Result<Self, Error> {
        let size = Self { packets, field };
        if Self::ALL.contains(&size) { Ok(size) } else { Err(Error::BatchSize { packets, field }) }
    }

    /// M.
    pub const fn packets(self) -> usize {
        self.packets
    }

    /// The field of the coefficient vectors.
    pub const fn field(self) -> InnerField {
        self.field
    }

    /// Bytes of a packed coefficient vector, CO = ceil(M log2(q) / 8).
    ///
    /// This is 16 for q = 2 and M = 128, where RFC 9426 has 6 in its text, against its formula.
    pub const fn coefficient_overhead(self) -> usize {
        match self.field {
            InnerField::Gf2 => packed_len::<Gf2>(self.packets),
            InnerField::Gf256 => packed_len::<Gf256>(self.packets),
        }
    }

    /// The bits of a coefficient that count.
    pub(super) fn mask(self) -> u8 {
        match self.field {
            InnerField::Gf2 => Gf2::MASK,
            InnerField::Gf256 => <Gf256 as Field>::MASK,
        }
    }

    /// The three bits Mq.
    fn code(self) -> u32 {
        Self::ALL.iter().position(|&size| size == self).map_or(0, |code| code as u32)
    }
}

/// Choice of the symbols and coefficients of a batch, as a function of its number (the BID).
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Sampling {
    /// As RFC 9426 prints it, but for the comparison that is the wrong way round: TinyMT32, seeded with the BID, draws
    /// the degree; seeded so again, it draws indices, rejecting those that it had, and then the generator matrix.
    ///
    /// For packets that others make. Some symbols are in no batch for long, which costs many packets in the end; degree
    /// and first index come from the same number; and equal BIDs give equal batches in every session.
    Rfc,
    /// The same draws, but degree and indices have seeds of their own, which differ between sessions.
    Separate {
        /// The number that makes sessions differ.
        session: u32,
    },
    /// All symbols in turn, in an order that changes with each pass, so that every symbol is in as many batches as
    /// every other. See [`Start`] for what else it does.
    Even {
        /// The number that makes sessions differ.
        session: u32,
    },
}

/// The kind of the first batches.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Start {
    /// Coded from the first on. With [`Sampling::Even`] the source is precoded, with few dense and more sparse checks:
    /// they know the last symbols before the batches do.
    Coded,
    /// The source as it is, M symbols a batch, in order; then coded batches to repair what is missing.
    ///
    /// With [`Sampling::Even`] the degrees of those are not drawn: the n-th has K / n symbols, or 256 if that is more.
    /// So the first says something about every symbol that may be missing, however few are, and of many missing ones
    /// no batch says more than it can be decoded for.
    Systematic,
}

/// The parameters that the two ends of a session share.
#[derive(Clone, Debug, PartialEq)]
pub struct Parameters {
    symbols: usize,
    symbol_len: usize,
    batch: BatchSize,
    sampling: Sampling,
    start: Start,
    degrees: Degrees,
}

/// The maximum number of symbols of a session: the header's K has 16 bits.
pub const MAX_SYMBOLS: usize = u16::MAX as usize;
/// Maximum number of batches of a session: the header's BID has 13 bits.
pub const MAX_BATCHES: usize = 1 << 13;
/// Maximum length of a symbol, in bytes: more than a UDP datagram holds.
pub const MAX_SYMBOL_LEN: usize = 65_536;

impl Parameters {
    /// `symbols` source symbols of `symbol_len` bytes, in coded batches by the RFC's sampling, whose degrees are the
    /// [table](Degrees::table) for that batch size.
    ///
    /// # Errors
    ///
    /// [`Error::Symbols`] or [`Error::SymbolLen`] if one of them is 0 or too great.
    pub fn new(symbols: usize, symbol_len: usize, batch: BatchSize) -> Result<Self, Error> {
        if symbols == 0 || symbols > MAX_SYMBOLS {
            return Err(Error::Symbols(symbols));
        }
        if symbol_len == 0 || symbol_len > MAX_SYMBOL_LEN {
            return Err(Error::SymbolLen(symbol_len));
        }
        let q = 1
            << match batch.field {
                InnerField::Gf2 => Gf2::BITS,
                InnerField::Gf256 => <Gf256 as Field>::BITS,
            };
        let degrees = Degrees::table(batch.packets, q).expect("there is a table for each batch size");
        Ok(Self { symbols, symbol_len, batch, sampling: Sampling::Rfc, start: Start::Coded, degrees })
    }

    /// For an object of `len` bytes in packets whose payload, coefficient vector included, is `packet` bytes: T is what
    /// the vector leaves, and K = floor(len / T) + 1, so that there is always at least one byte of padding
    /// (RFC 9426, section 2.2).
    ///
    /// # Errors
    ///
    /// As for [`new`](Self::new).
    pub fn of_object(len: usize, packet: usize, batch: BatchSize) -> Result<Self, Error> {
        let symbol_len = packet.saturating_sub(batch.coefficient_overhead());
        if symbol_len == 0 {
            return Err(Error::SymbolLen(0));
        }
        Self::new(len / symbol_len + 1, symbol_len, batch)
    }

    /// With another sampling.
    #[must_use]
    pub fn sampling(mut self, sampling: Sampling) -> Self {
        self.sampling = sampling;
        self
    }

    /// With another start.
    #[must_use]
    pub fn start(mut self, start: Start) -> Self {
        self.start = start;
        self
    }

    /// With another degree distribution.
    #[must_use]
    pub fn degrees(mut self, degrees: Degrees) -> Self {
        self.degrees = degrees;
        self
    }

    /// K.
    pub fn symbols(&self) -> usize {
        self.symbols
    }

    /// T, in bytes.
    pub fn symbol_len(&self) -> usize {
        self.symbol_len
    }

    /// M and q.
    pub fn batch(&self) -> BatchSize {
        self.batch
    }

    /// Number of batches that carry the source as it is: the first ceil(K / M) with [`Start::Systematic`], else none.
    pub fn systematic_batches(&self) -> usize {
        match self.start {
            Start::Coded => 0,
            Start::Systematic => self.symbols.div_ceil(self.batch.packets),
        }
    }

    /// Number of packets of a batch that are worth sending: M, but for the last systematic batch, when K is no multiple
    /// of M. That has fewer symbols, and its further packets are combinations of those.
    pub fn packets(&self, bid: u16) -> usize {
        let first = usize::from(bid) * self.batch.packets;
        let is_systematic = usize::from(bid) < self.systematic_batches();
        if is_systematic { self.batch.packets.min(self.symbols - first) } else { self.batch.packets }
    }

    /// The header of a packet of a batch.
    ///
    /// # Errors
    ///
    /// [`Error::Batch`] for a BID of more than 13 bits.
    pub fn header(&self, bid: u16) -> Result<Header, Error> {
        check_bid(bid)?;
        Ok(Header { symbols: self.symbols as u16, batch: self.batch, bid })
    }

    /// The same in another session, if the sampling depends on it.
    pub(super) fn restart(&mut self, number: u32) {
        match &mut self.sampling {
            Sampling::Rfc => {}
            Sampling::Separate { session } | Sampling::Even { session } => *session = number,
        }
    }

    pub(super) fn parts(&self) -> (Sampling, Start, &Degrees) {
        (self.sampling, self.start, &self.degrees)
    }

    pub(super) fn check_payload(&self, found: usize) -> Result<(), Error> {
        let expected = self.symbol_len;
        if found == expected { Ok(()) } else { Err(Error::PayloadLength { expected, found }) }
    }
}

pub(super) fn check_bid(bid: u16) -> Result<(), Error> {
    if usize::from(bid) < MAX_BATCHES { Ok(()) } else { Err(Error::Batch(bid)) }
}

/// The 32 bits in front of each packet (RFC 9426, section 2.2.1):
///
/// ```text
///  0                   1                   2                   3
///  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
/// +-------------------------------+-----+-------------------------+
/// |               K               | Mq  |           BID           |
/// +-------------------------------+-----+-------------------------+
/// ```
///
/// The coefficient vector follows, CO bytes, and then the T bytes of data.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub struct Header {
    /// K, at least 1.
    pub symbols: u16,
    /// M and q.
    pub batch: BatchSize,
    /// The batch's number, below [`MAX_BATCHES`].
    pub bid: u16,
}

impl Header {
    /// Reads a header.
    ///
    /// # Errors
    ///
    /// [`Error::Symbols`] if K is 0; all else means something.
    pub fn parse(bytes: [u8; 4]) -> Result<Self, Error> {
        let word = u32::from_be_bytes(bytes);
        let symbols = (word >> 16) as u16;
        if symbols == 0 {
            return Err(Error::Symbols(0));
        }
        let batch = BatchSize::ALL[(word >> 13 & 7) as usize];
        Ok(Self { symbols, batch, bid: word as u16 & (MAX_BATCHES as u16 - 1) })
    }

    /// Writes it. Of the BID, the low 13 bits count.
    pub fn emit(&self) -> [u8; 4] {
        let bid = u32::from(self.bid) & (MAX_BATCHES as u32 - 1);
        (u32::from(self.symbols) << 16 | self.batch.code() << 13 | bid).to_be_bytes()
    }
}

/// An error in parameters, or in what is handed to an encoder or decoder.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub enum Error {
    /// No batch has this many packets over this field.
    BatchSize {
        /// The packets of a batch.
        packets: usize,
        /// The field.
        field: InnerField,
    },
    /// A number of source symbols that is 0 or more than [`MAX_SYMBOLS`].
    Symbols(usize),
    /// A symbol length that is 0 or more than [`MAX_SYMBOL_LEN`].
    SymbolLen(usize),
    /// A BID of more than 13 bits.
    Batch(u16),
    /// A packet of a batch that has no more than M.
    Packet {
        /// M.
        packets: usize,
        /// The index of the packet.
        index: usize,
    },
    /// A vector that has not M coefficients.
    VectorLength {
        /// M.
        expected: usize,
        /// The coefficients that the vector has.
        found: usize,
    },
    /// A payload or a buffer of the wrong length.
    PayloadLength {
        /// The length expected, in bytes.
        expected: usize,
        /// The length found, in bytes.
        found: usize,
    },
    /// A symbol that the source has not, or not yet.
    Missing {
        /// The number of symbols.
        symbols: usize,
        /// Its index.
        index: usize,
    },
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BatchSize { packets, field } => {
                write!(f, "batches of {packets} packets over {field:?}: see RFC 9426, table 1")
            }
            Self::Symbols(found) => write!(f, "{found} symbols: expected 1 to {MAX_SYMBOLS}"),
            Self::SymbolLen(found) => write!(f, "symbols of {found} bytes: expected 1 to {MAX_SYMBOL_LEN}"),
            Self::Batch(found) => write!(f, "batch {found}: expected less than {MAX_BATCHES}"),
            Self::Packet { packets, index } => write!(f, "packet {index} of a batch of {packets}"),
            Self::VectorLength { expected, found } => {
                write!(f, "a vector of {found} coefficients: expected one for each of {expected} packets")
            }
            Self::PayloadLength { expected, found } => write!(f, "{found} bytes: expected {expected}"),
            Self::Missing { symbols, index } => write!(f, "symbol {index}: there are {symbols}"),
        }
    }
}

impl core::error::Error for Error {}
