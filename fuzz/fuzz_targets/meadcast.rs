//! Packets of MEADcast: what is read from any bytes is written as the same bytes. A router between two others: whatever
//! arrives, it sends no more packets than the list has receivers, each whole, or nothing and counts why. A sender:
//! whatever routers say, its lists are sound and have each receiver once.
#![no_main]

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv6Addr};

use arbitrary::Arbitrary;
use hopcast_core::{Buffer, Datagram, Duration, Egress, Instant, Item, Machine, Port, Seed, Transit};
use hopcast_explicit::Bitmap;
use hopcast_explicit::meadcast::router::{Config, Router};
use hopcast_explicit::meadcast::sender::{self, Grouping, Sender};
use hopcast_explicit::meadcast::wire::{Kind, MAX_LIST, NO_NEXT_HEADER, Packet, short};
use hopcast_fuzz::internet::mend;
use hopcast_wire::{ip, udp};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Step {
    /// Milliseconds before it.
    wait: u8,
    what: What,
    /// Bytes to change, before lengths and checksums are made to fit or after.
    changes: Vec<(u8, u8)>,
    mends: bool,
}

#[derive(Arbitrary, Debug)]
enum What {
    /// The last byte of each address of the list, and whether it is a router.
    Data {
        list: Vec<(u8, bool)>,
        delivery: u32,
        hops: u8,
        hold: u8,
        hop_limit: u8,
        has_ports: bool,
    },
    /// Of each section its branch, its router's last byte and those of its receivers.
    Short {
        sections: Vec<(u8, u8, Vec<u8>)>,
        hops: u8,
        to_receiver: bool,
    },
    Discovery {
        router: u8,
        receiver: u8,
        hops: u8,
        is_response: bool,
        nonce: u64,
    },
    Bytes(Vec<u8>),
}

/// Parts of the revision that the sender uses.
#[derive(Arbitrary, Debug)]
struct Parts {
    hold: bool,
    next_hop: bool,
    short_lists: bool,
    by_bytes: bool,
}

fuzz_target!(|input: (Parts, Vec<Step>)| {
    let (parts, steps) = input;
    let own: IpAddr = address(1).into();
    let config =
        Config { min_dsts: 2, copies_per_second: 2000, responses_per_second: 50, ..Config::default() };
    let mut router = Router::new(config, &[own]);
    let config = sender::Config {
        delay: Duration::ZERO,
        max: 4,
        merge: 1,
        min_leaves: 1,
        hold: parts.hold,
        next_hop: parts.next_hop,
        short_lists: parts.short_lists,
        grouping: if parts.by_bytes { Grouping::LeastBytes } else { Grouping::DepthFirst },
        ..Default::default()
    };
    let random = Seed::new(1, 0).stream(&["sender"], 0);
    let mut sender = Sender::new(config, address(9), GROUP.into(), RECEIVERS.map(address), random);
    let mut now = Instant::ZERO;
    for step in steps {
        now += Duration::from_millis(step.wait.into());
        let mut bytes = packet(&step.what);
        for (place, to) in step.changes {
            if let Some(byte) = bytes.get_mut(usize::from(place)) {
                *byte = to;
            }
        }
        if step.mends {
            mend(&mut bytes);
        }
        send(&mut sender, now, bytes.clone());
        let most = read(&bytes);
        let is_packet = Packet::parse(&bytes).is_ok() || short::Packet::parse(&bytes, &mut short::List::default()).is_ok();
        router.handle(now, Port::Below(0), Item::Transit(Transit::arrived(bytes, 1)));
        let mut sent = 0;
        while let Some((port, item)) = router.poll(now) {
            assert_eq!(port, Port::Below(0));
            sent += 1;
            match item {
                Item::Transit(Transit { packet, ingress: Some(1), egress: Egress::Routes }) => {
                    assert!(!is_packet || ip::parse(&packet).is_ok());
                }
                Item::Packet(packet) => {
                    assert!(Packet::parse(&packet).is_ok_and(|it| matches!(it.kind, Kind::Response { .. })))
                }
                other => panic!("{other:?}"),
            }
        }
        assert!(sent <= most, "{sent} packets of {most}");
        assert_eq!(router.deadline(), None);
    }
});

const GROUP: Ipv6Addr = Ipv6Addr::new(0xff18, 0, 0, 0, 0, 0, 0, 1);
const RECEIVERS: [u8; 6] = [3, 4, 5, 6, 7, 8];

