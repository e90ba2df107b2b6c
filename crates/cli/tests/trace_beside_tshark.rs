//! Queries of `hopcast trace` beside Wireshark's display filters: the same capture, and the same frames are found.

#![allow(clippy::unwrap_used)]

mod common;

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use common::{hopcast, text, tshark};
use serde_json::Value;

/// Two switches with VLANs, hosts that resolve each other, datagrams, echo requests and a router whose next link is
/// narrow.
const NETWORK: &str = "\
title: Much to search
seed: 4
duration: 3 s
neighbours: resolve
topology:
  nodes: [s, t, a, b, c, d, r, e]
  links:
    - { between: [s, t], name: trunk, rate: 100 Mbit/s, delay: 100us, mtu: 1504 }
    - { between: [a, s], rate: 100 Mbit/s, delay: 100us }
    - { between: [b, s], rate: 100 Mbit/s, delay: 100us }
    - { between: [c, t], rate: 100 Mbit/s, delay: 100us, loss: 5 % }
    - { between: [d, t], rate: 100 Mbit/s, delay: 100us }
    - { between: [a, r], rate: 10 Mbit/s, delay: 1ms }
    - { between: [r, e], rate: 10 Mbit/s, delay: 1ms }
services:
  - { name: left, run: bridge, on: s, interfaces: [trunk, a-s, b-s], host: { untagged: 1 },
      ports: { trunk: { tagged: [5, 7] }, a-s: { untagged: 5 }, b-s: { untagged: 7 } } }
  - { name: right, run: bridge, on: t, interfaces: [trunk, c-t, d-t], host: { untagged: 1 },
      ports: { trunk: { tagged: [5, 7] }, c-t: { untagged: 5 }, d-t: { untagged: 7 } } }
flows:
  - { name: ac, from: a, to: c, over: udp, app: { cbr: { rate: 400 kbit/s, size: 500 B } } }
  - { name: bd, from: b, to: d, over: ip, app: { ping: { every: 100ms } } }
  - { name: ae, from: a, to: e, over: udp, app: { cbr: { rate: 200 kbit/s, size: 500 B } } }
  - { name: ab, from: e, to: a, over: tcp-cubic, app: { bulk: { bytes: 40 kB } } }
";

/// A frame of a capture: the interface that has it, and the time in nanoseconds.
type Frame = (String, u64);

/// The frames that a display filter finds.
fn by_tshark(capture: &Path, filter: &str) -> Option<BTreeSet<Frame>> {
    let fields = ["-T", "fields", "-e", "frame.interface_name", "-e", "frame.time_epoch"];
    let listed = tshark(capture, &[&["-Y", filter][..], &fields].concat())?;
    let frame = |line: &str| {
        let (interface, time) = line.split_once('\t').unwrap();
        let (seconds, nanos) = time.split_once('.').unwrap();
        (
            interface.to_owned(),
            seconds.parse::<u64>().unwrap() * 1_000_000_000 + nanos.parse::<u64>().unwrap(),
        )
    };
    Some(listed.lines().map(frame).collect())
}

/// The frames of each packet that a query finds.
fn by_trace(dir: &Path, query: &str) -> Vec<BTreeSet<Frame>> {
    let output = hopcast(dir, &["trace", CAPTURE, query, "--json", "--packets", "1000000"]);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let story: Value = serde_json::from_slice(&output.stdout).unwrap();
    let frame = |step: &Value| {
        let [node, interface] = ["node", "interface"].map(|key| step["place"][key].as_str().unwrap());
        (format!("{node}:{interface}"), step["time_ns"].as_u64().unwrap())
    };
    let packets = story["packets"].as_array().unwrap().iter();
    packets.map(|packet| packet["steps"].as_array().unwrap().iter().map(frame).collect()).collect()
}

const CAPTURE: &str = "out/captures/case-000-repeat-000.pcapng";

#[test]
fn the_frames_that_a_query_finds_are_those_of_the_display_filter() {
    let dir = tempfile::tempdir().unwrap();
    fs::write(dir.path().join("s.yaml"), NETWORK).unwrap();
    let run = hopcast(dir.path(), &["run", "s.yaml", "--capture", "all", "--out", "out"]);
    assert!(run.status.success(), "{}", text(&run.stderr));
    let capture = dir.path().join(CAPTURE);
    let Some(ports) = tshark(&capture, &["-Y", "udp", "-T", "fields", "-e", "udp.dstport"]) else { return };
    let port = ports.lines().next().unwrap();
    let same = [
        ("arp", "arp".to_owned()),
        ("icmp", "icmp".to_owned()),
        ("udp", "udp".to_owned()),
        ("tcp", "tcp".to_owned()),
        (&format!("udp port {port}"), format!("udp.port == {port}")),
        ("ip between 10.0.0.3 and 10.0.0.5", "ip.addr == 10.0.0.3 && ip.addr == 10.0.0.5".to_owned()),
        ("ip from 10.0.0.4", "ip.src == 10.0.0.4".to_owned()),
        ("udp to 10.0.0.8", "udp && ip.dst == 10.0.0.8".to_owned()),
        ("icmp to 10.0.0.6", "icmp && ip.dst == 10.0.0.6".to_owned()),
    ];
    for (query, filter) in same {
        let theirs = by_tshark(&capture, &filter).unwrap();
        let ours: BTreeSet<Frame> = by_trace(dir.path(), query).into_iter().flatten().collect();
        assert!(!theirs.is_empty(), "{filter}");
        assert!(ours == theirs, "{query}: {} frames, and {} of {filter}", ours.len(), theirs.len());
    }
    // A packet is followed beyond the links on which it has the tag.
    for (vlan, hosts) in [(5, 2), (7, 2)] {
        let theirs = by_tshark(&capture, &format!("vlan.id == {vlan}")).unwrap();
        let ours = by_trace(dir.path(), &format!("vlan {vlan}"));
        assert!(ours.iter().all(|packet| !packet.is_disjoint(&theirs)), "a packet that never has the tag");
        let all: BTreeSet<Frame> = ours.into_iter().flatten().collect();
        assert!(theirs.is_subset(&all), "{} of {} frames", all.len(), theirs.len());
        let beyond: BTreeSet<&str> = all.difference(&theirs).map(|(interface, _)| &**interface).collect();
        assert!(beyond.len() >= hosts, "{beyond:?}");
    }
}
