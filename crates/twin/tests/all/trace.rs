//! What `hopcast trace` says of packets in the logs of runs.

#![allow(clippy::unwrap_used)]

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::common::scenarios::only;
use hopcast_core::Instant;
use hopcast_runner::load;
use hopcast_trace::verdict::verdicts;
use hopcast_trace::view::{story_text, summary, summary_text};
use hopcast_trace::{Log, MemoryLog, Query, Recorder, follow};
use hopcast_twin::scenario::Overrides;
use hopcast_twin::scenario::model::Scenario;
use hopcast_twin::{Monitor, World, run_end};

/// The bytes of the log of a run.
fn recorded(scenario: &Arc<Scenario>) -> Vec<u8> {
    let memory = MemoryLog::default();
    let mut world = World::new(scenario.clone(), 0, None).unwrap();
    world.record(memory.recorder(1 << 30));
    assert!(world.run_until(run_end(scenario), &Monitor::default()));
    world.finish_recording().unwrap();
    memory.take()
}

fn fault_file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/faults").join(name)
}

fn log_of_file(name: &str) -> Log {
    let plan = load(&fault_file(name), &Overrides::default()).unwrap();
    Log::read(recorded(&plan.cases[0].scenario)).unwrap()
}

fn log_of(text: &str) -> Log {
    Log::read(recorded(&only(text))).unwrap()
}

/// The first line that a query gets.
fn first_line(log: &Log, query: &str) -> String {
    let story = follow(log, &Query::parse(query, log).unwrap());
    verdicts(&story).first().map(ToString::to_string).unwrap_or_default()
}

/// The text of a query.
fn text(log: &Log, query: &str) -> String {
    story_text(&follow(log, &Query::parse(query, log).unwrap()), 3)
}

#[test]
fn a_link_that_carries_one_way_is_where_answers_die() {
    let log = log_of_file("one-way-link.yaml");
    let line = "ICMP echo reply from b to a died on link r-b, from b to r: lost on the link, 10 of 10";
    assert_eq!(first_line(&log, "icmp between a and b"), line);
    let line = "ICMP echo request from a to b arrived at b, 10 of 10";
    assert_eq!(first_line(&log, "icmp from a to b"), line);
}

#[test]
fn a_loop_is_told_with_its_routers() {
    let log = log_of_file("routing-loop.yaml");
    let line = first_line(&log, "icmp from a to b");
    let expected = "ICMP echo request from a to b went round a loop r1 → r2 → r1 and died at r1: its hop limit is used up \
                    (hop_limit_exceeded), 4 of 4";
    assert_eq!(line, expected);
}

#[test]
fn a_port_that_does_not_admit_a_tag_is_told_with_the_bridge() {
    let log = log_of_file("port-without-tag.yaml");
    let line = first_line(&log, "arp between b and d");
    let expected = "ARP request from b for d died at t's right: the port that it came by is not in its VLAN \
                    (vlan_not_allowed_in), 5 of 5";
    assert_eq!(line, expected);
}

#[test]
fn a_port_that_takes_a_tag_off_is_where_the_answers_of_a_test_bed_lose_it() {
    let log = log_of_file("test-bed.yaml");
    let line = "ARP reply from ee2 to ee1 died at mesh1's ship: its VLAN has no interface here (frames_of_other_vlans), \
                5 of 5; mesh's mesh-bridge took its tag of VLAN 1 off";
    assert_eq!(first_line(&log, "arp between ee1 and ee2"), line);
    let story = follow(&log, &Query::parse("arp from ee1", &log).unwrap());
    let requests = verdicts(&story);
    assert!(requests.iter().any(|verdict| verdict.to_string().contains(" arrived at ee2")), "{requests:?}");
}

#[test]
fn frames_to_a_group_that_nobody_asks_for_are_told_with_the_bridges_that_flood_them() {
    let log = log_of_file("no-querier.yaml");
    let line = first_line(&log, "group film");
    for part in [
        "arrived at b, and copies died at ",
        "d-t: queue full",
        "; no querier: nobody asks hosts which groups they are members of, and s's left, t's right sent it by all ports",
    ] {
        assert!(line.contains(part), "{part}: {line}");
    }
    let line = first_line(&log, "icmp from c");
    assert!(
        line.starts_with("ICMP echo request from c to d died at t:eth2, before link d-t: queue full"),
        "{line}"
    );
}

