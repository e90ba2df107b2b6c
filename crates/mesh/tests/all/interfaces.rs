//! Nodes with two interfaces: what each sends on which, and which one a packet leaves by.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;

use crate::common::{World, station};
use hopcast_mesh::wire::ogm::{Ogm, messages};

/// The messages on the air for a while, with the interface of node 1 that sent each.
fn messages_of_1(world: &mut World, seconds: u64) -> Vec<(usize, Ogm)> {
    world.max_captured = 100_000;
    world.captured.clear();
    world.run(seconds);
    let mut found = Vec::new();
    for frame in world.captured.iter().filter(|frame| frame[14] == 0) {
        let by = [0, 1].into_iter().find(|&interface| frame[6..12] == station((1, interface)));
        found.extend(
            by.into_iter().flat_map(|by| messages(&frame[14..]).unwrap().map(move |(ogm, _)| (by, ogm))),
        );
    }
    found
}

/// Node 1 with two radios between node 0, on the first, and node 2, on the second.
fn between(seed: u64) -> World {
    let mut world = World::with(vec![1, 2, 1], true, seed);
    world.join((0, 0), (1, 0), 0.0);
    world.join((1, 1), (2, 0), 0.0);
    world
}

#[test]
fn messages_of_the_first_interface_go_out_by_both_and_through_the_mesh_those_of_the_second_one_hop() {
    let mut world = between(1);
    world.run(30);
    let sent = messages_of_1(&mut world, 10);
    let own = |by, of| {
        let of_it = sent.iter().filter(|(sender, ogm)| (*sender, ogm.originator) == (by, station((1, of))));
        of_it.map(|(_, ogm)| ogm.ttl).collect::<Vec<_>>()
    };
    for (by, of, ttl) in [(0, 0, 50), (1, 0, 50), (1, 1, 2)] {
        let ttls = own(by, of);
        assert!(
            (8..=12).contains(&ttls.len()) && ttls.iter().all(|&found| found == ttl),
            "{by} {of}: {ttls:?}"
        );
    }
    assert!(own(0, 1).is_empty());
    // Node 2 has both as originators, and node 0 the node's address alone.
    let known = |node: usize| {
        world.nodes[node].originators().iter().map(|status| status.originator).collect::<BTreeSet<_>>()
    };
    let all =
        |interfaces: &[(usize, usize)]| interfaces.iter().map(|&at| station(at)).collect::<BTreeSet<_>>();
    assert_eq!(known(0), all(&[(1, 0), (2, 0)]));
    assert_eq!(known(2), all(&[(1, 0), (1, 1), (0, 0)]));
    assert_eq!(
        (world.nodes[1].neighbours(0), world.nodes[1].neighbours(1)),
        (vec![station((0, 0))], vec![station((2, 0))])
    );
    assert!(world.pings(0, 2) && world.pings(2, 0) && world.pings(2, 1));
}

#[test]
fn a_path_that_changes_its_radio_is_worth_more_than_one_that_does_not() {
    // The same three nodes in a row, with one radio in the middle or two.
    let mut chain = World::chain(3, 0.0, 2);
    chain.run(90);
    let mut two = between(2);
    two.run(90);
    // A hop takes 30 of 255; the radio by which a packet comes and goes, as much again. A message or none of 64 is on
    // its way back.
    let (one_hop, shared) = (225 * 251 / 255..=225, 225 * 225 / 255 * 251 / 255..=225 * 225 / 255);
    let tq = |world: &World| world.metric(0, 2).unwrap();
    assert!(one_hop.contains(&tq(&two)), "{}", tq(&two));
    assert!(shared.contains(&tq(&chain)), "{}", tq(&chain));
}

#[test]
fn a_packet_leaves_by_another_radio_than_the_one_by_which_it_came_where_both_lead_on() {
    // Node 2 is reached by both radios of node 1, and node 0 by the first.
    let mut world = World::with(vec![1, 2, 2], true, 3);
    world.join((0, 0), (1, 0), 0.0);
    world.join((1, 0), (2, 0), 0.0);
    world.join((1, 1), (2, 1), 0.0);
    world.run(60);
    world.max_captured = 10_000;
    let mut senders = |from: usize, to: usize| {
        world.captured.clear();
        assert!(world.pings(from, to), "from {from} to {to}");
        let unicast = world.captured.iter().filter(|frame| frame[14] == 0x40);
        let sender = |frame: &Vec<u8>| [0, 1].into_iter().find(|&at| frame[6..12] == station((1, at)));
        unicast.filter_map(sender).collect::<Vec<_>>()
    };
    assert_eq!(senders(0, 2), [1]);
    // There is no other way to node 0.
    assert_eq!(senders(2, 0), [0]);
}
