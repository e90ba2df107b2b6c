//! Formats of what the members of a group say to each other.
//!
//! Behind the tag of a lane a byte says what follows ([`Kind`]): a statement, or a datagram of the transport that
//! carries files or messages. Integers are in network byte order.
//!
//! An offer, from a sender to a member, asks what it has of these files:
//!
//! ```text
//! +---+-----------------+-----------------+------------------+-------+--------------+
//! | 1 | group (32 bits) | session (32)    | messages so far  | files | id (64) ...  |
//! +---+-----------------+-----------------+------------------+-------+--------------+
//! ```
//!
//! A receipt, from a member to a sender, says it:
//!
//! ```text
//! +---+-----------------+---------------+----------------+-----------+-----------+-------+-----------+
//! | 2 | group (32 bits) | instance (32) | session (32)   | last (32) | came (32) | files | entry ... |
//! +---+-----------------+---------------+----------------+-----------+-----------+-------+-----------+
//! entry: | id (64) | state | state 1 alone: ranges | first (32) | end (32) | ... |
//! ```
//!
//! The group is the hash of its name; a session numbers the runs of a sender, an instance those of a receiver. `last`
//! is the highest number of a message of the session that came, `came` how many did. States: 0 the member has all; 1 it
//! lacks these ranges of pieces; others are [`Refusal`]s.
//!
//! A piece of a file is a message of the transport, and a message of a program one of its datagrams:
//!
//! ```text
//! +-----------+---------+-----------+------------+---------------+------+-------+
//! | hash (64) | id (64) | size (64) | piece (32) | name's length | name | bytes |     hash: of all behind it
//! +-----------+---------+-----------+------------+---------------+------+-------+
//! +--------------+-------------+-------+
//! | session (32) | number (32) | bytes |                                               numbers begin with 1
//! +--------------+-------------+-------+
//! ```

use std::hash::Hasher;
use std::ops::Range;
use std::str;

use hopcast_core::Buffer;
use hopcast_core::bytes::{Malformed, Reader, Writer};
use siphasher::sip::SipHasher13;

/// Bytes of a piece but the last of a file. Chosen: a piece takes eight seconds at 64 kbit/s, which is how fine
/// progress is known; smaller ones cost more headers and receipts.
pub(crate) const PIECE: u64 = 64 << 10;
/// Maximum length of a file's name, in bytes. Chosen: below the 255 of Linux' file systems, so that a temporary name
/// fits too.
pub(crate) const MAX_NAME: usize = 200;
/// Maximum length of a piece with its header, in bytes.
pub(crate) const MAX_PIECE: u64 = PIECE + (PIECE_HEADER + MAX_NAME) as u64;
/// Bytes of a hash, and of the header of a piece without its name.
const SUM: usize = 8;
const PIECE_HEADER: usize = SUM + 8 + 8 + 4 + 1;
/// Maximum number of ranges of an entry. Chosen: after more, all the rest counts as missing, and is sent again.
pub(crate) const MAX_RANGES: usize = 8;
/// Maximum length of an entry of a receipt, in bytes.
const MAX_ENTRY: usize = 10 + 8 * MAX_RANGES;
/// Lengths of an offer and of a receipt without their files, in bytes.
const OFFER: usize = 14;
const RECEIPT: usize = 22;

/// The second byte of a datagram of a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A [`Statement`].
    Statement,
    /// A datagram of the transport of files.
    Files,
    /// A datagram of the transport of messages.
    Messages,
}

impl Kind {
    /// The kind with this byte.
    pub(crate) const fn of(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Self::Statement),
            1 => Some(Self::Files),
            2 => Some(Self::Messages),
            _ => None,
        }
    }

    pub(crate) const fn byte(self) -> u8 {
        match self {
            Self::Statement => 0,
            Self::Files => 1,
            Self::Messages => 2,
        }
    }
}

/// Why a member does not take a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It takes no files.
    NoFiles,
    /// The file's name cannot be one there.
    Name,
    /// The file is larger than its quota.
    TooLarge,
    /// Its quota is used up, or its disk is full.
    NoRoom,
    /// Its disk has failed.
    Disk,
}

impl Refusal {
    const ALL: [Self; 5] = [Self::NoFiles, Self::Name, Self::TooLarge, Self::NoRoom, Self::Disk];

