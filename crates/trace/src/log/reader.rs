//! The reader of a log.

use std::collections::HashMap;
use std::net::IpAddr;

use hopcast_core::{Instant, Port};

use super::record::{Coder, Given, MAGIC, Record, kind};
use super::{Layer, Place, numbered_port};

/// A log in memory.
pub struct Log {
    bytes: Vec<u8>,
    /// The bytes of all contents.
    stored: Vec<u8>,
    places: Vec<Place>,
    reasons: Vec<String>,
    named: Vec<Named>,
    /// The places in `named` of those that have an address, in their order.
    by_address: HashMap<IpAddr, Vec<usize>>,
    /// The first interface of each Ethernet address, by its place.
    by_mac: HashMap<[u8; 6], usize>,
    contents: Vec<ContentAt>,
    truncation: Option<Truncation>,
}

/// The bytes are no log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LogError {
    /// They do not begin as a log does.
    #[error("this is no log that `hopcast run --record` has written")]
    NotALog,
    /// It is a log of another version of the format.
    #[error("this log has another format than this version of hopcast reads: record it again")]
    OtherVersion,
}

/// A name that queries may use.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Named {
    /// A node.
    Node {
        /// Its name.
        name: String,
        /// Its addresses.
        addresses: Vec<IpAddr>,
    },
    /// A group.
    Group {
        /// Its name.
        name: String,
        /// Its addresses.
        addresses: Vec<IpAddr>,
    },
    /// A flow.
    Flow(Flow),
}

/// A flow of the scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Flow {
    /// Its name.
    pub name: String,
    /// The name of the node that it is from.
    pub from: String,
    /// The port of its receivers; its sender has this one or the next, or many of its own.
    pub port: u16,
    /// The names of its receivers.
    pub to: Vec<String>,
}

/// How a log ends before its run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Truncation {
    /// It had reached its maximum size at `from`, and has not this many events.
    Full {
        /// The time of the first event that is left out.
        from: Instant,
        /// Number of events left out.
        left_out: u64,
    },
    /// From `from` on events came faster than they could be written, and it has not this many of them.
    Overrun {
        /// The time of the first event that is left out.
        from: Instant,
        /// Number of events left out.
        left_out: u64,
    },
    /// What stands behind this offset is no whole record: the file was cut off or damaged.
    Cut {
        /// The offset in bytes.
        offset: u64,
    },
}

/// The place of a content in a log.
struct ContentAt {
    offset: usize,
    length: u32,
    layer: Layer,
    stored: u8,
}

/// The bytes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Content<'l> {
    /// The outermost layer.
    pub layer: Layer,
    /// Its length in bytes.
    pub length: u32,
    /// The first bytes of it.
    pub bytes: &'l [u8],
}

/// An event of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Event {
    /// Its time.
    pub at: Instant,
    /// The number of its place.
    pub place: u32,
    /// The number of its content; 0 of a machine that dropped something at a time of its own.
    pub content: u32,
    /// What happened.
    pub kind: EventKind,
}

/// What happened at a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventKind {
    /// A node gave a frame to the link of an interface, to be sent.
    Offered,
    /// An interface sent a frame.
    Sent,
    /// A frame arrived that the interface `from` had sent.
    Delivered {
        /// The number of that interface; that of the receiver where the sender is not known.
        from: u32,
    },
    /// The link dropped a frame: on its way to an interface, or before it was sent.
    Dropped {
        /// The number of the interface that missed it.
        to: Option<u32>,
        /// The number of the reason.
        reason: u16,
    },
    /// A machine handed it on.
    HandedOn {
        /// The port by which it left.
        port: Port,
        /// The number of the content that the machine had received; 0 if nothing.
        cause: u32,
    },
    /// A machine handed nothing on that is like it.
    Ended {
        /// The port at which it had arrived.
        port: Port,
        /// The number of the counter that rose; 0 if none did.
        reason: u16,
    },
    /// A capture has it.
    Seen,
}

