//! A batch's own equations: few rows, as many columns as it has unknown symbols.

use crate::field;

/// Gauss-Jordan elimination, which keeps how each row came about.
#[derive(Debug, Default)]
pub(super) struct Elimination {
    /// Row by row: the coefficients of the unknown symbols, then those of the rows that it is made of.
    matrix: Vec<u8>,
    rows: usize,
    columns: usize,
    /// Rows with the column that each has a 1 in and no other row has anything in.
    pivots: Vec<(usize, usize)>,
}

impl Elimination {
    /// Eliminates. `coefficients` gives what a row has in a column.
    pub(super) fn run(&mut self, rows: usize, columns: usize, coefficient: impl Fn(usize, usize) -> u8) {
        let width = columns + rows;
        (self.rows, self.columns) = (rows, columns);
        self.pivots.clear();
        self.matrix.clear();
        for row in 0..rows {
            self.matrix.extend((0..columns).map(|column| coefficient(row, column)));
            self.matrix.extend((0..rows).map(|other| u8::from(other == row)));
        }
        for row in 0..rows {
            let (before, rest) = self.matrix.split_at_mut(row * width);
            let (line, after) = rest.split_at_mut(width);
            let Some(pivot) = line[..columns].iter().position(|&coefficient| coefficient != 0) else {
                continue;
            };
            field::scale(line, field::inv(line[pivot]));
            for other in before.chunks_exact_mut(width).chain(after.chunks_exact_mut(width)) {
                let factor = other[pivot];
                if factor != 0 {
                    field::axpy(other, factor, line);
                }
            }
            self.pivots.push((row, pivot));
        }
    }

    /// The rows that say something, with the column that each is about.
    pub(super) fn pivots(&self) -> &[(usize, usize)] {
        &self.pivots
    }

    /// What is left in a row of a column that is no pivot.
    pub(super) fn left(&self, row: usize, column: usize) -> u8 {
        self.matrix[row * (self.columns + self.rows) + column]
    }

    /// How much of another row went into a row.
    pub(super) fn share(&self, row: usize, other: usize) -> u8 {
        self.matrix[row * (self.columns + self.rows) + self.columns + other]
    }
}