    const fn byte(self) -> u8 {
        2 + self as u8
    }

    /// Whether the file may be taken later.
    pub(crate) const fn passes(self) -> bool {
        matches!(self, Self::NoRoom | Self::Disk)
    }

    /// A few words for a person.
    pub(crate) const fn words(self) -> &'static str {
        match self {
            Self::NoFiles => "takes no files",
            Self::Name => "cannot have the name",
            Self::TooLarge => "too large for its quota",
            Self::NoRoom => "no room",
            Self::Disk => "disk failed",
        }
    }
}

/// A member's pieces of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// All of it, under its name.
    Has,
    /// All but these pieces.
    Lacks(Vec<Range<u32>>),
    /// It does not take it.
    Refused(Refusal),
}

impl Standing {
    /// All but one range of pieces.
    pub(crate) fn lacks(pieces: Range<u32>) -> Self {
        Self::Lacks(std::iter::once(pieces).collect())
    }
}

/// A statement of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Statement {
    /// A sender asks.
    Offer { group: u32, session: u32, sent: u32, files: Vec<u64> },
    /// A receiver's report of the pieces that it has.
    Receipt { group: u32, instance: u32, heard: Heard, files: Vec<(u64, Standing)> },
}

/// The messages of a sender that came.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// The sender's session.
    pub(crate) session: u32,
    /// The highest number.
    pub(crate) last: u32,
    /// Number of those that came.
    pub(crate) came: u32,
}

/// A piece of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece<'a> {
    pub(crate) id: u64,
    /// Length of the file, in bytes.
    pub(crate) size: u64,
    pub(crate) piece: u32,
    pub(crate) name: &'a str,
    pub(crate) bytes: &'a [u8],
}

/// Number of pieces of a file; one of a file without bytes. `None` if they cannot be numbered.
pub(crate) fn pieces(size: u64) -> Option<u32> {
    u32::try_from(size.div_ceil(PIECE).max(1)).ok().filter(|&count| count < u32::MAX)
}

/// Length of a piece, in bytes.
pub(crate) fn piece_len(size: u64, piece: u32) -> u64 {
    size.saturating_sub(u64::from(piece) * PIECE).min(PIECE)
}

/// A hash that everybody can compute: against mishaps, not against attackers.
pub(crate) fn hash(parts: &[&[u8]]) -> u64 {
    let mut hasher = SipHasher13::new();
    for part in parts {
        hasher.write(&(part.len() as u64).to_be_bytes());
        hasher.write(part);
    }
    hasher.finish()
}

/// The hash of a single part that comes in pieces.
pub(crate) fn hash_joined(pieces: &[&[u8]]) -> u64 {
    let mut hasher = SipHasher13::new();
    let len: usize = pieces.iter().map(|piece| piece.len()).sum();
    hasher.write(&(len as u64).to_be_bytes());
    pieces.iter().for_each(|piece| hasher.write(piece));
    hasher.finish()
}

/// The number of a name on the wire, never 0.
pub(crate) fn number(name: &str) -> u32 {
    (hash(&[name.as_bytes()]) as u32).max(1)
}

/// Files that an offer has room for in a datagram of `room` bytes.
pub(crate) fn files_of_offer(room: usize) -> usize {
    (room.saturating_sub(OFFER) / 8).clamp(1, MAX_FILES)
}

/// Files that a receipt has room for, whatever their standings are.
pub(crate) fn files_of_receipt(room: usize) -> usize {
    (room.saturating_sub(RECEIPT) / MAX_ENTRY).clamp(1, MAX_FILES)
}

/// Files of a statement, which counts them in a byte.
const MAX_FILES: usize = 255;

