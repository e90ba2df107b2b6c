//! Bytes sent over a hop: whether it has capacity to spare, and when the queue before it is empty.

use hopcast_core::{Duration, Instant};

use super::super::super::rate::LinkRate;

/// Time over which the use of a hop is measured, in two halves. Chosen: shorter, and the pause behind a frame of a
/// video is idleness; longer, and repairs compete with the beginning of a transfer.
const SPAN: Duration = Duration::from_millis(500);
/// Capacity that a hop has at least in a round trip, in bits: ten full packets (RFC 6928).
const INITIAL_WINDOW: f64 = 10.0 * 1514.0 * 8.0;
/// Share of a hop's rate that is new, below which it has capacity to spare. Chosen: repairs of packets that leave one
/// by one are two for each, so that they and what is new are about the rate; a smaller share would leave out video, a
/// larger one would take the room of what comes next.
const SPARE: f64 = 0.4;
/// The same with repairs. Chosen: what comes next finds a quarter of the rate free.
const SPARE_IN_ALL: f64 = 0.75;

/// The bytes sent over a hop.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spent {
    /// What is new, and all, in this half of the span and in the half before.
    halves: [[u64; 2]; 2],
    half: Instant,
    /// What is new, and repairs ahead of need, since the session began.
    new: u64,
    ahead: u64,
    /// Time at which the queue before the hop will be empty, if any stands there.
    carried: Instant,
}

impl Spent {
    /// A packet is sent that is `new`, or a repair ahead of need.
    pub(super) fn add(&mut self, now: Instant, bytes: u64, new: bool, rate: &LinkRate) {
        let elapsed = now.since(self.half);
        if elapsed >= SPAN / 2 {
            self.halves = [[0; 2], if elapsed < SPAN { self.halves[0] } else { [0; 2] }];
            self.half = now;
        }
        let [of_new, all] = &mut self.halves[0];
        *all += bytes;
        if new {
            *of_new += bytes;
            self.new += bytes;
        } else {
            self.ahead += bytes;
        }
        // No queue is longer than what is in flight.
        let drain = rate.drain();
        let time = |bytes: u64| drain.map_or(0.0, |drain| bytes as f64 * 8.0 / drain.max(1.0));
        let longest = now + Duration::from_secs_f64(time(rate.in_flight()));
        self.carried = (self.carried.max(now) + Duration::from_secs_f64(time(bytes))).min(longest);
    }

    /// Whether the repairs are no more than this multiple of what is new.
    pub(super) fn is_within(&self, overhead: f64) -> bool {
        self.ahead as f64 <= overhead * self.new as f64
    }

    /// Time at which the queue before the hop will be empty.
    pub(super) const fn carried(&self) -> Instant {
        self.carried
    }

    /// Whether the hop has capacity to spare.
    pub(super) fn is_spare(&self, rate: &LinkRate) -> bool {
        // A trickle measures nothing but itself: a window of ten packets a round trip is taken for granted (RFC 6928).
        let granted = rate.srtt().map_or(f64::INFINITY, |rtt| INITIAL_WINDOW / rtt.as_secs_f64().max(1e-6));
        let capacity = granted.max(rate.rate().bits_per_sec() as f64);
        let [new, all] =
            [0, 1].map(|of| (self.halves[0][of] + self.halves[1][of]) as f64 * 8.0 / SPAN.as_secs_f64());
        new < SPARE * capacity && all < SPARE_IN_ALL * capacity
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::*;
    use crate::bats::rate::{Config, HopReport};

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    /// A hop that has reported after 100 ms, and its rate as it is taken here.
    fn rate() -> (LinkRate, f64) {
        let mut rate = LinkRate::new(Config::default(), Seed::new(1, 0).stream(&["spent"], 0));
        rate.on_sent(at(0), 0, 1000, true);
        assert_eq!(rate.on_report(at(100), &HopReport::example()), Ok(()));
        let capacity = (INITIAL_WINDOW / 0.1).max(rate.rate().bits_per_sec() as f64);
        (rate, capacity)
    }

    #[test]
    fn a_hop_has_capacity_to_spare_below_40_percent_new_and_75_in_all_over_half_a_second() {
        let (rate, capacity) = rate();
        let all = capacity / 2.0 / 8.0;
        for (new, ahead, spare) in [
            (0.39, 0.0, true),
            (0.41, 0.0, false),
            (0.39, 0.35, true),
            (0.39, 0.37, false),
            (0.1, 0.66, false),
        ] {
            let mut spent = Spent::default();
            spent.add(at(300), (all * new) as u64, true, &rate);
            spent.add(at(300), (all * ahead) as u64, false, &rate);
            assert_eq!(spent.is_spare(&rate), spare, "{new} {ahead}");
            // It counts for a quarter of a second at least, and for half a second at most.
            spent.add(at(540), 0, true, &rate);
            assert_eq!(spent.is_spare(&rate), spare);
            spent.add(at(800), 0, true, &rate);
            spent.add(at(1051), 0, true, &rate);
            assert!(spent.is_spare(&rate));
        }
    }

    #[test]
    fn repairs_are_bounded_by_what_is_new() {
        let (rate, _) = rate();
        let mut spent = Spent::default();
        assert!(spent.is_within(0.0));
        spent.add(at(300), 1000, true, &rate);
        spent.add(at(300), 500, false, &rate);
        assert!(spent.is_within(0.5) && !spent.is_within(0.49));
    }
}
