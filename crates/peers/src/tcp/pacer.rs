//! Pacer: the time at which the next burst may leave (Linux `tcp_update_skb_after_send` with internal pacing).

use hopcast_core::{Instant, Rate};

/// Segments of a connection that leave before pacing begins (Linux `tcp_update_skb_after_send`).
const UNPACED: u64 = 10;

/// The earliest departure of the next burst.
#[derive(Clone, Debug, Default)]
pub(super) struct Pacer {
    departure: Instant,
    sent: u64,
}

impl Pacer {
    /// Time at which the next burst may leave.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn at(us: u64) -> Instant {
        Instant::from_nanos(1_000 * us)
    }

    #[test]
    fn bursts_are_spaced_by_the_rate_after_ten_segments_and_half_of_a_delay_is_made_up_for() {
        let mut pacer = Pacer::default();
        // 1,000 bytes a millisecond.
        let rate = Rate::from_bits_per_sec(8_000_000);
        pacer.sent(at(1000), rate, 9, 9_000);
        assert_eq!(pacer.departure(), at(1000), "nine are not paced");
        pacer.sent(at(1000), rate, 1, 1_000);
        assert_eq!(pacer.departure(), at(2000));
        // 300 us late.
        pacer.sent(at(2300), rate, 1, 1_000);
        assert_eq!(pacer.departure(), at(3000));
        // 2 ms late: half of the burst's time and no more.
        pacer.sent(at(5000), rate, 1, 1_000);
        assert_eq!(pacer.departure(), at(5500));
        pacer.sent(at(6000), Rate::from_bits_per_sec(0), 1, 1_000);
        assert_eq!(pacer.departure(), at(6000), "without a rate nothing is paced");
    }
}
