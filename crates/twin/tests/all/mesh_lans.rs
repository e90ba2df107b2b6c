//! A LAN that two nodes of a mesh are bridged to: who carries what, and what happens without an agreement.

#![allow(clippy::unwrap_used)]

use crate::common::document;
use hopcast_twin::results::Run;

/// Far host n0, gateways n1 and n2 on a LAN of a switch and the host h. Each of both asks for the other at 45 s.
fn lan(options: &str, duration: &str) -> Run {
    let text = format!(
        "
title: A LAN of two nodes
duration: {duration}
neighbours: resolve
topology:
  nodes: [n0, n1, n2, n3, s, h]
  links:
    - {{ between: [n1, n0], rate: 20 Mbit/s, delay: 1 ms }}
    - {{ between: [n0, n3], rate: 20 Mbit/s, delay: 1 ms }}
    - {{ between: [n3, n2], rate: 20 Mbit/s, delay: 1 ms }}
    - {{ between: [n1, s], rate: 100 Mbit/s, delay: 100 us }}
    - {{ between: [n2, s], rate: 100 Mbit/s, delay: 100 us }}
    - {{ between: [h, s], rate: 100 Mbit/s, delay: 100 us }}
services:
  - {{ name: far, run: batman-iv, on: n0, interfaces: all, prefix: 10.9.0.0/24{options} }}
  - {{ name: relay, run: batman-iv, on: n3, interfaces: all{options} }}
  - {{ name: first, run: batman-iv, on: n1, interfaces: n1-n0{options} }}
  - {{ name: second, run: batman-iv, on: n2, interfaces: n3-n2{options} }}
  - {{ name: lan1, run: bridge, on: n1, interfaces: [bat0, n1-s] }}
  - {{ name: lan2, run: bridge, on: n2, interfaces: [bat0, n2-s] }}
  - {{ name: lan, run: bridge, on: s, interfaces: all }}
flows:
  - {{ name: early, from: h, to: s, over: ip, app: {{ ping: {{ every: 1 s, start: 15 s }} }} }}
  - {{ name: in, from: n0, to: h, over: ip, app: {{ ping: {{ every: 200 ms, start: 45 s }} }} }}
  - {{ name: out, from: h, to: n0, over: ip, app: {{ ping: {{ every: 200 ms, start: 46 s }} }} }}
"
    );
    document(&text).runs.into_iter().next().unwrap()
}

fn count(run: &Run, counter: &str) -> u64 {
    run.hosts.get(counter).copied().unwrap_or(0)
}

fn reliability(run: &Run, flow: &str) -> f64 {
    run.flows.iter().find(|found| found.name == flow).unwrap().figures.reliability.unwrap()
}

fn table(run: &Run, node: &str, name: &str) -> Vec<Vec<String>> {
    let found = run.tables.iter().find(|table| table.node == node && table.table == name).unwrap();
    found.rows.clone()
}

#[test]
fn two_nodes_on_a_lan_agree_on_who_carries_what() {
    let run = lan(", arp-table: off", "70 s");
    // Until h's nodes have announced it, which has sent nothing before that they carry: 1.2 s of 25.
    let reliabilities = ["in", "out"].map(|flow| reliability(&run, flow));
    assert!(reliabilities.iter().all(|found| (0.95..=1.0).contains(found)), "{reliabilities:?}");
    // Both have the same claims, and that of the far host is of the node next to it.
    let claims = table(&run, "n1", "claims");
    assert_eq!(claims, table(&run, "n2", "claims"));
    assert!(claims.iter().any(|row| row[..] == ["n0 eth0", "none", "n1 eth0"]), "{claims:?}");
    let others = ["n1", "n2"].map(|node| table(&run, node, "backbones")[0][0].clone());
    assert_eq!(others, ["n2 eth0", "n1 eth0"]);
    assert_eq!(count(&run, "first.bridge_loops_found") + count(&run, "second.bridge_loops_found"), 0);
    // Those whose interface is their host's take no part.
    assert_eq!(count(&run, "far.claim_frames_sent") + count(&run, "relay.claim_frames_sent"), 0);
    assert!(run.tables.iter().all(|table| table.node != "n0" || table.table != "backbones"));
}

#[test]
fn without_an_agreement_broadcasts_go_round() {
    // Both nodes are next to each other in the mesh and on the LAN; h asks for s at 40 s.
    let floods = |options: &str| {
        let text = format!(
            "
title: A loop
duration: 41 s
neighbours: resolve
topology:
  nodes: [n1, n2, s, h]
  links:
    - {{ between: [n1, n2], rate: 20 Mbit/s, delay: 1 ms }}
    - {{ between: [n1, s], rate: 100 Mbit/s, delay: 100 us }}
    - {{ between: [n2, s], rate: 100 Mbit/s, delay: 100 us }}
    - {{ between: [h, s], rate: 100 Mbit/s, delay: 100 us }}
services:
  - {{ name: mesh, run: batman-iv, on: [n1, n2], interfaces: n1-n2, prefix: 10.9.0.0/24, arp-table: off{options} }}
  - {{ name: lan1, run: bridge, on: n1, interfaces: [bat0, n1-s] }}
  - {{ name: lan2, run: bridge, on: n2, interfaces: [bat0, n2-s] }}
  - {{ name: lan, run: bridge, on: s, interfaces: all }}
flows: [{{ name: f, from: h, to: s, over: ip, app: {{ ping: {{ every: 1 s, start: 40 s }} }} }}]
"
        );
        count(&document(&text).runs.into_iter().next().unwrap(), "mesh.broadcasts_sent")
    };
    let (with, without) = (floods(""), floods(", bridge-loop-avoidance: off"));
    // With it, one of each node of the one request, and of each probe for loops.
    assert!((2..10).contains(&with) && without > 100, "{with} {without}");
}

#[test]
fn as_in_linux_every_node_takes_part_and_waits_after_its_start() {
    let on = "
title: Every node
duration: 60 s
neighbours: resolve
topology: { chain: { hops: 1, link: { rate: 10 Mbit/s, delay: 1 ms } } }
services: [{ name: mesh, run: batman-iv, on: all, interfaces: all, bridge-loop-avoidance: on }]
flows: [{ name: f, from: n0, to: n1, over: ip, app: { ping: { every: 1 s, start: 10 s } } }]
";
    let run = document(on).runs.into_iter().next().unwrap();
    // Requests of ARP are held back until 30 s, of 50.
    assert!(count(&run, "mesh.frames_before_claims") > 0, "{:?}", run.hosts);
    assert!((0.5..0.7).contains(&reliability(&run, "f")), "{}", reliability(&run, "f"));
    let off = document(&on.replace(", bridge-loop-avoidance: on", "")).runs.into_iter().next().unwrap();
    assert!(reliability(&off, "f") > 0.9, "{}", reliability(&off, "f"));
}
