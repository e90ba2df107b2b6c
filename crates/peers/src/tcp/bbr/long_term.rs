//! BBR's long-term bandwidth: the rate that a token-bucket policer lets through.
//!
//! After Linux `bbr_lt_bw_sampling`. Two intervals in a row that lose much and deliver alike look like a policer; for
//! 48 round trips the flow then sends at their average rate, without probing.

use super::super::congestion::{Path, Sample};
use super::units::{BANDWIDTH_UNIT, Bandwidth};

/// Minimum length of an interval, in round trips; four times this is the maximum (Linux `bbr_lt_intvl_min_rtts`).
const MIN_ROUNDS: u32 = 4;
/// Lost for each packet delivered, times 256, from which an interval is lossy: 20 % (Linux `bbr_lt_loss_thresh`).
const LOSSY: u64 = 50;
/// Two bandwidths are alike if they differ by at most an eighth (Linux `bbr_lt_bw_ratio`),
const ALIKE_RATIO: u64 = 8;
/// or by at most 4 kbit/s: here in bytes per second (Linux `bbr_lt_bw_diff`).
const ALIKE_DIFFERENCE: u64 = 4000 / 8;
/// Round trips for which the long-term bandwidth is used (Linux `bbr_lt_bw_max_rtts`).
const USED_ROUNDS: u32 = 48;

/// The state of the estimate.
#[derive(Clone, Debug, Default)]
pub(super) struct LongTerm {
    sampling: bool,
    used: bool,
    rounds: u32,
    /// The bandwidth of the interval before; with `used`, the one in use.
    bandwidth: Option<Bandwidth>,
    start: Interval,
}

/// Beginning of an interval.
#[derive(Clone, Copy, Debug, Default)]
struct Interval {
    at_ms: u64,
    delivered: u64,
    lost: u64,
}

impl LongTerm {
    /// The bandwidth to send at, if a policer seems to be in the path.
    pub(super) fn bandwidth(&self) -> Option<Bandwidth> {
        self.bandwidth.filter(|_| self.used)
    }

    /// Takes in a sample. True if the bandwidth has been used for long enough and probing should begin again.
    pub(super) fn sample(
        &mut self,
        path: &Path<'_>,
        sample: &Sample,
        round_start: bool,
        probing: bool,
    ) -> bool {
        if self.used {
            if probing && round_start {
                self.rounds += 1;
                if self.rounds >= USED_ROUNDS {
                    self.reset(path);
                    return true;
                }
            }
            return false;
        }
        // The first loss may be the one that exhausts the bucket; before it the rate is not the policer's.
        if !self.sampling {
            if sample.lost == 0 {
                return false;
            }
            self.begin(path);
            self.sampling = true;
        }
        if sample.rate.app_limited {
            self.reset(path);
            return false;
        }
        self.rounds += u32::from(round_start);
        if self.rounds < MIN_ROUNDS {
            return false;
        }
        if self.rounds > 4 * MIN_ROUNDS {
            self.reset(path);
            return false;
        }
        // An interval ends with a loss, when the bucket is empty again.
        if sample.lost > 0 {
            self.end_interval(path);
        }
        false
    }

    fn end_interval(&mut self, path: &Path<'_>) {
        let lost = path.rate.lost - self.start.lost;
        let delivered = path.rate.delivered - self.start.delivered;
        if delivered == 0 || lost * 256 < LOSSY * delivered {
            return;
        }
        let elapsed_ms =
            path.rate.delivered_at.since(hopcast_core::Instant::ZERO).as_millis() - self.start.at_ms;
        if elapsed_ms < 1 {
            return;
        }
        let bandwidth = delivered * BANDWIDTH_UNIT / (elapsed_ms * 1000);
        if let Some(before) = self.bandwidth {
            let difference = bandwidth.abs_diff(before);
            let bytes_per_second =
                u128::from(difference) * u128::from(path.mss) * 990_000 / u128::from(BANDWIDTH_UNIT);
            if difference * ALIKE_RATIO <= before || bytes_per_second <= u128::from(ALIKE_DIFFERENCE) {
                self.bandwidth = Some(bandwidth.midpoint(before));
                self.used = true;
                self.rounds = 0;
                return;
            }
        }
        self.bandwidth = Some(bandwidth);
        self.begin(path);
    }

