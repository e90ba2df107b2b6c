//! A member and its application, and its store: publishing, delivery, records.

use std::net::SocketAddr;
use std::sync::Arc;

use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Message as Unit, Port};

use super::super::cache::Value;
use super::super::message::Message;
use super::super::object::{MAX_NAME, Metadata, digest, tag};
use super::super::series::SeriesId;
use super::super::store::{Record, message_head, message_key, series_key, series_value};
use super::super::wire::{MAX_NUMBER, MessageId, Shape};
use super::Peer;

impl Peer {
    pub(super) fn on_above(&mut self, now: Instant, item: Item) {
        self.credit.spend();
        let (payload, name, is_datagram) = match item {
            Item::Datagram(datagram) => (datagram.payload, None, true),
            Item::Message(unit) => (unit.payload, unit.name, false),
            _ => {
                self.counted.refused += 1;
                return;
            }
        };
        let group = self.config.publishes_to.clone();
        let metadata = Metadata { group, name, is_datagram, history: self.config.policy.history };
        self.take(now, &metadata, payload);
    }

    /// Takes a message that is to be published.
    pub(super) fn take(&mut self, now: Instant, metadata: &Metadata, payload: Buffer) -> Option<MessageId> {
        let names = [Some(&metadata.group), metadata.name.as_ref()];
        let fits = names.into_iter().flatten().all(|name| name.len() <= MAX_NAME);
        let (head, mut object) = (metadata.emit(), payload);
        object.prepend(head.len()).copy_from_slice(&head);
        let policy = &self.config.policy;
        let fragment = even(object.len(), policy.fragment);
        let fragments = object.len().div_ceil(fragment.into()).max(1);
        let shape = Shape {
            length: u32::try_from(object.len()).unwrap_or(u32::MAX),
            fragment,
            chunk: u8::try_from(fragments).map_or(policy.chunk, |fragments| policy.chunk.min(fragments)),
            digest: digest(&object),
        };
        let series = SeriesId { group: tag(&metadata.group), publisher: self.config.member };
        let sequence = self.catalogue.get(series).map_or(0, |series| series.newest + 1);
        if !fits || shape.length >= MAX_NUMBER || sequence >= MAX_NUMBER || !self.cache.has_room_for(shape) {
            self.counted.refused += 1;
            return None;
        }
        let id = series.message(sequence);
        let expires = policy.lifetime.map(|lifetime| now + lifetime);
        self.catalogue.heard(now, self.config.member, id);
        if let Some(series) = self.catalogue.get_mut(series) {
            series.whole(sequence, 0);
        }
        self.cache.insert(id, Message::whole(shape, expires, &object), Value::Unsent);
        self.store_published(now, id, object);
        self.store_series(series);
        self.asking.set_fragments_each(shape.fragments());
        self.unsent.push_back((id, 0));
        self.unsent_bytes += u64::from(shape.length);
        self.shrink(id);
        Some(id)
    }

    /// Hands up messages of a series, in this order.
    pub(super) fn hand_up(&mut self, series: SeriesId, ready: &[u32], from: SocketAddr) {
        for &sequence in ready {
            let id = series.message(sequence);
            self.cache.set_value(id, Value::Done);
            let Some(message) = self.cache.get(id) else { continue };
            let Ok((metadata, len)) = message.metadata() else {
                self.counted.damaged += 1;
                continue;
            };
            if self.catalogue.subscribed(series.group) != Some(&metadata.group) {
                // Another group, whose name has the same tag.
                continue;
            }
            let payload = message.copy(&[], len);
            if metadata.is_datagram {
                self.counted.deliveries.messages += 1;
                self.out.up(Item::Datagram(Datagram::new(self.config.local, from, payload)));
            } else {
                if metadata.name.is_some() {
                    self.counted.deliveries.objects += 1;
                } else {
                    self.counted.deliveries.messages += 1;
                }
                let unit = Unit::new(sequence.into(), payload);
                self.out.up(Item::Message(Unit { name: metadata.name, sender: Some(from), ..unit }));
            }
        }
        if !ready.is_empty() {
            self.store_series(series);
        }
    }

    /// Gives up messages that nobody was heard to hold for too long.
    pub(super) fn lose_patience(&mut self, now: Instant, series: SeriesId) {
        let patience = self.config.policy.patience;
        let Some(found) = self.catalogue.get_mut(series).filter(|series| series.is_wanted()) else { return };
        let Some(until) = found.overdue(now, patience) else { return };
        let overdue: Vec<u32> = found.missing().take_while(|&sequence| sequence <= until).collect();
        for &sequence in &overdue {
            found.give_up(sequence);
            self.counted.deliveries.given_up += 1;
        }
        self.hand_up_ready(series);
    }

