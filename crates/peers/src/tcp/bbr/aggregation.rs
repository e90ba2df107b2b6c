//! BBR's allowance for aggregated acknowledgements: what arrives beyond the bandwidth at once is sent ahead next time.
//!
//! After Linux `bbr_update_ack_aggregation`. Wireless links and receivers' offloads acknowledge in lumps; between two
//! lumps the sender would run out of window.

use hopcast_core::Instant;

use super::super::congestion::{Path, Sample};
use super::units::{BANDWIDTH_UNIT, Bandwidth};

/// Length of each of the two halves of the filter, in round trips (Linux `bbr_extra_acked_win_rtts`).
const HALF_ROUNDS: u32 = 5;
/// Packets after which a long-lived epoch begins anew (Linux `bbr_ack_epoch_acked_reset_thresh`).
const EPOCH_PACKETS: u64 = 1 << 20;
/// Maximum that is sent ahead: what the bandwidth delivers in this time, in microseconds (Linux
/// `bbr_extra_acked_max_us`).
const MAX_INTERVAL_US: u64 = 100_000;

/// The excess of the last five to ten round trips.
#[derive(Clone, Debug)]
pub(super) struct Aggregation {
    epoch: Instant,
    epoch_delivered: u64,
    excess: [u32; 2],
    half: usize,
    rounds: u32,
}

impl Aggregation {
    pub(super) const fn new(now: Instant) -> Self {
        Self { epoch: now, epoch_delivered: 0, excess: [0; 2], half: 0, rounds: 0 }
    }

    /// Begins an epoch after a pause in sending.
    pub(super) fn restart(&mut self, now: Instant) {
        self.epoch = now;
        self.epoch_delivered = 0;
    }

    pub(super) fn update(
        &mut self,
        path: &Path<'_>,
        sample: &Sample,
        bandwidth: Bandwidth,
        round_start: bool,
    ) {
        if sample.delivered == 0 || sample.rate.delivery.is_none() {
            return;
        }
        if round_start {
            self.rounds += 1;
            if self.rounds >= HALF_ROUNDS {
                self.rounds = 0;
                self.half ^= 1;
                self.excess[self.half] = 0;
            }
        }
        let elapsed = path.rate.delivered_at.since(self.epoch).as_micros();
        let mut expected = expected(bandwidth, elapsed);
        let delivered = u64::from(sample.delivered);
        if self.epoch_delivered <= expected || self.epoch_delivered + delivered >= EPOCH_PACKETS {
            self.restart(path.rate.delivered_at);
            expected = 0;
        }
        self.epoch_delivered = (self.epoch_delivered + delivered).min(EPOCH_PACKETS - 1);
        let excess = u32::try_from(self.epoch_delivered.saturating_sub(expected)).unwrap_or(u32::MAX);
        let excess = excess.min(path.window.size);
        self.excess[self.half] = self.excess[self.half].max(excess);
    }

    /// Segments by which the window is to be larger.
    pub(super) fn allowance(&self, bandwidth: Bandwidth) -> u32 {
        let limit = u32::try_from(expected(bandwidth, MAX_INTERVAL_US)).unwrap_or(u32::MAX);
        self.excess[0].max(self.excess[1]).min(limit)
    }
}

fn expected(bandwidth: Bandwidth, micros: u64) -> u64 {
    u64::try_from(u128::from(bandwidth) * u128::from(micros) / u128::from(BANDWIDTH_UNIT)).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use hopcast_core::Duration;

    use super::*;
    use crate::tcp::congestion::testing::path_of;
    use crate::tcp::rate::{DeliveryRate, RateSample};
    use crate::tcp::window::Window;

    /// A segment a millisecond.
    const BANDWIDTH: Bandwidth = BANDWIDTH_UNIT / 1000 + 1;

    fn deliver(aggregation: &mut Aggregation, ms: u64, delivered: u32, round_start: bool) -> u32 {
        let (mut window, mut rate) = (Window::new(50), DeliveryRate::default());
        rate.delivered_at = Instant::ZERO + Duration::from_millis(ms);
        let path = path_of(rate.delivered_at, &mut window, &mut rate, Duration::from_millis(20));
        let delivery = Some((u64::from(delivered), Duration::from_millis(20)));
        let sample =
            Sample { delivered, rate: RateSample { delivery, ..RateSample::default() }, ..Sample::default() };
        aggregation.update(&path, &sample, BANDWIDTH, round_start);
        aggregation.allowance(BANDWIDTH)
    }

    #[test]
    fn what_arrives_beyond_the_bandwidth_is_allowed_for_five_to_ten_round_trips() {
        let mut aggregation = Aggregation::new(Instant::ZERO);
        assert_eq!(deliver(&mut aggregation, 10, 8, false), 8, "an epoch begins with what arrives");
        // 8 in 10 ms are less than the bandwidth, so that an epoch begins; then 20 in 1 ms are 19 too many.
        assert_eq!(deliver(&mut aggregation, 20, 10, false), 10);
        assert_eq!(deliver(&mut aggregation, 21, 10, false), 19);
        assert_eq!(deliver(&mut aggregation, 21, 0, false), 19, "nothing is delivered");
        // Behind the bandwidth another epoch begins.
        assert_eq!(deliver(&mut aggregation, 200, 1, false), 19);
        assert_eq!((aggregation.epoch_delivered, aggregation.epoch.as_nanos()), (1, 200_000_000));
        for round in 1..=9 {
            assert_eq!(deliver(&mut aggregation, 200 + 20 * round, 1, true), 19, "round {round}");
        }
        assert_eq!(deliver(&mut aggregation, 400, 1, true), 1);
        assert_eq!(deliver(&mut aggregation, 401, 90, false), 50, "at most the window");
        assert_eq!(aggregation.allowance(BANDWIDTH / 5), 19, "and what comes in 100 ms");
    }

    #[test]
    fn an_epoch_of_a_million_packets_begins_anew_and_counts_no_further() {
        // Linux: bbr_ack_epoch_acked_reset_thresh is 2^20, and ack_epoch_acked stays below it.
        let mut aggregation = Aggregation::new(Instant::ZERO);
        deliver(&mut aggregation, 1, (1 << 20) - 2, false);
        deliver(&mut aggregation, 2, 1, false);
        assert_eq!(aggregation.epoch_delivered, (1 << 20) - 1);
        deliver(&mut aggregation, 3, 1, false);
        assert_eq!((aggregation.epoch_delivered, aggregation.epoch.as_nanos()), (1, 3_000_000));
        deliver(&mut aggregation, 4, 1 << 21, false);
        assert_eq!(aggregation.epoch_delivered, 0xf_ffff);
    }
}
