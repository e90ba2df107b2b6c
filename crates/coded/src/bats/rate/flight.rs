//! The packets sent and not yet reported, in order of sequence.

use std::collections::VecDeque;

use hopcast_core::Instant;

/// The packets in flight, at most [`Flight::LIMIT`] of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Flight {
    /// The sequence number of the front, or of the next packet if there is none in flight.
    first: u64,
    sent: VecDeque<Sent>,
    /// Bytes sent so far.
    bytes: u64,
    limited: u64,
    eased: u64,
    pressed: u64,
}

/// A packet that was sent, with what had been sent by then, itself included.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Sent {
    pub at: Instant,
    pub bytes: u64,
    /// Of the packets, those that the application limited, those that left with less than the rate, and with more.
    pub limited: u64,
    pub eased: u64,
    pub pressed: u64,
}

/// Pace at which a packet leaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Pace {
    /// With less than the rate.
    Eased,
    /// At the rate.
    Even,
    /// With more than the rate.
    Pressed,
}

impl Flight {
    /// Maximum number of packets that are followed: 64 Ki, which are 1 Gbit/s over 800 ms, and 1.5 MiB of memory.
    /// Chosen; with fewer, a faster or longer hop is not filled.
    pub(super) const LIMIT: usize = 1 << 16;

    /// Notes a packet. Numbers rise by one; where they skip, what was before is no longer followed.
    pub(super) fn on_sent(&mut self, now: Instant, sequence: u64, bytes: u64, limited: bool, pace: Pace) {
        if sequence != self.next() {
            self.sent.clear();
            self.first = sequence;
        } else if self.is_full() {
            self.sent.pop_front();
            self.first += 1;
        }
        self.bytes += bytes;
        self.limited += u64::from(limited);
        self.eased += u64::from(pace == Pace::Eased);
        self.pressed += u64::from(pace == Pace::Pressed);
        let (bytes, limited, eased, pressed) = (self.bytes, self.limited, self.eased, self.pressed);
        self.sent.push_back(Sent { at: now, bytes, limited, eased, pressed });
    }

    /// The number of the next packet.
    pub(super) fn next(&self) -> u64 {
        self.first.saturating_add(self.sent.len() as u64)
    }

    /// The packet of this number, if it is in flight.
    pub(super) fn get(&self, sequence: u64) -> Option<Sent> {
        let index = usize::try_from(sequence.checked_sub(self.first)?).ok()?;
        self.sent.get(index).copied()
    }

    /// Takes all up to `highest` out of flight.
    pub(super) fn pass(&mut self, highest: u64) {
        let passed = highest.saturating_add(1).saturating_sub(self.first).min(self.sent.len() as u64);
        self.sent.drain(..passed as usize);
        self.first += passed;
    }

    /// Bytes in flight, given those sent up to the last packet that was reported.
    pub(super) fn bytes_since(&self, passed: u64) -> u64 {
        if self.sent.is_empty() { 0 } else { self.bytes.saturating_sub(passed) }
    }

    pub(super) fn is_full(&self) -> bool {
        self.sent.len() >= Self::LIMIT
    }
}
