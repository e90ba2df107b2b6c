//! Groups of receivers in virtual time: the traffic of links, the deliveries to members, and the files that are
//! refused.

#![allow(clippy::unwrap_used)] // in helpers of tests too

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::path::{Path, PathBuf};

use crate::common::{document, document_on};
use hopcast_runner::{load, load_text, run};
use hopcast_stack::deliveries::DELIVERIES;
use hopcast_twin::Monitor;
use hopcast_twin::results::{Document, Run};
use hopcast_twin::scenario::{Overrides, notes};

/// Bytes of a frame: the payload of 1,000 B with its headers of UDP, IPv4 and Ethernet.
const FRAME: u64 = 1000 + 8 + 20 + 14;
const FRAME6: u64 = FRAME + 20;

/// The one run of the scenario in `text`.
fn one_run(text: &str) -> Run {
    document(text).runs.remove(0)
}

/// Fails unless each receiver of each flow got every unit that was sent to it, once; returns their numbers.
#[track_caller]
fn all_arrived(run: &Run) -> Vec<u64> {
    let mut sent = Vec::new();
    for flow in &run.flows {
        for receiver in &flow.receivers {
            let (name, figures) = (&receiver.node, &receiver.figures);
            assert_eq!(figures.reliability, Some(1.0), "{} at {name}: {figures:?}", flow.name);
            sent.push(figures.sent_units);
        }
        for counter in ["damaged_units", "duplicate_units"] {
            assert_eq!(flow.counters[counter], 0, "{}: {counter}", flow.name);
        }
    }
    sent
}

/// The directions that carried anything, each from a node to another, with the bytes; of a switch, one to each station.
fn carried(run: &Run) -> BTreeMap<(&str, &str), u64> {
    let sent = run.links.iter().filter(|link| link.sent_bytes > 0);
    sent.map(|link| ((&*link.from, &*link.to), link.sent_bytes)).collect()
}

