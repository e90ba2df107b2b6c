//! Deadlines in the order of time.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_core::Instant;

/// A deadline for each of some keys. Each call takes time in the logarithm of their number.
#[derive(Debug)]
pub(super) struct Deadlines<K> {
    by_key: BTreeMap<K, Instant>,
    /// Those at the same instant are in the order of their keys.
    by_time: BTreeSet<(Instant, K)>,
}

impl<K> Default for Deadlines<K> {
    fn default() -> Self {
        Self { by_key: BTreeMap::new(), by_time: BTreeSet::new() }
    }
}

impl<K: Ord + Copy> Deadlines<K> {
    /// Sets the deadline of a key, in place of an earlier one.
    pub(super) fn set(&mut self, key: K, at: Instant) {
        self.remove(&key);
        self.by_key.insert(key, at);
        self.by_time.insert((at, key));
    }

    pub(super) fn remove(&mut self, key: &K) {
        if let Some(at) = self.by_key.remove(key) {
            self.by_time.remove(&(at, *key));
        }
    }

    /// A key whose deadline is not after `now`, and which has none any more.
    pub(super) fn expired(&mut self, now: Instant) -> Option<K> {
        let (_, key) = *self.by_time.first().filter(|(at, _)| *at <= now)?;
        self.remove(&key);
        Some(key)
    }

    /// The first deadline.
    pub(super) fn next(&self) -> Option<Instant> {
        self.by_time.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Duration;

    use super::*;

    #[test]
    fn keys_expire_in_the_order_of_their_last_deadlines() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut deadlines = Deadlines::default();
        for (key, seconds) in [('a', 5), ('b', 3), ('c', 4), ('a', 2), ('d', 2), ('e', 1), ('b', 9)] {
            deadlines.set(key, at(seconds));
        }
        deadlines.remove(&'e');
        deadlines.remove(&'z');
        assert_eq!(deadlines.next(), Some(at(2)));
        assert_eq!(deadlines.expired(at(1)), None);
        let expired: String = std::iter::from_fn(|| deadlines.expired(at(4))).collect();
        assert_eq!(expired, "adc");
        assert_eq!(
            (deadlines.next(), deadlines.expired(at(9)), deadlines.next()),
            (Some(at(9)), Some('b'), None)
        );
    }
}
