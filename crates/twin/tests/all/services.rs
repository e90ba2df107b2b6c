//! Services of nodes: VLANs between links and hosts, and queriers on hosts.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::common::document;
use hopcast_runner::load_text;
use hopcast_twin::results::Run;
use hopcast_twin::scenario::{Overrides, describe};

/// Two links in a row, each of 10 Mbit/s and 1 ms; and 125 datagrams a second for 4 s.
fn chain(services: &str) -> String {
    format!(
        "
title: Services
duration: 4 s
topology:
  nodes: [a, b, c]
  links:
    - {{ between: [a, b], rate: 10 Mbit/s, delay: 1 ms }}
    - {{ between: [b, c], rate: 10 Mbit/s, delay: 1 ms }}
flows: [{{ name: f, from: a, to: c, over: udp, app: {{ cbr: {{ rate: 1 Mbit/s, size: 1000 B }} }} }}]
{services}
"
    )
}

fn run(text: &str) -> Run {
    document(text).runs.into_iter().next().unwrap()
}

fn sent_bytes(run: &Run, from: &str, to: &str) -> u64 {
    run.links.iter().find(|link| link.from == from && link.to == to).unwrap().sent_bytes
}

fn host(run: &Run, counter: &str) -> u64 {
    run.hosts.get(counter).copied().unwrap_or(0)
}

#[test]
fn hosts_on_a_vlan_reach_each_other_and_each_tag_costs_four_bytes() {
    let plain = run(&chain(""));
    let tagged = run(&chain(
        "services:
  - { name: outer, run: vlan, on: [a, b], interfaces: a-b, ids: 100, protocol: 802.1ad }
  - { name: inner, run: vlan, on: [a, b], interfaces: eth0.100, ids: [7, 8] }",
    ));
    for run in [&plain, &tagged] {
        assert_eq!(run.flows[0].figures.reliability, Some(1.0));
    }
    assert_eq!(sent_bytes(&tagged, "a", "b"), sent_bytes(&plain, "a", "b") + 500 * 8);
    assert_eq!(
        sent_bytes(&tagged, "b", "c"),
        sent_bytes(&plain, "b", "c"),
        "beyond the VLANs nothing is tagged"
    );
    for counter in
        ["outer.frames_tagged", "inner.frames_tagged", "outer.frames_untagged", "inner.frames_untagged"]
    {
        assert_eq!(host(&tagged, counter), 500, "{counter}");
    }
}

#[test]
fn vlans_five_deep_carry_packets_and_each_tag_is_counted() {
    let plain = run(&chain(""));
    let deep = run(&chain(
        "services:
  - { name: one, run: vlan, on: [a, b], interfaces: a-b, ids: 1, protocol: 802.1ad }
  - { name: two, run: vlan, on: [a, b], interfaces: eth0.1, ids: 2 }
  - { name: three, run: vlan, on: [a, b], interfaces: eth0.1.2, ids: 3 }
  - { name: four, run: vlan, on: [a, b], interfaces: eth0.1.2.3, ids: 4 }
  - { name: five, run: vlan, on: [a, b], interfaces: eth0.1.2.3.4, ids: 5 }",
    ));
    assert_eq!(deep.flows[0].figures.reliability, Some(1.0));
    assert_eq!(sent_bytes(&deep, "a", "b"), sent_bytes(&plain, "a", "b") + 500 * 20);
    for vlan in ["one", "two", "three", "four", "five"] {
        assert_eq!(host(&deep, &format!("{vlan}.frames_untagged")), 500, "{vlan}");
    }
}

fn mistake(text: &str) -> String {
    load_text(Path::new("bad.yaml"), text, &Overrides::default()).unwrap_err().to_string()
}

