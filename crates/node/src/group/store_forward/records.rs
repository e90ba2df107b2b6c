//! The records of a member that stores and forwards: what its transport's machines hand out, what was published, and
//! what waits to be written.

use std::sync::Arc;

use hopcast_core::{Buffer, Duration, Instant, Item, Message, Port};
use log::Level;

use super::StoreForward;
use super::wire::File;
use crate::group::disk::Contents;
use crate::store::{Found, Store};

/// The first byte of a record's key: of a transport's machine its place, and of this machine's own.
const OWN: u8 = 2;
/// Behind it: files of this site that were published, and those of others that wait to be written.
const PUBLISHED: u8 = b'p';
const WAITING: u8 = b'w';

impl StoreForward {
    /// Connects it with its store, and takes what earlier runs have left there: before anything else. `wall` is the
    /// time by the host's clock, in milliseconds since 1970: where that has gone back since a record was written, the
    /// record counts as written just now.
    pub(crate) fn keep(&mut self, now: Instant, wall: u64, store: Store, found: Found) {
        let passed = [
            (found.damaged, "damaged records"),
            (found.foreign, "files that are not its own"),
            (found.beyond, "records for which there is no room"),
        ];
        let passed = passed.into_iter().filter(|&(count, _)| count > 0);
        let passed: Vec<_> = passed.map(|(count, what)| format!("{count} {what}")).collect();
        if !passed.is_empty() {
            self.say(Level::Warn, format!("the store has {}: they are passed over", passed.join(", ")));
        }
        self.counts.records_damaged += found.damaged;
        for record in found.records {
            let is_over = match record.key.as_slice() {
                [OWN, kind, key @ ..] => !self.take_back(*kind, key, &record.value),
                [place, key @ ..] if usize::from(*place) < self.holders.len() => {
                    let age = Duration::from_millis(wall.saturating_sub(record.time));
                    let message = Message::new(0, Buffer::copy_from(&record.value)).named(key);
                    let holder = &mut self.holders[usize::from(*place)];
                    let aged = holder.aged(message, age);
                    let is_over = aged.is_none();
                    if let Some(message) = aged {
                        holder.handle(now, Port::Above(1), Item::Message(message));
                    }
                    is_over
                }
                _ => true,
            };
            if is_over {
                store.put(record.key, Buffer::copy_from(&[]));
            }
        }
        self.store = Some(store);
    }

    /// Takes back a record of this machine's own; whether it is of any use.
    fn take_back(&mut self, kind: u8, key: &[u8], value: &[u8]) -> bool {
        match (kind, key.first_chunk::<8>().map(|id| u64::from_be_bytes(*id))) {
            (PUBLISHED, Some(id)) => {
                self.outgoing.was_published(id);
                true
            }
            (WAITING, Some(_)) if self.config.receives => {
                let Ok(file) = File::parse(value) else { return false };
                let Some(from) = self.member_of(file.publisher) else { return false };
                self.arrivals.came(from, file.id, file.name, file.changed, Contents::copy(file.bytes))
            }
            _ => false,
        }
    }

    pub(super) fn put(&self, key: Vec<u8>, value: impl Into<Arc<Buffer>>) {
        if let Some(store) = &self.store {
            store.put(key, value);
        }
    }

    pub(super) fn keep_published(&self, id: u64, is_published: bool) {
        let value: &[u8] = if is_published { b"1" } else { b"" };
        self.put([&[OWN, PUBLISHED], &id.to_be_bytes()[..]].concat(), Buffer::copy_from(value));
    }

    pub(super) fn waiting_key(&self, from: usize, id: u64) -> Vec<u8> {
        let publisher = self.config.members[from].number.to_be_bytes();
        [&[OWN, WAITING], &id.to_be_bytes()[..], &publisher].concat()
    }

    pub(super) fn forget_waiting(&self, from: usize, id: u64) {
        self.put(self.waiting_key(from, id), Buffer::copy_from(&[]));
    }
}
