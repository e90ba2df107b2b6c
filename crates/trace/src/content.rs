//! The layers of a packet's bytes, and the keys by which its copies are matched.

use std::net::IpAddr;

use hopcast_mesh::wire as mesh;
use hopcast_mesh::wire::Header as _;
use hopcast_wire::ip::Header;
use hopcast_wire::membership::Message;
use hopcast_wire::{arp, ethernet, icmp, igmp, ip, mld, vlan};

use crate::fragment::{Fragment, datagram_key};
use crate::log::{Content, Layer, mix};

/// Maximum number of VLAN tags that are read. Chosen: two are in use, and five are a mistake that is to be seen.
const MAX_TAGS: usize = 8;

/// Bytes of a header and payload that a key is made of. Chosen: those that are in the log however long the headers in
/// front are: 128 bytes less Ethernet, two tags, IPv6 and UDP, rounded down.
const KEY_BYTES: usize = 48;

/// Minimum length of a payload by which copies are matched; shorter ones are too often the same.
const MIN_PAYLOAD: u32 = 8;

/// The layers of a packet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layers {
    /// The Ethernet header, of a frame; its type is that behind all tags. Of one that carries a client's frame through
    /// a mesh, all else is of the client's.
    pub ethernet: Option<ethernet::Header>,
    /// The numbers of its VLANs, outermost first.
    pub vlans: Vec<u16>,
    /// The ARP packet.
    pub arp: Option<arp::Packet>,
    /// The IP header.
    pub ip: Option<Header>,
    /// The part of a packet that it carries, if it is a fragment.
    pub fragment: Option<Fragment>,
    /// The ports of UDP or TCP: source, destination.
    pub ports: Option<(u16, u16)>,
    /// The ICMP message.
    pub icmp: Option<icmp::Message>,
    /// The kind of a message of IGMP or MLD that is stored whole.
    pub membership: Option<Membership>,
    /// The addresses of the packet that an ICMP error quotes.
    pub quoted: Option<(IpAddr, IpAddr)>,
    /// The key of the packet that an ICMP error quotes, as [`Keys::packet`]; 0 if too little of it is there.
    pub quoted_key: u64,
    /// The keys by which copies are matched.
    pub keys: Keys,
}

/// A kind of message of IGMP or MLD.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Membership {
    /// A querier asks who is a member.
    Query,
    /// A host says that it is a member, or leaves.
    Report,
}

/// Hashes of what copies of a packet have in common; 0 stands for none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    /// Of the IP packet without what routers change: the hop limit, the traffic class and the checksum.
    pub packet: u64,
    /// Of what the innermost header carries; a copy whose addresses were rewritten has it too.
    pub payload: u64,
    /// Of what fragments of one packet have in common with each other, and with it: addresses, protocol and
    /// identification. It is no key of a copy.
    pub datagram: u64,
}

impl Keys {
    /// The keys of copies that there are.
    pub fn iter(self) -> impl Iterator<Item = u64> {
        [self.packet, self.payload].into_iter().filter(|&key| key != 0)
    }
}

impl Layers {
    /// Reads the layers of a content as far as they parse.
    pub fn of(content: Content<'_>) -> Self {
        let mut layers = Self::default();
        match content.layer {
            Layer::Frame => layers.read_frame(content.bytes, content.length),
            Layer::Packet => layers.read_packet(content.bytes, content.length),
            Layer::Payload => layers.keys.payload = payload_key(content.bytes, content.length),
        }
        layers
    }

    /// Whether it is an ICMP error, which quotes another packet.
    pub fn is_icmp_error(&self) -> bool {
        self.ip.zip(self.icmp).is_some_and(|(ip, message)| message.is_error(ip.version))
    }

    fn read_frame(&mut self, bytes: &[u8], length: u32) {
        let Ok(header) = ethernet::parse(bytes) else { return };
        let (mut ether_type, mut behind) = (header.ether_type, ethernet::HEADER);
        while matches!(ether_type, vlan::CUSTOMER | vlan::PROVIDER) && self.vlans.len() < MAX_TAGS {
            let Some(&[high, low, t0, t1]) = bytes.get(behind..).and_then(|rest| rest.first_chunk()) else {
                break;
            };
            self.vlans.push(u16::from_be_bytes([high, low]) & 0x0fff);
            (ether_type, behind) = (u16::from_be_bytes([t0, t1]), behind + vlan::TAG);
        }
        // In a client's frame it is there already.
        let is_outer = self.ethernet.is_none();
        self.ethernet.get_or_insert(ethernet::Header { ether_type, ..header });
        let length = length.saturating_sub(behind as u32);
        let payload = bytes.get(behind..).unwrap_or_default();
        match ether_type {
            ethernet::IPV4 | ethernet::IPV6 => self.read_packet(payload, length),
            arp::ETHER_TYPE => {
                self.arp = arp::parse(payload).ok();
                let body = &payload[..payload.len().min(arp::LEN)];
                self.keys.payload = key(2, body, 0);
            }
            mesh::ETHER_TYPE if is_outer && let Some(front) = front_of_client(payload) => {
                self.read_frame(&payload[front..], length.saturating_sub(front as u32));
            }
            _ => self.keys.payload = stored_key(u64::from(ether_type) << 8, payload, length),
        }
    }

