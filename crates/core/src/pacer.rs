//! Pacer: the time at which a paced sender may let its next packet go.

use crate::time::{Duration, Instant};
use crate::units::Rate;

/// Spaces packets so that over time they leave at a rate, whichever is in force as each of them leaves.
///
/// A packet's bytes over the rate are the time until the next may leave. A sender that is late by at most the slack
/// catches up; time that it did not use before that is lost, so that an idle sender saves up no burst.
#[derive(Clone, Debug, Default)]
pub struct Pacer {
    departure: Instant,
    carry: u64,
    slack: Duration,
}

impl Pacer {
    /// Slack for programs of a kernel: the delay with which it may wake one that shares its processors with others.
    /// Chosen; with less, rate is lost there; more makes bursts that a link's queue may have no room for.
    pub const KERNEL_SLACK: Duration = Duration::from_millis(2);

    /// A pacer whose first packet may leave at once. `slack` is how late a sender may be without losing rate: zero
    /// where time is virtual, the coarseness of the clock's wake-ups where it is not. Too much lets bursts out.
    pub const fn new(slack: Duration) -> Self {
        Self { departure: Instant::ZERO, carry: 0, slack }
    }

    /// Time at which the next packet may leave; it may lie in the past.
    pub const fn departure(&self) -> Instant {
        self.departure
    }

    /// Notes that `bytes` leave now at `rate`. At a rate of zero nothing ever follows.
    pub fn sent(&mut self, now: Instant, rate: Rate, bytes: u64) {
        let from = self.departure.max(now - self.slack);
        self.departure = from + rate.time_with_carry(bytes, &mut self.carry);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATE: Rate = Rate::from_mbit(8);

    fn at(micros: u64) -> Instant {
        Instant::ZERO + Duration::from_micros(micros)
    }

    #[test]
    fn packets_leave_a_packet_time_apart_and_idleness_saves_up_nothing() {
        let mut pacer = Pacer::new(Duration::ZERO);
        pacer.sent(at(10), RATE, 1000);
        assert_eq!(pacer.departure(), at(1010));
        pacer.sent(at(1010), RATE, 500);
        assert_eq!(pacer.departure(), at(1510));
        pacer.sent(at(9000), RATE, 1000);
        assert_eq!(pacer.departure(), at(10_000));
    }

    #[test]
    fn a_sender_that_wakes_late_makes_up_for_the_slack_and_no_more() {
        let mut pacer = Pacer::new(Duration::from_micros(300));
        pacer.sent(at(1000), RATE, 1000);
        pacer.sent(at(1900), RATE, 1000);
        assert_eq!(pacer.departure(), at(2700), "late by 200 us");
        pacer.sent(at(9000), RATE, 1000);
        assert_eq!(pacer.departure(), at(9700));
    }

    #[test]
    fn fractions_of_a_nanosecond_are_not_lost() {
        let mut pacer = Pacer::new(Duration::ZERO);
        let rate = Rate::from_mbit(300);
        for _ in 0..3_000 {
            pacer.sent(pacer.departure(), rate, 1514);
        }
        assert_eq!(pacer.departure(), Instant::ZERO + rate.time_for(3_000 * 1514));
    }
}
