//! Messages of routing protocols between the routers of one link, directly on IP: the parts that PIM and link-state
//! routing share.

use std::net::IpAddr;

use hopcast_wire::checksum;
use hopcast_wire::ip::Header;

use crate::icmp::is_one_host;

/// Hop limit of a message, which is not to leave its link (RFC 2328 appendix A.1, RFC 7761 section 4.9).
pub(crate) const HOP_LIMIT: u8 = 1;

/// The reason why a packet is no message from a router of the link to the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unfit {
    /// It is not all there.
    Truncated,
    /// It was not sent to the routers of the link.
    Destination,
    /// Its source is no address of a router on the link.
    Sender,
}

/// The message in a packet to the group of a link's routers.
pub(crate) fn content<'p>(packet: &'p [u8], header: &Header, group: IpAddr) -> Result<&'p [u8], Unfit> {
    let message = packet.get(header.payload()).filter(|_| !header.fragment).ok_or(Unfit::Truncated)?;
    if header.destination != group {
        return Err(Unfit::Destination);
    }
    let from_link = match header.source {
        IpAddr::V4(_) => true,
        // RFC 7761 section 4.9, RFC 5340 section 2.5: the source of a message in IPv6 is an address of the link.
        IpAddr::V6(source) => source.is_unicast_link_local(),
    };
    if from_link && is_one_host(header.source) { Ok(message) } else { Err(Unfit::Sender) }
}

/// The checksum of a message: in IPv6 over its pseudo-header, too.
pub(crate) fn check(protocol: u8, source: IpAddr, destination: IpAddr, message: &[u8]) -> u16 {
    match source {
        IpAddr::V4(_) => checksum::checksum(message),
        IpAddr::V6(_) => checksum::transport(source, destination, protocol, message),
    }
}
