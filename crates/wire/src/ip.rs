//! IPv4 (RFC 791) and IPv6 (RFC 8200), read into one [`Header`].
//!
//! ```text
//!  IPv4   0: version | words   1: DSCP | ECN   2: total length    4: identification   6: flags | fragment offset
//!         8: time to live      9: protocol    10: checksum       12: source          16: destination   20: options …
//!  IPv6   0: version | traffic class | flow label                 4: payload length   6: next header  7: hop limit
//!         8: source           24: destination                    40: extension headers …
//! ```

use core::ops::Range;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use etherparse::{IpNumber, Ipv6ExtensionsSlice};
use hopcast_core::Buffer;

use crate::{Malformed, checksum};

/// Protocol number of ICMP for IPv4 (RFC 792).
pub const ICMP: u8 = 1;
/// Protocol number of IGMP (RFC 3376 section 4).
pub const IGMP: u8 = 2;
/// Protocol number of TCP (RFC 9293 section 3.1).
pub const TCP: u8 = 6;
/// Protocol number of UDP (RFC 768).
pub const UDP: u8 = 17;
/// Protocol number of ICMP for IPv6 (RFC 4443 section 2.1).
pub const ICMPV6: u8 = 58;

/// Number that says that nothing follows IPv6's headers (RFC 8200 section 4.7).
pub const NO_NEXT_HEADER: u8 = 59;

/// The length of an IPv4 header without options.
pub const V4_HEADER: usize = 20;
/// The length of an IPv6 header without extension headers.
pub const V6_HEADER: usize = 40;

/// The version of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// IPv4.
    V4,
    /// IPv6.
    V6,
}

impl Version {
    /// The version that an address belongs to.
    pub const fn of(address: IpAddr) -> Self {
        match address {
            IpAddr::V4(_) => Self::V4,
            IpAddr::V6(_) => Self::V6,
        }
    }

    /// The length of an address, in bytes.
    pub const fn address_len(self) -> usize {
        match self {
            Self::V4 => 4,
            Self::V6 => 16,
        }
    }

    /// The length of an address in bits: that of the prefix of one address.
    pub const fn address_bits(self) -> u8 {
        8 * self.address_len() as u8
    }

    /// The place of the version in a pair with something for each: IPv4's is 0, IPv6's 1.
    pub const fn place(self) -> usize {
        match self {
            Self::V4 => 0,
            Self::V6 => 1,
        }
    }

    /// The length of a header without options and extension headers.
    pub const fn header_len(self) -> usize {
        match self {
            Self::V4 => V4_HEADER,
            Self::V6 => V6_HEADER,
        }
    }

    /// Minimum MTU of a link, in bytes (RFC 791 section 3.2, RFC 8200 section 5).
    pub const fn min_mtu(self) -> u32 {
        match self {
            Self::V4 => 68,
            Self::V6 => 1280,
        }
    }
}

/// The header of a packet, of either version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The version.
    pub version: Version,
    /// The sender.
    pub source: IpAddr,
    /// The receiver or group.
    pub destination: IpAddr,
    /// The protocol of the payload: the number behind all extension headers.
    pub protocol: u8,
    /// Time to live, or hop limit.
    pub hop_limit: u8,
    /// DSCP in the upper six bits, ECN in the lower two.
    pub traffic_class: u8,
    /// Offset of the payload, in bytes: behind options or extension headers.
    pub header_len: usize,
    /// Length of the packet, in bytes. What follows in the bytes is Ethernet padding.
    pub total_len: usize,
    /// Whether this is only a part of a packet.
    pub fragment: bool,
    /// Whether routers must not fragment it; IPv6 packets never are by routers.
    pub dont_fragment: bool,
}

impl Header {
    /// Range of the payload in the packet's bytes.
    pub fn payload(&self) -> Range<usize> {
        self.header_len..self.total_len
    }
}

/// Reads the header of the packet at the beginning of `bytes`: verifies IPv4's header checksum, and that all of the
/// packet is there.
#[inline]
pub fn parse(bytes: &[u8]) -> Result<Header, Malformed> {
    match bytes.first().map(|first| first >> 4) {
        Some(4) => {
            let header = v4(bytes)?;
            if header.total_len < header.header_len {
                return Err(Malformed::value("IPv4", "total length", header.total_len as u32));
            }
            if header.total_len > bytes.len() {
                return Err(Malformed::truncated("IPv4", "total length", header.total_len, bytes.len()));
            }
            // Nearly all headers have no options, and a length that the compiler knows is summed without a loop.
            let sum = match bytes.first_chunk::<V4_HEADER>() {
                Some(fixed) if header.header_len == V4_HEADER => checksum::checksum(fixed),
                _ => checksum::checksum(&bytes[..header.header_len]),
            };
            if sum != 0 {
                return Err(Malformed::corrupt("IPv4", "header checksum"));
            }
            Ok(header)
        }
        Some(6) => {
            let header = v6(bytes)?;
            if header.total_len > bytes.len() {
                return Err(Malformed::truncated("IPv6", "payload length", header.total_len, bytes.len()));
            }
            if is_final(header.protocol) { Ok(header) } else { behind_extensions(header, bytes) }
        }
        Some(version) => Err(Malformed::value("IP", "version", version.into())),
        None => Err(Malformed::truncated("IP", "version", 1, 0)),
    }
}

