//! When a thread of the emulator sleeps before a deadline, and when it stays awake for it.

use hopcast_core::{Duration, Instant};

/// Recent time that a wake-up takes, and the deadline that the thread waits for without sleep.
///
/// An idle processor sleeps deeply, so the thread is woken that much earlier, and waits for the rest awake. A busy
/// processor switches to the thread at once, so that the estimate is near zero.
#[derive(Default)]
pub(super) struct Waking {
    takes: Duration,
    next: Option<Instant>,
    /// The deadline before which the last sleep ended, while nothing has happened since.
    awake_for: Option<Instant>,
    slept: bool,
}

impl Waking {
    /// Maximum duration of a wait without sleep. Chosen; shorter takes such a wait for a sleep, longer misses short
    /// sleeps.
    pub(super) const MAX_AWAKE_WAIT: Duration = Duration::from_micros(10);
    /// Step by which the estimate changes. Chosen; larger ones are noisy, smaller ones follow a change late.
    const STEP: Duration = Duration::from_nanos(250);
    /// Maximum wake-up time that is attributed to the processor's sleep. Chosen; with more, the thread is awake for
    /// longer before each deadline.
    const MAX_LEAD: Duration = Duration::from_micros(60);

    /// Time that a wake-up takes.
    pub(super) fn takes(&self) -> Duration {
        self.takes
    }

    /// Sets the next deadline. The deadline that the thread stayed awake for may have been carried out meanwhile: for
    /// the one after it, which may be far away, it sleeps. A thread with real-time priority that stayed awake would
    /// keep the programs of a whole processor waiting.
    pub(super) fn looks_ahead_to(&mut self, next: Option<Instant>) {
        self.next = next;
        self.awake_for = self.awake_for.filter(|_| self.awake_for == next);
    }

    /// Whether the thread stays awake until the next deadline.
    pub(super) fn is_awake(&self) -> bool {
        self.awake_for.is_some()
    }

    /// Time to sleep if the next deadline is in `left`.
    pub(super) fn sleep(&mut self, left: Duration) -> Duration {
        let ahead = left.saturating_sub(self.takes);
        self.slept = !self.is_awake() && !left.is_zero();
        if self.is_awake() {
            Duration::ZERO
        } else if ahead.is_zero() {
            // Too near to wake early for, and too far to wait awake.
            left
        } else {
            ahead
        }
    }

    /// Notes a wake-up that came `late`; `left` is the time until the deadline if nothing else woke the thread. A
    /// signal may end a sleep long before the deadline: the thread sleeps again.
    pub(super) fn woke(&mut self, late: Duration, left: Option<Duration>) {
        if self.slept {
            self.took(late);
        }
        let is_near = left.is_some_and(|left| !left.is_zero() && left <= Self::MAX_LEAD);
        self.awake_for = self.next.filter(|_| is_near);
    }

    /// Moves the estimate by a step towards the median of `late`, the lateness of wake-ups.
    pub(super) fn took(&mut self, late: Duration) {
        let takes = self.takes;
        let towards = if late > takes { takes + Self::STEP } else { takes.saturating_sub(Self::STEP) };
        self.takes = towards.min(Self::MAX_LEAD);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn micros(micros: u64) -> Duration {
        Duration::from_micros(micros)
    }

    /// A thread whose wake-ups take 40 µs, before a deadline at 1 s.
    fn awake_before_a_deadline() -> Waking {
        let mut waking = Waking { takes: micros(40), ..Waking::default() };
        waking.looks_ahead_to(Some(Instant::ZERO + Duration::from_secs(1)));
        assert_eq!(waking.sleep(micros(1000)), micros(960));
        waking.woke(micros(5), Some(micros(35)));
        assert!(waking.is_awake());
        waking
    }

    #[test]
    fn a_thread_that_woke_before_a_deadline_stays_awake_until_it() {
        let mut waking = awake_before_a_deadline();
        for left in [30, 20, 10, 1] {
            waking.looks_ahead_to(Some(Instant::ZERO + Duration::from_secs(1)));
            assert_eq!(waking.sleep(micros(left)), Duration::ZERO);
            waking.woke(Duration::ZERO, Some(micros(left)));
        }
        waking.woke(Duration::ZERO, Some(Duration::ZERO));
        assert!(!waking.is_awake());
    }

    #[test]
    fn a_deadline_that_was_carried_out_meanwhile_keeps_nobody_awake_for_the_next() {
        let mut waking = awake_before_a_deadline();
        waking.looks_ahead_to(Some(Instant::ZERO + Duration::from_millis(1200)));
        assert!(!waking.is_awake());
        assert!(waking.sleep(Duration::from_millis(200)) > Duration::from_millis(199));
        waking = awake_before_a_deadline();
        waking.looks_ahead_to(None);
        assert!(!waking.is_awake());
    }

    #[test]
    fn a_frame_or_a_signal_ends_no_sleep_early() {
        for left in [None, Some(Duration::from_millis(100))] {
            let mut waking = awake_before_a_deadline();
            waking.woke(Duration::ZERO, left);
            assert!(!waking.is_awake(), "{left:?}");
        }
    }

    #[test]
    fn a_wake_up_takes_as_long_as_half_of_the_last_ones_and_no_longer_than_the_processor_sleeps() {
        let mut waking = Waking::default();
        (0..1000).for_each(|_| waking.took(micros(30)));
        assert!(waking.takes() >= micros(29) && waking.takes() <= micros(31));
        (0..1000).for_each(|_| waking.took(Duration::from_millis(3)));
        assert_eq!(waking.takes(), Waking::MAX_LEAD);
        // Nothing ended this wait but what it waited for.
        waking.looks_ahead_to(Some(Instant::ZERO));
        assert_eq!(waking.sleep(micros(50)), micros(50));
    }
}
