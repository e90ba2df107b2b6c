//! Routers that find their routes themselves, and how long packets are lost when a link or a router fails.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::common::scenarios::scenarios;
use crate::common::{document, frames};
use hopcast_runner::load_text;
use hopcast_twin::results::Run;
use hopcast_twin::scenario::{Overrides, needs_virtual_time};

fn run(text: &str) -> Run {
    document(text).runs.into_iter().next().unwrap()
}

fn host(run: &Run, counter: &str) -> u64 {
    run.hosts.get(counter).copied().unwrap_or(0)
}

/// Rate of datagrams in those below, in a second.
const RATE: f64 = 1000.0;

/// A ring of six routers, hosts on two opposite ones, and 1000 datagrams a second from 10 s to 70 s.
fn ring(ip: u8, (options, rest): (&str, &str)) -> Run {
    let link =
        |n: u32| format!("    - {{ between: [r{n}, r{}], rate: 100 Mbit/s, delay: 2 ms }}\n", (n + 1) % 6);
    let links: String = (0..6).map(link).collect();
    run(&format!(
        "
title: A ring
duration: 70 s
measure: {{ from: 10 s }}
topology:
  nodes: [a, b, {{ name: r, count: 6 }}]
  links:
    - {{ between: [a, r0], rate: 100 Mbit/s, delay: 2 ms }}
    - {{ between: [b, r3], rate: 100 Mbit/s, delay: 2 ms }}
{links}services:
  - {{ name: ls, run: link-state, on: [r0, r1, r2, r3, r4, r5]{options} }}
flows:
  - {{ name: f, from: a, to: b, ip: {ip}, over: udp, app: {{ cbr: {{ rate: 4 Mbit/s, size: 500 B, start: 10 s }} }} }}
{rest}"
    ))
}

/// Time for which datagrams were lost, in seconds.
fn interruption(run: &Run) -> f64 {
    (1.0 - run.flows[0].figures.reliability.unwrap()) * 60.0
}

/// The two ways round the ring are as long; the first link of that which is taken.
fn first_link(run: &Run) -> &'static str {
    if frames(run, "r0", "r1") > 1000 { "r0-r1" } else { "r5-r0" }
}

/// The third link of the way: its fall is news to the first router.
fn third_link(run: &Run) -> &'static str {
    if frames(run, "r0", "r1") > 1000 { "r2-r3" } else { "r3-r4" }
}

#[test]
fn a_link_that_is_cut_interrupts_a_flow_for_the_delay_of_computing_and_its_news() {
    for ip in [4, 6] {
        let calm = ring(ip, ("", ""));
        assert_eq!(interruption(&calm), 0.0);
        for (link, news) in [(first_link(&calm), 0.0), (third_link(&calm), 0.004)] {
            let cut = ring(ip, ("", &format!("events: [{{ at: 20 s, links: {link}, down: true }}]\n")));
            let lost = interruption(&cut);
            // What is on its way past the last router that could turn it round is lost besides.
            assert!((0.199..=0.2 + news + 0.05).contains(&lost), "{link}: {lost}");
            assert!(frames(&cut, "r0", "r1") > 1000 && frames(&cut, "r0", "r5") > 1000);
        }
    }
}

#[test]
fn a_link_that_fails_unseen_interrupts_a_flow_for_the_dead_interval_besides() {
    let options = ", hello: 1 s, dead: 4 s";
    let calm = ring(4, (options, ""));
    let link = first_link(&calm);
    for event in ["loss: 100 %", "down: true"] {
        let options = if event == "down: true" { ", hello: 1 s, carrier: off" } else { options };
        let cut = ring(4, (options, &format!("events: [{{ at: 20 s, links: {link}, {event} }}]\n")));
        let lost = interruption(&cut);
        assert!((3.0..=4.0 + 0.2 + 0.05).contains(&lost), "{event}: {lost}");
    }
}

