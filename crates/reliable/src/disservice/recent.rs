//! Keys that were noted of late.

use std::collections::{BTreeMap, VecDeque};

use hopcast_core::{Duration, Instant};

/// Keys that were noted within a time, as far as there is room; the oldest make room.
#[derive(Debug)]
pub(super) struct Recent<K> {
    within: Duration,
    max: usize,
    last: BTreeMap<K, Instant>,
    /// Each time that a key was noted, the oldest first.
    ages: VecDeque<(Instant, K)>,
}

impl<K: Ord + Copy> Recent<K> {
    /// Keys that were noted `within` a time, `max` at most. Within no time there is none.
    pub(super) const fn new(within: Duration, max: usize) -> Self {
        Self { within, max, last: BTreeMap::new(), ages: VecDeque::new() }
    }

    /// Notes a key.
    pub(super) fn note(&mut self, now: Instant, key: K) {
        if self.within.is_zero() {
            return;
        }
        self.last.insert(key, now);
        self.ages.push_back((now, key));
        while let Some(&(at, key)) = self.ages.front()
            && (now.since(at) > self.within || self.ages.len() > self.max)
        {
            self.ages.pop_front();
            // Unless it was noted again since.
            if self.last.get(&key).is_some_and(|&last| last <= at) {
                self.last.remove(&key);
            }
        }
    }

    /// Whether a key was noted within the time.
    pub(super) fn has(&self, now: Instant, key: K) -> bool {
        self.last.get(&key).is_some_and(|&at| now.since(at) < self.within)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_known_for_a_time_from_when_it_was_noted_last_and_the_oldest_make_room() {
        let at = |second| Instant::ZERO + Duration::from_secs(second);
        let mut recent = Recent::new(Duration::from_secs(10), 3);
        recent.note(at(0), 'a');
        recent.note(at(5), 'a');
        assert!(recent.has(at(14), 'a') && !recent.has(at(15), 'a') && !recent.has(at(5), 'b'));
        ['b', 'c', 'd'].into_iter().for_each(|key| recent.note(at(6), key));
        assert!(!recent.has(at(6), 'a') && recent.has(at(6), 'b') && recent.ages.len() == 3);
        let mut nothing = Recent::new(Duration::ZERO, 3);
        nothing.note(at(0), 'a');
        assert!(!nothing.has(at(0), 'a'));
    }
}
