//! Captures in pcapng as a log: interfaces and what they sent and received, and the reasons for drops where hopcast
//! wrote them. What happened inside nodes is not in them.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use hopcast_core::Instant;
use hopcast_link::DropReason;
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgParser};

use crate::log::{Layer, Log, LogError, Place, Recorder};

/// A capture that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// It does not begin as pcapng does.
    #[error("this is no capture in pcapng: {0}")]
    NotACapture(pcap_file::PcapError),
    /// The log that is made of it cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
}

/// A packet of a capture.
struct Packet {
    at: Instant,
    /// Its interface, among those of all captures.
    interface: usize,
    layer: Layer,
    direction: Direction,
    bytes: Vec<u8>,
    /// The reason for its loss.
    dropped: Option<&'static str>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Direction {
    In,
    Out,
    Unknown,
}

/// Whether bytes begin as a capture in pcapng does.
pub fn is_capture(bytes: &[u8]) -> bool {
    bytes.starts_with(&[0x0a, 0x0d, 0x0d, 0x0a])
}

/// The log of several captures, which were taken by one clock. A capture that is cut off is read up to the cut. An
/// interface is named `NODE:INTERFACE`, or by its capture and name.
///
/// # Errors
/// If one of them is no capture.
pub fn log_of_captures(captures: &[(String, Vec<u8>)]) -> Result<Log, CaptureError> {
    let mut interfaces: Vec<Place> = Vec::new();
    let mut packets: Vec<Packet> = Vec::new();
    for (name, bytes) in captures {
        read(name, bytes, &mut interfaces, &mut packets)?;
    }
    // Stable: packets of one time keep the order of their capture.
    packets.sort_by_key(|packet| packet.at);
    let memory = Memory::default();
    let mut recorder = Recorder::new(Box::new(memory.clone()), u64::MAX);
    let places: Vec<u32> = interfaces.iter().map(|interface| recorder.place(interface)).collect();
    for Packet { at, interface, layer, direction, bytes, dropped } in packets {
        let place = places[interface];
        match (direction, dropped) {
            (_, Some(reason)) => {
                if direction == Direction::Out {
                    recorder.sent(at, place, &bytes);
                }
                recorder.dropped(at, place, None, &bytes, reason);
            }
            (Direction::Out, None) if layer == Layer::Frame => recorder.sent(at, place, &bytes),
            (Direction::In, None) if layer == Layer::Frame => recorder.delivered(at, place, place, &bytes),
            _ => recorder.seen(at, place, layer, &bytes),
        }
    }
    // Writing to memory does not fail.
    _ = recorder.finish();
    let bytes = memory.0.take();
    Ok(Log::read(bytes)?)
}

fn read(
    name: &str,
    bytes: &[u8],
    interfaces: &mut Vec<Place>,
    packets: &mut Vec<Packet>,
) -> Result<(), CaptureError> {
    let first = interfaces.len();
    let mut layers = Vec::new();
    let (mut rest, mut parser) = PcapNgParser::new(bytes).map_err(CaptureError::NotACapture)?;
    // A block that is not whole ends the capture.
    while let Ok((behind, block)) = parser.next_block(rest) {
        rest = behind;
        match block {
            Block::InterfaceDescription(block) => {
                let own = block.options.iter().find_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                    _ => None,
                });
                let own = own.unwrap_or_else(|| format!("interface-{}", layers.len()));
                let (node, own) = own.split_once(':').map_or((name, &*own), |(node, own)| (node, own));
                interfaces.push(Place::Interface {
                    node: node.to_owned(),
                    name: own.to_owned(),
                    link: String::new(),
                    mtu: 0,
                    mac: [0; 6],
                });
                layers.push(match block.linktype {
                    DataLink::ETHERNET => Some(Layer::Frame),
                    DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => Some(Layer::Packet),
                    _ => None,
                });
            }
            Block::EnhancedPacket(block) => {
                let Some(&Some(layer)) = layers.get(block.interface_id as usize) else { continue };
                let flags = block.options.iter().find_map(|option| match option {
                    EnhancedPacketOption::Flags(flags) => Some(*flags),
                    _ => None,
                });
                let direction = match flags.map(|flags| flags & 3) {
                    Some(1) => Direction::In,
                    Some(2) => Direction::Out,
                    _ => Direction::Unknown,
                };
                let dropped = block.options.iter().find_map(|option| match option {
                    EnhancedPacketOption::Comment(comment) if comment.starts_with("dropped ") => {
                        Some(reason_of(comment))
                    }
                    _ => None,
                });
                let at = Instant::from_nanos(u64::try_from(block.timestamp.as_nanos()).unwrap_or(u64::MAX));
                let interface = first + block.interface_id as usize;
                packets.push(Packet { at, interface, layer, direction, bytes: block.data.to_vec(), dropped });
            }
            _ => {}
        }
    }
    Ok(())
}

/// The reason in the comment of a frame that hopcast captured and the network lost.
fn reason_of(comment: &str) -> &'static str {
    let words = DropReason::ALL.into_iter().map(DropReason::words);
    words.into_iter().find(|words| comment.ends_with(words)).unwrap_or("dropped")
}

/// A log in memory that is being written.
#[derive(Clone, Default)]
struct Memory(Rc<RefCell<Vec<u8>>>);

impl Write for Memory {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
