//! The writer of a log.

use std::collections::BTreeMap;
use std::io::{self, Write};

use hopcast_core::{Instant, Port};

use super::record::{HEADER, MAGIC, Record, kind};
use super::{Layer, MAX_STORED, Named, Place, port_number};

/// Number of recent contents that are recognised. Chosen: those of a few tens of milliseconds at 1 Gbit/s; a content
/// that is not recognised is stored once more, and a larger table does not stay in the processor's cache.
const RECENT: usize = 1 << 14;

/// Bytes that are gathered before they are written.
const CHUNK: usize = 1 << 16;

/// The number of a content in the log, from 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ContentId(u32);

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
    out: Box<dyn Write>,
    /// What has not been written yet.
    chunk: Vec<u8>,
    /// The size so far, with what is in `chunk`.
    size: u64,
    max_size: u64,
    places: u32,
    reasons: BTreeMap<&'static str, u16>,
    /// The hash and the number of recent contents, each in the slot that its hash names.
    recent: Vec<(u64, u32)>,
    contents: u32,
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
    /// A log that is written to `into` and takes at most about `max_size` bytes.
    pub fn new(into: Box<dyn Write>, max_size: u64) -> Self {
        let chunk = MAGIC.to_vec();
        Self {
            out: into,
            size: chunk.len() as u64,
            chunk,
            max_size,
            places: 0,
            reasons: BTreeMap::new(),
            recent: vec![(0, 0); RECENT],
            contents: 0,
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
        self.define(Record::of(kind::PLACE, 0, self.places), &text);
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
                format!("flow\n{}\n{}{}", flow.name, flow.from, to.collect::<String>())
            }
        };
        self.define(Record::of(kind::NAMED, 0, 0), &text);
    }

    /// The interface `place` has sent a frame.
    pub fn sent(&mut self, at: Instant, place: u32, frame: &[u8]) {
        self.write(Record::of(kind::SENT, at.as_nanos(), place), Layer::Frame, frame);
    }

    /// The node of the interface `place` has given a frame to the link, to be sent.
    pub fn offered(&mut self, at: Instant, place: u32, frame: &[u8]) {
        self.write(Record::of(kind::OFFERED, at.as_nanos(), place), Layer::Frame, frame);
    }

    /// The kernel of a node has sent a packet by the device `place`, behind which is a machine.
    pub fn into_device(&mut self, at: Instant, place: u32, packet: &[u8]) {
        self.write(Record::of(kind::SENT, at.as_nanos(), place), Layer::Packet, packet);
    }

    /// The machine behind the device `place` has handed a packet to the kernel.
    pub fn out_of_device(&mut self, at: Instant, place: u32, packet: &[u8]) {
        let record = Record { aux: place, ..Record::of(kind::DELIVERED, at.as_nanos(), place) };
        self.write(record, Layer::Packet, packet);
    }

    /// A frame that the interface `from` sent has arrived at `place`.
    pub fn delivered(&mut self, at: Instant, place: u32, from: u32, frame: &[u8]) {
        let record = Record { aux: from, ..Record::of(kind::DELIVERED, at.as_nanos(), place) };
        self.write(record, Layer::Frame, frame);
    }

    /// The link has dropped a frame of the interface `place`: before it was sent, or on its way to `to`.
    pub fn dropped(&mut self, at: Instant, place: u32, to: Option<u32>, frame: &[u8], reason: &'static str) {
        let (aux, reason) = (to.map_or(0, |to| to.saturating_add(1)), self.reason(reason));
        let record = Record { aux, reason, ..Record::of(kind::DROPPED, at.as_nanos(), place) };
        self.write(record, Layer::Frame, frame);
    }

    /// Contents that follow are the beginning of this many bytes, if they are shorter.
    pub(crate) fn cut_from(&mut self, length: u32) {
        self.cut_from = length;
    }

    /// A capture has a frame or packet, and does not say its direction.
    pub fn seen(&mut self, at: Instant, place: u32, layer: Layer, bytes: &[u8]) {
        self.write(Record::of(kind::SEEN, at.as_nanos(), place), layer, bytes);
    }

    /// A machine receives something; returns the number of its content. Nothing is written if that is known.
    pub fn arrived(&mut self, at: Instant, place: u32, port: Port, layer: Layer, bytes: &[u8]) -> ContentId {
        let (hash, slot) = slot_of(layer, bytes, bytes.len() as u32);
        let (known, content) = self.recent[slot];
        if known == hash && content != 0 {
            return ContentId(content);
        }
        let aux = port_number(port);
        self.write(Record { aux, ..Record::of(kind::ARRIVED, at.as_nanos(), place) }, layer, bytes);
        ContentId(self.contents)
    }

    /// A machine hands something on, because of what it has just received, if anything.
    pub fn handed_on(
        &mut self,
        at: Instant,
        place: u32,
        port: Port,
        (layer, bytes): (Layer, &[u8]),
        cause: Option<ContentId>,
    ) {
        let (aux, cause) = (port_number(port), cause.map_or(0, |cause| cause.0));
        let record = Record { aux, cause, ..Record::of(kind::HANDED_ON, at.as_nanos(), place) };
        self.write(record, layer, bytes);
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
        if self.has_room(record, 0) {
            self.append(record, &[]);
        }
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
            self.append(record, &[]);
        }
        self.flush();
        let flushed = self.out.flush();
        match self.error {
            Some(error) => Err(error),
            None => flushed.map(|()| Written { bytes: self.size, left_out: self.left_out }),
        }
    }

    /// The number of a reason, from 1; 0 if there are too many.
    fn reason(&mut self, reason: &'static str) -> u16 {
        if let Some(&number) = self.reasons.get(reason) {
            return number;
        }
        let Ok(number) = u16::try_from(self.reasons.len() + 1) else { return 0 };
        self.reasons.insert(reason, number);
        self.define(Record::of(kind::REASON, 0, number.into()), reason);
        number
    }

    fn define(&mut self, record: Record, text: &str) {
        self.append(Record { length: text.len() as u32, ..record }, text.as_bytes());
    }

    /// Writes an event with its content, or with a reference to it.
    fn write(&mut self, record: Record, layer: Layer, bytes: &[u8]) {
        let length = self.cut_from.max(bytes.len() as u32);
        let (hash, slot) = slot_of(layer, bytes, length);
        let (known, content) = self.recent[slot];
        let record = Record { layer, length, ..record };
        if known == hash && content != 0 {
            if self.has_room(record, 0) {
                self.append(Record { content, ..record }, &[]);
            }
            return;
        }
        let stored = &bytes[..bytes.len().min(MAX_STORED)];
        if self.has_room(record, stored.len()) {
            self.contents += 1;
            let content = self.contents;
            self.recent[slot] = (hash, content);
            self.append(Record { content, defines: true, stored: stored.len() as u8, ..record }, stored);
        }
    }

    /// Whether an event still fits; from the first one that does not, none is written.
    fn has_room(&mut self, record: Record, stored: usize) -> bool {
        let is_full = self.left_out > 0 || self.size + (HEADER + stored) as u64 > self.max_size;
        if is_full {
            self.left_out += 1;
            self.left_out_from.get_or_insert(Instant::from_nanos(record.at));
        }
        !is_full
    }

    fn append(&mut self, record: Record, bytes: &[u8]) {
        self.chunk.extend_from_slice(&record.to_bytes());
        self.chunk.extend_from_slice(bytes);
        self.size += (HEADER + bytes.len()) as u64;
        if self.chunk.len() >= CHUNK {
            self.flush();
        }
    }

    fn flush(&mut self) {
        if self.error.is_none() {
            self.error = self.out.write_all(&self.chunk).err();
        }
        self.chunk.clear();
    }
}

/// Bytes at the beginning and at the end of a content that are hashed: a checksum is among them.
const FIRST: usize = 96;
const LAST: usize = 32;

/// The hash of a content, and its slot among the recent ones.
fn slot_of(layer: Layer, bytes: &[u8], length: u32) -> (u64, usize) {
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
    let hash = hash ^ hash >> 29;
    (hash, (hash >> 7) as usize % RECENT)
}

/// One step of a multiplicative hash, whose constant is 2^64 over the golden ratio (Knuth, TAOCP 3, section 6.4).
pub(crate) const fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}