/// Reads the header of a packet of which only the beginning is at hand and whose checksum need not fit, as ICMP errors
/// quote it. [`Header::total_len`] may lie past the end of `bytes`.
pub fn parse_quoted(bytes: &[u8]) -> Result<Header, Malformed> {
    match bytes.first().map(|first| first >> 4) {
        Some(4) => v4(bytes),
        Some(6) => {
            let header = v6(bytes)?;
            Ok(behind_extensions(header, bytes).unwrap_or(header))
        }
        Some(version) => Err(Malformed::value("IP", "version", version.into())),
        None => Err(Malformed::truncated("IP", "version", 1, 0)),
    }
}

#[inline]
fn v4(bytes: &[u8]) -> Result<Header, Malformed> {
    let Some(fixed) = bytes.first_chunk::<V4_HEADER>() else {
        return Err(Malformed::truncated("IPv4", "header", V4_HEADER, bytes.len()));
    };
    let header_len = usize::from(fixed[0] & 0x0f) * 4;
    if header_len < V4_HEADER {
        return Err(Malformed::value("IPv4", "header length", header_len as u32));
    }
    if header_len > bytes.len() {
        return Err(Malformed::truncated("IPv4", "options", header_len, bytes.len()));
    }
    let flags = u16::from_be_bytes([fixed[6], fixed[7]]);
    Ok(Header {
        version: Version::V4,
        source: Ipv4Addr::new(fixed[12], fixed[13], fixed[14], fixed[15]).into(),
        destination: Ipv4Addr::new(fixed[16], fixed[17], fixed[18], fixed[19]).into(),
        protocol: fixed[9],
        hop_limit: fixed[8],
        traffic_class: fixed[1],
        header_len,
        total_len: u16::from_be_bytes([fixed[2], fixed[3]]).into(),
        // More fragments follow, or some came before.
        fragment: flags & 0x3fff != 0,
        dont_fragment: flags & DONT_FRAGMENT != 0,
    })
}

#[inline]
fn v6(bytes: &[u8]) -> Result<Header, Malformed> {
    let Some(fixed) = bytes.first_chunk::<V6_HEADER>() else {
        return Err(Malformed::truncated("IPv6", "header", V6_HEADER, bytes.len()));
    };
    let address = |at: usize| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&fixed[at..at + 16]);
        IpAddr::from(Ipv6Addr::from(octets))
    };
    Ok(Header {
        version: Version::V6,
        source: address(8),
        destination: address(24),
        protocol: fixed[6],
        hop_limit: fixed[7],
        traffic_class: fixed[0] << 4 | fixed[1] >> 4,
        header_len: V6_HEADER,
        total_len: V6_HEADER + usize::from(u16::from_be_bytes([fixed[4], fixed[5]])),
        fragment: false,
        dont_fragment: true,
    })
}

/// The first extension header of this number in an IPv6 packet that [`parse`]d, from its first byte on; `None` of a
/// packet that has none, or is IPv4.
pub fn extension(packet: &[u8], number: u8) -> Option<&[u8]> {
    let header = v6(packet).ok().filter(|_| packet[0] >> 4 == 6 && !is_final(packet[6]))?;
    let rest = packet.get(V6_HEADER..header.total_len.min(packet.len()))?;
    let (extensions, ..) = Ipv6ExtensionsSlice::from_slice(IpNumber(header.protocol), rest).ok()?;
    let (mut at, mut next) = (0, header.protocol);
    let all = extensions.slice();
    while at + 8 <= all.len() {
        if next == number {
            return all.get(at..);
        }
        // RFC 8200 section 4: the length is in units of 8 bytes beyond the first; a fragment header has 8 (section
        // 4.5), an authentication header counts 4 bytes beyond two units (RFC 4302 section 2.2).
        let len = match next {
            FRAGMENT => 8,
            AUTHENTICATION => (usize::from(all[at + 1]) + 2) * 4,
            _ => (usize::from(all[at + 1]) + 1) * 8,
        };
        (next, at) = (all[at], at + len);
    }
    None
}

/// Number of IPv6's fragment header (RFC 8200 section 4.5).
pub const FRAGMENT: u8 = 44;
/// Number of the authentication header.
const AUTHENTICATION: u8 = 51;

/// Whether no extension header can follow, for the protocols that nearly all packets carry.
fn is_final(next_header: u8) -> bool {
    matches!(next_header, TCP | UDP | ICMPV6)
}

