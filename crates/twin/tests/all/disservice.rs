//! DisService in a network: messages that cross it in parts, from whoever holds them, over each delivery.

#![allow(clippy::unwrap_used)] // in helpers of tests too

use std::path::Path;

use crate::common::document;
use hopcast_runner::load_text;
use hopcast_twin::results::Flow;
use hopcast_twin::scenario::Overrides;

fn flow(text: &str) -> Flow {
    document(text).runs.remove(0).flows.remove(0)
}

fn refusal(text: &str) -> String {
    load_text(Path::new("bad.yaml"), text, &Overrides::default())
        .err()
        .map(|error| error.to_string())
        .unwrap()
}

/// Units that each receiver got, of those that were sent.
fn received(flow: &Flow) -> Vec<(&str, u64, u64)> {
    let of = |receiver: &hopcast_twin::results::Receiver| receiver.figures.clone();
    flow.receivers
        .iter()
        .map(|receiver| (&*receiver.node, of(receiver).delivered_units, of(receiver).sent_units))
        .collect()
}

/// A network in two parts. The publisher is in one of them, and only while it publishes; the subscribers are in the
/// other.
fn in_two_parts(over: &str, delivery: &str) -> Flow {
    flow(&format!(
        "seed: 4
duration: 60 s
topology:
  nodes: [s, p, r, q, a, b, c]
  links:
    - {{ name: air, between: [s, p], rate: 1 Mbit/s, delay: 1 ms }}
    - {{ name: here, switch: [p, r], rate: 1 Mbit/s, delay: 1 ms, loss: 10 % }}
    - {{ name: bridge, between: [r, q], rate: 1 Mbit/s, delay: 5 ms, loss: 10 % }}
    - {{ name: there, switch: [q, a, b, c], rate: 1 Mbit/s, delay: 1 ms, loss: 10 % }}
roles: {{ peer: [p, r, q] }}
events:
  - {{ at: 0 s, links: bridge, down: true }}
  - {{ at: 12 s, links: air, down: true }}
  - {{ at: 20 s, links: bridge, up: true }}
flows:
  - {{ from: s, to: [a, b, c], delivery: {delivery}, over: {over}, app: {{ messages: {{ size: 3000 B, every: 100 ms, stop: 10 s }} }} }}
"
    ))
}

#[test]
fn messages_of_a_publisher_that_is_gone_reach_the_other_part_from_peers() {
    for (over, delivery) in [
        ("{ disservice: { rate: 900 kbit/s } }", "ip-multicast"),
        ("{ disservice: { rate: 900 kbit/s, replicate: pull } }", "one-hop"),
        ("{ disservice: { rate: 900 kbit/s, replicate: pull, coded: on } }", "one-hop"),
    ] {
        let flow = in_two_parts(over, delivery);
        let all = ["a", "b", "c"].map(|node| (node, 100, 100));
        assert_eq!(received(&flow), all, "{over} over {delivery}: {:?}", flow.counters);
        assert_eq!((flow.counters["damaged_units"], flow.counters["duplicate_units"]), (0, 0));
        // The publisher and subscribers have counters together, and each peer its own.
        assert!(flow.counters["p.nacks_received"] > 0 && flow.counters["nacks_sent"] > 0);
    }
    let deaf = in_two_parts("{ disservice: { rate: 900 kbit/s, listen: off } }", "ip-multicast");
    assert_eq!(received(&deaf), ["a", "b", "c"].map(|node| (node, 0, 100)), "peers that hold nothing");
}

#[test]
fn all_hear_each_other_over_every_delivery_on_a_segment() {
    for delivery in ["unicast", "broadcast", "ip-multicast", "one-hop"] {
        for (ip, over) in
            [(4, "disservice"), (6, "{ disservice: { coded: on } }"), (4, "{ disservice: { shipped: on } }")]
        {
            let flow = flow(&format!(
                "seed: 2
duration: 60 s
topology:
  nodes: [s, a, b, p]
  links: [{{ switch: [s, a, b, p], rate: 10 Mbit/s, delay: 1 ms, loss: 20 % }}]
roles: {{ peer: [p] }}
events: [{{ at: 15 s, links: all, from: s, down: true }}]
flows: [{{ from: s, to: [a, b], delivery: {delivery}, ip: {ip}, over: {over}, app: {{ messages: {{ size: 2000 B, every: 50 ms, stop: 5 s }} }} }}]
"
            ));
            let what = format!("{over} over {delivery}, IPv{ip}: {:?}", flow.counters);
            assert_eq!(received(&flow), [("a", 100, 100), ("b", 100, 100)], "{what}");
            assert!(flow.counters["p.nacks_heard"] > 0 && flow.counters["p.malformed"] == 0, "{what}");
        }
    }
}