    fn read_packet(&mut self, bytes: &[u8], length: u32) {
        let Ok(header) = ip::parse_quoted(bytes) else {
            self.keys.payload = stored_key(3, bytes, length);
            return;
        };
        self.keys.packet = packet_key(bytes, &header);
        self.keys.datagram = datagram_key(bytes, &header);
        self.ip = Some(header);
        self.fragment = Fragment::of(bytes, &header);
        self.membership = bytes.get(header.payload()).and_then(|body| membership(&header, body));
        let body = bytes.get(header.header_len..).unwrap_or_default();
        let length = header.total_len.saturating_sub(header.header_len) as u32;
        if let Some(fragment) = self.fragment {
            // Behind the first one there is no header of the protocol.
            match header.protocol {
                _ if fragment.offset != 0 => {}
                ip::UDP | ip::TCP => self.ports = ip::ports(body),
                protocol if protocol == icmp::protocol(header.version) => {
                    self.icmp = icmp::parse_quoted(header.version, body).ok();
                }
                _ => {}
            }
            let kind = mix(self.keys.datagram, fragment.offset.into());
            self.keys.payload = stored_key(kind, body, length);
            return;
        }
        match header.protocol {
            ip::UDP => {
                self.ports = ip::ports(body);
                let payload = body.get(8..).unwrap_or_default();
                self.keys.payload = payload_key(payload, length.saturating_sub(8));
            }
            ip::TCP => {
                self.ports = ip::ports(body);
                let (kept, len) = without_checksum(body, 16);
                self.keys.payload = stored_key(header.protocol.into(), &kept[..len], length);
            }
            protocol if protocol == icmp::protocol(header.version) => {
                self.icmp = icmp::parse_quoted(header.version, body).ok();
                if self.is_icmp_error() {
                    let quoted = body.get(icmp::HEADER..).unwrap_or_default();
                    if let Ok(header) = ip::parse_quoted(quoted) {
                        self.quoted = Some((header.source, header.destination));
                        self.quoted_key = packet_key(quoted, &header);
                    }
                }
                let (kept, len) = without_checksum(body, 2);
                self.keys.payload = stored_key(protocol.into(), &kept[..len], length);
            }
            protocol => self.keys.payload = stored_key(protocol.into(), body, length),
        }
    }
}

/// Bytes of a mesh's packet in front of the whole frame of a client; `None` of others.
fn front_of_client(packet: &[u8]) -> Option<usize> {
    let front = match mesh::packet_type(packet).ok()? {
        mesh::PacketType::Unicast => mesh::data::Unicast::LEN,
        mesh::PacketType::Unicast4Addr => mesh::data::Unicast4Addr::LEN,
        mesh::PacketType::Broadcast => mesh::data::Broadcast::LEN,
        _ => return None,
    };
    (packet.len() >= front).then_some(front)
}

/// The kind of a message of IGMP or MLD, behind this header.
fn membership(header: &Header, body: &[u8]) -> Option<Membership> {
    let message = match (header.source, header.destination) {
        _ if header.protocol == ip::IGMP => igmp::parse(body),
        (IpAddr::V6(from), IpAddr::V6(to)) if header.protocol == ip::ICMPV6 => mld::parse(from, to, body),
        _ => return None,
    };
    Some(match message.ok()?? {
        Message::Query(..) => Membership::Query,
        Message::Report(_) | Message::OlderReport(..) | Message::Leave(_) => Membership::Report,
    })
}

/// Whether `outer` carries `inner` behind further headers: it is longer, and ends with the same bytes as far as both
/// are stored.
pub fn carries(outer: Content<'_>, inner: Content<'_>) -> bool {
    /// Minimum number of bytes that must be the same. Chosen: more than chance, and less than the shortest packet.
    const MIN_SHARED: usize = 16;
    let Some(front) = outer.length.checked_sub(inner.length) else { return false };
    let Some(behind) = outer.bytes.get(front as usize..) else { return false };
    let shared = behind.len().min(inner.bytes.len());
    shared >= MIN_SHARED.min(inner.length as usize) && shared > 0 && behind[..shared] == inner.bytes[..shared]
}

