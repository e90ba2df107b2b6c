//! Many streams in one session, each with its own credit, ends and reset.
//!
//! The contract of the stream port (`hopcast_core::stream`) goes from end to end: credit that the far application grants
//! travels in chunks, and is granted on to the near one as far as there is room to queue. A stream is named by whoever
//! opens it, with an even number; the other end sees the next odd one. It stands, for its opener, once anything comes
//! back on it. It is over when both directions have finished, or one end has reset it; what still arrives on it then is
//! counted as stray and let go.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use hopcast_core::{Buffer, StreamId, StreamItem};

use super::framing::{Chunk, Counters, Filler, GREATEST, Meeting, Up};

/// Bytes of a stream that may be queued however much is queued of others, so that each of them goes on.
const LEAST_ROOM: u64 = 16 << 10;
/// One stream may take such a part of what is left for all.
const PART: u64 = 8;
/// Writes are merged up to so many bytes.
const MERGED: usize = 2048;

/// The streams of an edge.
#[derive(Debug)]
pub(super) struct Streams {
    /// Streams at a time, and bytes queued for each.
    most: usize,
    room: u64,
    /// Bytes that may be queued of all of them, and that are or may be by what was granted.
    queue: u64,
    committed: u64,
    streams: BTreeMap<u64, Stream>,
    /// Streams that have data or an end to send, in the order of their turns.
    turns: VecDeque<u64>,
    /// Streams that have something else to send.
    control: BTreeSet<u64>,
    /// Streams that are gone here, of which the other end has yet to be told.
    resets: BTreeSet<u64>,
    pub(super) meeting: Meeting,
}

/// One stream. Counts are of bytes since it began.
#[derive(Debug, Default)]
struct Stream {
    /// What the other end has yet to be told.
    open: Option<(SocketAddr, SocketAddr)>,
    opened: bool,
    credit: u64,
    /// Whether the application has heard that it stands.
    stands: bool,
    out: Sending,
    into: Receiving,
}

#[derive(Debug, Default)]
struct Sending {
    queue: VecDeque<Buffer>,
    queued: u64,
    /// What left in symbols.
    sent: u64,
    /// What the far application lets us send, and what we let the near one hand over.
    allowed: u64,
    granted: u64,
    finish: bool,
    finished: bool,
    /// Whether it is among the turns.
    waits: bool,
}

#[derive(Debug, Default)]
struct Receiving {
    granted: u64,
    received: u64,
    finished: bool,
}

impl Streams {
    pub(super) fn new(most: usize, room: u64, queue: u64) -> Self {
        Self {
            most,
            room,
            queue,
            committed: 0,
            streams: BTreeMap::new(),
            turns: VecDeque::new(),
            control: BTreeSet::new(),
            resets: BTreeSet::new(),
            meeting: Meeting::default(),
        }
    }

    /// The application hands over an item.
    pub(super) fn handle(
        &mut self,
        StreamId(id): StreamId,
        item: StreamItem,
        up: &mut VecDeque<Up>,
        counters: &mut Counters,
    ) {
        if let StreamItem::Open { local, remote } = item {
            self.open(id, local, remote, up, counters);
            return;
        }
        let Some(stream) = self.streams.get_mut(&id) else {
            // It was reset from the other end before the application heard of it.
            counters.chunks_stray += 1;
            return;
        };
        match item {
            StreamItem::Data(data) => {
                if !stream.out.take(data) {
                    counters.streams_broken += 1;
                    self.reset(id, up);
                    return;
                }
            }
            StreamItem::Credit(0) => {}
            StreamItem::Credit(bytes) => {
                stream.credit = stream.credit.saturating_add(bytes).min(GREATEST);
                stream.into.granted = stream.into.granted.saturating_add(bytes);
                self.control.insert(id);
            }
            StreamItem::Opened => {
                stream.opened = true;
                self.control.insert(id);
            }
            StreamItem::Finish => stream.out.finish = true,
            StreamItem::Reset => {
                self.forget(id);
                return;
            }
            StreamItem::Open { .. } | StreamItem::Transmitted(_) => {}
        }
        self.take_turn(id);
    }

    fn open(
        &mut self,
        id: u64,
        local: SocketAddr,
        remote: SocketAddr,
        up: &mut VecDeque<Up>,
        counters: &mut Counters,
    ) {
        let known = self.streams.contains_key(&id) || self.resets.contains(&id);
        if known || !id.is_multiple_of(2) || id > GREATEST || self.is_full() {
            counters.streams_refused += 1;
            if !known {
                up.push_back(Up::Stream(StreamId(id), StreamItem::Reset));
            }
            return;
        }
        self.streams.insert(id, Stream { open: Some((local, remote)), ..Stream::default() });
        self.control.insert(id);
    }

    /// What may be queued of a stream.
    fn room(&self) -> u64 {
        (self.queue.saturating_sub(self.committed) / PART).clamp(LEAST_ROOM.min(self.room), self.room)
    }

