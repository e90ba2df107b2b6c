//! The writer of a log.

use std::collections::BTreeMap;
use std::io;

use hopcast_core::{Buffer, Instant, Port};

use super::record::{Coder, Given, MAGIC, MAX_HEADER, Record, kind};
use super::{Content, Layer, MAX_STORED, Named, Place, Sink, port_number};

/// Number of recent contents that are recognised. Chosen: those of a few tens of milliseconds at 1 Gbit/s; a content
/// that is not recognised is stored once more, and a larger table does not stay in the processor's cache.
const RECENT: usize = 1 << 14;

/// Bytes that are gathered before they are written. Chosen: half of a processor's first cache, which the run needs too.
const CHUNK: usize = 1 << 14;

/// Room for an event with its content.
const MAX_EVENT: usize = MAX_HEADER + MAX_STORED;

/// Number of bits of a mark that say the layer.
const LAYER_BITS: u32 = 2;

/// The number of a content in the log, from 1; 0 of one that is not in it, since it is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentId(u32);

impl ContentId {
    /// The number and the layer as a [mark](Buffer::set_mark), by which a recorder knows the bytes again without
    /// looking at them; 0 if the number is too large. The layer is part of it, since the same bytes are another content
    /// where they are carried as a payload.
    pub const fn mark(self, layer: Layer) -> u32 {
        if self.0 >> (u32::BITS - LAYER_BITS) == 0 { self.0 << LAYER_BITS | layer as u32 } else { 0 }
    }
}

/// Bytes to be recorded, with their mark if they have one. Only who recorded them may have marked them.
#[derive(Clone, Copy, Debug)]
pub struct Recorded<'b> {
    bytes: &'b [u8],
    mark: u32,
}

impl<'b> From<&'b Buffer> for Recorded<'b> {
    #[inline]
    fn from(buffer: &'b Buffer) -> Self {
        Self { bytes: buffer, mark: buffer.mark() }
    }
}

impl<'b> From<&'b [u8]> for Recorded<'b> {
    fn from(bytes: &'b [u8]) -> Self {
        Self { bytes, mark: 0 }
    }
}

impl<'b> From<&'b Vec<u8>> for Recorded<'b> {
    fn from(bytes: &'b Vec<u8>) -> Self {
        bytes.as_slice().into()
    }
}

impl<'b, const N: usize> From<&'b [u8; N]> for Recorded<'b> {
    fn from(bytes: &'b [u8; N]) -> Self {
        bytes.as_slice().into()
    }
}

/// The first bytes of what a machine received last: what it hands on because of it mostly ends with the same.
struct Arrived {
    content: ContentId,
    layer: Layer,
    length: u32,
    /// Zeros behind what is shorter.
    first: [u8; MAX_STORED],
}

impl Arrived {
    const fn stored(&self) -> usize {
        let length = self.length as usize;
        if length < MAX_STORED { length } else { MAX_STORED }
    }
}

/// What a log holds when it is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Written {
    /// Its size in bytes.
    pub bytes: u64,
    /// Number of events that are not in it because it reached its maximum size.
    pub left_out: u64,
}

/// The writer of a log.
pub struct Recorder {
    out: Box<dyn Sink>,
    /// Bytes that have not been written yet, and room for an event more.
    chunk: Vec<u8>,
    /// Number of bytes of `chunk` that have not been written yet.
    filled: usize,
    /// The size so far, with what is in `chunk`.
    size: u64,
    max_size: u64,
    places: u32,
    reasons: BTreeMap<&'static str, u16>,
    /// The hash and the number of recent contents, each in the slot that its hash names.
    recent: Vec<(u64, u32)>,
    coder: Coder,
    arrived: Arrived,
    /// The length that contents have at least, of which a capture has only the beginning.
    cut_from: u32,
    left_out: u64,
    left_out_from: Option<Instant>,
    /// Whether events came faster than they could be written.
    overrun: bool,
    /// The first error; nothing more is written after it.
    error: Option<io::Error>,
}

impl Recorder {
    /// A log that goes to `into` and takes at most about `max_size` bytes.
    pub fn new(into: Box<dyn Sink>, max_size: u64) -> Self {
        let mut chunk = vec![0; CHUNK + MAX_EVENT];
        chunk[..MAGIC.len()].copy_from_slice(&MAGIC);
        Self {
            out: into,
            size: MAGIC.len() as u64,
            chunk,
            filled: MAGIC.len(),
            max_size,
            places: 0,
            reasons: BTreeMap::new(),
            recent: vec![(0, 0); RECENT],
            coder: Coder::default(),
            arrived: Arrived {
                content: ContentId(0),
                layer: Layer::Frame,
                length: 0,
                first: [0; MAX_STORED],
            },
            cut_from: 0,
            left_out: 0,
            left_out_from: None,
            overrun: false,
            error: None,
        }
    }

