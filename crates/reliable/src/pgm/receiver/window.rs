//! The receive window: the packets that have come, from the first whose turn it is.

use std::collections::{BTreeMap, BTreeSet};

use super::Delivered;
use super::group::Groups;
use super::units::Units;
use crate::Order;
use crate::pgm::parity::Symbol;

#[cfg(test)]
mod tests;

/// Packets of a source.
#[derive(Debug)]
pub(super) struct Window {
    /// Packets that wait for their turn, or that parity of their group still needs.
    symbols: BTreeMap<u64, Symbol>,
    /// Sequence numbers of which nothing will come.
    lost: BTreeSet<u64>,
    pub(super) groups: Groups,
    pub(super) units: Units,
    /// The packet whose turn it is.
    next: u64,
    /// The first that was ever wanted.
    base: u64,
    bytes: u64,
    order: Order,
}

/// Outcome of a packet that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    New,
    Duplicate,
    /// There is no room for it.
    Refused,
}

/// Bytes of memory that a packet takes beside its payload.
const COST: u64 = 128;

impl Window {
    pub(super) fn new(next: u64, order: Order) -> Self {
        Self {
            symbols: BTreeMap::new(),
            lost: BTreeSet::new(),
            groups: Groups::default(),
            units: Units::default(),
            next,
            base: next,
            bytes: 0,
            order,
        }
    }

    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    pub(super) const fn base(&self) -> u64 {
        self.base
    }

    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn first_held(&self) -> Option<(u64, &Symbol)> {
        self.symbols.first_key_value().map(|(&sequence, symbol)| (sequence, symbol))
    }

    /// Begins with a packet: those before it are not wanted.
    pub(super) fn start(&mut self, first: u64) {
        let kept = self.symbols.split_off(&first);
        self.symbols = kept;
        self.bytes = self.symbols.values().map(cost).sum();
        (self.next, self.base) = (first, first);
        self.groups.forget_parity();
    }

    /// Whether a packet is still to come.
    pub(super) fn is_missing(&self, sequence: u64) -> bool {
        sequence >= self.next
            && !self.symbols.contains_key(&sequence)
            && !self.lost.contains(&sequence)
            && self.groups.exists(sequence)
    }

    /// Packets of a group that are still to come.
    pub(super) fn missing_of(&self, first: u64) -> usize {
        let end = first + self.groups.size(first) as u64;
        (first.max(self.next)..end).filter(|&sequence| self.is_missing(sequence)).count()
    }

    /// Parity packets by which a group would be complete; 0 if nothing of it is missing.
    pub(super) fn lacks(&self, first: u64) -> usize {
        if self.missing_of(first) == 0 {
            return 0;
        }
        let size = self.groups.size(first);
        let have = self.symbols.range(first..first + size as u64).count();
        size.saturating_sub(have + self.groups.parity_held(first))
    }

    /// Takes a packet. It is handed up at once if it is a message that need not wait.
    pub(super) fn insert(
        &mut self,
        sequence: u64,
        symbol: Symbol,
        limit: u64,
        out: &mut Vec<Delivered>,
    ) -> Taken {
        if !self.is_missing(sequence) {
            // One that was given up, and comes all the same before its turn.
            if !self.lost.remove(&sequence) {
                return Taken::Duplicate;
            }
        }
        if self.bytes > limit && sequence > self.next + self.groups.full() as u64 {
            return Taken::Refused;
        }
        self.bytes += cost(&symbol);
        self.symbols.insert(sequence, symbol);
        if self.order == Order::AsComplete && sequence != self.next {
            self.units.arrived(sequence, &self.symbols, out);
        }
        Taken::New
    }

    /// Hands up whatever has its turn.
    pub(super) fn advance(&mut self, out: &mut Vec<Delivered>) {
        loop {
            if let Some(symbol) = self.symbols.get(&self.next) {
                self.units.pass(self.next, symbol, out);
                self.next += 1;
            } else if self.lost.remove(&self.next) {
                self.next += 1;
                while self.lost.remove(&self.next) {
                    self.next += 1;
                }
                self.units.lost(self.next, out);
            } else if !self.groups.exists(self.next) {
                self.next = self.groups.first(self.next) + self.groups.full() as u64;
            } else {
                break;
            }
        }
        self.purge();
    }

    /// Drops what has had its turn and is of no use for parity.
    fn purge(&mut self) {
        let keep = if self.groups.full() > 1 { self.groups.first(self.next) } else { self.next };
        while let Some(entry) = self.symbols.first_entry().filter(|entry| *entry.key() < keep) {
            self.bytes -= cost(&entry.remove());
        }
        self.groups.forget_below(keep);
    }

    /// Gives a packet up.
    pub(super) fn give_up(&mut self, sequence: u64) {
        if self.is_missing(sequence) {
            self.lost.insert(sequence);
        }
    }

    /// Gives up what is missing of a group.
    pub(super) fn give_up_group(&mut self, first: u64) {
        for sequence in first..first + self.groups.size(first) as u64 {
            self.give_up(sequence);
        }
    }

    /// Nothing before a sequence number comes any more. True if something was missing.
    pub(super) fn move_to(&mut self, trail: u64, out: &mut Vec<Delivered>) -> bool {
        let mut is_overrun = false;
        while self.next < trail {
            self.advance(out);
            if self.next >= trail {
                break;
            }
            is_overrun = true;
            let held = self.symbols.range(self.next..trail).next().map(|(&sequence, _)| sequence);
            self.next = held.unwrap_or(trail);
            self.lost = self.lost.split_off(&self.next);
            self.units.lost(self.next, out);
        }
        is_overrun
    }

    /// Packets that are held from a group on: what parity works with.
    pub(super) fn of_group(&self, first: u64) -> Vec<(usize, &Symbol)> {
        let range = self.symbols.range(first..first + self.groups.size(first) as u64);
        range.map(|(&sequence, symbol)| ((sequence - first) as usize, symbol)).collect()
    }

    /// Forgets what comes after a sequence number: its source has never sent it.
    pub(super) fn forget_after(&mut self, last: u64) {
        let gone = self.symbols.split_off(&(last + 1));
        self.bytes -= gone.values().map(cost).sum::<u64>();
    }
}

fn cost(symbol: &Symbol) -> u64 {
    symbol.payload.len() as u64 + COST
}
