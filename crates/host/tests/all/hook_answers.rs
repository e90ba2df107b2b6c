//! Hooks that answer with packets whose egress they name, and hooks on packets for the host itself.

#![allow(clippy::unwrap_used)]

use std::net::IpAddr;
use std::sync::Arc;

use crate::network::{A, B, Network, ROUTER, address, mac, packet, socket};
use hopcast_core::hook::MAX_ANSWERS;
use hopcast_core::{Buffer, Egress, Item, Port, Transit};
use hopcast_host::Hook;
use hopcast_wire::{ethernet, ip};

/// The number of IPv6's routing header, and a type of it that no standard uses (RFC 3692 section 2.1).
const ROUTING: u8 = 43;
const KIND: u8 = 253;

/// The router hooks on `Above(8)`; both ends take protocol 99.
fn hooked(filter: Hook) -> Network {
    let mut network = Network::new(1500);
    network.hosts[ROUTER].hook(8, filter);
    for host in [A, ROUTER, B] {
        network.hosts[host].bind_protocol(2, 99, None).unwrap();
    }
    network
}

/// The one packet that the router's hook was given.
fn taken(network: &mut Network) -> Transit {
    let [(8, Item::Transit(transit))] = &network.take(ROUTER)[..] else { panic!("one packet for the hook") };
    transit.clone()
}

fn answer(network: &mut Network, transit: &Transit, egress: Egress) {
    let answer = Transit { egress, ..transit.clone() };
    network.hand(ROUTER, Port::Above(8), Item::Transit(answer));
}

fn neighbour(interface: u32, host: usize) -> Egress {
    Egress::Neighbour { interface, address: address(host, false) }
}

/// A packet of `from` to `to` with a routing header of this type.
fn routed(from: usize, to: usize, kind: u8) -> Buffer {
    let mut packet = Buffer::zeroed(20);
    packet.prepend(8).copy_from_slice(&[99, 0, kind, 0, 0, 0, 0, 0]);
    ip::prepend(&mut packet, address(from, true), address(to, true), ROUTING, 64, 0);
    packet
}

#[test]
fn one_packet_is_answered_with_several_each_to_the_neighbour_that_it_names() {
    let mut network = hooked(Hook::Protocol(99));
    network.hand_packet(A, packet(false, 99, 64, 20));
    let transit = taken(&mut network);
    network.frames.clear();
    answer(&mut network, &transit, neighbour(1, B));
    answer(&mut network, &transit, neighbour(1, B));
    let sent: Vec<_> = network.frames.iter().map(|frame| ethernet::parse(frame).unwrap()).collect();
    assert!(
        sent.iter().all(|frame| (frame.source, frame.destination) == (mac(ROUTER, 1), mac(B, 0))),
        "{sent:?}"
    );
    let arrived = network.take(B);
    assert_eq!(arrived.len(), 2);
    for (_, item) in arrived {
        let Item::Packet(packet) = item else { panic!("{item:?}") };
        assert_eq!(ip::parse(&packet).unwrap().hop_limit, 63, "the host takes the hop off");
    }
    assert_eq!(network.counter(ROUTER, "forwarded"), 2);
}

#[test]
fn a_packet_goes_to_a_neighbour_whatever_its_destination_is() {
    let mut network = hooked(Hook::Protocol(99));
    network.hand_packet(A, packet(false, 99, 64, 20));
    let transit = taken(&mut network);
    network.frames.clear();
    answer(&mut network, &transit, neighbour(0, A));
    let sent = ethernet::parse(&network.frames[0]).unwrap();
    assert_eq!((sent.source, sent.destination), (mac(ROUTER, 0), mac(A, 0)), "back to where it came from");
    answer(&mut network, &transit, neighbour(0, B));
    assert_eq!(network.counter(ROUTER, "no_route"), 1, "B is no neighbour there");
}

