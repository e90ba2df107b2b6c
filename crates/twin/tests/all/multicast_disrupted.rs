//! The studies `multicast-disrupted`, `multicast-disrupted-ferry` and `multicast-disrupted-grid`: what a message ferry
//! could bring DisService brings, soon after parts of a network meet, and what follows routes brings less.

#![allow(clippy::unwrap_used)] // in helpers of tests too

use crate::common::scenarios::scenarios;
use hopcast_runner::{load, run};
use hopcast_twin::Monitor;
use hopcast_twin::results::{Flow, Run};
use hopcast_twin::scenario::Overrides;

/// The runs of a study's quick version with these changes.
fn runs(study: &str, sets: &[&str]) -> Vec<Run> {
    let path = scenarios().join("studies").join(study);
    let sets = sets.iter().map(|&set| set.to_owned()).collect();
    let overrides = Overrides { sets, quick: true, ..Overrides::default() };
    let plan = load(&path, &overrides).unwrap_or_else(|error| panic!("{error}"));
    let runs = run(&plan, 2, None, &Monitor::default()).unwrap().runs;
    runs.iter().flat_map(|run| &run.flows).for_each(holds_to_the_ferry);
    runs
}

/// No flow is better than a message ferry.
fn holds_to_the_ferry(flow: &Flow) {
    for figures in flow.receivers.iter().map(|receiver| &receiver.figures).chain([&flow.figures]) {
        let (found, bound) = (figures.reliability.unwrap(), figures.reliability_bound.unwrap());
        assert!(found <= bound, "{} of {}: {found} of {bound}", flow.name, flow.protocol);
        // Where fewer arrive, they may be those that are quick.
        if let (Some(found), Some(bound), true) =
            (figures.latency_ms, figures.latency_bound_ms, found == bound)
        {
            let is_later = found.mean >= bound.mean && found.p50 >= bound.p50 && found.max >= bound.max;
            assert!(is_later, "{} of {}: {found:?} before {bound:?}", flow.name, flow.protocol);
        }
    }
}

/// The flows of the runs over a transport.
fn over<'r>(runs: &'r [Run], protocol: &str) -> Vec<&'r Flow> {
    let flows: Vec<&Flow> =
        runs.iter().flat_map(|run| &run.flows).filter(|flow| flow.protocol == protocol).collect();
    assert!(!flows.is_empty(), "{protocol}");
    flows
}

fn all_arrive(flow: &Flow) {
    let bound = flow.figures.reliability_bound;
    assert_eq!(
        (flow.figures.reliability, bound),
        (Some(1.0), Some(1.0)),
        "{} of {}",
        flow.name,
        flow.protocol
    );
}

const HALVES: &str = "multicast-disrupted.yaml";
/// The second at which the halves meet.
const MEET: f64 = 180.0;

/// Seconds from the meeting of the halves to the last delivery of either flow.
fn after_meeting(run: &Run) -> f64 {
    let last = |mbps: &Vec<f64>| mbps.iter().rposition(|&mbps| mbps > 0.0).map_or(0, |step| step + 1);
    let steps = run.series.flows.iter().map(|(_, mbps)| last(mbps)).max().unwrap();
    steps as f64 * run.series.step_s - MEET
}

/// Seconds from the meeting of the halves until both flows have delivered 99 % of their bytes.
fn most_after_meeting(run: &Run) -> f64 {
    let most = |mbps: &Vec<f64>| {
        let mut left = 0.01 * mbps.iter().sum::<f64>();
        let after = mbps.iter().rev().take_while(|&&mbps| {
            left -= mbps;
            left >= 0.0
        });
        mbps.len() - after.count()
    };
    let steps = run.series.flows.iter().map(|(_, mbps)| most(mbps)).max().unwrap();
    steps as f64 * run.series.step_s - MEET
}

/// Seconds that the messages of one half's publisher, of so many a second, take at the rate of a member: those of the
/// 75 s in which the halves are apart, with the headers of Ethernet, IP, UDP and DisService.
fn bottleneck(per_second: f64) -> f64 {
    75.0 * per_second * (1000.0 + 14.0 + 28.0 + 26.0) * 8.0 / 500e3
}

/// The longest interval of summaries, after which members that meet know what the others have.
const SUMMARIES: f64 = 8.0;

fn pinned(over: &str, delivery: &str) -> [String; 4] {
    let of = |flow: &str, key: &str, value: &str| format!("flows.{flow}.{key}={value}");
    [
        of("west", "over", over),
        of("east", "over", over),
        of("west", "delivery", delivery),
        of("east", "delivery", delivery),
    ]
}

