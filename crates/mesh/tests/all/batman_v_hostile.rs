//! Stations that lie to nodes of B.A.T.M.A.N. V, repeat and forge: what they send is bounded, counted, and costs others
//! little; and what a liar can have all the same.

use crate::common::checks::{
    bears_two_nodes_with_one_address, damage, frames_caused_by, recovers_from_forged_numbers,
};
use crate::common::{World, radio};
use hopcast_core::{Buffer, Rate};
use hopcast_mesh::OriginatorStatus;
use hopcast_mesh::wire::batman_v::{Elp, Ogm2, messages};
use hopcast_mesh::wire::{self, ETHER_TYPE, TTL};
use hopcast_wire::ethernet::{self, BROADCAST, Header, Mac};
use proptest::prelude::*;

const LIAR: Mac = [2, 0x66, 6, 6, 6, 6];
const FAST: (bool, Option<Rate>) = (false, Some(Rate::from_mbit(100)));
const SLOW: (bool, Option<Rate>) = (false, Some(Rate::from_mbit(1)));

fn ogm(originator: Mac, seqno: u32) -> Ogm2 {
    Ogm2 { ttl: TTL, flags: 0, seqno, originator, tvlv_len: 0, throughput: u32::MAX }
}

fn on_air(packet: impl wire::Header, source: Mac) -> Vec<u8> {
    let mut bytes = Buffer::copy_from(&[]);
    packet.prepend(&mut bytes);
    ethernet::prepend(&mut bytes, Header { destination: BROADCAST, source, ether_type: ETHER_TYPE });
    bytes.to_vec()
}

fn probe(originator: Mac, seqno: u32) -> Elp {
    Elp { originator, seqno, interval: 500 }
}

/// The number of the last message of a node's own that was captured.
fn last_number(world: &World, node: usize) -> u32 {
    let own = world.captured.iter().rev().filter(|frame| frame[14] == 4 && frame[6..12] == radio(node));
    let mut ogms = own.flat_map(|frame| messages(&frame[14..]).expect("a message")).map(|(ogm, _)| ogm);
    ogms.find(|ogm| ogm.originator == radio(node)).expect("its own").seqno
}

#[test]
fn forged_neighbours_are_bounded_and_routes_stay() {
    let mut world = World::batman_v(3, &[(true, Some(Rate::from_mbit(60)))], 1).in_row(0.0);
    world.run(20);
    for forged in 0..10_000_u16 {
        let [high, low] = forged.to_be_bytes();
        let source = [2, 0x77, 0, 0, high, low];
        world.forge(0, &on_air(probe(if forged % 2 == 0 { source } else { LIAR }, 7), source));
    }
    assert_eq!(world.nodes[0].neighbours(0).len(), 256);
    assert!(world.counter(0, "neighbours_refused") >= 10_000 - 256);
    assert!(world.counter(0, "originators") <= 3 + 256);
    let before = world.counter(0, "elp_probes_sent");
    world.run(10);
    let probes = world.counter(0, "elp_probes_sent") - before;
    assert!(probes <= 2 * 256 * 21, "{probes}");
    assert!(world.pings(0, 2) && world.pings(2, 0));
    world.run(420);
    assert_eq!((world.nodes[0].neighbours(0), world.counter(0, "originators")), (vec![radio(1)], 2));
}

#[test]
fn forged_originators_make_room_for_each_other_and_routes_stay() {
    let mut world = World::batman_v(3, &[FAST], 2).in_row(0.0);
    world.run(20);
    for forged in 0..10_000_u16 {
        let [high, low] = forged.to_be_bytes();
        // By a neighbour that has a good link, and by nobody.
        let source = if forged % 2 == 0 { radio(1) } else { LIAR };
        world.forge(0, &on_air(ogm([2, 0x77, 0, 0, high, low], 7), source));
    }
    assert_eq!(world.counter(0, "ogms_by_unknown_neighbours"), 5000);
    assert_eq!(world.counter(0, "originators"), 4096);
    assert!(world.counter(0, "originators_refused") > 0);
    assert!(world.pings(0, 2) && world.pings(2, 0));
    world.run(700);
    assert_eq!(world.counter(0, "originators"), 2);
    assert!(world.agrees());
}

