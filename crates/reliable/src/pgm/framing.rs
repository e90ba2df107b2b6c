//! Our own header of a unit: what it is.
//!
//! ```text
//! datagram: 0, bytes
//! message:  1, length of the name (16 bits), name, bytes; a name makes it a file
//! stream:   64 and its number, bytes                    if the number is less than 64
//! its end:  128 and its number, bytes
//! stream:   2, number of the stream (16 bits), bytes    otherwise
//! its end:  3, number of the stream (16 bits), bytes
//! ```

use hopcast_core::bytes::{Malformed, Reader};

const DATAGRAM: u8 = 0;
const MESSAGE: u8 = 1;
const STREAM: u8 = 2;
const END: u8 = 3;
/// First byte of a stream with a short number, and of its end, without that number.
const SHORT_STREAM: u8 = 64;
const SHORT_END: u8 = 128;
/// Numbers that fit into the first byte.
const SHORT: u16 = 64;

/// A unit without its header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit<'a> {
    Datagram(&'a [u8]),
    Message { name: Option<&'a [u8]>, bytes: &'a [u8] },
    Stream { number: u16, bytes: &'a [u8], is_end: bool },
}

impl<'a> Unit<'a> {
    pub(super) fn read(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        Ok(match reader.u8("unit kind")? {
            DATAGRAM => Self::Datagram(reader.rest()),
            MESSAGE => {
                let len = reader.u16("unit name")?;
                let name = reader.take(len.into(), "unit name")?;
                Self::Message { name: (!name.is_empty()).then_some(name), bytes: reader.rest() }
            }
            kind @ (STREAM | END) => {
                let number = reader.u16("unit stream")?;
                Self::Stream { number, bytes: reader.rest(), is_end: kind == END }
            }
            kind @ (SHORT_STREAM..=127 | SHORT_END..=191) => {
                let number = u16::from(kind) % SHORT;
                Self::Stream { number, bytes: reader.rest(), is_end: kind >= SHORT_END }
            }
            _ => return Err(Malformed { field: "unit kind" }),
        })
    }
}

/// Whether a unit that begins with these bytes is a message, which need not wait for those before it.
pub(super) fn is_message(start: &[u8]) -> bool {
    start.first() == Some(&MESSAGE)
}

pub(super) fn datagram(bytes: &[u8]) -> Vec<u8> {
    [&[DATAGRAM], bytes].concat()
}

/// A message; `None` if its name is too long.
pub(super) fn message(name: Option<&[u8]>, bytes: &[u8]) -> Option<Vec<u8>> {
    let name = name.unwrap_or(&[]);
    let len = u16::try_from(name.len()).ok()?;
    Some([&[MESSAGE], &len.to_be_bytes()[..], name, bytes].concat())
}

/// Length of the header of a stream's packets.
pub(super) const fn stream_header_len(number: u16) -> usize {
    if number < SHORT { 1 } else { 3 }
}

/// Writes the header of a packet of a stream.
pub(super) fn put_stream_header(into: &mut Vec<u8>, number: u16, is_end: bool) {
    if number < SHORT {
        into.push(number as u8 | if is_end { SHORT_END } else { SHORT_STREAM });
    } else {
        into.push(if is_end { END } else { STREAM });
        into.extend(number.to_be_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_what_was_written_and_errors_name_the_field() {
        assert_eq!(Unit::read(&datagram(b"abc")), Ok(Unit::Datagram(b"abc")));
        let file = message(Some(b"name"), b"bytes").unwrap();
        assert!(is_message(&file));
        assert_eq!(Unit::read(&file), Ok(Unit::Message { name: Some(b"name"), bytes: b"bytes" }));
        assert_eq!(message(Some(&[0; 1 << 16]), b""), None);
        for (number, is_end) in [(0, false), (63, true), (64, false), (0x0102, true)] {
            let mut packet = Vec::new();
            put_stream_header(&mut packet, number, is_end);
            assert_eq!(packet.len(), stream_header_len(number));
            packet.push(b'x');
            assert_eq!(Unit::read(&packet), Ok(Unit::Stream { number, bytes: b"x", is_end }));
        }
        for (bytes, field) in
            [(&b""[..], "unit kind"), (b"\x01\0", "unit name"), (b"\x01\0\x01", "unit name")]
        {
            assert_eq!(Unit::read(bytes).unwrap_err().field, field);
        }
        assert_eq!(Unit::read(b"\x02\0").unwrap_err().field, "unit stream");
        for kind in [b"\x04", b"\xc0"] {
            assert_eq!(Unit::read(kind).unwrap_err().field, "unit kind");
        }
    }
}