/// `header` of the IPv6 packet `bytes`, with its protocol and payload behind the extension headers.
#[cold]
fn behind_extensions(header: Header, bytes: &[u8]) -> Result<Header, Malformed> {
    let rest = &bytes[V6_HEADER..header.total_len.min(bytes.len())];
    match Ipv6ExtensionsSlice::from_slice(IpNumber(header.protocol), rest) {
        Ok((extensions, protocol, _)) => Ok(Header {
            protocol: protocol.0,
            header_len: V6_HEADER + extensions.slice().len(),
            fragment: extensions.is_fragmenting_payload(),
            ..header
        }),
        Err(_) => Err(Malformed::value("IPv6", "extension headers", header.protocol.into())),
    }
}

/// IPv4's *don't fragment* flag, in the word of flags and fragment offset (RFC 791 section 3.1).
const DONT_FRAGMENT: u16 = 0x4000;

/// Puts a header in front of the payload in `buffer`, of the addresses' version; IPv4's with *don't fragment* set and
/// its checksum. IPv6 has no `identification`.
///
/// # Panics
///
/// If the addresses are not of one version, or the packet becomes longer than its length field can say (65,535 bytes
/// with IPv4's header, without IPv6's).
#[inline]
pub fn prepend(
    buffer: &mut Buffer,
    source: IpAddr,
    destination: IpAddr,
    protocol: u8,
    hop_limit: u8,
    identification: u16,
) {
    let len = buffer.len();
    match (source, destination) {
        (IpAddr::V4(source), IpAddr::V4(destination)) => {
            let len = u16::try_from(V4_HEADER + len).expect("an IPv4 packet has at most 65,535 bytes");
            let mut header = [0; V4_HEADER];
            header[0] = 0x45;
            header[2..4].copy_from_slice(&len.to_be_bytes());
            header[4..6].copy_from_slice(&identification.to_be_bytes());
            header[6..8].copy_from_slice(&DONT_FRAGMENT.to_be_bytes());
            header[8] = hop_limit;
            header[9] = protocol;
            header[12..16].copy_from_slice(&source.octets());
            header[16..20].copy_from_slice(&destination.octets());
            let sum = checksum::checksum(&header);
            header[10..12].copy_from_slice(&sum.to_be_bytes());
            buffer.prepend(V4_HEADER).copy_from_slice(&header);
        }
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            let len = u16::try_from(len).expect("an IPv6 payload has at most 65,535 bytes");
            let header = buffer.prepend(V6_HEADER);
            header[0..4].copy_from_slice(&[0x60, 0, 0, 0]);
            header[4..6].copy_from_slice(&len.to_be_bytes());
            header[6] = protocol;
            header[7] = hop_limit;
            header[8..24].copy_from_slice(&source.octets());
            header[24..40].copy_from_slice(&destination.octets());
        }
        _ => panic!("a packet goes from {source} to {destination}, which are not of one version"),
    }
}

/// Takes one hop off the limit of a packet that [`parse`]d, in place. False, and nothing changed, if none would be
/// left.
#[inline]
pub fn decrement_hop_limit(packet: &mut [u8]) -> bool {
    if packet.first().is_some_and(|first| first >> 4 == 6) {
        let Some(limit @ 2..) = packet.get_mut(7) else { return false };
        *limit -= 1;
        return true;
    }
    let Some(header) = packet.first_chunk_mut::<V4_HEADER>() else { return false };
    if header[8] < 2 {
        return false;
    }
    let word = u16::from_be_bytes([header[8], header[9]]);
    let sum = checksum::adjust(u16::from_be_bytes([header[10], header[11]]), word, word - 0x0100);
    header[8] -= 1;
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    true
}

/// Sets the hop limit, if one is given, and the traffic class of a packet that [`prepend`] made, in place. False, and
/// nothing changed, for a hop limit of 0, which no host may send (RFC 1122 section 3.2.1.7).
pub fn mark(packet: &mut [u8], hop_limit: Option<u8>, traffic_class: u8) -> bool {
    if hop_limit == Some(0) {
        return false;
    }
    if packet.first().is_some_and(|first| first >> 4 == 6) {
        let Some(header) = packet.first_chunk_mut::<V6_HEADER>() else { return false };
        header[0] = 0x60 | traffic_class >> 4;
        header[1] = traffic_class << 4 | header[1] & 0x0f;
        header[7] = hop_limit.unwrap_or(header[7]);
        return true;
    }
    let Some(header) = packet.first_chunk_mut::<V4_HEADER>() else { return false };
    header[1] = traffic_class;
    header[8] = hop_limit.unwrap_or(header[8]);
    header[10..12].fill(0);
    let sum = checksum::checksum(&header[..]);
    header[10..12].copy_from_slice(&sum.to_be_bytes());
    true
}

/// The source and destination port at the beginning of a TCP or UDP segment, of which little else need be there.
pub fn ports(segment: &[u8]) -> Option<(u16, u16)> {
    let &[s0, s1, d0, d1] = segment.first_chunk::<4>()?;
    Some((u16::from_be_bytes([s0, s1]), u16::from_be_bytes([d0, d1])))
}