#[test]
fn a_router_that_stops_is_avoided_and_taken_back_when_it_starts() {
    let calm = ring(6, (", hello: 1 s", ""));
    let router = if first_link(&calm) == "r0-r1" { "r1" } else { "r5" };
    let events = format!(
        "events: [{{ at: 20 s, service: ls, on: {router}, stop: true }}, {{ at: 40 s, service: ls, on: {router}, start: true }}]\n"
    );
    let outage = ring(6, (", hello: 1 s", &events));
    let lost = interruption(&outage);
    // Its neighbours miss it at different times: between the two a computation may hold another.
    assert!((3.0..=4.0 + 0.2 + 1.0 + 0.05).contains(&lost), "{lost}");
    assert_eq!(host(&outage, "ls.restarts"), 1);
    assert!(host(&outage, "ls.link_state_contested") > 0, "its old advertisements are there");
    let (way, other) = if router == "r1" { ("r1", "r5") } else { ("r5", "r1") };
    let share = |node| frames(&outage, "r0", node) as f64 / (60.0 * RATE);
    assert!(share(way) > 0.3 && share(other) > 0.3, "it is taken back: {} {}", share(way), share(other));
}

#[test]
fn packets_cross_as_many_hops_as_by_idealised_routes() {
    let text = |services: &str| {
        let flows: String =
            [("r0c0", "r3c3"), ("r0c3", "r3c0"), ("r1c1", "r2c3"), ("r3c1", "r0c2"), ("r0c0", "r0c1")]
                .iter()
                .enumerate()
                .map(|(n, (from, to))| {
                    let app = "{ cbr: { rate: 100 kbit/s, size: 500 B, start: 15 s } }";
                    format!("  - {{ name: f{n}, from: {from}, to: {to}, over: udp, app: {app} }}\n")
                })
                .collect();
        format!(
            "
title: A grid
duration: 25 s
topology: {{ grid: {{ rows: 4, columns: 4, link: {{ rate: 10 Mbit/s, delay: 1 ms }} }} }}
flows:
{flows}{services}"
        )
    };
    let found = run(&text("services: [{ name: ls, run: link-state, on: all }]\n"));
    let idealised = run(&text(""));
    assert_eq!(host(&found, "forwarded"), host(&idealised, "forwarded"));
    for flow in &found.flows {
        assert_eq!(flow.figures.reliability, Some(1.0));
    }
    assert!(host(&found, "ls.link_state_route_changes") > 0);
}

#[test]
fn costs_follow_rates_and_names() {
    // The direct link is slower by 100 than each of the two of the detour.
    let text = |options: &str| {
        format!(
            "
title: A triangle
duration: 20 s
topology:
  nodes: [a, b, c]
  links:
    - {{ between: [a, b], rate: 1 Mbit/s }}
    - {{ between: [a, c], rate: 100 Mbit/s }}
    - {{ between: [c, b], rate: 100 Mbit/s }}
services: [{{ name: ls, run: link-state, on: all{options} }}]
flows:
  - {{ name: f, from: a, to: b, over: udp, app: {{ cbr: {{ rate: 100 kbit/s, size: 500 B, start: 10 s }} }} }}
"
        )
    };
    for (options, direct) in [
        ("", true),
        (", reference-rate: 100 Mbit/s", false),
        (", costs: { a-b: 21 }", false),
        (", costs: { a-b: 19 }", true),
        (", reference-rate: 100 Mbit/s, costs: { a-b: 1 }", true),
    ] {
        let run = run(&text(options));
        assert_eq!(run.flows[0].figures.reliability, Some(1.0));
        assert_eq!(frames(&run, "a", "b") > 200, direct, "{options}");
    }
}

/// The routers of the thesis on MEADcast in its five areas: a router of two or more digits is in the area of its first.
fn testbed_areas() -> String {
    let text = std::fs::read_to_string(scenarios().join("networks/meadcast-testbed.yaml")).unwrap();
    let mut areas = String::new();
    for line in text.lines().filter_map(|line| line.trim().strip_prefix("- { between: [r")) {
        let (one, rest) = line.split_once(", r").unwrap();
        let (other, _) = rest.split_once(']').unwrap();
        if other.len() > 1 {
            areas.push_str(&format!("r{one}-r{other}: {}, ", &other[..1]));
        }
    }
    for line in text.lines().filter_map(|line| line.trim().strip_prefix("- { name: net")) {
        let (net, _) = line.split_once(',').unwrap();
        areas.push_str(&format!("net{net}: {}, ", &net[..1]));
    }
    format!("{{ {} }}", areas.trim_end_matches(", "))
}

