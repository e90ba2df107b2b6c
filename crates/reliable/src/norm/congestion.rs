//! Congestion control of a sender: as fast as a TCP to the receiver with the worst path (RFC 5740, section 5.5.2; RFC
//! 4654).

use hopcast_core::{Duration, Instant, Rate};

use super::wire::{CcFeedback, CcFlags, CcNode, NodeId, quantise};
use crate::equation::tcp_rate;

/// The rate, and the receivers that limit it.
#[derive(Clone, Debug)]
pub(super) struct Congestion {
    /// Bytes per second.
    rate: f64,
    min: f64,
    max: f64,
    packet: f64,
    /// The current limiting receiver first, then those that may be the next; at most [`MAX_NODES`].
    receivers: Vec<Limiting>,
    /// When the rate was raised last: it doubles no more than once in a round trip.
    raised: Instant,
}

/// A receiver that limits the rate, or nearly does.
#[derive(Clone, Copy, Debug)]
struct Limiting {
    node: NodeId,
    rate: f64,
    round_trip: Duration,
    /// Whether the sender has measured that.
    measured: bool,
    starting: bool,
    heard: Instant,
    sequence: u16,
}

/// Receivers that are remembered, as in libnorm.
const MAX_NODES: usize = 5;
/// GRTT after which a limiting receiver that is silent is gone (RFC 4654, section 2.2: ten feedback rounds).
const SILENT_GRTT: u64 = 10;
/// A receiver is silent no sooner than after this. Chosen: a few lost probes and answers.
const MIN_SILENCE: Duration = Duration::from_secs(1);

impl Congestion {
    pub(super) fn new(initial: Rate, min: Rate, max: Rate, packet: f64) -> Self {
        let bytes = |rate: Rate| rate.bits_per_sec() as f64 / 8.0;
        let (min, max) = (bytes(min).max(1.0), bytes(max).max(1.0));
        let rate = bytes(initial).min(max).max(min);
        Self { rate, min, max, packet, receivers: Vec::new(), raised: Instant::ZERO }
    }

    pub(super) fn rate(&self) -> Rate {
        Rate::from_bits_per_sec((self.rate * 8.0) as u64)
    }

    /// Takes the feedback of a receiver, whose round trip was measured with it if it was.
    pub(super) fn feedback(
        &mut self,
        now: Instant,
        node: NodeId,
        cc: CcFeedback,
        round_trip: Option<Duration>,
    ) {
        let known = self.receivers.iter().position(|receiver| receiver.node == node);
        let round_trip_known = known.map(|index| self.receivers[index].round_trip);
        let round_trip = match (round_trip, round_trip_known) {
            // RFC 5348, section 4.3: smoothed.
            (Some(found), Some(known)) => known.mul_f64(0.9) + found.mul_f64(0.1),
            (Some(found), None) => found,
            (None, known) => known.unwrap_or_else(|| quantise::rtt(cc.rtt)),
        };
        let starting = cc.flags.contains(CcFlags::START);
        // Its round trip is known better here than there.
        let rate = match starting {
            true => quantise::rate(cc.rate),
            false => tcp_rate(self.packet, round_trip, quantise::loss(cc.loss)).min(self.max),
        };
        if cc.flags.contains(CcFlags::LEAVE) {
            self.receivers.retain(|receiver| receiver.node != node);
            return;
        }
        let receiver =
            Limiting { node, rate, round_trip, measured: true, starting, heard: now, sequence: cc.sequence };
        match known {
            Some(index) if (cc.sequence.wrapping_sub(self.receivers[index].sequence) as i16) < 0 => return,
            Some(index) => self.receivers[index] = receiver,
            None => self.receivers.push(receiver),
        }
        // The lowest rate leads. One that only hears from it takes the lead where it is clearly lower, so that two
        // alike do not take turns.
        let limits = |receiver: &Limiting| receiver.rate;
        let lead = self.receivers[0].rate;
        if let Some(lowest) = (0..self.receivers.len())
            .min_by(|&a, &b| limits(&self.receivers[a]).total_cmp(&limits(&self.receivers[b])))
            && (self.receivers[lowest].rate < 0.9 * lead || self.receivers[lowest].node == node)
        {
            self.receivers.swap(0, lowest);
        }
        self.receivers[1..].sort_by(|a, b| a.rate.total_cmp(&b.rate));
        self.receivers.truncate(MAX_NODES);
        self.adjust(now);
    }

    fn adjust(&mut self, now: Instant) {
        let Some(leader) = self.receivers.first() else { return };
        let target = leader.rate.clamp(self.min, self.max);
        if target <= self.rate {
            self.rate = target;
        } else if now.since(self.raised) >= leader.round_trip {
            // Slow start doubles at most in a round trip; otherwise a packet is added in each (RFC 4654, section 2.3).
            let most = match leader.starting {
                true => self.rate * 2.0,
                false => self.rate + self.packet / leader.round_trip.as_secs_f64().max(1e-3),
            };
            self.rate = target.min(most);
            self.raised = now;
        }
    }

