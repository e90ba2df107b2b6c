//! The equations that are left over: those of the inactive symbols alone, which are few but dense.
//!
//! Each row says what one symbol is: *symbol p = the sum, over its columns, of coefficient times symbol (where unknown)
//! or payload (where a row has been found for that column)*. So a column changes its meaning when its symbol gets a row,
//! and once all have one, the rows are the inverse matrix (the exchange step of the simplex method). New rows are
//! reduced among themselves, and substituted in the others together, so that those stay in registers.

use crate::field::{self, Symbols};

#[derive(Debug, Default)]
pub(super) struct Dense {
    columns: usize,
    /// The rows, each `columns` long, and where they begin.
    rows: Vec<u8>,
    at: Vec<usize>,
    /// The symbol that each row tells.
    pivots: Vec<usize>,
    /// The payload of each column that has a row.
    payloads: Vec<Option<usize>>,
    /// Rows at work.
    panel: Vec<u8>,
    factors: Vec<u8>,
}

/// Rows that are substituted together.
const PANEL: usize = 16;

impl Dense {
    /// Forgets everything, for `columns` symbols.
    pub(super) fn start(&mut self, columns: usize) {
        self.columns = columns;
        self.rows.clear();
        self.at.clear();
        self.pivots.clear();
        self.payloads.clear();
        self.payloads.resize(columns, None);
    }

    pub(super) fn is_complete(&self) -> bool {
        self.pivots.len() == self.columns
    }

    /// Takes equations, the sum of whose symbols are the payloads in those slots; keeps the numbers of those that say
    /// something new in `fresh`.
    pub(super) fn insert(&mut self, rows: &[u8], slots: &[usize], fresh: &mut Vec<usize>) {
        fresh.clear();
        if self.columns == 0 {
            return;
        }
        for (n, chunk) in rows.chunks(PANEL * self.columns).enumerate() {
            self.reduce(chunk);
            let before = self.pivots.len();
            for row in 0..chunk.len() / self.columns {
                let number = n * PANEL + row;
                if self.add(before, row, slots[number]) {
                    fresh.push(number);
                }
            }
            self.substitute(before);
        }
    }

    /// What a symbol is, as coefficients of payloads; the row that says so has that number.
    pub(super) fn recipe(&self, row: usize) -> (usize, &[u8]) {
        (self.pivots[row], &self.rows[self.at[row]..][..self.columns])
    }

    /// The payload that a coefficient of a recipe belongs to.
    pub(super) fn payload(&self, column: usize) -> Option<usize> {
        self.payloads[column]
    }

    /// Brings new rows into the panel, and into them what the others say.
    fn reduce(&mut self, chunk: &[u8]) {
        let n = self.columns;
        self.panel.clear();
        self.panel.extend_from_slice(chunk);
        self.factors.clear();
        for row in self.panel.chunks_exact_mut(n) {
            self.factors.extend(self.pivots.iter().map(|&pivot| core::mem::take(&mut row[pivot])));
        }
        let at: [usize; PANEL] = core::array::from_fn(|row| row * n);
        let panel = Symbols::new(&mut self.panel[..], &at[..chunk.len() / n], n);
        field::product(panel, &self.factors, Symbols::new(&self.rows, &self.at, n));
    }

    /// Makes a row of the panel's `row`, if it says something new; the panel's rows that were made already come first,
    /// from `before` on.
    fn add(&mut self, before: usize, row: usize, slot: usize) -> bool {
        let n = self.columns;
        let made = self.pivots.len() - before;
        let (earlier, rest) = self.panel.split_at_mut(row * n);
        let vector = &mut rest[..n];
        let mut factors = [0; PANEL];
        for (factor, &pivot) in factors.iter_mut().zip(&self.pivots[before..]) {
            *factor = core::mem::take(&mut vector[pivot]);
        }
        for (&factor, other) in factors[..made].iter().zip(earlier.chunks_exact(n)) {
            field::axpy(vector, factor, other);
        }
        let Some(pivot) = (0..n).find(|&column| vector[column] != 0 && self.payloads[column].is_none())
        else {
            return false;
        };
        let inverse = field::inv(core::mem::replace(&mut vector[pivot], 1));
        field::scale(vector, inverse);
        for other in earlier.chunks_exact_mut(n).take(made) {
            let factor = core::mem::take(&mut other[pivot]);
            field::axpy(other, factor, vector);
        }
        // Those that say something stay together at the front.
        self.panel.copy_within(row * n..(row + 1) * n, made * n);
        self.pivots.push(pivot);
        self.payloads[pivot] = Some(slot);
        true
    }

    /// Brings what the panel says into the other rows, and adds it to those.
    fn substitute(&mut self, before: usize) {
        let n = self.columns;
        let fresh = &self.pivots[before..];
        self.factors.clear();
        for row in self.rows.chunks_exact_mut(n) {
            self.factors.extend(fresh.iter().map(|&pivot| core::mem::take(&mut row[pivot])));
        }
        let at: [usize; PANEL] = core::array::from_fn(|row| row * n);
        let panel = Symbols::new(&self.panel[..], &at[..fresh.len()], n);
        field::product(Symbols::new(&mut self.rows[..], &self.at, n), &self.factors, panel);
        self.at.extend((0..fresh.len()).map(|row| self.rows.len() + row * n));
        self.rows.extend_from_slice(&self.panel[..fresh.len() * n]);
    }
}
