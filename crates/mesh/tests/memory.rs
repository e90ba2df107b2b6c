//! Memory of a node among stations that announce as much as it takes.

#![allow(clippy::unwrap_used)]

#[path = "all/common/mod.rs"]
mod common;

use std::net::Ipv4Addr;

use common::{World, frame, radio};
use hopcast_core::Buffer;
use hopcast_mesh::wire::data::{Broadcast, Fragment, Place, UnicastTvlv};
use hopcast_mesh::wire::ogm::Ogm;
use hopcast_mesh::wire::translation::{self, Change, Checksum, table_data};
use hopcast_mesh::wire::{ETHER_TYPE, Header as _, MAX_TQ, TTL, tvlv};
use hopcast_wire::arp::{self, Operation, Packet, Station};
use hopcast_wire::ethernet::{self, BROADCAST, Header, Mac};

#[global_allocator]
static COUNTING: hopcast_counting::Counting = hopcast_counting::Counting;

/// Memory that a node takes at most with its default bounds, as the crate's documentation says.
const MAX_MEMORY: u64 = 11_000_000;

fn on_air(mut packet: Buffer, destination: Mac, source: Mac) -> Vec<u8> {
    ethernet::prepend(&mut packet, Header { destination, source, ether_type: ETHER_TYPE });
    packet.to_vec()
}

/// A message of a forged originator, with the changes of its table.
fn announcement(originator: Mac, seqno: u32, ttvn: u8, changes: &[Change]) -> Vec<u8> {
    let checksums = [Checksum { crc: 0, vlan: 0 }];
    let value = table_data(translation::DIFFERENCE, ttvn, checksums.into_iter(), changes.iter().copied());
    let mut containers = Vec::new();
    tvlv::put(&mut containers, tvlv::TRANSLATION, translation::VERSION, &value);
    let tvlv_len = containers.len() as u16;
    let mut packet = Buffer::copy_from(&containers);
    Ogm { ttl: TTL, flags: 0, seqno, originator, previous_sender: originator, tq: MAX_TQ, tvlv_len }
        .prepend(&mut packet);
    on_air(packet, BROADCAST, originator)
}

/// A request of a forged originator for the table of the node.
fn request(source: Mac) -> Vec<u8> {
    let flags = translation::REQUEST | translation::FULL_TABLE;
    let value = table_data(flags, 1, std::iter::empty(), std::iter::empty());
    let mut containers = Vec::new();
    tvlv::put(&mut containers, tvlv::TRANSLATION, translation::VERSION, &value);
    let mut packet = Buffer::copy_from(&containers);
    let (destination, tvlv_len) = (radio(0), containers.len() as u16);
    UnicastTvlv { ttl: TTL, destination, source, tvlv_len }.prepend(&mut packet);
    on_air(packet, destination, source)
}

/// A claim of a client by a node on the LAN.
fn claim(node: Mac, client: Mac) -> Vec<u8> {
    let station = |mac| Station { mac, address: Ipv4Addr::UNSPECIFIED };
    let target = station([0xff, 0x43, 5, 0, 0xff, 0xff]);
    let mut frame = Buffer::copy_from(&[]);
    arp::prepend(&mut frame, &Packet { operation: Operation::Reply, sender: station(node), target });
    let header = Header { destination: BROADCAST, source: client, ether_type: arp::ETHER_TYPE };
    ethernet::prepend(&mut frame, header);
    frame.to_vec()
}

#[test]
fn forged_originators_clients_claims_and_fragments_take_no_more_memory_than_the_documentation_says() {
    let mut world = World::wires(2, 1).configured(|_, config| config.bridge_loop_avoidance = true);
    world.run(40);
    // What it sends and hands up is not its memory any more.
    world.cut(0, 1);
    let peak = hopcast_counting::peak_bytes(|| {
        for forged in 0..5000_u32 {
            let [.., a, b] = forged.to_be_bytes();
            let originator = [2, 0x77, 0, 0, a, b];
            // Clients of its own, one that all have, groups, and VLANs of one client each.
            let changes: Vec<Change> = (0..110_u8)
                .map(|client| match client {
                    0 => Change { flags: 0, address: [2, 0x55, 0, 0, 0, 0], vlan: 0 },
                    1..20 => Change { flags: 0, address: [1, 0, 0x5e, 0, 0, client], vlan: 0 },
                    20..40 => {
                        Change { flags: 0, address: [2, 9, 9, 9, a, b], vlan: 0x8000 | u16::from(client) }
                    }
                    _ => Change { flags: 0, address: [2, 0x88, 0, a, b, client], vlan: 0 },
                })
                .collect();
            for version in 1..=2 {
                world.forge(0, &announcement(originator, u32::from(version), version, &changes));
            }
            let payload = vec![0; if forged % 2 == 0 { 1 } else { 1200 }];
            for seqno in 0..8 {
                let (destination, place) = (radio(0), Place { number: 1, priority: 0 });
                let mut packet = Buffer::copy_from(&payload);
                Fragment { ttl: TTL, place, destination, originator, seqno, total_len: 20_000 }
                    .prepend(&mut packet);
                world.forge(0, &on_air(packet, destination, originator));
            }
            world.forge(0, &request(originator));
            // The node claims the client, and nodes on the LAN claim others.
            let mut packet = Buffer::copy_from(&frame(BROADCAST, [2, 0x99, 0, 0, a, b], &[0xff; 1186]));
            Broadcast { ttl: TTL, seqno: 1, originator }.prepend(&mut packet);
            world.forge(0, &on_air(packet, BROADCAST, originator));
            world.send(0, &claim([2, 0x77, 0, 0, 0, b % 10], [2, 0x66, 0, 0, a, b]));
            world.delivered.clear();
        }
    });
    assert_eq!(world.counter(0, "originators"), 4096);
    assert!(world.counter(0, "tt_foreign_clients_refused") > 0);
    assert!(world.counter(0, "tt_responses_sent") >= 4096);
    let claims = world.counter(0, "claims");
    assert!(claims > 2 * 4000, "{claims}");
    assert!((MAX_MEMORY / 2..MAX_MEMORY).contains(&peak), "{peak} bytes");
}
