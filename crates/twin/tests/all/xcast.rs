//! Xcast in virtual time: what a scenario says of it is what crosses its links.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::common::scenarios::scenarios;
use crate::common::{counter, document, frames, tree_of_routers};
use hopcast_twin::results::Run;
use hopcast_twin::scenario::Overrides;

/// Bytes that a list of so many receivers adds to a packet.
fn list(receivers: u64) -> u64 {
    24 + 8 + 16 * receivers
}

/// The tree of routers with one group of all receivers.
fn tree(delivery: &str, services: &str) -> Run {
    tree_of_routers(&[("g", "[a, b, c, d, e]", delivery)], services)
}

const ROUTERS: &str = "services: [{ name: x, run: xcast-router, on: [r0, r1, r2] }]";

fn service(run: &Run, name: &str) -> u64 {
    run.hosts.get(&format!("x.{name}")).copied().unwrap_or(0)
}

fn reliability(run: &Run) -> f64 {
    run.flows[0].figures.reliability.unwrap()
}

#[test]
fn each_link_carries_one_copy_and_the_last_router_makes_plain_packets() {
    let run = tree("xcast", ROUTERS);
    assert_eq!(reliability(&run), 1.0);
    let data = counter(&run, "xcast_sender_data");
    assert!((2999..=3001).contains(&data), "{data}");
    assert_eq!(counter(&run, "xcast_sender_listed"), 5 * data);
    assert_eq!(counter(&run, "xcast_sender_header_bytes"), list(5) * data);
    for (from, to) in [("s", "r0"), ("r0", "r1"), ("r0", "r2"), ("r1", "a"), ("r1", "b"), ("r2", "e")] {
        assert_eq!(frames(&run, from, to), data, "{from} to {to}");
    }
    assert_eq!((service(&run, "xcast_copies"), service(&run, "xcast_unicast")), (2 * data, 5 * data));
    assert_eq!(frames(&run, "r0", "s"), 0, "nothing comes back");
}

/// With lists of at most two receivers there are three packets, and the last, to one receiver, has no list.
#[test]
fn lists_are_no_longer_than_they_may_be() {
    let run = tree("{ xcast: { max: 2 } }", ROUTERS);
    assert_eq!(reliability(&run), 1.0);
    let data = counter(&run, "xcast_sender_data");
    assert_eq!((counter(&run, "xcast_sender_packets"), frames(&run, "s", "r0")), (2 * data, 3 * data));
}

#[test]
fn past_routers_without_it_lists_go_in_tunnels_or_become_plain_packets() {
    for (on, delivery, tunnels, crossed) in [
        // The sender's tunnels, one to each router: r0 knows nothing of lists.
        ("[r1, r2]", "xcast", 2, [2, 1, 1]),
        ("[r1, r2]", "{ xcast: { tunnel: off } }", 0, [5, 3, 2]),
        // A router alone: what is behind the others becomes plain packets before them.
        ("[r0]", "xcast", 0, [1, 3, 2]),
        ("[r1]", "xcast", 1, [3, 1, 2]),
    ] {
        let run = tree(delivery, &format!("services: [{{ name: x, run: xcast-router, on: {on} }}]"));
        assert_eq!(reliability(&run), 1.0, "{on}");
        let data = counter(&run, "xcast_sender_data");
        assert_eq!(counter(&run, "xcast_tunnels"), tunnels * data, "{on}");
        let links = [("s", "r0"), ("r0", "r1"), ("r0", "r2")].map(|(from, to)| frames(&run, from, to));
        assert_eq!(links, crossed.map(|copies| copies * data), "{on}");
    }
    let plain = tree("xcast", "");
    assert_eq!(
        (reliability(&plain), counter(&plain, "xcast_sender_data") * 5),
        (1.0, frames(&plain, "s", "r0"))
    );
}

#[test]
fn who_leaves_gets_nothing_until_it_comes_again() {
    let events = "events: [{ at: 11 s, group: g, leave: [e] }, { at: 21 s, group: g, join: [e] }]";
    let run = tree("xcast", &format!("{ROUTERS}\n{events}"));
    assert_eq!(reliability(&run), 1.0);
    let (stays, comes) = (frames(&run, "r2", "d"), frames(&run, "r2", "e"));
    assert!((stays - comes).abs_diff(1000) <= 2, "{stays} {comes}");
}

