//! Nothing is said to carry more than its network can.

#![allow(clippy::unwrap_used)]

mod common;

use common::document;
use hopcast_twin::results::{Flow, Run};

/// Two hops of 20 Mbit/s with a queue that the first burst overflows, for each window by its start and length in seconds.
fn two_hops(over: &str, loss: &str, app: &str, windows: &[(f64, f64)]) -> Vec<Run> {
    let list = |of: &dyn Fn(&(f64, f64)) -> f64| {
        windows.iter().map(|window| format!("{:.2}s", of(window))).collect::<Vec<_>>().join(", ")
    };
    let (from, to) = (list(&|(from, _)| *from), list(&|(from, length)| from + length));
    document(&format!(
        "
title: Two hops
seed: 3
duration: 1s
measure: {{ interval: 50ms }}
topology:
  chain: {{ hops: 2, link: {{ rate: 20 Mbit/s, delay: 10ms, loss: {loss}, queue: 60 packets }} }}
flows:
  - {{ name: flow, from: n0, to: n2, over: {over}, app: {app} }}
sweep: {{ zip: {{ measure.from: [{from}], measure.to: [{to}], duration: [{to}] }} }}
"
    ))
    .runs
}

const WINDOWS: [(f64, f64); 9] = [
    (0.0, 0.2),
    (0.3, 0.2),
    (0.4, 0.2),
    (0.45, 1.0),
    (0.5, 2.0),
    (0.6, 0.2),
    (0.8, 1.0),
    (0.9, 0.2),
    (0.5, 10.0),
];

const STREAMS: [&str; 10] = [
    "tcp-cubic",
    "tcp-bbr",
    "split-bbr",
    "quic",
    "quic-bbr",
    "kcp",
    "hop-arq",
    "brtp",
    "[tcp-cubic, bats-proxy]",
    "[tcp-cubic, tunnel, btp]",
];

/// What was released within the window, in Mbit/s, by the time series.
fn released(run: &Run, (from, length): (f64, f64)) -> f64 {
    let steps = |seconds: f64| (seconds / run.series.step_s).round() as usize;
    let (_, goodput) = &run.series.flows[0];
    let sum: f64 = goodput.iter().skip(steps(from)).take(steps(length)).sum();
    sum / steps(length) as f64
}

#[test]
fn no_stream_carries_more_than_its_bound_in_any_window() {
    let mut released_more = 0;
    for over in STREAMS {
        for loss in ["0 %", "3 %"] {
            for (run, window) in two_hops(over, loss, "bulk", &WINDOWS).iter().zip(WINDOWS) {
                let Flow { figures, .. } = &run.flows[0];
                let goodput = figures.goodput_mbps.unwrap();
                let share = figures.payload_bound_fraction.unwrap();
                assert!(share <= 1.0, "{over} at {loss}, {window:?}: {share}");
                // Of all cuts no more than their wire rate, whatever payload is taken to be.
                let cut = if loss == "0 %" { 20.0 } else { 20.0 * 0.97 };
                assert!(goodput <= cut, "{over} at {loss}, {window:?}: {goodput}");
                assert!(figures.min_cut_fraction.unwrap() <= share);
                let released = released(run, window);
                released_more += u32::from(share > 0.999 && released > goodput * 1.01);
                // Over a long window what is held back at its ends matters little.
                let alike = (0.97..1.03).contains(&(goodput / released));
                assert!(window.1 < 10.0 || alike, "{over} at {loss}: {goodput} of {released}");
            }
        }
    }
    assert!(released_more > 0, "no window held a burst that puts the rule to the test");
}

#[test]
fn what_had_crossed_before_a_change_of_rate_does_not_count_after_it() {
    let runs = document(
        "
title: From fast to slow
duration: 9s
measure: { from: 5s, to: 7s }
topology: { chain: { hops: 2, link: { rate: 50 Mbit/s, delay: 100ms, queue: 2000 packets } } }
events:
  - { at: 5s, links: all, rate: 2 Mbit/s }
  - { at: 6s, links: all, rate: 1 Mbit/s }
flows:
  - { name: flow, from: n0, to: n2, over: quic-bbr, app: bulk }
",
    )
    .runs;
    // What was under way at the start of the window is more than what can cross in it.
    let released = 2.0 * released(&runs[0], (5.0, 2.0));
    let share = runs[0].flows[0].figures.payload_bound_fraction.unwrap();
    assert!(released > 3.0 && share > 0.5 && share <= 1.0, "{released} Mbit, {share}");
}

#[test]
fn a_group_is_held_against_what_its_worst_placed_member_can_have() {
    let runs = document(
        "
title: A fast and a slow branch
duration: 6s
measure: { from: 1s }
topology:
  nodes: [a, r, b, c]
  links:
    - { between: [a, r], rate: 20 Mbit/s }
    - { between: [r, b], rate: 10 Mbit/s }
    - { between: [r, c], rate: 2 Mbit/s }
flows:
  - { name: flow, from: a, to: [b, c], over: btp, app: { cbr: { rate: 8 Mbit/s, size: 1000 B } } }
",
    )
    .runs;
    let figures = &runs[0].flows[0].figures;
    assert!(figures.min_cut_fraction.unwrap() <= 1.0, "{figures:?}");
}