#[test]
fn a_flow_that_no_vlan_carries_is_one_line_that_says_where_it_ends() {
    let vlan = |on: &str, more: &str| format!("  - {{ run: vlan, on: {on}, interfaces: a-b, {more} }}\n");
    for (services, why) in [
        (vlan("a", "ids: 7"), "VLAN 7 ends at `a`: on the link `a-b`, `b` has no VLAN"),
        (vlan("b", "ids: 7"), "VLAN 7 ends at `b`: on the link `a-b`, `a` has no VLAN"),
        (
            vlan("a", "ids: [7, 9]") + &vlan("b", "ids: 8"),
            "VLAN 7 and VLAN 9 end at `a`: on the link `a-b`, `b` has VLAN 8",
        ),
        (
            vlan("a", "ids: 7") + &vlan("b", "ids: 7, protocol: 802.1ad"),
            "VLAN 7 ends at `a`: on the link `a-b`, `b` has VLAN 7 (802.1ad)",
        ),
    ] {
        let expected = format!("bad.yaml:9:33: `to`: no route from `a` to `c`: {why}");
        assert_eq!(mistake(&chain(&format!("services:\n{services}"))), expected);
    }
    let detour = chain("services: [{ run: vlan, on: a, interfaces: a-b, ids: 7 }]")
        .replace("  links:\n", "  links:\n    - { between: [c, a], rate: 10 Mbit/s }\n");
    assert_eq!(run(&detour).flows[0].figures.reliability, Some(1.0), "there is another way");
}

#[test]
fn a_vlan_takes_four_bytes_of_each_packet_from_its_links_mtu() {
    let services = "services:
  - { name: outer, run: vlan, on: [a, b], interfaces: a-b, ids: 100, protocol: 802.1ad }
  - { name: inner, run: vlan, on: [a, b], interfaces: eth0.100, ids: 7 }";
    for (over, app) in [("udp", "bulk: { rate: 1 Mbit/s }"), ("tcp-cubic", "bulk: { bytes: 200 kB }")] {
        let text = chain(services).replace(
            "over: udp, app: { cbr: { rate: 1 Mbit/s, size: 1000 B } }",
            &format!("over: {over}, app: {{ {app} }}"),
        );
        let run = run(&text);
        assert_eq!(run.flows[0].figures.reliability, Some(1.0), "{over}");
    }
    let full = |size: u32| chain(services).replace("1000 B", &format!("{size} B"));
    assert_eq!(run(&full(1464)).flows[0].figures.reliability, Some(1.0));
    let error = mistake(&full(1465));
    assert!(
        error.contains(
            "expected at most 1464 B, what the MTU of 1492 of VLAN 100.7 (802.1ad) of the link `a-b` leaves"
        ),
        "{error}"
    );
    let narrow = chain(services)
        .replace("delay: 1 ms }", "delay: 1 ms, mtu: 1284 }")
        .replace("over: udp", "over: udp, ip: 6");
    let error = mistake(&narrow);
    assert!(error.contains("VLAN 100.7 (802.1ad) of the link `a-b` has 1276"), "{error}");
}

#[test]
fn a_check_shows_the_vlans_of_a_route() {
    let vlan = "services: [{ name: lan, run: vlan, on: [a, b], interfaces: a-b, ids: 7 }]";
    let shown = |text: &str| describe(&load_text(Path::new("t.yaml"), text, &Overrides::default()).unwrap());
    let text = shown(&chain(vlan));
    assert!(text.contains("\n    over VLAN 7 of a-b (MTU 1496), b-c (MTU 1500)\n"), "{text}");
    assert!(!shown(&chain("")).contains("MTU 1496"));
}

#[test]
fn a_links_new_mtu_reaches_the_hosts_over_a_vlan() {
    let text = chain(
        "services: [{ name: lan, run: vlan, on: [a, b], interfaces: a-b, ids: 7 }]
events: [{ at: 2 s, links: a-b, mtu: 1031 }]",
    );
    // A packet of 1028 bytes needs a link of 1032.
    let run = run(&text);
    assert_eq!(run.flows[0].figures.delivered_units, 250);
    assert_eq!(host(&run, "too_big"), 250, "the host knows, and the link is not offered what it drops");
    let text = text.replace("1031", "1032");
    assert_eq!(self::run(&text).flows[0].figures.reliability, Some(1.0));
}

