//! Gateways: which one a node chooses, and where messages of DHCP go.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::net::SocketAddr;

use crate::common::groups::{only, sends};
use crate::common::{World, frame, host, radio};
use hopcast_core::{Buffer, Duration, Rate};
use hopcast_mesh::wire::ogm::Ogm;
use hopcast_mesh::wire::{ETHER_TYPE, Header as _, MAX_TQ, TTL, tvlv};
use hopcast_mesh::{GatewayMode, MeshConfig};
use hopcast_wire::ethernet::{self, BROADCAST, Header, Mac};
use hopcast_wire::{ip, udp};

/// Types of packets on the air.
const FLOODED: u8 = 0x01;
const UNICAST: u8 = 0x40;
const WITH_SOURCE: u8 = 0x42;

/// A message of DHCP from the host of a node to all: to servers, or to the client of this address.
fn dhcp(node: usize, client: Option<Mac>) -> Vec<u8> {
    let [from, to]: [SocketAddr; 2] = match client {
        None => ["0.0.0.0:68", "255.255.255.255:67"],
        Some(_) => ["10.0.0.1:67", "255.255.255.255:68"],
    }
    .map(|address| address.parse().unwrap());
    let mut payload = [0; 240];
    payload[1..3].copy_from_slice(&[1, 6]);
    payload[28..34].copy_from_slice(&client.unwrap_or(host(node)));
    let mut frame = Buffer::copy_from(&payload);
    udp::prepend(&mut frame, from, to);
    ip::prepend(&mut frame, from.ip(), to.ip(), ip::UDP, 64, 0);
    let header = Header { destination: BROADCAST, source: host(node), ether_type: ethernet::IPV4 };
    ethernet::prepend(&mut frame, header);
    frame.to_vec()
}

/// The gateway that a node has chosen.
fn chosen(world: &World, node: usize) -> Option<Mac> {
    let gateways = world.nodes[node].gateways();
    let mut selected = gateways.into_iter().filter(|gateway| gateway.selected);
    let found = selected.next().map(|gateway| gateway.node);
    assert_eq!(selected.next(), None);
    found
}

/// Gateways at both ends of a row of five, and a client at node 1.
const ENDS: fn(usize, &mut MeshConfig) = |node, config| {
    config.gateway.mode = match node {
        0 | 4 => GatewayMode::Server { down: Rate::from_mbit(10), up: Rate::from_mbit(2) },
        1 => GatewayMode::Client,
        _ => GatewayMode::Off,
    };
};

#[test]
fn a_client_asks_its_gateway_alone_and_a_gateway_answers_the_client_alone() {
    let mut world = World::wires(5, 1).configured(ENDS);
    let request = dhcp(1, None);
    world.run(1);
    assert_eq!(sends(&mut world, 1, &request), (vec![], BTreeMap::new()));
    assert_eq!(world.counter(1, "gateway_requests_dropped"), 1);
    world.run(40);
    let gateways = world.nodes[1].gateways();
    assert_eq!(gateways.iter().map(|gateway| gateway.node).collect::<Vec<_>>(), [radio(0), radio(4)]);
    assert_eq!((gateways[0].down, gateways[0].up), (Rate::from_mbit(10), Rate::from_mbit(2)));
    assert!(gateways[0].metric > gateways[1].metric);
    assert_eq!(chosen(&world, 1), Some(radio(0)));
    assert_eq!(sends(&mut world, 1, &request), (vec![0], only(WITH_SOURCE, 1)));
    let answer = dhcp(0, Some(host(1)));
    assert_eq!(sends(&mut world, 0, &answer), (vec![1], only(UNICAST, 1)));
    assert_eq!(world.counter(0, "gateway_answers_sent"), 1);
    // Of a client that nobody knows, and what else is for all.
    assert_eq!(sends(&mut world, 0, &dhcp(0, Some([6, 7, 8, 9, 0, 1]))), (vec![], BTreeMap::new()));
    let other = frame(BROADCAST, host(1), b"to all");
    assert_eq!(sends(&mut world, 1, &other).0, [0, 2, 3, 4]);
    // A gateway's own clients ask it, and those of a node without the mode ask all.
    assert_eq!(sends(&mut world, 4, &dhcp(4, None)), (vec![], BTreeMap::new()));
    assert_eq!(sends(&mut world, 3, &dhcp(3, None)), (vec![0, 1, 2, 4], only(FLOODED, 3)));
    assert_eq!((chosen(&world, 4), chosen(&world, 3)), (None, None));
}

#[test]
fn another_gateway_is_chosen_when_the_path_to_one_is_worse_by_the_class_or_lost() {
    let mut world = World::wires(5, 2).configured(ENDS);
    world.run(40);
    assert_eq!(chosen(&world, 1), Some(radio(0)));
    // The path to the other is by 60 of 255 worse; this one loses two thirds.
    world.link(0, 1, 0.65);
    world.run(80);
    assert_eq!(chosen(&world, 1), Some(radio(4)));
    assert_eq!(sends(&mut world, 1, &dhcp(1, None)), (vec![4], only(WITH_SOURCE, 3)));
    world.cut(3, 4);
    world.run(230);
    assert_eq!(chosen(&world, 1), Some(radio(0)));
    world.cut(0, 1);
    world.run(430);
    assert_eq!((chosen(&world, 1), world.nodes[1].gateways()), (None, vec![]));
}

#[test]
fn with_b_a_t_m_a_n_v_the_gateway_of_most_throughput_is_chosen() {
    let kinds = [(false, Some(Rate::from_mbit(100)))];
    let mut world = World::batman_v(5, &kinds, 3).in_row(0.0).configured(|node, config| {
        ENDS(node, config);
        if node == 4 {
            config.gateway.mode = GatewayMode::Server { down: Rate::from_mbit(30), up: Rate::from_mbit(1) };
        }
    });
    world.run(40);
    assert_eq!(chosen(&world, 1), Some(radio(4)));
    assert_eq!(sends(&mut world, 1, &dhcp(1, None)), (vec![4], only(WITH_SOURCE, 3)));
}

#[test]
fn stations_that_take_themselves_for_gateways_are_forgotten_with_their_messages() {
    let mut world = World::wires(2, 4).configured(|_, config| config.gateway.mode = GatewayMode::Client);
    world.run(5);
    let mut containers = Vec::new();
    tvlv::put(&mut containers, tvlv::GATEWAY, 1, &[0xff; 8]);
    for forged in 0..100 {
        let originator = [2, 0x77, 0, 0, 0, forged];
        let mut packet = Buffer::copy_from(&containers);
        let tvlv_len = containers.len() as u16;
        Ogm { ttl: TTL, flags: 0, seqno: 1, originator, previous_sender: originator, tq: MAX_TQ, tvlv_len }
            .prepend(&mut packet);
        let header = Header { destination: BROADCAST, source: originator, ether_type: ETHER_TYPE };
        ethernet::prepend(&mut packet, header);
        world.forge(0, &packet);
    }
    assert_eq!(world.nodes[0].gateways().len(), 100);
    world.run(1);
    // No message of this node's came back from them: there is no way.
    assert_eq!(chosen(&world, 0), None);
    world.until(world.now + Duration::from_secs(420));
    assert_eq!(world.nodes[0].gateways(), []);
}
