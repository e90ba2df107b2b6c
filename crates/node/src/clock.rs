//! The one clock of a live run.

use hopcast_core::{Duration, Instant};
use rustix::time::{ClockId, Timespec, clock_gettime};

/// The machine's monotonic clock, read from a zero of one's choice.
///
/// All processes of a machine read the same clock, in whatever network namespace they are. Those that agree on the zero
/// can compare their times.
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
        Self { zero: monotonic() + ahead.as_nanos() }
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

    /// The time by this clock at which the host's time of day was zero: what turns the kernel's stamps into times of this
    /// clock. Nanoseconds, and below zero; only until somebody sets the time of day.
    pub(crate) fn zero_of_day(self) -> i128 {
        let day = nanos(clock_gettime(ClockId::Realtime));
        i128::from(monotonic()) - i128::from(day) - i128::from(self.zero)
    }

    /// How long it is until `at`; zero if that has gone by.
    pub fn until(self, at: Instant) -> Duration {
        let at = self.zero.saturating_add(at.as_nanos());
        Duration::from_nanos(at.saturating_sub(monotonic()))
    }
}

fn monotonic() -> u64 {
    nanos(clock_gettime(ClockId::Monotonic))
}

fn nanos(time: Timespec) -> u64 {
    // Since the start of the machine, or since 1970: neither part is negative.
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}