#[test]
fn where_a_querier_asks_nothing_is_said_of_one() {
    let file = fault_file("no-querier.yaml");
    let text = std::fs::read_to_string(file).unwrap().replace("name: left,", "name: left, querier: on,");
    let log = log_of(&text);
    for query in ["group film", "icmp"] {
        let story = follow(&log, &Query::parse(query, &log).unwrap());
        assert!(verdicts(&story).iter().all(|verdict| verdict.note.is_none()), "{query}");
    }
}

#[test]
fn an_mtu_that_is_too_small_is_told_with_the_length() {
    let log = log_of_file("mtu-one-tag-short.yaml");
    let line = first_line(&log, "flow data");
    assert!(line.starts_with("UDP from a:"), "{line}");
    assert!(line.contains(" died at r: it is larger than the MTU of the next link (too_big), "), "{line}");
    assert!(line.contains("it has 1500 B"), "{line}");
}

#[test]
fn two_hosts_with_one_address_are_both_named() {
    let log = log_of_file("duplicate-address.yaml");
    let line = first_line(&log, "icmp from a to b");
    assert!(line.starts_with("ICMP echo request from a to b arrived at "), "{line}");
    assert!(line.ends_with("; 10.0.0.2 is claimed by b, c"), "{line}");
}

/// A network on which nothing is wrong.
const SOUND: &str = "duration: 1 s
neighbours: resolve
topology: { chain: { hops: 3, link: { rate: 10 Mbit/s, delay: 1 ms } } }
flows:
  - { name: f, from: n0, to: n3, over: udp, app: { cbr: { rate: 100 kbit/s, size: 200 B } } }
  - { name: t, from: n0, to: n3, over: tcp-cubic, app: { messages: { size: 500 B, every: 20 ms } } }
  - { name: p, from: n0, to: n3, over: ip, app: { ping: { every: 100 ms } } }
  - { name: c, from: n3, to: n0, over: [udp, tunnel, brtp], app: { cbr: { rate: 100 kbit/s, size: 200 B } } }
";

#[test]
fn nothing_died_where_nothing_is_wrong() {
    let log = log_of(SOUND);
    assert_eq!(summary(&log).drops, [], "{}", summary_text(&summary(&log)));
    for query in ["icmp between n0 and n3", "arp", "flow f"] {
        let story = follow(&log, &Query::parse(query, &log).unwrap());
        for verdict in verdicts(&story) {
            assert!(verdict.to_string().contains(" arrived at "), "{query}: {verdict}");
        }
    }
}

#[test]
fn a_packet_is_followed_from_application_to_application() {
    let log = log_of(SOUND);
    let text = text(&log, "flow f");
    assert!(text.starts_with("UDP from n0:60001 to n3:60000 arrived at n3, 63 of 63\n\n"), "{text}");
    for step in [
        "n0's application of flow f makes it",
        "n0's host had held it back, and hands it down to eth0",
        "+1.19 ms  n1:eth0 receives it",
        "n1's host hands it down to eth1",
        "hop limit 255 → 254",
        "n3's host hands it up",
        "✓ n3's application of flow f takes it",
    ] {
        assert!(text.contains(step), "{step}:\n{text}");
    }
}

#[test]
fn a_packet_that_became_part_of_others_is_followed_to_where_it_was_decoded() {
    let log = log_of(SOUND);
    let text = story_text(&follow(&log, &Query::parse("flow c", &log).unwrap()), 8);
    assert!(text.contains("n0's bats of flow c has decoded it, and hands it up"), "{text}");
    let of_application =
        text.lines().find(|line| line.starts_with("UDP from n3:59995 to n0:59994 arrived at n0, 63"));
    assert!(of_application.is_some(), "{text}");
}

#[test]
fn a_packet_that_waits_for_its_neighbour_is_followed_on() {
    let log = log_of(SOUND);
    let text = text(&log, "icmp from n0 to n3");
    assert!(text.contains("had held it back"), "{text}");
}

