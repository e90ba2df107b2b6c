//! Explicit multicast in virtual time: what a scenario says of MEADcast is what crosses its links.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use crate::common::scenarios::scenarios;
use crate::common::{counter, document, frames, text_of_tree, tree_of_routers};
use hopcast_core::{Duration, Instant};
use hopcast_runner::load_text;
use hopcast_twin::Monitor;
use hopcast_twin::results::Run;
use hopcast_twin::scenario::Overrides;
use hopcast_twin::world::World;

/// The tree of routers with one group of all receivers.
fn tree(delivery: &str, services: &str) -> Run {
    tree_of_routers(&[("all", "[a, b, c, d, e]", delivery)], services)
}

const ROUTERS: &str = "services: [{ name: mead, run: meadcast-router, on: [r0, r1, r2] }]";

fn service(run: &Run, name: &str) -> u64 {
    run.hosts.get(&format!("mead.{name}")).copied().unwrap_or(0)
}

#[test]
fn a_list_crosses_the_first_link_once_and_each_receiver_has_each_datagram_once() {
    let run = tree("{ meadcast: { delay: 0s, interval: 0s } }", ROUTERS);
    assert_eq!(run.flows[0].figures.reliability, Some(1.0));
    let data = counter(&run, "meadcast_sender_data");
    assert!((2999..=3001).contains(&data), "{data}");
    // By unicast in the one second before the first discovery has ended.
    let unicast = counter(&run, "meadcast_sender_unicast");
    assert!((495..=505).contains(&unicast), "{unicast}");
    let in_lists = data - unicast / 5;
    assert_eq!(counter(&run, "meadcast_sender_packets"), in_lists);
    assert_eq!(counter(&run, "meadcast_sender_listed"), 5 * in_lists);
    let requests = counter(&run, "meadcast_sender_requests");
    assert_eq!(frames(&run, "s", "r0"), unicast + in_lists + requests);
    // Of the list one copy for each of the two routers.
    assert_eq!(frames(&run, "r0", "r1"), unicast / 5 * 3 + in_lists + requests / 5 * 3);
    assert_eq!(frames(&run, "r0", "r2"), unicast / 5 * 2 + in_lists + requests / 5 * 2);
    for (router, receiver) in [("r1", "a"), ("r1", "b"), ("r1", "c"), ("r2", "d"), ("r2", "e")] {
        assert_eq!(frames(&run, router, receiver), data + requests / 5, "{receiver}");
    }
    assert_eq!(
        (service(&run, "meadcast_unicast"), service(&run, "meadcast_copies")),
        (5 * in_lists, 2 * in_lists)
    );
    assert_eq!(service(&run, "meadcast_responses"), 2 * requests);
    assert_eq!(frames(&run, "r0", "s"), 2 * requests, "nothing but responses");
}

/// Nodes have the addresses of their numbers, from 1 on, in the order of the file.
#[test]
fn the_tree_that_a_sender_has_found_and_its_lists_stand_in_the_results() {
    let lines = [
        "sender",
        "  fd00::2 (1)",
        "    fd00::3 (2)",
        "      - fd00::5",
        "      - fd00::6",
        "      - fd00::7",
        "    fd00::4 (2)",
        "      - fd00::8",
        "      - fd00::9",
        "list | fd00::3 fd00::5 fd00::6 fd00::7 | fd00::4 fd00::8 fd00::9",
    ];
    let groups = [("all", "[a, b, c, d, e]", "{ meadcast: { delay: 3s, interval: 0s } }")];
    let run = tree_of_routers(&groups, ROUTERS);
    assert_eq!(run.flows[0].delivery, lines);
    let text = text_of_tree(&groups, ROUTERS);
    let case = load_text(Path::new("t.yaml"), &text, &Overrides::default()).unwrap().cases.remove(0);
    let mut world = World::new(Arc::clone(&case.scenario), 0, None).unwrap();
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    assert!(world.run_until(at(2), &Monitor::default()));
    let before = "unicast: fd00::5 fd00::6 fd00::7 fd00::8 fd00::9";
    assert_eq!(world.snapshot().flows[0].delivery.last().unwrap(), before);
    assert!(world.run_until(at(10), &Monitor::default()));
    assert_eq!(world.snapshot().flows[0].delivery, lines);
    // Of others nothing is said.
    assert!(tree("unicast", "").flows[0].delivery.is_empty());
}