/// The study of the 204 nodes, all cases.
fn study() -> Document {
    let path = scenarios().join("studies/multicast-tree.yaml");
    let plan = load(&path, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
    run(&plan, 2, None, &Monitor::default()).unwrap()
}

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

/// The member networks of the study's flow, from c3001.
const NETWORKS: [u32; 14] = [11, 14, 16, 21, 22, 23, 28, 35, 36, 38, 42, 43, 44, 46];
const PACKETS: u64 = 1250;

#[test]
fn ip_multicast_saves_what_counting_the_links_of_its_tree_says() {
    let document = study();
    let load = |run: &Run| {
        assert_eq!(run.network_bytes, run.flows[0].figures.network_bytes);
        run.network_bytes.unwrap()
    };
    // The thesis measured the middle column. One link more than routers' distance to the sender's network, another of
    // the receiver's: 99 for a receiver in each network, and 40 of the tree.
    let expected =
        [(1, 59.59, 59.60), (2, 79.79, 79.80), (3, 86.53, 86.53), (4, 89.89, 89.90), (5, 91.45, 91.92)];
    for (case, (clients, measured, counted)) in document.runs.chunks(2).zip(expected) {
        let [unicast, multicast] = case else { panic!() };
        assert_eq!(case[0].parameters["groups.clients.members"], format!("uc1-{clients}"));
        for run in case {
            assert_eq!(all_arrived(run), vec![PACKETS; 14 * clients]);
        }
        assert_eq!(load(unicast), 99 * clients as u64 * PACKETS * FRAME6);
        assert_eq!(load(multicast), 40 * PACKETS * FRAME6);
        let saving = 100.0 * (1.0 - load(multicast) as f64 / load(unicast) as f64);
        assert!((saving - counted).abs() < 0.1, "{clients}: {saving} %");
        assert!((saving - measured).abs() < 0.5, "{clients}: {saving} %");
    }
}

#[test]
fn each_link_of_the_tree_carries_each_packet_once_and_no_other_link_any() {
    let document = study();
    for (case, clients) in document.runs.chunks(2).zip(1..) {
        let links = carried(&case[1]);
        assert!(links.values().all(|&bytes| bytes == PACKETS * FRAME6), "{links:?}");
        // A frame to a group goes to all stations of a switch: each is said to have been sent it, from one station.
        let mut senders: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
        for link in case[1].links.iter().filter(|link| link.sent_bytes > 0) {
            senders.entry(&link.name).or_default().insert(&link.from);
        }
        assert!(senders.values().all(|from| from.len() == 1), "{senders:?}");
        // Links between routers: each router is reached once, on from one that is reached, and none in vain.
        let between = |&&(from, to): &&(&str, &str)| from.starts_with('r') && to.starts_with('r');
        let hops: Vec<_> = links.keys().filter(between).copied().collect();
        let parents: BTreeMap<&str, &str> = hops.iter().map(|&(from, to)| (to, from)).collect();
        assert_eq!(parents.len(), hops.len(), "a router is reached twice: {hops:?}");
        let root = senders["net30"].first().copied();
        assert_eq!(root, Some("c3001"));
        let mut needed = BTreeSet::new();
        for network in NETWORKS {
            let name = format!("net{network}");
            let mut router = *senders[&*name].first().unwrap();
            assert!(router.starts_with('r'), "{router} sends in {name}");
            // From each network to the sender's: r300's.
            while let Some(&parent) = parents.get(router) {
                needed.insert((parent, router));
                router = parent;
            }
            assert_eq!(router, "r300");
        }
        assert_eq!(needed, hops.iter().copied().collect(), "{clients} clients a network");
        // The networks of receivers and of the sender, and no other, carry anything.
        let networks: BTreeSet<String> =
            senders.keys().filter(|name| name.starts_with("net")).map(|name| (*name).to_owned()).collect();
        let expected: BTreeSet<String> =
            NETWORKS.iter().chain(&[30]).map(|number| format!("net{number}")).collect();
        assert_eq!(networks, expected);
    }
}

/// Two switches of receivers behind a chain of routers, with a longer route around it.
const SMALL: &str = "duration: 11s
topology:
  nodes: [s, t, u, r1, r2, r3, a, b, c]
  links:
    - { between: [s, r1], rate: 10 Mbit/s, delay: 1ms }
    - { between: [t, r2], rate: 10 Mbit/s, delay: 1ms }
    - { between: [r1, r2], rate: 10 Mbit/s, delay: 1ms }
    - { between: [r1, r3], rate: 10 Mbit/s, delay: 1ms }
    - { between: [r3, r2], rate: 10 Mbit/s, delay: 1ms }
    - { name: yard, switch: [r2, a, b, c], rate: 10 Mbit/s, delay: 1ms }
    - { between: [u, r3], rate: 10 Mbit/s, delay: 1ms }
";

const CBR: &str = "{ cbr: { rate: 800 kbit/s, size: 1000 B, stop: 10s } }";

fn small(rest: &str) -> Run {
    one_run(&format!("{SMALL}{}", rest.replace("CBR", CBR)))
}

#[test]
fn a_link_that_goes_down_moves_the_tree_and_back() {
    let run = small(
        "groups: [{ name: g, members: [a, b], delivery: ip-multicast }]
flows: [{ from: s, to: g, over: udp, app: CBR }]
events:
  - { at: 3008ms, links: r1-r2, down: true }
  - { at: 7008ms, links: r1-r2, up: true }
",
    );
    // 100 packets a second: 3 s over the short way, 4 s over r3, 3 s over the short way again, and nothing is lost, as
    // no packet is on its way there at the instants of the changes.
    assert_eq!(all_arrived(&run), [1000, 1000]);
    let links = carried(&run);
    let packets = |from, to| links.get(&(from, to)).copied().unwrap_or(0) / FRAME;
    assert_eq!(packets("s", "r1"), 1000);
    assert_eq!((packets("r1", "r2"), packets("r1", "r3"), packets("r3", "r2")), (600, 400, 400));
    assert_eq!((packets("r2", "a"), packets("r2", "b")), (1000, 1000));
    assert_eq!(run.network_bytes, Some((1000 + 600 + 2 * 400 + 1000) * FRAME));
}

#[test]
fn a_member_on_the_way_to_another_gets_all_too() {
    for (to, delivery) in [("film", "ip-multicast"), ("film", "unicast"), ("[n1, n3, n2]", "")] {
        let group = match delivery {
            "" => String::new(),
            delivery => format!("groups: [{{ name: film, members: [n2, n1, n3], delivery: {delivery} }}]\n"),
        };
        let run = one_run(&format!(
            "duration: 11s
topology: {{ chain: {{ hops: 3, link: {{ rate: 10 Mbit/s, delay: 1ms }} }} }}
{group}flows: [{{ from: n0, to: {to}, over: udp, app: {CBR} }}]
"
        ));
        assert_eq!(all_arrived(&run), [1000; 3], "{to} {delivery}");
        let frames = if delivery == "ip-multicast" { 3 } else { 1 + 2 + 3 };
        assert_eq!(run.network_bytes, Some(frames * 1000 * FRAME), "{to} {delivery}");
    }
}

#[test]
fn several_senders_each_have_a_tree_of_their_own() {
    let run = small(
        "groups: [{ name: g, members: [a, s], delivery: ip-multicast }]
flows:
  - { name: one, from: s, to: g, over: udp, app: CBR }
  - { name: two, from: t, to: g, over: udp, app: CBR }
  - { name: three, from: u, to: g, over: udp, app: CBR }
",
    );
    // s is a member, and does not get what it sends itself.
    assert_eq!(run.flows.iter().map(|flow| flow.receivers.len()).collect::<Vec<_>>(), [1, 2, 2]);
    assert_eq!(all_arrived(&run), [1000; 5]);
    let links = carried(&run);
    let packets = |from, to| links.get(&(from, to)).copied().unwrap_or(0) / FRAME;
    // From s to a by r1-r2; from t to both; from u by r3-r2 to a, and by r3-r1 to s.
    assert_eq!((packets("r1", "r2"), packets("r2", "r1"), packets("r1", "s")), (1000, 1000, 2000));
    assert_eq!((packets("r3", "r2"), packets("r3", "r1"), packets("r2", "a")), (1000, 1000, 3000));
    // Of several flows nobody says whose a frame was.
    assert_eq!(run.flows[0].figures.network_bytes, None);
    let total = 3 * 1000 + 1000 + 1000 + 2000 + 1000 + 1000 + 3000;
    assert_eq!(run.network_bytes, Some(total * FRAME));
}

#[test]
fn members_of_one_source_get_nothing_of_other_sources() {
    let of = |delivery: &str| {
        let run = small(&format!(
            "groups:
  - {{ name: g, members: [a], delivery: {delivery} }}
flows:
  - {{ name: one, from: s, to: g, over: udp, app: CBR }}
  - {{ name: two, from: t, to: g, over: udp, app: CBR }}
events: [{{ at: 5s, group: g, join: [b] }}]
"
        ));
        assert_eq!(all_arrived(&run), [1000, 500, 1000, 500], "{delivery}");
        run
    };
    let (any, one) = (of("ip-multicast"), of("{ ip-multicast: { one-source: true } }"));
    assert_eq!(any.network_bytes, one.network_bytes);
    // Each flow's members asked for its sender alone, so that a stranger's packets to the address end where they begin.
    let strangers = |delivery: &str| {
        small(&format!(
            "groups:
  - {{ name: g, members: [a], delivery: {delivery} }}
  - {{ name: h, members: [c], delivery: {delivery} }}
flows:
  - {{ name: one, from: s, to: g, over: udp, app: CBR }}
  - {{ name: two, from: t, to: h, over: udp, app: CBR }}
"
        ))
    };
    assert_eq!(all_arrived(&strangers("{ ip-multicast: { one-source: true } }")), [1000, 1000]);
}

#[test]
fn broadcast_is_sent_once_on_a_switch_and_on_a_medium() {
    for kind in ["switch", "medium"] {
        let run = one_run(&format!(
            "duration: 11s
topology: {{ nodes: [s, a, b, c], links: [{{ name: l, {kind}: [s, a, b, c], rate: 10 Mbit/s, delay: 1ms }}] }}
groups: [{{ name: g, members: [a, b], delivery: broadcast }}]
flows: [{{ from: s, to: g, over: udp, app: {CBR} }}]
"
        ));
        assert_eq!(all_arrived(&run), [1000, 1000], "{kind}");
        assert_eq!(run.network_bytes, Some(1000 * FRAME), "{kind}");
        assert_eq!(run.flows[0].figures.network_bytes, Some(1000 * FRAME), "{kind}");
    }
}

#[test]
fn unicast_sends_a_copy_to_each_member_of_the_moment() {
    let run = small(
        "groups: [{ name: g, members: [a, b], delivery: unicast }]
flows: [{ from: s, to: g, over: udp, app: CBR }]
events:
  - { at: 4s, group: g, join: [t] }
  - { at: 6s, group: g, leave: [a] }
",
    );
    assert_eq!(all_arrived(&run), [600, 1000, 600]);
    let links = carried(&run);
    assert_eq!(links[&("s", "r1")], (600 + 1000 + 600) * FRAME);
    assert_eq!(
        (links[&("r2", "a")], links[&("r2", "b")], links[&("r2", "t")]),
        (600 * FRAME, 1000 * FRAME, 600 * FRAME)
    );
    assert_eq!(run.flows[0].counters["unicast_copies"], 2200);
}

#[test]
fn a_late_joiner_is_measured_from_its_join_on() {
    for delivery in ["unicast", "ip-multicast"] {
        let run = small(&format!(
            "groups: [{{ name: g, members: [a], delivery: {delivery} }}]
flows: [{{ from: s, to: g, over: udp, app: {{ cbr: {{ rate: 800 kbit/s, size: 1000 B }} }} }}]
events: [{{ at: 8s, group: g, join: [b] }}]
"
        ));
        assert_eq!(all_arrived(&run), [1100, 300], "{delivery}");
        // Goodput is of the time in which it is a member: the first of its packets takes 4 ms and some to arrive.
        for receiver in &run.flows[0].receivers {
            let goodput = receiver.figures.goodput_mbps.unwrap();
            assert!((goodput - 0.8).abs() < 0.8 * 0.005, "{delivery} at {}: {goodput}", receiver.node);
            assert!(receiver.figures.latency_ms.unwrap().max < 10.0);
        }
    }
}

/// A join or a leave each second among 70 nodes, over `delivery`.
fn churn(delivery: &str) -> (String, Vec<u64>) {
    const LENGTH: u64 = 60;
    let mut text = format!(
        "duration: {LENGTH}s
include: {}
groups: [{{ name: g, members: [uc1-3], delivery: {delivery} }}]
flows: [{{ from: c3001, to: g, over: udp, ip: 6, app: {{ cbr: {{ rate: 80 kbit/s, size: 1000 B }} }} }}]
events:
",
        scenarios().join("networks/meadcast-testbed.yaml").display()
    );
    // Ten datagrams a second, at each full tenth: so a change at a full second comes just before one.
    let name = |place: usize| format!("c{}", NETWORKS[place % 14] * 100 + 1 + place as u32 / 14);
    let mut units: Vec<u64> = (0..70).map(|place| if place < 42 { 10 * LENGTH } else { 0 }).collect();
    let mut member: Vec<bool> = (0..70).map(|place| place < 42).collect();
    let mut joined = Vec::new();
    for second in 1..LENGTH {
        // Every place in turn, in steps that have no divisor in common with 70.
        let place = (second as usize * 27) % 70;
        let (word, rest) = if member[place] { ("leave", 10 * (LENGTH - second)) } else { ("join", 0) };
        writeln!(text, "  - {{ at: {second}s, group: g, {word}: {} }}", name(place)).unwrap();
        if member[place] {
            units[place] -= rest;
        } else {
            units[place] += 10 * (LENGTH - second);
            joined.push(place);
        }
        member[place] = !member[place];
    }
    // In the order of the document: the members of the beginning as the file has them, then by their joins.
    let mut first: Vec<usize> = (0..42).collect();
    first.sort_by_key(|&place| name(place));
    let mut seen: BTreeSet<usize> = first.iter().copied().collect();
    first.extend(joined.into_iter().filter(|&place| seen.insert(place)));
    (text, first.into_iter().map(|place| units[place]).collect())
}

#[test]
fn a_group_that_churns_loses_nothing_for_anybody_while_it_is_a_member() {
    for delivery in ["unicast", "ip-multicast"] {
        let (text, expected) = churn(delivery);
        assert!(expected.len() > 50);
        assert_eq!(all_arrived(&one_run(&text)), expected, "{delivery}");
    }
}

#[test]
fn the_same_scenario_of_groups_is_the_same_bytes_twice() {
    let (text, _) = churn("ip-multicast");
    let bytes = |threads| serde_json::to_vec(&document_on(threads, &text)).unwrap();
    assert_eq!(bytes(1), bytes(2));
}

#[test]
fn a_file_and_a_video_arrive_whole_at_all_members() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/lib.rs");
    for delivery in ["ip-multicast", "unicast"] {
        let run = small(&format!(
            "groups: [{{ name: g, members: [a, b, u], delivery: {delivery} }}]
flows:
  - {{ name: file, from: s, to: g, over: udp, app: {{ file: {{ path: {} }} }} }}
  - {{ name: video, from: t, to: g, over: udp, app: {{ video: {{ rate: 1 Mbit/s, stop: 10s }} }} }}
",
            file.display()
        ));
        all_arrived(&run);
        for receiver in &run.flows[0].receivers {
            assert_eq!(receiver.figures.hash_ok, Some(true), "{delivery} at {}", receiver.node);
            assert!(receiver.figures.completed_s.is_some());
        }
        for receiver in &run.flows[1].receivers {
            let video = receiver.figures.video.as_ref().unwrap();
            assert_eq!(
                (video.frames_sent, video.frames_delivered, video.frames_lost),
                (250, 250, 0),
                "{delivery}"
            );
            assert_eq!(video.decodable_frame_ratio, Some(1.0));
        }
    }
}

