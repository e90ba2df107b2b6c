//! Sets of numbers that have few holes.

use std::collections::BTreeMap;
use std::ops::Range;

/// A set of numbers, as runs: memory and work follow the number of holes, not that of members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    /// The first number of each run, and the one after its last. Runs do not touch.
    runs: BTreeMap<u64, u64>,
}

impl Runs {
    /// An empty set.
    pub(crate) const fn new() -> Self {
        Self { runs: BTreeMap::new() }
    }

    pub(crate) fn insert(&mut self, number: u64) {
        if self.contains(number) {
            return;
        }
        let mut end = number + 1;
        if let Some(after) = self.runs.remove(&end) {
            end = after;
        }
        match self.runs.range_mut(..number).next_back() {
            Some((_, before)) if *before == number => *before = end,
            _ => {
                self.runs.insert(number, end);
            }
        }
    }

    /// Adds all numbers of a range.
    pub(crate) fn insert_run(&mut self, run: Range<u64>) {
        if run.is_empty() {
            return;
        }
        let (mut first, mut end) = (run.start, run.end);
        if let Some((&start, &before)) = self.runs.range(..=first).next_back()
            && before >= first
        {
            (first, end) = (start, end.max(before));
        }
        while let Some((&start, &last)) = self.runs.range(first..=end).next() {
            self.runs.remove(&start);
            end = end.max(last);
        }
        self.runs.insert(first, end);
    }

    /// The set of some ranges, as they stand in packets.
    pub(crate) fn of(ranges: &[Range<u32>]) -> Self {
        let mut runs = Self::new();
        runs.insert_all(ranges);
        runs
    }

    /// Adds all numbers of some ranges.
    pub(crate) fn insert_all(&mut self, ranges: &[Range<u32>]) {
        ranges.iter().for_each(|range| self.insert_run(range.start.into()..range.end.into()));
    }

    /// Removes all numbers of some ranges.
    pub(crate) fn remove_all(&mut self, ranges: &[Range<u32>]) {
        ranges.iter().for_each(|range| self.remove_run(range.start.into()..range.end.into()));
    }

    /// Adds all numbers of another set.
    pub(crate) fn insert_set(&mut self, others: &Self) {
        others.runs().for_each(|run| self.insert_run(run));
    }

    /// Removes all numbers of a range.
    pub(crate) fn remove_run(&mut self, run: Range<u64>) {
        if run.is_empty() {
            return;
        }
        if let Some((_, end)) = self.runs.range_mut(..run.start).next_back()
            && *end > run.start
        {
            let rest = run.end..*end;
            *end = run.start;
            if !rest.is_empty() {
                self.runs.insert(rest.start, rest.end);
            }
        }
        while let Some((&start, &end)) = self.runs.range(run.clone()).next() {
            self.runs.remove(&start);
            if end > run.end {
                self.runs.insert(run.end, end);
            }
        }
    }

    /// The runs, ascending.
    pub(crate) fn runs(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + '_ {
        self.runs.iter().map(|(&first, &end)| first..end)
    }

    /// The runs of a set of numbers of 32 bits, as they stand in packets.
    pub(crate) fn ranges(&self) -> impl DoubleEndedIterator<Item = Range<u32>> + '_ {
        self.runs().map(|run| run.start as u32..run.end as u32)
    }

    /// The numbers, ascending.
    pub(crate) fn numbers(&self) -> impl Iterator<Item = u64> + '_ {
        self.runs().flatten()
    }

    pub(crate) fn count(&self) -> u64 {
        self.runs().map(|run| run.end - run.start).sum()
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn contains(&self, number: u64) -> bool {
        self.runs.range(..=number).next_back().is_some_and(|(_, &end)| number < end)
    }

    /// Numbers of a range that are not in the set, ascending.
    pub(crate) fn gaps(&self, range: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let mut at = match self.runs.range(..=range.start).next_back() {
            Some((_, &end)) => end.max(range.start),
            None => range.start,
        };
        let mut later = self.runs.range(range.start..).peekable();
        std::iter::from_fn(move || {
            while let Some((_, &end)) = later.next_if(|&(&first, _)| first <= at) {
                at = at.max(end);
            }
            let found = (at < range.end).then_some(at);
            at += 1;
            found
        })
    }

    /// Removes the numbers below `first`.
    pub(crate) fn forget_below(&mut self, first: u64) {
        while let Some(run) = self.runs.first_entry().filter(|run| *run.key() < first) {
            let end = run.remove();
            if end > first {
                self.runs.insert(first, end);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    #[test]
    fn a_hole_that_is_filled_joins_its_neighbours() {
        let mut runs = Runs::default();
        [1, 3, 2, 7].into_iter().for_each(|number| runs.insert(number));
        assert_eq!(runs.runs, BTreeMap::from([(1, 4), (7, 8)]));
        assert_eq!(runs.gaps(0..9).collect::<Vec<_>>(), [0, 4, 5, 6, 8]);
        runs.forget_below(2);
        assert_eq!(runs.runs, BTreeMap::from([(2, 4), (7, 8)]));
    }

    proptest! {
        #[test]
        fn they_are_a_set(numbers in prop::collection::vec(0..60_u64, 0..60), below in 0..60_u64, from in 0..60_u64) {
            let mut runs = Runs::default();
            let mut set = BTreeSet::new();
            for number in numbers {
                // Some come as runs, some go again.
                let run = number..number + number % 7;
                match number % 5 {
                    0 => {
                        runs.remove_run(run.clone());
                        set.retain(|number| !run.contains(number));
                    }
                    1 => {
                        runs.insert_run(run.clone());
                        set.extend(run);
                    }
                    _ => {
                        runs.insert(number);
                        set.insert(number);
                    }
                }
                prop_assert!(runs.numbers().eq(set.iter().copied()));
                prop_assert_eq!((runs.count(), runs.is_empty()), (set.len() as u64, set.is_empty()));
                prop_assert!(runs.runs().zip(runs.runs().skip(1)).all(|(one, next)| one.end < next.start));
            }
            runs.forget_below(below);
            set.retain(|&number| number >= below);
            prop_assert!((0..60).all(|number| runs.contains(number) == set.contains(&number)));
            let gaps: Vec<u64> = runs.gaps(from..60).collect();
            prop_assert_eq!(gaps, (from..60).filter(|number| !set.contains(number)).collect::<Vec<_>>());
        }
    }
}
