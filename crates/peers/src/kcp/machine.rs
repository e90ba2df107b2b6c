//! All conversations of one KCP with one remote.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use hopcast_core::{Datagram, Instant, Item, Machine, Outbox, Port, Stream, StreamId, StreamItem};

use super::config::{Config, MAX_CONVERSATIONS, MTU};
use super::conversation::{Context, Conversation};
use super::counters::Counters;
use super::fec::{Decoder, Encoder};
use super::lower::Lower;
use super::remembered::{End, Remembered};
use super::wire::{PUSH, Packet};

/// A KCP: [`Port::Below`]`(0)` is a datagram port, [`Port::Above`]`(0)` a stream port with any number of streams, each
/// of which is a conversation of its own. Either end may open; both are given the same [`Config`].
#[derive(Debug)]
pub struct Kcp {
    config: Config,
    random: Stream,
    lower: Lower,
    decoder: Option<Decoder>,
    conversations: BTreeMap<u32, Conversation>,
    by_id: BTreeMap<StreamId, u32>,
    deadlines: BTreeSet<(Instant, u32)>,
    remembered: Remembered,
    next_id: u64,
    out: Outbox,
    counters: Counters,
}

impl Kcp {
    /// A KCP that speaks with `remote` from `local`. `random` gives conversations their numbers, and must not be that
    /// of the other end.
    pub fn new(mut config: Config, local: SocketAddr, remote: SocketAddr, random: Stream) -> Self {
        config.mtu = config.mtu.clamp(*MTU.start(), *MTU.end());
        let encoder = config.fec.and_then(Encoder::new);
        let decoder = config.fec.and_then(|fec| Decoder::new(fec, config.mtu.into()));
        Self {
            config,
            random,
            lower: Lower { local, remote, encoder },
            decoder,
            conversations: BTreeMap::new(),
            by_id: BTreeMap::new(),
            deadlines: BTreeSet::new(),
            remembered: Remembered::default(),
            next_id: 1,
            out: Outbox::new(),
            counters: Counters::default(),
        }
    }

    fn open(&mut self, now: Instant, id: StreamId) {
        if self.by_id.contains_key(&id) {
            self.counters.streams_refused += 1;
            return;
        }
        if !id.0.is_multiple_of(2) || self.conversations.len() >= MAX_CONVERSATIONS {
            self.counters.streams_refused += 1;
            self.out.up(Item::Stream(id, StreamItem::Reset));
            return;
        }
        let conv = loop {
            let conv = self.random.bits() as u32;
            if !self.conversations.contains_key(&conv) && !self.remembered.contains(conv) {
                break conv;
            }
        };
        self.counters.streams_opened += 1;
        self.insert(now, conv, id, false);
        self.with(now, conv, Conversation::begin);
    }

    fn on_datagram(&mut self, now: Instant, datagram: &Datagram) {
        if datagram.remote != self.lower.remote {
            self.counters.foreign += 1;
            return;
        }
        self.counters.datagrams_received += 1;
        let Some(decoder) = &mut self.decoder else { return self.on_packet(now, &datagram.payload) };
        let Ok(taken) = decoder.take(&datagram.payload) else {
            self.counters.malformed += 1;
            return;
        };
        match taken.packet {
            Some(packet) => self.on_packet(now, packet),
            None => self.counters.parity_received += 1,
        }
        for packet in &taken.recovered {
            self.counters.datagrams_recovered += 1;
            self.on_packet(now, packet);
        }
    }

