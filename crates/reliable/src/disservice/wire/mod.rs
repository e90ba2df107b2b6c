//! The packets. Their fields are those of DisService; the format is our own, since its own names each node in text.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |     kind      |     flags     |         transmission          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                        sender's node                          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |         sender's run          |       kind's own fields ...
//! ```
//!
//! - **0x61, data**: message (see below), length (varint), fragment (16), chunk (8), digest (32), and the remaining
//!   lifetime in ms (32) if flagged. Then the number of a fragment (varint) and its bytes; or, if flagged, the number
//!   of a chunk (varint), a coefficient for each of its fragments, and the bytes of the combination. Of a message that
//!   is one full chunk, a combination may be flagged 0x40: in place of the length and the fragment's it then has the
//!   bytes (varint) by which the last fragment is shorter than the combination, and no number of the chunk.
//! - **0x62, request**: neighbours (16), number of the server's transmission that was heard last (16), count (8) and
//!   identities of servers: the one that is to answer and those that were asked before; wants.
//! - **0x63, summary**: neighbours (16), count (8) and nodes (32) of neighbours, series.
//!
//! Each packet of a member has the next number of a **transmission**: a request says which one of the server was heard
//! last, so that what is under way is not sent again.
//!
//! A **message** is named by its group (32), publisher (48; left out in data if it is the sender) and sequence number
//! (varint).
//!
//! A **want** is its form (8), a message, and the missing part; flagged 0x80, its message is of the series of the want
//! before, and only the difference of their numbers is said (varint). The part is in form 0 a count (varint) of whole
//! messages from this one on; in form 1 runs; in form 2 a chunk (varint), how many combinations (varint), and the
//! unknown fragments: the first (varint), a number of bytes (8), and as many of bits from that one on. Form 3 is of a
//! message's first chunk: how many combinations, less one, are the bits 0x7C of the form, and the unknown fragments
//! those of a varint, the lowest for the first. Runs are a count (varint) and, for each, the numbers between it and
//! what is before it, and its length less one (varints).
//!
//! A **series** is a group (32), publisher (48), flags (8), the newest sequence number (varint) and runs of sequence
//! numbers of whole messages that the sender holds; if flagged, then the first of the numbers that these speak of and
//! how many there are (varints).

mod request;
mod summary;
#[cfg(test)]
mod tests;

use hopcast_core::bytes::{Malformed, Reader, put_varint};

pub use crate::member_id::MemberId;
pub use request::{MAX_RUNS, MAX_SERVERS, MAX_WANTS, Missing, Request, Want};
pub use summary::{MAX_HEARD, MAX_HELD, MAX_SERIES, Series, Summary};

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// Part of a message.
    Data(Data<'a>),
    /// A request for what its sender lacks (missing fragment request).
    Request(Request),
    /// A summary of what its sender knows and holds (world state).
    Summary(Summary),
}

/// Sender of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Who sends it.
    pub member: MemberId,
    /// Number of the transmission, which wraps around.
    pub transmission: u16,
}

/// Name of a message: unlike that of any other.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId {
    /// Tag of the group that it was published to.
    pub group: u32,
    /// Who published it.
    pub publisher: MemberId,
    /// Its number among the publisher's messages to the group.
    pub sequence: u32,
}

/// Properties of a message that all of its packets repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shape {
    /// Bytes of its object: its metadata and its payload.
    pub length: u32,
    /// Bytes of each fragment but the last, at least 1.
    pub fragment: u16,
    /// Fragments of each chunk but the last, at least 1: those that are combined with each other.
    pub chunk: u8,
    /// Checksum of its object.
    pub digest: u32,
}

impl Shape {
    /// Number of fragments.
    pub const fn fragments(self) -> u32 {
        let fragments = self.length.div_ceil(self.fragment as u32);
        if fragments == 0 { 1 } else { fragments }
    }

    /// Bytes of a fragment.
    pub fn fragment_len(self, index: u32) -> usize {
        let before = u64::from(index) * u64::from(self.fragment);
        u64::from(self.length).saturating_sub(before).min(u64::from(self.fragment)) as usize
    }

    /// Whether all its fragments make one chunk, which is full.
    fn is_one_chunk(self) -> bool {
        self.length > 0 && self.fragments() == u32::from(self.chunk)
    }

    /// Chunk of a fragment.
    pub fn chunk_of(self, index: u32) -> u32 {
        index / u32::from(self.chunk)
    }

    /// Numbers of the fragments of a chunk.
    pub fn fragments_of(self, chunk: u32) -> core::ops::Range<u32> {
        let first = chunk.saturating_mul(u32::from(self.chunk)).min(self.fragments());
        first..first.saturating_add(u32::from(self.chunk)).min(self.fragments())
    }
}

/// Part of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Data<'a> {
    /// Who sends it.
    pub from: Sent,
    /// The message.
    pub id: MessageId,
    /// Its shape.
    pub shape: Shape,
    /// Whether it answers a request.
    pub is_repair: bool,
    /// Whether it is the last that its sender sends of the message for now.
    pub is_last: bool,
    /// Whether members are not to forward it.
    pub is_local: bool,
    /// Time after which the message is of no use to anybody, in milliseconds from now; `None` if it never expires.
    pub lifetime: Option<u32>,
    /// Its bytes.
    pub symbol: Symbol<'a>,
}

