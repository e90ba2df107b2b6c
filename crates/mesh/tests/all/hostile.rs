//! Frames of stations that forge and repeat: they are bounded, counted, and cost others little.

use crate::common::checks::{
    bears_two_nodes_with_one_address, damage, frames_caused_by, recovers_from_forged_numbers,
};
use crate::common::{World, frame, host, radio};
use hopcast_core::{Buffer, Duration};
use hopcast_mesh::wire::ogm::{DIRECT_LINK, Ogm, messages};
use hopcast_mesh::wire::translation::{self, Change, Checksum, table_data};
use hopcast_mesh::wire::{ETHER_TYPE, Header as _, MAX_TQ, TTL, tvlv};
use hopcast_wire::ethernet::{self, BROADCAST, Header, Mac};
use proptest::prelude::*;

const ATTACKER: Mac = [2, 0x66, 6, 6, 6, 6];

fn ogm(originator: Mac, previous_sender: Mac, seqno: u32) -> Ogm {
    Ogm { ttl: TTL, flags: 0, seqno, originator, previous_sender, tq: MAX_TQ, tvlv_len: 0 }
}

fn on_air(ogm: Ogm, containers: &[u8], source: Mac) -> Vec<u8> {
    let mut packet = Buffer::copy_from(containers);
    Ogm { tvlv_len: containers.len() as u16, ..ogm }.prepend(&mut packet);
    ethernet::prepend(&mut packet, Header { destination: BROADCAST, source, ether_type: ETHER_TYPE });
    packet.to_vec()
}

#[test]
fn forged_originators_make_room_for_each_other_and_routes_stay() {
    let mut world = World::wires(3, 1);
    world.run(30);
    let before = world.sent;
    world.run(10);
    let usual = world.sent - before;
    for forged in 0..10_000_u16 {
        let [high, low] = forged.to_be_bytes();
        let originator = [2, 0x77, 0, 0, high, low];
        // From themselves, and by a neighbour that has a good link.
        let source = if forged % 2 == 0 { originator } else { radio(1) };
        world.forge(0, &on_air(ogm(originator, originator, 7), b"", source));
    }
    assert_eq!(world.counter(0, "originators"), 4096);
    assert!(world.counter(0, "originators_refused") > 0);
    let before = world.sent;
    world.run(10);
    assert!(world.sent - before < usual + 2 * 256, "{} frames, of {usual}", world.sent - before);
    assert!(world.pings(0, 2) && world.pings(2, 0));
    world.run(700);
    assert_eq!(world.counter(0, "originators"), 2);
}

#[test]
fn a_message_that_comes_back_changes_nothing_and_goes_no_further() {
    let mut world = World::wires(3, 2);
    world.run(30);
    let forwarded = world.counter(0, "ogms_forwarded");
    let seqno = 5;
    let mut flagged = ogm(radio(0), radio(1), seqno);
    flagged.flags = DIRECT_LINK;
    for _ in 0..100 {
        // Its own, one that it has forwarded, and one whose hops are used up.
        world.forge(0, &on_air(flagged, b"", radio(1)));
        world.forge(0, &on_air(ogm(radio(2), radio(0), seqno), b"", radio(1)));
        world.forge(0, &on_air(Ogm { ttl: 1, ..ogm(ATTACKER, ATTACKER, seqno) }, b"", ATTACKER));
    }
    assert_eq!(world.counter(0, "ogms_forwarded"), forwarded);
    assert!(world.counter(0, "ogms_of_own") >= 200 && world.counter(0, "ogms_expired") >= 100);
    // One of 2 that another station has from node 1, the next hop there: it would lead back.
    world.max_captured = 1000;
    world.run(3);
    let own = world.captured.iter().rev().find(|frame| frame[6..12] == radio(2) && frame[14] == 0).unwrap();
    let (newest, _) = messages(&own[14..]).unwrap().next().unwrap();
    world.forge(0, &on_air(ogm(radio(2), radio(1), newest.seqno + 1), b"", ATTACKER));
    assert_eq!(world.counter(0, "ogms_looping"), 1);
    world.run(5);
    assert_eq!(world.route(0, 2), [1, 2]);
}

#[test]
fn a_forged_sequence_number_costs_an_originator_half_a_minute_at_most() {
    let mut world = World::wires(3, 3);
    world.run(60);
    for far in [100_000_u32, 1 << 31, 3 << 30] {
        world.forge(0, &on_air(ogm(radio(2), radio(2), far), b"", radio(1)));
    }
    recovers_from_forged_numbers(world);
}

