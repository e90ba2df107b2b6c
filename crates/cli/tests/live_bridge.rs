//! Bridges and VLANs on kernels: each interface carries the frames, and the tags, that it carries in virtual time.

#![allow(clippy::unwrap_used)] // helpers of tests

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use common::{frames, hopcast, live_run_in, text, tshark, twin_run_in};
use hopcast_node::testing::Requirement;
use serde_json::Value;

const NEEDS: [Requirement<'_>; 2] = [Requirement::Program("nft"), Requirement::Program("tshark")];
const CAPTURE: [&str; 2] = ["--capture", "s,t,a,b,c,d"];

/// Hosts a, b and c at the switch s, and d at the switch t, with a trunk between the two: 20 Mbit/s each.
fn switches(seconds: u32, flows: &str, rest: &str) -> String {
    let link = |one: &str, other: &str| {
        format!("    - {{ between: [{one}, {other}], rate: 20 Mbit/s, delay: 200 us }}\n")
    };
    let hosts = [("a", "s"), ("b", "s"), ("c", "s"), ("d", "t")].map(|(host, switch)| link(host, switch));
    format!(
        "title: Switches
duration: {seconds} s
topology:
  nodes: [s, t, a, b, c, d]
  links:
    - {{ between: [s, t], name: trunk, rate: 20 Mbit/s, delay: 200 us }}
{}flows:
{flows}{rest}",
        hosts.concat()
    )
}

/// A flow of 50 datagrams a second from a second on.
fn flow((name, from, to): (&str, &str, &str), ip: u8, start: u32) -> String {
    format!(
        "  - {{ name: {name}, from: {from}, to: {to}, ip: {ip}, over: udp, app: {{ cbr: {{ rate: 200 kbit/s, size: 500 B, start: {start} s }} }} }}\n"
    )
}

/// a and d in VLAN 5, b in 7, c in both, tagged.
const VLANS: &str = "services:
  - { name: net, run: bridge, on: s, interfaces: [trunk, a-s, b-s, c-s], host: { untagged: 1 },
      ports: { trunk: { tagged: [5, 7] }, a-s: { untagged: 5 }, b-s: { untagged: 7 }, c-s: { tagged: [5, 7] } } }
  - { name: far, run: bridge, on: t, interfaces: [trunk, d-t], host: { untagged: 1 },
      ports: { trunk: { tagged: [5, 7] }, d-t: { untagged: 5 } } }
  - { name: both, run: vlan, on: c, interfaces: c-s, ids: [5, 7] }
";

/// The frames of datagrams at each attachment of a node, by the tags that they bear there: the flows' alone, since
/// kernels resolve and confirm their neighbours at other times.
fn datagrams(dir: &Path, out: &str) -> BTreeMap<(String, String), usize> {
    let file = dir.join(out).join("captures/case-000-repeat-000.pcapng");
    let fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "vlan.id"];
    let listed = tshark(&file, &[&["-Y", "udp and not icmp and not icmpv6"][..], &fields].concat()).unwrap();
    let mut counted = BTreeMap::new();
    for line in listed.lines() {
        let (interface, tags) = line.split_once('\t').unwrap_or((line, ""));
        // Live, devices that services make are captured too, and have names of their own.
        if interface.split_once(":eth").is_some_and(|(_, number)| number.len() == 1) {
            *counted.entry((interface.to_owned(), tags.to_owned())).or_default() += 1;
        }
    }
    counted
}

fn host(run: &Value, counter: &str) -> u64 {
    run["hosts"][counter].as_u64().unwrap_or(0)
}

fn sent(run: &Value) -> Vec<u64> {
    let flows = run["flows"].as_array().unwrap().iter();
    flows.map(|flow| flow["receivers"][0]["sent_units"].as_u64().unwrap()).collect()
}

