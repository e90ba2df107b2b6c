//! The packets. The format is our own: JGroups' is the serialisation of Java objects, which nobody else reads.
//!
//! Packets of a view begin with its tag, the sender's rank and, if they go to all, the number of the transmission:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |     kind      |             tag of the view ...               |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |      ...      |        sender's rank          | transmission  |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |             ... transmission                  |     kind's own fields ...
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! | kind | own fields |
//! |---|---|
//! | 0x51 data | sequence number (32), flags (8), payload |
//! | 0x52 repair | rank of the origin (16), sequence number (32), flags (8), payload |
//! | 0x53 digest | flags (8), stable number (32) if they say so, count (8), entries: rank (16), number (32) |
//! | 0x54 request | rank of the origin (16), first number (32), runs: numbers between, length less one (varints) |
//! | 0x55 discover | identity (48) |
//! | 0x56 found | a view |
//! | 0x57 unicast | identities of sender and receiver (2 x 48), connection (32), number (32), a control message |
//! | 0x58 acknowledgement | the same, without the message: the number up to which all have come |
//!
//! A request has in place of its transmission that of the addressed member that was heard last.
//! The lowest 32 bits of a number are sent, where there are more.

mod control;
mod id;
#[cfg(test)]
mod tests;

use hopcast_core::Buffer;
use hopcast_core::bytes::{Malformed, Reader, put_varint};

pub use control::Control;
pub use id::{MAX_MEMBERS, MAX_MEMBERS_IPV6, MemberId, Together, View, ViewId, max_members};

/// A packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Packet<'a> {
    /// A message of its sender, for the first time.
    Data {
        /// Where it comes from.
        from: Sent,
        /// Its number.
        sequence: u32,
        /// Its part in a unit of the application.
        flags: Flags,
        /// Its bytes.
        payload: &'a [u8],
    },
    /// A message again, from any member that has it.
    Repair {
        /// Where it comes from.
        from: Sent,
        /// Rank of the member whose message it is.
        origin: u16,
        /// Its number.
        sequence: u32,
        /// Its part in a unit of the application.
        flags: Flags,
        /// Its bytes.
        payload: &'a [u8],
    },
    /// STABLE, and FD_ALL if it has no entries: up to where its sender has the messages of members.
    Digest {
        /// Where it comes from.
        from: Sent,
        /// Whether members are to answer with theirs.
        asks: bool,
        /// Whether the sender sends nothing more for now, so that what is missing can be asked for at once.
        is_idle: bool,
        /// The number up to which the sender's own messages are at all members.
        stable: Option<u32>,
        /// Ranks, each with the number after the last that is there.
        entries: Vec<(u16, u32)>,
    },
    /// NAKACK: what its sender lacks.
    Request {
        /// Where it comes from; the transmission is that of the addressed member that was heard last.
        from: Sent,
        /// Rank of the member whose messages they are.
        origin: u16,
        /// Numbers from which others count.
        first: u32,
        /// Runs of missing numbers: each the numbers between it and what is before it, and its length, 1 or more.
        runs: Vec<(u64, u64)>,
    },
    /// PING: who is there?
    Discover(MemberId),
    /// PING's answer, and MERGE2: the view of a coordinator.
    Found(View),
    /// UNICAST: a control message.
    Unicast {
        /// The connection and its ends.
        between: Between,
        /// Its number in the connection.
        number: u32,
        /// The message.
        control: Control,
    },
    /// UNICAST: an acknowledgement.
    Ack {
        /// The connection and its ends: `from` is the one that acknowledges.
        between: Between,
        /// Number up to which all messages have come.
        number: u32,
    },
}

/// Sender of a packet in a view.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// Tag of the view.
    pub tag: u32,
    /// Rank of the sender.
    pub rank: u16,
    /// Number of the transmission: each packet to all has the next, whatever it is.
    pub transmission: u32,
}

/// The ends of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Between {
    /// Who sends this packet.
    pub from: MemberId,
    /// Who it is for.
    pub to: MemberId,
    /// The connection, drawn at random by the one whose messages it carries.
    pub connection: u32,
}

