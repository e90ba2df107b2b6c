//! MEADcast's packets: IPv6 with a routing header of a type for experiments (RFC 3692), as the thesis has it in figure
//! 4.1. Integers are in network byte order.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  next header  |  hdr ext len  | routing type  | segments left |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |   num. dst.   |D|R|   hops    |           reserved            |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                         delivery map                          |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                          router map                           |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                address list, 16 bytes each                    …
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! D says discovery, R (with D) a response. The routing type is 253, and there are never segments left, so that routers
//! and receivers that do not know the type pass over the header (RFC 8200, section 4.4). A packet of discovery is
//! nothing but its headers, with next header 59, and lists one receiver: that of a request is its destination. A packet
//! of data lists routers, each in front of the receivers that it is responsible for. Bit i of a map, counted from the
//! left, is for address i: the router map says that it is a router, the delivery map that its receivers have not been
//! served.
//!
//! Behind it may be a list of ports ([`ports`]), one for each receiver of a packet of data, in their order. Its option
//! is one that receivers skip if they do not know it.
//!
//! # Departures
//!
//! - Maps and flags are as figure 4.1 draws them, the first bit on the left. The thesis' kernel code writes the maps in
//!   the order of the processor's bytes, and the flags from the right; its packets are refused.
//! - The thesis leaves out the list of ports, and the papers do not say its option: it is 0x1e, for experiments (RFC
//!   4727), whose first bits say "skip" and "does not change".
//! - A packet of data without anything to deliver, a map that marks what the other does not, a list in which receivers
//!   have no router or routers no receivers, and addresses of several hosts or of a link are refused; the thesis asks
//!   for "basic sanity checks".
//! - The papers' hop-by-hop header is refused, which the thesis has left out.

use std::net::Ipv6Addr;

use hopcast_core::{Buffer, Writer};
use hopcast_wire::ip;

use crate::address::{has_pair, is_host};
use crate::header::{self, ROUTING, Read, UpperLayer};
use crate::{Bitmap, Refusal, ports};

pub(crate) mod edit;
#[cfg(test)]
pub(crate) mod tests;

pub use hopcast_wire::ip::NO_NEXT_HEADER;
/// Routing type of MEADcast, one of those for experiments (RFC 3692; thesis, table 4.1).
pub const ROUTING_TYPE: u8 = 253;
/// Type of the destination option with the ports.
pub const PORTS_OPTION: u8 = 0x1e;
/// Maximum number of addresses in a list: bits of a map.
pub const MAX_LIST: usize = 32;
/// Maximum count of hops: six bits.
pub const MAX_HOPS: u8 = 63;
/// Bytes of the header in front of its list.
pub const FIXED: usize = 16;

/// Flag of discovery, and of a response.
const DISCOVERY: u8 = 0x80;
const RESPONSE: u8 = 0x40;

/// Bytes that MEADcast adds to a packet of IPv6 with a list of `addresses`, of which `receivers` have a port each; no
/// ports are 0.
pub const fn overhead(addresses: usize, receivers_with_ports: usize) -> usize {
    let ports = match receivers_with_ports {
        0 => 0,
        count => ports::header_len(count),
    };
    FIXED + 16 * addresses + ports
}

/// The purpose of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Discovery: asks the routers on the way to the receiver in the list to name themselves.
    Request,
    /// Discovery: the source is a router on the way to the receiver in the list.
    Response,
    /// Data for receivers in the list.
    Data {
        /// The routers whose receivers have not been served; at least one.
        delivery: Bitmap,
        /// The routers.
        routers: Bitmap,
    },
}

