//! Ethernet II (RFC 894), without preamble, FCS and padding.
//!
//! ```text
//!  0                   1                   2                   3
//! |          destination          |            source             | type  |  payload …
//!  0                              6                               12      14
//! ```

use std::net::{IpAddr, Ipv6Addr};

use hopcast_core::Buffer;

use crate::Malformed;

/// A station's address.
pub type Mac = [u8; 6];

/// Every station: all ones (RFC 894).
pub const BROADCAST: Mac = [0xff; 6];
/// The length of the header.
pub const HEADER: usize = 14;
/// The type of a frame that carries IPv4 (RFC 894).
pub const IPV4: u16 = 0x0800;
/// The type of a frame that carries IPv6 (RFC 2464 section 3).
pub const IPV6: u16 = 0x86dd;

/// The header in front of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// To whom the frame is sent.
    pub destination: Mac,
    /// By whom it was sent on this link.
    pub source: Mac,
    /// The type of the payload.
    pub ether_type: u16,
}

/// Reads the header; the payload begins at [`HEADER`].
#[inline]
pub fn parse(frame: &[u8]) -> Result<Header, Malformed> {
    let Some(&[d0, d1, d2, d3, d4, d5, s0, s1, s2, s3, s4, s5, t0, t1]) = frame.first_chunk::<HEADER>()
    else {
        return Err(Malformed::truncated("Ethernet", "header", HEADER, frame.len()));
    };
    Ok(Header {
        destination: [d0, d1, d2, d3, d4, d5],
        source: [s0, s1, s2, s3, s4, s5],
        ether_type: u16::from_be_bytes([t0, t1]),
    })
}

/// Puts the header in front of the packet in `buffer`.
#[inline]
pub fn prepend(buffer: &mut Buffer, header: Header) {
    let bytes = buffer.prepend(HEADER);
    bytes[0..6].copy_from_slice(&header.destination);
    bytes[6..12].copy_from_slice(&header.source);
    bytes[12..14].copy_from_slice(&header.ether_type.to_be_bytes());
}

/// Changes the addresses of a `frame` that [`parse`]d, in place.
#[inline]
pub fn readdress(frame: &mut [u8], destination: Mac, source: Mac) {
    if let Some(addresses) = frame.first_chunk_mut::<12>() {
        addresses[..6].copy_from_slice(&destination);
        addresses[6..].copy_from_slice(&source);
    }
}

/// An address as Linux writes it: `02:00:00:00:00:01`.
pub fn text(mac: Mac) -> String {
    mac.map(|byte| format!("{byte:02x}")).join(":")
}

/// Whether an address stands for several stations: the broadcast address or a multicast one.
pub const fn is_group(mac: Mac) -> bool {
    mac[0] & 1 != 0
}

/// The address that frames for an IP multicast `group` are sent to (RFC 1112 section 6.4, RFC 2464 section 7), or for
/// IPv4's broadcast address.
pub const fn of_group(group: IpAddr) -> Mac {
    match group {
        IpAddr::V4(group) if group.is_broadcast() => BROADCAST,
        IpAddr::V4(group) => {
            let [_, b, c, d] = group.octets();
            [0x01, 0x00, 0x5e, b & 0x7f, c, d]
        }
        IpAddr::V6(group) => {
            let [.., a, b, c, d] = group.octets();
            [0x33, 0x33, a, b, c, d]
        }
    }
}

/// The link-local address of the interface with an Ethernet address (RFC 4291 appendix A, RFC 2464 section 5).
pub const fn link_local(mac: Mac) -> Ipv6Addr {
    let [a, b, c, d, e, f] = mac;
    let word = u16::from_be_bytes;
    Ipv6Addr::new(0xfe80, 0, 0, 0, word([a ^ 0x02, b]), word([c, 0xff]), word([0xfe, d]), word([e, f]))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_reads_back() {
        let header = Header { destination: BROADCAST, source: [2, 0, 0, 0, 0, 1], ether_type: IPV6 };
        let mut buffer = Buffer::copy_from(b"packet");
        prepend(&mut buffer, header);
        assert_eq!(&buffer[..], b"\xff\xff\xff\xff\xff\xff\x02\0\0\0\0\x01\x86\xddpacket");
        assert_eq!(parse(&buffer), Ok(header));
        readdress(&mut buffer, header.source, [4; 6]);
        let readdressed = Header { destination: header.source, source: [4; 6], ..header };
        assert_eq!(parse(&buffer), Ok(readdressed));
        let error = parse(&buffer[..13]).unwrap_err().to_string();
        assert_eq!(error, "Ethernet header: needs 14 bytes, there are 13");
    }

    #[test]
    fn a_group_and_an_interface_have_addresses_of_their_own_on_the_link() {
        assert_eq!(of_group("224.129.2.3".parse().unwrap()), [0x01, 0x00, 0x5e, 0x01, 2, 3]);
        assert_eq!(of_group("ff02::1:ff00:7".parse().unwrap()), [0x33, 0x33, 0xff, 0, 0, 7]);
        assert_eq!(
            link_local([0x00, 0x1b, 0x21, 1, 2, 3]),
            "fe80::21b:21ff:fe01:203".parse::<Ipv6Addr>().unwrap()
        );
        assert!(is_group(BROADCAST) && !is_group([2, 0, 0, 0, 0, 1]));
    }
}
