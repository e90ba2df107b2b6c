//! Congestion control of a sender: as fast as a TCP to the receiver with the worst path (RFC 5740, section 5.5.2; RFC
//! 4654).

use std::collections::VecDeque;

use hopcast_core::{Duration, Instant, Rate};

use super::wire::{CcFeedback, CcFlags, CcNode, NodeId, quantise};
use crate::equation::tcp_rate;

/// The rate, and the receivers that limit it.
#[derive(Clone, Debug)]
pub(super) struct Congestion {
    /// Bytes per second.
    rate: f64,
    initial: f64,
    min: f64,
    max: f64,
    packet: f64,
    /// The current limiting receiver first, then those that may be the next; at most [`MAX_NODES`].
    receivers: Vec<Limiting>,
    /// Others that answered since the last probe, which are told their round trips; at most [`MAX_TOLD`].
    told: VecDeque<Limiting>,
    /// Sequence number of the last probe; none before the first.
    sequence: Option<u16>,
    /// When the rate was raised last: it doubles no more than once in a round trip.
    raised: Instant,
    /// When the rate was last halved in silence, or silence began.
    halved: Instant,
    /// When data were sent last, and the rate that was left for the break since then.
    sent: Option<Instant>,
    resume: f64,
    busy: Busy,
    suppression: Suppression,
}

/// A receiver that limits the rate, or nearly does.
#[derive(Clone, Copy, Debug)]
struct Limiting {
    node: NodeId,
    rate: f64,
    round_trip: Duration,
    starting: bool,
    heard: Instant,
    sequence: u16,
}

/// Receivers that are remembered, as in libnorm.
const MAX_NODES: usize = 5;
/// Other receivers whose round trips a probe tells. Chosen: more than answer in a round trip of one round of feedback.
const MAX_TOLD: usize = 8;
/// Probes without an answer of the limiting receiver after which the rate falls (RFC 5740, section 5.5.2.3).
const OLD_PROBES: u16 = 4;
/// Probes without an answer after which a limiting receiver is gone (RFC 5740, section 5.5.2.3: NORM_ROBUST_FACTOR).
const LOST_PROBES: u16 = 20;
/// Round trips in which the rate is halved once while no receiver answers, or nothing is sent (RFC 4654, sections 3.3
/// and 3.6).
const SILENT_ROUND_TRIPS: u64 = 10;
/// Minimum time in which a break halves the rate. Chosen: TCP's minimum timeout (RFC 6298, section 2.4); what sends a
/// message now and then is no break.
const MIN_BREAK: Duration = Duration::from_secs(1);
/// Share of a rate by which another one must be lower to count as lower (RFC 5740, section 5.5.2.2; RFC 4654, section
/// 3.4: g is 0.1).
pub(super) const CLOSE: f64 = 0.9;

impl Congestion {
    pub(super) fn new(initial: Rate, min: Rate, max: Rate, packet: f64) -> Self {
        let bytes = |rate: Rate| rate.bits_per_sec() as f64 / 8.0;
        let (min, max) = (bytes(min).max(1.0), bytes(max).max(1.0));
        let rate = bytes(initial).min(max).max(min);
        Self {
            rate,
            initial: rate,
            min,
            max,
            packet,
            receivers: Vec::new(),
            told: VecDeque::new(),
            sequence: None,
            raised: Instant::ZERO,
            halved: Instant::ZERO,
            sent: None,
            resume: 0.0,
            busy: Busy::default(),
            suppression: Suppression::default(),
        }
    }

    pub(super) fn rate(&self) -> Rate {
        Rate::from_bits_per_sec((self.rate * 8.0) as u64)
    }

