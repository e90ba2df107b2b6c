//! Firewalls between senders and receivers, and services that are switched off and on in mid-stream.

#![allow(clippy::unwrap_used)]

use crate::common::{document, tree_of_routers};
use hopcast_twin::results::Run;

fn host(run: &Run, counter: &str) -> u64 {
    run.hosts.get(counter).copied().unwrap_or(0)
}

/// A datagram each 10 ms from 1 s to 31 s, by lists from the beginning.
fn lists(services: &str) -> Run {
    let delivery = "{ meadcast: { delay: 0s, interval: 0s, wait: on } }";
    tree_of_routers(&[("all", "[a, b, c, d, e]", delivery)], services)
}

const ROUTERS: &str = "  - { name: mead, run: meadcast-router, on: [r1, r2] }\n";

#[test]
fn a_firewall_that_drops_routing_headers_lets_nothing_but_plain_packets_pass() {
    let open = lists(&format!("services:\n{ROUTERS}"));
    let share = |run: &Run| run.flows[0].figures.reliability.unwrap();
    assert_eq!(share(&open), 1.0);
    for (times, lost) in [("", None), (", from: 11 s, until: 21 s", Some(1000)), (", from: 21 s", Some(1000))]
    {
        let firewall = format!("  - {{ name: fw, run: firewall, on: r0, drop: routing-header{times} }}\n");
        let closed = lists(&format!("services:\n{firewall}{ROUTERS}"));
        match lost {
            // Discovery has found no router: all is unicast, of which none is dropped.
            None => assert_eq!(share(&closed), 1.0),
            Some(lost) => {
                let found = ((1.0 - share(&closed)) * 3000.0).round() as u64;
                assert!(found.abs_diff(lost) <= 2, "{found}");
                // A datagram is in one list or in several.
                let dropped = host(&closed, "fw.firewall_dropped_routing_header");
                assert!(dropped + 2 >= lost && dropped <= 5 * (lost + 2), "{dropped}");
            }
        }
        assert_eq!(host(&closed, "fw.firewall_dropped_udp"), 0);
    }
}

#[test]
fn a_firewall_is_switched_by_events_and_its_rules_with_it() {
    let text = |events: &str| {
        format!(
            "
title: A firewall
duration: 30 s
topology: {{ chain: {{ hops: 2, link: {{ rate: 10 Mbit/s, delay: 1 ms }} }} }}
services: [{{ name: fw, run: firewall, on: n1, drop: [tcp, udp/7] }}]
flows:
  - {{ name: f, from: n0, to: n2, over: udp, app: {{ cbr: {{ rate: 400 kbit/s, size: 500 B }} }} }}
events:
{events}"
        )
    };
    let run = document(&text(
        "  - { at: 5 s, service: fw, set: { drop: udp } }
  - { at: 10 s, service: fw, stop: true }
  - { at: 20 s, service: fw, start: true }
",
    ));
    let run = &run.runs[0];
    // From 5 to 10 s and from 20 s on.
    let dropped = host(run, "fw.firewall_dropped_udp");
    assert!(dropped.abs_diff(1500) <= 2, "{dropped}");
    let lost = ((1.0 - run.flows[0].figures.reliability.unwrap()) * 3000.0).round() as u64;
    assert_eq!(lost, dropped);
}

#[test]
fn a_meadcast_router_that_is_stopped_in_mid_stream_serves_nobody_until_it_starts() {
    let events = "events:
  - { at: 11 s, service: mead, on: r1, stop: true }
  - { at: 21 s, service: mead, on: r1, start: true }
";
    let run = lists(&format!("services:\n{ROUTERS}{events}"));
    // Of five receivers the three behind it are without packets for ten seconds of thirty, but for the one that a list
    // is addressed to, which is no member of MEADcast and takes the datagram as its own.
    let lost = 1.0 - run.flows[0].figures.reliability.unwrap();
    assert!((0.13..=0.21).contains(&lost), "{lost}");
    assert_eq!(host(&run, "mead.restarts"), 1);
}
