//! The object of a message: its metadata, which say what it is to anybody who holds it, and its payload.

use core::hash::Hasher as _;
use std::sync::Arc;

use hopcast_core::bytes::{Malformed, Reader, put_varint};
use siphasher::sip::SipHasher13;

use super::config::Group;

/// Metadata of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Metadata {
    /// The group that it was published to.
    pub group: Group,
    /// Its name, if it has one: of a file, the file's name.
    pub name: Option<Arc<[u8]>>,
    /// Whether it is a datagram.
    pub is_datagram: bool,
    /// Number of messages before it that make it understood.
    pub history: u32,
}

const DATAGRAM: u8 = 1;
const NAMED: u8 = 2;

/// Maximum length of a group's or a message's name, in bytes.
pub const MAX_NAME: usize = 255;
/// Maximum number of bytes of an object before its payload.
pub(super) const MAX_METADATA: usize = 1 + 2 * (1 + MAX_NAME) + 8;

impl Metadata {
    /// The bytes of an object before its payload.
    pub(super) fn emit(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(16 + self.group.len());
        let named = if self.name.is_some() { NAMED } else { 0 };
        out.push(named | if self.is_datagram { DATAGRAM } else { 0 });
        for text in [Some(&self.group), self.name.as_ref()].into_iter().flatten() {
            out.push(text.len().min(MAX_NAME) as u8);
            out.extend(&text[..text.len().min(MAX_NAME)]);
        }
        put_varint(self.history.into(), &mut out);
        out
    }

    /// Metadata and payload of an object.
    pub(super) fn parse(object: &[u8]) -> Result<(Self, &[u8]), Malformed> {
        let mut reader = Reader::new(object);
        let flags = reader.u8("flags of metadata")?;
        Malformed::unless(flags & !(DATAGRAM | NAMED) == 0, "flags of metadata")?;
        let mut text = |field| {
            let len = reader.u8(field)?;
            reader.take(len.into(), field).map(Arc::from)
        };
        let group = text("group's name")?;
        let name = if flags & NAMED == 0 { None } else { Some(text("name")?) };
        let history = reader.varint("history")?;
        let history = u32::try_from(history).map_err(|_| Malformed { field: "history" })?;
        Ok((Self { group, name, is_datagram: flags & DATAGRAM != 0, history }, reader.take_rest()))
    }
}

/// Tag that stands for a group's name in packets. Of two groups whose names have one tag, the metadata tell which it
/// is.
pub(super) fn tag(group: &[u8]) -> u32 {
    hash(0, [group])
}

/// Checksum of an object.
pub(super) fn digest(object: &[u8]) -> u32 {
    hash(1, [object])
}

/// Checksum of an object in pieces.
pub(super) fn digest_of<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> u32 {
    hash(1, pieces)
}

fn hash<'a>(key: u64, pieces: impl IntoIterator<Item = &'a [u8]>) -> u32 {
    let mut hasher = SipHasher13::new_with_keys(key, 0);
    pieces.into_iter().for_each(|bytes| hasher.write(bytes));
    hasher.finish() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_come_back_and_what_is_wrong_in_them_is_named() {
        for (name, is_datagram) in [(None, true), (Some(Arc::from(&b"map.png"[..])), false)] {
            let metadata = Metadata { group: b"recon"[..].into(), name, is_datagram, history: 300 };
            let object = [&metadata.emit()[..], b"bytes"].concat();
            assert_eq!(Metadata::parse(&object), Ok((metadata, &b"bytes"[..])));
        }
        let wrong = |bytes: &[u8]| Metadata::parse(bytes).unwrap_err().field;
        assert_eq!(wrong(&[]), "flags of metadata");
        assert_eq!(wrong(&[4]), "flags of metadata");
        assert_eq!(wrong(&[0, 5, b'a']), "group's name");
        assert_eq!(wrong(&[2, 1, b'a', 9]), "name");
        assert_eq!(wrong(&[0, 1, b'a', 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF]), "history");
    }

    #[test]
    fn a_group_and_an_object_of_the_same_bytes_differ() {
        assert_ne!(tag(b"recon"), digest(b"recon"));
        assert_ne!(digest(b"recon"), digest(b"recom"));
        for cut in 0..=5 {
            let (first, rest) = b"recon".split_at(cut);
            assert_eq!(digest_of([first, rest]), digest(b"recon"));
        }
    }
}
