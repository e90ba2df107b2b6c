//! Random networks under random traffic: whatever links do, nothing wrong is delivered, and watching changes nothing.

use std::path::Path;

use crate::common::document;
use hopcast_runner::{load_text, run};
use hopcast_twin::Monitor;
use hopcast_twin::scenario::Overrides;
use proptest::prelude::*;

fn loss() -> impl Strategy<Value = String> {
    prop_oneof![
        Just("none".to_owned()),
        (0u32..30).prop_map(|percent| format!("{percent} %")),
        (1u32..10, 20u32..90, 0u32..50).prop_map(|(p, r, h)| format!(
            "{{ gilbert-elliott: {{ p: {p} %, r: {r} %, k: 100 %, h: {h} % }} }}"
        )),
        (1u32..5, 20u32..50, 5u32..20).prop_map(|(p13, p31, p32)| {
            format!("{{ four-state: {{ p13: {p13} %, p31: {p31} %, p32: {p32} %, p23: 30 %, p14: 1 % }} }}")
        }),
    ]
}

/// One direction of a link. Only one link of a path may flip bits: two flips in one packet can cancel in the sum of
/// 16-bit words that UDP and TCP carry, and then no receiver could tell.
fn direction(may_corrupt: bool) -> impl Strategy<Value = String> {
    let corrupt = 0u32..if may_corrupt { 3 } else { 1 };
    let queue = prop_oneof![
        Just("1000 packets"),
        Just("3 packets"),
        Just("20 kB"),
        Just("{ codel: { target: 5ms, interval: 100ms } }"),
    ];
    let jitter = prop_oneof![Just("none"), Just("2 ms"), Just("{ normal: 1 ms }")];
    (1u32..50, 0u32..20, loss(), queue, jitter, any::<bool>(), 0u32..3, corrupt).prop_map(
        |(rate, delay, loss, queue, jitter, reorder, duplicate, corrupt)| {
            format!(
                "rate: {rate} Mbit/s, delay: {delay} ms, loss: {loss}, queue: {queue}, jitter: {jitter}, \
                 reorder: {reorder}, duplicate: {duplicate} %, corrupt: {corrupt} %"
            )
        },
    )
}

fn link(from: usize) -> impl Strategy<Value = String> {
    let duplex = prop_oneof![Just("full"), Just("half")];
    (direction(from == 0), direction(from == 0), duplex).prop_map(move |(forward, backward, duplex)| {
        let ends = format!("[n{from}, n{}]", from + 1);
        format!("    - {{ between: {ends}, duplex: {duplex}, forward: {{ {forward} }}, backward: {{ {backward} }} }}\n")
    })
}

fn flow() -> impl Strategy<Value = String> {
    let datagrams = prop_oneof![
        Just("app: { cbr: { rate: 2 Mbit/s, size: 700 B } }"),
        Just("app: { messages: { size: 64 B, every: 7 ms } }"),
        Just("app: { bulk: { bytes: 100 kB } }"),
    ];
    let streams = prop_oneof![
        Just("app: bulk"),
        Just("app: { bulk: { bytes: 100 kB, start: 300 ms } }"),
        Just("app: { messages: { size: 5000 B, every: 20 ms } }"),
    ];
    let transport = prop_oneof![Just("tcp-cubic"), Just("tcp-bbr"), Just("[tcp-cubic, tunnel, udp]")];
    let over = prop_oneof![
        (Just("udp"), datagrams).prop_map(|(over, app)| format!("over: {over}, {app}")),
        (transport, streams).prop_map(|(over, app)| format!("over: {over}, {app}")),
    ];
    (over, any::<bool>(), prop_oneof![Just("4"), Just("6")]).prop_map(|(over, backwards, ip)| {
        let ends = if backwards { "from: last, to: n0" } else { "from: n0, to: last" };
        format!("{ends}, {over}, ip: {ip}")
    })
}

fn scenario() -> impl Strategy<Value = String> {
    (1usize..5).prop_flat_map(|hops| {
        let links: Vec<_> = (0..hops).map(link).collect();
        (links, prop::collection::vec(flow(), 1..5), any::<u32>()).prop_map(move |(links, flows, seed)| {
            let nodes: Vec<_> = (0..=hops).map(|node| format!("n{node}")).collect();
            let flows: String = (flows.iter().enumerate())
                .map(|(number, flow)| format!("  - {{ name: f{number}, {} }}\n", flow.replace("last", &format!("n{hops}"))))
                .collect();
            format!(
                "title: Random\nseed: {seed}\nduration: 2 s\ntopology:\n  nodes: [{}]\n  links:\n{}flows:\n{flows}",
                nodes.join(", "),
                links.concat()
            )
        })
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn nothing_wrong_is_ever_delivered(text in scenario()) {
        let document = document(&text);
        for flow in &document.runs[0].flows {
            let figures = &flow.figures;
            prop_assert_eq!(flow.counters["damaged_units"], 0, "{} over {}", flow.name, flow.protocol);
            prop_assert!(figures.delivered_units <= figures.sent_units, "{:?}", figures);
        }
        for link in &document.runs[0].links {
            prop_assert!(link.utilisation.is_none_or(|share| share <= 1.0 + 1e-9), "{:?}", link);
        }
    }

    #[test]
    fn a_capture_changes_nothing(text in scenario()) {
        let dir = tempfile::tempdir().unwrap();
        let captured = Overrides { sets: vec!["capture=all".to_owned()], ..Overrides::default() };
        let plan = load_text(Path::new("test.yaml"), &text, &captured).unwrap();
        let watched = run(&plan, 1, Some(dir.path()), &Monitor::default()).unwrap();
        prop_assert_eq!(watched.runs, document(&text).runs);
    }
}