impl Log {
    /// Reads a log, up to where it is cut off if it is.
    ///
    /// # Errors
    /// If the bytes are no log.
    pub fn read(bytes: Vec<u8>) -> Result<Self, LogError> {
        match bytes.get(..MAGIC.len()) {
            Some(begin) if begin == MAGIC => {}
            Some(begin) if begin.starts_with(b"hopcast log ") => return Err(LogError::OtherVersion),
            Some(_) | None => return Err(LogError::NotALog),
        }
        let mut log = Self {
            places: Vec::new(),
            reasons: Vec::new(),
            named: Vec::new(),
            by_address: HashMap::new(),
            by_mac: HashMap::new(),
            contents: Vec::new(),
            truncation: None,
            bytes: Vec::new(),
            stored: Vec::new(),
        };
        let (contents, stored) = sizes(&bytes);
        log.contents.reserve(contents);
        log.stored.reserve(stored);
        let (mut offset, mut coder) = (MAGIC.len(), Coder::default());
        while offset < bytes.len() {
            let Some(behind) = log.take(&mut coder, &bytes, offset) else {
                log.truncation = Some(Truncation::Cut { offset: offset as u64 });
                break;
            };
            offset = behind;
        }
        for (number, named) in log.named.iter().enumerate() {
            let (Named::Node { addresses, .. } | Named::Group { addresses, .. }) = named else { continue };
            for &address in addresses {
                log.by_address.entry(address).or_default().push(number);
            }
        }
        for (number, place) in log.places.iter().enumerate() {
            if let Place::Interface { mac, .. } = place {
                log.by_mac.entry(*mac).or_insert(number);
            }
        }
        log.bytes = bytes;
        log.bytes.truncate(offset);
        Ok(log)
    }

    /// The interfaces and machines, by their numbers.
    pub fn places(&self) -> &[Place] {
        &self.places
    }

    /// The nodes, groups and flows.
    pub fn named(&self) -> &[Named] {
        &self.named
    }

    /// The node whose address this is; `None` if the log knows of none.
    pub fn owner(&self, address: IpAddr) -> Option<&str> {
        self.having(address).find_map(|named| match named {
            Named::Node { name, .. } => Some(name.as_str()),
            Named::Group { .. } | Named::Flow(_) => None,
        })
    }

    /// Whether a node has an address, which others may have too.
    pub fn has_address(&self, node: &str, address: IpAddr) -> bool {
        self.having(address).any(|named| matches!(named, Named::Node { name, .. } if name == node))
    }

    /// The name of an address: its node's or group's; `None` if the log knows of none.
    pub fn name_of(&self, address: IpAddr) -> Option<&str> {
        self.having(address).find_map(|named| match named {
            Named::Node { name, .. } | Named::Group { name, .. } => Some(name.as_str()),
            Named::Flow(_) => None,
        })
    }

    /// The node whose interface has an Ethernet address.
    pub fn owner_of_mac(&self, address: [u8; 6]) -> Option<&str> {
        self.by_mac.get(&address).map(|&place| self.places[place].node())
    }

    /// The nodes and groups that have an address.
    fn having(&self, address: IpAddr) -> impl Iterator<Item = &Named> {
        self.by_address.get(&address).into_iter().flatten().map(|&number| &self.named[number])
    }

    /// A reason by its number; `None` for 0.
    pub fn reason(&self, number: u16) -> Option<&str> {
        self.reasons.get(usize::from(number).checked_sub(1)?).map(String::as_str)
    }

    /// Number of contents, which are numbered from 1.
    pub fn contents(&self) -> u32 {
        self.contents.len() as u32
    }

