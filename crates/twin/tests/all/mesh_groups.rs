//! Groups over a mesh: who gets their frames, in which packets, and what that costs the links.

#![allow(clippy::unwrap_used)]

use crate::common::document;
use hopcast_twin::results::Run;

fn run(text: &str) -> Run {
    document(text).runs.into_iter().next().unwrap()
}

fn count(run: &Run, counter: &str) -> u64 {
    run.hosts.get(counter).copied().unwrap_or(0)
}

fn reliability(run: &Run) -> f64 {
    run.flows[0].figures.reliability.unwrap()
}

/// Datagrams of the flow: 100 a second from 20 s to 40 s.
const SENT: u64 = 2000;

/// A mesh of five nodes in a row, and a flow from the first to a group of these members from 20 s to 40 s. It is the
/// second group: the Ethernet address of the first one's IPv6 address is that of all nodes, which every node wants.
fn five(ip: u8, members: &str, options: &str, events: &str) -> Run {
    run(&text_of_five(ip, members, options, events))
}

fn text_of_five(ip: u8, members: &str, options: &str, events: &str) -> String {
    format!(
        "
title: A group over a mesh
duration: 40 s
measure: {{ from: 20 s, to: 40 s }}
neighbours: resolve
topology: {{ chain: {{ hops: 4, link: {{ rate: 10 Mbit/s, delay: 1 ms }} }} }}
services: [{{ name: mesh, run: batman-iv, on: all, interfaces: all{options} }}]
groups:
  - {{ name: first, members: n1, delivery: ip-multicast }}
  - {{ name: film, members: {members}, delivery: ip-multicast }}
flows:
  - {{ name: f, from: n0, to: film, ip: {ip}, over: udp, app: {{ cbr: {{ rate: 800 kbit/s, size: 1000 B, start: 20 s }} }} }}
{events}
"
    )
}

/// Mbit/s that the direction of a link away from a node carries.
fn carried(run: &Run, from: &str, to: &str) -> f64 {
    let link = run.links.iter().find(|link| link.from == from && link.to == to).unwrap();
    link.sent_bytes as f64 * 8.0 / 20e6
}

#[test]
fn a_group_reaches_its_members_alone() {
    for ip in [4, 6] {
        let run = five(ip, "[n2, n3]", "", "");
        assert_eq!(reliability(&run), 1.0);
        // One packet to both crosses each link once, and none the last one.
        assert_eq!(count(&run, "mesh.multicast_as_packet"), SENT);
        assert_eq!(count(&run, "mesh.multicast_packets_sent"), SENT);
        assert_eq!(count(&run, "mesh.multicast_packets_forwarded"), 2 * SENT);
        assert_eq!(count(&run, "mesh.multicast_packets_delivered"), 2 * SENT);
        assert!(carried(&run, "n2", "n3") > 0.8 && carried(&run, "n3", "n4") < 0.02, "{:?}", run.links);
    }
}

#[test]
fn each_mode_has_its_cost() {
    let copies = five(4, "[n2, n3]", ", multicast-mode: unicast", "");
    assert_eq!((reliability(&copies), count(&copies, "mesh.multicast_copies_sent")), (1.0, 2 * SENT));
    let ratio = carried(&copies, "n0", "n1") / carried(&copies, "n2", "n3");
    assert!((1.9..=2.1).contains(&ratio), "both copies cross the first link, {ratio}");
    for options in [
        ", multicast-mode: broadcast",
        ", multicast-forceflood: on",
        ", multicast-mode: unicast, multicast-fanout: 1",
    ] {
        let flooded = five(4, "[n2, n3]", options, "");
        assert_eq!(
            (reliability(&flooded), count(&flooded, "mesh.multicast_copies_sent")),
            (1.0, 0),
            "{options}"
        );
        assert!(carried(&flooded, "n3", "n4") > 0.8, "{options}");
    }
    // A frame of 1232 B and a list of two have 1258 B: less than the kernel allows, and more than its documentation.
    for (limit, packets) in [("kernel", true), ("documentation", false)] {
        let text = text_of_five(4, "[n2, n3]", &format!(", multicast-size-limit: {limit}"), "");
        let long = run(&text.replace("size: 1000 B", "size: 1190 B"));
        let counts =
            ["mesh.multicast_as_packet", "mesh.multicast_as_unicast"].map(|name| count(&long, name) > 1600);
        assert_eq!((reliability(&long), counts), (1.0, [packets, !packets]), "{limit}");
    }
}

