//! The areas that a router is in.

use std::collections::BTreeMap;

use hopcast_core::{Instant, earliest};

use super::config::BACKBONE;
use super::database::Database;
use super::interface::{Interface, Shared};
use super::origin::{Make, Origins};
use super::routes::Own;
use super::wire::{Advertisement, Key};

/// An area: what is known there, and what the router says.
#[derive(Debug)]
pub(super) struct Area {
    number: u32,
    pub(super) database: Database,
    pub(super) origins: Origins,
    /// Prefixes that are attached to the router there.
    pub(super) own: Own,
    /// Whether routes may have changed with what is known.
    pub(super) is_changed: bool,
}

impl Area {
    pub(super) fn new(number: u32, router: u32) -> Self {
        Self {
            number,
            database: Database::default(),
            origins: Origins::new(router),
            own: Own::new(),
            is_changed: false,
        }
    }

    /// Installs an advertisement, and tells the neighbours of the area.
    pub(super) fn install(
        &mut self,
        now: Instant,
        advertisement: Advertisement,
        received: bool,
        interfaces: &mut [Interface],
    ) {
        let key = advertisement.header.key;
        self.is_changed |= self.database.install(now, advertisement, received);
        self.flood(now, key, interfaces);
    }

    /// Ends an advertisement, and tells the neighbours of the area.
    pub(super) fn end(&mut self, now: Instant, key: Key, interfaces: &mut [Interface]) {
        if self.database.end(now, key) {
            self.is_changed = true;
            self.flood(now, key, interfaces);
        }
    }

    /// Makes the own advertisements that are due, and ends those that are over.
    pub(super) fn wake(&mut self, now: Instant, interfaces: &mut [Interface], shared: &mut Shared) {
        while let Some(key) = self.database.expired(now) {
            shared.counters.expired += 1;
            self.is_changed = true;
            self.flood(now, key, interfaces);
        }
        while let Some(make) = self.origins.next_due(now, &mut shared.random) {
            match make {
                Make::Instance(advertisement) => {
                    shared.counters.originated += 1;
                    self.install(now, advertisement, false, interfaces);
                }
                Make::End(key) => self.end(now, key, interfaces),
            }
        }
    }

    fn flood(&self, now: Instant, key: Key, interfaces: &mut [Interface]) {
        let here = interfaces.iter_mut().filter(|one| one.config.area == self.number);
        here.for_each(|one| one.flood(now, key));
    }

    /// Forgets what is over, once no neighbour is to be told of it any more; whether there was any.
    pub(super) fn forget(&mut self, now: Instant, interfaces: &[Interface]) -> bool {
        let mut some = false;
        for key in self.database.over() {
            let here = interfaces.iter().filter(|one| one.config.area == self.number);
            let mut neighbours = here.flat_map(|one| one.neighbours.values());
            if !neighbours.any(|one| one.outstanding.contains_key(&key)) {
                self.database.remove(key);
                self.origins.forgotten(now, key);
                some = true;
            }
        }
        some
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        earliest(self.database.deadline(), self.origins.deadline())
    }
}

/// Whether a router in these areas joins them: it is in the backbone and in another.
pub(super) fn joins<T>(areas: &BTreeMap<u32, T>) -> bool {
    areas.len() > 1 && areas.contains_key(&BACKBONE)
}
