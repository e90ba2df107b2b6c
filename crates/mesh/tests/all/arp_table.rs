//! The distributed ARP table: who answers a request, and what is on the air for it.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

use crate::common::groups::{passes, sends};
use crate::common::{World, host};
use hopcast_core::{Buffer, Duration};
use hopcast_wire::arp::{self, Operation, Packet, Station};
use hopcast_wire::ethernet::{self, BROADCAST, Header, Mac};

/// Types of packets on the air.
const FLOODED: u8 = 0x01;
const UNICAST: u8 = 0x40;
const WITH_SOURCE: u8 = 0x42;

const fn station(node: usize) -> Station {
    Station { mac: host(node), address: Ipv4Addr::new(10, 0, 0, node as u8 + 1) }
}

fn frame(destination: Mac, packet: Packet) -> Vec<u8> {
    let mut frame = Buffer::copy_from(&[]);
    arp::prepend(&mut frame, &packet);
    ethernet::prepend(
        &mut frame,
        Header { destination, source: packet.sender.mac, ether_type: arp::ETHER_TYPE },
    );
    frame.to_vec()
}

/// A node's host asks for the address of another's.
fn request(from: usize, to: usize) -> Vec<u8> {
    let target = Station { mac: [0; 6], ..station(to) };
    frame(BROADCAST, Packet { operation: Operation::Request, sender: station(from), target })
}

/// A node's host answers another's.
fn reply(from: usize, to: usize) -> Vec<u8> {
    let (sender, target) = (station(from), station(to));
    frame(target.mac, Packet { operation: Operation::Reply, sender, target })
}

/// Sends a host's request. Returns the nodes whose hosts get it, whether it is answered, and the number of packets of
/// each type.
fn asks(world: &mut World, from: usize, to: usize) -> (Vec<usize>, bool, BTreeMap<u8, usize>) {
    // A keeper that has no answer hands the request up, which comes as a flood besides.
    let (mut asked, on_air) = passes(world, from, &request(from, to));
    asked.dedup();
    let answers =
        world.delivered.iter().filter(|(_, node, bytes)| *node == from && *bytes == reply(to, from));
    let answers = answers.count();
    assert!(answers <= 1, "{answers} answers");
    (asked, answers == 1, on_air)
}

/// Hosts 0 and 4 of a row of five have asked and answered each other.
fn introduced(world: &mut World) {
    world.run(40);
    let (asked, answered, on_air) = asks(world, 0, 4);
    assert_eq!((asked, answered), (vec![1, 2, 3, 4], false));
    // Three keepers are asked, over one to four hops each, before it is flooded.
    assert_eq!(on_air[&FLOODED], 4);
    assert!((6..=9).contains(&on_air[&WITH_SOURCE]), "{on_air:?}");
    assert_eq!(world.counter(0, "arp_gets_sent"), 3);
    let (received, on_air) = sends(world, 4, &reply(4, 0));
    assert_eq!((received, on_air[&UNICAST]), (vec![0], 4));
    assert_eq!(world.counter(4, "arp_puts_sent"), 6);
}

#[test]
fn what_one_host_has_learned_others_get_without_a_flood() {
    let mut world = World::wires(5, 1);
    introduced(&mut world);
    // The reply has passed by no other host, and a keeper knows it, or the node itself is one.
    for from in [1, 2, 3] {
        let (asked, answered, on_air) = asks(&mut world, from, 4);
        assert_eq!((asked, answered), (vec![], true), "{from}");
        assert!(on_air.keys().all(|kind| *kind == WITH_SOURCE), "{on_air:?}");
        // Once more, from the node's own entries.
        assert_eq!(asks(&mut world, from, 4), (vec![], true, BTreeMap::new()), "{from}");
    }
    let flooded: u64 = [1, 2, 3].map(|node| world.counter(node, "broadcasts_sent")).into_iter().sum();
    assert_eq!(flooded, 0);
    // A client of the node's own answers itself.
    assert_eq!(asks(&mut world, 4, 4), (vec![], false, BTreeMap::new()));
}

#[test]
fn entries_end_five_minutes_after_they_were_heard_last() {
    let mut world = World::wires(5, 2);
    introduced(&mut world);
    world.run(240);
    assert_eq!(asks(&mut world, 0, 4), (vec![], true, BTreeMap::new()));
    world.run(70);
    let (asked, answered, _) = asks(&mut world, 0, 4);
    assert_eq!((asked, answered), (vec![1, 2, 3, 4], false));
}

#[test]
fn a_request_waits_a_quarter_of_a_second_and_goes_at_once_where_nobody_keeps_entries() {
    let arrives = |world: &mut World| {
        world.run(40);
        let before = world.now;
        let (asked, ..) = asks(world, 0, 2);
        assert_eq!(asked, [1, 2]);
        world.delivered.iter().map(|(at, ..)| at.since(before)).max().unwrap()
    };
    let quarter = Duration::from_millis(250);
    let waits = arrives(&mut World::wires(3, 3));
    assert!(waits >= quarter && waits < quarter + Duration::from_millis(5), "{waits}");
    let mut without = World::wires(3, 3).configured(|_, config| config.arp_table = false);
    assert!(arrives(&mut without) < Duration::from_millis(5));
    assert_eq!(without.counter(1, "arp_entries"), 0);
    // Nodes without it are asked nothing by those that have it.
    let mut alone = World::wires(3, 3).configured(|node, config| config.arp_table = node == 0);
    assert!(arrives(&mut alone) < Duration::from_millis(5));
    assert_eq!((alone.counter(0, "arp_gets_sent"), alone.counter(0, "arp_entries")), (0, 1));
}

#[test]
fn a_request_to_one_station_is_answered_or_asked_of_keepers() {
    let mut world = World::wires(5, 4);
    introduced(&mut world);
    let mut direct = request(0, 4);
    direct[..6].copy_from_slice(&host(4));
    assert_eq!(sends(&mut world, 0, &direct), (vec![], BTreeMap::new()));
    assert_eq!(world.delivered.len(), 1);
    let mut direct = request(2, 4);
    direct[..6].copy_from_slice(&host(4));
    let (asked, on_air) = sends(&mut world, 2, &direct);
    assert_eq!((asked, world.delivered.len()), (vec![], 1));
    assert!(on_air.keys().all(|kind| *kind == WITH_SOURCE), "{on_air:?}");
}

#[test]
fn a_host_that_asks_for_everything_makes_bounded_entries_and_bounded_packets() {
    let mut world = World::wires(3, 5);
    world.run(40);
    world.sent = 0;
    for number in 0..6000_u32 {
        let target = Station { mac: [0; 6], address: (0x0a01_0000 + number).into() };
        let sender = Station { address: (0x0a02_0000 + number).into(), ..station(0) };
        world.send(0, &frame(BROADCAST, Packet { operation: Operation::Request, sender, target }));
    }
    world.run(2);
    let bounds = [0, 1, 2]
        .map(|node| (world.counter(node, "arp_entries"), world.counter(node, "arp_entries_refused")));
    assert!(bounds.iter().all(|(entries, _)| *entries == 4096), "{bounds:?}");
    assert!(bounds[0].1 > 0);
    // Two keepers, one of them over two hops, and a flood over two.
    assert!(world.sent <= 6000 * 5 + 20, "{}", world.sent);
}
