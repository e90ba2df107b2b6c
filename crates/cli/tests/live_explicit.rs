//! MEADcast and Xcast on kernels: routers take packets with lists out of forwarding, and links carry what they do in
//! the twin.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use std::collections::BTreeMap;

use common::{frames, live_run_in, tshark, twin_run_in};
use hopcast_node::testing::Requirement;
use serde_json::Value;

/// A router, the node before it, and the first and the last of the receivers behind it.
type Router = (&'static str, &'static str, Option<(u32, u32)>);

/// A cut-down network of the thesis' first use case.
const USE_CASE: &[Router] = &[
    ("r1", "s", None),
    ("r2", "r1", Some((12, 14))),
    ("r3", "r2", Some((1, 4))),
    ("r4", "r2", Some((5, 8))),
    ("r5", "r1", Some((9, 11))),
];

/// Two routers with receivers, behind one.
const FORK: &[Router] = &[("r1", "s", None), ("r2", "r1", Some((1, 3))), ("r3", "r1", Some((4, 6)))];

/// Discovery has ended before the first datagram, so that all are sent in lists.
const MEADCAST: &str = "{ meadcast: { delay: 0s, timeout: 1 s, interval: 0s } }";

/// 1 Mbit/s to groups of receivers, each with its first and its last, over these routers and links of 100 Mbit/s.
fn scenario(
    routers: &[Router],
    groups: &[(&str, u32, u32)],
    (delivery, services, events): (&str, &str, &str),
) -> String {
    let named = |first: u32, last: u32| {
        (first..=last).map(|number| format!("c{number}")).collect::<Vec<_>>().join(", ")
    };
    let link = |ends: (&str, &str)| {
        format!("    - {{ between: [{}, {}], rate: 100 Mbit/s, delay: 100 us }}\n", ends.0, ends.1)
    };
    let (mut nodes, mut links) = (vec!["s".to_owned()], String::new());
    for &(router, before, _) in routers {
        nodes.push(router.to_owned());
        links.push_str(&link((before, router)));
    }
    for &(router, _, receivers) in routers {
        let Some((first, last)) = receivers else { continue };
        nodes.push(named(first, last));
        (first..=last).for_each(|number| links.push_str(&link((router, &format!("c{number}")))));
    }
    let listed = groups.iter().map(|(name, first, last)| {
        format!("  - {{ name: {name}, members: [{}], delivery: {delivery} }}\n", named(*first, *last))
    });
    let app = "{ cbr: { rate: 1 Mbit/s, size: 1000 B, start: 2 s } }";
    let flows = groups.iter().map(|(name, ..)| {
        format!("  - {{ name: to-{name}, from: s, to: {name}, ip: 6, over: udp, app: {app} }}\n")
    });
    let stopped: Vec<String> = groups.iter().map(|(name, ..)| format!("to-{name}")).collect();
    format!(
        "title: t
duration: 8 s
topology:
  nodes: [{nodes}]
  links:
{links}groups:
{groups}services: [{services}]
events: [{events}{{ at: 7 s, stop: [{stopped}] }}]
flows:
{flows}",
        nodes = nodes.join(", "),
        groups = listed.collect::<String>(),
        stopped = stopped.join(", "),
        flows = flows.collect::<String>(),
    )
}

const ALL: &[(&str, u32, u32)] = &[("all", 1, 14)];

/// A counter of the first flow's sender: of MEADcast, or Xcast.
fn sender(run: &Value, name: &str) -> u64 {
    let counter = |protocol: &str| run["flows"][0]["counters"][format!("{protocol}_sender_{name}")].as_u64();
    counter("meadcast").or(counter("xcast")).unwrap()
}

/// Each link's frames for each datagram, and those of discovery beside them.
fn by_datagram(run: &Value) -> BTreeMap<(String, String), (u64, u64)> {
    let data = sender(run, "data");
    frames(run).into_iter().map(|(link, frames)| (link, (frames / data, frames % data))).collect()
}

/// Each receiver has each datagram with the bytes that were sent, which its meter compares.
fn all_have_all(run: &Value) {
    for flow in run["flows"].as_array().unwrap() {
        assert_eq!(flow["reliability"], 1.0, "{flow}");
        for receiver in flow["receivers"].as_array().unwrap() {
            assert_eq!(receiver["delivered_units"], receiver["sent_units"], "{receiver}");
            assert!(receiver["sent_units"].as_u64().unwrap() > 500, "{receiver}");
        }
    }
}

