//! Network elements of PGM: repairs stay in their branch, and a loss is asked for once on each link.

#![allow(clippy::unwrap_used)]

#[path = "pgm_router/bound.rs"]
mod bound;
use std::path::{Path, PathBuf};

use crate::common::{counter, document, frames};
use hopcast_runner::{load, run};
use hopcast_twin::Monitor;
use hopcast_twin::results::{Document, Run};
use hopcast_twin::scenario::Overrides;

/// A source behind r0; a and b behind r1, and c behind r2. One link loses.
fn tree(lossy: &str, services: &str) -> Run {
    let text = format!(
        "
title: A tree of routers
seed: 3
duration: 30 s
topology:
  nodes: [s, r0, r1, r2, a, b, c]
  links:
    - {{ between: [s, r0], rate: 10 Mbit/s, delay: 2 ms }}
    - {{ between: [r0, r1], rate: 10 Mbit/s, delay: 2 ms }}
    - {{ between: [r0, r2], rate: 10 Mbit/s, delay: 2 ms }}
    - {{ between: [r1, a], rate: 10 Mbit/s, delay: 2 ms }}
    - {{ between: [r1, b], rate: 10 Mbit/s, delay: 2 ms }}
    - {{ between: [r2, c], rate: 10 Mbit/s, delay: 2 ms }}
groups: [{{ name: abc, members: [a, b, c], delivery: ip-multicast }}]
variants: {{ packets: {{ pgm: {{ rate: 2 Mbit/s, parity: 0 }} }}, parity: {{ pgm: {{ rate: 2 Mbit/s, proactive: none }} }} }}
flows: [{{ name: f, from: s, to: abc, over: packets, app: {{ bulk: {{ bytes: 1 MB, start: 1 s }} }} }}]
events:
  - {{ at: 0 s, links: {lossy}, loss: 5 % }}
{services}
"
    );
    let run = document(&text).runs.into_iter().next().unwrap();
    assert_eq!(run.flows[0].figures.reliability, Some(1.0), "{lossy}: {services}");
    run
}

const ELEMENTS: &str = "services: [{ name: pgm, run: pgm-router, on: [r0, r1, r2] }]";

fn element(run: &Run, name: &str) -> u64 {
    run.hosts.get(&format!("pgm.element_{name}")).copied().unwrap_or(0)
}

/// What a link carries beyond the data that is sent to all: frames, and bytes.
fn beyond_data(run: &Run, from: &str, to: &str) -> (u64, u64) {
    let link = run.links.iter().find(|link| link.from == from && link.to == to).unwrap();
    let data = counter(run, "data_packets_sent");
    (link.sent_packets - data, link.sent_bytes - counter(run, "data_bytes_sent") - HEADERS * data)
}

/// Bytes of the headers of Ethernet, IPv4 and UDP.
const HEADERS: u64 = 14 + 20 + 8;

/// Fails unless a link carries no repair beside the data, and no more than SPMs: a repair is longer than ten of them.
#[track_caller]
fn carries_no_repairs(run: &Run, from: &str, to: &str) {
    let (frames, bytes) = beyond_data(run, from, to);
    assert!((1..=counter(run, "spms_sent").min(50)).contains(&frames), "{from} to {to}: {frames} frames");
    assert!(bytes < 130 * frames, "{from} to {to}: {bytes} bytes in {frames} frames");
}

const OTHERS: [(&str, &str); 3] = [("r0", "r2"), ("r2", "c"), ("r1", "b")];

#[test]
fn a_loss_behind_one_branch_puts_no_repair_on_any_other() {
    for services in [ELEMENTS.to_owned(), ELEMENTS.replace("] }]", "], store: 1 MB }]")] {
        let run = tree("r1-a", &services);
        OTHERS.iter().for_each(|(from, to)| carries_no_repairs(&run, from, to));
        assert_eq!(frames(&run, "r2", "r0") + frames(&run, "b", "r1") + frames(&run, "c", "r2"), 0);
    }
    let without = tree("r1-a", "");
    let (repairs, confirmations) = (counter(&without, "repair_packets_sent"), counter(&without, "ncfs_sent"));
    assert!(repairs > 20);
    for (from, to) in OTHERS {
        let (frames, _) = beyond_data(&without, from, to);
        assert!(frames >= repairs + confirmations, "{from} to {to}: {frames} frames");
    }
}

