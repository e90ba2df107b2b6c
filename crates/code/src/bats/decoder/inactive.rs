//! Inactivation decoding: when no batch can be solved alone, all together.

use super::dense::Dense;
use super::solve::Work;
use super::{Column, Decoder};
use crate::field::{self, Symbols};
use crate::store::Store;

/// The symbols that were taken as if they were known, and how others depend on them.
#[derive(Debug)]
pub(super) struct Inactive {
    count: usize,
    /// What they are, in the end.
    symbols: Store,
    /// The rows of [`Column::Partial`], each `stride` long, and where they begin.
    rows: Vec<u8>,
    at: Vec<usize>,
    stride: usize,
    dense: Dense,
}

/// How much a row grows by, at least, when it has no room for another inactive symbol.
const GROWTH: usize = 64;

/// Symbols that are computed together: enough that their sources stay in cache, few enough that their coefficients do.
const TOGETHER: usize = 64;

impl Inactive {
    pub(super) fn new(symbols: usize, len: usize) -> Self {
        Self {
            count: 0,
            symbols: Store::new(symbols, len),
            rows: Vec::new(),
            at: Vec::new(),
            stride: GROWTH,
            dense: Dense::default(),
        }
    }

    /// One of them, once they are known.
    pub(super) fn symbol(&self, number: usize) -> &[u8] {
        self.symbols.slot(number)
    }

    fn start(&mut self) {
        self.count = 0;
        self.rows.clear();
        self.at.clear();
    }

    /// One more; gives its number.
    fn add(&mut self) -> usize {
        if self.count == self.stride {
            let (before, after) =
                (self.stride, self.stride + GROWTH.max(self.stride / 4).next_multiple_of(GROWTH));
            self.rows.resize(self.at.len() * after, 0);
            for row in (0..self.at.len()).rev() {
                self.rows.copy_within(row * before..(row + 1) * before, row * after);
                self.rows[row * after + before..(row + 1) * after].fill(0);
                self.at[row] = row * after;
            }
            self.stride = after;
        }
        self.count += 1;
        self.count - 1
    }

    /// Makes rows, all zero; gives the number of the first.
    fn make_rows(&mut self, count: usize) -> usize {
        let first = self.at.len();
        self.at.extend((first..first + count).map(|row| row * self.stride));
        self.rows.resize(self.at.len() * self.stride, 0);
        first
    }

    fn row_mut(&mut self, row: usize) -> &mut [u8] {
        &mut self.rows[self.at[row]..][..self.stride]
    }
}

impl Decoder {
    /// Expresses all symbols by inactive ones, and solves for those what equations are left.
    pub(super) fn plan(&mut self) {
        self.is_planned = true;
        self.inactive.start();
        while let Some(group) = self.graph.pop().or_else(|| self.graph.nearest()) {
            if self.graph.groups[group].is_open() {
                self.solve(group);
            }
        }
        for column in &mut self.columns {
            // It is in no batch that arrived.
            if *column == Column::Unknown {
                *column = Column::Inactive(self.inactive.add());
            }
        }

        self.inactive.dense.start(self.inactive.count);
        let mut work = core::mem::take(&mut self.work);
        for group in 0..self.graph.groups.len() {
            if self.graph.groups[group].chain.len > 0 {
                self.equations(group, &mut work);
                self.constrain(&mut work);
            }
        }
        if let Some(precode) = self.precode {
            self.dense_sums(precode, &mut work);
            self.constrain(&mut work);
        }
        self.work = work;
        self.finish();
    }

    /// Makes what is unknown in a batch but not told by it inactive, and writes down how what it tells depends on
    /// inactive symbols, if it does.
    pub(super) fn express(&mut self, work: &mut Work) -> Option<usize> {
        let degree = work.symbols.len();
        let Work {
            elimination, equations, symbols, unknown, columns, matrix, tails, tails_at, from, to, ..
        } = work;
        let pivots = elimination.pivots();
        let state = |position: usize| self.columns[symbols[position] as usize];
        let has = |position: usize| pivots.iter().any(|&(row, _)| equations[row * degree + position] != 0);
        let was_inactive =
            |position: &usize| matches!(state(*position), Column::Inactive(_)) && has(*position);
        columns.retain(|&position| matches!(state(position), Column::Partial(_)));
        if columns.is_empty() && pivots.len() == unknown.len() && !(0..degree).any(|at| was_inactive(&at)) {
            return None;
        }

        // Room for the new ones first, as it moves the rows.
        let is_pivot = |column: usize| pivots.iter().any(|&(_, pivot)| pivot == column);
        let before = self.inactive.count;
        let fresh = (0..unknown.len()).filter(|&column| !is_pivot(column));
        fresh.clone().for_each(|_| _ = self.inactive.add());
        let stride = self.inactive.stride;

        // How the packets depend on them: by other symbols, and by themselves.
        tails.clear();
        tails.resize(pivots.len() * stride, 0);
        tails_at.clear();
        tails_at.extend((0..pivots.len()).map(|row| row * stride));
        matrix.clear();
        for &(row, _) in pivots {
            matrix.extend(columns.iter().map(|&position| equations[row * degree + position]));
        }
        from.clear();
        for &position in columns.iter() {
            if let Column::Partial(row) = self.columns[symbols[position] as usize] {
                from.push(self.inactive.at[row]);
            }
        }
        let rows = Symbols::new(&self.inactive.rows[..], from, stride);
        field::product(Symbols::new(&mut tails[..], tails_at, stride), matrix, rows);
        for position in 0..degree {
            if let Column::Inactive(number) = self.columns[symbols[position] as usize] {
                for (tail, &(row, _)) in tails.chunks_exact_mut(stride).zip(pivots) {
                    tail[number] ^= equations[row * degree + position];
                }
            }
        }

        // How the symbols do.
        matrix.clear();
        for &(row, _) in pivots {
            matrix.extend(pivots.iter().map(|&(other, _)| elimination.share(row, other)));
        }
        let first = self.inactive.make_rows(pivots.len());
        to.clear();
        to.extend_from_slice(&self.inactive.at[first..]);
        let rows = Symbols::new(&mut self.inactive.rows[..], to, stride);
        field::product_into(rows, matrix, Symbols::new(&tails[..], tails_at, stride));
        for (number, column) in (before..).zip(fresh) {
            for (n, &(row, _)) in pivots.iter().enumerate() {
                self.inactive.row_mut(first + n)[number] ^= elimination.left(row, column);
            }
            self.columns[symbols[unknown[column]] as usize] = Column::Inactive(number);
        }
        Some(first)
    }

