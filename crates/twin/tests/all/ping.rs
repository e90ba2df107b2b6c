//! `ping` in virtual time: round trips, losses, errors, and the stacks that carry it.

#![allow(clippy::unwrap_used)]

use crate::common::scenarios::plan;
use crate::common::{document, flow, near};
use hopcast_twin::results::{Flow, Run};
use hopcast_twin::scenario::describe;

const RATE: f64 = 10e6;
const DELAY_MS: f64 = 1.0;

/// Ten seconds of pings over a chain of two hops and more.
fn chain(hops: usize, rest: &str, flow: &str) -> String {
    format!(
        "
seed: 1
duration: 10 s
topology: {{ chain: {{ hops: {hops}, link: {{ rate: 10 Mbit/s, delay: 1 ms }} }} }}
{rest}
flows:
  - {{ name: ping, from: n0, to: n{hops}, {flow} }}
"
    )
}

/// The milliseconds of a frame of this length over as many links, there and back.
fn there_and_back(hops: usize, frame: u64) -> f64 {
    2.0 * hops as f64 * (DELAY_MS + frame as f64 * 8.0 / RATE * 1e3)
}

fn run(text: &str) -> Run {
    document(text).runs.remove(0)
}

#[track_caller]
fn takes(flow: &Flow, millis: f64) {
    let figures = &flow.figures;
    let round_trip = figures.round_trip_ms.unwrap();
    near(round_trip.mean, millis, 1e-6);
    near(round_trip.max, millis, 1e-3);
    assert_eq!(figures.reliability, Some(1.0));
    // The one way is not measured, as by the real program.
    assert!(figures.latency_ms.is_none() && figures.jitter_ms.is_none());
    assert_eq!((flow.counters["damaged_units"], flow.counters["ping_errors"]), (0, 0));
}

#[test]
fn a_round_trip_is_serialisation_and_delay_at_each_hop_there_and_back() {
    for hops in [1, 3, 6] {
        for (ip, headers) in [(4, 14 + 20 + 8), (6, 14 + 40 + 8)] {
            for size in [16, 56, 1400] {
                let app = format!("over: ip, ip: {ip}, app: {{ ping: {{ size: {size} B, every: 100 ms }} }}");
                let run = run(&chain(hops, "", &app));
                let flow = &run.flows[0];
                takes(flow, there_and_back(hops, size + headers));
                assert_eq!((flow.figures.sent_units, flow.figures.delivered_units), (100, 100));
                assert_eq!((flow.counters["pings_sent"], flow.counters["pings_answered"]), (100, 100));
                assert_eq!(run.hosts["echoes_answered"], 100);
                near(flow.figures.goodput_mbps.unwrap(), 100.0 * size as f64 * 8.0 / 10.0 / 1e6, 1e-9);
            }
        }
    }
}

#[test]
fn a_ping_without_options_is_that_of_the_program() {
    let text = chain(2, "", "over: ip, app: ping");
    let flow = flow(&text);
    takes(&flow, there_and_back(2, 56 + 42));
    assert_eq!(flow.figures.sent_units, 10);
    let described = describe(&plan(&text));
    assert!(described.contains("ping of 56 B every 1s, from 0s"), "{described}");
}

#[test]
fn a_loss_each_way_leaves_the_square_of_what_passes() {
    let lossy = |loss: &str| {
        let events = format!("events: [{{ at: 0 s, links: all, loss: {loss} }}]");
        flow(&chain(1, &events, "over: ip, app: { ping: { every: 1 ms } }")).figures
    };
    for (loss, pass) in [("5 %", 0.95f64), ("20 %", 0.8)] {
        let figures = lossy(loss);
        assert_eq!(figures.sent_units, 10_000);
        let expected = pass.powi(2);
        // Five standard errors of a binomial share.
        let interval = 5.0 * (expected * (1.0 - expected) / 10_000.0).sqrt();
        let found = figures.reliability.unwrap();
        assert!((found - expected).abs() < interval, "{found} is not {expected} ± {interval}");
    }
}

