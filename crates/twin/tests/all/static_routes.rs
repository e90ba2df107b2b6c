//! Routes that the file writes itself.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::common::document;
use hopcast_runner::load_text;
use hopcast_twin::results::Run;
use hopcast_twin::scenario::{Overrides, describe};

/// A short route from `a` to `d` and a long one, and a flow of each version.
fn square(routes: &str) -> String {
    format!(
        "
title: Square
seed: 1
duration: 2 s
topology:
  nodes: [a, b, c, d]
  links:
    - {{ between: [a, b], rate: 10 Mbit/s, delay: 1 ms }}
    - {{ between: [b, d], rate: 10 Mbit/s, delay: 1 ms }}
    - {{ between: [a, c], rate: 10 Mbit/s, delay: 5 ms }}
    - {{ between: [c, d], rate: 10 Mbit/s, delay: 5 ms }}
{routes}
flows:
  - {{ name: four, from: a, to: d, over: udp, app: {{ cbr: {{ rate: 100 kbit/s, size: 500 B }} }} }}
  - {{ name: six, from: a, to: d, over: udp, ip: 6, app: {{ cbr: {{ rate: 100 kbit/s, size: 500 B }} }} }}
"
    )
}

fn run(routes: &str) -> Run {
    document(&square(routes)).runs.into_iter().next().unwrap()
}

/// Whether each flow took the long route: 10 ms and not 2 ms of delay.
fn took_the_long_way(run: &Run) -> [bool; 2] {
    [0, 1].map(|flow| run.flows[flow].figures.latency_ms.as_ref().unwrap().p50 > 10.0)
}

#[test]
fn a_static_route_wins_over_the_shortest_path() {
    assert_eq!(took_the_long_way(&run("")), [false, false]);
    assert_eq!(took_the_long_way(&run("routes: [{ node: a, to: d, via: c }]")), [true, true]);
    assert_eq!(took_the_long_way(&run("routes: [{ node: a, to: default, via: c }]")), [true, true]);
    assert_eq!(took_the_long_way(&run("routes: [{ node: a, to: 10.0.0.0/24, via: c }]")), [true, false]);
    let neighbours = "neighbours: resolve\nroutes: [{ node: a, to: \"fd00::4\", via: c }]";
    assert_eq!(took_the_long_way(&run(neighbours)), [false, true]);
}

#[test]
fn of_static_routes_the_longest_prefix_wins() {
    let routes = "routes: [{ node: a, to: default, via: c }, { node: a, to: 10.0.0.4, via: b }]";
    assert_eq!(took_the_long_way(&run(routes)), [false, true]);
}

#[test]
fn routes_in_a_circle_end_with_the_hop_limit() {
    let run = run("routes: [{ node: a, to: d, via: b }, { node: b, to: d, via: a }]");
    assert!(run.flows.iter().all(|flow| flow.figures.delivered_units == 0));
    let sent: u64 = run.flows.iter().map(|flow| flow.figures.sent_units).sum();
    assert_eq!(run.hosts["hop_limit_exceeded"], sent);
    assert_eq!(run.hosts["forwarded"], 254 * sent, "a hop limit of 255");
}

#[test]
fn a_check_shows_the_routes() {
    let routes = "routes: [{ node: [a, b], to: default, via: d }]";
    let error = load_text(Path::new("t.yaml"), &square(routes), &Overrides::default()).unwrap_err();
    assert!(error.to_string().contains("`d` is no neighbour of `a`, which has `b`, `c`"), "{error}");
    let routes = "routes: [{ node: [b, c], to: 10.0.0.8/29, via: d }, { node: a, to: d, via: c }]";
    let plan = load_text(Path::new("t.yaml"), &square(routes), &Overrides::default()).unwrap();
    let text = describe(&plan);
    let lines =
        "Routes: 3, before shortest paths\n  b: 10.0.0.8/29 via d\n  c: 10.0.0.8/29 via d\n  a: d via c\n";
    assert!(text.contains(lines), "{text}");
}
