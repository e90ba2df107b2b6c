//! Bounds that depend on the MTU of each interface, and on what others send.

use super::*;
use crate::batman_iv::BatmanIvConfig;
use crate::routing::RoutingConfig;
use crate::wire::data::{Fragment, Place};
use crate::wire::ogm::Ogm;
use crate::wire::{Header as _, MAX_TQ, TTL};
use hopcast_core::Seed;

const NOW: Instant = Instant::from_nanos(10_000_000_000);
const FIRST: Mac = [2, 0, 0, 0, 1, 0];
const SECOND: Mac = [2, 0, 0, 0, 1, 1];

/// A node between two wires, with a neighbour on each, whose MTUs are these.
fn between(fragmentation: bool, mtus: [u32; 2]) -> Mesh {
    let interface = |last| MeshInterface { mac: [2, 0, 0, 0, 0, last], wireless: false, throughput: None };
    let mut config = MeshConfig::new(vec![interface(0), interface(1)], [6; 6]);
    config.bridge_loop_avoidance = false;
    let routing = RoutingConfig::BatmanIv(BatmanIvConfig { aggregation: false, ..BatmanIvConfig::default() });
    let mut mesh =
        Mesh::new(MeshConfig { fragmentation, routing, ..config }, Seed::new(1, 0).stream(&["node"], 0));
    mesh.wake(Instant::ZERO);
    for (port, mtu) in (0..).zip(mtus) {
        mesh.handle(Instant::ZERO, Port::Below(port), Item::Mtu(mtu));
    }
    mesh.wake(NOW);
    for (interface, address) in [(0, FIRST), (1, SECOND)] {
        hear(&mut mesh, interface, address, 1, &[]);
    }
    sent(&mut mesh);
    mesh
}

/// Has the node hear a message that an originator sends itself.
fn hear(mesh: &mut Mesh, interface: usize, originator: Mac, seqno: u32, containers: &[u8]) {
    let mut packet = Buffer::copy_from(containers);
    let (previous_sender, tvlv_len) = (originator, containers.len() as u16);
    Ogm { ttl: TTL, flags: 0, seqno, originator, previous_sender, tq: MAX_TQ, tvlv_len }.prepend(&mut packet);
    let from = Via::new(interface, originator);
    mesh.receive_packet(Arrival { now: NOW, from, merged: false }, PacketType::OgmIv, packet);
}

/// The lengths of the packets that were sent by each interface.
fn sent(mesh: &mut Mesh) -> Vec<(usize, usize)> {
    let mut lengths = Vec::new();
    while let Some((port, item)) = mesh.out.pop() {
        if let (Port::Below(interface), Item::Frame(frame)) = (port, item) {
            lengths.push((interface as usize, frame.bytes.len() - ethernet::HEADER));
        }
    }
    lengths
}

#[test]
fn a_broadcast_longer_than_the_mtu_of_an_interface_is_not_sent_there() {
    let mut mesh = between(true, [1500, 600]);
    let mut frame = Buffer::copy_from(&[0; 700]);
    let header = ethernet::Header { destination: BROADCAST, source: [6; 6], ether_type: 0x88b5 };
    ethernet::prepend(&mut frame, header);
    mesh.send(NOW, frame);
    assert_eq!((sent(&mut mesh), mesh.counters.too_long), (vec![(0, 728)], 1));
}

#[test]
fn a_message_longer_than_the_mtu_of_an_interface_is_not_forwarded_there() {
    let mut mesh = between(true, [1500, 600]);
    let mut containers = Vec::new();
    tvlv::put(&mut containers, tvlv::GATEWAY, 1, &[0; 700]);
    hear(&mut mesh, 0, FIRST, 2, &containers);
    mesh.wake(NOW + Duration::from_millis(100));
    assert!(sent(&mut mesh).iter().all(|&(interface, len)| interface == 0 || len <= 600));
    assert_eq!(mesh.routing.counters().ogms_too_long, 1);
}

#[test]
fn a_table_of_a_long_mtu_still_fits_the_length_of_its_container() {
    let mut mesh = between(false, [200_000, 200_000]);
    for client in 0..6000_u16 {
        let [high, low] = client.to_be_bytes();
        let key = Key { vlan: 0, address: [2, 9, 0, 0, high, low] };
        mesh.translation.register(NOW, key, false, mesh.room());
    }
    mesh.schedule(NOW, 0);
    assert!(mesh.translation.counters.clients_refused > 0);
    let request = TableData::parse(&[0x12, 1, 0, 0]).unwrap();
    mesh.translation.receive_request(NOW, FIRST, None, request, mesh.max_packet());
    mesh.send_pending();
    assert_eq!(mesh.translation.counters.responses_sent, 1);
}

#[test]
fn a_part_that_is_longer_than_the_next_link_takes_is_not_cut_again() {
    let mut mesh = between(true, [1500, 600]);
    let mut fragment = Buffer::copy_from(&[0; 700]);
    let (place, total_len) = (Place { number: 1, priority: 0 }, 1400);
    Fragment { ttl: TTL, place, destination: SECOND, originator: FIRST, seqno: 1, total_len }
        .prepend(&mut fragment);
    let via = Via::new(1, SECOND);
    mesh.send_fragments(SECOND, via, fragment);
    assert_eq!((sent(&mut mesh), mesh.counters.too_long), (vec![], 1));
}

#[test]
fn fragments_of_an_originator_that_is_forgotten_are_dropped() {
    for (forgotten, complete) in [(SECOND, true), (FIRST, false)] {
        let mut mesh = between(true, [1500, 1500]);
        let fragment = |number| {
            let (place, total_len) = (Place { number, priority: 0 }, 2);
            Fragment { ttl: TTL, place, destination: [2; 6], originator: FIRST, seqno: 1, total_len }
        };
        assert_eq!(mesh.fragments.receive(NOW, fragment(0), b"b"), None);
        mesh.apply_removal(Removal::Originator(forgotten));
        assert_eq!(mesh.fragments.receive(NOW, fragment(1), b"a").is_some(), complete);
    }
}
