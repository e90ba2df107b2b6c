//! MEADcast's packets: IPv6 with a routing header of a type for experiments (RFC 3692), as the thesis has it in figure
//! 4.1. Integers are in network byte order.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  next header  |  hdr ext len  | routing type  | segments left |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |   num. dst.   |D|R|   hops    |     hold      |   reserved    |
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
//! Hold is the revision's counter: as long as it is not zero, the packet is not copied. The maps of discovery may be a
//! nonce, and a response may have an authentication code of 16 bytes behind its list; see [`Key`](super::Key).
//!
//! Behind it may be a list of ports ([`ports`]), one for each receiver of a packet of data, in their order. Its option
//! is one that receivers skip if they do not know it.
//!
//! # The revision
//!
//! Section 5.2.4 of the thesis proposes changes without their formats, which are ours. Those above leave the header
//! as it is; a [short list](short) is another header.
//!
//! - "A counter that decrements with each forwarding MEADcast router", not replicated while it is more than zero: the
//!   first byte of the reserved field, which routers of the thesis do not read.
//! - "Targeting packets to the next MEADcast hop": the destination is a router of the list, which needs no field.
//!   Whoever makes copies addresses them as the packet was.
//! - "An authentication mechanism for discovery responses": a nonce in the maps, which discovery has no use for, and a
//!   code behind the list.
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
pub mod short;
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

/// Bytes of a response's authentication code.
pub const CODE: usize = 16;

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
    Request {
        /// The number that responses have to repeat; 0 is none.
        nonce: u64,
    },
    /// Discovery: the source is a router on the way to the receiver in the list.
    Response {
        /// That of the request.
        nonce: u64,
        /// The authentication code, of a router with a key.
        code: Option<[u8; CODE]>,
    },
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
    /// The first receiver behind the first router that is not delivered, or that router; the receiver that a request
    /// asks about, or the sender that a response is for.
    pub destination: Ipv6Addr,
    /// Its purpose.
    pub kind: Kind,
    /// Number of MEADcast routers that it has passed, [`MAX_HOPS`] at most; of a response, the router's distance.
    pub hops: u8,
    /// Number of MEADcast routers that pass it on before it is copied, of data; 0 of discovery.
    pub hold: u8,
    /// Zero, by who sends it; routers leave it as it is.
    pub reserved: u8,
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
        let (list, behind) = read.routing[FIXED..].split_at_checked(16 * count).ok_or(Refusal::Form)?;
        if fixed[3] != 0 {
            return Err(Refusal::Form);
        }
        let list = list.as_chunks::<16>().0;
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
        let kind = match fixed[5] & (DISCOVERY | RESPONSE) {
            0 if behind.is_empty() => Self::data(&fixed[8..], count)?,
            0 => return Err(Refusal::Form),
            flags => Self::discovery(flags, &fixed[8..], behind)?,
        };
        let is_request = matches!(kind, Kind::Request { .. });
        // A list of one receiver, which is the destination of a request and no response's.
        if !matches!(kind, Kind::Data { .. }) && (count != 1 || (list[0] == destination) != is_request) {
            return Err(Refusal::Destination);
        }
        if is_request && source == destination {
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
            hold: fixed[6],
            reserved: fixed[7],
            list,
            ports,
            protocol,
            payload,
        })
    }

    fn discovery(flags: u8, maps: &[u8], behind: &[u8]) -> Result<Kind, Refusal> {
        let nonce = maps.iter().fold(0, |nonce, byte| nonce << 8 | u64::from(*byte));
        match (flags, behind) {
            (RESPONSE, _) => Err(Refusal::Flags),
            (DISCOVERY, []) => Ok(Kind::Request { nonce }),
            (DISCOVERY, _) => Err(Refusal::Form),
            (_, []) => Ok(Kind::Response { nonce, code: None }),
            // A code covers a nonce, or it would be good for ever.
            (_, _) if nonce == 0 => Err(Refusal::Form),
            (_, code) => code
                .try_into()
                .map(|code| Kind::Response { nonce, code: Some(code) })
                .map_err(|_| Refusal::Form),
        }
    }

    fn data(maps: &[u8], count: usize) -> Result<Kind, Refusal> {
        let [delivery, routers] = [&maps[..4], &maps[4..]].map(Bitmap::read);
        if delivery.end() > count || routers.end() > count {
            return Err(Refusal::PastList);
        }
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
            return read.upper_layer(Some((PORTS_OPTION, count - routers.len())));
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
            + self.code().len()
            + self.ports.map_or(0, |ports| ports::header_len(ports.len()))
    }

    /// The authentication code, of a response that has one.
    const fn code(&self) -> &[u8] {
        match &self.kind {
            Kind::Response { code: Some(code), .. } => code,
            _ => &[],
        }
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
        let (flags, maps) = match self.kind {
            Kind::Request { nonce } => (DISCOVERY, nonce.to_be_bytes()),
            Kind::Response { nonce, .. } => (DISCOVERY | RESPONSE, nonce.to_be_bytes()),
            Kind::Data { delivery, routers } => {
                let (mut maps, half) = ([0; 8], MAX_LIST / 8);
                maps[..half].copy_from_slice(&delivery.bytes()[..half]);
                maps[half..].copy_from_slice(&routers.bytes()[..half]);
                (0, maps)
            }
        };
        let len = overhead(self.list.len(), 0) + self.code().len();
        let mut header = Writer::new(buffer.prepend(len));
        header.put(&[next_header, (len / 8 - 1) as u8, ROUTING_TYPE, 0]);
        header.put(&[self.list.len() as u8, flags | self.hops & MAX_HOPS, self.hold, self.reserved]);
        header.put(&maps);
        header.put(self.list.as_flattened());
        header.put(self.code());
        header::prepend(buffer, [self.source, self.destination], ROUTING, self.traffic, self.hop_limit);
    }
}