    fn is_full(&self) -> bool {
        self.streams.len() + self.resets.len() >= self.most
    }

    pub(super) fn has_data(&self) -> bool {
        let nothing = self.turns.is_empty() && self.control.is_empty() && self.resets.is_empty();
        !nothing || self.meeting.has_news()
    }

    /// Fills in what is no data, as far as it fits.
    pub(super) fn fill_control(&mut self, filler: &mut Filler<'_>) {
        if self.has_data() && !self.meeting.fill(filler) {
            return;
        }
        while let Some(&stream) = self.resets.first() {
            if !filler.put(&Chunk::Reset { stream }) {
                return;
            }
            self.resets.remove(&stream);
        }
        while let Some(&id) = self.control.first() {
            if let Some(stream) = self.streams.get_mut(&id)
                && !stream.fill_control(id, filler)
            {
                return;
            }
            self.control.remove(&id);
        }
    }

    /// Fills in data of the streams whose turn it is.
    pub(super) fn fill(&mut self, filler: &mut Filler<'_>, up: &mut VecDeque<Up>) {
        while let Some(&id) = self.turns.front() {
            let room = self.room();
            let Some(stream) = self.streams.get_mut(&id) else {
                self.turns.pop_front();
                continue;
            };
            // Nothing of a stream goes before its opening.
            if stream.open.is_some() {
                return;
            }
            let before = stream.out.sent;
            stream.out.fill(id, filler);
            if stream.out.sent > before {
                up.push_back(Up::Stream(StreamId(id), StreamItem::Transmitted(stream.out.sent)));
                self.committed -= stream.out.sent - before;
                self.committed += stream.out.grant(id, room, up);
            }
            let more = stream.out.has_data();
            if more && stream.out.sent == before {
                // The symbol is full, and its turn still to come.
                return;
            }
            self.turns.pop_front();
            stream.out.waits = more;
            if more {
                self.turns.push_back(id);
            }
            self.end(id);
        }
    }

    /// Takes what the other end has sent.
    pub(super) fn take(&mut self, chunk: &Chunk<'_>, up: &mut VecDeque<Up>, counters: &mut Counters) {
        if let Chunk::Meet { session } = *chunk {
            self.meeting.hear(session);
            return;
        }
        if !self.meeting.is_for_us() {
            counters.chunks_stray += 1;
            return;
        }
        let id = match *chunk {
            Chunk::Open { stream, local, remote } => {
                self.accept(stream, local, remote, up, counters);
                return;
            }
            Chunk::Data { stream, .. }
            | Chunk::Opened { stream }
            | Chunk::Credit { stream, .. }
            | Chunk::Finish { stream }
            | Chunk::Reset { stream } => stream,
            Chunk::Unit { .. } | Chunk::Meet { .. } => return,
        };
        let room = self.room();
        let Some(stream) = self.streams.get_mut(&id) else {
            counters.chunks_stray += 1;
            return;
        };
        if stream.open.is_some() {
            // An answer to what has not been asked yet.
            counters.chunks_stray += 1;
            return;
        }
        if !stream.stands && id % 2 == 0 && !matches!(chunk, Chunk::Reset { .. }) {
            stream.stands = true;
            up.push_back(Up::Stream(StreamId(id), StreamItem::Opened));
        }
        match *chunk {
            Chunk::Data { bytes, .. } => {
                if !stream.into.take(bytes.len()) {
                    counters.streams_broken += 1;
                    self.reset(id, up);
                } else if !bytes.is_empty() {
                    up.push_back(Up::Stream(StreamId(id), StreamItem::Data(Buffer::copy_from(bytes))));
                }
            }
            Chunk::Credit { bytes, .. } => {
                stream.out.allowed = stream.out.allowed.saturating_add(bytes);
                self.committed += stream.out.grant(id, room, up);
            }
            Chunk::Finish { .. } if stream.into.finished => {
                counters.streams_broken += 1;
                self.reset(id, up);
            }
            Chunk::Finish { .. } => {
                stream.into.finished = true;
                up.push_back(Up::Stream(StreamId(id), StreamItem::Finish));
                self.end(id);
            }
            Chunk::Reset { .. } => {
                self.remove(id);
                up.push_back(Up::Stream(StreamId(id), StreamItem::Reset));
            }
            Chunk::Opened { .. } | Chunk::Open { .. } | Chunk::Unit { .. } | Chunk::Meet { .. } => {}
        }
    }

    fn accept(
        &mut self,
        id: u64,
        local: SocketAddr,
        remote: SocketAddr,
        up: &mut VecDeque<Up>,
        counters: &mut Counters,
    ) {
        if self.streams.contains_key(&id) {
            counters.streams_broken += 1;
            self.reset(id, up);
            return;
        }
        if id.is_multiple_of(2) || self.is_full() {
            counters.streams_refused += 1;
            // One that floods us with streams and takes no answer gets none.
            if !id.is_multiple_of(2) && self.resets.len() < 2 * self.most.max(1) {
                self.resets.insert(id);
            }
            return;
        }
        self.streams.insert(id, Stream::default());
        // What the opener calls local is remote from here.
        up.push_back(Up::Stream(StreamId(id), StreamItem::Open { local: remote, remote: local }));
    }

