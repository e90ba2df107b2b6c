//! Captures, read by tshark.

mod common;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::PathBuf;

use common::{hopcast, text, tshark};
use hopcast_node::testing::{Requirement, require};
use tempfile::TempDir;

const MIXED: &str = "\
title: A bit of everything
seed: 2
duration: 1 s
topology:
  nodes: [a, b, c]
  links:
    - { between: [a, b], rate: 10 Mbit/s, delay: 2 ms, loss: 5 % }
    - { medium: [b, c], rate: 10 Mbit/s, delay: 1 ms, queue: 5 packets }
flows:
  - { name: udp, from: a, to: c, over: udp, app: { cbr: { rate: 1 Mbit/s, size: 500 B } } }
  - { name: udp6, from: a, to: c, over: udp, ip: 6, app: { messages: { size: 100 B, rate: 50 Hz } } }
  - { name: tcp, from: a, to: c, over: tcp-cubic, app: bulk }
  - { name: tcp6, from: c, to: a, over: tcp-bbr, ip: 6, app: { bulk: { bytes: 100 kB } } }
  - { name: tunnel, from: a, to: c, over: [tcp-cubic, tunnel, udp], app: { bulk: { bytes: 50 kB } } }
  - { name: nobody, from: a, to: b, over: udp, app: { cbr: { rate: 100 kbit/s, size: 1400 B, start: 500 ms } } }
";

/// Runs a scenario with these options and the interfaces of `nodes` captured; returns the capture, in its directory.
#[track_caller]
fn captured(scenario: &str, nodes: &str, options: &[&str]) -> (TempDir, PathBuf) {
    let dir = tempfile::tempdir().expect("a directory");
    fs::write(dir.path().join("s.yaml"), scenario).expect("the scenario is written");
    let mut command = vec!["run", "s.yaml", "--out", "out", "--capture", nodes, "--format", "json"];
    command.extend(options);
    let output = hopcast(dir.path(), &command);
    assert!(output.status.success(), "{}", text(&output.stderr));
    let file = dir.path().join("out/captures/case-000-repeat-000.pcapng");
    (dir, file)
}

#[test]
fn tshark_reads_every_frame_and_finds_none_malformed() {
    let (_dir, file) = captured(MIXED, "all", &[]);
    // All checksums verified, not trusted.
    let options =
        ["-o", "ip.check_checksum:TRUE", "-o", "udp.check_checksum:TRUE", "-o", "tcp.check_checksum:TRUE"];
    let select = |filter: &str, field: &str| {
        let mut arguments = options.to_vec();
        arguments.extend(["-Y", filter, "-T", "fields", "-e", field]);
        tshark(&file, &arguments)
    };
    let Some(interfaces) = select("frame", "frame.interface_name") else { return };
    for name in ["a:eth0", "b:eth0", "b:eth1", "c:eth0"] {
        assert!(interfaces.lines().any(|line| line == name), "there are frames of {name}");
    }
    let broken = "_ws.malformed or ip.checksum.status == 0 or udp.checksum.status == 0 or tcp.checksum.status == 0 \
                  or icmp.checksum.status == 0 or icmpv6.checksum.status == 0";
    assert_eq!(select(broken, "frame.number").unwrap(), "");
    for protocol in ["udp and ip", "udp and ipv6", "tcp and ip", "tcp and ipv6", "tcp.options.sack_le"] {
        assert_ne!(select(protocol, "frame.number").unwrap(), "", "there is some {protocol}");
    }
    // Nor does tshark take the workloads' bytes for a protocol that they are not.
    let protocols = select("frame", "frame.protocols").unwrap();
    let known = ["eth", "ethertype", "ip", "ipv6", "tcp", "udp", "icmp", "icmpv6", "data"];
    let strange = protocols.lines().find(|line| line.split(':').any(|protocol| !known.contains(&protocol)));
    assert_eq!(strange, None);
    let comments = select("frame.comment", "frame.comment").unwrap();
    assert!(comments.lines().any(|line| line.contains("dropped on a-b: lost on the link")), "{comments}");
    // Times have nanoseconds and do not run backwards.
    let times = select("frame", "frame.time_epoch").unwrap();
    let times: Vec<f64> = times.lines().map(|line| line.parse().unwrap()).collect();
    assert!(times.is_sorted() && times.len() > 1000);
}