#[test]
fn a_packet_to_a_group_is_copied_to_the_interfaces_that_the_hook_names() {
    let group: IpAddr = "239.1.1.1".parse().unwrap();
    let mut network = hooked(Hook::Destination { prefix: group, length: 4 });
    network.hosts[B].join(2, group);
    let mut to_group = Buffer::zeroed(20);
    ip::prepend(&mut to_group, address(A, false), group, 99, 64, 0);
    network.hand_packet(A, to_group);
    let transit = taken(&mut network);
    network.frames.clear();
    answer(&mut network, &transit, Egress::Group(Arc::new([1, 0])));
    let sent: Vec<_> = network.frames.iter().map(|frame| ethernet::parse(frame).unwrap()).collect();
    assert_eq!(sent.iter().map(|frame| frame.source).collect::<Vec<_>>(), [mac(ROUTER, 1), mac(ROUTER, 0)]);
    assert!(sent.iter().all(|frame| frame.destination == ethernet::of_group(group)));
    assert_eq!(network.counter(ROUTER, "group_copies"), 2);
    assert_eq!(network.take(B).len(), 1);
}

#[test]
fn a_hook_that_answers_with_a_thousand_copies_sends_no_more_than_it_may() {
    let mut network = hooked(Hook::Protocol(99));
    network.hand_packet(A, packet(false, 99, 64, 20));
    let transit = taken(&mut network);
    for _ in 0..1000 {
        answer(&mut network, &transit, neighbour(1, B));
    }
    assert_eq!(network.take(B).len() as u32, MAX_ANSWERS);
    assert_eq!(network.counter(ROUTER, "hook_excess"), 1000 - u64::from(MAX_ANSWERS));
    network.hand_packet(A, packet(false, 99, 64, 20));
    let transit = taken(&mut network);
    answer(&mut network, &transit, neighbour(1, B));
    assert_eq!(network.take(B).len(), 1, "the next packet may be answered again");
}

/// Answers what the hook of a host was given with the same packet to the other one.
fn bounce(network: &mut Network, host: usize, interface: u32, other: usize) -> bool {
    let Some((8, Item::Transit(transit))) = network.take(host).pop() else { return false };
    let mut packet = transit.packet.clone();
    let IpAddr::V6(to) = address(other, true) else { panic!("IPv6") };
    packet[24..40].copy_from_slice(&to.octets());
    let egress = Egress::Neighbour { interface, address: to.into() };
    network.hand(host, Port::Above(8), Item::Transit(Transit { packet, egress, ..transit }));
    true
}

#[test]
fn two_hooks_that_send_each_other_a_packet_do_so_until_its_hops_are_used_up() {
    let mut network = hooked(Hook::ExtensionHeader { header: ROUTING, kind: None });
    network.hosts[B].hook(8, Hook::ExtensionHeader { header: ROUTING, kind: None });
    network.hand_packet(A, routed(A, ROUTER, KIND));
    let mut rounds = 0;
    while bounce(&mut network, ROUTER, 1, B) && bounce(&mut network, B, 0, ROUTER) {
        rounds += 1;
        assert!(rounds < 1000, "it does not come to rest");
    }
    // It left with 64 hops, of which the last is not taken.
    assert_eq!(network.frames.len(), 1 + 63);
    let exceeded = [ROUTER, B].map(|host| network.counter(host, "hop_limit_exceeded"));
    assert_eq!(exceeded.iter().sum::<u64>(), 1);
}

#[test]
fn two_hooks_of_one_host_do_not_send_a_packet_round_in_a_circle() {
    let mut network = hooked(Hook::ExtensionHeader { header: ROUTING, kind: None });
    network.hosts[ROUTER].hook(9, Hook::ExtensionHeader { header: ROUTING, kind: None });
    let mut sent = 0;
    let mut next = Some((8, routed(A, ROUTER, KIND)));
    while let Some((above, packet)) = next.take() {
        sent += 1;
        assert!(sent < 1000, "it does not come to rest");
        network.hand(ROUTER, Port::Above(above), Item::Packet(packet));
        // Whoever is given it sends it to the host anew.
        next = network.take(ROUTER).into_iter().find_map(|(above, item)| match item {
            Item::Transit(transit) => Some((above, transit.packet)),
            _ => None,
        });
    }
    assert_eq!(sent, 2, "the second sees what the first sends, and not the other way round");
}