    /// Notes that data are sent. After a break the rate is lower, and slow start leads back to what it was (RFC 4654,
    /// section 3.6), but it is never below the initial rate for that (RFC 5348, section 4.4).
    pub(super) fn sent(&mut self, now: Instant) {
        let Some(last) = self.sent.replace(now) else { return };
        let round_trip = self.receivers.first().map_or(Duration::ZERO, |leader| leader.round_trip);
        let unit = MIN_BREAK.max(round_trip * SILENT_ROUND_TRIPS);
        let halvings = now.since(last).as_nanos() / unit.as_nanos();
        if halvings > 0 {
            let low = self.rate / 2_f64.powi(halvings.min(60) as i32);
            self.resume = self.resume.max(self.rate);
            self.rate = low.max(self.initial).min(self.rate);
            self.halved = now;
        }
    }

    /// Notes that from `now` to `until` the rate alone keeps the sender from sending more.
    pub(super) fn held_back(&mut self, now: Instant, until: Instant, grtt: Duration) {
        self.busy.note(now, until, grtt / 8);
    }

    /// Takes the feedback of a receiver, whose round trip was measured with it if it was. True if the others are to be
    /// told of it, so that they need not answer.
    pub(super) fn feedback(
        &mut self,
        now: Instant,
        node: NodeId,
        cc: CcFeedback,
        round_trip: Option<Duration>,
        grtt: Duration,
    ) -> bool {
        // An answer to a probe that was not sent yet is none.
        if self.sequence.is_none_or(|sent| (cc.sequence.wrapping_sub(sent) as i16) > 0) {
            return false;
        }
        let known = self.receivers.iter().position(|receiver| receiver.node == node);
        if known.is_some_and(|at| (cc.sequence.wrapping_sub(self.receivers[at].sequence) as i16) < 0) {
            return false;
        }
        if cc.flags.contains(CcFlags::LEAVE) {
            self.receivers.retain(|receiver| receiver.node != node);
            return false;
        }
        let before = known.map(|at| self.receivers[at].round_trip);
        let told = cc.flags.contains(CcFlags::RTT).then(|| quantise::rtt(cc.rtt));
        // RFC 5740, section 5.5.2.3.
        let round_trip = match (round_trip, before, told) {
            (Some(found), Some(before), _) => before.mul_f64(0.9) + found.mul_f64(0.1),
            (Some(found), None, Some(told)) => told.mul_f64(0.5) + found.mul_f64(0.5),
            (Some(found), None, None) => found,
            (None, before, _) => before.unwrap_or_else(|| quantise::rtt(cc.rtt)),
        };
        let starting = cc.flags.contains(CcFlags::START);
        let was_held_back = self.busy.within(now - round_trip - round_trip, now - round_trip);
        let rate = match starting {
            // Its round trip is known better here than there.
            false => tcp_rate(self.packet, round_trip, quantise::loss(cc.loss)).min(self.max),
            // Zero is no rate (RFC 5740, section 5.5.2.1). And that little arrived of little that was sent says nothing
            // against the rate (RFC 5348, section 4.3).
            true if cc.rate == 0 => self.rate,
            true if !was_held_back => quantise::rate(cc.rate).max(self.rate),
            true => quantise::rate(cc.rate),
        };
        let receiver = Limiting { node, rate, round_trip, starting, heard: now, sequence: cc.sequence };
        match known {
            Some(index) => self.receivers[index] = receiver,
            None => self.receivers.push(receiver),
        }
        // The lowest rate leads. One that only hears from it takes the lead where it is clearly lower, so that two
        // alike do not take turns.
        let lead = self.receivers[0].rate;
        if let Some(lowest) = (0..self.receivers.len())
            .min_by(|&a, &b| self.receivers[a].rate.total_cmp(&self.receivers[b].rate))
            && (self.receivers[lowest].rate < CLOSE * lead || self.receivers[lowest].node == node)
        {
            self.receivers.swap(0, lowest);
        }
        self.receivers[1..].sort_by(|a, b| a.rate.total_cmp(&b.rate));
        if self.receivers.len() > MAX_NODES
            && let Some(last) = self.receivers.pop()
        {
            self.told.retain(|other| other.node != last.node);
            self.told.push_back(last);
            self.told.truncate(MAX_TOLD);
        }
        self.adjust(now, was_held_back);
        self.suppression.feedback(now, cc, grtt)
    }

