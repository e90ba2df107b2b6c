//! Two nodes that are bridged to one LAN: a frame is carried once, by the node that has claimed its client.

#![allow(clippy::unwrap_used)]

use std::net::Ipv4Addr;

use crate::common::{World, frame, host, radio, tagged};
use hopcast_core::Buffer;
use hopcast_mesh::wire::translation::TAGGED;
use hopcast_mesh::{ClaimStatus, MeshConfig};
use hopcast_wire::arp::{self, Operation, Packet, Station};
use hopcast_wire::ethernet::{self, BROADCAST, Header, Mac};

/// The nodes on the LAN. Node 0 is next to the first of them, and two hops from the second.
const GATEWAYS: [usize; 2] = [1, 2];
/// A host on the LAN.
const ON_LAN: Mac = [6, 1, 0, 0, 0, 1];

/// Four nodes in a row, whose ends are on one LAN.
fn world(seed: u64) -> World {
    let is_on_lan = |node, config: &mut MeshConfig| config.bridge_loop_avoidance = GATEWAYS.contains(&node);
    linked(World::unlinked(4, seed).configured(is_on_lan))
}

fn linked(mut world: World) -> World {
    [(1, 0), (0, 3), (3, 2)].into_iter().for_each(|(a, b)| world.link(a, b, 0.0));
    world.lan.nodes = GATEWAYS.into();
    world
}

/// The same after both have found each other, and waited for three periods.
fn settled(seed: u64) -> World {
    let mut world = world(seed);
    world.run(15);
    world.send_on_lan(&frame(BROADCAST, ON_LAN, b"first"));
    world.send(0, &frame(BROADCAST, host(0), b"first"));
    world.run(44);
    world.send(0, &frame(BROADCAST, host(0), b"second"));
    world.send_on_lan(&frame(BROADCAST, ON_LAN, b"second"));
    world.run(1);
    world.lan.heard.clear();
    world.delivered.clear();
    world
}

/// Number of times that a frame was given to the hosts of the LAN.
fn on_lan(world: &World, frame: &[u8]) -> usize {
    world.lan.heard.iter().filter(|(_, heard)| heard == frame).count()
}

/// The same of a node's host.
fn at(world: &World, node: usize, frame: &[u8]) -> usize {
    world.delivered.iter().filter(|(_, to, heard)| (*to, &heard[..]) == (node, frame)).count()
}

fn sum(world: &World, counter: &str) -> u64 {
    GATEWAYS.iter().map(|&node| world.counter(node, counter)).sum()
}

/// The node that has claimed a client, as both nodes on the LAN have it.
fn claimant(world: &World, client: Mac) -> Option<Mac> {
    let by = GATEWAYS.map(|node| {
        let claims = world.nodes[node].claims();
        claims.into_iter().find(|claim| claim.client.address == client).map(|claim| claim.node)
    });
    assert_eq!(by[0], by[1]);
    by[0]
}

/// A claim frame of this type.
fn claim_frame(kind: u8, group: [u8; 2], destination: Mac, source: Mac, sender: Mac) -> Vec<u8> {
    let station = |mac| Station { mac, address: Ipv4Addr::UNSPECIFIED };
    let target = station([0xff, 0x43, 5, kind, group[0], group[1]]);
    let mut frame = Buffer::copy_from(&[]);
    arp::prepend(&mut frame, &Packet { operation: Operation::Reply, sender: station(sender), target });
    ethernet::prepend(&mut frame, Header { destination, source, ether_type: arp::ETHER_TYPE });
    frame.to_vec()
}

/// The group of the nodes on the LAN, from one of their frames.
fn group(world: &World) -> [u8; 2] {
    let is_claim = |node: usize, frame: &[u8]| {
        GATEWAYS.contains(&node) && frame.len() == 42 && frame[32..35] == [0xff, 0x43, 5]
    };
    let claims = world.delivered.iter().filter(|(_, node, frame)| is_claim(*node, frame));
    let (.., frame) = claims.max_by_key(|(at, _, frame)| (*at, frame[36], frame[37])).unwrap();
    [frame[36], frame[37]]
}

#[test]
fn a_broadcast_of_the_mesh_comes_to_the_lan_once_and_does_not_come_back() {
    let sent = frame(BROADCAST, host(0), b"to all");
    let mut world = settled(1);
    world.send(0, &sent);
    world.run(1);
    assert_eq!((on_lan(&world, &sent), at(&world, 0, &sent)), (1, 0));
    assert!(claimant(&world, host(0)).is_some());
    // Without it the LAN has it by both, and brings it back into the mesh.
    let mut without = linked(World::unlinked(4, 1));
    without.run(60);
    without.send(0, &sent);
    without.run(1);
    assert_eq!((on_lan(&without, &sent), at(&without, 0, &sent)), (2, 1));
    assert_eq!(sum(&without, "claim_frames_sent"), 0);
}