#[test]
fn the_thesis_network_in_its_areas_carries_meadcast_as_by_idealised_routes() {
    let text = |services: &str, start: u32| {
        let network = std::fs::read_to_string(scenarios().join("networks/meadcast-testbed.yaml")).unwrap();
        format!(
            "title: Areas
duration: {} s
measure: {{ from: {start} s }}
groups:
  - {{ name: clients, members: uc1-2, delivery: {{ meadcast: {{ delay: 0s, interval: 0s, max: 20, min-leaves: 1, wait: on }} }} }}
flows:
  - {{ name: f, from: c3001, to: clients, ip: 6, over: udp, app: {{ cbr: {{ rate: 100 kbit/s, size: 500 B, start: {start} s }} }} }}
services:
  - {{ name: mead, run: meadcast-router, on: routers }}
{services}{network}",
            start + 6
        )
    };
    let areas = testbed_areas();
    let found =
        run(&text(&format!("  - {{ name: ls, run: link-state, on: routers, areas: {areas} }}\n"), 20));
    let idealised = run(&text("", 1));
    for run in [&found, &idealised] {
        assert_eq!(run.flows[0].figures.reliability, Some(1.0));
    }
    assert_eq!(host(&found, "ls.link_state_refused_area"), 0);
    assert_eq!(found.flows[0].delivery, idealised.flows[0].delivery, "the same tree");
    assert_eq!(host(&found, "mead.meadcast_copies"), host(&idealised, "mead.meadcast_copies"));
}

#[test]
fn hosts_are_in_the_area_of_the_router_that_they_are_beside() {
    let run = run("
title: Hosts behind routers inside an area
duration: 30 s
measure: { from: 20 s }
topology:
  nodes: [a, r1, r2, r3, h]
  links:
    - { between: [a, r1], rate: 10 Mbit/s }
    - { between: [r1, r3], rate: 10 Mbit/s }
    - { between: [r2, r3], rate: 10 Mbit/s }
    - { between: [r1, r2], rate: 10 Mbit/s }
    - { between: [r3, h], rate: 10 Mbit/s }
services: [{ run: link-state, on: [r1, r2, r3], hello: 1s, areas: { r1-r3: 1, r2-r3: 1 } }]
flows:
  - { name: there, from: a, to: h, over: udp, app: { cbr: { rate: 400 kbit/s, size: 500 B, start: 20 s } } }
  - { name: back, from: h, to: a, over: udp, app: { cbr: { rate: 400 kbit/s, size: 500 B, start: 20 s } } }
");
    for flow in &run.flows {
        assert_eq!(flow.figures.reliability, Some(1.0), "{}", flow.name);
    }
}

fn mistake(options: &str) -> String {
    let text = format!(
        "duration: 1 s
topology: {{ chain: {{ hops: 2 }} }}
flows: [{{ from: n0, to: n2, over: udp, app: {{ cbr: {{ rate: 1 Mbit/s }} }} }}]
services: [{{ run: link-state, on: [n0, n1], {options} }}]
"
    );
    load_text(Path::new("bad.yaml"), &text, &Overrides::default()).unwrap_err().to_string()
}

#[test]
fn options_that_cannot_be_are_one_line() {
    for (options, expected) in [
        ("hello: 2 s, dead: 2 s", "`dead`: expected more than `hello`, 2s, found `2 s`"),
        ("costs: { n0-n1: 0 }", "`costs`: expected a whole number from 1 to 65535, found `0`"),
        (
            "min-origination: 1 s, min-arrival: 1 s",
            "`min-arrival`: expected less than `min-origination`, 1s, found 1s",
        ),
        ("areas: { n0-n9: 1 }", "`areas`: there is no interface or link `n0-n9`"),
    ] {
        let found = mistake(options);
        assert!(found.contains(expected), "{found}");
    }
    // A link of one of its nodes is enough.
    let text = "duration: 1 s
topology: { chain: { hops: 2 } }
flows: [{ from: n0, to: n2, over: udp, app: { cbr: { rate: 1 Mbit/s } } }]
services: [{ run: link-state, on: [n0, n1], areas: { n1-n2: 3 } }]
";
    let plan = load_text(Path::new("good.yaml"), text, &Overrides::default()).unwrap();
    let why = needs_virtual_time(&plan.cases[0].scenario);
    assert_eq!(why.as_deref(), Some("service `link-state0`: `link-state` is for virtual time"));
}
