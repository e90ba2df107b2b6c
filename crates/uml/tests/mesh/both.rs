//! One mesh of nodes of both.

use std::collections::BTreeSet;

use hopcast_core::Buffer;
use hopcast_mesh::{Key, MeshConfig};
use hopcast_node::testing::{Requirement, require};
use hopcast_uml::kernel;
use hopcast_wire::ethernet::{self, BROADCAST, Header, Mac};

use crate::live::{Live, mac};
use crate::topology::{Topology, text};

/// EtherType for experiments (IEEE 802, local experimental 1).
const EXPERIMENTAL: u16 = 0x88b5;
const CLIENT: Mac = [2, 0x55, 0, 0, 0, 1];

/// A row of five, of which the first and the third are ours; `None` where there is no guest.
pub(crate) fn row(configure: fn(usize, &mut MeshConfig)) -> Option<Live> {
    if !require(&[Requirement::File("uml", &kernel())]) {
        return None;
    }
    let mut live = Live::new(Topology::chain('i', 5), &[0, 2], configure);
    live.until("routes", compare_routes);
    Some(live)
}

/// Compares the neighbours and the routes of every node with the only ones that a row has.
fn compare_routes(live: &mut Live) -> Result<(), String> {
    let topology = &live.topology;
    let nodes = topology.nodes;
    let toward = |node: usize, to: usize| if to > node { node + 1 } else { node - 1 };
    // A node is known to others by the interface on which they hear it.
    let next_hop = |node: usize, to: usize| {
        let peer = toward(node, to);
        topology.mac(peer, topology.interface(peer, node).unwrap())
    };
    let routes = |node: usize| {
        let others = (0..nodes).filter(move |&to| to != node);
        others.map(move |to| (topology.mac(to, 0), next_hop(node, to))).collect::<BTreeSet<(Mac, Mac)>>()
    };
    for (&number, node) in &live.ours.nodes {
        // Other interfaces of neighbours are originators, too.
        let found: BTreeSet<(Mac, Mac)> = node
            .mesh
            .originators()
            .into_iter()
            .filter(|status| topology.node(status.originator).is_some())
            .map(|status| (status.originator, status.next_hop))
            .collect();
        if found != routes(number) {
            return Err(format!("{number} has the routes {found:x?}"));
        }
        for (interface, peer) in topology.peers(number).enumerate() {
            let found = node.mesh.neighbours(interface);
            if found != [next_hop(number, peer)] {
                return Err(format!("{number} has the neighbours {found:x?} on {interface}"));
            }
        }
    }
    let expected: Vec<_> = live
        .kernels()
        .into_iter()
        .map(|node| {
            let neighbours =
                topology.peers(node).map(|peer| (topology.device(node, peer), text(next_hop(node, peer))));
            (node, routes(node), neighbours.collect::<BTreeSet<_>>())
        })
        .collect();
    for (node, routes, neighbours) in expected {
        let output = live.at(node, "batctl meshif bat0 o -n");
        let found: BTreeSet<(Mac, Mac)> = output
            .lines()
            .filter_map(|line| line.trim_start().strip_prefix('*'))
            .filter_map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                let addresses: Vec<Mac> = words.iter().filter_map(|word| mac(word)).collect();
                Some((*addresses.first()?, *addresses.get(1)?))
                    .filter(|(of, _)| live.topology.node(*of).is_some())
            })
            .collect();
        if found != routes {
            return Err(format!("{node} has the routes {found:x?}\n{output}"));
        }
        let output = live.at(node, "batctl meshif bat0 n -n");
        let found: BTreeSet<(String, String)> = output
            .lines()
            .filter_map(|line| {
                let words: Vec<&str> = line.split_whitespace().collect();
                mac(words.get(1)?).map(|mac| (words[0].to_owned(), text(mac)))
            })
            .collect();
        if found != neighbours {
            return Err(format!("{node} has the neighbours {found:?}\n{output}"));
        }
    }
    Ok(())
}

