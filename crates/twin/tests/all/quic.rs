//! QUIC in the twin: the layers below it, the MTU that its path must have, and its goodput.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::common::{flow, near};
use hopcast_runner::{load_text, run};
use hopcast_twin::Monitor;
use hopcast_twin::scenario::Overrides;

fn one_hop(over: &str, link: &str, app: &str) -> String {
    format!(
        "
title: One hop
seed: 1
duration: 20 s
measure: {{ from: 2 s }}
topology:
  chain: {{ hops: 1, link: {{ {link} }} }}
flows:
  - {{ name: one, from: n0, to: n1, over: {over}, app: {app} }}
"
    )
}

const CLEAN: &str = "rate: 50 Mbit/s, delay: 5 ms";

#[test]
fn a_file_arrives_whole_over_every_stack_with_quic() {
    let file = "{ file: { path: ../../Cargo.lock } }";
    for over in [
        "quic",
        "quic-bbr",
        "{ quic: { receive-window: 64 KiB, idle-timeout: 10 s } }",
        "[quic, udp]",
        "[quic, brtp]",
        "[quic-bbr, udp, tunnel, brtp]",
    ] {
        let flow = flow(&one_hop(over, &format!("{CLEAN}, loss: 5 %, mtu: 1600 B"), file));
        assert_eq!(flow.figures.hash_ok, Some(true), "{over}: {:?}", flow.figures);
        assert!(
            flow.counters.iter().any(|(name, &count)| name.ends_with("handshakes_completed") && count == 2)
        );
    }
}

#[test]
fn a_clean_link_is_filled_to_what_headers_leave() {
    for over in ["quic", "quic-bbr"] {
        let flow = flow(&one_hop(over, CLEAN, "bulk"));
        // 1472 bytes less 32 of QUIC, of a frame of 1514.
        near(flow.figures.goodput_mbps.unwrap(), 50.0 * 1440.0 / 1514.0, 0.02);
    }
}

#[test]
fn a_way_too_narrow_for_quic_is_an_error_that_says_so() {
    let text = one_hop("quic", &format!("{CLEAN}, mtu: 1000 B"), "bulk");
    let plan = load_text(Path::new("test.yaml"), &text, &Overrides::default()).unwrap();
    let error = run(&plan, 1, None, &Monitor::default()).unwrap_err().to_string();
    assert!(error.contains("needs datagrams of 1200 bytes") && error.contains("room for 972"), "{error}");
}

#[test]
fn an_option_that_quic_does_not_have_is_an_error_that_names_those_it_has() {
    let text = one_hop("{ quic: { recieve-window: 1 MiB } }", CLEAN, "bulk");
    let error = load_text(Path::new("test.yaml"), &text, &Overrides::default()).unwrap_err().to_string();
    assert!(error.contains("did you mean `receive-window`"), "{error}");
}