#[test]
fn a_recording_changes_nothing_about_a_run() {
    let scenario = only(SOUND);
    let counted = |record: bool| {
        let mut world = World::new(scenario.clone(), 0, None).unwrap();
        if record {
            world.record(Recorder::new(Box::new(io::sink()), 1 << 30));
        }
        world.run_until(run_end(&scenario), &Monitor::default());
        let hosts: Vec<_> = (0..4).map(|node| world.host_counters(node)).collect();
        (world.packet_hops(), world.transmissions(), hosts)
    };
    assert_eq!(counted(false), counted(true));
    assert_eq!(recorded(&scenario), recorded(&scenario), "the same run has the same log");
}

#[test]
fn a_query_that_cannot_be_read_says_where_and_what_is_near() {
    let log = log_of(SOUND);
    let error = |query: &str| Query::parse(query, &log).unwrap_err().to_string();
    assert_eq!(
        error("arp betwen n0 and n1"),
        "query, word 2: expected a protocol, or `from`, `to`, `between`, `port`, `vlan`, `at`, `group`, `flow`, \
         `packet` or `frame at`, not `betwen` (did you mean `between`?)"
    );
    assert_eq!(
        error("arp from n9"),
        "query, word 3: expected a node, a group or an address, not `n9` (did you mean `n0`?)"
    );
    assert_eq!(error("flow g"), "query, word 2: expected a flow, not `g`");
    assert_eq!(error("port 70000"), "query, word 2: expected a port, 0 to 65535, not `70000`");
    assert_eq!(error("between n0 and"), "query, word 4: expected a node, a group or an address, not the end");
    assert!(error("frame at 5 h").starts_with("query, word 3: expected a time such as"));
    assert_eq!(
        error("packet 1 packet 2"),
        "query, word 3: expected one `flow`, `packet` and `frame at` at most, not `packet`"
    );
    assert!(error("").starts_with("query, word 1: expected a query such as"));
}

#[test]
fn a_frame_is_found_by_its_time() {
    let log = log_of(SOUND);
    let first = log.events().next().unwrap().at;
    assert_eq!(first, Instant::ZERO);
    assert!(!text(&log, "frame at 0 s").contains("no packet"));
    assert!(text(&log, "frame at 0.5 s").contains("packet"));
}

#[test]
fn a_counter_that_rises_where_a_copy_goes_on_is_not_blamed_on_the_next_arrival() {
    let log = log_of(
        "duration: 2 s
neighbours: resolve
topology:
  nodes: [a, r, b, c]
  links:
    - { between: [a, r], rate: 10 Mbit/s, delay: 1 ms }
    - { between: [r, b], rate: 10 Mbit/s, delay: 1 ms }
    - { name: narrow, between: [r, c], rate: 10 Mbit/s, delay: 1 ms }
events:
  - { at: 500 ms, links: narrow, mtu: 1000 }
groups: [{ name: both, members: [b, c], delivery: ip-multicast }]
flows:
  - { name: g, from: a, to: both, over: udp, app: { cbr: { rate: 200 kbit/s, size: 1400 B } } }
  - { name: p, from: a, to: b, over: ip, app: { ping: { every: 100 ms, start: 1 s } } }
",
    );
    for query in ["arp", "icmp between a and b"] {
        let story = follow(&log, &Query::parse(query, &log).unwrap());
        for verdict in verdicts(&story) {
            assert!(verdict.to_string().contains(" arrived at "), "{query}: {verdict}");
        }
    }
    let text = text(&log, "group both");
    assert!(text.contains("too_big"), "{text}");
}

#[test]
fn a_station_that_relays_by_the_interface_of_arrival_does_not_keep_the_packet() {
    let log = log_of(
        "duration: 1 s
topology:
  nodes: [a, r, b]
  links: [{ name: air, medium: [a, r, b], rate: 10 Mbit/s, delay: 1 us, hears: [[a, r], [r, b]] }]
flows:
  - { name: f, from: a, to: b, over: udp, app: { cbr: { rate: 100 kbit/s, size: 500 B } } }
",
    );
    let text = text(&log, "flow f");
    assert!(text.contains(" arrived at b"), "{text}");
    assert!(!text.contains("keeps it") && !text.contains("r's host takes it"), "{text}");
}
