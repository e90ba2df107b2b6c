//! Extreme values of scenarios: empty files, huge messages, odd MTUs, flows that end early or late.

use std::path::Path;

use crate::common::{document, flow, near};
use hopcast_runner::{load_text, run};
use hopcast_twin::Monitor;
use hopcast_twin::scenario::Overrides;

fn one_link(link: &str, events: &str, flow: &str) -> String {
    format!(
        "
title: One link
seed: 1
duration: 10 s
topology:
  nodes: [a, b]
  links:
    - {{ between: [a, b], {link} }}
{events}
flows:
  - {{ name: flow, from: a, to: b, {flow} }}
"
    )
}

#[test]
fn parallel_links_lose_on_their_own_whichever_end_is_named_first() {
    let document = document(
        "
title: A parallel pair
seed: 1
duration: 10 s
topology:
  nodes: [a, b]
  links:
    - { name: one, between: [a, b], rate: 10 Mbit/s, loss: 20 % }
    - { name: other, between: [b, a], rate: 10 Mbit/s, loss: 20 % }
events:
  - { at: 5 s, links: one, down: true }
flows:
  - { name: flow, from: a, to: b, over: udp, app: { cbr: { rate: 8 Mbit/s, size: 500 B } } }
",
    );
    let lost: Vec<u64> =
        document.runs[0].links.iter().filter(|link| link.from == "a").map(|link| link.lost_packets).collect();
    assert!(lost.iter().all(|&lost| lost > 1500) && lost[0] != lost[1], "{lost:?}");
}

#[test]
fn a_link_says_for_how_long_it_was_down_in_the_window_and_events_are_told_in_words() {
    let document = document(
        "
title: Down and up
seed: 1
duration: 10 s
measure: { from: 2 s, to: 8 s }
topology:
  nodes: [a, b]
  links: [{ between: [a, b], rate: 10 Mbit/s }]
events:
  - { at: 9 s, links: all, up: true }
  - { at: 1 s, links: all, down: true }
  - { at: 3 s, links: [a-b], up: true, loss: 5 % }
  - { at: 7 s, links: all, from: b, down: true }
  - { at: 4 s, stop: flow }
flows:
  - { name: flow, from: a, to: b, over: udp, app: { cbr: { rate: 1 Mbit/s, size: 500 B } } }
",
    );
    let run = &document.runs[0];
    // Forth: 1 to 3 s; back: 1 to 3 s and 7 to 9 s; the window is 2 to 8 s.
    let down: Vec<f64> = run.links.iter().map(|link| link.down_s).collect();
    assert_eq!(down, [1.0, 2.0]);
    let events: Vec<(f64, &str)> = run.events.iter().map(|event| (event.at_s, event.what.as_str())).collect();
    let expected =
        [(1.0, "down"), (3.0, "up, loss 5 % on a-b"), (4.0, "stop flow"), (7.0, "down"), (9.0, "up")];
    assert_eq!(events, expected);
}

#[test]
fn an_empty_file_arrives_whole() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("empty"), "").unwrap();
    for over in ["udp", "tcp-cubic"] {
        let text =
            one_link("rate: 10 Mbit/s", "", &format!("over: {over}, app: {{ file: {{ path: empty }} }}"));
        let plan = load_text(&dir.path().join("s.yaml"), &text, &Overrides::default()).unwrap();
        let document = run(&plan, 1, None, &Monitor::default()).unwrap();
        let figures = &document.runs[0].flows[0].figures;
        assert_eq!((figures.hash_ok, figures.reliability), (Some(true), Some(1.0)), "{over}");
    }
}

#[test]
fn the_largest_messages_go_there_and_back() {
    let figures = flow(&one_link(
        "rate: 1 Gbit/s",
        "",
        "over: tcp-cubic, app: { messages: { size: 16 MiB, every: 2 s } }",
    ))
    .figures;
    assert_eq!((figures.sent_units, figures.delivered_units), (5, 5));
    assert!(figures.round_trip_ms.is_some());
}

#[test]
fn a_bounded_flow_is_measured_while_it_lasts_even_if_a_little_of_it_is_lost() {
    let figures =
        flow(&one_link("rate: 10 Mbit/s, loss: 1 %", "", "over: udp, app: { bulk: { bytes: 1 MB } }"))
            .figures;
    near(figures.payload_bound_fraction.unwrap(), 0.99, 0.02);
    assert_eq!(figures.completed_s, None);
}