/// The bytes in a data packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Symbol<'a> {
    /// A fragment as it is.
    Fragment {
        /// Its number in the message.
        index: u32,
        /// Its bytes.
        bytes: &'a [u8],
    },
    /// A combination of the fragments of a chunk, over GF(2^8).
    Combination {
        /// The chunk's number in the message.
        chunk: u32,
        /// A coefficient for each fragment of the chunk.
        coefficients: &'a [u8],
        /// The sum, as long as a whole fragment; where the message ends within one, zeros follow.
        bytes: &'a [u8],
    },
}

const DATA: u8 = 0x61;
const REQUEST: u8 = 0x62;
const SUMMARY: u8 = 0x63;

/// Flags of data.
const REPAIR: u8 = 1;
const LAST: u8 = 2;
const LOCAL: u8 = 4;
const OWN: u8 = 8;
const LIFETIME: u8 = 0x10;
const COMBINATION: u8 = 0x20;
const ALONE: u8 = 0x40;

/// Bytes before the fragment in a data packet of a message that its sender has not published, at most.
pub const DATA_OVERHEAD: usize = HEADER + 4 + MemberId::LEN + 4 + 4 + 2 + 1 + 4 + 4 + 4;
/// Bytes of kind, flags, transmission and sender.
pub(super) const HEADER: usize = 4 + MemberId::LEN;

impl<'a> Packet<'a> {
    /// Who sends it.
    pub const fn from(&self) -> Sent {
        match self {
            Self::Data(data) => data.from,
            Self::Request(request) => request.from,
            Self::Summary(summary) => summary.from,
        }
    }

    /// Reads a packet.
    ///
    /// # Errors
    /// The field that is cut off or has a value that it must not have.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let (kind, flags) = (reader.u8("kind")?, reader.u8("flags")?);
        let transmission = reader.u16("transmission")?;
        let from = Sent { member: MemberId::read(&mut reader)?, transmission };
        match kind {
            DATA => Data::read(from, flags, &mut reader).map(Self::Data),
            REQUEST => Request::read(from, flags, &mut reader).map(Self::Request),
            SUMMARY => Summary::read(from, flags, &mut reader).map(Self::Summary),
            _ => Err(Malformed { field: "kind" }),
        }
    }

    /// Its bytes.
    pub fn emit(&self) -> Vec<u8> {
        let mut out = Vec::with_capacity(64);
        match self {
            Self::Data(data) => data.write(&mut out),
            Self::Request(request) => {
                header(REQUEST, request.flags(), request.from, &mut out);
                request.write(&mut out);
            }
            Self::Summary(summary) => {
                header(SUMMARY, summary.flags(), summary.from, &mut out);
                summary.write(&mut out);
            }
        }
        out
    }
}

fn header(kind: u8, flags: u8, from: Sent, out: &mut Vec<u8>) {
    out.extend([kind, flags]);
    out.extend(from.transmission.to_be_bytes());
    from.member.write(out);
}

impl<'a> Data<'a> {
    fn read(from: Sent, flags: u8, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let group = reader.u32("group")?;
        let publisher = if flags & OWN == 0 { MemberId::read(reader)? } else { from.member };
        let id = MessageId { group, publisher, sequence: number(reader, "sequence number")? };
        if flags & ALONE != 0 {
            return Self::read_alone(from, id, flags, reader);
        }
        let length = number(reader, "length")?;
        let (fragment, chunk) = (reader.u16("fragment")?, reader.u8("chunk")?);
        Malformed::unless(fragment > 0, "fragment")?;
        Malformed::unless(chunk > 0, "chunk")?;
        let shape = Shape { length, fragment, chunk, digest: reader.u32("digest")? };
        let lifetime = read_lifetime(flags, reader)?;
        let symbol = if flags & COMBINATION == 0 {
            let index = number(reader, "fragment's number")?;
            Malformed::unless(index < shape.fragments(), "fragment's number")?;
            let bytes = reader.take_rest();
            Malformed::unless(bytes.len() == shape.fragment_len(index), "fragment's length")?;
            Symbol::Fragment { index, bytes }
        } else {
            let chunk = number(reader, "number of chunk")?;
            let of = shape.fragments_of(chunk);
            Malformed::unless(!of.is_empty(), "number of chunk")?;
            let coefficients = reader.take(of.len(), "coefficients")?;
            let bytes = reader.take_rest();
            Malformed::unless(bytes.len() == usize::from(fragment), "length of combination")?;
            Symbol::Combination { chunk, coefficients, bytes }
        };
        Ok(Self::new(from, (id, shape), flags, lifetime, symbol))
    }

