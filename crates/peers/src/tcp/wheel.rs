//! The kernel's timer wheel: when a timer that is set for a certain time goes off.
//!
//! After Linux `kernel/time/timer.c`. Time passes in ticks. A timer waits in a slot of a level that suits how far away
//! it is, and the slots of each level are eight times as long as those of the one before. It never goes off early, so
//! it is put into the slot after the one that its time falls into: 4 to 8 ms late, or, where a timeout is far away, by
//! up to an eighth of it. Linux' timers for retransmission, loss probes, reordering, windows that are closed and
//! delayed acknowledgements are of this kind; those for pacing and SACK compression are exact.

use hopcast_core::{Duration, Instant};

/// The length of a tick: `CONFIG_HZ` = 250, as Debian has it, and Ubuntu had it until 24.04.
const TICK: Duration = Duration::from_millis(4);
/// Ticks in a second: see [`TICK`].
pub(super) const TICKS_PER_SECOND: u64 = 250;
/// The slots of a level beyond its first, from how many of them on a timer belongs to the next level: Linux `LVL_SIZE`
/// less one.
const SLOTS: u64 = 63;
/// The ratio of the slots of a level to those of the one before, as a power of two: Linux `LVL_CLK_SHIFT`.
const COARSER: u32 = 3;

/// Number of ticks that have passed at `at`.
pub(super) const fn ticks(at: Instant) -> u64 {
    at.as_nanos() / TICK.as_nanos()
}

/// Number of ticks that `span` takes, rounded up: Linux `usecs_to_jiffies`.
pub(super) const fn ticks_of(span: Duration) -> u64 {
    span.as_nanos().div_ceil(TICK.as_nanos())
}

/// Time at which a timer goes off that is set at `now` to wait for `wait`.
pub(super) fn expiry(now: Instant, wait: Duration) -> Instant {
    let wait = ticks_of(wait);
    let mut shift = 0;
    while wait >= SLOTS << shift {
        shift += COARSER;
    }
    let slot = ((ticks(now) + wait) >> shift) + 1;
    Instant::ZERO + TICK * (slot << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn late(now_us: u64, wait_ms: u64) -> Duration {
        let (now, wait) = (Instant::from_nanos(now_us * 1_000), Duration::from_millis(wait_ms));
        expiry(now, wait).since(now + wait)
    }

    #[test]
    fn a_timer_is_one_to_two_ticks_late_and_never_early() {
        let us = Duration::from_micros;
        assert_eq!(late(0, 200), us(4_000));
        assert_eq!(late(1, 200), us(3_999), "just after a tick it still is the tick's");
        assert_eq!(late(3_999, 200), us(1));
        assert_eq!(late(0, 201), us(7_000), "a wait is rounded up to ticks");
        assert_eq!(late(0, 0), us(4_000));
    }

    #[test]
    fn a_timer_that_is_far_away_goes_off_in_a_coarser_slot() {
        // From 63 ticks on slots of 8 ticks, from 504 on of 64.
        assert_eq!(expiry(Instant::ZERO, TICK * 62), Instant::ZERO + TICK * 63);
        assert_eq!(expiry(Instant::ZERO, TICK * 63), Instant::ZERO + TICK * 64);
        assert_eq!(expiry(Instant::ZERO, TICK * 64), Instant::ZERO + TICK * 72);
        assert_eq!(expiry(Instant::ZERO, TICK * 503), Instant::ZERO + TICK * 504);
        assert_eq!(expiry(Instant::ZERO, TICK * 504), Instant::ZERO + TICK * 512);
        assert_eq!(expiry(Instant::ZERO, TICK * 512), Instant::ZERO + TICK * 576);
    }

    #[test]
    fn a_second_has_its_ticks() {
        assert_eq!(ticks_of(Duration::from_secs(1)), TICKS_PER_SECOND);
        assert_eq!(ticks(Instant::ZERO + Duration::from_secs(1)), TICKS_PER_SECOND);
    }
}