#[test]
fn who_joins_or_leaves_does_so_within_a_few_messages_of_its_node() {
    let events = "events:
  - { at: 25 s, group: film, join: n4 }
  - { at: 30 s, group: film, leave: n3 }";
    let run = five(4, "[n3]", "", events);
    let of = |name: &str| {
        let found = run.flows[0].receivers.iter().find(|receiver| receiver.node == name).unwrap();
        found.figures.reliability.unwrap()
    };
    assert_eq!(of("n3"), 1.0);
    // The next message of n4 announces that it listens: 1 s later at most, and 100 ms at each of four hops.
    assert!((0.9..1.0).contains(&of("n4")), "{}", of("n4"));
}

/// A row of four nodes whose bridges have a host each, of which the last is the member.
fn bridged(querier: &str, mode: &str) -> Run {
    run(&format!(
        "
title: Hosts behind bridges
duration: 70 s
measure: {{ from: 50 s, to: 70 s }}
neighbours: resolve
membership: report
topology:
  nodes: [n0, n1, n2, n3, a, b, c, d]
  links:
    - {{ between: [n0, n1], rate: 26 Mbit/s, delay: 1 ms }}
    - {{ between: [n1, n2], rate: 26 Mbit/s, delay: 1 ms }}
    - {{ between: [n2, n3], rate: 26 Mbit/s, delay: 1 ms }}
    - {{ between: [a, n0], rate: 100 Mbit/s, delay: 100 us }}
    - {{ between: [b, n1], rate: 100 Mbit/s, delay: 100 us }}
    - {{ between: [c, n2], rate: 100 Mbit/s, delay: 100 us }}
    - {{ between: [d, n3], rate: 100 Mbit/s, delay: 100 us }}
services:
  - {{ name: m0, run: batman-iv, on: n0, interfaces: n0-n1, prefix: 10.9.0.0/24, multicast-mode: {mode} }}
  - {{ name: m1, run: batman-iv, on: n1, interfaces: [n0-n1, n1-n2] }}
  - {{ name: m2, run: batman-iv, on: n2, interfaces: [n1-n2, n2-n3] }}
  - {{ name: m3, run: batman-iv, on: n3, interfaces: n2-n3 }}
  - {{ name: lan0, run: bridge, on: n0, interfaces: [bat0, a-n0], querier: {querier} }}
  - {{ name: lan1, run: bridge, on: n1, interfaces: [bat0, b-n1], querier: {querier} }}
  - {{ name: lan2, run: bridge, on: n2, interfaces: [bat0, c-n2], querier: {querier} }}
  - {{ name: lan3, run: bridge, on: n3, interfaces: [bat0, d-n3], querier: {querier} }}
groups: [{{ name: film, members: d, delivery: ip-multicast }}]
flows:
  - {{ name: f, from: a, to: film, over: udp, app: {{ cbr: {{ rate: 800 kbit/s, size: 1000 B, start: 50 s }} }} }}
"
    ))
}

#[test]
fn without_a_querier_copies_go_to_every_node_and_with_one_to_members() {
    for (querier, receivers) in [("off", 3), ("on", 1)] {
        let run = bridged(querier, "unicast");
        assert_eq!(reliability(&run), 1.0, "{querier}");
        let copies = count(&run, "m0.multicast_copies_sent");
        // Beside the flow's, those of some reports' answers.
        assert_eq!(copies / SENT, receivers, "{querier}: {copies}");
        assert!(copies % SENT < 100, "{querier}: {copies}");
    }
}

/// Mbit/s that the first links carry of 8 from a to d, by two links of 10 Mbit/s and by three of 100.
fn by_two_ways(service: &str) -> (f64, f64) {
    let run = run(&format!(
        "
title: Two ways
duration: 40 s
measure: {{ from: 20 s, to: 40 s }}
neighbours: resolve
topology:
  nodes: [a, b, c, d, e]
  links:
    - {{ between: [a, b], rate: 10 Mbit/s, delay: 1 ms }}
    - {{ between: [b, d], rate: 10 Mbit/s, delay: 1 ms }}
    - {{ between: [a, c], rate: 100 Mbit/s, delay: 1 ms }}
    - {{ between: [c, e], rate: 100 Mbit/s, delay: 1 ms }}
    - {{ between: [e, d], rate: 100 Mbit/s, delay: 1 ms }}
services: [{{ name: mesh, run: {service}, on: all, interfaces: all }}]
flows: [{{ name: f, from: a, to: d, over: udp, app: {{ cbr: {{ rate: 8 Mbit/s, size: 1000 B, start: 20 s }} }} }}]
"
    ));
    assert!(reliability(&run) > 0.99, "{}", reliability(&run));
    (carried(&run, "a", "b"), carried(&run, "a", "c"))
}

#[test]
fn of_two_paths_batman_iv_takes_the_shorter_and_batman_v_the_faster() {
    let (iv, v) = (by_two_ways("batman-iv"), by_two_ways("batman-v"));
    assert!(iv.0 > 8.0 && iv.1 < 0.1, "{iv:?}");
    assert!(v.0 < 0.1 && v.1 > 8.0, "{v:?}");
}
