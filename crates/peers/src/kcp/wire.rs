//! KCP's segments, as far as they are read before KCP reads them.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------------------------------------------------------+
//! |                             conv                              |
//! +---------------+---------------+-------------------------------+
//! |      cmd      |      frg      |              wnd              |
//! +---------------+---------------+-------------------------------+
//! |                              ts                               |
//! +---------------------------------------------------------------+
//! |                              sn                               |
//! +---------------------------------------------------------------+
//! |                              una                              |
//! +---------------------------------------------------------------+
//! |                              len                              |
//! +---------------------------------------------------------------+
//! |                         len bytes ...                         |
//! ```
//!
//! Little-endian (`ikcp.c`, `ikcp_encode_seg`). A datagram holds one segment or more, all of one conversation.

use hopcast_core::bytes::{Malformed, Reader, Writer};

/// The header's length in bytes (`ikcp.c`, `IKCP_OVERHEAD`).
pub(super) const HEADER: usize = 24;

/// Data (`ikcp.c`, `IKCP_CMD_PUSH`, as the next three: `_ACK`, `_WASK`, `_WINS`).
pub(super) const PUSH: u8 = 81;
/// An acknowledgement of `sn`, with the `ts` of the segment that it acknowledges.
pub(super) const ACK: u8 = 82;
/// Asks for the window.
pub(super) const ASK: u8 = 83;
/// Announces the window; the last of KCP's own commands.
const TELL: u8 = 84;
/// Ends both directions. Not one of KCP's, which has no such thing; alone in its datagram.
pub(super) const RESET: u8 = TELL + 1;

/// One segment of a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    pub conv: u32,
    pub command: u8,
    pub window: u16,
    pub ts: u32,
    pub sn: u32,
    pub una: u32,
    pub len: usize,
}

impl Segment {
    /// A bare header, where the machine answers by itself.
    pub(super) fn emit(&self) -> [u8; HEADER] {
        let mut header = [0; HEADER];
        let mut to = Writer::new(&mut header);
        to.u32_le(self.conv);
        to.put(&[self.command, 0]);
        to.u16_le(self.window);
        to.u32_le(self.ts);
        to.u32_le(self.sn);
        to.u32_le(self.una);
        header
    }

    /// The segment that ends conversation `conv`.
    pub(super) const fn reset(conv: u32) -> Self {
        Self { conv, command: RESET, window: 0, ts: 0, sn: 0, una: 0, len: 0 }
    }

    /// Takes one segment off the front; fragments are refused, since a stream has none.
    fn parse(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (conv, command) = (reader.u32_le("conv")?, reader.u8("cmd")?);
        Malformed::unless((PUSH..=RESET).contains(&command), "cmd")?;
        Malformed::unless(reader.u8("frg")? == 0, "frg")?;
        let (window, ts) = (reader.u16_le("wnd")?, reader.u32_le("ts")?);
        let (sn, una, len) = (reader.u32_le("sn")?, reader.u32_le("una")?, reader.u32_le("len")? as usize);
        // Only data has a payload.
        Malformed::unless(len == 0 || command == PUSH, "len")?;
        reader.take(len, "len")?;
        Ok(Self { conv, command, window, ts, sn, una, len })
    }
}

/// A datagram that has been read through: segments of one conversation, and nothing else.
#[derive(Clone, Copy, Debug)]
pub(super) struct Packet<'a> {
    bytes: &'a [u8],
    first: Segment,
}

impl<'a> Packet<'a> {
    /// Reads a datagram.
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let first = Segment::parse(&mut reader)?;
        Malformed::unless(first.command != RESET || reader.is_empty(), "cmd")?;
        while !reader.is_empty() {
            let segment = Segment::parse(&mut reader)?;
            Malformed::unless(segment.conv == first.conv, "conv")?;
            Malformed::unless(segment.command != RESET, "cmd")?;
        }
        Ok(Self { bytes, first })
    }

    pub(super) fn conv(&self) -> u32 {
        self.first.conv
    }

    pub(super) fn is_reset(&self) -> bool {
        self.first.command == RESET
    }

    pub(super) fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    pub(super) fn segments(&self) -> impl Iterator<Item = Segment> + use<'a> {
        let mut reader = Reader::new(self.bytes);
        core::iter::from_fn(move || Segment::parse(&mut reader).ok())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As `ikcp_encode_seg` writes it: conversation 0x11223344, data, window 128, time 1000, number 7, all before 5.
    const SEGMENT: [u8; 27] = [
        0x44, 0x33, 0x22, 0x11, 81, 0, 128, 0, 0xE8, 3, 0, 0, 7, 0, 0, 0, 5, 0, 0, 0, 3, 0, 0, 0, b'a', b'b',
        b'c',
    ];

    #[test]
    fn segments_are_read_one_after_another() {
        let bytes = [SEGMENT, SEGMENT].concat();
        let packet = Packet::parse(&bytes).unwrap();
        let expected =
            Segment { conv: 0x1122_3344, command: PUSH, window: 128, ts: 1000, sn: 7, una: 5, len: 3 };
        assert_eq!(packet.segments().collect::<Vec<_>>(), [expected; 2]);
        assert_eq!(expected.emit()[..20], SEGMENT[..20]);
    }

    #[test]
    fn what_is_cut_off_or_unknown_is_malformed() {
        let fault = |bytes: &[u8]| Packet::parse(bytes).unwrap_err().field;
        let fields = ["conv", "cmd", "frg", "wnd", "ts", "sn", "una", "len"];
        let lengths = [4, 1, 1, 2, 4, 4, 4, 4 + 3];
        let cut_off = fields.into_iter().zip(lengths).flat_map(|(field, len)| (0..len).map(move |_| field));
        for (len, field) in cut_off.enumerate() {
            assert_eq!(fault(&SEGMENT[..len]), field, "{len}");
        }
        for (at, value, field) in [
            (4, 80, "cmd"),
            (4, 86, "cmd"),
            (4, ACK, "len"),
            (5, 1, "frg"),
            // The byte that is left over is no segment of its own.
            (20, 2, "conv"),
            (20, 4, "len"),
            (23, 0xFF, "len"),
        ] {
            let mut bytes = SEGMENT;
            bytes[at] = value;
            assert_eq!(fault(&bytes), field, "{value} at {at}");
        }
    }

    #[test]
    fn commands_are_those_of_kcp_and_a_reset_behind_them() {
        // `ikcp.c`: IKCP_CMD_PUSH, IKCP_CMD_ACK, IKCP_CMD_WASK, IKCP_CMD_WINS.
        assert_eq!([PUSH, ACK, ASK, TELL, RESET], [81, 82, 83, 84, 85]);
        let known = |command| Packet::parse(&Segment { command, ..Segment::reset(1) }.emit()).is_ok();
        assert_eq!([80, 81, 82, 83, 84, 85, 86].map(known), [false, true, true, true, true, true, false]);
    }

    #[test]
    fn a_reset_is_alone() {
        let reset = Segment::reset(1).emit();
        assert!(Packet::parse(&reset).unwrap().is_reset());
        assert_eq!(Packet::parse(&[reset, reset].concat()).unwrap_err().field, "cmd");
    }
}
