//! A rate limit on packets that others cause.

use crate::time::{Duration, Instant};

/// A token bucket: packets may be sent while it is not empty. Packets that belong together may then take more tokens
/// than it holds; later packets wait until these are paid back.
#[derive(Debug)]
pub struct Pace {
    interval: Duration,
    burst: u64,
    /// Time at which the bucket will be full. Each packet postpones it by one interval.
    full_at: Instant,
}

impl Pace {
    /// A limit of `rate` packets a second, at least 1 and at most 10^9, and `burst` at once.
    pub fn new(rate: u64, burst: u64) -> Self {
        // Without an interval there would be no limit.
        let interval = (Duration::from_secs(1) / rate.max(1)).max(Duration::from_nanos(1));
        Self { interval, burst, full_at: Instant::ZERO }
    }

    /// Time at which the next packet may be sent; it may lie in the past.
    pub fn ready_at(&self) -> Instant {
        self.full_at - self.interval * self.burst.saturating_sub(1)
    }

    /// Whether a packet may be sent.
    pub fn is_ready(&self, now: Instant) -> bool {
        self.ready_at() <= now
    }

    /// Notes that packets are sent.
    pub fn sent(&mut self, now: Instant, packets: u64) {
        self.full_at = self.full_at.max(now) + self.interval * packets;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn after_a_burst_packets_leave_an_interval_apart() {
        let mut pace = Pace::new(100, 3);
        let mut now = Instant::ZERO + Duration::from_secs(9);
        for _ in 0..3 {
            assert!(pace.is_ready(now));
            pace.sent(now, 1);
        }
        assert!(!pace.is_ready(now));
        assert_eq!(pace.ready_at(), now + Duration::from_millis(10));
        now += Duration::from_millis(10);
        assert!(pace.is_ready(now));
        pace.sent(now, 5);
        assert_eq!(pace.ready_at(), now + Duration::from_millis(50), "what is more is waited for");
    }

    #[test]
    fn no_rate_is_without_a_limit() {
        let now = Instant::ZERO + Duration::from_secs(9);
        for rate in [1_000_000_000, 1_000_000_001, u64::MAX] {
            let mut pace = Pace::new(rate, 3);
            pace.sent(now, 3);
            assert!(!pace.is_ready(now), "{rate}");
            assert_eq!(pace.ready_at(), now + Duration::from_nanos(1));
        }
    }
}