#[test]
fn a_table_that_never_stops_growing_is_refused() {
    let mut world = World::wires(3, 4);
    world.run(30);
    for version in 1..=255_u8 {
        let changes =
            (0..40_u8).map(|client| Change { flags: 0, address: [2, 0x88, 0, 0, version, client], vlan: 0 });
        let checksum = [Checksum { crc: 0, vlan: 0 }];
        let value = table_data(translation::DIFFERENCE, version, checksum.into_iter(), changes);
        let mut containers = Vec::new();
        tvlv::put(&mut containers, tvlv::TRANSLATION, translation::VERSION, &value);
        world.forge(0, &on_air(ogm(ATTACKER, ATTACKER, u32::from(version)), &containers, ATTACKER));
    }
    assert_eq!(world.counter(0, "tt_clients"), 2048 + 4);
    assert!(world.counter(0, "tt_foreign_clients_refused") > 0);
    assert!(world.pings(0, 2));
    world.run(700);
    // Of each of two nodes its host, and the groups of all nodes, which both share.
    assert_eq!(world.counter(0, "tt_clients"), 2 + 2);
}

#[test]
fn an_answer_that_was_not_asked_for_is_ignored() {
    let mut world = World::wires(3, 5);
    world.run(30);
    let stolen = Change { flags: 0, address: host(2), vlan: 0 };
    let flags = translation::RESPONSE | translation::FULL_TABLE;
    let value = table_data(flags, 1, [Checksum { crc: 0, vlan: 0 }].into_iter(), [stolen].into_iter());
    let mut bytes = Vec::new();
    tvlv::put(&mut bytes, tvlv::TRANSLATION, translation::VERSION, &value);
    let packet = for_one(radio(0), radio(1), &bytes, radio(0), radio(1));
    world.forge(0, &packet);
    assert_eq!(world.counter(0, "tt_responses_not_asked_for"), 1);
    assert!(world.agrees());
}

/// A packet of containers for a node, as a neighbour sends it on.
fn for_one(destination: Mac, source: Mac, containers: &[u8], next_hop: Mac, by: Mac) -> Vec<u8> {
    let mut packet = Buffer::copy_from(containers);
    let tvlv_len = containers.len() as u16;
    hopcast_mesh::wire::data::UnicastTvlv { ttl: TTL, destination, source, tvlv_len }.prepend(&mut packet);
    let header = Header { destination: next_hop, source: by, ether_type: ETHER_TYPE };
    ethernet::prepend(&mut packet, header);
    packet.to_vec()
}

/// Containers of requests for a whole table, all alike.
fn requests(number: usize, ttvn: u8, crc: u32) -> Vec<u8> {
    let flags = translation::REQUEST | translation::FULL_TABLE;
    let value = table_data(flags, ttvn, [Checksum { crc, vlan: 0 }].into_iter(), std::iter::empty());
    let mut bytes = Vec::new();
    (0..number).for_each(|_| tvlv::put(&mut bytes, tvlv::TRANSLATION, translation::VERSION, &value));
    bytes
}

#[test]
fn a_packet_of_many_requests_has_one_answer() {
    let mut world = World::wires(3, 9);
    world.run(30);
    let answered = world.counter(0, "tt_responses_sent");
    let packet = for_one(radio(0), radio(2), &requests(80, 1, 0), radio(0), radio(1));
    world.forge(0, &packet);
    assert_eq!(world.counter(0, "tt_responses_sent") - answered, 1);
    assert_eq!(world.counter(0, "malformed"), 79);
}

#[test]
fn a_node_that_asks_for_a_table_again_and_again_gets_four_answers_in_three_seconds() {
    let mut world = World::wires(3, 9);
    world.run(30);
    let answered = |world: &World, node| world.counter(node, "tt_responses_sent");
    // For the table of the node itself, and for that of the one behind it, which node 1 has.
    let (ttvn, crc) = world.nodes[2].table(0);
    let forged = requests(1, ttvn, crc.unwrap());
    for (at, of) in [(0, 0), (1, 2)] {
        let before = (answered(&world, at), answered(&world, 2));
        let packet = for_one(radio(of), radio(1 - at), &forged, radio(at), radio(1 - at));
        for _ in 0..100 {
            world.forge(at, &packet);
            world.until(world.now + Duration::from_millis(10));
        }
        assert_eq!(answered(&world, at) - before.0, 4);
        // What node 1 does not answer goes on to the node whose table it is, which counts for itself.
        assert_eq!(answered(&world, 2) - before.1, if of == 2 { 4 } else { 0 });
        world.run(3);
        world.forge(at, &packet);
        assert_eq!(answered(&world, at) - before.0, 5, "the next three seconds");
    }
    assert!(world.agrees());
}

#[test]
fn two_nodes_with_one_address_do_not_stop_the_others() {
    let mut world = World::wires(6, 6);
    world.run(60);
    bears_two_nodes_with_one_address(world);
}