#[test]
fn a_loss_is_asked_for_once_on_each_link_towards_the_source() {
    let run = tree("r1-a", ELEMENTS);
    let repairs = counter(&run, "repair_packets_sent");
    assert!(repairs > 20);
    assert_eq!(frames(&run, "r1", "r0"), frames(&run, "r0", "s"));
    assert_eq!(frames(&run, "r0", "s"), counter(&run, "nacks_received"));
    // Each of the two elements has forwarded one request for each repair, and repeated none.
    assert_eq!(element(&run, "requests_forwarded"), 2 * repairs);
    assert_eq!(element(&run, "requests_repeated"), 0);
    assert_eq!(element(&run, "repairs"), 2 * repairs);
}

#[test]
fn a_loss_above_two_receivers_is_repaired_once_by_a_repairer() {
    let run = tree("r0-r1", &ELEMENTS.replace("] }]", "], store: 1 MB }]"));
    // Whoever of the two asks later gets it from the router that has kept the repair.
    assert_eq!(counter(&run, "repair_packets_sent"), 0);
    let lost = run.links.iter().find(|link| link.from == "r0" && link.to == "r1").unwrap().lost_packets;
    let again = frames(&run, "r0", "r1") - counter(&run, "data_packets_sent") - counter(&run, "spms_sent");
    let confirmations = frames(&run, "r1", "r0");
    assert!(
        again <= lost + confirmations,
        "{again} repairs and confirmations for {lost} losses, {confirmations} requests"
    );
    assert!(confirmations <= lost + lost / 5, "{confirmations} requests for {lost} losses");
}

#[test]
fn what_one_branch_has_lost_comes_from_a_repairer_in_another() {
    let services = "services:
  - { name: pgm, run: pgm-router, on: [r0, r1], redirect: on }
  - { name: store, run: pgm-router, on: r2, store: 2 MB }";
    let run = tree("r0-r1", services);
    let repairs = counter(&run, "repair_packets_sent");
    let (redirected, stored) =
        (element(&run, "requests_redirected"), run.hosts["store.element_repairs_of_store"]);
    assert!(redirected > 20 && stored > 20);
    // Those of the first losses, before the repairer has answered the poll, and of what did not come from there.
    assert!(repairs * 5 <= stored, "{repairs} repairs by the source, {stored} by the repairer");
    carries_no_repairs(&run, "r2", "c");
}

#[test]
fn parity_stays_in_its_branch_too() {
    let text = ELEMENTS.replace("services", "sweep: { flows.f.over: [parity] }\nservices");
    let run = tree("r1-a", &text);
    assert!(counter(&run, "parity_packets_sent") > 20);
    OTHERS.iter().for_each(|(from, to)| carries_no_repairs(&run, from, to));
}

#[test]
fn a_rate_that_follows_a_tcps_does_so_through_elements() {
    let run = |services: &str| {
        let services = format!("sweep: {{ flows.f.over: [pgm] }}\n{services}");
        let run = tree("r1-a", &services);
        (run.flows[0].figures.completed_s.unwrap(), element(&run, "reports"))
    };
    let ((without, _), (with, reports)) = (run(""), run(ELEMENTS));
    assert!(with < 1.5 * without, "{with} s, and {without} s without elements");
    assert!(reports > 1000, "acknowledgements go up from element to element: {reports}");
}

