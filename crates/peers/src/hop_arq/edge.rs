//! The streams of one end.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use hopcast_core::{Item, Outbox, Port, StreamId, StreamItem};

use super::config::{Config, MAX_STREAMS};
use super::counters::Counters;
use super::stream::StreamEnd;
use super::wire::{CHUNK_HEADER, Chunk, PACKET_HEADER, What};

/// Streams of the other end's that are over and of which something may still be under way; the oldest makes room.
/// Chosen: as many as there may be at a time; with fewer, a late chunk may open one again.
const MAX_REMEMBERED: usize = 4096;

/// The key of a stream: whether this end opened it, and its number among those.
type Key = (bool, u32);

/// All streams of an end.
#[derive(Debug)]
pub(super) struct Edge {
    config: Config,
    ends: (SocketAddr, SocketAddr),
    streams: BTreeMap<Key, StreamEnd>,
    keys: BTreeMap<StreamId, Key>,
    /// The streams that have something to send, in turn.
    turns: VecDeque<Key>,
    /// Chunks that are sent before any bytes.
    control: VecDeque<Vec<u8>>,
    ended: BTreeSet<u32>,
    ended_in_order: VecDeque<u32>,
    next_opened: u32,
    next_accepted: u64,
    up: Outbox,
}

impl Edge {
    /// Between these two addresses, as applications see them.
    /// The streams that it opens are numbered from `first` on; not always the same, so that those of an end that was
    /// started anew are not taken for older ones.
    pub(super) fn new(config: Config, ends: (SocketAddr, SocketAddr), first: u32) -> Self {
        Self {
            config,
            ends,
            streams: BTreeMap::new(),
            keys: BTreeMap::new(),
            turns: VecDeque::new(),
            control: VecDeque::new(),
            ended: BTreeSet::new(),
            ended_in_order: VecDeque::new(),
            next_opened: first,
            next_accepted: 1,
            up: Outbox::new(),
        }
    }

    pub(super) fn poll(&mut self) -> Option<(Port, Item)> {
        self.up.pop()
    }

    fn up(&mut self, id: StreamId, item: StreamItem) {
        self.up.up(Item::Stream(id, item));
    }

    fn say(&mut self, (opener, stream): Key, what: What<'_>) {
        self.control.push_back(Chunk { opener, stream, what }.emit());
    }

    /// Whether the queue of chunks is so long that no more should arrive.
    pub(super) fn is_full(&self) -> bool {
        self.control.len() > 4 * MAX_STREAMS
    }

    /// Whether there is a chunk to send.
    pub(super) fn has_chunk(&self) -> bool {
        !self.control.is_empty() || !self.turns.is_empty()
    }

    /// The next chunk to send.
    pub(super) fn next_chunk(&mut self) -> Option<Vec<u8>> {
        if let Some(chunk) = self.control.pop_front() {
            return Some(chunk);
        }
        let key = self.turns.pop_front()?;
        let stream = self.streams.get_mut(&key)?;
        let room = usize::from(self.config.datagram) - PACKET_HEADER - CHUNK_HEADER;
        let (offset, bytes, end) = stream.cut(room);
        if stream.has_chunk() {
            self.turns.push_back(key);
        }
        let (id, told, over) = (stream.id, stream.told_after_cut(), stream.is_over());
        if !bytes.is_empty() {
            told.for_each(|item| self.up(id, item));
        }
        if over {
            self.forget(key);
        }
        let what = What::Data { offset, bytes: &bytes, end };
        Some(Chunk { opener: key.0, stream: key.1, what }.emit())
    }

    /// The application acts.
    pub(super) fn on_stream(&mut self, id: StreamId, item: StreamItem, counters: &mut Counters) {
        if let StreamItem::Open { .. } = item {
            return self.open(id, counters);
        }
        // Items for a stream that is over crossed its end on the way.
        let Some(&key) = self.keys.get(&id) else { return };
        let Some(stream) = self.streams.get_mut(&key) else { return };
        let done = match item {
            StreamItem::Data(bytes) => stream.write(&bytes),
            StreamItem::Finish => {
                stream.finish();
                Ok(())
            }
            StreamItem::Credit(bytes) => {
                stream.give_credit(bytes);
                Ok(())
            }
            StreamItem::Reset => {
                self.say(key, What::Reset);
                return self.forget(key);
            }
            StreamItem::Open { .. } | StreamItem::Opened | StreamItem::Transmitted(_) => Ok(()),
        };
        match done {
            Ok(()) => self.settle(key),
            Err(_) => self.break_off(key, counters),
        }
    }

    fn open(&mut self, id: StreamId, counters: &mut Counters) {
        let refused = !id.0.is_multiple_of(2) || self.streams.len() >= MAX_STREAMS;
        if refused || self.keys.contains_key(&id) {
            counters.streams_refused += 1;
            if refused {
                self.up(id, StreamItem::Reset);
            }
            return;
        }
        counters.streams_opened += 1;
        let key = (true, self.next_opened);
        self.next_opened = self.next_opened.wrapping_add(1);
        self.insert(id, key);
    }