    /// Reduces equations, of which no symbol is unknown, to equations of inactive symbols; keeps those that say something
    /// new, gives the other slots back. Gives how many there are of the former.
    pub(super) fn constrain(&mut self, work: &mut Work) -> usize {
        let (degree, n) = (work.symbols.len(), self.inactive.count);
        let Work { equations, symbols, slots, columns, matrix, tails, tails_at, from, to, fresh, .. } = work;
        let has = |position: usize| equations.chunks_exact(degree).any(|row| row[position] != 0);
        columns.clear();
        from.clear();
        tails.clear();
        tails.resize(slots.len() * n, 0);
        for position in 0..degree {
            match self.columns[symbols[position] as usize] {
                Column::Partial(row) if has(position) => {
                    columns.push(position);
                    from.push(self.inactive.at[row]);
                }
                Column::Inactive(number) => {
                    for (tail, row) in tails.chunks_exact_mut(n).zip(equations.chunks_exact(degree)) {
                        tail[number] ^= row[position];
                    }
                }
                Column::Partial(_) | Column::Known | Column::Unknown => {}
            }
        }
        matrix.clear();
        for row in equations.chunks_exact(degree) {
            matrix.extend(columns.iter().map(|&position| row[position]));
        }
        tails_at.clear();
        tails_at.extend((0..slots.len()).map(|row| row * n));
        let rows = Symbols::new(&self.inactive.rows[..], from, n);
        field::product(Symbols::new(&mut tails[..], tails_at, n), matrix, rows);
        self.inactive.dense.insert(tails, slots, fresh);

        // The payloads: without what is known of the symbols.
        let is_known = |position: &usize| {
            matches!(self.columns[symbols[*position] as usize], Column::Known | Column::Partial(_))
                && has(*position)
        };
        columns.clear();
        columns.extend((0..degree).filter(is_known));
        matrix.clear();
        for &row in fresh.iter() {
            matrix.extend(columns.iter().map(|&position| equations[row * degree + position]));
        }
        from.clear();
        from.extend(columns.iter().map(|&position| self.computed.offset(symbols[position] as usize)));
        to.clear();
        to.extend(fresh.iter().map(|&row| self.packets.payloads.offset(slots[row])));
        field::product(self.packets.payloads.symbols_at(to), matrix, self.computed.symbols_from(from));
        for (row, &slot) in slots.iter().enumerate() {
            if !fresh.contains(&row) {
                self.packets.release(slot);
            }
        }
        fresh.len()
    }

    /// Computes all that is missing, if the equations suffice.
    pub(super) fn finish(&mut self) {
        if !self.inactive.dense.is_complete() {
            return;
        }
        let n = self.inactive.count;
        let mut work = core::mem::take(&mut self.work);
        let Work { matrix, from, to, columns, .. } = &mut work;
        from.clear();
        let payloads = (0..n).filter_map(|column| self.inactive.dense.payload(column));
        from.extend(payloads.map(|slot| self.packets.payloads.offset(slot)));
        for first in (0..n).step_by(TOGETHER) {
            matrix.clear();
            to.clear();
            for row in first..n.min(first + TOGETHER) {
                let (number, recipe) = self.inactive.dense.recipe(row);
                matrix.extend_from_slice(recipe);
                to.push(self.inactive.symbols.offset(number));
            }
            let payloads = self.packets.payloads.symbols_from(from);
            field::product_into(self.inactive.symbols.symbols_at(to), matrix, payloads);
        }

        columns.clear();
        let source = 0..self.parameters.symbols();
        columns.extend(source.clone().filter(|&symbol| matches!(self.columns[symbol], Column::Partial(_))));
        for symbols in columns.chunks(TOGETHER) {
            matrix.clear();
            to.clear();
            for &symbol in symbols {
                if let Column::Partial(row) = self.columns[symbol] {
                    matrix.extend_from_slice(&self.inactive.rows[self.inactive.at[row]..][..n]);
                    to.push(self.computed.offset(symbol));
                }
            }
            field::product(self.computed.symbols_at(to), matrix, self.inactive.symbols.symbols(0..n));
        }
        self.work = work;
        for symbol in source {
            if self.columns[symbol] != Column::Known {
                self.announce(symbol);
            }
        }
    }
}
