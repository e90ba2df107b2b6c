//! The times at which a source sends: at a rate or at intervals, constant or random, with or without pauses.

use hopcast_core::{Duration, Instant, Rate, Stream};

use super::Schedule;
use crate::scenario::model::{OnOff, Spread};

/// The intervals between units.
#[derive(Clone, Debug)]
pub(crate) struct Pace {
    gaps: Gaps,
    /// Random numbers of a Poisson process, whose mean gap is that of `gaps`; `None` for constant gaps.
    poisson: Option<Stream>,
    bursts: Option<Bursts>,
}

#[derive(Clone, Debug)]
enum Gaps {
    /// A constant gap after each unit.
    Every(Duration),
    /// The time that a unit takes at a rate.
    Rates {
        /// Each rate with the time from which it holds, in order; the first holds from the beginning.
        rates: Vec<(Instant, Rate)>,
        /// Bytes of a unit beside its payload.
        overhead: u64,
    },
}

impl Pace {
    /// A constant rate of payload.
    pub(crate) fn constant(rate: Rate) -> Self {
        Self::saturating(vec![(Instant::ZERO, rate)], 0)
    }

    /// The maximum rate of a link whose rates are `rates`, with `overhead` bytes beside the payload in each frame.
    pub(crate) fn saturating(rates: Vec<(Instant, Rate)>, overhead: u64) -> Self {
        Self { gaps: Gaps::Rates { rates, overhead }, poisson: None, bursts: None }
    }

    /// One unit every `gap`.
    pub(crate) fn every(gap: Duration) -> Self {
        Self { gaps: Gaps::Every(gap), poisson: None, bursts: None }
    }

    /// Sets the distribution of the gaps, at the same mean rate.
    pub(crate) fn spread(self, gaps: Spread, random: Stream) -> Self {
        Self { poisson: (gaps == Spread::Exponential).then_some(random), ..self }
    }

    /// Restricts it to periods that are on, with the same rate in these and none in between.
    pub(crate) fn on_off(self, on_off: Option<OnOff>, random: Stream) -> Self {
        Self { bursts: on_off.map(|on_off| Bursts { on_off, random, until: None }), ..self }
    }
}

impl Gaps {
    /// The mean gap after a unit that leaves at `now`; `None` at a rate of zero.
    fn mean(&self, now: Instant, payload: usize, carry: &mut u64) -> Option<Duration> {
        match self {
            Self::Every(gap) => Some(*gap),
            Self::Rates { rates, overhead } => {
                let rate = rates.iter().rev().find(|&&(from, _)| from <= now).map(|&(_, rate)| rate);
                let rate = rate.filter(|rate| rate.bits_per_sec() > 0)?;
                Some(rate.time_with_carry(payload as u64 + overhead, carry))
            }
        }
    }

    fn next_change(&self, now: Instant) -> Option<Instant> {
        match self {
            Self::Every(_) => None,
            Self::Rates { rates, .. } => rates.iter().map(|&(from, _)| from).find(|&from| from > now),
        }
    }
}

/// Alternating periods of being on and off, the first of them on.
#[derive(Clone, Debug)]
struct Bursts {
    on_off: OnOff,
    random: Stream,
    /// The end of the current period of being on.
    until: Option<Instant>,
}

impl Bursts {
    /// The time at which it has been on for `gap` since `at`. When a period ends, the rest of the gap continues in the
    /// next one, so that the mean rate does not depend on where periods end within gaps.
    fn after(&mut self, mut at: Instant, mut gap: Duration) -> Instant {
        // After the end of its period it was restarted.
        let mut until = match self.until.filter(|&until| at < until) {
            Some(until) => until,
            None => at + self.draw(self.on_off.on),
        };
        while gap >= until.since(at) {
            gap = gap.saturating_sub(until.since(at));
            at = until + self.draw(self.on_off.off);
            until = at + self.draw(self.on_off.on);
        }
        self.until = Some(until);
        at + gap
    }

    fn draw(&mut self, mean: Duration) -> Duration {
        match self.on_off.durations {
            Spread::Constant => mean,
            Spread::Exponential => mean.mul_f64(self.random.exponential()),
        }
    }
}

/// Spaces units at a [`Pace`], inside a [`Schedule`].
pub(crate) struct Clock {
    schedule: Schedule,
    pace: Pace,
    next: Option<Instant>,
    carry: u64,
    begun: bool,
}

impl Clock {
    pub(crate) fn new(schedule: Schedule, pace: Pace) -> Self {
        let next = schedule.next_active(Instant::ZERO);
        Self { schedule, pace, next, carry: 0, begun: false }
    }

    /// Time of the next unit.
    pub(crate) fn due(&self) -> Option<Instant> {
        self.next
    }

