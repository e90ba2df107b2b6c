//! BBR's long-term bandwidth: the rate that a token-bucket policer lets through.
//!
//! After Linux `bbr_lt_bw_sampling`. Two intervals in a row that lose much and deliver alike look like a policer; for 48
//! round trips the flow then sends at their average rate, without probing.

use super::bbr::{BANDWIDTH_UNIT, Bandwidth};
use super::congestion::{Path, Sample};

/// The least length of an interval, in round trips; four times this is the longest.
const LEAST_ROUNDS: u32 = 4;
/// Lost for each packet delivered, times 256, from which an interval is lossy: 20 %.
const LOSSY: u64 = 50;
/// Two bandwidths are alike if they differ by at most an eighth,
const ALIKE_RATIO: u64 = 8;
/// or by at most 4 kbit/s: here in bytes per second.
const ALIKE_DIFFERENCE: u64 = 4000 / 8;
/// For how many round trips the long-term bandwidth is used.
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

/// Where an interval began.
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
        if self.rounds < LEAST_ROUNDS {
            return false;
        }
        if self.rounds > 4 * LEAST_ROUNDS {
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
