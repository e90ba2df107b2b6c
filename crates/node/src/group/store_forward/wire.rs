//! Formats of what the members of a group publish.
//!
//! Behind the tag of a lane and a byte with the kind is a datagram of the transport. What it brings whole is a file:
//!
//! ```text
//! +-----------+----------------+---------+--------------+---------------+------+-------+
//! | hash (64) | publisher (32) | id (64) | changed (64) | name's length | name | bytes |   hash: of all behind it
//! +-----------+----------------+---------+--------------+---------------+------+-------+
//! ```
//!
//! or a message of a program:
//!
//! ```text
//! +----------------+-------+
//! | publisher (32) | bytes |
//! +----------------+-------+
//! ```
//!
//! The publisher is the hash of its site's name: what comes may be brought by any other. A file has changed that many
//! nanoseconds after 1970, by its publisher's clock. Integers are in network byte order.

use hopcast_core::Buffer;
use hopcast_core::bytes::{Malformed, Reader};

use crate::group::wire::{read_name, sealed, unsealed};

/// Bytes of a file's header without its name.
const HEADER: usize = 8 + 4 + 8 + 8 + 1;
/// Bytes of a message's header.
pub(super) const PUBLISHER: usize = 4;

/// Bytes of a published file beside its own, with a name of this length.
pub(super) const fn overhead(name: usize) -> u64 {
    (HEADER + name) as u64
}

/// A file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct File<'a> {
    pub(super) publisher: u32,
    pub(super) id: u64,
    pub(super) changed: u64,
    pub(super) name: &'a str,
    pub(super) bytes: &'a [u8],
}

impl<'a> File<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = unsealed(bytes)?;
        let (publisher, id, changed) = (reader.u32("publisher")?, reader.u64("id")?, reader.u64("changed")?);
        let name = read_name(&mut reader)?;
        Ok(Self { publisher, id, changed, name, bytes: reader.take_rest() })
    }

    /// The bytes; the name is one that `names::check` has passed.
    pub(super) fn emit(&self) -> Buffer {
        sealed(HEADER, self.name, self.bytes, |out| {
            out.u32(self.publisher);
            out.u64(self.id);
            out.u64(self.changed);
        })
    }
}

/// A message of a program: its publisher and its bytes.
pub(super) fn read_message(bytes: &[u8]) -> Result<(u32, &[u8]), Malformed> {
    let mut reader = Reader::new(bytes);
    Ok((reader.u32("publisher")?, reader.take_rest()))
}

/// The opposite of [`read_message`].
pub(super) fn write_message(publisher: u32, mut message: Buffer) -> Buffer {
    message.prepend(PUBLISHER).copy_from_slice(&publisher.to_be_bytes());
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::group::wire::hash;
    use proptest::prelude::*;

    #[test]
    fn files_and_messages_come_as_they_were_written() {
        let file = File { publisher: 7, id: u64::MAX, changed: 5, name: "Seekarte Ä.pdf", bytes: b"xy" };
        let emitted = file.emit();
        assert_eq!(File::parse(&emitted), Ok(file.clone()));
        assert_eq!(emitted.len() as u64, overhead(file.name.len()) + 2);
        for place in 0..emitted.len() {
            let mut changed = emitted.to_vec();
            changed[place] ^= 1;
            assert_eq!(File::parse(&changed), Err(Malformed { field: "hash" }));
        }
        let message = write_message(5, Buffer::copy_from(b"hello"));
        assert_eq!(read_message(&message), Ok((5, &b"hello"[..])));
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_trap(bytes in proptest::collection::vec(any::<u8>(), 0..100)) {
            let _ = read_message(&bytes);
            let sealed = [&hash(&[&bytes]).to_be_bytes()[..], &bytes].concat();
            if let Ok(file) = File::parse(&sealed) {
                prop_assert_eq!(&file.emit()[..], &sealed[..]);
            }
        }
    }
}