#[test]
fn live_each_link_carries_the_frames_that_it_carries_in_virtual_time() {
    let services = "{ name: mead, run: meadcast-router, on: [r1, r2, r3, r4, r5] }";
    let dir = tempfile::tempdir().unwrap();
    let scenario = scenario(USE_CASE, ALL, (MEADCAST, services, ""));
    let needs = [Requirement::Program("nft"), Requirement::Program("tshark")];
    let Some(live) = live_run_in(dir.path(), &scenario, &["--capture", "r1,c1"], &needs) else { return };
    let twin = twin_run_in(dir.path(), &scenario, &[]);
    for run in [&live, &twin] {
        all_have_all(run);
        assert_eq!(run["flows"][0]["receivers"].as_array().unwrap().len(), 14);
        assert_eq!((sender(run, "unicast"), sender(run, "packets")), (0, 2 * sender(run, "data")));
        let counter = |name: &str| run["hosts"][format!("mead.meadcast_{name}")].as_u64().unwrap_or(0);
        assert_eq!(counter("unicast"), 14 * sender(run, "data"), "{}", run["hosts"]);
    }
    // Of the sender's packets there are two, so that what is a list's share shows.
    assert_eq!(by_datagram(&live), by_datagram(&twin));
    let copies = by_datagram(&live);
    let each = |from: &str, to: &str| copies[&(from.to_owned(), to.to_owned())];
    assert_eq!(each("s", "r1"), (2, 14), "two lists, and a request for each receiver");
    assert_eq!(each("r3", "c1"), (1, 1));
    assert_eq!(each("c1", "r3"), (0, 0), "no kernel answers to a list");

    // What the kernels send is what the machines handed them, and they send no errors.
    let file = dir.path().join("out/captures/case-000-repeat-000.pcapng");
    let count = |filter: &str| {
        let arguments = ["-o", "udp.check_checksum:TRUE", "-Y", filter, "-T", "fields", "-e", "frame.number"];
        tshark(&file, &arguments).unwrap().lines().count()
    };
    assert!(count("ipv6.routing.type == 253 and udp") > 1000);
    assert_eq!(count("udp.checksum.status == 0 or _ws.malformed or icmpv6"), 0);
}

#[test]
fn live_a_router_that_takes_no_part_forwards_lists_as_they_are() {
    let dir = tempfile::tempdir().unwrap();
    let services = "{ name: mead, run: meadcast-router, on: [r2, r3, r4, r5] }";
    let scenario = scenario(USE_CASE, ALL, (MEADCAST, services, ""));
    let needs = [Requirement::Program("nft")];
    let Some(live) = live_run_in(dir.path(), &scenario, &[], &needs) else { return };
    let twin = twin_run_in(dir.path(), &scenario, &[]);
    [&live, &twin].into_iter().for_each(all_have_all);
    assert_eq!(by_datagram(&live), by_datagram(&twin));
}

/// Senders and a router's service on one node have one plug in the kernel, and each is given what the others were.
#[test]
fn live_two_groups_of_a_node_that_is_a_router_are_both_sent_in_lists() {
    let dir = tempfile::tempdir().unwrap();
    let services = "{ name: mead, run: meadcast-router, on: [s, r1, r2, r3] }";
    let scenario = scenario(FORK, &[("some", 1, 5), ("others", 2, 6)], (MEADCAST, services, ""));
    let needs = [Requirement::Program("nft")];
    let Some(live) = live_run_in(dir.path(), &scenario, &[], &needs) else { return };
    let twin = twin_run_in(dir.path(), &scenario, &[]);
    [&live, &twin].into_iter().for_each(all_have_all);
    for flow in 0..2 {
        let of = |run: &Value| {
            let counter =
                |name: &str| run["flows"][flow]["counters"][format!("meadcast_sender_{name}")].as_u64();
            let data = counter("data").unwrap();
            (
                counter("responses"),
                counter("unicast").map(|all| all / data),
                counter("packets").map(|all| all / data),
            )
        };
        assert_eq!(of(&live), of(&twin));
        assert_eq!(of(&live).1, Some(0));
    }
}

/// The router r2 lacks the service, and r5 too before the first datagram: lists go past the one in tunnels, and end
/// before the other, which a router's view of the network's routes and services says.
#[test]
fn live_xcast_sorts_lists_by_the_routes_and_follows_who_runs_it() {
    let dir = tempfile::tempdir().unwrap();
    let services = "{ name: xc, run: xcast-router, on: [r1, r3, r4, r5] }";
    let stopped = "{ at: 1 s, service: xc, on: r5, stop: true }, ";
    let scenario = scenario(USE_CASE, ALL, ("xcast", services, stopped));
    let needs = [Requirement::Program("nft")];
    let Some(live) = live_run_in(dir.path(), &scenario, &[], &needs) else { return };
    let twin = twin_run_in(dir.path(), &scenario, &[]);
    for run in [&live, &twin] {
        all_have_all(run);
        let counter = |name: &str| run["hosts"][format!("xc.xcast_{name}")].as_u64().unwrap_or(0);
        let data = sender(run, "data");
        assert_eq!((counter("tunnels"), counter("unicast")), (2 * data, 14 * data), "{}", run["hosts"]);
    }
    assert_eq!(by_datagram(&live), by_datagram(&twin));
    let each = by_datagram(&live);
    let on = |from: &str, to: &str| each[&(from.to_owned(), to.to_owned())];
    assert_eq!([on("s", "r1"), on("r1", "r2"), on("r1", "r5")], [(1, 0), (2 + 3, 0), (3, 0)]);
    assert_eq!([on("r2", "r3"), on("r3", "c1"), on("r2", "c14")], [(1, 0), (1, 0), (1, 0)]);
}