    /// Defines a place, and returns its number. Places are defined before the first event.
    pub fn place(&mut self, place: &Place) -> u32 {
        let text = match place {
            Place::Interface { node, name, link, mtu, mac } => {
                let mac = u64::from_be_bytes([0, 0, mac[0], mac[1], mac[2], mac[3], mac[4], mac[5]]);
                format!("interface\n{node}\n{name}\n{link}\n{mtu}\n{mac}")
            }
            Place::Machine { node, name, flow: Some(flow) } => format!("machine\n{node}\n{name}\n{flow}"),
            Place::Machine { node, name, flow: None } => format!("machine\n{node}\n{name}"),
        };
        self.define_text(Record::of(kind::PLACE, 0, self.places), &text);
        self.places += 1;
        self.places - 1
    }

    /// Defines what a name of queries stands for.
    pub fn name(&mut self, named: &Named) {
        let text = match named {
            Named::Node { name, addresses } => {
                let addresses = addresses.iter().map(|address| format!("\n{address}"));
                format!("node\n{name}{}", addresses.collect::<String>())
            }
            Named::Group { name, addresses } => {
                let addresses = addresses.iter().map(|address| format!("\n{address}"));
                format!("group\n{name}{}", addresses.collect::<String>())
            }
            Named::Flow(flow) => {
                let to = flow.to.iter().map(|node| format!("\n{node}"));
                format!("flow\n{}\n{}\n{}{}", flow.name, flow.from, flow.port, to.collect::<String>())
            }
        };
        self.define_text(Record::of(kind::NAMED, 0, 0), &text);
    }