#[test]
fn a_broadcast_that_is_repeated_for_ever_is_flooded_once() {
    let mut world = World::wires(3, 7);
    world.max_captured = 100_000;
    world.run(30);
    world.captured.clear();
    world.send(2, &frame(BROADCAST, host(2), b"once"));
    world.run(1);
    let broadcast = world.captured.iter().find(|frame| frame[14] == 1 && frame[6..12] == radio(1)).cloned();
    let broadcast = broadcast.expect("node 1 passes it on");
    world.delivered.clear();
    (0..1000).for_each(|_| world.forge(0, &broadcast));
    world.run(1);
    assert!(world.delivered.is_empty());
    assert!(world.counter(0, "broadcast_duplicates") >= 1000);
}

#[test]
fn broadcasts_and_long_frames_of_a_node_that_has_restarted_are_taken_at_once() {
    let mut world = World::wires(3, 12);
    world.run(20);
    let arrive = |world: &mut World, life: u8| {
        let (all, long) = (frame(BROADCAST, host(2), &[life]), frame(host(0), host(2), &[life; 1500]));
        world.delivered.clear();
        world.send(2, &all);
        world.send(2, &long);
        world.run(1);
        let to =
            |frame: &[u8]| world.delivered.iter().filter(|found| found.1 == 0 && found.2 == frame).count();
        (to(&all), to(&long))
    };
    assert_eq!(arrive(&mut world, 1), (1, 1));
    world.restart(2);
    // It has a route to node 0 again, and a table that others ask for.
    world.run(15);
    assert_eq!(arrive(&mut world, 2), (1, 1));
    assert_eq!(world.counter(0, "broadcast_duplicates") + world.counter(1, "broadcast_duplicates"), 0);
}

#[test]
fn sequence_numbers_that_wrap_are_those_of_the_next_messages_and_broadcasts() {
    let mut world = World::wires(2, 13);
    world.run(20);
    let (sender, first) = ([2, 0x99, 0, 0, 0, 1], u32::MAX - 5);
    let on_radio = |packet: Buffer| {
        let mut packet = packet;
        ethernet::prepend(
            &mut packet,
            Header { destination: BROADCAST, source: sender, ether_type: ETHER_TYPE },
        );
        packet.to_vec()
    };
    for step in 0..12_u32 {
        let seqno = first.wrapping_add(step);
        world.forge(0, &on_air(ogm(sender, sender, seqno), b"", sender));
        let mut packet = Buffer::copy_from(&frame(BROADCAST, sender, &[step as u8]));
        hopcast_mesh::wire::data::Broadcast { ttl: TTL, seqno, originator: sender }.prepend(&mut packet);
        (0..2).for_each(|_| world.forge(0, &on_radio(packet.clone())));
    }
    assert_eq!(world.counter(0, "ogms_of_restart_refused"), 0);
    assert_eq!((world.delivered.len(), world.counter(0, "broadcast_duplicates")), (12, 12));
    // One that goes back by more than a window is a restart, once in 30 seconds.
    for back in [70, 200] {
        world.forge(0, &on_air(ogm(sender, sender, first.wrapping_sub(back)), b"", sender));
    }
    assert_eq!(world.counter(0, "ogms_of_restart_refused"), 1);
}

#[test]
fn packets_whose_hops_are_used_up_go_no_further() {
    let mut world = World::wires(3, 14);
    world.run(20);
    world.max_captured = 1000;
    world.captured.clear();
    let packets: [(u8, Vec<u8>); 4] =
        [(0x40, vec![0; 60]), (0x41, vec![0; 60]), (0x43, vec![5; 30]), (0x44, requests(1, 1, 0))];
    for (kind, payload) in packets {
        for ttl in 0..2 {
            // The destination, behind four bytes, and the sender: those that every one of them has.
            let mut packet = vec![kind, 15, ttl, 3];
            packet.extend(radio(2));
            if kind > 0x40 {
                packet.extend(radio(0));
                packet.extend([0, 0, 0, 0].map(|zero: u8| if kind == 0x44 { zero } else { 0xff }));
            }
            packet.extend(&payload);
            let mut packet = Buffer::copy_from(&packet);
            let header = Header { destination: radio(1), source: radio(0), ether_type: ETHER_TYPE };
            ethernet::prepend(&mut packet, header);
            world.forge(1, &packet);
        }
    }
    assert!(world.captured.iter().all(|frame| frame[14] == 0), "only messages of the node's own");
    assert_eq!(world.counter(1, "ttl_exceeded"), 8);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn damaged_frames_of_a_mesh_make_no_node_panic_and_cause_few_others(
        frames in prop::collection::vec(damage(), 1..200),
    ) {
        let mut world = World::wires(3, 8);
        world.max_captured = 400;
        world.run(20);
        let given = frames.len() as u64;
        let sent = frames_caused_by(&mut world, frames);
        // A long frame is at most 16 fragments on each of two links, and each node sends some twelve packets a second.
        prop_assert!(sent < given * 40 + 400, "{sent} frames");
        prop_assert!(world.counter(1, "originators") <= given + 3);
    }
}
