//! The packets of a hop, which carry a chunk of a stream each, and its acknowledgements.
//!
//! ```text
//! packet           0       1         3              7              11
//!                  +-------+---------+--------------+--------------+---------
//!                  | kind  | session | number       | index        | chunk
//!                  +-------+---------+------+-------+--------------+---------
//! first packet     | kind  | session | num. | knows | index        | chunk
//!                  +-------+---------+------+-------+--------------+---------
//! acknowledgement  0       1         3              7              11             15
//!                  +-------+---------+--------------+--------------+--------------+---------
//!                  | kind  | session | received     | next index   | highest      | runs
//!                  +-------+---------+--------------+--------------+--------------+---------
//! chunk            0       1              5                   11
//!                  +-------+--------------+-------------------+---------
//!                  | flags | stream       | offset            | bytes
//!                  +-------+--------------+-------------------+---------
//! ```
//!
//! Numbers are big-endian. A packet's *number* counts transmissions, so that each is acknowledged as itself; its
//! *index* says which chunk it is, however often it is sent. Both stand for 64-bit counters of which the rest is
//! inferred. Runs alternate, from `highest` downwards: a number of packets that arrived, then of packets that did not,
//! in 16 bits each.

use hopcast_core::bytes::{Malformed, Reader, Writer};

// Kinds of messages: the first byte, as drawn above.

/// A packet before the first acknowledgement of its session: only such a packet may begin one. It says which session of
/// the receiver's its sender knows, in place of half of its number.
const FIRST: u8 = 0x01;
const PACKET: u8 = 0x02;
const ACKNOWLEDGEMENT: u8 = 0x03;
/// There is no such session: begin one.
const UNKNOWN: u8 = 0x04;
/// In the kind: acknowledge at once (packet); send nothing new for now (acknowledgement).
const FLAG: u8 = 0x80;

/// Length of the header of every message, in bytes: kind and session.
const HEADER: usize = 3;
/// Bytes before the runs of an acknowledgement, as drawn above.
const ACKNOWLEDGEMENT_HEADER: usize = 15;
/// Bytes before the chunk of a packet, as drawn above.
pub(super) const PACKET_HEADER: usize = 11;
/// Bytes before those of a chunk, as drawn above.
pub(super) const CHUNK_HEADER: usize = 11;
/// Runs in an acknowledgement: with 20 % of the packets lost, some 160 packets. Chosen; more make acknowledgements
/// longer, with fewer a lost acknowledgement loses more of the news.
pub(super) const MAX_RUNS: usize = 64;

/// The contents of a datagram.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Message<'a> {
    Packet(Packet<'a>),
    Acknowledgement(Acknowledgement),
    Unknown { session: u16 },
}

/// A transmission of a chunk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet<'a> {
    pub session: u16,
    /// In a packet that may begin the session: which of the receiver's its sender knows; none is 0.
    pub first: Option<u16>,
    pub urgent: bool,
    pub number: u32,
    pub index: u32,
    pub chunk: &'a [u8],
}

/// The packets that have arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Acknowledgement {
    /// The sender's session.
    pub session: u16,
    /// Whether nothing new should be sent.
    pub pause: bool,
    /// Packets that have arrived in all: acknowledgements in their order.
    pub received: u32,
    /// All chunks before this one have arrived.
    pub next_index: u32,
    /// The highest number that has arrived.
    pub highest: u32,
    /// From there downwards, in turn: the number that arrived, the number that did not.
    pub runs: Vec<u16>,
}

impl<'a> Message<'a> {
    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let (kind, session) = (reader.u8("kind")?, reader.u16("session")?);
        let flag = kind & FLAG != 0;
        match kind & !FLAG {
            FIRST | PACKET => {
                let (number, index) = (reader.u32("number")?, reader.u32("index")?);
                let first = (kind & !FLAG == FIRST).then_some(number as u16);
                Ok(Self::Packet(Packet {
                    session,
                    first,
                    urgent: flag,
                    number: if first.is_some() { number >> 16 } else { number },
                    index,
                    chunk: reader.rest(),
                }))
            }
            ACKNOWLEDGEMENT => {
                let (received, next_index) = (reader.u32("received")?, reader.u32("next index")?);
                let highest = reader.u32("highest")?;
                let (runs, left) = reader.rest().as_chunks();
                let count = 1..=MAX_RUNS;
                Malformed::unless(count.contains(&runs.len()) && left.is_empty(), "runs")?;
                let runs = runs.iter().map(|&run| u16::from_be_bytes(run)).collect();
                let pause = flag;
                Ok(Self::Acknowledgement(Acknowledgement {
                    session,
                    pause,
                    received,
                    next_index,
                    highest,
                    runs,
                }))
            }
            UNKNOWN if reader.is_empty() && !flag => Ok(Self::Unknown { session }),
            _ => Err(Malformed { field: "kind" }),
        }
    }

    pub(super) fn emit(&self) -> Vec<u8> {
        let mut bytes = vec![0; self.len()];
        let mut to = Writer::new(&mut bytes);
        let mut head = |kind: u8, flag: bool, session: u16| {
            to.u8(kind | if flag { FLAG } else { 0 });
            to.u16(session);
        };
        match self {
            Self::Packet(packet) => {
                let (kind, number) = match packet.first {
                    Some(knows) => (FIRST, packet.number << 16 | u32::from(knows)),
                    None => (PACKET, packet.number),
                };
                head(kind, packet.urgent, packet.session);
                to.u32(number);
                to.u32(packet.index);
                to.put(packet.chunk);
            }
            Self::Acknowledgement(ack) => {
                head(ACKNOWLEDGEMENT, ack.pause, ack.session);
                to.u32(ack.received);
                to.u32(ack.next_index);
                to.u32(ack.highest);
                ack.runs.iter().for_each(|&run| to.u16(run));
            }
            Self::Unknown { session } => head(UNKNOWN, false, *session),
        }
        bytes
    }

    fn len(&self) -> usize {
        match self {
            Self::Packet(packet) => PACKET_HEADER + packet.chunk.len(),
            Self::Acknowledgement(ack) => ACKNOWLEDGEMENT_HEADER + 2 * ack.runs.len(),
            Self::Unknown { .. } => HEADER,
        }
    }
}

