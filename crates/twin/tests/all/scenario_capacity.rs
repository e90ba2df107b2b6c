//! The min-cut, and the description that shows it.

use std::path::Path;

use hopcast_core::{Duration, Instant};
use hopcast_runner::load_text;
use hopcast_twin::scenario::model::{Plan, Scenario};
use hopcast_twin::scenario::{Capacities, Overrides, capacity, describe};

fn plan(text: &str) -> Plan {
    load_text(Path::new("test.yaml"), text, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"))
}

/// The min-cut in Mbit/s between the ends of the first flow.
fn min_cut(topology: &str, events: &str) -> Option<f64> {
    let plan = plan(&format!(
        "duration: 10s\nmeasure: {{ from: 2s }}\ntopology: {{ {topology} }}\nevents: [{events}]\n\
         flows: [{{ from: a, to: d, over: tcp-cubic, app: bulk }}]"
    ));
    let scenario: &Scenario = &plan.cases[0].scenario;
    capacity(scenario, scenario.flows[0].from, scenario.flows[0].to[0]).map(|bits| bits / 1e6)
}

const TWO_WAYS: &str = "nodes: [a, b, c, d], links: [
    { between: [a, b], rate: 10 Mbit/s }, { between: [b, d], rate: 20 Mbit/s, loss: 25 % },
    { between: [c, a], rate: 8 Mbit/s, backward: { rate: 5 Mbit/s } }, { between: [c, d] }]";

#[test]
fn every_way_counts_with_its_narrowest_link() {
    // 10 by b, where 15 would pass; 5 by c, against the direction that its link is written in.
    assert_eq!(min_cut(TWO_WAYS, ""), Some(15.0));
}

#[test]
fn what_is_scheduled_counts_for_its_time_in_the_window() {
    // The window is 2 s to 10 s; half of it is at 1 Mbit/s, a quarter of it down.
    assert_eq!(min_cut(TWO_WAYS, "{ at: 1s, links: b-d, down: true }"), Some(5.0));
    assert_eq!(min_cut(TWO_WAYS, "{ at: 6s, links: a-b, rate: 1 Mbit/s }"), Some(5.0 + 5.5));
    let failure = "{ at: 4s, links: a-b, down: true }, { at: 6s, links: a-b, up: true }";
    assert_eq!(min_cut(TWO_WAYS, failure), Some(5.0 + 7.5));
    // The other direction of the link changes nothing.
    assert_eq!(min_cut(TWO_WAYS, "{ at: 0s, links: a-b, from: b, loss: 90 % }"), Some(15.0));
    assert_eq!(min_cut(TWO_WAYS, "{ at: 10s, links: all, down: true }"), Some(15.0));
}

#[test]
fn another_window_can_be_asked_for() {
    let plan = plan(&format!(
        "duration: 10s\nmeasure: {{ from: 2s }}\ntopology: {{ {TWO_WAYS} }}\nevents: [\
         {{ at: 4s, links: a-b, down: true }}, {{ at: 6s, links: a-b, up: true, rate: 1 Mbit/s }}]\n\
         flows: [{{ from: a, to: d, over: tcp-cubic, app: bulk }}]"
    ));
    let scenario: &Scenario = &plan.cases[0].scenario;
    let cut = |from: f64, to: f64| {
        let at = |seconds| Instant::ZERO + Duration::from_secs_f64(seconds);
        Capacities::over(scenario, at(from), at(to)).between(0, 3).map(|bits| bits / 1e6)
    };
    assert_eq!(cut(2.0, 10.0), capacity(scenario, 0, 3).map(|bits| bits / 1e6));
    assert_eq!((cut(0.0, 4.0), cut(4.0, 6.0), cut(6.0, 8.0)), (Some(15.0), Some(5.0), Some(6.0)));
    assert_eq!(cut(3.0, 5.0), Some(10.0));
    // Of an empty window, what is there at its start, with what happens at that instant.
    assert_eq!((cut(3.0, 3.0), cut(4.0, 4.0), cut(6.0, 1.0)), (Some(15.0), Some(5.0), Some(6.0)));
    assert_eq!(cut(5.999, 5.999), Some(5.0));
}

