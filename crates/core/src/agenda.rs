//! Deadlines by key, in a table without a fixed size.

use core::fmt;
use std::collections::{BTreeMap, BTreeSet};

use crate::time::Instant;

/// Deadlines of keys `K`, at most one each. Deadlines of one instant fall due in the order of their keys. Each call
/// takes time in the logarithm of their number.
pub struct Agenda<K> {
    deadlines: BTreeMap<K, Instant>,
    order: BTreeSet<(Instant, K)>,
}

impl<K: Ord + Copy> Agenda<K> {
    /// No deadlines.
    pub const fn new() -> Self {
        Self { deadlines: BTreeMap::new(), order: BTreeSet::new() }
    }

    /// Sets the deadline of `key`, in place of an earlier setting; `None` stops it.
    pub fn set(&mut self, key: K, at: Option<Instant>) {
        let before = match at {
            Some(at) => self.deadlines.insert(key, at),
            None => self.deadlines.remove(&key),
        };
        if let Some(before) = before {
            self.order.remove(&(before, key));
        }
        self.order.extend(at.map(|at| (at, key)));
    }

    /// The deadline of `key`.
    pub fn get(&self, key: K) -> Option<Instant> {
        self.deadlines.get(&key).copied()
    }

    /// The earliest deadline.
    pub fn next(&self) -> Option<Instant> {
        self.order.first().map(|&(at, _)| at)
    }

    /// The first key whose deadline has been reached, which is thereby stopped.
    pub fn expired(&mut self, now: Instant) -> Option<K> {
        let &(_, key) = self.order.first().filter(|&&(at, _)| at <= now)?;
        self.set(key, None);
        Some(key)
    }

    /// Stops all.
    pub fn clear(&mut self) {
        *self = Self::new();
    }
}

impl<K: Ord + Copy> Default for Agenda<K> {
    fn default() -> Self {
        Self::new()
    }
}

impl<K: fmt::Debug> fmt::Debug for Agenda<K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(&self.order).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_fall_due_in_the_order_of_time_and_then_of_keys() {
        let at = Instant::from_nanos;
        let mut agenda = Agenda::new();
        for (key, nanos) in [('c', 5), ('b', 9), ('a', 5), ('d', 5), ('b', 3)] {
            agenda.set(key, Some(at(nanos)));
        }
        agenda.set('d', None);
        agenda.set('z', None);
        assert_eq!((agenda.next(), agenda.get('b'), agenda.get('d')), (Some(at(3)), Some(at(3)), None));
        assert_eq!(agenda.expired(at(2)), None);
        let due: Vec<_> = core::iter::from_fn(|| agenda.expired(at(5))).collect();
        assert_eq!(due, ['b', 'a', 'c']);
        assert_eq!(agenda.next(), None);
    }
}
