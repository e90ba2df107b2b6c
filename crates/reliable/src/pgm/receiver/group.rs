//! Transmission groups of a source, and the parity of them that has come.

use std::collections::BTreeMap;

use crate::pgm::parity::{Parity, ParitySymbol};

/// Transmission groups of a source; without parity each packet is one.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) code: Option<Parity>,
    pub(super) proactive: bool,
    groups: BTreeMap<u64, Group>,
}

#[derive(Debug, Default)]
struct Group {
    /// Number of its packets, if it was ended early.
    size: Option<u16>,
    parity: BTreeMap<usize, ParitySymbol>,
}

/// Groups of which something is remembered: those at the end of a window of many small ones. More are forgotten.
const MAX_GROUPS: usize = 1 << 16;

impl Groups {
    /// Packets of a group that is not ended early.
    pub(super) fn full(&self) -> usize {
        self.code.as_ref().map_or(1, Parity::group)
    }

    /// First sequence number of the group that a packet is in.
    pub(super) fn first(&self, sequence: u64) -> u64 {
        sequence - sequence % self.full() as u64
    }

    pub(super) fn size(&self, first: u64) -> usize {
        let known = self.groups.get(&first).and_then(|group| group.size);
        known.map_or(self.full(), |size| usize::from(size).min(self.full()))
    }

    /// Whether a group is known to have been ended early.
    pub(super) fn is_short(&self, first: u64) -> bool {
        self.groups.get(&first).is_some_and(|group| group.size.is_some())
    }

    /// Whether a sequence number was ever used, as far as is known.
    pub(super) fn exists(&self, sequence: u64) -> bool {
        let first = self.first(sequence);
        ((sequence - first) as usize) < self.size(first)
    }

    pub(super) fn ended_early(&mut self, first: u64, size: u32) {
        if (size as usize) < self.full() && self.groups.len() < MAX_GROUPS {
            self.groups.entry(first).or_default().size = Some(size as u16);
        }
    }

    /// Takes a parity packet of a group; false if it is there already, or is none.
    pub(super) fn insert(&mut self, first: u64, index: usize, symbol: ParitySymbol) -> bool {
        let is_one = self.code.as_ref().is_some_and(|code| index < code.count());
        if !is_one || self.groups.len() >= MAX_GROUPS {
            return false;
        }
        let group = self.groups.entry(first).or_default();
        group.parity.insert(index, symbol).is_none()
    }

    pub(super) fn parity_held(&self, first: u64) -> usize {
        self.groups.get(&first).map_or(0, |group| group.parity.len())
    }

    pub(super) fn parity(&self, first: u64) -> Vec<(usize, &ParitySymbol)> {
        let group = self.groups.get(&first);
        group.map_or_else(Vec::new, |group| {
            group.parity.iter().map(|(&index, symbol)| (index, symbol)).collect()
        })
    }

    /// Forgets the parity of a group: it is of no more use, or of none.
    pub(super) fn drop_parity(&mut self, first: u64) {
        if let Some(group) = self.groups.get_mut(&first) {
            group.parity.clear();
        }
    }

    pub(super) fn forget_parity(&mut self) {
        self.groups.values_mut().for_each(|group| group.parity.clear());
    }

    pub(super) fn forget_below(&mut self, first: u64) {
        while let Some(entry) = self.groups.first_entry().filter(|entry| *entry.key() < first) {
            entry.remove();
        }
    }
}
