//! `hopcast trace` of live runs: the links' own events, and what kernels did as far as interfaces show it.

#![allow(clippy::unwrap_used)]

mod common;

use std::path::Path;

use common::{hopcast, live_run_in, text};
use serde_json::Value;

/// Datagrams to b over a link that loses some, to c over one that is cut, and to d over one whose MTU is too small.
const FAULTS: &str = "\
title: Three ways to die
seed: 3
duration: 2 s
routing: { convergence: 60 s }
topology:
  nodes: [a, r, b, c, d]
  links:
    - { name: first, between: [a, r], rate: 10 Mbit/s, delay: 2 ms }
    - { name: lossy, between: [r, b], rate: 10 Mbit/s, delay: 5 ms, loss: 20 % }
    - { name: cut, between: [r, c], rate: 10 Mbit/s, delay: 1 ms }
    - { name: narrow, between: [r, d], rate: 10 Mbit/s, delay: 1 ms }
events:
  - { at: 1 s, links: cut, down: true }
  - { at: 1 s, links: narrow, mtu: 1300 }
flows:
  - { name: to-b, from: a, to: b, over: udp, app: { cbr: { rate: 400 kbit/s, size: 500 B } } }
  - { name: to-c, from: a, to: c, over: udp, app: { cbr: { rate: 400 kbit/s, size: 500 B } } }
  - { name: to-d, from: a, to: d, over: udp, ip: 6, app: { cbr: { rate: 400 kbit/s, size: 1400 B } } }
";

/// The JSON of `hopcast trace` of the run in `out` with this query.
fn traced(dir: &Path, query: &str) -> Value {
    let output = hopcast(dir, &["trace", "out", query, "--json", "--packets", "1000"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// The number of packets with a finding, of those of a story.
fn packets_with(story: &Value, finding: &str) -> usize {
    let packets = story["packets"].as_array().unwrap();
    packets.iter().filter(|packet| !packet["finding"][finding].is_null()).count()
}

#[test]
fn a_live_run_says_where_packets_died_and_why() {
    let dir = tempfile::tempdir().unwrap();
    let Some(run) = live_run_in(dir.path(), FAULTS, &["--record"], &[]) else { return };
    assert!(!dir.path().join("out/captures/case-000-repeat-000.pcapng").exists(), "no capture was asked for");

    let lost = traced(dir.path(), "udp from a to b");
    let verdict = lost["verdict"].as_str().unwrap();
    assert!(verdict.contains(" died on link lossy, from r to b: lost on the link, "), "{verdict}");
    let (died, arrived) = (packets_with(&lost, "died"), packets_with(&lost, "arrived"));
    assert_eq!(died + arrived, lost["packets_in_all"].as_u64().unwrap() as usize);
    let flow = &run["flows"][0];
    assert_eq!(flow["name"], "to-b");
    assert!(died > 10, "{died} of 200 at a loss of 20 %");
    assert_eq!(flow["receivers"][0]["delivered_units"].as_u64(), Some(arrived as u64));

    // A delivered one is seen at each interface: given to the link, sent, received.
    let packets = lost["packets"].as_array().unwrap();
    let delivered = packets.iter().find(|packet| !packet["finding"]["arrived"].is_null()).unwrap();
    let seen = |step: &Value| {
        let [node, interface, event] = [&step["place"]["node"], &step["place"]["interface"], &step["event"]]
            .map(|it| it.as_str().unwrap());
        format!("{node}:{interface} {event}")
    };
    let steps: Vec<String> = delivered["steps"].as_array().unwrap().iter().map(seen).collect();
    let expected = [
        "a:eth0 offered",
        "a:eth0 sent",
        "r:eth0 received",
        "r:eth1 offered",
        "r:eth1 sent",
        "b:eth0 received",
    ];
    assert_eq!(steps, expected);
    let at = |step: usize| delivered["steps"][step]["time_ns"].as_u64().unwrap();
    assert_eq!([at(2) - at(1), at(5) - at(4)], [2_000_000, 5_000_000], "the links' delays");

    let cut = traced(dir.path(), "udp from a to c");
    let verdict = cut["verdict"].as_str().unwrap();
    assert!(verdict.contains(" died at r:eth2, before link cut: link down, "), "{verdict}");
    assert!(packets_with(&cut, "arrived") > 50, "before it was cut");

    // The kernel of r keeps what is too long; how many came before it knew the new MTU depends on the machine.
    let narrow = traced(dir.path(), "udp from a to d");
    let verdict = narrow["verdict"].as_str().unwrap();
    let expected = [
        " was not seen again after interface eth0 of node r, ",
        "; r reports by ICMP: packet too big, the next link takes 1300 B",
    ];
    assert!(expected.iter().all(|part| verdict.contains(part)), "{verdict}");
}

#[test]
fn the_log_of_a_live_run_has_a_maximum_size_and_says_what_it_left_out() {
    let dir = tempfile::tempdir().unwrap();
    let arguments = ["--record=5kB", "--capture", "b"];
    if live_run_in(dir.path(), FAULTS, &arguments, &[]).is_none() {
        return;
    }
    let log = dir.path().join("out/captures/case-000-repeat-000.trace");
    assert!(std::fs::metadata(log).unwrap().len() < 6_000);
    let drops = text(&hopcast(dir.path(), &["trace", "out"]).stdout);
    assert!(drops.contains("the log reached its maximum size at "), "{drops}");
    // The capture has what was asked for, and no more.
    let capture = "out/captures/case-000-repeat-000.pcapng";
    let seen = text(&hopcast(dir.path(), &["trace", capture, "udp"]).stdout);
    assert!(seen.contains("b:eth0 receives it") && !seen.contains("r:eth"), "{seen}");
}
