//! The messages of link-state routing: Hello, Update, Offer, Acknowledgement and Request.
//!
//! ```text
//!  0: version 1   1: type   2: checksum   4: router   8: area   12: body ...
//!
//!  1 Hello            0: hello interval in ms     4: dead interval in ms     8: generation
//!                    12: IPv4 address of the interface, or 0     16: IPv6 address, or 0
//!                    32: identifiers of the routers that are heard there, 4 bytes each
//!  2 Update           advertisements, each its header, the length of its content in 2 bytes, and the content
//!  3 Offer            headers of advertisements that the sender has, 16 bytes each
//!  4 Acknowledgement  headers of advertisements that the sender has received
//!  5 Request          keys of advertisements, 8 bytes each
//! ```
//!
//! A message is a packet of an IP protocol number for experiments with a hop limit of 1, to the group of OSPF's routers
//! (its number is another, so that no router takes it for OSPF). The checksum covers the message, and in IPv6 the
//! pseudo-header too. [`parse`] accepts what [`prepend`] writes; every other byte is refused, with a [reason](Refusal).

mod advertisement;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_core::Buffer;
use hopcast_core::bytes::Reader;
use hopcast_wire::ip::{self, Header as IpHeader, Version};

use super::refusal::Refusal;
use crate::icmp::is_one_host;
use crate::link_message::{HOP_LIMIT, check, content};
pub use advertisement::{
    Advertisement, Content, Header, Key, Kind, Link, MAX_AGE, MAX_ENTRIES, MAX_FRAGMENTS, MAX_METRIC,
    MAX_SEQUENCE, Reach,
};

/// Number of the protocol among those of IP: the first for experiments (RFC 3692 section 2.1).
pub const PROTOCOL: u8 = 253;

/// Version of the messages.
const VERSION: u8 = 1;
/// Length of the header, in bytes.
const HEADER: usize = 12;

const HELLO: u8 = 1;
const UPDATE: u8 = 2;
const OFFER: u8 = 3;
const ACKNOWLEDGEMENT: u8 = 4;
const REQUEST: u8 = 5;

/// A message and its sender.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Identifier of the router that sends it.
    pub router: u32,
    /// The area of its interface.
    pub area: u32,
    /// The message.
    pub message: Message,
}

/// A message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    /// A router announces itself on a link.
    Hello(Hello),
    /// Advertisements.
    Update(Vec<Advertisement>),
    /// Headers that the sender has, for the receiver to request what it lacks.
    Offer(Vec<Header>),
    /// Headers that the sender has received.
    Acknowledgement(Vec<Header>),
    /// Keys that the sender lacks.
    Request(Vec<Key>),
}

/// A Hello (RFC 2328 section 9.5).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hello {
    /// Interval of Hellos, in milliseconds.
    pub interval: u32,
    /// Time after which the sender takes a neighbour for gone, in milliseconds.
    pub dead: u32,
    /// A number that changes when the router has lost its state.
    pub generation: u32,
    /// The addresses by which it is a neighbour on the link, of IPv4 and IPv6.
    pub addresses: [Option<IpAddr>; 2],
    /// Identifiers of the routers that it hears there.
    pub heard: Vec<u32>,
}

/// The group of a link's routers, to which messages are sent (RFC 2328 appendix A.1, RFC 5340 appendix A.1).
pub const fn all_routers(version: Version) -> IpAddr {
    match version {
        Version::V4 => IpAddr::V4(Ipv4Addr::new(224, 0, 0, 5)),
        Version::V6 => IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 5)),
    }
}

/// Number of bytes that the content of a message may have on a link of this MTU.
pub(super) const fn room(version: Version, mtu: u32) -> usize {
    let header = match version {
        Version::V4 => 20,
        Version::V6 => 40,
    };
    (mtu as usize).saturating_sub(header + HEADER)
}

