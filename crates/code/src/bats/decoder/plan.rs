//! Inactivation decoding: when no batch can be solved alone, all together.

use super::solve::{Work, masked};
use super::substitution::Member;
use super::{Column, Decoder};
use crate::field;

impl Decoder {
    /// Expresses all symbols by inactive ones, and solves for those what equations are left.
    pub(super) fn plan(&mut self) {
        self.is_planned = true;
        self.inactive.start();
        self.substitution.start();
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

        self.dense.start(self.inactive.count(), self.inactive.stride());
        let mut work = core::mem::take(&mut self.work);
        work.tails.clear();
        work.constraints.clear();
        for group in 0..self.graph.groups.len() {
            if self.graph.groups[group].chain.len > 0 {
                self.equations(group, &mut work);
                self.reduce(&mut work);
            }
        }
        if let Some(precode) = self.precode {
            self.dense_sums(precode, &mut work);
            self.reduce(&mut work);
        }
        self.constrain(&mut work);
        self.work = work;
    }

    /// Makes the unknown symbols of a batch that it does not solve inactive, and writes down how those that it solves
    /// depend on inactive symbols, if it does; gives the number of the first of these rows.
    pub(super) fn express(&mut self, work: &mut Work) -> Option<usize> {
        let Work { elimination, symbols, order, unknown, partial, matrix, columns, rows, members, .. } = work;
        let (unknown, partial, pivots) = (*unknown, *partial, elimination.pivots());
        if pivots.is_empty() || order.len() == pivots.len() {
            return None;
        }
        // An unknown symbol that is no pivot becomes inactive. These columns follow those that were so already.
        columns.clear();
        columns.extend((0..unknown).filter(|&column| pivots.iter().all(|&(_, pivot)| pivot != column)));
        for &column in &*columns {
            self.columns[symbols[order[column]] as usize] = Column::Inactive(self.inactive.add());
        }
        rows.clear();
        members.clear();
        for column in (unknown..order.len()).chain(columns.iter().copied()) {
            match self.columns[symbols[order[column]] as usize] {
                Column::Partial(row) => {
                    rows.push(row);
                    members.push(Member::Told(row));
                }
                Column::Inactive(number) => members.push(Member::Inactive(number)),
                Column::Known | Column::Unknown => {}
            }
        }

        matrix.clear();
        for &(row, _) in pivots {
            matrix.extend_from_slice(&elimination.left(row)[unknown..partial]);
        }
        let first = self.inactive.combine(pivots.len(), matrix, rows);
        matrix.clear();
        for (n, &(row, _)) in pivots.iter().enumerate() {
            let left = elimination.left(row);
            let begin = matrix.len();
            matrix.extend_from_slice(&left[unknown..]);
            matrix.extend(columns.iter().map(|&column| left[column]));
            for (&coefficient, &member) in matrix[begin..].iter().zip(&*members) {
                if let Member::Inactive(number) = member {
                    self.inactive.row_mut(first + n)[number] ^= coefficient;
                }
            }
        }
        let told = pivots.iter().map(|&(_, column)| symbols[order[column]]);
        self.substitution.record(told, members, matrix, self.inactive.count());
        Some(first)
    }

    /// Reduces equations, of which no symbol is unknown, to equations of inactive symbols.
    pub(super) fn reduce(&mut self, work: &mut Work) {
        let (degree, stride) = (work.symbols.len(), self.inactive.stride());
        work.support();
        let Work { equations, symbols, slots, support, matrix, mask, rows, tails, constraints, .. } = work;
        let begin = tails.len();
        tails.resize(begin + slots.len() * stride, 0);
        let tails = &mut tails[begin..];
        rows.clear();
        mask.clear();
        for (position, (&symbol, &any)) in symbols.iter().zip(&*support).enumerate() {
            let row = match self.columns[symbol as usize] {
                Column::Partial(row) if any != 0 => Some(row),
                Column::Inactive(number) => {
                    for (tail, row) in tails.chunks_exact_mut(stride).zip(equations.chunks_exact(degree)) {
                        tail[number] ^= row[position];
                    }
                    None
                }
                Column::Partial(_) | Column::Known | Column::Unknown => None,
            };
            mask.push(if row.is_some() { 255 } else { 0 });
            rows.push(row.unwrap_or(0));
        }
        if mask.iter().any(|&of| of != 0) {
            matrix.clear();
            equations.chunks_exact(degree).for_each(|row| masked(row, mask, matrix));
            self.inactive.add_to(tails, matrix, rows);
        }

        // The payloads: without what is known of the symbols.
        constraints.extend_from_slice(slots);
        self.present(work);
        let Work { equations, slots, matrix, mask, from, to, .. } = work;
        matrix.clear();
        equations.chunks_exact(degree).for_each(|row| masked(row, mask, matrix));
        to.clear();
        to.extend(slots.iter().map(|&slot| self.packets.payloads.offset(slot)));
        field::product(self.packets.payloads.symbols_at(to), matrix, self.computed.symbols_from(from));
    }

    /// Takes the equations that were reduced; gives the slots back of those that say nothing new, and computes all that
    /// is missing as soon as the others suffice. Gives how many there are of the latter.
    pub(super) fn constrain(&mut self, work: &mut Work) -> usize {
        let Work { tails, constraints, fresh, .. } = work;
        self.dense.insert(tails, constraints, fresh);
        let mut told = fresh.iter().peekable();
        for (row, &slot) in constraints.iter().enumerate() {
            if told.next_if_eq(&&row).is_none() {
                self.packets.release(slot);
            }
        }
        if self.dense.is_complete() {
            self.finish(&mut work.matrix);
        }
        work.fresh.len()
    }

    /// Computes all that is missing.
    fn finish(&mut self, inverse: &mut Vec<u8>) {
        self.dense.inverse(inverse);
        let Self { substitution, inactive, dense, packets, computed, .. } = self;
        substitution.run(inactive, inverse, &packets.payloads, dense.payloads(), computed);
        for symbol in 0..self.parameters.symbols() {
            if self.columns[symbol] != Column::Known {
                self.announce(symbol);
            }
        }
    }
}
