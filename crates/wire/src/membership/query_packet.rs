//! The IP packets of queries.

use std::net::IpAddr;

use hopcast_core::Buffer;

use super::{Query, all_nodes, igmp, mld};
use crate::{ip, router_alert};

/// The packet of a query for these sources, from the querier's address, of whose version the query is.
///
/// # Panics
///
/// If the query is for a group of the other version of IP.
pub fn query_packet(own: IpAddr, query: &Query, sources: &[IpAddr]) -> Buffer {
    let to = query.group.unwrap_or(all_nodes(ip::Version::of(own)));
    let mut packet = Buffer::default();
    match (own, to) {
        (IpAddr::V4(own), IpAddr::V4(to)) => {
            let sources: Vec<_> = sources.iter().filter_map(|source| v4(*source)).collect();
            igmp::prepend_query(&mut packet, query, &sources);
            router_alert::prepend_v4(&mut packet, own, to);
        }
        (IpAddr::V6(own), IpAddr::V6(to)) => {
            let sources: Vec<_> = sources.iter().filter_map(|source| v6(*source)).collect();
            mld::prepend_query(&mut packet, own, to, query, &sources);
            router_alert::prepend_v6(&mut packet, own, to);
        }
        _ => unreachable!("a link's groups are of its version"),
    }
    packet
}

/// Maximum number of sources of a query that fits the MTU (RFC 3376 section 4.1.8, RFC 3810 section 5.1.10); at least
/// 1.
pub fn sources_that_fit(version: ip::Version, mtu: u32) -> usize {
    let headers = match version {
        ip::Version::V4 => router_alert::V4_HEADER + igmp::QUERY_HEADER,
        ip::Version::V6 => router_alert::V6_HEADER + mld::QUERY_HEADER,
    };
    ((mtu as usize).min(0xffff).saturating_sub(headers) / version.address_len()).max(1)
}

const fn v4(address: IpAddr) -> Option<std::net::Ipv4Addr> {
    match address {
        IpAddr::V4(address) => Some(address),
        IpAddr::V6(_) => None,
    }
}

const fn v6(address: IpAddr) -> Option<std::net::Ipv6Addr> {
    match address {
        IpAddr::V4(_) => None,
        IpAddr::V6(address) => Some(address),
    }
}
