//! Claim frames, by which the nodes on a LAN tell each other whose clients are whose. They are answers of ARP in form,
//! so that every bridge carries them, and learns by a claim where its client is now.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! | hardware type 1               | protocol type 0x0800          |
//! | lengths 6 and 4               | operation 2                   |
//! | sender: see below                                             |
//! |                               | 0.0.0.0                       |
//! | 0.0.0.0                       | ff                 43         |
//! | 05            | type          | group                         |
//! | 0.0.0.0                                                       |
//! ```
//!
//! | type | Ethernet source | Ethernet destination | sender |
//! |---|---|---|---|
//! | 0 claim | the client | all | the node |
//! | 1 unclaim | the node | all | the client |
//! | 2 announcement | the node | all | 43:05:43:05 and the checksum of its claims |
//! | 3 request | the node | the node that is asked | the node that is asked |
//! | 4 loop probe | a random address | all | the node |

use std::net::Ipv4Addr;

use hopcast_core::Buffer;
use hopcast_wire::arp::{self, Operation, Packet, Station};
use hopcast_wire::ethernet::{self, BROADCAST, Header, Mac};
use hopcast_wire::vlan::{self, Tag};

use crate::translation::Key;
use crate::wire::translation::{TAGGED, vlan_of};

/// Begin of the target's address in every claim frame (`batadv_bla_init`).
const MAGIC: [u8; 3] = [0xff, 0x43, 0x05];
/// Begin of the sender's address in announcements (`batadv_announce_mac`).
const ANNOUNCEMENT: [u8; 4] = [0x43, 0x05, 0x43, 0x05];
/// Begin of the addresses of loop probes (`batadv_bla_is_loopdetect_mac`).
pub(super) const PROBE: [u8; 2] = [0xba, 0xbe];
/// Types of claim frames (`enum batadv_bla_claimframe`).
const CLAIM: u8 = 0;
const UNCLAIM: u8 = 1;
const ANNOUNCE: u8 = 2;
const REQUEST: u8 = 3;
const LOOP_PROBE: u8 = 4;

/// A claim frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ClaimFrame {
    /// Number of the group of nodes that share a LAN and a mesh.
    pub(super) group: u16,
    pub(super) vlan: u16,
    pub(super) message: Message,
}

/// Content of a claim frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Message {
    /// The node brings the client's frames to the LAN from now on.
    Claim { node: Mac, client: Mac },
    /// The node does so no more.
    Unclaim { node: Mac, client: Mac },
    /// The node has claims of this checksum.
    Announce { node: Mac, checksum: u16 },
    /// The node asks another for its claims.
    Request { node: Mac, of: Mac },
    /// The node looks for loops.
    LoopProbe { node: Mac, address: Mac },
}

impl Message {
    /// The node that has sent it.
    pub(super) const fn node(self) -> Mac {
        match self {
            Self::Claim { node, .. }
            | Self::Unclaim { node, .. }
            | Self::Announce { node, .. }
            | Self::Request { node, .. }
            | Self::LoopProbe { node, .. } => node,
        }
    }
}

/// Result of looking for a claim frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// Not a claim frame.
    Other,
    Frame(ClaimFrame),
    /// A claim frame that says nothing, or in more than one tag of VLANs.
    Malformed,
}

/// Reads a client's frame (`batadv_bla_process_claim`).
pub(super) fn read(frame: &[u8]) -> Found {
    let mut at = ethernet::HEADER - 2;
    let mut tags = 0;
    let word =
        |at: usize| frame.get(at..).and_then(<[u8]>::first_chunk).map(|bytes| u16::from_be_bytes(*bytes));
    while word(at) == Some(vlan::CUSTOMER) {
        at += vlan::TAG;
        tags += 1;
    }
    if word(at) != Some(arp::ETHER_TYPE) {
        return Found::Other;
    }
    let (Ok(header), Some(Ok(packet))) = (ethernet::parse(frame), frame.get(at + 2..).map(arp::parse)) else {
        return Found::Other;
    };
    let [a, b, c, kind, high, low] = packet.target.mac;
    if [a, b, c] != MAGIC || kind > LOOP_PROBE {
        return Found::Other;
    }
    let vlan = vlan_of(vlan::tag(frame));
    let group = u16::from_be_bytes([high, low]);
    match message(kind, header, packet.sender.mac).filter(|_| tags < 2) {
        Some(message) => Found::Frame(ClaimFrame { group, vlan, message }),
        None => Found::Malformed,
    }
}

fn message(kind: u8, Header { source, destination, .. }: Header, sender: Mac) -> Option<Message> {
    match kind {
        CLAIM => (!ethernet::is_group(source)).then_some(Message::Claim { node: sender, client: source }),
        UNCLAIM => Some(Message::Unclaim { node: source, client: sender }),
        ANNOUNCE => {
            let [a, b, c, d, high, low] = sender;
            let checksum = u16::from_be_bytes([high, low]);
            ([a, b, c, d] == ANNOUNCEMENT).then_some(Message::Announce { node: source, checksum })
        }
        REQUEST => (sender == destination).then_some(Message::Request { node: source, of: sender }),
        _ => Some(Message::LoopProbe { node: sender, address: source }),
    }
}

