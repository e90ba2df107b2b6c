//! The clients behind other nodes, as those announce them.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_core::{Duration, Instant};
use hopcast_wire::ethernet::{self, Mac};

use super::{Key, Limits, REQUEST_TIMEOUT, crc};
use crate::address_map::AddressMap;
use crate::wire::translation::{CHECKED_FLAGS, Change, Checksum};

/// Time after which a client is forgotten that has gone to another node, or has sent without being announced, if no
/// node announces it (`BATADV_TT_CLIENT_ROAM_TIMEOUT`, `BATADV_TT_CLIENT_TEMP_TIMEOUT`).
const UNCLAIMED_TIMEOUT: Duration = Duration::from_secs(600);
/// Maximum number of nodes that announce one client, but for groups, which every node may announce. Chosen: far more
/// than nodes share a bridge; each frame for the client looks at all of them. The kernel has no bound.
const MAX_ANNOUNCERS: usize = 64;

/// Number of times that the pause doubles after which a node is asked again whose clients there was no room for: up to
/// 192 seconds. Chosen: a whole table may take 16 packets on each hop, and room comes when others are forgotten, after
/// 200 seconds. The kernel, where only memory is a bound, asks every three seconds for ever.
const MAX_DOUBLINGS: u32 = 6;

/// A client behind one or several nodes.
#[derive(Debug)]
pub(super) struct Entry {
    /// Since when it is between two nodes.
    roaming: Option<Instant>,
    /// Since when it has sent without having been announced.
    unannounced: Option<Instant>,
    /// The nodes that announce it, at least one, in the order of their addresses.
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
    last_changes: Vec<Change>,
    keys: BTreeSet<Key>,
    vlans: BTreeMap<u16, Vlan>,
    /// Number of times in a row that there was no room for its clients, and when it may be asked again.
    refusals: u32,
    ask_after: Option<Instant>,
    /// VLANs whose checksum has changed since the checksums were updated.
    changed: BTreeSet<u16>,
}

/// The clients of a node in one VLAN.
#[derive(Clone, Copy, Debug, Default)]
struct Vlan {
    clients: usize,
    /// The checksum that was right when the checksums were updated. A client that roams meanwhile does not change it,
    /// since its node has not announced that yet.
    crc: u32,
    /// The checksum of those that count now.
    present: u32,
}

/// The clients behind other nodes.
#[derive(Debug, Default)]
pub(super) struct Global {
    entries: BTreeMap<Key, Entry>,
    nodes: AddressMap<NodeTable>,
    /// Number of pairs of a client and a node that announces it.
    announcements: usize,
    /// Number of changes that are kept, of all nodes.
    changes: usize,
    /// Nodes whose clients in a VLAN are not taken.
    excluded: BTreeSet<(Mac, u16)>,
}

impl Global {
    #[inline]
    pub(super) fn get(&self, key: Key) -> Option<&Entry> {
        self.entries.get(&key)
    }

    pub(super) fn node(&self, originator: Mac) -> Option<&NodeTable> {
        self.nodes.get(originator)
    }

    pub(super) fn node_mut(&mut self, originator: Mac) -> &mut NodeTable {
        self.nodes.or_default(originator)
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Number of pairs of a client and a node that announces it.
    #[cfg(test)]
    pub(super) const fn announcements(&self) -> usize {
        self.announcements
    }

    /// The clients, with the nodes that have them.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, Mac)> {
        self.entries
            .iter()
            .flat_map(|(&key, entry)| entry.announcers().map(move |announcer| (key, announcer)))
    }

    /// Notes that a node has a client, and makes an entry if there is none. Returns whether there was room.
    pub(super) fn add_announcer(&mut self, key: Key, originator: Mac, flags: u8, limits: Limits) -> bool {
        let flags = flags & CHECKED_FLAGS;
        let node = self.nodes.or_default(originator);
        let entry = self.entries.get_mut(&key);
        let place = entry.as_ref().map_or(Err(0), |entry| entry.place(originator));
        let announcers = entry.as_ref().map_or(0, |entry| entry.announcers.len());
        match (entry, place) {
            (Some(entry), Ok(place)) => {
                let before = std::mem::replace(&mut entry.announcers[place].flags, flags);
                if entry.counts() && before != flags {
                    node.toggle(key, before);
                    node.toggle(key, flags);
                }
                return true;
            }
            _ if self.announcements >= limits.max_clients
                || node.keys.len() >= limits.max_clients_of_node
                || announcers >= MAX_ANNOUNCERS && !ethernet::is_group(key.address) =>
            {
                return false;
            }
            (Some(entry), Err(place)) => {
                entry.announcers.insert(place, Announcer { originator, flags });
                node.insert(key, flags, entry.counts());
            }
            (None, _) => {
                let announcers = vec![Announcer { originator, flags }];
                self.entries.insert(key, Entry { roaming: None, unannounced: None, announcers });
                node.insert(key, flags, true);
            }
        }
        self.announcements += 1;
        true
    }

