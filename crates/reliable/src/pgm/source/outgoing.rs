//! What the application has given and is not sent yet: units and streams, cut into packets as they are sent.

use std::collections::{BTreeMap, VecDeque};

use crate::pgm::config::Framing;
use crate::pgm::framing;

/// What waits to be sent, in the order in which it was given. Streams take turns, packet by packet.
#[derive(Debug)]
pub(super) struct Outgoing {
    framing: Framing,
    queue: VecDeque<Entry>,
    streams: BTreeMap<u64, Stream>,
    next_stream: u64,
    /// Bytes of units that wait.
    bytes: u64,
}

#[derive(Debug)]
enum Entry {
    Unit {
        bytes: Vec<u8>,
        offset: usize,
        is_datagram: bool,
    },
    /// A stream that has something to send.
    Stream(u64),
}

#[derive(Debug, Default)]
struct Stream {
    waiting: VecDeque<u8>,
    sent: u64,
    is_ended: bool,
    is_over: bool,
    is_queued: bool,
}

/// The payload of a packet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) payload: Vec<u8>,
    /// Place in its unit, and length of that, if it is a part.
    pub(super) part: Option<(u32, u32)>,
    /// The object it belongs to.
    pub(super) object: Object,
    /// Whether it is the last of its object.
    pub(super) is_last: bool,
}

/// Objects as late receivers see them: who comes during one has it from its beginning.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Object {
    /// All datagrams together.
    Datagrams,
    /// A whole message.
    Message,
    /// A stream.
    Stream(u64),
}

impl Outgoing {
    pub(super) fn new(framing: Framing) -> Self {
        let (queue, streams) = (VecDeque::new(), BTreeMap::new());
        Self { framing, queue, streams, next_stream: 0, bytes: 0 }
    }

    /// Whether nothing can be sent.
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Bytes of units that wait.
    pub(super) const fn unit_bytes(&self) -> u64 {
        self.bytes
    }

    pub(super) fn datagram(&mut self, bytes: &[u8]) {
        let bytes = match self.framing {
            Framing::Ours => framing::datagram(bytes),
            Framing::Plain => bytes.to_vec(),
        };
        self.push(bytes, true);
    }

    /// A message; false if it, or its name, is too long.
    pub(super) fn message(&mut self, name: Option<&[u8]>, bytes: &[u8]) -> bool {
        let bytes = match self.framing {
            Framing::Ours => framing::message(name, bytes),
            Framing::Plain => Some(bytes.to_vec()),
        };
        let fits = bytes.filter(|bytes| u32::try_from(bytes.len()).is_ok());
        fits.map(|bytes| self.push(bytes, false)).is_some()
    }

    fn push(&mut self, bytes: Vec<u8>, is_datagram: bool) {
        self.bytes += bytes.len() as u64;
        self.queue.push_back(Entry::Unit { bytes, offset: 0, is_datagram });
    }

    pub(super) fn open(&mut self) -> Option<u64> {
        if self.streams.len() >= MAX_STREAMS {
            return None;
        }
        let number = self.next_stream;
        self.next_stream += 1;
        self.streams.insert(number, Stream::default());
        Some(number)
    }

    pub(super) fn write(&mut self, number: u64, bytes: &[u8]) {
        let Some(stream) = self.streams.get_mut(&number).filter(|stream| !stream.is_ended) else { return };
        stream.waiting.extend(bytes);
        self.enqueue(number);
    }

    pub(super) fn end(&mut self, number: u64) {
        let Some(stream) = self.streams.get_mut(&number) else { return };
        stream.is_ended = true;
        self.enqueue(number);
    }

    fn enqueue(&mut self, number: u64) {
        if let Some(stream) = self.streams.get_mut(&number)
            && !std::mem::replace(&mut stream.is_queued, true)
        {
            self.queue.push_back(Entry::Stream(number));
        }
    }

    /// Bytes of a stream that wait.
    pub(super) fn waiting(&self, number: u64) -> u64 {
        self.streams.get(&number).map_or(0, |stream| stream.waiting.len() as u64)
    }

    /// Bytes of a stream that were sent, and whether it is over; forgets it then.
    pub(super) fn progress(&mut self, number: u64) -> Option<(u64, bool)> {
        let stream = self.streams.get(&number)?;
        let found = (stream.sent, stream.is_over);
        if stream.is_over {
            self.streams.remove(&number);
        }
        Some(found)
    }

    /// The next packet's payload, of at most `whole` bytes, or `part` bytes if it is part of a larger unit.
    pub(super) fn next(&mut self, whole: usize, part: usize) -> Option<Piece> {
        match self.queue.front_mut()? {
            Entry::Unit { bytes, offset, is_datagram } => {
                let object = if *is_datagram { Object::Datagrams } else { Object::Message };
                if bytes.len() <= whole {
                    let payload = std::mem::take(bytes);
                    self.bytes -= payload.len() as u64;
                    self.queue.pop_front();
                    return Some(Piece { payload, part: None, object, is_last: true });
                }
                let len = part.min(bytes.len() - *offset);
                let payload = bytes[*offset..*offset + len].to_vec();
                let place = (*offset as u32, bytes.len() as u32);
                *offset += len;
                self.bytes -= len as u64;
                let is_last = *offset == bytes.len();
                if is_last {
                    self.queue.pop_front();
                }
                Some(Piece { payload, part: Some(place), object, is_last })
            }
            Entry::Stream(number) => {
                let number = *number;
                self.queue.pop_front();
                self.stream_piece(number, whole)
            }
        }
    }

    fn stream_piece(&mut self, number: u64, whole: usize) -> Option<Piece> {
        let framing = self.framing;
        let stream = self.streams.get_mut(&number)?;
        stream.is_queued = false;
        let header = if framing == Framing::Ours { framing::stream_header_len(number as u16) } else { 0 };
        let len = whole.saturating_sub(header).max(1).min(stream.waiting.len());
        let is_last = stream.is_ended && len == stream.waiting.len();
        let mut payload = Vec::with_capacity(header + len);
        if framing == Framing::Ours {
            framing::put_stream_header(&mut payload, number as u16, is_last);
        }
        payload.extend(stream.waiting.drain(..len));
        stream.sent += len as u64;
        stream.is_over = is_last;
        if !stream.waiting.is_empty() {
            self.enqueue(number);
        }
        // The end of a plain stream is nothing that others could hear.
        let is_something = framing == Framing::Ours || !payload.is_empty();
        is_something.then_some(Piece { payload, part: None, object: Object::Stream(number), is_last })
    }
}

/// Streams at a time. Chosen: as many as a receiver tells apart.
const MAX_STREAMS: usize = 64;
