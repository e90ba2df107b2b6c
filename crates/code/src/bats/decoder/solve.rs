//! Solving one batch: for the symbols that are unknown in it, by those that are known.

use super::elimination::Elimination;
use super::graph::Kind;
use super::packets::Chain;
use super::{Column, Decoder, Sampler};
use crate::field::{self, Symbols};

/// Memory that is used again for every batch.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) elimination: Elimination,
    /// A batch's matrix.
    rows: Vec<u8>,
    at: Vec<usize>,
    vectors: Vec<u8>,
    products_at: Vec<usize>,
    /// What the packets at work have of each symbol of their batch.
    pub(super) equations: Vec<u8>,
    pub(super) symbols: Vec<u32>,
    pub(super) slots: Vec<usize>,
    /// Positions in the batch of the symbols that are unknown.
    pub(super) unknown: Vec<usize>,
    /// A product's matrix, and where its symbols and results are.
    pub(super) matrix: Vec<u8>,
    pub(super) from: Vec<usize>,
    pub(super) to: Vec<usize>,
    /// Coefficients of inactive symbols, row by row.
    pub(super) tails: Vec<u8>,
    pub(super) tails_at: Vec<usize>,
    pub(super) columns: Vec<usize>,
    pub(super) fresh: Vec<usize>,
}

impl Work {
    /// Whether the packet in that slot has told a symbol.
    fn tells(&self, slot: usize) -> bool {
        self.elimination.pivots().iter().any(|&(row, _)| self.slots[row] == slot)
    }

    /// The coefficients of a batch's symbols in what has those coefficients of the batch's packets; one or more vectors.
    pub(super) fn of_symbols(
        &mut self,
        sampler: &mut Sampler,
        bid: u16,
        vectors: &[u8],
        degree: usize,
        products: &mut Vec<u8>,
    ) {
        sampler.rows(bid, degree, &mut self.rows);
        let packets = self.rows.len() / degree;
        let offsets = |at: &mut Vec<usize>, count: usize| {
            at.clear();
            at.extend((0..count).map(|row| row * degree));
        };
        offsets(&mut self.at, packets);
        offsets(&mut self.products_at, vectors.len() / packets);
        products.clear();
        products.resize(vectors.len() / packets * degree, 0);
        let products = Symbols::new(&mut products[..], &self.products_at, degree);
        field::product_into(products, vectors, Symbols::new(&self.rows, &self.at, degree));
    }
}

impl Decoder {
    /// Solves a batch for its unknown symbols.
    ///
    /// As long as nothing is inactive, only if it tells all that its packets have. Then, what it does not tell becomes
    /// inactive.
    pub(super) fn solve(&mut self, group: usize) {
        let mut work = core::mem::take(&mut self.work);
        self.equations(group, &mut work);
        let degree = work.symbols.len();
        let Work { elimination, equations, symbols, unknown, .. } = &mut work;
        unknown.clear();
        unknown.extend((0..degree).filter(|&position| {
            self.columns[symbols[position] as usize] == Column::Unknown
                && equations.chunks_exact(degree).any(|row| row[position] != 0)
        }));
        elimination.run(equations.len() / degree, unknown.len(), |row, column| {
            equations[row * degree + unknown[column]]
        });

        let told = elimination.pivots().len();
        if self.is_planned {
            self.graph.groups[group].is_exhausted = told == 0;
            self.reduce_payloads(&mut work);
            let rows = self.express(&mut work);
            self.conclude(&work, rows);
            self.keep(group, |slot| !work.tells(slot));
        } else if told == work.unknown.len() {
            self.reduce_payloads(&mut work);
            self.conclude(&work, None);
            self.keep(group, |_| false);
        } else {
            // Some packets only repeat, about its unknown symbols, what others say.
            self.keep(group, |slot| work.tells(slot));
        }
        self.work = work;
    }

