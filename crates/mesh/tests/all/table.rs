//! The translation table between nodes: VLANs, requests, roaming.

use crate::common::checks::{CLIENT, announcers, follows_a_client};
use crate::common::{World, frame, host, radio, tagged};
use hopcast_core::Duration;
use hopcast_mesh::Key;
use hopcast_wire::ethernet::{BROADCAST, Mac};

#[test]
fn clients_are_announced_in_their_vlans_and_reached_there_only() {
    let mut world = World::chain(3, 0.0, 1);
    world.run(30);
    world.send(2, &tagged(BROADCAST, CLIENT, 7, b"here"));
    world.run(5);
    let vlan = 0x8007;
    assert_eq!(announcers(&world, 0, vlan), [radio(2)]);
    assert!(announcers(&world, 0, 0).is_empty());
    assert_eq!(world.nodes[0].table_of(radio(2), vlan), world.nodes[2].table(vlan));
    assert!(world.nodes[2].table(vlan).1.is_some());
    let inside = tagged(CLIENT, host(0), 7, b"inside");
    world.send(0, &inside);
    world.send(0, &frame(CLIENT, host(0), b"outside"));
    world.run(1);
    assert!(world.delivered.iter().any(|(_, node, bytes)| *node == 2 && *bytes == inside));
    assert!(!world.delivered.iter().any(|(_, _, bytes)| bytes.ends_with(b"outside")));
    assert_eq!(world.counter(0, "client_not_known"), 1);
}

#[test]
fn a_table_of_many_clients_is_asked_for_and_sent_in_fragments() {
    let mut world = World::chain(3, 0.05, 2);
    world.run(30);
    for client in 0..400_u16 {
        let [high, low] = client.to_be_bytes();
        world.send(2, &frame(BROADCAST, [2, 0x66, 0, 0, high, low], b"here"));
    }
    world.run(30);
    let (version, crc) = world.nodes[2].table(0);
    assert_eq!(world.nodes[0].table_of(radio(2), 0), (version, crc));
    let known = world.nodes[0].global_clients().iter().filter(|(_, node)| *node == radio(2)).count();
    // With its host and the groups of all nodes.
    assert_eq!(known, 400 + 3);
    assert!(world.counter(0, "tt_requests_sent") >= 1 && world.counter(2, "fragments_sent") >= 4);
}

#[test]
fn a_client_that_goes_to_another_node_is_reached_there_at_once() {
    let mut world = World::chain(4, 0.0, 3);
    world.run(40);
    follows_a_client(world);
}

#[test]
fn a_client_that_sends_nothing_is_gone_after_ten_minutes() {
    let mut world = World::chain(2, 0.0, 4);
    world.run(20);
    world.send(1, &frame(BROADCAST, CLIENT, b"here"));
    world.run(590);
    assert_eq!(announcers(&world, 0, 0), [radio(1)]);
    world.run(20);
    assert!(announcers(&world, 0, 0).is_empty());
    assert!(world.agrees());
}

#[test]
fn long_frames_cross_in_fragments() {
    let mut world = World::chain(3, 0.0, 5);
    world.run(30);
    let long = frame(host(2), host(0), &[7; 1500]);
    world.send(0, &long);
    world.run(1);
    assert!(world.delivered.iter().any(|(_, node, bytes)| *node == 2 && *bytes == long));
    assert_eq!(world.counter(0, "fragments_sent"), 2);
}

#[test]
fn a_vlan_in_which_nothing_is_sent_is_gone_after_ten_minutes_and_the_host_without_a_tag_stays() {
    let mut world = World::chain(2, 0.0, 6);
    world.run(20);
    world.send(1, &tagged(BROADCAST, host(1), 7, b"here"));
    world.run(590);
    assert!(world.nodes[0].table_of(radio(1), 0x8007).1.is_some());
    world.run(20);
    assert_eq!(world.nodes[0].table_of(radio(1), 0x8007).1, None);
    let own = world.nodes[1].local_clients();
    assert!(
        own.contains(&Key { vlan: 0, address: host(1) }) && own.iter().all(|key| key.vlan == 0),
        "{own:?}"
    );
    assert!(world.agrees());
}

#[test]
fn vlans_are_as_many_as_a_message_has_room_for_checksums() {
    let mut world = World::wires(2, 7);
    world.run(20);
    for vlan in 1..4095 {
        world.send(1, &tagged(BROADCAST, CLIENT, vlan, b"here"));
    }
    world.run(5);
    // Of 1500 bytes, 24 are the message's, 8 the container's, 8 those of multicast, and 8 each VLAN's; one is that
    // without a tag.
    assert_eq!(world.counter(1, "tt_clients_refused"), 4094 - ((1500 - 40) / 8 - 1));
    assert!(world.agrees() && world.pings(0, 1));
}

#[test]
fn a_table_shrinks_with_the_mtu_to_the_clients_that_sent_last() {
    let mut world = World::wires(2, 8);
    world.run(20);
    let client = |number: u16| [2, 0x66, 0, 0, (number >> 8) as u8, number as u8];
    for number in 0..1000 {
        world.send(1, &frame(BROADCAST, client(number), b"here"));
        world.until(world.now + Duration::from_millis(1));
    }
    world.run(10);
    assert!(world.agrees());
    world.set_mtu(1, 576);
    world.run(10);
    // A packet is 16 fragments of 556 bytes, of which 36 are headers and a checksum.
    let room = (16 * (576 - 20) - 36) / 12;
    assert!(world.agrees());
    let known = world.nodes[0].global_clients();
    let of_1: Vec<Mac> =
        known.iter().filter(|(_, node)| *node == radio(1)).map(|(key, _)| key.address).collect();
    assert_eq!(of_1.len(), room);
    assert!(of_1.contains(&client(999)) && !of_1.contains(&client(0)) && of_1.contains(&host(1)));
}

#[test]
fn a_table_whose_version_wraps_is_known_to_others_all_the_while() {
    let mut world = World::wires(3, 9);
    world.run(20);
    // A version for each second in which a client comes or goes, of 256 that there are.
    for step in 0..300_u16 {
        let client = [2, 0x66, 0, 0, (step >> 8) as u8, step as u8];
        world.send(2, &frame(BROADCAST, client, b"here"));
        world.run(1);
    }
    world.run(10);
    let (version, crc) = world.nodes[2].table(0);
    assert!(crc.is_some() && version < 100, "{version}");
    assert!(world.agrees());
    let known = world.nodes[0].global_clients();
    let stations = known.iter().filter(|(key, node)| *node == radio(2) && key.address[0] & 1 == 0);
    assert_eq!(stations.count(), 301);
    // Versions one apart need no request. That behind 255 does, as with the kernel, whose numbers are compared so.
    assert!(
        (1..10).contains(&world.counter(0, "tt_requests_sent")),
        "{}",
        world.counter(0, "tt_requests_sent")
    );
}
