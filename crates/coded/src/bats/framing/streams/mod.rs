//! Many streams in one session, each with its own credit, ends and reset.
//!
//! The contract of the stream port (`hopcast_core::stream`) goes from end to end: credit that the far application
//! grants travels in chunks, and is granted on to the near one as far as there is room to queue. A stream is named by
//! whoever opens it, with an even number; the other end sees the next odd one. It stands, for its opener, once anything
//! comes back on it. It is over when both directions have finished, or one end has reset it; what still arrives on it
//! then is counted as stray and let go.
//!
//! # What resets all streams
//!
//! - The other edge was started anew, and knows none of them.
//! - Something of the other's session is missing or damaged: it may have been of any stream. Both edges reset all,
//!   since the one that misses something does not know what ([`Meeting`]).
//! - While there are streams and nothing has come of the other edge for [`ASK_AFTER`], it is asked to say something,
//!   and again as often. So an edge that only waits hears of a restart too, within that time and two round trips. If
//!   nothing has come for the timeout, the other edge is taken for gone.

mod stream;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::SocketAddr;

use hopcast_core::{Buffer, Duration, Instant, StreamId, StreamItem, earliest};

use super::chunk::{Chunk, Filler, MAX_NUMBER};
use super::counters::Counters;
use super::meeting::{Gone, Meeting};
use super::up::Up;
use stream::Stream;

/// Bytes of a stream that may be queued however much is queued of others, so that each of them goes on. Chosen: eleven
/// full symbols.
const MIN_ROOM: u64 = 16 << 10;
/// Share of what is left for all that one stream may take, as one over a number. Chosen: larger, and the first streams
/// take the room of those to come; smaller, and a single one cannot fill a long path.
const ROOM_SHARE: u64 = 8;
/// Silence after which the other edge is asked to say something, while there are streams. Chosen: shorter costs a
/// datagram in each direction as often on a path where nothing happens; longer, and whoever waits hears later that the
/// other edge was started anew.
const ASK_AFTER: Duration = Duration::from_secs(1);

/// Why all streams are reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Something that the other edge has sent is missing or damaged.
    Damage,
    /// The other edge says so of what was sent from here.
    DamageThere,
    /// The other edge was started anew.
    Restart,
    /// Nothing has come of the other edge for too long.
    Silence,
}

/// The streams of an edge.
#[derive(Debug)]
pub(super) struct Streams {
    /// Streams at a time, and bytes queued for each.
    max_streams: usize,
    room: u64,
    /// Time to wait for an edge from which nothing comes.
    timeout: Duration,
    /// Maximum number of bytes queued of all streams, and number of those queued or granted.
    queue: u64,
    committed: u64,
    streams: BTreeMap<u64, Stream>,
    /// Streams that have data or an end to send, in the order of their turns.
    turns: VecDeque<u64>,
    /// Streams that have something else to send.
    control: BTreeSet<u64>,
    /// Streams that are gone here, of which the other end is still to be notified.
    resets: BTreeSet<u64>,
    pub(super) meeting: Meeting,
    /// Whether there was ever a stream, here or there.
    used: bool,
    /// Time at which something of the other edge came last, or the first stream was opened, and time at which it was
    /// asked last.
    heard: Instant,
    asked: Instant,
}

impl Streams {
    pub(super) fn new(max_streams: usize, room: u64, queue: u64, timeout: Duration) -> Self {
        Self {
            max_streams,
            room,
            timeout,
            queue,
            committed: 0,
            streams: BTreeMap::new(),
            turns: VecDeque::new(),
            control: BTreeSet::new(),
            resets: BTreeSet::new(),
            meeting: Meeting::default(),
            used: false,
            heard: Instant::ZERO,
            asked: Instant::ZERO,
        }
    }

    /// Something has come of the other edge.
    pub(super) const fn heard(&mut self, now: Instant) {
        self.heard = now;
    }

