//! Smoothed time until an answer, and the timeout that follows from it (RFC 6298).

use hopcast_core::Duration;

/// Estimate of a time, out of samples.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RoundTrip {
    /// Mean and mean deviation; none before the first sample.
    estimate: Option<(Duration, Duration)>,
    initial: Duration,
}

impl RoundTrip {
    /// An estimate without samples, whose timeout is `initial`.
    pub(crate) const fn new(initial: Duration) -> Self {
        Self { estimate: None, initial }
    }

    /// Notes a sample (RFC 6298, section 2: 1/8 and 1/4).
    pub(crate) fn sample(&mut self, sample: Duration) {
        let sample = sample.min(MAX);
        self.estimate = Some(match self.estimate {
            None => (sample, sample / 2),
            Some((mean, deviation)) => ((mean * 7 + sample) / 8, (deviation * 3 + mean.abs_diff(sample)) / 4),
        });
    }

    /// The mean, if there is one.
    pub(crate) fn mean(&self) -> Option<Duration> {
        self.estimate.map(|(mean, _)| mean)
    }

    /// Time after which an answer is late.
    pub(crate) fn timeout(&self) -> Duration {
        let late = |(mean, deviation): (Duration, Duration)| (mean + deviation * 4).clamp(MIN, MAX);
        self.estimate.map_or(self.initial, late)
    }
}

/// Minimum and maximum timeout. Chosen: 2 ms is above what a kernel's wake-ups vary by; 10 s is the longest round trip
/// that the members' other timers are made for.
const MIN: Duration = Duration::from_millis(2);
const MAX: Duration = Duration::from_secs(10);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_timeout_comes_down_to_the_time_that_answers_take() {
        let mut time = RoundTrip::new(Duration::from_millis(300));
        assert_eq!((time.timeout(), time.mean()), (Duration::from_millis(300), None));
        (0..40).for_each(|_| time.sample(Duration::from_millis(20)));
        assert_eq!(time.mean(), Some(Duration::from_millis(20)));
        assert!(time.timeout() < Duration::from_millis(21), "{}", time.timeout());
        time.sample(Duration::from_secs(1 << 40));
        assert!(time.timeout() <= MAX);
    }
}
