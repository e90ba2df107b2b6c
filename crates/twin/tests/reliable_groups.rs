//! Reliable transports to groups: that all arrives at each member, what it costs, and how long it takes.

#![allow(clippy::unwrap_used)] // in helpers of tests too

mod common;

use std::path::Path;

use common::document;
use hopcast_twin::results::{Flow, Run};

/// 800 KiB to `receivers` on a switch, each of which loses `loss` of what comes.
fn baseline(seed: u64, receivers: usize, loss: &str, over: &str) -> Run {
    let names: Vec<String> = (1..=receivers).map(|number| format!("r{number}")).collect();
    let members = names.join(", ");
    let mut document = document(&format!(
        "seed: {seed}
duration: 60 s
topology:
  nodes: [s, {members}]
  links: [{{ switch: [s, {members}], rate: 1024 kbit/s, delay: 100us, loss: {loss} }}]
groups: [{{ name: g, members: [{members}], delivery: ip-multicast }}]
flows: [{{ from: s, to: g, over: {over}, app: {{ bulk: {{ bytes: 800 KiB }} }} }}]
"
    ));
    document.runs.remove(0)
}

#[test]
fn a_file_to_three_receivers_that_lose_a_fifth_takes_no_longer_than_a_well_tuned_libnorm() {
    let seeds = 5;
    let (mut seconds, mut bytes) = (0.0, 0.0);
    for seed in 0..seeds {
        let run = baseline(seed, 3, "20 %", "{ norm: { rate: 1024 kbit/s } }");
        let times = run.flows[0].receivers.iter().map(|receiver| receiver.figures.completed_s);
        let last = times.max_by(|a, b| a.partial_cmp(b).unwrap()).flatten();
        assert!(run.flows[0].receivers.iter().all(|receiver| receiver.figures.reliability == Some(1.0)));
        seconds += last.unwrap() / seeds as f64;
        bytes += run.network_bytes.unwrap() as f64 / seeds as f64;
    }
    // libnorm with parity 32, a GRTT of 50 ms and a group of 10, in namespaces: 9.8 to 10.2 s.
    assert!(seconds < 9.9, "{seconds}");
    // And 1.13 to 1.17 MB; ours has the file's pieces with a header of 16 bytes each.
    assert!(bytes < 1.2e6, "{bytes}");
}

/// An application over NORM to three members that lose a tenth.
fn to_three(app: &str) -> Flow {
    let mut document = document(&format!(
        "seed: 3
duration: 30 s
measure: {{ to: 20 s }}
topology:
  nodes: [s, a, b, c]
  links: [{{ switch: [s, a, b, c], rate: 4 Mbit/s, delay: 2 ms, loss: 10 % }}]
groups: [{{ name: g, members: [a, b, c], delivery: ip-multicast }}]
flows: [{{ from: s, to: g, over: {{ norm: {{ rate: 3 Mbit/s }} }}, app: {{ {app} }} }}]
"
    ));
    document.runs.remove(0).flows.remove(0)
}

#[test]
fn bulk_messages_and_video_arrive_whole_at_each_member() {
    let apps = [
        "bulk: { bytes: 300 kB }",
        "messages: { size: 200 B, every: 100 ms, stop: 15 s }",
        "messages: { size: 40 kB, every: 1 s, stop: 15 s }",
        "video: { rate: 500 kbit/s, deadline: 2 s, stop: 15 s }",
    ];
    for app in apps {
        let flow = to_three(app);
        assert_eq!(flow.receivers.len(), 3, "{app}");
        for receiver in &flow.receivers {
            let figures = &receiver.figures;
            assert!(figures.sent_units > 0, "{app}: {figures:?}");
            assert_eq!(figures.reliability, Some(1.0), "{app} at {}: {figures:?}", receiver.node);
        }
        assert_eq!((flow.counters["damaged_units"], flow.counters["duplicate_units"]), (0, 0), "{app}");
    }
}

#[test]
fn a_file_is_one_object_and_complete_at_each_member_at_a_time_of_its_own() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../Cargo.lock");
    let bytes = std::fs::metadata(&path).unwrap().len();
    let flow = to_three(&format!("file: {{ path: {} }}", path.display()));
    let mut times = Vec::new();
    for receiver in &flow.receivers {
        let figures = &receiver.figures;
        assert_eq!((figures.hash_ok, figures.reliability), (Some(true), Some(1.0)), "{figures:?}");
        times.push(figures.completed_s.unwrap());
    }
    // Each member has one object, and no datagrams.
    assert_eq!((flow.counters["objects_completed"], flow.counters["units_refused"]), (3, 0));
    assert_eq!(flow.counters["damaged_units"], 0);
    // No sooner than its bytes cross at the rate of the sender, and soon after.
    let least = bytes as f64 * 8.0 / 3e6;
    assert!(times.iter().all(|&time| (least..1.5 * least + 0.5).contains(&time)), "{times:?}, {least}");
    assert!(times[0] != times[1] || times[1] != times[2], "each loses for itself: {times:?}");
}
