//! The clients behind this node, and what is announced of them.
//!
//! A client is *new* until the next message of the node's own is made, which announces it; one that goes is *leaving*
//! until then, so that a table that is asked for meanwhile is the one that was announced.
//!
//! A VLAN is there as long as it has clients.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant};

use super::{Key, crc};
use crate::wire::ogm::Ogm;
use crate::wire::translation::{CHECKED_FLAGS, Change, Checksum, DELETED, DIFFERENCE, ROAMED, table_data};
use crate::wire::{Header, translation};
use crate::wire::{data, tvlv};

/// Time after which a client that sends nothing is gone (`BATADV_TT_LOCAL_TIMEOUT`).
const TIMEOUT: Duration = Duration::from_secs(600);
/// Number of messages that repeat what has changed, after the first one (`BATADV_TT_OGM_APPEND_MAX`).
const REPEATS: u8 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    New,
    Announced,
    Leaving,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    flags: u8,
    state: State,
    /// It is leaving for another node, by that node's word.
    roamed: bool,
    permanent: bool,
    last_seen: Instant,
}

/// Bounds of the table of a node's own clients, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Room {
    /// Maximum length of a packet, in which the whole table has to be sent.
    pub(crate) packet: usize,
    /// Maximum length of an originator message, which has the checksum of each VLAN.
    pub(crate) message: usize,
}

impl Room {
    const fn has(self, clients: usize, vlans: usize) -> bool {
        let vlans = tvlv::HEADER + translation::HEADER + vlans * translation::CHECKSUM;
        data::UnicastTvlv::LEN + vlans + clients * translation::CHANGE <= self.packet
            && Ogm::LEN + vlans <= self.message
    }
}

/// The clients behind this node.
#[derive(Debug, Default)]
pub(super) struct Local {
    entries: BTreeMap<Key, Entry>,
    /// Number of the entries in each VLAN, those that are new or leave included.
    vlans: BTreeMap<u16, usize>,
    changes: BTreeMap<Key, Change>,
    /// What the last change of the version consisted of, as long as it fitted a message.
    last_changes: Vec<Change>,
    ttvn: u8,
    repeats: u8,
    /// Checksum of each VLAN that has clients, as it was announced last.
    checksums: BTreeMap<u16, u32>,
    /// Value of the container that messages of the node's own have.
    container: Vec<u8>,
}

impl Local {
    pub(super) const fn ttvn(&self) -> u8 {
        self.ttvn
    }

    /// Whether a client is here: neither leaving nor with another node.
    #[inline]
    pub(super) fn is_here(&self, key: Key) -> bool {
        self.entries.get(&key).is_some_and(|entry| entry.state != State::Leaving)
    }

    /// Whether a client was here and has gone to another node, which is not announced yet.
    #[inline]
    pub(super) fn has_roamed(&self, key: Key) -> bool {
        self.entries.get(&key).is_some_and(|entry| entry.roamed)
    }

    pub(super) fn contains(&self, key: Key) -> bool {
        self.entries.contains_key(&key)
    }

