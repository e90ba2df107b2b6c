//! Feedback of a receiver to a sender's congestion control (RFC 5740, section 5.5.2).

use hopcast_core::{Duration, Instant, Stream};

use crate::backoff::truncated_exponential;
use crate::equation::{loss_of, tcp_rate};
use crate::loss_events::LossEvents;
use crate::norm::congestion::CLOSE;
use crate::norm::wire::{CcFeedback, CcFlags, CcNode, NodeId, quantise};

/// Loss, rate and round trip on the way from one sender.
#[derive(Clone, Debug, Default)]
pub(super) struct Congestion {
    losses: LossEvents,
    /// Number of the last probe; none if the sender does not control its rate.
    probe: Option<u16>,
    /// Rate of the sender, as its last probe says, in bytes per second.
    sender_rate: f64,
    /// Round-trip time that the sender measured.
    round_trip: Option<Duration>,
    role: CcFlags,
    /// Bytes since a time, and the rate at which they came before.
    window: Option<(Instant, u64)>,
    rate: f64,
    /// When the last packet came, and the last of an object.
    last: Option<Instant>,
    data: Option<Instant>,
    /// Whether packets were lost, or are late, since then.
    skipped: bool,
    /// Mean length of packets of objects.
    packet: f64,
    /// When to answer the probe.
    due: Option<Instant>,
    /// Time over which answers are spread, and before which no probe is answered that does not ask this receiver by
    /// name.
    spread: Duration,
    hold_off: Instant,
    /// Time after which the probe is not answered any more.
    stale: Instant,
}

/// What congestion control sees of a packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub(super) sequence: u16,
    /// Whether a queue has marked it (ECN).
    pub(super) marked: bool,
    pub(super) bytes: usize,
    /// Whether it has a part of an object: commands are short, and sent for other reasons.
    pub(super) is_object: bool,
}

/// Minimum back-off factor of this feedback (libnorm has the same): it is said by all receivers, and not by those that
/// lack something.
const MIN_BACKOFF: u8 = 4;
/// Shortest time over which a rate is measured. Chosen: some packets at any rate that matters.
const MIN_WINDOW: Duration = Duration::from_millis(50);
/// Times of a packet at the sender's rate over which a rate is measured at least. Chosen: with less a slow sender's
/// probes, of which one comes for each packet, would be all that counts; with more slow start takes longer.
const MIN_PACKETS: f64 = 2.0;
/// Times of a packet at the sender's rate after which the next one begins a new measurement, if none was lost between
/// them: the sender had nothing to send. Chosen: more than a probe, a repair and a late wake-up take.
const PAUSE: f64 = 4.0;
/// GRTT after a probe in which it is answered, if none follows: then the sender or the way to it has failed, and nobody
/// would spare anybody (RFC 5740, section 5.5.2.2, answers within one).
const MAX_PROBE_AGE: u64 = 3;

impl Congestion {
    /// Notes a packet, of an object or a command.
    pub(super) fn packet(&mut self, now: Instant, packet: Arrival, grtt: Duration) {
        let round_trip = self.round_trip.unwrap_or(grtt);
        let had_loss = self.losses.any();
        let (skipped, _) = self.losses.packet(now, packet.sequence, packet.marked, round_trip);
        self.last = Some(now);
        self.skipped |= skipped > 0;
        if let Some((_, received)) = &mut self.window {
            *received += packet.bytes as u64;
        }
        if packet.is_object {
            let bytes = packet.bytes as f64;
            self.packet = if self.packet == 0.0 { bytes } else { 0.95 * self.packet + 0.05 * bytes };
            self.measure(now, round_trip);
        }
        if !had_loss && self.losses.any() {
            // RFC 5348, section 6.3.1: as if losses had been such that TCP had half the rate of the sender, which says
            // it for that (RFC 5740, section 5.5.2.1). What arrives may be less because there is nothing to send, but
            // far less is a path that carries no more.
            let target = match self.rate {
                0.0 => self.sender_rate / 2.0,
                rate if self.sender_rate > 0.0 => (self.sender_rate / 2.0).min(rate * 2.0),
                rate => rate,
            };
            if target > 0.0 {
                self.losses.assume_first(loss_of(self.packet, round_trip, target));
            }
        }
    }

    /// Measures the rate at which packets come (RFC 4654, section 4.3.4), from one of an object to another.
    fn measure(&mut self, now: Instant, round_trip: Duration) {
        let gap = self.data.replace(now).map_or(Duration::ZERO, |last| now.since(last));
        let was_skipped = std::mem::take(&mut self.skipped);
        let times = |packets: f64| match self.sender_rate {
            0.0 => None,
            rate => Some(MIN_WINDOW.max(Duration::from_secs_f64(packets * self.packet / rate))),
        };
        let pause = times(PAUSE).unwrap_or(Duration::MAX);
        let Some((began, received)) = self.window.filter(|_| was_skipped || gap <= pause) else {
            self.window = Some((now, 0));
            return;
        };
        let time = now.since(began);
        if time >= round_trip.max(times(MIN_PACKETS).unwrap_or(MIN_WINDOW)) {
            self.rate = received as f64 / time.as_secs_f64();
            self.window = Some((now, 0));
        }
    }

