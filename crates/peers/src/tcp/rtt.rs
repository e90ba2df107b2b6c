//! Round-trip times and the retransmission timeout.
//!
//! RFC 6298 with the variance of Linux: the mean deviation's maximum over each round trip, which falls slowly, and
//! never below the minimum timeout. The timeout is thus never below the smoothed round trip *plus* the minimum timeout.

use hopcast_core::{Duration, Instant};

use super::minmax::Minmax;

/// The timeout before there is a sample: RFC 6298 (2.1).
pub(super) const INITIAL_RTO: Duration = Duration::from_secs(1);
/// Maximum timeout: Linux `TCP_RTO_MAX`.
pub(super) const MAX_RTO: Duration = Duration::from_secs(120);
/// The window of the minimum round trip: Linux `tcp_min_rtt_wlen`.
const MIN_RTT_WINDOW: Duration = Duration::from_secs(300);

/// The estimator of one connection.
#[derive(Clone, Debug)]
pub(super) struct Rtt {
    min_rto: u64,
    smoothed: Option<u64>,
    deviation: u64,
    deviation_max: u64,
    variance: u64,
    /// The round trip in which `deviation_max` is being sought ends when this is acknowledged.
    round_end: u64,
    min_rtt: Option<Minmax>,
    backoff: u32,
}

impl Rtt {
    pub(super) const fn new(min_rto: Duration) -> Self {
        Self {
            min_rto: min_rto.as_nanos(),
            smoothed: None,
            deviation: 0,
            deviation_max: 0,
            variance: 0,
            round_end: 0,
            min_rtt: None,
            backoff: 0,
        }
    }

    /// Takes a sample; `una` and `nxt` delimit the outstanding data. Ends the back-off of the timeout.
    pub(super) fn sample(&mut self, rtt: Duration, una: u64, nxt: u64) {
        let sample = rtt.as_nanos().max(1);
        self.backoff = 0;
        let Some(smoothed) = self.smoothed else {
            self.smoothed = Some(sample);
            self.deviation = sample / 2;
            self.variance = (2 * sample).max(self.min_rto);
            self.deviation_max = self.variance;
            self.round_end = nxt;
            return;
        };
        // RFC 6298 (2.3) with gains of 1/8 and 1/4. A sample below the mean raises the deviation by a 1/8 of that only,
        // so that a falling round trip does not raise the timeout.
        let error = smoothed.abs_diff(sample);
        self.smoothed = Some((7 * smoothed + sample) / 8);
        let gain = if sample < smoothed && error > self.deviation { 32 } else { 4 };
        self.deviation = if error > self.deviation {
            self.deviation + (error - self.deviation) / gain
        } else {
            self.deviation - (self.deviation - error) / gain
        };
        let swing = 4 * self.deviation;
        if swing > self.deviation_max {
            self.deviation_max = swing;
            self.variance = self.variance.max(swing);
        }
        if una > self.round_end {
            if self.deviation_max < self.variance {
                self.variance -= (self.variance - self.deviation_max) / 4;
            }
            self.round_end = nxt;
            self.deviation_max = self.min_rto;
        }
    }

    /// Takes a sample that may be the path's minimum.
    pub(super) fn note_min(&mut self, now: Instant, rtt: Duration) {
        // As in Linux a round trip has at least a microsecond.
        let (at, value) = (now.as_nanos(), rtt.as_nanos().max(1_000));
        match &mut self.min_rtt {
            Some(filter) => {
                filter.update_min(MIN_RTT_WINDOW.as_nanos(), at, value);
            }
            none => *none = Some(Minmax::new(at, value)),
        }
    }

    /// The smoothed round trip.
    pub(super) fn smoothed(&self) -> Option<Duration> {
        self.smoothed.map(Duration::from_nanos)
    }

