//! The probes by which round trips are measured, and what their answers say.

use hopcast_core::{Duration, Instant};

use crate::norm::wire::Timestamp;

/// The probes.
#[derive(Clone, Debug, Default)]
pub(super) struct Probe {
    next: Option<Instant>,
    sequence: u16,
}

/// What a sender's clock shows at the start: a zero on the wire is no time.
const EPOCH: Duration = Duration::from_secs(1);

impl Probe {
    /// The time on the wire.
    pub(super) fn stamp(now: Instant) -> Timestamp {
        Timestamp::of(now + EPOCH)
    }

    /// The time that a probe bears, if one is due; none are while nothing is sent.
    pub(super) fn next(&mut self, now: Instant, is_active: bool, interval: Duration) -> Option<Timestamp> {
        if !is_active {
            self.next = None;
            return None;
        }
        if self.next.is_some_and(|at| at > now) {
            return None;
        }
        self.next = Some(now + interval);
        self.sequence = self.sequence.wrapping_add(1);
        Some(Self::stamp(now))
    }

    /// When the next one is due.
    pub(super) fn due(&self) -> Option<Instant> {
        self.next
    }

    /// Sequence number of the last one.
    pub(super) fn sequence(&self) -> u16 {
        self.sequence
    }

    /// The round trip that an answer shows: the time since the sender's clock was what it says. `None` if it says
    /// nothing, or a time at which nothing was sent.
    pub(super) fn round_trip(now: Instant, response: Timestamp) -> Option<Duration> {
        if response.is_zero() {
            return None;
        }
        let round_trip = Self::stamp(now).since(response)?;
        (round_trip <= now.since(Instant::ZERO)).then_some(round_trip)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn an_answer_shows_the_round_trip_less_the_time_it_was_held() {
        let sent = Probe::stamp(Instant::ZERO + ms(500));
        let now = Instant::ZERO + ms(700);
        assert_eq!(Probe::round_trip(now, sent.after(ms(150))), Some(ms(50)));
        assert_eq!(Probe::round_trip(now, Timestamp::default()), None);
        assert_eq!(Probe::round_trip(now, sent.after(ms(250))), None, "in the future");
        assert_eq!(Probe::round_trip(now, Timestamp { seconds: 0, micros: 1 }), None, "before the start");
    }

    #[test]
    fn probes_are_sent_at_an_interval_while_something_is_sent() {
        let mut probe = Probe::default();
        let at = |millis| Instant::ZERO + ms(millis);
        assert!(probe.next(at(0), false, ms(100)).is_none());
        assert!(probe.next(at(0), true, ms(100)).is_some());
        assert!(probe.next(at(99), true, ms(100)).is_none());
        assert_eq!(probe.due(), Some(at(100)));
        assert!(probe.next(at(100), true, ms(100)).is_some());
        assert_eq!(probe.sequence(), 2);
        assert!(probe.next(at(300), false, ms(100)).is_none());
        assert_eq!(probe.due(), None);
    }
}
