//! What a receiver tells a sender's congestion control (RFC 5740, section 5.5.2).

use hopcast_core::{Duration, Instant, Stream};

use crate::backoff::truncated_exponential;
use crate::equation::{loss_of, tcp_rate};
use crate::loss_events::LossEvents;
use crate::norm::wire::{CcFeedback, CcFlags, CcNode, NodeId, quantise};

/// Loss, rate and round trip on the way from one sender.
#[derive(Clone, Debug, Default)]
pub(super) struct Congestion {
    losses: LossEvents,
    /// The last probe: its number, and whether the sender controls its rate.
    probe: Option<u16>,
    /// Round-trip time that the sender measured.
    round_trip: Option<Duration>,
    role: CcFlags,
    /// Bytes since a time, and the rate at which they came before.
    window: Option<(Instant, u64)>,
    rate: f64,
    /// Mean length of packets.
    packet: f64,
    /// When to say how it is.
    due: Option<Instant>,
}

/// Minimum back-off factor of this feedback (libnorm has the same): it is said by all receivers, and not by those that
/// lack something.
const MIN_BACKOFF: u8 = 4;
/// Shortest time over which a rate is measured. Chosen: some packets at any rate that matters.
const MIN_WINDOW: Duration = Duration::from_millis(50);

impl Congestion {
    /// Notes a packet.
    pub(super) fn packet(&mut self, now: Instant, sequence: u16, marked: bool, bytes: usize, grtt: Duration) {
        let round_trip = self.round_trip.unwrap_or(grtt);
        let had_loss = self.losses.any();
        self.losses.packet(now, sequence, marked, round_trip);
        self.packet =
            if self.packet == 0.0 { bytes as f64 } else { 0.95 * self.packet + 0.05 * bytes as f64 };
        let (began, received) = self.window.get_or_insert((now, 0));
        *received += bytes as u64;
        let time = now.since(*began);
        if time >= round_trip.max(MIN_WINDOW) {
            self.rate = *received as f64 / time.as_secs_f64();
            self.window = Some((now, 0));
        }
        if !had_loss && self.losses.any() && self.rate > 0.0 {
            // RFC 5348, section 6.3.1: as if losses had been such that TCP had half this rate.
            self.losses.assume_first(loss_of(self.packet, round_trip, self.rate / 2.0));
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
        if rate.is_none() {
            self.probe = None;
            self.due = None;
            return;
        }
        self.probe = Some(sequence);
        let listed = nodes.iter().find(|node| node.node == own);
        self.role = listed.map_or(CcFlags::default(), |node| node.flags);
        if let Some(node) = listed.filter(|node| node.flags.contains(CcFlags::RTT)) {
            self.round_trip = Some(quantise::rtt(node.rtt));
        }
        if listed.is_some() {
            // Those that limit the rate answer each probe at once.
            self.due = Some(now);
        } else if self.due.is_none() {
            // A receiver that is much better off than the leader has nothing to say.
            let leader = nodes.first().map_or(f64::INFINITY, |node| quantise::rate(node.rate));
            if self.own_rate(grtt) < leader {
                let max = grtt * u64::from(backoff.max(MIN_BACKOFF));
                self.due = Some(now + truncated_exponential(random, max, group_size));
            }
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

    /// What is to be said; nothing to a sender that does not ask.
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

    /// Somebody with a lower rate was heard: the sender needs nothing of this one.
    pub(super) fn heard(&mut self, cc: CcFeedback, grtt: Duration) {
        let is_leader = self.role.contains(CcFlags::CLR) || self.role.contains(CcFlags::PLR);
        if !is_leader && self.own_rate(grtt) > 0.9 * quantise::rate(cc.rate) {
            self.due = None;
        }
    }

    pub(super) fn is_due(&self, now: Instant) -> bool {
        self.due.is_some_and(|at| at <= now)
    }

    /// It was said.
    pub(super) fn said(&mut self) {
        self.due = None;
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.due
    }
}

impl super::remote::Remote {
    /// Takes what another receiver told the sender's congestion control.
    pub(super) fn heard_congestion(&mut self, _now: Instant, cc: CcFeedback) {
        self.congestion.heard(cc, self.grtt);
    }
}