#[test]
fn the_bound_of_a_bounded_flow_is_that_of_its_own_time() {
    let events = "events:\n  - { at: 5 s, links: all, rate: 1 Mbit/s }";
    let figures =
        flow(&one_link("rate: 100 Mbit/s", events, "over: tcp-cubic, app: { bulk: { bytes: 5 MB } }"))
            .figures;
    let share = figures.min_cut_fraction.unwrap();
    assert!((0.8..1.0).contains(&share), "{share}");
}

#[test]
fn a_bounded_flow_that_is_over_before_the_window_has_no_goodput() {
    let text =
        one_link("rate: 10 Mbit/s", "measure: { from: 5 s }", "over: udp, app: { bulk: { bytes: 100 kB } }");
    let figures = flow(&text).figures;
    assert_eq!((figures.goodput_mbps, figures.min_cut_fraction), (None, None));
    assert!(figures.completed_s.is_some());
}

#[test]
fn what_is_under_way_at_the_end_still_arrives() {
    let figures = flow(&one_link("rate: 10 Mbit/s, delay: 2 s", "", "over: udp, app: bulk")).figures;
    assert_eq!(figures.reliability, Some(1.0));
}

#[test]
fn what_is_scheduled_after_the_end_does_not_happen() {
    let events = "events:\n  - { at: 10001 ms, links: all, down: true }";
    let figures = flow(&one_link("rate: 10 Mbit/s, delay: 2 s", events, "over: udp, app: bulk")).figures;
    assert_eq!(figures.reliability, Some(1.0));
}

#[test]
fn a_saturating_sender_follows_the_rate_of_its_first_link() {
    let events = "measure: { from: 6 s }\nevents:\n  - { at: 5 s, links: all, rate: 50 Mbit/s }";
    let figures = flow(&one_link("rate: 1 Mbit/s", events, "over: udp, app: bulk")).figures;
    near(figures.goodput_mbps.unwrap(), 50.0 * 1472.0 / 1514.0, 0.01);
}

#[test]
fn the_last_datagram_is_as_long_as_what_is_left() {
    let flow = flow(&one_link("rate: 10 Mbit/s", "", "over: udp, app: { bulk: { bytes: 5000 B } }"));
    assert_eq!(flow.counters["payload_bytes_sent"], 5000);
    assert_eq!(flow.figures.sent_units, 4);
}

#[test]
fn full_packets_are_as_long_as_the_path_lets_them() {
    for mtu in [576, 1280, 9000] {
        for (over, headers) in [("udp", 42.0), ("tcp-cubic", 66.0)] {
            let link = format!("rate: 50 Mbit/s, mtu: {mtu}");
            let figures =
                flow(&one_link(&link, "measure: { from: 2 s }", &format!("over: {over}, app: bulk"))).figures;
            let frame = f64::from(mtu) + 14.0;
            near(figures.goodput_mbps.unwrap(), 50.0 * (frame - headers) / frame, 0.01);
            near(figures.payload_bound_fraction.unwrap(), 1.0, 0.01);
        }
    }
}

#[test]
fn reordering_over_many_datagrams_is_not_taken_for_loss() {
    let figures = flow(&one_link(
        "rate: 5 Gbit/s, delay: 200 ms, jitter: 150 ms, reorder: true",
        "",
        "over: udp, app: { cbr: { rate: 4 Gbit/s, size: 1400 B, stop: 300 ms } }",
    ))
    .figures;
    assert_eq!(figures.reliability, Some(1.0));
}

#[test]
fn a_medium_reports_what_was_sent_to_whom() {
    let document = document(
        "
title: A medium
seed: 1
duration: 1 s
topology:
  nodes: [a, b, c]
  links:
    - { medium: [a, b, c], rate: 10 Mbit/s }
flows:
  - { name: flow, from: a, to: b, over: udp, app: { cbr: { rate: 1 Mbit/s, size: 1000 B } } }
",
    );
    let sent = |to: &str| {
        document.runs[0].links.iter().find(|link| link.from == "a" && link.to == to).unwrap().sent_packets
    };
    assert_eq!((sent("b"), sent("c")), (125, 0));
}