#[test]
fn live_stations_are_learned_and_vlans_kept_apart_as_in_virtual_time() {
    let dir = tempfile::tempdir().unwrap();
    let flows = flow(("f", "a", "d"), 4, 2) + &flow(("g", "c", "b"), 4, 2) + &flow(("h", "d", "c"), 6, 2);
    let stop = "events: [{ at: 7 s, stop: [f, g, h] }]\n";
    let scenario = switches(8, &flows, &format!("neighbours: resolve\n{VLANS}{stop}"));
    let Some(live) = live_run_in(dir.path(), &scenario, &CAPTURE, &NEEDS) else { return };
    let twin = twin_run_in(dir.path(), &scenario, &CAPTURE);
    for run in [&live, &twin] {
        assert!(run["flows"].as_array().unwrap().iter().all(|flow| flow["reliability"] == 1.0), "{run}");
        assert!(sent(run).iter().all(|&sent| sent == 250), "{:?}", sent(run));
        assert_eq!((host(run, "net.addresses_moved"), host(run, "net.wrong_items")), (0, 0));
    }
    let (of_live, of_twin) = (datagrams(dir.path(), "out"), datagrams(dir.path(), "twin"));
    assert_eq!(of_live, of_twin);
    let at = |interface: &str, tags: &str| {
        of_live.get(&(interface.to_owned(), tags.to_owned())).copied().unwrap_or(0)
    };
    // a has no tag, the trunk 5, and c those of both; nobody else is given any: all stations are known.
    assert_eq!((at("a:eth0", ""), at("s:eth0", "5"), at("d:eth0", "")), (250, 500, 500));
    assert_eq!((at("c:eth0", "5"), at("c:eth0", "7"), at("b:eth0", "")), (250, 250, 250));
    assert_eq!(of_live.values().sum::<usize>(), 250 * (6 + 4 + 6), "{of_live:?}");
    // The requests for neighbours go to all ports of a VLAN, and what more kernels say is little.
    for ((from, to), frames) in frames(&live) {
        let in_twin = self::frames(&twin)[&(from.clone(), to.clone())];
        assert!(frames.abs_diff(in_twin) < 40, "{from} to {to}: {frames}, and {in_twin} in virtual time");
    }
}

#[test]
fn live_a_group_goes_where_members_are_once_a_querier_asks() {
    let dir = tempfile::tempdir().unwrap();
    let services = |querier: &str| {
        format!(
            "services:
  - {{ name: net, run: bridge, on: s, interfaces: [trunk, a-s, b-s, c-s]{querier}, prefix: 10.7.0.0/24 }}
  - {{ name: far, run: bridge, on: t, interfaces: [trunk, d-t] }}
"
        )
    };
    let rest = |querier: &str| {
        format!(
            "membership: report
neighbours: resolve
groups: [{{ name: film, members: [b], delivery: ip-multicast }}]
events: [{{ at: 20 s, stop: f }}]
{}",
            services(querier)
        )
    };
    // After the time that a querier gives to members.
    let scenario = switches(21, &flow(("f", "a", "film"), 4, 15), &rest(", querier: on"));
    let Some(live) = live_run_in(dir.path(), &scenario, &CAPTURE, &NEEDS) else { return };
    let twin = twin_run_in(dir.path(), &scenario, &CAPTURE);
    for run in [&live, &twin] {
        assert_eq!((run["flows"][0]["reliability"].as_f64(), &*sent(run)), (Some(1.0), &[250][..]));
        assert!(host(run, "net.queries") >= 2 && host(run, "net.reports") >= 1, "{}", run["hosts"]);
        assert!(host(run, "net.frames_to_members") >= 250, "{}", run["hosts"]);
    }
    let (of_live, of_twin) = (datagrams(dir.path(), "out"), datagrams(dir.path(), "twin"));
    assert_eq!(of_live, of_twin);
    let expected = ["a:eth0", "s:eth1", "s:eth2", "b:eth0"];
    assert_eq!(of_live.keys().map(|(interface, _)| &**interface).collect::<Vec<_>>(), {
        let mut sorted = expected;
        sorted.sort_unstable();
        sorted
    });

    // Where nobody asks, all are given it.
    let scenario = switches(9, &flow(("f", "a", "film"), 4, 3), &rest("").replace("20 s", "8 s"));
    let dir = tempfile::tempdir().unwrap();
    let Some(live) = live_run_in(dir.path(), &scenario, &CAPTURE, &NEEDS) else { return };
    assert_eq!(live["flows"][0]["reliability"], 1.0);
    twin_run_in(dir.path(), &scenario, &CAPTURE);
    let of_live = datagrams(dir.path(), "out");
    assert_eq!(of_live, datagrams(dir.path(), "twin"));
    for host in ["c:eth0", "d:eth0"] {
        assert_eq!(of_live[&(host.to_owned(), String::new())], 250, "{host}");
    }
}

