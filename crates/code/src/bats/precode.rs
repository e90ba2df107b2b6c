//! Symbols that are functions of the source, of which both ends know how: checks for the decoder.
//!
//! To the K source symbols come S sparse sums and H dense ones (LDPC and HDPC, as RFC 6330 has them; RFC 9426 leaves a
//! precode open). Coded batches draw from all of them. The decoder then has S + H equations that no packet can lose.

use super::parameters::{Parameters, Sampling, Start};
use super::sampling::{Purpose, seed};
use crate::field::{self, Gf256, Symbols, xor};
use crate::rlnc::{Coefficients, Density};
use crate::store::Store;

/// Number of symbols that are added, and the rule by which they are.
#[derive(Copy, Clone, Debug)]
pub(super) struct Precode {
    source: usize,
    sparse: usize,
    dense: usize,
    session: u32,
}

/// Number of sparse sums of which each source symbol is part (RFC 6330, section 5.3.3.3).
const SPARSE_DEGREE: usize = 3;

/// Source and precoded symbols together.
pub(super) fn columns(parameters: &Parameters) -> usize {
    parameters.symbols() + Precode::of(parameters).map_or(0, |precode| precode.checks())
}

impl Precode {
    /// The one that belongs to the parameters: there is one with even sampling, unless the start is systematic.
    pub(super) fn of(parameters: &Parameters) -> Option<Self> {
        let (Sampling::Even { session }, Start::Coded, _) = parameters.parts() else { return None };
        let source = parameters.symbols();
        let k = source as f64;
        // simbats' counts; the first a prime, for `sparse_sums`.
        let sparse = prime_from(((0.0101 * k + (3.0 * k).sqrt()) as usize).max(SPARSE_DEGREE));
        let dense = (k.ln() as usize).max(5);
        Some(Self { source, sparse, dense, session })
    }

    /// S + H.
    pub(super) fn checks(&self) -> usize {
        self.sparse + self.dense
    }

    /// S.
    pub(super) fn sparse(&self) -> usize {
        self.sparse
    }

    /// H.
    pub(super) fn dense(&self) -> usize {
        self.dense
    }

    /// The sparse sums that a source symbol is part of: distinct, and shared as evenly as can be (RFC 6330, section
    /// 5.3.3.3).
    pub(super) fn sparse_sums(&self, symbol: usize) -> [usize; SPARSE_DEGREE] {
        let step = 1 + symbol / self.sparse % (self.sparse - 1);
        core::array::from_fn(|i| (symbol + i * step) % self.sparse)
    }

    /// The symbols of each sparse sum, with the sum itself: together zero.
    pub(super) fn sparse_symbols(&self) -> Vec<Vec<u32>> {
        let mut symbols = vec![Vec::new(); self.sparse];
        for symbol in 0..self.source {
            for sum in self.sparse_sums(symbol) {
                symbols[sum].push(symbol as u32);
            }
        }
        for (sum, symbols) in symbols.iter_mut().enumerate() {
            symbols.push((self.source + sum) as u32);
        }
        symbols
    }

    /// The coefficients that all dense sums have of some columns: the source symbols or the sparse sums.
    pub(super) fn dense_sums(&self, of: Of, matrix: &mut Vec<u8>) {
        let columns = match of {
            Of::Source => self.source,
            Of::Sparse => self.sparse,
        };
        matrix.clear();
        matrix.resize(self.dense * columns, 0);
        let stream = seed(self.session, of as u16, Purpose::Checks as usize);
        Coefficients::new(stream).fill::<Gf256>(Density::FULL, matrix);
    }
}

/// The operands of a dense sum.
#[derive(Copy, Clone)]
pub(super) enum Of {
    Source,
    Sparse,
}

/// The symbols that a precode adds.
#[derive(Debug)]
pub(super) struct Sums {
    precode: Precode,
    sparse: Store,
    dense: Store,
    matrix: Vec<u8>,
}

impl Sums {
    pub(super) fn new(precode: Precode, len: usize) -> Self {
        Self {
            precode,
            sparse: Store::new(precode.sparse, len),
            dense: Store::new(precode.dense, len),
            matrix: Vec::with_capacity(precode.dense * precode.source),
        }
    }

    /// The sums in their order, the sparse ones first.
    pub(super) fn get(&self, sum: usize) -> &[u8] {
        match sum.checked_sub(self.precode.sparse) {
            None => self.sparse.slot(sum),
            Some(sum) => self.dense.slot(sum),
        }
    }

    /// Computes them from the source, whose symbols are at the offsets `at`.
    pub(super) fn compute(&mut self, precode: Precode, source: &[u8], at: &[usize], len: usize) {
        self.precode = precode;
        let Precode { sparse, dense, .. } = precode;
        (0..sparse).for_each(|sum| self.sparse.slot_mut(sum).fill(0));
        for (symbol, bytes) in source.chunks_exact(len).enumerate() {
            for sum in precode.sparse_sums(symbol) {
                xor(self.sparse.slot_mut(sum), bytes);
            }
        }
        precode.dense_sums(Of::Source, &mut self.matrix);
        field::product_into(self.dense.symbols_mut(0..dense), &self.matrix, Symbols::new(source, at, len));
        precode.dense_sums(Of::Sparse, &mut self.matrix);
        field::product(self.dense.symbols_mut(0..dense), &self.matrix, self.sparse.symbols(0..sparse));
    }
}

fn prime_from(n: usize) -> usize {
    (n..).find(|&n| (2..n).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))).unwrap_or(n)
}