/// A good scenario of a group, for [`MISTAKES`].
const GOOD: &str = "duration: 10s
topology: { chain: { hops: 3, link: { rate: 10 Mbit/s } } }
groups: [{ name: film, members: [n1, n2], delivery: ip-multicast }]
events: [{ at: 2s, group: film, join: [n3] }]
flows: [{ from: n0, to: film, over: udp, app: { cbr: { rate: 100 kbit/s } } }]
";

/// A part of the good file, its replacement, and the error.
const MISTAKES: &[(&str, &str, &str)] = &[
    ("join: [n3]", "join: [n1]", "bad.yaml:4:39: `n1` is a member already of `film` at 2s"),
    ("join: [n3]", "leave: [n3]", "bad.yaml:4:40: `n3` is no member of `film` at 2s"),
    ("group: film", "group: flim", "bad.yaml:4:27: `group`: there is no group `flim`: did you mean `film`?"),
    ("name: film", "name: n1", "bad.yaml:3:18: a group needs a name of its own: `n1` is a node"),
    (
        "ip-multicast",
        "ip-mulitcast",
        "bad.yaml:3:53: there is no delivery `ip-mulitcast`: did you mean `ip-multicast`? (deliveries: ALL)",
    ),
    (
        "ip-multicast",
        "broadcast",
        "bad.yaml:5:25: `to`: `broadcast` reaches one segment, and none joins `n0` with all members of `film`",
    ),
    (
        "to: film",
        "to: film, delivery: unicast",
        "bad.yaml:5:41: `delivery`: the group of `to` has one of its own",
    ),
    (
        "cbr: { rate: 100 kbit/s }",
        "messages: { size: 100 kB, rate: 1 Hz }",
        "bad.yaml:5:67: `size`: expected 16 B to 65507 B, found `100 kB`",
    ),
    (
        "cbr: { rate: 100 kbit/s }",
        "iperf3: { rate: 100 kbit/s }",
        "bad.yaml:5:25: `to`: `iperf3` has one receiver; several may have `cbr`, `bulk`, `file`, `video`, and by `ip-multicast` `iperf2`, `libnorm`, `openpgm`, `jgroups`, `uftp`, `udpcast`",
    ),
    (
        "cbr: { rate: 100 kbit/s }",
        "iperf2: { rate: 100 kbit/s }",
        "bad.yaml:5:25: `to`: `iperf2` joins when it starts, so members of `film` can neither join nor leave by events",
    ),
    (", join: [n3]", "", "bad.yaml:4:10: an event of a group needs somebody to `join` or `leave` it"),
    (
        "delivery: ip-multicast",
        "delivery: { ip-multicast: { one-sources: true } }",
        "bad.yaml:3:71: unknown key `one-sources` in `ip-multicast`: did you mean `one-source`? (allowed here: one-source, routing)",
    ),
    ("to: film", "to: flim", "bad.yaml:5:25: `to`: there is no node or group `flim`: did you mean `film`?"),
    (
        "to: film",
        "to: [n2, film]",
        "bad.yaml:5:30: `to`: `film` is a group, and a flow goes to one or to some nodes",
    ),
    ("from: n0", "from: film", "bad.yaml:5:17: `from`: expected the node that sends, and `film` is a group"),
    (
        "members: [n1, n2]",
        "members: [n1, m2]",
        "bad.yaml:3:38: `members`: there is no node `m2`: did you mean `n2`?",
    ),
    ("to: film", "to: all", "bad.yaml:5:25: `to`: `all` may be several nodes: write `to: [all]`"),
    ("join: [n3]", "join: [al]", "bad.yaml:4:40: `join`: there is no node `al`: did you mean `all`?"),
    ("members: [n1, n2]", "members: [n1, n1]", "bad.yaml:3:38: `members`: `n1` is listed twice"),
    (
        "n2], delivery: ip-multicast }]\nevents: [{ at: 2s, group: film, join: [n3] }]",
        "n2] }, { name: film }]",
        "bad.yaml:3:53: the group name `film` is taken already",
    ),
    (
        "[n1, n2], delivery: ip-multicast }]\nevents: [{ at: 2s, group: film, join: [n3] }]",
        "[n0] }]",
        "bad.yaml:4:25: `to`: `film` has no members but the sender",
    ),
    (
        "group: film, join: [n3]",
        "join: [n3]",
        "bad.yaml:4:26: `join` and `leave` need the `group` that is meant",
    ),
];

