//! Scenarios from text, run to their document.

#![allow(clippy::unwrap_used, dead_code)] // each test file uses its part

pub(crate) mod scenarios;
pub(crate) mod studies;

use std::path::Path;

use hopcast_runner::{load_text, run};
use hopcast_twin::Monitor;
use hopcast_twin::results::{Document, Flow, Run, Summary};
use hopcast_twin::scenario::Overrides;

/// The document of the scenario in `text`, run on `threads` threads.
pub(crate) fn document_on(threads: usize, text: &str) -> Document {
    let plan = load_text(Path::new("test.yaml"), text, &Overrides::default())
        .unwrap_or_else(|error| panic!("{error}"));
    run(&plan, threads, None, &Monitor::default()).unwrap()
}

/// The document of the scenario in `text`.
pub(crate) fn document(text: &str) -> Document {
    document_on(2, text)
}

/// The one flow of the one run in `text`.
pub(crate) fn flow(text: &str) -> Flow {
    let document = document(text);
    assert_eq!(document.runs.len(), 1);
    document.runs.into_iter().next().unwrap().flows.remove(0)
}

/// The run of a source s behind r0, with a, b and c behind r1, and d and e behind r2. To each of these groups (name,
/// members and delivery) there goes one datagram of 500 bytes each 10 ms over IPv6, from 1 s on.
pub(crate) fn tree_of_routers(groups: &[(&str, &str, &str)], services: &str) -> Run {
    document(&text_of_tree(groups, services)).runs.into_iter().next().unwrap()
}

/// The file of such a tree.
pub(crate) fn text_of_tree(groups: &[(&str, &str, &str)], services: &str) -> String {
    let listed = groups.iter().map(|(name, members, delivery)| {
        format!("  - {{ name: {name}, members: {members}, delivery: {delivery} }}\n")
    });
    let flows = groups.iter().zip(["f", "g"]).map(|((to, ..), name)| {
        let app = "{ cbr: { rate: 400 kbit/s, size: 500 B, start: 1 s } }";
        format!("  - {{ name: {name}, from: s, to: {to}, ip: 6, over: udp, app: {app} }}\n")
    });
    let (groups, flows): (String, String) = (listed.collect(), flows.collect());
    format!(
        "
title: A tree of routers
seed: 3
duration: 31 s
topology:
  nodes: [s, r0, r1, r2, a, b, c, d, e]
  links:
    - {{ between: [s, r0], rate: 10 Mbit/s, delay: 2 ms }}
    - {{ between: [r0, r1], rate: 10 Mbit/s, delay: 2 ms }}
    - {{ between: [r0, r2], rate: 10 Mbit/s, delay: 2 ms }}
    - {{ between: [r1, a], rate: 10 Mbit/s, delay: 2 ms }}
    - {{ between: [r1, b], rate: 10 Mbit/s, delay: 2 ms }}
    - {{ between: [r1, c], rate: 10 Mbit/s, delay: 2 ms }}
    - {{ between: [r2, d], rate: 10 Mbit/s, delay: 2 ms }}
    - {{ between: [r2, e], rate: 10 Mbit/s, delay: 2 ms }}
groups:
{groups}flows:
{flows}{services}
"
    )
}

/// Frames that a direction of a link has sent.
#[track_caller]
pub(crate) fn frames(run: &Run, from: &str, to: &str) -> u64 {
    run.links.iter().find(|link| link.from == from && link.to == to).unwrap().sent_packets
}

/// A counter of the first flow.
#[track_caller]
pub(crate) fn counter(run: &Run, name: &str) -> u64 {
    run.flows[0].counters[name]
}

/// Mean of a figure over the repeats of a cell.
#[track_caller]
pub(crate) fn mean(cell: &Summary, name: &str) -> f64 {
    cell.figures[name]["mean"].as_f64().unwrap_or_else(|| panic!("{name} of {:?}", cell.parameters))
}

/// Mean number of times that a packet is sent until each of so many receivers has it, which lose it independently:
/// repetition without a code can do no better, whoever asks and whenever.
pub(crate) fn repetitions(receivers: i32, loss: f64) -> f64 {
    // It is sent again after `sent` times if one of them has lost all of those.
    (0..200).map(|sent| 1.0 - (1.0 - loss.powi(sent)).powi(receivers)).sum()
}

/// Fails unless `found` is within `share` of `expected`.
#[track_caller]
pub(crate) fn near(found: f64, expected: f64, share: f64) {
    assert!((found / expected - 1.0).abs() <= share, "{found} is not within {share} of {expected}");
}

/// Fails if a direction of a link sent more than `rate` bit/s, in the window by its start and length in seconds, or in
/// the whole run.
#[track_caller]
pub(crate) fn links_keep_to(run: &Run, rate: f64, (_, length): (f64, f64), what: &str) {
    const FRAME: f64 = 1514.0;
    for link in &run.links {
        // A frame counts when the last of it is sent, and the first one may have begun before the window.
        let limit = rate * length / 8.0 + FRAME;
        assert!(link.sent_bytes as f64 <= limit, "{what}: {link:?} is more than {limit} bytes");
    }
    for (name, sent, _) in &run.series.links {
        let carried = sent.iter().sum::<f64>() / sent.len() as f64;
        assert!(carried <= rate / 1e6, "{what}: {name} carried {carried} Mbit/s");
    }
}
