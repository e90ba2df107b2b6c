//! The rate of a flow over a medium whose stations hear only some of the others: its bound, and the simulated one.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::common::{flow, near};
use hopcast_runner::load_text;
use hopcast_twin::scenario::{Overrides, capacity};
use proptest::prelude::*;

/// The bound of the first flow in Mbit/s.
fn bound(text: &str) -> f64 {
    let plan = load_text(Path::new("test.yaml"), text, &Overrides::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let scenario = &plan.cases[0].scenario;
    capacity(scenario, scenario.flows[0].from, scenario.flows[0].to[0]).unwrap() / 1e6
}

/// Simulated rate of the first flow, in Mbit/s of frames.
fn simulated(text: &str) -> f64 {
    flow(text).figures.goodput_mbps.unwrap() * 1514.0 / 1472.0
}

/// Stations `n0` to the last of `n` on a medium of 10 Mbit/s, and a flow from the first to the last.
fn air(n: usize, mac: &str, hears: &[(usize, usize)], more: &str) -> String {
    let names: Vec<String> = (0..n).map(|i| format!("n{i}")).collect();
    let hears: Vec<String> = hears.iter().map(|(a, b)| format!("{{ from: n{a}, to: n{b} }}")).collect();
    let (stations, hears) = (names.join(", "), hears.join(", "));
    format!(
        "duration: 4 s
topology:
  nodes: [{stations}]
  links:
    - {{ name: air, medium: [{stations}], rate: 10 Mbit/s, mac: {mac}, hears: [{hears}]{more} }}
flows: [{{ from: n0, to: n{}, over: udp, app: {{ cbr: {{ rate: saturate, size: 1472 B }} }} }}]
",
        n - 1
    )
}

fn row(n: usize) -> Vec<(usize, usize)> {
    (1..n).flat_map(|i| [(i - 1, i), (i, i - 1)]).collect()
}

#[test]
fn on_a_row_of_stations_every_third_hop_can_be_crossed_at_once() {
    for (n, parts) in [(2, 1.0), (3, 2.0), (4, 3.0), (5, 3.0), (9, 3.0)] {
        near(bound(&air(n, "csma", &row(n), "")), 10.0 / parts, 1e-6);
        // Without contention one station sends at a time, whoever hears it.
        near(bound(&air(n, "perfect", &row(n), "")), 10.0 / (n - 1) as f64, 1e-6);
    }
}

#[test]
fn stations_in_hearing_of_one_receiver_share_its_time() {
    // Two ways of two hops, whose relays do not hear each other: while the one sends, the other receives.
    let apart = [(0, 1), (1, 0), (0, 2), (2, 0), (1, 3), (3, 1), (2, 3), (3, 2)];
    near(bound(&air(4, "csma", &apart, "")), 10.0, 1e-6);
    let mut together = apart.to_vec();
    together.extend([(1, 2), (2, 1)]);
    near(bound(&air(4, "csma", &together, "")), 5.0, 1e-6);
    // What is lost is sent again, by both: 1 / 0.8 on each hop, of 10 Mbit/s.
    near(bound(&air(3, "csma", &row(3), ", loss: 20 %")), 4.0, 1e-6);
}

#[test]
fn what_goes_past_the_medium_is_not_bounded_by_it() {
    let past = |rate: u64| {
        let wire = format!("    - {{ between: [n0, n2], rate: {rate} Mbit/s }}\nflows:");
        air(3, "csma", &row(3), "").replace("flows:", &wire)
    };
    near(bound(&past(7)), 12.0, 1e-6);
    // A wire to a relay spares the flow a hop.
    let spared =
        air(3, "csma", &row(3), "").replace("flows:", "    - { between: [n0, n1], rate: 1 Gbit/s }\nflows:");
    near(bound(&spared), 10.0, 1e-6);
}

#[test]
fn a_schedule_without_contention_reaches_the_bound() {
    for n in [2, 3, 5] {
        let text = air(n, "perfect", &row(n), "");
        let bound = bound(&text);
        // Just below it nothing waits, and all arrives.
        let payload = bound * 0.99 * 1472.0 / 1514.0 * 1e3;
        near(simulated(&text.replace("saturate", &format!("{payload:.0} kbit/s"))), bound * 0.99, 0.005);
    }
}

fn mac() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("perfect"),
        Just("csma"),
        // Nothing is spent on contention, and stations that hear each other begin at once.
        Just("{ csma: { cw-min: 0, cw-max: 0, overhead: 0us, ack: 0us, sifs: 0us, difs: 0us, slot: 1us } }"),
        Just("{ csma: { overhead: 0us, ack: 1us, sifs: 1us, difs: 3us, slot: 2us } }"),
        Just("{ csma: { cw-min: 1, cw-max: 7, overhead: 0us, ack: 1us, sifs: 1us, difs: 1us, slot: 1us } }"),
        Just(
            "{ csma: { rts: 100 B, cw-min: 3, cw-max: 31, overhead: 1us, ack: 1us, sifs: 1us, difs: 3us, slot: 2us } }"
        ),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn no_run_gets_across_more_than_the_bound(
        n in 2usize..14,
        mac in mac(),
        some in prop::collection::vec((0usize..14, 0usize..14, any::<bool>()), 0..10),
        straight in prop::bool::weighted(0.8),
        rate in prop_oneof![Just("saturate"), Just("2 Mbit/s"), Just("1 Mbit/s")],
    ) {
        let mut hears = if straight { row(n) } else { Vec::new() };
        for (from, to, both) in some {
            let pairs = [(from % n, to % n), (to % n, from % n)];
            hears.extend(pairs.into_iter().take(1 + usize::from(both)).filter(|(from, to)| from != to));
        }
        hears.sort_unstable();
        hears.dedup();
        prop_assume!(!hears.is_empty());
        let text = air(n, mac, &hears, "").replace("saturate", rate);
        let bound = bound(&text);
        prop_assume!(bound > 0.0);
        let found = simulated(&text);
        prop_assert!(found <= bound + 1e-6, "{found} beyond {bound} Mbit/s\n{text}");
    }
}
