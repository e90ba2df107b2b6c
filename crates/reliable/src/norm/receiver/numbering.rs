//! Numbers of blocks and symbols, as the code of a sender has them on the wire.

use crate::norm::wire::{Fec, Fti, PayloadId, Position, serial};

/// How a sender numbers blocks and symbols.
#[derive(Clone, Copy, Debug)]
pub(super) struct Numbering {
    pub(super) fec: Fec,
    /// Whether numbers of id 2 are of 24 and 8 bits (m = 8), not 16 and 16; `None` until an FTI says (RFC 5510, section
    /// 4.1).
    has_8_bits: Option<bool>,
}

impl Default for Numbering {
    fn default() -> Self {
        Self { fec: Fec::ReedSolomon8, has_8_bits: None }
    }
}

impl Numbering {
    /// Notes the code of a packet.
    pub(super) fn note(&mut self, fec: Fec, fti: Option<Fti>) {
        self.fec = fec;
        if let Some(fti) = fti.filter(|fti| fti.fec == Fec::ReedSolomon) {
            self.has_8_bits = Some(fti.is_8_bits());
        }
    }

    /// A symbol that was read; `None` if it is not known how.
    pub(super) fn read(&self, fec: Fec, id: PayloadId) -> Option<PayloadId> {
        match fec {
            Fec::ReedSolomon if self.has_8_bits? => Some(id.with_8_bits()),
            Fec::ReedSolomon | Fec::ReedSolomon8 | Fec::SmallBlock => Some(id),
        }
    }

    /// A place that was read; `None` if it is not known how.
    pub(super) fn read_position(&self, position: &Position) -> Option<Position> {
        Some(Position { id: self.read(position.fec, position.id)?, ..*position })
    }

    /// A symbol of a block of `source` source symbols, as it is written.
    pub(super) fn write(&self, object: u64, block: u32, symbol: u16, source: u16) -> Position {
        let block = block & self.mask();
        let id = match self.fec {
            Fec::ReedSolomon if self.has_8_bits == Some(true) => {
                PayloadId { block, symbol, block_len: 0 }.with_16_bits()
            }
            Fec::ReedSolomon | Fec::ReedSolomon8 => PayloadId { block, symbol, block_len: 0 },
            Fec::SmallBlock => PayloadId { block, symbol, block_len: source },
        };
        Position { fec: self.fec, object: object as u16, id }
    }

    /// The block of which these are the low bits, near one that is known.
    pub(super) fn block_near(&self, near: u32, block: u32) -> u32 {
        near.wrapping_add_signed(serial::block_distance(self.of_blocks(), block, near & self.mask()))
    }

    /// The number of a stream's first block that was heard: the numbers before it that have wrapped are smaller.
    pub(super) fn begin(&self, block: u32) -> u32 {
        self.mask().checked_add(1).map_or(block, |wrap| wrap | block)
    }

    /// Block number 0 on the wire, next before `block`.
    pub(super) fn origin(&self, block: u32) -> u32 {
        block & !self.mask()
    }

    fn mask(&self) -> u32 {
        u32::MAX >> (u32::BITS - self.of_blocks().block_bits())
    }

    /// A code that numbers blocks alike.
    fn of_blocks(&self) -> Fec {
        match self.fec {
            Fec::ReedSolomon if self.has_8_bits == Some(true) => Fec::ReedSolomon8,
            fec => fec,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::norm::wire::fti;

    #[test]
    fn numbers_of_encoding_2_are_read_once_it_is_known_how_wide_they_are() {
        let mut numbering = Numbering::default();
        let id = PayloadId { block: 0x1234, symbol: 0x5607, block_len: 0 };
        numbering.note(Fec::ReedSolomon, None);
        assert_eq!(numbering.read(Fec::ReedSolomon, id), None);
        for field in [0, 8] {
            numbering.note(Fec::ReedSolomon, Some(Fti { fec: Fec::ReedSolomon, field, ..fti::EXAMPLE }));
            let read = numbering.read(Fec::ReedSolomon, id).unwrap();
            assert_eq!((read.block, read.symbol), (0x12_3456, 7));
            assert_eq!(numbering.write(3, 0x112_3456, 7, 8).id, id);
            assert_eq!(numbering.block_near(0xFF_FFFF, 1), 0x100_0001);
        }
        numbering.note(Fec::ReedSolomon, Some(Fti { fec: Fec::ReedSolomon, field: 16, ..fti::EXAMPLE }));
        assert_eq!(numbering.read(Fec::ReedSolomon, id), Some(id));
        assert_eq!(numbering.block_near(0xFFFF, 1), 0x1_0001);
    }

    #[test]
    fn a_stream_that_is_joined_after_its_numbers_wrapped_has_earlier_blocks() {
        let numbering = Numbering::default();
        let first = numbering.begin(5);
        assert!(numbering.block_near(first, 0xFF_FFFE) < first && numbering.origin(first) < first);
        let whole = Numbering { fec: Fec::SmallBlock, ..numbering };
        assert_eq!((whole.begin(5), whole.origin(5)), (5, 0));
    }
}
