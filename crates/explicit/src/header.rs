//! The headers of IPv6 around a routing header that lists addresses, and what may follow it.

use std::net::Ipv6Addr;

use hopcast_core::Buffer;
use hopcast_wire::ip;

use crate::{Refusal, ports, transport};

/// Number of the routing header among IPv6's extension headers (RFC 8200, section 4.4).
pub(crate) const ROUTING: u8 = 43;

/// A packet whose first header is a routing header.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Read<'a> {
    /// Traffic class and flow label.
    pub(crate) traffic: u32,
    pub(crate) hop_limit: u8,
    pub(crate) source: Ipv6Addr,
    pub(crate) destination: Ipv6Addr,
    /// The routing header, of the length that it says.
    pub(crate) routing: &'a [u8],
    rest: &'a [u8],
}

/// The upper layer of a packet: the parts behind its routing header.
pub(crate) struct UpperLayer<'a> {
    pub(crate) ports: Option<&'a [[u8; 2]]>,
    pub(crate) protocol: u8,
    pub(crate) payload: &'a [u8],
}

/// Reads a packet whose routing header, of this type, follows IPv6's at once.
#[inline]
pub(crate) fn parse(bytes: &[u8], routing_type: u8) -> Result<Read<'_>, Refusal> {
    let header = bytes.first_chunk::<{ ip::V6_HEADER }>().ok_or(Refusal::Packet)?;
    let len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let rest = bytes[ip::V6_HEADER..].get(..len).filter(|_| header[0] >> 4 == 6);
    let rest = rest.ok_or(Refusal::Packet)?;
    if header[6] != ROUTING || rest.get(2).is_some_and(|kind| *kind != routing_type) {
        return Err(Refusal::NoHeader);
    }
    let len = (usize::from(*rest.get(1).ok_or(Refusal::Form)?) + 1) * 8;
    let (routing, rest) = rest.split_at_checked(len).ok_or(Refusal::Form)?;
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&header[at..at + 16]);
        Ipv6Addr::from(octets)
    };
    Ok(Read {
        traffic: traffic(header),
        hop_limit: header[7],
        source: address(8),
        destination: address(24),
        routing,
        rest,
    })
}

impl<'a> Read<'a> {
    /// The number of the header behind the routing header, and the bytes from there on.
    pub(crate) const fn next(&self) -> (u8, &'a [u8]) {
        (self.routing[0], self.rest)
    }

    /// Upper layer behind the routing header: a transport's segment, perhaps behind a list of ports, if there may be
    /// one, in this option and of this length.
    #[inline]
    pub(crate) fn upper_layer(&self, may_have_ports: Option<(u8, usize)>) -> Result<UpperLayer<'a>, Refusal> {
        let (protocol, payload) = self.next();
        let mut upper = UpperLayer { ports: None, protocol, payload };
        if let Some((option, count)) = may_have_ports
            && protocol == ports::DESTINATION_OPTIONS
        {
            let read = ports::parse(payload, option, count)?;
            upper = UpperLayer { ports: Some(read.list), protocol: read.next_header, payload: read.rest };
        }
        match upper.protocol {
            ROUTING => Err(Refusal::NestedRouting),
            protocol if is_extension(protocol) => Err(Refusal::Extension),
            protocol if !transport::is_whole(protocol, upper.payload) => Err(Refusal::Payload),
            protocol if upper.ports.is_some() && !transport::has_ports(protocol) => Err(Refusal::Ports),
            _ => Ok(upper),
        }
    }
}

/// Traffic class, in the upper 8 bits, and flow label, in the lower 20, of IPv6's header.
#[inline]
pub(crate) const fn traffic(header: &[u8; ip::V6_HEADER]) -> u32 {
    u32::from_be_bytes([header[0] & 0x0f, header[1], header[2], header[3]])
}

/// Puts IPv6's header in front of `buffer`, with this traffic class and flow label.
pub(crate) fn prepend(
    buffer: &mut Buffer,
    [source, destination]: [Ipv6Addr; 2],
    protocol: u8,
    traffic: u32,
    hop_limit: u8,
) {
    ip::prepend(buffer, source.into(), destination.into(), protocol, hop_limit, 0);
    buffer[..4].copy_from_slice(&(6 << 28 | traffic & 0x0fff_ffff).to_be_bytes());
}

/// Whether a number is that of an extension header (RFC 8200 and the registry of IPv6's): hop-by-hop options, routing,
/// fragment, encapsulating security, authentication, destination options, mobility, host identity, shim6, and two for
/// experiments.
pub(crate) const fn is_extension(number: u8) -> bool {
    matches!(number, 0 | 43 | 44 | 50 | 51 | 60 | 135 | 139 | 140 | 253 | 254)
}