#[test]
fn without_loss_a_link_carries_its_rate_unless_it_loses_everything() {
    let lucky = |loss: &str| {
        let plan = plan(&format!(
            "duration: 10s\ntopology: {{ nodes: [a, d], links: [{{ between: [a, d], rate: 8 Mbit/s, loss: {loss} }}] }}\n\
             events: [{{ at: 5s, links: all, rate: 2 Mbit/s }}]\nflows: [{{ from: a, to: d, over: tcp-cubic, app: bulk }}]"
        ));
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        Capacities::without_loss(&plan.cases[0].scenario, at(0), at(10)).between(0, 1).map(|bits| bits / 1e6)
    };
    assert_eq!((lucky("0 %"), lucky("99 %"), lucky("100 %")), (Some(5.0), Some(5.0), Some(0.0)));
}

#[test]
fn without_rates_it_is_unbounded_unless_all_is_lost() {
    assert_eq!(min_cut("nodes: [a, d], links: [{ between: [a, d], loss: 50 % }]", ""), None);
    assert_eq!(min_cut("nodes: [a, d], links: [{ between: [a, d], loss: 100 % }]", ""), Some(0.0));
}

#[test]
fn a_medium_carries_one_transmission_at_a_time() {
    let medium = "nodes: [a, b, d], links: [
        { name: air, medium: [a, b, d], rate: 10 Mbit/s, loss: 10 % }, { between: [a, b], rate: 1 Gbit/s }]";
    // What a hands to b does not make the air wider.
    assert_eq!(min_cut(medium, ""), Some(9.0));
    assert_eq!(min_cut(medium, "{ at: 0s, links: air, from: a, loss: 50 % }"), Some(9.0));
}

#[test]
fn a_switch_carries_what_each_station_sends_whatever_the_others_do() {
    let switch = |more: &str| {
        format!(
            "nodes: [a, b, d], links: [{{ name: yard, switch: [a, b, d], rate: 10 Mbit/s, loss: 10 %{more} }}]"
        )
    };
    // The direct way, and the part of what it loses that goes by b: all that leaves a shares its line.
    near(min_cut(&switch(""), "").unwrap(), 10.0);
    near(min_cut(&switch(", pairs: [{ from: b, to: d, loss: 100 % }]"), "").unwrap(), 9.0);
    let slow = ", stations: { a: { rate: 1 Mbit/s } }, pairs: [{ from: b, to: d, loss: 100 % }]";
    near(min_cut(&switch(slow), "").unwrap(), 0.9);
    let halfway =
        "{ at: 6s, links: yard, from: a, to: d, loss: 50 % }, { at: 6s, links: yard, from: b, down: true }";
    let alone = ", pairs: [{ from: b, to: d, loss: 100 % }]";
    near(min_cut(&switch(alone), halfway).unwrap(), 7.0);
    // Another link widens it, which of a medium it does not.
    let more = "nodes: [a, b, d], links: [{ name: yard, switch: [a, b, d], rate: 10 Mbit/s }, \
                { between: [a, b], rate: 5 Mbit/s }]";
    near(min_cut(more, "").unwrap(), 15.0);
    assert_eq!(min_cut("nodes: [a, d], links: [{ switch: [a, d], loss: 50 % }]", ""), None);
}

#[test]
fn a_switch_is_described_by_what_most_stations_send_and_by_those_that_differ() {
    let text = "duration: 1s\ntopology: { nodes: [a, b, c], links: [{ name: yard, switch: [a, b, c], rate: 10 Mbit/s, \
                stations: { a: { rate: 1 Mbit/s } }, pairs: [{ from: a, to: c, loss: 20 % }] }] }\n\
                flows: [{ from: a, to: c, over: udp, app: bulk }]";
    let described = describe(&plan(text));
    let expected = "  yard
    a switch with 3 stations: 10 Mbit/s, delay 0s, loss none, queue 1000 packets, MTU 1500
    a: 1 Mbit/s, delay 0s, loss none, queue 1000 packets, MTU 1500
    a to c: loss 20 %
";
    assert!(described.contains(expected), "{described}");
}