#[test]
fn each_mistake_about_a_group_is_one_line_with_its_place() {
    let error = |text: &str| match load_text(Path::new("bad.yaml"), text, &Overrides::default()) {
        Ok(_) => "fine".to_owned(),
        Err(error) => error.to_string(),
    };
    let deliveries: Vec<_> = DELIVERIES.iter().map(|row| row.name).collect();
    assert_eq!(error(GOOD), "fine");
    for (part, replacement, expected) in MISTAKES {
        assert!(GOOD.contains(part), "{part}");
        let expected = expected.replace("ALL", &deliveries.join(", "));
        assert_eq!(error(&GOOD.replacen(part, replacement, 1)), expected, "{replacement}");
    }
    let notes = |text: &str| {
        let plan = load_text(Path::new("good.yaml"), text, &Overrides::default());
        notes(&plan.unwrap_or_else(|error| panic!("{error}")))
    };
    assert_eq!(notes(GOOD), [""; 0]);
    let late = GOOD.replacen("at: 2s", "at: 10s", 1).replacen("to: film", "to: n1", 1);
    let expected = [
        "no flow goes to group film",
        "the event of group film at 10s is not before the end of the run at 10s",
    ];
    assert_eq!(notes(&late), expected);
    let key = "bad.yaml:4:33: unknown key `joins` in an event: did you mean `join`?";
    let found = error(&GOOD.replacen("join:", "joins:", 1));
    assert!(found.starts_with(key), "{found}");
    let tree = GOOD.replacen("udp", "brtp", 1);
    let expected =
        "bad.yaml:5:25: `to`: `brtp` has a tree of its own, and no delivery: write its receivers as a list";
    assert!(error(&tree).starts_with(expected), "{}", error(&tree));
    let stream = GOOD.replacen("udp, app: { cbr: { rate: 100 kbit/s } }", "tcp-cubic, app: bulk", 1);
    let expected = "bad.yaml:5:25: `to`: `tcp-cubic` has one receiver; several are served by ";
    assert!(error(&stream).starts_with(expected), "{}", error(&stream));
}