    /// Notes that a node has a client no more. The entry is forgotten with its last node.
    pub(super) fn remove_announcer(&mut self, key: Key, originator: Mac) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let Ok(place) = entry.place(originator) else { return };
        let (flags, counted) = (entry.announcers.remove(place).flags, entry.counts());
        if entry.announcers.is_empty() {
            self.entries.remove(&key);
        }
        self.announcements -= 1;
        if let Some(node) = self.nodes.get_mut(originator) {
            node.remove(key, flags, counted);
        }
    }

    /// Forgets a client.
    pub(super) fn remove(&mut self, key: Key) {
        let Some(entry) = self.entries.remove(&key) else { return };
        self.announcements -= entry.announcers.len();
        for &Announcer { originator, flags } in &entry.announcers {
            if let Some(node) = self.nodes.get_mut(originator) {
                node.remove(key, flags, entry.counts());
            }
        }
    }

    /// Notes that a client is between two nodes since then, or is not.
    pub(super) fn set_roaming(&mut self, key: Key, since: Option<Instant>) {
        self.set(key, |entry| entry.roaming = since);
    }

    /// Notes that a client has sent since then without having been announced.
    pub(super) fn set_unannounced(&mut self, key: Key, since: Instant) {
        self.set(key, |entry| entry.unannounced = Some(since));
    }

    fn set(&mut self, key: Key, change: impl FnOnce(&mut Entry)) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        let counted = entry.counts();
        change(entry);
        if entry.counts() == counted {
            return;
        }
        for &Announcer { originator, flags } in &entry.announcers {
            if let Some(node) = self.nodes.get_mut(originator) {
                node.toggle(key, flags);
            }
        }
    }

    /// Keeps what a node has changed last, for those who ask. If there is no room, they get its whole table.
    pub(super) fn keep_changes(&mut self, originator: Mac, changes: Vec<Change>, limits: Limits) {
        let node = self.nodes.or_default(originator);
        self.changes -= node.last_changes.len();
        let fits = self.changes + changes.len() <= limits.max_clients;
        node.last_changes = if fits { changes } else { Vec::new() };
        self.changes += node.last_changes.len();
    }

    /// Forgets the clients of a node: its table is not known any more.
    pub(super) fn clear_node(&mut self, originator: Mac) {
        let Some(node) = self.nodes.get_mut(originator) else { return };
        node.initialised = false;
        let keys = std::mem::take(&mut node.keys);
        node.vlans.clear();
        node.changed.clear();
        self.announcements -= keys.len();
        for key in keys {
            if let Some(entry) = self.entries.get_mut(&key) {
                if let Ok(place) = entry.place(originator) {
                    entry.announcers.remove(place);
                }
                if entry.announcers.is_empty() {
                    self.entries.remove(&key);
                }
            }
        }
    }

    /// Forgets a node, and its clients.
    pub(super) fn remove_node(&mut self, originator: Mac) {
        self.clear_node(originator);
        if let Some(node) = self.nodes.remove(originator) {
            self.changes -= node.last_changes.len();
        }
    }

    /// Whether a node's table has these checksums, and no other VLANs.
    pub(super) fn agrees(
        &self,
        originator: Mac,
        mut checksums: impl ExactSizeIterator<Item = Checksum>,
    ) -> bool {
        let empty = BTreeMap::new();
        let vlans = self.nodes.get(originator).map_or(&empty, |node| &node.vlans);
        vlans.len() <= checksums.len()
            && checksums.all(|Checksum { crc, vlan }| {
                vlans.get(&vlan).is_some_and(|summary| summary.crc == crc)
                    || self.is_excluded(originator, vlan)
            })
    }

    /// Forgets the clients of a node in a VLAN, and takes none any more.
    pub(super) fn exclude(&mut self, originator: Mac, vlan: u16) {
        self.excluded.insert((originator, vlan));
        let node = self.nodes.get(originator).into_iter();
        let keys: Vec<Key> =
            node.flat_map(|node| &node.keys).filter(|key| key.vlan == vlan).copied().collect();
        keys.into_iter().for_each(|key| self.remove_announcer(key, originator));
    }

    /// Takes the clients of a node in a VLAN again.
    pub(super) fn include(&mut self, originator: Mac, vlan: u16) {
        self.excluded.remove(&(originator, vlan));
    }

    /// Whether the clients of a node in a VLAN are not taken.
    pub(super) fn is_excluded(&self, originator: Mac, vlan: u16) -> bool {
        self.excluded.contains(&(originator, vlan))
    }

    /// Whether what is known of a node's table may not be all of it.
    pub(super) fn is_partial(&self, originator: Mac) -> bool {
        self.excluded.range((originator, 0)..=(originator, u16::MAX)).next().is_some()
    }

    /// The whole table of a node.
    pub(super) fn table(&self, originator: Mac) -> Vec<Change> {
        let keys = self.nodes.get(originator).into_iter().flat_map(|node| &node.keys);
        let change = |key: &Key| {
            let entry = self.entries.get(key).filter(|entry| entry.counts())?;
            let Announcer { flags, .. } = entry.announcers[entry.place(originator).ok()?];
            Some(Change { flags, address: key.address, vlan: key.vlan })
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
    /// Whether it is between two nodes.
    pub(super) const fn is_roaming(&self) -> bool {
        self.roaming.is_some()
    }

    /// Since when it has sent without having been announced.
    pub(super) const fn unannounced(&self) -> Option<Instant> {
        self.unannounced
    }

    /// Whether it is between two nodes, or not announced yet.
    pub(super) const fn is_provisional(&self) -> bool {
        self.roaming.is_some() || self.unannounced.is_some()
    }

    /// Whether it belongs to what its nodes have announced.
    const fn counts(&self) -> bool {
        !self.is_provisional()
    }

    /// Where a node is among the announcers, or would be.
    fn place(&self, originator: Mac) -> Result<usize, usize> {
        self.announcers.binary_search_by_key(&originator, |announcer| announcer.originator)
    }

    /// The nodes that have it.
    pub(super) fn announcers(&self) -> impl Iterator<Item = Mac> {
        self.announcers.iter().map(|announcer| announcer.originator)
    }

    pub(super) fn is_announced_by(&self, originator: Mac) -> bool {
        self.place(originator).is_ok()
    }
}

impl NodeTable {
    /// Notes whether there was room for all of its clients. Where there was not, its table would be asked for in vain.
    pub(super) fn note_room(&mut self, now: Instant, room: bool) {
        self.refusals = if room { 0 } else { (self.refusals + 1).min(MAX_DOUBLINGS) };
        self.ask_after = (!room).then(|| now + REQUEST_TIMEOUT * (1 << self.refusals));
    }

    /// Whether it may be asked for its table.
    pub(super) fn may_be_asked(&self, now: Instant) -> bool {
        self.ask_after.is_none_or(|after| after <= now)
    }

    pub(super) fn last_changes(&self) -> &[Change] {
        &self.last_changes
    }

    /// The checksums, in the order of the VLANs.
    pub(super) fn checksums(&self) -> impl ExactSizeIterator<Item = Checksum> {
        self.vlans.iter().map(|(&vlan, summary)| Checksum { crc: summary.crc, vlan })
    }

    /// Takes the checksums for right that its clients have now.
    pub(super) fn update_checksums(&mut self) {
        while let Some(vlan) = self.changed.pop_first() {
            if let Some(vlan) = self.vlans.get_mut(&vlan) {
                vlan.crc = vlan.present;
            }
        }
    }

    /// Adds a client that counts, or takes it out.
    fn toggle(&mut self, key: Key, flags: u8) {
        if let Some(vlan) = self.vlans.get_mut(&key.vlan) {
            vlan.present ^= crc::of_entry(key.vlan, flags, key.address);
            self.changed.insert(key.vlan);
        }
    }

    fn insert(&mut self, key: Key, flags: u8, counts: bool) {
        self.keys.insert(key);
        self.vlans.entry(key.vlan).or_default().clients += 1;
        if counts {
            self.toggle(key, flags);
        }
    }

    fn remove(&mut self, key: Key, flags: u8, counted: bool) {
        self.keys.remove(&key);
        if counted {
            self.toggle(key, flags);
        }
        if let Some(vlan) = self.vlans.get_mut(&key.vlan) {
            vlan.clients -= 1;
            if vlan.clients == 0 {
                self.vlans.remove(&key.vlan);
                self.changed.remove(&key.vlan);
            }
        }
    }
}
