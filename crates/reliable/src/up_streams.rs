//! Streams on their way up: an application that is slow holds them back here.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use hopcast_core::{Buffer, Item, Outbox, Port, StreamId, StreamItem};

/// The streams that are handed up, by a key that tells them apart: sender and number.
#[derive(Debug)]
pub(crate) struct Streams<K> {
    streams: BTreeMap<K, Up>,
    /// Streams that were reset before their end: what still comes of them is dropped. At most [`MAX_STREAMS`].
    over: BTreeSet<K>,
    /// Number of the next one: those that we open are odd.
    next: u64,
    /// Streams that were reset before their end.
    pub(crate) reset: u64,
}

#[derive(Debug)]
struct Up {
    id: StreamId,
    credit: u64,
    waiting: VecDeque<u8>,
    ended: bool,
}

/// Bytes that wait for an application; if it leaves more waiting, its stream is reset. Chosen: as much as a receiver
/// holds of a sender.
const MAX_WAITING: usize = 16 << 20;
/// Streams at a time; the one that was opened first is reset to make room. Chosen: more than any sender has open.
const MAX_STREAMS: usize = 64;

impl<K> Default for Streams<K> {
    fn default() -> Self {
        Self { streams: BTreeMap::new(), over: BTreeSet::new(), next: 0, reset: 0 }
    }
}

impl<K: Ord + Copy> Streams<K> {
    /// Hands up bytes of a stream, and at first that it is there.
    pub(crate) fn bytes(&mut self, key: K, ends: (SocketAddr, SocketAddr), bytes: &[u8], out: &mut Outbox) {
        if self.over.contains(&key) {
            return;
        }
        let stream = self.stream(key, ends, out);
        stream.waiting.extend(bytes);
        if stream.waiting.len() > MAX_WAITING {
            self.reset(key, out);
            return;
        }
        stream.hand_up(out);
    }

    /// Some of a stream is missing: it ends here if it had begun, and another one begins behind the gap.
    pub(crate) fn missing(&mut self, key: K, out: &mut Outbox) {
        self.reset(key, out);
        self.over.remove(&key);
    }

    /// The streams of these keys go on no more, or behind a gap: each ends here, and what still comes of it is another.
    pub(crate) fn lose(&mut self, is_lost: impl Fn(&K) -> bool, out: &mut Outbox) {
        self.over.retain(|key| !is_lost(key));
        let lost: Vec<K> = self.streams.keys().copied().filter(|key| is_lost(key)).collect();
        lost.into_iter().for_each(|key| self.missing(key, out));
    }

    /// Whether a stream is handed up, or was reset before its end.
    pub(crate) fn knows(&self, key: &K) -> bool {
        self.streams.contains_key(key) || self.over.contains(key)
    }

    /// Ends a stream before its end, and says so to the application.
    fn reset(&mut self, key: K, out: &mut Outbox) {
        if let Some(stream) = self.streams.remove(&key) {
            self.reset += 1;
            self.is_over(key);
            out.up(Item::Stream(stream.id, StreamItem::Reset));
        }
    }

    /// Drops whatever still arrives of a stream.
    fn is_over(&mut self, key: K) {
        if self.over.len() == MAX_STREAMS {
            self.over.pop_first();
        }
        self.over.insert(key);
    }

    /// Hands up the end of a stream.
    pub(crate) fn end(&mut self, key: K, ends: (SocketAddr, SocketAddr), out: &mut Outbox) {
        if self.over.remove(&key) {
            return;
        }
        let stream = self.stream(key, ends, out);
        stream.ended = true;
        stream.hand_up(out);
        self.streams.retain(|_, stream| !stream.ended || !stream.waiting.is_empty());
    }

    /// Takes an item of the application's.
    pub(crate) fn handle(&mut self, id: StreamId, item: &StreamItem, out: &mut Outbox) {
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
                self.is_over(key);
            }
            StreamItem::Open { .. }
            | StreamItem::Opened
            | StreamItem::Data(_)
            | StreamItem::Finish
            | StreamItem::Transmitted(_) => {}
        }
    }

    fn stream(&mut self, key: K, (local, remote): (SocketAddr, SocketAddr), out: &mut Outbox) -> &mut Up {
        if !self.streams.contains_key(&key)
            && self.streams.len() >= MAX_STREAMS
            && let Some((&oldest, _)) = self.streams.iter().min_by_key(|(_, stream)| stream.id)
        {
            self.reset(oldest, out);
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

#[cfg(test)]
mod tests {
    use super::*;

    fn ends() -> (SocketAddr, SocketAddr) {
        let address = |last| SocketAddr::from(([10, 0, 0, last], 6003));
        (address(1), address(2))
    }

    fn key(object: u16) -> (u32, u16) {
        (1, object)
    }

    /// Items of streams that the application was handed.
    fn up(out: &mut Outbox) -> Vec<(u64, StreamItem)> {
        std::iter::from_fn(|| out.pop())
            .map(|(_, item)| match item {
                Item::Stream(id, item) => (id.0, item),
                other => panic!("{other:?}"),
            })
            .collect()
    }

    fn is_open(item: &StreamItem) -> bool {
        matches!(item, StreamItem::Open { .. })
    }

    #[test]
    fn the_first_of_too_many_streams_is_reset_and_its_application_is_told() {
        let (mut streams, mut out) = (Streams::default(), Outbox::new());
        // The first to open has the highest number.
        (0..=MAX_STREAMS as u16).rev().for_each(|object| streams.bytes(key(object), ends(), b"a", &mut out));
        let found = up(&mut out);
        assert_eq!(found.iter().filter(|(_, item)| is_open(item)).count(), MAX_STREAMS + 1);
        let resets: Vec<_> = found.iter().filter(|(_, item)| *item == StreamItem::Reset).collect();
        assert_eq!((resets, streams.reset), (vec![&(1, StreamItem::Reset)], 1));
        // The rest of it is no stream of its own.
        streams.bytes(key(MAX_STREAMS as u16), ends(), b"b", &mut out);
        streams.end(key(MAX_STREAMS as u16), ends(), &mut out);
        assert_eq!(up(&mut out), []);
    }

    #[test]
    fn an_application_that_leaves_too_much_waiting_loses_the_stream_and_not_the_others() {
        let (mut streams, mut out) = (Streams::default(), Outbox::new());
        let piece = vec![7; 1 << 20];
        for _ in 0..20 {
            streams.bytes(key(1), ends(), &piece, &mut out);
        }
        streams.bytes(key(2), ends(), b"a", &mut out);
        streams.handle(StreamId(3), &StreamItem::Credit(9), &mut out);
        let found = up(&mut out);
        assert!(is_open(&found[0].1) && is_open(&found[2].1));
        assert_eq!(found[1], (1, StreamItem::Reset));
        assert_eq!(found[3..], [(3, StreamItem::Data(Buffer::copy_from(b"a")))]);
    }

    #[test]
    fn what_an_application_reset_or_has_a_gap_does_not_go_on_in_the_middle() {
        let (mut streams, mut out) = (Streams::default(), Outbox::new());
        streams.bytes(key(1), ends(), b"a", &mut out);
        streams.handle(StreamId(1), &StreamItem::Reset, &mut out);
        streams.bytes(key(1), ends(), b"b", &mut out);
        assert_eq!(up(&mut out).len(), 1, "it was opened, and no more");
        streams.missing(key(1), &mut out);
        streams.bytes(key(1), ends(), b"c", &mut out);
        assert!(is_open(&up(&mut out)[0].1), "a new one begins behind the gap");
    }
}
