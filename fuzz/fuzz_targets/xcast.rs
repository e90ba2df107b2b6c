//! Packets of Xcast: what is read from any bytes, with a checksum that fits, is written as the same bytes. A router:
//! whatever arrives, it sends no more packets than the list has destinations, each whole, or nothing and counts why. So
//! does a designated router, which also turns packets to a group into packets of Xcast.
#![no_main]

use std::net::Ipv6Addr;

use hopcast_core::{Buffer, Egress, Instant, Item, Machine, Membership, Port, Transit};
use hopcast_explicit::xcast::router::{Config, Hop, NextHops, PlusConfig, Router};
use hopcast_explicit::xcast::wire::Packet;
use hopcast_wire::checksum::checksum;
use hopcast_wire::ip;
use libfuzzer_sys::fuzz_target;

/// The last byte of a destination says its next hop.
struct Hops;

impl NextHops for Hops {
    fn next_hop(&mut self, destination: Ipv6Addr) -> Option<Hop> {
        let last = destination.octets()[15];
        let address = Ipv6Addr::from([0xfd14, 0, 0, 0, 0, 0, 1, (last % 3).into()]);
        match last % 4 {
            0 => None,
            1 => Some(Hop::Plain),
            2 => Some(Hop::Neighbour { interface: 1, address }),
            _ => Some(Hop::Tunnel(address)),
        }
    }

    fn is_router(&self, address: Ipv6Addr) -> bool {
        address.octets()[14] == 1
    }

    fn attached(&self, address: Ipv6Addr) -> Option<u32> {
        (address.octets()[15] == 1).then_some(1)
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut bytes = bytes.to_vec();
    seal(&mut bytes);
    let mut most = 1;
    let parsed = Packet::parse(&bytes).ok();
    if let Some(packet) = &parsed {
        let emitted = packet.emit();
        assert_eq!(emitted[..], bytes[..emitted.len()]);
        assert_eq!(emitted.len(), packet.header_len() + packet.payload.len());
        most = packet.marks.len();
    }
    // As it is, out of a tunnel, and as what a source here sends to a group.
    let mut packets = vec![(Buffer::copy_from(&bytes), parsed.is_some(), most)];
    let wrap = |source: Ipv6Addr, destination: Ipv6Addr, protocol| {
        let mut packet = Buffer::copy_from(&bytes);
        ip::prepend(&mut packet, source.into(), destination.into(), protocol, 64, 0);
        packet
    };
    if bytes.len() <= usize::from(u16::MAX) {
        packets.push((wrap(PEER, OWN, 41), parsed.is_some(), most));
        let protocol = bytes.first().copied().unwrap_or_default();
        // Besides the members' interface one router has registered.
        let multicast = wrap(SOURCE, GROUP, protocol);
        let is_packet = ip::parse(&multicast).is_ok();
        packets.push((multicast, is_packet, 2));
    }
    let plain = Router::new(Config::default(), &[OWN.into()], Box::new(Hops));
    for mut router in [plain, designated()] {
        for (packet, is_packet, most) in &packets {
            let arrived = Transit::arrived(packet.clone(), 1);
            router.handle(Instant::ZERO, Port::Below(0), Item::Transit(arrived));
            let mut sent = 0;
            while let Some((port, item)) = router.poll(Instant::ZERO) {
                sent += 1;
                assert_eq!(port, Port::Below(0));
                match item {
                    Item::Transit(Transit { egress: Egress::Neighbour { .. }, packet, .. }) => {
                        assert!(Packet::parse(&packet).is_ok());
                    }
                    Item::Transit(Transit { packet, .. }) | Item::Packet(packet) => {
                        assert!(!is_packet || ip::parse(&packet).is_ok());
                    }
                    other => panic!("{other:?}"),
                }
            }
            assert!(sent <= *most, "{sent} packets of {most}");
        }
    }
});

const OWN: Ipv6Addr = Ipv6Addr::new(0xfd14, 0, 0, 0, 0, 0, 1, 9);
/// A router, with a tunnel to it.
const PEER: Ipv6Addr = Ipv6Addr::new(0xfd14, 0, 0, 0, 0, 0, 0, 0x0103);
const SOURCE: Ipv6Addr = Ipv6Addr::new(0xfd14, 0, 0, 0, 0, 0, 0, 1);
const GROUP: Ipv6Addr = Ipv6Addr::new(0xff3e, 0, 0, 0, 0, 0, 0, 1);

/// The designated router of a source, with members on another link; another router has registered with it.
fn designated() -> Router {
    let channel = |interface| {
        let (group, source, interface) = (GROUP.into(), Some(SOURCE.into()), Some(interface));
        Item::Membership(Membership { group, source, interface, joined: true })
    };
    let router = |own: Ipv6Addr, next_hops| {
        Router::new(Config::default(), &[own.into()], next_hops).designated(PlusConfig::default())
    };
    let mut far = router(PEER, Box::new(Nothing) as Box<dyn NextHops>);
    far.handle(Instant::ZERO, Port::Above(1), channel(5));
    let Some((_, Item::Packet(registration))) = far.poll(Instant::ZERO) else { panic!("a registration") };
    let mut near = router(OWN, Box::new(Hops));
    near.handle(Instant::ZERO, Port::Above(1), channel(2));
    near.handle(Instant::ZERO, Port::Below(0), Item::Transit(Transit::arrived(registration, 1)));
    assert!(near.poll(Instant::ZERO).is_none(), "a registration ends here");
    near
}

/// The routes of a router to which no source is attached.
struct Nothing;

impl NextHops for Nothing {
    fn next_hop(&mut self, _: Ipv6Addr) -> Option<Hop> {
        None
    }

    fn is_router(&self, _: Ipv6Addr) -> bool {
        false
    }

    fn attached(&self, _: Ipv6Addr) -> Option<u32> {
        None
    }
}

/// Makes the checksum of the routing header fit, as far as it is there.
fn seal(bytes: &mut [u8]) {
    let Some(&[_, words]) = bytes.get(ip::V6_HEADER..).and_then(<[u8]>::first_chunk) else { return };
    let end = ip::V6_HEADER + 8 + 8 * usize::from(words);
    let Some(header) = bytes.get_mut(ip::V6_HEADER..end) else { return };
    header[6..8].fill(0);
    let sum = checksum(header);
    header[6..8].copy_from_slice(&sum.to_be_bytes());
}