#[test]
fn a_broadcast_of_the_lan_comes_to_each_node_once() {
    let mut world = settled(2);
    let sent = frame(BROADCAST, ON_LAN, b"to all");
    world.send_on_lan(&sent);
    world.run(1);
    assert_eq!((at(&world, 0, &sent), on_lan(&world, &sent)), (1, 0));
    // Both flood it: node 0 drops the second copy, and the nodes on the LAN each other's.
    assert!(world.counter(0, "frames_by_two_nodes") > 0);
    assert!(sum(&world, "frames_of_own_lan") > 0);
}

#[test]
fn frames_between_a_client_and_a_host_of_the_lan_go_by_the_node_that_claims_it() {
    let mut world = settled(3);
    let before: Vec<u64> = GATEWAYS.iter().map(|&node| world.counter(node, "unicast_sent")).collect();
    let there = frame(ON_LAN, host(0), b"there");
    let back = frame(host(0), ON_LAN, b"back");
    for round in 1..=3 {
        world.send(0, &there);
        world.run(1);
        world.send_on_lan(&back);
        world.run(1);
        assert_eq!((on_lan(&world, &there), at(&world, 0, &back)), (round, round));
    }
    let after: Vec<u64> = GATEWAYS.iter().map(|&node| world.counter(node, "unicast_sent")).collect();
    let sent: Vec<u64> = before.iter().zip(&after).map(|(before, after)| after - before).collect();
    let claimant = claimant(&world, host(0)).unwrap();
    let expected = GATEWAYS.map(|node| if radio(node) == claimant { 3 } else { 0 });
    assert_eq!(sent, expected);
}

#[test]
fn another_node_takes_over_when_the_one_that_has_claimed_is_gone() {
    let mut world = settled(4);
    let claimant = GATEWAYS.into_iter().find(|&node| Some(radio(node)) == claimant(&world, host(0))).unwrap();
    let other = 3 - claimant;
    [0, 3].into_iter().for_each(|node| world.cut(claimant, node));
    world.lan.nodes.remove(&claimant);
    let sent = frame(BROADCAST, host(0), b"who has it now");
    world.send(0, &sent);
    world.run(1);
    assert_eq!(on_lan(&world, &sent), 0, "the claim is still that of the one that has gone");
    // It is forgotten after 60 s, when the next period ends.
    world.run(75);
    assert_eq!(world.counter(other, "backbones"), 0);
    world.send(0, &sent);
    world.run(1);
    assert_eq!(on_lan(&world, &sent), 1);
    let claims = world.nodes[other].claims();
    assert!(claims.iter().any(|claim| (claim.client.address, claim.node) == (host(0), radio(other))));
}

#[test]
fn a_node_that_has_restarted_asks_for_the_claims_of_others() {
    let mut world = settled(5);
    // With more clients the XOR of the checksums would be 0, as without claims.
    for number in 0..37 {
        world.send(0, &frame(BROADCAST, [6, 2, 0, 0, 0, number], b"a client"));
    }
    world.run(1);
    assert!((0..37).all(|number| claimant(&world, [6, 2, 0, 0, 0, number]).is_some()));
    let all = |world: &World, node: usize| world.nodes[node].claims();
    assert_eq!(all(&world, 1), all(&world, 2));
    // The one without claims, so that the other has them all.
    let claims_none = GATEWAYS
        .into_iter()
        .find(|&node| all(&world, node).iter().filter(|claim| claim.node == radio(node)).count() <= 20);
    let restarted = claims_none.unwrap();
    world.restart(restarted);
    world.run(25);
    let own = |claim: &&ClaimStatus| claim.node == radio(3 - restarted);
    let (here, there) = (all(&world, restarted), all(&world, 3 - restarted));
    let (here, there): (Vec<_>, Vec<_>) =
        (here.iter().filter(own).collect(), there.iter().filter(own).collect());
    assert!(there.len() >= 20, "{}", there.len());
    assert_eq!(here, there);
    let checksums = world.nodes[restarted].backbones();
    assert_eq!(checksums[0].checksum, there[0].checksum);
}