#[test]
fn packets_that_are_held_and_handed_back_at_once_all_go_on() {
    let mut network = hooked(Hook::Protocol(99));
    let held: Vec<_> = (0..2 * MAX_ANSWERS)
        .map(|_| {
            network.hand_packet(A, packet(false, 99, 64, 20));
            taken(&mut network)
        })
        .collect();
    held.iter().for_each(|transit| answer(&mut network, transit, Egress::Routes));
    assert_eq!(network.take(B).len(), held.len());
    assert_eq!(network.counter(ROUTER, "hook_excess"), 0);
}

#[test]
fn copies_by_the_routes_are_bounded_too() {
    let mut network = hooked(Hook::Protocol(99));
    network.hand_packet(A, packet(false, 99, 64, 20));
    let transit = taken(&mut network);
    for _ in 0..1000 {
        answer(&mut network, &transit, Egress::Routes);
    }
    assert_eq!(network.take(B).len() as u32, MAX_ANSWERS);
    assert_eq!(network.counter(ROUTER, "hook_excess"), 1000 - u64::from(MAX_ANSWERS));
}

#[test]
fn a_packet_whose_hops_are_used_up_goes_no_further() {
    let mut network = hooked(Hook::Protocol(99));
    network.hand_packet(A, packet(false, 99, 1, 20));
    let transit = taken(&mut network);
    answer(&mut network, &transit, neighbour(1, B));
    assert!(network.take(B).is_empty());
    assert_eq!(network.counter(ROUTER, "hop_limit_exceeded"), 1);
}

#[test]
fn a_routing_header_is_selected_by_its_type_in_transit_and_at_its_destination() {
    for to in [ROUTER, B] {
        let mut network = hooked(Hook::ExtensionHeader { header: ROUTING, kind: Some(KIND) });
        network.hand_packet(A, routed(A, to, 0));
        assert_eq!(network.take(to).len(), 1, "another type passes by");
        network.hand_packet(A, routed(A, to, KIND));
        let transit = taken(&mut network);
        assert_eq!(transit.ingress, Some(0));
        assert!(network.take(to).is_empty(), "the hook has it");
        answer(&mut network, &transit, Egress::Routes);
        let [(2, Item::Packet(arrived))] = &network.take(to)[..] else { panic!("handed back, it arrives") };
        assert_eq!(ip::parse(arrived).unwrap().hop_limit, if to == B { 63 } else { 64 });
    }
}

#[test]
fn a_hook_does_not_see_what_it_has_sent_to_its_own_host() {
    let mut network = hooked(Hook::ExtensionHeader { header: ROUTING, kind: None });
    network.hand(ROUTER, Port::Above(8), Item::Packet(routed(A, ROUTER, KIND)));
    let items = network.take(ROUTER);
    assert!(matches!(&items[..], [(2, Item::Packet(_))]), "delivered, and not hooked again: {items:?}");
}

/// A UDP packet of A to a port of a host.
fn datagram(to: usize, port: u16) -> Buffer {
    let (from, to) = (socket(A, false, 1), socket(to, false, port));
    let mut packet = Buffer::copy_from(&[7; 20]);
    hopcast_wire::udp::prepend(&mut packet, from, to);
    ip::prepend(&mut packet, from.ip(), to.ip(), ip::UDP, 64, 0);
    packet
}

#[test]
fn a_transport_is_selected_by_its_port_in_transit_and_at_its_destination() {
    for to in [ROUTER, B] {
        let mut network = hooked(Hook::Transport { protocol: ip::UDP, port: Some(3055) });
        network.hosts[to].bind_protocol(3, ip::UDP, None).unwrap();
        network.hand_packet(A, datagram(to, 3056));
        assert_eq!(network.take(to).len(), 1, "another port passes by");
        network.hand_packet(A, datagram(to, 3055));
        let transit = taken(&mut network);
        assert_eq!(transit.ingress, Some(0));
        assert!(network.take(to).is_empty(), "the hook has it");
        answer(&mut network, &transit, Egress::Routes);
        assert_eq!(network.take(to).len(), 1, "handed back, it arrives");
    }
    for to in [ROUTER, B] {
        let mut network = hooked(Hook::Transport { protocol: ip::UDP, port: None });
        network.hand_packet(A, datagram(to, 1));
        taken(&mut network);
    }
}