    /// A probe is about to be sent: the leader that was silent for long gives way, and without any the rate falls.
    pub(super) fn probed(&mut self, now: Instant, grtt: Duration) {
        let silence = MIN_SILENCE.max(grtt * SILENT_GRTT);
        let had = !self.receivers.is_empty();
        self.receivers.retain(|receiver| now.since(receiver.heard) <= silence);
        if had && self.receivers.is_empty() {
            self.rate = (self.rate / 2.0).max(self.min);
        }
    }

    /// What a probe tells of the receivers that limit the rate.
    pub(super) fn nodes(&self) -> Vec<CcNode> {
        let node = |(index, receiver): (usize, &Limiting)| {
            let role = if index == 0 { CcFlags::CLR } else { CcFlags::PLR };
            let measured = if receiver.measured { CcFlags::RTT } else { CcFlags(0) };
            let start = if receiver.starting { CcFlags::START } else { CcFlags(0) };
            CcNode {
                node: receiver.node,
                flags: role.with(measured).with(start),
                rtt: quantise::from_rtt(receiver.round_trip),
                rate: quantise::from_rate(receiver.rate),
            }
        };
        self.receivers.iter().enumerate().map(node).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn congestion() -> Congestion {
        let (initial, max) = (Rate::from_bits_per_sec(64_000), Rate::from_mbit(100));
        Congestion::new(initial, Rate::from_bits_per_sec(8_000), max, 1400.0)
    }

    fn said(sequence: u16, flags: CcFlags, rate: f64, loss: f64) -> CcFeedback {
        let (rate, loss) = (quantise::from_rate(rate), quantise::from_loss(loss));
        CcFeedback { sequence, flags, rtt: quantise::from_rtt(Duration::from_millis(50)), loss, rate }
    }

    const ROUND_TRIP: Option<Duration> = Some(Duration::from_millis(50));

    #[test]
    fn it_doubles_once_in_a_round_trip_until_there_is_loss() {
        let mut congestion = congestion();
        for step in 0..4_u16 {
            let feedback = said(step, CcFlags::START, 1e9, 0.0);
            congestion.feedback(at(100 + 50 * u64::from(step)), NodeId(1), feedback, ROUND_TRIP);
            congestion.feedback(at(110 + 50 * u64::from(step)), NodeId(1), feedback, ROUND_TRIP);
        }
        assert_eq!(congestion.rate().bits_per_sec(), 64_000 * 16);
        congestion.feedback(at(400), NodeId(1), said(9, CcFlags::RTT, 0.0, 0.1), ROUND_TRIP);
        let tcp = tcp_rate(1400.0, Duration::from_millis(50), 0.1) * 8.0;
        assert!((congestion.rate().bits_per_sec() as f64 / tcp - 1.0).abs() < 0.01);
    }

    #[test]
    fn the_receiver_with_the_worst_path_leads_and_another_when_it_is_gone() {
        let mut congestion = congestion();
        congestion.feedback(at(100), NodeId(1), said(1, CcFlags::RTT, 0.0, 0.05), ROUND_TRIP);
        congestion.feedback(at(110), NodeId(2), said(1, CcFlags::RTT, 0.0, 0.2), ROUND_TRIP);
        let leader = |congestion: &Congestion| congestion.nodes()[0].node;
        assert_eq!(leader(&congestion), NodeId(2));
        let low = congestion.rate();
        for step in 0..60_u16 {
            let feedback = said(2 + step, CcFlags::RTT, 0.0, 0.05);
            congestion.feedback(at(150 + 50 * u64::from(step)), NodeId(1), feedback, ROUND_TRIP);
            congestion.probed(at(150 + 50 * u64::from(step)), Duration::from_millis(50));
        }
        assert_eq!(leader(&congestion), NodeId(1));
        assert!(congestion.rate() > low);
    }

    #[test]
    fn without_feedback_the_rate_falls_and_forged_receivers_are_few() {
        let mut congestion = congestion();
        for node in 0..1000 {
            congestion.feedback(at(100), NodeId(node), said(1, CcFlags::START, 1e6, 0.0), ROUND_TRIP);
        }
        assert_eq!(congestion.nodes().len(), MAX_NODES);
        let before = congestion.rate();
        congestion.probed(at(10_000), Duration::from_millis(50));
        assert_eq!(congestion.rate().bits_per_sec(), before.bits_per_sec() / 2);
        assert!(congestion.nodes().is_empty());
    }
}
