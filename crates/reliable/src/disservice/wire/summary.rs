//! The summary of what a member knows and holds.

use core::ops::Range;

use hopcast_core::bytes::{Malformed, Reader, put_varint};

use super::{MAX_NUMBER, MemberId, Sent, number, read_runs, write_runs};

/// A summary of what its sender knows and holds (world state), and the sign that it is there (keep-alive).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// Who sends it.
    pub from: Sent,
    /// Number of members that its sender hears.
    pub neighbours: u16,
    /// Nodes of some of them, if members are told: those heard last.
    pub heard: Vec<u32>,
    /// Whether `series` are all that the sender knows of.
    pub is_all: bool,
    /// The series that it knows of, or some of them.
    pub series: Vec<Series>,
}

/// State of a series, which is the messages of one publisher to one group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Series {
    /// Tag of the group.
    pub group: u32,
    /// The publisher.
    pub publisher: MemberId,
    /// Whether the sender wants all of it.
    pub is_wanted: bool,
    /// Highest sequence number that it knows of.
    pub newest: u32,
    /// Sequence numbers of whole messages that it holds; where there are too many runs, some of them.
    pub held: Vec<Range<u32>>,
    /// Sequence numbers that `held` speaks of, where the sender says so: of others it says nothing. Where it does not,
    /// as many runs as fit are the latest.
    pub said: Option<Range<u32>>,
}

/// Flag of a summary that has all series.
const ALL: u8 = 1;
/// Flags of a series: it is wanted; the numbers that are spoken of are said.
const WANTED: u8 = 1;
const SAID: u8 = 2;
/// Maximum number of neighbours that a summary names.
pub const MAX_HEARD: usize = 64;
/// Maximum number of series in a summary. Chosen: those of 14 bytes that fit a packet of 1,500.
pub const MAX_SERIES: usize = 100;
/// Maximum number of runs of a series.
pub const MAX_HELD: usize = 16;

impl Summary {
    pub(super) const fn flags(&self) -> u8 {
        if self.is_all { ALL } else { 0 }
    }

    pub(super) fn read(from: Sent, flags: u8, reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let neighbours = reader.u16("number of neighbours")?;
        let count = usize::from(reader.u8("number of nodes")?);
        Malformed::unless(count <= MAX_HEARD, "number of nodes")?;
        let heard = (0..count).map(|_| reader.u32("node")).collect::<Result<_, _>>()?;
        let mut series = Vec::new();
        while !reader.is_empty() {
            Malformed::unless(series.len() < MAX_SERIES, "number of series")?;
            series.push(Series::read(reader)?);
        }
        Ok(Self { from, neighbours, heard, is_all: flags & ALL != 0, series })
    }

    pub(super) fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.neighbours.to_be_bytes());
        out.push(self.heard.len() as u8);
        out.extend(self.heard.iter().flat_map(|node| node.to_be_bytes()));
        self.series.iter().for_each(|series| series.write(out));
    }
}

impl Series {
    /// Bytes that it takes in a summary.
    pub(in super::super) fn len(&self) -> usize {
        let mut out = Vec::new();
        self.write(&mut out);
        out.len()
    }

    fn read(reader: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (group, publisher) = (reader.u32("group")?, MemberId::read(reader)?);
        let flags = reader.u8("flags of series")?;
        let newest = number(reader, "newest number")?;
        let held = read_runs(reader, MAX_HELD)?;
        let said = if flags & SAID == 0 { None } else { Some(read_said(reader, &held)?) };
        Ok(Self { group, publisher, is_wanted: flags & WANTED != 0, newest, held, said })
    }

    fn write(&self, out: &mut Vec<u8>) {
        out.extend(self.group.to_be_bytes());
        self.publisher.write(out);
        let said = if self.said.is_some() { SAID } else { 0 };
        out.push(said | if self.is_wanted { WANTED } else { 0 });
        put_varint(self.newest.into(), out);
        write_runs(&self.held, out);
        if let Some(said) = &self.said {
            put_varint(said.start.into(), out);
            put_varint((said.end - said.start).into(), out);
        }
    }
}

/// Reads the numbers that these runs speak of.
fn read_said(reader: &mut Reader<'_>, held: &[Range<u32>]) -> Result<Range<u32>, Malformed> {
    let first = number(reader, "first number said")?;
    let said = first..first.saturating_add(number(reader, "numbers said")?);
    Malformed::unless(said.end <= MAX_NUMBER, "numbers said")?;
    let is_said = |run: &Range<u32>| said.start <= run.start && run.end <= said.end;
    Malformed::unless(held.iter().all(is_said), "numbers said")?;
    Ok(said)
}
