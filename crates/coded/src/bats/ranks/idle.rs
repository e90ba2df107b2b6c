//! Spare capacity of a nearly idle hop, spent on repairs before anybody asks for them.

use std::collections::VecDeque;

use hopcast_core::{Duration, Instant};

use super::super::bursts::BURSTY;
use super::super::hop::NEARLY_IDLE;
use super::super::rate::LinkRate;

/// Time over which the use of a hop is measured, in two halves. Chosen: shorter, and a pause between two messages is
/// idleness; longer, and repairs compete with the beginning of a transfer.
const SPAN: Duration = Duration::from_millis(50);
/// Capacity that a hop has at least in a round trip, in bits: ten full packets (RFC 6928).
const INITIAL_WINDOW: f64 = 10.0 * 1514.0 * 8.0;
/// Loss below which no repair is sent ahead of need. Chosen: a loss is then so rare that repairs would be nearly all in
/// vain.
const MIN_LOSS: f64 = 0.002;
/// Probability that a packet and all its repairs are lost, at which no more are planned. Chosen: one message in a
/// thousand then waits for a round trip; a smaller one takes more repairs of every message.
const RESIDUAL: f64 = 1e-3;
/// Maximum number of repairs for one packet: Chosen: with them, a hop below a quarter of its rate stays below it
/// (`NEARLY_IDLE`); with fewer, more losses wait for a round trip.
const MAX_REPAIRS: u32 = 2;
/// Maximum number of repairs that are planned at once. Chosen: it bounds memory, and is more than a nearly idle hop has
/// packets in a millisecond or two.
const MAX_PLANNED: usize = 64;
/// Time between a packet and its repair. Chosen: shorter, and the same event takes both; longer, and a loss costs as
/// much delay.
const SPACING: Duration = Duration::from_millis(1);
/// Time that a report may wait for data to travel with, where little is sent: as long as the receiver's `MAX_WAIT`, for
/// the same reasons.
const MAX_REPORT_HOLD: Duration = Duration::from_millis(20);

/// The use of one hop, and the repairs that are planned.
#[derive(Debug, Default)]
pub(super) struct Idle {
    planned: VecDeque<Planned>,
    /// The bytes of this half of the span and of the half before.
    halves: [u64; 2],
    half: Instant,
    idle: bool,
}

#[derive(Clone, Copy, Debug)]
struct Planned {
    at: Instant,
    batch: u64,
    /// The packet that it protects.
    sequence: u64,
}

impl Idle {
    /// A packet with something new is sent; `last`: nothing waits to follow.
    pub(super) fn on_sent(
        &mut self,
        now: Instant,
        bytes: usize,
        batch: u64,
        sequence: u64,
        last: bool,
        rate: &LinkRate,
    ) {
        let elapsed = now.since(self.half);
        if elapsed >= SPAN / 2 {
            let whole = elapsed < SPAN;
            self.halves = [0, if whole { self.halves[0] } else { 0 }];
            self.half = now;
        }
        self.halves[0] += bytes as u64;
        let used = (self.halves[0] + self.halves[1]) as f64 * 8.0 / SPAN.as_secs_f64();
        // A trickle measures nothing but itself: a window of ten packets a round trip is taken for granted (RFC 6928).
        let granted = rate.srtt().map_or(f64::INFINITY, |rtt| INITIAL_WINDOW / rtt.as_secs_f64().max(1e-6));
        let capacity = granted.max(rate.rate().bits_per_sec() as f64);
        self.idle = last && used < NEARLY_IDLE * capacity;
        if !self.idle {
            self.planned.clear();
            return;
        }
        self.plan(now, batch, sequence, (rate.loss(), rate.mean_burst()));
    }

    /// Plans repairs of a packet over a hop with this loss, in bursts of this mean length.
    fn plan(&mut self, now: Instant, batch: u64, sequence: u64, (loss, bursts): (f64, f64)) {
        if loss < MIN_LOSS {
            return;
        }
        let spacing = if bursts > BURSTY { SPACING.mul_f64(bursts) } else { SPACING };
        let mut residual = loss;
        for nth in 1..=u64::from(MAX_REPAIRS) {
            if residual <= RESIDUAL || self.planned.len() == MAX_PLANNED {
                break;
            }
            residual *= loss;
            self.planned.push_back(Planned { at: now + spacing * nth, batch, sequence });
        }
    }

    /// All packets before `reported` are.
    pub(super) fn on_report(&mut self, reported: u64) {
        self.planned.retain(|planned| planned.sequence >= reported);
    }

