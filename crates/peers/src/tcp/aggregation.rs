//! BBR's allowance for aggregated acknowledgements: what arrives beyond the bandwidth at once is sent ahead next time.
//!
//! After Linux `bbr_update_ack_aggregation`. Wireless links and receivers' offloads acknowledge in lumps; between two
//! lumps the sender would run out of window.

use hopcast_core::Instant;

use super::bbr::{BANDWIDTH_UNIT, Bandwidth};
use super::congestion::{Path, Sample};

/// The length of each of the two halves of the filter, in round trips.
const HALF_ROUNDS: u32 = 5;
/// After so many packets a long-lived epoch begins anew.
const EPOCH_PACKETS: u64 = 1 << 20;
/// At most what the bandwidth delivers in this time is sent ahead, in microseconds.
const LONGEST_US: u64 = 100_000;

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

    /// By how many segments the window is to be larger.
    pub(super) fn allowance(&self, bandwidth: Bandwidth) -> u32 {
        let most = u32::try_from(expected(bandwidth, LONGEST_US)).unwrap_or(u32::MAX);
        self.excess[0].max(self.excess[1]).min(most)
    }
}

fn expected(bandwidth: Bandwidth, micros: u64) -> u64 {
    u64::try_from(u128::from(bandwidth) * u128::from(micros) / u128::from(BANDWIDTH_UNIT)).unwrap_or(u64::MAX)
}
