//! The request for what is missing.

use core::ops::Range;

use hopcast_core::bytes::{Malformed, Reader, put_varint};

use super::{MemberId, MessageId, Sent, number, read_runs, write_runs};

/// A request for what its sender lacks, or passes on for another that lacks it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Who sends it.
    pub from: Sent,
    /// Number of members that its sender hears.
    pub neighbours: u16,
    /// Whether the same was asked for before and nothing came: so nothing is under way.
    pub is_again: bool,
    /// Number of the transmission of the first server that was heard last.
    pub heard: u16,
    /// The member that is to answer, and after it those that have been asked before; none if anybody may answer.
    pub servers: Vec<MemberId>,
    /// The missing part.
    pub wants: Vec<Want>,
}

/// The missing part of a message, or several missing messages in a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Want {
    /// The message, or the first of several.
    pub id: MessageId,
    /// The missing part.
    pub missing: Missing,
}

/// A missing part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Missing {
    /// All of so many messages in a row, at least one.
    Whole(u32),
    /// Fragments of a message.
    Fragments(Vec<Range<u32>>),
    /// Combinations of the fragments of a chunk.
    Combinations {
        /// The chunk.
        chunk: u32,
        /// How many are needed.
        count: u8,
        /// The fragments that are unknown: no more than these are to be combined.
        unknown: Vec<Range<u32>>,
    },
}

/// Flag of a request that was made before.
const AGAIN: u8 = 1;
/// Maximum number of members that a request names.
pub const MAX_SERVERS: usize = 8;
/// Maximum number of wants in a request. Chosen: those of 12 bytes each that fit a packet of 1,500.
pub const MAX_WANTS: usize = 128;
/// Maximum number of runs in a want. Chosen: those of 2 bytes each that fit a packet of 1,500.
pub const MAX_RUNS: usize = 512;

impl Request {
    pub(super) const fn flags(&self) -> u8 {
        if self.is_again { AGAIN } else { 0 }
    }

    pub(super) fn read(from: Sent, flags: u8, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let neighbours = reader.u16("number of neighbours")?;
        let heard = reader.u16("transmission heard")?;
        let count = usize::from(reader.u8("number of servers")?);
        Malformed::unless(count <= MAX_SERVERS, "number of servers")?;
        let servers = (0..count).map(|_| MemberId::read(reader)).collect::<Result<_, _>>()?;
        let mut wants = Vec::new();
        while !reader.is_empty() {
            Malformed::unless(wants.len() < MAX_WANTS, "number of wants")?;
            wants.push(Want::read(reader)?);
        }
        Ok(Self { from, is_again: flags & AGAIN != 0, neighbours, heard, servers, wants })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.neighbours.to_be_bytes());
        out.extend(self.heard.to_be_bytes());
        out.push(self.servers.len() as u8);
        self.servers.iter().for_each(|server| server.write(out));
        self.wants.iter().for_each(|want| want.write(out));
    }
}

impl Want {
    /// Sequence numbers of the messages that it names.
    pub(in super::super) const fn sequences(&self) -> Range<u32> {
        let count = if let Missing::Whole(count) = self.missing { count } else { 1 };
        self.id.sequence..self.id.sequence.saturating_add(count)
    }

    /// The messages that it names.
    pub(in super::super) fn messages(&self) -> impl Iterator<Item = MessageId> + use<> {
        let id = self.id;
        self.sequences().map(move |sequence| MessageId { sequence, ..id })
    }

    /// Number of messages, fragments or combinations that it names.
    pub(in super::super) fn parts(&self) -> u64 {
        match &self.missing {
            Missing::Whole(count) => (*count).into(),
            Missing::Fragments(runs) => runs.iter().map(|run| u64::from(run.end - run.start)).sum(),
            Missing::Combinations { count, .. } => (*count).into(),
        }
    }

    /// Bytes that it takes in a request.
    pub(in super::super) fn len(&self) -> usize {
        let mut out = Vec::new();
        self.write(&mut out);
        out.len()
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let id = MessageId::read(reader)?;
        let missing = match reader.u8("form of want")? {
            0 => {
                let count = number(reader, "number of messages")?;
                Malformed::unless(count > 0, "number of messages")?;
                Missing::Whole(count)
            }
            1 => Missing::Fragments(read_runs(reader, MAX_RUNS)?),
            2 => {
                let chunk = number(reader, "number of chunk")?;
                let count = number(reader, "number of combinations")?;
                Malformed::unless(count <= u8::MAX.into(), "number of combinations")?;
                Missing::Combinations { chunk, count: count as u8, unknown: read_runs(reader, MAX_RUNS)? }
            }
            _ => return Err(Malformed { field: "form of want" }),
        };
        Ok(Self { id, missing })
    }

    fn write(&self, out: &mut Vec<u8>) {
        self.id.write(out);
        match &self.missing {
            Missing::Whole(count) => {
                out.push(0);
                put_varint((*count).into(), out);
            }
            Missing::Fragments(runs) => {
                out.push(1);
                write_runs(runs, out);
            }
            Missing::Combinations { chunk, count, unknown } => {
                out.push(2);
                put_varint((*chunk).into(), out);
                put_varint((*count).into(), out);
                write_runs(unknown, out);
            }
        }
    }
}