    pub(super) fn is_announced(&self, key: Key) -> bool {
        self.entries.get(&key).is_some_and(|entry| entry.state != State::New)
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = Key> {
        self.entries.iter().filter(|(_, entry)| entry.state != State::Leaving).map(|(&key, _)| key)
    }

    /// Notes that a client has sent a frame. Returns whether there was room for it.
    pub(super) fn add(&mut self, now: Instant, key: Key, permanent: bool, room: Room) -> bool {
        if let Some(entry) = self.entries.get_mut(&key) {
            entry.last_seen = now;
            if entry.state == State::Leaving {
                entry.state = State::Announced;
                entry.roamed = false;
                let flags = entry.flags;
                self.note(key, flags);
            }
            return true;
        }
        let vlans = self.vlans.len() + usize::from(!self.vlans.contains_key(&key.vlan));
        if !room.has(self.entries.len() + 1, vlans) {
            return false;
        }
        let entry = Entry { flags: 0, state: State::New, roamed: false, permanent, last_seen: now };
        self.entries.insert(key, entry);
        *self.vlans.entry(key.vlan).or_default() += 1;
        self.note(key, 0);
        true
    }

    /// Has the clients leave that have been silent longest, until the others find room. Those that are permanent stay.
    pub(super) fn shrink(&mut self, room: Room) {
        let staying = self.entries.iter().filter(|(_, entry)| entry.state != State::Leaving);
        let mut silent: Vec<(Instant, Key)> = Vec::new();
        let (mut clients, mut vlans) = (0, BTreeMap::<u16, usize>::new());
        for (&key, entry) in staying {
            clients += 1;
            *vlans.entry(key.vlan).or_default() += 1;
            silent.extend((!entry.permanent).then_some((entry.last_seen, key)));
        }
        silent.sort_unstable();
        for (_, key) in silent {
            if room.has(clients, vlans.len()) {
                return;
            }
            self.remove(key, false);
            clients -= 1;
            discount(&mut vlans, key.vlan);
        }
    }

    /// Removes a client that another node announces.
    pub(super) fn remove(&mut self, key: Key, roamed: bool) {
        let Some(entry) = self.entries.get_mut(&key) else { return };
        if entry.state == State::New {
            self.entries.remove(&key);
            discount(&mut self.vlans, key.vlan);
            self.note(key, DELETED);
            return;
        }
        entry.roamed |= roamed;
        entry.state = State::Leaving;
        let flags = entry.flags | DELETED | if roamed { ROAMED } else { 0 };
        self.note(key, flags);
    }

    /// Notes a change. One that undoes another leaves nothing.
    fn note(&mut self, key: Key, flags: u8) {
        let change = Change { flags, address: key.address, vlan: key.vlan };
        match self.changes.get_mut(&key) {
            Some(before) if (before.flags ^ flags) & DELETED != 0 => {
                self.changes.remove(&key);
            }
            Some(before) => *before = change,
            None => {
                self.changes.insert(key, change);
            }
        }
    }

    /// Removes clients that have not sent for long.
    pub(super) fn purge(&mut self, now: Instant) {
        let gone = |entry: &Entry| {
            !entry.permanent && entry.state != State::Leaving && entry.last_seen + TIMEOUT <= now
        };
        let gone: Vec<Key> =
            self.entries.iter().filter(|(_, entry)| gone(entry)).map(|(&key, _)| key).collect();
        gone.into_iter().for_each(|key| self.remove(key, false));
    }

    /// The container of the next message of the node's own, which announces what has changed: all of it, if it fits
    /// a message of `max_len` bytes, and else only that something has.
    pub(super) fn announce(&mut self, max_len: usize) -> &[u8] {
        if self.changes.is_empty() {
            match self.repeats {
                0 => self.container = self.data(DIFFERENCE, &[]),
                _ => self.repeats -= 1,
            }
            return &self.container;
        }
        self.entries.retain(|_, entry| entry.state != State::Leaving);
        self.entries.values_mut().for_each(|entry| entry.state = State::Announced);
        self.checksums.clear();
        self.vlans.clear();
        for (key, entry) in &self.entries {
            *self.checksums.entry(key.vlan).or_default() ^=
                crc::of_entry(key.vlan, entry.flags & CHECKED_FLAGS, key.address);
            *self.vlans.entry(key.vlan).or_default() += 1;
        }
        self.ttvn = self.ttvn.wrapping_add(1);
        self.repeats = REPEATS;
        let changes: Vec<Change> = std::mem::take(&mut self.changes).into_values().collect();
        let headers = Ogm::LEN + tvlv::HEADER + translation::HEADER;
        let checksums = self.checksums.len() * translation::CHECKSUM;
        let fits = headers + checksums + changes.len() * translation::CHANGE <= max_len;
        self.last_changes = if fits { changes } else { Vec::new() };
        self.container = self.data(DIFFERENCE, &self.last_changes);
        &self.container
    }

    /// What has changed last, if it was announced.
    pub(super) fn last_changes(&self) -> Option<&[Change]> {
        (!self.last_changes.is_empty()).then_some(&self.last_changes)
    }

    /// The whole table, as it was announced last.
    pub(super) fn table(&self) -> Vec<Change> {
        let announced = self.entries.iter().filter(|(_, entry)| entry.state != State::New);
        announced
            .map(|(key, entry)| Change { flags: entry.flags, address: key.address, vlan: key.vlan })
            .collect()
    }

    /// Value of a container with these changes.
    pub(super) fn data(&self, flags: u8, changes: &[Change]) -> Vec<u8> {
        let checksums = self.checksums.iter().map(|(&vlan, &crc)| Checksum { crc, vlan });
        table_data(flags, self.ttvn, checksums, changes.iter().copied())
    }

    /// The checksum of a VLAN, as it was announced last.
    pub(super) fn checksum(&self, vlan: u16) -> Option<u32> {
        self.checksums.get(&vlan).copied()
    }
}

fn discount(vlans: &mut BTreeMap<u16, usize>, vlan: u16) {
    if let Some(clients) = vlans.get_mut(&vlan) {
        *clients -= 1;
        if *clients == 0 {
            vlans.remove(&vlan);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOM: Room = Room { packet: 20_160, message: 1500 };
    const NOW: Instant = Instant::ZERO;
    const CLIENT: Key = Key { vlan: 0, address: [2, 0, 0, 0, 0, 7] };
    const OTHER: Key = Key { vlan: 0, address: [2, 0, 0, 0, 0, 8] };

    #[test]
    fn a_client_that_goes_before_it_is_announced_was_never_there() {
        let mut local = Local::default();
        local.add(NOW, OTHER, true, ROOM);
        local.announce(1500);
        local.add(NOW, CLIENT, false, ROOM);
        local.remove(CLIENT, false);
        local.announce(1500);
        assert_eq!((local.ttvn(), local.table().len(), local.contains(CLIENT)), (1, 1, false));
    }

    #[test]
    fn a_client_that_leaves_is_in_the_table_until_that_is_announced() {
        let mut local = Local::default();
        local.add(NOW, CLIENT, false, ROOM);
        local.add(NOW, OTHER, false, ROOM);
        local.announce(1500);
        local.remove(CLIENT, true);
        assert_eq!((local.table().len(), local.is_here(CLIENT), local.has_roamed(CLIENT)), (2, false, true));
        local.announce(1500);
        assert_eq!((local.ttvn(), local.table().len()), (2, 1));
        let change = Change { flags: DELETED | ROAMED, address: CLIENT.address, vlan: 0 };
        assert_eq!(local.last_changes(), Some(&[change][..]));
    }

    #[test]
    fn changes_are_repeated_three_times_and_left_out_if_they_are_too_long() {
        let mut local = Local::default();
        local.add(NOW, CLIENT, false, ROOM);
        let lengths: Vec<usize> = (0..5).map(|_| local.announce(1500).len()).collect();
        assert_eq!(lengths, [24, 24, 24, 24, 12]);
        local.add(NOW, OTHER, false, ROOM);
        assert_eq!(local.announce(11).len(), 12);
        assert_eq!((local.ttvn(), local.last_changes()), (2, None));
        // The table has to fit one packet.
        let third = Key { vlan: 0, address: [2, 0, 0, 0, 0, 9] };
        let len = 20 + 4 + 4 + 8 + 3 * 12;
        assert!(!local.add(NOW, third, false, Room { packet: len - 1, ..ROOM }));
        assert!(local.add(NOW, third, false, Room { packet: len, ..ROOM }));
    }

    #[test]
    fn vlans_are_counted_before_they_are_announced_and_forgotten_with_their_last_client() {
        let mut local = Local::default();
        let client = |vlan: u16| Key { vlan: 0x8000 | vlan, ..CLIENT };
        // The checksums of a message: 8 bytes each behind 32.
        let room = Room { message: 32 + 3 * 8, ..ROOM };
        let added: Vec<bool> = (1..=4).map(|vlan| local.add(NOW, client(vlan), false, room)).collect();
        assert_eq!(added, [true, true, true, false]);
        local.remove(client(3), false);
        assert!(local.add(NOW, client(4), false, room), "one that was never announced makes room at once");
        local.announce(1500);
        local.remove(client(4), false);
        assert!(!local.add(NOW, client(5), false, room), "another with the next message");
        local.announce(1500);
        assert!(local.add(NOW, client(5), false, room));
        local.announce(1500);
        assert_eq!(
            [1, 2, 4, 5].map(|vlan| local.checksum(0x8000 | vlan).is_some()),
            [true, true, false, true]
        );
        local.purge(NOW + TIMEOUT);
        local.announce(1500);
        assert!(local.checksums.is_empty() && local.vlans.is_empty());
    }

    #[test]
    fn a_table_that_has_less_room_loses_those_that_have_been_silent_longest() {
        let mut local = Local::default();
        let client = |last: u8| Key { vlan: 0, address: [2, 0, 0, 0, 1, last] };
        let at = |seconds| NOW + Duration::from_secs(seconds);
        assert!(local.add(NOW, CLIENT, true, ROOM));
        for last in 0..10 {
            local.add(at(u64::from(20 - last)), client(last), false, ROOM);
        }
        local.announce(1500);
        local.remove(client(0), false);
        let room = |clients: usize| Room { packet: 20 + 4 + 4 + 8 + clients * 12, ..ROOM };
        local.shrink(room(5));
        let left = |local: &Local| local.iter().map(|key| key.address[5]).collect::<Vec<_>>();
        assert_eq!(left(&local), [7, 1, 2, 3, 4], "the permanent one, and the four that sent last");
        local.announce(1500);
        assert_eq!(local.table().len(), 5);
        local.shrink(room(0));
        assert_eq!(left(&local), [7]);
    }

    #[test]
    fn changes_that_fit_only_without_the_headers_of_their_message_are_left_out() {
        for (clients, announced) in [(121, 121), (122, 0)] {
            let mut local = Local::default();
            for client in 0..clients {
                local.add(NOW, Key { vlan: 0, address: [2, 0, 0, 0, 1, client] }, false, ROOM);
            }
            assert_eq!(local.announce(1500).len(), 12 + 12 * announced);
        }
    }
}