#[test]
fn a_node_that_has_just_come_carries_no_broadcasts_for_three_periods() {
    let mut world = world(6);
    world.run(15);
    let sent = |world: &mut World, text: &[u8]| {
        let sent = frame(BROADCAST, ON_LAN, text);
        world.send_on_lan(&sent);
        world.run(1);
        at(world, 0, &sent)
    };
    assert_eq!(sent(&mut world, b"first"), 0);
    world.run(12);
    assert_eq!(sent(&mut world, b"second"), 0);
    world.run(2);
    assert_eq!(sent(&mut world, b"third"), 1);
    assert_eq!(sum(&world, "frames_before_claims"), 4);
    // In a VLAN the first is what has the nodes announce themselves, and is carried.
    let in_vlan = |world: &mut World, text: &[u8]| {
        let sent = tagged(BROADCAST, ON_LAN, 7, text);
        world.send_on_lan(&sent);
        world.run(1);
        at(world, 0, &sent)
    };
    assert_eq!([in_vlan(&mut world, b"first"), in_vlan(&mut world, b"second")], [1, 0]);
    world.run(30);
    assert_eq!(in_vlan(&mut world, b"third"), 1);
    // One for a station is carried all the time.
    let mut world = self::world(6);
    world.run(15);
    let to_one = frame(host(0), ON_LAN, b"to one");
    world.send_on_lan(&to_one);
    world.run(1);
    assert!(at(&world, 0, &to_one) > 0);
}

#[test]
fn a_client_that_has_come_to_the_lan_is_no_longer_claimed() {
    let mut world = settled(7);
    let moving = [6, 3, 0, 0, 0, 1];
    world.send(0, &frame(BROADCAST, moving, b"in the mesh"));
    world.until(world.now + hopcast_core::Duration::from_millis(50));
    let claimed = claimant(&world, moving);
    assert!(claimed.is_some());
    // Within 100 ms it is a copy of what came by the mesh.
    let copy = frame(BROADCAST, moving, b"a copy");
    world.send_on_lan(&copy);
    world.until(world.now + hopcast_core::Duration::from_millis(20));
    assert_eq!((claimant(&world, moving), at(&world, 0, &copy)), (claimed, 0));
    assert_eq!(sum(&world, "frames_racing_claims"), 1);
    world.run(1);
    let sent = frame(BROADCAST, moving, b"on the LAN");
    world.send_on_lan(&sent);
    world.run(1);
    assert_eq!((claimant(&world, moving), at(&world, 0, &sent)), (None, 1));
}

#[test]
fn claims_of_clients_that_are_silent_end() {
    let mut world = settled(8);
    assert!(claimant(&world, host(0)).is_some());
    world.run(60);
    assert!(claimant(&world, host(0)).is_some());
    world.run(60);
    assert_eq!(claimant(&world, host(0)), None);
}

#[test]
fn each_vlan_has_its_own_claims() {
    let mut world = settled(9);
    let sent = |world: &mut World, payload: &[u8]| {
        let sent = tagged(BROADCAST, host(0), 7, payload);
        world.send(0, &sent);
        world.run(1);
        on_lan(world, &sent)
    };
    assert_eq!(sent(&mut world, b"first"), 1);
    let claims = world.nodes[1].claims();
    let vlans: Vec<u16> = claims
        .iter()
        .filter(|claim| claim.client.address == host(0))
        .map(|claim| claim.client.vlan)
        .collect();
    assert_eq!(vlans, [0, 7 | TAGGED]);
    assert_eq!(sent(&mut world, b"second"), 1);
    world.run(12);
    let nodes: Vec<(Mac, u16)> =
        world.nodes[1].backbones().iter().map(|other| (other.node, other.vlan)).collect();
    assert_eq!(nodes, [(radio(2), 0), (radio(2), 7 | TAGGED)]);
}

#[test]
fn clients_on_the_lan_are_in_the_tables_of_others_and_not_in_each_others() {
    let mut world = settled(10);
    world.run(3);
    let of = |node: usize, by: usize| {
        let clients = world.nodes[node].global_clients();
        clients.into_iter().filter(|(key, at)| (key.address, *at) == (ON_LAN, radio(by))).count()
    };
    assert_eq!([of(0, 1), of(0, 2), of(1, 2), of(2, 1)], [1, 1, 0, 0]);
    // Nor do they ask each other for tables that they ignore.
    let asked = |world: &World| GATEWAYS.map(|node| world.counter(node, "tt_requests_sent"));
    let before = asked(&world);
    world.run(30);
    assert_eq!(asked(&world), before);
}

#[test]
fn a_loop_that_claims_do_not_open_is_found() {
    // Node 2 takes no part, and carries what node 1 sends to the LAN.
    let configured =
        World::unlinked(4, 11).configured(|node, config| config.bridge_loop_avoidance = node == 1);
    let mut world = linked(configured);
    world.run(15);
    world.send_on_lan(&frame(BROADCAST, ON_LAN, b"first"));
    world.run(44);
    assert_eq!(world.counter(1, "bridge_loops_found"), 0);
    world.run(2);
    assert_eq!(world.counter(1, "bridge_loops_found"), 1);
    let mut both = settled(11);
    both.run(130);
    assert_eq!(sum(&both, "bridge_loops_found"), 0);
}