/// Nodes in a row, of which each hears its neighbours alone; the first publishes to the last.
fn in_a_row(over: &str) -> String {
    format!(
        "seed: 2
duration: 60 s
topology: {{ chain: {{ hops: 5, link: {{ rate: 2 Mbit/s, delay: 2 ms, loss: 10 % }} }} }}
roles: {{ peer: [n1, n2, n3, n4] }}
flows:
  - {{ from: n0, to: [n5], delivery: one-hop, over: {over}, app: {{ messages: {{ size: 3000 B, every: 100 ms, stop: 10 s }} }} }}
"
    )
}

#[test]
fn neighbours_bring_messages_on_by_each_controller() {
    for controllers in [
        "forward: flood",
        "forward: flood, forward-share: 70 %, replicate: pull",
        "forward: world-state, replicate: pull",
        "forward: stateful",
        "forward: topology, replicate: pull",
        "replicate: pull",
        "replicate: push",
        "replicate: convoy, convoy-after: 2 s",
        "replicate: targets, targets: [n1, n2, n3, n4, n5]",
    ] {
        let flow = flow(&in_a_row(&format!("{{ disservice: {{ rate: 1 Mbit/s, {controllers} }} }}")));
        assert_eq!(received(&flow), [("n5", 100, 100)], "{controllers}: {:?}", flow.counters);
        let forwarded: u64 = (1..5).map(|peer| flow.counters[&*format!("n{peer}.fragments_forwarded")]).sum();
        // Each of the four peers forwards three fragments of each message.
        let expected = if controllers.starts_with("forward") { 600..=1200 } else { 0..=0 };
        assert!(expected.contains(&forwarded), "{controllers}: {forwarded}");
    }
}

/// Fragments that the subscriber `a` and each of two peers forward of 100, where all hear all and nothing is lost.
fn forwarded(controller: &str) -> [u64; 3] {
    let flow = flow(&format!(
        "seed: 2
duration: 30 s
topology:
  nodes: [s, a, p, q]
  links: [{{ switch: [s, a, p, q], rate: 10 Mbit/s, delay: 1 ms }}]
roles: {{ peer: [p, q] }}
flows:
  - from: s
    to: [a]
    delivery: one-hop
    over: {{ disservice: {{ rate: 1 Mbit/s, {controller} }} }}
    app: {{ messages: {{ size: 1000 B, every: 100 ms, start: 5 s, stop: 15 s }} }}
"
    ));
    assert_eq!(received(&flow), [("a", 100, 100)], "{controller}");
    ["fragments_forwarded", "p.fragments_forwarded", "q.fragments_forwarded"]
        .map(|counter| flow.counters[counter])
}

/// Chosen: bounds of four standard deviations where something is drawn.
#[test]
fn each_forwarding_controller_sends_on_what_it_is_said_to() {
    assert_eq!(forwarded("forward: none"), [0; 3]);
    assert_eq!(forwarded("forward: flood"), [100; 3], "all of it");
    let half = forwarded("forward: flood, forward-share: 50 %");
    assert!(half.iter().all(|count| (30..=70).contains(count)), "{half:?}");
    // Whoever is the last of three has heard the others send it.
    let stateful = forwarded("forward: stateful, forward-delay: 300 ms");
    assert!((195..=225).contains(&stateful.iter().sum::<u64>()), "{stateful:?}");
    assert!(stateful.iter().all(|count| (47..=90).contains(count)), "{stateful:?}");
    // The subscriber says of little that it holds it within 10 ms, and of half within some seconds.
    let [_, p, q] = forwarded("forward: world-state");
    assert!(p >= 70 && q >= 70, "{p} {q}");
    let [_, p, q] = forwarded("forward: world-state, forward-delay: 8 s");
    assert!((30..60).contains(&p) && (30..60).contains(&q), "{p} {q}");
    assert_eq!(forwarded("forward: topology"), [0; 3], "each has said that it hears all");
}

#[test]
fn what_reaches_one_hop_is_refused_where_members_are_farther() {
    for over in ["norm", "disservice", "udp"] {
        assert_eq!(
            refusal(&in_a_row(over)),
            "bad.yaml:6:21: `to`: `one-hop` reaches one hop, `n5` is farther from `n0`, and this transport does not forward"
        );
    }
    let wrong = |option: &str| refusal(&in_a_row(&format!("{{ disservice: {{ {option} }} }}")));
    for (option, expected) in [
        ("forward-share: 50 %", "`forward-share`: it is for `forward: flood`"),
        ("answer-share: 50 %", "`answer-share`: it is for `servers: anyone`"),
        ("targets: [n5]", "`targets`: it is for `replicate: targets`"),
        ("convoy-after: 1 s", "`convoy-after`: it is for `replicate: convoy`"),
    ] {
        assert!(wrong(option).ends_with(expected), "{}", wrong(option));
    }
}

