//! Solving one batch: for the symbols that are unknown in it, by those that are known.

use super::elimination::BatchElimination;
use super::graph::Kind;
use super::packets::Chain;
use super::substitution::Member;
use super::{Column, Decoder, Sampler};
use crate::field::{self, Symbols};

/// Memory that is used again for every batch.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) elimination: BatchElimination,
    /// A batch's matrix.
    of_packets: Vec<u8>,
    /// The dense sums' coefficients of the sparse ones.
    pub(super) sparse: Vec<u8>,
    vectors: Vec<u8>,
    /// The coefficients that the packets at work have of each symbol of their batch, and the symbols of which any is
    /// not zero.
    pub(super) equations: Vec<u8>,
    pub(super) support: Vec<u8>,
    pub(super) symbols: Vec<u32>,
    pub(super) slots: Vec<usize>,
    /// Positions in the batch of the symbols that are not known: first those that nothing is known of, from `unknown`
    /// on those that depend on inactive ones, from `partial` on these.
    pub(super) order: Vec<usize>,
    pub(super) unknown: usize,
    pub(super) partial: usize,
    /// A product's matrix, and where its symbols and results are.
    pub(super) matrix: Vec<u8>,
    pub(super) mask: Vec<u8>,
    pub(super) columns: Vec<usize>,
    pub(super) rows: Vec<usize>,
    pub(super) members: Vec<Member>,
    pub(super) from: Vec<usize>,
    pub(super) to: Vec<usize>,
    /// Equations of inactive symbols, row by row, with the slots of their payloads; which of them say something new.
    pub(super) tails: Vec<u8>,
    pub(super) constraints: Vec<usize>,
    pub(super) fresh: Vec<usize>,
}

impl Work {
    /// Whether the packet in that slot has solved a symbol.
    fn solves(&self, slot: usize) -> bool {
        self.elimination.pivots().iter().any(|&(row, _)| self.slots[row] == slot)
    }

    /// The coefficients of a batch's symbols in what has those coefficients of the batch's packets; one or more
    /// vectors.
    pub(super) fn of_symbols(
        &mut self,
        sampler: &mut Sampler,
        bid: u16,
        vectors: &[u8],
        degree: usize,
        products: &mut Vec<u8>,
    ) {
        sampler.rows(bid, degree, &mut self.of_packets);
        let packets = self.of_packets.len() / degree;
        let count = vectors.len() / packets;
        products.clear();
        products.resize(count * degree, 0);
        let products = Symbols::spaced(&mut products[..], 0, degree, count, degree);
        let rows = Symbols::spaced(&self.of_packets[..], 0, degree, packets, degree);
        field::product_into(products, vectors, rows);
    }

    /// Finds out which symbols the packets at work have anything of.
    pub(super) fn support(&mut self) {
        let degree = self.symbols.len();
        self.support.clear();
        self.support.resize(degree, 0);
        for row in self.equations.chunks_exact(degree) {
            for (any, coefficient) in self.support.iter_mut().zip(row) {
                *any |= coefficient;
            }
        }
    }
}

/// Appends those coefficients of a row that the mask lets through, zero for the others; none at all if there is no
/// mask.
pub(super) fn masked(row: &[u8], mask: &[u8], to: &mut Vec<u8>) {
    to.extend(row.iter().zip(mask).map(|(coefficient, mask)| coefficient & mask));
}

impl Decoder {
    /// Solves a batch for its unknown symbols.
    ///
    /// As long as nothing is inactive, only if it solves all symbols that its packets have. Then, a symbol that it does
    /// not solve becomes inactive.
    pub(super) fn solve(&mut self, group: usize) {
        let mut work = core::mem::take(&mut self.work);
        self.equations(group, &mut work);
        self.sort(&mut work);
        let Work { elimination, equations, symbols, order, unknown, .. } = &mut work;
        elimination.run(equations, symbols.len(), order, *unknown);

        let told = elimination.pivots().len();
        if self.is_planned {
            self.graph.groups[group].is_exhausted = told == 0;
            self.tell(&mut work);
            let rows = self.express(&mut work);
            self.conclude(&work, rows);
            self.keep(group, |slot| !work.solves(slot));
        } else if told == work.unknown {
            self.tell(&mut work);
            self.conclude(&work, None);
            self.keep(group, |_| false);
        } else {
            // Some packets only repeat, about its unknown symbols, what others say.
            self.keep(group, |slot| work.solves(slot));
        }
        self.work = work;
    }

