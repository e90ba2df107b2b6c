//! ARP and neighbour discovery: bytes, round trips, and whatever else arrives.

#![allow(clippy::unwrap_used)]

use std::net::{Ipv4Addr, Ipv6Addr};

use hopcast_core::Buffer;
use hopcast_wire::arp::{self, Operation, Packet, Station};
use hopcast_wire::nd::{self, Flags, Message};
use proptest::prelude::*;

const MAC: [u8; 6] = [0x00, 0x1b, 0x21, 1, 2, 3];

/// A request for 192.168.0.1 by 192.168.0.7, field by field.
const REQUEST: [u8; 28] =
    [0, 1, 8, 0, 6, 4, 0, 1, 0x00, 0x1b, 0x21, 1, 2, 3, 192, 168, 0, 7, 0, 0, 0, 0, 0, 0, 192, 168, 0, 1];

/// The solicitation of fe80::1 by fe80::2, to ff02::1:ff00:1; its checksum was computed by another program.
const SOLICITATION: [u8; 32] = [
    135, 0, 0x59, 0x7a, 0, 0, 0, 0, 0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 0x00, 0x1b,
    0x21, 1, 2, 3,
];

fn at(text: &str) -> Ipv6Addr {
    text.parse().unwrap()
}

fn asked() -> (Ipv6Addr, Ipv6Addr) {
    (at("fe80::2"), at("ff02::1:ff00:1"))
}

#[test]
fn a_request_reads_as_its_fields_say_and_is_written_as_it_was() {
    let packet = arp::parse(&REQUEST).unwrap();
    let sender = Station { mac: MAC, address: Ipv4Addr::new(192, 168, 0, 7) };
    let target = Station { mac: [0; 6], address: Ipv4Addr::new(192, 168, 0, 1) };
    assert_eq!(packet, Packet { operation: Operation::Request, sender, target });
    let mut written = Buffer::default();
    arp::prepend(&mut written, &packet);
    assert_eq!(&written[..], REQUEST);
    // Padded to Ethernet's minimum.
    let padded: Vec<u8> = REQUEST.into_iter().chain([0; 18]).collect();
    assert_eq!(arp::parse(&padded), Ok(packet));
}

#[test]
fn an_arp_packet_of_another_kind_of_address_names_the_field() {
    let error = |place: usize, value: u8| {
        let mut bytes = REQUEST;
        bytes[place] = value;
        arp::parse(&bytes).unwrap_err().to_string()
    };
    assert_eq!(error(1, 6), "ARP hardware type: must not be 6");
    assert_eq!(error(2, 0x86), "ARP protocol type: must not be 34304");
    assert_eq!(error(4, 8), "ARP hardware length: must not be 8");
    assert_eq!(error(5, 16), "ARP protocol length: must not be 16");
    assert_eq!(
        arp::parse(&REQUEST[..27]).unwrap_err().to_string(),
        "ARP packet: needs 28 bytes, there are 27"
    );
}

#[test]
fn a_solicitation_reads_as_its_fields_say_and_is_written_as_it_was() {
    let message = Message::Solicitation { target: at("fe80::1"), source: Some(MAC) };
    let mut written = Buffer::default();
    nd::prepend(&mut written, asked().0, asked().1, &message);
    assert_eq!(&written[..], SOLICITATION);
    assert_eq!(nd::parse(asked(), 255, &SOLICITATION), Ok(Some(message)));
    assert_eq!(nd::solicited_node(at("2001:db8::abcd:ef12:3456")), at("ff02::1:ff12:3456"));
}

