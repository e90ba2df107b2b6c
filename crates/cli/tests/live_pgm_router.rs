//! Network elements of PGM on kernels: repairs stay in the branch that lost something, for our members and OpenPGM's.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use std::path::Path;

use common::{live_run_in, tshark};
use hopcast_node::testing::Requirement;
use serde_json::Value;

/// Sends 300 kB from `s` behind r0 to `a` behind r1, which loses nothing, and to `b` behind r0, which loses 5 %.
fn tree(flow: &str, services: &str, needs: &[Requirement<'_>]) -> Option<Value> {
    let dir = tempfile::tempdir().unwrap();
    tree_in(dir.path(), &[], flow, services, needs)
}

/// The same, in a directory, with further arguments.
fn tree_in(
    dir: &Path,
    arguments: &[&str],
    flow: &str,
    services: &str,
    needs: &[Requirement<'_>],
) -> Option<Value> {
    let scenario = format!(
        "title: t
duration: 40 s
topology:
  nodes: [s, r0, r1, a, b]
  links:
    - {{ between: [s, r0], rate: 10 Mbit/s, delay: 2 ms }}
    - {{ between: [r0, r1], rate: 10 Mbit/s, delay: 2 ms }}
    - {{ between: [r1, a], rate: 10 Mbit/s, delay: 2 ms }}
    - {{ between: [r0, b], rate: 10 Mbit/s, delay: 2 ms, loss: 5 % }}
groups: [{{ name: g, members: [a, b], delivery: ip-multicast }}]
variants: {{ packets: {{ pgm: {{ rate: 2 Mbit/s, parity: 0 }} }} }}
{services}
flows: [{{ name: f, from: s, to: g, {flow} }}]
"
    );
    let run = live_run_in(dir, &scenario, arguments, &[&[Requirement::Program("nft")], needs].concat())?;
    assert_eq!(run["flows"][0]["reliability"], 1.0, "{}", run["flows"][0]);
    Some(run)
}

const ELEMENTS: &str = "services: [{ name: pgm, run: pgm-router, on: [r0, r1] }]";
const OURS: &str = "over: packets, app: { bulk: { bytes: 300 kB, start: 1 s } }";
const OPENPGM: &str = "over: udp, app: { openpgm: { bytes: 300 kB, start: 1 s } }";

/// Frames from a node to another.
fn frames(run: &Value, from: &str, to: &str) -> u64 {
    let links = run["links"].as_array().unwrap();
    let link = links.iter().find(|link| link["from"] == from && link["to"] == to).unwrap();
    link["sent_packets"].as_u64().unwrap()
}

fn element(run: &Value, name: &str) -> u64 {
    run["hosts"][format!("pgm.element_{name}")].as_u64().unwrap_or(0)
}

#[test]
fn on_kernels_a_loss_behind_one_branch_puts_no_repair_on_another() {
    let Some(run) = tree(OURS, ELEMENTS, &[]) else { return };
    let counter = |name: &str| run["flows"][0]["counters"][name].as_u64().unwrap();
    let (data, repairs, spms) =
        (counter("data_packets_sent"), counter("repair_packets_sent"), counter("spms_sent"));
    assert!(repairs > 2 && element(&run, "repairs") > 0, "{run}");
    // What crosses the branch without losses is data and SPMs, and nobody there asks.
    for (from, to) in [("r0", "r1"), ("r1", "a")] {
        assert!((data + 1..=data + spms).contains(&frames(&run, from, to)), "{from} to {to}: {run}");
        assert_eq!(frames(&run, to, from), 0, "{to} to {from}");
    }
    assert!(frames(&run, "r0", "b") >= data + repairs, "{run}");
    // The element asks the source once for each request that it has confirmed.
    assert_eq!(frames(&run, "r0", "s"), element(&run, "naks_sent"));
    let Some(without) = tree(OURS, "", &[]) else { return };
    let again = without["flows"][0]["counters"]["repair_packets_sent"].as_u64().unwrap();
    assert!(again > 2 && frames(&without, "r1", "a") >= data + again, "{without}");
}

#[test]
fn on_ip_itself_elements_repair_in_both_versions_and_routers_are_alerted_to_what_they_look_at() {
    let raw = OURS.replace("over: packets", "over: [packets, raw-ip]");
    for (version, alert) in [(4, "ip.opt.ra"), (6, "ipv6.opt.router_alert")] {
        let dir = tempfile::tempdir().unwrap();
        let flow = format!("{raw}, ip: {version}");
        let needs = [Requirement::Program("tshark")];
        let arguments = ["--capture", "b"];
        let Some(run) = tree_in(dir.path(), &arguments, &flow, ELEMENTS, &needs) else { return };
        assert!(element(&run, "repairs") > 2 && element(&run, "requests_unknown") == 0, "{run}");
        assert_eq!(frames(&run, "a", "r1"), 0, "nobody there asks");
        assert_eq!(frames(&run, "r0", "s"), element(&run, "naks_sent"));
        let file = dir.path().join("out/captures/case-000-repeat-000.pcapng");
        let count = |filter: &str| {
            let arguments = ["-Y", filter, "-T", "fields", "-e", "frame.number"];
            tshark(&file, &arguments).unwrap().lines().count()
        };
        // RFC 3208, section 8: SPM 0, ODATA 4, RDATA 5, NAK 8, NCF 10.
        for kind in [0, 5, 10] {
            assert!(count(&format!("pgm.hdr.type == {kind} && {alert}")) > 0, "type {kind}, IPv{version}");
            assert_eq!(count(&format!("pgm.hdr.type == {kind} && !{alert}")), 0, "type {kind}, IPv{version}");
        }
        assert!(count("pgm.hdr.type == 4") > 200 && count("pgm.hdr.type == 8") > 0);
        assert_eq!(count(&format!("(pgm.hdr.type == 4 || pgm.hdr.type == 8) && {alert}")), 0);
        assert_eq!(count("udp"), 0);
        assert_eq!(count("_ws.malformed"), 0, "tshark reads all");
    }
}

#[test]
fn members_of_openpgm_are_repaired_through_elements_in_their_branch_alone() {
    let openpgm =
        [Requirement::Program("c++"), Requirement::Library("pgm", "/usr/include/pgm-5.3/pgm/pgm.h")];
    let Some(run) = tree(OPENPGM, ELEMENTS, &openpgm) else { return };
    let repairs = element(&run, "repair_copies");
    assert!(repairs > 2 && element(&run, "requests_unknown") == 0, "{run}");
    // Nothing is lost on the way to r0, so what it has beyond the other branch's is confirmed or repaired.
    let (before, other) = (frames(&run, "s", "r0"), frames(&run, "r1", "a"));
    assert!(before >= other + repairs, "{before} frames of the source, {other} in the other branch: {run}");
    assert_eq!(frames(&run, "a", "r1"), 0, "nobody there asks");
}