#[test]
fn several_pings_at_one_node_keep_to_their_own_answers() {
    let run = run("
seed: 1
duration: 10 s
topology:
  nodes: [a, near, far]
  links:
    - { between: [a, near], rate: 10 Mbit/s, delay: 1 ms }
    - { between: [a, far], rate: 10 Mbit/s, delay: 50 ms }
flows:
  - { name: near, from: a, to: near, over: ip, app: { ping: { every: 10 ms } } }
  - { name: far, from: a, to: far, over: ip, app: { ping: { every: 10 ms } } }
  - { name: far6, from: a, to: far, over: ip, ip: 6, app: { ping: { every: 7 ms, start: 3 ms } } }
  - { name: back, from: far, to: a, over: ip, app: { ping: { every: 10 ms, size: 100 B, start: 5 ms } } }
");
    let expected = [2.0, 100.0, 100.0, 100.0];
    for (flow, expected) in run.flows.iter().zip(expected) {
        let round_trip = flow.figures.round_trip_ms.unwrap();
        // Requests and answers of one wait for those of another: less than a millisecond.
        assert!(
            round_trip.mean >= expected && round_trip.max < expected + 1.0,
            "{}: {round_trip:?}",
            flow.name
        );
        assert_eq!(flow.figures.reliability, Some(1.0));
        assert_eq!(flow.counters["pings_ignored"], 0);
    }
    assert!(!run.hosts.contains_key("icmp_ignored"));
}

#[test]
fn pings_to_a_host_that_is_gone_for_a_while_are_errors() {
    let events =
        "events: [{ at: 5005 ms, links: n1-n2, down: true }, { at: 7005 ms, links: n1-n2, up: true }]";
    let run = run(&chain(2, events, "over: ip, app: { ping: { every: 10 ms } }"));
    let flow = &run.flows[0];
    // From 5.01 s to 7 s there is no route, as the sender's own host says.
    assert_eq!((flow.figures.sent_units, flow.figures.delivered_units), (1000, 800));
    assert_eq!((flow.counters["ping_errors"], run.hosts["no_route"]), (200, 200));
    near(flow.figures.round_trip_ms.unwrap().mean, there_and_back(2, 98), 1e-6);
}

#[test]
fn pings_too_big_for_the_way_that_is_left_are_errors() {
    let run = run("
seed: 1
duration: 10 s
topology:
  nodes: [a, b, c]
  links:
    - { between: [a, b], rate: 10 Mbit/s }
    - { between: [a, c], rate: 10 Mbit/s }
    - { between: [c, b], rate: 10 Mbit/s, mtu: 1280 }
events: [{ at: 4995 ms, links: a-b, down: true }]
flows:
  - { name: v4, from: a, to: b, over: ip, app: { ping: { size: 1300 B, every: 100 ms } } }
  - { name: v6, from: a, to: b, over: ip, ip: 6, app: { ping: { size: 1300 B, every: 100 ms } } }
");
    for flow in &run.flows {
        assert_eq!((flow.figures.delivered_units, flow.counters["ping_errors"]), (50, 50), "{}", flow.name);
    }
    assert_eq!(run.hosts["too_big"], 100);
}

#[test]
fn a_ping_keeps_to_its_times() {
    let spans = "over: ip, app: { ping: { every: 100 ms, start: 1 s, stop: 3 s } }";
    assert_eq!(flow(&chain(1, "", spans)).figures.sent_units, 20);
    let events = "
events:
  - { at: 1 s, start: ping }
  - { at: 2 s, stop: ping }
  - { at: 4050 ms, start: ping }
  - { at: 5 s, stop: ping }
";
    let flow = flow(&chain(1, events, "over: ip, app: { ping: { every: 100 ms, start: event } }"));
    assert_eq!((flow.figures.sent_units, flow.figures.delivered_units), (20, 20));
}

#[test]
fn a_ping_over_a_tunnel_is_answered_at_its_other_end() {
    // IP and UDP once more.
    for (ip, headers) in [(4, 14 + 28 + 28), (6, 14 + 48 + 48)] {
        let app = format!("over: tunnel, ip: {ip}, app: {{ ping: {{ every: 100 ms }} }}");
        let run = run(&chain(3, "", &app));
        takes(&run.flows[0], there_and_back(3, 56 + headers));
        assert_eq!(run.flows[0].counters["echoes_answered"], 100);
        assert!(!run.hosts.contains_key("echoes_answered"), "the host saw no request");
    }
}

#[test]
fn a_ping_over_a_code_gets_through_where_a_plain_one_does_not() {
    let lossy = "events: [{ at: 0 s, links: all, loss: 10 % }]";
    let reliability = |over: &str| {
        let app = format!("over: {over}, app: {{ ping: {{ every: 20 ms }} }}");
        flow(&chain(4, lossy, &app)).figures.reliability.unwrap()
    };
    let plain = reliability("ip");
    assert!((0.35..0.52).contains(&plain), "0.9 to the eighth is 0.43, found {plain}");
    let coded = reliability("[tunnel, btp]");
    assert!(coded > 0.99, "{coded}");
}

#[test]
fn a_ping_over_franc_is_answered_at_its_other_end() {
    let flow = flow(
        "
seed: 1
duration: 10 s
topology:
  nodes: [a, b]
  links: [{ medium: [a, b], rate: 12 Mbit/s, mac: csma, loss: 5 % }]
flows:
  - { name: ping, from: a, to: b, over: franc, app: { ping: { every: 50 ms } } }
",
    );
    assert_eq!(flow.counters["echoes_answered"], flow.counters["pings_answered"]);
    let reliability = flow.figures.reliability.unwrap();
    assert!(reliability > 0.99, "{reliability}");
}

#[test]
fn a_ping_of_its_own_size_is_held_to_the_way_there_and_back() {
    let narrow = "over: ip, app: { ping: { size: 1473 B } }";
    let error = crate::common::scenarios::plan_with(&chain(2, "", narrow), &[]).unwrap_err().to_string();
    assert!(error.contains("expected at most 1472 B"), "{error}");
}