#[test]
fn an_element_that_is_stopped_and_started_anew_stalls_nobody() {
    for (lossy, ip) in [("r1-a", 4), ("all", 4), ("all", 6)] {
        let run = tree(
            lossy,
            &format!(
                "  - {{ at: 2 s, service: pgm, on: r1, stop: true }}
  - {{ at: 3 s, service: pgm, on: r1, start: true }}
  - {{ at: 4 s, service: pgm, on: r0, set: {{ elimination: 100 ms }} }}
sweep: {{ flows.f.ip: [{ip}] }}
{ELEMENTS}"
            ),
        );
        assert_eq!(run.hosts["pgm.restarts"], 2);
        let completed = run.flows[0].figures.completed_s.unwrap();
        assert!(completed < 12.0, "{lossy}, IPv{ip}: {completed} s");
        assert!(element(&run, "repairs") > 20);
    }
}

#[test]
fn on_ip_itself_the_same_is_repaired_with_eight_bytes_less_a_packet() {
    let over = |transport: &str| {
        let raw =
            ELEMENTS.replace("services:", &format!("sweep: {{ flows.f.over: [{transport}] }}\nservices:"));
        tree("r1-a", &raw)
    };
    let (udp, raw) = (over("packets"), over("[packets, raw-ip]"));
    let sent = |run: &Run, prefix: &str| {
        let counter = |name: &str| run.flows[0].counters[&format!("{prefix}{name}")];
        (counter("data_packets_sent"), counter("data_bytes_sent"), counter("repair_packets_sent"))
    };
    let (of_udp, of_raw) = (sent(&udp, ""), sent(&raw, "pgm."));
    // The same file in larger pieces.
    assert!(of_raw.0 < of_udp.0 && of_raw.2 > 20, "{of_raw:?}, {of_udp:?}");
    assert!(element(&raw, "repairs") > 20 && element(&raw, "requests_unknown") == 0);
    let bytes =
        |run: &Run| run.links.iter().find(|link| link.from == "r0" && link.to == "r2").unwrap().sent_bytes;
    assert!(bytes(&raw) + 8 * of_raw.0 <= bytes(&udp), "{} {}", bytes(&raw), bytes(&udp));
}

/// The study, all cases.
fn study() -> Document {
    let path = scenarios().join("studies/pgm-tree.yaml");
    let plan = load(&path, &Overrides::default()).unwrap_or_else(|error| panic!("{error}"));
    run(&plan, 2, None, &Monitor::default()).unwrap()
}

fn scenarios() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios")
}

#[test]
fn in_a_large_tree_repairs_cost_what_their_branches_make_them_cost() {
    let document = study();
    assert!(document.runs.iter().all(|run| run.flows[0].figures.reliability == Some(1.0)));
    let mean = |on: &str, store: &str, over: &str| {
        let of: Vec<f64> = document
            .runs
            .iter()
            .filter(|run| {
                let is = |key: &str, value: &str| run.parameters[key] == value;
                is("services.elements.on", on)
                    && is("services.elements.store", store)
                    && is("flows.file.over", over)
            })
            .map(|run| run.flows[0].figures.network_bytes.unwrap() as f64)
            .collect();
        of.iter().sum::<f64>() / of.len() as f64
    };
    let tree = bound::Tree::of(&document.runs[0], "c3001");
    assert_eq!((tree.links(), tree.receivers()), (40, 70));
    let bounds = tree.transmissions(0.01);
    let file = std::fs::read_to_string(scenarios().join("studies/pgm-tree.csv")).unwrap();
    // What one link carries if it loses nothing.
    let frames = bound::bytes_of_frames(&document.runs[0]);
    let mut rows = Vec::new();
    let modes = [("no-router", "0 B"), ("routers", "0 B"), ("routers", "8 MB")];
    for ((on, store), transmissions) in modes.into_iter().zip(bounds) {
        let (bound, found) = (transmissions * frames, mean(on, store, "pgm-packets"));
        let row = format!("{on},{store},pgm-packets,{bound:.0}");
        assert!(
            (1.0..1.06).contains(&(found / bound)),
            "{on}, {store}: {found} bytes, of {bound} that are needed"
        );
        rows.push(row);
    }
    let found: Vec<&str> = file.lines().filter(|line| line.contains(",pgm-packets,")).collect();
    assert_eq!(found, rows);
}
