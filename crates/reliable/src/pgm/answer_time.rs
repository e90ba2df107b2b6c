//! The time that repairs take after their requests, for those who do not hear all that the source sends: who waits
//! longer than that asks again.

use hopcast_core::Duration;

/// The longest time that repairs have taken; shorter ones lower it by an eighth each.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct AnswerTime(Option<Duration>);

/// Time that a repair may take beyond the longest before. Chosen: what queues and clocks of a local network add.
const SLACK: Duration = Duration::from_millis(20);

impl AnswerTime {
    /// Notes the time of a repair whose request was made once.
    pub(super) fn sample(&mut self, time: Duration) {
        self.0 = Some(self.0.map_or(time, |last| time.max(last.mul_f64(0.875))));
    }

    /// Time within which a repair comes, unless it is lost; `None` until one has come.
    pub(super) fn limit(self) -> Option<Duration> {
        self.0.map(|time| time + SLACK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_longest_counts_and_is_forgotten_slowly() {
        let mut time = AnswerTime::default();
        assert_eq!(time.limit(), None);
        let ms = Duration::from_millis;
        [10, 80, 10].into_iter().for_each(|sample| time.sample(ms(sample)));
        assert_eq!(time.limit(), Some(ms(70 + 20)));
        (0..100).for_each(|_| time.sample(ms(10)));
        assert_eq!(time.limit(), Some(ms(30)));
    }
}
