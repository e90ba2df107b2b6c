//! Meshes of nodes: to their hosts one link, whichever way the mesh finds.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use crate::common::document;
use crate::common::scenarios::only;
use hopcast_core::{Duration, Instant};
use hopcast_runner::load_text;
use hopcast_trace::verdict::verdicts;
use hopcast_trace::view::story_text;
use hopcast_trace::{Log, MemoryLog, Query, follow};
use hopcast_twin::probe::{Pairs, Stage, probe};
use hopcast_twin::results::Run;
use hopcast_twin::scenario::{Overrides, describe};
use hopcast_twin::{Monitor, World, run_end};

fn run(text: &str) -> Run {
    document(text).runs.into_iter().next().unwrap()
}

fn error(text: &str) -> String {
    load_text(Path::new("bad.yaml"), text, &Overrides::default()).unwrap_err().to_string()
}

fn count(run: &Run, counter: &str) -> u64 {
    run.hosts.get(counter).copied().unwrap_or(0)
}

fn reliability(run: &Run, flow: &str) -> f64 {
    run.flows.iter().find(|found| found.name == flow).unwrap().figures.reliability.unwrap()
}

/// A mesh of nodes in a row, of links without loss, with pings from the first to the last from 15 s on: over four hops
/// the ends know each other after 9 to 12 s, since a path is worth nothing until some messages have come by each hop,
/// and a table that is asked for before there is a route is asked for again 3 s later.
fn chain(hops: usize, options: &str, rest: &str) -> String {
    format!(
        "
title: Mesh
duration: 45 s
neighbours: resolve
topology: {{ chain: {{ hops: {hops}, link: {{ rate: 10 Mbit/s, delay: 1 ms }} }} }}
services:
  - {{ name: mesh, run: batman-iv, on: all, interfaces: all, prefix: 10.9.0.0/24{options} }}
flows: [{{ name: f, from: n0, to: n{hops}, over: ip, app: {{ ping: {{ every: 500 ms, start: 15 s }} }} }}]
{rest}
"
    )
}

#[test]
fn hosts_ping_over_four_hops_of_a_mesh() {
    let run = run(&chain(4, "", ""));
    assert_eq!(reliability(&run, "f"), 1.0);
    // Three nodes carry each of 60 requests and answers, and ARP's answer, on.
    assert_eq!(count(&run, "mesh.unicast_forwarded") % 3, 0);
    assert!(count(&run, "mesh.unicast_forwarded") >= 360);
    // Each knows four others, and the right neighbour of each of three the address of its second interface.
    assert_eq!(count(&run, "mesh.originators"), 23);
}

#[test]
fn radios_are_named_by_one_word_or_by_several_and_send_broadcasts_three_times() {
    // Without the table of ARP its requests are flooded.
    let repeated = |wireless: &str| {
        let options = format!(", arp-table: off{wireless}");
        count(&run(&chain(1, &options, "")), "mesh.broadcasts_repeated")
    };
    assert_eq!(repeated(""), 0);
    let all = repeated(", wireless: all");
    assert!(all > 0);
    assert_eq!([repeated(", wireless: n0-n1"), repeated(", wireless: [n0-n1]")], [all, all]);
}

/// The scenarios of `scenarios/mesh`.
fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/mesh").join(name);
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn a_chain_that_loses_carries_what_its_links_let_through() {
    let run = run(&example("chain.yaml"));
    // A frame crosses four links of 1 % loss, and an answer as many; the kernel's mesh sends no data twice.
    assert!((0.84..=0.98).contains(&reliability(&run, "pings")), "{}", reliability(&run, "pings"));
    assert!((0.95..=0.99).contains(&reliability(&run, "stream")), "{}", reliability(&run, "stream"));
}

/// Datagrams that are lost when a link of the way fails at 30 s, of 100 a second.
fn lost_by_a_cut(interval: &str) -> f64 {
    let text = format!(
        "
title: Mesh
duration: 60 s
neighbours: resolve
topology:
  nodes: [a, b, c, d, e]
  links:
    - {{ between: [a, b], rate: 10 Mbit/s, delay: 1 ms }}
    - {{ between: [b, d], rate: 10 Mbit/s, delay: 1 ms }}
    - {{ between: [a, c], rate: 10 Mbit/s, delay: 1 ms }}
    - {{ between: [c, e], rate: 10 Mbit/s, delay: 1 ms }}
    - {{ between: [e, d], rate: 10 Mbit/s, delay: 1 ms }}
services: [{{ name: mesh, run: batman-iv, on: all, interfaces: all, originator-interval: {interval} }}]
flows: [{{ name: f, from: a, to: d, over: udp, app: {{ cbr: {{ rate: 800 kbit/s, size: 1000 B, start: 20 s }} }} }}]
events:
  - {{ at: 30 s, links: a-b, down: true }}
"
    );
    let run = run(&text);
    (1.0 - reliability(&run, "f")) * 4000.0
}