#[test]
fn halves_that_meet_have_all_of_each_other_within_what_their_link_needs() {
    let runs = runs(HALVES, &["measure.interval=1s"]);
    for run in &runs {
        let flow = &run.flows[0];
        let took = after_meeting(run);
        println!("{}: {took} s after they met, of {} s", flow.protocol, bottleneck(20.0));
        if flow.protocol.starts_with("disservice") {
            run.flows.iter().for_each(all_arrive);
            assert!(took <= 1.5 * bottleneck(20.0) + SUMMARIES + 1.0, "{}: {took}", flow.protocol);
        }
    }
    // What was published before the cut is a quarter, and a half of the subscribers are there all the time.
    for flow in over(&runs, "norm-multicast") {
        assert_eq!(flow.figures.reliability, Some(0.625), "{}", flow.name);
    }
    for flow in over(&runs, "brtp") {
        let found = flow.figures.reliability.unwrap();
        assert!(found > 0.5 && found < 0.63, "{}: {found}", flow.name);
    }
}

#[test]
fn a_publisher_that_has_gone_changes_nothing() {
    let took = ["true", "false"].map(|is_gone| {
        let gone = format!("events.gone.down={is_gone}");
        let pinned = pinned("disservice-pull", "one-hop");
        let sets: Vec<&str> =
            pinned.iter().map(String::as_str).chain([&*gone, "measure.interval=1s"]).collect();
        let runs = runs(HALVES, &sets);
        assert_eq!(runs.len(), 1);
        runs[0].flows.iter().for_each(all_arrive);
        after_meeting(&runs[0])
    });
    println!("{took:?} s after they met, without and with the publisher");
    assert!((took[0] - took[1]).abs() <= SUMMARIES, "{took:?}");
}

/// Halves of so many nodes beside their publishers have all of each other within 1.5 times what their link needs, with
/// no allowance for the summaries by which they find out.
fn many_nodes_have_all_when_halves_meet(half: u32) {
    let pinned = pinned("disservice-pull", "one-hop");
    let counts = ["w", "e"].map(|class| format!("topology.nodes.{class}.count={half}"));
    let others = [
        "flows.west.app.messages.every=100ms",
        "flows.east.app.messages.every=100ms",
        "duration=300s",
        "measure.interval=1s",
    ];
    let sets: Vec<&str> = pinned.iter().chain(&counts).map(String::as_str).chain(others).collect();
    let runs = runs(HALVES, &sets);
    runs[0].flows.iter().for_each(all_arrive);
    let (most, all) = (most_after_meeting(&runs[0]), after_meeting(&runs[0]));
    println!("99 % are there {most} s after they met, all {all} s, of {} s", bottleneck(10.0));
    assert!(most <= all && all <= 1.5 * bottleneck(10.0), "{all}");
}

#[test]
fn fifty_nodes_have_all_when_halves_meet() {
    many_nodes_have_all_when_halves_meet(24);
}

#[test]
fn two_hundred_nodes_have_all_when_halves_meet() {
    many_nodes_have_all_when_halves_meet(99);
}

#[test]
fn a_ferry_brings_what_it_hears_from_island_to_island() {
    let runs = runs("multicast-disrupted-ferry.yaml", &[]);
    for member in ["disservice-pull", "disservice-push"] {
        over(&runs, member).into_iter().for_each(all_arrive);
    }
    // Two of ten subscribers are on each publisher's island.
    for flow in over(&runs, "norm-multicast") {
        assert_eq!(flow.figures.reliability, Some(0.2), "{}", flow.name);
    }
    for flow in over(&runs, "brtp") {
        let found = flow.figures.reliability.unwrap();
        assert!((0.19..0.4).contains(&found), "{}: {found}", flow.name);
    }
    // A unit waits for the ferry to come to its island, and then for it to come to the receiver's.
    let bound = over(&runs, "disservice-pull")[0].figures.latency_bound_ms.unwrap();
    assert!(bound.max > 150e3 && bound.max < 240e3, "{bound:?}");
}

#[test]
fn routes_that_follow_late_cost_those_that_need_them() {
    let runs = runs("multicast-disrupted-grid.yaml", &["routing.convergence=5s"]);
    assert_eq!(runs.len(), 4);
    over(&runs, "disservice-pull").into_iter().for_each(all_arrive);
    for flow in over(&runs, "disservice-world-state") {
        all_arrive(flow);
        let (found, bound) = (flow.figures.latency_ms.unwrap(), flow.figures.latency_bound_ms.unwrap());
        assert!(found.p99 <= 1.1 * bound.p99, "{}: {found:?} of {bound:?}", flow.name);
    }
    for flow in over(&runs, "norm-multicast") {
        all_arrive(flow);
        let (found, bound) = (flow.figures.latency_ms.unwrap(), flow.figures.latency_bound_ms.unwrap());
        // It is found out 5 s later that a way is back.
        assert!(found.p99 >= bound.p99 + 4e3, "{}: {found:?} of {bound:?}", flow.name);
    }
    for flow in over(&runs, "brtp") {
        let found = flow.figures.reliability.unwrap();
        assert!(found > 0.6 && found < 0.99, "{}: {found}", flow.name);
    }
}