    fn adjust(&mut self, now: Instant, was_held_back: bool) {
        let Some(leader) = self.receivers.first() else { return };
        let target = leader.rate.clamp(self.min, self.max);
        if target <= self.rate {
            self.rate = target;
            return;
        }
        // A receiver in slow start names no more than twice what arrives. Otherwise a rate that was not used says
        // nothing of what the path carries beyond it.
        if now.since(self.raised) < leader.round_trip || !(was_held_back || leader.starting) {
            return;
        }
        // Slow start doubles at most in a round trip; otherwise a packet is added in each (RFC 5740, section 5.5.2.3).
        let most = match leader.starting || self.rate * 2.0 <= self.resume {
            true => self.rate * 2.0,
            false => self.rate + self.packet / leader.round_trip.as_secs_f64().max(1e-3),
        };
        self.rate = target.min(most);
        self.raised = now;
        if self.rate * 2.0 > self.resume {
            self.resume = 0.0;
        }
    }

    /// A probe of this number is about to be sent. While the leader is silent the rate falls, in the end to its
    /// minimum; after that it counts as gone.
    pub(super) fn probed(&mut self, now: Instant, sequence: u16, grtt: Duration) {
        if self.sequence.replace(sequence).is_none() {
            self.halved = now;
        }
        let age = |receiver: &Limiting| sequence.wrapping_sub(receiver.sequence);
        self.receivers.retain(|receiver| age(receiver) <= LOST_PROBES);
        let is_silent = match self.receivers.first() {
            Some(leader) => {
                let silence = now.since(leader.heard.max(self.halved));
                age(leader) > OLD_PROBES && silence >= leader.round_trip * u64::from(OLD_PROBES)
            }
            None => now.since(self.halved) >= grtt * SILENT_ROUND_TRIPS,
        };
        if is_silent {
            self.rate = (self.rate / 2.0).max(self.min);
            self.resume = 0.0;
            self.halved = now;
        }
    }

    /// Entries of a probe: the receivers that limit the rate, and those that are to know their round trips.
    pub(super) fn nodes(&mut self) -> Vec<CcNode> {
        let node = |receiver: &Limiting, role: CcFlags| {
            let start = if receiver.starting { CcFlags::START } else { CcFlags(0) };
            CcNode {
                node: receiver.node,
                flags: role.with(CcFlags::RTT).with(start),
                rtt: quantise::from_rtt(receiver.round_trip),
                rate: quantise::from_rate(receiver.rate),
            }
        };
        let role = |index| if index == 0 { CcFlags::CLR } else { CcFlags::PLR };
        let limiting = self.receivers.iter().enumerate();
        let mut nodes: Vec<_> = limiting.map(|(index, receiver)| node(receiver, role(index))).collect();
        let known = |told: &Limiting| self.receivers.iter().any(|receiver| receiver.node == told.node);
        nodes.extend(self.told.iter().filter(|told| !known(told)).map(|told| node(told, CcFlags(0))));
        self.told.clear();
        nodes
    }

    /// Feedback of this round that others need not exceed.
    pub(super) fn suppression(&self, now: Instant) -> Option<CcFeedback> {
        self.suppression.lowest.filter(|_| now < self.suppression.until)
    }
}

/// Times at which the rate alone kept the sender from sending more; all others are data-limited (RFC 5348, section
/// 8.2.1, which remembers two such times for its one receiver).
#[derive(Clone, Debug, Default)]
struct Busy {
    /// In their order, apart from each other; at most [`MAX_BUSY`].
    times: VecDeque<(Instant, Instant)>,
}

/// Chosen: with one break in an eighth of a GRTT, they are those of two GRTT.
const MAX_BUSY: usize = 16;

impl Busy {
    /// Notes such a time, which belongs to the last one if no more than `gap` is between them.
    fn note(&mut self, from: Instant, until: Instant, gap: Duration) {
        match self.times.back_mut() {
            Some((_, end)) if from <= *end + gap => *end = until.max(*end),
            _ => {
                if self.times.len() == MAX_BUSY {
                    self.times.pop_front();
                }
                self.times.push_back((from, until));
            }
        }
    }