/// A packet of MEADcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Traffic class, in the upper 8 bits, and flow label, in the lower 20, of the IPv6 header.
    pub traffic: u32,
    /// The hop limit of IPv6.
    pub hop_limit: u8,
    /// The sender's address; of a response, the router's.
    pub source: Ipv6Addr,
    /// The first receiver behind the first router that is not delivered, the receiver that a request asks about, or the
    /// sender that a response is for.
    pub destination: Ipv6Addr,
    /// Its purpose.
    pub kind: Kind,
    /// Number of MEADcast routers that it has passed, [`MAX_HOPS`] at most; of a response, the router's distance.
    pub hops: u8,
    /// Zero, by who sends it; routers leave it as it is.
    pub reserved: u16,
    /// The addresses.
    pub list: &'a [[u8; 16]],
    /// The ports of the receivers, if they are listed.
    pub ports: Option<&'a [[u8; 2]]>,
    /// The protocol of the payload.
    pub protocol: u8,
    /// The payload, a segment of that protocol.
    pub payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Reads a packet, and nothing that is not as [`emit`](Self::emit) writes it, but for bytes behind its end.
    ///
    /// # Errors
    /// The first reason to drop it.
    #[inline]
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Refusal> {
        let read = header::parse(bytes, ROUTING_TYPE)?;
        let fixed = read.routing.first_chunk::<FIXED>().ok_or(Refusal::Form)?;
        let count = usize::from(fixed[4]);
        match count {
            0 => return Err(Refusal::EmptyList),
            1..=MAX_LIST => {}
            _ => return Err(Refusal::LongList),
        }
        if read.routing.len() != overhead(count, 0) || fixed[3] != 0 {
            return Err(Refusal::Form);
        }
        let list = read.routing[FIXED..].as_chunks::<16>().0;
        let (source, destination) = (read.source.octets(), read.destination.octets());
        if !is_host(&source) {
            return Err(Refusal::Source);
        }
        if !list.iter().all(is_host) {
            return Err(Refusal::Listed);
        }
        if has_pair(list) {
            return Err(Refusal::Repeated);
        }
        let maps = [&fixed[8..12], &fixed[12..16]].map(Bitmap::read);
        let kind = Self::kind(fixed[5], maps, list, &destination)?;
        if kind == Kind::Request && source == destination {
            // Nobody asks for the path to itself, and there is no response to that.
            return Err(Refusal::Destination);
        }
        let UpperLayer { ports, protocol, payload } = Self::upper_layer(kind, count, &read)?;
        Ok(Self {
            traffic: read.traffic,
            hop_limit: read.hop_limit,
            source: read.source,
            destination: read.destination,
            kind,
            hops: fixed[5] & MAX_HOPS,
            reserved: u16::from_be_bytes([fixed[6], fixed[7]]),
            list,
            ports,
            protocol,
            payload,
        })
    }

    fn kind(
        flags: u8,
        [delivery, routers]: [Bitmap; 2],
        list: &[[u8; 16]],
        destination: &[u8; 16],
    ) -> Result<Kind, Refusal> {
        if delivery.end() > list.len() || routers.end() > list.len() {
            return Err(Refusal::PastList);
        }
        let kind = match flags & (DISCOVERY | RESPONSE) {
            0 => return Self::data(delivery, routers, list.len()),
            DISCOVERY => Kind::Request,
            RESPONSE => return Err(Refusal::Flags),
            _ => Kind::Response,
        };
        if (delivery, routers) != (Bitmap::EMPTY, Bitmap::EMPTY) {
            return Err(Refusal::Bitmaps);
        }
        // A list of one receiver, which is the destination of a request and no response's.
        if list.len() != 1 || (list[0] == *destination) != (kind == Kind::Request) {
            return Err(Refusal::Destination);
        }
        Ok(kind)
    }

    fn data(delivery: Bitmap, routers: Bitmap, count: usize) -> Result<Kind, Refusal> {
        if !delivery.is_within(routers) {
            return Err(Refusal::Bitmaps);
        }
        if delivery == Bitmap::EMPTY {
            return Err(Refusal::Delivered);
        }
        if !routers.has(0) || routers.end() == count || routers.has_neighbours() {
            return Err(Refusal::Unassigned);
        }
        Ok(Kind::Data { delivery, routers })
    }

    #[inline]
    fn upper_layer(kind: Kind, count: usize, read: &Read<'a>) -> Result<UpperLayer<'a>, Refusal> {
        if let Kind::Data { routers, .. } = kind {
            return read.upper_layer(PORTS_OPTION, count - routers.len());
        }
        match read.next() {
            (protocol @ NO_NEXT_HEADER, payload @ []) => Ok(UpperLayer { ports: None, protocol, payload }),
            (ROUTING, _) => Err(Refusal::NestedRouting),
            _ => Err(Refusal::Payload),
        }
    }

    /// Bytes of all headers in front of the payload.
    pub fn header_len(&self) -> usize {
        ip::V6_HEADER
            + overhead(self.list.len(), 0)
            + self.ports.map_or(0, |ports| ports::header_len(ports.len()))
    }

    /// Writes the packet.
    ///
    /// # Panics
    /// If it becomes longer than its length fields can say.
    pub fn emit(&self) -> Buffer {
        let mut buffer = Buffer::copy_from(self.payload);
        self.prepend(&mut buffer);
        buffer
    }

    /// Puts all headers in front of the payload in `buffer`, which need not be [`payload`](Self::payload).
    ///
    /// # Panics
    /// If the packet becomes longer than its length fields can say.
    pub fn prepend(&self, buffer: &mut Buffer) {
        let next_header = ports::prepend(buffer, self.protocol, PORTS_OPTION, self.ports);
        assert!(self.list.len() <= MAX_LIST, "a list has at most {MAX_LIST} addresses");
        let (flags, delivery, routers) = match self.kind {
            Kind::Request => (DISCOVERY, Bitmap::EMPTY, Bitmap::EMPTY),
            Kind::Response => (DISCOVERY | RESPONSE, Bitmap::EMPTY, Bitmap::EMPTY),
            Kind::Data { delivery, routers } => (0, delivery, routers),
        };
        let mut header = Writer::new(buffer.prepend(FIXED + 16 * self.list.len()));
        header.put(&[next_header, (1 + 2 * self.list.len()) as u8, ROUTING_TYPE, 0]);
        header.put(&[self.list.len() as u8, flags | self.hops & MAX_HOPS]);
        header.u16(self.reserved);
        header.put(&delivery.bytes()[..MAX_LIST / 8]);
        header.put(&routers.bytes()[..MAX_LIST / 8]);
        header.put(self.list.as_flattened());
        header::prepend(buffer, [self.source, self.destination], ROUTING, self.traffic, self.hop_limit);
    }
}
