//! Congestion control as a TCP would have it to the receiver with the worst path: PGMCC (Rizzo 2000, "pgmcc: a
//! TCP-friendly single-rate multicast congestion control scheme"), with the options that OpenPGM has.
//!
//! One receiver, the **acker**, acknowledges each packet of new data. A window of packets grows and shrinks by these as
//! that of a TCP does; each acknowledgement gives tokens, each packet takes one. Which receiver is the acker follows
//! from what all say of their paths in acknowledgements and requests: the one to which a TCP would be slowest.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_core::bytes::complete;
use hopcast_core::{Duration, Instant, Rate};

use crate::pgm::wire::{Ack, CongestionData, CongestionFeedback};

#[cfg(test)]
mod tests;

/// The state of congestion control.
#[derive(Debug)]
pub(super) struct Control {
    max: Rate,
    is_ipv6: bool,
    /// Packets that may be on the way, and that may be sent now.
    window: f64,
    tokens: f64,
    /// Window up to which it doubles each round trip.
    threshold: f64,
    acker: Option<IpAddr>,
    /// Square of the acker's round trip in seconds, times its loss.
    worth: f64,
    round_trip: Option<Duration>,
    variation: Duration,
    /// Highest sequence number acknowledged, and which of the 64 up to it are.
    highest: Option<u64>,
    acknowledged: u64,
    /// Losses up to this number belong to the last halving.
    recovers: u64,
    /// When the last packet was sent or acknowledged.
    last: Instant,
    timeouts: u32,
    pub(super) counts: Counts,
}

/// What is counted.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counts {
    pub(super) acks: u64,
    pub(super) elections: u64,
    pub(super) halvings: u64,
    pub(super) timeouts: u64,
}

/// Share of its worth by which another receiver must exceed the acker (Rizzo 2000).
const SWITCH: f64 = 0.75;
/// Acknowledged packets behind one that is not, after which that one is lost (RFC 5681).
const DUPLICATES: u32 = 3;
/// Window at the start, in packets (RFC 5681: two to four of full length).
const INITIAL: f64 = 2.0;
/// Largest window: what 32 bits of acknowledgements and more cannot follow is not used.
const MAX_WINDOW: f64 = 1e6;
/// Factor of the pace over the window in a round trip: the window decides, the pace keeps bursts apart.
const PACE: f64 = 1.25;
/// Pace until a round trip is known.
const START: Rate = Rate::from_bits_per_sec(256_000);
/// Shortest time without acknowledgements after which all is taken for lost. Chosen: RFC 6298 has a second, which is
/// long where the acker has left.
const MIN_TIMEOUT: Duration = Duration::from_millis(200);
/// Longest one: a packet is sent as often, whoever answers.
const MAX_TIMEOUT: Duration = Duration::from_secs(1);

impl Control {
    pub(super) const fn new(max: Rate, is_ipv6: bool) -> Self {
        Self {
            max,
            is_ipv6,
            window: INITIAL,
            tokens: INITIAL,
            threshold: MAX_WINDOW,
            acker: None,
            worth: 0.0,
            round_trip: None,
            variation: Duration::ZERO,
            highest: None,
            acknowledged: 0,
            recovers: 0,
            last: Instant::ZERO,
            timeouts: 0,
            counts: Counts { acks: 0, elections: 0, halvings: 0, timeouts: 0 },
        }
    }

    /// The option of a packet of data.
    pub(super) fn option(&self, now: Instant) -> CongestionData {
        let nobody =
            if self.is_ipv6 { Ipv6Addr::UNSPECIFIED.into() } else { IpAddr::V4(Ipv4Addr::UNSPECIFIED) };
        CongestionData { timestamp: millis(now), acker: self.acker.unwrap_or(nobody) }
    }

    /// Whether a packet of new data may be sent.
    pub(super) fn may_send(&mut self, now: Instant) -> bool {
        if self.tokens < 1.0 && now >= self.due() {
            // Nobody answers: one packet, and another election.
            self.counts.timeouts += 1;
            self.timeouts += 1;
            self.threshold = (self.window / 2.0).max(2.0);
            (self.window, self.tokens, self.acker) = (1.0, 1.0, None);
        }
        self.tokens >= 1.0
    }

    /// When a packet may be sent if nobody answers until then; `None` if it may be now.
    pub(super) fn deadline(&self) -> Option<Instant> {
        (self.tokens < 1.0).then(|| self.due())
    }

