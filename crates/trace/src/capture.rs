//! Captures in pcapng as a log: interfaces and what they sent and received, and the reasons for drops where hopcast
//! wrote them. What happened inside nodes is not in them.

use hopcast_core::Instant;
use hopcast_link::DropReason;
use pcap_file::DataLink;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketOption;
use pcap_file::pcapng::blocks::interface_description::InterfaceDescriptionOption;
use pcap_file::pcapng::{Block, PcapNgParser};

use crate::known::{KnownNetwork, other_ends};
use crate::log::{Layer, Log, LogError, MemoryLog, Place};

/// A capture that cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum CaptureError {
    /// It does not begin as pcapng does.
    #[error("this is no capture in pcapng: {0}")]
    NotACapture(pcap_file::PcapError),
    /// None of the captured interfaces is in the network that was said to be theirs.
    #[error(
        "none of the captured interfaces is in the scenario: expected one such as `{expected}`, not `{found}`"
    )]
    OtherNetwork {
        /// The first captured interface.
        found: String,
        /// The interface of the network whose name is the nearest to it.
        expected: String,
    },
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
    /// Its length before the capture cut it.
    length: u32,
    /// The place and the reason of its loss.
    dropped: Option<(LostAt, &'static str)>,
}

/// Where the network lost a frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum LostAt {
    /// Before its link sent it.
    Queue,
    /// On its link, after that.
    Link,
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
/// interface is named `NODE:INTERFACE`, or by its capture and name. Of those that are in a known network the log has
/// more: the link, the MTU and the Ethernet address.
///
/// # Errors
/// If one of them is no capture, or a network is known and has none of their interfaces.
pub fn log_of_captures(
    captures: &[(String, Vec<u8>)],
    known: Option<&KnownNetwork>,
) -> Result<Log, CaptureError> {
    let mut interfaces: Vec<Place> = Vec::new();
    let mut packets: Vec<Packet> = Vec::new();
    for (name, bytes) in captures {
        read(name, bytes, &mut interfaces, &mut packets)?;
    }
    if let Some(known) = known {
        known.name_interfaces(&mut interfaces)?;
    }
    // Stable: packets of one time keep the order of their capture.
    packets.sort_by_key(|packet| packet.at);
    let memory = MemoryLog::default();
    let mut recorder = memory.recorder(u64::MAX);
    let places: Vec<u32> = interfaces.iter().map(|interface| recorder.place(interface)).collect();
    let other_ends = other_ends(&interfaces);
    known.iter().flat_map(|known| &known.names).for_each(|named| recorder.name(named));
    for Packet { at, interface, layer, direction, bytes, length, dropped } in packets {
        recorder.cut_from(length);
        let (place, other) = (places[interface], other_ends[interface].map(|other| places[other]));
        match (direction, dropped) {
            (_, Some((lost_at, reason))) => {
                if direction == Direction::Out && lost_at == LostAt::Link {
                    recorder.sent(at, place, &bytes);
                }
                // A receiver that is not known has the place of the sender.
                let to = (lost_at == LostAt::Link).then(|| other.unwrap_or(place));
                recorder.dropped(at, place, to, &bytes, reason);
            }
            (Direction::Out, None) if layer == Layer::Frame => recorder.sent(at, place, &bytes),
            (Direction::In, None) if layer == Layer::Frame => {
                recorder.delivered(at, place, other.unwrap_or(place), &bytes);
            }
            _ => recorder.seen(at, place, layer, &bytes),
        }
    }
    // Writing to memory does not fail.
    _ = recorder.finish();
    let bytes = memory.take();
    Ok(Log::read(bytes)?)
}