#[test]
fn without_routers_that_take_part_it_is_unicast() {
    let lone = tree("{ meadcast: { delay: 0s, interval: 0s } }", "");
    let unicast = tree("unicast", "");
    for run in [&lone, &unicast] {
        assert_eq!(run.flows[0].figures.reliability, Some(1.0));
    }
    assert_eq!(counter(&lone, "meadcast_sender_packets"), 0);
    assert_eq!(frames(&lone, "s", "r0"), frames(&unicast, "s", "r0") + 5, "and the requests");
}

#[test]
fn a_member_that_comes_later_has_each_datagram_from_then_on() {
    let routers = format!(
        "{ROUTERS}\nevents: [{{ at: 10 s, group: all, leave: [e] }}, {{ at: 20 s, group: all, join: [e] }}]"
    );
    let run = tree("{ meadcast: { delay: 0s } }", &routers);
    assert_eq!(run.flows[0].figures.reliability, Some(1.0));
    let (stays, comes) = (frames(&run, "r2", "d"), frames(&run, "r2", "e"));
    assert!((stays - comes).abs_diff(1000) <= 20, "{stays} {comes}");
}

#[test]
fn a_router_that_stops_costs_no_more_than_the_time_to_the_next_discovery() {
    let routers = format!("{ROUTERS}\nevents: [{{ at: 10 s, service: mead, stop: true, on: [r1] }}]");
    let run = tree("{ meadcast: { delay: 0s } }", &routers);
    // r1's three receivers: the first of the list reads the packet for itself, two of five get nothing for up to 7 s.
    let lost = 1.0 - run.flows[0].figures.reliability.unwrap();
    assert!((0.0..7.0 / 30.0 * 2.0 / 5.0).contains(&lost) && lost > 0.0, "{lost}");
    let (data, copies) = (counter(&run, "meadcast_sender_data"), frames(&run, "r0", "r1"));
    assert!(copies > data * 3 / 2, "then r0 serves them, with a packet for each: {copies} of {data}");
}

const REVISION: &str = "{ meadcast: { delay: 0s, interval: 0s, hold: on, next-hop: on, short-lists: on, \
                        grouping: least-bytes, key: 00112233445566778899aabbccddeeff } }";

fn routers_with(options: &str) -> String {
    ROUTERS.replace("run: meadcast-router,", &format!("run: meadcast-router, {options},"))
}

#[test]
fn the_revision_delivers_as_lists_do_with_fewer_bytes() {
    let routers = routers_with("key: 00112233445566778899aabbccddeeff");
    let run = tree(REVISION, &routers);
    assert_eq!(run.flows[0].figures.reliability, Some(1.0));
    let (data, unicast) = (counter(&run, "meadcast_sender_data"), counter(&run, "meadcast_sender_unicast"));
    let in_lists = data - unicast / 5;
    assert_eq!(counter(&run, "meadcast_sender_packets"), in_lists);
    assert_eq!(frames(&run, "r0", "r1"), unicast / 5 * 3 + in_lists + 3);
    assert_eq!(
        (service(&run, "meadcast_unicast"), service(&run, "meadcast_copies")),
        (5 * in_lists, 2 * in_lists)
    );
    // Two routers and five receivers, whose addresses are the same but for a byte: 24 bytes, and not 128.
    assert_eq!(counter(&run, "meadcast_sender_header_bytes"), 24 * in_lists);
}

#[test]
fn a_sender_with_a_key_sends_by_unicast_where_routers_have_none_or_another() {
    for routers in [ROUTERS.to_owned(), routers_with("key: ffeeddccbbaa99887766554433221100")] {
        let run = tree(REVISION, &routers);
        assert_eq!(run.flows[0].figures.reliability, Some(1.0));
        assert_eq!(counter(&run, "meadcast_sender_packets"), 0);
        // Of two routers on the way to each of five receivers.
        assert_eq!(counter(&run, "refused_forged"), 10);
    }
}

/// Where packets go to the first receiver, that one gets the list of all (above).
#[test]
fn no_receiver_of_a_router_that_stops_gets_a_list_by_the_next_hop() {
    let routers = format!("{ROUTERS}\nevents: [{{ at: 10 s, service: mead, stop: true, on: [r1] }}]");
    let delivery = "{ meadcast: { delay: 0s, interval: 0s, next-hop: on } }";
    let run = tree(delivery, &routers);
    // Behind r1 three of five get nothing from then on, for which the sender hears that the port is unreachable.
    let arrived = run.flows[0].figures.reliability.unwrap();
    assert!((arrived - (1.0 - 21.0 / 30.0 * 3.0 / 5.0)).abs() < 0.02, "{arrived}");
    let served = frames(&run, "r1", "a");
    assert!((895..=905).contains(&served), "{served}");
}

