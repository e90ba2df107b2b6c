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

    /// Makes room for one more entry of at most `limit`, which is `wanted` if a packet is to be sent to it; false if there
    /// is none. The entry that was not used to send for the longest time goes, those first that never were; one that is
    /// only heard of replaces no other kind. What is being asked for stays: packets wait for it, and it ends by itself.
    ///
    /// It looks at all entries, which takes as long as a few packets, and only where the table is full.
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
