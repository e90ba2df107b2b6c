//! The probes by which round trips are measured, and what their answers say.

use std::collections::VecDeque;

use hopcast_core::{Duration, Instant};

use crate::norm::wire::Timestamp;

/// The probes.
#[derive(Clone, Debug, Default)]
pub(super) struct Probe {
    /// When the last one was sent, unless nothing was to be sent since then.
    last: Option<Instant>,
    sequence: u16,
    /// When the first one was sent.
    first: Option<Instant>,
    /// The last ones and when they were sent, the latest last; at most [`MAX_KNOWN`].
    sent: VecDeque<(u16, Instant)>,
}

/// Probes to which answers are taken. Chosen: a path on which more are on their way is none.
const MAX_KNOWN: usize = 64;
/// Precision of times on the wire.
const PRECISION: Duration = Duration::from_micros(2);

/// Time that a sender's clock shows at the start: a zero on the wire is no time.
const EPOCH: Duration = Duration::from_secs(1);

impl Probe {
    /// The time on the wire.
    pub(super) fn stamp(now: Instant) -> Timestamp {
        Timestamp::of(now + EPOCH)
    }

    /// The time that a probe bears, if one is due; none are while nothing is sent.
    pub(super) fn next(&mut self, now: Instant, is_active: bool, interval: Duration) -> Option<Timestamp> {
        if !is_active {
            self.last = None;
            return None;
        }
        if self.due(interval).is_some_and(|at| at > now) {
            return None;
        }
        self.last = Some(now);
        self.sequence = self.sequence.wrapping_add(1);
        self.first.get_or_insert(now);
        if self.sent.len() == MAX_KNOWN {
            self.sent.pop_front();
        }
        self.sent.push_back((self.sequence, now));
        Some(Self::stamp(now))
    }

    /// When the next one is due, at this interval.
    pub(super) fn due(&self, interval: Duration) -> Option<Instant> {
        self.last.map(|last| last + interval)
    }

    /// Sequence number of the last one.
    pub(super) fn sequence(&self) -> u16 {
        self.sequence
    }

    /// The round trip that an answer shows: the time since the sender's clock was what it says. `None` if it says
    /// nothing, or a time that lies before the probe: that of the `sequence` that it names, or otherwise the first one.
    pub(super) fn round_trip(
        &self,
        now: Instant,
        response: Timestamp,
        sequence: Option<u16>,
    ) -> Option<Duration> {
        if response.is_zero() {
            return None;
        }
        let sent = match sequence {
            Some(number) => {
                let behind = usize::from(self.sequence.wrapping_sub(number));
                let index = self.sent.len().checked_sub(behind + 1)?;
                self.sent.get(index)?.1
            }
            None => self.first?,
        };
        let round_trip = Self::stamp(now).since(response)?;
        (round_trip <= now.since(sent) + PRECISION).then_some(round_trip)
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
        let mut probe = Probe::default();
        let at = |millis| Instant::ZERO + ms(millis);
        for sent in [100, 500] {
            probe.next(at(sent), true, ms(100));
        }
        let (sent, now) = (Probe::stamp(at(500)), at(700));
        let round_trip = |response, sequence| probe.round_trip(now, response, sequence);
        assert_eq!(round_trip(sent.after(ms(150)), Some(2)), Some(ms(50)));
        assert_eq!(round_trip(sent.after(ms(150)), None), Some(ms(50)));
        assert_eq!(round_trip(Timestamp::default(), None), None);
        assert_eq!(round_trip(sent.after(ms(250)), None), None, "in the future");
        assert_eq!(round_trip(Probe::stamp(at(50)), None), None, "before the first");
        assert_eq!(round_trip(Probe::stamp(at(400)), Some(2)), None, "before the probe that it answers");
        assert_eq!(round_trip(sent, Some(3)), None, "none was sent of that number");
    }

    #[test]
    fn probes_are_sent_at_an_interval_while_something_is_sent() {
        let mut probe = Probe::default();
        let at = |millis| Instant::ZERO + ms(millis);
        assert!(probe.next(at(0), false, ms(100)).is_none());
        assert!(probe.next(at(0), true, ms(100)).is_some());
        assert!(probe.next(at(99), true, ms(100)).is_none());
        assert_eq!((probe.due(ms(100)), probe.due(ms(50))), (Some(at(100)), Some(at(50))));
        assert!(probe.next(at(100), true, ms(100)).is_some());
        assert_eq!(probe.sequence(), 2);
        assert!(probe.next(at(300), false, ms(100)).is_none());
        assert_eq!(probe.due(ms(100)), None);
    }
}
