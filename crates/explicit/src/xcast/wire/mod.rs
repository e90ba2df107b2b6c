//! Xcast's packets for IPv6 (RFC 5058, section 9.3). Integers are in network byte order.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |  next header  |  hdr ext len  | routing type  |       0       |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |version|A|X|D| R | nbr. of dest|           checksum            |
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                 channel identifier, 16 bytes                  …
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |            bitmap, 8 bytes for each 64 destinations           …
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! |                 destinations, 16 bytes each                   …
//! +-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+-+
//! ```
//!
//! The version is 1. A says that destinations which are not marked any more are overwritten by zeros, X that the packet
//! must not become plain packets, D that there is a DSCP for each destination; R is reserved. Bit i of the bitmap,
//! counted from the left, marks a destination that is behind the next hop. The checksum is that of the Internet, over
//! the routing header alone. The packet's destination is [`ALL_ROUTERS`], which the transport's checksum covers.
//!
//! Behind it may be a list of ports ([`ports`]), one for each destination; the transport's header has port 0 then.
//!
//! # Departures
//!
//! - No number is assigned. The routing type is 254 and the option 0x5e, both for experiments (RFC 3692, RFC 4727),
//!   and the address is the one for experiments on a link. Others have used type 253, which MEADcast has here.
//! - The RFC allows for 127 destinations; the header's length can say 125 ([`MAX_LIST`]).
//! - The list of DSCPs (D), whose place the RFC does not draw, is refused.

use std::net::Ipv6Addr;

use hopcast_core::{Buffer, Writer};
use hopcast_wire::{checksum, ip};

use crate::address::{has_pair, is_host};
use crate::header::{self, ROUTING, UpperLayer};
use crate::{Bitmap, Refusal, ports};

#[cfg(test)]
pub(crate) mod tests;

/// Routing type of Xcast, one of those for experiments (RFC 3692).
pub const ROUTING_TYPE: u8 = 254;
/// Type of the destination option with the ports: "discard if unknown", "does not change" (RFC 5058, section 9.3.2.2).
pub const PORTS_OPTION: u8 = 0x5e;
/// All Xcast routers of a link: the group for experiments (RFC 4727, section 3.4.2).
pub const ALL_ROUTERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x114);
/// Maximum number of destinations that a routing header has room for.
pub const MAX_LIST: usize = 125;
/// Bytes of the header in front of its bitmap.
pub const FIXED: usize = 24;

const VERSION: u8 = 1;
const ANONYMOUS: u8 = 0x08;
const STAYS: u8 = 0x04;
const DSCPS: u8 = 0x02;

/// Bytes that Xcast adds to a packet of IPv6 with this many destinations, each with a port or none.
pub const fn overhead(destinations: usize, with_ports: bool) -> usize {
    let ports = if with_ports { ports::header_len(destinations) } else { 0 };
    FIXED + bitmap_len(destinations) + 16 * destinations + ports
}

const fn bitmap_len(destinations: usize) -> usize {
    destinations.div_ceil(64) * 8
}

