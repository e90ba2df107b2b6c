//! Groups in live runs: the kernels of the nodes bring datagrams to the members, as in virtual time.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Mutex, MutexGuard};

use common::text;
use hopcast_node::testing::{Requirement, require};
use serde_json::Value;

/// A machine of two processors carries one live run at a time.
static MACHINE: Mutex<()> = Mutex::new(());

fn machine(program: Option<&'static str>) -> Option<MutexGuard<'static, ()>> {
    let needs = [
        Requirement::Root,
        Requirement::Tun,
        Requirement::Program("ip"),
        Requirement::Program("setpriv"),
        Requirement::Program(program.unwrap_or("ip")),
    ];
    require(&needs).then(|| MACHINE.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
}

/// Runs a scenario in one of the worlds, and returns the run.
fn run(dir: &Path, scenario: &str, world: &[&str]) -> Value {
    fs::write(dir.join("group.yaml"), scenario).unwrap();
    let out = format!("out{}", world.len());
    let output = Command::new(env!("CARGO_BIN_EXE_hopcast"))
        .args(["run", "group.yaml", "--format", "json", "--out", &out])
        .args(world)
        .current_dir(dir)
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", text(&output.stderr));
    let document: Value = serde_json::from_slice(&output.stdout).unwrap();
    let run = document["runs"][0].clone();
    assert!(run["live"]["invalid"].is_null(), "{}", run["live"]);
    run
}

/// The units of each flow that were for each receiver, and those that it got.
fn units(run: &Value) -> Vec<(String, Vec<(u64, u64)>)> {
    let of = |receiver: &Value| {
        let [sent, delivered] =
            ["sent_units", "delivered_units"].map(|name| receiver[name].as_u64().unwrap());
        (sent, delivered)
    };
    let flows = run["flows"].as_array().unwrap().iter();
    let flow = |flow: &Value| {
        let receivers = flow["receivers"].as_array().unwrap().iter().map(of);
        (flow["name"].as_str().unwrap().to_owned(), receivers.collect())
    };
    flows.map(flow).collect()
}

/// Number of packets that each direction of each link delivered.
fn carried(run: &Value) -> Vec<u64> {
    let links = run["links"].as_array().unwrap().iter();
    links.map(|link| link["delivered_packets"].as_u64().unwrap()).collect()
}

/// A sender, two routers and three members: one behind the first router, two behind the second. A datagram counts by
/// the time at which it was sent, and a busy machine sends some milliseconds late. So all sources here send every
/// 40 ms, and no edge of a window and no change of members is in the 20 ms after one is due.
const NETWORK: &str = "\
measure: { from: 500 ms }
topology:
  nodes: [s, r1, r2, a, b, c]
  links:
    - { between: [s, r1], rate: 20 Mbit/s, delay: 10 ms }
    - { between: [r1, r2], rate: 20 Mbit/s, delay: 20 ms }
    - { between: [r1, a], rate: 20 Mbit/s, delay: 10 ms }
    - { between: [r2, b], rate: 20 Mbit/s, delay: 10 ms }
    - { between: [r2, c], rate: 20 Mbit/s, delay: 10 ms }
";

#[test]
fn a_group_over_two_routers_gets_live_what_it_gets_in_virtual_time() {
    let Some(_machine) = machine(None) else { return };
    let dir = tempfile::tempdir().unwrap();
    // Both versions of IP; from any source, and from one.
    let scenario = format!(
        "title: t\nduration: 3 s\n{NETWORK}groups:
  - {{ name: any, members: [a, b, c], delivery: ip-multicast }}
  - {{ name: one, members: [a, b], delivery: {{ ip-multicast: {{ one-source: true }} }} }}
  - {{ name: copies, members: [b, c], delivery: unicast }}
flows:
  - {{ name: four, from: s, to: any, over: udp, app: {{ cbr: {{ rate: 200 kbit/s, size: 1000 B }} }} }}
  - {{ name: six, from: s, to: any, over: udp, ip: 6, app: {{ cbr: {{ rate: 200 kbit/s, size: 1000 B }} }} }}
  - {{ name: ssm4, from: s, to: one, over: udp, app: {{ cbr: {{ rate: 180 kbit/s, size: 900 B }} }} }}
  - {{ name: ssm6, from: s, to: one, over: udp, ip: 6, app: {{ cbr: {{ rate: 180 kbit/s, size: 900 B }} }} }}
  - {{ name: member, from: a, to: any, over: fec, app: {{ cbr: {{ rate: 100 kbit/s, size: 500 B }} }} }}
  - {{ name: each, from: s, to: copies, over: udp, app: {{ cbr: {{ rate: 100 kbit/s, size: 500 B }} }} }}
"
    );
    let (virtual_time, live) = (run(dir.path(), &scenario, &[]), run(dir.path(), &scenario, &["--live"]));
    assert_eq!(units(&live), units(&virtual_time));
    // But for those that cross the edge of the window a little later.
    let more =
        carried(&live).into_iter().zip(carried(&virtual_time)).map(|(live, wanted)| live.abs_diff(wanted));
    assert!(more.max() < Some(8), "each link carries one copy, and nothing else: {:?}", carried(&live));
    for flow in live["flows"].as_array().unwrap() {
        assert_eq!(flow["counters"]["duplicate_units"], 0, "{flow}");
    }
}

#[test]
fn a_member_that_joins_and_leaves_gets_what_is_sent_in_between() {
    let Some(_machine) = machine(None) else { return };
    let dir = tempfile::tempdir().unwrap();
    let scenario = format!(
        "title: t\nduration: 4 s\n{NETWORK}groups: [{{ name: film, members: [a, b], delivery: ip-multicast, linger: 300 ms }}]
events:
  - {{ at: 1500 ms, group: film, join: c }}
  - {{ at: 2 s, group: film, leave: [b] }}
  - {{ at: 3 s, group: film, leave: [c] }}
flows:
  - {{ name: four, from: s, to: film, over: udp, app: {{ cbr: {{ rate: 200 kbit/s, size: 1000 B }} }} }}
  - {{ name: six, from: s, to: film, over: udp, ip: 6, app: {{ cbr: {{ rate: 200 kbit/s, size: 1000 B }} }} }}
"
    );
    let (virtual_time, live) = (run(dir.path(), &scenario, &[]), run(dir.path(), &scenario, &["--live"]));
    assert_eq!(units(&live), units(&virtual_time));
    // After the last leave and its linger, 700 ms of 25 datagrams a second of each flow are for the first router's
    // member alone.
    let missing: Vec<_> =
        carried(&virtual_time).iter().zip(carried(&live)).map(|(one, two)| one.abs_diff(two)).collect();
    assert!(missing.iter().all(|&missing| missing < 12), "{missing:?}");
}

/// iperf2 at both ends: each member's server joins on the interface that leads to the sender, which at `a` and `c` is
/// the second one.
#[test]
fn iperf2_sends_to_a_group_and_each_member_has_its_own_figures() {
    let Some(_machine) = machine(Some("iperf")) else { return };
    let dir = tempfile::tempdir().unwrap();
    let scenario = "\
title: t
duration: 4 s
measure: { from: 500 ms, to: 3500 ms }
topology:
  nodes: [s, r1, r2, a, b, c]
  links:
    - { between: [a, c], rate: 20 Mbit/s, delay: 200 ms }
    - { between: [s, r1], rate: 20 Mbit/s, delay: 10 ms }
    - { between: [r1, r2], rate: 20 Mbit/s, delay: 20 ms }
    - { between: [r1, a], rate: 20 Mbit/s, delay: 10 ms }
    - { between: [r2, b], rate: 20 Mbit/s, delay: 10 ms, loss: 20 % }
    - { between: [r2, c], rate: 20 Mbit/s, delay: 10 ms }
groups:
  - { name: any, members: [a, b, c], delivery: ip-multicast }
  - { name: one, members: [b, c], delivery: { ip-multicast: { one-source: true } } }
flows:
  - { name: four, from: s, to: any, over: udp, app: { iperf2: { rate: 1 Mbit/s, size: 1000 B } } }
  - { name: six, from: s, to: any, over: udp, ip: 6, app: { iperf2: { rate: 1 Mbit/s, size: 1000 B } } }
  - { name: ssm4, from: s, to: one, over: udp, app: { iperf2: { rate: 1 Mbit/s, size: 1000 B } } }
  - { name: ssm6, from: s, to: one, over: udp, ip: 6, app: { iperf2: { rate: 1 Mbit/s, size: 1000 B } } }
";
    let run = run(dir.path(), scenario, &["--live"]);
    assert!(run["live"]["programs"].is_null(), "{}", run["live"]);
    for flow in run["flows"].as_array().unwrap() {
        let receivers = flow["receivers"].as_array().unwrap();
        let nodes: Vec<_> = receivers.iter().map(|receiver| receiver["node"].as_str().unwrap()).collect();
        let one_source = flow["name"].as_str().unwrap().starts_with("ssm");
        assert_eq!(nodes, if one_source { vec!["b", "c"] } else { vec!["a", "b", "c"] });
        let sum =
            |figure: &str| receivers.iter().map(|receiver| receiver[figure].as_f64().unwrap()).sum::<f64>();
        for receiver in receivers {
            let figure = |name: &str| receiver[name].as_f64().unwrap();
            // 125 datagrams a second for 3 s.
            assert!((figure("sent_units") - 375.0).abs() < 8.0, "{receiver}");
            let arrives = if receiver["node"] == "b" { 0.8 } else { 1.0 };
            // The deviation of 375 draws is 0.021.
            assert!(
                (figure("reliability") - arrives).abs() < if arrives < 1.0 { 0.08 } else { 0.02 },
                "{receiver}"
            );
            assert!((figure("goodput_mbps") - arrives).abs() < 0.09, "{receiver}");
            let way = if receiver["node"] == "a" { 20.0 } else { 40.0 };
            let latency = receiver["latency_ms"]["p50"].as_f64().unwrap();
            assert!((way..way + 20.0).contains(&latency), "{receiver}");
        }
        assert_eq!(flow["sent_units"].as_f64().unwrap(), sum("sent_units"));
        let mean = sum("goodput_mbps") / receivers.len() as f64;
        assert!((flow["goodput_mbps"].as_f64().unwrap() - mean).abs() < 1e-6, "{flow}");
    }
    // A copy of each of the four flows on each link of the tree, and two to the member of one group alone.
    let carried = carried(&run);
    for (direction, flows) in [(2, 4), (4, 4), (6, 2), (10, 4)] {
        assert!(carried[direction].abs_diff(375 * flows) < 40, "{direction}: {carried:?}");
    }
}

#[test]
fn a_link_that_goes_down_moves_the_tree() {
    let Some(_machine) = machine(None) else { return };
    let dir = tempfile::tempdir().unwrap();
    let scenario = "\
title: t
duration: 3 s
topology:
  nodes: [s, r, q, a]
  links:
    - { between: [s, r], rate: 20 Mbit/s, delay: 5 ms }
    - { between: [r, a], rate: 20 Mbit/s, delay: 5 ms }
    - { between: [s, q], rate: 20 Mbit/s, delay: 6 ms }
    - { between: [q, a], rate: 20 Mbit/s, delay: 6 ms }
groups: [{ name: film, members: [a], delivery: ip-multicast }]
events: [{ at: 1500 ms, links: s-r, down: true }]
flows: [{ name: f, from: s, to: film, over: udp, app: { cbr: { rate: 1 Mbit/s, size: 1000 B } } }]
";
    let run = run(dir.path(), scenario, &["--live"]);
    let [(_, receivers)] = &units(&run)[..] else { panic!("one flow") };
    let (sent, delivered) = receivers[0];
    // Routes may change 100 ms after their time before a run is invalid.
    assert!(sent - delivered <= 13, "{delivered} of {sent}");
    assert!(carried(&run).iter().filter(|&&packets| packets > 150).count() == 4, "{:?}", carried(&run));
}

#[test]
fn a_broadcast_on_a_segment_gets_to_everybody_once() {
    let Some(_machine) = machine(None) else { return };
    let dir = tempfile::tempdir().unwrap();
    let scenario = "\
title: t
duration: 2 s
measure: { from: 500 ms }
topology: { nodes: [s, a, b, c], links: [{ medium: [s, a, b, c], rate: 20 Mbit/s }] }
groups: [{ name: all, members: [a, b, c], delivery: broadcast }]
flows:
  - { name: four, from: s, to: all, over: udp, app: { cbr: { rate: 200 kbit/s, size: 1000 B } } }
  - { name: six, from: s, to: all, over: udp, ip: 6, app: { cbr: { rate: 200 kbit/s, size: 1000 B } } }
";
    let (virtual_time, live) = (run(dir.path(), scenario, &[]), run(dir.path(), scenario, &["--live"]));
    assert_eq!(units(&live), units(&virtual_time));
}