#[test]
fn after_a_link_is_cut_packets_are_lost_for_a_few_originator_intervals() {
    let (slow, fast) = (lost_by_a_cut("1s"), lost_by_a_cut("200ms"));
    // Five numbers without the lost neighbour empty its average (`TQ_GLOBAL_WINDOW_SIZE`), and the sixth comes an
    // interval later at most.
    assert!((100.0..=700.0).contains(&slow), "{slow}");
    assert!((20.0..=140.0).contains(&fast), "{fast}");
    assert!(fast < slow / 2.0, "{fast} {slow}");
}

#[test]
fn a_grid_finds_another_way_and_its_hosts_do_not_know() {
    let run = run(&example("grid.yaml"));
    assert!(reliability(&run, "corners") > 0.8, "{}", reliability(&run, "corners"));
    assert!(count(&run, "mesh.route_changes") > 0);
}

#[test]
fn hosts_behind_bridges_are_on_one_network_with_their_vlans_and_a_client_roams() {
    let run = run(&example("bridged.yaml"));
    // 225 requests. c's request of ARP is answered from the table, so that n1 knows where c is when its node has
    // announced it: 2 s later.
    assert!((0.95..=1.0).contains(&reliability(&run, "stays")), "{}", reliability(&run, "stays"));
    // 225 requests. Those of the first second are lost, until b's node has announced it in a message of its own, and of
    // the 30th until the switch forgets behind which link b was; then answers until b's node hears where a is now.
    assert!((0.88..0.97).contains(&reliability(&run, "roams")), "{}", reliability(&run, "roams"));
    assert!(count(&run, "ends.tt_roamings_received") + count(&run, "second.tt_roamings_received") > 0);
    assert!(count(&run, "second.tt_roamings_sent") > 0);
    // 75 requests and their answers, until a is behind the node after it.
    assert!((140..=170).contains(&count(&run, "first.unicast_forwarded")), "{:?}", run.hosts);
}

#[test]
fn packets_longer_than_a_frame_go_in_fragments_or_the_mtu_says_that_they_do_not() {
    let flow = "flows: [{ name: f, from: n0, to: n2, over: udp, app: { cbr: { rate: 1 Mbit/s, size: 1472 B, start: 15 s } } }]";
    let with = |options: &str| {
        let text = chain(2, options, "");
        let at = text.find("flows:").unwrap();
        format!("{}{flow}\n", &text[..at])
    };
    let run = run(&with(""));
    assert_eq!(reliability(&run, "f"), 1.0);
    assert!(count(&run, "mesh.fragments_sent") > 2 * 2500, "{}", count(&run, "mesh.fragments_sent"));
    let found = error(&with(", fragmentation: off"));
    assert!(
        found.contains("at most 1440 B, what the MTU of 1468 of the mesh over `n0-n1` leaves"),
        "{found}"
    );
}

#[test]
fn a_path_of_the_plan_is_one_hop_over_a_mesh_and_meshes_that_no_link_joins_are_two() {
    let scenario = load_text(Path::new("mesh.yaml"), &chain(4, "", ""), &Overrides::default()).unwrap();
    let text = describe(&scenario);
    assert!(text.contains("10.9.0.0/24 on mesh over n0-n1: n0 10.9.0.1, n1 10.9.0.2"), "{text}");
    let found = error(
        "
duration: 10 s
topology: { chain: { hops: 3, link: { rate: 10 Mbit/s } } }
services:
  - { run: batman-iv, on: [n0, n1], interfaces: n0-n1 }
  - { run: batman-iv, on: [n2, n3], interfaces: n2-n3 }
  - { run: vlan, on: n1, interfaces: n1-n2, ids: 3 }
flows: [{ from: n0, to: n3, over: udp, app: { cbr: { rate: 1 Mbit/s } } }]
",
    );
    assert!(found.contains("no route from `n0` to `n3`") || found.contains("no links lead"), "{found}");
}

