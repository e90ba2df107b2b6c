//! Our own header of a unit: what it is.
//!
//! ```text
//! datagram: 0, bytes
//! message:  1, length of the name (16 bits), name, bytes; a name makes it a file
//! stream:   2, number of the stream (16 bits), bytes
//! its end:  3, number of the stream (16 bits), bytes
//! ```

use hopcast_core::bytes::{Malformed, Reader};

const DATAGRAM: u8 = 0;
const MESSAGE: u8 = 1;
const STREAM: u8 = 2;
const END: u8 = 3;

/// Length of the header of streams and of nameless messages; that of datagrams is shorter.
pub(super) const HEADER_LEN: usize = 3;

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

pub(super) fn stream_header(number: u16, is_end: bool) -> [u8; HEADER_LEN] {
    let [high, low] = number.to_be_bytes();
    [if is_end { END } else { STREAM }, high, low]
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
        let end = [&stream_header(0x0102, true)[..], b"x"].concat();
        assert_eq!(Unit::read(&end), Ok(Unit::Stream { number: 0x0102, bytes: b"x", is_end: true }));
        for (bytes, field) in
            [(&b""[..], "unit kind"), (b"\x01\0", "unit name"), (b"\x01\0\x01", "unit name")]
        {
            assert_eq!(Unit::read(bytes).unwrap_err().field, field);
        }
        assert_eq!(Unit::read(b"\x02\0").unwrap_err().field, "unit stream");
        assert_eq!(Unit::read(b"\x04").unwrap_err().field, "unit kind");
    }
}