    /// The interface `place` has sent a frame.
    pub fn sent<'b>(&mut self, at: Instant, place: u32, frame: impl Into<Recorded<'b>>) {
        self.write(Record::of(kind::SENT, at.as_nanos(), place), Layer::Frame, frame.into());
    }

    /// The node of the interface `place` has given a frame to the link, to be sent.
    pub fn offered<'b>(&mut self, at: Instant, place: u32, frame: impl Into<Recorded<'b>>) {
        self.write(Record::of(kind::OFFERED, at.as_nanos(), place), Layer::Frame, frame.into());
    }

    /// The kernel of a node has sent a packet by the device `place`, behind which is a machine.
    pub fn into_device<'b>(&mut self, at: Instant, place: u32, packet: impl Into<Recorded<'b>>) {
        self.write(Record::of(kind::SENT, at.as_nanos(), place), Layer::Packet, packet.into());
    }

    /// The machine behind the device `place` has handed a packet to the kernel.
    pub fn out_of_device<'b>(&mut self, at: Instant, place: u32, packet: impl Into<Recorded<'b>>) {
        let record = Record { aux: place, ..Record::of(kind::DELIVERED, at.as_nanos(), place) };
        self.write(record, Layer::Packet, packet.into());
    }

    /// A frame that the interface `from` sent has arrived at `place`.
    pub fn delivered<'b>(&mut self, at: Instant, place: u32, from: u32, frame: impl Into<Recorded<'b>>) {
        let record = Record { aux: from, ..Record::of(kind::DELIVERED, at.as_nanos(), place) };
        self.write(record, Layer::Frame, frame.into());
    }

    /// The link has dropped a frame of the interface `place`: before it was sent, or on its way to `to`.
    pub fn dropped<'b>(
        &mut self,
        at: Instant,
        place: u32,
        to: Option<u32>,
        frame: impl Into<Recorded<'b>>,
        reason: &'static str,
    ) {
        let (aux, reason) = (to.map_or(0, |to| to.saturating_add(1)), self.reason(reason));
        let record = Record { aux, reason, ..Record::of(kind::DROPPED, at.as_nanos(), place) };
        self.write(record, Layer::Frame, frame.into());
    }

    /// Contents that follow are the beginning of this many bytes, if they are shorter.
    pub(crate) fn cut_from(&mut self, length: u32) {
        self.cut_from = length;
    }

    /// A capture has a frame or packet, and does not say its direction.
    pub fn seen<'b>(&mut self, at: Instant, place: u32, layer: Layer, bytes: impl Into<Recorded<'b>>) {
        self.write(Record::of(kind::SEEN, at.as_nanos(), place), layer, bytes.into());
    }

    /// A machine receives something; returns the number of its content. Nothing is written if that is known.
    pub fn arrived<'b>(
        &mut self,
        at: Instant,
        place: u32,
        port: Port,
        layer: Layer,
        bytes: impl Into<Recorded<'b>>,
    ) -> ContentId {
        let Recorded { bytes, mark } = bytes.into();
        let length = bytes.len() as u32;
        let content = match self.known(mark, layer) {
            Some(content) => content,
            None => {
                let sought = Sought::of(layer, bytes, length);
                self.sought(sought).unwrap_or_else(|| {
                    let record = Record {
                        aux: port_number(port),
                        layer,
                        length,
                        ..Record::of(kind::ARRIVED, at.as_nanos(), place)
                    };
                    self.define(record, bytes, sought)
                })
            }
        };
        let arrived = &mut self.arrived;
        (arrived.content, arrived.layer, arrived.length) = (content, layer, length);
        match bytes.first_chunk() {
            Some(first) => arrived.first = *first,
            None => {
                arrived.first = [0; MAX_STORED];
                arrived.first[..bytes.len()].copy_from_slice(bytes);
            }
        }
        content
    }

    /// The item that a machine received last.
    pub fn last_arrival(&self) -> Content<'_> {
        let Arrived { layer, length, first, .. } = &self.arrived;
        Content { layer: *layer, length: *length, bytes: &first[..self.arrived.stored()] }
    }

    /// A machine hands something on, because of what it has just received, if anything; returns the number of its
    /// content.
    pub fn handed_on<'b>(
        &mut self,
        at: Instant,
        place: u32,
        port: Port,
        (layer, bytes): (Layer, impl Into<Recorded<'b>>),
        cause: Option<ContentId>,
    ) -> ContentId {
        let (aux, cause) = (port_number(port), cause.map_or(0, |cause| cause.0));
        let record = Record { aux, cause, ..Record::of(kind::HANDED_ON, at.as_nanos(), place) };
        self.write(record, layer, bytes.into())
    }

    /// A machine hands on nothing that is like what it received at `port`; `reason` is the one of its counters that
    /// rose with it.
    pub fn ended(
        &mut self,
        at: Instant,
        place: u32,
        arrival: Option<(Port, ContentId)>,
        reason: Option<&'static str>,
    ) {
        let (aux, content) = arrival.map_or((0, 0), |(port, content)| (port_number(port), content.0));
        let reason = reason.map_or(0, |reason| self.reason(reason));
        let record = Record { aux, content, reason, ..Record::of(kind::ENDED, at.as_nanos(), place) };
        self.event(&record, [&[], &[]]);
    }

    /// Ends the log at `from`, since `left_out` events came faster than they could be written.
    pub fn overrun(&mut self, from: Instant, left_out: u64) {
        // A log that was full before has ended there.
        self.overrun = self.left_out == 0;
        self.left_out += left_out;
        self.left_out_from.get_or_insert(from);
    }

    /// Writes what remains.
    ///
    /// # Errors
    /// The first error of writing.
    pub fn finish(mut self) -> io::Result<Written> {
        if let Some(from) = self.left_out_from {
            let count = self.left_out;
            let record = Record {
                aux: self.overrun.into(),
                content: count as u32,
                cause: (count >> 32) as u32,
                ..Record::of(kind::TRUNCATED, from.as_nanos(), 0)
            };
            self.append(&record);
        }
        self.flush();
        let finished = self.out.finish();
        match self.error {
            Some(error) => Err(error),
            None => finished.map(|()| Written { bytes: self.size, left_out: self.left_out }),
        }
    }

    /// The number of a reason, from 1; 0 if there are too many.
    fn reason(&mut self, reason: &'static str) -> u16 {
        if let Some(&number) = self.reasons.get(reason) {
            return number;
        }
        let Ok(number) = u16::try_from(self.reasons.len() + 1) else { return 0 };
        self.reasons.insert(reason, number);
        self.define_text(Record::of(kind::REASON, 0, number.into()), reason);
        number
    }

    fn define_text(&mut self, record: Record, text: &str) {
        self.append(&Record { length: text.len() as u32, ..record });
        for part in text.as_bytes().chunks(MAX_EVENT) {
            copy(&mut self.chunk[self.filled..], part);
            self.advance(part.len());
        }
    }

    /// The content of a mark; `None` if it was not given here, or to bytes of another layer.
    const fn known(&self, mark: u32, layer: Layer) -> Option<ContentId> {
        let (content, of) = (mark >> LAYER_BITS, mark % (1 << LAYER_BITS));
        if content != 0 && content <= self.coder.contents && of == layer as u32 {
            Some(ContentId(content))
        } else {
            None
        }
    }

    /// A content that is recognised by its bytes.
    fn sought(&self, sought: Sought) -> Option<ContentId> {
        let (known, content) = self.recent[sought.slot()];
        (known == sought.0 && content != 0).then_some(ContentId(content))
    }

    /// Writes an event with its content, or with a reference to it. A part of each method that records, so that a
    /// record's kind is known where it is encoded and the record is in no memory.
    #[inline(always)]
    fn write(&mut self, record: Record, layer: Layer, Recorded { bytes, mark }: Recorded<'_>) -> ContentId {
        let length = self.cut_from.max(bytes.len() as u32);
        let record = Record { layer, length, ..record };
        if let Some(content) = self.known(mark, layer) {
            return self.refer(record, content);
        }
        // What is made of what has just arrived is told apart by that; to hash it too would cost more than it saves.
        if record.cause != 0
            && record.cause == self.arrived.content.0
            && let Some(derived) = self.derive(bytes)
        {
            return self.define_derived(record, bytes, derived);
        }
        self.write_whole(record, layer, bytes)
    }

    /// Writes an event whose content is not known by its mark or its cause.
    #[inline(never)]
    fn write_whole(&mut self, record: Record, layer: Layer, bytes: &[u8]) -> ContentId {
        // What a machine makes of nothing is new, and bears its mark from here on.
        if record.kind == kind::HANDED_ON && record.cause == 0 {
            return self.define_whole(record, bytes);
        }
        let sought = Sought::of(layer, bytes, record.length);
        match self.sought(sought) {
            Some(content) => self.refer(record, content),
            None => self.define(record, bytes, sought),
        }
    }

    #[inline(always)]
    fn refer(&mut self, record: Record, content: ContentId) -> ContentId {
        self.event(&Record { content: content.0, ..record }, [&[], &[]]);
        content
    }

    fn define_whole(&mut self, record: Record, bytes: &[u8]) -> ContentId {
        let stored = &bytes[..bytes.len().min(MAX_STORED)];
        let given = Given::Whole { stored: stored.len() as u8 };
        self.define_as(record, given, [stored, &[]])
    }

    /// Defines a content that is to be recognised.
    fn define(&mut self, record: Record, bytes: &[u8], sought: Sought) -> ContentId {
        let content = self.define_whole(record, bytes);
        if content.0 != 0 {
            self.recent[sought.slot()] = (sought.0, content.0);
        }
        content
    }

    #[inline(always)]
    fn define_derived(&mut self, record: Record, bytes: &[u8], (front, end): (usize, usize)) -> ContentId {
        let stored = &bytes[..bytes.len().min(MAX_STORED)];
        let back = &stored[end..];
        let given = Given::Derived { stored: stored.len() as u8, front: front as u8, back: back.len() as u8 };
        self.define_as(record, given, [&stored[..front], back])
    }

    #[inline(always)]
    fn define_as(&mut self, record: Record, given: Given, body: [&[u8]; 2]) -> ContentId {
        // A number of 32 bits is enough for logs of some 100 GB.
        let content = self.coder.contents.saturating_add(1);
        let is_written = self.event(&Record { content, given, ..record }, body);
        ContentId(if is_written { content } else { 0 })
    }

    /// The stored bytes that are those of what arrived last, if both are aligned at their ends: from where on and up to
    /// where. `None` if they are few.
    #[inline]
    fn derive(&self, bytes: &[u8]) -> Option<(usize, usize)> {
        /// Minimum number of bytes that are the same. Chosen: fewer save little.
        const MIN_SHARED: usize = 16;
        let (ours, theirs) = (bytes.len().min(MAX_STORED), self.arrived.stored());
        let before = self.arrived.length as usize;
        // Headers were taken off, or added.
        let (skipped, added) = (before.saturating_sub(bytes.len()), bytes.len().saturating_sub(before));
        let shared = ours.checked_sub(added)?.min(theirs.checked_sub(skipped)?);
        let same = same_at_end(&bytes[added..added + shared], &self.arrived.first[skipped..skipped + shared]);
        (same >= MIN_SHARED).then_some((added + shared - same, added + shared))
    }

    /// Writes an event with two pieces of its content behind it, if it still fits; from the first one that does not,
    /// none is written.
    #[inline(always)]
    fn event(&mut self, record: &Record, [first, second]: [&[u8]; 2]) -> bool {
        if self.left_out == 0 {
            let before = self.coder;
            let room = &mut self.chunk[self.filled..];
            let header = room.first_chunk_mut().expect("room for an event");
            let header = self.coder.encode(record, header);
            let len = header + first.len() + second.len();
            if self.size + len as u64 <= self.max_size {
                let behind = &mut room[header..];
                copy(behind, first);
                copy(&mut behind[first.len()..], second);
                self.advance(len);
                return true;
            }
            self.coder = before;
        }
        self.leave_out(record.at);
        false
    }

    #[cold]
    fn leave_out(&mut self, at: u64) {
        self.left_out += 1;
        self.left_out_from.get_or_insert(Instant::from_nanos(at));
    }

    /// Writes a record without a content, whatever the size is.
    fn append(&mut self, record: &Record) {
        let header = self.chunk[self.filled..].first_chunk_mut().expect("room for an event");
        let len = self.coder.encode(record, header);
        self.advance(len);
    }

    #[inline]
    fn advance(&mut self, len: usize) {
        self.filled += len;
        self.size += len as u64;
        if self.filled >= CHUNK {
            self.flush();
        }
    }

    fn flush(&mut self) {
        self.chunk.truncate(self.filled);
        self.filled = 0;
        if self.error.is_none() {
            match self.out.write_piece(std::mem::take(&mut self.chunk)) {
                Ok(spare) => self.chunk = spare,
                Err(error) => self.error = Some(error),
            }
        }
        self.chunk.resize(CHUNK + MAX_EVENT, 0);
    }
}

