//! The feedback of decoders and helpers, as bytes.

use hopcast_core::bytes::{Malformed, Reader, Writer};

use super::{ACK_FIXED, Ack, Heard, Known, MAX_LISTED, Refused, Report};
use crate::franc::bits::Bits;
use crate::franc::config::{Config, Plan};
use crate::franc::lengths::bitmap_len;

impl Ack {
    /// Length on the wire, in bytes.
    pub(in crate::franc) fn len(&self, block: u8) -> usize {
        ACK_FIXED + self.blocks.len() * (1 + bitmap_len(block))
    }

    pub(super) fn emit(&self, block: u8, to: &mut Writer<'_>) {
        to.u32(self.number);
        self.heard.emit(to);
        self.helper.emit(to);
        to.u32(self.base);
        to.u8(self.blocks.len() as u8);
        for known in &self.blocks {
            known.emit(block, to);
        }
    }

    pub(super) fn parse(bytes: &mut Reader<'_>, block: u8) -> Result<Self, Refused> {
        let number = bytes.u32("number")?;
        let (heard, helper) = (Heard::parse(bytes)?, Heard::parse(bytes)?);
        let (base, count) = (bytes.u32("base")?, bytes.u8("count")?);
        if usize::from(count) > MAX_LISTED {
            return Err(Refused::Invalid { field: "count" });
        }
        let blocks = (0..count).map(|_| Known::parse(bytes, block)).collect::<Result<_, _>>()?;
        Ok(Self { number, heard, helper, base, blocks })
    }
}

impl Heard {
    pub(super) fn emit(self, to: &mut Writer<'_>) {
        to.u16(self.next);
        to.u16(self.received);
    }

    pub(super) fn parse(bytes: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self { next: bytes.u16("highest")?, received: bytes.u16("received")? })
    }
}

impl Known {
    pub(super) fn emit(self, block: u8, to: &mut Writer<'_>) {
        to.u8(self.rank);
        to.put(&self.symbols.bytes()[..bitmap_len(block)]);
    }

    pub(super) fn parse(bytes: &mut Reader<'_>, block: u8) -> Result<Self, Refused> {
        let rank = bytes.u8("rank")?;
        let symbols = Bits::from_bytes(bytes.take(bitmap_len(block), "bitmap")?);
        if rank > block || symbols.count() > u32::from(rank) || symbols.beyond(block) {
            return Err(Refused::Invalid { field: "rank" });
        }
        Ok(Self { rank, symbols })
    }
}

impl Report {
    pub(super) fn emit(self, config: &Config, to: &mut Writer<'_>) {
        self.heard.emit(to);
        if config.plan == Plan::Deficit {
            to.u16(self.told);
            to.u8(self.block as u8);
            self.known.emit(config.block, to);
        }
    }

    pub(super) fn parse(bytes: &mut Reader<'_>, about: u32, config: &Config) -> Result<Self, Refused> {
        let heard = Heard::parse(bytes)?;
        if config.plan != Plan::Deficit {
            return Ok(Self { heard, told: 0, block: about, known: Known::default() });
        }
        let (told, ends) = (bytes.u16("told")?, bytes.u8("block")?);
        let block = about.saturating_add_signed(i32::from(ends.wrapping_sub(about as u8) as i8));
        Ok(Self { heard, told, block, known: Known::parse(bytes, config.block)? })
    }
}
