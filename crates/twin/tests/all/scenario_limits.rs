//! Flows that do not fit their network, and the bounds of a scenario.

#![allow(clippy::unwrap_used)] // in what the tests share

use std::path::Path;

use crate::common::scenarios::*;
use hopcast_runner::load_text;
use hopcast_twin::scenario::Overrides;

/// A chain of two hops, of which each link has its own values; then a flow, its error and the column of that.
const UNFIT: &[(&str, &str, &str, &str)] = &[
    (
        "",
        "rate: 1 Mbit/s",
        "over: udp, app: bulk",
        "41: `app`: `bulk` over `udp` saturates its first link, so the links of `n0` need a rate, for example `rate: 300 Mbit/s`",
    ),
    (
        "backward: { rate: 1 Mbit/s }",
        "",
        "over: [udp, tunnel], app: { cbr: { rate: saturate, size: 100 B } }",
        "51: `app`: `cbr` with `rate: saturate` over `udp/tunnel` saturates its first link, so the links of `n0` need a rate, for example `rate: 300 Mbit/s`",
    ),
    ("forward: { rate: 1 Mbit/s }", "", "over: udp, app: { cbr: { rate: saturate } }", "no error"),
    ("", "", "over: [tcp-cubic, tunnel], app: bulk", "no error"),
    (
        "",
        "mtu: 1000",
        "over: udp, app: { cbr: { rate: 1 Mbit/s, size: 973 B } }",
        "41: `size`: expected at most 972 B, what the MTU of 1000 of the link `n1-n2` leaves over `udp` (hosts do not fragment), found 973 B",
    ),
    ("", "mtu: 1000", "over: udp, app: { cbr: { rate: 1 Mbit/s, size: 972 B } }", "no error"),
    (
        "backward: { mtu: 1000 }",
        "mtu: 1400",
        "over: udp, app: { messages: { size: 1000 B, rate: 1 Hz } }",
        "41: `size`: expected at most 972 B, what the MTU of 1000 of the link `n0-n1` leaves over `udp` on the way back (hosts do not fragment), found 1000 B",
    ),
    // `bulk` fills what its route takes, whatever that is.
    ("rate: 1 Mbit/s", "mtu: 1000", "over: udp, app: bulk", "no error"),
    ("", "mtu: 1000", "over: tcp-cubic, app: bulk", "no error"),
    (
        "mtu: 1279",
        "",
        "ip: 6, over: tcp-cubic, app: bulk",
        "29: `ip`: IPv6 needs an MTU of at least 1280 (RFC 8200), and the link `n0-n1` has 1279",
    ),
    (
        "",
        "mtu: 1279",
        "ip: 6, over: tcp-cubic, app: bulk",
        "29: `ip`: IPv6 needs an MTU of at least 1280 (RFC 8200), and the link `n1-n2` has 1279",
    ),
    ("mtu: 1280", "backward: { mtu: 576 }", "ip: 6, over: tcp-cubic, app: bulk", "no error"),
    ("mtu: 1279", "", "ip: 4, over: tcp-cubic, app: bulk", "no error"),
];

#[test]
fn a_flow_that_does_not_fit_its_network_is_told_before_it_runs() {
    for (first, second, flow, expected) in UNFIT {
        let text = format!(
            "duration: 1s
topology:
  nodes: [n0, n1, n2]
  links:
    - {{ between: [n0, n1], {first} }}
    - {{ between: [n1, n2], {second} }}
flows:
  - {{ from: n0, to: n2, {flow} }}
"
        );
        let found = error_of(&text, &Overrides::default());
        let found = found.strip_prefix("bad.yaml:8:").unwrap_or(&found);
        assert_eq!(found, *expected, "{first} | {second} | {flow}");
    }
}

#[test]
fn a_saturating_sender_on_a_medium_needs_its_rate_too() {
    let text = "duration: 1s
topology:
  nodes: [a, b]
  links:
    - { between: [a, b], rate: 1 Mbit/s }
    - { name: air, medium: [a, b] }
flows:
  - { from: a, to: b, over: udp, app: { file: { path: Cargo.toml } } }
";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("bad.yaml");
    let error = load_text(&path, text, &Overrides::default()).map(|_| ()).unwrap_err();
    assert_eq!((error.line, error.column), (8, 39));
    assert_eq!(
        error.message,
        "`app`: `file` over `udp` saturates its first link, so the links of `a` need a rate, for example `rate: 300 Mbit/s`"
    );
}

