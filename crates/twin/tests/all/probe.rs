//! Connectivity in stages: what is whole passes, and a fault is found at the first stage that it breaks.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use hopcast_core::{Duration, Instant};
use hopcast_runner::{load, load_text};
use hopcast_twin::probe::{Check, Findings, Pairs, Stage, TRIES, probe};
use hopcast_twin::scenario::Overrides;

fn at(text: &str, seconds: u64) -> Findings {
    checked(text, seconds, Pairs::OfFlows)
}

fn checked(text: &str, seconds: u64, pairs: Pairs) -> Findings {
    let plan = load_text(Path::new("probe.yaml"), text, &Overrides::default())
        .unwrap_or_else(|error| panic!("{error}"));
    let at = Instant::ZERO + Duration::from_secs(seconds);
    probe(&plan.cases[0].scenario, at, pairs).unwrap()
}

/// A ring of four routers with a LAN of two hosts at one of them, and what is added.
fn network(more: &str) -> String {
    format!(
        "
title: A ring
duration: 60 s
topology:
  nodes: [a, b, c, d, h1, h2]
  links:
    - {{ between: [a, b], rate: 10 Mbit/s, delay: 1 ms }}
    - {{ between: [b, c], rate: 10 Mbit/s, delay: 1 ms }}
    - {{ between: [c, d], rate: 10 Mbit/s, delay: 1 ms }}
    - {{ between: [d, a], rate: 10 Mbit/s, delay: 1 ms }}
    - {{ name: lan, switch: [a, h1, h2], rate: 100 Mbit/s }}
{more}
"
    )
}

const FLOW: &str =
    "flows: [{ name: f, from: h1, to: c, over: udp, app: { cbr: { rate: 100 kbit/s, size: 1000 B } } }]";

fn failed(findings: &Findings) -> Vec<&Check> {
    findings.checks.iter().filter(|check| !check.passed).collect()
}

#[test]
fn a_sound_network_passes_at_each_stage() {
    let findings = at(&network(FLOW), 0);
    assert_eq!(failed(&findings), Vec::<&Check>::new());
    let count = |stage| findings.of_stage(stage).1;
    assert_eq!(count(Stage::Links), (4 * 2 + 3) * 2, "a small and a full frame in each direction");
    assert_eq!(count(Stage::Neighbours), (4 + 2) * 2);
    assert_eq!((count(Stage::Vlans), count(Stage::EndToEnd), count(Stage::Groups)), (0, 2, 0));
}

#[test]
fn each_pair_of_nodes_is_checked_if_asked_for() {
    let findings = checked(&network(FLOW), 0, Pairs::All);
    assert_eq!(findings.of_stage(Stage::EndToEnd), (15 * 2, 15 * 2));
}

#[test]
fn a_link_that_loses_seven_of_ten_is_no_fault() {
    let text = network(FLOW).replace("between: [a, b],", "between: [a, b], loss: 70 %,");
    assert_eq!(failed(&at(&text, 0)), Vec::<&Check>::new());
}

#[test]
fn a_link_of_one_direction_fails_at_the_first_stage_with_its_reason() {
    let text = network(FLOW).replace(
        "{ between: [b, c], rate: 10 Mbit/s, delay: 1 ms }",
        "{ between: [b, c], rate: 10 Mbit/s, delay: 1 ms, backward: { loss: 100 % } }",
    );
    let findings = at(&text, 0);
    let first = findings.first_failure().unwrap();
    assert_eq!((first.stage, &*first.from, &*first.to), (Stage::Links, "c", "b"));
    assert_eq!(first.reasons, [format!("{TRIES} lost on the link")]);
    assert_eq!(findings.of_stage(Stage::Links), (20, 21), "the full frame is not tried after the small one");
}

#[test]
fn the_network_is_that_of_the_time_asked_for() {
    let text = network(&format!(
        "events:\n  - {{ at: 5s, links: a-b, down: true }}\n  - {{ at: 9s, links: a-b, up: true }}\n{FLOW}"
    ));
    assert_eq!(failed(&at(&text, 0)), Vec::<&Check>::new());
    assert_eq!(failed(&at(&text, 20)), Vec::<&Check>::new());
    let down = at(&text, 7);
    let links: Vec<_> =
        failed(&down).into_iter().map(|check| (check.stage, &*check.from, &*check.to)).collect();
    assert_eq!(links, [(Stage::Links, "a", "b"), (Stage::Links, "b", "a")], "routes go round the ring");
    assert_eq!(failed(&down)[0].reasons, [format!("{TRIES} link down")]);
}