    /// Asks a silent edge to say something, and gives up one that has been silent for too long.
    pub(super) fn wake(&mut self, now: Instant, up: &mut VecDeque<Up>, counters: &mut Counters) {
        if self.deadline().is_none_or(|at| at > now) {
            return;
        }
        if self.heard + self.timeout <= now {
            self.lose(Cause::Silence, up, counters);
        } else {
            self.asked = now;
            self.meeting.ask();
        }
    }

    /// Time at which the other edge has been silent for too long.
    pub(super) fn deadline(&self) -> Option<Instant> {
        if self.streams.is_empty() {
            return None;
        }
        earliest(Some(self.heard + self.timeout), Some(self.heard.max(self.asked) + ASK_AFTER))
    }

    /// The application hands over an item.
    pub(super) fn handle(
        &mut self,
        now: Instant,
        StreamId(id): StreamId,
        item: StreamItem,
        up: &mut VecDeque<Up>,
        counters: &mut Counters,
    ) {
        if let StreamItem::Open { local, remote } = item {
            self.open(now, id, (local, remote), up, counters);
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
                stream.credit = stream.credit.saturating_add(bytes).min(MAX_NUMBER);
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
        now: Instant,
        id: u64,
        ends: (SocketAddr, SocketAddr),
        up: &mut VecDeque<Up>,
        counters: &mut Counters,
    ) {
        let known = self.streams.contains_key(&id) || self.resets.contains(&id);
        if known || !id.is_multiple_of(2) || id > MAX_NUMBER || self.is_full() {
            counters.streams_refused += 1;
            if !known {
                up.push_back(Up::Stream(StreamId(id), StreamItem::Reset));
            }
            return;
        }
        self.add(now, id, Stream { open: Some(ends), ..Stream::default() });
        self.control.insert(id);
    }

    /// Bytes that may be queued of a stream.
    fn room(&self) -> u64 {
        (self.queue.saturating_sub(self.committed) / ROOM_SHARE).clamp(MIN_ROOM.min(self.room), self.room)
    }

    fn add(&mut self, now: Instant, id: u64, stream: Stream) {
        if self.streams.is_empty() {
            // Before, there was nothing to be said.
            self.heard = now;
        }
        self.used = true;
        self.streams.insert(id, stream);
    }

    fn is_full(&self) -> bool {
        self.streams.len() + self.resets.len() >= self.max_streams
    }

    pub(super) fn has_data(&self) -> bool {
        let nothing = self.turns.is_empty() && self.control.is_empty() && self.resets.is_empty();
        !nothing || self.meeting.has_news()
    }

    /// Fills in control chunks, as far as they fit.
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

    /// Takes a chunk of the other end's.
    pub(super) fn take(
        &mut self,
        now: Instant,
        chunk: &Chunk<'_>,
        up: &mut VecDeque<Up>,
        counters: &mut Counters,
    ) {
        if self.max_streams == 0 {
            counters.chunks_stray += 1;
            return;
        }
        self.used = true;
        if let Chunk::Meet(met) = *chunk {
            match self.meeting.hear(met) {
                Gone::None => {}
                Gone::Ours => self.reset_opened(0, up, counters),
                Gone::Theirs => self.reset_opened(1, up, counters),
                Gone::All => self.lose(Cause::DamageThere, up, counters),
            }
            return;
        }
        if !self.meeting.is_for_us() {
            counters.chunks_stray += 1;
            return;
        }
        let id = match *chunk {
            Chunk::Open { stream, local, remote } => {
                self.accept(now, stream, (local, remote), up, counters);
                return;
            }
            Chunk::Data { stream, .. }
            | Chunk::Opened { stream }
            | Chunk::Credit { stream, .. }
            | Chunk::Finish { stream, .. }
            | Chunk::Reset { stream } => stream,
            Chunk::Unit { .. } | Chunk::Meet(_) | Chunk::Jump { .. } => return,
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
            Chunk::Finish { bytes, .. } if stream.into.finished || bytes != stream.into.received => {
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
            Chunk::Opened { .. }
            | Chunk::Open { .. }
            | Chunk::Unit { .. }
            | Chunk::Meet(_)
            | Chunk::Jump { .. } => {}
        }
    }

    fn accept(
        &mut self,
        now: Instant,
        id: u64,
        (local, remote): (SocketAddr, SocketAddr),
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
            if !id.is_multiple_of(2) && self.resets.len() < 2 * self.max_streams.max(1) {
                self.resets.insert(id);
            }
            return;
        }
        self.add(now, id, Stream::default());
        // What the opener calls local is remote from here.
        up.push_back(Up::Stream(StreamId(id), StreamItem::Open { local: remote, remote: local }));
    }

    /// Resets all streams of which the other edge has been told, and sees to it that it does the same.
    pub(super) fn lose(&mut self, cause: Cause, up: &mut VecDeque<Up>, counters: &mut Counters) {
        if self.max_streams == 0 {
            return;
        }
        // Those that it has yet to hear of are none of what is lost. If it is silent, they have waited long enough.
        let is_over = |stream: &Stream| stream.open.is_none() || cause == Cause::Silence;
        let over = self.streams.iter().filter(|(_, stream)| is_over(stream));
        let over: Vec<(u64, bool)> = over.map(|(&id, stream)| (id, stream.open.is_none())).collect();
        // Who was started anew, or has never said anything, may have those that were opened here: who has not said that
        // it joined this session may have received it from the beginning. So it does of those that were reset before.
        let names_them = cause == Cause::Restart || self.meeting.other().is_none();
        self.resets.retain(|id| names_them && id.is_multiple_of(2));
        let count = over.len() as u64;
        for (id, is_told) in over {
            self.remove(id);
            up.push_back(Up::Stream(StreamId(id), StreamItem::Reset));
            if names_them && is_told && id.is_multiple_of(2) {
                self.resets.insert(id);
            }
        }
        match cause {
            Cause::Damage => {
                counters.streams_damaged += count;
                self.meeting.lose(self.used);
            }
            Cause::Silence => {
                counters.streams_timed_out += count;
                self.meeting.lose(self.used);
            }
            Cause::DamageThere => counters.streams_damaged_there += count,
            Cause::Restart => counters.streams_restarted += count,
        }
    }

    /// Resets the streams that were opened here (0) or there (1), since an edge was started anew after that.
    fn reset_opened(&mut self, by: u64, up: &mut VecDeque<Up>, counters: &mut Counters) {
        let opened = self.streams.iter().filter(|(id, stream)| **id % 2 == by && stream.open.is_none());
        for id in opened.map(|(&id, _)| id).collect::<Vec<_>>() {
            counters.streams_restarted += 1;
            self.reset(id, up);
        }
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

#[cfg(test)]
mod tests {
    use super::*;

    fn streams(room: u64) -> Streams {
        Streams::new(10, room, 1 << 20, Duration::from_secs(120))
    }

    #[test]
    fn a_stream_may_take_an_eighth_of_what_is_left_but_always_16_kib() {
        let mut streams = streams(1 << 20);
        for (committed, room) in
            [(0, 131_072), (524_288, 65_536), (917_504, 16_384), (1 << 20, 16_384), (2 << 20, 16_384)]
        {
            streams.committed = committed;
            assert_eq!(streams.room(), room, "{committed}");
        }
        assert_eq!(super::tests::streams(1000).room(), 1000, "and never more than its own room");
    }

    #[test]
    fn while_there_are_streams_a_silent_edge_is_asked_every_second() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let mut streams = streams(1000);
        assert_eq!(streams.deadline(), None);
        streams.add(at(500), 0, Stream::default());
        let (mut up, mut counters) = (VecDeque::new(), Counters::default());
        for due in [1500, 2500, 3500] {
            assert_eq!(streams.deadline(), Some(at(due)));
            streams.wake(at(due), &mut up, &mut counters);
        }
        streams.heard(at(4000));
        assert_eq!(streams.deadline(), Some(at(5000)));
    }
}
