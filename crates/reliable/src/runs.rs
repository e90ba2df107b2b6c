//! Sets of numbers that have few holes.

use std::collections::BTreeMap;
use std::ops::{Range, RangeBounds};

/// A set of numbers, as runs: memory and work follow the number of holes, not that of members.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Runs {
    runs: Ranges,
}

/// The runs, ascending, which do not touch. Most sets have a single one, which allocates nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Ranges {
    /// One run at most: its first number and the one after its last.
    One(Option<(u64, u64)>),
    /// Several: the first number of each, and the one after its last.
    Several(BTreeMap<u64, u64>),
}

impl Default for Ranges {
    fn default() -> Self {
        Self::One(None)
    }
}

impl Runs {
    /// An empty set.
    pub(crate) const fn new() -> Self {
        Self { runs: Ranges::One(None) }
    }

    pub(crate) fn insert(&mut self, number: u64) {
        self.insert_run(number..number + 1);
    }

    /// Adds all numbers of a range.
    pub(crate) fn insert_run(&mut self, run: Range<u64>) {
        if run.is_empty() {
            return;
        }
        let (mut first, mut end) = (run.start, run.end);
        if let Ranges::One(one) = &mut self.runs {
            match one {
                Some((start, last)) if first <= *last && end >= *start => {
                    (*start, *last) = (first.min(*start), end.max(*last));
                    return;
                }
                Some(_) => {}
                None => {
                    *one = Some((first, end));
                    return;
                }
            }
        }
        let runs = self.several();
        if let Some((&start, &before)) = runs.range(..=first).next_back()
            && before >= first
        {
            if before >= end {
                return;
            }
            (first, end) = (start, end.max(before));
        }
        while let Some((&start, &last)) = runs.range(first..=end).next() {
            runs.remove(&start);
            end = end.max(last);
        }
        runs.insert(first, end);
        self.settle();
    }

    /// The set of one range.
    pub(crate) fn one(range: Range<u32>) -> Self {
        Self::of(std::slice::from_ref(&range))
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
        if let Ranges::One(one) = &mut self.runs {
            let Some((first, end)) = *one else { return };
            if run.is_empty() || run.end <= first || end <= run.start {
                return;
            }
            if run.start <= first || end <= run.end {
                let rest = if run.start <= first { (run.end, end) } else { (first, run.start) };
                *one = Some(rest).filter(|(first, end)| first < end);
                return;
            }
        }
        if run.is_empty() {
            return;
        }
        let runs = self.several();
        if let Some((_, end)) = runs.range_mut(..run.start).next_back()
            && *end > run.start
        {
            let rest = run.end..*end;
            *end = run.start;
            if !rest.is_empty() {
                runs.insert(rest.start, rest.end);
            }
        }
        while let Some((&start, &end)) = runs.range(run.clone()).next() {
            runs.remove(&start);
            if end > run.end {
                runs.insert(run.end, end);
            }
        }
        self.settle();
    }

    /// The runs as several, however many there are.
    fn several(&mut self) -> &mut BTreeMap<u64, u64> {
        if let Ranges::One(one) = self.runs {
            self.runs = Ranges::Several(one.into_iter().collect());
        }
        match &mut self.runs {
            Ranges::Several(runs) => runs,
            Ranges::One(_) => unreachable!("it has just been made several"),
        }
    }

    /// One run is no map.
    fn settle(&mut self) {
        if let Ranges::Several(runs) = &self.runs
            && runs.len() <= 1
        {
            self.runs = Ranges::One(runs.first_key_value().map(|(&first, &end)| (first, end)));
        }
    }

    /// The runs that begin within a range, ascending.
    fn within(&self, range: impl RangeBounds<u64>) -> impl DoubleEndedIterator<Item = (u64, u64)> + '_ {
        let (one, several) = match &self.runs {
            Ranges::One(one) => (one.filter(|(first, _)| range.contains(first)), None),
            Ranges::Several(runs) => (None, Some(runs.range(range))),
        };
        one.into_iter().chain(several.into_iter().flatten().map(|(&first, &end)| (first, end)))
    }

    /// The runs, ascending.
    pub(crate) fn runs(&self) -> impl DoubleEndedIterator<Item = Range<u64>> + '_ {
        self.within(..).map(|(first, end)| first..end)
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
        self.runs == Ranges::One(None)
    }

    pub(crate) fn contains(&self, number: u64) -> bool {
        self.within(..=number).next_back().is_some_and(|(_, end)| number < end)
    }

    /// The first number from `at` on that is not in the set.
    pub(crate) fn next_gap(&self, at: u64) -> u64 {
        self.within(..=at).next_back().map_or(at, |(_, end)| end.max(at))
    }

    /// Numbers of a range that are not in the set, ascending.
    pub(crate) fn gaps(&self, range: Range<u64>) -> impl Iterator<Item = u64> + '_ {
        let mut at = match self.within(..=range.start).next_back() {
            Some((_, end)) => end.max(range.start),
            None => range.start,
        };
        let mut later = self.within(range.start..).peekable();
        std::iter::from_fn(move || {
            while let Some((_, end)) = later.next_if(|&(first, _)| first <= at) {
                at = at.max(end);
            }
            let found = (at < range.end).then_some(at);
            at += 1;
            found
        })
    }

    /// Removes the numbers below `first`.
    pub(crate) fn forget_below(&mut self, first: u64) {
        self.remove_run(0..first);
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
        assert_eq!(runs.runs, Ranges::Several(BTreeMap::from([(1, 4), (7, 8)])));
        assert_eq!(runs.gaps(0..9).collect::<Vec<_>>(), [0, 4, 5, 6, 8]);
        runs.forget_below(2);
        assert_eq!(runs.runs, Ranges::Several(BTreeMap::from([(2, 4), (7, 8)])));
        runs.remove_run(0..5);
        assert_eq!(runs.runs, Ranges::One(Some((7, 8))), "no map");
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
                // Equal sets are equal, however they came about.
                let mut same = Runs::new();
                set.iter().rev().for_each(|&number| same.insert(number));
                prop_assert_eq!(&runs, &same);
                prop_assert!(runs.numbers().eq(set.iter().copied()));
                prop_assert_eq!((runs.count(), runs.is_empty()), (set.len() as u64, set.is_empty()));
                prop_assert!(runs.runs().zip(runs.runs().skip(1)).all(|(one, next)| one.end < next.start));
            }
            runs.forget_below(below);
            set.retain(|&number| number >= below);
            prop_assert!((0..60).all(|number| runs.contains(number) == set.contains(&number)));
            let gaps: Vec<u64> = runs.gaps(from..60).collect();
            prop_assert!(gaps.iter().all(|&gap| runs.next_gap(gap) == gap));
            let first = (from..).find(|number| !set.contains(number));
            prop_assert_eq!(Some(runs.next_gap(from)), first);
            prop_assert_eq!(gaps, (from..60).filter(|number| !set.contains(number)).collect::<Vec<_>>());
        }
    }
}