    /// The other edge knows of no stream any more.
    pub(super) fn restart(&mut self, up: &mut VecDeque<Up>) {
        for &id in self.streams.keys() {
            up.push_back(Up::Stream(StreamId(id), StreamItem::Reset));
        }
        let meeting = core::mem::take(&mut self.meeting);
        *self = Self { meeting, ..Self::new(self.most, self.room, self.queue) };
    }

    /// Resets a stream from here, and tells the application.
    fn reset(&mut self, id: u64, up: &mut VecDeque<Up>) {
        self.forget(id);
        up.push_back(Up::Stream(StreamId(id), StreamItem::Reset));
    }

    /// Lets go of a stream, and has the other end told if it knows of it.
    fn forget(&mut self, id: u64) {
        if self.remove(id).is_some_and(|stream| stream.open.is_none()) {
            self.resets.insert(id);
        }
    }

    fn remove(&mut self, id: u64) -> Option<Stream> {
        self.control.remove(&id);
        let stream = self.streams.remove(&id)?;
        self.committed -= stream.out.granted - stream.out.sent;
        if stream.out.waits {
            self.turns.retain(|&turn| turn != id);
        }
        Some(stream)
    }

    /// Lets go of a stream that is over.
    fn end(&mut self, id: u64) {
        if self.streams.get(&id).is_some_and(|stream| stream.out.finished && stream.into.finished) {
            self.remove(id);
        }
    }

    fn take_turn(&mut self, id: u64) {
        if let Some(stream) = self.streams.get_mut(&id)
            && stream.out.has_data()
            && !core::mem::replace(&mut stream.out.waits, true)
        {
            self.turns.push_back(id);
        }
    }

    /// Bytes queued, and streams, for tests to see that nothing leaks.
    #[cfg(test)]
    pub(super) fn held(&self) -> (u64, usize, usize) {
        let queued = self.streams.values().map(|stream| stream.out.queued).sum();
        (queued, self.streams.len(), self.turns.len() + self.control.len() + self.resets.len())
    }
}

impl Stream {
    /// Fills in what is no data; false if the symbol is full.
    fn fill_control(&mut self, stream: u64, filler: &mut Filler<'_>) -> bool {
        if let Some((local, remote)) = self.open {
            if !filler.put(&Chunk::Open { stream, local, remote }) {
                return false;
            }
            self.open = None;
        }
        if self.opened {
            if !filler.put(&Chunk::Opened { stream }) {
                return false;
            }
            self.opened = false;
        }
        if self.credit > 0 {
            if !filler.put(&Chunk::Credit { stream, bytes: self.credit }) {
                return false;
            }
            self.credit = 0;
        }
        true
    }
}

impl Sending {
    /// Queues data from the application; false if that is more than it was granted, or after its end.
    fn take(&mut self, data: Buffer) -> bool {
        let len = data.len() as u64;
        if self.finish || self.sent + self.queued + len > self.granted {
            return false;
        }
        self.queued += len;
        match self.queue.back_mut() {
            // Many small writes do not become many small buffers.
            Some(back) if back.len() + data.len() <= MERGED => back.append(&data),
            _ if data.is_empty() => {}
            _ => self.queue.push_back(data),
        }
        true
    }

    fn has_data(&self) -> bool {
        self.queued > 0 || (self.finish && !self.finished)
    }

    /// Fills in one chunk of data, and the end if it follows.
    fn fill(&mut self, stream: u64, filler: &mut Filler<'_>) {
        while let Some(front) = self.queue.front_mut() {
            let Some(room) = filler.room_for(stream) else { return };
            let len = room.min(front.len());
            filler.put(&Chunk::Data { stream, bytes: &front[..len] });
            front.advance(len);
            if front.is_empty() {
                self.queue.pop_front();
            }
            self.queued -= len as u64;
            self.sent += len as u64;
        }
        if self.finish && !self.finished {
            self.finished = filler.put(&Chunk::Finish { stream });
        }
    }

    /// Grants the application what the other end allows and there is room for, once it is worth an item.
    /// How much that is.
    fn grant(&mut self, stream: u64, room: u64, up: &mut VecDeque<Up>) -> u64 {
        let most = self.allowed.min(self.sent.saturating_add(room));
        let more = most.saturating_sub(self.granted);
        if more == 0 || (most < self.allowed && more < room / 4) {
            return 0;
        }
        self.granted = most;
        up.push_back(Up::Stream(StreamId(stream), StreamItem::Credit(more)));
        more
    }
}

impl Receiving {
    /// Notes data; false if it is more than was granted, or after the end.
    fn take(&mut self, len: usize) -> bool {
        self.received += len as u64;
        !self.finished && self.received <= self.granted
    }
}
