//! UDP (RFC 768), with its checksum over IPv4 and IPv6.
//!
//! ```text
//! | source port | destination port | length | checksum |  payload …
//!  0             2                  4        6          8
//! ```

use std::net::{IpAddr, SocketAddr};

use hopcast_core::Buffer;

use crate::{Malformed, checksum, ip};

/// The length of the header.
pub const HEADER: usize = 8;

/// A UDP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The sender's port.
    pub source: u16,
    /// The receiver's port.
    pub destination: u16,
    /// Header and payload, in bytes: the payload is the segment's `HEADER..len`.
    pub len: usize,
}

/// Reads the header of a UDP `segment` (an IP packet's payload) and verifies the checksum. A checksum of zero means
/// that the sender made none, which only IPv4 permits.
pub fn parse(source: IpAddr, destination: IpAddr, segment: &[u8]) -> Result<Header, Malformed> {
    let Some(&[s0, s1, d0, d1, l0, l1, c0, c1]) = segment.first_chunk::<HEADER>() else {
        return Err(Malformed::truncated("UDP", "header", HEADER, segment.len()));
    };
    let len = usize::from(u16::from_be_bytes([l0, l1]));
    if len < HEADER {
        return Err(Malformed::value("UDP", "length", len as u32));
    }
    let Some(covered) = segment.get(..len) else {
        return Err(Malformed::truncated("UDP", "length", len, segment.len()));
    };
    let unchecked = [c0, c1] == [0, 0];
    let fits = match source {
        IpAddr::V4(_) if unchecked => true,
        _ => !unchecked && checksum::transport(source, destination, ip::UDP, covered) == 0,
    };
    if !fits {
        return Err(Malformed::corrupt("UDP", "checksum"));
    }
    Ok(Header { source: u16::from_be_bytes([s0, s1]), destination: u16::from_be_bytes([d0, d1]), len })
}

/// Puts the header, with its checksum, in front of the payload in `buffer`.
///
/// # Panics
///
/// If header and payload are longer than 65,535 bytes.
pub fn prepend(buffer: &mut Buffer, source: SocketAddr, destination: SocketAddr) {
    let len = u16::try_from(HEADER + buffer.len()).expect("a UDP payload has at most 65,527 bytes");
    let header = buffer.prepend(HEADER);
    header[0..2].copy_from_slice(&source.port().to_be_bytes());
    header[2..4].copy_from_slice(&destination.port().to_be_bytes());
    header[4..6].copy_from_slice(&len.to_be_bytes());
    header[6..8].fill(0);
    let sum = match checksum::transport(source.ip(), destination.ip(), ip::UDP, buffer) {
        // Zero is sent as its other representation, because zero means "none" (RFC 768).
        0 => 0xffff,
        sum => sum,
    };
    buffer[6..8].copy_from_slice(&sum.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// A DNS answer's beginning, from 8.8.8.8:53 to 192.168.1.5:51000, cut to 20 bytes of payload.
    const PAYLOAD: &[u8] = b"\x12\x34\x81\x80\x00\x01\x00\x01\x00\x00\x00\x00\x07example";

    fn ends(v6: bool) -> (SocketAddr, SocketAddr) {
        if v6 {
            ("[fd00::1]:53".parse().unwrap(), "[fd00::2]:51000".parse().unwrap())
        } else {
            ("8.8.8.8:53".parse().unwrap(), "192.168.1.5:51000".parse().unwrap())
        }
    }

    #[test]
    fn the_checksum_is_the_one_etherparse_makes() {
        for v6 in [false, true] {
            let (source, destination) = ends(v6);
            let mut buffer = Buffer::copy_from(PAYLOAD);
            prepend(&mut buffer, source, destination);
            let header = match (source.ip(), destination.ip()) {
                (IpAddr::V4(s), IpAddr::V4(d)) => etherparse::UdpHeader::with_ipv4_checksum(
                    53,
                    51000,
                    &etherparse::Ipv4Header::new(28, 64, etherparse::IpNumber::UDP, s.octets(), d.octets())
                        .unwrap(),
                    PAYLOAD,
                ),
                (IpAddr::V6(s), IpAddr::V6(d)) => etherparse::UdpHeader::with_ipv6_checksum(
                    53,
                    51000,
                    &etherparse::Ipv6Header {
                        source: s.octets(),
                        destination: d.octets(),
                        ..Default::default()
                    },
                    PAYLOAD,
                ),
                _ => unreachable!(),
            };
            assert_eq!(buffer[..HEADER], header.unwrap().to_bytes());
            let read = parse(source.ip(), destination.ip(), &buffer);
            assert_eq!(read, Ok(Header { source: 53, destination: 51000, len: buffer.len() }));
        }
    }

    #[test]
    fn no_checksum_is_allowed_over_ipv4_alone() {
        for v6 in [false, true] {
            let (source, destination) = ends(v6);
            let mut buffer = Buffer::copy_from(PAYLOAD);
            prepend(&mut buffer, source, destination);
            buffer[6..8].fill(0);
            assert_eq!(parse(source.ip(), destination.ip(), &buffer).is_ok(), !v6);
        }
    }

    proptest! {
        #[test]
        fn any_flipped_bit_is_noticed(v6: bool, payload in proptest::collection::vec(any::<u8>(), 0..64), bit: u16) {
            let (source, destination) = ends(v6);
            let mut buffer = Buffer::copy_from(&payload);
            prepend(&mut buffer, source, destination);
            let bit = usize::from(bit) % (8 * buffer.len());
            buffer[bit / 8] ^= 1 << (bit % 8);
            let read = parse(source.ip(), destination.ip(), &buffer);
            // The one exception is the protocol's own: a checksum of one bit that becomes "none".
            prop_assert!(read.is_err() || (!v6 && buffer[6..8] == [0, 0]));
        }

        #[test]
        fn no_bytes_panic(v6: bool, bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
            let (source, destination) = ends(v6);
            let _ = parse(source.ip(), destination.ip(), &bytes);
        }
    }
}
