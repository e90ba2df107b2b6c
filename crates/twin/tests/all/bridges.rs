//! Bridges of nodes: the links that they join are one segment, and VLANs on them one each.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::common::{document, frames};
use hopcast_runner::load_text;
use hopcast_twin::results::Run;
use hopcast_twin::scenario::{Overrides, describe};

/// Hosts a, b and c at the switch s, and d and e at the switch t, with a trunk between the two: 100 Mbit/s each.
fn switches(flows: &str, rest: &str) -> String {
    format!(
        "
title: Switches
seed: 5
duration: 10 s
topology:
  nodes: [s, t, a, b, c, d, e]
  links:
    - {{ between: [s, t], name: trunk, rate: 100 Mbit/s, delay: 100 us }}
    - {{ between: [a, s], rate: 100 Mbit/s, delay: 100 us }}
    - {{ between: [b, s], rate: 100 Mbit/s, delay: 100 us }}
    - {{ between: [c, s], rate: 100 Mbit/s, delay: 100 us }}
    - {{ between: [d, t], rate: 100 Mbit/s, delay: 100 us }}
    - {{ between: [e, t], rate: 100 Mbit/s, delay: 100 us }}
flows:
{flows}
{rest}
"
    )
}

/// A flow of 100 datagrams a second for the run.
fn flow(name: &str, from: &str, to: &str) -> String {
    format!(
        "  - {{ name: {name}, from: {from}, to: {to}, over: udp, app: {{ cbr: {{ rate: 400 kbit/s, size: 500 B }} }} }}\n"
    )
}

const PLAIN: &str = "services:
  - { name: net, run: bridge, on: s, interfaces: [trunk, a-s, b-s, c-s], prefix: [10.7.0.0/24, 'fd07::/64'] }
  - { name: far, run: bridge, on: t, interfaces: [trunk, d-t, e-t] }
";
/// a and d in VLAN 5, b and e in 7, c in both, tagged.
const VLANS: &str = "services:
  - { name: net, run: bridge, on: s, interfaces: [trunk, a-s, b-s, c-s], host: { untagged: 1 },
      ports: { trunk: { tagged: [5, 7] }, a-s: { untagged: 5 }, b-s: { untagged: 7 }, c-s: { tagged: [5, 7] } } }
  - { name: far, run: bridge, on: t, interfaces: [trunk, d-t, e-t], host: { untagged: 1 },
      ports: { trunk: { tagged: [5, 7] }, d-t: { untagged: 5 }, e-t: { untagged: 7 } } }
  - { name: both, run: vlan, on: c, interfaces: c-s, ids: [5, 7] }
";

fn run(text: &str) -> Run {
    document(text).runs.into_iter().next().unwrap()
}

fn host(run: &Run, counter: &str) -> u64 {
    run.hosts.get(counter).copied().unwrap_or(0)
}

fn reliability(run: &Run) -> Vec<Option<f64>> {
    run.flows.iter().map(|flow| flow.figures.reliability).collect()
}

fn mistake(text: &str) -> String {
    load_text(Path::new("bad.yaml"), text, &Overrides::default()).unwrap_err().to_string()
}

#[test]
fn links_that_bridges_join_are_one_segment() {
    let flows = flow("f", "a", "d") + &flow("g", "d", "a") + &flow("h", "s", "e");
    let text = switches(&flows, &format!("neighbours: resolve\n{PLAIN}"));
    let run = run(&text);
    assert_eq!(reliability(&run), [Some(1.0); 3]);
    // Once it has answered, each is sent to by its port alone: what b receives is what asked for others.
    assert!(frames(&run, "s", "b") < 20, "{}", frames(&run, "s", "b"));
    assert!(frames(&run, "s", "t") >= 2000);
    assert_eq!(host(&run, "net.vlan_not_allowed_in"), 0);
    let plan = load_text(Path::new("good.yaml"), &text, &Overrides::default()).unwrap();
    let said = describe(&plan);
    assert!(said.contains("10.7.0.0/24 on trunk: s 10.7.0.1"), "{said}");
    assert!(said.contains("e 10.7.0.7"), "{said}");
}

#[test]
fn who_is_silent_is_sent_to_by_all_ports() {
    // Neighbours are known without being asked, and nobody answers: so d is never heard.
    let run = run(&switches(&flow("f", "a", "d"), PLAIN));
    assert_eq!(reliability(&run), [Some(1.0)]);
    assert_eq!((frames(&run, "s", "b"), frames(&run, "t", "e")), (1000, 1000));
    assert_eq!((host(&run, "net.not_learned"), host(&run, "far.not_learned")), (1000, 1000));
}

