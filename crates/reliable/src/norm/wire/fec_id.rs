//! Which code an object has, and the identifier of a symbol in it (RFC 5740, section 4.2.1; RFC 5510, sections 4.1
//! and 5.1).
//!
//! ```text
//! Encoding id 5 (8-bit Reed-Solomon); also id 2 with m = 8
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |         source_block_number                   |  symbol (ESI) |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! Encoding id 2 with m = 16
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |      source_block_number      |         symbol (ESI)          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! Encoding id 129 (small block, systematic)
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                      source_block_number                      |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |        source_block_len       |         symbol (ESI)          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```

use super::{Malformed, Reader, Writer};

/// An FEC encoding identifier (RFC 5052, section 6.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fec {
    /// 2: Reed-Solomon over GF(2^m), m told by the object's FTI. libnorm sends it with m = 16 where a block and its
    /// parity have more than 255 symbols.
    ReedSolomon,
    /// 5: Reed-Solomon over GF(2^8).
    ReedSolomon8,
    /// 129: small block systematic codes. libnorm sends it only where it was built to.
    SmallBlock,
}

impl Fec {
    pub(super) const fn of(id: u8) -> Result<Self, Malformed> {
        match id {
            2 => Ok(Self::ReedSolomon),
            5 => Ok(Self::ReedSolomon8),
            129 => Ok(Self::SmallBlock),
            _ => Err(Malformed { field: "FEC encoding id" }),
        }
    }

    /// The number on the wire.
    pub const fn id(self) -> u8 {
        match self {
            Self::ReedSolomon => 2,
            Self::ReedSolomon8 => 5,
            Self::SmallBlock => 129,
        }
    }

    /// Number of bits of a block number; of id 2 that with m = 16.
    pub const fn block_bits(self) -> u32 {
        match self {
            Self::ReedSolomon => 16,
            Self::ReedSolomon8 => 24,
            Self::SmallBlock => 32,
        }
    }

    /// Length of an FEC payload id, in bytes.
    pub const fn payload_id_len(self) -> usize {
        match self {
            Self::ReedSolomon | Self::ReedSolomon8 => 4,
            Self::SmallBlock => 8,
        }
    }
}

/// An FEC payload id: a symbol of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PayloadId {
    /// Source block number, of as many bits as [`Fec::block_bits`] says.
    pub block: u32,
    /// Encoding symbol id. Those below the block's number of source symbols are source symbols, the others parity. In
    /// a request of the form ERASURES it is a count instead.
    pub symbol: u16,
    /// Number of source symbols of the block; id 129 only, otherwise 0.
    pub block_len: u16,
}

impl PayloadId {
    pub(super) fn read(fec: Fec, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        const FIELD: &str = "FEC payload id";
        Ok(match fec {
            Fec::ReedSolomon => {
                Self { block: reader.u16(FIELD)?.into(), symbol: reader.u16(FIELD)?, block_len: 0 }
            }
            Fec::ReedSolomon8 => {
                Self { block: reader.u24(FIELD)?, symbol: reader.u8(FIELD)?.into(), block_len: 0 }
            }
            Fec::SmallBlock => {
                let (block, block_len) = (reader.u32(FIELD)?, reader.u16(FIELD)?);
                Self { block, symbol: reader.u16(FIELD)?, block_len }
            }
        })
    }

    pub(super) fn write(self, fec: Fec, out: &mut Writer<'_>) {
        match fec {
            Fec::ReedSolomon => {
                out.u16(self.block as u16);
                out.u16(self.symbol);
            }
            Fec::ReedSolomon8 => {
                out.u24(self.block);
                out.u8(self.symbol as u8);
            }
            Fec::SmallBlock => {
                out.u32(self.block);
                out.u16(self.block_len);
                out.u16(self.symbol);
            }
        }
    }

    /// An identifier that was read with id 2, which is read as with m = 16, as it is with m = 8.
    #[must_use]
    pub const fn with_8_bits(self) -> Self {
        let [symbol_high, symbol_low] = self.symbol.to_be_bytes();
        Self { block: self.block << 8 | symbol_high as u32, symbol: symbol_low as u16, block_len: 0 }
    }

    /// An identifier with m = 8, as it is written with id 2.
    #[must_use]
    pub const fn with_16_bits(self) -> Self {
        let symbol = (self.block as u16) << 8 | self.symbol & 0xFF;
        Self { block: self.block >> 8 & 0xFFFF, symbol, block_len: 0 }
    }
}

/// A place in what a sender sends: a symbol of an object. Of a request for repair an item, which may mean the whole
/// block or the whole object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The object's code.
    pub fec: Fec,
    /// Object transport id.
    pub object: u16,
    /// The symbol.
    pub id: PayloadId,
}

impl Position {
    /// Length of a position with `fec` that begins with a word for its encoding and object, in bytes.
    pub(super) const fn len(fec: Fec) -> usize {
        4 + fec.payload_id_len()
    }

    /// One that begins with FEC id (8), reserved (8) and object id (16).
    pub(super) fn read(reader: &mut Reader<'_>, field: &'static str) -> Result<Self, Malformed> {
        let fec = Fec::of(reader.u8(field)?)?;
        let _ = reader.u8(field)?;
        Self::read_after(fec, reader, field)
    }

    /// The rest of one whose FEC id has been read.
    pub(super) fn read_after(
        fec: Fec,
        reader: &mut Reader<'_>,
        field: &'static str,
    ) -> Result<Self, Malformed> {
        let object = reader.u16(field)?;
        Ok(Self { fec, object, id: PayloadId::read(fec, reader)? })
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        out.u8(self.fec.id());
        out.u8(0);
        self.write_after(out);
    }

    /// The object and the symbol.
    pub(super) fn write_after(&self, out: &mut Writer<'_>) {
        out.u16(self.object);
        self.id.write(self.fec, out);
    }
}