#[test]
fn messages_that_come_back_or_come_again_go_no_further() {
    let mut world = World::batman_v(3, &[FAST], 3).in_row(0.0);
    world.max_captured = 10_000;
    world.run(20);
    let (route, forwarded) = (world.route(1, 0), world.counter(1, "ogms_forwarded"));
    let number = last_number(&world, 0);
    for back in 0..100 {
        // Its own, better than ever; one of 0 by the node behind, as of now and from before; and one out of hops.
        world.forge(1, &on_air(ogm(radio(1), last_number(&world, 1) + 1), radio(2)));
        world.forge(1, &on_air(Ogm2 { throughput: 700, ..ogm(radio(0), number) }, radio(2)));
        world.forge(1, &on_air(ogm(radio(0), number - back % 60 - 1), radio(0)));
        world.forge(1, &on_air(Ogm2 { ttl: 1, ..ogm(LIAR, 1 + back) }, radio(0)));
    }
    assert_eq!(world.counter(1, "ogms_forwarded"), forwarded);
    assert_eq!(
        (world.counter(1, "ogms_of_own") >= 100, world.counter(1, "ogms_outdated") >= 100),
        (true, true)
    );
    assert_eq!(world.counter(1, "ogms_expired"), 100);
    assert_eq!(world.route(1, 0), route);
}

#[test]
fn a_forged_number_costs_an_originator_half_a_minute_at_most() {
    let mut world = World::batman_v(3, &[FAST], 4).in_row(0.0);
    world.run(60);
    for far in [100_000_u32, 1 << 31, 3 << 30] {
        world.forge(0, &on_air(ogm(radio(2), far), radio(1)));
    }
    recovers_from_forged_numbers(world);
}

/// Nodes in a row by a fast channel, and on a slow one or on the same a liar that only node 0 hears: it says that it
/// has the best path to node 2. Gives the seconds in which it is the next hop, of those in which it lies and twenty
/// after.
fn seconds_drawn(channel: usize, ahead: u32, seconds: u64) -> u64 {
    let mut world = World::batman_v(3, &[FAST, SLOW], 5).in_row(0.0);
    world.max_captured = 100_000;
    world.run(20);
    let (mut drawn, mut number) = (0, 0);
    for second in 0..seconds + 20 {
        number += 1;
        world.forge_by((0, channel), &on_air(probe(LIAR, number), LIAR));
        if second < seconds {
            let lie = ogm(radio(2), last_number(&world, 2) + ahead);
            world.forge_by((0, channel), &on_air(lie, LIAR));
        }
        world.run(1);
        let by_liar = |status: &OriginatorStatus| status.originator == radio(2) && status.next_hop == LIAR;
        drawn += u64::from(world.nodes[0].originators().iter().any(by_liar));
    }
    assert!(world.pings(0, 2), "after the lies");
    drawn
}

#[test]
fn a_liar_is_believed_up_to_the_throughput_of_its_link() {
    // On the slow channel it has nothing to offer, whatever it says.
    assert_eq!(seconds_drawn(1, 1, 30), 0);
    // With a number that is ahead of the originator's it draws the route by the slow channel as well, until the
    // originator's own numbers are as high. The protocol knows no better.
    let once = seconds_drawn(1, 10, 1);
    assert!((1..=13).contains(&once), "{once} s");
    // On the fast channel its path is better than the honest one, which is one hop longer. The protocol has nothing
    // against that: it has the route for as long as it lies, and five numbers longer.
    let drawn = seconds_drawn(0, 1, 30);
    assert!((28..=37).contains(&drawn), "{drawn} s");
}

#[test]
fn two_nodes_with_one_address_do_not_stop_the_others() {
    let mut world = World::batman_v(6, &[FAST], 6).in_row(0.0);
    world.run(60);
    bears_two_nodes_with_one_address(world);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn damaged_frames_of_a_mesh_make_no_node_panic_and_cause_few_others(
        frames in prop::collection::vec(damage(), 1..200),
    ) {
        let mut world = World::batman_v(3, &[(true, None), FAST], 7).in_row(0.0);
        world.join((0, 1), (1, 1), 0.0);
        world.max_captured = 600;
        world.run(20);
        let given = frames.len() as u64;
        let sent = frames_caused_by(&mut world, frames);
        // A long frame is at most 16 fragments on each of two links; a broadcast is sent three times; and each node
        // sends some thirty packets a second, and probes of whom it takes for a neighbour.
        prop_assert!(sent < given * 80 + 1000, "{sent} frames");
        prop_assert!(world.counter(1, "originators") <= 2 * given + 3);
    }
}