#[test]
fn each_vlan_is_a_segment_of_its_own_across_the_trunk() {
    let flows = flow("f", "a", "d") + &flow("g", "e", "b") + &flow("h", "c", "d") + &flow("i", "c", "b");
    let run = run(&switches(&flows, VLANS));
    assert_eq!(reliability(&run), [Some(1.0); 4]);
    // In VLAN 5, b is not; in 7 neither a nor d is.
    let to_b = frames(&run, "s", "b");
    assert_eq!(to_b, 2000, "g and i, and neither f nor h");
    // Out of VLAN 5 there is no way to b but by c, which is in both.
    let plan =
        load_text(Path::new("good.yaml"), &switches(&flow("f", "a", "b"), VLANS), &Overrides::default());
    let said = describe(&plan.unwrap());
    assert!(
        said.contains("2 hops") && said.contains("over VLAN 5 of trunk (MTU 1496), VLAN 7 of trunk"),
        "{said}"
    );
    let apart = VLANS.replace("ids: [5, 7]", "ids: 5");
    let said = mistake(&switches(&flow("f", "a", "b"), &apart));
    assert!(said.contains("no route from `a` to `b`"), "{said}");
}

#[test]
fn a_bridges_host_is_in_its_vlans() {
    let services = VLANS.replace("host: { untagged: 1 }", "host: { tagged: [5, 7] }")
        + "  - { name: own, run: vlan, on: [s, t], interfaces: [net], ids: 5 }\n";
    let said = mistake(&switches(&flow("f", "s", "d"), &services));
    assert!(said.contains("at `t`: there is no interface or link `net`"), "{said}");
    let services = services.replace("on: [s, t], interfaces: [net]", "on: s, interfaces: net");
    let run = run(&switches(&(flow("f", "s", "d") + &flow("g", "a", "s")), &services));
    assert_eq!(reliability(&run), [Some(1.0); 2]);
    assert!(host(&run, "own.frames_tagged") >= 1000);
}

#[test]
fn a_port_that_an_event_takes_out_of_a_vlan_is_where_frames_die_and_a_counter_says_so() {
    let events = "events:
  - { at: 5 s, service: far, on: t, set: { ports: { trunk: { tagged: 7 } } } }
";
    let run = run(&switches(&flow("f", "a", "d"), &format!("{VLANS}{events}")));
    assert!((0.45..0.55).contains(&run.flows[0].figures.reliability.unwrap()));
    let refused = host(&run, "far.vlan_not_allowed_in");
    assert!((480..520).contains(&refused), "{refused}");
}

#[test]
fn the_smallest_mtu_on_the_way_is_that_of_the_segment() {
    // 500 bytes and the headers of UDP and IP; neither end's own link is narrow.
    let with = |mtu: u32| {
        switches(&flow("f", "a", "d"), VLANS).replace("name: trunk", &format!("name: trunk, mtu: {mtu}"))
    };
    let text = with(600).replace("size: 500 B", "size: 569 B");
    let said = mistake(&text);
    assert!(said.contains("596") && said.contains("VLAN 5"), "{said}");
    assert_eq!(reliability(&run(&text.replace("569 B", "568 B"))), [Some(1.0)]);
}

#[test]
fn bridges_are_attached_to_switched_segments_and_to_media_too() {
    for shared in ["switch", "medium"] {
        let text = format!(
            "
title: Beyond a shared link
duration: 5 s
topology:
  nodes: [a, b, s, c]
  links:
    - {{ {shared}: [a, b, s], name: lan, rate: 10 Mbit/s, delay: 1 ms }}
    - {{ between: [s, c], rate: 10 Mbit/s, delay: 1 ms }}
neighbours: resolve
services: [{{ name: net, run: bridge, on: s, interfaces: [lan, s-c] }}]
flows:
{}{}{}",
            flow("f", "a", "c"),
            flow("g", "c", "b"),
            flow("h", "a", "b"),
        );
        assert_eq!(reliability(&run(&text)), [Some(1.0); 3], "{shared}");
    }
}

#[test]
fn a_group_is_sent_to_the_ports_of_its_members() {
    let group = |services: &str| {
        let flows = "  - { name: f, from: a, to: g, over: udp, app: { cbr: { rate: 400 kbit/s, size: 500 B, start: 15 s } } }\n";
        let rest = format!(
            "membership: report
groups: [{{ name: g, members: [b, d], delivery: ip-multicast }}]
{services}"
        );
        run(&switches(flows, &rest).replace("duration: 10 s", "duration: 25 s"))
    };
    let asked = group(&PLAIN.replace("prefix", "querier: on, prefix"));
    assert_eq!(asked.flows[0].figures.reliability, Some(1.0));
    assert!(frames(&asked, "s", "c") < 30 && frames(&asked, "t", "e") < 30);
    assert!(frames(&asked, "s", "b") >= 1000);
    assert!(host(&asked, "net.frames_to_members") >= 1000);
    // Where nobody asks, all are given it.
    let unasked = group(PLAIN);
    assert_eq!(unasked.flows[0].figures.reliability, Some(1.0));
    assert!(frames(&unasked, "s", "c") >= 1000 && frames(&unasked, "t", "e") >= 1000);
}