#[test]
fn live_a_port_without_the_tag_is_where_frames_die_and_its_counter_says_so() {
    let dir = tempfile::tempdir().unwrap();
    // Neighbours are known, so that nothing is sent but the datagrams. The trunk forgets VLAN 5 before the first.
    let events = "events:
  - { at: 1 s, service: far, on: t, set: { ports: { trunk: { tagged: 7 } } } }
  - { at: 6 s, stop: f }
";
    let scenario = switches(7, &flow(("f", "a", "d"), 4, 2), &format!("{VLANS}{events}"));
    let Some(live) = live_run_in(dir.path(), &scenario, &CAPTURE, &NEEDS) else { return };
    let twin = twin_run_in(dir.path(), &scenario, &CAPTURE);
    for run in [&live, &twin] {
        assert_eq!((run["flows"][0]["reliability"].as_f64(), &*sent(run)), (Some(0.0), &[200][..]));
        assert_eq!(host(run, "far.vlan_not_allowed_in"), 200, "{}", run["hosts"]);
        assert_eq!((host(run, "net.vlan_not_allowed_in"), host(run, "far.frames_out")), (0, 0));
    }
    // Every frame, and not the datagrams' alone.
    assert_eq!(frames(&live), frames(&twin));
    assert_eq!(datagrams(dir.path(), "out"), datagrams(dir.path(), "twin"));
    let of_bridges =
        |run: &Value| ["net.frames_in", "net.frames_out", "net.not_learned"].map(|name| host(run, name));
    assert_eq!(of_bridges(&live), of_bridges(&twin));
}

#[test]
fn live_the_host_of_a_bridge_is_in_its_vlans_and_hosts_beside_it_resolve_it() {
    let dir = tempfile::tempdir().unwrap();
    let services = "services:
  - { name: net, run: bridge, on: s, interfaces: [trunk, a-s, b-s, c-s], prefix: [10.7.0.0/24, 'fd07::/64'] }
  - { name: far, run: bridge, on: t, interfaces: [trunk, d-t] }
events: [{ at: 6 s, stop: [f, g] }]
";
    let flows = flow(("f", "s", "d"), 4, 2) + &flow(("g", "d", "s"), 6, 2);
    let scenario = switches(7, &flows, &format!("neighbours: resolve\n{services}"));
    let Some(live) = live_run_in(dir.path(), &scenario, &CAPTURE, &NEEDS) else { return };
    let twin = twin_run_in(dir.path(), &scenario, &CAPTURE);
    for run in [&live, &twin] {
        assert!(run["flows"].as_array().unwrap().iter().all(|flow| flow["reliability"] == 1.0), "{run}");
        assert_eq!(sent(run), [200, 200]);
    }
    assert_eq!(datagrams(dir.path(), "out"), datagrams(dir.path(), "twin"));
}

#[test]
fn what_a_kernel_cannot_do_beside_services_is_for_virtual_time() {
    let flow = flow(("f", "a", "d"), 4, 2);
    let long = VLANS.replace("name: far", "name: far-away-from-here");
    let mtu = format!("{VLANS}events: [{{ at: 1 s, links: trunk, mtu: 1400 }}]\n");
    for (rest, line) in [
        (
            long,
            "the interface `far-away-from-here` of `t`: a kernel's has a name of at most 15 bytes, and none of \
             lo, all, default, groups; name the service otherwise",
        ),
        (
            mtu,
            "the event at 1s: the MTU of `trunk` can be changed in virtual time only, as services of `s` are \
             attached to its interfaces",
        ),
    ] {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join("t.yaml"), switches(4, &flow, &rest)).unwrap();
        let output = hopcast(dir.path(), &["run", "t.yaml", "--live"]);
        assert!(!output.status.success());
        assert!(text(&output.stderr).trim_end().ends_with(line), "{}", text(&output.stderr));
    }
}