    /// Writes down the coefficients that the packets of a batch have of each of its symbols.
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

    /// Puts those symbols that the packets at work have, and that are not known, in order.
    fn sort(&self, work: &mut Work) {
        work.support();
        let Work { support, symbols, order, unknown, partial, .. } = work;
        order.clear();
        let mut take = |is_wanted: fn(Column) -> bool| {
            let positions = support.iter().zip(&*symbols).enumerate();
            order.extend(positions.filter_map(|(position, (&any, &symbol))| {
                (any != 0 && is_wanted(self.columns[symbol as usize])).then_some(position)
            }));
            order.len()
        };
        *unknown = take(|column| column == Column::Unknown);
        *partial = *unknown;
        if self.is_planned {
            *partial = take(|column| matches!(column, Column::Partial(_)));
            take(|column| matches!(column, Column::Inactive(_)));
        }
    }

    /// Takes what is known out of the payloads of the rows that say something, and computes the symbols that they are
    /// about, as if what is inactive were zero.
    fn tell(&mut self, work: &mut Work) {
        self.present(work);
        let degree = work.symbols.len();
        let Work { elimination, equations, symbols, slots, order, matrix, mask, from, to, .. } = work;
        let pivots = elimination.pivots();
        matrix.clear();
        for &(row, _) in pivots {
            masked(&equations[row * degree..][..degree], mask, matrix);
        }
        to.clear();
        to.extend(pivots.iter().map(|&(row, _)| self.packets.payloads.offset(slots[row])));
        field::product(self.packets.payloads.symbols_at(to), matrix, self.computed.symbols_from(from));

        from.clear();
        from.extend_from_slice(to);
        matrix.clear();
        for &(row, _) in pivots {
            let shares = elimination.shares(row);
            matrix.extend(pivots.iter().map(|&(other, _)| shares[other]));
        }
        to.clear();
        let symbol = |column: usize| symbols[order[column]] as usize;
        to.extend(pivots.iter().map(|&(_, column)| self.computed.offset(symbol(column))));
        field::product_into(self.computed.symbols_at(to), matrix, self.packets.payloads.symbols_from(from));
    }

    /// Masks what has a payload, were it only as if inactive symbols were zero, and lists where these payloads are.
    pub(super) fn present(&self, work: &mut Work) {
        let Work { support, symbols, mask, from, .. } = work;
        mask.clear();
        mask.extend(support.iter().zip(&*symbols).map(|(&any, &symbol)| {
            let is_present = matches!(self.columns[symbol as usize], Column::Known | Column::Partial(_));
            if any != 0 && is_present { 255 } else { 0 }
        }));
        from.clear();
        if mask.iter().any(|&of| of != 0) {
            from.extend(symbols.iter().map(|&symbol| self.computed.offset(symbol as usize)));
        } else {
            mask.clear();
        }
    }

    /// Records what a batch has solved: symbols, or the first of the rows that express them.
    fn conclude(&mut self, work: &Work, rows: Option<usize>) {
        let Work { elimination, symbols, order, unknown, .. } = work;
        for (n, &(_, column)) in elimination.pivots().iter().enumerate() {
            let symbol = symbols[order[column]] as usize;
            if let Some(first) = rows {
                self.columns[symbol] = Column::Partial(first + n);
                self.graph.resolve(symbol);
            } else {
                self.know(symbol);
            }
        }
        for &position in &order[..*unknown] {
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