#[test]
fn a_loop_of_static_routes_fails_end_to_end_alone() {
    let text = network(&format!(
        "routes:
  - {{ node: a, to: c, via: b }}
  - {{ node: b, to: c, via: a }}
{FLOW}"
    ));
    let findings = at(&text, 0);
    let first = findings.first_failure().unwrap();
    assert_eq!((first.stage, &*first.from, &*first.to), (Stage::EndToEnd, "h1", "c"));
}

#[test]
fn the_hosts_of_each_vlan_are_checked_apart() {
    let text = network(&format!(
        "services:
  - {{ name: work, run: vlan, on: [a, h1], interfaces: lan, ids: [7, 8] }}
  - {{ name: other, run: vlan, on: [h2], interfaces: lan, ids: 7 }}
{FLOW}"
    ));
    let findings = at(&text, 0);
    assert_eq!(failed(&findings), Vec::<&Check>::new());
    let vlans = findings.checks.iter().filter(|check| check.stage == Stage::Vlans);
    let names: Vec<_> = vlans.map(|check| check.over.split(',').next().unwrap()).collect();
    assert_eq!(names, ["VLAN 7 of lan"; 4]);
    // Between a and h1 there are both, and packets take the first.
    assert!(findings.left_out.iter().any(|line| line.contains("a and h1 on VLAN 8 of lan")), "{findings:?}");
}

#[test]
fn the_members_of_a_group_are_those_of_the_time_and_each_is_checked() {
    let text = network(
        "groups: [{ name: film, members: [c, h2], delivery: ip-multicast }]
events: [{ at: 10s, group: film, join: [d] }, { at: 20s, group: film, leave: [c] }]
flows: [{ name: f, from: h1, to: film, over: udp, app: { cbr: { rate: 100 kbit/s } } }]",
    );
    for (seconds, members) in [(0, vec!["c", "h2"]), (15, vec!["c", "d", "h2"]), (25, vec!["d", "h2"])] {
        let findings = at(&text, seconds);
        assert_eq!(failed(&findings), Vec::<&Check>::new());
        let groups = findings.checks.iter().filter(|check| check.stage == Stage::Groups);
        let mut to: Vec<_> = groups.map(|check| &*check.to).collect();
        to.sort_unstable();
        assert_eq!(to, members, "at {seconds} s");
    }
}

#[test]
fn late_answers_to_small_requests_do_not_pass_for_those_to_full_ones() {
    // Of 1,500 bytes on the first link, 1,400 fit the second once the event has come; a round trip takes 1.2 s.
    let text = network(&format!("events: [{{ at: 5s, links: b-c, mtu: 1400 }}]\n{FLOW}"))
        .replace(
            "between: [b, c], rate: 10 Mbit/s, delay: 1 ms",
            "between: [b, c], rate: 10 Mbit/s, delay: 600 ms",
        )
        .replace("from: h1, to: c", "from: a, to: c")
        .replace(
            "between: [d, a], rate: 10 Mbit/s, delay: 1 ms",
            "between: [d, a], rate: 10 Mbit/s, delay: 900 ms",
        );
    let findings = at(&text, 10);
    let ends: Vec<_> = findings.checks.iter().filter(|check| check.stage == Stage::EndToEnd).collect();
    let passed: Vec<bool> = ends.iter().map(|check| check.passed).collect();
    assert_eq!(passed, [true, false], "{ends:?}");
    assert!(ends[1].reasons.iter().any(|line| line.contains("too_big")), "{:?}", ends[1].reasons);
}

#[test]
fn an_address_that_two_claim_is_a_fault_whoever_answers() {
    let text = network(FLOW).replace("h1, h2]\n  links", "h1, { name: h2, claims: 10.0.0.5 }]\n  links");
    let findings = at(&text, 0);
    let first = findings.first_failure().unwrap();
    assert_eq!(first.stage, Stage::Neighbours);
    assert!(first.reasons.contains(&"10.0.0.5 is claimed by h1 and h2".to_owned()), "{first:?}");
}

