//! The counters of results have the names that the documents list, and no others.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::Path;

use crate::common::document;
use crate::common::scenarios::{self, FILE, only};
use hopcast_runner::load_text;
use hopcast_stack::TRANSPORTS;
use hopcast_stack::table::Worlds;
use hopcast_stack::transport::{PortKind, Ports, Row};
use hopcast_twin::World;
use hopcast_twin::scenario::Overrides;

/// Listed, and not seen here: those of real programs, and of a neighbour that was started again.
const NOT_HERE: [&str; 3] = ["challenges_sent", "frames_shown_damaged", "retransmitted_segments"];

const MESSAGES: &str = "{ messages: { size: 500 B, every: 20 ms } }";
const PING: &str = "{ ping: { every: 20 ms } }";
const VIDEO: &str = "{ video: { rate: 2 Mbit/s } }";

/// Groups whose deliveries have counters that are listed.
const LISTS: &str = "duration: 2 s
topology: { chain: { hops: 2, link: { rate: 10 Mbit/s } } }
groups: [{ name: g, members: [n1, n2], delivery: { meadcast: { directory: on } } }, { name: h, members: [n1, n2], delivery: xcast }]
flows:
  - { name: f, from: n0, to: g, ip: 6, over: udp, app: { cbr: { rate: 100 kbit/s, size: 200 B } } }
  - { name: x, from: n0, to: h, ip: 6, over: udp, app: { cbr: { rate: 100 kbit/s, size: 200 B } } }
";

fn four_hops(over: &str, app: &str, roles: &str) -> String {
    scenarios::four_hops("duration: 2 s", "rate: 10 Mbit/s, delay: 1 ms, loss: 5 %", roles, over, app)
}

fn on_air(over: &str, app: &str) -> String {
    scenarios::on_air("duration: 2 s", over, app)
}

/// Each transport of the table that has virtual time, with data in both directions; `udp` is above those that carry
/// packets.
fn every_transport() -> impl Iterator<Item = String> {
    let text = |row: &&Row, app: &str| {
        let over =
            if row.offers == Ports::PACKETS { format!("[udp, {}]", row.name) } else { row.name.to_owned() };
        if row.needs == PortKind::Frame { on_air(&over, app) } else { four_hops(&over, app, "") }
    };
    let rows = TRANSPORTS.iter().filter(|row| row.worlds == Worlds::Both);
    rows.flat_map(move |row| [FILE, MESSAGES].map(|app| text(row, app)))
}

/// Stacks whose machines are on nodes of their own.
fn stacks() -> Vec<String> {
    vec![
        on_air("[udp, { franc: { helper: on } }]", FILE),
        four_hops("[tcp-cubic, bats-proxy]", FILE, ""),
        four_hops("[tcp-cubic, bats-proxy]", FILE, "proxy: [n1, n3]"),
        four_hops("{ brtp: { feedback: none } }", FILE, ""),
        four_hops("ip", PING, ""),
        four_hops("tunnel", PING, ""),
    ]
}

/// Each transport as one of several layers, whose counters bear its name: over a tunnel, or what a tunnel carries.
fn every_layer() -> impl Iterator<Item = String> {
    let rows = TRANSPORTS.iter().filter(|row| row.worlds == Worlds::Both);
    rows.map(|row| match row.needs {
        PortKind::Frame => on_air(&format!("[tcp-cubic, {}]", row.name), FILE),
        PortKind::Packet => four_hops(&format!("[{}, tunnel]", row.name), FILE, ""),
        _ if row.offers == Ports::PACKETS => four_hops(&format!("[udp, {}]", row.name), FILE, ""),
        _ => four_hops(&format!("[{}, udp, tunnel]", row.name), FILE, ""),
    })
}

/// Each workload, over datagrams and over streams.
fn every_workload() -> impl Iterator<Item = String> {
    let datagrams = ["{ cbr: { rate: 1 Mbit/s } }", "bulk", FILE, MESSAGES, VIDEO];
    let streams = ["bulk", FILE, MESSAGES, VIDEO, "{ short-flows: { size: 10 kB, arrivals: 20 /s } }"];
    let datagrams = datagrams.map(|app| four_hops("udp", app, ""));
    let streams = streams.map(|app| four_hops("tcp-bbr", app, ""));
    datagrams.into_iter().chain(streams)
}