    /// The minimum round trip of the last minutes.
    pub(super) fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt.map(|filter| Duration::from_nanos(filter.get()))
    }

    /// The timeout, backed off.
    pub(super) fn timeout(&self) -> Duration {
        let base = match self.smoothed {
            Some(smoothed) => Duration::from_nanos(smoothed + self.variance),
            None => INITIAL_RTO,
        };
        (base * (1 << self.backoff)).min(MAX_RTO)
    }

    /// Doubles the timeout: RFC 6298 (5.5).
    pub(super) fn back_off(&mut self) {
        self.backoff = (self.backoff + 1).min(16);
    }

    pub(super) const fn min_rto(&self) -> Duration {
        Duration::from_nanos(self.min_rto)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: fn(u64) -> Duration = Duration::from_millis;

    #[test]
    fn the_timeout_is_the_round_trip_and_at_least_the_least_timeout() {
        let mut rtt = Rtt::new(MS(200));
        assert_eq!(rtt.timeout(), INITIAL_RTO);
        for i in 0..1_000 {
            rtt.sample(MS(30), i, i + 10);
        }
        assert_eq!(rtt.timeout(), MS(230));
    }

    #[test]
    fn the_timeout_doubles_up_to_two_minutes_and_a_sample_ends_that() {
        let mut rtt = Rtt::new(MS(200));
        rtt.sample(MS(100), 0, 1);
        let base = rtt.timeout();
        rtt.back_off();
        assert_eq!(rtt.timeout(), base * 2);
        for _ in 0..99 {
            rtt.back_off();
        }
        assert_eq!(rtt.timeout(), MAX_RTO);
        rtt.sample(MS(100), 2, 3);
        assert!(rtt.timeout() <= base);
    }

    #[test]
    fn the_round_trip_is_smoothed_by_an_eighth_and_its_deviation_by_a_quarter() {
        let mut rtt = Rtt::new(MS(1));
        rtt.sample(MS(800), 0, 10);
        // RFC 6298 (2.2): the deviation is half of the first sample, and four times that is in the timeout.
        assert_eq!((rtt.smoothed(), rtt.timeout()), (Some(MS(800)), MS(2400)));
        rtt.sample(MS(1600), 1, 10);
        // 7/8 of 800 and 1/8 of 1600; 3/4 of 400 and 1/4 of 800.
        assert_eq!((rtt.smoothed(), rtt.timeout()), (Some(MS(900)), MS(900 + 4 * 500)));
        // A shorter round trip adds a 32nd of what it is off by more than before.
        rtt.sample(MS(80), 2, 10);
        assert_eq!(rtt.smoothed(), Some(Duration::from_micros(797_500)));
        assert_eq!(rtt.deviation, MS(500).as_nanos() + MS(320).as_nanos() / 32);
    }

    #[test]
    fn the_variance_rises_at_once_and_falls_by_a_quarter_each_round_trip() {
        let mut rtt = Rtt::new(MS(200));
        rtt.sample(MS(100), 0, 10);
        assert_eq!(rtt.timeout(), MS(300));
        rtt.sample(MS(1700), 1, 10);
        // Deviation: 50 + (1600 - 50) / 4.
        let swing = 4 * (MS(50).as_nanos() + MS(1550).as_nanos() / 4);
        assert_eq!(rtt.variance, swing);
        let smoothed = rtt.smoothed().unwrap();
        rtt.sample(smoothed, 11, 20);
        assert_eq!(rtt.variance, swing, "the largest of the round trip before");
        rtt.sample(smoothed, 21, 30);
        assert_eq!(rtt.variance, swing - (swing - 4 * rtt.deviation) / 4);
    }

    #[test]
    fn the_least_round_trip_is_that_of_five_minutes() {
        let mut rtt = Rtt::new(MS(200));
        let at = |s: u64| Instant::ZERO + Duration::from_secs(s);
        rtt.note_min(at(0), MS(20));
        rtt.note_min(at(1), MS(30));
        assert_eq!(rtt.min_rtt(), Some(MS(20)));
        rtt.note_min(at(299), MS(30));
        assert_eq!(rtt.min_rtt(), Some(MS(20)));
        rtt.note_min(at(301), MS(30));
        assert_eq!(rtt.min_rtt(), Some(MS(30)));
        rtt.note_min(at(302), Duration::from_nanos(1));
        assert_eq!(rtt.min_rtt(), Some(Duration::from_micros(1)), "at least a microsecond");
    }
}