const RESOLVED: &str = "\
title: Neighbours
duration: 50 s
neighbours: resolve
topology:
  nodes: [a, b, c]
  links: [{ between: [a, b], rate: 10 Mbit/s }, { switch: [b, c], rate: 10 Mbit/s }]
flows:
  - { name: four, from: a, to: c, over: udp, app: { cbr: { rate: 8 kbit/s, size: 500 B } } }
  - { name: six, from: a, to: c, over: udp, ip: 6, app: { cbr: { rate: 8 kbit/s, size: 500 B } } }
";

#[test]
fn tshark_reads_the_questions_for_neighbours_and_their_answers() {
    let (_dir, file) = captured(RESOLVED, "a", &[]);
    let select = |filter: &str, fields: &[&str]| {
        let mut arguments = vec!["-Y", filter, "-T", "fields", "-E", "separator= "];
        fields.iter().for_each(|field| arguments.extend(["-e", field]));
        tshark(&file, &arguments)
    };
    let Some(broken) = select("_ws.malformed or icmpv6.checksum.status == 0", &["frame.number"]) else {
        return;
    };
    assert_eq!(broken, "");
    let fields = ["arp.opcode", "arp.src.proto_ipv4", "arp.dst.proto_ipv4", "eth.dst"];
    let arp = select("arp", &fields).unwrap();
    let lines: Vec<&str> = arp.lines().collect();
    assert_eq!(
        lines[..2],
        ["1 10.0.0.1 10.0.0.2 ff:ff:ff:ff:ff:ff", "2 10.0.0.2 10.0.0.1 02:00:00:00:00:00",]
    );
    // Later on the answer has grown old, and the one station is asked.
    assert_eq!(lines[2], "1 10.0.0.1 10.0.0.2 02:01:00:00:00:00");
    let fields = ["icmpv6.type", "ipv6.src", "ipv6.dst", "eth.dst"];
    let questions = select("icmpv6.type == 135", &fields).unwrap();
    assert_eq!(questions.lines().next(), Some("135 fd00::1 ff02::1:ff00:2 33:33:ff:00:00:02"));
    let fields = ["icmpv6.nd.na.target_address", "icmpv6.nd.na.flag.s", "icmpv6.opt.linkaddr"];
    let answers = select("icmpv6.type == 136", &fields).unwrap();
    let answer = answers.lines().next().unwrap_or_default();
    assert!(answer.starts_with("fd00::2 ") && answer.ends_with(" 02:01:00:00:00:00"), "{answer}");
    let unanswered = select("arp and arp.duplicate-address-detected", &["frame.number"]).unwrap();
    assert_eq!(unanswered, "");
}

#[test]
fn the_kernel_asks_for_its_neighbours_and_takes_static_routes_too() {
    if !require(&[
        Requirement::Root,
        Requirement::Tun,
        Requirement::Program("ip"),
        Requirement::Program("setpriv"),
    ]) {
        return;
    }
    // IPv4 goes the long way, over c.
    let network = "topology:
  nodes: [a, b, c, d]
  links: [{ between: [a, b] }, { between: [a, c] }, { switch: [b, c, d], rate: 10 Mbit/s }]
routes: [{ node: a, to: 10.0.0.4, via: c }]
";
    let (head, flows) = RESOLVED.split_once("topology:").unwrap();
    let (_, flows) = flows.split_once("flows:").unwrap();
    let scenario = format!("{head}{network}flows:{flows}").replace("to: c", "to: d").replace("50 s", "3 s");
    let (_dir, file) = captured(&scenario, "a", &["--live"]);
    let select = |filter: &str, field: &str| tshark(&file, &["-Y", filter, "-T", "fields", "-e", field]);
    let Some(asked) = select("arp.opcode == 1 and eth.dst == ff:ff:ff:ff:ff:ff", "arp.dst.proto_ipv4") else {
        return;
    };
    assert_eq!(asked.lines().next(), Some("10.0.0.3"));
    let answered = select("icmpv6.type == 136", "icmpv6.nd.na.target_address").unwrap();
    assert_eq!(answered.lines().next(), Some("fd00::2"));
}

