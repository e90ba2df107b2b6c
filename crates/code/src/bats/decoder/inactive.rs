//! Dependence of symbols on inactive ones.

use crate::field::{self, Symbols};

/// The number of inactive symbols, and for each symbol that depends on them a row with a coefficient for each.
#[derive(Debug)]
pub(super) struct Inactive {
    count: usize,
    /// Rows, each `stride` long; zero from `count` on.
    rows: Vec<u8>,
    stride: usize,
    /// Offsets of the rows at work.
    at: Vec<usize>,
}

/// A multiple of this is the length of a row: a cache line, and what vectors divide.
const GROWTH: usize = 64;

impl Inactive {
    pub(super) fn new() -> Self {
        Self { count: 0, rows: Vec::new(), stride: GROWTH, at: Vec::new() }
    }

    pub(super) fn start(&mut self) {
        self.count = 0;
        self.rows.clear();
    }

    /// Number of inactive symbols.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Stride of rows: their length or more.
    pub(super) fn stride(&self) -> usize {
        self.stride
    }

    /// One more; gives its number.
    pub(super) fn add(&mut self) -> usize {
        if self.count == self.stride {
            let (before, after) = (self.stride, (self.stride + self.stride / 4 + GROWTH) / GROWTH * GROWTH);
            let rows = self.rows.len() / before;
            self.rows.resize(rows * after, 0);
            for row in (0..rows).rev() {
                self.rows.copy_within(row * before..(row + 1) * before, row * after);
                self.rows[row * after + before..(row + 1) * after].fill(0);
            }
            self.stride = after;
        }
        self.count += 1;
        self.count - 1
    }

    pub(super) fn row(&self, row: usize) -> &[u8] {
        &self.rows[row * self.stride..][..self.stride]
    }

    pub(super) fn row_mut(&mut self, row: usize) -> &mut [u8] {
        &mut self.rows[row * self.stride..][..self.stride]
    }

    /// Makes `count` rows that combine others by coefficients row by row; gives the number of the first.
    pub(super) fn combine(&mut self, count: usize, matrix: &[u8], others: &[usize]) -> usize {
        let end = self.rows.len();
        self.rows.resize(end + count * self.stride, 0);
        let (stride, used) = (self.stride, self.used());
        self.at.clear();
        self.at.extend(others.iter().map(|row| row * stride));
        let (old, new) = self.rows.split_at_mut(end);
        let to = Symbols::spaced(new, 0, stride, count, used);
        field::product_into(to, matrix, Symbols::new(old, &self.at, used));
        end / stride
    }

    /// Adds combinations of rows to others, each `stride` long.
    pub(super) fn add_to(&mut self, to: &mut [u8], matrix: &[u8], rows: &[usize]) {
        let (stride, used) = (self.stride, self.used());
        self.at.clear();
        self.at.extend(rows.iter().map(|row| row * stride));
        let count = to.len() / stride;
        let to = Symbols::spaced(to, 0, stride, count, used);
        field::product(to, matrix, Symbols::new(&self.rows, &self.at, used));
    }

    /// Length of a row's part that can be other than zero, in whole lines.
    fn used(&self) -> usize {
        self.count.next_multiple_of(GROWTH).min(self.stride)
    }
}