/// Hands a packet to the sender, and then a datagram, which comes to each receiver.
fn send(sender: &mut Sender, now: Instant, arrived: Buffer) {
    sender.handle(now, Port::Below(1), Item::Packet(arrived));
    while sender.poll(now).is_some() {}
    let datagram = Datagram::new((address(9), 7).into(), (GROUP, 7).into(), Buffer::copy_from(b"payload"));
    sender.handle(now, Port::Above(0), Item::Datagram(datagram));
    let mut receivers = BTreeSet::new();
    while let Some((_, item)) = sender.poll(now) {
        let Item::Packet(packet) = item else { panic!("{item:?}") };
        let header = ip::parse(&packet).expect("a packet");
        assert!(udp::parse(header.source, header.destination, &packet[header.payload()]).is_ok());
        if header.header_len == ip::V6_HEADER {
            assert!(receivers.insert(header.destination));
            continue;
        }
        if short::is_short(&packet) {
            let mut list = short::List::default();
            short::Packet::parse(&packet, &mut list).expect("a packet with a short list");
            let listed = list.sections().flat_map(|section| section.receivers);
            listed.for_each(|listed| assert!(receivers.insert(Ipv6Addr::from(*listed).into())));
            continue;
        }
        let packet = Packet::parse(&packet).expect("a packet of MEADcast");
        let Kind::Data { routers, .. } = packet.kind else { panic!("{packet:?}") };
        for (place, listed) in packet.list.iter().enumerate() {
            assert!(routers.has(place) || receivers.insert(Ipv6Addr::from(*listed).into()));
        }
    }
    assert_eq!(receivers.len(), RECEIVERS.len());
    assert!(sender.deadline().is_some_and(|at| at > now));
}

/// Maximum number of packets that one may cause: the receivers in its list; of discovery itself and a response.
fn read(bytes: &[u8]) -> usize {
    let mut list = short::List::default();
    if let Ok(packet) = short::Packet::parse(bytes, &mut list) {
        let mut emitted = Buffer::copy_from(packet.payload);
        packet.prepend(&mut emitted, list.sections());
        assert_eq!(emitted[..], bytes[..emitted.len()]);
        return list.addresses.len() - list.routers.len();
    }
    let Ok(packet) = Packet::parse(bytes) else { return 1 };
    let emitted = packet.emit();
    assert_eq!(emitted[..], bytes[..emitted.len()]);
    assert_eq!(emitted.len(), packet.header_len() + packet.payload.len());
    match packet.kind {
        Kind::Data { routers, .. } => packet.list.len() - routers.len(),
        Kind::Request { .. } | Kind::Response { .. } => 2,
    }
}

fn address(last: u8) -> Ipv6Addr {
    [0xfd14, 0, 0, 0, 0, 0, 0, last.into()].into()
}

fn packet(what: &What) -> Buffer {
    let discovery = Packet {
        traffic: 0,
        hop_limit: 64,
        source: address(2),
        destination: address(3),
        kind: Kind::Request { nonce: 0 },
        hops: 0,
        hold: 0,
        reserved: 0,
        list: &[],
        ports: None,
        protocol: NO_NEXT_HEADER,
        payload: &[],
    };
    match what {
        What::Data { list, delivery, hops, hold, hop_limit, has_ports } => {
            let list = &list[..list.len().min(MAX_LIST)];
            let places = list.iter().enumerate().filter(|(_, (_, is_router))| *is_router);
            let routers = places.fold(Bitmap::EMPTY, |map, (place, _)| map.with(place));
            let delivery = routers
                .places()
                .filter(|&place| delivery >> place & 1 == 1)
                .fold(Bitmap::EMPTY, Bitmap::with);
            let list: Vec<[u8; 16]> = list.iter().map(|(last, _)| address(*last).octets()).collect();
            let ports = vec![[7, 7]; list.len() - routers.len()];
            let mut payload = Buffer::copy_from(b"payload");
            udp::prepend(&mut payload, (address(2), 7).into(), (address(3), 7).into());
            let packet = Packet {
                hops: *hops,
                hold: *hold,
                hop_limit: *hop_limit,
                kind: Kind::Data { delivery, routers },
                list: &list,
                ports: has_ports.then_some(&ports[..]),
                protocol: ip::UDP,
                payload: &payload,
                ..discovery
            };
            packet.emit()
        }
        What::Discovery { router, receiver, hops, is_response, nonce } => {
            let list = [address(*receiver).octets()];
            let (kind, destination) = match is_response {
                true => (Kind::Response { nonce: *nonce, code: None }, address(9)),
                false => (Kind::Request { nonce: *nonce }, address(*receiver)),
            };
            Packet { kind, source: address(*router), destination, hops: *hops, list: &list, ..discovery }
                .emit()
        }
        What::Short { sections, hops, to_receiver } => {
            let mut list = short::List::default();
            for (branch, router, receivers) in sections.iter().take(8) {
                list.routers = list.routers.with(list.addresses.len());
                list.branches.push(*branch);
                list.addresses.push(address(*router).octets());
                list.addresses.extend(receivers.iter().take(8).map(|last| address(*last).octets()));
            }
            let mut payload = Buffer::copy_from(b"payload");
            udp::prepend(&mut payload, (address(2), 7).into(), (address(3), 7).into());
            let destination = list.addresses.get(usize::from(*to_receiver)).copied().unwrap_or_default();
            let packet = short::Packet {
                traffic: 0,
                hop_limit: 64,
                source: address(2),
                destination: destination.into(),
                hops: *hops,
                protocol: ip::UDP,
                payload: &[],
            };
            packet.prepend(&mut payload, list.sections());
            payload
        }
        What::Bytes(bytes) => Buffer::copy_from(bytes),
    }
}