/// Part of a message in a unit of the application.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flags(pub u8);

impl Flags {
    /// The unit begins with it.
    pub const FIRST: u8 = 1;
    /// The unit ends with it.
    pub const LAST: u8 = 2;
    /// Not of the application: the coordinator's order (SEQUENCER).
    pub const ORDER: u8 = 4;
    /// The unit is a message, not a datagram.
    pub const MESSAGE: u8 = 8;
    /// The unit has a name, which is before its bytes with a length of two bytes.
    pub const NAMED: u8 = 16;
    /// A piece of a stream, which is a message by itself: the stream's number (16 bits) and bytes. The stream begins
    /// with the first piece and ends with the last.
    pub const STREAM: u8 = 32;
    const ALL: u8 = 63;

    /// Whether these flags are set.
    pub const fn has(self, flags: u8) -> bool {
        self.0 & flags == flags
    }
}

/// Kinds of packets. Chosen: none is the first byte of a NORM message.
const DATA: u8 = 0x51;
const REPAIR: u8 = 0x52;
const DIGEST: u8 = 0x53;
const REQUEST: u8 = 0x54;
const DISCOVER: u8 = 0x55;
const FOUND: u8 = 0x56;
const UNICAST: u8 = 0x57;
const ACK: u8 = 0x58;

/// Flags of a digest.
const ASKS: u8 = 1;
const IDLE: u8 = 2;
const STABLE: u8 = 4;

/// Bytes before the payload of data, and of a repair.
pub const DATA_OVERHEAD: usize = 16;
/// Bytes before the payload of a repair.
pub const REPAIR_OVERHEAD: usize = 18;
/// Maximum number of runs of a request. Chosen: the longest fits a datagram of 1,200 bytes; there is a next one.
pub const MAX_RUNS: usize = 128;