#[test]
fn mistakes_are_one_line_at_their_place() {
    let two = |second: &str| {
        chain(2, "", "").replace("flows:", &format!("  - {{ name: other, on: n1, {second} }}\nflows:"))
    };
    for (text, expected) in [
        (
            two("run: batman-iv, interfaces: eth0"),
            "at `n1`: the interface `eth0` has another service on it already",
        ),
        (
            two("run: batman-iv, interfaces: bat0, device: bat1"),
            "at `n1`: the interface `bat0` is a mesh's, which no other mesh can use: packets would be in two headers of one kind",
        ),
        (
            two("run: batman-iv, interfaces: all"),
            "at `n1`: `batman-iv` is attached to 1 to 32 interfaces, and not to 0",
        ),
        (
            chain(2, ", wireless: [eth7]", ""),
            "at `n0`: `wireless`: `eth7` is none of its interfaces: did you mean `eth0`? (interfaces: `eth0`)",
        ),
        (
            chain(2, ", originator-interval: 20 ms", ""),
            "`originator-interval`: expected at least 40 ms, found `20ms`",
        ),
        (chain(2, ", hop-penalty: 256", ""), "`hop-penalty`: expected"),
        (chain(2, ", gateway-class: 256", ""), "`gateway-class`: expected"),
        (chain(2, ", gateway: serve", ""), "did you mean `server`?"),
        (
            chain(2, ", hop-penality: 25", ""),
            "unknown key `hop-penality` in a service: did you mean `hop-penalty`?",
        ),
    ] {
        let found = error(&text);
        assert!(found.contains(expected), "{found}\nnot: {expected}");
        assert_eq!(found.lines().count(), 1, "{found}");
    }
}

#[test]
fn a_packet_is_followed_through_the_mesh() {
    let scenario = only(&chain(4, "", ""));
    let memory = MemoryLog::default();
    let mut world = World::new(scenario.clone(), 0, None).unwrap();
    world.record(memory.recorder(1 << 30));
    assert!(world.run_until(run_end(&scenario), &Monitor::default()));
    world.finish_recording().unwrap();
    let log = Log::read(memory.take()).unwrap();
    let story = follow(&log, &Query::parse("icmp from n0 to n4", &log).unwrap());
    let first = verdicts(&story).first().map(ToString::to_string).unwrap_or_default();
    assert_eq!(first, "ICMP echo request from n0 to n4 arrived at n4, 60 of 60");
    let text = story_text(&story, 1);
    let places =
        ["n1:eth0 receives it", "n2:eth0 receives it", "n3:eth0 receives it", "n4's mesh hands it up"];
    let found: Vec<_> = places.iter().filter_map(|place| text.find(place)).collect();
    assert!(found.len() == places.len() && found.is_sorted(), "{text}");
}

/// A table of a node at the end of a run: its columns and its rows.
fn table(run: &Run, node: &str, name: &str) -> (String, Vec<String>) {
    let found = run.tables.iter().find(|table| table.node == node && table.table == name).unwrap();
    (found.columns.join(" | "), found.rows.iter().map(|row| row.join(" | ")).collect())
}

#[test]
fn the_results_have_the_tables_of_batctl() {
    let run = run(&chain(2, "", ""));
    let table = |node: &str, name: &str| table(&run, node, name);
    assert_eq!(
        table("n1", "neighbours"),
        ("neighbour | interface".to_owned(), vec!["n0 eth0 | eth0".to_owned(), "n2 eth0 | eth1".to_owned()])
    );
    let (columns, originators) = table("n0", "originators");
    assert_eq!(columns, "originator | last seen | tq | next hop | interface");
    // The primary addresses of both others, by way of the one that is a neighbour, and a message in the last 2 s.
    assert_eq!(originators.len(), 2, "{originators:?}");
    for (row, name) in originators.iter().zip(["n1 eth0", "n2 eth0"]) {
        let cells: Vec<&str> = row.split(" | ").collect();
        assert_eq!((cells[0], cells[3], cells[4]), (name, "n1 eth0", "eth0"), "{row}");
        assert!(cells[1].trim_end_matches(" s").parse::<f64>().unwrap() > 42.0, "{row}");
        assert!((100..=255).contains(&cells[2].parse::<u32>().unwrap()), "{row}");
    }
    assert_eq!(table("n0", "local clients").1, ["n0 eth0 | none"]);
    let sorted = |name: &str| {
        let mut rows = table("n0", name).1;
        rows.sort();
        rows
    };
    let global = sorted("global clients");
    assert_eq!(global, ["n1 eth0 | none | n1 eth0", "n2 eth0 | none | n2 eth0"]);
    // Every host listens to all nodes, and to the solicited-node group of its address of IPv6.
    let of_all_nodes = ["01:00:5e:00:00:01", "33:33:00:00:00:01"];
    let groups = of_all_nodes.map(|group| ["n1 eth0", "n2 eth0"].map(|node| format!("{group} | {node}")));
    let own = ["33:33:ff:00:00:02 | n1 eth0", "33:33:ff:00:00:03 | n2 eth0"].map(str::to_owned);
    assert_eq!(sorted("groups"), [groups.as_flattened(), &own].concat());
    // Nothing is wanted beyond that, and multicast packets are forwarded.
    assert_eq!(
        sorted("multicast flags"),
        ["n0 eth0 | [.... . .]", "n1 eth0 | [.... . .]", "n2 eth0 | [.... . .]"]
    );
}

