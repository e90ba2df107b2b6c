//! Requests for repair: the payload of NORM_NACK and NORM_CMD(REPAIR_ADV) (RFC 5740, section 4.3.1).
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |     form      |     flags     |  length of the items, in bytes|
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |    fec_id     |   reserved    |      object_transport_id      | an item
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                   fec_payload_id                              …
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! A payload is one request after the other, each with at least one item.

use super::bits::bits;
use super::{Malformed, Position, Reader, Writer};

bits! {
    /// The level that the items of a request name: of SEGMENT, BLOCK and OBJECT one, and with it or alone INFO.
    RepairFlags {
        /// Symbols.
        SEGMENT = 0x01;
        /// Whole blocks.
        BLOCK = 0x02;
        /// NORM_INFO of the objects.
        INFO = 0x04;
        /// Whole objects.
        OBJECT = 0x08;
    }
}

/// How the items of a request are to be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RepairForm {
    /// Each by itself.
    Items,
    /// Pairs: the first and the last of a range.
    Ranges,
    /// Each is a block, and has the number of symbols that are missing in place of a symbol's identifier.
    Erasures,
}

/// A request for repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// How to read the items.
    pub form: RepairForm,
    /// The level that the items name.
    pub flags: RepairFlags,
    /// The items, at least one; of [`RepairForm::Ranges`] an even number.
    pub items: Vec<Position>,
}

impl Repair {
    /// Length of the header, in bytes.
    const HEADER_LEN: usize = 4;

    /// Length of the request, in bytes.
    pub fn len(&self) -> usize {
        Self::HEADER_LEN + self.items_len()
    }

    /// Whether it asks for nothing.
    pub fn is_empty(&self) -> bool {
        self.items.is_empty()
    }

    fn items_len(&self) -> usize {
        self.items.iter().map(|item| Position::len(item.fec)).sum()
    }

    /// All requests that are left.
    pub(super) fn read_all(reader: &mut Reader<'_>) -> Result<Vec<Self>, Malformed> {
        let mut requests = Vec::new();
        while !reader.is_empty() {
            requests.push(Self::read(reader)?);
        }
        Ok(requests)
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let form = match reader.u8("repair form")? {
            1 => RepairForm::Items,
            2 => RepairForm::Ranges,
            3 => RepairForm::Erasures,
            _ => return Err(Malformed { field: "repair form" }),
        };
        let flags = RepairFlags(reader.u8("repair flags")?);
        let len = reader.u16("repair length")?;
        let mut list = Reader::new(reader.take(len.into(), "repair length")?);
        let mut items = Vec::new();
        while !list.is_empty() {
            items.push(Position::read(&mut list, "repair item")?);
        }
        Malformed::unless(!items.is_empty(), "repair length")?;
        Malformed::unless(form != RepairForm::Ranges || items.len().is_multiple_of(2), "repair range")?;
        Ok(Self { form, flags, items })
    }

    pub(super) fn write(&self, out: &mut Writer<'_>) {
        out.u8(match self.form {
            RepairForm::Items => 1,
            RepairForm::Ranges => 2,
            RepairForm::Erasures => 3,
        });
        out.u8(self.flags.0);
        out.u16(self.items_len() as u16);
        self.items.iter().for_each(|item| item.write(out));
    }
}

/// Length of all of these requests, in bytes.
pub(super) fn len_of(requests: &[Repair]) -> usize {
    requests.iter().map(Repair::len).sum()
}
