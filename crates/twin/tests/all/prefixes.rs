//! Prefixes of segments: addresses of hosts in them, and routes to them as a whole.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::common::document;
use hopcast_runner::load_text;
use hopcast_twin::results::Run;
use hopcast_twin::scenario::{Overrides, describe};

/// Two segments of three hosts with a router between, and a flow of each version from the first to the last.
fn network(more: &str) -> String {
    format!(
        "
title: Prefixes
seed: 1
duration: 2 s
topology:
  nodes: [a, b, r, c, d]
  links:
    - {{ name: left, switch: [a, b, r], rate: 10 Mbit/s, delay: 1 ms, prefix: [10.7.0.0/24, \"fd07::/64\"] }}
    - {{ name: right, medium: [r, c, d], rate: 10 Mbit/s, delay: 1 ms, prefix: 10.8.0.0/29 }}
flows:
  - {{ name: four, from: a, to: d, over: udp, app: {{ messages: {{ size: 100 B, every: 100 ms }} }} }}
  - {{ name: six, from: a, to: d, over: udp, ip: 6, app: {{ messages: {{ size: 100 B, every: 100 ms }} }} }}
  - {{ name: near, from: b, to: a, over: tcp-cubic, app: {{ bulk: {{ bytes: 50 kB }} }} }}
{more}
"
    )
}

fn run(text: &str) -> Run {
    document(text).runs.into_iter().next().unwrap()
}

fn host(run: &Run, counter: &str) -> u64 {
    run.hosts.get(counter).copied().unwrap_or(0)
}

fn mistake(text: &str) -> String {
    load_text(Path::new("bad.yaml"), text, &Overrides::default()).unwrap_err().to_string()
}

#[test]
fn hosts_reach_each_other_by_their_addresses_in_prefixes_and_over_routers() {
    for neighbours in ["", "neighbours: resolve"] {
        let run = run(&network(neighbours));
        for flow in &run.flows {
            assert_eq!(flow.figures.reliability, Some(1.0), "{} {neighbours}", flow.name);
        }
        assert_eq!((host(&run, "no_route"), host(&run, "unresolved")), (0, 0), "{neighbours}");
    }
}

#[test]
fn each_neighbour_is_asked_for_once_whatever_its_addresses() {
    let run = run(&network("neighbours: resolve"));
    // A question on each segment in each version, and on the left one b's for a; who was asked knows who asked.
    assert_eq!(host(&run, "neighbours_resolved"), 5, "{:?}", run.hosts);
    assert_eq!(host(&run, "neighbours_failed"), 0);
}

#[test]
fn a_check_shows_who_has_which_address() {
    let plan = load_text(Path::new("t.yaml"), &network(""), &Overrides::default()).unwrap();
    let text = describe(&plan);
    let lines = "Prefixes: 3
  10.7.0.0/24 on left: a 10.7.0.1, b 10.7.0.2, r 10.7.0.3
  fd07::/64 on left: a fd07::1, b fd07::2, r fd07::3
  10.8.0.0/29 on right: r 10.8.0.1, c 10.8.0.2, d 10.8.0.3
";
    assert!(text.contains(lines), "{text}");
}

/// A ring of three with a prefix between two of them.
fn ring(more: &str) -> String {
    format!(
        "
title: Ring
duration: 4 s
topology:
  nodes: [a, b, c]
  links:
    - {{ between: [a, b], rate: 10 Mbit/s, delay: 1 ms }}
    - {{ between: [b, c], rate: 10 Mbit/s, delay: 1 ms, prefix: 10.7.0.0/30 }}
    - {{ between: [c, a], rate: 10 Mbit/s, delay: 5 ms }}
flows: [{{ name: f, from: a, to: c, over: udp, app: {{ cbr: {{ rate: 80 kbit/s, size: 1000 B }} }} }}]
{more}
"
    )
}

fn carried(run: &Run, from: &str, to: &str) -> u64 {
    run.links.iter().find(|link| link.from == from && link.to == to).unwrap().sent_packets
}

#[test]
fn routers_route_to_a_prefix_as_a_whole_by_its_nearest_host() {
    // The direct link to c is as many hops away from the segment as that to b, and slower.
    let prefixed = run(&ring(""));
    assert_eq!(prefixed.flows[0].figures.reliability, Some(1.0));
    assert_eq!((carried(&prefixed, "a", "b"), carried(&prefixed, "b", "c")), (40, 40));
    let plain = run(&ring("").replace(", prefix: 10.7.0.0/30", ""));
    assert_eq!((carried(&plain, "a", "b"), carried(&plain, "c", "a")), (0, 0));
    assert_eq!(carried(&plain, "a", "c"), 40);
}

#[test]
fn a_host_that_has_left_its_segment_is_reached_no_more_by_its_address_there() {
    let run = run(&ring("events: [{ at: 2 s, links: b-c, down: true }]"));
    assert_eq!(run.flows[0].figures.delivered_units, 20);
    assert_eq!(host(&run, "no_route"), 20, "no other way leads into the prefix");
}

#[test]
fn relays_are_reached_when_a_link_beside_the_route_whose_prefix_they_have_goes_down() {
    for over in ["hop-arq", "brtp", "split-bbr"] {
        let run = run(&format!(
            "
title: Beside
duration: 6 s
topology:
  nodes: [a, r, c, d]
  links:
    - {{ between: [r, d], rate: 10 Mbit/s, delay: 1 ms, prefix: 10.7.0.0/30 }}
    - {{ between: [a, r], rate: 10 Mbit/s, delay: 1 ms }}
    - {{ between: [r, c], rate: 10 Mbit/s, delay: 1 ms }}
flows: [{{ name: f, from: a, to: c, over: {over}, app: {{ bulk: {{ bytes: 2 MB }} }} }}]
events: [{{ at: 1 s, links: r-d, down: true }}]
"
        ));
        assert_eq!(run.flows[0].figures.reliability, Some(1.0), "{over}");
        assert_eq!(host(&run, "no_route"), 0, "{over}");
    }
}

#[test]
fn disjoint_routes_lead_to_a_receiver_by_each_of_its_links_whatever_their_prefixes() {
    let mbits = |prefixed: &[&str], paths: usize| {
        let ends = ["[s, n]", "[n, d]", "[s, m]", "[m, d]", "[n, m]"];
        let link = |(number, ends): (usize, &&str)| {
            let has_one = prefixed.contains(ends);
            let prefix = if has_one { format!(", prefix: 10.7.{number}.0/30") } else { String::new() };
            format!("    - {{ between: {ends}, rate: 10 Mbit/s, delay: 1 ms{prefix} }}\n")
        };
        let links: String = ends.iter().enumerate().map(link).collect();
        let run = run(&format!(
            "
title: Two routes
duration: 6 s
topology:
  nodes: [s, n, m, d]
  links:
{links}
measure: {{ from: 2 s, to: 5 s }}
flows: [{{ name: f, from: s, to: d, over: brtp, paths: {paths}, app: bulk }}]
"
        ));
        assert_eq!(run.flows[0].figures.reliability, Some(1.0), "{prefixed:?}");
        assert_eq!((carried(&run, "n", "m"), carried(&run, "m", "n")), (0, 0), "{prefixed:?}");
        run.flows[0].figures.goodput_mbps.unwrap()
    };
    assert!(mbits(&[], 1) < 10.0);
    let plain = mbits(&[], 2);
    assert!(plain > 17.0, "{plain}");
    for prefixed in [&["[n, d]"][..], &["[m, d]"], &["[s, n]", "[n, d]", "[s, m]", "[m, d]", "[n, m]"]] {
        assert_eq!(mbits(prefixed, 2), plain, "{prefixed:?}");
    }
}

/// Three routes from s to d, of one, two and two hops; the shortest to the prefix that d has is one of the latter.
fn three_routes(flow: &str) -> String {
    format!(
        "
title: Three routes
duration: 2 s
topology:
  nodes: [s, n, m, d]
  links:
    - {{ between: [s, n], rate: 10 Mbit/s, delay: 1 ms }}
    - {{ between: [n, d], rate: 10 Mbit/s, delay: 1 ms, prefix: [10.7.0.0/30, \"fd07::/64\"] }}
    - {{ between: [s, m], rate: 10 Mbit/s, delay: 1 ms }}
    - {{ between: [m, d], rate: 10 Mbit/s, delay: 1 ms, mtu: 1000 }}
    - {{ between: [s, d], rate: 10 Mbit/s, delay: 9 ms, mtu: 1400 }}
groups: [{{ name: g, members: [d], delivery: ip-multicast }}]
flows: [{{ name: f, from: s, {flow} }}]
"
    )
}

/// The line of a check about the flow's hops.
fn hops(flow: &str) -> String {
    let plan = load_text(Path::new("t.yaml"), &three_routes(flow), &Overrides::default()).unwrap();
    let text = describe(&plan);
    let line = text.lines().find(|line| line.contains("min-cut")).unwrap();
    line.trim_start().split_once(", min-cut").unwrap().0.to_owned()
}

#[test]
fn a_check_shows_the_hops_that_packets_to_a_receiver_in_a_prefix_take() {
    let shown = |to: &str, over: &str| {
        hops(&format!("to: {to}, over: {over}, app: {{ cbr: {{ rate: 80 kbit/s, size: 500 B }} }}"))
    };
    for six in ["", ", ip: 6"] {
        assert_eq!(shown("d", &format!("udp{six}")), "2 hops", "by the prefix");
        assert_eq!(shown("g", &format!("udp{six}")), "1 hop", "by the tree, to the node");
        assert_eq!(shown("d", &format!("btp{six}")), "2 hops");
        assert_eq!(shown("d", &format!("btp, paths: 2{six}")), "1 and 2 hops");
    }
    assert_eq!(shown("d", "btp, paths: 3"), "1, 2 and 2 hops");
}

#[test]
fn packets_have_to_fit_every_route_that_they_take_and_no_other() {
    let flow = |to: &str, over: &str, size: u64| {
        three_routes(&format!(
            "to: {to}, over: {over}, app: {{ cbr: {{ rate: 80 kbit/s, size: {size} B }} }}"
        ))
    };
    let fits = |text: &str| load_text(Path::new("bad.yaml"), text, &Overrides::default()).is_ok();
    // By the prefix: links of 1500 B. By the tree: one of 1400 B.
    assert!(fits(&flow("d", "udp", 1472)) && fits(&flow("g", "udp", 1372)));
    let error = mistake(&flow("g", "udp", 1373));
    assert!(error.contains("at most 1372 B, what the MTU of 1400 of the link `s-d` leaves"), "{error}");
    // The first two routes are of 1400 and 1500 B, the third is of 1000 B.
    assert!(fits(&flow("d", "btp, paths: 2", 1300)) && !fits(&flow("d", "btp, paths: 2", 1400)));
    let error = mistake(&flow("d", "btp, paths: 3", 1300));
    assert!(error.contains("what the MTU of 1000 of the link `m-d` leaves"), "{error}");
}

#[test]
fn more_disjoint_routes_than_there_are_is_a_mistake_with_its_place() {
    let expected = "bad.yaml:13:55: `paths`: expected no more routes than lead from `s` to `d` without a link or a node \
                    between in common: 3 routes lead, found 4";
    assert_eq!(mistake(&three_routes("to: d, over: brtp, paths: 4, app: bulk")), expected);
}

#[test]
fn a_saturating_sender_to_a_group_is_paced_by_the_link_that_its_tree_begins_with() {
    // A packet to c's address in the prefix goes by b, and one to the group against c's own way to a.
    let group = "groups: [{ name: g, members: [c], delivery: ip-multicast }]";
    let text = ring(group).replace("rate: 10 Mbit/s, delay: 5 ms", "rate: 2 Mbit/s, delay: 5 ms");
    let run = run(&text.replace(
        "to: c, over: udp, app: { cbr: { rate: 80 kbit/s, size: 1000 B } }",
        "to: g, over: udp, app: bulk",
    ));
    assert_eq!((carried(&run, "a", "b"), carried(&run, "b", "c")), (0, 0));
    let flow = &run.flows[0];
    assert_eq!(flow.figures.reliability, Some(1.0), "{:?}", flow.figures);
    let goodput = flow.figures.goodput_mbps.unwrap();
    assert!((1.9..2.0).contains(&goodput), "{goodput}");
}

#[test]
fn a_static_route_wins_over_a_prefix_where_it_is_longer_or_the_host_is_not_on_the_segment() {
    let via = |routes: &str| {
        let run = run(&ring(&format!("routes: [{routes}]")));
        assert_eq!(run.flows[0].figures.reliability, Some(1.0), "{routes}");
        carried(&run, "a", "b")
    };
    assert_eq!(via("{ node: a, to: 10.7.0.0/30, via: c }"), 0);
    assert_eq!(via("{ node: a, to: c, via: c }"), 0);
    assert_eq!(via("{ node: b, to: default, via: a }"), 40, "b is on the segment");
    // The long way round to a host on its own segment.
    let round = run(&ring("routes: [{ node: b, to: 10.7.0.2, via: a }, { node: a, to: 10.7.0.2, via: c }]")
        .replace("from: a, to: c", "from: b, to: c"));
    assert_eq!((carried(&round, "b", "c"), carried(&round, "a", "c")), (0, 40));
}

#[test]
fn a_vlan_has_a_prefix_of_its_own() {
    let text = "
title: VLANs
duration: 2 s
neighbours: resolve
topology:
  nodes: [a, b, c]
  links: [{ name: lan, switch: [a, b, c], rate: 10 Mbit/s, delay: 1 ms }]
services:
  - { run: vlan, on: [c, a], interfaces: lan, ids: 7, prefix: 10.7.0.0/24 }
  - { run: vlan, on: b, interfaces: lan, ids: 7 }
flows: [{ name: f, from: b, to: c, over: udp, app: { cbr: { rate: 80 kbit/s, size: 1000 B } } }]
";
    let plan = load_text(Path::new("t.yaml"), text, &Overrides::default()).unwrap();
    let shown = describe(&plan);
    assert!(shown.contains("10.7.0.0/24 on VLAN 7 of lan: a 10.7.0.1, b 10.7.0.2, c 10.7.0.3\n"), "{shown}");
    assert_eq!(run(text).flows[0].figures.reliability, Some(1.0));
    let twice =
        text.replace("on: b, interfaces: lan, ids: 7", "on: b, interfaces: lan, ids: 7, prefix: 10.7.0.0/24");
    assert!(load_text(Path::new("t.yaml"), &twice, &Overrides::default()).is_ok(), "the same at each end");
    for (from, to, expected) in [
        (
            "ids: 7 }",
            "ids: 7, prefix: 10.8.0.0/24 }",
            "bad.yaml:10:58: `prefix`: `VLAN 7 of lan` has 10.7.0.0/24 already",
        ),
        ("ids: 7, prefix", "ids: [7, 8], prefix", "a prefix is that of one VLAN, and this service has 2"),
        (
            "delay: 1 ms }",
            "delay: 1 ms, prefix: 10.8.0.0/24 }",
            "services have taken all interfaces on `lan`",
        ),
    ] {
        let error = mistake(&text.replace(from, to));
        assert!(error.starts_with("bad.yaml:") && error.contains(expected), "{error}");
    }
}

#[test]
fn mistakes_are_one_line_with_their_place() {
    let prefix = "[10.7.0.0/24, \"fd07::/64\"]";
    for (written, expected) in [
        (
            "10.7.0.0/31",
            "bad.yaml:8:78: `prefix`: 10.7.0.0/31 has 2 addresses for hosts, and `left` has 3 stations",
        ),
        ("[fd07::/64, 10.7.0.0/30]", "bad.yaml:8:90: `prefix`: 10.7.0.0/30 has 2 addresses for hosts"),
        ("10.8.0.0/16", "bad.yaml:9:79: `prefix`: 10.8.0.0/29 overlaps 10.8.0.0/16 of `left`"),
        (
            "[10.7.0.0/24, 10.9.0.0/24]",
            "bad.yaml:8:92: `prefix`: a segment has one prefix of each version of IP, and 10.7.0.0/24 and 10.9.0.0/24 are both of IPv4",
        ),
        (
            "10.7.0.5/24",
            "10.7.0.5 is an address in a prefix of 24 bits, and not its first: did you mean `10.7.0.0/24`?",
        ),
        ("10.0.0.0/24", "10.0.0.0/24 has 10.0.0.1, the address that `a` has on all of its links"),
        ("239.7.0.0/24", "239.7.0.0/24 is no prefix for hosts"),
        (
            "10.7.0.0/33",
            "expected a prefix with its length, such as `10.7.0.0/24` or `fd07::/64`, found `10.7.0.0/33`",
        ),
        ("10.7.0.0", "found `10.7.0.0`"),
        ("left", "found `left`"),
        ("[]", "found an empty list"),
    ] {
        let error = mistake(&network("").replace(prefix, written));
        assert!(error.starts_with("bad.yaml:") && error.contains(expected), "{written}\n{error}");
        assert_eq!(error.lines().count(), 1);
    }
    for (to, expected) in [
        ("10.7.0.0", "`to`: 10.7.0.0 is the network address of 10.7.0.0/24, and no host's"),
        ("10.7.0.255", "`to`: 10.7.0.255 is the broadcast address of 10.7.0.0/24, and no host's"),
        ("\"fd07::\"", "`to`: fd07:: is the subnet-router anycast address of fd07::/64, and no host's"),
    ] {
        let error = mistake(&network(&format!("routes: [{{ node: c, to: {to}, via: r }}]")));
        assert!(error.contains(expected), "{error}");
    }
    let hidden = network("").replace("medium: [r, c, d],", "medium: [r, c, d], hears: [[r, c], [r, d]],");
    let error = mistake(&hidden);
    assert!(error.contains("not all stations of `right` hear each other"), "{error}");
}
