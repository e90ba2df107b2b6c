//! Frames to groups: who gets them, and how often they are on the air.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};

use crate::common::groups::{data, join, leave, only, sends};
use crate::common::{World, radio};
use hopcast_core::{Buffer, Duration, Item, Machine, Membership, Port};
use hopcast_mesh::wire::data::Multicast;
use hopcast_mesh::wire::tvlv::{self, Tracker};
use hopcast_mesh::wire::{ETHER_TYPE, Header as _, TTL};
use hopcast_mesh::{Above, MulticastMode, multicast};
use hopcast_wire::ethernet::{self, Header, Mac};

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
/// Types of packets on the air.
const BROADCAST: u8 = 0x01;
const MULTICAST: u8 = 0x05;
const UNICAST: u8 = 0x40;

/// A tree: 0 in the middle, 1 to 3 around it, and two nodes behind each of these.
fn tree(seed: u64) -> World {
    let mut world = World::unlinked(10, seed);
    for node in 1..4 {
        world.link(0, node, 0.0);
        world.link(node, 2 * node + 2, 0.0);
        world.link(node, 2 * node + 3, 0.0);
    }
    world
}

#[test]
fn a_group_reaches_its_members_alone_and_each_link_carries_the_frame_once() {
    let mut world = tree(1);
    world.run(40);
    let small = data(0, GROUP, 1000);
    assert_eq!(sends(&mut world, 0, &small), (vec![], BTreeMap::new()));
    assert_eq!(world.counter(0, "multicast_without_receiver"), 1);
    join(&mut world, 4, GROUP);
    world.run(5);
    assert_eq!(sends(&mut world, 0, &small), (vec![4], only(MULTICAST, 2)));
    // Behind two of the three, and one of the three itself.
    for node in [5, 6, 2] {
        join(&mut world, node, GROUP);
    }
    world.run(5);
    assert_eq!(sends(&mut world, 0, &small), (vec![2, 4, 5, 6], only(MULTICAST, 5)));
    // From an edge of the tree, which is a member too.
    let from_edge = data(4, GROUP, 1000);
    assert_eq!(sends(&mut world, 4, &from_edge), (vec![2, 5, 6], only(MULTICAST, 5)));
    for node in [4, 5, 6, 2] {
        leave(&mut world, node, GROUP);
    }
    world.run(5);
    assert_eq!(sends(&mut world, 0, &small), (vec![], BTreeMap::new()));
}

#[test]
fn all_nodes_of_a_chain_are_reached_by_one_packet_a_hop() {
    let mut world = World::wires(6, 2);
    (1..6).for_each(|node| join(&mut world, node, GROUP));
    world.run(60);
    assert_eq!(sends(&mut world, 0, &data(0, GROUP, 1000)), ((1..6).collect(), only(MULTICAST, 5)));
    assert_eq!(world.counter(3, "multicast_packets_delivered"), 1);
    assert_eq!(world.counter(3, "multicast_packets_forwarded"), 1);
}

#[test]
fn a_frame_that_is_too_long_for_a_packet_is_copied_and_then_flooded() {
    let mut world = tree(3).configured(|node, config| {
        if node == 0 {
            config.multicast.fanout = 3;
        }
    });
    world.run(40);
    [4, 5, 6].into_iter().for_each(|node| join(&mut world, node, GROUP));
    world.run(5);
    // Three destinations take 30 bytes of headers, of 1280.
    assert_eq!(sends(&mut world, 0, &data(0, GROUP, 1250)), (vec![4, 5, 6], only(MULTICAST, 5)));
    assert_eq!(sends(&mut world, 0, &data(0, GROUP, 1251)), (vec![4, 5, 6], only(UNICAST, 6)));
    join(&mut world, 7, GROUP);
    world.run(5);
    let (nodes, on_air) = sends(&mut world, 0, &data(0, GROUP, 1251));
    // A tree of radios: every node but those at the edges sends it on.
    assert_eq!((nodes, on_air), ((1..10).collect(), only(BROADCAST, 4)));
    assert_eq!(world.counter(0, "multicast_copies_sent"), 3);
}

