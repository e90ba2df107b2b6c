//! The request for what is missing.

use core::ops::Range;

use hopcast_core::bytes::{Malformed, Reader, put_varint};

use super::{MAX_NUMBER, MemberId, MessageId, Sent, number, read_runs, write_runs};

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
/// Flag of a want whose message is of the same series as that of the one before, and not before it.
const FOLLOWS: u8 = 0x80;
/// Form of a want for combinations of a message's first chunk, and the bits that forms are in.
const FIRST_CHUNK: u8 = 3;
const FORM: u8 = 3;
/// Place of the number of combinations, less one, in that form, and the highest that it has room for.
const COUNT: u8 = 2;
const MAX_COUNT: u8 = 32;
/// Highest bit that a varint has.
const MAX_BITS: u64 = 1 << 61;
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
            let want = Want::read(wants.last(), reader)?;
            wants.push(want);
        }
        Ok(Self { from, is_again: flags & AGAIN != 0, neighbours, heard, servers, wants })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.neighbours.to_be_bytes());
        out.extend(self.heard.to_be_bytes());
        out.push(self.servers.len() as u8);
        self.servers.iter().for_each(|server| server.write(out));
        let before = std::iter::once(None).chain(self.wants.iter().map(Some));
        self.wants.iter().zip(before).for_each(|(want, before)| want.write(before, out));
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

    /// Bytes that it takes in a request at most: fewer behind one of the same series.
    pub(in super::super) fn len(&self) -> usize {
        let mut out = Vec::new();
        self.write(None, &mut out);
        out.len()
    }

    /// Reads the want that follows another.
    fn read(before: Option<&Self>, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let form = reader.u8("form of want")?;
        let id = if form & FOLLOWS == 0 {
            MessageId::read(reader)?
        } else {
            let before = before.ok_or(Malformed { field: "form of want" })?.id;
            let sequence = before.sequence + number(reader, "sequence number")?;
            Malformed::unless(sequence < MAX_NUMBER, "sequence number")?;
            MessageId { sequence, ..before }
        };
        let missing = match form & !FOLLOWS {
            0 => {
                let count = number(reader, "number of messages")?;
                Malformed::unless(count > 0, "number of messages")?;
                Missing::Whole(count)
            }
            1 => Missing::Fragments(read_runs(reader, MAX_RUNS)?),
            form if form & FORM == FIRST_CHUNK => {
                let unknown = reader.varint("unknown fragments")?;
                Missing::Combinations { chunk: 0, count: (form >> COUNT) + 1, unknown: runs_of(unknown) }
            }
            2 => {
                let chunk = number(reader, "number of chunk")?;
                let count = number(reader, "number of combinations")?;
                Malformed::unless(count <= u8::MAX.into(), "number of combinations")?;
                Missing::Combinations { chunk, count: count as u8, unknown: read_bits(reader)? }
            }
            _ => return Err(Malformed { field: "form of want" }),
        };
        Ok(Self { id, missing })
    }

    /// Writes it behind another.
    fn write(&self, before: Option<&Self>, out: &mut Vec<u8>) {
        let bits = self.missing.first_bits();
        let form = match &self.missing {
            Missing::Whole(_) => 0,
            Missing::Fragments(_) => 1,
            Missing::Combinations { count, .. } if bits.is_some() => FIRST_CHUNK | (count - 1) << COUNT,
            Missing::Combinations { .. } => 2,
        };
        // Only combinations are asked for so often for several messages of a series that it counts.
        let is_short = matches!(self.missing, Missing::Combinations { .. });
        match before.map(|before| before.id).filter(|&before| is_short && self.id.follows(before)) {
            Some(before) => {
                out.push(form | FOLLOWS);
                put_varint((self.id.sequence - before.sequence).into(), out);
            }
            None => {
                out.push(form);
                self.id.write(out);
            }
        }
        if let Some(bits) = bits {
            return put_varint(bits, out);
        }
        match &self.missing {
            Missing::Whole(count) => put_varint((*count).into(), out),
            Missing::Fragments(runs) => write_runs(runs, out),
            Missing::Combinations { chunk, count, unknown } => {
                put_varint((*chunk).into(), out);
                put_varint((*count).into(), out);
                write_bits(unknown, out);
            }
        }
    }
}

impl Missing {
    /// Unknown fragments of a message's first chunk as bits, the lowest for the first: as many as a varint has.
    /// `None` of any other part, and of more combinations than its form has bits for.
    fn first_bits(&self) -> Option<u64> {
        let Self::Combinations { chunk: 0, count: 1..=MAX_COUNT, unknown } = self else { return None };
        let mut bits = 0;
        for index in unknown.iter().flat_map(Clone::clone) {
            bits |= 1_u64.checked_shl(index).filter(|&bit| bit <= MAX_BITS)?;
        }
        Some(bits)
    }
}

/// Runs of numbers that stand for bits that are set.
fn runs_of(mut bits: u64) -> Vec<Range<u32>> {
    let (mut runs, mut at) = (Vec::new(), 0);
    while bits != 0 {
        let first = at + bits.trailing_zeros();
        bits >>= bits.trailing_zeros();
        at = first + bits.trailing_ones();
        bits >>= bits.trailing_ones();
        runs.push(first..at);
    }
    runs
}

/// Bytes of the bits of a chunk's fragments.
const CHUNK_BYTES: u8 = 32;

/// Reads numbers of one chunk, as bits from the first of them on.
fn read_bits(reader: &mut Reader<'_>) -> Result<Vec<Range<u32>>, Malformed> {
    let first = number(reader, "first unknown fragment")?;
    let len = reader.u8("bytes of unknown fragments")?;
    Malformed::unless(len <= CHUNK_BYTES, "bytes of unknown fragments")?;
    let bits = reader.take(len.into(), "unknown fragments")?;
    let mut runs: Vec<Range<u32>> = Vec::new();
    for at in 0..8 * u32::from(len) {
        if bits[at as usize / 8] & (0x80 >> (at % 8)) == 0 {
            continue;
        }
        let index = first + at;
        Malformed::unless(index < MAX_NUMBER, "unknown fragments")?;
        match runs.last_mut() {
            Some(run) if run.end == index => run.end += 1,
            _ => runs.push(index..index + 1),
        }
    }
    Ok(runs)
}

/// Writes numbers of one chunk.
fn write_bits(runs: &[Range<u32>], out: &mut Vec<u8>) {
    let first = runs.first().map_or(0, |run| run.start);
    // Of a chunk there are no more.
    let indices = || {
        runs.iter().flat_map(Clone::clone).map(|index| index - first).take_while(|&at| at <= u8::MAX.into())
    };
    put_varint(first.into(), out);
    let len = indices().last().map_or(0, |last| last / 8 + 1);
    out.push(len as u8);
    let bits = out.len();
    out.resize(bits + len as usize, 0);
    indices().for_each(|at| out[bits + at as usize / 8] |= 0x80 >> (at % 8));
}
