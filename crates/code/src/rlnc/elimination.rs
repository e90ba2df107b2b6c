//! Gaussian elimination of coefficient vectors alone, one packet at a time, in place.
//!
//! Each column belongs to a symbol of the generation, and is one of three things:
//!
//! - **unknown**: a byte in it is the coefficient of that symbol, of which nothing is known;
//! - **received**: the symbol arrived as it is, so a byte in it is the coefficient of that payload;
//! - **pivot** of a row: the packet that made the row put its payload into the slot of this column, and a byte in it is
//!   the coefficient of that payload.
//!
//! The row with pivot p thus says: *symbol p = the sum, over its columns, of coefficient times symbol (where unknown)
//! or payload (where not)*. Once nothing in its unknown columns is left, the row is the recipe for symbol p out of
//! payloads received. An ordinary elimination carries an identity matrix along to find that recipe; here its columns
//! take the places of those that have become trivial (the exchange step of the simplex method), which halves the work.
//! And when a symbol arrives as it is, its column changes its meaning and not one byte is touched: losses alone cost.
//!
//! Substituting each new row into all earlier ones would load and store them all for every packet. So new rows gather
//! in a small *panel*, reduced among themselves, and are substituted together, the earlier rows staying in registers.
//! [`settle`](Elimination::settle) does so when someone wants to know which rows are ready.

use core::marker::PhantomData;
use core::ops::Range;

use crate::field::Field;
use crate::store::Store;

#[derive(Debug)]
pub(super) struct Elimination<F> {
    /// The rows that are up to date with one another.
    rows: Store,
    /// The rows after those, of whose pivots the others know nothing yet.
    panel: Store,
    /// The pivot column of each row, those of the panel last.
    pivots: Vec<usize>,
    columns: Vec<Column>,
    /// For each row, an unknown column in which it is not 0, or `None` when there is none.
    witnesses: Vec<Option<usize>>,
    /// Number of rows that are not in the panel.
    settled: usize,
    rank: usize,
    /// No column before this one is unknown.
    first_unknown: usize,
    /// The vector at work; see [`insert`](Self::insert).
    vector: Store,
    /// One coefficient for each row, or each of the panel in each row.
    factors: Vec<u8>,
    field: PhantomData<F>,
}

#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Column {
    Unknown,
    Received,
    Pivot,
}

impl<F: Field> Elimination<F> {
    pub(super) fn new(columns: usize) -> Self {
        Self {
            rows: Store::new(columns, columns),
            panel: Store::new(PANEL, columns),
            pivots: Vec::with_capacity(columns),
            columns: vec![Column::Unknown; columns],
            witnesses: Vec::with_capacity(columns),
            settled: 0,
            rank: 0,
            first_unknown: 0,
            vector: Store::new(1, columns),
            factors: Vec::with_capacity(columns * PANEL),
            field: PhantomData,
        }
    }

    /// Forgets everything, keeps the memory.
    pub(super) fn clear(&mut self) {
        self.pivots.clear();
        self.columns.fill(Column::Unknown);
        self.witnesses.clear();
        self.settled = 0;
        self.rank = 0;
        self.first_unknown = 0;
    }

    pub(super) fn rank(&self) -> usize {
        self.rank
    }

    pub(super) fn is_complete(&self) -> bool {
        self.rank == self.columns.len()
    }

    pub(super) fn column(&self, column: usize) -> Column {
        self.columns[column]
    }

    /// A row that is ready.
    pub(super) fn row(&self, row: usize) -> &[u8] {
        self.rows.slot(row)
    }

    pub(super) fn pivot(&self, row: usize) -> usize {
        self.pivots[row]
    }

    /// The vector that [`insert`](Self::insert) will take, to be written first.
    pub(super) fn vector_mut(&mut self) -> &mut [u8] {
        self.vector.slot_mut(0)
    }

    /// The symbol of an unknown column has arrived as it is.
    pub(super) fn receive(&mut self, column: usize) {
        self.columns[column] = Column::Received;
        self.rank += 1;
    }