#[test]
fn one_node_that_does_not_forward_packets_has_all_others_send_copies() {
    let mut world = tree(4);
    world.run(20);
    [4, 5, 6].into_iter().for_each(|node| join(&mut world, node, GROUP));
    world.nodes[9].handle(world.now, Port::Below(0), Item::Mtu(1279));
    world.run(20);
    assert_eq!(multicast::flags_text(world.nodes[9].multicast().flags), "[.... . P]");
    assert_eq!(sends(&mut world, 0, &data(0, GROUP, 500)), (vec![4, 5, 6], only(UNICAST, 6)));
    world.nodes[9].handle(world.now, Port::Below(0), Item::Mtu(1280));
    world.run(5);
    assert_eq!(sends(&mut world, 0, &data(0, GROUP, 500)), (vec![4, 5, 6], only(MULTICAST, 5)));
}

#[test]
fn frames_that_hosts_need_not_ask_for_are_flooded_only_where_a_bridge_is() {
    let local = Ipv4Addr::new(224, 0, 0, 251);
    let mut world = World::wires(4, 5);
    join(&mut world, 3, local);
    world.run(40);
    assert_eq!(sends(&mut world, 0, &data(0, local, 300)), (vec![3], only(MULTICAST, 3)));
    let mut bridged = World::wires(4, 5).configured(|node, config| {
        if node == 1 {
            config.multicast.above = Above::Bridge;
        }
    });
    bridged.run(40);
    assert_eq!(sends(&mut bridged, 0, &data(0, local, 300)), (vec![1, 2, 3], only(BROADCAST, 3)));
}

#[test]
fn every_mode_reaches_the_members_and_forced_flooding_reaches_all() {
    fn mode(world: World, mode: fn(usize, &mut hopcast_mesh::MeshConfig)) -> World {
        let mut world = world.configured(mode);
        world.run(40);
        [2, 4].into_iter().for_each(|node| join(&mut world, node, GROUP));
        world.run(5);
        world
    }
    let frame = data(0, GROUP, 1000);
    let mut unicast = mode(World::wires(5, 6), |_, config| config.multicast.mode = MulticastMode::Unicast);
    assert_eq!(sends(&mut unicast, 0, &frame), (vec![2, 4], only(UNICAST, 6)));
    let mut broadcast =
        mode(World::wires(5, 6), |_, config| config.multicast.mode = MulticastMode::Broadcast);
    assert_eq!(sends(&mut broadcast, 0, &frame), (vec![1, 2, 3, 4], only(BROADCAST, 4)));
    assert_eq!(sends(&mut broadcast, 0, &data(0, Ipv4Addr::new(239, 9, 9, 9), 500)).0, []);
    let mut forced = mode(World::wires(5, 6), |_, config| config.multicast.force_flood = true);
    assert_eq!(sends(&mut forced, 0, &data(0, Ipv4Addr::new(239, 9, 9, 9), 500)).0, [1, 2, 3, 4]);
}

#[test]
fn a_bridge_without_a_querier_gets_everything_as_copies_and_one_that_knows_gets_its_groups() {
    // The seed's error of configuration: every node's bridge lacks a querier, so that each wants all groups.
    let mut world = World::wires(5, 7).configured(|_, config| {
        config.multicast.above = Above::Bridge;
        config.multicast.mode = MulticastMode::Unicast;
    });
    world.run(40);
    let frame = data(0, GROUP, 1268);
    assert_eq!(sends(&mut world, 0, &frame), (vec![1, 2, 3, 4], only(UNICAST, 1 + 2 + 3 + 4)));
    let say = |world: &mut World, node: usize, group: IpAddr, joined| {
        let membership = Membership { group, source: None, interface: None, joined };
        let now = world.now;
        world.nodes[node].handle(now, Port::Above(0), Item::Membership(membership));
    };
    for node in 0..5 {
        say(&mut world, node, Ipv4Addr::UNSPECIFIED.into(), false);
    }
    say(&mut world, 1, GROUP.into(), true);
    world.run(5);
    assert_eq!(multicast::flags_text(world.nodes[1].multicast().flags), "[U.6. R6.]");
    assert_eq!(sends(&mut world, 0, &frame), (vec![1], only(UNICAST, 1)));
}

/// A multicast packet on the air, from a station to a node.
fn packet(from: Mac, to: usize, ttl: u8, destinations: &[Mac], frame: &[u8]) -> Vec<u8> {
    let (mut containers, mut value) = (Vec::new(), Vec::new());
    Tracker::put(&mut value, destinations);
    tvlv::put(&mut containers, tvlv::MULTICAST_TRACKER, 1, &value);
    let mut packet = Buffer::copy_from(frame);
    packet.prepend(containers.len()).copy_from_slice(&containers);
    Multicast { ttl, tvlv_len: containers.len() as u16 }.prepend(&mut packet);
    ethernet::prepend(&mut packet, Header { destination: radio(to), source: from, ether_type: ETHER_TYPE });
    packet.to_vec()
}

