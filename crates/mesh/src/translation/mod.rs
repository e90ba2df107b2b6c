//! The translation table (TT): behind which node each client of the mesh is, by VLAN.
//!
//! Each node announces its clients in its own messages: a version, a checksum of each VLAN, and what the last change of
//! the version was. A node that has missed a change asks for it or for the whole table; any node on the way that has
//! it may answer. A client that sends at another node than before has roamed, and that node tells the one before.
//!
//! | file | state |
//! |---|---|
//! | `local` | the clients behind this node |
//! | `global` | those behind others |
//! | `exchange` | no state: announcements, requests and answers |
//! | `crc` | the checksum |

mod crc;
mod exchange;
mod global;
mod local;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant};
use hopcast_wire::ethernet::{self, Mac};

use crate::wire::translation::{Change, DELETED, ROAMED};
use crate::wire::tvlv;
pub(crate) use crc::crc32c;
use global::{Entry, Global};
use local::Local;
pub(crate) use local::Room;

/// Time for which the answer to a request is waited for (`BATADV_TT_REQUEST_TIMEOUT`).
const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);
/// Number of answers that a node gets about one table within [`REQUEST_TIMEOUT`]. Chosen: an honest node asks again as
/// soon as an answer did not bring what the next message announces, once a second, and else waits for the timeout; the
/// kernel answers without end.
const MAX_ANSWERS: u8 = 4;
/// Maximum number of pairs of nodes and tables that answers are counted for, some 0.5 MB. Chosen: twice as many as
/// there are originators, since a node that joins asks for the table of each. Beyond, there are no answers.
const MAX_ANSWERED: usize = 8192;
/// A client may come here from others this often within [`ROAMING_SPAN`], and further times are not told to the node
/// before (`BATADV_ROAMING_MAX_COUNT`).
const MAX_ROAMINGS: u8 = 5;
/// See [`MAX_ROAMINGS`] (`BATADV_ROAMING_MAX_TIME`).
const ROAMING_SPAN: Duration = Duration::from_secs(20);

/// A client's VLAN and address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// The VLAN, with [`TAGGED`](crate::wire::translation::TAGGED), or 0.
    pub vlan: u16,
    /// The client's address.
    pub address: Mac,
}

/// Bounds of what others announce.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) max_clients: usize,
    pub(crate) max_clients_of_node: usize,
}

/// A container that is to be sent to an originator.
#[derive(Debug)]
pub(crate) struct PendingTvlv {
    /// Originator that it is of; `None` for this node.
    pub(crate) source: Option<Mac>,
    pub(crate) destination: Mac,
    pub(crate) kind: u8,
    pub(crate) value: Vec<u8>,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) requests_sent: u64,
    pub(crate) requests_received: u64,
    pub(crate) responses_sent: u64,
    pub(crate) responses_received: u64,
    pub(crate) responses_not_asked_for: u64,
    pub(crate) responses_too_long: u64,
    pub(crate) requests_too_many: u64,
    pub(crate) requests_held_back: u64,
    pub(crate) roamings_sent: u64,
    pub(crate) roamings_received: u64,
    pub(crate) roamings_too_often: u64,
    pub(crate) clients_refused: u64,
    pub(crate) foreign_clients_refused: u64,
}

/// The translation table.
pub(crate) struct Translation {
    local: Local,
    global: Global,
    limits: Limits,
    /// The requests that are not answered, with their time.
    requests: BTreeMap<Mac, Instant>,
    /// For nodes that ask, and the tables that they get (`None` is this node's): how often they may yet, and since
    /// when.
    answered: BTreeMap<(Mac, Option<Mac>), (Instant, u8)>,
    /// For clients that have come here: how often they may yet, and since when.
    roamings: BTreeMap<Key, (Instant, u8)>,
    pending: Vec<PendingTvlv>,
    pub(crate) counters: Counters,
}

impl Translation {
    pub(crate) fn new(limits: Limits) -> Self {
        Self {
            local: Local::default(),
            global: Global::default(),
            limits,
            requests: BTreeMap::new(),
            answered: BTreeMap::new(),
            roamings: BTreeMap::new(),
            pending: Vec::new(),
            counters: Counters::default(),
        }
    }

    /// The containers that are to be sent.
    pub(crate) fn take_pending(&mut self) -> Vec<PendingTvlv> {
        std::mem::take(&mut self.pending)
    }