/// A host on two VLANs of a switch, and one on each.
const VLANS: &str = "
title: VLANs
duration: 2 s
topology:
  nodes: [a, b, c]
  links: [{ name: lan, switch: [a, b, c], rate: 10 Mbit/s, delay: 1 ms }]
services:
  - { name: both, run: vlan, on: a, interfaces: lan, ids: [7, 8] }
  - { name: eight, run: vlan, on: b, interfaces: lan, ids: 8 }
  - { name: seven, run: vlan, on: c, interfaces: lan, ids: 7 }
groups: [{ name: all, members: [b], delivery: broadcast }]
flows: [{ name: f, from: a, to: all, over: udp, app: { cbr: { rate: 80 kbit/s, size: 1000 B } } }]
";

#[test]
fn a_broadcast_goes_to_the_vlan_of_the_members() {
    let run = run(VLANS);
    assert_eq!((run.flows[0].figures.sent_units, run.flows[0].figures.reliability), (20, Some(1.0)));
    assert_eq!(host(&run, "seven.frames_of_other_vlans"), 20, "others on the link see another VLAN's frames");
    assert_eq!(host(&run, "seven.frames_untagged"), 0);
    let error = mistake(&VLANS.replace("members: [b]", "members: [b, c]"));
    assert!(
        error.contains("`broadcast` reaches one segment, and none joins `a` with all members of `all`"),
        "{error}"
    );
}

#[test]
fn a_service_that_is_stopped_drops_what_arrives_until_it_starts_anew() {
    let run = run(&chain(
        "services: [{ name: lan, run: vlan, on: [a, b], interfaces: a-b, ids: 7 }]
events:
  - { at: 2 s, service: lan, on: b, stop: true }
  - { at: 3 s, service: lan, on: b, start: true }",
    ));
    assert_eq!(host(&run, "lan.dropped_while_stopped"), 125);
    assert_eq!(run.flows[0].figures.delivered_units, 375);
    assert_eq!(host(&run, "lan.frames_untagged"), 375, "figures outlast the machine");
    assert_eq!(host(&run, "lan.restarts"), 1);
}

#[test]
fn a_service_is_restarted_with_the_options_that_an_event_sets() {
    let run = run(&chain(
        "services: [{ name: lan, run: vlan, on: [a, b], interfaces: a-b, ids: 7 }]
events:
  - { at: 1 s, service: lan, on: b, set: { protocol: 802.1ad } }
  - { at: 2 s, service: lan, on: a, set: { protocol: 802.1ad } }",
    ));
    assert_eq!(run.flows[0].figures.delivered_units, 375, "lost while the two ends differ");
    assert_eq!(host(&run, "lan.frames_of_other_vlans"), 125);
}

/// Number of queries that the querier at `n` sends in a run of 100 s, with these events.
fn queries(services: &str, events: &str) -> u64 {
    let run = run(&chain(&format!("services: [{services}]\nevents:\n{events}")).replace("4 s", "100 s"));
    host(&run, "q.querier_queries")
}

#[test]
fn what_is_set_is_added_to_what_was_set_before() {
    let querier = "{ name: q, run: igmp-querier, on: b, query-interval: 5 s }";
    let set = |at: u64, what: &str| format!("  - {{ at: {at} s, service: q, {what} }}\n");
    let one = |events: &[String]| queries(querier, &events.concat());
    // Each restart asks anew: a second `set` of another option leaves the interval as the first has set it.
    let slow = one(&[set(10, "set: { query-interval: 50 s }")]);
    let both = one(&[set(10, "set: { query-interval: 50 s }"), set(11, "set: { robustness: 3 }")]);
    let other = one(&[set(10, "set: { query-interval: 50 s }"), set(11, "set: { query-interval: 5 s }")]);
    assert!(both < slow + 8 && both + 10 < other, "{slow}, {both}, {other}");
    // In whatever order the file has them.
    let turned = one(&[set(11, "set: { robustness: 3 }"), set(10, "set: { query-interval: 50 s }")]);
    assert_eq!(turned, both);
    // It outlasts a stop, and what is set meanwhile waits for the start.
    let stopped =
        |events: &[String]| one(&[&[set(10, "stop: true")], events, &[set(11, "start: true")]].concat());
    let restarted = stopped(&[]);
    let set_before =
        one(&[set(9, "set: { query-interval: 50 s }"), set(10, "stop: true"), set(11, "start: true")]);
    let set_meanwhile = stopped(&[set(10, "set: { query-interval: 50 s }")]);
    assert!(set_before + 10 < restarted, "{set_before} and {restarted}");
    assert_eq!(set_meanwhile + 2, set_before, "not restarted, nor started, by what is set");
}