#[test]
fn a_list_of_more_than_its_header_can_have_is_refused_in_one_line() {
    let text = text_of_tree(&[("all", "[a]", "{ meadcast: { max: 33 } }")], ROUTERS);
    let error = load_text(Path::new("bad.yaml"), &text, &Overrides::default()).unwrap_err().to_string();
    assert!(error.ends_with("`max`: lists of more than 32 addresses need `short-lists: on`"), "{error}");
    let text = text_of_tree(&[("all", "[a]", "{ meadcast: { key: 0123 } }")], ROUTERS);
    let error = load_text(Path::new("bad.yaml"), &text, &Overrides::default()).unwrap_err().to_string();
    assert!(error.ends_with("`key`: expected 32 hexadecimal digits or `none`"), "{error}");
}

/// Each flow has a sender with a hook of its own, and hears the responses to the other; b and c are in both groups.
#[test]
fn two_groups_of_one_node_are_both_sent_in_lists() {
    let delivery = "{ meadcast: { delay: 0s, interval: 0s } }";
    let groups = [("all", "[a, b, c]", delivery), ("some", "[b, c, d, e]", delivery)];
    let run = tree_of_routers(&groups, ROUTERS);
    assert_eq!(run.flows.len(), 2);
    for (flow, receivers) in run.flows.iter().zip([3, 4]) {
        let counter = |name: &str| flow.counters[&format!("meadcast_sender_{name}")];
        assert_eq!(flow.figures.reliability, Some(1.0), "{}", flow.name);
        let (data, unicast) = (counter("data"), counter("unicast"));
        let each = unicast / receivers;
        assert!((99..=101).contains(&each), "{}: before the discovery has ended: {each}", flow.name);
        assert_eq!(counter("packets"), data - each);
        assert_eq!(counter("listed"), receivers * counter("packets"));
        // Of two routers on the way to each receiver, and no other response counts.
        let responses = ["responses", "responses_late", "contradictions"].map(counter);
        assert_eq!(responses, [2 * receivers, 0, 0], "{}", flow.name);
    }
}

#[test]
fn over_ipv4_it_is_refused_in_one_line() {
    let text = "duration: 1 s
topology: { chain: { hops: 1, link: { rate: 1 Mbit/s } } }
groups: [{ name: g, members: [n1], delivery: meadcast }]
flows: [{ from: n0, to: g, over: udp, app: { cbr: { rate: 100 kbit/s } } }]
";
    let error = hopcast_runner::load_text(Path::new("bad.yaml"), text, &Overrides::default())
        .unwrap_err()
        .to_string();
    assert!(error.ends_with("`to`: `meadcast` is a protocol of IPv6: add `ip: 6` to the flow"), "{error}");
}

/// NORM repairs what is lost, on packets that fit the route with the longest list, whether data goes in lists or not.
#[test]
fn what_norm_sends_comes_whole_to_each_member_over_links_that_lose() {
    for services in [ROUTERS, ""] {
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
groups: [{{ name: g, members: [a, b, c], delivery: {{ meadcast: {{ delay: 0s, min-leaves: 1 }} }} }}]
flows: [{{ name: f, from: s, to: g, ip: 6, over: {{ norm: {{ rate: 3 Mbit/s }} }}, app: {{ bulk: {{ bytes: 2 MB, start: 3 s }} }} }}]
{services}
"
        );
        let run = document(&text).runs.into_iter().next().unwrap();
        assert_eq!(run.flows[0].figures.reliability, Some(1.0), "{services}");
        let in_lists = counter(&run, "meadcast_sender_packets");
        assert_eq!(in_lists > 1000, !services.is_empty(), "{in_lists}");
        assert!(
            run.hosts.get("too_big").is_none_or(|count| *count == 0),
            "packets fit the route with their lists"
        );
    }
}