impl ClaimFrame {
    /// The frame as it is sent to the LAN.
    pub(super) fn bytes(self) -> Buffer {
        let (kind, source, destination, sender) = match self.message {
            Message::Claim { node, client } => (CLAIM, client, BROADCAST, node),
            Message::Unclaim { node, client } => (UNCLAIM, node, BROADCAST, client),
            Message::Announce { node, checksum } => {
                let ([a, b, c, d], [high, low]) = (ANNOUNCEMENT, checksum.to_be_bytes());
                (ANNOUNCE, node, BROADCAST, [a, b, c, d, high, low])
            }
            Message::Request { node, of } => (REQUEST, node, of, of),
            Message::LoopProbe { node, address } => (LOOP_PROBE, address, BROADCAST, node),
        };
        let ([a, b, c], [high, low]) = (MAGIC, self.group.to_be_bytes());
        let station = |mac| Station { mac, address: Ipv4Addr::UNSPECIFIED };
        let (sender, target) = (station(sender), station([a, b, c, kind, high, low]));
        let mut frame = Buffer::copy_from(&[]);
        arp::prepend(&mut frame, &Packet { operation: Operation::Reply, sender, target });
        ethernet::prepend(&mut frame, Header { destination, source, ether_type: arp::ETHER_TYPE });
        if self.vlan & TAGGED != 0 {
            vlan::push(&mut frame, Tag { kind: vlan::CUSTOMER, id: self.vlan & !TAGGED });
        }
        frame
    }
}

/// CRC-16 with the polynomial 0x8005, lowest bit first, from 0 (Linux' `crc16`): of a node's address it is the number
/// of the group at first, and of clients' addresses, added without carry, the checksum of claims.
pub(super) fn crc16(address: Mac) -> u16 {
    address.iter().fold(0, |crc, byte| {
        (0..8).fold(crc ^ u16::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 != 0 { 0xa001 } else { 0 })
    })
}

/// Whether a client is a node that looks for loops.
pub(crate) fn is_loop_probe(client: Key) -> bool {
    client.address.starts_with(&PROBE)
}

#[cfg(test)]
mod tests {
    use super::*;

    const NODE: Mac = [2, 0, 0, 0, 0, 1];
    const OTHER: Mac = [2, 0, 0, 0, 0, 2];

    #[test]
    fn the_checksum_is_crc_16_arc() {
        // Its value of "123456789" is 0xbb3d, which goes on from that of the first six bytes.
        let rest = b"789".iter().fold(crc16(*b"123456"), |crc, byte| {
            (0..8).fold(crc ^ u16::from(*byte), |crc, _| crc >> 1 ^ if crc & 1 != 0 { 0xa001 } else { 0 })
        });
        assert_eq!((rest, crc16([0; 6])), (0xbb3d, 0));
    }

    #[test]
    fn a_frame_that_is_read_is_the_one_that_was_written() {
        let messages = [
            Message::Claim { node: NODE, client: OTHER },
            Message::Unclaim { node: NODE, client: OTHER },
            Message::Announce { node: NODE, checksum: 0x1234 },
            Message::Request { node: NODE, of: OTHER },
            Message::LoopProbe { node: NODE, address: [0xba, 0xbe, 1, 2, 3, 4] },
        ];
        for message in messages {
            for vlan in [0, 7 | TAGGED] {
                let frame = ClaimFrame { group: 0xabcd, vlan, message };
                let bytes = frame.bytes();
                assert_eq!(read(&bytes), Found::Frame(frame));
                assert_eq!(message.node(), NODE);
                (0..bytes.len()).for_each(|len| assert_eq!(read(&bytes[..len]), Found::Other, "{len}"));
            }
        }
        let claim = ClaimFrame { group: 0xabcd, vlan: 0, message: messages[0] }.bytes();
        let expected = [
            &[0xff; 6][..],
            &OTHER,
            &[8, 6, 0, 1, 8, 0, 6, 4, 0, 2],
            &NODE,
            &[0; 4],
            &[0xff, 0x43, 5, 0, 0xab, 0xcd, 0, 0, 0, 0],
        ];
        assert_eq!(claim[..], expected.concat());
    }

    #[test]
    fn frames_that_say_nothing_are_malformed_and_all_others_are_clients() {
        let frame = |message| ClaimFrame { group: 1, vlan: 7 | TAGGED, message }.bytes();
        let claim = frame(Message::Claim { node: NODE, client: OTHER });
        let mut twice = claim.to_vec();
        twice.splice(12..12, [0x81, 0, 0, 9]);
        assert_eq!(read(&twice), Found::Malformed);
        let mut of_group = claim.to_vec();
        of_group[6] = 1;
        assert_eq!(read(&of_group), Found::Malformed);
        let mut unsigned = frame(Message::Announce { node: NODE, checksum: 1 }).to_vec();
        unsigned[18 + 8] = 0x42;
        assert_eq!(read(&unsigned), Found::Malformed);
        let mut to_another = frame(Message::Request { node: NODE, of: OTHER }).to_vec();
        to_another[..6].copy_from_slice(&NODE);
        assert_eq!(read(&to_another), Found::Malformed);
        let mut unknown = claim.to_vec();
        unknown[18 + 18 + 3] = 5;
        assert_eq!(read(&unknown), Found::Other);
    }
}