#[test]
fn a_probe_says_which_nodes_of_a_mesh_do_not_hear_each_other() {
    let cut = "events: [{ at: 5 s, links: n1-n2, down: true }]";
    for (at, failed) in [(1, 0), (6, 8)] {
        let at = Instant::ZERO + Duration::from_secs(at);
        let findings = probe(&only(&chain(3, "", cut)), at, Pairs::OfFlows).unwrap();
        let (passed, all) = findings.of_stage(Stage::Meshes);
        assert_eq!((all, all - passed), (12, failed));
        if failed > 0 {
            let check =
                findings.checks.iter().find(|check| check.stage == Stage::Meshes && !check.passed).unwrap();
            assert_eq!((&*check.from, &*check.to), ("n0", "n2"));
            assert_eq!(check.reasons, ["no originator message of n2 came in 40 s"]);
        }
    }
}

#[test]
fn requests_of_arp_are_answered_by_the_table_where_it_is_on() {
    // Others ask for the same host as the first flow, of which the table has the entry then.
    let others = "flows: [{ name: g, from: n1, to: n4, over: ip, app: { ping: { every: 500 ms, start: 20 s } } }, \
                  { name: h, from: n2, to: n4, over: ip, app: { ping: { every: 500 ms, start: 25 s } } }, ";
    let with = |options: &str| run(&chain(4, options, "").replace("flows: [", others));
    let (on, off) = (with(""), with(", arp-table: off"));
    for flow in ["f", "g", "h"] {
        assert_eq!((reliability(&on, flow), reliability(&off, flow)), (1.0, 1.0), "{flow}");
    }
    // The first request is flooded, since nobody knows yet; later ones are not.
    let flooded = |run: &Run| count(run, "mesh.broadcasts_sent");
    assert!(flooded(&on) < flooded(&off), "{} {}", flooded(&on), flooded(&off));
    assert!(count(&on, "mesh.arp_requests_answered") + count(&on, "mesh.arp_requests_resolved") >= 2);
    assert_eq!(count(&off, "mesh.arp_requests_answered") + count(&off, "mesh.arp_entries"), 0);
    let (columns, entries) = table(&on, "n1", "ARP table");
    assert_eq!(columns, "address | client | vlan | last heard");
    assert!(entries.iter().any(|row| row.starts_with("10.9.0.5 | n4 eth0 | none | ")), "{entries:?}");
    assert!(off.tables.iter().all(|table| table.table != "ARP table"));
}

#[test]
fn a_client_uses_the_gateway_of_its_class() {
    // From b, gateway a is one hop away, and c, which is faster, two.
    let used = |service: &str, class: &str| {
        let text = format!(
            "
title: Gateways
duration: 30 s
neighbours: resolve
topology:
  nodes: [a, b, c, d]
  links:
    - {{ between: [a, b], rate: 100 Mbit/s, delay: 1 ms }}
    - {{ between: [b, d], rate: 100 Mbit/s, delay: 1 ms }}
    - {{ between: [d, c], rate: 100 Mbit/s, delay: 1 ms }}
services:
  - {{ run: {service}, on: a, interfaces: all, prefix: 10.9.0.0/24, gateway: server }}
  - {{ run: {service}, on: b, interfaces: all, gateway: client{class} }}
  - {{ run: {service}, on: c, interfaces: all, gateway: server, gateway-down: 90 Mbit/s, gateway-up: 50 Mbit/s }}
  - {{ run: {service}, on: d, interfaces: all }}
flows: [{{ name: f, from: b, to: a, over: ip, app: {{ ping: {{ every: 500 ms, start: 15 s }} }} }}]
"
        );
        let (columns, rows) = table(&run(&text), "b", "gateways");
        assert_eq!(columns, "gateway | down | up | metric | used");
        // The metric is that of the route, of which other tests speak.
        let without_metric = |row: &String| {
            let cells: Vec<&str> = row.split(" | ").collect();
            assert!(cells[3].split(' ').next().unwrap().parse::<f64>().unwrap() > 1.0, "{row}");
            [cells[0], cells[1], cells[2], cells[4]].join(" | ")
        };
        rows.iter().map(without_metric).collect::<Vec<_>>()
    };
    let rows = |a: &str, c: &str| {
        [format!("a eth0 | 10 Mbit/s | 2 Mbit/s | {a}"), format!("c eth0 | 90 Mbit/s | 50 Mbit/s | {c}")]
    };
    assert_eq!(used("batman-iv", ""), rows("yes", "no"));
    // The other has some 70 Mbit/s more.
    assert_eq!(used("batman-v", ", gateway-class: 50"), rows("no", "yes"));
}