#[test]
fn forged_claims_are_bounded_and_those_of_another_group_are_not_taken() {
    let mut world = settled(12);
    world.run(10);
    let group = group(&world);
    let stranger = |number: u16| [2, 9, 0, 0, (number >> 8) as u8, number as u8];
    let client = |number: u16| [6, 9, 0, 0, (number >> 8) as u8, number as u8];
    let foreign = [group[0] ^ 0xff, group[1]];
    let before = world.counter(1, "claim_frames_foreign");
    for number in 0..5000 {
        world.send_on_lan(&claim_frame(0, foreign, BROADCAST, client(number), stranger(0)));
    }
    world.run(1);
    let known = sum(&world, "claims");
    assert_eq!(world.counter(1, "claim_frames_foreign") - before, 5000);
    assert!(known < 20, "{known}");
    for number in 0..6000 {
        world.send_on_lan(&claim_frame(0, group, BROADCAST, client(number), stranger(number % 10)));
    }
    world.run(1);
    for node in GATEWAYS {
        let (claims, refused) = (world.counter(node, "claims"), world.counter(node, "claims_refused"));
        assert!((4096..=4096 + 20).contains(&claims), "{claims}");
        assert!(refused > 1000, "{refused}");
    }
    for number in 0..500 {
        world.send_on_lan(&claim_frame(0, group, BROADCAST, client(number), stranger(number)));
    }
    world.run(1);
    for node in GATEWAYS {
        let (backbones, refused) =
            (world.counter(node, "backbones"), world.counter(node, "backbones_refused"));
        assert_eq!((backbones, refused), (256, 500 - 255));
    }
    // Clients of the mesh are still carried, once.
    let sent = frame(BROADCAST, host(0), b"still there");
    world.send(0, &sent);
    world.run(1);
    assert_eq!(on_lan(&world, &sent), 1);
    // All of it ends with the nodes that nobody hears again.
    world.run(75);
    assert_eq!(GATEWAYS.map(|node| world.counter(node, "backbones")), [1, 1]);
    assert!(sum(&world, "claims") < 20);
}

#[test]
fn requests_have_a_bounded_number_of_answers() {
    let mut world = settled(13);
    world.run(10);
    let (group, stranger) = (group(&world), [2, 9, 0, 0, 0, 1]);
    let before = world.counter(1, "claim_frames_sent");
    for _ in 0..1000 {
        world.send_on_lan(&claim_frame(3, group, radio(1), stranger, radio(1)));
    }
    world.run(1);
    let sent = world.counter(1, "claim_frames_sent") - before;
    assert!((1..=16 * 10).contains(&sent), "{sent}");
    assert!(world.counter(1, "claim_requests_unanswered") > 900);
}

#[test]
fn a_request_of_the_lan_has_one_answer() {
    // Which nodes keep an entry depends on its address: on the LAN both, one, or none.
    for number in 1..=8 {
        let mut world = settled(14);
        let owner = Station { mac: host(0), address: Ipv4Addr::new(10, 0, 1, number) };
        let other = Station { mac: host(3), address: Ipv4Addr::new(10, 0, 0, 4) };
        world.send(0, &arp_frame(Operation::Reply, owner, other, host(3)));
        world.run(1);
        let asking = Station { mac: ON_LAN, address: Ipv4Addr::new(10, 0, 0, 77) };
        world.send_on_lan(&arp_frame(
            Operation::Request,
            asking,
            Station { mac: [0; 6], ..owner },
            BROADCAST,
        ));
        world.run(1);
        let packets = world.lan.heard.iter().filter_map(|(_, frame)| arp::parse(&frame[14..]).ok());
        let answers = packets.filter(|packet| (packet.operation, packet.sender) == (Operation::Reply, owner));
        assert_eq!(answers.count(), 1, "{}", owner.address);
    }
}

fn arp_frame(operation: Operation, sender: Station, target: Station, destination: Mac) -> Vec<u8> {
    let mut frame = Buffer::copy_from(&[]);
    arp::prepend(&mut frame, &Packet { operation, sender, target });
    ethernet::prepend(&mut frame, Header { destination, source: sender.mac, ether_type: arp::ETHER_TYPE });
    frame.to_vec()
}

#[test]
fn loop_probes_are_in_no_table() {
    // A node on the LAN sends what probes it hears there into the mesh, as clients' frames.
    let mut world = world(15);
    for _ in 0..7 {
        world.send_on_lan(&frame(BROADCAST, [0xba, 0xbe, 0, 0, 0, 1], b"a probe"));
        world.run(10);
    }
    assert!(world.delivered.iter().any(|(_, node, frame)| *node == 0 && frame[6..8] == [0xba, 0xbe]));
    for node in &world.nodes {
        assert!(node.global_clients().iter().all(|(key, _)| key.address[..2] != [0xba, 0xbe]));
    }
}
