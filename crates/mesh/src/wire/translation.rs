//! The container of the translation table, version 1: which clients are behind a node, by VLAN.
//!
//! It is in originator messages, with what has changed, and in packets for one originator, which ask for a table or
//! answer.
//!
//! ```text
//!  0       1      2                 4
//! | flags | TTVN | number of VLANs | VLANs, 8 bytes each: | CRC 4 | VLAN 2 | reserved 2 |
//!                                    then changes, 12 bytes each: | flags 1 | reserved 3 | address 6 | VLAN 2 |
//! ```
//!
//! A VLAN's number has its highest bit set, [`TAGGED`]; clients without a tag are in VLAN 0.

use hopcast_core::{Malformed, Reader};
use hopcast_wire::ethernet::Mac;
use hopcast_wire::vlan::Tag;

/// Version of the container.
pub const VERSION: u8 = 1;

/// Flag of the container: what has changed, in an originator message.
pub const DIFFERENCE: u8 = 1;
/// Flag of the container: a request for a table.
pub const REQUEST: u8 = 1 << 1;
/// Flag of the container: the answer to a request.
pub const RESPONSE: u8 = 1 << 2;
/// Flag of the container: the whole table is asked for, or sent.
pub const FULL_TABLE: u8 = 1 << 4;

/// Flag of a change: the client has gone.
pub const DELETED: u8 = 1;
/// Flag of a change: the client has gone to another node, which will announce it.
pub const ROAMED: u8 = 1 << 1;
/// Flag of a change: the client came by a radio interface.
pub const WIRELESS: u8 = 1 << 4;
/// Flag of a change: the client is isolated from other isolated clients.
pub const ISOLATED: u8 = 1 << 5;
/// Flags of an entry that its checksum covers.
pub const CHECKED_FLAGS: u8 = 0xf0;

/// Bit of a VLAN's number, set unless frames have no tag.
pub const TAGGED: u16 = 1 << 15;

/// The VLAN of a frame with this tag, or with none. VLAN 0 is a priority without a VLAN.
pub fn vlan_of(tag: Option<Tag>) -> u16 {
    tag.map_or(0, |tag| if tag.id == 0 { 0 } else { tag.id | TAGGED })
}

/// Length of a table's data in front of the VLANs.
pub const HEADER: usize = 4;
/// Length of a VLAN's checksum.
pub const CHECKSUM: usize = 8;
/// Length of a change.
pub const CHANGE: usize = 12;

/// A table's data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TableData<'a> {
    /// [`DIFFERENCE`], [`REQUEST`] or [`RESPONSE`], and [`FULL_TABLE`].
    pub flags: u8,
    /// Version of the table, which wraps around.
    pub ttvn: u8,
    checksums: &'a [[u8; CHECKSUM]],
    changes: &'a [[u8; CHANGE]],
}

/// The checksum of the clients of a VLAN: the exclusive or of the CRC-32C of each entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checksum {
    /// The checksum.
    pub crc: u32,
    /// The VLAN.
    pub vlan: u16,
}

/// A client that is added, changed or deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Change {
    /// [`DELETED`], [`ROAMED`], [`WIRELESS`] and [`ISOLATED`]; others are passed on.
    pub flags: u8,
    /// The client's address.
    pub address: Mac,
    /// The client's VLAN.
    pub vlan: u16,
}

impl<'a> TableData<'a> {
    /// Reads a value. Bytes at its end that are no whole change are not read.
    ///
    /// # Errors
    /// The header or the checksums are cut off.
    pub fn parse(value: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(value);
        let (flags, ttvn) = (reader.u8("flags")?, reader.u8("TTVN")?);
        let vlans = usize::from(reader.u16("number of VLANs")?);
        let (checksums, _) = reader.take(CHECKSUM * vlans, "checksums")?.as_chunks();
        let (changes, _) = reader.take_rest().as_chunks();
        Ok(Self { flags, ttvn, checksums, changes })
    }

    /// The checksums, one for each VLAN.
    pub fn checksums(&self) -> impl ExactSizeIterator<Item = Checksum> + use<'a> {
        self.checksums.iter().map(|&[a, b, c, d, high, low, _, _]| Checksum {
            crc: u32::from_be_bytes([a, b, c, d]),
            vlan: u16::from_be_bytes([high, low]),
        })
    }

    /// The changes, or the entries of a whole table.
    pub fn changes(&self) -> impl ExactSizeIterator<Item = Change> + use<'a> {
        self.changes.iter().map(|&[flags, _, _, _, a, b, c, d, e, f, high, low]| Change {
            flags,
            address: [a, b, c, d, e, f],
            vlan: u16::from_be_bytes([high, low]),
        })
    }
}

/// The value of a container with a table's data.
///
/// # Panics
/// If there are more than 65,535 VLANs.
pub fn table_data(
    flags: u8,
    ttvn: u8,
    checksums: impl ExactSizeIterator<Item = Checksum>,
    changes: impl Iterator<Item = Change>,
) -> Vec<u8> {
    let vlans = u16::try_from(checksums.len()).expect("the number of VLANs fits its field");
    let mut value = vec![flags, ttvn];
    value.extend(vlans.to_be_bytes());
    for Checksum { crc, vlan } in checksums {
        value.extend(crc.to_be_bytes());
        value.extend(vlan.to_be_bytes());
        value.extend([0, 0]);
    }
    for Change { flags, address, vlan } in changes {
        value.extend([flags, 0, 0, 0]);
        value.extend(address);
        value.extend(vlan.to_be_bytes());
    }
    value
}
