//! The form of a record; see the [format](super).

use super::{Layer, MAX_STORED};

/// The beginning of a log: a name and the version of its format.
pub(crate) const MAGIC: [u8; 16] = *b"hopcast log 3\n\0\0";
/// Maximum length of a record's header, in bytes: a kind, three bytes, a reason, a time, and six numbers of 32 bits.
pub(crate) const MAX_HEADER: usize = 1 + 3 + 3 + 10 + 6 * 5;

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

/// The bits of the first byte that say the kind; those above say how the content is given.
const KIND: u8 = 0x1f;
const GIVEN_SHIFT: u32 = 5;

/// How a record gives its content.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Given {
    /// It has none, or refers to an earlier one.
    Before,
    /// The record defines it: its bytes follow.
    Whole {
        /// Number of its bytes that follow.
        stored: u8,
    },
    /// The record defines it as the content of its cause with other bytes in front; its last byte is that of the cause.
    Derived {
        /// Number of its bytes that are stored.
        stored: u8,
        /// Number of the first of them, which follow; those behind are the cause's.
        front: u8,
        /// Number of the last of them, which follow too: of the cause they are not stored.
        back: u8,
    },
}

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
    pub(crate) given: Given,
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
            given: Given::Before,
        }
    }

    /// Number of bytes behind the header.
    pub(crate) fn body_len(&self) -> usize {
        match (self.kind, self.given) {
            (kind::PLACE | kind::REASON | kind::NAMED, _) => self.length as usize,
            (_, Given::Before) => 0,
            (_, Given::Whole { stored }) => stored.into(),
            (_, Given::Derived { front, back, .. }) => usize::from(front) + usize::from(back),
        }
    }
}

/// The state that writer and reader share: numbers are written as differences from it.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Coder {
    /// The time of the last record.
    at: u64,
    /// Number of contents so far.
    pub(crate) contents: u32,
}

impl Coder {
    /// Writes a header to the beginning of `into`, and counts the content that it defines: its number is the next one.
    /// Returns how long the header is.
    #[inline(always)]
    pub(crate) fn encode(&mut self, record: &Record, into: &mut [u8; MAX_HEADER]) -> usize {
        let mut header = Header { bytes: into, len: 0 };
        let layer = record.layer as u8;
        let given = match record.given {
            Given::Before => u8::from(record.content != 0 && record.kind != kind::TRUNCATED),
            Given::Whole { .. } => 2 + layer,
            Given::Derived { .. } => 5 + layer,
        };
        header.byte(record.kind | given << GIVEN_SHIFT);
        match record.kind {
            kind::PLACE | kind::REASON | kind::NAMED => {
                header.number(record.place.into());
                header.number(record.length.into());
                return header.len;
            }
            _ => header.number(zigzag(record.at.wrapping_sub(self.at).cast_signed())),
        }
        self.at = record.at;
        if record.kind == kind::TRUNCATED {
            [record.aux, record.content, record.cause]
                .into_iter()
                .for_each(|number| header.number(number.into()));
            return header.len;
        }
        header.number(record.place.into());
        match record.kind {
            kind::ARRIVED | kind::ENDED => header.number(record.aux.rotate_left(1).into()),
            kind::HANDED_ON => {
                header.number(record.aux.rotate_left(1).into());
                let back = if record.cause == 0 { 0 } else { self.contents.wrapping_sub(record.cause) + 1 };
                header.number(back.into());
            }
            kind::DELIVERED => {
                header.number(zigzag(i64::from(record.aux.wrapping_sub(record.place).cast_signed())));
            }
            kind::DROPPED => header.number(record.aux.into()),
            _ => {}
        }
        if matches!(record.kind, kind::DROPPED | kind::ENDED) {
            header.number(record.reason.into());
        }
        match record.given {
            Given::Before if record.content != 0 => {
                header.number(self.contents.wrapping_sub(record.content).into());
            }
            Given::Before => {}
            Given::Whole { stored } => {
                header.number(record.length.into());
                header.byte(stored);
                self.contents += 1;
            }
            Given::Derived { stored, front, back } => {
                header.number(record.length.into());
                [stored, front, back].into_iter().for_each(|number| header.byte(number));
                self.contents += 1;
            }
        }
        header.len
    }