#[test]
fn a_router_that_is_set_anew_loses_nothing_and_one_that_stops_what_others_do_not_know_yet() {
    let set = "events: [{ at: 11 s, service: x, set: { copies-per-second: 1000 }, on: [r1] }]";
    let run = tree("xcast", &format!("{ROUTERS}\n{set}"));
    assert_eq!((reliability(&run), service(&run, "restarts")), (1.0, 1));

    let stop = "routing: { convergence: 1 s }
events: [{ at: 11 s, service: x, stop: true, on: [r1] }, { at: 20 s, service: x, start: true, on: [r1] }]";
    let run = tree("xcast", &format!("{ROUTERS}\n{stop}"));
    let data = counter(&run, "xcast_sender_data");
    // Three of five receivers get nothing for a second.
    let lost = (1.0 - reliability(&run)) * 5.0 * data as f64;
    assert!((297.0..=303.0).contains(&lost), "{lost}");
    // Plain packets from when that is known to when the start is.
    let copies = frames(&run, "r0", "r1");
    assert!((copies - data).abs_diff(2 * 900) <= 4, "{copies} of {data}");
}

#[test]
fn lists_follow_a_route_that_changes() {
    let text = "
duration: 21 s
topology:
  nodes: [s, r0, r1, r2, r3, a, b]
  links:
    - { between: [s, r0], rate: 10 Mbit/s, delay: 2 ms }
    - { between: [r0, r1], rate: 10 Mbit/s, delay: 2 ms }
    - { between: [r0, r2], rate: 10 Mbit/s, delay: 3 ms }
    - { between: [r1, r3], rate: 10 Mbit/s, delay: 2 ms }
    - { between: [r2, r3], rate: 10 Mbit/s, delay: 2 ms }
    - { between: [r3, a], rate: 10 Mbit/s, delay: 2 ms }
    - { between: [r3, b], rate: 10 Mbit/s, delay: 2 ms }
groups: [{ name: g, members: [a, b], delivery: xcast }]
flows: [{ name: f, from: s, to: g, ip: 6, over: udp, app: { cbr: { rate: 400 kbit/s, size: 500 B, start: 1 s } } }]
services: [{ name: x, run: xcast-router, on: [r0, r1, r2, r3] }]
events: [{ at: 11.001 s, links: [r0-r1], down: true }]
";
    let run = document(text).runs.into_iter().next().unwrap();
    let data = counter(&run, "xcast_sender_data");
    let (above, below) = (frames(&run, "r0", "r1"), frames(&run, "r0", "r2"));
    assert_eq!(above + below, data, "one copy of each by one of the two");
    assert!(above.abs_diff(1000) <= 2 && below.abs_diff(1000) <= 2, "{above} {below}");
    let lost = (1.0 - reliability(&run)) * data as f64;
    assert!(lost <= 1.0, "{lost}");
}

#[test]
fn over_ipv4_it_is_refused_in_one_line() {
    let text = "duration: 1 s
topology: { chain: { hops: 1, link: { rate: 1 Mbit/s } } }
groups: [{ name: g, members: [n1], delivery: xcast }]
flows: [{ from: n0, to: g, over: udp, app: { cbr: { rate: 100 kbit/s } } }]
";
    let error = hopcast_runner::load_text(Path::new("bad.yaml"), text, &Overrides::default())
        .unwrap_err()
        .to_string();
    assert!(error.ends_with("`to`: `xcast` is a protocol of IPv6: add `ip: 6` to the flow"), "{error}");
}

/// What the links of the thesis' network have carried for its first use case: packets and bytes of each direction.
fn testbed(to: &str, delivery: &str, services: &str) -> (Run, Vec<[u64; 2]>) {
    let network = scenarios().join("networks/meadcast-testbed.yaml");
    let text = format!(
        "
duration: 4 s
include: {}
groups: [{{ name: g, members: [{to}], delivery: {delivery} }}]
flows: [{{ name: f, from: c3001, to: g, ip: 6, over: udp, app: {{ cbr: {{ rate: 1 Mbit/s, size: 1000 B, start: 1 s }} }} }}]
{services}
",
        network.display()
    );
    let run = document(&text).runs.into_iter().next().unwrap();
    assert_eq!(reliability(&run), 1.0, "{to} by {delivery}");
    let carried = run.links.iter().map(|link| [link.sent_packets, link.sent_bytes]).collect();
    (run, carried)
}

