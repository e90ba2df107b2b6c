//! Streams in the random operations: at most one at a time of each member, whose bytes say where in it they are.

use std::collections::BTreeMap;

use hopcast_core::{StreamId, StreamItem};

use super::*;

/// The streams of all members, as their applications see them.
#[derive(Default)]
pub(super) struct Streams {
    /// By the place of the writer.
    writers: BTreeMap<usize, Writer>,
    /// By the place of the reader.
    readers: BTreeMap<(usize, StreamId), Reader>,
    opened: u64,
    read: u64,
}

struct Writer {
    id: StreamId,
    credit: u64,
    written: u64,
}

struct Reader {
    from: SocketAddr,
    /// The byte that comes next, where one has come.
    next: Option<u8>,
}

/// Bytes after which those of a stream come again. A prime, so that no multiple of a packet's length is hidden.
const PERIOD: u64 = 251;

fn byte(place: u64) -> u8 {
    (place % PERIOD) as u8
}

impl Streams {
    /// A member writes to its stream what it is granted, up to `len` bytes.
    pub(super) fn write(&mut self, net: &mut Net, place: usize, len: usize) {
        let writer = self.writers.entry(place).or_insert_with(|| {
            let id = StreamId(2 * self.opened);
            self.opened += 1;
            net.give(place, Item::Stream(id, StreamItem::Open { local: address(place), remote: group() }));
            Writer { id, credit: 0, written: 0 }
        });
        let id = writer.id;
        self.look(net, place);
        let Some(writer) = self.writers.get_mut(&place) else { return };
        let end = writer.written + writer.credit.min(len as u64);
        let bytes: Vec<u8> = (writer.written..end).map(byte).collect();
        writer.credit -= end - writer.written;
        writer.written = end;
        net.give(place, Item::Stream(id, StreamItem::Data(Buffer::copy_from(&bytes))));
    }

    /// A member ends its stream, if it has one.
    pub(super) fn finish(&mut self, net: &mut Net, place: usize) {
        if let Some(writer) = self.writers.remove(&place) {
            net.give(place, Item::Stream(writer.id, StreamItem::Finish));
        }
    }

    /// A member is gone, and its application with it.
    pub(super) fn end(&mut self, place: usize) {
        self.writers.remove(&place);
        self.readers.retain(|&(reader, _), _| reader != place);
    }

    /// Takes what a member has handed up, and reads all of its streams.
    pub(super) fn look(&mut self, net: &mut Net, place: usize) {
        let mut items = std::mem::take(&mut net.members[place].up);
        while !items.is_empty() {
            items.into_iter().for_each(|(_, item)| self.take(net, place, item));
            // What it was handed since, as it grants what it reads.
            items = std::mem::take(&mut net.members[place].up);
        }
    }

    fn take(&mut self, net: &mut Net, place: usize, item: Item) {
        let Item::Stream(id, item) = item else { return };
        if id.0.is_multiple_of(2) {
            let Some(writer) = self.writers.get_mut(&place).filter(|writer| writer.id == id) else { return };
            match item {
                StreamItem::Credit(bytes) => writer.credit += bytes,
                StreamItem::Reset => _ = self.writers.remove(&place),
                _ => {}
            }
            return;
        }
        match item {
            StreamItem::Open { remote, .. } => {
                self.readers.insert((place, id), Reader { from: remote, next: None });
                net.give(place, Item::Stream(id, StreamItem::Credit(u64::MAX)));
            }
            StreamItem::Data(bytes) => {
                let reader = self.readers.get_mut(&(place, id)).expect("it was opened");
                for &found in &bytes[..] {
                    assert!(reader.next.is_none_or(|next| next == found), "a gap in a stream at {place}");
                    reader.next = Some(byte(u64::from(found) + 1));
                }
                self.read += bytes.len() as u64;
            }
            StreamItem::Finish | StreamItem::Reset => {
                assert!(self.readers.remove(&(place, id)).is_some(), "it ends once");
            }
            _ => {}
        }
    }

    /// At rest: whoever reads a stream has all of it, and whatever has ended has ended for all.
    pub(super) fn compare(&self, alive: &[usize]) {
        for &place in alive {
            for (&(_, id), reader) in self.readers.range((place, StreamId(0))..=(place, StreamId(u64::MAX))) {
                let writer = alive.iter().find(|&&writer| address(writer) == reader.from);
                let writer = writer.and_then(|writer| self.writers.get(writer));
                let written = writer.map(|writer| byte(writer.written));
                assert!(written.is_some(), "{id:?} at {place} of {} has no end", reader.from);
                assert_eq!(reader.next, written, "{id:?} at {place} of {}", reader.from);
            }
        }
    }

    /// Streams that were opened, and bytes that were read.
    pub(super) const fn counted(&self) -> (u64, u64) {
        (self.opened, self.read)
    }
}
