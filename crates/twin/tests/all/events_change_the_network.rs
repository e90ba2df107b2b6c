//! Scheduled changes: links go down and up, flows start and stop.

use crate::common::{document, flow, near};

#[test]
fn traffic_takes_the_other_way_while_a_link_is_down() {
    let document = document(
        "
title: Two ways
seed: 1
duration: 9 s
measure: { interval: 1 s }
topology:
  nodes: [a, b, c, d]
  links:
    - { between: [a, b], rate: 10 Mbit/s, delay: 1 ms }
    - { between: [b, d], rate: 10 Mbit/s, delay: 1 ms }
    - { between: [a, c], rate: 10 Mbit/s, delay: 5 ms }
    - { between: [c, d], rate: 10 Mbit/s, delay: 5 ms }
events:
  - { at: 3 s, links: b-d, down: true }
  - { at: 6 s, links: b-d, up: true }
flows:
  - { name: cbr, from: a, to: d, over: udp, app: { cbr: { rate: 1 Mbit/s, size: 1000 B } } }
",
    );
    let run = &document.runs[0];
    let sent = |name: &str| {
        run.series.links.iter().find(|(link, _, _)| link == name).map(|(_, mbps, _)| mbps.clone())
    };
    let (short, long) = (sent("b>d").unwrap(), sent("c>d").unwrap());
    near(short[1], 1.042, 0.02);
    assert_eq!((short[4], long[1]), (0.0, 0.0));
    near(long[4], 1.042, 0.02);
    near(short[7], 1.042, 0.02);
    // At most what was under way when the link went down is missing.
    let figures = &run.flows[0].figures;
    assert!(figures.sent_units - figures.delivered_units <= 2, "{figures:?}");
}

#[test]
fn the_series_of_links_between_the_same_nodes_are_told_apart_by_the_links_names() {
    let document = document(
        "
title: Two links
seed: 1
duration: 2 s
topology:
  nodes: [a, b, c]
  links:
    - { name: radio, between: [a, b], rate: 10 Mbit/s }
    - { name: cable, between: [b, a], rate: 20 Mbit/s }
    - { between: [b, c], rate: 10 Mbit/s }
events:
  - { at: 1 s, links: radio, down: true }
flows:
  - { name: cbr, from: a, to: c, over: udp, app: { cbr: { rate: 1 Mbit/s, size: 1000 B } } }
",
    );
    let names: Vec<_> = document.runs[0].series.links.iter().map(|(name, ..)| name.as_str()).collect();
    assert_eq!(names, ["radio a>b", "cable a>b", "b>c"]);
}

#[test]
fn a_flow_starts_and_stops_when_the_events_say() {
    let document = document(
        "
title: Now and then
seed: 1
duration: 8 s
measure: { interval: 1 s }
topology:
  chain: { hops: 1, link: { rate: 10 Mbit/s } }
events:
  - { at: 1 s, start: cbr }
  - { at: 3 s, stop: cbr }
  - { at: 5 s, start: cbr }
flows:
  - { name: cbr, from: n0, to: n1, over: udp, app: { cbr: { rate: 1 Mbit/s, size: 1000 B, start: event } } }
",
    );
    let (_, goodput) = &document.runs[0].series.flows[0];
    let on: Vec<bool> = goodput.iter().map(|&mbps| mbps > 0.5).collect();
    assert_eq!(on, [false, true, true, false, false, true, true, true]);
}

#[test]
fn a_new_rate_holds_from_its_instant_on() {
    let flow = flow(
        "
title: Slower
seed: 1
duration: 10 s
measure: { from: 6 s }
topology:
  chain: { hops: 2, link: { rate: 50 Mbit/s } }
events:
  - { at: 5 s, links: n1-n2, rate: 10 Mbit/s }
flows:
  - { name: bulk, from: n0, to: n2, over: udp, app: bulk }
",
    );
    near(flow.figures.goodput_mbps.unwrap(), 10.0 * 1472.0 / 1514.0, 0.002);
    near(flow.figures.min_cut_fraction.unwrap(), 1472.0 / 1514.0, 0.002);
}

#[test]
fn a_network_of_ten_thousand_nodes_carries_traffic_from_corner_to_corner() {
    let document = document(
        "
title: A large grid
seed: 1
duration: 1 s
topology:
  grid: { rows: 100, columns: 100, link: { rate: 100 Mbit/s, delay: 100 us } }
flows:
  - { name: across, from: r0c0, to: r99c99, over: udp, app: { cbr: { rate: 1 Mbit/s, size: 1000 B } } }
  - { name: back, from: r99c0, to: r0c99, over: udp, app: { cbr: { rate: 1 Mbit/s, size: 1000 B } } }
",
    );
    for flow in &document.runs[0].flows {
        let figures = &flow.figures;
        assert_eq!((figures.sent_units, figures.delivered_units), (125, 125));
        // 198 hops of 100 us and 1,042 bytes.
        near(figures.latency_ms.unwrap().p50, 198.0 * (0.1 + 1042.0 * 8.0 / 100e6 * 1e3), 0.01);
    }
}

