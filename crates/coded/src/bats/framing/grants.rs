//! Number of units that an application may be ahead of what is sent, where it waits to be granted them.
//!
//! As few as keep a unit at hand whenever one may be sent. The number doubles when the queue has run empty, and falls
//! by an eighth with each unit that has waited for longer than [`MAX_UNIT_WAIT`]: a queue that only delays is of no
//! use.

use hopcast_core::Duration;

/// Units granted at first. Chosen: too many, and a slow path's first units wait; too few, and a fast one's first
/// symbols are few.
const FIRST_UNITS: u64 = 8;
/// Minimum number of units granted. Chosen: one is being sent, the next one is at hand; with one, the hop idles between
/// units, with more they wait here.
const MIN_UNITS: u64 = 2;
/// Maximum number of units granted: 5 ms of full datagrams at 300 Mbit/s, and 8 MiB of the largest. Chosen; more would
/// be delay and memory, with fewer an application that is woken late leaves a fast link idle.
const MAX_UNITS: u64 = 128;
/// Time that a unit may wait. Chosen: as long as a wake-up of the application that is late may take.
const MAX_UNIT_WAIT: Duration = Duration::from_millis(20);

/// The grants of one edge.
#[derive(Debug)]
pub(super) struct Grants {
    /// Maximum number of units that are queued or on their way from the application.
    ahead: u64,
    /// Granted, but not handed over yet.
    open: u64,
}

impl Grants {
    pub(super) const fn new() -> Self {
        Self { ahead: FIRST_UNITS, open: 0 }
    }

    /// Number of further units to grant while `queued` are queued.
    pub(super) fn due(&self, queued: u64) -> Option<u64> {
        let due = self.ahead.saturating_sub(queued + self.open);
        (due > 0 && due >= self.ahead / 4).then_some(due)
    }

    /// This many more have been granted.
    pub(super) fn granted(&mut self, units: u64) {
        self.open += units;
    }

    /// A unit is handed over. Whether it was granted.
    pub(super) fn take(&mut self) -> bool {
        let granted = self.open > 0;
        self.open = self.open.saturating_sub(1);
        granted
    }

    /// A unit has been sent after a wait; `empty`: no other is queued.
    pub(super) fn sent(&mut self, waited: Duration, empty: bool) {
        if empty {
            self.ahead = (self.ahead * 2).min(MAX_UNITS);
        } else if waited > MAX_UNIT_WAIT {
            self.ahead = (self.ahead - self.ahead.div_ceil(8)).max(MIN_UNITS);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_follow_how_fast_units_are_sent() {
        let mut grants = Grants::new();
        assert_eq!(grants.due(0), Some(FIRST_UNITS));
        grants.granted(FIRST_UNITS);
        assert_eq!(grants.due(0), None, "all is granted");
        assert!((0..FIRST_UNITS).all(|_| grants.take()) && !grants.take(), "as many as were granted");
        (0..10).for_each(|_| grants.sent(Duration::ZERO, true));
        assert_eq!(grants.due(0), Some(MAX_UNITS), "the queue ran empty");
        assert_eq!(grants.due(MAX_UNITS - MAX_UNITS / 4), Some(MAX_UNITS / 4));
        assert_eq!(grants.due(MAX_UNITS - MAX_UNITS / 4 + 1), None, "not one by one");
        (0..10).for_each(|_| grants.sent(MAX_UNIT_WAIT, false));
        assert_eq!(grants.due(0), Some(MAX_UNITS), "no unit has waited for too long");
        (0..100).for_each(|_| grants.sent(MAX_UNIT_WAIT * 2, false));
        assert_eq!(grants.due(0), Some(MIN_UNITS));
    }

    #[test]
    fn at_first_there_are_8_then_2_to_128_and_a_wait_is_one_of_more_than_20_ms() {
        let mut grants = Grants::new();
        assert_eq!(grants.due(0), Some(8));
        (0..3).for_each(|_| grants.sent(Duration::ZERO, true));
        assert_eq!(grants.due(0), Some(64));
        grants.sent(Duration::ZERO, true);
        grants.sent(Duration::ZERO, true);
        assert_eq!(grants.due(0), Some(128), "8 MiB of the largest, 64 KiB each");
        grants.sent(Duration::from_millis(20), false);
        assert_eq!(grants.due(0), Some(128));
        grants.sent(Duration::from_micros(20_001), false);
        assert_eq!(grants.due(0), Some(112), "an eighth less");
        (0..60).for_each(|_| grants.sent(Duration::from_secs(1), false));
        assert_eq!(grants.due(0), Some(2), "one is being sent, the next one is at hand");
    }
}
