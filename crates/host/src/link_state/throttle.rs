//! When to compute routes: soon after a change, and less and less often while there are changes.

use hopcast_core::{Duration, Instant};

use super::config::Config;

#[derive(Debug, Default)]
pub(super) struct Throttle {
    due: Option<Instant>,
    /// Whether that is later for the computation before.
    is_held: bool,
    /// Time of the last computation, and the time after it in which there is none.
    last: Option<(Instant, Duration)>,
}

impl Throttle {
    /// Something has changed.
    pub(super) fn request(&mut self, now: Instant, config: &Config) {
        let soon = now + config.spf_delay;
        let free = self.last.map_or(soon, |(last, hold)| last + hold);
        if self.due.is_none() {
            (self.due, self.is_held) = (Some(soon.max(free)), free > soon);
        }
    }

    /// Whether it is time to compute; if so, it is done.
    pub(super) fn is_due(&mut self, now: Instant, config: &Config) -> bool {
        let is_due = self.due.is_some_and(|due| due <= now);
        if is_due {
            let in_a_row = self.last.filter(|&(last, hold)| now.since(last) < hold * 2);
            let longer = if self.is_held { 2 } else { 1 };
            let hold = in_a_row.map_or(config.spf_hold, |(_, hold)| (hold * longer).min(config.spf_max_hold));
            (self.due, self.last) = (None, Some((now, hold)));
        }
        is_due
    }

    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_change_waits_for_the_delay_and_a_row_of_them_longer_and_longer() {
        let (mut throttle, config) = (Throttle::default(), Config::default());
        let mut found = Vec::new();
        for millis in 0..60_000 {
            let now = Instant::ZERO + Duration::from_millis(millis);
            throttle.request(now, &config);
            if throttle.is_due(now, &config) {
                found.push(millis);
            }
        }
        assert_eq!(found, [200, 1_200, 3_200, 7_200, 15_200, 25_200, 35_200, 45_200, 55_200]);
        assert!(throttle.is_due(Instant::ZERO + Duration::from_secs(70), &config));
        // After twice the hold in peace a change is followed as the first was.
        let now = Instant::ZERO + Duration::from_secs(100);
        throttle.request(now, &config);
        assert_eq!(throttle.deadline(), Some(now + config.spf_delay));
        assert!(throttle.is_due(now + config.spf_delay, &config));
        throttle.request(now + config.spf_delay, &config);
        assert_eq!(throttle.deadline(), Some(now + config.spf_delay + config.spf_hold));
    }
}