/// Its rate counts what receivers hear: with lists of 30 addresses, whose headers are half of a frame, the other way
/// slow start would end at the minimum, since twice what arrives would be less than what was sent.
#[test]
fn norm_finds_its_rate_over_lists_whose_headers_are_half_of_a_frame() {
    let text = "
duration: 30 s
topology:
  nodes: [s, r0, r1, r2, a, b, c]
  links:
    - { between: [s, r0], rate: 10 Mbit/s, delay: 2 ms }
    - { between: [r0, r1], rate: 10 Mbit/s, delay: 2 ms }
    - { between: [r0, r2], rate: 10 Mbit/s, delay: 2 ms }
    - { between: [r1, a], rate: 10 Mbit/s, delay: 2 ms }
    - { between: [r1, b], rate: 10 Mbit/s, delay: 2 ms }
    - { between: [r2, c], rate: 10 Mbit/s, delay: 2 ms }
groups: [{ name: g, members: [a, b, c], delivery: { meadcast: { delay: 0s, max: 30, min-leaves: 1 } } }]
flows: [{ name: f, from: s, to: g, ip: 6, over: norm, app: { bulk: { bytes: 2 MB, start: 3 s } } }]
services: [{ name: mead, run: meadcast-router, on: [r0, r1, r2] }]
";
    let run = document(text).runs.into_iter().next().unwrap();
    let figures = &run.flows[0].figures;
    assert_eq!(figures.reliability, Some(1.0));
    // A list of six addresses in place of 30 leaves 7 of 10 Mbit/s for the payload.
    let took = figures.completed_s.unwrap();
    assert!(took < 4.0, "16 Mbit in {took:.1} s");
}

/// What a delivery adds counts, whoever asks how long a datagram may be.
#[test]
fn datagrams_leave_room_for_the_list() {
    let text = |app: &str| {
        format!(
            "duration: 4 s
topology: {{ chain: {{ hops: 2, link: {{ rate: 10 Mbit/s }} }} }}
groups: [{{ name: g, members: [n2], delivery: {{ meadcast: {{ delay: 0s, timeout: 1s, min-leaves: 1 }} }} }}]
services: [{{ name: mead, run: meadcast-router, on: [n1] }}]
flows: [{{ from: n0, to: g, ip: 6, over: udp, app: {{ {app} }} }}]
"
        )
    };
    let cbr = |size: u32| text(&format!("cbr: {{ rate: 100 kbit/s, size: {size} B }}"));
    let error = hopcast_runner::load_text(Path::new("bad.yaml"), &cbr(1277), &Overrides::default())
        .unwrap_err()
        .to_string();
    assert!(
        error.ends_with(
            "`size`: expected at most 1276 B, what the MTU of 1500 of the link `n0-n1` leaves over `udp` beside 176 B of the group's delivery (hosts do not fragment), found 1277 B"
        ),
        "{error}"
    );
    for app in [cbr(1276), text("bulk: { bytes: 2 MB }")] {
        let run = document(&app).runs.into_iter().next().unwrap();
        assert_eq!(run.flows[0].figures.reliability, Some(1.0), "{app}");
        assert!(counter(&run, "meadcast_sender_packets") > 0, "{app}");
        assert_eq!(run.hosts.get("too_big"), None);
    }
}

/// Bytes that all links and the sender's have carried, in datagrams of this size, for a group of these nodes of the
/// thesis' network: each frame once on a link.
fn testbed(from: &str, to: &str, delivery: &str, routers: &str, size: u32) -> (f64, f64) {
    let network = scenarios().join("networks/meadcast-testbed.yaml");
    let text = format!(
        "
duration: 7 s
measure: {{ from: 3 s }}
include: {}
groups: [{{ name: g, members: [{to}], delivery: {delivery} }}]
flows: [{{ name: f, from: {from}, to: g, ip: 6, over: udp, app: {{ cbr: {{ rate: 1 Mbit/s, size: {size} B, start: 3 s }} }} }}]
services: [{{ name: mead, run: meadcast-router, on: {routers} }}]
",
        network.display()
    );
    let run = document(&text).runs.into_iter().next().unwrap();
    assert_eq!(run.flows[0].figures.reliability, Some(1.0));
    let (all, own) = (run.network_bytes.unwrap(), run.flows[0].figures.sender_bytes.unwrap());
    (all as f64, own as f64)
}

/// Percent of the network's load and of the sender's that are saved against unicast.
fn savings(found: (f64, f64), unicast: (f64, f64)) -> [f64; 2] {
    [(found.0, unicast.0), (found.1, unicast.1)].map(|(found, all)| 100.0 * (1.0 - found / all))
}

