//! A record's header.

use super::Layer;

/// The beginning of a log: a name and the version of its format.
pub(crate) const MAGIC: [u8; 16] = *b"hopcast log 1\n\0\0";
/// The length of a header, in bytes.
pub(crate) const HEADER: usize = 32;

/// Kinds of records; see the [format](super).
pub(crate) mod kind {
    pub(crate) const PLACE: u8 = 1;
    pub(crate) const REASON: u8 = 2;
    pub(crate) const NAMED: u8 = 3;
    pub(crate) const TRUNCATED: u8 = 4;
    pub(crate) const ARRIVED: u8 = 16;
    pub(crate) const SENT: u8 = 17;
    pub(crate) const DELIVERED: u8 = 18;
    pub(crate) const DROPPED: u8 = 19;
    pub(crate) const HANDED_ON: u8 = 20;
    pub(crate) const ENDED: u8 = 21;
    pub(crate) const SEEN: u8 = 22;
    pub(crate) const OFFERED: u8 = 23;
}

/// The bit of a record's kind that says that it defines its content.
const DEFINES: u8 = 0x20;
const KIND: u8 = 0x1f;

/// A record's header, read or to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) at: u64,
    pub(crate) place: u32,
    pub(crate) aux: u32,
    pub(crate) content: u32,
    pub(crate) cause: u32,
    pub(crate) length: u32,
    pub(crate) reason: u16,
    pub(crate) kind: u8,
    pub(crate) layer: Layer,
    /// Whether this record defines its content.
    pub(crate) defines: bool,
    pub(crate) stored: u8,
}

impl Record {
    /// A record of a kind, with zeros.
    pub(crate) const fn of(kind: u8, at: u64, place: u32) -> Self {
        Self {
            at,
            place,
            aux: 0,
            content: 0,
            cause: 0,
            length: 0,
            reason: 0,
            kind,
            layer: Layer::Frame,
            defines: false,
            stored: 0,
        }
    }

    pub(crate) fn to_bytes(self) -> [u8; HEADER] {
        let mut bytes = [0; HEADER];
        bytes[0..8].copy_from_slice(&self.at.to_le_bytes());
        bytes[8..12].copy_from_slice(&self.place.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.aux.to_le_bytes());
        bytes[16..20].copy_from_slice(&self.content.to_le_bytes());
        bytes[20..24].copy_from_slice(&self.cause.to_le_bytes());
        bytes[24..28].copy_from_slice(&self.length.to_le_bytes());
        bytes[28..30].copy_from_slice(&self.reason.to_le_bytes());
        bytes[30] = self.kind | (self.layer as u8) << 6 | if self.defines { DEFINES } else { 0 };
        bytes[31] = self.stored;
        bytes
    }

    /// The header in these bytes; `None` if its layer is none.
    pub(crate) fn from_bytes(bytes: &[u8; HEADER]) -> Option<Self> {
        let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
        let time = u64::from(u32_at(0)) | u64::from(u32_at(4)) << 32;
        let layer = match bytes[30] >> 6 {
            0 => Layer::Frame,
            1 => Layer::Packet,
            2 => Layer::Payload,
            _ => return None,
        };
        Some(Self {
            at: time,
            place: u32_at(8),
            aux: u32_at(12),
            content: u32_at(16),
            cause: u32_at(20),
            length: u32_at(24),
            reason: u16::from_le_bytes([bytes[28], bytes[29]]),
            kind: bytes[30] & KIND,
            layer,
            defines: bytes[30] & DEFINES != 0,
            stored: bytes[31],
        })
    }
}