impl<'a> Packet<'a> {
    /// Reads a packet.
    ///
    /// # Errors
    /// The field at fault.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let reader = &mut reader;
        let kind = reader.u8("kind")?;
        let found = match kind {
            DATA => Self::Data {
                from: Sent::read(reader)?,
                sequence: reader.u32("sequence number")?,
                flags: flags(reader)?,
                payload: reader.take_rest(),
            },
            REPAIR => Self::Repair {
                from: Sent::read(reader)?,
                origin: reader.u16("rank of origin")?,
                sequence: reader.u32("sequence number")?,
                flags: flags(reader)?,
                payload: reader.take_rest(),
            },
            DIGEST => {
                let from = Sent::read(reader)?;
                let flags = reader.u8("flags of digest")?;
                Malformed::unless(flags & !(ASKS | IDLE | STABLE) == 0, "flags of digest")?;
                let stable = if flags & STABLE != 0 { Some(reader.u32("stable number")?) } else { None };
                let count = usize::from(reader.u8("number of entries")?);
                Malformed::unless(count <= MAX_MEMBERS, "number of entries")?;
                let entries = (0..count)
                    .map(|_| Ok((reader.u16("rank of entry")?, reader.u32("number of entry")?)))
                    .collect::<Result<_, _>>()?;
                Self::Digest { from, asks: flags & ASKS != 0, is_idle: flags & IDLE != 0, stable, entries }
            }
            REQUEST => {
                let from = Sent::read(reader)?;
                let (origin, first) = (reader.u16("rank of origin")?, reader.u32("first number")?);
                let mut runs = Vec::new();
                while !reader.is_empty() {
                    Malformed::unless(runs.len() < MAX_RUNS, "number of runs")?;
                    let (between, length) =
                        (reader.varint("numbers between")?, reader.varint("length of run")?);
                    Malformed::unless(between < 1 << 32 && length < 1 << 32, "length of run")?;
                    runs.push((between, length + 1));
                }
                Self::Request { from, origin, first, runs }
            }
            DISCOVER => Self::Discover(MemberId::read(reader)?),
            FOUND => Self::Found(View::read(reader)?),
            UNICAST => Self::Unicast {
                between: Between::read(reader)?,
                number: reader.u32("number of unicast")?,
                control: Control::parse(reader.take_rest())?,
            },
            ACK => Self::Ack {
                between: Between::read(reader)?,
                number: reader.u32("number of acknowledgement")?,
            },
            _ => return Err(Malformed { field: "kind" }),
        };
        Malformed::unless(reader.is_empty(), "end of packet")?;
        Ok(found)
    }

    /// The tag of its view, if it is a packet of one.
    pub const fn tag(&self) -> Option<u32> {
        match self {
            Self::Data { from, .. }
            | Self::Repair { from, .. }
            | Self::Digest { from, .. }
            | Self::Request { from, .. } => Some(from.tag),
            Self::Discover(_) | Self::Found(_) | Self::Unicast { .. } | Self::Ack { .. } => None,
        }
    }

    /// Its bytes, in a buffer with room for the headers of lower layers.
    pub fn emit(&self) -> Buffer {
        let mut out = Vec::with_capacity(REPAIR_OVERHEAD);
        let mut tail: &[u8] = &[];
        match self {
            Self::Data { from, sequence, flags, payload } => {
                from.write(DATA, &mut out);
                out.extend(sequence.to_be_bytes());
                out.push(flags.0);
                tail = payload;
            }
            Self::Repair { from, origin, sequence, flags, payload } => {
                from.write(REPAIR, &mut out);
                out.extend(origin.to_be_bytes());
                out.extend(sequence.to_be_bytes());
                out.push(flags.0);
                tail = payload;
            }
            Self::Digest { from, asks, is_idle, stable, entries } => {
                from.write(DIGEST, &mut out);
                out.push(
                    (u8::from(*asks) * ASKS)
                        | (u8::from(*is_idle) * IDLE)
                        | (u8::from(stable.is_some()) * STABLE),
                );
                if let Some(stable) = stable {
                    out.extend(stable.to_be_bytes());
                }
                out.push(entries.len() as u8);
                for (rank, number) in entries {
                    out.extend(rank.to_be_bytes());
                    out.extend(number.to_be_bytes());
                }
            }
            Self::Request { from, origin, first, runs } => {
                from.write(REQUEST, &mut out);
                out.extend(origin.to_be_bytes());
                out.extend(first.to_be_bytes());
                for &(between, length) in runs {
                    put_varint(between, &mut out);
                    put_varint(length - 1, &mut out);
                }
            }
            Self::Discover(member) => {
                out.push(DISCOVER);
                member.write(&mut out);
            }
            Self::Found(view) => {
                out.push(FOUND);
                view.write(&mut out);
            }
            Self::Unicast { between, number, control } => {
                between.write(UNICAST, &mut out);
                out.extend(number.to_be_bytes());
                out.extend(control.emit());
            }
            Self::Ack { between, number } => {
                between.write(ACK, &mut out);
                out.extend(number.to_be_bytes());
            }
        }
        let mut buffer = Buffer::copy_from(&out);
        buffer.append(tail);
        buffer
    }
}

impl Sent {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self {
            tag: reader.u32("tag")?,
            rank: reader.u16("rank")?,
            transmission: reader.u32("transmission")?,
        })
    }

    fn write(self, kind: u8, out: &mut Vec<u8>) {
        out.push(kind);
        out.extend(self.tag.to_be_bytes());
        out.extend(self.rank.to_be_bytes());
        out.extend(self.transmission.to_be_bytes());
    }
}

impl Between {
    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (from, to) = (MemberId::read(reader)?, MemberId::read(reader)?);
        Ok(Self { from, to, connection: reader.u32("connection")? })
    }

    fn write(self, kind: u8, out: &mut Vec<u8>) {
        out.push(kind);
        self.from.write(out);
        self.to.write(out);
        out.extend(self.connection.to_be_bytes());
    }
}

fn flags(reader: &mut Reader<'_>) -> Result<Flags, Malformed> {
    let flags = reader.u8("flags")?;
    Malformed::unless(flags & !Flags::ALL == 0, "flags")?;
    Ok(Flags(flags))
}
