//! The rate of groups' transports beside a TCP on one bottleneck: between a half and twice what a TCP has in its place.
//!
//! NORM's rate is that of TCP's equation, which is Reno's, and PGMCC's window grows and halves as Reno's does; so Reno
//! is put in their place. Where the TCP beside NORM takes more than its half from a Reno, as CUBIC does on long paths
//! and BBR with short queues, it takes that from NORM too. PGMCC is held beside Reno only.

#![allow(clippy::unwrap_used)] // in helpers of tests too

mod common;

use common::document;

/// Goodput in Mbit/s of the flow under test, `over` a transport to `to`, beside `tcp`; (rate, delay, queue) are the
/// bottleneck's.
fn goodput((rate, delay, queue): (&str, &str, u32), over: &str, to: &str, tcp: &str) -> f64 {
    let receivers: Vec<String> = (1..=10).map(|number| format!("r{number}")).collect();
    let ends: Vec<String> = receivers
        .iter()
        .map(|name| format!("    - {{ between: [right, {name}], rate: 1 Gbit/s }}\n"))
        .collect();
    let mut document = document(&format!(
        "seed: 1
duration: 180 s
measure: {{ from: 80 s }}
topology:
  nodes: [left, right, a, b, c, {}]
  links:
    - {{ between: [left, right], rate: {rate}, delay: {delay}, queue: {queue} packets }}
    - {{ between: [a, left], rate: 1 Gbit/s }}
    - {{ between: [b, left], rate: 1 Gbit/s }}
    - {{ between: [right, c], rate: 1 Gbit/s }}
{}flows:
  - {{ name: tested, from: a, to: {to}, over: {over}, app: {{ bulk: {{ start: 1 s }} }} }}
  - {{ name: beside, from: b, to: c, over: {tcp}, app: {{ bulk: {{ start: 2 s }} }} }}
",
        receivers.join(", "),
        ends.concat()
    ));
    let flows = document.runs.remove(0).flows;
    let tested = flows.iter().find(|flow| flow.name == "tested").unwrap();
    tested.figures.goodput_mbps.unwrap()
}

const GROUP: &str = "[r1, r2, r3, r4, r5, r6, r7, r8, r9, r10], delivery: ip-multicast";

/// The ratio to a Reno in its place is within bounds, beside `tcp` and to each of `to`.
fn is_fair(path: (&str, &str, u32), over: &str, to: &[&str], tcp: &str) {
    let reno = goodput(path, "tcp-reno", "r1", tcp);
    for to in to {
        let tested = goodput(path, over, to, tcp);
        let ratio = tested / reno;
        assert!(
            (0.5..=2.0).contains(&ratio),
            "{path:?}, {over} to {to} beside {tcp}: {tested}, Reno has {reno}"
        );
    }
}

fn norm_is_fair(path: (&str, &str, u32)) {
    is_fair(path, "norm", &["r1", GROUP], "tcp-reno");
    is_fair(path, "norm", &["r1"], "tcp-cubic");
    is_fair(path, "norm", &["r1"], "tcp-bbr");
}

fn pgm_is_fair(path: (&str, &str, u32)) {
    is_fair(path, "pgm", &["r1", GROUP], "tcp-reno");
}

#[test]
fn on_a_short_path_norm_has_a_tcps_share() {
    norm_is_fair(("10 Mbit/s", "5 ms", 10));
}

#[test]
fn on_a_path_of_a_country_norm_has_a_tcps_share() {
    norm_is_fair(("10 Mbit/s", "20 ms", 50));
}

#[test]
fn on_a_path_between_continents_norm_has_a_tcps_share() {
    norm_is_fair(("10 Mbit/s", "50 ms", 100));
}

#[test]
fn on_a_slow_path_norm_has_a_tcps_share() {
    norm_is_fair(("1 Mbit/s", "20 ms", 10));
}

#[test]
fn on_a_slow_short_path_pgm_has_a_tcps_share() {
    pgm_is_fair(("1 Mbit/s", "10 ms", 10));
}

#[test]
fn on_a_slow_path_of_a_continent_pgm_has_a_tcps_share() {
    pgm_is_fair(("1 Mbit/s", "50 ms", 50));
}

#[test]
fn on_a_slow_path_between_continents_pgm_has_a_tcps_share() {
    pgm_is_fair(("1 Mbit/s", "100 ms", 50));
}

#[test]
fn on_a_short_path_pgm_has_a_tcps_share() {
    pgm_is_fair(("10 Mbit/s", "10 ms", 10));
}

#[test]
fn on_a_path_of_a_continent_pgm_has_a_tcps_share() {
    pgm_is_fair(("10 Mbit/s", "50 ms", 50));
}

#[test]
fn on_a_path_between_continents_pgm_has_a_tcps_share() {
    pgm_is_fair(("10 Mbit/s", "100 ms", 50));
}
