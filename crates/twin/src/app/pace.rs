//! When a sender of datagrams sends next.

use hopcast_core::{Duration, Instant, Rate};

use super::Schedule;

/// How fast datagrams may leave: a rate, and its scheduled changes if it is that of a link.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    /// From when on which rate holds, rising; the first from the beginning.
    rates: Vec<(Instant, Rate)>,
    /// What each datagram counts for beside its payload.
    overhead: u64,
}

impl Pace {
    /// `rate` of payload.
    pub(crate) fn constant(rate: Rate) -> Self {
        Self { rates: vec![(Instant::ZERO, rate)], overhead: 0 }
    }

    /// As much as a link takes whose rates are `rates`, of frames with `overhead` bytes beside the payload.
    pub(crate) fn saturating(rates: Vec<(Instant, Rate)>, overhead: u64) -> Self {
        Self { rates, overhead }
    }

    fn at(&self, now: Instant) -> Rate {
        let rate = self.rates.iter().rev().find(|&&(from, _)| from <= now);
        rate.map_or(Rate::default(), |&(_, rate)| rate)
    }

    fn next_change(&self, now: Instant) -> Option<Instant> {
        self.rates.iter().map(|&(from, _)| from).find(|&from| from > now)
    }
}

/// Spaces datagrams by their length at a [`Pace`], inside a [`Schedule`].
pub(crate) struct Clock {
    schedule: Schedule,
    pace: Pace,
    next: Option<Instant>,
    carry: u64,
}

impl Clock {
    pub(crate) fn new(schedule: Schedule, pace: Pace) -> Self {
        let next = schedule.next_active(Instant::ZERO);
        Self { schedule, pace, next, carry: 0 }
    }

    /// When the next datagram is due.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.next
    }

    /// Whether a datagram is due at `now`. If so it is taken to be `payload` bytes long and to leave now.
    pub(crate) fn tick(&mut self, now: Instant, payload: usize) -> bool {
        let Some(due) = self.next.filter(|&due| due <= now) else { return false };
        let rate = self.pace.at(due);
        let bytes = payload as u64 + self.pace.overhead;
        if rate.bits_per_sec() == 0 {
            // Nothing leaves at no rate at all; look again when it changes.
            self.next = self.pace.next_change(due).and_then(|at| self.schedule.next_active(at));
            return false;
        }
        let gap = rate.time_with_carry(bytes, &mut self.carry).max(Duration::from_nanos(1));
        self.next = self.schedule.next_active(due + gap);
        true
    }

    /// Ends the sending.
    pub(crate) fn stop(&mut self) {
        self.next = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn departures(pace: Pace, end: u64) -> Vec<u64> {
        let mut clock = Clock::new(Schedule::new([(Instant::ZERO, Instant::from_nanos(end))]), pace);
        let mut times = Vec::new();
        while let Some(now) = clock.due() {
            if clock.tick(now, 1000) {
                times.push(now.as_nanos() / 1000);
            }
        }
        times
    }

    #[test]
    fn datagrams_are_spaced_by_their_length() {
        // 1,000 bytes at 8 Mbit/s are a millisecond.
        let pace = Pace::constant(Rate::from_mbit(8));
        assert_eq!(departures(pace, 3_000_000), [0, 1000, 2000]);
    }

    #[test]
    fn a_change_of_the_links_rate_changes_the_pace_and_no_rate_waits_for_one() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let rates = vec![(at(0), Rate::from_mbit(8)), (at(2), Rate::default()), (at(5), Rate::from_mbit(16))];
        assert_eq!(departures(Pace::saturating(rates, 0), 6_200_000), [0, 1000, 5000, 5500, 6000]);
    }
}
