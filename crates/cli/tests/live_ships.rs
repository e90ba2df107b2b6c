//! Ships on kernels: the emulator follows the same motion as virtual time.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use common::{hopcast, live_run_in, text, twin_run_in};
use hopcast_node::testing::Requirement;
use serde_json::Value;

/// A ship that sails out of range of another after some 5 s: 6,586 m by table 8 of the thesis.
const AWAY: &str = "
duration: 10 s
neighbours: resolve
topology:
  nodes:
    - { name: a, place: { x: 0 m, y: 0 m } }
    - { name: b }
  links: [{ name: sea, radio: [a, b], loss: 0 %, mac: csma }]
motion: [{ node: b, waypoints: [{ at: 0 s, x: 6086 m, y: 0 m }, { at: 10 s, x: 7086 m, y: 0 m }] }]
flows: [{ name: f, from: a, to: b, over: udp, app: { cbr: { rate: 40 kbit/s, size: 100 B, start: 1 s } } }]
";

#[test]
fn live_datagrams_arrive_until_a_ship_is_out_of_range_as_in_virtual_time() {
    for mac in ["csma", "ethernet-like"] {
        let scenario = AWAY.replace("csma", mac);
        let dir = tempfile::tempdir().unwrap();
        let Some(live) = live_run_in(dir.path(), &scenario, &[], &[Requirement::Program("nft")]) else {
            return;
        };
        let twin = twin_run_in(dir.path(), &scenario, &[]);
        let delivered = |run: &Value| run["flows"][0]["delivered_units"].as_u64().unwrap();
        // 50 datagrams a second: two of them are 40 ms, which this machine may take to start.
        assert!((198..=202).contains(&delivered(&twin)), "{mac}: {}", delivered(&twin));
        assert!(delivered(&live).abs_diff(delivered(&twin)) <= 4, "{mac}: {}", delivered(&live));
        assert_eq!(live["maps"], twin["maps"], "the map is a function of the scenario");
        assert_eq!(live["maps"][0]["ships"][1]["node"], "b");
    }
}

#[test]
fn budgets_explain_a_link_and_the_lack_of_one() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("away.yaml"), AWAY).unwrap();
    let budget = |arguments: &[&str]| {
        let output = hopcast(dir.path(), &[&["link-budget", "away.yaml"], arguments].concat());
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, there, _) = budget(&["a", "b", "--at", "1s"]);
    assert_eq!(code, Some(0));
    assert!(there.contains("a and b") && there.contains("1 Mbit/s"), "{there}");
    let (_, gone, _) = budget(&["a", "b", "--at", "9s"]);
    assert!(gone.contains("no link") && gone.contains("dB missing"), "{gone}");
    let (code, _, error) = budget(&["a", "c"]);
    assert_eq!((code, error.lines().count()), (Some(2), 1), "{error}");
    assert!(error.contains("there is no node `c`"), "{error}");
}