    /// Takes a probe.
    pub(super) fn probe(
        &mut self,
        now: Instant,
        (sequence, rate): (u16, Option<u16>),
        nodes: &[CcNode],
        own: NodeId,
        (grtt, backoff, group_size): (Duration, u8, f64),
        random: &mut Stream,
    ) {
        let Some(rate) = rate else {
            self.probe = None;
            self.due = None;
            return;
        };
        self.probe = Some(sequence);
        self.due = self.due.filter(|&at| at > now);
        self.stale = now + MIN_WINDOW.max(grtt * MAX_PROBE_AGE);
        self.spread = grtt * u64::from(backoff.max(MIN_BACKOFF));
        self.sender_rate = quantise::rate(rate);
        let listed = nodes.iter().find(|node| node.node == own);
        self.role = listed.map_or(CcFlags::default(), |node| node.flags);
        if let Some(node) = listed.filter(|node| node.flags.contains(CcFlags::RTT)) {
            self.round_trip = Some(quantise::rtt(node.rtt));
        }
        if self.limits() {
            // Those that limit the rate answer each probe at once.
            self.due = Some(now);
            return;
        }
        if nodes.iter().any(|node| self.is_spared(node.flags, node.rate, grtt)) {
            self.spare(now);
        } else if self.due.is_none() && now >= self.hold_off {
            self.due = Some(now + truncated_exponential(random, self.spread, group_size));
        }
    }

    /// Whether the sender asks for an answer to each probe.
    fn limits(&self) -> bool {
        self.role.contains(CcFlags::CLR) || self.role.contains(CcFlags::PLR)
    }

    /// Whether the sender needs nothing of this receiver where it knows of another one's rate (RFC 5740, section
    /// 5.5.2.2): one that does not know its round trip is only spared by its like.
    fn is_spared(&self, flags: CcFlags, rate: u16, grtt: Duration) -> bool {
        let knows_as_much = self.round_trip.is_some() || !flags.contains(CcFlags::RTT);
        rate != 0 && knows_as_much && self.own_rate(grtt) > CLOSE * quantise::rate(rate)
    }

    /// An answer is not due any more, and none is for a while (RFC 5740, section 5.5.2.2: T_ccHoldoff).
    fn spare(&mut self, now: Instant) {
        if self.due.take().is_some() {
            self.hold_off = now + self.spread;
        }
    }

    /// Bytes per second that this receiver can take.
    fn own_rate(&self, grtt: Duration) -> f64 {
        match self.losses.any() {
            true => tcp_rate(self.packet.max(1.0), self.round_trip.unwrap_or(grtt), self.losses.rate()),
            // Slow start: twice what arrives.
            false => 2.0 * self.rate,
        }
    }

    /// The feedback; none to a sender that does not ask.
    pub(super) fn feedback(&self, grtt: Duration) -> Option<CcFeedback> {
        let sequence = self.probe?;
        let measured = if self.round_trip.is_some() { CcFlags::RTT } else { CcFlags(0) };
        let start = if self.losses.any() { CcFlags(0) } else { CcFlags::START };
        let role = CcFlags(self.role.0 & (CcFlags::CLR.0 | CcFlags::PLR.0));
        Some(CcFeedback {
            sequence,
            flags: role.with(measured).with(start),
            rtt: quantise::from_rtt(self.round_trip.unwrap_or(grtt)),
            loss: quantise::from_loss(self.losses.rate()),
            rate: quantise::from_rate(self.own_rate(grtt)),
        })
    }

    /// Takes what another receiver told the sender, or the sender says that one did.
    pub(super) fn heard(&mut self, now: Instant, cc: CcFeedback, grtt: Duration) {
        if !self.limits() && self.is_spared(cc.flags, cc.rate, grtt) {
            self.spare(now);
        }
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.deadline().is_some_and(|at| at <= now)
    }

    /// The sender was told, in an answer or with a request.
    pub(super) fn said(&mut self) {
        self.due = None;
        self.hold_off = self.last.unwrap_or_default() + self.spread;
    }

    /// When to answer; never where that is too long after the probe.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.due.filter(|&at| at <= self.stale)
    }
}

impl super::remote::Remote {
    /// Takes what another receiver told the sender's congestion control.
    pub(super) fn heard_congestion(&mut self, now: Instant, cc: CcFeedback) {
        self.congestion.heard(now, cc, self.grtt);
    }
}
