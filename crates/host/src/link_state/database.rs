//! The advertisements of an area, as a router knows them (RFC 2328 section 12.2).

use std::collections::{BTreeMap, BTreeSet};

use hopcast_core::{Agenda, Duration, Instant};

use super::wire::{Advertisement, Header, Key, Kind, MAX_AGE};

/// Age that an advertisement gains on each link, in seconds (*InfTransDelay*, RFC 2328 appendix C.3), so that none goes
/// round for ever.
const TRANSIT_AGE: u16 = 1;

/// The advertisements of an area.
#[derive(Debug, Default)]
pub(super) struct Database {
    entries: BTreeMap<Key, Entry>,
    /// Time at which each is over.
    ends: Agenda<Key>,
    /// Those that are over, and that neighbours may still have to be told of.
    over: BTreeSet<Key>,
}

#[derive(Debug)]
struct Entry {
    /// As it was when it was installed.
    advertisement: Advertisement,
    since: Instant,
    /// Whether it came from a neighbour.
    received: bool,
}

impl Entry {
    fn age(&self, now: Instant) -> u16 {
        let seconds = now.since(self.since).as_millis() / 1000;
        let age = u64::from(self.advertisement.header.age) + seconds;
        age.min(MAX_AGE.into()) as u16
    }
}

impl Database {
    /// Number of advertisements.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// The header of an advertisement as it is now.
    pub(super) fn header(&self, now: Instant, key: Key) -> Option<Header> {
        let entry = self.entries.get(&key)?;
        Some(Header { age: entry.age(now), ..entry.advertisement.header })
    }

    /// An advertisement as it is sent now.
    pub(super) fn to_send(&self, now: Instant, key: Key) -> Option<Advertisement> {
        let entry = self.entries.get(&key)?;
        let mut sent = entry.advertisement.clone();
        sent.header.age = (entry.age(now) + TRANSIT_AGE).min(MAX_AGE);
        Some(sent)
    }

    /// Time since an advertisement was received; `None` if it was not.
    pub(super) fn since_received(&self, now: Instant, key: Key) -> Option<Duration> {
        self.entries.get(&key).filter(|entry| entry.received).map(|entry| now.since(entry.since))
    }

    /// Takes an instance in place of the one before; whether what it says has changed.
    pub(super) fn install(&mut self, now: Instant, advertisement: Advertisement, received: bool) -> bool {
        let Header { key, age, .. } = advertisement.header;
        let is_over = advertisement.header.is_over();
        self.ends.set(key, (!is_over).then(|| now + Duration::from_secs((MAX_AGE - age).into())));
        let was_over = if is_over { !self.over.insert(key) } else { self.over.remove(&key) };
        let entry = Entry { advertisement, since: now, received };
        let says = entry.advertisement.content.clone();
        match self.entries.insert(key, entry) {
            Some(before) => was_over != is_over || before.advertisement.content != says,
            None => !is_over,
        }
    }

    /// The next advertisement that is over by now, which is marked so.
    pub(super) fn expired(&mut self, now: Instant) -> Option<Key> {
        let key = self.ends.expired(now)?;
        if let Some(entry) = self.entries.get_mut(&key) {
            (entry.advertisement.header.age, entry.since) = (MAX_AGE, now);
            self.over.insert(key);
        }
        Some(key)
    }

    /// Time at which the next is over.
    pub(super) fn deadline(&self) -> Option<Instant> {
        self.ends.next()
    }

    /// Makes an advertisement that is there over at once; whether it was not yet.
    pub(super) fn end(&mut self, now: Instant, key: Key) -> bool {
        let Some(entry) = self.entries.get_mut(&key) else { return false };
        (entry.advertisement.header.age, entry.since) = (MAX_AGE, now);
        self.ends.set(key, None);
        self.over.insert(key)
    }

    /// Those that are over.
    pub(super) fn over(&self) -> Vec<Key> {
        self.over.iter().copied().collect()
    }

    /// Forgets an advertisement.
    pub(super) fn remove(&mut self, key: Key) {
        self.entries.remove(&key);
        self.ends.set(key, None);
        self.over.remove(&key);
    }

    pub(super) fn keys(&self) -> impl Iterator<Item = Key> {
        self.entries.keys().copied()
    }

    /// The advertisements of a kind that hold.
    pub(super) fn of_kind(&self, kind: Kind) -> impl Iterator<Item = &Advertisement> {
        let holds = move |(key, _): &(&Key, &Entry)| key.kind == kind && !self.over.contains(*key);
        self.entries.iter().filter(holds).map(|(_, entry)| &entry.advertisement)
    }
}