#[test]
fn a_medium_whose_stations_hear_only_some_is_crossed_from_station_to_station() {
    let medium = |hears: &str| {
        format!(
            "nodes: [a, b, d], links: [{{ name: air, medium: [a, b, d], rate: 10 Mbit/s, loss: 10 %, mac: csma, \
             hears: {hears} }}]"
        )
    };
    // The one between cannot receive while it sends.
    near(min_cut(&medium("[[a, b], [b, d]]"), "").unwrap(), 4.5);
    near(min_cut(&medium("[[a, b], [b, d], [a, d]]"), "").unwrap(), 9.0);
    let described = describe(&plan(&format!(
        "duration: 1s\ntopology: {{ {} }}\nflows: [{{ from: a, to: d, over: udp, app: bulk }}]",
        medium("[[a, b], [b, d], { from: d, to: a }]").replace("csma,", "{ csma: { rts: 500 B } },")
    )));
    for line in [
        "RTS of 56.333us and CTS of 48.333us before frames of at least 500 B",
        "    a is heard by b\n    b is heard by a, d\n    d is heard by a, b\n",
        // d does not hear a, and could not acknowledge what comes from there.
        "    2 hops, min-cut 4.5 Mbit/s",
    ] {
        assert!(described.contains(line), "{line}: {described}");
    }
}

/// The min-cut in Mbit/s of a flow over a medium of 12 Mbit/s with a station between its ends, which lose `e1` on the
/// way to it, `e2` from it, and `e3` directly.
fn with_helper(over: &str, mac: &str, [e1, e2, e3]: [&str; 3], events: &str) -> f64 {
    let plan = plan(&format!(
        "duration: 10s\nmeasure: {{ from: 2s }}\ntopology: {{ nodes: [s, h, d], links: [{{ name: air, medium: [s, h, d], \
         rate: 12 Mbit/s, mac: {mac}, pairs: [{{ from: s, to: h, loss: {e1} }}, {{ from: h, to: d, loss: {e2} }}, \
         {{ from: s, to: d, loss: {e3} }}] }}] }}\nroles: {{ helper: [h] }}\nevents: [{events}]\n\
         flows: [{{ from: s, to: d, over: {over}, app: bulk }}]"
    ));
    let scenario: &Scenario = &plan.cases[0].scenario;
    Capacities::of(scenario).of_flow(&scenario.flows[0], 2).map_or(f64::INFINITY, |bits| bits / 1e6)
}

const HELPED: &str = "[udp, { franc: { helper: on } }]";

#[track_caller]
fn near(found: f64, expected: f64) {
    assert!((found / expected - 1.0).abs() < 1e-6, "{found} for {expected}");
}

#[test]
fn what_is_lost_between_two_stations_of_a_medium_bounds_what_they_carry() {
    for over in ["udp", "tcp-cubic", "[udp, franc]"] {
        near(with_helper(over, "perfect", ["20 %", "20 %", "40 %"], ""), 7.2);
    }
    // What an event changes for one pair, and what the air loses below the acknowledgements.
    let event = "{ at: 6s, links: air, from: s, to: d, loss: 90 % }, { at: 6s, links: air, from: d, to: s, loss: 99 % }";
    near(with_helper("udp", "perfect", ["0 %", "0 %", "40 %"], event), 12.0 * (0.6 + 0.1) / 2.0);
    near(with_helper("udp", "{ csma: { channel-loss: 25 % } }", ["0 %", "0 %", "40 %"], ""), 5.4);
}

