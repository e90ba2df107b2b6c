//! The packets that are kept, and which of a batch's are worth keeping.

use crate::field;
use crate::store::Store;

/// Slots for packets, chained batch by batch in the order in which they came.
///
/// Beside its payload, a packet has its coefficients and a reduced form of them. Reduced ones of a batch are in echelon
/// form: none has anything in the pivots of those before it.
#[derive(Debug)]
pub(super) struct Packets {
    pub(super) payloads: Store,
    coefficients: Store,
    reduced: Store,
    pivots: Vec<u8>,
    next: Vec<Option<u32>>,
    free: Vec<u32>,
    /// The packet that is being reduced: its vector and its payload.
    vector: Vec<u8>,
    slots: Vec<usize>,
}

/// The packets of a batch that are kept.
#[derive(Copy, Clone, Debug, Default)]
pub(super) struct Chain {
    first: Option<u32>,
    last: u32,
    pub(super) len: usize,
}

impl Packets {
    pub(super) fn new(slots: usize, payload_len: usize, coefficients: usize) -> Self {
        Self {
            payloads: Store::new(slots, payload_len),
            coefficients: Store::new(slots, coefficients),
            reduced: Store::new(slots, coefficients),
            pivots: vec![0; slots],
            next: vec![None; slots],
            free: (0..slots as u32).rev().collect(),
            vector: vec![0; coefficients],
            slots: Vec::with_capacity(slots),
        }
    }

    /// Forgets all packets.
    pub(super) fn clear(&mut self) {
        self.free.clear();
        self.free.extend((0..self.next.len() as u32).rev());
    }

    /// A slot for a payload alone.
    pub(super) fn take(&mut self) -> Option<usize> {
        self.free.pop().map(|slot| slot as usize)
    }

    /// Gives a slot back.
    pub(super) fn release(&mut self, slot: usize) {
        self.free.push(slot as u32);
    }

    /// A chain of one slot, which was [taken](Self::take).
    pub(super) fn alone(&mut self, slot: usize) -> Chain {
        self.next[slot] = None;
        Chain { first: Some(slot as u32), last: slot as u32, len: 1 }
    }

    pub(super) fn coefficients(&self, slot: usize) -> &[u8] {
        self.coefficients.slot(slot)
    }

    /// The slots of a chain.
    pub(super) fn slots(&self, chain: Chain) -> impl Iterator<Item = usize> {
        core::iter::successors(chain.first, |&slot| self.next[slot as usize]).map(|slot| slot as usize)
    }

    /// Takes a packet if it says anything about the columns outside `known` that the chain does not, and there is room;
    /// gives its slot.
    pub(super) fn insert(
        &mut self,
        chain: &mut Chain,
        known: u128,
        coefficients: &[u8],
        payload: &[u8],
    ) -> Option<usize> {
        if self.slots(*chain).any(|slot| is_in(known, self.pivots[slot].into())) {
            self.retain(chain, known, |_| true);
        }
        self.vector.fill(0);
        self.vector[..coefficients.len()].copy_from_slice(coefficients);
        let pivot = self.reduce(*chain, known)?;
        let slot = self.take()?;
        self.payloads.slot_mut(slot).copy_from_slice(payload);
        let kept = self.coefficients.slot_mut(slot);
        kept[..coefficients.len()].copy_from_slice(coefficients);
        kept[coefficients.len()..].fill(0);
        self.link(chain, slot, pivot);
        Some(slot)
    }

    /// Keeps those packets of a chain that `keep` wants and that still say something, gives back the others' slots.
    pub(super) fn retain(&mut self, chain: &mut Chain, known: u128, keep: impl Fn(usize) -> bool) {
        let mut slots = core::mem::take(&mut self.slots);
        slots.clear();
        slots.extend(self.slots(*chain));
        *chain = Chain::default();
        for &slot in &slots {
            self.vector.copy_from_slice(self.coefficients.slot(slot));
            match if keep(slot) { self.reduce(*chain, known) } else { None } {
                Some(pivot) => self.link(chain, slot, pivot),
                None => self.free.push(slot as u32),
            }
        }
        self.slots = slots;
    }

    /// Takes out of the vector at work what is known and what the chain says; gives a column that is left.
    fn reduce(&mut self, chain: Chain, known: u128) -> Option<u8> {
        let mut next = chain.first;
        while let Some(slot) = next {
            let slot = slot as usize;
            let factor = self.vector[usize::from(self.pivots[slot])];
            if factor != 0 {
                field::axpy(&mut self.vector, factor, self.reduced.slot(slot));
            }
            next = self.next[slot];
        }
        let is_left = |(column, &left): (usize, &u8)| left != 0 && !is_in(known, column);
        self.vector.iter().enumerate().position(is_left).map(|column| column as u8)
    }

    /// Adds a slot to a chain, with the vector at work as its reduced coefficients.
    fn link(&mut self, chain: &mut Chain, slot: usize, pivot: u8) {
        let inverse = field::inv(self.vector[usize::from(pivot)]);
        field::scale(&mut self.vector, inverse);
        self.reduced.slot_mut(slot).copy_from_slice(&self.vector);
        self.pivots[slot] = pivot;
        self.next[slot] = None;
        if chain.first.is_none() {
            chain.first = Some(slot as u32);
        } else {
            self.next[chain.last as usize] = Some(slot as u32);
        }
        chain.last = slot as u32;
        chain.len += 1;
    }
}

/// Whether a column is in a set.
pub(super) fn is_in(set: u128, column: usize) -> bool {
    set >> column & 1 == 1
}