#[test]
fn a_failed_check_says_what_became_of_its_packets() {
    let text = network(&format!(
        "routes:
  - {{ node: a, to: c, via: b }}
  - {{ node: b, to: c, via: a }}
{FLOW}"
    ));
    let findings = at(&text, 0);
    let line = &findings.first_failure().unwrap().reasons[0];
    let expected = "ICMP echo request from h1 to c went round a loop ";
    assert!(line.starts_with(expected) && line.contains("hop_limit_exceeded"), "{line}");
}

/// Switches s and t with a trunk between them, and hosts a and c in VLAN 5, b and d in VLAN 7.
fn switches(trunk: &str, more: &str) -> String {
    format!(
        "
title: Two switches
duration: 60 s
neighbours: resolve
topology:
  nodes: [s, t, a, b, c, d]
  links:
    - {{ between: [s, t], name: trunk, rate: 100 Mbit/s, delay: 100 us{trunk} }}
    - {{ between: [a, s], rate: 100 Mbit/s, delay: 100 us }}
    - {{ between: [b, s], rate: 100 Mbit/s, delay: 100 us }}
    - {{ between: [c, t], rate: 100 Mbit/s, delay: 100 us }}
    - {{ between: [d, t], rate: 100 Mbit/s, delay: 100 us }}
services:
  - {{ name: left, run: bridge, on: s, interfaces: [trunk, a-s, b-s], host: {{ untagged: 1 }},
      ports: {{ trunk: {{ tagged: [5, 7] }}, a-s: {{ untagged: 5 }}, b-s: {{ untagged: 7 }} }} }}
  - {{ name: right, run: bridge, on: t, interfaces: [trunk, c-t, d-t], host: {{ untagged: 1 }},
      ports: {{ trunk: {{ tagged: [5, 7] }}, c-t: {{ untagged: 5 }}, d-t: {{ untagged: 7 }} }} }}
flows:
  - {{ name: f, from: a, to: c, over: udp, app: {{ cbr: {{ rate: 100 kbit/s, size: 1000 B }} }} }}
{more}
"
    )
}

#[test]
fn a_trunk_that_admits_the_tags_and_their_bytes_passes() {
    assert_eq!(failed(&at(&switches(", mtu: 1504", ""), 0)), Vec::<&Check>::new());
}

#[test]
fn a_switch_port_that_does_not_admit_a_tag_is_named() {
    let event = "events: [{ at: 5s, service: right, on: t, set: { ports: { trunk: { tagged: 5 }, c-t: { untagged: 5 }, d-t: { untagged: 7 } } } }]";
    let findings = at(&switches(", mtu: 1504", event), 10);
    let first = findings.first_failure().unwrap();
    assert_eq!((first.stage, &*first.from, &*first.to), (Stage::Vlans, "b", "d"));
    let line = &first.reasons[0];
    assert!(line.starts_with("ARP request from b for d died at t's right"), "{line}");
    assert!(line.contains("vlan_not_allowed_in"), "{line}");
    assert_eq!(failed(&findings).len(), 1, "VLAN 5 is whole");
}

#[test]
fn a_trunk_whose_mtu_has_no_room_for_the_tag_is_named() {
    let findings = at(&switches("", ""), 0);
    let first = findings.first_failure().unwrap();
    assert_eq!(first.stage, Stage::Vlans);
    assert!(first.over.contains("1500 bytes"), "{first:?}");
    let line = &first.reasons[0];
    assert!(line.contains("link trunk") && line.contains("larger than the MTU"), "{line}");
}

/// The findings on a file of `scenarios/faults` with these settings.
fn on_file(name: &str, sets: &[&str]) -> Findings {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/faults").join(name);
    let sets = sets.iter().map(|set| (*set).to_owned()).collect();
    let plan = load(&file, &Overrides { sets, ..Overrides::default() });
    let plan = plan.unwrap_or_else(|error| panic!("{error}"));
    probe(&plan.cases[0].scenario, Instant::ZERO, Pairs::OfFlows).unwrap()
}