#[test]
fn iperf2_has_a_group_where_it_can_serve_one_and_else_a_line_with_the_place() {
    let with = |delivery: &str, app: &str| {
        let text = format!(
            "title: t\nduration: 1 s\ngroups: [{{ name: film, members: [n1, n2], delivery: {delivery} }}]\n\
             topology: {{ chain: {{ hops: 2, link: {{ rate: 1 Mbit/s }} }} }}\n\
             flows: [{{ from: n0, to: film, over: udp, app: {{ iperf2: {{ rate: 100 kbit/s{app} }} }} }}]\n"
        );
        load_text(Path::new("bad.yaml"), &text, &Overrides::default()).map_err(|error| error.to_string())
    };
    assert!(with("ip-multicast", "").is_ok());
    let refused = |delivery, app| with(delivery, app).err().unwrap();
    assert_eq!(
        refused("unicast", ""),
        "bad.yaml:5:25: `to`: `iperf2` sends to several receivers by `ip-multicast` alone, not by `unicast`"
    );
    assert_eq!(
        refused("ip-multicast", ", reverse: on"),
        "bad.yaml:5:25: `to`: `iperf2` with `reverse` has one receiver: a group sends nothing back"
    );
    assert_eq!(
        refused("ip-multicast", ", parallel: 2"),
        "bad.yaml:5:25: `to`: `iperf2` to a group has one connection, and `parallel` asks for 2"
    );
}

