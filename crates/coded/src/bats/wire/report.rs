//! REPORT: what a receiver has got, and may be sent.

use hopcast_core::bytes::{Malformed, Reader, Writer};

use super::codes::REPORT;

/// Length of REPORT without its list, in bytes.
const REPORT_LEN: usize = 1 + 4 + 1 + 2 + 2 + 3 + 4 + 2 + 3 + 4 + 2 + 4 + 2 + 2 + 2;

/// Maximum length of REPORT without its list, in bytes.
pub(in super::super) const MAX_REPORT_LEN: usize = REPORT_LEN + 4;

/// A REPORT frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Report<'a> {
    pub(in super::super) session: u32,
    pub(in super::super) epoch: u8,
    /// Drawn by the receiver when it starts: another one has forgotten everything.
    pub(in super::super) instance: u16,
    pub(in super::super) number: u16,
    pub(in super::super) arrivals: Option<Arrivals>,
    pub(in super::super) floor: u32,
    /// Up to which symbol new ones may be sent, from the floor.
    pub(in super::super) grant: u16,
    /// Number of batches after the floor's at which the list begins.
    pub(in super::super) base: u16,
    /// Whether nothing has arrived of the batches after the list.
    pub(in super::super) complete: bool,
    /// Minimum time from the receiver to the furthest end of the session, in microseconds, where there is a deadline
    /// and the receiver knows it.
    pub(in super::super) rest: Option<u32>,
    pub(in super::super) list: &'a [u8],
}

/// Arrivals over a hop.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in super::super) struct Arrivals {
    /// 24 bits.
    pub(in super::super) highest: u32,
    /// Time at which the highest arrived, in 16 ns by the receiver's clock, the lowest 32 bits.
    pub(in super::super) at: u32,
    /// Time since then, in microseconds.
    pub(in super::super) hold: u16,
    /// Cumulative, 24 bits.
    pub(in super::super) packets: u32,
    /// Cumulative.
    pub(in super::super) bytes: u32,
    /// Cumulative: how many times one or several packets in a row were missing.
    pub(in super::super) runs: u16,
}

/// An item of a report's list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) enum Ranks {
    /// One batch of this rank.
    Rank(u8),
    /// A run of batches of which nothing more is needed.
    Complete(u8),
    /// A run of batches of which nothing has arrived.
    Nothing(u8),
}

/// Greatest run of one item: it has six bits.
const MAX_RUN: u8 = 64;

impl Ranks {
    pub(in super::super) fn of(byte: u8) -> Self {
        let run = (byte & 0x3F) + 1;
        match byte >> 6 {
            0b10 => Self::Complete(run),
            0b11 => Self::Nothing(run),
            _ => Self::Rank(byte),
        }
    }
}

/// Writes a report's list, one batch after the other.
pub(in super::super) fn list_rank(list: &mut Vec<u8>, rank: Option<u8>) {
    let kind = match rank {
        Some(0) => 0xC0,
        None => 0x80,
        Some(rank) => return list.push(rank & 0x7F),
    };
    match list.last_mut() {
        Some(last) if *last & 0xC0 == kind && *last & 0x3F < MAX_RUN - 1 => *last += 1,
        _ => list.push(kind),
    }
}

impl<'a> Report<'a> {
    /// Reads it, but for the byte that names it.
    pub(in super::super) fn read(reader: &mut Reader<'a>, kind: u8) -> Result<Self, Malformed> {
        let (some, complete) = (kind & 2 != 0, kind & 1 != 0);
        let session = reader.u32("report session")?;
        let epoch = reader.u8("report epoch")?;
        let instance = reader.u16("report instance")?;
        let number = reader.u16("report number")?;
        let arrivals = Arrivals {
            highest: reader.u24("report highest")?,
            at: reader.u32("report arrival")?,
            hold: reader.u16("report hold")?,
            packets: reader.u24("report packets")?,
            bytes: reader.u32("report bytes")?,
            runs: reader.u16("report runs")?,
        };
        let floor = reader.u32("report floor")?;
        let grant = reader.u16("report grant")?;
        let base = reader.u16("report base")?;
        let rest = if kind & 4 != 0 { Some(reader.u32("report rest")?) } else { None };
        let len = reader.u16("report list length")?;
        let list = reader.take(usize::from(len), "report list")?;
        let arrivals = some.then_some(arrivals);
        Ok(Self { session, epoch, instance, number, arrivals, floor, grant, base, complete, rest, list })
    }

    pub(in super::super) fn len(&self) -> usize {
        REPORT_LEN + if self.rest.is_some() { 4 } else { 0 } + self.list.len()
    }

    pub(in super::super) fn write(&self, out: &mut Writer<'_>) {
        let Arrivals { highest, at, hold, packets, bytes, runs } = self.arrivals.unwrap_or_default();
        let flags = u8::from(self.rest.is_some()) << 2
            | u8::from(self.arrivals.is_some()) << 1
            | u8::from(self.complete);
        out.u8(REPORT << 4 | flags);
        out.u32(self.session);
        out.u8(self.epoch);
        out.u16(self.instance);
        out.u16(self.number);
        out.u24(highest);
        out.u32(at);
        out.u16(hold);
        out.u24(packets);
        out.u32(bytes);
        out.u16(runs);
        out.u32(self.floor);
        out.u16(self.grant);
        out.u16(self.base);
        if let Some(rest) = self.rest {
            out.u32(rest);
        }
        out.u16(self.list.len() as u16);
        out.put(self.list);
    }
}
