//! Graph of batches and their symbols, and the batches in it that can be solved.

use super::packets::{Chain, Packets};

/// Batches, and the precode's sparse sums, with the symbols that each combines.
#[derive(Debug, Default)]
pub(super) struct Graph {
    pub(super) groups: Vec<Group>,
    /// The group of each BID that has one.
    of_batch: Vec<Option<u16>>,
    /// The symbols of all groups, one group's after another's.
    symbols: Vec<u32>,
    /// The group of each of these entries, and the next entry of the same symbol.
    owner: Vec<u16>,
    next: Vec<u32>,
    /// The first entry of each symbol.
    first: Vec<u32>,
    /// Groups that may be solvable.
    queue: Vec<u16>,
}

/// No entry.
const NONE: u32 = u32::MAX;

/// The kind of a group of symbols.
#[derive(Copy, Clone, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A batch with more symbols than packets. Its packets' coefficients are those of the batch's packets.
    Wide(u16),
    /// A batch with at most as many symbols as packets. Its packets' coefficients are those of the symbols.
    Narrow(u16),
    /// The sum of these symbols is zero.
    Sum,
}

#[derive(Debug)]
pub(super) struct Group {
    pub(super) kind: Kind,
    begin: usize,
    end: usize,
    /// The packets kept of it.
    pub(super) chain: Chain,
    /// Number of its symbols that are unknown; not kept up to date for a narrow one.
    unknown: usize,
    /// Of a narrow one, which of its symbols are known, and which its packets have.
    pub(super) known: u128,
    support: u128,
    is_queued: bool,
    /// Whether its packets have nothing of the symbols that are unknown.
    pub(super) is_exhausted: bool,
}

impl Group {
    /// Whether it has packets that may hold unknown symbols.
    pub(super) fn is_open(&self) -> bool {
        self.chain.len > 0 && self.unknown() > 0 && !self.is_exhausted
    }

    /// Number of unknown symbols that its packets have.
    pub(super) fn unknown(&self) -> usize {
        match self.kind {
            Kind::Narrow(_) => (self.support & !self.known).count_ones() as usize,
            Kind::Wide(_) | Kind::Sum => self.unknown,
        }
    }
}

impl Graph {
    /// Forgets everything; there are that many symbols.
    pub(super) fn start(&mut self, symbols: usize) {
        self.groups.clear();
        self.of_batch.clear();
        self.of_batch.resize(crate::bats::MAX_BATCHES, None);
        self.symbols.clear();
        self.owner.clear();
        self.next.clear();
        self.first.clear();
        self.first.resize(symbols, NONE);
        self.queue.clear();
    }

    pub(super) fn of_batch(&self, bid: u16) -> Option<usize> {
        self.of_batch[usize::from(bid)].map(usize::from)
    }

    pub(super) fn symbols(&self, group: usize) -> &[u32] {
        let Group { begin, end, .. } = self.groups[group];
        &self.symbols[begin..end]
    }

    /// Adds a group; gives its number.
    pub(super) fn add(&mut self, kind: Kind, symbols: &[u32], is_known: impl Fn(usize) -> bool) -> usize {
        let group = self.groups.len();
        let begin = self.symbols.len();
        let (mut known, mut unknown) = (0, 0);
        for (position, &symbol) in symbols.iter().enumerate() {
            if !is_known(symbol as usize) {
                unknown += 1;
            } else if matches!(kind, Kind::Narrow(_)) {
                known |= 1 << position;
            }
            self.symbols.push(symbol);
            self.owner.push(group as u16);
            self.next.push(self.first[symbol as usize]);
            self.first[symbol as usize] = (begin + position) as u32;
        }
        if let Kind::Wide(bid) | Kind::Narrow(bid) = kind {
            self.of_batch[usize::from(bid)] = Some(group as u16);
        }
        let end = self.symbols.len();
        let chain = Chain::default();
        self.groups.push(Group {
            kind,
            begin,
            end,
            chain,
            unknown,
            known,
            support: 0,
            is_queued: false,
            is_exhausted: false,
        });
        group
    }

    /// A group has another packet.
    pub(super) fn grow(&mut self, group: usize, coefficients: &[u8]) {
        if let Kind::Narrow(_) = self.groups[group].kind {
            for (position, _) in coefficients.iter().enumerate().filter(|&(_, &coefficient)| coefficient != 0)
            {
                self.groups[group].support |= 1 << position;
            }
        }
        self.check(group);
    }

    /// A group's packets have become fewer.
    pub(super) fn shrink(&mut self, group: usize, packets: &Packets) {
        let group = &mut self.groups[group];
        group.support = 0;
        if let Kind::Narrow(_) = group.kind {
            for slot in packets.slots(group.chain) {
                let coefficients = packets.coefficients(slot)[..group.end - group.begin].iter();
                group.support |=
                    coefficients.enumerate().fold(0, |set, (at, &some)| set | u128::from(some != 0) << at);
            }
        }
    }

    /// A symbol is known, or taken as if it were.
    pub(super) fn resolve(&mut self, symbol: usize) {
        let mut entry = self.first[symbol];
        while entry != NONE {
            let group = usize::from(self.owner[entry as usize]);
            let of = &mut self.groups[group];
            match of.kind {
                Kind::Narrow(_) => of.known |= 1 << (entry as usize - of.begin),
                Kind::Wide(_) | Kind::Sum => of.unknown -= 1,
            }
            self.check(group);
            entry = self.next[entry as usize];
        }
    }

    /// A group that may be solvable, each once unless something has changed since.
    pub(super) fn pop(&mut self) -> Option<usize> {
        let group = usize::from(self.queue.pop()?);
        self.groups[group].is_queued = false;
        Some(group)
    }

    /// The group that lacks the fewest packets to be solvable.
    pub(super) fn nearest(&self) -> Option<usize> {
        let lacking = |group: &Group| group.unknown() - group.chain.len.min(group.unknown());
        let groups = self.groups.iter().enumerate().filter(|&(_, group)| group.is_open());
        groups.min_by_key(|&(_, group)| lacking(group)).map(|(number, _)| number)
    }

    fn check(&mut self, group: usize) {
        let of = &mut self.groups[group];
        if !of.is_queued && of.chain.len > 0 && of.unknown() <= of.chain.len {
            of.is_queued = true;
            self.queue.push(group as u16);
        }
    }
}