    fn begin(&mut self, path: &Path<'_>) {
        self.rounds = 0;
        self.start = Interval {
            at_ms: path.rate.delivered_at.since(hopcast_core::Instant::ZERO).as_millis(),
            delivered: path.rate.delivered,
            lost: path.rate.lost,
        };
    }

    /// Forgets everything.
    pub(super) fn reset(&mut self, path: &Path<'_>) {
        *self = Self::default();
        self.begin(path);
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::{Duration, Instant};

    use super::*;
    use crate::tcp::congestion::testing::path_of;
    use crate::tcp::rate::{DeliveryRate, RateSample};
    use crate::tcp::window::Window;

    /// A flow that delivers `per_round` segments in each round trip of 20 ms, and loses `lost` for it.
    #[derive(Default)]
    struct Flow {
        long_term: LongTerm,
        rate: DeliveryRate,
    }

    impl Flow {
        fn round(&mut self, per_round: u64, lost: u32, app_limited: bool) -> bool {
            self.rate.delivered += per_round;
            self.rate.lost += u64::from(lost);
            self.rate.delivered_at += Duration::from_millis(20);
            let mut window = Window::new(50);
            let now = self.rate.delivered_at;
            let path = path_of(now, &mut window, &mut self.rate, Duration::from_millis(20));
            let rate = RateSample { app_limited, ..RateSample::default() };
            let sample = Sample { delivered: 1, lost, rate, ..Sample::default() };
            self.long_term.sample(&path, &sample, true, true)
        }

        /// Number of rounds that it takes until the long-term bandwidth is used, of at most 40.
        fn rounds(&mut self, per_round: u64, lost: u32) -> Option<usize> {
            (1..=40).find(|_| {
                self.round(per_round, lost, false);
                self.long_term.bandwidth().is_some()
            })
        }
    }

    #[test]
    fn two_intervals_of_four_round_trips_with_a_fifth_lost_are_a_policer() {
        let mut flow = Flow::default();
        // The first loss begins an interval; what its own round trip delivers is not in it.
        assert_eq!(flow.rounds(256, 50), Some(8));
        // 256 segments in 20 ms.
        assert_eq!(flow.long_term.bandwidth(), Some(256 * BANDWIDTH_UNIT / 20_000));
        assert_eq!(Flow::default().rounds(256, 49), None, "just below a fifth");
        assert_eq!(Flow::default().rounds(256, 0), None);
    }

    #[test]
    fn intervals_that_deliver_more_than_an_eighth_apart_are_not_alike() {
        for (second, alike) in [(288, true), (290, false), (225, true), (223, false)] {
            let mut flow = Flow::default();
            for _ in 0..4 {
                flow.round(256, 100, false);
            }
            for _ in 0..4 {
                flow.round(second, 100, false);
            }
            assert_eq!(flow.long_term.bandwidth().is_some(), alike, "{second}");
        }
    }

    #[test]
    fn the_bandwidth_is_used_for_48_round_trips() {
        let mut flow = Flow::default();
        flow.rounds(256, 60);
        for _ in 0..47 {
            assert!(!flow.round(256, 60, false));
            assert!(flow.long_term.bandwidth().is_some());
        }
        assert!(flow.round(256, 60, false));
        assert!(flow.long_term.bandwidth().is_none());
    }

    #[test]
    fn what_the_application_held_back_begins_anew() {
        let mut flow = Flow::default();
        for _ in 0..6 {
            flow.round(256, 60, false);
        }
        flow.round(256, 60, true);
        assert_eq!(flow.rounds(256, 60), Some(8));
        assert_eq!(flow.rate.delivered_at, Instant::ZERO + Duration::from_millis(15 * 20));
    }

    #[test]
    fn slow_intervals_are_alike_within_4_kbit_a_second() {
        // Linux: bbr_lt_bw_diff, 500 bytes. Of 2^24ths of a segment a microsecond, 12 in 24 s are 8, 26 in 32 s are 13,
        // 27 are 14; and 5 of them are 427 bytes a second, 6 are 512, at 1,448 a segment less one in a hundred.
        for (second, alike) in [(26, true), (27, false)] {
            let mut flow = Flow::default();
            let mut round = |delivered, ms: u64| {
                flow.rate.delivered_at += Duration::from_millis(ms - 20);
                flow.round(delivered, 20, false);
            };
            for delivered in [12, second] {
                for last in [false, false, false, true] {
                    round(if last { delivered } else { 0 }, 8000);
                }
            }
            assert_eq!(flow.long_term.bandwidth().is_some(), alike, "{second}");
        }
    }
}
