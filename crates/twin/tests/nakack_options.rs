//! The options of `nakack`, and members that come and go.

mod common;

use common::document;
use hopcast_twin::results::Flow;

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
