//! When the pacing rate lets the next burst go (Linux `tcp_update_skb_after_send` with internal pacing).

use hopcast_core::{Instant, Rate};

/// So many segments of a connection leave before pacing begins, as in Linux.
const UNPACED: u64 = 10;

/// The earliest departure of the next burst.
#[derive(Clone, Debug, Default)]
pub(super) struct Pacer {
    departure: Instant,
    sent: u64,
}

impl Pacer {
    /// When the next burst may leave.
    pub(super) const fn departure(&self) -> Instant {
        self.departure
    }

    /// Notes a burst of `segments` with `bytes` of payload that leaves now.
    pub(super) fn sent(&mut self, now: Instant, rate: Rate, segments: u64, bytes: u64) {
        let late = now.since(self.departure);
        let departure = self.departure.max(now);
        self.sent += segments;
        if self.sent < UNPACED || rate.bits_per_sec() == 0 {
            self.departure = departure;
            return;
        }
        // A burst that left late may be made up for by half of its time.
        let span = rate.time_for(bytes);
        self.departure = departure + span.saturating_sub(late.min(span / 2));
    }
}
