//! A batch at its source or at a relay: packets that are kept as they came, and mixed anew.

use hopcast_code::field::{self, Gf256};
use hopcast_code::rlnc::{Coefficients, Density};
use hopcast_core::Buffer;

use super::span::{MAX_SYMBOLS, Span, Vector};

/// The innovative packets of one batch.
#[derive(Debug, Default)]
pub(super) struct Batch {
    span: Span,
    rows: Vec<Row>,
    /// Symbols that are among the rows as they are.
    symbols: u32,
}

#[derive(Debug)]
struct Row {
    kind: Kind,
    /// Without the zeros at its end, perhaps.
    payload: Buffer,
}

/// Form in which a packet came.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// The symbol of this index.
    Symbol(u8),
    /// The combination with this vector.
    Coded(Vector),
}

/// A combination, but for its payload.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Mix {
    coefficients: Vector,
    first: u8,
    rows: u8,
    /// Of the batch's symbols.
    pub(super) vector: Vector,
    /// Length of the payload: that of the longest in it.
    pub(super) len: usize,
}

impl Batch {
    /// Forgets all packets, keeps the memory.
    pub(super) fn clear(&mut self) {
        self.span.clear();
        self.rows.drain(..).for_each(|row| row.payload.recycle());
        self.symbols = 0;
    }

    pub(super) fn rank(&self) -> u8 {
        self.span.rank()
    }

    /// Symbols that it has as they are.
    pub(super) fn symbols(&self) -> u32 {
        self.symbols
    }

    /// Takes a symbol. Whether it was innovative.
    pub(super) fn push_symbol(&mut self, index: u8, payload: Buffer) -> bool {
        let innovative = self.span.insert_symbol(index);
        if innovative {
            self.symbols |= 1 << index;
            self.rows.push(Row { kind: Kind::Symbol(index), payload });
        } else {
            payload.recycle();
        }
        innovative
    }

    /// Takes a combination. Whether it was innovative.
    pub(super) fn push_coded(&mut self, vector: Vector, payload: Buffer) -> bool {
        let innovative = self.span.insert(vector);
        if innovative {
            self.rows.push(Row { kind: Kind::Coded(vector), payload });
        } else {
            payload.recycle();
        }
        innovative
    }

    /// A symbol that it has as it is.
    pub(super) fn symbol(&self, index: u8) -> Option<&[u8]> {
        let is = |row: &&Row| matches!(row.kind, Kind::Symbol(at) if at == index);
        // Without loss, row i is symbol i.
        let row = self.rows.get(usize::from(index)).filter(is).or_else(|| self.rows.iter().find(is));
        row.map(|row| &*row.payload)
    }

    /// An innovative packet as it came, of which `number` came before.
    pub(super) fn row(&self, number: u8) -> Option<(&Kind, &[u8])> {
        self.rows.get(usize::from(number)).map(|row| (&row.kind, &*row.payload))
    }

    /// Draws a combination of the packets from number `first` on, of which there must be some.
    pub(super) fn mix(&self, first: u8, random: &mut Coefficients) -> Mix {
        let first = usize::from(first).min(self.rows.len().saturating_sub(1));
        let rows = &self.rows[first..];
        let mut mix = Mix { first: first as u8, rows: rows.len() as u8, ..Mix::default() };
        random.fill::<Gf256>(Density::FULL, &mut mix.coefficients[..rows.len()]);
        for (row, coefficient) in rows.iter().zip(&mut mix.coefficients) {
            // A packet that is left out is one that cannot be repaired.
            *coefficient = (*coefficient).max(1);
            match row.kind {
                Kind::Symbol(index) => mix.vector[usize::from(index)] ^= *coefficient,
                Kind::Coded(ref vector) => field::axpy(&mut mix.vector, *coefficient, vector),
            }
            mix.len = mix.len.max(row.payload.len());
        }
        mix
    }

    /// Computes the payload of a combination that was drawn since the last packet was taken.
    pub(super) fn write(&self, mix: &Mix, payload: &mut [u8]) {
        payload.fill(0);
        let rows = &self.rows[usize::from(mix.first)..][..usize::from(mix.rows)];
        let mut full: [&[u8]; MAX_SYMBOLS] = [&[]; MAX_SYMBOLS];
        let mut factors = [0; MAX_SYMBOLS];
        let mut count = 0;
        for (row, &coefficient) in rows.iter().zip(&mix.coefficients) {
            if row.payload.len() == payload.len() {
                (full[count], factors[count]) = (&row.payload, coefficient);
                count += 1;
            } else {
                field::axpy(payload, coefficient, &row.payload);
            }
        }
        field::axpy_rows(payload, &factors[..count], &full[..count]);
    }
}
