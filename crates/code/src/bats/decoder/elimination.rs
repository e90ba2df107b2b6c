//! A batch's own equations: few rows, with a column for each symbol that is not known.

use crate::field;

/// Gauss-Jordan elimination, which keeps how each row came about.
#[derive(Debug, Default)]
pub(super) struct BatchElimination {
    /// Row by row: the coefficients of the symbols, then those of the rows that it is made of.
    matrix: Vec<u8>,
    symbols: usize,
    width: usize,
    /// Rows with the column that each has a 1 in and no other row has anything in.
    pivots: Vec<(usize, usize)>,
}

impl BatchElimination {
    /// Eliminates. A row has the coefficients `order` picks of its `degree`; the first `unknown` of them may be pivots.
    pub(super) fn run(&mut self, equations: &[u8], degree: usize, order: &[usize], unknown: usize) {
        let rows = equations.len() / degree;
        let width = order.len() + rows;
        (self.symbols, self.width) = (order.len(), width);
        self.pivots.clear();
        self.matrix.clear();
        for (number, row) in equations.chunks_exact(degree).enumerate() {
            self.matrix.extend(order.iter().map(|&position| row[position]));
            self.matrix.resize((number + 1) * width, 0);
            self.matrix[number * width + order.len() + number] = 1;
        }
        for row in 0..rows {
            let (before, rest) = self.matrix.split_at_mut(row * width);
            let (line, after) = rest.split_at_mut(width);
            let Some(pivot) = line[..unknown].iter().position(|&coefficient| coefficient != 0) else {
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

    /// The coefficients of each symbol that are left in a row.
    pub(super) fn left(&self, row: usize) -> &[u8] {
        &self.matrix[row * self.width..][..self.symbols]
    }

    /// Share of each row that went into a row.
    pub(super) fn shares(&self, row: usize) -> &[u8] {
        &self.matrix[(row + 1) * self.width - (self.width - self.symbols)..(row + 1) * self.width]
    }
}