/// A message of one end to the other about a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chunk<'a> {
    /// Whether the stream was opened by who says this.
    pub opener: bool,
    pub stream: u32,
    pub what: What<'a>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What<'a> {
    /// Bytes from this offset on, and whether the direction ends after them.
    Data { offset: u64, bytes: &'a [u8], end: bool },
    /// Bytes before this offset may be sent.
    Grant(u64),
    /// Both directions are over.
    Reset,
    /// Chunks on their way over a node are lost with it: all streams are over.
    Gone,
}

// Bits of the first byte of a chunk, as drawn above.
const KIND: u8 = 0x03;
const OPENER: u8 = 0x40;
const END: u8 = 0x80;

impl<'a> Chunk<'a> {
    pub(super) const GONE: Self = Self { opener: false, stream: 0, what: What::Gone };

    pub(super) fn parse(bytes: &'a [u8]) -> Result<Self, Malformed> {
        let mut reader = Reader::new(bytes);
        let (flags, stream) = (reader.u8("flags")?, reader.u32("stream")?);
        let (offset, bytes) = (reader.u48("offset")?, reader.rest());
        let end = flags & END != 0;
        let what = match flags & KIND {
            0 => {
                Malformed::unless((offset + bytes.len() as u64) >> 48 == 0, "offset")?;
                What::Data { offset, bytes, end }
            }
            1 => What::Grant(offset),
            2 => What::Reset,
            _ => What::Gone,
        };
        let is_data = matches!(what, What::Data { .. });
        let allowed = if is_data { KIND | OPENER | END } else { KIND | OPENER };
        Malformed::unless(flags & !allowed == 0, "flags")?;
        Malformed::unless(is_data || bytes.is_empty(), "bytes")?;
        Ok(Self { opener: flags & OPENER != 0, stream, what })
    }

    pub(super) fn emit(&self) -> Vec<u8> {
        let (kind, offset, bytes, end) = match self.what {
            What::Data { offset, bytes, end } => (0, offset, bytes, end),
            What::Grant(offset) => (1, offset, &[][..], false),
            What::Reset => (2, 0, &[][..], false),
            What::Gone => (3, 0, &[][..], false),
        };
        let mut chunk = vec![0; CHUNK_HEADER + bytes.len()];
        let mut to = Writer::new(&mut chunk);
        to.u8(kind | if self.opener { OPENER } else { 0 } | if end { END } else { 0 });
        to.u32(self.stream);
        to.u48(offset);
        to.put(bytes);
        chunk
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_as_they_were_written() {
        let packet = Packet { session: 7, first: Some(3), urgent: true, number: 1, index: 2, chunk: b"abc" };
        let ack = Acknowledgement {
            session: 9,
            pause: true,
            received: 3,
            next_index: 4,
            highest: 5,
            runs: vec![1, 2, 3],
        };
        for message in [
            Message::Packet(packet),
            Message::Packet(Packet { first: None, urgent: false, chunk: b"", ..packet }),
            Message::Acknowledgement(ack),
            Message::Unknown { session: 0x0102 },
        ] {
            let bytes = message.emit();
            assert_eq!(Message::parse(&bytes), Ok(message.clone()));
            for cut in 0..bytes.len().min(PACKET_HEADER) {
                let field = Message::parse(&bytes[..cut]).unwrap_err().field;
                let expected = match (cut, &message) {
                    (0, _) => "kind",
                    (1..3, _) => "session",
                    (3..7, Message::Packet(_)) => "number",
                    (7.., Message::Packet(_)) => "index",
                    (3..7, _) => "received",
                    (7.., _) => "next index",
                };
                assert_eq!(field, expected, "{message:?} cut at {cut}");
            }
        }
    }

    #[test]
    fn chunks_are_read_as_they_were_written() {
        for what in [
            What::Data { offset: 1 << 40, bytes: b"abc", end: true },
            What::Data { offset: 0, bytes: b"", end: false },
            What::Grant(77),
            What::Reset,
            What::Gone,
        ] {
            let chunk = Chunk { opener: true, stream: 5, what };
            assert_eq!(Chunk::parse(&chunk.emit()), Ok(chunk));
        }
        assert_eq!(Chunk::GONE.emit(), [3, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        let grant = Chunk { opener: false, stream: 5, what: What::Grant(1) }.emit();
        assert_eq!(Chunk::parse(&[&grant[..], b"x"].concat()), Err(Malformed { field: "bytes" }));
        let far = Chunk {
            opener: true,
            stream: 5,
            what: What::Data { offset: (1 << 48) - 1, bytes: b"xx", end: false },
        };
        assert_eq!(Chunk::parse(&far.emit()), Err(Malformed { field: "offset" }), "past the largest offset");
    }
}
