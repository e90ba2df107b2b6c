mod bounds;
pub(in crate::meadcast) mod net;
mod packets;
mod random;

use std::net::{IpAddr, Ipv6Addr};

use hopcast_core::{Buffer, Egress, Instant, Item, Machine, Port, Transit};
use hopcast_wire::{ip, udp};

use super::{Config, Router};
use crate::Bitmap;
use crate::meadcast::wire::tests::segment;
use crate::meadcast::wire::{Kind, NO_NEXT_HEADER, Packet};
use crate::testing::{at, counter};

/// Port of every receiver whose port is not listed.
const PORT: u16 = 5001;
const PAYLOAD: &[u8] = b"the first frame of the film";

fn router(config: Config, own: &str) -> Router {
    Router::new(config, &[IpAddr::from([10, 0, 0, 1]), at(own).into()])
}

fn list(addresses: &[&str]) -> Vec<[u8; 16]> {
    addresses.iter().map(|text| at(text).octets()).collect()
}

/// A packet of data from fd14::1 whose routers are at these places, all of which are to be delivered.
fn data(list: &[[u8; 16]], routers: &[usize], ports: Option<&[[u8; 2]]>) -> Buffer {
    let routers = routers.iter().fold(Bitmap::EMPTY, |map, &place| map.with(place));
    let destination = Ipv6Addr::from(list[1]);
    let port = ports.map_or(PORT, |ports| u16::from_be_bytes(ports[0]));
    let payload = segment(at("fd14::1"), destination, port, PAYLOAD);
    let packet = Packet {
        traffic: 0x0b80_0123,
        hop_limit: 64,
        source: at("fd14::1"),
        destination,
        kind: Kind::Data { delivery: routers, routers },
        hops: 0,
        hold: 0,
        reserved: 0,
        list,
        ports,
        protocol: ip::UDP,
        payload: &payload,
    };
    packet.emit()
}

/// The packets that the machine hands back for one that arrived on interface 3, and those that it sends as its own.
fn answers(router: &mut Router, now: Instant, packet: Buffer) -> (Vec<Buffer>, Vec<Buffer>) {
    router.handle(now, Port::Below(0), Item::Transit(Transit::arrived(packet, 3)));
    let (mut back, mut own) = (Vec::new(), Vec::new());
    while let Some((port, item)) = router.poll(now) {
        assert_eq!(port, Port::Below(0));
        match item {
            Item::Transit(Transit { packet, ingress: Some(3), egress: Egress::Routes }) => back.push(packet),
            Item::Packet(packet) => own.push(packet),
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(router.deadline(), None);
    (back, own)
}

/// Destination and port of a plain packet, all of whose fields and bytes are as they should be.
fn unicast(packet: &[u8]) -> (Ipv6Addr, u16) {
    let header = ip::parse(packet).unwrap();
    assert_eq!((header.header_len, header.total_len, header.hop_limit), (ip::V6_HEADER, packet.len(), 64));
    assert_eq!(packet[..4], [0x6b, 0x80, 0x01, 0x23], "traffic class and flow label stay");
    let found = udp::parse(header.source, header.destination, &packet[header.payload()]).unwrap();
    assert_eq!(&packet[header.header_len + udp::HEADER..], PAYLOAD);
    match (header.source, header.destination) {
        (IpAddr::V6(source), IpAddr::V6(destination)) => {
            assert_eq!(source, at("fd14::1"));
            (destination, found.destination)
        }
        other => panic!("{other:?}"),
    }
}

/// Destination, delivery map and port of a copy, whose checksum fits.
fn copy(bytes: &[u8]) -> (Ipv6Addr, Bitmap, u16) {
    let packet = Packet::parse(bytes).unwrap();
    assert_eq!(packet.header_len() + packet.payload.len(), bytes.len());
    let found = udp::parse(packet.source.into(), packet.destination.into(), packet.payload).unwrap();
    match packet.kind {
        Kind::Data { delivery, .. } => (packet.destination, delivery, found.destination),
        other => panic!("{other:?}"),
    }
}

fn request(receiver: &str, hops: u8, hop_limit: u8) -> Buffer {
    let list = list(&[receiver]);
    let packet = Packet {
        traffic: 0,
        hop_limit,
        source: at("fd14::1"),
        destination: at(receiver),
        kind: Kind::Request { nonce: 0 },
        hops,
        hold: 0,
        reserved: 0,
        list: &list,
        ports: None,
        protocol: NO_NEXT_HEADER,
        payload: &[],
    };
    packet.emit()
}
