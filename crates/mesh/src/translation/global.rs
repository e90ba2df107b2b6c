//! The clients behind other nodes, as those announce them.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_core::{Duration, Instant};
use hopcast_wire::ethernet::Mac;

use super::{Key, Limits, VlanSummaries, crc};
use crate::wire::translation::{CHECKED_FLAGS, Change, Checksum};

/// Time after which a client is forgotten that has gone to another node, or has sent without being announced, if no
/// node announces it (`BATADV_TT_CLIENT_ROAM_TIMEOUT`, `BATADV_TT_CLIENT_TEMP_TIMEOUT`).
const UNCLAIMED_TIMEOUT: Duration = Duration::from_secs(600);

/// A client behind one or several nodes.
#[derive(Debug)]
pub(super) struct Entry {
    /// Since when it is between two nodes.
    pub(super) roaming: Option<Instant>,
    /// Since when it has sent without having been announced.
    pub(super) unannounced: Option<Instant>,
    announcers: Vec<Announcer>,
}

/// A node that has a client.
#[derive(Clone, Copy, Debug)]
struct Announcer {
    originator: Mac,
    flags: u8,
}

/// The table of one node.
#[derive(Debug, Default)]
pub(super) struct NodeTable {
    /// Whether there is a table at all.
    pub(super) initialised: bool,
    pub(super) ttvn: u8,
    pub(super) last_changes: Vec<Change>,
    keys: BTreeSet<Key>,
    summaries: VlanSummaries,
}

/// The clients behind other nodes.
#[derive(Debug, Default)]
pub(super) struct Global {
    entries: BTreeMap<Key, Entry>,
    nodes: BTreeMap<Mac, NodeTable>,
}

impl Global {
    #[inline]
    pub(super) fn get(&self, key: Key) -> Option<&Entry> {
        self.entries.get(&key)
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut Entry> {
        self.entries.get_mut(&key)
    }

    pub(super) fn node(&self, originator: Mac) -> Option<&NodeTable> {
        self.nodes.get(&originator)
    }

    pub(super) fn node_mut(&mut self, originator: Mac) -> &mut NodeTable {
        self.nodes.entry(originator).or_default()
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The clients, with the nodes that have them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, Mac)> {
        self.entries.iter().flat_map(|(&key, entry)| {
            entry.announcers.iter().map(move |announcer| (key, announcer.originator))
        })
    }

    /// Notes that a node has a client, and makes an entry if there is none. Returns whether there was room.
    pub(super) fn add_announcer(&mut self, key: Key, originator: Mac, flags: u8, limits: Limits) -> bool {
        let known = self.entries.contains_key(&key);
        let node = self.nodes.entry(originator).or_default();
        if !known && self.entries.len() >= limits.max_clients
            || !node.keys.contains(&key) && node.keys.len() >= limits.max_clients_of_node
        {
            return false;
        }
        let entry = self.entries.entry(key).or_insert(Entry {
            roaming: None,
            unannounced: None,
            announcers: Vec::new(),
        });
        let flags = flags & CHECKED_FLAGS;
        match entry.announcers.iter_mut().find(|announcer| announcer.originator == originator) {
            Some(announcer) => announcer.flags = flags,
            None => {
                entry.announcers.push(Announcer { originator, flags });
                node.keys.insert(key);
                node.summaries.count(key.vlan);
            }
        }
        true
    }

    /// Notes that a node has a client no more. The entry is forgotten with its last node.
    pub(super) fn remove_announcer(&mut self, key: Key, originator: Mac) {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.announcers.retain(|announcer| announcer.originator != originator);
            if entry.announcers.is_empty() {
                self.entries.remove(&key);
            }
        }
        if let Some(node) = self.nodes.get_mut(&originator)
            && node.keys.remove(&key)
        {
            node.summaries.discount(key.vlan);
        }
    }

