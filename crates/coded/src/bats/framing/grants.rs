//! How many units an application may be ahead of what is sent, where it waits to be granted them.
//!
//! As few as keep a unit at hand whenever one may be sent. The number doubles when the queue has run empty, and falls by an
//! eighth with each unit that has waited for longer than [`WAIT`]: a queue that only delays is of no use.

use hopcast_core::Duration;

/// Units granted at first. Too many, and a slow path's first units wait; too few, and a fast one's first symbols are few.
const FIRST: u64 = 8;
/// The least number: one is being sent, the next one is at hand.
const LEAST: u64 = 2;
/// The greatest: 5 ms of full datagrams at 300 Mbit/s, and 8 MiB of the largest.
const MOST: u64 = 128;
/// How long a unit may wait: as long as a wake-up that is late may take.
const WAIT: Duration = Duration::from_millis(20);

/// The grants of one edge.
#[derive(Debug)]
pub(super) struct Grants {
    /// How many units may be queued or on their way from the application.
    ahead: u64,
    /// Granted, but not handed over yet.
    open: u64,
}

impl Grants {
    pub(super) const fn new() -> Self {
        Self { ahead: FIRST, open: 0 }
    }

    /// How many units more to grant while so many are queued.
    pub(super) fn due(&self, queued: u64) -> Option<u64> {
        let due = self.ahead.saturating_sub(queued + self.open);
        (due > 0 && due >= self.ahead / 4).then_some(due)
    }

    /// So many more have been granted.
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
            self.ahead = (self.ahead * 2).min(MOST);
        } else if waited > WAIT {
            self.ahead = (self.ahead - self.ahead.div_ceil(8)).max(LEAST);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grants_follow_how_fast_units_are_sent() {
        let mut grants = Grants::new();
        assert_eq!(grants.due(0), Some(FIRST));
        grants.granted(FIRST);
        assert_eq!(grants.due(0), None, "all is granted");
        assert!((0..FIRST).all(|_| grants.take()) && !grants.take(), "as many as were granted");
        (0..10).for_each(|_| grants.sent(Duration::ZERO, true));
        assert_eq!(grants.due(0), Some(MOST), "the queue ran empty");
        assert_eq!(grants.due(MOST - MOST / 4), Some(MOST / 4));
        assert_eq!(grants.due(MOST - MOST / 4 + 1), None, "not one by one");
        (0..10).for_each(|_| grants.sent(WAIT, false));
        assert_eq!(grants.due(0), Some(MOST), "no unit has waited for too long");
        (0..100).for_each(|_| grants.sent(WAIT * 2, false));
        assert_eq!(grants.due(0), Some(LEAST));
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
