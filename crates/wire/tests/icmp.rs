//! ICMP messages of both versions.

#![allow(clippy::unwrap_used)]

use std::net::IpAddr;

use hopcast_core::Buffer;
use hopcast_wire::icmp::{self, Message, Unreachable};
use hopcast_wire::ip::Version;
use proptest::prelude::*;

fn ends(v6: bool) -> (IpAddr, IpAddr) {
    if v6 {
        ("fd00::1".parse().unwrap(), "fd00::2".parse().unwrap())
    } else {
        ("10.0.0.1".parse().unwrap(), "10.0.0.2".parse().unwrap())
    }
}

#[test]
fn the_bytes_are_those_that_etherparse_makes() {
    use etherparse::{IcmpEchoHeader, Icmpv4Type, Icmpv6Type, icmpv4, icmpv6};
    let echo = IcmpEchoHeader { id: 7, seq: 9 };
    let cases = [
        (
            Message::EchoRequest { identifier: 7, sequence: 9 },
            Icmpv4Type::EchoRequest(echo),
            Icmpv6Type::EchoRequest(echo),
        ),
        (
            Message::EchoReply { identifier: 7, sequence: 9 },
            Icmpv4Type::EchoReply(echo),
            Icmpv6Type::EchoReply(echo),
        ),
        (
            Message::TimeExceeded,
            Icmpv4Type::TimeExceeded(icmpv4::TimeExceededCode::TtlExceededInTransit),
            Icmpv6Type::TimeExceeded(icmpv6::TimeExceededCode::HopLimitExceeded),
        ),
        (
            Message::PacketTooBig { mtu: 1400 },
            Icmpv4Type::DestinationUnreachable(icmpv4::DestUnreachableHeader::FragmentationNeeded {
                next_hop_mtu: 1400,
            }),
            Icmpv6Type::PacketTooBig { mtu: 1400 },
        ),
        (
            Message::Unreachable(Unreachable::Port),
            Icmpv4Type::DestinationUnreachable(icmpv4::DestUnreachableHeader::Port),
            Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::Port),
        ),
        (
            Message::Unreachable(Unreachable::Network),
            Icmpv4Type::DestinationUnreachable(icmpv4::DestUnreachableHeader::Network),
            Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::NoRoute),
        ),
        (
            Message::Unreachable(Unreachable::Protocol),
            Icmpv4Type::DestinationUnreachable(icmpv4::DestUnreachableHeader::Protocol),
            Icmpv6Type::ParameterProblem(icmpv6::ParameterProblemHeader {
                code: icmpv6::ParameterProblemCode::UnrecognizedNextHeader,
                pointer: 6,
            }),
        ),
    ];
    for (message, v4, v6) in cases {
        for is_v6 in [false, true] {
            let (source, destination) = ends(is_v6);
            let mut buffer = Buffer::copy_from(b"the body");
            icmp::prepend(&mut buffer, source, destination, message);
            match (source, destination) {
                (IpAddr::V6(s), IpAddr::V6(d)) => {
                    let theirs = v6.to_header(s.octets(), d.octets(), b"the body").unwrap().to_bytes();
                    assert_eq!(buffer[..8], theirs[..8], "{message:?}");
                }
                _ => {
                    let theirs = etherparse::Icmpv4Header::with_checksum(v4.clone(), b"the body").to_bytes();
                    assert_eq!(buffer[..8], theirs[..8], "{message:?}");
                }
            }
            assert_eq!(icmp::parse(source, destination, &buffer), Ok(message));
            assert_eq!(&buffer[icmp::HEADER..], b"the body");
        }
    }
}

#[test]
fn a_quotation_keeps_the_error_short() {
    let packet = [0; 1500];
    assert_eq!(icmp::quote(Version::V4, &packet).len() + 20 + 8, 576);
    assert_eq!(icmp::quote(Version::V6, &packet).len() + 40 + 8, 1280);
    assert_eq!(icmp::quote(Version::V6, &packet[..60]).len(), 60);
}

proptest! {
    #[test]
    fn every_type_and_code_reads_and_writes_the_same(v6: bool, kind: u8, code: u8) {
        let (source, destination) = ends(v6);
        let mut buffer = Buffer::default();
        icmp::prepend(&mut buffer, source, destination, Message::Other { kind, code });
        let message = icmp::parse(source, destination, &buffer).unwrap();
        let mut again = Buffer::default();
        icmp::prepend(&mut again, source, destination, message);
        let read_again = icmp::parse(source, destination, &again).unwrap();
        prop_assert_eq!(read_again, message);
        prop_assert_eq!(again[0], kind);
    }

    #[test]
    fn any_flipped_bit_is_noticed(v6: bool, body in proptest::collection::vec(any::<u8>(), 0..64), bit: u16) {
        let (source, destination) = ends(v6);
        let mut buffer = Buffer::copy_from(&body);
        icmp::prepend(&mut buffer, source, destination, Message::TimeExceeded);
        let bit = usize::from(bit) % (8 * buffer.len());
        buffer[bit / 8] ^= 1 << (bit % 8);
        prop_assert!(icmp::parse(source, destination, &buffer).unwrap_err().is_corrupt());
    }

    #[test]
    fn no_bytes_panic(v6: bool, bytes in proptest::collection::vec(any::<u8>(), 0..64)) {
        let (source, destination) = ends(v6);
        let _ = icmp::parse(source, destination, &bytes);
    }
}