#[test]
fn a_helper_on_a_medium_is_bounded_by_the_least_airtime_for_a_frame() {
    // 110.7 transmissions for 64 frames: 1 / 0.95 by the source, and (1 - 0.5 / 0.95) / 0.7 by the helper.
    let airtime: f64 = 1.0 / 0.95 + (1.0 - 0.5 / 0.95) / 0.7;
    assert!((airtime * 64.0 - 110.7).abs() < 0.05);
    let losses = ["10 %", "30 %", "50 %"];
    near(with_helper(HELPED, "perfect", losses, ""), 12.0 / airtime);
    near(with_helper("udp", "perfect", losses, ""), 6.0);
    near(with_helper("[udp, franc]", "perfect", losses, ""), 6.0);
    // A helper that is no nearer than the source is none.
    near(with_helper(HELPED, "perfect", ["10 %", "50 %", "50 %"], ""), 6.0);
    // Half of the window as above, and half without any path but by the helper: each frame is sent twice there.
    let event = "{ at: 6s, links: air, from: s, to: d, loss: 100 % }, { at: 6s, links: air, from: s, to: h, loss: 0 % }, \
                 { at: 6s, links: air, from: h, to: d, loss: 0 % }";
    let found = with_helper(HELPED, "perfect", losses, event);
    // More than each half alone, for what the helper has heard in the one half it may send in the other. The mean of
    // both cuts is at most (11.4 + 6) / 2 in the first half, with the source sending, and 12 / 2 in the second, whoever
    // sends.
    assert!(found > 12.0 * (1.0 / airtime + 0.5) / 2.0, "{found}");
    near(found, (8.7 + 6.0) / 2.0);
}

#[test]
fn a_medium_in_the_middle_of_a_way_is_crossed_by_those_who_are_on_it() {
    let links = "nodes: [a, s, h, d, z, far], links: [{ between: [a, s], rate: 100 Mbit/s }, { between: [d, z], rate: 8 Mbit/s },
        { name: air, medium: [s, h, d, far], rate: 10 Mbit/s, loss: 5 %, pairs: [{ from: s, to: d, loss: 30 % }] }]";
    let cut = |from, to| {
        let text = format!(
            "duration: 1s\ntopology: {{ {links} }}\nflows: [{{ from: a, to: z, over: udp, app: bulk }}]"
        );
        capacity(&plan(&text).cases[0].scenario, from, to).map(|bits| bits / 1e6)
    };
    // What h or the far station would get across is of no use: nothing comes to them but over the air.
    assert_eq!(cut(0, 4), Some(7.0));
    assert_eq!((cut(0, 2), cut(0, 5), cut(4, 0)), (Some(9.5), Some(9.5), Some(8.0)));
}

#[test]
fn a_long_chain_is_no_trouble() {
    let plan = plan(
        "duration: 1s\ntopology: { chain: { hops: 200000, link: { rate: 1 Mbit/s } } }\n\
         flows: [{ from: n0, to: n1, over: udp, app: bulk }]",
    );
    assert_eq!(capacity(&plan.cases[0].scenario, 0, 200_000), Some(1e6));
}

