//! The neighbours of one interface, a bounded number of them.

use std::collections::BTreeMap;
use std::net::IpAddr;

use super::counters::Counters;
use super::entry::{Entry, State};
use super::reachable::ReachableTime;

/// The neighbours of one interface.
#[derive(Debug, Default)]
pub(super) struct Table {
    entries: BTreeMap<IpAddr, Entry>,
    pub(super) reachable_time: ReachableTime,
}

impl Table {
    #[inline]
    pub(super) fn get_mut(&mut self, address: IpAddr) -> Option<&mut Entry> {
        self.entries.get_mut(&address)
    }

    pub(super) fn get(&self, address: IpAddr) -> Option<&Entry> {
        self.entries.get(&address)
    }

    pub(super) fn insert(&mut self, address: IpAddr, entry: Entry) {
        self.entries.insert(address, entry);
    }

    pub(super) fn remove(&mut self, address: IpAddr) {
        self.entries.remove(&address);
    }

    /// Makes room for one more entry of at most `limit`, which is `wanted` if a packet is to be sent to it; returns
    /// false if there is no room. It evicts the least recently used entry, first of those that were never used to send;
    /// an entry that is not wanted replaces only one of these. Incomplete entries stay: packets wait for them, and they
    /// end by themselves.
    ///
    /// It iterates over all entries, which takes as long as a few packets, and only where the table is full.
    pub(super) fn make_room(&mut self, limit: usize, wanted: bool, counters: &mut Counters) -> bool {
        if self.entries.len() < limit {
            return true;
        }
        let idle = self.entries.iter().filter(|(_, entry)| match entry.state {
            State::Incomplete(_) => false,
            State::Reachable(_) | State::Stale | State::Delay | State::Probe(_) => {
                wanted || entry.last_used.is_none()
            }
        });
        let oldest = idle.min_by_key(|(_, entry)| (entry.last_used, entry.made));
        match oldest.map(|(&address, _)| address) {
            Some(address) => {
                self.entries.remove(&address);
                counters.neighbours_evicted += 1;
                true
            }
            None => {
                counters.neighbours_refused += 1;
                false
            }
        }
    }
}