    /// Whether there was one between two times.
    fn within(&self, from: Instant, until: Instant) -> bool {
        self.times.iter().any(|&(began, ended)| began <= until && ended >= from)
    }
}

/// The feedback that spares others theirs (RFC 5740, sections 5.4.4 and 5.5.2.2).
#[derive(Clone, Copy, Debug, Default)]
struct Suppression {
    /// The lowest rate of the round; without the flag RTT if it spares those too that do not know their round trips.
    lowest: Option<CcFeedback>,
    /// When the round ends.
    until: Instant,
}

/// Length of a round of feedback, in GRTT (RFC 4654, section 3.4).
const FEEDBACK_ROUND: u64 = 6;

impl Suppression {
    /// Takes feedback. True if it spares others more than that before it.
    fn feedback(&mut self, now: Instant, cc: CcFeedback, grtt: Duration) -> bool {
        if cc.rate == 0 {
            return false;
        }
        if now >= self.until {
            *self = Self { lowest: None, until: now + grtt * FEEDBACK_ROUND };
        }
        let known = cc.flags.contains(CcFlags::RTT);
        let spares = self.lowest.is_none_or(|lowest| {
            quantise::rate(cc.rate) < CLOSE * quantise::rate(lowest.rate)
                || !known && lowest.flags.contains(CcFlags::RTT)
        });
        if spares {
            let flags = self.lowest.map_or(cc.flags.0, |lowest| lowest.flags.0 & cc.flags.0);
            let rate = self.lowest.map_or(f64::INFINITY, |lowest| quantise::rate(lowest.rate));
            let rate = if quantise::rate(cc.rate) < rate { cc.rate } else { quantise::from_rate(rate) };
            let flags = CcFlags(flags & (CcFlags::RTT.0 | CcFlags::START.0));
            self.lowest = Some(CcFeedback { flags, rate, ..cc });
        }
        spares
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

    const ROUND_TRIP: Duration = Duration::from_millis(50);

    /// Sends a probe, and has a receiver answer it a round trip later. All the time there is more to send.
    fn answered(congestion: &mut Congestion, time: u64, node: u32, feedback: CcFeedback) {
        congestion.probed(at(time), feedback.sequence, ROUND_TRIP);
        congestion.held_back(at(time - 50), at(time + 50), ROUND_TRIP);
        congestion.feedback(at(time + 50), NodeId(node), feedback, Some(ROUND_TRIP), ROUND_TRIP);
    }

    #[test]
    fn it_doubles_once_in_a_round_trip_until_there_is_loss() {
        let mut congestion = congestion();
        for step in 1..5_u16 {
            let (time, feedback) = (100 + 50 * u64::from(step), said(step, CcFlags::START, 1e9, 0.0));
            answered(&mut congestion, time, 1, feedback);
            congestion.feedback(at(time + 60), NodeId(1), feedback, Some(ROUND_TRIP), ROUND_TRIP);
        }
        assert_eq!(congestion.rate().bits_per_sec(), 64_000 * 16);
        answered(&mut congestion, 400, 1, said(9, CcFlags::RTT, 0.0, 0.1));
        let tcp = tcp_rate(1400.0, ROUND_TRIP, 0.1) * 8.0;
        assert!((congestion.rate().bits_per_sec() as f64 / tcp - 1.0).abs() < 0.01);
    }

    #[test]
    fn the_receiver_with_the_worst_path_leads_and_another_when_it_is_gone() {
        let mut congestion = congestion();
        answered(&mut congestion, 100, 1, said(1, CcFlags::RTT, 0.0, 0.05));
        answered(&mut congestion, 110, 2, said(1, CcFlags::RTT, 0.0, 0.2));
        let leader = |congestion: &mut Congestion| congestion.nodes()[0].node;
        assert_eq!(leader(&mut congestion), NodeId(2));
        let low = congestion.rate();
        for step in 0..60_u16 {
            let time = 150 + 50 * u64::from(step);
            answered(&mut congestion, time, 1, said(2 + step, CcFlags::RTT, 0.0, 0.05));
        }
        assert_eq!(leader(&mut congestion), NodeId(1));
        assert!(congestion.rate() > low);
    }

    #[test]
    fn in_silence_the_rate_falls_to_its_minimum_and_forged_receivers_are_few() {
        let mut congestion = congestion();
        congestion.probed(at(0), 1, ROUND_TRIP);
        for node in 0..1000 {
            let feedback = said(1, CcFlags::START, 1e6, 0.0);
            congestion.feedback(at(100), NodeId(node), feedback, Some(ROUND_TRIP), ROUND_TRIP);
        }
        assert!(congestion.nodes().len() <= MAX_NODES + MAX_TOLD);
        let mut rates = Vec::new();
        for step in 2..200_u16 {
            congestion.probed(at(50 * u64::from(step)), step, ROUND_TRIP);
            rates.push(congestion.rate().bits_per_sec());
        }
        assert!(rates.is_sorted_by(|before, after| before >= after));
        assert_eq!((rates[3], rates[197]), (128_000, 8_000));
        assert!(congestion.nodes().is_empty());
    }

    #[test]
    fn what_was_not_used_is_neither_lost_nor_won() {
        let mut congestion = congestion();
        answered(&mut congestion, 100, 1, said(1, CcFlags::START, 1e9, 0.0));
        let before = congestion.rate();
        for step in 0..20_u16 {
            let time = at(1000 + 50 * u64::from(step));
            let flags = if step < 10 { CcFlags::START } else { CcFlags::RTT };
            congestion.probed(time, 2 + step, ROUND_TRIP);
            let feedback = said(2 + step, flags, 500.0, if step < 10 { 0.0 } else { 1e-6 });
            congestion.feedback(time + ROUND_TRIP, NodeId(1), feedback, Some(ROUND_TRIP), ROUND_TRIP);
            assert_eq!(congestion.rate(), before);
        }
    }

    #[test]
    fn a_break_halves_the_rate_and_slow_start_leads_back() {
        let mut congestion = congestion();
        for step in 1..=6_u16 {
            answered(&mut congestion, 100 * u64::from(step), 1, said(step, CcFlags::START, 1e9, 0.0));
        }
        let before = congestion.rate();
        congestion.sent(at(700));
        congestion.sent(at(2_750));
        assert_eq!(congestion.rate().bits_per_sec(), before.bits_per_sec() / 4);
        for step in 7..10_u16 {
            let time = 3_000 + 100 * u64::from(step);
            answered(&mut congestion, time, 1, said(step, CcFlags::RTT, 0.0, 1e-6));
        }
        let rate = congestion.rate().bits_per_sec() as f64;
        assert!((rate / before.bits_per_sec() as f64 - 1.0).abs() < 0.2, "{rate}");
        congestion.sent(at(4_000));
        congestion.sent(at(400_000));
        assert_eq!(congestion.rate().bits_per_sec(), 64_000);
    }

    #[test]
    fn feedback_spares_others_until_its_round_is_over() {
        let mut congestion = congestion();
        congestion.probed(at(0), 1, ROUND_TRIP);
        let mut tell = |time, node, flags, rate| {
            congestion.feedback(at(time), NodeId(node), said(1, flags, rate, 0.0), None, ROUND_TRIP)
        };
        let known = CcFlags::START.with(CcFlags::RTT);
        assert!(tell(50, 1, known, 10_000.0));
        assert!(!tell(60, 2, known, 9_500.0), "close to it");
        assert!(tell(70, 3, known, 5_000.0));
        assert!(tell(80, 4, CcFlags::START, 20_000.0), "those without a round trip are not spared yet");
        let lowest = congestion.suppression(at(90)).unwrap();
        assert!(quantise::rate(lowest.rate) < 5_100.0 && !lowest.flags.contains(CcFlags::RTT));
        assert_eq!(congestion.suppression(at(400)), None);
    }
}