    /// Reads the header at the beginning of these bytes, and counts the content that it defines; also says how long it
    /// is. `None` if it is not whole, or refers to what is not there.
    #[inline]
    pub(crate) fn decode(&mut self, bytes: &[u8]) -> Option<(Record, usize)> {
        let mut fields = Fields { bytes, next: 0 };
        let first = fields.byte()?;
        let mut record = Record::of(first & KIND, 0, 0);
        let given = first >> GIVEN_SHIFT;
        match record.kind {
            kind::PLACE | kind::REASON | kind::NAMED => {
                (record.place, record.length) = (fields.u32()?, fields.u32()?);
                return Some((record, fields.next));
            }
            kind::TRUNCATED | kind::ARRIVED..=kind::OFFERED => {}
            _ => return None,
        }
        record.at = self.at.wrapping_add(unzigzag(fields.number()?).cast_unsigned());
        self.at = record.at;
        if record.kind == kind::TRUNCATED {
            (record.aux, record.content, record.cause) = (fields.u32()?, fields.u32()?, fields.u32()?);
            return Some((record, fields.next));
        }
        record.place = fields.u32()?;
        match record.kind {
            kind::ARRIVED | kind::ENDED => record.aux = fields.u32()?.rotate_right(1),
            kind::HANDED_ON => {
                record.aux = fields.u32()?.rotate_right(1);
                let back = fields.u32()?;
                if back != 0 {
                    record.cause = self.contents.checked_sub(back - 1).filter(|&cause| cause != 0)?;
                }
            }
            kind::DELIVERED => {
                let from = i32::try_from(unzigzag(fields.number()?)).ok()?;
                record.aux = record.place.wrapping_add_signed(from);
            }
            kind::DROPPED => record.aux = fields.u32()?,
            _ => {}
        }
        if matches!(record.kind, kind::DROPPED | kind::ENDED) {
            record.reason = u16::try_from(fields.number()?).ok()?;
        }
        match given {
            0 => return Some((record, fields.next)),
            1 => {
                record.content = self.contents.checked_sub(fields.u32()?).filter(|&content| content != 0)?;
                return Some((record, fields.next));
            }
            2..=4 => {
                record.length = fields.u32()?;
                record.given = Given::Whole { stored: fields.stored()? };
            }
            _ => {
                record.length = fields.u32()?;
                let (stored, front, back) = (fields.stored()?, fields.byte()?, fields.byte()?);
                record.given = Given::Derived { stored, front, back };
            }
        }
        record.layer = match (given - 2) % 3 {
            0 => Layer::Frame,
            1 => Layer::Packet,
            _ => Layer::Payload,
        };
        self.contents = self.contents.checked_add(1)?;
        record.content = self.contents;
        Some((record, fields.next))
    }
}

/// A header that is being written.
struct Header<'b> {
    bytes: &'b mut [u8; MAX_HEADER],
    len: usize,
}

impl Header<'_> {
    #[inline]
    const fn byte(&mut self, byte: u8) {
        self.bytes[self.len] = byte;
        self.len += 1;
    }

    /// Seven bits a byte, the lowest first, with the highest bit set in all but the last (LEB128).
    #[inline]
    const fn number(&mut self, mut number: u64) {
        while number >= 0x80 {
            self.byte(number as u8 | 0x80);
            number >>= 7;
        }
        self.byte(number as u8);
    }
}

/// The fields of a header that is being read.
struct Fields<'b> {
    bytes: &'b [u8],
    next: usize,
}

impl Fields<'_> {
    #[inline]
    fn byte(&mut self) -> Option<u8> {
        let byte = *self.bytes.get(self.next)?;
        self.next += 1;
        Some(byte)
    }

    /// The number of bytes that a log has of a content.
    #[inline]
    fn stored(&mut self) -> Option<u8> {
        self.byte().filter(|&stored| usize::from(stored) <= MAX_STORED)
    }

    #[inline]
    fn number(&mut self) -> Option<u64> {
        let first = self.byte()?;
        if first < 0x80 {
            return Some(first.into());
        }
        let mut number = u64::from(first & 0x7f);
        for shift in (7..64).step_by(7) {
            let byte = self.byte()?;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    #[inline]
    fn u32(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }
}

/// A signed number as one that is small wherever the signed one is near 0.
const fn zigzag(number: i64) -> u64 {
    (number << 1 ^ number >> 63).cast_unsigned()
}

const fn unzigzag(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_read_as_they_were_written() {
        let port = 1 << 31 | 3;
        let sent = Record { content: 5, ..Record::of(kind::SENT, 1 << 60, 7) };
        let mut handed_on = Record { aux: port, cause: 10, content: 11, length: u32::MAX, ..sent };
        (handed_on.kind, handed_on.layer) = (kind::HANDED_ON, Layer::Payload);
        handed_on.given = Given::Derived { stored: 128, front: 26, back: 14 };
        let whole = Given::Whole { stored: 64 };
        let records = [
            Record { length: 70, ..Record::of(kind::PLACE, 0, 300) },
            sent,
            Record { at: 9, place: u32::MAX, ..sent },
            Record { kind: kind::DELIVERED, aux: 2, ..sent },
            Record { kind: kind::DROPPED, aux: u32::MAX, reason: u16::MAX, ..sent },
            Record { kind: kind::ENDED, aux: port, reason: 1, content: 0, ..sent },
            handed_on,
            Record { kind: kind::SEEN, content: 12, length: 70, layer: Layer::Packet, given: whole, ..sent },
            Record { cause: 12, content: 13, ..handed_on },
            Record {
                cause: 0,
                content: 10,
                length: 0,
                layer: Layer::Frame,
                given: Given::Before,
                ..handed_on
            },
            Record { aux: 1, content: u32::MAX, cause: 7, ..Record::of(kind::TRUNCATED, 3, 0) },
        ];
        let mut writer = Coder { at: 0, contents: 10 };
        let mut reader = writer;
        for record in records {
            let mut header = [0; MAX_HEADER];
            let len = writer.encode(&record, &mut header);
            let bytes = &header[..len];
            for len in 0..bytes.len() {
                assert_eq!(reader.clone().decode(&bytes[..len]), None, "{record:?}");
            }
            assert_eq!(reader.decode(bytes), Some((record, bytes.len())));
        }
        let longest = Record { at: 1 << 63, reason: u16::MAX, ..handed_on };
        assert!(Coder { at: 0, contents: u32::MAX - 1 }.encode(&longest, &mut [0; MAX_HEADER]) <= MAX_HEADER);
    }
}
