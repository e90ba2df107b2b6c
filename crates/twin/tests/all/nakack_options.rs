//! The options of `nakack`, and members that come and go.

use std::path::Path;

use crate::common::document;
use hopcast_runner::load_text;
use hopcast_twin::results::Flow;
use hopcast_twin::scenario::{Overrides, notes};

/// Messages over `nakack` to three members that lose a twentieth, the last of which may come or go by events.
fn to_three(over: &str, app: &str, events: &str) -> Flow {
    let members = if events.contains("join: [c]") { "a, b" } else { "a, b, c" };
    let mut document = document(&format!(
        "seed: 4
duration: 30 s
topology:
  nodes: [s, a, b, c]
  links: [{{ switch: [s, a, b, c], rate: 4 Mbit/s, delay: 2 ms, loss: 5 % }}]
groups: [{{ name: g, members: [{members}], delivery: ip-multicast }}]
{events}
flows: [{{ from: s, to: g, over: {{ nakack: {{ rate: 3 Mbit/s{over} }} }}, app: {{ {app} }} }}]
"
    ));
    document.runs.remove(0).flows.remove(0)
}

#[test]
fn all_arrives_whoever_repairs_in_whatever_order_and_however_members_find_each_other() {
    for over in [
        "",
        ", order: total",
        ", repairs: anyone",
        ", fragment: 200",
        ", view: discovered",
        ", credits: 64 KiB",
    ] {
        let flow = to_three(over, "bulk: { bytes: 1 MB }", "");
        for receiver in &flow.receivers {
            assert_eq!(receiver.figures.reliability, Some(1.0), "{over}: {:?}", receiver.figures);
        }
        assert_eq!((flow.counters["damaged_units"], flow.counters["duplicate_units"]), (0, 0), "{over}");
        let counter = |name: &str| flow.counters[name];
        assert_eq!(counter("repaired_for_others") > 0, over.contains("anyone"), "{over}");
        assert_eq!(counter("views_installed") > 0, over.contains("discovered"), "{over}");
        assert_eq!((counter("members_expelled"), counter("left_behind")), (0, 0), "{over}");
    }
}

#[test]
fn a_member_that_comes_late_has_what_is_sent_from_then_on_and_one_that_leaves_is_not_waited_for() {
    let app = "messages: { size: 200 B, every: 50 ms, stop: 25 s }";
    for events in
        ["events: [{ at: 8 s, group: g, join: [c] }]", "events: [{ at: 8 s, group: g, leave: [c] }]"]
    {
        let flow = to_three("", app, events);
        assert_eq!(flow.receivers.len(), 3);
        for receiver in &flow.receivers[..2] {
            assert_eq!(receiver.figures.reliability, Some(1.0), "{events}: {:?}", receiver.figures);
        }
        // What is sent while the view changes may miss the one that comes.
        let last = &flow.receivers[2].figures;
        assert!(last.reliability.is_some_and(|share| share > 0.97), "{events}: {last:?}");
        assert_eq!(flow.counters["members_expelled"], 0, "{events}");
        assert!(flow.counters["views_installed"] >= 3, "{events}");
    }
}

#[test]
fn members_read_one_stream_and_one_that_comes_late_has_the_rest_of_it() {
    for over in ["", ", order: total", ", repairs: anyone"] {
        let flow = to_three(over, "bulk: { port: stream, bytes: 1 MB }", "");
        for receiver in &flow.receivers {
            assert_eq!(receiver.figures.reliability, Some(1.0), "{over}: {:?}", receiver.figures);
            assert!(receiver.figures.completed_s.is_some_and(|seconds| (2.6..5.0).contains(&seconds)));
        }
        let counter = |name: &str| flow.counters[name];
        assert_eq!((counter("objects_completed"), counter("messages_delivered")), (3, 0), "{over}");
        assert_eq!((counter("streams_reset"), counter("damaged_units")), (0, 0), "{over}");
    }
    let app = "bulk: { port: stream, rate: 1 Mbit/s, stop: 25 s }";
    let flow = to_three("", app, "events: [{ at: 12500 ms, group: g, join: [c] }]");
    let units: Vec<u64> = flow.receivers.iter().map(|receiver| receiver.figures.sent_units).collect();
    assert_eq!((units[0], flow.receivers.len()), (units[1], 3));
    // A half of the time that the others have it.
    assert!(units[2] * 2 + 20 > units[0] && units[2] * 2 < units[0] + 20, "{units:?}");
    for receiver in &flow.receivers[..2] {
        assert_eq!(receiver.figures.reliability, Some(1.0), "{}: {:?}", receiver.node, receiver.figures);
    }
    // What is sent while the view changes may miss the one that comes.
    let last = &flow.receivers[2].figures;
    assert!(last.reliability.is_some_and(|share| share > 0.95), "{last:?}");
    assert_eq!((flow.counters["streams_reset"], flow.counters["damaged_units"]), (0, 0));
}

#[test]
fn more_members_than_a_view_has_are_noted_and_those_beyond_it_get_nothing() {
    let scenario = |switch: usize, ip: &str, app: &str| {
        format!(
            "duration: 20 s
topology: {{ switch: {{ nodes: {switch}, link: {{ rate: 10 Mbit/s, delay: 1 ms }} }} }}
groups: [{{ name: g, members: all, delivery: ip-multicast }}]
flows: [{{ name: f, from: n0, to: g, {ip} over: {{ nakack: {{ rate: 2 Mbit/s }} }}, app: {{ {app} }} }}]
"
        )
    };
    let noted = |nodes, ip: &str| {
        let text = scenario(nodes, ip, "bulk: { bytes: 10 kB }");
        notes(
            &load_text(Path::new("g.yaml"), &text, &Overrides::default())
                .unwrap_or_else(|error| panic!("{error}")),
        )
    };
    assert_eq!((noted(64, ""), noted(48, "ip: 6,")), (vec![], vec![]));
    let expected = |members, max, ip| {
        format!(
            "flow f has {members} members with its sender, and `nakack` serves {max} at a time{ip}: the others get nothing until one leaves"
        )
    };
    assert_eq!(noted(65, ""), [expected(65, 64, "")]);
    assert_eq!(noted(49, "ip: 6,"), [expected(49, 48, " over IPv6")]);
    let flow = document(&scenario(66, "", "bulk: { bytes: 10 kB }")).runs.remove(0).flows.remove(0);
    let complete = flow.receivers.iter().filter(|receiver| receiver.figures.completed_s.is_some()).count();
    assert_eq!((flow.receivers.len(), complete), (65, 63));
    assert!(flow.counters["joins_refused"] > 0);
}