#[test]
fn a_saturating_sender_needs_a_rate_at_any_time() {
    let text = GOOD.replace("over: tcp-cubic", "over: udp");
    let event = |event: &str| error_of(&text.replace("links: all, loss: 5 %", event), &Overrides::default());
    let why = "the flow `bulk` saturates its first link, so the links of `n0` need a rate at any time";
    assert_eq!(event("links: all, rate: unlimited"), format!("bad.yaml:8:45: `rate`: {why}"));
    assert_eq!(event("from: n1, links: all, rate: unlimited"), "no error");
    assert_eq!(event("links: n1-n2, rate: unlimited"), "no error");
}

#[test]
fn a_path_is_at_most_as_long_as_a_hop_limit_can_be() {
    let text = GOOD.replace("hops: 2", "hops: 300").replace("to: n2", "to: n300");
    let expected = "bad.yaml:10:33: `to`: `n300` is 300 hops from `n0`, and IP's hop limit is 255";
    assert_eq!(error_of(&text, &Overrides::default()), expected);
    // The first flow of the file is named, whichever destination is looked at first.
    let two = format!("{text}  - {{ from: n299, to: n0, over: tcp-cubic, app: bulk }}\n");
    assert_eq!(error_of(&two, &Overrides::default()), expected);
    assert_eq!(error_of(&text.replace("to: n300", "to: n255"), &Overrides::default()), "no error");
}

#[test]
fn a_scenario_has_a_bounded_number_of_flows() {
    let flows = |number: usize| {
        let flow = "  - { from: n0, to: n2, over: tcp-cubic, app: bulk }\n";
        format!("duration: 1s\ntopology: {{ chain: {{ hops: 2 }} }}\nflows:\n{}", flow.repeat(number))
    };
    assert_eq!(error_of(&flows(25_000), &Overrides::default()), "no error");
    let expected = "bad.yaml:25004:5: a scenario has at most 25000 flows, this is one more";
    assert_eq!(error_of(&flows(25_001), &Overrides::default()), expected);
}

#[test]
fn a_medium_has_a_bounded_number_of_stations() {
    let medium = |number: usize| {
        let stations: Vec<_> = (0..number).map(|n| format!("s{n}")).collect();
        let stations = stations.join(", ");
        format!(
            "duration: 1s\ntopology:\n  nodes: [{stations}]\n  links: [{{ name: air, medium: [{stations}] }}]\n\
             flows: [{{ from: s0, to: s1, over: tcp-cubic, app: bulk }}]\n"
        )
    };
    for number in [1, 257] {
        let expected = format!("bad.yaml:4:32: `medium`: expected 2 to 256 stations, found {number}");
        assert_eq!(error_of(&medium(number), &Overrides::default()), expected);
    }
}

#[test]
fn an_unreachable_destination_is_told_at_the_destination() {
    let text = GOOD.replace("  chain:\n", "  nodes: [far]\n  chain:\n").replace("to: n2", "to: far");
    let expected = "bad.yaml:11:33: `to`: no links lead from `n0` to `far`";
    assert_eq!(error_of(&text, &Overrides::default()), expected);
}

#[test]
fn a_sweep_has_a_bounded_number_of_cases() {
    let values: Vec<String> = (0..400).map(|n| n.to_string()).collect();
    let values = values.join(", ");
    let text = format!("{GOOD}sweep:\n  seed: [{values}]\n  topology.chain.hops: [{values}]\n");
    let expected = "bad.yaml:12:3: a sweep has at most 100000 cases, this one has 160000";
    assert_eq!(error_of(&text, &Overrides::default()), expected);
}

#[test]
fn depth_and_size_are_bounded_with_aliases_counted() {
    let deep = format!("a: {}{}", "[".repeat(100), "]".repeat(100));
    let error = error_of(&deep, &Overrides::default());
    assert_eq!(error, "bad.yaml:1:43: lists and maps may be nested 40 deep");
    // Each line is ten of the line before.
    let mut laughs = "a0: &a0 [x, x, x, x, x, x, x, x, x, x]\n".to_owned();
    for n in 1..9 {
        let ten = vec![format!("*a{}", n - 1); 10].join(", ");
        laughs.push_str(&format!("a{n}: &a{n} [{ten}]\n"));
    }
    let error = error_of(&laughs, &Overrides::default());
    assert!(error.ends_with("a scenario has at most 2000000 values, aliases counted"), "{error}");
}