/// Tables 5.1 and 5.2: what IP multicast saves follows from the topology.
#[test]
fn ip_multicast_saves_what_the_thesis_measured() {
    for (from, to, network, sender) in [
        ("c3001", "uc1-1", 59.59, 92.90),
        ("c3001", "uc1-2", 79.79, 96.47),
        ("c3001", "uc1-3", 86.53, 97.67),
        ("c3001", "uc1-4", 89.89, 98.22),
        ("c3001", "uc1-5", 91.45, 98.31),
        ("c4001", "uc2-1", 64.69, 89.03),
        ("c4001", "uc2-3", 88.24, 96.36),
        ("c4001", "uc2-5", 94.24, 97.86),
    ] {
        let of = |delivery| testbed(from, to, delivery, "no-router", 1450);
        let [of_network, of_sender] = savings(of("ip-multicast"), of("unicast"));
        let off = [of_network - network, of_sender - sender].map(f64::abs);
        assert!(off[0] < 1.5 && off[1] < 1.5, "{to}: {of_network:.2} {of_sender:.2}");
    }
}

/// Rows of table B.2, with lists of ten addresses, a range of 2 for `merge` (both in the legend of figure 5.3), and
/// datagrams that are as long as these leave room for, unicast's 1450 bytes. Routers that take part are all, the core,
/// and distribution and access but for the two routers that the sender is behind.
///
/// Of the twenty rows the seventeen of `WITHIN` are within 4 points. Two are barely more: `l2-l3` to 28 receivers, by
/// one packet, since one network has two equal paths between which the thesis' routers divided its clients, and `merge`
/// to 70, where the thesis' machine was at its limit. The third has a test of its own, below.
#[test]
fn configurations_save_what_the_thesis_measured() {
    const WITHIN: f64 = 4.0;
    const EXCEPTED: f64 = 4.5;
    let lists = "{ meadcast: { delay: 0s, interval: 0s, max: 10, min-leaves: 1";
    let (plain, merged) = (&format!("{lists} }} }}"), &format!("{lists}, merge: 2 }} }}"));
    let (all, edge, core) = ("routers", "uc1-edge", "core");
    let rows = [
        ("uc1-1", plain, all, 19.15, 76.19, WITHIN),
        ("uc1-1", merged, all, 32.52, 76.54, WITHIN),
        ("uc1-1", plain, core, 38.58, 69.84, WITHIN),
        ("uc1-2", plain, all, 51.29, 80.36, WITHIN),
        ("uc1-2", merged, all, 48.20, 84.17, WITHIN),
        ("uc1-2", plain, edge, 55.82, 69.59, EXCEPTED),
        ("uc1-2", plain, core, 42.31, 69.65, WITHIN),
        ("uc1-3", plain, all, 62.02, 79.57, WITHIN),
        ("uc1-3", merged, all, 59.90, 84.44, WITHIN),
        ("uc1-3", plain, edge, 64.85, 77.20, WITHIN),
        ("uc1-3", plain, core, 41.96, 70.63, WITHIN),
        ("uc1-4", plain, all, 65.85, 84.09, WITHIN),
        ("uc1-4", merged, all, 63.52, 84.14, WITHIN),
        ("uc1-4", plain, edge, 67.97, 80.48, WITHIN),
        ("uc1-4", plain, core, 43.05, 71.31, WITHIN),
        ("uc1-5", plain, all, 65.44, 79.40, WITHIN),
        ("uc1-5", merged, all, 59.53, 74.36, EXCEPTED),
        ("uc1-5", plain, edge, 66.72, 76.00, WITHIN),
        ("uc1-5", plain, core, 39.47, 66.27, WITHIN),
    ];
    let to_70 = testbed("c3001", "uc1-5", "unicast", "no-router", 1450);
    let mut unicast = BTreeMap::from([("uc1-5", to_70)]);
    let mut network_of = BTreeMap::new();
    let shares = unicast_to_70_of_the_thesis(to_70);
    for (to, delivery, routers, network, sender, within) in rows {
        let reference =
            *unicast.entry(to).or_insert_with(|| testbed("c3001", to, "unicast", "no-router", 1450));
        let found = savings(testbed("c3001", to, delivery, routers, 1272), reference);
        let published = match to {
            "uc1-5" => [(network, shares[0]), (sender, shares[1])].map(|(saved, part)| of_whole(saved, part)),
            _ => [network, sender],
        };
        let off = [found[0] - published[0], found[1] - published[1]].map(f64::abs);
        assert!(
            off[0] < within && off[1] < within,
            "{to} over {routers} by {delivery}: {found:.2?} and not {published:.2?}"
        );
        if delivery == plain {
            network_of.insert((to, routers), found[0]);
        }
    }
    // The first routers on the way would make the copies for all others behind them.
    for to in ["uc1-2", "uc1-3", "uc1-4"] {
        let (edge, all) = (network_of[&(to, edge)], network_of[&(to, all)]);
        assert!(edge > all + 1.0, "{to}: without routers before the paths part {edge:.2}, with all {all:.2}");
    }
}