#[test]
fn a_message_that_a_router_has_forwarded_or_that_is_badly_made_is_not_read() {
    let error = |addresses, hop_limit, message: &Message, change: &dyn Fn(&mut Vec<u8>)| {
        let (source, destination) = addresses;
        let mut buffer = Buffer::default();
        nd::prepend(&mut buffer, source, destination, message);
        let mut bytes = buffer.to_vec();
        change(&mut bytes);
        bytes[2..4].fill(0);
        let sum = hopcast_wire::checksum::transport(source.into(), destination.into(), 58, &bytes);
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
        nd::parse(addresses, hop_limit, &bytes).unwrap_err().to_string()
    };
    let ask = |target: &str| Message::Solicitation { target: at(target), source: Some(MAC) };
    let nothing = |_: &mut Vec<u8>| ();
    assert_eq!(error(asked(), 254, &ask("fe80::1"), &nothing), "ND hop limit: must not be 254");
    assert_eq!(error(asked(), 255, &ask("ff02::1"), &nothing), "ND target: must not be 65282");
    assert_eq!(error(asked(), 255, &ask("fe80::1"), &|bytes| bytes[1] = 7), "ND code: must not be 7");
    assert_eq!(
        error(asked(), 255, &ask("fe80::1"), &|bytes| bytes[25] = 0),
        "ND option length: must not be 0"
    );
    let long = "ND option: needs 16 bytes, there are 8";
    assert_eq!(error(asked(), 255, &ask("fe80::1"), &|bytes| bytes[25] = 2), long);
    let nobody = (Ipv6Addr::UNSPECIFIED, asked().1);
    assert_eq!(error(nobody, 255, &ask("fe80::1"), &nothing), "ND source: must not be 0");
    let flags = Flags { solicited: true, ..Flags::default() };
    let answer = Message::Advertisement { target: at("fe80::1"), mac: Some(MAC), flags };
    assert_eq!(error((at("fe80::1"), nd::ALL_NODES), 255, &answer, &nothing), "ND flags: must not be 64");
    assert!(nd::parse(asked(), 255, &[135, 0, 0, 0]).unwrap_err().is_corrupt());
    // Another message of ICMPv6 is none of ours.
    assert_eq!(nd::parse(asked(), 255, &[128, 0, 0, 0]), Ok(None));
}

fn mac() -> impl Strategy<Value = [u8; 6]> {
    any::<[u8; 6]>()
}

fn message() -> impl Strategy<Value = Message> {
    let target = any::<[u8; 14]>().prop_map(|rest| {
        let mut octets = [0xfd; 16];
        octets[2..].copy_from_slice(&rest);
        Ipv6Addr::from(octets)
    });
    let mac = proptest::option::of(mac());
    (target, mac, any::<[bool; 3]>(), any::<bool>()).prop_map(
        |(target, mac, [router, solicited, replaces], asks)| match asks {
            true => Message::Solicitation { target, source: mac },
            false => Message::Advertisement { target, mac, flags: Flags { router, solicited, replaces } },
        },
    )
}

proptest! {
    #[test]
    fn what_is_written_reads_back(
        message in message(),
        macs in (mac(), mac()),
        addresses in any::<(u32, u32)>(),
        operation in any::<u16>(),
    ) {
        let (source, destination) = (at("fe80::7"), at("fe80::9"));
        let mut buffer = Buffer::default();
        nd::prepend(&mut buffer, source, destination, &message);
        prop_assert_eq!(nd::parse((source, destination), 255, &buffer), Ok(Some(message)));
        let operation = match operation {
            1 => Operation::Request,
            2 => Operation::Reply,
            other => Operation::Other(other),
        };
        let sender = Station { mac: macs.0, address: Ipv4Addr::from_bits(addresses.0) };
        let target = Station { mac: macs.1, address: Ipv4Addr::from_bits(addresses.1) };
        let packet = Packet { operation, sender, target };
        let mut buffer = Buffer::default();
        arp::prepend(&mut buffer, &packet);
        prop_assert_eq!(arp::parse(&buffer), Ok(packet));
    }

    #[test]
    fn no_bytes_make_the_readers_panic(
        mut bytes in proptest::collection::vec(any::<u8>(), 0..80),
        kind in 133u8..138,
        hop_limit in 254u8..,
    ) {
        let _ = arp::parse(&bytes);
        if bytes.len() >= 4 {
            bytes[0] = kind;
            bytes[1] = 0;
            bytes[2..4].fill(0);
            let sum = hopcast_wire::checksum::transport(asked().0.into(), asked().1.into(), 58, &bytes);
            bytes[2..4].copy_from_slice(&sum.to_be_bytes());
        }
        let _ = nd::parse(asked(), hop_limit, &bytes);
    }
}