    /// The batch of which a repair is due.
    pub(super) fn due(&self, now: Instant) -> Option<u64> {
        // Two packets' repairs may be out of order by less than a spacing, which does not matter.
        self.planned.front().filter(|planned| planned.at <= now).map(|planned| planned.batch)
    }

    /// The repair that was due is sent, or needless.
    pub(super) fn done(&mut self) {
        self.planned.pop_front();
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.planned.front().map(|planned| planned.at)
    }

    /// For how much longer than else a report may be waited for.
    pub(super) fn patience(&self, round_trip: Option<Duration>) -> Duration {
        if self.idle { (round_trip.unwrap_or_default() * 2).min(MAX_REPORT_HOLD) } else { Duration::ZERO }
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::*;
    use crate::bats::rate::{Config, HopReport};

    #[test]
    fn a_hop_is_nearly_idle_below_a_quarter_of_its_rate() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut rate = LinkRate::new(Config::default(), Seed::new(1, 0).stream(&["idle"], 0));
        rate.on_sent(at(0), 0, 1000, true);
        assert_eq!(rate.on_report(at(100), &HopReport::example()), Ok(()));
        let capacity = (10.0 * 1514.0 * 8.0 / 0.1_f64).max(rate.rate().bits_per_sec() as f64);
        // Bytes in 50 ms.
        let quarter = capacity / 4.0 * 0.05 / 8.0;
        for (share, is_idle) in [(0.9, true), (0.99, true), (1.01, false), (1.1, false)] {
            let mut idle = Idle::default();
            idle.on_sent(at(200), (quarter * share) as usize, 0, 1, true, &rate);
            let patience = idle.patience(Some(Duration::from_millis(100)));
            assert_eq!(patience > Duration::ZERO, is_idle, "{share} of a quarter");
        }
        let mut idle = Idle::default();
        idle.on_sent(at(200), 1, 0, 1, false, &rate);
        assert!(idle.patience(None).is_zero(), "more waits to follow");
    }

    /// Times at which the repairs of a packet are sent, in milliseconds after it.
    fn planned(loss: f64, bursts: f64) -> Vec<f64> {
        let mut idle = Idle::default();
        idle.plan(Instant::ZERO, 3, 7, (loss, bursts));
        assert!(idle.planned.iter().all(|planned| (planned.batch, planned.sequence) == (3, 7)));
        idle.planned.iter().map(|planned| planned.at.since(Instant::ZERO).as_secs_f64() * 1e3).collect()
    }

    #[test]
    fn as_many_repairs_are_sent_as_leave_one_packet_in_a_thousand_out_but_two_at_most() {
        assert!(planned(0.001, 1.0).is_empty() && planned(0.0019, 1.0).is_empty(), "below 0.2 % none is");
        for loss in [0.0021, 0.003, 0.01, 0.03] {
            // 0.03^2 = 0.0009.
            assert_eq!(planned(loss, 1.0), [1.0], "{loss}");
        }
        for loss in [0.033, 0.04, 0.5, 0.9] {
            assert_eq!(planned(loss, 1.0), [1.0, 2.0], "{loss}");
        }
    }

    #[test]
    fn repairs_are_spread_wider_than_bursts() {
        assert_eq!(planned(0.2, 1.5), [1.0, 2.0], "single losses are runs of two sometimes");
        assert_eq!(planned(0.2, 1.75), [1.75, 3.5]);
        assert_eq!(planned(0.2, 8.0), [8.0, 16.0]);
    }

    #[test]
    fn no_more_than_64_repairs_are_planned_and_those_of_what_has_arrived_are_not_sent() {
        let mut idle = Idle::default();
        (0..40).for_each(|sequence| idle.plan(Instant::ZERO, sequence, sequence, (0.2, 1.0)));
        assert_eq!(idle.planned.len(), 64);
        idle.on_report(30);
        assert_eq!(idle.planned.iter().map(|planned| planned.sequence).collect::<Vec<_>>(), [30, 30, 31, 31]);
        assert_eq!(idle.due(Instant::ZERO + Duration::from_micros(999)), None);
        assert_eq!(idle.due(Instant::ZERO + Duration::from_millis(1)), Some(30));
        idle.done();
        assert_eq!(idle.deadline(), Some(Instant::ZERO + Duration::from_millis(2)));
    }

    #[test]
    fn over_an_idle_hop_a_report_may_wait_for_two_round_trips_but_20_ms_at_most() {
        let idle = Idle { idle: true, ..Idle::default() };
        for (round_trip, wait) in [(3, 6), (10, 20), (100, 20)] {
            assert_eq!(idle.patience(Some(Duration::from_millis(round_trip))), Duration::from_millis(wait));
        }
        assert!(idle.patience(None).is_zero());
    }
}
