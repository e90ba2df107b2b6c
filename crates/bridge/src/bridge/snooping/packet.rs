//! The kinds of frames to a group: messages of IGMP and MLD, and other packets.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_wire::membership::{Message, all_nodes};
use hopcast_wire::{ethernet, igmp, ip, mld};

/// A frame to a group, as snooping sees it.
#[derive(Debug)]
pub(super) enum Heard<'a> {
    /// It carries no IP packet.
    NotIp,
    /// A packet or message that is cut off, or that its RFC does not allow.
    Malformed,
    /// A message of IGMP or MLD, with its sender.
    Message(Message<'a>, IpAddr),
    /// Another packet to this address, with whether it announces a multicast router.
    Packet(IpAddr, bool),
}

/// Number of the protocol PIM (RFC 7761 section 4.9), and the first byte of its Hello: version 2, type 0.
const PIM: u8 = 103;
const PIM_HELLO: u8 = 0x20;
/// All PIM routers (RFC 7761 section 4.9).
const PIM_ROUTERS: [IpAddr; 2] =
    [IpAddr::V4(Ipv4Addr::new(224, 0, 0, 13)), IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x0d))];
/// All snoopers, and the type of a router's advertisement to them in IGMP and in MLD (RFC 4286 sections 3 and 5).
const SNOOPERS: [(IpAddr, u8, u8); 2] = [
    (IpAddr::V4(Ipv4Addr::new(224, 0, 0, 106)), ip::IGMP, 0x30),
    (IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x6a)), ip::ICMPV6, 151),
];
/// Type of IGMP's queries (RFC 3376 section 4).
const IGMP_QUERY: u8 = 0x11;
/// Number of IPv6's hop-by-hop options (RFC 8200 section 4.3), which every message of MLD has.
const HOP_BY_HOP: u8 = 0;

/// Reads the packet in a frame of this type. The checks are Linux': IPv4's header checksum is not among them.
pub(super) fn read(ether_type: u16, packet: &[u8]) -> Heard<'_> {
    let version = match ether_type {
        ethernet::IPV4 => 4,
        ethernet::IPV6 => 6,
        _ => return Heard::NotIp,
    };
    let header = match ip::parse_quoted(packet) {
        Ok(header) if packet[0] >> 4 == version => header,
        _ => return Heard::Malformed,
    };
    let Some(payload) = packet.get(header.payload()) else { return Heard::Malformed };
    let message = match (header.source, header.destination) {
        (IpAddr::V4(_), _) if header.protocol == ip::IGMP => match igmp::parse(payload) {
            // A query of a length that no version has.
            Ok(None) if payload.first() == Some(&IGMP_QUERY) => return Heard::Malformed,
            other => other,
        },
        (IpAddr::V6(source), IpAddr::V6(destination))
            if header.protocol == ip::ICMPV6 && packet.get(6) == Some(&HOP_BY_HOP) =>
        {
            mld::parse(source, destination, payload)
        }
        _ => Ok(None),
    };
    match message {
        Err(_) => Heard::Malformed,
        Ok(Some(message)) if is_allowed(&message, &header) => Heard::Message(message, header.source),
        Ok(Some(_)) => Heard::Malformed,
        Ok(None) => Heard::Packet(header.destination, announces_router(&header, payload)),
    }
}

/// Whether a message may have these addresses: a query to all groups is sent to all nodes, and MLD's from a link-local
/// address (RFC 3376 section 4.1.12, RFC 3810 sections 5.1.14 and 5.1.15).
fn is_allowed(message: &Message<'_>, header: &ip::Header) -> bool {
    let Message::Query(query, _) = message else { return true };
    let from_link = match header.source {
        IpAddr::V4(_) => true,
        IpAddr::V6(source) => source.is_unicast_link_local(),
    };
    from_link && (query.group.is_some() || header.destination == all_nodes(header.version))
}

fn announces_router(header: &ip::Header, payload: &[u8]) -> bool {
    let first = payload.first().copied();
    let hello = header.protocol == PIM && first == Some(PIM_HELLO);
    let advertisement = |&(address, protocol, kind): &(IpAddr, u8, u8)| {
        (header.destination, header.protocol, first) == (address, protocol, Some(kind))
    };
    hello && PIM_ROUTERS.contains(&header.destination) || SNOOPERS.iter().any(advertisement)
}
