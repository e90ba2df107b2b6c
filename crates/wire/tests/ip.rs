//! IP headers: real bytes, and what is written reads back.

#![allow(clippy::unwrap_used)]

use std::net::IpAddr;

use hopcast_core::Buffer;
use hopcast_wire::ip::{self, Header, Version};
use proptest::prelude::*;

/// A ping without payload from 192.168.0.2 to 192.168.0.1, as Linux would send it; put together by hand.
const PING: [u8; 28] = [
    0x45, 0x00, 0x00, 0x1c, 0x1c, 0x46, 0x40, 0x00, 0x40, 0x01, 0x9d, 0x47, 0xc0, 0xa8, 0x00, 0x02, 0xc0,
    0xa8, 0x00, 0x01, 0x08, 0x00, 0xf7, 0xfd, 0x00, 0x01, 0x00, 0x01,
];

#[test]
fn an_ipv4_header_reads_field_by_field() {
    let header = ip::parse(&PING).unwrap();
    let expected = Header {
        version: Version::V4,
        source: "192.168.0.2".parse().unwrap(),
        destination: "192.168.0.1".parse().unwrap(),
        protocol: ip::ICMP,
        hop_limit: 64,
        traffic_class: 0,
        header_len: 20,
        total_len: 28,
        fragment: false,
        dont_fragment: true,
    };
    assert_eq!(header, expected);
    assert_eq!(&PING[header.payload()], &PING[20..]);
}

#[test]
fn ethernet_padding_is_not_payload() {
    let mut padded = PING.to_vec();
    padded.resize(46, 0);
    assert_eq!(ip::parse(&padded).unwrap().payload(), 20..28);
}

#[test]
fn an_error_says_what_is_wrong_and_where() {
    let mut bytes = PING;
    bytes[8] = 63;
    assert_eq!(ip::parse(&bytes).unwrap_err().to_string(), "IPv4 header checksum: does not fit the bytes");
    bytes = PING;
    bytes[0] = 0x44;
    assert_eq!(ip::parse(&bytes).unwrap_err().to_string(), "IPv4 header length: must not be 16");
    bytes[0] = 0x55;
    assert_eq!(ip::parse(&bytes).unwrap_err().to_string(), "IP version: must not be 5");
    assert_eq!(
        ip::parse(&PING[..27]).unwrap_err().to_string(),
        "IPv4 total length: needs 28 bytes, there are 27"
    );
    assert!(ip::parse(&[]).is_err());
}

#[test]
fn a_quoted_packet_may_be_cut_and_its_checksum_stale() {
    let mut bytes = PING;
    bytes[8] = 1;
    let header = ip::parse_quoted(&bytes[..24]).unwrap();
    assert_eq!((header.total_len, header.hop_limit), (28, 1));
}

#[test]
fn the_payload_of_ipv6_lies_behind_the_extension_headers() {
    let mut packet = Buffer::copy_from(b"\x11\0\x01\x04\0\0\0\0\x04\xd2\x16\x2e\0\x08\0\0");
    let (source, destination) = ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap());
    // Destination options, eight bytes of padding, then UDP.
    ip::prepend(&mut packet, source, destination, 60, 9, 0);
    let header = ip::parse(&packet).unwrap();
    assert_eq!((header.protocol, header.header_len, header.fragment), (ip::UDP, 48, false));
    assert_eq!(ip::ports(&packet[header.payload()]), Some((1234, 5678)));
    // A fragment header with "more fragments" makes it a part.
    packet[6] = 44;
    packet[40..48].copy_from_slice(&[17, 0, 0, 1, 0, 0, 0, 9]);
    assert!(ip::parse(&packet).unwrap().fragment);
    // An extension header that is longer than the packet.
    packet[6] = 60;
    packet[41] = 200;
    assert!(ip::parse(&packet).is_err());
    assert_eq!(ip::parse_quoted(&packet).unwrap().protocol, 60);
}

#[test]
fn the_last_hop_is_not_taken_off() {
    let mut packet = Buffer::copy_from(b"");
    ip::prepend(&mut packet, "10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap(), 17, 2, 1);
    assert!(ip::decrement_hop_limit(&mut packet));
    let before = packet.clone();
    assert!(!ip::decrement_hop_limit(&mut packet));
    assert_eq!(packet, before);
    assert!(!ip::decrement_hop_limit(&mut []));
}

fn ends(v6: bool, low: u16) -> (IpAddr, IpAddr) {
    if v6 {
        ([0xfd00, 0, 0, 0, 0, 0, 1, low].into(), [0xfd00, 0, 0, 0, 0, 0, 2, low].into())
    } else {
        let [a, b] = low.to_be_bytes();
        ([10, 1, a, b].into(), [10, 2, a, b].into())
    }
}

proptest! {
    #[test]
    fn what_is_written_reads_back_here_and_elsewhere(
        v6: bool, low: u16, hop_limit in 2u8.., identification: u16,
        payload in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let (source, destination) = ends(v6, low);
        let mut packet = Buffer::copy_from(&payload);
        ip::prepend(&mut packet, source, destination, ip::TCP, hop_limit, identification);
        let header = ip::parse(&packet).unwrap();
        prop_assert_eq!((header.source, header.destination), (source, destination));
        prop_assert_eq!((header.protocol, header.hop_limit), (ip::TCP, hop_limit));
        prop_assert_eq!(&packet[header.payload()], &payload[..]);
        let theirs = etherparse::IpSlice::from_slice(&packet).unwrap();
        prop_assert_eq!((theirs.source_addr(), theirs.destination_addr()), (source, destination));
        prop_assert_eq!(theirs.payload().payload, &payload[..]);

        // One hop later the checksum still fits.
        prop_assert!(ip::decrement_hop_limit(&mut packet));
        prop_assert_eq!(ip::parse(&packet).unwrap(), Header { hop_limit: hop_limit - 1, ..header });
    }

    #[test]
    fn no_bytes_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..120), first in prop::sample::select(vec![0x45u8, 0x4f, 0x60])) {
        let _ = ip::parse(&bytes);
        let _ = ip::parse_quoted(&bytes);
        let _ = ip::ports(&bytes);
        if let Some(byte) = bytes.first_mut() {
            *byte = first;
        }
        if let Ok(header) = ip::parse(&bytes) {
            let _ = &bytes[header.payload()];
        }
        let _ = ip::parse_quoted(&bytes);
        ip::decrement_hop_limit(&mut bytes);
    }

    #[test]
    fn no_extension_headers_panic(next in prop::sample::select(vec![0u8, 43, 44, 51, 60]), bytes in proptest::collection::vec(0u8..70, 0..120)) {
        let mut packet = Buffer::copy_from(&bytes);
        let (source, destination) = ends(true, 1);
        ip::prepend(&mut packet, source, destination, next, 1, 0);
        if let Ok(header) = ip::parse(&packet) {
            let _ = &packet[header.payload()];
        }
        let _ = ip::parse_quoted(&packet);
    }
}
