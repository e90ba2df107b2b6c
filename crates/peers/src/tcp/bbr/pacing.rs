//! BBR's pacing rate, and the bursts in which segments leave.

use hopcast_core::{Duration, Rate};

use super::HIGH_GAIN;
use super::units::{BANDWIDTH_UNIT, Bandwidth, Gain, UNIT};
use crate::tcp::congestion::Path;

/// Pacing stays 1 % below the bandwidth so that queues shrink (Linux `bbr_pacing_margin_percent`).
const PACING_MARGIN_PERCENT: u64 = 1;
/// Below this rate, segments leave one by one and not in pairs (Linux `bbr_min_tso_rate`).
const SINGLE_RATE: u64 = 1_200_000;
/// A burst is sent in 2^-10 s at the pacing rate (Linux `sk_pacing_shift`).
const BURST_SHIFT: u32 = 10;
/// On short paths a burst is larger by up to 64 KiB, halved for each 2^9 us of round trip (Linux `tcp_tso_rtt_log`).
const BURST_RTT_SHIFT: u32 = 9;
/// Maximum burst in bytes: an IP packet before segmentation (Linux `GSO_LEGACY_MAX_SIZE - 1 - MAX_TCP_HEADER`).
const MAX_BURST: u64 = 65_535 - 320;

/// The pacing rate.
#[derive(Clone, Debug, Default)]
pub(super) struct Pacing {
    /// Bytes per second.
    pub(super) rate: u64,
    /// Whether the rate has been set by a round trip, and not by a nominal one.
    seen_rtt: bool,
    /// Whether packets leave one by one, and the window needs no room for bursts.
    pub(super) single: bool,
}

impl Pacing {
    /// Sets the rate at which a connection begins.
    pub(super) fn begin(&mut self, path: &Path<'_>) {
        self.seen_rtt = path.smoothed_rtt.is_some();
        // Without a round trip, a nominal millisecond.
        let rtt = path.smoothed_rtt.unwrap_or(Duration::from_millis(1));
        self.rate = initial_rate(path.window.size, rtt, path.mss);
    }

    /// Follows the bandwidth: only upwards until the path is `full`.
    pub(super) fn update(&mut self, path: &Path<'_>, bandwidth: Bandwidth, gain: Gain, full: bool) {
        if !self.seen_rtt
            && let Some(rtt) = path.smoothed_rtt
        {
            self.seen_rtt = true;
            self.rate = initial_rate(path.window.size, rtt, path.mss);
        }
        let rate = rate_of(bandwidth, path.mss, gain);
        if full || rate > self.rate {
            self.rate = rate;
        }
    }

    /// Segments that leave at once: as many as the pacing rate sends in about a millisecond.
    pub(super) fn burst(&self, mss: u32) -> u32 {
        if self.single {
            return 1;
        }
        let bytes = (self.rate >> BURST_SHIFT).min(MAX_BURST);
        let min = if self.rate < SINGLE_RATE / 8 { 1 } else { 2 };
        ((bytes / u64::from(mss.max(1))) as u32).clamp(min, 127)
    }

    /// The rate, and the segments that the pacer lets go at once on a path of this length.
    pub(super) fn rate_and_burst(&self, mss: u32, min_rtt: Option<Duration>) -> (Rate, u32) {
        // On short paths bursts are larger, because they are cheap there.
        let shift = min_rtt.map_or(u64::MAX, |min_rtt| min_rtt.as_micros() >> BURST_RTT_SHIFT);
        let extra = if shift < 32 { (MAX_BURST >> shift) / u64::from(mss.max(1)) } else { 0 };
        let burst = u64::from(self.burst(mss)) + extra;
        let burst = burst.min((MAX_BURST / u64::from(mss.max(1))).max(2)) as u32;
        (Rate::from_bits_per_sec(self.rate * 8), burst)
    }
}

/// The pacing rate in bytes per second for a bandwidth and a gain.
pub(super) fn rate_of(bandwidth: Bandwidth, mss: u32, gain: Gain) -> u64 {
    let rate = u128::from(bandwidth) * u128::from(mss) * u128::from(gain) / u128::from(UNIT);
    let rate =
        rate * u128::from(1_000_000 / 100 * (100 - PACING_MARGIN_PERCENT)) / u128::from(BANDWIDTH_UNIT);
    u64::try_from(rate).unwrap_or(u64::MAX / 8).min(u64::MAX / 8)
}

/// The pacing rate of startup for a window and a round trip.
pub(super) fn initial_rate(window: u32, rtt: Duration, mss: u32) -> u64 {
    let bandwidth = u64::from(window) * BANDWIDTH_UNIT / rtt.as_micros().max(1);
    rate_of(bandwidth, mss, HIGH_GAIN)
}