impl Statement {
    pub(crate) fn parse(bytes: &[u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let statement = match reader.u8("statement")? {
            1 => {
                let (group, session) = (reader.u32("group")?, reader.u32("session")?);
                let (sent, count) = (reader.u32("messages")?, reader.u8("files")?);
                let files = (0..count).map(|_| reader.u64("file")).collect::<Result<_, _>>()?;
                Self::Offer { group, session, sent, files }
            }
            2 => {
                let (group, instance) = (reader.u32("group")?, reader.u32("instance")?);
                let session = reader.u32("session")?;
                let heard = Heard { session, last: reader.u32("last")?, came: reader.u32("came")? };
                let count = reader.u8("files")?;
                let files = (0..count).map(|_| entry(&mut reader)).collect::<Result<_, _>>()?;
                Self::Receipt { group, instance, heard, files }
            }
            _ => return Err(Malformed { field: "statement" }),
        };
        Malformed::unless(reader.is_empty(), "end")?;
        Ok(statement)
    }

    pub(crate) fn emit(&self) -> Buffer {
        let mut bytes = vec![0; OFFER.max(RECEIPT) + MAX_FILES * MAX_ENTRY];
        let all = bytes.len();
        let mut out = Writer::new(&mut bytes);
        match self {
            Self::Offer { group, session, sent, files } => {
                out.u8(1);
                [group, session, sent].into_iter().for_each(|&word| out.u32(word));
                out.u8(files.len() as u8);
                files.iter().for_each(|&id| out.u64(id));
            }
            Self::Receipt { group, instance, heard, files } => {
                out.u8(2);
                let words = [*group, *instance, heard.session, heard.last, heard.came];
                words.into_iter().for_each(|word| out.u32(word));
                out.u8(files.len() as u8);
                for (id, standing) in files {
                    out.u64(*id);
                    match standing {
                        Standing::Has => out.u8(0),
                        Standing::Refused(why) => out.u8(why.byte()),
                        Standing::Lacks(ranges) => {
                            out.u8(1);
                            out.u8(ranges.len() as u8);
                            for range in ranges {
                                out.u32(range.start);
                                out.u32(range.end);
                            }
                        }
                    }
                }
            }
        }
        let len = all - out.rest().len();
        Buffer::copy_from(&bytes[..len])
    }
}

fn entry(reader: &mut Reader<'_>) -> Result<(u64, Standing), Malformed> {
    let id = reader.u64("file")?;
    let standing = match reader.u8("state")? {
        0 => Standing::Has,
        1 => {
            let count = reader.u8("ranges")?;
            Malformed::unless((1..=MAX_RANGES as u8).contains(&count), "ranges")?;
            let mut ranges = Vec::new();
            let mut end = 0;
            for _ in 0..count {
                let range = reader.u32("range")?..reader.u32("range")?;
                Malformed::unless(range.start >= end && range.start < range.end, "range")?;
                end = range.end;
                ranges.push(range);
            }
            Standing::Lacks(ranges)
        }
        state => {
            let why = Refusal::ALL.into_iter().find(|why| why.byte() == state);
            Standing::Refused(why.ok_or(Malformed { field: "state" })?)
        }
    };
    Ok((id, standing))
}

impl<'a> Piece<'a> {
    pub(crate) fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = unsealed(bytes)?;
        let (id, size, piece) = (reader.u64("id")?, reader.u64("size")?, reader.u32("piece")?);
        let name = read_name(&mut reader)?;
        let bytes = reader.take_rest();
        Malformed::unless(pieces(size).is_some_and(|count| piece < count), "piece")?;
        Malformed::unless(bytes.len() as u64 == piece_len(size, piece), "bytes")?;
        Ok(Self { id, size, piece, name, bytes })
    }

    pub(crate) fn emit(&self) -> Buffer {
        sealed(PIECE_HEADER, self.name, self.bytes, |out| {
            out.u64(self.id);
            out.u64(self.size);
            out.u32(self.piece);
        })
    }
}

/// A part of a file behind the hash of all of it: fields, the length of the name, the name and the bytes. The header
/// has a length without the name; the name is one that `names::check` has passed.
pub(super) fn sealed(
    header: usize,
    name: &str,
    bytes: &[u8],
    fields: impl FnOnce(&mut Writer<'_>),
) -> Buffer {
    let mut head = vec![0; header + name.len()];
    let mut out = Writer::new(&mut head[SUM..]);
    fields(&mut out);
    out.u8(name.len() as u8);
    out.put(name.as_bytes());
    let mut buffer = Buffer::copy_from(&head);
    buffer.append(bytes);
    let sum = hash(&[&buffer[SUM..]]);
    buffer[..SUM].copy_from_slice(&sum.to_be_bytes());
    buffer
}

/// The fields of what was [`sealed`], if its hash is right.
pub(super) fn unsealed(bytes: &[u8]) -> Result<Reader<'_>, Malformed> {
    let mut reader = Reader::new(bytes);
    let sum = reader.u64("hash")?;
    Malformed::unless(hash(&[reader.rest()]) == sum, "hash")?;
    Ok(reader)
}