    fn on_packet(&mut self, now: Instant, bytes: &[u8]) {
        let Ok(packet) = Packet::parse(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        let conv = packet.conv();
        if !self.conversations.contains_key(&conv) && !self.accept(now, &packet) {
            return;
        }
        self.with(now, conv, |conversation, ctx| conversation.on_packet(ctx, &packet));
    }

    /// Makes room for the conversation that a datagram begins; false, and an answer if it calls for one, if it does not
    /// begin any.
    fn accept(&mut self, now: Instant, packet: &Packet<'_>) -> bool {
        let conv = packet.conv();
        if let Ok(answer) = self.remembered.answer(packet) {
            if let Some(answer) = answer {
                self.context(now).down(&answer.emit());
            }
            return false;
        }
        if packet.is_reset() {
            self.counters.resets_received += 1;
            return false;
        }
        // The opener acknowledges nothing, and is within the window.
        let window = u32::from(self.config.receive_window.max(128));
        let begins = packet
            .segments()
            .all(|segment| segment.command == PUSH && segment.una == 0 && segment.sn < window);
        if !begins || self.conversations.len() >= MAX_CONVERSATIONS {
            self.counters.streams_refused += 1;
            self.context(now).reset(conv);
            return false;
        }
        let id = StreamId(self.next_id);
        self.next_id += 2;
        self.insert(now, conv, id, true);
        true
    }

    fn insert(&mut self, now: Instant, conv: u32, id: StreamId, accepting: bool) {
        let conversation = Conversation::new(now, &self.config, conv, id, accepting);
        if let Some(at) = conversation.deadline(&self.config) {
            self.deadlines.insert((at, conv));
        }
        self.conversations.insert(conv, conversation);
        self.by_id.insert(id, conv);
    }

    /// Lets a conversation act, and takes note of its new state.
    fn with(&mut self, now: Instant, conv: u32, act: impl FnOnce(&mut Conversation, &mut Context<'_>)) {
        let Some(conversation) = self.conversations.get_mut(&conv) else { return };
        let before = conversation.deadline(&self.config);
        let Self { config, out: up, lower, counters, .. } = self;
        act(conversation, &mut Context { now, config, up, lower, counters });
        let end = conversation.end();
        let after = if end.is_some() { None } else { conversation.deadline(config) };
        if before != after {
            if let Some(at) = before {
                self.deadlines.remove(&(at, conv));
            }
            if let Some(at) = after {
                self.deadlines.insert((at, conv));
            }
        }
        if let Some(end) = end {
            self.by_id.remove(&conversation.id());
            self.forget(conv, end);
        }
    }

    fn forget(&mut self, conv: u32, end: End) {
        self.conversations.remove(&conv);
        self.remembered.insert(conv, end);
    }

    /// Whether there is nothing to do, and nothing kept of a conversation that is over but how it ended.
    #[cfg(test)]
    pub(super) fn is_still(&self) -> bool {
        self.deadline().is_none() && self.out.is_empty() && self.by_id.len() == self.conversations.len()
    }

    /// The number of the first conversation.
    #[cfg(test)]
    pub(super) fn conversation(&self) -> u32 {
        self.conversations.keys().next().copied().unwrap_or_default()
    }

    /// Conversations, and those that are remembered.
    #[cfg(test)]
    pub(super) fn held(&self) -> (usize, usize) {
        (self.conversations.len(), self.remembered.len())
    }

    fn context(&mut self, now: Instant) -> Context<'_> {
        let Self { config, out: up, lower, counters, .. } = self;
        Context { now, config, up, lower, counters }
    }
}

impl Machine for Kcp {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        // Timers that are due at the instant of an arrival go off first.
        self.wake(now);
        match (port, item) {
            (Port::Below(0), Item::Datagram(datagram)) => self.on_datagram(now, &datagram),
            (Port::Above(0), Item::Stream(id, StreamItem::Open { .. })) => self.open(now, id),
            (Port::Above(0), Item::Stream(id, item)) => {
                // Items for a stream that is over crossed its end on the way.
                if let Some(&conv) = self.by_id.get(&id) {
                    self.with(now, conv, |conversation, ctx| conversation.on_stream(ctx, item));
                }
            }
            _ => self.counters.wrong_items += 1,
        }
    }

    fn wake(&mut self, now: Instant) {
        while let Some(&(at, conv)) = self.deadlines.first() {
            if at > now {
                break;
            }
            self.with(now, conv, Conversation::wake);
        }
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|&(at, _)| at)
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.counters.report(report);
    }
}