    /// Notes that a client of this node has sent a frame. Returns whether there was room for it.
    pub(crate) fn register(&mut self, now: Instant, key: Key, permanent: bool, room: Room) -> bool {
        if !self.local.add(now, key, permanent, room) {
            self.counters.clients_refused += 1;
            return false;
        }
        let elsewhere = self.global.get(key).filter(|entry| !entry.is_roaming());
        if let Some(entry) = elsewhere.filter(|_| !ethernet::is_group(key.address)) {
            let announcers: Vec<Mac> = entry.announcers().collect();
            announcers.into_iter().for_each(|announcer| self.tell_of_roaming(now, key, announcer));
            self.global.set_roaming(key, Some(now));
        }
        true
    }

    fn tell_of_roaming(&mut self, now: Instant, key: Key, announcer: Mac) {
        let (since, left) = self.roamings.entry(key).or_insert((now, MAX_ROAMINGS));
        if *since + ROAMING_SPAN <= now {
            (*since, *left) = (now, MAX_ROAMINGS);
        }
        if *left == 0 {
            self.counters.roamings_too_often += 1;
            return;
        }
        *left -= 1;
        self.counters.roamings_sent += 1;
        let value = tvlv::Roaming { client: key.address, vlan: key.vlan }.bytes().to_vec();
        self.pending.push(PendingTvlv { source: None, destination: announcer, kind: tvlv::ROAMING, value });
    }

    /// Has clients of this node leave for which there is no room any more.
    pub(crate) fn shrink(&mut self, room: Room) {
        self.local.shrink(room);
    }

    /// The container of the next message of the node's own; see [`Local::announce`].
    pub(crate) fn announce(&mut self, max_len: usize) -> &[u8] {
        self.local.announce(max_len)
    }

    /// Version of this node's table.
    pub(crate) const fn ttvn(&self) -> u8 {
        self.local.ttvn()
    }

    /// Version of an originator's table, as far as it is known here.
    #[inline]
    pub(crate) fn ttvn_of(&self, originator: Mac) -> u8 {
        self.global.node(originator).map_or(0, |node| node.ttvn)
    }

    /// Whether a client is behind this node.
    #[inline]
    pub(crate) fn is_here(&self, key: Key) -> bool {
        self.local.is_here(key)
    }

    /// Whether a client has just gone from this node to another.
    #[inline]
    pub(crate) fn has_left(&self, key: Key) -> bool {
        self.local.has_roamed(key)
    }

    /// Whether a client is between two nodes.
    #[inline]
    pub(crate) fn is_roaming(&self, key: Key) -> bool {
        self.global.get(key).is_some_and(Entry::is_roaming)
    }

    /// The node that has a client: of several, the one of the best path, as `metric` says.
    #[inline]
    pub(crate) fn find(&self, key: Key, metric: impl Fn(Mac) -> Option<u32>) -> Option<Mac> {
        let mut best: Option<(Mac, u32)> = None;
        for announcer in self.global.get(key)?.announcers() {
            if let Some(found) = metric(announcer)
                && best.is_none_or(|(_, other)| found > other)
            {
                best = Some((announcer, found));
            }
        }
        best.map(|(announcer, _)| announcer)
    }

    /// The nodes that announce a client: of a group, all that want it.
    pub(crate) fn announcers(&self, key: Key) -> impl Iterator<Item = Mac> {
        self.global.get(key).into_iter().flat_map(global::Entry::announcers)
    }

    /// Removes a client of this node that was registered as permanent.
    pub(crate) fn withdraw(&mut self, key: Key) {
        self.local.remove(key, false);
    }

    /// The clients behind this node.
    pub(crate) fn local_clients(&self) -> impl Iterator<Item = Key> {
        self.local.iter()
    }

    /// The clients behind others, with the node of each.
    pub(crate) fn global_clients(&self) -> impl Iterator<Item = (Key, Mac)> {
        self.global.iter()
    }

    /// Number of clients behind others.
    pub(crate) fn len(&self) -> usize {
        self.global.len()
    }

    /// The checksum of this node's clients of a VLAN.
    pub(crate) fn checksum(&self, vlan: u16) -> Option<u32> {
        self.local.checksum(vlan)
    }

    /// The checksum of an originator's clients of a VLAN.
    pub(crate) fn checksum_of(&self, originator: Mac, vlan: u16) -> Option<u32> {
        let found = self.global.node(originator)?.checksums().find(|checksum| checksum.vlan == vlan);
        found.map(|checksum| checksum.crc)
    }