#[test]
fn nodes_of_both_find_each_other_and_carry_frames_for_each_other() {
    let Some(mut live) = row(|_, _| ()) else { return };
    // Over one, two and four hops, by nodes of the kernel's and by ours, inside VLANs and outside.
    for vlan in [0, 7, 100] {
        for (from, to) in [(4, 0), (4, 2), (3, 1), (1, 0)] {
            live.ping_from(from, vlan, to, 56);
        }
        for (from, to) in [(0, 4), (0, 2), (2, 4)] {
            live.ping(from, vlan, to, 56);
        }
    }
    live.until("tables", Live::compare_tables);
    let fragments = |live: &Live, node: usize| {
        let of = |name| live.ours.nodes[&node].counter(name);
        (of("fragments_sent"), of("fragments_received"))
    };
    let before = [fragments(&live, 0), fragments(&live, 2)];
    live.ping_from(4, 0, 0, 1472);
    live.ping(0, 0, 4, 1472);
    let after = [fragments(&live, 0), fragments(&live, 2)];
    assert!(after[0].0 >= before[0].0 + 12 && after[0].1 >= before[0].1 + 12, "{before:?} {after:?}");
    the_meshs_own_echo_passes(&mut live);
    broadcasts_arrive_once(&mut live);
    let wrong = ["malformed", "not_supported", "wrong_destination", "wrong_items"];
    for node in live.ours.nodes.values() {
        for name in wrong {
            assert_eq!(node.counter(name), 0, "{name}");
        }
    }
}

fn the_meshs_own_echo_passes(live: &mut Live) {
    let address = |live: &Live, node| text(live.topology.mac(node, 0));
    let to = address(live, 0);
    live.until("batctl ping", |live| {
        let output = live.try_at(4, &format!("batctl meshif bat0 ping -c 5 -i 0.1 {to}"))?;
        output.contains("5 packets transmitted, 5 received").then_some(()).ok_or(output)
    });
    live.until("batctl traceroute", |live| {
        let output = live.try_at(4, &format!("batctl meshif bat0 traceroute -n {to}"))?;
        let hops: Vec<&str> =
            output.lines().skip(1).filter_map(|line| line.split_whitespace().nth(1)).collect();
        let expected: Vec<String> = [3, 2, 1, 0].map(|node| address(live, node)).to_vec();
        (hops == expected).then_some(()).ok_or(output)
    });
}

fn broadcasts_arrive_once(live: &mut Live) {
    // Of ours, at the kernel's hosts.
    for node in live.kernels() {
        live.at(
            node,
            "modprobe sch_ingress; modprobe cls_matchall; modprobe act_gact
            tc qdisc add dev bat0 ingress
            tc filter add dev bat0 ingress protocol 0x88b5 matchall action ok",
        );
    }
    let mut frame = Buffer::copy_from(b"to all");
    let source = live.topology.host(0);
    ethernet::prepend(&mut frame, Header { destination: BROADCAST, source, ether_type: EXPERIMENTAL });
    for _ in 0..20 {
        live.ours.send(0, frame.clone(), &live.guest);
        live.ours.turn(&live.guest);
    }
    let counted = |live: &mut Live, node| {
        let output = live.at(node, "tc -s filter show dev bat0 ingress");
        let packets = output.lines().find(|line| line.contains("pkt")).and_then(|line| {
            let words: Vec<&str> = line.split_whitespace().collect();
            words.iter().position(|word| *word == "pkt").and_then(|at| words[at - 1].parse::<u32>().ok())
        });
        packets.unwrap_or(0)
    };
    for node in live.kernels() {
        live.until("broadcasts", |live| match counted(live, node) {
            20 => Ok(()),
            found => Err(format!("{found} at {node}")),
        });
    }
    // Of the kernel's, at ours: each request has another number.
    live.at(4, "ip neigh add 10.0.0.77 lladdr ff:ff:ff:ff:ff:ff dev bat0 nud permanent");
    live.ours.nodes.values_mut().for_each(|node| node.host.received.clear());
    live.at(4, "ping -q -c 20 -i 0.05 -W 1 10.0.0.77 || true");
    let arrived = |live: &Live, number: usize| {
        let frames = &live.ours.nodes[&number].host.received;
        let to = |frame: &&Vec<u8>| frame.get(30..34) == Some(&[10, 0, 0, 77]);
        let frames: Vec<Vec<u8>> = frames.iter().filter(to).cloned().collect();
        (frames.len(), frames.into_iter().collect::<BTreeSet<_>>().len())
    };
    for number in [0, 2] {
        live.until("broadcasts", |live| match arrived(live, number) {
            (_, 20) => Ok(()),
            found => Err(format!("{found:?} at {number}")),
        });
    }
    // Once, now that those that may come twice have come.
    for number in [0, 2] {
        assert_eq!(arrived(live, number), (20, 20), "at {number}");
    }
    for node in live.kernels() {
        assert_eq!(counted(live, node), 20, "at {node}");
    }
}