    /// Whether a unit is due at `now`. If so, schedules the next one as if it had `payload` bytes and left now.
    pub(crate) fn tick(&mut self, now: Instant, payload: usize) -> bool {
        let Some(due) = self.next.filter(|&due| due <= now) else { return false };
        let Pace { gaps, poisson, bursts } = &mut self.pace;
        let Some(mut gap) = gaps.mean(due, payload, &mut self.carry) else {
            // At a rate of zero nothing leaves; the next check is at the next change of the rate.
            self.next = gaps.next_change(due).and_then(|at| self.schedule.next_active(at));
            return false;
        };
        // The first arrival of a Poisson process is a gap after its beginning.
        let leaves = std::mem::replace(&mut self.begun, true) || poisson.is_none();
        if let Some(random) = poisson {
            gap = gap.mul_f64(random.exponential());
        }
        let gap = gap.max(Duration::from_nanos(1));
        let after = bursts.as_mut().map_or_else(|| due + gap, |bursts| bursts.after(due, gap));
        self.next = self.schedule.next_active(after);
        if self.next != Some(after) {
            // After a pause the process begins anew.
            self.begun = false;
        }
        leaves
    }

    /// Notes that a due unit has waited until `now`; later ones are delayed as much.
    pub(crate) fn resume(&mut self, now: Instant) {
        self.next = self.next.and_then(|next| self.schedule.next_active(next.max(now)));
    }

    /// Ends the sending.
    pub(crate) fn stop(&mut self) {
        self.next = None;
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::*;

    fn random() -> Stream {
        Seed::new(1, 0).stream(&["pace"], 0)
    }

    /// The departures of units of 1,000 bytes before `end`, in microseconds.
    fn departures(pace: Pace, end: u64) -> Vec<f64> {
        let end = Instant::from_nanos(end * 1000);
        let mut clock = Clock::new(Schedule::new([(Instant::ZERO, end)]), pace);
        let mut times = Vec::new();
        while let Some(now) = clock.due() {
            if clock.tick(now, 1000) {
                times.push(now.as_nanos() as f64 / 1000.0);
            }
        }
        times
    }

    #[test]
    fn datagrams_are_spaced_by_their_length() {
        // 1,000 bytes at 8 Mbit/s are a millisecond.
        let pace = Pace::constant(Rate::from_mbit(8));
        assert_eq!(departures(pace, 3_000), [0.0, 1000.0, 2000.0]);
    }

    #[test]
    fn a_change_of_the_links_rate_changes_the_pace_and_no_rate_waits_for_one() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let rates = vec![(at(0), Rate::from_mbit(8)), (at(2), Rate::default()), (at(5), Rate::from_mbit(16))];
        assert_eq!(departures(Pace::saturating(rates, 0), 6_200), [0.0, 1000.0, 5000.0, 5500.0, 6000.0]);
    }

    #[test]
    fn gaps_of_a_poisson_process_are_exponential() {
        // Kolmogorov's and Smirnov's test at 1 %, for both kinds of gaps: 1.63 / sqrt(n).
        for pace in [Pace::constant(Rate::from_mbit(8)), Pace::every(Duration::from_millis(1))] {
            let times = departures(pace.spread(Spread::Exponential, random()), 100_000_000);
            let before = std::iter::once(0.0).chain(times.iter().copied());
            let mut gaps: Vec<f64> = times.iter().zip(before).map(|(time, before)| time - before).collect();
            gaps.sort_by(f64::total_cmp);
            let n = gaps.len() as f64;
            assert!((n - 100_000.0).abs() < 3.0 * 100_000f64.sqrt(), "{n}");
            let distance = |(place, gap): (usize, &f64)| {
                let expected = 1.0 - (-gap / 1000.0).exp();
                (place as f64 / n - expected).abs().max(((place + 1) as f64 / n - expected).abs())
            };
            let distance = gaps.iter().enumerate().map(distance).fold(0.0, f64::max);
            assert!(distance < 1.63 / n.sqrt(), "{distance}");
            let mean = gaps.iter().sum::<f64>() / n;
            let variance = gaps.iter().map(|gap| (gap - mean).powi(2)).sum::<f64>() / n;
            assert!((variance / 1e6 - 1.0).abs() < 0.03, "{variance}");
        }
    }

    fn on_off(on: u64, off: u64, durations: Spread) -> Pace {
        let (on, off) = (Duration::from_micros(on), Duration::from_micros(off));
        Pace::constant(Rate::from_mbit(8)).on_off(Some(OnOff { on, off, durations }), random())
    }

    #[test]
    fn what_is_left_of_a_gap_goes_on_when_it_is_on_again() {
        let times = departures(on_off(2_500, 5_000, Spread::Constant), 20_000);
        assert_eq!(times, [0.0, 1000.0, 2000.0, 8000.0, 9000.0, 15_000.0, 16_000.0, 17_000.0]);
    }

    #[test]
    fn a_source_that_is_on_a_third_of_the_time_sends_a_third() {
        for durations in [Spread::Constant, Spread::Exponential] {
            let times = departures(on_off(7_300, 14_600, durations), 1_000_000_000);
            let share = times.len() as f64 / 1_000_000.0;
            assert!((share * 3.0 - 1.0).abs() < 0.02, "{durations:?}: {share}");
        }
    }
}
