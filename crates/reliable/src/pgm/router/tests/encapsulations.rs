//! PGM as a protocol of its own and in UDP, over both versions of IP.

use std::net::SocketAddr;

use hopcast_core::{Buffer, Instant, Item, Machine, Port, Transit};
use hopcast_wire::{ip, router_alert, udp};

use super::super::encapsulation::{self, Encapsulation};
use super::net::{Below, Kind, Net, TSI};
use crate::pgm::router::{Config, Router};
use crate::pgm::wire::{Body, Packet, Spm, UDP_MULTICAST, UDP_UNICAST};

const OF_OPENPGM: Encapsulation = Encapsulation::Udp { source: 40_000, destination: UDP_MULTICAST };
pub(super) const OF_OURS: Encapsulation = Encapsulation::Udp { source: 60_001, destination: 60_000 };

#[test]
fn elements_work_in_every_encapsulation() {
    for v6 in [false, true] {
        for encapsulation in [Encapsulation::Raw, OF_OPENPGM, OF_OURS] {
            let config = Config::default();
            let mut net = Net::new(&[None, Some(0), Some(0)], &[1, 2], config).over(v6, encapsulation);
            net.spm();
            let lost = net.data();
            net.ask(0, &[lost]);
            net.run(100);
            assert_eq!(net.at_source, [(Kind::Nak, lost)], "{v6} {encapsulation:?}");
            assert_eq!(net.on(Below::Receiver(0), Kind::Repair), 1);
            assert_eq!(net.on(Below::Receiver(1), Kind::Repair), 0);
        }
    }
}

#[test]
fn naks_in_udp_go_to_the_port_that_sources_listen_on() {
    let ports = |encapsulation: Encapsulation| encapsulation.towards_source();
    assert_eq!(ports(OF_OPENPGM), Encapsulation::Udp { source: UDP_UNICAST, destination: UDP_UNICAST });
    assert_eq!(ports(OF_OURS), Encapsulation::Udp { source: 60_000, destination: 60_001 });
}

/// As OpenPGM's receivers do, whose sources listen on the port of the group and send from another.
#[test]
fn a_nak_goes_on_to_the_port_that_it_came_to() {
    let mut net = Net::new(&[None], &[0], Config::default()).over(false, OF_OURS);
    net.spm();
    let lost = net.data();
    let mut router = net.routers[0].take().unwrap();
    let ports = Encapsulation::Udp { source: 60_000, destination: 60_000 };
    let ends = (net.receiver(0), net.address(1, 0));
    let nak = encapsulation::wrap(net.nak_of(&[lost], false).emit(), ports, ends, (64, false));
    router.handle(net.now, Port::Below(0), Item::Transit(Transit::arrived(nak, 1)));
    let sent = std::iter::from_fn(|| router.poll(net.now)).find_map(|(_, item)| match item {
        Item::Packet(packet) => Some(packet),
        _ => None,
    });
    let (place, _) = encapsulation::read(sent.as_ref().unwrap()).unwrap();
    assert_eq!((place.header.destination, place.encapsulation), (net.source(), ports));
}

/// What an element hands back of a packet that arrived.
fn through(router: &mut Router, bytes: Buffer) -> Vec<Item> {
    let transit = Item::Transit(Transit::arrived(bytes, 0));
    router.handle(Instant::ZERO, Port::Below(0), transit);
    std::iter::from_fn(|| router.poll(Instant::ZERO)).map(|(_, item)| item).collect()
}

#[test]
fn an_spm_with_another_path_has_the_headers_that_it_had_and_all_checksums_fit() {
    for v6 in [false, true] {
        for encapsulation in [Encapsulation::Raw, OF_OURS] {
            let mut net = Net::new(&[None], &[0], Config::default()).over(v6, encapsulation);
            let spm = Spm { sequence: 1, trail: 0, lead: 9, path: net.source() };
            let spm = Packet::new(TSI, 88, Body::Spm(spm));
            let sent = net.to_group(&spm);
            let items = through(net.routers[0].as_mut().unwrap(), sent.clone());
            let [Item::Transit(transit)] = &items[..] else { panic!("{items:?}") };
            let (place, packet) = encapsulation::read(&transit.packet).expect("checksums fit");
            let Body::Spm(spm) = packet.body else { panic!("{packet:?}") };
            assert_eq!(spm.path, net.address(1, 0));
            assert_eq!(transit.packet[..place.pgm.start], sent[..place.pgm.start]);
            assert_eq!(router_alert::is_present(&transit.packet), encapsulation == Encapsulation::Raw);
        }
    }
}

#[test]
fn packets_of_others_pass_unchanged() {
    let mut router = Net::new(&[None], &[], Config::default()).routers.remove(0).unwrap();
    let from = "10.0.0.1:9".parse().unwrap();
    // As long as an SPM, of its type, and without a checksum of PGM.
    for payload in [&[0; 36][..], &[0, 1, 0, 2, 0, 0, 0x12, 0x34, 0, 0, 0, 0, 0, 0, 0, 0], b"query", &[]] {
        for to in ["239.0.0.9:3056", "10.1.0.1:3055", "10.1.0.1:53"] {
            let to: SocketAddr = to.parse().unwrap();
            let mut bytes = Buffer::copy_from(payload);
            udp::prepend(&mut bytes, from, to);
            ip::prepend(&mut bytes, from.ip(), to.ip(), ip::UDP, 64, 0);
            let items = through(&mut router, bytes.clone());
            assert_eq!(items, [Item::Transit(Transit::arrived(bytes, 0))]);
        }
    }
    assert_eq!(router.load(), (0, 0));
}
