//! A set of ranges of numbers that only grows, and is forgotten from below.

use std::collections::BTreeMap;

/// Ranges that neither overlap nor touch, by their first number.
#[derive(Clone, Debug, Default)]
pub(super) struct Ranges {
    ends: BTreeMap<u64, u64>,
}

impl Ranges {
    /// Adds `start..end`, and calls `fresh` with each part of it that was not in the set, in order.
    pub(super) fn insert(&mut self, start: u64, end: u64, mut fresh: impl FnMut(u64, u64)) {
        if start >= end {
            return;
        }
        let (mut from, mut to) = (start, end);
        let mut at = start;
        if let Some((&before, &before_end)) = self.ends.range(..=start).next_back()
            && before_end >= start
        {
            if before_end >= end {
                return;
            }
            from = before;
            at = before_end;
        }
        while let Some((&next, &next_end)) = self.ends.range(from + 1..=end).next() {
            if at < next {
                fresh(at, next);
            }
            at = at.max(next_end);
            to = to.max(next_end);
            self.ends.remove(&next);
        }
        if at < end {
            fresh(at, end);
        }
        self.ends.insert(from, to);
    }

    /// Forgets all numbers below `floor`.
    pub(super) fn forget_below(&mut self, floor: u64) {
        while let Some(first) = self.ends.first_entry() {
            if *first.key() >= floor {
                break;
            }
            let end = *first.get();
            if end > floor {
                first.remove();
                self.ends.insert(floor, end);
                break;
            }
            first.remove();
        }
    }

    /// Forgets everything.
    pub(super) fn clear(&mut self) {
        self.ends.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    proptest! {
        #[test]
        fn each_number_is_fresh_once(steps in proptest::collection::vec((0u64..60, 0u64..12, 0u64..20), 1..60)) {
            let mut ranges = Ranges::default();
            let mut model = BTreeSet::new();
            let mut floor = 0;
            for (start, len, raise) in steps {
                let start = start.max(floor);
                let mut fresh = Vec::new();
                ranges.insert(start, start + len, |from, to| fresh.extend(from..to));
                let wanted: Vec<u64> = (start..start + len).filter(|n| model.insert(*n)).collect();
                prop_assert_eq!(fresh, wanted);
                if raise > 17 {
                    floor += raise - 15;
                    ranges.forget_below(floor);
                    model = model.split_off(&floor);
                }
            }
        }
    }
}