#[test]
fn forged_packets_are_bounded_and_end() {
    let mut world = World::wires(4, 8);
    world.run(40);
    let frame = data(0, GROUP, 60);
    let liar = [2, 0x66, 6, 6, 6, 6];
    // Ten thousand times the same, and as many that nobody knows: one copy goes to the next hop.
    let mut destinations = vec![radio(2); 5000];
    destinations.extend((0..5000_u16).map(|number| [2, 0x77, 0, 0, (number >> 8) as u8, number as u8]));
    world.captured.clear();
    world.max_captured = 1000;
    world.forge(1, &packet(liar, 1, TTL, &destinations, &frame));
    world.run(1);
    let on_air: Vec<&Vec<u8>> = world.captured.iter().filter(|frame| frame[14] == MULTICAST).collect();
    assert_eq!(on_air.len(), 1);
    assert_eq!(on_air[0][14..], packet(liar, 2, TTL - 1, &[radio(2)], &frame)[14..]);
    assert_eq!(world.counter(1, "no_route"), 5000);
    assert_eq!(world.counter(2, "multicast_packets_delivered"), 1);
    // Of another's address, as one of its own: to itself, and without hops left.
    let delivered = world.delivered.len();
    world.forge(1, &packet(radio(0), 1, TTL, &[radio(1), radio(1)], &frame));
    world.forge(1, &packet(radio(1), 1, TTL, &[radio(1)], &frame));
    world.forge(1, &packet(liar, 1, 1, &[radio(1), radio(2)], &frame));
    assert_eq!(world.delivered.len(), delivered + 1);
    assert_eq!((world.counter(1, "from_own"), world.counter(1, "ttl_exceeded")), (1, 1));
    // Cut off at every length.
    let whole = packet(liar, 1, TTL, &[radio(1), radio(2)], &frame);
    let shortest = whole.len() - frame.len() + ethernet::HEADER;
    let malformed = world.counter(1, "malformed");
    (14..shortest).for_each(|len| world.forge(1, &whole[..len]));
    assert_eq!(world.counter(1, "malformed"), malformed + (shortest - 14) as u64);
}

#[test]
fn a_packet_in_a_loop_of_routes_ends_with_its_hops() {
    // A destination that each of two nodes takes to be behind the other: nodes 1 and 2, after the link to 3 is cut.
    let mut world = World::wires(4, 9);
    world.run(40);
    join(&mut world, 3, GROUP);
    world.run(5);
    world.cut(2, 3);
    world.link(1, 3, 0.0);
    world.until(world.now + Duration::from_millis(1500));
    world.cut(1, 3);
    world.captured.clear();
    world.max_captured = 1000;
    world.send(0, &data(0, GROUP, 100));
    world.run(1);
    let on_air = world.captured.iter().filter(|frame| frame[14] == MULTICAST).count();
    assert!(on_air <= usize::from(TTL), "{on_air}");
}

#[test]
fn a_host_that_joins_too_many_groups_gets_all() {
    let mut world = World::wires(3, 10).configured(|_, config| config.multicast.max_groups = 4);
    for group in 0..6 {
        join(&mut world, 2, Ipv4Addr::new(239, 7, 7, group));
    }
    world.run(40);
    assert_eq!(multicast::flags_text(world.nodes[2].multicast().flags), "[.4.R4. .]");
    let status = world.nodes[0].multicast();
    assert_eq!(status.others.len(), 2);
    assert!(status.others.contains(&(radio(2), Some(world.nodes[2].multicast().flags))));
    assert_eq!(sends(&mut world, 0, &data(0, Ipv4Addr::new(239, 7, 7, 5), 100)).0, [2]);
}

#[test]
fn the_same_seed_gives_the_same_frames() {
    let run = || {
        let mut world = World::grid(3, 0.1, 11);
        world.max_captured = 100_000;
        [2, 6, 8].into_iter().for_each(|node| join(&mut world, node, GROUP));
        world.run(40);
        for _ in 0..20 {
            world.send(0, &data(0, GROUP, 400));
            world.run(1);
        }
        assert!(world.counter(0, "multicast_as_packet") > 10);
        (std::mem::take(&mut world.captured), std::mem::take(&mut world.delivered))
    };
    assert_eq!(run(), run());
}
