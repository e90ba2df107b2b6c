//! VLAN tags of Ethernet frames (IEEE 802.1Q-2022 section 9).
//!
//! ```text
//!  0                              6                               12      14      16      18
//! |          destination          |            source             | TPID  |  TCI  | type  |  payload …
//!                                              TCI: priority, 3 bits | drop eligible, 1 bit | VLAN, 12 bits
//! ```

use hopcast_core::Buffer;

use crate::ethernet;

/// The length of a tag.
pub const TAG: usize = 4;
/// The type of a customer's tag (IEEE 802.1Q, C-TAG).
pub const CUSTOMER: u16 = 0x8100;
/// The type of a service provider's tag (IEEE 802.1ad, S-TAG).
pub const PROVIDER: u16 = 0x88a8;
/// Maximum number of a VLAN: 0 stands for none, and 4095 is reserved (section 9.6).
pub const MAX_ID: u16 = 4094;

/// A tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Tag {
    /// The type: [`CUSTOMER`] or [`PROVIDER`].
    pub kind: u16,
    /// The VLAN, 0 to 4095.
    pub id: u16,
}

/// The outermost tag of a frame; `None` of one that has none, or is too short.
#[inline]
pub fn tag(frame: &[u8]) -> Option<Tag> {
    let &[k0, k1, c0, c1] = frame.get(ethernet::HEADER - 2..)?.first_chunk::<TAG>()?;
    let kind = u16::from_be_bytes([k0, k1]);
    let id = u16::from_be_bytes([c0, c1]) & 0x0fff;
    matches!(kind, CUSTOMER | PROVIDER).then_some(Tag { kind, id })
}

/// Puts a tag, of priority 0, outermost into a frame that has an Ethernet header.
#[inline]
pub fn push(frame: &mut Buffer, tag: Tag) {
    frame.prepend(TAG);
    frame.copy_within(TAG..TAG + 12, 0);
    if let Some(bytes) = frame.get_mut(12..12 + TAG) {
        bytes[..2].copy_from_slice(&tag.kind.to_be_bytes());
        bytes[2..].copy_from_slice(&(tag.id & 0x0fff).to_be_bytes());
    }
}

/// Sets the VLAN of the outermost tag of a frame that has one; its priority stays.
#[inline]
pub fn set_id(frame: &mut [u8], id: u16) {
    if let Some(control) = frame.get_mut(ethernet::HEADER..).and_then(<[u8]>::first_chunk_mut::<2>) {
        *control = (u16::from_be_bytes(*control) & 0xf000 | id & 0x0fff).to_be_bytes();
    }
}

/// Takes the outermost tag off a frame that has one.
#[inline]
pub fn pop(frame: &mut Buffer) {
    frame.copy_within(0..12, TAG);
    frame.advance(TAG);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tags_go_on_and_come_off_outermost_first() {
        let bare = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x08\0packet";
        let mut frame = Buffer::copy_from(bare);
        let (inner, outer) = (Tag { kind: CUSTOMER, id: 7 }, Tag { kind: PROVIDER, id: 0xabc });
        push(&mut frame, inner);
        assert_eq!(&frame[..], b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x81\0\0\x07\x08\0packet");
        push(&mut frame, outer);
        assert_eq!(&frame[12..20], b"\x88\xa8\x0a\xbc\x81\0\0\x07");
        assert_eq!(tag(&frame), Some(outer));
        pop(&mut frame);
        assert_eq!(tag(&frame), Some(inner));
        pop(&mut frame);
        assert_eq!((&frame[..], tag(&frame)), (&bare[..], None));
    }

    #[test]
    fn another_number_leaves_the_priority() {
        let mut frame = *b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x81\0\xf0\x07\x08\0";
        set_id(&mut frame, 0xabc);
        assert_eq!(frame[12..16], [0x81, 0, 0xfa, 0xbc]);
        set_id(&mut frame[..15], 1);
        assert_eq!(frame[12..16], [0x81, 0, 0xfa, 0xbc]);
    }

    #[test]
    fn the_priority_is_no_part_of_the_number_and_short_frames_have_none() {
        let frame = b"\x02\0\0\0\0\x01\x02\0\0\0\0\x02\x81\0\xf0\x07\x08\0";
        assert_eq!(tag(frame), Some(Tag { kind: CUSTOMER, id: 7 }));
        assert_eq!(tag(&frame[..15]), None);
    }
}
