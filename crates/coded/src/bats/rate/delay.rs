//! Round trips: smoothed, the minimum, and how much of one is a queue.

use hopcast_core::{Duration, Instant};

/// Time for which the minimum round trip is believed. Chosen: BBR v1 has ten seconds for paths; a hop is short, and
/// looking is cheap.
const MIN_WINDOW: Duration = Duration::from_secs(1);
/// The same in round trips, where that is longer. Chosen; with fewer, a long hop is drained for a look too often; with
/// more, a route that has become longer is found later.
const MIN_WINDOW_ROUNDS: u64 = 50;
/// Packet times that are no queue. Chosen: pacing and reports are no finer; with more, a queue of that length stands.
const PACKETS: u64 = 4;
/// Standard deviations of the link's jitter that are no queue. Chosen: with fewer, jitter is taken for a queue; with
/// more, a queue that is as long stands.
const JITTERS: f64 = 4.0;

/// The round trip of a hop.
#[derive(Clone, Debug, Default)]
pub(super) struct Delay {
    smoothed: Option<Duration>,
    variation: Duration,
    min_rtt: Option<Duration>,
    min_rtt_at: Instant,
    /// The last two samples, the latest first.
    last: [Option<Duration>; 2],
    /// The longest round trip of late, which fades.
    longest: Duration,
    /// The standard deviation of the change from sample to sample, in nanoseconds.
    jitter: f64,
}

impl Delay {
    /// Takes a round trip, at a time when a packet takes `packet_time` on the link.
    pub(super) fn on_sample(&mut self, now: Instant, rtt: Duration, packet_time: Duration) {
        let (smoothed, variation) = match self.smoothed {
            None => (rtt, rtt / 2),
            // RFC 6298, section 2.3.
            Some(smoothed) => ((smoothed * 7 + rtt) / 8, (self.variation * 3 + smoothed.abs_diff(rtt)) / 4),
        };
        (self.smoothed, self.variation) = (Some(smoothed), variation);
        if let [Some(one), Some(two)] = self.last {
            // The second difference: a queue that grows or drains steadily does not show in it, jitter does, with
            // six times its variance. The mean of a normal deviation is 0.8 of its standard deviation.
            let bend = (rtt.as_nanos() + two.as_nanos()) as f64 - 2.0 * one.as_nanos() as f64;
            self.jitter += (bend.abs() / 1.95 - self.jitter) / 16.0;
        }
        self.last = [Some(rtt), self.last[0]];
        self.longest = rtt.max(self.longest.saturating_sub(self.longest.saturating_sub(rtt) / 256));
        let near = self.min_rtt.is_none_or(|min_rtt| rtt <= min_rtt + packet_time / 4 + self.jitter());
        if near {
            self.min_rtt_at = now;
        }
        if self.min_rtt.is_none_or(|min_rtt| rtt < min_rtt) {
            self.min_rtt = Some(rtt);
        }
    }

    pub(super) const fn smoothed(&self) -> Option<Duration> {
        self.smoothed
    }

    pub(super) const fn variation(&self) -> Duration {
        self.variation
    }

    pub(super) const fn min_rtt(&self) -> Option<Duration> {
        self.min_rtt
    }

    /// Whether it is long ago that the round trip was near the minimum.
    pub(super) fn is_stale(&self, now: Instant) -> bool {
        self.min_rtt
            .is_some_and(|min_rtt| now > self.min_rtt_at + MIN_WINDOW.max(min_rtt * MIN_WINDOW_ROUNDS))
    }

    /// The minimum round trip is longer now, at most by a quarter at a time: others may have been queueing.
    pub(super) fn raise_min_rtt(&mut self, now: Instant, rtt: Duration) {
        let limit = self.min_rtt.map_or(rtt, |min_rtt| min_rtt + min_rtt / 4);
        (self.min_rtt, self.min_rtt_at) = (Some(rtt.min(limit)), now);
    }

    /// The round trip without a queue, at the worst of the jitter.
    pub(super) fn base(&self) -> Option<Duration> {
        Some(self.min_rtt? + self.jitters())
    }

    /// Whether a packet with this round trip met a queue with room, as far as one knows: it is in the lower half of
    /// what has been seen of late. Where nothing has been seen but one length of the queue, it may be a full one.
    pub(super) fn has_room(&self, rtt: Duration, packet_time: Duration) -> bool {
        let min_rtt = self.min_rtt.unwrap_or_default();
        let spread = self.longest.saturating_sub(min_rtt);
        spread > packet_time * 2 && rtt < min_rtt + spread / 2
    }

    /// Whether round trips that are never less than `rtt` mean a queue that stands.
    pub(super) fn is_standing(&self, rtt: Duration, packet_time: Duration) -> bool {
        let Some(base) = self.base() else { return false };
        rtt > base + (packet_time * PACKETS).max(self.min_rtt.unwrap_or_default() / 8)
    }

    /// The standard deviation of the link's jitter.
    pub(super) const fn jitter(&self) -> Duration {
        Duration::from_nanos(self.jitter as u64)
    }

    fn jitters(&self) -> Duration {
        Duration::from_nanos((JITTERS * self.jitter) as u64)
    }
}