    /// Reads the rest of a combination of a message's only chunk.
    fn read_alone(from: Sent, id: MessageId, flags: u8, reader: &mut Reader<'a>) -> Result<Self, Malformed> {
        let (short, chunk) = (number(reader, "length")?, reader.u8("chunk")?);
        Malformed::unless(chunk > 0, "chunk")?;
        let digest = reader.u32("digest")?;
        let lifetime = read_lifetime(flags, reader)?;
        let coefficients = reader.take(chunk.into(), "coefficients")?;
        let bytes = reader.take_rest();
        let fragment =
            u16::try_from(bytes.len()).map_err(|_| Malformed { field: "length of combination" })?;
        Malformed::unless(short < fragment.into(), "length")?;
        let shape = Shape { length: u32::from(chunk) * u32::from(fragment) - short, fragment, chunk, digest };
        let symbol = Symbol::Combination { chunk: 0, coefficients, bytes };
        Ok(Self::new(from, (id, shape), flags, lifetime, symbol))
    }

    const fn new(
        from: Sent,
        (id, shape): (MessageId, Shape),
        flags: u8,
        lifetime: Option<u32>,
        symbol: Symbol<'a>,
    ) -> Self {
        let (is_repair, is_last, is_local) = (flags & REPAIR != 0, flags & LAST != 0, flags & LOCAL != 0);
        Self { from, id, shape, is_repair, is_last, is_local, lifetime, symbol }
    }

    fn write(&self, out: &mut Vec<u8>) {
        let is_own = self.from.member == self.id.publisher;
        let is_combination = matches!(self.symbol, Symbol::Combination { .. });
        let is_alone = is_combination && self.shape.is_one_chunk();
        let set = |flag, is: bool| if is { flag } else { 0 };
        let flags = set(REPAIR, self.is_repair)
            | set(LAST, self.is_last)
            | set(LOCAL, self.is_local)
            | set(OWN, is_own)
            | set(LIFETIME, self.lifetime.is_some())
            | set(COMBINATION, is_combination)
            | set(ALONE, is_alone);
        header(DATA, flags, self.from, out);
        out.extend(self.id.group.to_be_bytes());
        if !is_own {
            self.id.publisher.write(out);
        }
        put_varint(self.id.sequence.into(), out);
        if is_alone {
            let whole = u32::from(self.shape.chunk) * u32::from(self.shape.fragment);
            put_varint((whole - self.shape.length).into(), out);
        } else {
            put_varint(self.shape.length.into(), out);
            out.extend(self.shape.fragment.to_be_bytes());
        }
        out.push(self.shape.chunk);
        out.extend(self.shape.digest.to_be_bytes());
        out.extend(self.lifetime.iter().flat_map(|lifetime| lifetime.to_be_bytes()));
        match self.symbol {
            Symbol::Fragment { index, bytes } => {
                put_varint(index.into(), out);
                out.extend(bytes);
            }
            Symbol::Combination { chunk, coefficients, bytes } => {
                if !is_alone {
                    put_varint(chunk.into(), out);
                }
                out.extend(coefficients);
                out.extend(bytes);
            }
        }
    }
}

impl MessageId {
    /// Whether it is of the same series as another, and not before it.
    fn follows(self, other: Self) -> bool {
        (self.group, self.publisher) == (other.group, other.publisher) && self.sequence >= other.sequence
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (group, publisher) = (reader.u32("group")?, MemberId::read(reader)?);
        Ok(Self { group, publisher, sequence: number(reader, "sequence number")? })
    }

    fn write(self, out: &mut Vec<u8>) {
        out.extend(self.group.to_be_bytes());
        self.publisher.write(out);
        put_varint(self.sequence.into(), out);
    }
}

fn read_lifetime(flags: u8, reader: &mut Reader<'_>) -> Result<Option<u32>, Malformed> {
    (flags & LIFETIME != 0).then(|| reader.u32("lifetime")).transpose()
}

/// Numbers of messages, lengths and fragments are below this, so that sums of them are numbers too.
pub const MAX_NUMBER: u32 = 1 << 30;

fn number(reader: &mut Reader<'_>, field: &'static str) -> Result<u32, Malformed> {
    let number = reader.varint(field)?;
    Malformed::unless(number < MAX_NUMBER.into(), field)?;
    Ok(number as u32)
}

/// Reads runs of numbers, ascending; at most `max`.
fn read_runs(reader: &mut Reader<'_>, max: usize) -> Result<Vec<core::ops::Range<u32>>, Malformed> {
    let count = number(reader, "number of runs")? as usize;
    Malformed::unless(count <= max, "number of runs")?;
    let (mut at, mut runs) = (0_u32, Vec::with_capacity(count));
    for _ in 0..count {
        let first = at.saturating_add(number(reader, "numbers between")?);
        let end = first.saturating_add(number(reader, "length of run")?).saturating_add(1);
        Malformed::unless(end <= MAX_NUMBER, "length of run")?;
        runs.push(first..end);
        at = end;
    }
    Ok(runs)
}

fn write_runs(runs: &[core::ops::Range<u32>], out: &mut Vec<u8>) {
    put_varint(runs.len() as u64, out);
    let mut at = 0;
    for run in runs {
        put_varint((run.start - at).into(), out);
        put_varint((run.end - run.start - 1).into(), out);
        at = run.end;
    }
}
