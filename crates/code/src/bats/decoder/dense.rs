//! The equations that are left over: those of the inactive symbols alone, which are few but dense.
//!
//! Each row expresses one symbol: *symbol p = the sum, over its columns, of coefficient times symbol (where unknown)
//! or payload (where a row has been found for that column)*. So a column changes its meaning when its symbol gets a
//! row, and once all have one, the rows are the inverse matrix (the exchange step of the simplex method). New rows are
//! reduced among themselves, and substituted in the others together, so that those stay in registers.

use crate::field::{self, Symbols};

#[derive(Debug, Default)]
pub(super) struct Dense {
    columns: usize,
    /// Length of rows; what is beyond the columns is zero.
    width: usize,
    rows: Vec<u8>,
    /// The symbol that each row expresses.
    pivots: Vec<usize>,
    /// The row of each column, and its payload.
    told: Vec<Option<(usize, usize)>>,
    /// Rows at work.
    panel: Vec<u8>,
    factors: Vec<u8>,
}

/// Rows that are substituted together. Chosen: with fewer, the rows above are loaded more often; with more, the panel
/// leaves the nearest cache.
const PANEL: usize = 8;

impl Dense {
    /// Forgets everything, for `columns` symbols and rows of `width` coefficients, those or more.
    pub(super) fn start(&mut self, columns: usize, width: usize) {
        (self.columns, self.width) = (columns, width);
        self.rows.clear();
        self.pivots.clear();
        self.told.clear();
        self.told.resize(columns, None);
    }

    pub(super) fn is_complete(&self) -> bool {
        self.pivots.len() == self.columns
    }

    /// Takes equations, the sum of whose symbols are the payloads in those slots; keeps the numbers of those that say
    /// something new in `fresh`.
    pub(super) fn insert(&mut self, rows: &[u8], slots: &[usize], fresh: &mut Vec<usize>) {
        fresh.clear();
        for (n, chunk) in rows.chunks(PANEL * self.width).enumerate() {
            if self.is_complete() {
                return;
            }
            self.reduce(chunk);
            let before = self.pivots.len();
            for row in 0..chunk.len() / self.width {
                let number = n * PANEL + row;
                if self.add(before, row, slots[number]) {
                    fresh.push(number);
                }
            }
            self.substitute(before);
        }
    }

    /// Once complete: what each symbol is, as coefficients of the [payloads](Self::payloads).
    pub(super) fn inverse(&self, inverse: &mut Vec<u8>) {
        inverse.clear();
        for &(row, _) in self.told.iter().flatten() {
            inverse.extend_from_slice(&self.rows[row * self.width..][..self.columns]);
        }
    }

    /// The slots of the payloads that the coefficients belong to.
    pub(super) fn payloads(&self) -> impl Iterator<Item = usize> {
        self.told.iter().flatten().map(|&(_, slot)| slot)
    }

    /// Brings new rows into the panel, and into them what the others say.
    fn reduce(&mut self, chunk: &[u8]) {
        let width = self.width;
        self.panel.clear();
        self.panel.extend_from_slice(chunk);
        self.factors.clear();
        for row in self.panel.chunks_exact_mut(width) {
            self.factors.extend(self.pivots.iter().map(|&pivot| core::mem::take(&mut row[pivot])));
        }
        let panel = spaced_mut(&mut self.panel, width);
        field::product(panel, &self.factors, spaced(&self.rows, width));
    }

    /// Makes a row of the panel's `row`, if it says something new; the panel's rows that were made already come first,
    /// from `before` on.
    fn add(&mut self, before: usize, row: usize, slot: usize) -> bool {
        let width = self.width;
        let made = self.pivots.len() - before;
        let (earlier, rest) = self.panel.split_at_mut(row * width);
        let vector = &mut rest[..width];
        let mut factors = [0; PANEL];
        for (factor, &pivot) in factors.iter_mut().zip(&self.pivots[before..]) {
            *factor = core::mem::take(&mut vector[pivot]);
        }
        for (&factor, other) in factors[..made].iter().zip(earlier.chunks_exact(width)) {
            field::axpy(vector, factor, other);
        }
        let is_new = |&column: &usize| vector[column] != 0 && self.told[column].is_none();
        let Some(pivot) = (0..self.columns).find(is_new) else {
            return false;
        };
        let inverse = field::inv(core::mem::replace(&mut vector[pivot], 1));
        field::scale(vector, inverse);
        for other in earlier.chunks_exact_mut(width).take(made) {
            let factor = core::mem::take(&mut other[pivot]);
            field::axpy(other, factor, vector);
        }
        // Rows that are not zero stay together at the front.
        self.panel.copy_within(row * width..(row + 1) * width, made * width);
        self.told[pivot] = Some((self.pivots.len(), slot));
        self.pivots.push(pivot);
        true
    }

    /// Brings what the panel says into the other rows, and adds it to those.
    fn substitute(&mut self, before: usize) {
        let width = self.width;
        let fresh = &self.pivots[before..];
        self.factors.clear();
        for row in self.rows.chunks_exact_mut(width) {
            self.factors.extend(fresh.iter().map(|&pivot| core::mem::take(&mut row[pivot])));
        }
        let panel = &self.panel[..fresh.len() * width];
        field::product(spaced_mut(&mut self.rows, width), &self.factors, spaced(panel, width));
        self.rows.extend_from_slice(panel);
    }
}

fn spaced(rows: &[u8], width: usize) -> Symbols<'_, &[u8]> {
    Symbols::spaced(rows, 0, width, rows.len() / width, width)
}

fn spaced_mut(rows: &mut [u8], width: usize) -> Symbols<'_, &mut [u8]> {
    let count = rows.len() / width;
    Symbols::spaced(rows, 0, width, count, width)
}