fn read(
    name: &str,
    bytes: &[u8],
    interfaces: &mut Vec<Place>,
    packets: &mut Vec<Packet>,
) -> Result<(), CaptureError> {
    let mut first = interfaces.len();
    // What the interfaces of the section capture, and the resolution of their times.
    let mut described: Vec<(Option<Layer>, u8)> = Vec::new();
    let (mut rest, mut parser) = PcapNgParser::new(bytes).map_err(CaptureError::NotACapture)?;
    // A block that is not whole ends the capture.
    while let Ok((behind, block)) = parser.next_block(rest) {
        rest = behind;
        match block {
            Block::SectionHeader(_) => {
                // A section numbers its interfaces from 0 again.
                first = interfaces.len();
                described.clear();
            }
            Block::InterfaceDescription(block) => {
                let own = block.options.iter().find_map(|option| match option {
                    InterfaceDescriptionOption::IfName(name) => Some(name.to_string()),
                    _ => None,
                });
                let own = own.unwrap_or_else(|| format!("interface-{}", described.len()));
                let resolution = block.options.iter().find_map(|option| match option {
                    InterfaceDescriptionOption::IfTsResol(resolution) => Some(*resolution),
                    _ => None,
                });
                let (node, own) = own.split_once(':').map_or((name, &*own), |(node, own)| (node, own));
                interfaces.push(Place::Interface {
                    node: printable(node),
                    name: printable(own),
                    link: String::new(),
                    mtu: 0,
                    mac: [0; 6],
                });
                let layer = match block.linktype {
                    DataLink::ETHERNET => Some(Layer::Frame),
                    DataLink::RAW | DataLink::IPV4 | DataLink::IPV6 => Some(Layer::Packet),
                    _ => None,
                };
                described.push((layer, resolution.unwrap_or(MICROSECONDS)));
            }
            Block::EnhancedPacket(block) => {
                let Some(&(Some(layer), resolution)) = described.get(block.interface_id as usize) else {
                    continue;
                };
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
                        let at =
                            if comment.starts_with("dropped on ") { LostAt::Link } else { LostAt::Queue };
                        Some((at, reason_of(comment)))
                    }
                    _ => None,
                });
                // The parser takes whatever unit for nanoseconds.
                let at = time(block.timestamp.as_nanos(), resolution);
                let interface = first + block.interface_id as usize;
                let (bytes, length) = (block.data.to_vec(), block.original_len);
                packets.push(Packet { at, interface, layer, direction, bytes, length, dropped });
            }
            _ => {}
        }
    }
    Ok(())
}

/// The resolution of an interface that does not say one.
const MICROSECONDS: u8 = 6;

/// The time of a count of units of `if_tsresol`: 10, or 2 if the highest bit is set, to the power of minus the other
/// bits, in seconds.
fn time(units: u128, resolution: u8) -> Instant {
    let power = u32::from(resolution & 0x7f);
    let base: u128 = if resolution & 0x80 == 0 { 10 } else { 2 };
    let nanos = base.checked_pow(power).map_or(0, |per_second| units * 1_000_000_000 / per_second);
    Instant::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
}

/// A name as the log can have it, whose fields are lines.
fn printable(name: &str) -> String {
    name.chars()
        .map(|letter| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter })
        .collect()
}

