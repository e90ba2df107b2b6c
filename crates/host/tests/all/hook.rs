//! The forward hook: pass, replace, consume, originate.

#![allow(clippy::unwrap_used)]

use crate::network::{A, B, Network, ROUTER, address, packet};
use hopcast_core::{Item, Port, Transit};
use hopcast_host::Hook;
use hopcast_wire::ip;

/// The router hooks on `Above(8)`; `b` takes TCP and protocol 99.
fn hooked(filter: Hook) -> Network {
    let mut network = Network::new(1500);
    network.hosts[ROUTER].hook(8, filter);
    network.hosts[B].bind_protocol(1, ip::TCP, None).unwrap();
    network.hosts[B].bind_protocol(2, 99, None).unwrap();
    network
}

fn taken(network: &mut Network) -> Transit {
    let mut items = network.take(ROUTER);
    let Some((8, Item::Transit(transit))) = items.pop() else { panic!("nothing was hooked: {items:?}") };
    assert!(items.is_empty());
    transit
}

#[test]
fn a_passed_packet_goes_on_as_if_it_had_just_arrived() {
    for v6 in [false, true] {
        let mut network = hooked(Hook::All);
        let sent = packet(v6, ip::TCP, 64, 20);
        network.hand_packet(A, sent.clone());
        assert!(network.take(B).is_empty());
        let transit = taken(&mut network);
        assert_eq!((&transit.packet, transit.ingress), (&sent, Some(0)), "whole, and no hop less");
        network.hand(ROUTER, Port::Above(8), Item::Transit(transit));
        assert!(network.take(ROUTER).is_empty(), "the hook sees it once");
        let [(1, Item::Packet(arrived))] = &network.take(B)[..] else { panic!() };
        assert_eq!(ip::parse(arrived).unwrap().hop_limit, 63);
    }
}

#[test]
fn a_replaced_packet_goes_where_it_now_says() {
    let mut network = hooked(Hook::Protocol(99));
    network.hosts[A].bind_protocol(1, ip::TCP, None).unwrap();
    network.hand_packet(A, packet(false, 99, 64, 20));
    let transit = taken(&mut network);
    let mut back = transit.packet;
    back.advance(20);
    ip::prepend(&mut back, address(B, false), address(A, false), ip::TCP, 9, 0);
    network.hand(ROUTER, Port::Above(8), Item::Transit(Transit { packet: back, ..transit }));
    assert!(network.take(B).is_empty());
    assert!(matches!(&network.take(A)[..], [(1, Item::Packet(_))]));
}

#[test]
fn a_packet_replaced_by_one_for_the_router_is_delivered_there() {
    let mut network = hooked(Hook::Protocol(99));
    network.hosts[ROUTER].bind_protocol(3, ip::TCP, None).unwrap();
    network.hand_packet(A, packet(false, 99, 64, 20));
    let transit = taken(&mut network);
    let mut here = transit.packet;
    here.advance(20);
    ip::prepend(&mut here, address(A, false), address(ROUTER, false), ip::TCP, 9, 0);
    network.hand(ROUTER, Port::Above(8), Item::Transit(Transit { packet: here, ..transit }));
    assert!(matches!(&network.take(ROUTER)[..], [(3, Item::Packet(_))]));
}

#[test]
fn a_consumed_packet_is_gone_and_an_originated_one_sent() {
    let mut network = hooked(Hook::All);
    network.hand_packet(A, packet(false, 99, 64, 20));
    let _ = taken(&mut network);
    assert!(network.take(B).is_empty());
    let made = packet(false, ip::TCP, 33, 20);
    network.hand(ROUTER, Port::Above(8), Item::Packet(made.clone()));
    assert_eq!(network.take(B), [(1, Item::Packet(made))], "the router's own: no hook, no hop less");
}

#[test]
fn a_filter_lets_all_else_pass_by() {
    let to_b = Hook::Destination { prefix: address(B, false), length: 32 };
    for (filter, v6, protocol, wanted) in [
        (Hook::Protocol(99), false, 99, true),
        (Hook::Protocol(99), true, ip::TCP, false),
        (to_b, false, ip::TCP, true),
        (to_b, true, ip::TCP, false),
        (Hook::Destination { prefix: "fd00::".parse().unwrap(), length: 8 }, true, 99, true),
    ] {
        let mut network = hooked(filter);
        network.hand_packet(A, packet(v6, protocol, 64, 20));
        assert_eq!(network.take(ROUTER).len(), usize::from(wanted), "{filter:?}");
        assert_eq!(network.take(B).len(), usize::from(!wanted), "{filter:?}");
    }
}

#[test]
fn a_second_hook_sees_what_the_first_hands_back() {
    let mut network = hooked(Hook::All);
    network.hosts[ROUTER].hook(9, Hook::All);
    network.hosts[ROUTER].hook(8, Hook::Protocol(99));
    network.hand_packet(A, packet(false, 99, 64, 20));
    let transit = taken(&mut network);
    network.hand(ROUTER, Port::Above(8), Item::Transit(transit));
    let [(9, Item::Transit(transit))] = &network.take(ROUTER)[..] else { panic!() };
    network.hand(ROUTER, Port::Above(9), Item::Transit(transit.clone()));
    assert_eq!(network.take(B).len(), 1);
}

#[test]
fn packets_to_the_router_itself_and_its_own_are_not_in_transit() {
    let mut network = hooked(Hook::All);
    let mut to_router = hopcast_core::Buffer::zeroed(20);
    ip::prepend(&mut to_router, address(A, false), address(ROUTER, false), 99, 64, 0);
    network.hand_packet(A, to_router);
    assert!(network.take(ROUTER).is_empty());
}

#[test]
fn multicast_is_forwarded_by_a_hook_alone() {
    let group: std::net::IpAddr = "239.1.1.1".parse().unwrap();
    let to_group = || {
        let mut packet = hopcast_core::Buffer::zeroed(20);
        ip::prepend(&mut packet, address(A, false), group, 99, 64, 0);
        packet
    };
    let mut network = Network::new(1500);
    network.hand_packet(A, to_group());
    assert_eq!(network.counter(ROUTER, "multicast_dropped"), 1);

    let mut network = hooked(Hook::Destination { prefix: group, length: 4 });
    network.hand_packet(A, to_group());
    let transit = taken(&mut network);
    network.hand(ROUTER, Port::Above(8), Item::Transit(transit));
    assert_eq!(network.counter(ROUTER, "no_route"), 1, "the test's routes know no groups");
}

#[test]
fn what_comes_back_from_no_hook_is_dropped() {
    let mut network = hooked(Hook::All);
    for (above, ingress) in [(7, 0), (8, 99)] {
        let transit = Transit::arrived(packet(false, 99, 64, 20), ingress);
        network.hand(ROUTER, Port::Above(above), Item::Transit(transit));
    }
    assert_eq!(network.counter(ROUTER, "wrong_items"), 2);
    assert!(network.frames.is_empty());
}
