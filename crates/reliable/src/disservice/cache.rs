//! The messages that a member holds, its own and others', within a bound.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hopcast_core::Instant;

use super::bodies::Bodies;
use super::message::{Arrival, Message};
use super::wire::{MessageId, Shape, Symbol};

/// Value of a message to its holder: those of the lower are dropped first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Value {
    /// Held for others.
    Others,
    /// Handed up, or published and sent.
    Done,
    /// Wanted, and not handed up.
    Wanted,
    /// Published, and not sent.
    Unsent,
}

/// A message that was dropped before it expired, for want of room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dropped {
    /// The message.
    pub id: MessageId,
    /// Bytes that it took.
    pub bytes: usize,
    /// Whether its holder wanted it and had not been handed it.
    pub was_wanted: bool,
}

/// Messages, within a bound of memory.
#[derive(Debug)]
pub(super) struct Cache {
    messages: BTreeMap<MessageId, Held>,
    /// The messages in the order in which they are dropped.
    order: BTreeSet<(Value, u64, MessageId)>,
    expiries: BTreeSet<(Instant, MessageId)>,
    bytes: usize,
    max: usize,
    stamp: u64,
    bodies: Bodies,
    /// The last messages that were dropped for want of room.
    pub(super) dropped: VecDeque<Dropped>,
}

#[derive(Debug)]
struct Held {
    message: Box<Message>,
    value: Value,
    stamp: u64,
}

/// Messages dropped that are remembered. Chosen: enough for a person to see which kind it is.
const MAX_DROPPED: usize = 64;

impl Cache {
    /// Messages of so many bytes at most, whose bodies are shared with other members of this process.
    pub(super) fn new(max: u64, bodies: Bodies) -> Self {
        Self {
            messages: BTreeMap::new(),
            order: BTreeSet::new(),
            expiries: BTreeSet::new(),
            bytes: 0,
            max: usize::try_from(max).unwrap_or(usize::MAX),
            stamp: 0,
            bodies,
            dropped: VecDeque::new(),
        }
    }

    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn len(&self) -> usize {
        self.messages.len()
    }

    pub(super) fn get(&self, id: MessageId) -> Option<&Message> {
        self.messages.get(&id).map(|held| &*held.message)
    }

    /// Messages of a series that are held, from one on to before number `end`.
    pub(super) fn of_series(
        &self,
        first: MessageId,
        end: u32,
    ) -> impl Iterator<Item = (MessageId, &Message)> {
        let all = first..MessageId { sequence: end.max(first.sequence), ..first };
        self.messages.range(all).map(|(&id, held)| (id, &*held.message))
    }

    /// Whether a message of this length can be held at all: one that would take all the room cannot.
    pub(super) fn has_room_for(&self, shape: Shape) -> bool {
        (shape.length as usize) <= self.max / 2
    }

    /// Adds a message.
    pub(super) fn insert(&mut self, id: MessageId, mut message: Message, value: Value) {
        self.remove(id);
        message.share(id, &self.bodies);
        self.bytes += message.size();
        self.expiries.extend(message.expires.map(|at| (at, id)));
        self.stamp += 1;
        self.order.insert((value, self.stamp, id));
        self.messages.insert(id, Held { message: Box::new(message), value, stamp: self.stamp });
    }

    /// Takes a symbol of a message that is held.
    pub(super) fn receive(&mut self, now: Instant, id: MessageId, symbol: Symbol<'_>) -> Arrival {
        let Some(held) = self.messages.get_mut(&id) else { return Arrival::Known };
        let before = held.message.size();
        let arrival = held.message.receive(now, symbol);
        if arrival == Arrival::Whole {
            held.message.share(id, &self.bodies);
        }
        self.bytes = self.bytes + held.message.size() - before;
        arrival
    }

    /// Changes the value of a message.
    pub(super) fn set_value(&mut self, id: MessageId, value: Value) {
        let Some(held) = self.messages.get_mut(&id) else { return };
        self.order.remove(&(held.value, held.stamp, id));
        held.value = value;
        self.order.insert((value, held.stamp, id));
    }

    pub(super) fn remove(&mut self, id: MessageId) -> Option<Message> {
        let held = self.messages.remove(&id)?;
        self.order.remove(&(held.value, held.stamp, id));
        self.bytes -= held.message.size();
        held.message.expires.into_iter().for_each(|at| _ = self.expiries.remove(&(at, id)));
        Some(*held.message)
    }

    /// Takes out the message that is to be dropped next, if there is too much; never `keep`.
    pub(super) fn shrink(&mut self, keep: MessageId) -> Option<Dropped> {
        if self.bytes <= self.max {
            return None;
        }
        let &(value, _, id) = self.order.iter().find(|&&(_, _, id)| id != keep)?;
        let bytes = self.remove(id)?.size();
        let dropped = Dropped { id, bytes, was_wanted: value >= Value::Wanted };
        self.dropped.push_back(dropped);
        if self.dropped.len() > MAX_DROPPED {
            self.dropped.pop_front();
        }
        Some(dropped)
    }

    /// Takes out a message whose time is over, if there is one.
    pub(super) fn expired(&mut self, now: Instant) -> Option<MessageId> {
        let &(at, id) = self.expiries.first()?;
        if at > now {
            return None;
        }
        self.remove(id).map(|_| id)
    }

    /// When the next message expires.
    pub(super) fn next_expiry(&self) -> Option<Instant> {
        self.expiries.first().map(|&(at, _)| at)
    }
}