#[test]
fn a_plan_is_described_in_full() {
    let plan = plan(
        "title: All there is
duration: 10s
measure: { from: 1s }
repeats: 3
topology:
  chain: { hops: 14, link: { rate: 10 Mbit/s, delay: 1ms, loss: 1 % } }
  nodes: [x, y, z]
  links:
    - { name: up, between: [n0, x], forward: { rate: 1 Mbit/s }, duplex: half, mtu: 9000 }
    - name: air
      medium: [x, y, z]
      loss: { gilbert-elliott: { p: 1 %, r: 9 % } }
      jitter: { normal: 1ms }
      reorder: true
      corrupt: 1 ppm
      queue: { codel: {} }
events:
  - { name: storm, at: 5s, links: all, loss: 5 % }
  - { at: 5s, links: up, from: x, rate: unlimited, down: true }
  - { at: 6s, start: file }
  - { at: 60s, stop: file }
roles: { relay: [n1] }
capture: [n0, x]
variants:
  tcp-rfc: { tcp-cubic: { min-rto: 1s, delayed-ack: 500ms, sack: off, initial-window: 3, send-buffer: 1 MiB } }
flows:
  - { name: bulk, from: n0, to: n14, over: tcp-cubic, app: { bulk: { bytes: 1 MiB, stop: 9s } } }
  - { name: file, from: n0, to: y, over: udp, app: { cbr: { rate: 1 Mbit/s, start: event } } }
  - { name: echo, from: x, to: z, over: [tcp-bbr, tunnel], ip: 6, app: { messages: { size: 64 B, rate: 8 Hz } } }
sweep:
  events.storm.loss: [5 %, 10 %]
  flows.bulk.over: [tcp-rfc, [tcp-cubic, tunnel, udp]]",
    );
    let expected = "\
All there is
  10s of virtual time, measured from 1s to 10s in steps of 100ms; seed 1
  4 cases, 3 runs each: 12 runs

Nodes: 18
  n0, n1, n2, n3, n4, n5, n6, n7, … z (18 in all)
  relay: n1
  captured: n0, x

Links: 16
  n0-n1, n1-n2, n2-n3, n3-n4, n4-n5, n5-n6, n6-n7, n7-n8, … n13-n14 (14 in all)
    10 Mbit/s, delay 1ms, loss 1 %, queue 1000 packets, MTU 1500
  up
    forward:  1 Mbit/s, delay 0s, loss none, queue 1000 packets, MTU 9000, half duplex
    backward: unlimited rate, delay 0s, loss none, queue 1000 packets, MTU 9000
  air
    a medium of 3 stations: unlimited rate, delay 0s, loss Gilbert-Elliott (p 1 %, r 9 %, k 100 %, h 0 %; \
10 % on average), jitter 1ms normal reordering, 0.0001 % corrupted, queue CoDel (target 5ms, interval 100ms, \
at most 1000 packets), MTU 1500

Events: 5
  5s: loss 5 % on all links
  5s: unlimited rate from x on up
  5s: down from x on up
  6s: flow file starts
  60s: flow file stops (after the end)

Flows: 3
  bulk: n0 to n14 over tcp-rfc: 1 MiB in bulk, from 0s to 9s
    stack: tcp-cubic (initial-window 3, sack off, min-rto 1s, delayed-ack 500ms, send-buffer 1 MiB)
    14 hops, min-cut 9.677778 Mbit/s
  file: n0 to y over udp: datagrams of 1472 B, 1 Mbit/s, from its start event
    2 hops, min-cut 972.222 kbit/s
  echo: x to z over tcp-bbr/tunnel, IPv6: messages of 64 B every 125ms, from 0s
    stack: tcp-bbr/tunnel/udp
    1 hop, min-cut unbounded

Sweep: 4 cases
  events.storm.loss: 5 %, 10 %
  flows.bulk.over: tcp-rfc, tcp-cubic/tunnel/udp
";
    assert_eq!(describe(&plan), expected);
}

/// The lines of the description that begin with `start`.
fn lines(text: &str, start: &str) -> Vec<String> {
    let text = describe(&plan(text));
    text.lines().filter(|line| line.starts_with(start)).map(str::to_owned).collect()
}

#[test]
fn a_long_sweep_is_described_with_the_number_of_its_values() {
    let values = |count: u64| (1..=count).map(|n| n.to_string()).collect::<Vec<_>>().join(", ");
    let text = format!(
        "duration: 1s\ntopology: {{ chain: {{ hops: 1 }} }}\nflows: [{{ from: n0, to: n1, over: tcp-cubic, app: bulk }}]\n\
         sweep: {{ seed: [{}], measure.interval: [1ms, 2ms] }}",
        values(100)
    );
    assert_eq!(lines(&text, "  seed"), ["  seed: 1, 2, 3, 4, 5, 6, 7, 8, … 100 (100 in all)"]);
    assert_eq!(lines(&text, "Sweep"), ["Sweep: 200 cases"]);
}