/// The shares of the network's load and of the sender's that unicast to 70 receivers had in the thesis, of what unicast
/// is.
///
/// IP multicast puts each packet on each link of its tree once, whatever the machine is able to, so its published
/// savings show against which load they are: the sender's was that of 59.2 streams and not of 70, and figure 5.3 has
/// 2.67 GB for the network's, where 14 receivers had 0.56 GB.
fn unicast_to_70_of_the_thesis(unicast: (f64, f64)) -> [f64; 2] {
    let multicast = savings(testbed("c3001", "uc1-5", "ip-multicast", "no-router", 1450), unicast);
    [(multicast[0], 91.45), (multicast[1], 98.31)]
        .map(|(found, published)| (100.0 - found) / (100.0 - published))
}

/// A published saving against a part of unicast's load, as one against all of it.
fn of_whole(saved: f64, part: f64) -> f64 {
    100.0 - (100.0 - saved) * part
}

/// Table B.2's `l2-l3` to 14 receivers, 19.04 and 27.69, is no row of the routers that it names.
///
/// A packet ends at the sender's place in the tree alone, and what is behind each of the eight routers next to it fits
/// a list of ten with its routers. So no order of responses, and neither of two equal paths, gives more than eight
/// packets, and these save what they save here at least. The thesis' sender sent ten, more bytes for 14 receivers than
/// for 28 (figure 5.4). With the second domain's routers off they are ten, and both figures are those of the thesis.
#[test]
fn the_thesis_had_not_all_routers_on_when_it_measured_the_edge_with_14_receivers() {
    let lists = "{ meadcast: { delay: 0s, interval: 0s, max: 10, min-leaves: 1 } }";
    let unicast = testbed("c3001", "uc1-1", "unicast", "no-router", 1450);
    let of = |routers: &str| savings(testbed("c3001", "uc1-1", lists, routers, 1272), unicast);
    let (named, but_one_domain) = (of("uc1-edge"), of("uc1-edge-134"));
    assert!(named[0] > 19.04 + 8.0 && named[1] > 27.69 + 8.0, "{named:.2?}");
    let off = [but_one_domain[0] - 19.04, but_one_domain[1] - 27.69].map(f64::abs);
    assert!(off[0] < 4.0 && off[1] < 4.0, "{but_one_domain:.2?}");
}

/// The thesis' tables B.1 and B.2: how much less the network and the sender carry than by unicast, in percent, with
/// lists of ten addresses. We are within a point of it but for two rows, which are within 2.1: the thesis' sender
/// grouped its receivers in an order that depends on that of the responses, and its routers had two equal paths to
/// some. The thesis does not say `min-leaves`; with 1 the figures are these.
#[test]
fn the_network_carries_as_much_less_as_the_thesis_measured() {
    const WITHIN: f64 = 1.0;
    const EXCEPTED: f64 = 2.1;
    let (all, core) = ("routers", "[r1, r2, r3, r4]");
    let lists =
        |more: &str| format!("{{ meadcast: {{ delay: 0s, interval: 0s, max: 10, min-leaves: 1{more} }} }}");
    let (plain, merged) = (lists(""), lists(", merge: 1"));
    for (from, to, delivery, routers, network, sender, within) in [
        ("c4001", "uc2-1", &plain, all, 29.46, 75.62, WITHIN),
        ("c4001", "uc2-1", &merged, all, 46.82, 76.59, WITHIN),
        ("c4001", "uc2-1", &plain, core, 50.05, 87.31, WITHIN),
        ("c3001", "uc1-1", &plain, all, 19.15, 76.19, WITHIN),
        ("c3001", "uc1-2", &plain, all, 51.29, 80.36, WITHIN),
        ("c3001", "uc1-3", &plain, all, 62.02, 79.57, EXCEPTED),
        ("c3001", "uc1-1", &plain, core, 38.58, 69.84, EXCEPTED),
    ] {
        let found = testbed(from, to, delivery, routers, 1272);
        let less = savings(found, testbed(from, to, "unicast", routers, 1272));
        let off = [less[0] - network, less[1] - sender].map(f64::abs);
        assert!(off[0] < within && off[1] < within, "{to} over {routers} by {delivery}: {less:.2?}");
    }
}