#[test]
fn what_is_set_at_one_node_is_not_set_at_another() {
    let text = chain(
        "services: [{ name: lan, run: vlan, on: [a, b], interfaces: a-b, ids: 7 }]
events:
  - { at: 1 s, service: lan, on: b, set: { protocol: 802.1ad } }
  - { at: 2 s, service: lan, set: { ids: [7] } }",
    );
    let run = run(&text);
    assert_eq!(run.flows[0].figures.delivered_units, 125, "the second leaves a and b different");
    assert_eq!(host(&run, "lan.restarts"), 1 + 2);
}

#[test]
fn a_router_of_pgm_passes_what_is_no_pgm_and_is_stopped_started_and_set() {
    for ip in ["4", "6"] {
        let run = run(&chain(
            "services: [{ name: pgm, run: pgm-router, on: all }]
events:
  - { at: 1 s, service: pgm, on: b, stop: true }
  - { at: 2 s, service: pgm, on: b, start: true }
  - { at: 3 s, service: pgm, on: b, set: { elimination: 1 s, store: 1 MiB } }",
        )
        .replace("over: udp,", &format!("over: udp, ip: {ip},")));
        assert_eq!(run.flows[0].figures.reliability, Some(1.0), "over IPv{ip}");
        assert_eq!(host(&run, "pgm.restarts"), 2);
        assert_eq!(host(&run, "pgm.dropped_while_stopped"), 0, "they are handed back");
        assert_eq!(host(&run, "pgm.element_requests"), 0);
    }
}

/// A querier and two members on a switch, of which one leaves; and a receiver that is no member.
const REPORTS: &str = "
title: Reports
duration: 20 s
membership: report
topology:
  nodes: [r, a, b, c]
  links: [{ name: lan, switch: [r, a, b, c], rate: 10 Mbit/s, delay: 1 ms }]
services:
  - { name: igmp, run: igmp-querier, on: r, query-interval: 5 s }
  - { name: mld, run: mld-querier, on: r, query-interval: 5 s }
groups: [{ name: film, members: [a, b], delivery: ip-multicast, linger: 0 s }]
events: [{ at: 10 s, group: film, leave: b }]
flows:
  - { name: four, from: r, to: film, over: udp, app: { cbr: { rate: 80 kbit/s, size: 1000 B } } }
  - { name: six, from: r, to: film, over: udp, ip: 6, app: { cbr: { rate: 80 kbit/s, size: 1000 B } } }
";

#[test]
fn members_report_and_answer_and_their_figures_are_as_without_reports() {
    let (silent, told) = (REPORTS.replace("membership: report\n", ""), run(REPORTS));
    let silent = run(&silent);
    for (one, other) in silent.flows.iter().zip(&told.flows) {
        assert_eq!(one.figures.reliability, Some(1.0));
        assert_eq!(one.figures.delivered_units, other.figures.delivered_units);
    }
    assert_eq!(host(&silent, "membership_reports"), 0);
    // Each of two joins and one leave in each version is reported twice, and each of some queries is answered.
    let (reports, queries) = (host(&told, "membership_reports"), host(&told, "igmp.querier_queries"));
    assert!(reports >= 2 * 2 * 3 + 8, "{reports} reports");
    // Every 5 s, also while what is under way arrives for a minute after the end; a second at the beginning, and two
    // for the group that was left.
    assert!((16..=21).contains(&queries), "{queries} queries");
}

