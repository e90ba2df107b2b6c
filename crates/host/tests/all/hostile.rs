//! Whatever arrives, a host neither panics nor loops nor grows.

#![allow(clippy::unwrap_used)]

use std::net::SocketAddr;

use crate::network::{A, B, ROUTER, address, hop, host, mac};
use hopcast_core::{Buffer, Datagram, Frame, Instant, Item, Machine, Port, Transit};
use hopcast_host::{EchoResponder, Hook, Host, Ping, PingConfig, StaticRoutes};
use hopcast_wire::{ethernet, icmp, ip, udp};
use proptest::prelude::*;

fn router() -> Host {
    let everywhere = StaticRoutes::new()
        .with("0.0.0.0".parse().unwrap(), 0, hop(1, B, 0))
        .with("fd00::".parse().unwrap(), 8, hop(0, A, 0))
        // An interface that is not there.
        .with("10.128.0.0".parse().unwrap(), 9, hop(9, A, 0));
    let mut host = host(ROUTER, &[1500, 600], true, everywhere);
    host.bind_udp(0, 5000).unwrap();
    host.bind_protocol(1, ip::TCP, Some(80)).unwrap();
    host.bind_protocol(2, ip::ICMP, None).unwrap();
    host.hook(3, Hook::Protocol(99));
    host
}

/// Bytes that are nearly right, so that they come far.
fn nearly_a_packet() -> impl Strategy<Value = Buffer> {
    let addresses = prop::sample::select(vec![
        (address(A, false), address(ROUTER, false)),
        (address(A, false), address(B, false)),
        (address(A, true), address(ROUTER, true)),
        (address(B, true), address(A, true)),
        (address(ROUTER, false), address(ROUTER, false)),
        (address(A, false), [224, 0, 0, 1].into()),
        (address(A, false), [10, 200, 0, 1].into()),
        ([255, 255, 255, 255].into(), address(A, false)),
    ]);
    let protocols = prop::sample::select(vec![0u8, 1, 6, 17, 44, 58, 60, 99]);
    let payload = proptest::collection::vec(any::<u8>(), 0..1600);
    let changes = proptest::collection::vec((0usize..120, any::<u8>()), 0..3);
    (addresses, protocols, payload, any::<u8>(), 0u8..4, changes).prop_map(
        |((source, destination), protocol, payload, hop_limit, shape, changes)| {
            let mut packet = Buffer::copy_from(&payload);
            match shape {
                0 => {
                    udp::prepend(&mut packet, SocketAddr::new(source, 7), SocketAddr::new(destination, 5000));
                }
                1 => {
                    // An error that quotes something from the router.
                    ip::prepend(&mut packet, address(ROUTER, source.is_ipv6()), source, protocol, 9, 9);
                    icmp::prepend(
                        &mut packet,
                        source,
                        destination,
                        icmp::Message::PacketTooBig { mtu: hop_limit.into() },
                    );
                }
                2 => icmp::prepend(
                    &mut packet,
                    source,
                    destination,
                    icmp::Message::EchoRequest { identifier: 1, sequence: 1 },
                ),
                _ => {}
            }
            ip::prepend(&mut packet, source, destination, protocol, hop_limit, 1);
            for (at, byte) in changes {
                if let Some(place) = packet.get_mut(at) {
                    *place = byte;
                }
            }
            packet
        },
    )
}

fn item() -> impl Strategy<Value = (Port, Item)> {
    let raw = proptest::collection::vec(any::<u8>(), 0..100);
    let packet = prop_oneof![3 => nearly_a_packet(), 1 => raw.prop_map(|bytes| Buffer::copy_from(&bytes))];
    (packet, 0u8..6, 0u32..4, any::<bool>()).prop_map(|(mut packet, kind, index, overheard)| match kind {
        0..=2 => {
            if packet.len() % 7 != 0 {
                let v6 = packet.first().is_some_and(|first| first >> 4 == 6);
                let ether_type = if v6 { ethernet::IPV6 } else { ethernet::IPV4 };
                let destination = if overheard { ethernet::BROADCAST } else { mac(ROUTER, index) };
                ethernet::prepend(
                    &mut packet,
                    ethernet::Header { destination, source: mac(A, 0), ether_type },
                );
            }
            (
                Port::Below(index),
                Item::Frame(Frame { overheard: overheard && index == 3, ..Frame::new(packet) }),
            )
        }
        3 => (Port::Above(index), Item::Packet(packet)),
        4 => (Port::Above(index), Item::Transit(Transit::arrived(packet, index))),
        _ => {
            let remote = SocketAddr::new(address(index as usize, overheard), 5000);
            let local = SocketAddr::new(address(ROUTER, overheard), 0);
            (Port::Above(index), Item::Datagram(Datagram::new(local, remote, packet)))
        }
    })
}

proptest! {
    #[test]
    fn nothing_that_arrives_panics_and_each_gives_little(items in proptest::collection::vec(item(), 1..40)) {
        let mut host = router();
        for (port, item) in items {
            host.handle(Instant::ZERO, port, item);
            let given = std::iter::from_fn(|| host.poll(Instant::ZERO)).count();
            // A packet for a hook and the host, or the host's own packet and what it causes here.
            prop_assert!(given <= 2, "one item gave {}", given);
            prop_assert_eq!(host.deadline(), None);
        }
    }

    #[test]
    fn nothing_panics_where_echoes_are_asked_for_and_answered(items in proptest::collection::vec(item(), 1..40)) {
        for v6 in [false, true] {
            let own = address(ROUTER, v6);
            let mut machines: [Box<dyn Machine>; 2] = [
                Box::new(Ping::new(PingConfig::new(own, address(A, v6)))),
                Box::new(EchoResponder::new(own, 64)),
            ];
            for (port, item) in &items {
                for machine in &mut machines {
                    for port in [*port, Port::Below(0)] {
                        machine.handle(Instant::ZERO, port, item.clone());
                        let given = std::iter::from_fn(|| machine.poll(Instant::ZERO)).count();
                        prop_assert!(given <= 1, "one item gave {}", given);
                    }
                }
            }
        }
    }

    #[test]
    fn the_same_items_give_the_same_items(items in proptest::collection::vec(item(), 1..20)) {
        let run = || {
            let mut host = router();
            let mut given = Vec::new();
            for (port, item) in items.clone() {
                host.handle(Instant::ZERO, port, item);
                given.extend(std::iter::from_fn(|| host.poll(Instant::ZERO)));
            }
            given
        };
        prop_assert_eq!(run(), run());
    }
}