/// The reason in the comment of a frame that hopcast captured and the network lost.
fn reason_of(comment: &str) -> &'static str {
    let words = DropReason::ALL.into_iter().map(DropReason::words);
    words.into_iter().find(|words| comment.ends_with(words)).unwrap_or("dropped")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::log::{Flow, Named};
    use crate::verdict::{Finding, verdicts};
    use crate::{Query, follow};

    fn block(kind: u32, body: &[u8]) -> Vec<u8> {
        let length = (body.len() as u32 + 12).to_le_bytes();
        [&kind.to_le_bytes(), &length[..], body, &length].concat()
    }

    fn section() -> Vec<u8> {
        let mut body = vec![0x4d, 0x3c, 0x2b, 0x1a, 1, 0, 0, 0];
        body.extend([0xff; 8]);
        block(0x0a0d_0d0a, &body)
    }

    /// An interface of Ethernet with a name of four letters and a resolution.
    fn interface(name: &[u8; 4], resolution: Option<u8>) -> Vec<u8> {
        let mut body = vec![1, 0, 0, 0, 0, 0, 0, 0, 2, 0, 4, 0];
        body.extend(name);
        if let Some(resolution) = resolution {
            body.extend([9, 0, 1, 0, resolution, 0, 0, 0]);
        }
        body.extend([0; 4]);
        block(1, &body)
    }

    /// A packet of 16 bytes, of which the frame had 100, on the section's first interface.
    fn packet(at: u64) -> Vec<u8> {
        let words = [0, (at >> 32) as u32, at as u32, 16, 100];
        let mut body: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        body.extend([7; 16]);
        block(6, &body)
    }

    fn log_of(captures: &[(String, Vec<u8>)]) -> Result<Log, CaptureError> {
        log_of_captures(captures, None)
    }

    #[test]
    fn sections_have_interfaces_and_resolutions_of_their_own() {
        let first = [section(), interface(b"a:e0", None), packet(5)].concat();
        let second = [section(), interface(b"b:\ne", Some(9)), packet(7)].concat();
        let third = [section(), interface(b"c:e0", Some(0x80 | 1)), packet(3)].concat();
        let log = log_of(&[("file".to_owned(), [first, second, third].concat())]).unwrap();
        let nodes: Vec<&str> = log.places().iter().map(Place::node).collect();
        assert_eq!(nodes, ["a", "b", "c"]);
        let events: Vec<(u64, u32)> = log.events().map(|event| (event.at.as_nanos(), event.place)).collect();
        assert_eq!(events, [(7, 1), (5_000, 0), (1_500_000_000, 2)]);
        assert_eq!(log.content(1).map(|content| (content.length, content.bytes.len())), Some((100, 16)));
        assert_eq!(log.truncation(), None);
    }

    #[test]
    fn no_resolution_overflows() {
        for resolution in 0..=u8::MAX {
            time(u64::MAX.into(), resolution);
        }
    }
    /// A captured frame with a datagram of this number from 10.0.0.1 to 10.0.0.2, whole.
    fn datagram(at: u64, number: u32) -> Vec<u8> {
        let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
        frame.extend([0x45, 0, 0, 60, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2]);
        frame.extend([0, 7, 0, 7, 0, 40, 0, 0]);
        frame.extend(number.to_be_bytes());
        frame.extend([9; 28]);
        let length = frame.len() as u32;
        let words = [0, 0, at as u32, length, length];
        let mut body: Vec<u8> = words.into_iter().flat_map(u32::to_le_bytes).collect();
        body.extend(&frame);
        body.resize(body.len().next_multiple_of(4), 0);
        block(6, &body)
    }

    /// A capture of one interface that has these datagrams, each this many microseconds after its number.
    fn capture(name: &[u8; 4], after: u64, numbers: impl Iterator<Item = u32>) -> (String, Vec<u8>) {
        let packets = numbers.flat_map(|number| datagram(100 * u64::from(number) + after, number));
        let head = [section(), interface(name, None)].concat();
        (String::new(), head.into_iter().chain(packets).collect())
    }

    #[test]
    fn packets_are_followed_over_the_gaps_of_captures() {
        // The capture in the middle has every other packet, and one packet in ten does not come to the last.
        let log = log_of(&[
            capture(b"a:e0", 0, 0..100),
            capture(b"b:e0", 10, (0..100).step_by(2)),
            capture(b"c:e0", 20, (0..100).filter(|number| number % 10 != 5)),
        ])
        .unwrap();
        let story = follow(&log, &Query::parse("udp", &log).unwrap());
        let steps = |count: usize| story.packets.iter().filter(|packet| packet.steps.len() == count).count();
        assert_eq!((story.packets.len(), steps(3), steps(2), steps(1)), (100, 50, 40, 10));
        let last = |packet: &crate::story::Packet| {
            let step = story.ends(packet).last().unwrap();
            log.places()[step.event.place as usize].node().to_owned()
        };
        let ends: Vec<String> = story.packets.iter().map(last).collect();
        assert_eq!(ends.iter().filter(|node| *node == "c").count(), 90);
        assert_eq!(ends.iter().filter(|node| *node == "a").count(), 10);
        let verdicts = verdicts(&story);
        assert!(
            verdicts.iter().all(|verdict| !matches!(verdict.finding, Finding::Died { .. })),
            "{verdicts:?}"
        );
    }

    /// Three nodes in a row, whose links are `l` and `m`.
    fn row() -> KnownNetwork {
        let ends = [("a", "e0", "l", 1), ("b", "e0", "l", 2), ("b", "e1", "m", 3), ("c", "eth0", "m", 4)];
        let interface = |(node, name, link, mac): (&str, &str, &str, u8)| Place::Interface {
            node: node.to_owned(),
            name: name.to_owned(),
            link: link.to_owned(),
            mtu: 1500,
            mac: [2, 0, 0, 0, 0, mac],
        };
        let node = |(number, name): (u8, &str)| Named::Node {
            name: name.to_owned(),
            addresses: vec![[10, 0, 0, number].into()],
        };
        let flow =
            |(name, port)| Named::Flow(Flow { name, from: "a".to_owned(), port, to: vec!["c".to_owned()] });
        let nodes = [(1, "a"), (3, "b"), (2, "c")].map(node);
        let flows = [("f".to_owned(), 7), ("g".to_owned(), 100)].map(flow);
        KnownNetwork {
            interfaces: ends.map(interface).to_vec(),
            names: nodes.into_iter().chain(flows).collect(),
        }
    }

    fn first_lines(log: &Log, query: &str) -> Vec<String> {
        verdicts(&follow(log, &Query::parse(query, log).unwrap())).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn captures_have_the_names_of_a_known_network() {
        // The node of the last interface is the name of its file.
        let (_, last) = capture(b"eth0", 20, 0..10);
        let last = ("some/c.pcapng".to_owned(), last);
        let log = log_of_captures(&[capture(b"a:e0", 0, 0..10), last], Some(&row())).unwrap();
        assert_eq!(log.places().len(), 4);
        for query in ["udp from a to c", "flow f", "at c:eth0", "at a and at c"] {
            assert_eq!(first_lines(&log, query), ["UDP from a:7 to c:7 arrived at c, 10 of 10"], "{query}");
        }
        assert!(first_lines(&log, "flow g").is_empty());
    }

    #[test]
    fn names_that_captures_have_not_get_the_nearest() {
        let captures = [capture(b"a:e0", 0, 0..1)];
        let log = log_of_captures(&captures, Some(&row())).unwrap();
        let mistake = |log: &Log, query| Query::parse(query, log).unwrap_err().to_string();
        let expected = "query, word 2: expected a node, or an interface as NODE:INTERFACE, not `b:e2` (did you mean `b:e0`?)";
        assert_eq!(mistake(&log, "at b:e2"), expected);
        let log = log_of(&captures).unwrap();
        let expected = "query, word 2: expected an IP or Ethernet address, as the log has no names of nodes and groups, not `a`";
        assert_eq!(mistake(&log, "from a"), expected);
        let expected = "query, word 2: expected another term, as the log has no names of flows, not `f`";
        assert_eq!(mistake(&log, "flow f"), expected);
        let other = log_of_captures(&[capture(b"x:e0", 0, 0..1)], Some(&row())).err().unwrap().to_string();
        let expected =
            "none of the captured interfaces is in the scenario: expected one such as `a:e0`, not `x:e0`";
        assert_eq!(other, expected);
    }

    #[test]
    fn a_capture_that_is_cut_off_anywhere_is_read_up_to_the_cut() {
        let (name, whole) = capture(b"a:e0", 0, 0..4);
        let head = section().len();
        let mut read = BTreeSet::new();
        for length in head..=whole.len() {
            let log = log_of(&[(name.clone(), whole[..length].to_vec())]).unwrap();
            read.insert(log.events().count());
        }
        assert_eq!(read.into_iter().collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    }
}