/// Of each datagram one copy crosses a link, as by IP multicast. It is longer by the list of all receivers, but where
/// only one is left behind the link.
#[test]
fn with_all_routers_a_link_carries_what_it_does_by_ip_multicast_and_the_list() {
    let (run, listed) = testbed("uc1-1", "xcast", "services: [{ name: x, run: xcast-router, on: routers }]");
    let (_, multicast) = testbed("uc1-1", "ip-multicast", "");
    let (_, unicast) = testbed("uc1-1", "unicast", "");
    let data = counter(&run, "xcast_sender_data");
    let mut with_lists = 0;
    for ((listed, multicast), unicast) in listed.iter().zip(&multicast).zip(&unicast) {
        let behind = unicast[0] / data;
        if behind == 0 {
            // On a switch a frame to a group counts for each station.
            assert_eq!(listed[0], 0);
            continue;
        }
        assert_eq!(listed[0], multicast[0]);
        let more = if behind > 1 { list(14) * data } else { 0 };
        assert_eq!(listed[1], multicast[1] + more, "{behind} receivers are behind it");
        with_lists += u64::from(behind > 1);
    }
    assert!(with_lists > 10 && data > 300, "{with_lists} {data}");
}

/// Every second router: all come to all receivers, by tunnels past the others or as plain packets.
#[test]
fn with_half_of_the_routers_all_are_served_and_tunnels_save_some() {
    let odd = "[r1, r3, r10, r12, r21, r31, r40, r100, r111, r121, r201, r203, r211, r300, r310, r320, r400, r410, r412, r414]";
    let even = "[r2, r4, r11, r20, r30, r32, r41, r110, r120, r200, r202, r210, r212, r301, r311, r321, r401, r411, r413]";
    let sum = |carried: Vec<[u64; 2]>| carried.into_iter().map(|[packets, _]| packets).sum::<u64>();
    let routers =
        |on: &str, options: &str| format!("services: [{{ name: x, run: xcast-router, on: {on}{options} }}]");
    let unicast = sum(testbed("uc1-2", "unicast", "").1);
    let all = sum(testbed("uc1-2", "{ xcast: { max: 28 } }", &routers("routers", "")).1);
    for on in [odd, even] {
        let (run, carried) = testbed("uc1-2", "{ xcast: { max: 28 } }", &routers(on, ""));
        assert!(service(&run, "xcast_tunnels") > 0, "{on}");
        let plain = testbed("uc1-2", "{ xcast: { max: 28, tunnel: off } }", &routers(on, ", tunnel: off")).1;
        let (tunnels, plain) = (sum(carried), sum(plain));
        assert!(all < tunnels && tunnels < plain && plain <= unicast, "{all} {tunnels} {plain} {unicast}");
    }
}

/// NORM repairs what is lost, on packets that fit the route with the longest list.
#[test]
fn what_norm_sends_comes_whole_to_each_member_over_links_that_lose() {
    for on in ["[r0, r1, r2]", "[r1]"] {
        let text = format!(
            "
duration: 60 s
topology:
  nodes: [s, r0, r1, r2, a, b, c]
  links:
    - {{ between: [s, r0], rate: 10 Mbit/s, delay: 2 ms }}
    - {{ between: [r0, r1], rate: 10 Mbit/s, delay: 2 ms, loss: 1 % }}
    - {{ between: [r0, r2], rate: 10 Mbit/s, delay: 2 ms, loss: 1 % }}
    - {{ between: [r1, a], rate: 10 Mbit/s, delay: 2 ms, loss: 1 % }}
    - {{ between: [r1, b], rate: 10 Mbit/s, delay: 2 ms, loss: 1 % }}
    - {{ between: [r2, c], rate: 10 Mbit/s, delay: 2 ms, loss: 1 % }}
groups: [{{ name: g, members: [a, b, c], delivery: xcast }}]
flows: [{{ name: f, from: s, to: g, ip: 6, over: {{ norm: {{ rate: 3 Mbit/s }} }}, app: {{ bulk: {{ bytes: 2 MB, start: 1 s }} }} }}]
services: [{{ name: x, run: xcast-router, on: {on} }}]
"
        );
        let run = document(&text).runs.into_iter().next().unwrap();
        assert_eq!(reliability(&run), 1.0, "{on}");
        assert!(counter(&run, "xcast_sender_packets") > 1000, "{on}");
        assert!(
            run.hosts.get("too_big").is_none_or(|count| *count == 0),
            "packets fit the route with their lists"
        );
    }
}