    /// Hands up what waited for messages that have been given up.
    pub(super) fn hand_up_ready(&mut self, id: SeriesId) {
        if let Some(series) = self.catalogue.get_mut(id) {
            let ready = series.ready(None);
            self.hand_up(id, &ready, self.config.group);
        }
    }

    /// Drops messages whose time is over.
    pub(super) fn expire(&mut self, now: Instant) {
        while let Some(id) = self.cache.expired(now) {
            self.counted.expired += 1;
            self.lost(id);
        }
    }

    /// Hands the store a record; an empty one takes it away.
    pub(super) fn store(&mut self, key: Vec<u8>, value: Buffer) {
        if self.config.has_store {
            let record = Unit::new(0, value).named(Arc::<[u8]>::from(key));
            self.out.push(Port::Above(1), Item::Message(record));
        }
    }

    /// Hands the store a message that has become whole.
    pub(super) fn store_message(&mut self, now: Instant, id: MessageId) {
        if self.config.has_store
            && let Some(message) = self.cache.get(id)
        {
            let head = message_head(message.shape, lifetime(now, message));
            let value = message.copy(&head, 0);
            self.store(message_key(id), value);
        }
    }

    /// Hands the store a message that was published, whose object is of no other use.
    fn store_published(&mut self, now: Instant, id: MessageId, mut object: Buffer) {
        if self.config.has_store
            && let Some(message) = self.cache.get(id)
        {
            let head = message_head(message.shape, lifetime(now, message));
            object.prepend(head.len()).copy_from_slice(&head);
            self.store(message_key(id), object);
        } else {
            object.recycle();
        }
    }

    fn store_series(&mut self, id: SeriesId) {
        if self.config.has_store
            && let Some(series) = self.catalogue.get(id)
        {
            let value = series_value(series.newest, &series.done);
            self.store(series_key(id), Buffer::copy_from(&value));
        }
    }

    /// Takes a record back from the store.
    pub(super) fn restore(&mut self, now: Instant, record: &Unit) {
        let Some(parsed) = record.name.as_deref().and_then(|key| Record::parse(key, &record.payload).ok())
        else {
            self.counted.malformed += 1;
            return;
        };
        let own = self.config.member;
        match parsed {
            Record::Series { id, newest, done } => {
                let held = self.catalogue.get(id).map(|series| (series.newest, series.held.clone()));
                let newest = held.as_ref().map_or(newest, |&(known, _)| known.max(newest));
                self.catalogue.restore(now, own, id, newest, done);
                if let (Some((_, held)), Some(series)) = (held, self.catalogue.get_mut(id)) {
                    series.held = held.clone();
                    // Those that were handed up are not wanted any more.
                    for sequence in held.numbers() {
                        let message = id.message(sequence as u32);
                        self.cache.set_value(message, self.restored_value(message));
                    }
                }
            }
            Record::Message { id, shape, lifetime, object } => {
                if digest(object) != shape.digest || lifetime == Some(0) || !self.cache.has_room_for(shape) {
                    self.counted.malformed += 1;
                    return;
                }
                let expires = lifetime.map(|left| now + Duration::from_millis(left));
                self.catalogue.heard(now, own, id);
                let history = Metadata::parse(object).map_or(0, |(metadata, _)| metadata.history);
                let Some(series) = self.catalogue.get_mut(id.into()) else { return };
                series.whole(id.sequence, history);
                self.asking.set_fragments_each(shape.fragments());
                let value = self.restored_value(id);
                self.cache.insert(id, Message::whole(shape, expires, object), value);
                self.shrink(id);
            }
        }
    }

    fn restored_value(&self, id: MessageId) -> Value {
        if id.publisher.node == self.config.member.node { Value::Done } else { self.value_of(id) }
    }

    /// Hands up what is held and has not been: after a restart, or a subscription to what was overheard before.
    pub(super) fn hand_up_held(&mut self, now: Instant) {
        let all: Vec<SeriesId> = self.catalogue.iter().map(|(id, _)| id).collect();
        for id in all {
            let held: Vec<u64> =
                self.catalogue.get(id).map_or(Vec::new(), |series| series.held.numbers().collect());
            for sequence in held {
                let Some(series) = self.catalogue.get_mut(id) else { continue };
                let ready = series.ready(Some(sequence as u32));
                self.hand_up(id, &ready, self.config.group);
            }
        }
        self.asking.something_is_missing(now);
    }
}

/// Milliseconds that a message has left, if it expires.
fn lifetime(now: Instant, message: &Message) -> Option<u64> {
    message.expires.map(|at| at.since(now).as_millis())
}

/// Bytes of a fragment, as few as make no more fragments than `max` does: a combination is as long as the longest.
fn even(len: usize, max: u16) -> u16 {
    let fragments = len.div_ceil(max.into()).max(1);
    len.div_ceil(fragments).clamp(1, max.into()) as u16
}