    /// Notes that no node has a client any more, and keeps its entry.
    pub(super) fn remove_announcers(&mut self, key: Key) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        for Announcer { originator, .. } in std::mem::take(&mut entry.announcers) {
            if let Some(node) = self.nodes.get_mut(&originator)
                && node.keys.remove(&key)
            {
                node.summaries.discount(key.vlan);
            }
        }
    }

    /// Forgets a client.
    pub(super) fn remove(&mut self, key: Key) {
        self.remove_announcers(key);
        self.entries.remove(&key);
    }

    /// Forgets the clients of a node: its table is not known any more.
    pub(super) fn clear_node(&mut self, originator: Mac) {
        let Some(node) = self.nodes.get_mut(&originator) else { return };
        node.initialised = false;
        let keys = std::mem::take(&mut node.keys);
        node.summaries = VlanSummaries::default();
        for key in keys {
            if let Some(entry) = self.entries.get_mut(&key) {
                entry.announcers.retain(|announcer| announcer.originator != originator);
                if entry.announcers.is_empty() {
                    self.entries.remove(&key);
                }
            }
        }
    }

    /// Forgets a node, and its clients.
    pub(super) fn remove_node(&mut self, originator: Mac) {
        self.clear_node(originator);
        self.nodes.remove(&originator);
    }

    /// Computes the checksums of a node's table anew. Clients that are not announced, or between two nodes, do not
    /// count.
    pub(super) fn update_checksums(&mut self, originator: Mac) {
        let Some(node) = self.nodes.get_mut(&originator) else { return };
        node.summaries.0.values_mut().for_each(|summary| summary.crc = 0);
        for key in &node.keys {
            let Some(entry) = self.entries.get(key) else { continue };
            let announcer = entry.announcers.iter().find(|announcer| announcer.originator == originator);
            if let Some(announcer) = announcer.filter(|_| entry.counts())
                && let Some(summary) = node.summaries.0.get_mut(&key.vlan)
            {
                summary.crc ^= crc::of_entry(key.vlan, announcer.flags, key.address);
            }
        }
    }

    /// Whether a node's table has these checksums, and no other VLANs.
    pub(super) fn agrees(&self, originator: Mac, checksums: impl ExactSizeIterator<Item = Checksum>) -> bool {
        let empty = VlanSummaries::default();
        let summaries = self.nodes.get(&originator).map_or(&empty, |node| &node.summaries);
        summaries.0.len() <= checksums.len()
            && checksums.into_iter().all(|Checksum { crc, vlan }| {
                summaries.0.get(&vlan).is_some_and(|summary| summary.crc == crc)
            })
    }

    /// The whole table of a node.
    pub(super) fn table(&self, originator: Mac) -> Vec<Change> {
        let keys = self.nodes.get(&originator).into_iter().flat_map(|node| &node.keys);
        let change = |key: &Key| {
            let entry = self.entries.get(key).filter(|entry| entry.counts())?;
            let announcer = entry.announcers.iter().find(|announcer| announcer.originator == originator)?;
            Some(Change { flags: announcer.flags, address: key.address, vlan: key.vlan })
        };
        keys.filter_map(change).collect()
    }

    /// Forgets clients that no node has announced for long.
    pub(super) fn purge(&mut self, now: Instant) {
        let is_over = |since: Option<Instant>| since.is_some_and(|since| since + UNCLAIMED_TIMEOUT <= now);
        let over =
            self.entries.iter().filter(|(_, entry)| is_over(entry.roaming) || is_over(entry.unannounced));
        let over: Vec<Key> = over.map(|(&key, _)| key).collect();
        over.into_iter().for_each(|key| self.remove(key));
    }
}

impl Entry {
    /// Whether it belongs to what its nodes have announced.
    const fn counts(&self) -> bool {
        self.roaming.is_none() && self.unannounced.is_none()
    }

    /// The nodes that have it.
    pub(super) fn announcers(&self) -> impl Iterator<Item = Mac> {
        self.announcers.iter().map(|announcer| announcer.originator)
    }

    pub(super) fn is_announced_by(&self, originator: Mac) -> bool {
        self.announcers().any(|announcer| announcer == originator)
    }
}

impl NodeTable {
    /// The checksums, in the order of the VLANs.
    pub(super) fn checksums(&self) -> impl ExactSizeIterator<Item = Checksum> {
        self.summaries.checksums()
    }
}
