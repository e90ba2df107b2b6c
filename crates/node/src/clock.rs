//! The clock of a live run.

use hopcast_core::{Duration, Instant};
use rustix::time::{ClockId, clock_gettime};

/// The machine's monotonic clock, relative to a zero.
///
/// All processes of a machine read the same clock, in any network namespace. Those with the same zero can compare
/// times.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    /// Nanoseconds of the monotonic clock.
    zero: u64,
}

impl Clock {
    /// A clock that is at zero now.
    pub fn starting_now() -> Self {
        Self { zero: monotonic() }
    }

    /// A clock whose zero is `ahead` from now.
    pub fn starting_in(ahead: Duration) -> Self {
        Self { zero: monotonic().saturating_add(ahead.as_nanos()) }
    }

    /// The clock of another process, by its zero.
    pub const fn with_zero(zero: u64) -> Self {
        Self { zero }
    }

    /// The zero, for another process: nanoseconds of the machine's monotonic clock.
    pub const fn zero(self) -> u64 {
        self.zero
    }

    /// The time; zero until the clock has reached its zero.
    pub fn now(self) -> Instant {
        Instant::from_nanos(monotonic().saturating_sub(self.zero))
    }

    /// Time until `at`; zero if that is past.
    pub fn until(self, at: Instant) -> Duration {
        let at = self.zero.saturating_add(at.as_nanos());
        Duration::from_nanos(at.saturating_sub(monotonic()))
    }
}

fn monotonic() -> u64 {
    let time = clock_gettime(ClockId::Monotonic);
    // Both parts count from the start of the machine, and are not negative.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
