//! Reachable: the neighbour has answered recently.

use hopcast_core::{Duration, Instant, Stream};

/// The state of a neighbour that has answered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reachable {
    /// Time until which its answer holds.
    pub(super) until: Instant,
}

/// The reachable time of an interface, and the time until which it is kept.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReachableTime(Option<(Duration, Instant)>);

impl ReachableTime {
    /// Time for which the random time is kept: "every few hours" (RFC 4861 section 6.3.4).
    const KEPT: Duration = Duration::from_secs(2 * 3600);

    /// The reachable time now: uniform between half and one and a half of `mean` (RFC 4861 section 10,
    /// `MIN_RANDOM_FACTOR` and `MAX_RANDOM_FACTOR`), so that neighbours do not probe in step.
    pub(super) fn at(&mut self, now: Instant, mean: Duration, random: &mut Stream) -> Duration {
        if let Some((time, _)) = self.0.filter(|&(_, until)| now < until) {
            return time;
        }
        let time = mean.as_nanos() / 2 + random.below(mean.as_nanos().saturating_add(1));
        let time = Duration::from_nanos(time);
        self.0 = Some((time, now + Self::KEPT));
        time
    }
}