#[test]
fn what_is_most_likely_not_meant_is_noted() {
    let text = "duration: 10s
topology: { chain: { hops: 1, link: { rate: 1 Mbit/s } } }
events:
  - { at: 10s, start: late }
  - { at: 2s, start: early }
flows:
  - { name: late, from: n0, to: n1, over: udp, app: { bulk: { start: event } } }
  - { name: never, from: n0, to: n1, over: udp, app: { bulk: { start: event } } }
  - { name: after, from: n0, to: n1, over: udp, app: { bulk: { start: 10s } } }
  - { name: early, from: n0, to: n1, over: udp, app: { bulk: { start: 11s } } }
  - { name: long, from: n0, to: n1, over: udp, app: { bulk: { stop: 20s } } }
  - { name: right, from: n0, to: n1, over: udp, app: { bulk: { start: 1s, stop: 10s } } }
";
    let expected = [
        "note: flow after starts at 10s, not before the end of the run at 10s: it sends nothing",
        "note: flow long stops at 20s, after the end of the run at 10s",
        "note: flow never waits for a start event, and there is none: it sends nothing",
        "note: the start event of flow late at 10s is not before the end of the run at 10s",
    ];
    assert_eq!(lines(text, "note:"), expected);
    let swept =
        format!("{text}sweep: {{ flows.never.app: [bulk, {{ bulk: {{ start: event }} }}], seed: [1, 2] }}");
    let note =
        "note: flow never waits for a start event, and there is none: it sends nothing (in 2 of 4 cases)";
    assert_eq!(lines(&swept, "note: flow never"), [note]);
    assert!(lines(&text.replace("duration: 10s", "duration: 1min"), "note: flow long").is_empty());
}

#[test]
fn trees_at_the_ends_of_a_network_change_no_min_cut() {
    use petgraph::algo::ford_fulkerson;
    use petgraph::graph::{DiGraph, NodeIndex};
    // A ring of six with chords, and after it nodes that each hang on some node before them, deeper and deeper.
    let mut graph: DiGraph<(), u64> = DiGraph::new();
    let nodes: Vec<NodeIndex> = (0..40).map(|_| graph.add_node(())).collect();
    let mut links = String::new();
    let mut join = |a: usize, b: usize, there: u64, back: u64| {
        links += &format!(
            "    - {{ between: [n{a}, n{b}], rate: {there} Mbit/s, backward: {{ rate: {back} Mbit/s }} }}\n"
        );
        graph.add_edge(nodes[a], nodes[b], there);
        graph.add_edge(nodes[b], nodes[a], back);
    };
    for (a, b) in [(0, 1), (1, 2), (2, 3), (3, 4), (4, 5), (5, 0), (0, 3), (1, 4)] {
        join(a, b, 3 + a as u64 * 2, 4 + b as u64);
    }
    // All but the last two, which are a network of their own.
    for node in 6..38 {
        join(node * 7 % (node - 3), node, 1 + (node as u64 * 5) % 11, 1 + (node as u64 * 3) % 13);
    }
    join(38, 39, 2, 5);
    let names: Vec<String> = (0..40).map(|node| format!("n{node}")).collect();
    let names = names.join(", ");
    let mut text = format!("duration: 10s\ntopology:\n  nodes: [{names}]\n  links:\n{links}");
    text += "flows: [{ from: n0, to: n1, over: tcp-cubic, app: bulk }]\n";
    let plan = plan(&text);
    let mut capacities = Capacities::of(&plan.cases[0].scenario);
    for from in 0..40 {
        for to in (0..40).filter(|&to| to != from) {
            let expected = ford_fulkerson(&graph, nodes[from], nodes[to]).0 as f64 * 1e6;
            assert_eq!(capacities.between(from, to), Some(expected), "{from} to {to}");
        }
    }
}
