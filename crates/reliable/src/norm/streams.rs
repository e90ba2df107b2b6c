//! Streams on their way up: an application that is slow holds them back here.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use hopcast_core::{Buffer, Item, Outbox, Port, StreamId, StreamItem};

use super::wire::NodeId;

/// The streams that are handed up, by sender and object.
#[derive(Debug, Default)]
pub(super) struct Streams {
    streams: BTreeMap<(NodeId, u16), Up>,
    /// Number of the next one: those that we open are odd.
    next: u64,
    pub(super) reset: u64,
}

#[derive(Debug)]
struct Up {
    id: StreamId,
    credit: u64,
    waiting: VecDeque<u8>,
    ended: bool,
}

/// Bytes that wait for an application; one that leaves more waiting has lost the stream. Chosen: as much as a receiver
/// holds of a sender.
const MAX_WAITING: usize = 16 << 20;
/// Streams at a time; the first one makes room. Chosen: more than any sender has open.
const MAX_STREAMS: usize = 64;

impl Streams {
    /// Hands up bytes of a stream, and at first that it is there.
    pub(super) fn bytes(
        &mut self,
        key: (NodeId, u16),
        ends: (SocketAddr, SocketAddr),
        bytes: &[u8],
        out: &mut Outbox,
    ) {
        let stream = self.stream(key, ends, out);
        stream.waiting.extend(bytes);
        if stream.waiting.len() > MAX_WAITING {
            let id = stream.id;
            self.streams.remove(&key);
            self.reset += 1;
            out.up(Item::Stream(id, StreamItem::Reset));
            return;
        }
        stream.hand_up(out);
    }

    /// Some of a stream is missing: it ends here if it had begun.
    pub(super) fn missing(&mut self, key: (NodeId, u16), out: &mut Outbox) {
        if let Some(stream) = self.streams.remove(&key) {
            self.reset += 1;
            out.up(Item::Stream(stream.id, StreamItem::Reset));
        }
    }

    /// Hands up the end of a stream.
    pub(super) fn end(&mut self, key: (NodeId, u16), ends: (SocketAddr, SocketAddr), out: &mut Outbox) {
        let stream = self.stream(key, ends, out);
        stream.ended = true;
        stream.hand_up(out);
        self.streams.retain(|_, stream| !stream.ended || !stream.waiting.is_empty());
    }

    /// Takes what the application says.
    pub(super) fn handle(&mut self, id: StreamId, item: &StreamItem, out: &mut Outbox) {
        let Some((&key, stream)) = self.streams.iter_mut().find(|(_, stream)| stream.id == id) else {
            return;
        };
        match item {
            StreamItem::Credit(granted) => {
                stream.credit = stream.credit.saturating_add(*granted);
                stream.hand_up(out);
                if stream.ended && stream.waiting.is_empty() {
                    self.streams.remove(&key);
                }
            }
            StreamItem::Reset => {
                self.streams.remove(&key);
            }
            StreamItem::Open { .. }
            | StreamItem::Opened
            | StreamItem::Data(_)
            | StreamItem::Finish
            | StreamItem::Transmitted(_) => {}
        }
    }

    fn stream(
        &mut self,
        key: (NodeId, u16),
        (local, remote): (SocketAddr, SocketAddr),
        out: &mut Outbox,
    ) -> &mut Up {
        if !self.streams.contains_key(&key) && self.streams.len() >= MAX_STREAMS {
            self.streams.pop_first();
            self.reset += 1;
        }
        let next = &mut self.next;
        self.streams.entry(key).or_insert_with(|| {
            let id = StreamId(2 * *next + 1);
            *next += 1;
            out.up(Item::Stream(id, StreamItem::Open { local, remote }));
            Up { id, credit: 0, waiting: VecDeque::new(), ended: false }
        })
    }
}

impl Up {
    fn hand_up(&mut self, out: &mut Outbox) {
        let len = self.waiting.len().min(usize::try_from(self.credit).unwrap_or(usize::MAX));
        if len > 0 {
            let bytes: Vec<u8> = self.waiting.drain(..len).collect();
            self.credit -= len as u64;
            out.push(Port::Above(0), Item::Stream(self.id, StreamItem::Data(Buffer::copy_from(&bytes))));
        }
        if self.ended && self.waiting.is_empty() {
            out.up(Item::Stream(self.id, StreamItem::Finish));
        }
    }
}