    /// A combination has arrived, whose vector has been written to [`vector_mut`](Self::vector_mut). Gives the column
    /// in whose slot its payload belongs, or `None` if it is not innovative.
    pub(super) fn insert(&mut self) -> Option<usize> {
        if F::BITS < 8 {
            self.vector_mut().iter_mut().for_each(|coefficient| *coefficient &= F::MASK);
        }
        let (settled, fresh) = (self.settled, self.pivots.len() - self.settled);
        // Each pivot's symbol is replaced by what its row says of it; the panel's come last, as other rows hold them.
        self.take_pivots(0..settled);
        F::product(self.vector.symbols_mut(0..1), &self.factors, self.rows.symbols(0..settled));
        self.take_pivots(settled..settled + fresh);
        F::product(self.vector.symbols_mut(0..1), &self.factors, self.panel.symbols(0..fresh));

        // The coefficients of the unknown ones that are left make the new row: pivot = 1 / coefficient * (the rest +
        // payload).
        let pivot = self.choose_pivot()?;
        let vector = self.vector.slot_mut(0);
        let inverse = F::inv(core::mem::replace(&mut vector[pivot], 1));
        F::scale(vector, inverse);

        // The panel's unknown of that column is replaced too.
        for row in 0..fresh {
            let row = self.panel.slot_mut(row);
            let factor = core::mem::take(&mut row[pivot]);
            F::axpy(row, factor, self.vector.slot(0));
        }
        self.panel.slot_mut(fresh).copy_from_slice(self.vector.slot(0));

        self.pivots.push(pivot);
        self.witnesses.push(Some(pivot));
        self.columns[pivot] = Column::Pivot;
        self.rank += 1;
        if fresh + 1 == PANEL {
            self.substitute_panel();
        }
        Some(pivot)
    }

    /// Brings all rows up to date. Those that have nothing unknown left, and had before, go to `ready`.
    pub(super) fn settle(&mut self, ready: &mut Vec<usize>) {
        self.substitute_panel();
        for (row, witness) in self.witnesses.iter_mut().enumerate() {
            let Some(column) = *witness else { continue };
            let coefficients = self.rows.slot(row);
            if coefficients[column] != 0 && self.columns[column] == Column::Unknown {
                continue;
            }
            // Pivots are taken from the front: a witness from the back lasts.
            *witness = (self.first_unknown..coefficients.len())
                .rev()
                .find(|&column| coefficients[column] != 0 && self.columns[column] == Column::Unknown);
            if witness.is_none() {
                ready.push(row);
            }
        }
    }

    /// Takes the coefficients of some rows' pivots out of the vector at work.
    fn take_pivots(&mut self, rows: Range<usize>) {
        let vector = self.vector.slot_mut(0);
        self.factors.clear();
        self.factors.extend(self.pivots[rows].iter().map(|&pivot| core::mem::take(&mut vector[pivot])));
    }

    /// An unknown column of the vector at work that is not 0.
    fn choose_pivot(&mut self) -> Option<usize> {
        while self.columns.get(self.first_unknown).is_some_and(|&column| column != Column::Unknown) {
            self.first_unknown += 1;
        }
        let vector = self.vector.slot(0);
        (self.first_unknown..vector.len())
            .find(|&column| vector[column] != 0 && self.columns[column] == Column::Unknown)
    }

    /// Replaces the panel's pivots in the other rows, and adds the panel to those.
    fn substitute_panel(&mut self) {
        let fresh = &self.pivots[self.settled..];
        if fresh.is_empty() {
            return;
        }
        self.factors.clear();
        for row in 0..self.settled {
            let row = self.rows.slot_mut(row);
            self.factors.extend(fresh.iter().map(|&pivot| core::mem::take(&mut row[pivot])));
        }
        let panel = self.panel.symbols(0..fresh.len());
        F::product(self.rows.symbols_mut(0..self.settled), &self.factors, panel);
        for row in 0..fresh.len() {
            self.rows.slot_mut(self.settled + row).copy_from_slice(self.panel.slot(row));
        }
        self.settled = self.pivots.len();
    }
}

/// Rows of the panel. Chosen: enough that the others are loaded seldom, few enough that reducing the panel itself is
/// cheap.
const PANEL: usize = 8;
