//! `hopcast probe --live`: the staged checks with real packets, over sound networks and over faults.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;

use common::{hopcast, text};
use hopcast_node::testing::{Requirement, require};
use serde_json::Value;

const TAG: &str = include_str!("../../../scenarios/faults/port-without-tag.yaml");

/// A link that carries one way alone, beside a sound one to a member of a group.
const ONE_WAY: &str = "\
title: One way
duration: 5 s
topology:
  nodes: [a, r, b, c]
  links:
    - { between: [a, r], rate: 10 Mbit/s, delay: 1 ms }
    - { between: [r, b], rate: 10 Mbit/s, delay: 1 ms, loss: 30 % }
    - { name: deaf, between: [r, c], rate: 10 Mbit/s, delay: 1 ms, backward: { loss: 100 % } }
groups: [{ name: film, members: [b], delivery: ip-multicast }]
flows:
  - { name: f, from: a, to: film, over: udp, app: { cbr: { rate: 100 kbit/s } } }
  - { name: g, from: a, to: c, over: ip, app: { ping: { every: 500 ms } } }
";

/// The findings of `hopcast probe --live` and its exit code, each with the first line that it prints of a failure.
fn probed(scenario: &str, arguments: &[&str]) -> Option<(Value, Option<i32>, String)> {
    let needs =
        [Requirement::Root, Requirement::Tun, Requirement::Program("ip"), Requirement::Program("setpriv")];
    if !require(&needs) {
        return None;
    }
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("s.yaml"), scenario).unwrap();
    let output = hopcast(dir.path(), &[&["probe", "s.yaml", "--live", "--json"], arguments].concat());
    let errors = text(&output.stderr);
    let findings = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{errors}"));
    Some((findings, output.status.code(), errors))
}

/// The checks that failed: stage, from, to.
fn failed(findings: &Value) -> Vec<[String; 3]> {
    let checks = findings["checks"].as_array().unwrap().iter();
    let name = |check: &Value, key: &str| check[key].as_str().unwrap().to_owned();
    checks
        .filter(|check| check["passed"] == false)
        .map(|check| ["stage", "from", "to"].map(|key| name(check, key)))
        .collect()
}

/// The number of checks of a stage.
fn of_stage(findings: &Value, stage: &str) -> usize {
    findings["checks"].as_array().unwrap().iter().filter(|check| check["stage"] == stage).count()
}

#[test]
fn live_each_vlan_passes_until_a_port_does_not_admit_its_tag() {
    let whole = TAG.replace("trunk: { tagged: 5 }", "trunk: { tagged: [5, 7] }");
    assert_ne!(whole, TAG);
    let Some((sound, code, errors)) = probed(&whole, &["--at", "1s"]) else { return };
    assert_eq!((failed(&sound), code), (Vec::new(), Some(0)), "{sound} {errors}");
    assert_eq!((of_stage(&sound, "links"), of_stage(&sound, "vlans")), (5 * 2 * 2, 2 * 2));

    let (fault, code, errors) = probed(TAG, &["--at", "1s"]).unwrap();
    assert_eq!(code, Some(1));
    let failed = failed(&fault);
    assert_eq!(failed[0], ["vlans", "b", "d"], "{failed:?}");
    assert!(failed[1..].iter().all(|[stage, from, to]| stage == "end-to-end" && from == "b" && to == "d"));
    assert!(errors.starts_with("VLANs: b to d over VLAN 7 of "), "{errors}");
    let why = ["ARP request from b for d ", ": t left it to others"];
    assert!(why.iter().all(|part| errors.contains(part)), "{errors}");
    let first = fault["checks"].as_array().unwrap().iter().find(|check| check["passed"] == false).unwrap();
    let reasons = first["reasons"].to_string();
    assert!(reasons.contains("right.vlan_not_allowed_in"), "{reasons}");
}

#[test]
fn live_a_link_of_one_direction_fails_first_and_a_group_beside_it_is_reached() {
    let Some((findings, code, errors)) = probed(ONE_WAY, &[]) else { return };
    let failed = failed(&findings);
    let pair = |stage: &str, from: &str, to: &str| [stage, from, to].map(str::to_owned);
    let expected = [pair("links", "c", "r"), pair("neighbours", "r", "c"), pair("end-to-end", "a", "c")];
    assert_eq!((&failed[..], code), (&expected[..], Some(1)), "{findings}");
    assert!(errors.starts_with("links: c to r over deaf"), "{errors}");
    assert!(errors.contains("lost on the link"), "{errors}");
    assert_eq!(of_stage(&findings, "groups"), 1);
}
