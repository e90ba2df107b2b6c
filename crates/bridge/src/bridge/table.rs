//! The forwarding table: behind which port each station is.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant};
use hopcast_wire::ethernet::Mac;

/// Minimum time between two searches for addresses that have aged. Chosen: what has aged is not used in any case, so
/// that it only costs memory; searching more often costs time when many addresses age one after another.
const SWEEP_GAP: Duration = Duration::from_secs(1);

/// The stations that have sent, by VLAN and address. A tree, so that no choice of addresses makes a search long.
#[derive(Debug)]
pub(super) struct ForwardingTable {
    entries: BTreeMap<Key, Entry>,
    ageing: Duration,
    max: usize,
    /// Time of the next search for addresses that have aged, while there are any at all.
    sweep_at: Option<Instant>,
}

/// A VLAN, or 0, and an address in it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Key(u64);

impl Key {
    /// The key of an address in a VLAN.
    #[inline]
    pub(super) const fn new(vlan: u16, [a, b, c, d, e, f]: Mac) -> Self {
        let [v0, v1] = vlan.to_be_bytes();
        Self(u64::from_be_bytes([v0, v1, a, b, c, d, e, f]))
    }
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    port: u32,
    seen: Instant,
}

/// Result of learning an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Learned {
    /// It was known behind that port.
    Known,
    /// It was not known.
    New,
    /// It was known behind another port.
    Moved,
    /// It is not known, and there is no room for it.
    Refused,
}

impl ForwardingTable {
    pub(super) const fn new(ageing: Duration, max: usize) -> Self {
        Self { entries: BTreeMap::new(), ageing, max, sweep_at: None }
    }

    /// Notes that a station has sent a frame that arrived on `port`.
    #[inline]
    pub(super) fn learn(&mut self, now: Instant, key: Key, port: usize) -> Learned {
        if self.ageing.is_zero() {
            return Learned::Known;
        }
        let new = Entry { port: port as u32, seen: now };
        if let Some(entry) = self.entries.get_mut(&key) {
            let (old, ageing) = (std::mem::replace(entry, new), self.ageing);
            return match (old.port == new.port, old.seen + ageing > now) {
                (_, false) => Learned::New,
                (true, true) => Learned::Known,
                (false, true) => Learned::Moved,
            };
        }
        if self.entries.len() >= self.max {
            return Learned::Refused;
        }
        self.entries.insert(key, new);
        self.sweep_at.get_or_insert(now + self.ageing);
        Learned::New
    }

    /// The port behind which a station is, if that is known.
    #[inline]
    pub(super) fn port(&self, now: Instant, key: Key) -> Option<usize> {
        let entry = self.entries.get(&key)?;
        (entry.seen + self.ageing > now).then_some(entry.port as usize)
    }

    /// Number of addresses that it holds, those included that have aged and are not removed yet.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Time at which to call `sweep`.
    pub(super) const fn deadline(&self) -> Option<Instant> {
        self.sweep_at
    }

    /// Removes the addresses that have aged, if it is time to.
    pub(super) fn sweep(&mut self, now: Instant) {
        if self.sweep_at.is_none_or(|at| at > now) {
            return;
        }
        let mut oldest: Option<Instant> = None;
        let ageing = self.ageing;
        self.entries.retain(|_, entry| {
            let kept = entry.seen + ageing > now;
            if kept {
                oldest = Some(oldest.map_or(entry.seen, |oldest| oldest.min(entry.seen)));
            }
            kept
        });
        self.sweep_at = oldest.map(|oldest| (oldest + ageing).max(now + SWEEP_GAP));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AGEING: Duration = Duration::from_secs(300);

    fn at(seconds: u64) -> Instant {
        Instant::ZERO + Duration::from_secs(seconds)
    }

    fn key(station: u8) -> Key {
        Key::new(7, [2, 0, 0, 0, 0, station])
    }

    #[test]
    fn an_address_is_known_until_it_has_aged_and_behind_the_port_of_its_last_frame() {
        let mut table = ForwardingTable::new(AGEING, 10);
        assert_eq!(table.learn(at(0), key(1), 3), Learned::New);
        assert_eq!(table.port(at(299), key(1)), Some(3));
        assert_eq!(table.port(at(299), Key::new(8, [2, 0, 0, 0, 0, 1])), None);
        assert_eq!(table.port(at(300), key(1)), None);
        assert_eq!(table.learn(at(299), key(1), 3), Learned::Known);
        assert_eq!(table.learn(at(400), key(1), 4), Learned::Moved);
        assert_eq!(table.port(at(699), key(1)), Some(4));
        // Aged, it has not moved.
        assert_eq!(table.learn(at(700), key(1), 5), Learned::New);
    }

    #[test]
    fn a_full_table_refuses_addresses_until_others_have_aged() {
        let mut table = ForwardingTable::new(AGEING, 2);
        assert_eq!(
            [1, 2, 3].map(|s| table.learn(at(u64::from(s)), key(s), 0)),
            [Learned::New, Learned::New, Learned::Refused]
        );
        assert_eq!(table.deadline(), Some(at(301)));
        table.sweep(at(300));
        assert_eq!(table.len(), 2);
        table.sweep(at(301));
        assert_eq!((table.len(), table.deadline()), (1, Some(at(302))));
        assert_eq!(table.learn(at(301), key(3), 0), Learned::New);
        table.sweep(at(302));
        table.sweep(at(601));
        assert_eq!((table.len(), table.deadline()), (0, None));
    }

    #[test]
    fn addresses_that_age_one_after_another_are_not_searched_for_at_each() {
        let mut table = ForwardingTable::new(AGEING, 1000);
        let mut sweeps = 0;
        for step in 0..1000_u64 {
            let now = Instant::ZERO + Duration::from_millis(step);
            table.learn(now, Key(step), 0);
        }
        while let Some(at) = table.deadline() {
            table.sweep(at);
            sweeps += 1;
        }
        assert_eq!(sweeps, 2);
    }

    #[test]
    fn without_ageing_nothing_is_learned() {
        let mut table = ForwardingTable::new(Duration::ZERO, 10);
        assert_eq!(table.learn(at(0), key(1), 3), Learned::Known);
        assert_eq!((table.port(at(0), key(1)), table.len()), (None, 0));
    }
}
