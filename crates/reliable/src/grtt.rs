//! The group round-trip time: the largest of any receiver, as its sender estimates it (RFC 5401, section 3.7.1).

use hopcast_core::Duration;

/// A peak estimator: rises at once, declines slowly.
#[derive(Clone, Debug)]
pub struct Grtt {
    estimate: Duration,
    /// Whether a receiver has answered a probe, so that the estimate is more than an assumption.
    measured: bool,
    /// The largest round-trip time since the last probe.
    peak: Option<Duration>,
    /// How far the estimate may rise until the next probe.
    ceiling: Duration,
    max: Duration,
}

/// Factor by which the estimate rises between two probes at most. Chosen: a receiver that lies
/// about its delay takes that many probes to lead the group astray, a real change of route is followed within a few.
const MAX_RISE: u64 = 2;

/// Share of what the estimate was in its decline towards a lower peak. Chosen: RFC 5401, section 3.7.1, has
/// max(0.9 GRTT, peak), which is as conservative, but ends at once at the peak of a single probe.
const KEEP: f64 = 0.75;

impl Grtt {
    /// An estimator that assumes `initial`, and never exceeds `max`.
    pub fn new(initial: Duration, max: Duration) -> Self {
        let initial = initial.min(max);
        let ceiling = (initial.max(MIN_CEILING) * MAX_RISE).min(max);
        Self { estimate: initial, measured: false, peak: None, ceiling, max }
    }

    /// The estimate.
    pub fn get(&self) -> Duration {
        self.estimate
    }

    /// Whether a receiver has answered.
    pub fn is_measured(&self) -> bool {
        self.measured
    }

    /// Takes a receiver's round-trip time. The first one replaces the assumption.
    pub fn sample(&mut self, round_trip: Duration) {
        let round_trip = round_trip.min(self.ceiling);
        if !std::mem::replace(&mut self.measured, true) {
            self.estimate = round_trip;
        }
        self.peak = Some(self.peak.map_or(round_trip, |peak| peak.max(round_trip)));
        self.estimate = self.estimate.max(round_trip);
    }

    /// Notes that a probe was sent: the time over which the peak is taken ends.
    pub fn probed(&mut self) {
        if let Some(peak) = self.peak.take()
            && peak < self.estimate
        {
            self.estimate = self.estimate.mul_f64(KEEP) + peak.mul_f64(1.0 - KEEP);
        }
        self.ceiling = (self.estimate.max(MIN_CEILING) * MAX_RISE).min(self.max);
    }
}

/// Round-trip time that rises without being limited: queues of access links make such times of nothing. Chosen.
const MIN_CEILING: Duration = Duration::from_millis(100);

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn the_first_answer_replaces_the_assumption_and_a_longer_one_counts_at_once() {
        let mut grtt = Grtt::new(ms(500), ms(10_000));
        assert_eq!((grtt.get(), grtt.is_measured()), (ms(500), false));
        grtt.sample(ms(20));
        grtt.sample(ms(80));
        grtt.sample(ms(30));
        assert_eq!((grtt.get(), grtt.is_measured()), (ms(80), true));
        grtt.probed();
        assert_eq!(grtt.get(), ms(80), "the longest of those since the last probe counts, not the last");
    }

    #[test]
    fn it_declines_slowly_and_only_on_answers() {
        let mut grtt = Grtt::new(ms(500), ms(10_000));
        grtt.sample(ms(100));
        grtt.probed();
        grtt.probed();
        assert_eq!(grtt.get(), ms(100));
        grtt.sample(ms(20));
        grtt.probed();
        assert_eq!(grtt.get(), ms(80));
    }

    #[test]
    fn a_receiver_that_lies_raises_it_by_a_factor_a_probe_and_never_over_the_maximum() {
        let mut grtt = Grtt::new(ms(200), ms(2_000));
        grtt.sample(Duration::MAX);
        assert_eq!(grtt.get(), ms(400));
        for expected in [800, 1_600, 2_000, 2_000] {
            grtt.probed();
            grtt.sample(Duration::MAX);
            assert_eq!(grtt.get(), ms(expected));
        }
    }
}