    fn due(&self) -> Instant {
        let usual = self.round_trip.map_or(MIN_TIMEOUT, |mean| mean + self.variation * 4);
        self.last + (usual.max(MIN_TIMEOUT) * (1 << self.timeouts.min(4))).min(MAX_TIMEOUT)
    }

    /// A packet of new data was sent.
    pub(super) fn sent(&mut self, now: Instant) {
        self.tokens -= 1.0;
        self.last = now;
    }

    /// The pace of all packets.
    pub(super) fn rate(&self, packet: u64) -> Rate {
        let Some(round_trip) = self.round_trip else { return START.min(self.max) };
        let bits = PACE * self.window * packet as f64 * 8.0 / round_trip.as_secs_f64().max(1e-4);
        Rate::from_bits_per_sec((bits as u64).max(1)).min(self.max).max(Rate::from_bits_per_sec(8 * packet))
    }

    /// What a receiver says of its path. True if it is the acker, perhaps since now.
    pub(super) fn feedback(&mut self, now: Instant, feedback: &CongestionFeedback) -> bool {
        let elapsed = millis(now).wrapping_sub(feedback.timestamp);
        if elapsed > MAX_ROUND_TRIP {
            return false;
        }
        // The clock has milliseconds.
        let round_trip = Duration::from_millis(elapsed.max(1).into());
        let loss = (f64::from(feedback.loss) / 65_536.0).max(1e-6);
        let worth = round_trip.as_secs_f64().powi(2) * loss;
        let is_acker = self.acker == Some(feedback.receiver);
        if !is_acker && self.acker.is_some() && SWITCH * worth <= self.worth {
            return false;
        }
        if !is_acker {
            self.counts.elections += 1;
            self.acker = Some(feedback.receiver);
            (self.highest, self.round_trip) = (None, None);
        }
        self.worth = worth;
        match self.round_trip {
            None => (self.round_trip, self.variation) = (Some(round_trip), round_trip / 2),
            Some(mean) => {
                let apart = mean.abs_diff(round_trip);
                self.variation = self.variation.mul_f64(0.75) + apart.mul_f64(0.25);
                self.round_trip = Some(mean.mul_f64(0.875) + round_trip.mul_f64(0.125));
            }
        }
        true
    }

    /// An acknowledgement of the acker. `lead` is the last sequence number that was sent, and `was_sent` says whether
    /// one was.
    pub(super) fn ack(&mut self, now: Instant, ack: &Ack, lead: u64, was_sent: impl Fn(u64) -> bool) {
        self.counts.acks += 1;
        let highest = complete(ack.highest, u32::BITS, lead);
        if highest > lead {
            return;
        }
        let before = *self.highest.get_or_insert_with(|| {
            self.acknowledged = u64::MAX;
            highest.saturating_sub(1)
        });
        let mut bitmap = u64::from(ack.bitmap);
        if highest > before {
            self.acknowledged = self.acknowledged.checked_shl((highest - before).min(64) as u32).unwrap_or(0);
            self.highest = Some(highest);
        } else {
            bitmap = bitmap.checked_shl((before - highest).min(64) as u32).unwrap_or(0);
        }
        let new = (bitmap & !self.acknowledged).count_ones();
        self.acknowledged |= bitmap;
        if new == 0 {
            return;
        }
        self.last = now;
        self.timeouts = 0;
        let highest = self.highest.unwrap_or(highest);
        let is_lost = (DUPLICATES..u64::BITS).any(|back| {
            let number = highest.saturating_sub(back.into());
            self.acknowledged >> back & 1 == 0 && number > self.recovers && was_sent(number)
        });
        if is_lost {
            self.counts.halvings += 1;
            self.window = (self.window / 2.0).max(1.0);
            self.threshold = self.window.max(2.0);
            self.tokens = 0.0;
            self.recovers = lead;
            return;
        }
        for _ in 0..new {
            // While it recovers, what has left the network makes room; then the window grows.
            let grows = highest > self.recovers;
            let by = if self.window < self.threshold { 1.0 } else { 1.0 / self.window };
            self.tokens += 1.0 + if grows { by } else { 0.0 };
            self.window += if grows { by } else { 0.0 };
        }
        self.window = self.window.min(MAX_WINDOW);
        self.tokens = self.tokens.min(self.window.max(1.0));
    }
}

/// Round trip that is a lie, or a clock's other epoch, in milliseconds.
const MAX_ROUND_TRIP: u32 = 10_000;

fn millis(now: Instant) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}
