//! IP headers with a Router Alert, so that routers look at packets that are not for them: of IGMP and MLD, for one hop,
//! and of other protocols.
//!
//! ```text
//!  IPv4 option (RFC 2113)                | 0x94 | 4 | value 0 |             behind the 20 bytes of the header
//!                                         0      1   2         4
//!  IPv6 hop-by-hop options (RFC 2711)    | next header | 0 | 5 | 2 |  value  | 1 | 0 |       behind the 40 bytes
//!                                         0             1   2   3   4         6   7   8
//! ```
//!
//! IPv4's type of service is 0xc0 with IGMP, *Internetwork Control* (RFC 3376 section 4).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_core::Buffer;

use crate::{checksum, ip};

/// Bytes of an IPv4 header with the option (RFC 2113 section 2.1).
pub const V4_HEADER: usize = ip::V4_HEADER + 4;
/// Bytes of an IPv6 header with the extension header (RFC 2711 section 2.1, RFC 8200 section 4.3).
pub const V6_HEADER: usize = ip::V6_HEADER + 8;

/// IPv4's option: copied into fragments, of 4 bytes, "routers shall examine the packet" (RFC 2113 section 2.1).
pub const V4_OPTION: [u8; 4] = [0x94, 4, 0, 0];
/// The same in IPv6 for MLD, value 0 (RFC 2711 section 2.1), and two bytes of padding (PadN).
const MLD_OPTIONS: [u8; 6] = [5, 2, 0, 0, 1, 0];
/// The same for a protocol to which no value is assigned: the first of those for experiments (RFC 5350). Linux neither
/// forwards nor delivers packets to groups that have the value of MLD and are none.
pub const V6_OPTIONS: [u8; 6] = [5, 2, 0xff, 0xdf, 1, 0];
/// Type of the option among IPv6's.
const V6_KIND: u8 = 5;
/// The next header that stands for hop-by-hop options (RFC 8200 section 4.3).
const HOP_BY_HOP: u8 = 0;

/// Puts the header of a packet of IGMP in front of the message in `buffer`.
///
/// # Panics
///
/// If the packet becomes longer than 65,535 bytes.
pub fn prepend_v4(buffer: &mut Buffer, source: Ipv4Addr, destination: Ipv4Addr) {
    prepend_v4_header(buffer, source, destination, (ip::IGMP, 0xc0, 1));
}

/// Puts the headers of a packet of MLD in front of the message in `buffer`.
///
/// # Panics
///
/// If there are more than 65,527 bytes in it.
pub fn prepend_v6(buffer: &mut Buffer, source: Ipv6Addr, destination: Ipv6Addr) {
    prepend_v6_headers(buffer, source, destination, MLD_OPTIONS, (ip::ICMPV6, 1));
}

/// Puts headers with a Router Alert of another protocol in front of the payload in `buffer`, of the addresses' version.
///
/// # Panics
///
/// If the addresses are not of one version, or the packet becomes longer than its length field can say.
pub fn prepend(buffer: &mut Buffer, source: IpAddr, destination: IpAddr, protocol: u8, hop_limit: u8) {
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            prepend_v4_header(buffer, source, destination, (protocol, 0, hop_limit));
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            prepend_v6_headers(buffer, source, destination, V6_OPTIONS, (protocol, hop_limit));
        }
        _ => panic!("a packet goes from {source} to {destination}, which are not of one version"),
    }
}

fn prepend_v4_header(
    buffer: &mut Buffer,
    source: Ipv4Addr,
    destination: Ipv4Addr,
    (protocol, type_of_service, hop_limit): (u8, u8, u8),
) {
    let len = u16::try_from(V4_HEADER + buffer.len()).expect("an IPv4 packet has at most 65,535 bytes");
    let mut header = [0; V4_HEADER];
    header[0] = 0x46;
    header[1] = type_of_service;
    header[2..4].copy_from_slice(&len.to_be_bytes());
    // *Don't fragment*, so that the identification may be 0 (RFC 6864 section 4).
    header[6] = 0x40;
    header[8] = hop_limit;
    header[9] = protocol;
    header[12..16].copy_from_slice(&source.octets());
    header[16..20].copy_from_slice(&destination.octets());
    header[20..24].copy_from_slice(&V4_OPTION);
    let sum = checksum::checksum(&header);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    buffer.prepend(V4_HEADER).copy_from_slice(&header);
}

fn prepend_v6_headers(
    buffer: &mut Buffer,
    source: Ipv6Addr,
    destination: Ipv6Addr,
    option: [u8; 6],
    (protocol, hop_limit): (u8, u8),
) {
    let options = buffer.prepend(8);
    options[..2].copy_from_slice(&[protocol, 0]);
    options[2..].copy_from_slice(&option);
    ip::prepend(buffer, source.into(), destination.into(), HOP_BY_HOP, hop_limit, 0);
}

/// Whether an IP packet has a Router Alert, whatever its value.
pub fn is_present(packet: &[u8]) -> bool {
    match packet.first().map(|first| (first >> 4, usize::from(first & 0x0f) * 4)) {
        Some((4, header_len)) => packet.get(ip::V4_HEADER..header_len).is_some_and(|mut options| {
            // The kinds 0 (end) and 1 (no operation) are a byte alone.
            while let Some(&kind) = options.first() {
                let len = match kind {
                    0 => return false,
                    1 => 1,
                    kind if kind == V4_OPTION[0] => return true,
                    _ => options.get(1).map_or(0, |&len| len.into()),
                };
                // Less than kind and length would not end.
                let Some(rest) = options.get(len..).filter(|_| len > 1 || kind == 1) else { return false };
                options = rest;
            }
            false
        }),
        Some((6, _)) if packet.get(6) == Some(&HOP_BY_HOP) => {
            let Some(&[_, words]) = packet.get(ip::V6_HEADER..).and_then(<[u8]>::first_chunk) else {
                return false;
            };
            let end = ip::V6_HEADER + 8 + 8 * usize::from(words);
            packet.get(ip::V6_HEADER + 2..end).is_some_and(|mut options| {
                while let Some(&kind) = options.first() {
                    let len = match kind {
                        0 => 1,
                        V6_KIND => return options.get(1) == Some(&2),
                        _ => options.get(1).map_or(options.len(), |&len| 2 + usize::from(len)),
                    };
                    options = options.get(len..).unwrap_or_default();
                }
                false
            })
        }
        _ => false,
    }
}