    /// What the packets of a batch have of each of its symbols.
    pub(super) fn equations(&mut self, group: usize, work: &mut Work) {
        let of = &self.graph.groups[group];
        work.symbols.clear();
        work.symbols.extend_from_slice(self.graph.symbols(group));
        work.slots.clear();
        work.slots.extend(self.packets.slots(of.chain));
        let degree = work.symbols.len();
        let mut equations = core::mem::take(&mut work.equations);
        equations.clear();
        match of.kind {
            Kind::Sum => equations.resize(degree, 1),
            Kind::Narrow(_) => {
                for &slot in &work.slots {
                    equations.extend_from_slice(&self.packets.coefficients(slot)[..degree]);
                }
            }
            Kind::Wide(bid) => {
                let mut vectors = core::mem::take(&mut work.vectors);
                vectors.clear();
                for &slot in &work.slots {
                    vectors.extend_from_slice(self.packets.coefficients(slot));
                }
                work.of_symbols(&mut self.sampler, bid, &vectors, degree, &mut equations);
                work.vectors = vectors;
            }
        }
        work.equations = equations;
    }

    /// Takes what is known out of the payloads of the rows that say something, and computes the symbols that they are
    /// about, as if what is inactive were zero.
    fn reduce_payloads(&mut self, work: &mut Work) {
        let degree = work.symbols.len();
        let Work { elimination, equations, symbols, slots, unknown, matrix, from, to, columns, .. } = work;
        let pivots = elimination.pivots();
        columns.clear();
        columns.extend((0..degree).filter(|&position| {
            matches!(self.columns[symbols[position] as usize], Column::Known | Column::Partial(_))
                && pivots.iter().any(|&(row, _)| equations[row * degree + position] != 0)
        }));
        matrix.clear();
        for &(row, _) in pivots {
            matrix.extend(columns.iter().map(|&position| equations[row * degree + position]));
        }
        from.clear();
        from.extend(columns.iter().map(|&position| self.computed.offset(symbols[position] as usize)));
        to.clear();
        to.extend(pivots.iter().map(|&(row, _)| self.packets.payloads.offset(slots[row])));
        field::product(self.packets.payloads.symbols_at(to), matrix, self.computed.symbols_from(from));

        from.clear();
        from.extend_from_slice(to);
        matrix.clear();
        for &(row, _) in pivots {
            matrix.extend(pivots.iter().map(|&(other, _)| elimination.share(row, other)));
        }
        to.clear();
        let symbol = |column: usize| symbols[unknown[column]] as usize;
        to.extend(pivots.iter().map(|&(_, column)| self.computed.offset(symbol(column))));
        field::product_into(self.computed.symbols_at(to), matrix, self.packets.payloads.symbols_from(from));
    }

    /// Records what a batch has told: symbols, or the first of the rows that express them.
    fn conclude(&mut self, work: &Work, rows: Option<usize>) {
        let Work { elimination, symbols, unknown, .. } = work;
        for (n, &(_, column)) in elimination.pivots().iter().enumerate() {
            let symbol = symbols[unknown[column]] as usize;
            if let Some(first) = rows {
                self.columns[symbol] = Column::Partial(first + n);
                self.graph.resolve(symbol);
            } else {
                self.know(symbol);
            }
        }
        for &position in unknown {
            let symbol = symbols[position] as usize;
            if let Column::Inactive(_) = self.columns[symbol] {
                self.graph.resolve(symbol);
            }
        }
    }

    /// Keeps some packets of a batch only.
    fn keep(&mut self, group: usize, keep: impl Fn(usize) -> bool) {
        let of = &mut self.graph.groups[group];
        let before = of.chain.len;
        if of.kind != Kind::Sum {
            // While planning, what all batches say together is settled in the end.
            let known = if self.is_planned { 0 } else { of.known };
            self.packets.retain(&mut of.chain, known, keep);
        } else {
            let slot = self.packets.slots(of.chain).find(|&slot| !keep(slot));
            if let Some(slot) = slot {
                self.packets.release(slot);
                of.chain = Chain::default();
            }
        }
        self.kept = self.kept + of.chain.len - before;
        self.graph.shrink(group, &self.packets);
    }
}
