//! The congestion window, and whether it is what limits the sender (RFC 7661; Linux `tcp_cwnd_validate`).

use hopcast_core::{Duration, Instant};

/// A threshold that slow start never reaches.
pub(super) const NO_THRESHOLD: u32 = u32::MAX;

/// The window in segments, and its use.
#[derive(Clone, Debug)]
pub(super) struct Window {
    /// The congestion window.
    pub size: u32,
    /// Below it slow start, from it on congestion avoidance.
    pub threshold: u32,
    initial: u32,
    /// Maximum number of segments outstanding in the present round trip.
    most_used: u32,
    round_end: u64,
    limited: bool,
    last_sent: Instant,
    used_at: Instant,
    used: u32,
}

impl Window {
    pub(super) const fn new(initial: u32) -> Self {
        Self {
            size: initial,
            threshold: NO_THRESHOLD,
            initial,
            most_used: 0,
            round_end: 0,
            limited: false,
            last_sent: Instant::ZERO,
            used_at: Instant::ZERO,
            used: 0,
        }
    }

    pub(super) const fn in_slow_start(&self) -> bool {
        self.size < self.threshold
    }

    /// Whether the window has limited the sender, so that it may grow.
    pub(super) const fn is_limiting(&self) -> bool {
        // In slow start twice what has been used is allowed, so that a window in use by half still grows.
        self.limited || (self.in_slow_start() && self.size < 2 * self.most_used)
    }

    /// Notes that a burst has been sent after which `outstanding` segments up to `nxt` wait for acknowledgement up from
    /// `una`, and whether the window stopped it. With `shrink` an unused window comes down after a timeout's time.
    pub(super) fn validate(
        &mut self,
        now: Instant,
        outstanding: u32,
        (una, nxt): (u64, u64),
        limited: bool,
        shrink_after: Option<Duration>,
    ) {
        if una >= self.round_end || limited || (!self.limited && outstanding > self.most_used) {
            self.limited = limited;
            self.most_used = outstanding;
            self.round_end = nxt;
        }
        if self.is_limiting() {
            self.used = 0;
            self.used_at = now;
            return;
        }
        self.used = self.used.max(outstanding);
        if shrink_after.is_some_and(|span| now.since(self.used_at) >= span) {
            // RFC 2861: halfway down to what was used; the threshold remembers.
            let used = self.used.max(self.initial);
            if used < self.size {
                self.threshold = self.remembered_threshold();
                self.size = (self.size + used) / 2;
            }
            self.used = 0;
            self.used_at = now;
        }
    }

    /// Notes a transmission after silence: the window halves for each timeout that passed, down to the initial one
    /// (RFC 9293's restart window; Linux `tcp_slow_start_after_idle`).
    pub(super) fn restart(&mut self, now: Instant, timeout: Duration) {
        let mut idle = now.since(self.last_sent);
        if idle <= timeout || timeout.is_zero() {
            return;
        }
        self.threshold = self.remembered_threshold();
        let floor = self.initial.min(self.size);
        while idle > timeout && self.size > floor {
            idle = idle.saturating_sub(timeout);
            self.size /= 2;
        }
        self.size = self.size.max(floor);
        self.used = 0;
        self.used_at = now;
    }

    pub(super) fn note_sent(&mut self, now: Instant) {
        self.last_sent = now;
    }

    pub(super) const fn last_sent(&self) -> Instant {
        self.last_sent
    }

    /// The threshold that a window in use would leave behind (Linux `tcp_current_ssthresh`).
    pub(super) fn remembered_threshold(&self) -> u32 {
        self.threshold.max((self.size >> 1) + (self.size >> 2))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    #[test]
    fn a_window_that_is_half_used_limits_in_slow_start_and_not_after_it() {
        let mut window = Window::new(10);
        window.validate(at(0), 5, (0, 10), false, None);
        assert!(!window.is_limiting(), "twice five are not more than ten");
        window.validate(at(0), 6, (0, 10), false, None);
        assert!(window.is_limiting());
        window.threshold = 10;
        assert!(!window.is_limiting());
        window.validate(at(0), 6, (0, 10), true, None);
        assert!(window.is_limiting());
        window.validate(at(0), 3, (5, 20), false, None);
        assert!(window.is_limiting(), "for the rest of the round trip");
        window.validate(at(0), 3, (10, 20), false, None);
        assert!(!window.is_limiting());
    }

    #[test]
    fn an_unused_window_comes_halfway_down_to_what_was_used() {
        let mut window = Window::new(10);
        (window.size, window.threshold) = (100, 50);
        let after = Some(Duration::from_millis(200));
        window.validate(at(100), 100, (0, 1), true, after);
        window.validate(at(299), 20, (1, 2), false, after);
        assert_eq!(window.size, 100);
        window.validate(at(300), 30, (2, 3), false, after);
        assert_eq!((window.size, window.threshold), (65, 75));
        window.validate(at(499), 2, (3, 4), false, after);
        assert_eq!(window.size, 65);
        window.validate(at(500), 2, (4, 5), false, after);
        assert_eq!(window.size, 37, "down to the initial window");
        window.validate(at(900), 2, (5, 6), false, None);
        assert_eq!(window.size, 37);
    }

    #[test]
    fn silence_halves_the_window_for_each_timeout_down_to_the_initial_one() {
        let timeout = Duration::from_millis(200);
        for (idle, size) in [(200, 100), (201, 50), (400, 50), (401, 25), (601, 12), (10_000, 10)] {
            let mut window = Window::new(10);
            window.size = 100;
            window.threshold = 60;
            window.note_sent(at(1000));
            window.restart(at(1000 + idle), timeout);
            assert_eq!(window.size, size, "{idle} ms");
            assert_eq!(window.threshold, if size < 100 { 75 } else { 60 });
        }
    }
}