#[test]
fn a_loop_of_bridges_is_a_storm_that_is_counted_and_ends_with_the_run() {
    let text = "
title: A loop
duration: 100 ms
topology:
  nodes: [s, t, a, b]
  links:
    - { between: [s, t], name: one, rate: 500 kbit/s, delay: 1 ms }
    - { between: [s, t], name: two, rate: 500 kbit/s, delay: 1 ms }
    - { between: [a, s], rate: 10 Mbit/s, delay: 1 ms }
    - { between: [b, t], rate: 10 Mbit/s, delay: 1 ms }
neighbours: resolve
services:
  - { name: net, run: bridge, on: s, interfaces: [one, two, a-s] }
  - { name: far, run: bridge, on: t, interfaces: [one, two, b-t] }
flows: [{ name: f, from: a, to: b, over: udp, app: { cbr: { rate: 100 kbit/s, size: 500 B } } }]
";
    let run = run(text);
    assert!(host(&run, "net.addresses_moved") > 10, "{:?}", run.hosts);
    // Frames go round as fast as the two links carry them, and no faster: 42 B are the shortest.
    let most = 2 * 500_000 / 8 / 10 / 42;
    for (from, to) in [("s", "t"), ("t", "s")] {
        assert!((10..=most).contains(&frames(&run, from, to)), "{from}, {to}: {}", frames(&run, from, to));
    }
}

#[test]
fn bridges_of_two_kinds_that_tag_each_others_frames_without_end_are_followed_to_an_end() {
    let text = "
title: Tags on tags
duration: 1 s
topology:
  nodes: [s, t, a, b]
  links:
    - { between: [s, t], name: one }
    - { between: [s, t], name: two }
    - { between: [a, s] }
    - { between: [b, t] }
services:
  - { name: net, run: bridge, on: s, interfaces: [one, two, a-s], protocol: 802.1ad,
      ports: { one: { native: 100 }, two: { tagged: 100 }, a-s: { untagged: 100 } } }
  - { name: far, run: bridge, on: t, interfaces: [one, two, b-t],
      ports: { one: { tagged: 7 }, two: { native: 7 }, b-t: { untagged: 7 } } }
flows: [{ name: f, from: a, to: b, over: udp, app: { cbr: { rate: 4 kbit/s, size: 500 B } } }]
";
    // b is given a's frames with a tag that it does not look for.
    let said = mistake(text);
    assert!(said.contains("no route from `a` to `b`"), "{said}");
}

#[test]
fn mistakes_are_one_line() {
    let with = |services: &str| mistake(&switches(&flow("f", "a", "b"), services));
    let bridge = |more: &str| {
        format!("services: [{{ name: net, run: bridge, on: s, interfaces: [a-s, b-s], {more} }}]")
    };
    for (more, expected) in [
        ("ports: { a-t: { untagged: 5 } }", "`ports`: `a-t` is none of its interfaces: did you mean `a-s`?"),
        ("ports: { a-s: { untagged: 5, tagged: [5, 7] } }", "VLAN 5 is both `tagged` and `untagged`"),
        ("ports: { a-s: { untaged: 5 } }", "did you mean `untagged`?"),
        ("ports: { a-s: { tagged: 4095 } }", "4094"),
        ("ports: { a-s: { router: allways } }", "did you mean `always`?"),
        ("protocol: 802.1x", "802.1q"),
    ] {
        let said = with(&bridge(more));
        assert!(said.contains(expected) && said.lines().count() == 1, "{said}");
    }
}

#[test]
fn bridges_that_join_more_than_is_searched_are_an_error_and_not_left_in_parts() {
    // 4094 VLANs on each of the links, and at each of the bridges' hosts.
    let hops = |count: u32| {
        let bridges: Vec<String> = (1..count).map(|node| format!("n{node}")).collect();
        let ids: Vec<String> = (1..=4094).map(|id: u32| id.to_string()).collect();
        format!(
            "title: t\nduration: 1 s\ntopology: {{ chain: {{ hops: {count} }} }}\nservices:\n  - {{ name: net, run: bridge, on: [{}], interfaces: [eth0, eth1] }}\n  - {{ name: many, run: vlan, on: n0, interfaces: eth0, ids: [{}] }}\nflows: [{{ name: f, from: n1, to: n2, over: udp, app: {{ cbr: {{ rate: 100 kbit/s, size: 500 B }} }} }}]\n",
            bridges.join(", "),
            ids.join(", ")
        )
    };
    let said = mistake(&hops(250));
    assert!(
        said.contains(
            "bridges join at most 2000000 VLANs of links, these more; give their ports fewer VLANs"
        ) && said.starts_with("bad.yaml:5"),
        "{said}"
    );
    assert!(load_text(Path::new("good.yaml"), &hops(20), &Overrides::default()).is_ok());
}