#[test]
fn a_client_that_goes_from_node_to_node_is_where_it_sends() {
    let Some(mut live) = row(|_, _| ()) else { return };
    let announced_at = |live: &mut Live, node: usize| {
        live.until(&format!("the client at {node}"), |live| {
            let key = Key { vlan: 0, address: CLIENT };
            let address = live.topology.mac(node, 0);
            for (number, ours) in &live.ours.nodes {
                let found: Vec<Mac> = ours
                    .mesh
                    .global_clients()
                    .into_iter()
                    .filter(|(found, _)| *found == key)
                    .map(|found| found.1)
                    .collect();
                let here = ours.mesh.local_clients().contains(&key);
                if here != (*number == node) || !here && found != [address] {
                    return Err(format!("{number} has it at {found:x?}, here {here}"));
                }
            }
            live.compare_tables()
        });
    };
    let send = |live: &mut Live, node: usize| {
        let mut frame = Buffer::copy_from(b"here");
        ethernet::prepend(
            &mut frame,
            Header { destination: BROADCAST, source: CLIENT, ether_type: EXPERIMENTAL },
        );
        live.ours.send(node, frame, &live.guest);
    };
    let appear = |live: &mut Live, node: usize, number: u8| {
        live.at(
            node,
            &format!(
                "ip link add link bat0 name client address {} type macvlan mode bridge
                ip link set client up; ip addr add 10.0.1.{number}/24 dev client
                arping -c 1 -w 1 -I client 10.0.1.99 >/dev/null || true",
                text(CLIENT)
            ),
        );
    };
    // From ours to the kernel's, to ours, to another of the kernel's, to another, and back.
    send(&mut live, 0);
    announced_at(&mut live, 0);
    appear(&mut live, 4, 1);
    announced_at(&mut live, 4);
    live.at(4, "ip link del client");
    send(&mut live, 2);
    announced_at(&mut live, 2);
    appear(&mut live, 1, 2);
    announced_at(&mut live, 1);
    live.at(1, "ip link del client");
    send(&mut live, 0);
    announced_at(&mut live, 0);
    let told = live.ours.nodes.values().map(|node| node.counter("tt_roamings_received")).sum::<u64>();
    assert!(told >= 2, "{told}");
}

#[test]
fn nodes_that_restart_are_found_again() {
    let Some(mut live) = row(|_, _| ()) else { return };
    live.until("tables", Live::compare_tables);
    live.restart(2);
    live.until("routes after ours", compare_routes);
    live.until("tables after ours", Live::compare_tables);
    live.ping_from(4, 0, 0, 56);
    live.at(3, "ip link del bat0");
    live.start(3);
    live.until("routes after the kernel's", compare_routes);
    live.until("tables after the kernel's", Live::compare_tables);
    live.ping(0, 0, 4, 56);
}