#[test]
fn programs_that_send_a_file_to_a_group_say_what_they_need() {
    let with = |to: &str, app: &str| {
        let text = format!(
            "title: t\nduration: 1 s\ngroups: [{{ name: one, members: [n1], delivery: {{ ip-multicast: {{ one-source: on }} }} }}]\n\
             topology: {{ chain: {{ hops: 2, link: {{ rate: 1 Mbit/s }} }} }}\n\
             flows: [{{ from: n0, to: {to}, app: {app} }}]\n"
        );
        load_text(Path::new("bad.yaml"), &text, &Overrides::default()).map_err(|error| error.to_string())
    };
    for program in ["libnorm", "openpgm", "jgroups", "uftp", "udpcast"] {
        let app = format!("{{ {program}: {{ bytes: 800 kB, rate: 500 kbit/s, arguments: [a, b] }} }}");
        let plan = with("[n1, n2], over: udp, delivery: ip-multicast", &app).unwrap();
        assert!(plan.cases[0].scenario.flows[0].is_bounded());
        assert!(with("[n1], over: udp, delivery: ip-multicast", &app).is_ok());
        let refused = |to: &str| with(to, &app).err().unwrap();
        assert_eq!(
            refused("n1, over: udp"),
            format!(
                "bad.yaml:5:25: `to`: `{program}` sends to groups: add `delivery: ip-multicast`, also for one receiver"
            )
        );
        assert_eq!(
            refused("[n1, n2], over: udp, delivery: unicast"),
            format!(
                "bad.yaml:5:25: `to`: `{program}` sends to several receivers by `ip-multicast` alone, not by `unicast`"
            )
        );
        assert_eq!(
            refused("[n1, n2], over: udp, ip: 6, delivery: ip-multicast"),
            format!("bad.yaml:5:50: `ip`: `{program}` sends over IPv4 alone")
        );
        assert_eq!(
            refused("one, over: udp"),
            format!("bad.yaml:5:25: `to`: `{program}` joins groups of any source, not of `one-source`")
        );
        let refused = refused("[n1, n2], over: norm, delivery: ip-multicast");
        assert!(refused.contains("sends to groups by the host's own UDP, and `norm` offers"), "{refused}");
    }
}

#[test]
fn on_a_medium_of_several_hops_each_member_gets_each_datagram_once() {
    // Stations in a row, each of which hears its neighbours alone: a forwarder sends on the interface on which it
    // receives, and hears the copies of others.
    let run = one_run(
        "title: t
duration: 2 s
topology:
  nodes: [a, b, c, d, e, f]
  links:
    - { name: air, medium: [a, b, c, d, e, f], rate: 10 Mbit/s, mac: perfect, hears: [[a, b], [b, c], [c, d], [d, e], [e, f]] }
groups: [{ name: film, members: [c, f], delivery: ip-multicast }]
flows: [{ name: f, from: a, to: film, over: udp, app: { cbr: { rate: 80 kbit/s, size: 1000 B } } }]
",
    );
    let flow = &run.flows[0];
    assert_eq!(flow.figures.reliability, Some(1.0));
    assert_eq!(flow.counters["duplicate_units"], 0);
    // The sender and each station before the last sends it once.
    assert_eq!(run.hosts["group_copies"], 20 * 5);
}