#[test]
fn the_stages_of_a_test_bed_fail_from_its_vlans_on_and_pass_once_its_port_has_the_tag() {
    let findings = on_file("test-bed.yaml", &[]);
    let first = findings.first_failure().unwrap();
    assert_eq!((first.stage, &*first.from, &*first.to), (Stage::Vlans, "mesh1", "mesh2"));
    let line = &first.reasons[0];
    assert!(line.starts_with("ARP reply from mesh2 to mesh1 died at mesh1's ship"), "{line}");
    assert!(line.ends_with("; mesh's mesh-bridge took its tag of VLAN 1 off"), "{line}");
    assert_eq!(findings.of_stage(Stage::EndToEnd).0, 0);
    let ports =
        "{ mesh1-mesh: { tagged: 1 }, mesh2-mesh: { tagged: 2 }, controller-mesh: { tagged: [1, 2] } }";
    let findings = on_file("test-bed.yaml", &[&format!("services.mesh-bridge.ports={ports}")]);
    assert_eq!(failed(&findings), Vec::<&Check>::new());
    assert_eq!((findings.of_stage(Stage::Vlans), findings.of_stage(Stage::EndToEnd)), ((6, 6), (2, 2)));
}

#[test]
fn groups_fail_without_a_querier_and_pass_with_one() {
    let findings = on_file("no-querier.yaml", &[]);
    let first = findings.first_failure().unwrap();
    assert_eq!((first.stage, &*first.from, &*first.over), (Stage::Groups, "s", "bridge left"));
    assert!(first.reasons[0].starts_with("no querier: "), "{first:?}");
    assert_eq!(failed(&on_file("no-querier.yaml", &["services.left.querier=on"])), Vec::<&Check>::new());
}

/// A segment of `hosts` hosts behind bridges of ten ports each, all at one.
fn segment(hosts: usize, more: &str) -> String {
    let bridges = hosts / 10;
    let names: Vec<String> = ["core".to_owned()]
        .into_iter()
        .chain((0..bridges).map(|n| format!("s{n}")))
        .chain((0..hosts).map(|n| format!("h{n}")))
        .collect();
    let link = |one: &str, other: &str| format!("    - {{ between: [{one}, {other}], rate: 1 Gbit/s }}\n");
    let links: String = (0..bridges)
        .map(|n| link("core", &format!("s{n}")))
        .chain((0..hosts).map(|n| link(&format!("s{}", n / 10), &format!("h{n}"))))
        .collect();
    let interfaces = |count: usize| (0..count).map(|n| format!("eth{n}")).collect::<Vec<_>>().join(", ");
    let switches: Vec<String> = (0..bridges).map(|n| format!("s{n}")).collect();
    format!(
        "
duration: 60 s
topology:
  nodes: [{}]
  links:
{links}services:
  - {{ name: core, run: bridge, on: core, interfaces: [{}] }}
  - {{ name: net, run: bridge, on: [{}], interfaces: [{}] }}
flows: [{{ name: f, from: h0, to: h1, over: udp, app: {{ cbr: {{ rate: 100 kbit/s }} }} }}]
{more}",
        names.join(", "),
        interfaces(bridges),
        switches.join(", "),
        interfaces(11)
    )
}

#[test]
fn of_many_pairs_some_are_chosen_evenly_and_it_is_said() {
    let findings = checked(&segment(300, ""), 0, Pairs::All);
    assert_eq!(failed(&findings), Vec::<&Check>::new());
    // 331 nodes have 54,615 pairs, of which one in 55 is taken.
    assert_eq!(findings.left_out, ["end to end: one of 55 pairs was checked"]);
    let ends: Vec<_> = findings.checks.iter().filter(|check| check.stage == Stage::EndToEnd).collect();
    assert_eq!(ends.len(), 2 * 54_615_usize.div_ceil(55));
    assert_eq!((&*ends[0].from, &*ends[0].to), ("core", "s0"));
    let late = ends.iter().filter(|check| check.from.starts_with("h2")).count();
    assert!(late > 10, "those of the last nodes are among them: {late}");
}

#[test]
fn a_stage_ends_after_many_failures_and_it_is_said() {
    let findings = checked(
        &segment(100, "events: [{ at: 1s, service: core, on: core, stop: true }]"),
        2,
        Pairs::OfFlows,
    );
    let neighbours: Vec<_> =
        findings.checks.iter().filter(|check| check.stage == Stage::Neighbours && !check.passed).collect();
    assert_eq!(neighbours.len(), 50);
    assert!(
        findings.left_out.iter().any(|line| line == "neighbours: 60 pairs, after 50 checks that failed"),
        "{:?}",
        findings.left_out
    );
}