    fn insert(&mut self, id: StreamId, key: Key) {
        let stream = StreamEnd::new(&self.config, id, key.0);
        self.say(key, stream.grant());
        self.streams.insert(key, stream);
        self.keys.insert(id, key);
    }

    /// A chunk arrived from the other end.
    pub(super) fn on_chunk(&mut self, chunk: &Chunk<'_>, counters: &mut Counters) {
        if chunk.what == What::Gone {
            return self.lose_all(counters);
        }
        // Its opener's other end has not opened it.
        let key = (!chunk.opener, chunk.stream);
        if !self.streams.contains_key(&key) && !self.accept(key, chunk, counters) {
            return;
        }
        let (config, stream) = (&self.config, self.streams.get_mut(&key));
        let Some(stream) = stream else { return };
        // An end that sends anything has accepted the stream.
        let limit = if let What::Grant(limit) = chunk.what { limit } else { 0 };
        if chunk.what != What::Reset {
            let (id, told) = (stream.id, stream.on_grant(config, limit));
            let up = &mut self.up;
            told.into_iter().for_each(|item| up.up(Item::Stream(id, item)));
        }
        let done = match chunk.what {
            What::Data { offset, bytes, end } => stream.on_data(config, offset, bytes, end),
            What::Grant(_) => Ok(()),
            What::Reset => {
                let id = stream.id;
                self.forget(key);
                return self.up(id, StreamItem::Reset);
            }
            What::Gone => return,
        };
        match done {
            Ok(()) => self.settle(key),
            Err(_) => self.break_off(key, counters),
        }
    }

    /// Makes the stream that the other end has opened; false if it may not.
    fn accept(&mut self, key: Key, chunk: &Chunk<'_>, counters: &mut Counters) -> bool {
        if !chunk.opener || self.ended.contains(&key.1) || chunk.what == What::Reset {
            return false;
        }
        if self.streams.len() >= MAX_STREAMS {
            counters.streams_refused += 1;
            self.say(key, What::Reset);
            self.remember(key);
            return false;
        }
        counters.streams_accepted += 1;
        let id = StreamId(self.next_accepted);
        self.next_accepted += 2;
        let (local, remote) = self.ends;
        self.up(id, StreamItem::Open { local, remote });
        self.insert(id, key);
        true
    }

    /// Gives the application its bytes in order, the other end its grant, and the stream its turn.
    fn settle(&mut self, key: Key) {
        let Some(stream) = self.streams.get_mut(&key) else { return };
        while let Some(item) = stream.next_up() {
            self.up.up(Item::Stream(stream.id, item));
        }
        let (grant, over) = (stream.next_grant(&self.config), stream.is_over());
        if stream.has_chunk() && !self.turns.contains(&key) {
            self.turns.push_back(key);
        }
        if let Some(grant) = grant {
            self.say(key, grant);
        }
        if over {
            self.forget(key);
        }
    }

    fn break_off(&mut self, key: Key, counters: &mut Counters) {
        let Some(id) = self.streams.get(&key).map(|stream| stream.id) else { return };
        counters.streams_broken += 1;
        self.say(key, What::Reset);
        self.forget(key);
        self.up(id, StreamItem::Reset);
    }

    /// Chunks under way are lost with a node: no stream can go on, and the other end may not know.
    pub(super) fn lose_all(&mut self, counters: &mut Counters) {
        self.control.clear();
        let keys: Vec<Key> = self.streams.keys().copied().collect();
        keys.into_iter().for_each(|key| self.break_off(key, counters));
    }

    fn forget(&mut self, key: Key) {
        if let Some(stream) = self.streams.remove(&key) {
            self.keys.remove(&stream.id);
            self.remember(key);
        }
        self.turns.retain(|other| *other != key);
    }

    /// A late word of a stream that is over must not open it again.
    fn remember(&mut self, (own, number): Key) {
        if own || !self.ended.insert(number) {
            return;
        }
        self.ended_in_order.push_back(number);
        if self.ended_in_order.len() > MAX_REMEMBERED
            && let Some(oldest) = self.ended_in_order.pop_front()
        {
            self.ended.remove(&oldest);
        }
    }

    /// Streams that stand.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.streams.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_word_of_one_of_the_last_4096_streams_opens_none() {
        let end = SocketAddr::from(([10, 0, 0, 1], 1));
        let (mut edge, mut counters) = (Edge::new(Config::default(), (end, end), 0), Counters::default());
        let mut hear = |stream, what| {
            edge.on_chunk(&Chunk { opener: true, stream, what }, &mut counters);
            edge.len()
        };
        for stream in 0..=4096 {
            assert_eq!(hear(stream, What::Grant(1)), 1);
            assert_eq!(hear(stream, What::Reset), 0);
        }
        assert_eq!(hear(1, What::Grant(2)), 0);
        assert_eq!(hear(0, What::Grant(2)), 1, "longer ago");
    }
}
