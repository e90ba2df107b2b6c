//! The correction of symbols that were computed as if all inactive symbols were zero.
//!
//! The change of a symbol follows from the changes of the other symbols of its batch, so it is a sum of as many terms
//! as that batch has symbols. That is less than one term for each inactive symbol, unless these are few.

use core::ops::Range;

use super::inactive::Inactive;
use crate::field;
use crate::store::{Heap, Store};

#[derive(Debug)]
pub(super) struct Substitution {
    /// The changes of symbols: first of the inactive ones in the order of their numbers, whose change from zero is all
    /// that they are.
    changes: Heap,
    /// Start of the first of them, and distance to the next.
    first: usize,
    stride: usize,
    steps: Vec<Step>,
    /// The symbols that all steps tell, by the number of their row.
    told: Vec<u32>,
    members: Vec<Member>,
    matrix: Vec<u8>,
    /// The places of the changes of symbols that are solved and used by others.
    at: Vec<usize>,
    from: Vec<usize>,
    to: Vec<usize>,
    coefficients: Vec<u8>,
}

/// A symbol that others depend on.
#[derive(Copy, Clone, Debug)]
pub(super) enum Member {
    /// The inactive symbol of that number.
    Inactive(usize),
    /// The symbol of that row.
    Told(usize),
}

/// The symbols that one batch solved.
#[derive(Debug)]
struct Step {
    told: Range<usize>,
    /// The symbols that these depend on, and where the coefficients begin; none if it takes fewer terms to sum up the
    /// inactive ones.
    members: Option<(Range<usize>, usize)>,
    /// Whether others depend on these.
    is_used: bool,
}

impl Substitution {
    /// For that many symbols.
    pub(super) fn new(symbols: usize, len: usize) -> Self {
        Self {
            changes: Heap::new(symbols, len),
            first: 0,
            stride: 0,
            steps: Vec::new(),
            told: Vec::new(),
            members: Vec::new(),
            matrix: Vec::new(),
            at: Vec::new(),
            from: Vec::new(),
            to: Vec::new(),
            coefficients: Vec::new(),
        }
    }

    /// Forgets everything.
    pub(super) fn start(&mut self) {
        self.changes.clear();
        self.steps.clear();
        self.told.clear();
        self.members.clear();
        self.matrix.clear();
    }

    /// Writes down that these symbols, those of the next rows, depend on `members`, by coefficients row by row; there
    /// are as yet `inactive` inactive symbols.
    pub(super) fn record(
        &mut self,
        told: impl Iterator<Item = u32>,
        members: &[Member],
        coefficients: &[u8],
        inactive: usize,
    ) {
        let row = self.told.len();
        self.told.extend(told);
        let members = (members.len() <= inactive).then(|| {
            for member in members {
                if let Member::Told(row) = *member {
                    let step = self.steps.partition_point(|step| step.told.end <= row);
                    self.steps[step].is_used = true;
                }
            }
            let (member, coefficient) = (self.members.len(), self.matrix.len());
            self.members.extend_from_slice(members);
            self.matrix.extend_from_slice(coefficients);
            (member..self.members.len(), coefficient)
        });
        self.steps.push(Step { told: row..self.told.len(), members, is_used: false });
    }

    /// Computes the inactive symbols from payloads, by coefficients row by row, and with them the others.
    pub(super) fn run(
        &mut self,
        inactive: &Inactive,
        inverse: &[u8],
        payloads: &Store,
        slots: impl Iterator<Item = usize>,
        computed: &mut Store,
    ) {
        (self.first, self.stride) = self.changes.next();
        let n = inactive.count();
        self.from.clear();
        self.from.extend(slots.map(|slot| payloads.offset(slot)));
        let (values, _) = self.changes.grow(n, &[]);
        field::product_into(values, inverse, payloads.symbols_from(&self.from));

        self.at.clear();
        self.at.resize(self.told.len(), 0);
        for step in &self.steps {
            let told = &self.told[step.told.clone()];
            self.to.clear();
            self.to.extend(told.iter().map(|&symbol| computed.offset(symbol as usize)));
            self.from.clear();
            let matrix = if let Some((members, coefficient)) = &step.members {
                self.from.extend(self.members[members.clone()].iter().map(|&member| match member {
                    Member::Inactive(number) => self.first + number * self.stride,
                    Member::Told(row) => self.at[row],
                }));
                &self.matrix[*coefficient..][..told.len() * members.len()]
            } else {
                self.from.extend((0..n).map(|number| self.first + number * self.stride));
                self.coefficients.clear();
                for row in step.told.clone() {
                    self.coefficients.extend_from_slice(&inactive.row(row)[..n]);
                }
                &self.coefficients
            };
            if step.is_used {
                let (at, stride) = self.changes.next();
                let (changes, before) = self.changes.grow(told.len(), &self.from);
                field::product_into(changes, matrix, before);
                for (n, (row, &symbol)) in step.told.clone().zip(told).enumerate() {
                    self.at[row] = at + n * stride;
                    field::xor(computed.slot_mut(symbol as usize), self.changes.slot(self.at[row]));
                }
            } else {
                let (_, before) = self.changes.grow(0, &self.from);
                field::product(computed.symbols_at(&self.to), matrix, before);
            }
        }
    }

    /// An inactive symbol, once it is computed.
    pub(super) fn inactive(&self, number: usize) -> &[u8] {
        self.changes.slot(self.first + number * self.stride)
    }
}
