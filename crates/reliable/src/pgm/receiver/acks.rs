//! Acknowledgements and reports of a receiver for congestion control (PGMCC, as OpenPGM has it).

use hopcast_core::{Duration, Instant};

use super::Shared;
use crate::pgm::wire::{Ack, CongestionData, CongestionFeedback};

#[cfg(test)]
mod tests;

/// What a receiver has heard of new data.
#[derive(Debug, Default)]
pub(super) struct Acks {
    highest: u64,
    bitmap: u32,
    /// Mean share of packets lost.
    loss: f64,
    /// The source's clock, and when it was heard.
    clock: Option<(u32, Instant)>,
    /// When an acknowledgement is due, and whether that is for an election.
    due: Option<(Instant, bool)>,
}

/// Weight of a packet in the mean of losses (Rizzo 2000; OpenPGM has 500 of 65536).
const GAIN: f64 = 500.0 / 65_536.0;
/// Longest back-off of an acknowledgement in an election: OpenPGM's in its tests.
const MAX_BACK_OFF: Duration = Duration::from_millis(50);

impl Acks {
    /// A packet of new data has come.
    pub(super) fn heard(&mut self, sequence: u64) {
        if self.highest == 0 {
            (self.highest, self.bitmap) = (sequence - 1, u32::MAX);
        }
        if sequence > self.highest {
            let ahead = sequence - self.highest;
            // Of a gap beyond the bitmap the share says enough.
            let lost = (ahead - 1).min(64) as i32;
            self.loss = 1.0 - (1.0 - self.loss) * (1.0 - GAIN).powi(lost);
            self.bitmap = self.bitmap.checked_shl(ahead.min(32) as u32).unwrap_or(0);
            self.highest = sequence;
        }
        self.loss *= 1.0 - GAIN;
        if let Some(bit) = 1_u32.checked_shl((self.highest - sequence).min(32) as u32) {
            self.bitmap |= bit;
        }
    }

    /// The option that a packet of new data bears.
    pub(super) fn data(
        &mut self,
        now: Instant,
        data: &CongestionData,
        round_trip: Duration,
        shared: &mut Shared,
    ) {
        self.clock = Some((data.timestamp, now));
        if shared.config.silent {
            return;
        }
        if data.acker == shared.name {
            self.due = Some((now, false));
        } else if data.acker.is_unspecified() {
            let backoff = round_trip.min(MAX_BACK_OFF).mul_f64(shared.random.uniform());
            self.due.get_or_insert((now + backoff, true));
        } else {
            // Another was elected.
            self.due = None;
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.due.map(|(due, _)| due)
    }

    /// The acknowledgement that is due.
    pub(super) fn due(&mut self, now: Instant, shared: &Shared) -> Option<(Ack, CongestionFeedback)> {
        self.due.take_if(|(due, _)| *due <= now)?;
        let ack = Ack { highest: self.highest as u32, bitmap: self.bitmap };
        Some((ack, self.feedback(now, shared)?))
    }

    /// What it says of its path; `None` if the source does not ask.
    pub(super) fn feedback(&self, now: Instant, shared: &Shared) -> Option<CongestionFeedback> {
        let (clock, heard) = self.clock?;
        Some(CongestionFeedback {
            timestamp: clock.wrapping_add(now.since(heard).as_millis() as u32),
            loss: (self.loss * 65_536.0).min(65_535.0) as u16,
            receiver: shared.name,
        })
    }
}
