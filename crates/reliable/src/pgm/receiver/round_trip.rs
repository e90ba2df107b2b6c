//! The round-trip time to whoever confirms requests: of a request and its confirmation, as TCP estimates its own (RFC
//! 6298).

use hopcast_core::Duration;

#[derive(Clone, Debug)]
pub(super) struct RoundTrip {
    smooth: Duration,
    variation: Duration,
    is_measured: bool,
}

/// Minimum time in which a confirmation is awaited. Chosen: a kernel may take some milliseconds to run a program.
const MIN: Duration = Duration::from_millis(5);
/// Maximum time: of a slow link with a queue.
const MAX: Duration = Duration::from_secs(4);

impl RoundTrip {
    pub(super) fn new(assumed: Duration) -> Self {
        Self { smooth: assumed, variation: assumed / 2, is_measured: false }
    }

    /// The mean.
    pub(super) const fn mean(&self) -> Duration {
        self.smooth
    }

    /// Time in which a confirmation is awaited.
    pub(super) fn timeout(&self) -> Duration {
        (self.smooth + self.variation * 4).max(MIN).min(MAX)
    }

    pub(super) fn sample(&mut self, sample: Duration) {
        if !std::mem::replace(&mut self.is_measured, true) {
            self.smooth = sample;
            self.variation = sample / 2;
            return;
        }
        self.variation = self.variation.mul_f64(0.75) + self.smooth.abs_diff(sample).mul_f64(0.25);
        self.smooth = self.smooth.mul_f64(0.875) + sample.mul_f64(0.125);
    }
}
