//! Combinations of the fragments of a chunk that have been received, as far as they say something new.

use hopcast_code::field::{axpy, inv, scale};

/// Combinations of one chunk's unknown fragments, reduced: each has a pivot, a column in which it is 1 and all others
/// are 0. Known fragments are in none of them.
#[derive(Clone, Debug, Default)]
pub(super) struct Combinations(Vec<Row>);

#[derive(Clone, Debug)]
struct Row {
    pivot: usize,
    coefficients: Vec<u8>,
    bytes: Vec<u8>,
}

impl Combinations {
    /// Number of combinations, each of which stands for one unknown fragment.
    pub(super) const fn len(&self) -> usize {
        self.0.len()
    }

    /// Bytes of memory that they take.
    pub(super) fn size(&self) -> usize {
        self.0.iter().map(|row| row.coefficients.len() + row.bytes.len()).sum()
    }

    /// Adds a combination. `known` is the bytes of a fragment that is known. Says whether it is innovative.
    pub(super) fn insert<'a>(
        &mut self,
        mut coefficients: Vec<u8>,
        mut bytes: Vec<u8>,
        known: impl Fn(usize) -> Option<&'a [u8]>,
    ) -> bool {
        for (column, coefficient) in coefficients.iter_mut().enumerate() {
            if *coefficient != 0
                && let Some(fragment) = known(column)
            {
                axpy(&mut bytes, *coefficient, fragment);
                *coefficient = 0;
            }
        }
        self.reduce_and_add(coefficients, bytes)
    }

    /// Notes that a fragment is known now.
    pub(super) fn learn(&mut self, column: usize, fragment: &[u8]) {
        let mut without_pivot = Vec::new();
        for mut row in std::mem::take(&mut self.0) {
            let coefficient = std::mem::take(&mut row.coefficients[column]);
            axpy(&mut row.bytes, coefficient, fragment);
            if row.pivot == column { without_pivot.push(row) } else { self.0.push(row) }
        }
        for row in without_pivot {
            self.reduce_and_add(row.coefficients, row.bytes);
        }
    }

    /// Takes out a fragment that has become known, if there is one: its column and bytes.
    pub(super) fn take_solved(&mut self) -> Option<(usize, Vec<u8>)> {
        let is_solved =
            |row: &Row| row.coefficients.iter().filter(|&&coefficient| coefficient != 0).count() == 1;
        let solved = self.0.iter().position(is_solved)?;
        let row = self.0.swap_remove(solved);
        Some((row.pivot, row.bytes))
    }

    /// Coefficients and bytes of all combinations.
    pub(super) fn all(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        self.0.iter().map(|row| (&row.coefficients[..], &row.bytes[..]))
    }

    /// Number of combinations that are independent of each other in some columns.
    pub(super) fn rank_in(&self, columns: &[usize]) -> usize {
        let mut reduced = Self::default();
        for row in &self.0 {
            let coefficients = columns.iter().map(|&column| row.coefficients[column]).collect();
            reduced.reduce_and_add(coefficients, Vec::new());
        }
        reduced.len()
    }

    fn reduce_and_add(&mut self, mut coefficients: Vec<u8>, mut bytes: Vec<u8>) -> bool {
        for row in &self.0 {
            let factor = coefficients[row.pivot];
            axpy(&mut coefficients, factor, &row.coefficients);
            axpy(&mut bytes, factor, &row.bytes);
        }
        let Some(pivot) = coefficients.iter().position(|&coefficient| coefficient != 0) else { return false };
        let inverse = inv(coefficients[pivot]);
        scale(&mut coefficients, inverse);
        scale(&mut bytes, inverse);
        for row in &mut self.0 {
            let factor = row.coefficients[pivot];
            axpy(&mut row.coefficients, factor, &coefficients);
            axpy(&mut row.bytes, factor, &bytes);
        }
        self.0.push(Row { pivot, coefficients, bytes });
        true
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::*;

    const LEN: usize = 5;
    const COLUMNS: usize = 8;

    #[test]
    fn what_combinations_say_of_some_columns_only_is_of_lower_rank() {
        let mut combinations = Combinations::default();
        for coefficients in [[1, 0, 2, 3], [0, 1, 4, 6]] {
            assert!(combinations.insert(coefficients.to_vec(), vec![7], |_| None));
        }
        let ranks = [&[0, 1, 2, 3][..], &[2, 3], &[2], &[]].map(|columns| combinations.rank_in(columns));
        // In columns 2 and 3 the second is twice the first.
        assert_eq!(ranks, [2, 1, 1, 0]);
    }

    #[test]
    fn as_many_combinations_as_are_unknown_make_all_fragments_known() {
        for seed in 0..200 {
            let mut random = Seed::new(seed, 0).stream(&["test"], 0);
            let mut fragments = vec![vec![0; LEN]; COLUMNS];
            fragments.iter_mut().for_each(|fragment| random.fill(fragment));
            let mut known: Vec<Option<Vec<u8>>> = vec![None; COLUMNS];
            let (mut combinations, mut innovative) = (Combinations::default(), 0);
            for _ in 0..40 {
                if random.chance(0.3) {
                    // One arrives as it is.
                    let column = random.below(COLUMNS as u64) as usize;
                    innovative += usize::from(known[column].is_none());
                    let before = combinations.len();
                    if known[column].replace(fragments[column].clone()).is_none() {
                        combinations.learn(column, &fragments[column]);
                        innovative -= before - combinations.len();
                    }
                } else {
                    let mut coefficients = vec![0; COLUMNS];
                    random.fill(&mut coefficients);
                    let mut bytes = vec![0; LEN];
                    (0..COLUMNS).for_each(|at| axpy(&mut bytes, coefficients[at], &fragments[at]));
                    innovative +=
                        usize::from(combinations.insert(coefficients, bytes, |at| known[at].as_deref()));
                }
                while let Some((column, bytes)) = combinations.take_solved() {
                    assert_eq!(bytes, fragments[column]);
                    combinations.learn(column, &bytes);
                    known[column] = Some(bytes);
                }
                let rank = known.iter().flatten().count() + combinations.len();
                assert_eq!(rank, innovative, "seed {seed}");
                assert!(rank < COLUMNS || known.iter().all(Option::is_some));
            }
            assert_eq!(innovative, COLUMNS, "seed {seed}");
        }
    }
}