/// Two routes from `a` to `d`, the shorter of which is interrupted from 3 s to 7 s, with 100 packets a second.
fn interrupted(convergence: &str, to: &str) -> String {
    format!(
        "
title: Converging
seed: 1
duration: 11 s
measure: {{ interval: 1 s }}
routing: {{ convergence: {convergence} }}
topology:
  nodes: [a, b, c, d]
  links:
    - {{ between: [a, b], rate: 10 Mbit/s, delay: 1 ms }}
    - {{ between: [b, d], rate: 10 Mbit/s, delay: 1 ms }}
    - {{ between: [a, c], rate: 10 Mbit/s, delay: 5 ms }}
    - {{ between: [c, d], rate: 10 Mbit/s, delay: 5 ms }}
events:
  - {{ at: 3005 ms, links: b-d, down: true }}
  - {{ at: 7005 ms, links: b-d, up: true }}
groups: [{{ name: far, members: [d], delivery: ip-multicast }}]
flows:
  - {{ name: cbr, from: a, to: {to}, over: udp, app: {{ cbr: {{ rate: 800 kbit/s, size: 1000 B }} }} }}
"
    )
}

#[test]
fn an_outage_costs_the_packets_of_the_time_that_routing_needs_to_converge() {
    for to in ["d", "far"] {
        for (convergence, lost) in [("0 s", 0), ("500 ms", 50), ("2 s", 200), ("1 h", 400)] {
            let figures = flow(&interrupted(convergence, to)).figures;
            let found = figures.sent_units - figures.delivered_units;
            // When the tree goes back, the one packet on its old branch does not come from where it should.
            let on_old_branch = u64::from(to == "far" && convergence != "1 h");
            assert_eq!(found, lost + on_old_branch, "to {to}, routes that follow after {convergence}");
        }
    }
}

#[test]
fn routes_go_back_as_late_as_they_went_away() {
    let document = document(&interrupted("2 s", "d"));
    let links = &document.runs[0].series.links;
    let (_, long, _) = links.iter().find(|(link, ..)| link == "c>d").unwrap();
    let used: Vec<usize> = (0..long.len()).filter(|&second| long[second] > 0.5).collect();
    assert_eq!(used, [5, 6, 7, 8], "from 5 s to 9 s");
}

#[test]
fn an_event_happens_again_until_its_end() {
    let document = document(
        "
title: Comes and goes
seed: 1
duration: 12 s
measure: { interval: 1 s }
topology:
  nodes: [{ name: n, count: 2, class: both }]
  links: [{ name: line, between: [both], rate: 10 Mbit/s }]
events:
  - { at: 1 s, every: 3 s, links: line, down: true }
  - { at: 2 s, every: 3 s, until: 8 s, links: line, up: true }
flows:
  - { name: cbr, from: n0, to: n1, over: udp, app: { cbr: { rate: 1 Mbit/s, size: 1000 B } } }
",
    );
    let run = &document.runs[0];
    let (_, goodput) = &run.series.flows[0];
    let on: Vec<bool> = goodput.iter().map(|&mbps| mbps > 0.5).collect();
    let expected = [true, false, true, true, false, true, true, false, false, false, false, false];
    assert_eq!(on, expected);
    let downs: Vec<f64> =
        run.events.iter().filter(|event| event.what.contains("down")).map(|event| event.at_s).collect();
    assert_eq!(downs, [1.0, 4.0, 7.0, 10.0]);
    assert_eq!(run.links[0].down_s, 7.0);
}

#[test]
fn members_and_flows_come_and_go_again_and_again() {
    let document = document(
        "
title: Comes and goes
seed: 1
duration: 9 s
measure: { interval: 1 s }
topology: { chain: { hops: 1, link: { rate: 10 Mbit/s } } }
groups: [{ name: film, delivery: ip-multicast, linger: 0 s }]
events:
  - { at: 1 s, every: 4 s, group: film, join: [n1] }
  - { at: 3 s, every: 4 s, group: film, leave: [n1] }
  - { at: 2 s, every: 4 s, start: other }
  - { at: 4 s, every: 4 s, stop: other }
flows:
  - { name: cbr, from: n0, to: film, over: udp, app: { cbr: { rate: 1 Mbit/s, size: 1000 B } } }
  - { name: other, from: n0, to: n1, over: udp, app: { cbr: { rate: 1 Mbit/s, size: 1000 B, start: event } } }
",
    );
    let flows = &document.runs[0].series.flows;
    let on = |number: usize| flows[number].1.iter().map(|&mbps| u8::from(mbps > 0.5)).collect::<Vec<_>>();
    assert_eq!(on(0), [0, 1, 1, 0, 0, 1, 1, 0, 0]);
    assert_eq!(on(1), [0, 0, 1, 1, 0, 0, 1, 1, 0]);
}