const PREFIXED: &str = "\
title: Prefixes
duration: 3 s
neighbours: resolve
topology:
  nodes: [a, b, r, c]
  links:
    - { switch: [a, b, r], rate: 10 Mbit/s, prefix: [10.7.0.0/24, \"fd07::/64\"] }
    - { between: [r, c], rate: 10 Mbit/s, prefix: [10.8.0.0/30, \"fd08::/64\"] }
flows:
  - { name: near, from: a, to: b, over: udp, app: { messages: { size: 100 B, every: 200 ms } } }
  - { name: far, from: a, to: c, over: udp, app: { messages: { size: 100 B, every: 200 ms } } }
  - { name: near6, from: a, to: b, over: udp, ip: 6, app: { messages: { size: 100 B, every: 200 ms } } }
  - { name: far6, from: a, to: c, over: udp, ip: 6, app: { messages: { size: 100 B, every: 200 ms } } }
";

/// The targets of a host's requests on a segment, and the addresses of its packets; `None` without tshark.
fn hosts_of_a_prefix_ask_for_each_other_and_for_the_router(options: &[&str]) -> Option<()> {
    let (_dir, file) = captured(PREFIXED, "a,r", options);
    let select = |filter: &str, fields: &[&str]| {
        let mut arguments = vec!["-Y", filter, "-T", "fields", "-E", "separator= "];
        fields.iter().for_each(|field| arguments.extend(["-e", field]));
        let lines = tshark(&file, &arguments)?;
        Some(lines.lines().map(str::to_owned).collect::<BTreeSet<String>>())
    };
    let set = |lines: &[&str]| lines.iter().map(|line| (*line).to_owned()).collect::<BTreeSet<String>>();
    let asked = |by: &str| {
        let question = format!("arp.opcode == 1 and eth.dst == ff:ff:ff:ff:ff:ff and eth.src == {by}");
        select(&question, &["arp.src.proto_ipv4", "arp.dst.proto_ipv4"])
    };
    let by_a = asked("02:00:00:00:00:00")?;
    assert_eq!(by_a, set(&["10.7.0.1 10.7.0.2", "10.7.0.1 10.7.0.3"]), "b, and the router for c");
    let by_r = asked("02:00:00:00:00:01")?;
    assert_eq!(by_r, set(&["10.8.0.1 10.8.0.2"]), "on each segment by the address there");
    let answers =
        select("arp.opcode == 2 and eth.dst == 02:00:00:00:00:00", &["arp.src.proto_ipv4", "arp.src.hw_mac"]);
    assert_eq!(answers?, set(&["10.7.0.2 02:01:00:00:00:00", "10.7.0.3 02:02:00:00:00:00"]));
    let answers =
        select("icmpv6.type == 136 and eth.dst == 02:00:00:00:00:00", &["icmpv6.nd.na.target_address"])?;
    assert!(set(&["fd07::2", "fd07::3"]).is_subset(&answers), "{answers:?}");
    let sent = select("udp and ip and eth.src == 02:00:00:00:00:00", &["ip.src", "ip.dst", "eth.dst"])?;
    assert_eq!(sent, set(&["10.7.0.1 10.7.0.2 02:01:00:00:00:00", "10.7.0.1 10.8.0.2 02:02:00:00:00:00"]));
    let echoed = select("udp and ipv6 and eth.dst == 02:00:00:00:00:00", &["ipv6.src", "ipv6.dst"])?;
    assert_eq!(echoed, set(&["fd07::2 fd07::1", "fd08::2 fd07::1"]));
    Some(())
}

#[test]
fn hosts_of_a_prefix_ask_for_each_other_and_for_the_router_in_virtual_time() {
    hosts_of_a_prefix_ask_for_each_other_and_for_the_router(&[]);
}

#[test]
fn hosts_of_a_prefix_ask_for_each_other_and_for_the_router_live() {
    if !require(&[
        Requirement::Root,
        Requirement::Tun,
        Requirement::Program("ip"),
        Requirement::Program("setpriv"),
    ]) {
        return;
    }
    hosts_of_a_prefix_ask_for_each_other_and_for_the_router(&["--live"]);
}

const TUNNELLED: &str = "\
title: Tunnelled
duration: 2 s
topology: { chain: { hops: 2, link: { rate: 20 Mbit/s, delay: 5 ms, loss: 5 % } } }
flows:
  - { name: f, from: n0, to: n2, over: [udp, tunnel, brtp], app: { cbr: { rate: 1 Mbit/s, size: 500 B } } }
";

#[test]
fn a_live_capture_has_what_goes_through_a_tunnel_too() {
    if !require(&[
        Requirement::Root,
        Requirement::Tun,
        Requirement::Program("ip"),
        Requirement::Program("setpriv"),
    ]) {
        return;
    }
    let (_dir, file) = captured(TUNNELLED, "n0,n2", &["--live"]);
    let fields = ["frame.interface_name", "frame.packet_flags_direction", "frame.time_epoch", "data.data"];
    let fields = fields.iter().flat_map(|field| ["-e", field]);
    let arguments: Vec<&str> = ["-T", "fields"].into_iter().chain(fields).collect();
    let Some(frames) = tshark(&file, &arguments) else { return };
    let frames: Vec<Vec<&str>> = frames.lines().map(|line| line.split('\t').collect()).collect();
    let time = |frame: &[&str]| frame[2].parse::<f64>().unwrap();
    assert!(frames.is_sorted_by_key(|frame| time(frame)), "by one clock");
    let names: BTreeSet<&str> = frames.iter().map(|frame| frame[0]).collect();
    let tun = |node: &str| {
        let mut of_node = names.iter().filter(|name| name.starts_with(node) && !name.contains(":eth"));
        *of_node.next().unwrap_or_else(|| panic!("{names:?}"))
    };
    let at = |interface: &str, direction: &str| {
        let at = frames.iter().filter(|frame| frame[0] == interface && frame[1].ends_with(direction));
        at.map(|frame| (frame[3].to_owned(), time(frame))).collect::<BTreeMap<_, _>>()
    };
    let (left, arrived) = (at(tun("n0"), "2"), at(tun("n2"), "1"));
    // 1 Mbit/s for 2 s in datagrams of 500 bytes, each whole in the end.
    assert!(
        left.len().abs_diff(500) <= 2 && left.keys().eq(arrived.keys()),
        "{} {}",
        left.len(),
        arrived.len()
    );
    for (payload, at) in &left {
        let took = arrived[payload] - at;
        assert!((0.010..0.5).contains(&took), "two hops of 5 ms: {took}");
    }
}

const SERVED: &str = "\
title: VLANs and reports
duration: 12 s
membership: report
topology:
  nodes: [a, b]
  links: [{ between: [a, b], rate: 10 Mbit/s }]
services:
  - { run: vlan, on: all, interfaces: a-b, ids: 100, protocol: 802.1ad }
  - { run: vlan, on: all, interfaces: eth0.100, ids: 7 }
  - { run: igmp-querier, on: a, query-interval: 4 s }
  - { run: mld-querier, on: a, query-interval: 4 s }
groups:
  - { name: any, delivery: ip-multicast }
  - { name: one, members: b, delivery: { ip-multicast: { one-source: true } } }
events: [{ at: 1 s, group: any, join: b }, { at: 6 s, group: any, leave: b }]
flows:
  - { name: four, from: a, to: any, over: udp, app: { cbr: { rate: 8 kbit/s, size: 500 B } } }
  - { name: six, from: a, to: one, over: udp, ip: 6, app: { cbr: { rate: 8 kbit/s, size: 500 B } } }
  - { name: ssm, from: a, to: one, over: udp, app: { cbr: { rate: 8 kbit/s, size: 500 B } } }
";

#[test]
fn tshark_reads_tags_queries_and_reports() {
    let (_dir, file) = captured(SERVED, "a", &[]);
    let select = |filter: &str, field: &str| {
        let arguments = ["-o", "ip.check_checksum:TRUE", "-Y", filter, "-T", "fields", "-e", field];
        tshark(&file, &arguments)
    };
    let broken = "_ws.malformed or ip.checksum.status == 0 or igmp.checksum.status == 0 or icmpv6.checksum.status == 0";
    let Some(broken) = select(broken, "frame.number") else { return };
    assert_eq!(broken, "");
    let untagged = select("not (ieee8021ad.id == 100 and vlan.id == 7)", "frame.number").unwrap();
    assert_eq!(untagged, "", "every frame bears both tags");
    let lines = |filter: &str, field: &str| {
        select(filter, field).unwrap().lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert!(lines("igmp.type == 0x11", "ip.dst").contains(&"224.0.0.1".to_owned()), "general queries");
    assert!(lines("icmpv6.type == 130", "ipv6.dst").contains(&"ff02::1".to_owned()));
    let reported = lines("igmp.type == 0x22", "igmp.maddr");
    assert!(reported.iter().any(|group| group.contains("239.192.0.1")), "{reported:?}");
    assert!(reported.iter().any(|group| group.contains("232.0.1.2")), "{reported:?}");
    let sources = lines("igmp.type == 0x22 and igmp.maddr == 232.0.1.2", "igmp.saddr");
    assert!(sources.iter().any(|source| source.contains("10.0.0.1")), "{sources:?}");
    assert!(!lines("icmpv6.type == 143", "ipv6.src").is_empty(), "reports of MLDv2");
    // Router Alert, and one hop, as the RFCs ask.
    assert!(lines("igmp", "ip.ttl").iter().all(|hops| hops == "1"));
    assert!(lines("igmp and not ip.opt.ra", "frame.number").is_empty());
}

/// The segment of r1, r2, r3 and m has the packets of both r2, which is designated, and r1, at which r3 joins.
const TREES: &str = "\
title: Trees of routers
duration: 30 s
membership: report
topology:
  nodes: [s, r0, r1, r2, r3, m, far]
  links:
    - { between: [s, r0], rate: 10 Mbit/s }
    - { between: [r0, r1], rate: 10 Mbit/s, delay: 1 ms }
    - { between: [r0, r2], rate: 10 Mbit/s, delay: 5 ms }
    - { switch: [r1, r2, r3, m], rate: 10 Mbit/s }
    - { between: [r3, far], rate: 10 Mbit/s }
groups: [{ name: film, members: [], delivery: { ip-multicast: { routing: pim } } }]
services:
  - { name: pim, run: pim, on: [r0, r1, r3] }
  - { name: first, run: pim, on: [r2], priority: 9 }
  - { run: igmp-querier, on: [r0, r1, r2, r3] }
  - { run: mld-querier, on: [r0, r1, r2, r3] }
events:
  - { at: 11 s, group: film, join: [m, far] }
  - { at: 18 s, group: film, leave: [m, far] }
flows:
  - { name: four, from: s, to: film, ip: 4, over: udp, app: { cbr: { rate: 8 kbit/s, size: 100 B } } }
  - { name: six, from: s, to: film, ip: 6, over: udp, app: { cbr: { rate: 8 kbit/s, size: 100 B } } }
";

#[test]
fn tshark_reads_what_routers_and_members_of_a_tree_say() {
    let (_dir, file) = captured(TREES, "all", &[]);
    let select = |filter: &str, fields: &[&str]| {
        // Some fields stand in a subtree once more.
        let mut arguments = vec!["-Y", filter, "-T", "fields", "-E", "separator= ", "-E", "occurrence=f"];
        fields.iter().for_each(|field| arguments.extend(["-e", field]));
        tshark(&file, &arguments)
    };
    let broken = "_ws.malformed or _ws.expert.severity == error or pim.cksum.status == 0 \
                  or igmp.checksum.status == 0 or icmpv6.checksum.status == 0";
    let Some(broken) = select(broken, &["frame.number"]) else { return };
    assert_eq!(broken, "");
    let lines = |filter: &str, fields: &[&str]| -> BTreeSet<String> {
        select(filter, fields).unwrap().lines().map(|line| line.trim_end().to_owned()).collect()
    };
    // Hello: from each router, with what it is set to.
    let fields =
        ["ip.src", "ip.dst", "ip.ttl", "pim.version", "pim.holdtime", "pim.t", "pim.propagation_delay"];
    let fields = [&fields[..], &["pim.override_interval", "pim.dr_priority"]].concat();
    let hello =
        |router: u8, priority: u8| format!("10.0.0.{router} 224.0.0.13 1 2 105 False 500 2500 {priority}");
    let hello = [(2, 1), (3, 1), (4, 9), (5, 1)].map(|(router, priority)| hello(router, priority));
    let found = lines("pim.type == 0 and ip", &fields);
    assert_eq!(
        found.iter().map(|line| line.replace(" 0 500", " False 500")).collect::<BTreeSet<_>>(),
        hello.into()
    );
    let links: BTreeSet<String> = lines("pim.type == 0 and ipv6", &["ipv6.src", "pim.address_list_ip6"]);
    let others: BTreeSet<&str> = links.iter().filter_map(|line| line.split(' ').nth(1)).collect();
    assert_eq!(others, BTreeSet::from(["fd00::2", "fd00::3", "fd00::4", "fd00::5"]));
    assert!(links.iter().all(|line| line.starts_with("fe80::")), "{links:?}");
    let generations = lines("pim.type == 0", &["pim.generation_id"]);
    assert_eq!(generations.len(), 2 * (3 + 2 + 2 + 2), "one of each interface and version: {generations:?}");
    // Join/Prune: r3 joins at r1, and then, after the Assert, at r2; both join at r0, and all prune in the end.
    let fields =
        ["ip.src", "pim.upstream_neighbor", "pim.holdtime", "pim.numgroups", "pim.group", "pim.join_ip"];
    let joins = lines("pim.type == 3 and ip and pim.join_ip", &fields);
    let join = |from: u8, to: u8| format!("10.0.0.{from} 10.0.0.{to} 210 1 232.0.1.1 10.0.0.1");
    assert_eq!(joins, [(5, 3), (3, 2), (4, 2), (5, 4)].map(|(from, to)| join(from, to)).into());
    let prunes =
        lines("pim.type == 3 and ip and pim.prune_ip", &["ip.src", "pim.upstream_neighbor", "pim.prune_ip"]);
    for (from, to) in [(3, 2), (4, 2), (5, 4)] {
        assert!(prunes.contains(&format!("10.0.0.{from} 10.0.0.{to} 10.0.0.1")), "{prunes:?}");
    }
    let fields = ["pim.upstream_neighbor_ip6", "pim.group_ip6", "pim.join_ip6", "pim.group_mask"];
    let joins = lines("pim.type == 3 and ipv6 and pim.join_ip6", &fields);
    let routers: BTreeSet<&str> = links.iter().filter_map(|line| line.split(' ').next()).collect();
    for line in &joins {
        let (upstream, rest) = line.split_once(' ').unwrap();
        assert!(routers.contains(upstream), "{line}");
        assert!(rest.starts_with("ff38::8000:1 fd00::1"), "{line}");
    }
    assert_eq!(joins.len(), 4, "{joins:?}");
    // Assert: both are two hops from the sender, and the higher address wins.
    let fields = ["ip.src", "pim.group", "pim.source", "pim.rpt", "pim.metric_pref", "pim.metric"];
    let asserts = lines("pim.type == 5 and ip", &fields);
    let shown: BTreeSet<String> = asserts.iter().map(|line| line.replace(" False ", " 0 ")).collect();
    assert!(shown.contains("10.0.0.4 232.0.1.1 10.0.0.1 0 110 2"), "{asserts:?}");
    let asserts = lines("pim.type == 5 and ipv6", &["pim.group_ip6", "pim.source_ip6", "pim.metric"]);
    assert!(asserts.contains("ff38::8000:1 fd00::1 2"), "{asserts:?}");
    // What members say, and what they are asked.
    let reports = lines("igmp.type == 0x22", &["ip.src", "igmp.record_type", "igmp.maddr", "igmp.saddr"]);
    for (member, kind) in [(6, 5), (6, 6), (7, 5), (7, 6)] {
        assert!(reports.contains(&format!("10.0.0.{member} {kind} 232.0.1.1 10.0.0.1")), "{reports:?}");
    }
    let fields = [
        "icmpv6.mldr.mar.record_type",
        "icmpv6.mldr.mar.multicast_address",
        "icmpv6.mldr.mar.source_address",
    ];
    let reports = lines("icmpv6.type == 143", &fields);
    for kind in [5, 6] {
        assert!(reports.contains(&format!("{kind} ff38::8000:1 fd00::1")), "{reports:?}");
    }
    let asked = lines("icmpv6.type == 130", &["icmpv6.mld.multicast_address"]);
    assert_eq!(asked, ["::", "ff38::8000:1"].map(str::to_owned).into());
}