/// A packet of Xcast.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Traffic class, in the upper 8 bits, and flow label, in the lower 20, of the IPv6 header.
    pub traffic: u32,
    /// The hop limit of IPv6.
    pub hop_limit: u8,
    /// The sender's address.
    pub source: Ipv6Addr,
    /// Whether destinations that are not marked any more are overwritten by zeros (A).
    pub is_anonymous: bool,
    /// Whether it must not become plain packets (X).
    pub stays: bool,
    /// Zero, by who sends it; two bits.
    pub reserved: u8,
    /// The sender's number of the group, or zero.
    pub channel: u128,
    /// The destinations that are behind the next hop; at least one.
    pub marks: Bitmap,
    /// The destinations.
    pub list: &'a [[u8; 16]],
    /// A port for each, if they are listed.
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
    pub fn parse(bytes: &'a [u8]) -> Result<Self, Refusal> {
        let read = header::parse(bytes, ROUTING_TYPE)?;
        let fixed = read.routing.first_chunk::<FIXED>().ok_or(Refusal::Form)?;
        let flags = u16::from_be_bytes([fixed[4], fixed[5]]);
        let count = usize::from(flags & 0x7f);
        let [high, _] = flags.to_be_bytes();
        if high >> 4 != VERSION || high & DSCPS != 0 {
            return Err(Refusal::Flags);
        }
        match count {
            0 => return Err(Refusal::EmptyList),
            1..=MAX_LIST => {}
            _ => return Err(Refusal::LongList),
        }
        if read.routing.len() != overhead(count, false) || fixed[3] != 0 {
            return Err(Refusal::Form);
        }
        if checksum::checksum(read.routing) != 0 {
            return Err(Refusal::Checksum);
        }
        let (bitmap, list) = read.routing[FIXED..].split_at(bitmap_len(count));
        let (marks, list) = (Bitmap::read(bitmap), list.as_chunks::<16>().0);
        if marks.end() > count {
            return Err(Refusal::PastList);
        }
        if marks.is_empty() {
            return Err(Refusal::Delivered);
        }
        if read.destination != ALL_ROUTERS {
            return Err(Refusal::Destination);
        }
        if !is_host(&read.source.octets()) {
            return Err(Refusal::Source);
        }
        let is_anonymous = high & ANONYMOUS != 0;
        let is_sound = |(place, address): (usize, &[u8; 16])| match is_anonymous && !marks.has(place) {
            true => *address == [0; 16],
            false => is_host(address),
        };
        if !list.iter().enumerate().all(is_sound) {
            return Err(Refusal::Listed);
        }
        let is_repeated = match is_anonymous {
            // Those that are not marked are all zeros.
            true => {
                has_pair(&marks.places().filter_map(|place| list.get(place)).copied().collect::<Vec<_>>())
            }
            false => has_pair(list),
        };
        if is_repeated {
            return Err(Refusal::Repeated);
        }
        let UpperLayer { ports, protocol, payload } = read.upper_layer(Some((PORTS_OPTION, count)))?;
        Ok(Self {
            traffic: read.traffic,
            hop_limit: read.hop_limit,
            source: read.source,
            is_anonymous,
            stays: high & STAYS != 0,
            reserved: (flags >> 7 & 3) as u8,
            channel: u128::from_be_bytes(fixed[8..].as_chunks().0[0]),
            marks,
            list,
            ports,
            protocol,
            payload,
        })
    }

    /// Bytes of all headers in front of the payload.
    pub fn header_len(&self) -> usize {
        ip::V6_HEADER + overhead(self.list.len(), self.ports.is_some())
    }

    /// Bytes of the packet.
    pub fn total_len(&self) -> usize {
        self.header_len() + self.payload.len()
    }

    /// Whether IPv6's length field can say how long the packet is.
    pub fn fits(&self) -> bool {
        self.total_len() <= ip::V6_HEADER + usize::from(u16::MAX)
    }

    /// Writes the packet.
    ///
    /// # Panics
    /// Unless it [fits](Self::fits).
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
        let count = self.list.len();
        assert!(count <= MAX_LIST, "a list has at most {MAX_LIST} destinations");
        let next_header = ports::prepend(buffer, self.protocol, PORTS_OPTION, self.ports);
        let len = overhead(count, false);
        let flag = |flag: u8, is: bool| if is { flag } else { 0 };
        let flags = VERSION << 4 | flag(ANONYMOUS, self.is_anonymous) | flag(STAYS, self.stays);
        let mut header = Writer::new(buffer.prepend(len));
        header.put(&[next_header, (len / 8 - 1) as u8, ROUTING_TYPE, 0]);
        header.u16(u16::from(flags) << 8 | u16::from(self.reserved & 3) << 7 | count as u16);
        header.u16(0);
        header.put(&self.channel.to_be_bytes());
        header.put(&self.marks.bytes()[..bitmap_len(count)]);
        for (place, address) in self.list.iter().enumerate() {
            let hides = self.is_anonymous && !self.marks.has(place);
            header.put(if hides { &[0; 16] } else { address });
        }
        let sum = checksum::checksum(&buffer[..len]);
        buffer[6..8].copy_from_slice(&sum.to_be_bytes());
        header::prepend(buffer, [self.source, ALL_ROUTERS], ROUTING, self.traffic, self.hop_limit);
    }
}