#[test]
fn a_host_learns_the_new_mtu_of_its_link() {
    let document = document(
        "
title: A narrower link
seed: 1
duration: 4 s
topology: { nodes: [a, b], links: [{ between: [a, b], rate: 10 Mbit/s, jitter: 9ms }] }
events:
  - { at: 1s, links: all, mtu: 1000, reorder: on, queue: { codel: { target: 1ms } } }
  - { at: 2s, links: a-b, from: b, mtu: 9000 }
  - { at: 3s, links: a-b, from: a, mtu: 1428 }
flows:
  - { name: flow, from: a, to: b, over: udp, app: { cbr: { rate: 1120 kbit/s, size: 1400 B } } }
",
    );
    // A hundred datagrams a second, and none from the first second to the third: the sending host keeps them.
    let run = &document.runs[0];
    assert_eq!((run.links[0].sent_packets, run.links[0].queue_dropped_packets), (200, 0));
    assert_eq!(run.hosts.get("unfragmented").or(run.hosts.get("too_big")), Some(&200));
    assert_eq!(
        run.events.iter().map(|event| event.what.as_str()).next(),
        Some("mtu 1000, reorder on, queue")
    );
}

#[test]
fn a_switch_replicates_nothing_that_is_for_one_and_reports_each_way() {
    let document = document(
        "
title: A switch
seed: 1
duration: 1 s
topology:
  nodes: [a, b, c]
  links:
    - { switch: [a, b, c], rate: 10 Mbit/s, stations: { c: { rate: 1 Mbit/s } }, pairs: [{ from: c, to: a, loss: 50 % }] }
flows:
  - { name: one, from: a, to: b, over: udp, app: { cbr: { rate: 1 Mbit/s, size: 1000 B } } }
  - { name: back, from: b, to: a, over: udp, app: { cbr: { rate: saturate, size: 1000 B } } }
  - { name: slow, from: c, to: a, over: udp, app: { cbr: { rate: 800 kbit/s, size: 1000 B } } }
",
    );
    let of = |from: &str, to: &str| {
        document.runs[0].links.iter().find(|link| link.from == from && link.to == to).unwrap().clone()
    };
    assert_eq!(
        (of("a", "b").sent_packets, of("a", "c").sent_packets, of("c", "b").sent_packets),
        (125, 0, 0)
    );
    // Full duplex: whoever sends to a takes nothing from what it sends, or from each other.
    assert!((of("b", "a").utilisation.unwrap() - 1.0).abs() < 0.01);
    assert_eq!(of("c", "a").sent_packets, 100);
    let lost = of("c", "a").lost_packets;
    assert!((25..75).contains(&lost) && of("b", "a").lost_packets == 0, "{lost}");
}

#[test]
fn packets_go_on_by_the_station_that_both_ends_hear() {
    let document = document(
        "
title: Out of hearing
seed: 1
duration: 2 s
topology:
  nodes: [a, r, c]
  links:
    - { medium: [a, r, c], rate: 12 Mbit/s, mac: { csma: { rts: 500 B } }, hears: [[a, r], [r, c]] }
flows:
  - { name: there, from: a, to: c, over: tcp-cubic, app: { bulk: { bytes: 200 kB } } }
  - { name: also, from: c, to: r, over: udp, app: { cbr: { rate: 1 Mbit/s, size: 1000 B } } }
",
    );
    let run = &document.runs[0];
    let of = |from: &str, to: &str| {
        run.links.iter().find(|link| link.from == from && link.to == to).unwrap().clone()
    };
    assert!(run.flows.iter().all(|flow| flow.figures.reliability == Some(1.0)));
    assert_eq!((of("a", "c").sent_packets, of("c", "a").sent_packets), (0, 0));
    assert!(of("a", "r").delivered_packets > 130 && of("r", "c").delivered_packets > 130);
}

#[test]
fn a_plan_is_read_as_if_from_a_file() {
    // The other tests read from text; this one holds the two ways of reading against each other.
    let dir = tempfile::tempdir().unwrap();
    let text = one_link("rate: 10 Mbit/s", "", "over: udp, app: bulk");
    let file = dir.path().join("s.yaml");
    std::fs::write(&file, &text).unwrap();
    let from_file = hopcast_runner::load(&file, &Overrides::default()).unwrap();
    let from_text = load_text(Path::new("s.yaml"), &text, &Overrides::default()).unwrap();
    assert_eq!(from_file.cases[0].scenario.flows, from_text.cases[0].scenario.flows);
}

#[test]
fn tcp_crosses_more_hops_than_an_operating_systems_default_lets_it() {
    let figures = flow(
        "
title: A hundred hops
seed: 1
duration: 10 s
measure: { from: 5 s }
topology:
  chain: { hops: 100, link: { rate: 10 Mbit/s, delay: 100 us } }
flows:
  - { name: flow, from: n0, to: n100, over: tcp-cubic, app: bulk }
",
    )
    .figures;
    assert!(figures.payload_bound_fraction.unwrap() > 0.9, "{figures:?}");
}
