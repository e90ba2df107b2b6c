//! HyStart++: slow start ends when the round trip begins to grow, before the queue is full (RFC 9406).
//!
//! A growing round trip first leads to conservative slow start, five round trips of slower growth; if it falls back
//! below where it was, the growth was jitter and slow start goes on.

use hopcast_core::Duration;

// As RFC 9406 section 4.3 recommends them, by its names: MIN_RTT_THRESH, MAX_RTT_THRESH, MIN_RTT_DIVISOR, N_RTT_SAMPLE,
// CSS_GROWTH_DIVISOR, CSS_ROUNDS.

const MIN_RTT_THRESHOLD: Duration = Duration::from_millis(4);
const MAX_RTT_THRESHOLD: Duration = Duration::from_millis(16);
const MIN_RTT_DIVISOR: u64 = 8;
const RTT_SAMPLES: u32 = 8;
const CSS_GROWTH_DIVISOR: u32 = 4;
const CSS_ROUNDS: u32 = 5;
/// Maximum number of segments by which one acknowledgement raises the window when sending is not paced (RFC 9406
/// section 4.3, L).
const BURST: u32 = 8;

/// The state of slow start.
#[derive(Clone, Debug, Default)]
pub(super) struct HyStart {
    round_end: Option<u64>,
    last_min: Option<Duration>,
    current_min: Option<Duration>,
    samples: u32,
    conservative: Option<Conservative>,
    /// The growth that conservative slow start has saved up, in parts of a segment.
    fraction: u32,
}

#[derive(Clone, Copy, Debug)]
struct Conservative {
    baseline: Duration,
    rounds: u32,
}

impl HyStart {
    /// Takes in an acknowledgement up to `una`, when `nxt` is sent next. True if slow start is over.
    pub(super) fn on_ack(&mut self, una: u64, nxt: u64, rtt: Option<Duration>) -> bool {
        let mut over = false;
        if self.round_end.is_none_or(|end| una >= end) {
            if self.round_end.is_some()
                && let Some(conservative) = &mut self.conservative
            {
                conservative.rounds += 1;
                over = conservative.rounds >= CSS_ROUNDS;
            }
            self.round_end = Some(nxt);
            self.last_min = self.current_min.take();
            self.samples = 0;
        }
        let Some(rtt) = rtt else { return over };
        self.samples += 1;
        let current = self.current_min.map_or(rtt, |min| min.min(rtt));
        self.current_min = Some(current);
        if self.samples < RTT_SAMPLES {
            return over;
        }
        match self.conservative {
            Some(Conservative { baseline, .. }) if current < baseline => self.conservative = None,
            Some(_) => {}
            None => {
                if let Some(last) = self.last_min {
                    let threshold = (last / MIN_RTT_DIVISOR).clamp(MIN_RTT_THRESHOLD, MAX_RTT_THRESHOLD);
                    if current >= last + threshold {
                        self.conservative = Some(Conservative { baseline: current, rounds: 0 });
                    }
                }
            }
        }
        over
    }

    /// The growth of the window for `acked` segments.
    pub(super) fn growth(&mut self, acked: u32) -> u32 {
        let acked = acked.min(BURST);
        if self.conservative.is_none() {
            return acked;
        }
        let parts = self.fraction + acked;
        self.fraction = parts % CSS_GROWTH_DIVISOR;
        parts / CSS_GROWTH_DIVISOR
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn round(hystart: &mut HyStart, number: u64, rtt: Duration) -> bool {
        (0..10).any(|i| hystart.on_ack(number * 10 + i, number * 10 + 10, Some(rtt)))
    }

    #[test]
    fn a_growing_round_trip_ends_slow_start_after_five_slower_rounds() {
        let mut hystart = HyStart::default();
        let ms = Duration::from_millis;
        assert!(!round(&mut hystart, 0, ms(20)));
        assert!(!round(&mut hystart, 1, ms(21)));
        assert_eq!(hystart.growth(4), 4);
        assert!(!round(&mut hystart, 2, ms(26)));
        assert_eq!(hystart.growth(4), 1);
        let over = (3..9).find(|&number| round(&mut hystart, number, ms(30)));
        assert_eq!(over, Some(7));
    }

    #[test]
    fn jitter_does_not_end_slow_start() {
        let mut hystart = HyStart::default();
        let ms = Duration::from_millis;
        round(&mut hystart, 0, ms(20));
        round(&mut hystart, 1, ms(26));
        assert_eq!(hystart.growth(4), 1);
        round(&mut hystart, 2, ms(20));
        assert_eq!(hystart.growth(4), 4);
    }

    #[test]
    fn a_round_trip_has_grown_by_an_eighth_but_by_4_to_16_ms() {
        // RFC 9406 section 4.3.
        for (base, grown) in [(8, 12), (32, 36), (80, 90), (128, 144), (400, 416)] {
            for (rtt, slower) in [(grown - 1, false), (grown, true)] {
                let mut hystart = HyStart::default();
                round(&mut hystart, 0, Duration::from_millis(base));
                round(&mut hystart, 1, Duration::from_millis(rtt));
                assert_eq!(hystart.conservative.is_some(), slower, "{rtt} after {base} ms");
            }
        }
    }

    #[test]
    fn an_acknowledgement_raises_the_window_by_eight_segments_at_most() {
        // RFC 9406 section 4.2: L = 8 without pacing. In conservative slow start by a quarter of them.
        let mut hystart = HyStart::default();
        assert_eq!([1, 8, 9, 50].map(|acked| hystart.growth(acked)), [1, 8, 8, 8]);
        hystart.conservative = Some(Conservative { baseline: Duration::ZERO, rounds: 0 });
        assert_eq!([50, 1, 1, 1, 1].map(|acked| hystart.growth(acked)), [2, 0, 0, 0, 1]);
    }
}
