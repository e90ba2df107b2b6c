//! The transmit window: what was sent, and can be repaired.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Bound;

use hopcast_core::{Duration, Instant};

use super::Mark;
use crate::pgm::parity::Symbol;

#[cfg(test)]
mod tests;

/// Packets that were sent, by their sequence numbers, and the transmission groups they are in.
#[derive(Debug)]
pub(super) struct Window {
    packets: BTreeMap<u64, Sent>,
    groups: BTreeMap<u64, Group>,
    /// Packets of a transmission group; 1 without parity.
    group: u64,
    /// First sequence number that is held.
    trail: u64,
    /// The next one to be sent.
    next: u64,
    bytes: u64,
    /// How long the oldest has kept the window from moving on.
    stalled_since: Option<Instant>,
}

/// A packet that was sent.
#[derive(Debug)]
pub(super) struct Sent {
    pub(super) symbol: Symbol,
    /// When it was repaired last.
    pub(super) repaired: Option<Mark>,
    pub(super) is_queued: bool,
    asked: Option<Instant>,
}

/// The parity of a transmission group.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    /// Number of its packets, if it was ended early.
    pub(super) size: Option<u16>,
    /// Number of parity packets that were sent, and how many are to be.
    pub(super) sent: u64,
    pub(super) promised: u64,
    /// When the last ones were sent.
    pub(super) marks: VecDeque<Mark>,
    pub(super) is_queued: bool,
    /// Whether a request has come.
    pub(super) is_asked: bool,
}

impl Window {
    pub(super) fn new(first: u64, group: u64) -> Self {
        Self {
            packets: BTreeMap::new(),
            groups: BTreeMap::new(),
            group,
            trail: first,
            next: first,
            bytes: 0,
            stalled_since: None,
        }
    }

    /// First sequence number that can be repaired; the next one if there is none.
    pub(super) const fn trail(&self) -> u64 {
        self.trail
    }

    /// The next sequence number.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// First sequence number of the group that a packet is in.
    pub(super) const fn group_of(&self, sequence: u64) -> u64 {
        sequence - sequence % self.group
    }

    /// Appends a packet: its sequence number.
    pub(super) fn push(&mut self, symbol: Symbol) -> u64 {
        let sequence = self.next;
        self.bytes += cost(&symbol);
        self.packets.insert(sequence, Sent { symbol, repaired: None, is_queued: false, asked: None });
        self.next += 1;
        sequence
    }

    /// Whether a group ends with this packet.
    pub(super) const fn ends_group(&self, sequence: u64) -> bool {
        (sequence + 1).is_multiple_of(self.group)
    }

    /// Whether a packet is held.
    pub(super) fn has(&self, sequence: u64) -> bool {
        self.packets.contains_key(&sequence)
    }

    pub(super) fn packet(&mut self, sequence: u64) -> Option<&mut Sent> {
        self.packets.get_mut(&sequence)
    }

    /// The state of a group, of which there is a packet and which has all that it will have.
    pub(super) fn group(&mut self, first: u64) -> Option<&mut Group> {
        let is_whole = self.group_of(self.next) != first;
        let has_packet = self.packets.contains_key(&first);
        if !is_whole || !has_packet || first != self.group_of(first) {
            return None;
        }
        Some(self.groups.entry(first).or_default())
    }

    /// Number of packets of a group that is whole.
    pub(super) fn size(&self, first: u64) -> usize {
        self.groups.get(&first).and_then(|group| group.size).map_or(self.group as usize, usize::from)
    }

    /// Number of packets of a group that is not ended early.
    pub(super) const fn full(&self) -> usize {
        self.group as usize
    }

    /// The packets of a group.
    pub(super) fn symbols(&self, first: u64) -> Vec<Symbol> {
        let range = self.packets.range(first..first + self.group);
        range.map(|(_, sent)| sent.symbol.clone()).collect()
    }

    /// Ends the group that is being sent, if it has begun: the number of its packets.
    pub(super) fn end_group(&mut self) -> Option<u16> {
        let first = self.group_of(self.next);
        let size = (self.next - first) as u16;
        if size == 0 || !self.packets.contains_key(&first) {
            return None;
        }
        self.next = first + self.group;
        self.groups.entry(first).or_default().size = Some(size);
        Some(size)
    }

    /// Number of packets of the last group that was sent, if it was ended early.
    pub(super) fn ended_early(&self) -> Option<u16> {
        let (&last, _) = self.packets.last_key_value()?;
        self.groups.get(&self.group_of(last))?.size
    }

    /// Last sequence number that was sent.
    pub(super) fn lead(&self) -> u64 {
        self.packets.last_key_value().map_or(self.next - 1, |(&last, _)| last)
    }

    /// Notes that somebody asks for what is in a group.
    pub(super) fn asked(&mut self, now: Instant, sequence: u64) {
        if let Some((_, sent)) = self.packets.range_mut(self.group_of(sequence)..=sequence).next() {
            sent.asked = Some(now);
        }
    }

    /// Makes room for what is sent next. False while somebody asks for the oldest, unless that has lasted for
    /// `patience`.
    pub(super) fn make_room(&mut self, now: Instant, limit: u64, patience: Duration) -> bool {
        while self.bytes > limit && self.trail < self.group_of(self.next) {
            let end = self.group_of(self.trail) + self.group;
            let oldest = self.packets.range(..end).filter_map(|(_, sent)| sent.asked).max();
            let is_wanted = oldest.is_some_and(|asked| now.since(asked) < patience / RECENT);
            if is_wanted && now.since(*self.stalled_since.get_or_insert(now)) < patience {
                return false;
            }
            self.stalled_since = None;
            self.drop_below(end);
        }
        true
    }

    /// Time until which nothing changes about room.
    pub(super) fn room_due(&self, now: Instant, patience: Duration) -> Option<Instant> {
        self.stalled_since.map(|_| now + patience / (2 * RECENT))
    }

    fn drop_below(&mut self, end: u64) {
        let kept = self.packets.split_off(&end);
        let dropped = std::mem::replace(&mut self.packets, kept);
        self.bytes -= dropped.values().map(|sent| cost(&sent.symbol)).sum::<u64>();
        self.groups = self.groups.split_off(&end);
        let next = self.packets.range((Bound::Included(end), Bound::Unbounded)).next();
        self.trail = next.map_or(self.next, |(&first, _)| first);
    }
}

/// Part of the patience within which a request is recent. Chosen: a receiver that still asks does so several times in
/// it.
const RECENT: u64 = 4;
/// Bytes of memory that a packet takes beside its payload.
const COST: u64 = 128;

fn cost(symbol: &Symbol) -> u64 {
    symbol.payload.len() as u64 + COST
}
