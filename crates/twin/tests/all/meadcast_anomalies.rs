//! The studies of MEADcast's anomalies: what forged responses, a router that does not serve, and bad links cost.

#![allow(clippy::unwrap_used)]

use crate::common::studies::{parameter, study};
use hopcast_twin::results::Run;

/// All receivers.
const RECEIVERS: f64 = 42.0;
/// Packets that the quick form of the first study sends in its second, and lists are sent by.
const PACKETS: u64 = 50;

fn host(run: &Run, counter: &str) -> u64 {
    run.hosts.get(counter).copied().unwrap_or(0)
}

/// The number of receivers with all packets, if the others have none.
fn served(run: &Run) -> f64 {
    run.flows[0].figures.reliability.unwrap() * RECEIVERS
}

/// Lists that came to receivers; a request came to each of them in each discovery.
fn lists_seen(run: &Run) -> u64 {
    let requests = run.flows[0].counters["meadcast_sender_requests"];
    host(run, "seen.meadcast_passed").saturating_sub(requests)
}

#[test]
fn a_nonce_stops_who_is_not_on_the_way_and_a_key_whoever_has_not_got_it() {
    let document = study("meadcast-anomalies-forged", &[]);
    for run in &document.runs {
        let knows = parameter(run, "services.forger.knows");
        let form = parameter(run, "groups.clients.delivery");
        let (expected, lists) = match (knows, form) {
            ("nothing", _) | ("addresses", "nonce") | ("addresses" | "requests", "key" | "revision") => {
                (42.0, 0)
            }
            // Of 36 receivers that it forges about, the first of each list.
            (_, "thesis" | "nonce" | "key") => (6.0 + 4.0, 4),
            (_, "next-hop") => (6.0, 0),
            // All are in one list, which is addressed to the router that does not exist.
            _ => (0.0, 0),
        };
        assert!((served(run) - expected).abs() < 1e-6, "{knows} {form}: {}", served(run));
        assert_eq!(lists_seen(run), lists * PACKETS, "{knows} {form}");
        let refused = run.flows[0].counters.get("refused_forged").copied().unwrap_or(0);
        let is_stopped = knows != "nothing" && expected == 42.0;
        assert_eq!(refused, if is_stopped { 36 } else { 0 }, "{knows} {form}");
        assert_eq!(host(run, "forger.forger_responses"), if knows == "nothing" { 0 } else { 36 });
    }
    assert_eq!(document.runs.len(), 4 * 5);
}

#[test]
fn a_router_that_answers_and_does_not_serve_is_found_out_by_nobody() {
    const STEP: f64 = 0.5;
    let document = study("meadcast-anomalies-router", &[]);
    for run in &document.runs {
        let (liar, form) = (parameter(run, "services.liar.on"), parameter(run, "groups.clients.delivery"));
        // Nine receivers are behind the router, of which the first of their list reads it as its own.
        let (lost, lists) = if form == "thesis" { (8.0, 1) } else { (9.0, 0) };
        // Switched off at 10 s; the next discovery begins at 14 s and takes 2.
        let until = if liar == "no-router" { 16.0 } else { 20.0 };
        for (step, rate) in run.series.flows[0].1.iter().enumerate() {
            let at = step as f64 * STEP;
            let served = match at {
                ..3.0 => 0.0,
                10.0.. if at < until => RECEIVERS - lost,
                _ => RECEIVERS,
            };
            let found = rate / 0.4 * RECEIVERS;
            assert!((found - served).abs() < 0.01, "{liar} {form}: {found} at {at} s");
        }
        let expected = lists * PACKETS * (until - 10.0) as u64;
        assert!(lists_seen(run).abs_diff(expected) <= 2, "{liar} {form}: {}", lists_seen(run));
    }
    assert_eq!(document.runs.len(), 2 * 3);
}

#[test]
fn bad_links_cost_discovery_bytes_and_no_packet() {
    let document = study("meadcast-anomalies-discovery", &[]);
    for run in &document.runs {
        let [loss, duplicate, jitter] =
            ["loss", "duplicate", "jitter"].map(|key| parameter(run, &format!("events.bad.{key}")));
        let case = format!("{loss} {duplicate} {jitter} {}", parameter(run, "groups.clients.delivery"));
        assert_eq!(run.flows[0].figures.reliability, Some(1.0), "{case}");
        let saving = run.flows[0].figures.network_saving;
        println!("{case}: {saving:?}");
        match loss {
            // The reference, and what says the same twice or in another order.
            "0 %" => assert!(saving.is_none_or(|saving| saving == 0.0), "{case}: {saving:?}"),
            _ => assert!(saving.is_some_and(|saving| saving < 0.0), "{case}: {saving:?}"),
        }
    }
    assert_eq!(document.runs.len(), 2 * 7 * 2);
}