/// A carrier that hears the publisher first, and the subscriber when the publisher is gone.
fn carried(over: &str, events: &str) -> String {
    format!(
        "seed: 3
duration: 60 s
topology:
  nodes: [s, p, a, x]
  links:
    - {{ name: first, between: [s, p], rate: 1 Mbit/s, delay: 1 ms, loss: 10 % }}
    - {{ name: second, between: [p, a], rate: 1 Mbit/s, delay: 1 ms, loss: 10 % }}
    - {{ name: third, between: [a, x], rate: 1 Mbit/s, delay: 1 ms }}
roles: {{ peer: [p] }}
events:
  - {{ at: 0 s, links: second, down: true }}
  - {{ at: 15 s, links: first, down: true }}
  - {{ at: 25 s, links: second, up: true }}
  {events}
flows: [{{ from: s, to: [a], delivery: one-hop, over: {over}, app: {{ messages: {{ size: 3000 B, every: 100 ms, stop: 10 s }} }} }}]
"
    )
}

/// Messages that reach a subscriber that asks for nothing, by a carrier that meets it at 25 s, and the mean second at
/// which they do: they are published in the first ten.
fn brought(replication: &str) -> (u64, f64) {
    let over = format!("{{ disservice: {{ rate: 900 kbit/s, reliable: off, replicate: {replication} }} }}");
    let flow = flow(&carried(&over, ""));
    let second = flow.figures.latency_ms.map_or(0.0, |latency| 5.0 + latency.mean / 1e3);
    (received(&flow)[0].1, second)
}

#[test]
fn each_replication_controller_brings_messages_to_those_that_it_is_for() {
    assert_eq!(brought("pull").0, 0, "nobody asks");
    let (all, second) = brought("push");
    assert!(all == 100 && (25.0..34.0).contains(&second), "{all} at {second} s");
    // They meet after a pause, so that the subscriber is a neighbour for long enough at 35 s.
    let (all, second) = brought("convoy, convoy-after: 10 s, dead-after: 20 s");
    assert!(all == 100 && (35.0..44.0).contains(&second), "{all} at {second} s");
    assert_eq!(brought("targets, targets: [p, a]").0, 100);
    // A carrier that was brought nothing has what it heard whole, of messages of three fragments at 10 % loss.
    for others in ["convoy, convoy-after: 20 s, dead-after: 20 s", "targets, targets: [a]"] {
        let (heard, _) = brought(others);
        assert!((55..=90).contains(&heard), "{others}: {heard}");
    }
    assert_eq!(brought("targets, targets: [x]").0, 0);
}

#[test]
fn a_node_that_begins_anew_has_what_it_held_and_hands_nothing_up_twice() {
    let pull = "{ disservice: { rate: 900 kbit/s, replicate: pull } }";
    // Before they meet, and while the carrier is asked.
    let flow = flow(&carried(
        pull,
        "- { at: 20 s, restart: p }
  - { at: 26 s, restart: a }
  - { at: 27 s, every: 500 ms, until: 29 s, restart: [p, a] }",
    ));
    let counters = &flow.counters;
    assert_eq!(received(&flow), [("a", 100, 100)], "{counters:?}");
    assert_eq!(
        (counters["duplicate_units"], counters["damaged_units"], counters["objects_given_up"]),
        (0, 0, 0)
    );
    // Those before a restart count too.
    assert!(counters["nacks_sent"] > 3 && counters["p.nacks_received"] > 3, "{counters:?}");
    // What a member keeps does not last longer for it.
    let expired = "{ disservice: { rate: 900 kbit/s, replicate: pull, lifetime: 21 s } }";
    let flow = self::flow(&carried(expired, "- { at: 14 s, every: 1 s, until: 24 s, restart: p }"));
    let (_, arrived, _) = received(&flow)[0];
    assert!((40..65).contains(&arrived), "{arrived} that were published less than 21 s before they met");
}

#[test]
fn a_node_begins_anew_where_its_flows_keep_something() {
    let disservice = "{ disservice: { replicate: pull } }";
    for (over, who, expected) in [
        (
            "norm",
            "a",
            "the flow `flow0` of `a` is over `norm`, which keeps nothing over that; `disservice` does",
        ),
        (disservice, "x", "`x` is neither an end of a flow nor a peer of one"),
        (disservice, "[a, pp]", "there is no node `pp`: did you mean `p`?"),
        (disservice, "[]", "expected a name or several, found an empty list"),
    ] {
        // What does not reach beyond a hop is refused before.
        let text =
            carried(over, &format!("- {{ at: 20 s, restart: {who} }}")).replace("one-hop", "ip-multicast");
        let found = refusal(&text);
        assert!(
            found.starts_with("bad.yaml:14:") && found.ends_with(&format!("`restart`: {expected}")),
            "{found}"
        );
    }
}
