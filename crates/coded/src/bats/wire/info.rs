//! INFO: what a sender says of itself and the session.

use std::num::NonZeroU32;

use hopcast_core::Duration;
use hopcast_core::bytes::{Malformed, Reader, Writer};

use super::super::age::Age;
use super::super::config::{BatchSize, Config};
use super::codes::{INFO, batch_size, mq};

/// Length of INFO without a budget or deadline, in bytes.
const INFO_LEN: usize = 1 + 4 + 4 + 1 + 2 + 2 + 4 + 4 + 2 + 8;
/// Maximum length of INFO, in bytes: with both.
pub(in super::super) const MAX_INFO_LEN: usize = INFO_LEN + 2 + 4;

/// A session: all that a source sends, from its start to its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Session {
    /// Drawn when its edge starts. All frames of the session have it, so that nobody takes those of the other
    /// direction, which have come back, for those of this one.
    pub(in super::super) mark: u32,
}

/// An INFO frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Info {
    pub(in super::super) session: Session,
    /// The nonce of the receiver's challenge, if this answers one.
    pub(in super::super) echo: Option<NonZeroU32>,
    pub(in super::super) batch: BatchSize,
    pub(in super::super) block: u16,
    pub(in super::super) symbol: u16,
    pub(in super::super) epoch: u32,
    /// The sender's smoothed round trip to the receiver, in microseconds; 0 if it has none.
    pub(in super::super) round_trip: u32,
    /// In milliseconds; `None` where delivery is reliable.
    pub(in super::super) deadline: Option<u16>,
    /// With a deadline: whether it holds however long the path is.
    pub(in super::super) fixed: bool,
    /// With a deadline: the minimum time from the source to the receiver, in microseconds; 0 if it is not known.
    pub(in super::super) elapsed: u32,
    /// Number of bytes to spend on a batch, in units of 16, where no ranks are wanted.
    pub(in super::super) budget: Option<u16>,
    pub(in super::super) ask: bool,
    pub(in super::super) floor: u64,
}

impl Info {
    /// Reads it, but for the byte that names it.
    pub(in super::super) fn read(reader: &mut Reader<'_>, kind: u8) -> Result<Self, Malformed> {
        let session = Session { mark: reader.u32("info session")? };
        let echo = NonZeroU32::new(reader.u32("info echo")?);
        let batch =
            batch_size(reader.u8("info batch size")? >> 5).ok_or(Malformed { field: "info batch size" })?;
        let block = reader.u16("info block")?;
        if block == 0 || !usize::from(block).is_multiple_of(batch.symbols()) {
            return Err(Malformed { field: "info block" });
        }
        let symbol = reader.u16("info symbol")?;
        if symbol == 0 {
            return Err(Malformed { field: "info symbol" });
        }
        let epoch = reader.u32("info epoch")?;
        let round_trip = reader.u32("info round trip")?;
        let deadline = reader.u16("info deadline")?;
        let floor = reader.u64("info floor")?;
        let budget = if kind & 1 != 0 { Some(reader.u16("info budget")?) } else { None };
        let timed = kind & 2 != 0;
        let elapsed = if timed { reader.u32("info elapsed")? } else { 0 };
        Ok(Self {
            session,
            echo,
            batch,
            block,
            symbol,
            epoch,
            round_trip,
            deadline: timed.then_some(deadline),
            fixed: timed && kind & 8 != 0,
            elapsed,
            budget,
            ask: kind & 4 != 0,
            floor,
        })
    }

    /// The ages of what comes, at a `sink` or else a relay; `None` where delivery is reliable.
    pub(in super::super) fn age(&self, config: &Config, sink: bool) -> Option<Age> {
        let after = Duration::from_millis(u64::from(self.deadline?));
        let age = Age::new(after, self.fixed, config);
        Some(if sink { age.at_sink() } else { age })
    }

    /// The same INFO with what a session says of its deadline, where the hop takes this round trip at least.
    pub(in super::super) fn timed(self, age: Option<&Age>, min_round_trip: Option<Duration>) -> Self {
        let Some(age) = age else { return self };
        let (after, fixed) = age.told();
        let elapsed = age.told_elapsed().zip(min_round_trip).map(|(elapsed, trip)| elapsed + trip / 2);
        Self {
            deadline: Some(after.as_millis().min(u64::from(u16::MAX)) as u16),
            fixed,
            elapsed: elapsed.map_or(0, |elapsed| elapsed.as_micros().clamp(1, u64::from(u32::MAX)) as u32),
            ..self
        }
    }

    pub(in super::super) const fn len(&self) -> usize {
        INFO_LEN + if self.budget.is_some() { 2 } else { 0 } + if self.deadline.is_some() { 4 } else { 0 }
    }

    pub(in super::super) fn write(&self, out: &mut Writer<'_>) {
        let flags = u8::from(self.fixed) << 3
            | u8::from(self.ask) << 2
            | u8::from(self.deadline.is_some()) << 1
            | u8::from(self.budget.is_some());
        out.u8(INFO << 4 | flags);
        out.u32(self.session.mark);
        out.u32(self.echo.map_or(0, NonZeroU32::get));
        out.u8(mq(self.batch) << 5);
        out.u16(self.block);
        out.u16(self.symbol);
        out.u32(self.epoch);
        out.u32(self.round_trip);
        out.u16(self.deadline.unwrap_or(0));
        out.u64(self.floor);
        if let Some(budget) = self.budget {
            out.u16(budget);
        }
        if self.deadline.is_some() {
            out.u32(self.elapsed);
        }
    }
}