    /// Forgets the clients of an originator to which there is no route; with `entirely`, its version too.
    pub(crate) fn forget(&mut self, originator: Mac, entirely: bool) {
        if entirely {
            self.global.remove_node(originator);
            self.requests.remove(&originator);
        } else {
            self.global.clear_node(originator);
        }
    }

    /// Takes no clients of an originator in a VLAN from now on: it is on one LAN with this node.
    pub(crate) fn exclude(&mut self, originator: Mac, vlan: u16) {
        self.global.exclude(originator, vlan);
    }

    /// Takes them again.
    pub(crate) fn include(&mut self, originator: Mac, vlan: u16) {
        self.global.include(originator, vlan);
    }

    /// Forgets what is over.
    pub(crate) fn purge(&mut self, now: Instant) {
        self.local.purge(now);
        self.global.purge(now);
        self.requests.retain(|_, asked| *asked + REQUEST_TIMEOUT > now);
        self.answered.retain(|_, (since, _)| *since + REQUEST_TIMEOUT > now);
        self.roamings.retain(|_, (since, _)| *since + ROAMING_SPAN > now);
    }

    /// Takes the word of an originator that a client has come to it.
    pub(crate) fn receive_roaming(&mut self, now: Instant, originator: Mac, key: Key) {
        self.counters.roamings_received += 1;
        self.add(now, originator, key, ROAMED);
    }

    /// Notes that a client behind an originator has sent a frame, which may not be announced yet.
    pub(crate) fn hear(&mut self, now: Instant, originator: Mac, key: Key) {
        if ethernet::is_group(key.address)
            || self.local.is_announced(key)
            || self.global.is_excluded(originator, key.vlan)
        {
            return;
        }
        let since = match self.global.get(key) {
            None => now,
            Some(entry) => {
                let Some(since) = entry.unannounced() else { return };
                since
            }
        };
        if !self.global.get(key).is_some_and(|entry| entry.is_announced_by(originator)) {
            self.global.remove(key);
            if self.add_announcer(key, originator, 0) {
                self.global.set_unannounced(key, since);
            }
        }
        self.local.remove(key, false);
    }

    fn add_announcer(&mut self, key: Key, originator: Mac, flags: u8) -> bool {
        let added = self.global.add_announcer(key, originator, flags, self.limits);
        self.counters.foreign_clients_refused += u64::from(!added);
        added
    }

    /// Takes changes of an originator's table, up to the first for which there is no room.
    fn apply(&mut self, now: Instant, originator: Mac, changes: &[Change]) {
        let room = self.apply_all(now, originator, changes);
        let node = self.global.node_mut(originator);
        node.initialised |= room;
        node.note_room(now, room);
    }

    fn apply_all(&mut self, now: Instant, originator: Mac, changes: &[Change]) -> bool {
        for &Change { flags, address, vlan } in changes {
            let key = Key { vlan, address };
            if flags & DELETED != 0 {
                self.delete(now, originator, key, flags & ROAMED != 0);
            } else if !self.add(now, originator, key, flags) {
                return false;
            }
        }
        true
    }

    fn delete(&mut self, now: Instant, originator: Mac, key: Key, roamed: bool) {
        let Some(entry) = self.global.get(key) else { return };
        if !roamed {
            self.global.remove_announcer(key, originator);
        } else if self.local.contains(key) {
            self.global.remove(key);
        } else if entry.announcers().any(|announcer| announcer != originator) {
            self.global.remove_announcer(key, originator);
        } else {
            self.global.set_roaming(key, Some(now));
        }
    }

    /// Adds a client that an originator has, or has just got from another node, if `flags` say that it roamed.
    fn add(&mut self, now: Instant, originator: Mac, key: Key, flags: u8) -> bool {
        if self.global.is_excluded(originator, key.vlan) {
            return true;
        }
        let roamed = flags & ROAMED != 0;
        let entry = self.global.get(key);
        let (known, moved) = (entry.is_some(), entry.is_some_and(|entry| entry.is_provisional() || roamed));
        if moved {
            self.global.remove(key);
        }
        if !self.add_announcer(key, originator, flags) {
            return false;
        }
        if !known && roamed {
            self.global.set_roaming(key, Some(now));
        }
        if !ethernet::is_group(key.address) {
            self.local.remove(key, roamed);
        }
        true
    }
}