/// The name behind the fields of what was [`sealed`].
pub(super) fn read_name<'a>(reader: &mut Reader<'a>) -> Result<&'a str, Malformed> {
    let length = usize::from(reader.u8("name's length")?);
    str::from_utf8(reader.take(length, "name")?).map_err(|_| Malformed { field: "name" })
}

/// A message of a program: the session and number, and its bytes.
pub(crate) fn read_message(bytes: &[u8]) -> Result<(u32, u32, &[u8]), Malformed> {
    let mut reader = Reader::new(bytes);
    let (session, number) = (reader.u32("session")?, reader.u32("number")?);
    Malformed::unless(number > 0, "number")?;
    Ok((session, number, reader.take_rest()))
}

/// The opposite of [`read_message`].
pub(crate) fn write_message(session: u32, number: u32, mut message: Buffer) -> Buffer {
    let mut out = Writer::new(message.prepend(8));
    out.u32(session);
    out.u32(number);
    message
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn statements_and_pieces_come_as_they_were_written() {
        let files = vec![
            (1, Standing::Has),
            (u64::MAX, Standing::Lacks(vec![0..1, 5..u32::MAX])),
            (7, Standing::Refused(Refusal::NoRoom)),
        ];
        let heard = Heard { session: 9, last: 12, came: 11 };
        for statement in [
            Statement::Offer { group: 1, session: 2, sent: 3, files: vec![4; 255] },
            Statement::Receipt { group: 1, instance: 2, heard, files },
        ] {
            assert_eq!(Statement::parse(&statement.emit()), Ok(statement));
        }
        let piece = Piece { id: 1, size: PIECE + 2, piece: 1, name: "a", bytes: b"xy" };
        let emitted = piece.emit();
        assert_eq!(Piece::parse(&emitted), Ok(piece));
        let mut changed = emitted.to_vec();
        *changed.last_mut().unwrap() ^= 1;
        assert_eq!(Piece::parse(&changed), Err(Malformed { field: "hash" }));
        let message = write_message(5, 6, Buffer::copy_from(b"hello"));
        assert_eq!(read_message(&message), Ok((5, 6, &b"hello"[..])));
    }

    #[test]
    fn the_longest_statements_fit_their_datagram() {
        for room in [400, 1400, 8900] {
            let lacks = Standing::Lacks((0..MAX_RANGES as u32).map(|i| 2 * i..2 * i + 1).collect());
            let files = vec![(1, lacks); files_of_receipt(room)];
            let receipt = Statement::Receipt { group: 1, instance: 1, heard: Heard::default(), files };
            assert!(receipt.emit().len() <= room);
            let files = vec![1; files_of_offer(room)];
            assert!(Statement::Offer { group: 1, session: 1, sent: 1, files }.emit().len() <= room);
        }
    }

    #[test]
    fn pieces_cover_a_file() {
        for size in [0, 1, PIECE - 1, PIECE, PIECE + 1, 10 * PIECE] {
            let count = pieces(size).unwrap();
            assert_eq!((0..count).map(|piece| piece_len(size, piece)).sum::<u64>(), size);
        }
        assert_eq!(pieces(u64::MAX), None);
    }

    proptest! {
        #[test]
        fn no_bytes_are_a_trap(bytes in proptest::collection::vec(any::<u8>(), 0..200), start in 0..3u8) {
            let bytes = [&[start][..], &bytes].concat();
            if let Ok(statement) = Statement::parse(&bytes) {
                prop_assert_eq!(&statement.emit()[..], &bytes[..]);
            }
            let _ = Piece::parse(&bytes);
            let _ = read_message(&bytes);
            // A hash that is right, so that the rest is read.
            let sealed = [&hash(&[&bytes]).to_be_bytes()[..], &bytes].concat();
            let _ = Piece::parse(&sealed);
        }
    }
}
