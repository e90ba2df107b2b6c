//! Hosts that ask for their neighbours' Ethernet addresses, in whole scenarios.

#![allow(clippy::unwrap_used)]

use crate::common::document;
use hopcast_twin::results::Run;

/// A chain of three hosts, a switch of four and a medium of three, in a row, with a flow of each version from end to
/// end.
fn network(neighbours: &str, more: &str) -> String {
    format!(
        "
title: Neighbours
seed: 1
duration: 5 s
{neighbours}
topology:
  nodes: [a, b, c, d, e, f]
  links:
    - {{ between: [a, b], rate: 10 Mbit/s, delay: 10 ms }}
    - {{ name: lan, switch: [b, c, d], rate: 10 Mbit/s, delay: 10 ms }}
    - {{ name: air, medium: [d, e, f], rate: 10 Mbit/s, delay: 10 ms }}
flows:
  - {{ name: four, from: a, to: f, over: udp, app: {{ messages: {{ size: 100 B, every: 500 ms }} }} }}
  - {{ name: six, from: a, to: f, over: udp, ip: 6, app: {{ messages: {{ size: 100 B, every: 500 ms }} }} }}
{more}
"
    )
}

fn run(text: &str) -> Run {
    document(text).runs.into_iter().next().unwrap()
}

fn host(run: &Run, counter: &str) -> u64 {
    run.hosts.get(counter).copied().unwrap_or(0)
}

#[test]
fn the_first_message_waits_for_an_answer_on_each_link_and_the_others_for_none() {
    let (planned, resolved) = (run(&network("", "")), run(&network("neighbours: resolve", "")));
    for (planned, resolved) in planned.flows.iter().zip(&resolved.flows) {
        let (planned, resolved) = (&planned.figures, &resolved.figures);
        assert_eq!(resolved.delivered_units, planned.delivered_units);
        let (before, after) = (planned.latency_ms.as_ref().unwrap(), resolved.latency_ms.as_ref().unwrap());
        // Three round trips of 20 ms on the way there; who was asked knows who asked, so that none is needed back.
        let waited = after.max - before.max;
        assert!((60.0..63.0).contains(&waited), "{waited} ms");
        assert!((after.p50 - before.p50).abs() < 0.1, "{after:?} {before:?}");
    }
    // Both versions, on three links: a question each, and 5 s after the first echo a probe of who had only asked.
    assert_eq!(host(&resolved, "neighbour_requests_sent"), 12);
    assert_eq!(host(&resolved, "neighbour_requests_answered"), 12);
    assert_eq!(host(&resolved, "neighbours_resolved"), 6);
    assert_eq!(host(&planned, "neighbour_requests_sent"), 0);
}

#[test]
fn a_link_that_loses_every_answer_ends_in_errors_to_the_sender() {
    let run = run(&network("neighbours: resolve", "events: [{ at: 0 s, links: lan, loss: 100 % }]"));
    // Both versions, twice in 5 s: three seconds for each attempt, from the first message on.
    assert_eq!(host(&run, "neighbours_failed"), 4);
    assert!(host(&run, "unresolved") >= 6, "{:?}", run.hosts);
    assert_eq!(host(&run, "errors_received"), host(&run, "unresolved"));
    assert!(run.flows.iter().all(|flow| flow.figures.delivered_units == 0));
}

#[test]
fn losses_delay_the_beginning_and_nothing_waits_for_ever() {
    let lossy = network("neighbours: resolve", "events: [{ at: 0 s, links: all, loss: 30 % }]");
    let run = run(&lossy.replace("seed: 1", "seed: 4"));
    for flow in &run.flows {
        assert!(flow.figures.delivered_units > 0, "{:?}", flow.figures);
    }
    assert!(host(&run, "neighbour_requests_sent") > 6, "{:?}", run.hosts);
}

#[test]
fn groups_are_reached_without_asking_anybody() {
    let text = "
title: Group
seed: 1
duration: 2 s
neighbours: resolve
topology:
  nodes: [a, b, c]
  links: [{ name: lan, switch: [a, b, c], rate: 10 Mbit/s, delay: 1 ms }]
groups: [{ name: both, members: [b, c], delivery: ip-multicast }]
flows: [{ name: f, from: a, to: both, over: udp, app: { cbr: { rate: 100 kbit/s, size: 500 B } } }]
";
    let run = run(text);
    assert_eq!(host(&run, "neighbour_requests_sent"), 0);
    assert!(run.flows[0].figures.delivered_units > 40);
}
