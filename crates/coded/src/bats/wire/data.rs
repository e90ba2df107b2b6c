//! DATA: a packet of a batch.

use hopcast_core::bytes::{Malformed, Reader, Writer};

use super::super::config::BatchSize;
use super::codes::{DATA, batch_size, mq};

/// Length of DATA in front of its payload, in bytes, if that is one whole symbol; without the vector or index.
const HEADER_LEN: usize = 1 + 4 + 1 + 3 + 3 + 4;

/// Maximum length of a symbol of which every kind of packet fits a datagram of `datagram` bytes.
pub(in super::super) const fn symbol_len(datagram: usize, batch: BatchSize) -> usize {
    datagram.saturating_sub(1 + HEADER_LEN + batch.symbols())
}

/// A DATA frame, without its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Data<'a> {
    pub(in super::super) session: u32,
    pub(in super::super) epoch: u8,
    /// 24 bits.
    pub(in super::super) sequence: u32,
    /// 24 bits.
    pub(in super::super) block: u32,
    pub(in super::super) header: BatchHeader,
    pub(in super::super) coding: Coding<'a>,
    /// Whether a report is wanted now.
    pub(in super::super) ask: bool,
    /// Whether the payload is shorter than a symbol.
    pub(in super::super) trimmed: bool,
    pub(in super::super) payload: &'a [u8],
}

/// The header of RFC 9426, section 4.2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct BatchHeader {
    pub(in super::super) block: u16,
    pub(in super::super) batch: BatchSize,
    /// 13 bits.
    pub(in super::super) id: u16,
}

impl BatchHeader {
    pub(super) fn word(self) -> u32 {
        u32::from(self.block) << 16 | u32::from(mq(self.batch)) << 13 | u32::from(self.id & 0x1FFF)
    }
}

/// Coding by which a payload was made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Coding<'a> {
    /// It is the batch's symbol of this index.
    Symbol(u8),
    /// The combination with these coefficients of the symbols from `first` on; the others' are 0.
    Vector { first: u8, vector: &'a [u8] },
}

impl<'a> Coding<'a> {
    /// A vector as it is sent: without the zeros at its ends, if that is shorter.
    pub(in super::super) fn trimmed(all: &'a [u8]) -> Self {
        let some = |&coefficient: &u8| coefficient != 0;
        let first = all.iter().position(some).unwrap_or(0);
        let end = all.iter().rposition(some).map_or(1, |last| last + 1);
        if end - first + 2 < all.len() {
            Self::Vector { first: first as u8, vector: &all[first..end] }
        } else {
            Self::Vector { first: 0, vector: all }
        }
    }
}

/// Whether a payload of `len` bytes travels trimmed, and how long it then is: its length takes two bytes, so that what
/// lacks less of a symbol of `symbol` bytes travels whole.
pub(in super::super) const fn trim(len: usize, symbol: usize) -> (bool, usize) {
    if len + 2 <= symbol { (true, len) } else { (false, symbol) }
}

impl<'a> Data<'a> {
    /// Reads it, but for the byte that names it. `symbol`: how long the symbols of a session are, if that is known.
    pub(in super::super) fn read(
        reader: &mut Reader<'a>,
        kind: u8,
        symbol: impl Fn(u32) -> Option<usize>,
    ) -> Result<Self, Malformed> {
        let session = reader.u32("data session")?;
        let epoch = reader.u8("data epoch")?;
        let sequence = reader.u24("data sequence")?;
        let block = reader.u24("data block")?;
        let word = reader.u32("batch header")?;
        let batch = batch_size((word >> 13) as u8 & 7).ok_or(Malformed { field: "batch size" })?;
        let header = BatchHeader { block: (word >> 16) as u16, batch, id: word as u16 & 0x1FFF };
        let trimmed = kind & 4 != 0;
        let length = if trimmed { Some(usize::from(reader.u16("payload length")?)) } else { symbol(session) };
        let symbols = batch.symbols();
        let coding = match kind & 3 {
            0 => {
                let index = reader.u8("symbol index")?;
                if usize::from(index) >= symbols {
                    return Err(Malformed { field: "symbol index" });
                }
                Coding::Symbol(index)
            }
            1 => Coding::Vector { first: 0, vector: reader.take(symbols, "vector")? },
            2 => {
                let (first, count) = (reader.u8("vector's first")?, reader.u8("vector's count")?);
                if count == 0 || usize::from(first) + usize::from(count) > symbols {
                    return Err(Malformed { field: "vector's count" });
                }
                Coding::Vector { first, vector: reader.take(usize::from(count), "vector")? }
            }
            _ => return Err(Malformed { field: "coding" }),
        };
        let payload = reader.take_rest();
        if payload.is_empty() || length.is_some_and(|length| length != payload.len()) {
            return Err(Malformed { field: "payload length" });
        }
        let ask = kind & 8 != 0;
        Ok(Self { session, epoch, sequence, block, header, coding, ask, trimmed, payload })
    }

    /// Length of the frame in front of its payload, in bytes.
    pub(in super::super) fn header_len(&self) -> usize {
        let coding = match self.coding {
            Coding::Symbol(_) => 1,
            Coding::Vector { vector, .. } if vector.len() == self.header.batch.symbols() => vector.len(),
            Coding::Vector { vector, .. } => 2 + vector.len(),
        };
        HEADER_LEN + 2 * usize::from(self.trimmed) + coding
    }

    /// Writes everything but the payload.
    pub(in super::super) fn write_header(&self, payload: usize, out: &mut Writer<'_>) {
        let format = match self.coding {
            Coding::Symbol(_) => 0,
            Coding::Vector { vector, .. } if vector.len() == self.header.batch.symbols() => 1,
            Coding::Vector { .. } => 2,
        };
        out.u8(DATA << 4 | u8::from(self.ask) << 3 | u8::from(self.trimmed) << 2 | format);
        out.u32(self.session);
        out.u8(self.epoch);
        out.u24(self.sequence);
        out.u24(self.block);
        out.u32(self.header.word());
        if self.trimmed {
            out.u16(payload as u16);
        }
        match self.coding {
            Coding::Symbol(index) => out.u8(index),
            Coding::Vector { first, vector } => {
                if format == 2 {
                    out.u8(first);
                    out.u8(vector.len() as u8);
                }
                out.put(vector);
            }
        }
    }
}