    /// A content by its number.
    pub fn content(&self, number: u32) -> Option<Content<'_>> {
        let at = self.contents.get((number as usize).checked_sub(1)?)?;
        let bytes = self.stored.get(at.offset..at.offset + usize::from(at.stored))?;
        Some(Content { layer: at.layer, length: at.length, bytes })
    }

    /// The events, in their order.
    pub fn events(&self) -> Events<'_> {
        Events { bytes: &self.bytes, offset: MAGIC.len(), coder: Coder::default() }
    }

    /// How the log ends before its run does.
    pub fn truncation(&self) -> Option<Truncation> {
        self.truncation
    }

    /// Takes in the record at `offset`; says where the next one begins, or `None` if this is no whole record that fits
    /// those before it.
    fn take(&mut self, coder: &mut Coder, bytes: &[u8], offset: usize) -> Option<usize> {
        let (record, header) = coder.decode(bytes.get(offset..)?)?;
        let body = offset + header;
        let end = body.checked_add(record.body_len())?;
        let stored = bytes.get(body..end)?;
        match record.kind {
            kind::PLACE => self.places.push(read_place(std::str::from_utf8(stored).ok()?)?),
            kind::REASON => self.reasons.push(std::str::from_utf8(stored).ok()?.to_owned()),
            kind::NAMED => self.named.push(read_named(std::str::from_utf8(stored).ok()?)?),
            kind::TRUNCATED => {
                let left_out = u64::from(record.content) | u64::from(record.cause) << 32;
                let from = Instant::from_nanos(record.at);
                self.truncation = Some(match record.aux {
                    0 => Truncation::Full { from, left_out },
                    _ => Truncation::Overrun { from, left_out },
                });
            }
            kind::ARRIVED..=kind::OFFERED => self.check(&record, stored)?,
            _ => return None,
        }
        Some(end)
    }

    /// Checks the numbers of an event, and takes in its content if it defines one.
    fn check(&mut self, record: &Record, body: &[u8]) -> Option<()> {
        let places = self.places.len() as u32;
        let other = match record.kind {
            kind::DELIVERED => record.aux,
            kind::DROPPED => record.aux.saturating_sub(1),
            _ => 0,
        };
        let is_known =
            record.place < places && other < places && usize::from(record.reason) <= self.reasons.len();
        if !is_known {
            return None;
        }
        let offset = self.stored.len();
        let stored = match record.given {
            Given::Before => return Some(()),
            Given::Whole { stored } => {
                self.stored.extend_from_slice(body);
                stored
            }
            Given::Derived { stored, front, back } => {
                let cause = self.contents.get((record.cause as usize).checked_sub(1)?)?;
                let (front, back) = (usize::from(front), usize::from(back));
                // Both end with the same byte.
                let from = (front + cause.length as usize).checked_sub(record.length as usize)?;
                let shared = usize::from(stored).checked_sub(front + back)?;
                if from + shared > usize::from(cause.stored) {
                    return None;
                }
                let from = cause.offset + from;
                self.stored.extend_from_slice(&body[..front]);
                self.stored.extend_from_within(from..from + shared);
                self.stored.extend_from_slice(&body[front..]);
                stored
            }
        };
        let Record { length, layer, .. } = *record;
        self.contents.push(ContentAt { offset, length, layer, stored });
        Some(())
    }
}

/// The events of a log, in their order.
pub struct Events<'l> {
    bytes: &'l [u8],
    offset: usize,
    coder: Coder,
}

impl Iterator for Events<'_> {
    type Item = Event;

    fn next(&mut self) -> Option<Event> {
        loop {
            let (record, header) = self.coder.decode(self.bytes.get(self.offset..)?)?;
            self.offset = self.offset.checked_add(header + record.body_len())?;
            let kind = match record.kind {
                kind::SENT => EventKind::Sent,
                kind::DELIVERED => EventKind::Delivered { from: record.aux },
                kind::DROPPED => EventKind::Dropped { to: record.aux.checked_sub(1), reason: record.reason },
                kind::HANDED_ON => {
                    EventKind::HandedOn { port: numbered_port(record.aux), cause: record.cause }
                }
                kind::ENDED => EventKind::Ended { port: numbered_port(record.aux), reason: record.reason },
                kind::SEEN => EventKind::Seen,
                kind::OFFERED => EventKind::Offered,
                _ => continue,
            };
            let (at, place, content) = (Instant::from_nanos(record.at), record.place, record.content);
            return Some(Event { at, place, content, kind });
        }
    }
}

/// Number of contents of a log, and of their stored bytes: to let memory grow would take longer than to count.
fn sizes(bytes: &[u8]) -> (usize, usize) {
    let (mut offset, mut coder, mut sum) = (MAGIC.len(), Coder::default(), 0);
    while let Some((record, header)) = bytes.get(offset..).and_then(|rest| coder.decode(rest)) {
        let Some(behind) = offset.checked_add(header + record.body_len()).filter(|&end| end <= bytes.len())
        else {
            break;
        };
        offset = behind;
        sum += match record.given {
            Given::Before => 0,
            Given::Whole { stored } | Given::Derived { stored, .. } => stored.into(),
        };
    }
    (coder.contents as usize, sum)
}

