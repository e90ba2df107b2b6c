//! Interarrival jitter.

use hopcast_core::Duration;
use serde::{Deserialize, Serialize};

/// Interarrival jitter by RFC 3550, section 6.4.1: J += (|D| - J) / 16.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(crate) struct Jitter {
    /// Transit time of the previous arrival; it is not needed after the flow.
    #[serde(skip)]
    transit: Option<Duration>,
    jitter_ns: f64,
    samples: u64,
}

impl Jitter {
    pub(super) fn arrival(&mut self, transit: Duration) {
        if let Some(before) = self.transit.replace(transit) {
            self.jitter_ns += (transit.abs_diff(before).as_nanos() as f64 - self.jitter_ns) / 16.0;
            self.samples += 1;
        }
    }

    /// Merges the jitter of another receiver: the mean of both, weighted by their numbers of samples.
    pub(super) fn add(&mut self, other: &Self) {
        let samples = self.samples + other.samples;
        let sum = self.jitter_ns * self.samples as f64 + other.jitter_ns * other.samples as f64;
        self.jitter_ns = sum / samples.max(1) as f64;
        self.samples = samples;
    }

    /// The estimate after the last arrival, in milliseconds.
    pub(crate) fn millis(&self) -> Option<f64> {
        (self.samples > 0).then_some(self.jitter_ns / 1e6)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jitter_follows_the_formula_of_rfc_3550() {
        let mut jitter = Jitter::default();
        assert_eq!(jitter.millis(), None);
        for millis in [10, 26, 10] {
            jitter.arrival(Duration::from_millis(millis));
        }
        // J = 16/16 = 1, then 1 + (16 - 1)/16.
        assert_eq!(jitter.millis(), Some(1.0 + 15.0 / 16.0));
    }
}