impl Hello {
    fn parse(reader: &mut Reader<'_>) -> Result<Self, Refusal> {
        let interval = reader.u32("hello interval")?;
        let dead = reader.u32("dead interval")?;
        let generation = reader.u32("generation")?;
        let v4 = IpAddr::from(reader.array::<4>("IPv4 address")?);
        let v6 = IpAddr::from(reader.array::<16>("IPv6 address")?);
        let known = |address: IpAddr| match address.is_unspecified() {
            true => Ok(None),
            false if is_one_host(address) => Ok(Some(address)),
            false => Err(Refusal::Sender),
        };
        let addresses = [known(v4)?, known(v6)?];
        let mut heard = Vec::new();
        while !reader.is_empty() {
            heard.push(reader.u32("neighbour")?);
        }
        Ok(Self { interval, dead, generation, addresses, heard })
    }

    fn write(&self, bytes: &mut Vec<u8>) {
        for number in [self.interval, self.dead, self.generation] {
            bytes.extend(number.to_be_bytes());
        }
        let [v4, v6] = self.addresses;
        bytes.extend(if let Some(IpAddr::V4(own)) = v4 { own.octets() } else { [0; 4] });
        bytes.extend(if let Some(IpAddr::V6(own)) = v6 { own.octets() } else { [0; 16] });
        self.heard.iter().for_each(|router| bytes.extend(router.to_be_bytes()));
    }
}

/// Reads the message in a packet of [`PROTOCOL`]. Of an Update, advertisements that are unsound are left out, and
/// counted.
///
/// # Errors
/// The reason why the packet is refused.
pub fn parse(packet: &[u8], header: &IpHeader, unsound: &mut u64) -> Result<Packet, Refusal> {
    let bytes = content(packet, header, all_routers(header.version))?;
    let mut reader = Reader::new(bytes);
    let version = reader.u8("version")?;
    let kind = reader.u8("type")?;
    reader.u16("checksum")?;
    let (router, area) = (reader.u32("router")?, reader.u32("area")?);
    if version != VERSION {
        return Err(Refusal::Version);
    }
    if check(PROTOCOL, header.source, header.destination, bytes) != 0 {
        return Err(Refusal::Checksum);
    }
    let message = match kind {
        HELLO => Message::Hello(Hello::parse(&mut reader)?),
        UPDATE => Message::Update(advertisement::parse_all(&mut reader, unsound)?),
        OFFER => Message::Offer(advertisement::parse_list(&mut reader, Header::parse)?),
        ACKNOWLEDGEMENT => Message::Acknowledgement(advertisement::parse_list(&mut reader, Header::parse)?),
        REQUEST => Message::Request(advertisement::parse_list(&mut reader, Key::parse)?),
        _ => return Err(Refusal::Type),
    };
    Ok(Packet { router, area, message })
}

/// Puts a message and its IP header, from an address of a router on its link, in front of what `buffer` holds, which is
/// to be empty.
///
/// # Panics
/// If the message is longer than a packet can be.
pub fn prepend(buffer: &mut Buffer, own: IpAddr, packet: &Packet) {
    let to = all_routers(Version::of(own));
    let mut bytes = vec![0; HEADER];
    bytes[4..8].copy_from_slice(&packet.router.to_be_bytes());
    bytes[8..12].copy_from_slice(&packet.area.to_be_bytes());
    let kind = match &packet.message {
        Message::Hello(hello) => {
            hello.write(&mut bytes);
            HELLO
        }
        Message::Update(all) => {
            all.iter().for_each(|one| one.write(&mut bytes));
            UPDATE
        }
        Message::Offer(headers) => {
            headers.iter().for_each(|header| header.write(&mut bytes));
            OFFER
        }
        Message::Acknowledgement(headers) => {
            headers.iter().for_each(|header| header.write(&mut bytes));
            ACKNOWLEDGEMENT
        }
        Message::Request(keys) => {
            keys.iter().for_each(|key| key.write(&mut bytes));
            REQUEST
        }
    };
    (bytes[0], bytes[1]) = (VERSION, kind);
    let sum = check(PROTOCOL, own, to, &bytes);
    bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    buffer.prepend(bytes.len()).copy_from_slice(&bytes);
    ip::prepend(buffer, own, to, PROTOCOL, HOP_LIMIT, 0);
}