fn read_place(text: &str) -> Option<Place> {
    let mut fields = text.split('\n');
    let kind = fields.next()?;
    let (node, name) = (fields.next()?.to_owned(), fields.next()?.to_owned());
    match kind {
        "interface" => {
            let (link, mtu) = (fields.next()?.to_owned(), fields.next()?.parse().ok()?);
            let [_, _, mac @ ..] = fields.next()?.parse::<u64>().ok()?.to_be_bytes();
            Some(Place::Interface { node, name, link, mtu, mac })
        }
        "machine" => Some(Place::Machine { node, name, flow: fields.next().map(ToOwned::to_owned) }),
        _ => None,
    }
}

fn read_named(text: &str) -> Option<Named> {
    let mut fields = text.split('\n');
    let kind = fields.next()?;
    let name = fields.next()?.to_owned();
    let addresses = |fields: std::str::Split<'_, char>| -> Option<Vec<IpAddr>> {
        fields.map(|field| field.parse().ok()).collect()
    };
    match kind {
        "node" => Some(Named::Node { name, addresses: addresses(fields)? }),
        "group" => Some(Named::Group { name, addresses: addresses(fields)? }),
        "flow" => {
            let (from, port) = (fields.next()?.to_owned(), fields.next()?.parse().ok()?);
            Some(Named::Flow(Flow { name, from, port, to: fields.map(ToOwned::to_owned).collect() }))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Buffer;

    use super::super::{MAX_STORED, MemoryLog};
    use super::*;

    fn interface(node: &str) -> Place {
        let (node, name, link) = (node.to_owned(), "eth0".to_owned(), "l".to_owned());
        Place::Interface { node, name, link, mtu: 1500, mac: [2, 0, 0, 0, 0, 1] }
    }

    /// A log in which a frame is sent and lost, this often.
    fn bytes(frames: u8, max_size: u64) -> Vec<u8> {
        let memory = MemoryLog::default();
        let mut recorder = memory.recorder(max_size);
        let a = recorder.place(&interface("a"));
        let b = recorder.place(&interface("b"));
        recorder.name(&Named::Node { name: "a".to_owned(), addresses: vec![IpAddr::from([10, 0, 0, 1])] });
        for number in 0..frames {
            let frame = [number; 200];
            recorder.sent(Instant::from_nanos(number.into()), a, &frame);
            recorder.dropped(Instant::from_nanos(number.into()), a, Some(b), &frame, "lost");
        }
        recorder.finish().unwrap();
        memory.take()
    }

    #[test]
    fn what_is_written_is_read() {
        let log = Log::read(bytes(2, 1 << 20)).unwrap();
        assert_eq!(log.places(), [interface("a"), interface("b")]);
        let events: Vec<Event> = log.events().collect();
        let dropped = EventKind::Dropped { to: Some(1), reason: 1 };
        assert_eq!(
            events.iter().map(|event| event.kind).collect::<Vec<_>>(),
            [EventKind::Sent, dropped, EventKind::Sent, dropped]
        );
        assert_eq!(events.iter().map(|event| event.content).collect::<Vec<_>>(), [1, 1, 2, 2]);
        let content = Content { layer: Layer::Frame, length: 200, bytes: &[1; MAX_STORED] };
        assert_eq!(log.content(2), Some(content));
        assert_eq!((log.reason(1), log.truncation()), (Some("lost"), None));
        let address = IpAddr::from([10, 0, 0, 1]);
        assert_eq!((log.owner(address), log.name_of(address)), (Some("a"), Some("a")));
        assert!(log.has_address("a", address) && !log.has_address("b", address));
        assert_eq!(log.owner_of_mac([2, 0, 0, 0, 0, 1]), Some("a"));
        assert_eq!(log.owner(IpAddr::from([10, 0, 0, 2])), None);
    }

    #[test]
    fn what_is_made_of_an_arrival_is_stored_by_what_differs() {
        let packet: Vec<u8> = (0..200).collect();
        let mut forwarded = packet.clone();
        forwarded[22] -= 1;
        let framed = [&[7; 14][..], &packet].concat();
        let handed_on = [forwarded, framed, packet[28..].to_vec(), packet[150..].to_vec(), vec![9; 200]];
        let memory = MemoryLog::default();
        let mut recorder = memory.recorder(1 << 20);
        let place = recorder.place(&interface("a"));
        let port = Port::Above(0);
        let cause = recorder.arrived(Instant::ZERO, place, port, Layer::Packet, &packet);
        let mut buffer = Buffer::copy_from(&packet);
        buffer.set_mark(cause.mark(Layer::Packet));
        let same = recorder.handed_on(Instant::ZERO, place, port, (Layer::Packet, &buffer), Some(cause));
        assert_eq!(same, cause);
        for bytes in &handed_on {
            recorder.handed_on(Instant::ZERO, place, port, (Layer::Packet, bytes), Some(cause));
        }
        let written = recorder.finish().unwrap();
        let log = Log::read(memory.take()).unwrap();
        assert_eq!((log.contents(), log.truncation()), (6, None));
        for (number, bytes) in (2..).zip(&handed_on) {
            let content = log.content(number).unwrap();
            assert_eq!(
                (content.length as usize, content.bytes),
                (bytes.len(), &bytes[..bytes.len().min(128)])
            );
        }
        // Two are whole, one of them the arrival; of the others 23, 14, 28 and 50 bytes.
        assert!(written.bytes < 2 * 128 + 23 + 14 + 28 + 50 + 200, "{written:?}");
    }

    #[test]
    fn marked_bytes_are_another_content_where_they_are_of_another_layer() {
        let memory = MemoryLog::default();
        let mut recorder = memory.recorder(1 << 20);
        let place = recorder.place(&interface("a"));
        let (at, port) = (Instant::ZERO, Port::Above(0));
        let mut buffer = Buffer::copy_from(&[7; 60]);
        let packet = recorder.arrived(at, place, port, Layer::Packet, &buffer);
        buffer.set_mark(packet.mark(Layer::Packet));
        let carried = recorder.handed_on(at, place, port, (Layer::Payload, &buffer), Some(packet));
        let again = recorder.handed_on(at, place, port, (Layer::Packet, &buffer), Some(packet));
        recorder.finish().unwrap();
        let log = Log::read(memory.take()).unwrap();
        let layers = [packet, carried, again].map(|content| {
            let number = content.mark(Layer::Frame) >> 2;
            log.content(number).map(|content| content.layer)
        });
        assert_eq!(layers, [Some(Layer::Packet), Some(Layer::Payload), Some(Layer::Packet)]);
        assert_eq!(log.contents(), 2);
    }

    #[test]
    fn a_log_that_is_full_says_what_it_has_not() {
        let whole = bytes(10, 1 << 20).len() as u64;
        let log = Log::read(bytes(10, whole - 40)).unwrap();
        assert_eq!(log.events().count(), 18);
        let truncation = Truncation::Full { from: Instant::from_nanos(9), left_out: 2 };
        assert_eq!(log.truncation(), Some(truncation));
    }

    #[test]
    fn a_log_that_is_cut_off_is_read_up_to_the_cut() {
        let whole = bytes(3, 1 << 20);
        let events: Vec<Event> = Log::read(whole.clone()).unwrap().events().collect();
        for len in MAGIC.len()..whole.len() {
            let log = Log::read(whole[..len].to_vec()).unwrap();
            let read: Vec<Event> = log.events().collect();
            assert_eq!(read, events[..read.len()]);
            assert!(read.len() < events.len());
        }
        assert_eq!(Log::read(b"hopcast log 1\n\0\0".to_vec()).err(), Some(LogError::OtherVersion));
        assert_eq!(Log::read(b"nothing".to_vec()).err(), Some(LogError::NotALog));
    }

    #[test]
    fn any_changed_byte_is_read_without_a_panic() {
        let whole = bytes(3, 1 << 20);
        for at in MAGIC.len()..whole.len() {
            for change in [0x01, 0x80, 0xff] {
                let mut damaged = whole.clone();
                damaged[at] ^= change;
                let log = Log::read(damaged).unwrap();
                for number in 1..=log.contents() {
                    assert!(log.content(number).unwrap().bytes.len() <= MAX_STORED);
                }
                for event in log.events() {
                    assert!((event.place as usize) < log.places().len());
                    assert!(event.content == 0 || log.content(event.content).is_some());
                }
            }
        }
    }
}