#[test]
fn mistakes_are_one_line_with_their_place() {
    for (services, expected) in [
        (
            "services: [{ run: vlam, on: a, interfaces: a-b }]",
            "there is no service `vlam`: did you mean `vlan`? (services: vlan, bridge, batman-iv, batman-v, igmp-querier, mld-querier, pim, link-state, pgm-router, meadcast-router, meadcast-forger, xcast-router, firewall)",
        ),
        (
            "services: [{ run: vlan, on: a, interfaces: b-c, ids: 7 }]",
            "at `a`: there is no interface or link `b-c` (interfaces: `eth0` on a-b)",
        ),
        (
            "services: [{ run: vlan, on: a, interfaces: a-b }, { run: vlan, on: a, interfaces: eth0 }]",
            "at `a`: the interface `eth0` has another service on it already",
        ),
        (
            "services: [{ run: vlan, on: b, interfaces: [a-b, b-c] }]",
            "`vlan` is attached to one interface, and not to 2",
        ),
        ("services: [{ run: vlan, on: a, interfaces: a-b, ids: 4095 }]", "`ids`"),
        (
            "services: [{ run: vlan, on: a, interfaces: a-a }]",
            "10:44: at `a`: there is no interface or link `a-a`: did you mean `a-b`? (interfaces: `eth0` on a-b)",
        ),
        ("services: [{ run: vlan, on: a }]", "needs `interfaces`"),
        (
            "services: [{ run: igmp-querier, on: [] }]",
            "`on`: expected a name or several, found an empty list",
        ),
        (
            "services: [{ name: q, run: igmp-querier, on: a }]\nevents: [{ at: 1 s, service: q, on: [], stop: true }]",
            "`on`: expected a name or several, found an empty list",
        ),
        (
            "services: [{ name: q, run: igmp-querier, on: a }]\nevents: [{ at: 1 s, service: q, set: {} }]",
            "`set`: expected an option, one of `robustness`, `query-interval`",
        ),
        (
            "services: [{ run: igmp-querier, on: a, interfaces: eth0 }]",
            "it is attached to the host, and not to interfaces",
        ),
        (
            "services: [{ run: igmp-querier, on: a }, { run: mld-querier, on: a }, { run: igmp-querier, on: [b, a] }]",
            "at `a`: `igmp-querier` runs there already, as `igmp-querier0`",
        ),
        (
            "services: [{ name: lan, run: vlan, on: a, interfaces: a-b }]\nevents: [{ at: 1 s, service: lam, stop: true }]",
            "`service`: there is no service `lam`: did you mean `lan`?",
        ),
        (
            "services: [{ name: lan, run: vlan, on: a, interfaces: a-b }]\nevents: [{ at: 1 s, service: lan, on: c, stop: true }]",
            "`on`: `lan` does not run on `c`",
        ),
        (
            "services: [{ name: lan, run: vlan, on: a, interfaces: a-b }]\nevents: [{ at: 1 s, service: lan, set: { ids: 8 } }]",
            "an event cannot change the interfaces that a service makes",
        ),
        (
            "services: [{ name: lan, run: vlan, on: a, interfaces: a-b }]\nevents: [{ at: 1 s, service: lan, set: { prefix: 10.8.0.0/24 } }]",
            "an event cannot change the interfaces that a service makes, nor their prefixes",
        ),
        (
            "services: [{ name: lan, run: vlan, on: a, interfaces: a-b }]\nevents: [{ at: 1 s, service: lan }]",
            "an event of a service needs one thing to do",
        ),
        (
            "services: [{ name: q, run: igmp-querier, on: a }]\nevents: [{ at: 1 s, service: q, set: { robustnes: 3 } }]",
            "unknown key `robustnes` in `set`: did you mean `robustness`?",
        ),
        (
            "services: [{ name: q, run: igmp-querier, on: a }]\nevents: [{ at: 1 s, service: q, stop: true }, { at: 2 s, service: q, set: { robustness: 9 } }]",
            "`robustness`: expected",
        ),
    ] {
        let error = load_text(Path::new("bad.yaml"), &chain(services), &Overrides::default()).unwrap_err();
        let error = error.to_string();
        assert!(error.starts_with("bad.yaml:1") && error.contains(expected), "{services}\n{error}");
    }
}