fn payload_key(bytes: &[u8], length: u32) -> u64 {
    if length < MIN_PAYLOAD { 0 } else { stored_key(1, bytes, length) }
}

/// The key of a payload; 0 if not all bytes that it is made of are stored, as all payloads would be alike then.
fn stored_key(kind: u64, bytes: &[u8], length: u32) -> u64 {
    let is_stored = bytes.len() >= KEY_BYTES.min(length as usize);
    if is_stored { key(kind, bytes, length.into()) } else { 0 }
}

fn packet_key(bytes: &[u8], header: &Header) -> u64 {
    let mut kept = [0; KEY_BYTES];
    let shown = bytes.len().min(KEY_BYTES);
    kept[..shown].copy_from_slice(&bytes[..shown]);
    let version = kept[0];
    match header.version {
        ip::Version::V4 => [1, 8, 10, 11].into_iter().for_each(|at| kept[at] = 0),
        ip::Version::V6 => {
            kept[0] &= 0xf0;
            [1, 7].into_iter().for_each(|at| kept[at] = 0);
        }
    }
    // What follows IPv4's header is covered by KEY_BYTES, and of IPv6 only the addresses.
    let transport = bytes.get(header.header_len..).unwrap_or_default();
    let covered = header.total_len.saturating_sub(header.header_len).min(16);
    if transport.len() < covered {
        return 0;
    }
    let hash = key(u64::from(version) << 16, &kept[..shown], header.total_len as u64);
    key(hash, &transport[..transport.len().min(16)], 0)
}

/// The first bytes of a segment, with zeros for its checksum.
fn without_checksum(segment: &[u8], at: usize) -> ([u8; KEY_BYTES], usize) {
    let (mut kept, len) = ([0; KEY_BYTES], segment.len().min(KEY_BYTES));
    kept[..len].copy_from_slice(&segment[..len]);
    kept[at..at + 2].fill(0);
    (kept, len)
}

/// The hash of some kind of bytes, of which the first count, and a length; never 0.
fn key(kind: u64, bytes: &[u8], length: u64) -> u64 {
    let (words, rest) = bytes[..bytes.len().min(KEY_BYTES)].as_chunks::<8>();
    let hash = words.iter().fold(mix(kind, length), |hash, word| mix(hash, u64::from_le_bytes(*word)));
    let hash = rest.iter().fold(hash, |hash, &byte| mix(hash, byte.into()));
    (hash ^ hash >> 31).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_stored_has_no_key() {
        let mut packet = vec![0x45, 0, 0, 200, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([0, 7, 0, 7, 0, 180, 0, 0]);
        packet.extend([9; 172]);
        let keys = |stored: usize| {
            Layers::of(Content { layer: Layer::Packet, length: 200, bytes: &packet[..stored] }).keys
        };
        assert!(keys(200).packet != 0 && keys(200).payload != 0);
        assert_eq!(keys(200), keys(76));
        assert_eq!(keys(75).payload, 0);
        assert_eq!(keys(28), Keys::default());
    }

    #[test]
    fn a_clients_frame_in_a_mesh_has_the_keys_of_its_packet() {
        let frame = |ether_type: [u8; 2], to: u8, behind: &[u8]| {
            [&[2, 0, 0, 0, 0, to, 2, 0, 0, 0, 0, 9], &ether_type[..], behind].concat()
        };
        let mut packet = vec![0x45, 0, 0, 48, 0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        packet.extend([0, 7, 0, 8, 0, 28, 0, 0]);
        packet.extend([9; 20]);
        let client = frame([0x81, 0], 1, &[&[0, 7, 8, 0], &*packet].concat());
        let unicast = [&[0x40, 15, 49, 1, 2, 0, 0, 0, 0, 3], &*client].concat();
        let in_mesh = frame([0x43, 0x05], 4, &unicast);
        let of = |layer, bytes: &[u8]| Layers::of(Content { layer, length: bytes.len() as u32, bytes });
        let (outer, own) = (of(Layer::Frame, &in_mesh), of(Layer::Packet, &packet));
        assert_eq!((outer.keys, outer.ports, outer.vlans), (own.keys, Some((7, 8)), vec![7]));
        assert_eq!(outer.ethernet.map(|header| header.destination), Some([2, 0, 0, 0, 0, 4]));
        // A mesh in a mesh is not followed, however deep.
        let deep =
            (0..2000).fold(in_mesh, |inner, _| frame([0x43, 0x05], 4, &[&unicast[..10], &inner].concat()));
        assert_eq!(of(Layer::Frame, &deep).ports, None);
    }
}