/// A counter's name without what comes before it, and with `N` for the number of a distribution.
fn listed_as(name: &str) -> String {
    let name = name.rsplit_once('.').map_or(name, |(_, name)| name);
    match name.rsplit_once('_') {
        Some((family, number)) if number.parse::<u32>().is_ok() => format!("{family}_N"),
        _ => name.to_owned(),
    }
}

#[test]
fn every_name_of_a_layer_is_in_the_documents() {
    let mut seen = BTreeSet::new();
    let mut alone = 0;
    for text in every_layer() {
        if load_text(Path::new("layers.yaml"), &text, &Overrides::default()).is_err() {
            alone += 1;
            continue;
        }
        let mut run = document(&text).runs.remove(0);
        let names = std::mem::take(&mut run.flows[0].counters).into_keys();
        seen.extend(names.filter_map(|name| name.split_once('.').map(|(layer, _)| layer.to_owned())));
    }
    assert!(alone <= 2, "{alone} stacks are refused, and not `split-bbr` and `hop-arq` alone");
    // Nodes between the ends, and parts of a proxy, have lines of their own.
    seen.retain(|name| !["n1", "n2", "n3", "proxy", "splice"].contains(&name.as_str()));
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/counters.md");
    let text = std::fs::read_to_string(path).unwrap();
    let line = text.lines().find(|line| line.starts_with("| `LAYER.counter` |")).expect("the line of layers");
    let (_, names) = line.split_once("`LAYER` is ").unwrap();
    let listed: BTreeSet<String> = names.split('`').skip(1).step_by(2).map(str::to_owned).collect();
    assert_eq!(listed, seen, "the names of layers in docs/counters.md, and those that count");
}

#[test]
fn every_counter_is_in_the_documents() {
    let mut seen = BTreeSet::new();
    for text in every_transport().chain(stacks()).chain(every_workload()).chain([LISTS.to_owned()]) {
        let run = document(&text).runs.remove(0);
        let names = run.flows.iter().flat_map(|flow| flow.counters.keys()).chain(run.hosts.keys());
        seen.extend(names.map(|name| listed_as(name)));
    }
    // Documents leave out what the hosts did not count.
    let world = World::new(only(&four_hops("udp", "bulk", "")), 0, None).unwrap();
    seen.extend(world.host_counters(0).into_keys().map(listed_as));
    let told = "neighbours: resolve
membership: report
services:
  - { run: vlan, on: [n0, n1], interfaces: n0-n1 }
  - { run: bridge, on: n0, interfaces: eth0.1 }
  - { run: igmp-querier, on: n0 }
  - { run: pim, on: n0 }
  - { run: link-state, on: n0 }
  - { run: firewall, on: n0 }
  - { run: pgm-router, on: n0 }
  - { run: meadcast-router, on: n0 }
  - { run: meadcast-forger, on: n0 }
  - { run: xcast-router, on: n0 }
";
    let world = World::new(only(&(four_hops("udp", "bulk", "") + told)), 0, None).unwrap();
    seen.extend(world.host_counters(0).into_keys().map(listed_as));
    seen.extend(world.service_counters(0).into_keys().map(|name| listed_as(&name)));
    let mesh = "services: [{ run: batman-iv, on: all, interfaces: all }]\n";
    let world = World::new(only(&(four_hops("udp", "bulk", "") + mesh)), 0, None).unwrap();
    seen.extend(world.service_counters(0).into_keys().map(|name| listed_as(&name)));

    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/counters.md");
    let text = std::fs::read_to_string(path).unwrap();
    let listed: BTreeSet<String> = text
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "))
        .map(|(name, _)| name.to_owned())
        .filter(|name| !name.ends_with(".counter") && name != "counter")
        .collect();

    let unlisted: Vec<_> = seen.difference(&listed).collect();
    assert!(unlisted.is_empty(), "not in docs/counters.md: {unlisted:?}");
    let unknown: Vec<_> =
        listed.difference(&seen).filter(|name| !NOT_HERE.contains(&name.as_str())).collect();
    assert!(unknown.is_empty(), "in docs/counters.md, and nothing counts it: {unknown:?}");
    assert!(seen.len() >= 100, "{} names", seen.len());
}