/// Copies bytes to a longer place in pieces, whose lengths the compiler knows; the last one overlaps the one before.
#[inline]
fn copy(into: &mut [u8], from: &[u8]) {
    let into = &mut into[..from.len()];
    if !(copied_by::<32>(into, from) || copied_by::<16>(into, from) || copied_by::<8>(into, from)) {
        into.copy_from_slice(from);
    }
}

/// Copies bytes in pieces of this length, if there are as many.
#[inline]
fn copied_by<const PIECE: usize>(into: &mut [u8], from: &[u8]) -> bool {
    let (Some(last), Some(into_last)) = (from.last_chunk::<PIECE>(), into.last_chunk_mut()) else {
        return false;
    };
    *into_last = *last;
    for (piece, into) in from.as_chunks::<PIECE>().0.iter().zip(into.as_chunks_mut().0) {
        *into = *piece;
    }
    true
}

/// Bytes at the beginning and at the end of a content that are hashed: a checksum is among them.
const FIRST: usize = 96;
const LAST: usize = 32;

/// The hash of a content, by which it is recognised.
#[derive(Clone, Copy)]
struct Sought(u64);

impl Sought {
    fn of(layer: Layer, bytes: &[u8], length: u32) -> Self {
        let mut hashed = [0; FIRST + LAST];
        match (bytes.first_chunk::<FIRST>(), bytes.last_chunk::<LAST>()) {
            (Some(first), Some(last)) if bytes.len() >= FIRST + LAST => {
                hashed[..FIRST].copy_from_slice(first);
                hashed[FIRST..].copy_from_slice(last);
            }
            _ => {
                let len = bytes.len().min(hashed.len());
                hashed[..len].copy_from_slice(&bytes[..len]);
            }
        }
        // Four at a time, which do not wait for each other.
        let mut lanes = [layer as u64, length.into(), 1, 2];
        for (place, word) in hashed.as_chunks::<8>().0.iter().enumerate() {
            let lane = &mut lanes[place % 4];
            *lane = mix(*lane, u64::from_le_bytes(*word));
        }
        let hash = lanes.into_iter().fold(0, mix);
        Self(hash ^ hash >> 29)
    }

    /// Its slot among the recent ones.
    const fn slot(self) -> usize {
        (self.0 >> 7) as usize % RECENT
    }
}

/// Number of bytes that are the same at the end of two pieces of one length.
fn same_at_end(one: &[u8], other: &[u8]) -> usize {
    let ((rest, words), (other_rest, other_words)) = (one.as_rchunks::<16>(), other.as_rchunks::<16>());
    let mut same = 0;
    for (word, other) in words.iter().rev().zip(other_words.iter().rev()) {
        let differs = u128::from_le_bytes(*word) ^ u128::from_le_bytes(*other);
        if differs != 0 {
            return same + differs.leading_zeros() as usize / 8;
        }
        same += word.len();
    }
    same + rest.iter().rev().zip(other_rest.iter().rev()).take_while(|(one, other)| one == other).count()
}

/// One step of a multiplicative hash, whose constant is 2^64 over the golden ratio (Knuth, TAOCP 3, section 6.4).
pub(crate) const fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
