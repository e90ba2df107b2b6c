//! A snapshot of a run in progress has its current state, and changes nothing.

#![allow(clippy::unwrap_used)] // in what the tests share

use std::path::Path;
use std::sync::Arc;

use hopcast_core::{Duration, Instant};
use hopcast_twin::bounds::Bounds;
use hopcast_twin::results::Run;
use hopcast_twin::scenario::model::Case;
use hopcast_twin::scenario::{MemoryFiles, Overrides, load};
use hopcast_twin::world::Snapshot;
use hopcast_twin::{Monitor, World, run_end};

/// All traffic is over by the end, so that the last snapshot agrees with the document.
const TEXT: &str = "\
seed: 4
duration: 5 s
topology:
  nodes: [a, b, c, d, e, f, g]
  links:
    - { between: [a, b], rate: 10 Mbit/s, delay: 5 ms, jitter: 2 ms, loss: 2 %, duplex: half, queue: { drop-tail: { limit: 20 packets } } }
    - { medium: [b, c, d], rate: 8 Mbit/s, delay: 1 ms, loss: 1 %, mac: csma }
    - { name: yard, switch: [d, e, f], rate: 2 Mbit/s, loss: 5 %, stations: { d: { rate: 1 Mbit/s } } }
    - { name: partly, medium: [f, g, e], rate: 6 Mbit/s, mac: { csma: { rts: 500 B } }, hears: [[f, g], [f, e]] }
events: [{ at: 200 ms, links: [a-b], down: true }, { at: 300 ms, links: [a-b], up: true }, { at: 2 s, stop: calls }]
flows:
  - { name: file, from: a, to: c, over: tcp-cubic, app: { file: { path: file.bin } } }
  - { name: calls, from: a, to: d, over: udp, app: { cbr: { rate: 9 Mbit/s, size: 1000 B } } }
  - { name: yard, from: e, to: f, over: udp, app: { cbr: { rate: 2200 kbit/s, size: 1000 B, stop: 4 s } } }
  - { name: partly, from: g, to: e, over: udp, app: { cbr: { rate: 1 Mbit/s, size: 1000 B, stop: 4 s } } }
";

fn case() -> Case {
    let files: MemoryFiles =
        [("runs/it.yaml", TEXT.as_bytes().to_vec()), ("runs/file.bin", vec![7; 300_000])]
            .into_iter()
            .collect();
    let plan = load(&files, Path::new("runs/it.yaml"), &Overrides::default());
    plan.unwrap_or_else(|error| panic!("{error}")).cases.remove(0)
}

/// The run, with a snapshot at each of the times.
fn run(case: &Case, at: &[Duration]) -> (Run, Vec<Snapshot>) {
    let monitor = Monitor::default();
    let mut world = World::new(Arc::clone(&case.scenario), 0, None).unwrap();
    let snapshots = at.iter().map(|&at| {
        assert!(world.run_until(Instant::ZERO + at, &monitor));
        world.snapshot()
    });
    let snapshots = snapshots.collect();
    (world.run_to_end(case, 0, &Bounds::default(), &monitor).unwrap().unwrap(), snapshots)
}

#[test]
fn snapshots_change_no_result() {
    let case = case();
    let (undisturbed, _) = run(&case, &[]);
    let often: Vec<Duration> = (1..4_999).map(|ms| Duration::from_micros(ms * 1_000 + 137)).collect();
    let (disturbed, snapshots) = run(&case, &often);
    assert_eq!(
        serde_json::to_string(&disturbed).unwrap(),
        serde_json::to_string(&undisturbed).unwrap(),
        "counters and figures"
    );
    assert_eq!((disturbed.series, disturbed.latency), (undisturbed.series, undisturbed.latency));
    assert_eq!(snapshots.len(), often.len());
}

#[test]
fn a_snapshot_at_the_end_agrees_with_the_document() {
    let case = case();
    let length = run_end(&case.scenario).since(Instant::ZERO);
    let (run, snapshots) = run(&case, &[length]);
    let end = &snapshots[0];
    assert_eq!(end.at_s, 5.0);
    assert_eq!(end.links.len(), run.links.len());
    for (state, link) in end.links.iter().zip(&run.links) {
        assert_eq!((&state.name, &state.from, &state.to), (&link.name, &link.from, &link.to));
        assert_eq!(
            (state.sent_bytes, state.sent_packets, state.delivered_packets),
            (link.sent_bytes, link.sent_packets, link.delivered_packets)
        );
        assert_eq!(
            (state.lost_packets, state.queue_dropped_packets),
            (link.lost_packets, link.queue_dropped_packets)
        );
        assert_eq!((state.queued_frames, state.queued_bytes, state.down), (0, 0, false));
        assert_eq!(state.busy_s / 5.0, link.utilisation.unwrap());
    }
    for (state, flow) in end.flows.iter().zip(&run.flows) {
        let (receiver, figures) = (&state.receivers[0], &flow.figures);
        assert_eq!((&state.name, &receiver.node), (&flow.name, &flow.to));
        assert_eq!(receiver.latency_ms, figures.latency_ms);
        assert_eq!(
            (receiver.sent_units, receiver.delivered_units),
            (figures.sent_units, figures.delivered_units)
        );
        assert!(state.counters.iter().all(|(name, value)| flow.counters[name] == *value), "{state:?}");
    }
    assert_eq!(end.flows[0].receivers[0].payload_bytes, 300_000);
    assert!(end.flows[1].counters.values().any(|value| *value > 0));
    for (name, value) in &run.hosts {
        assert_eq!(
            end.nodes.iter().filter_map(|node| node.counters.get(name)).sum::<u64>(),
            *value,
            "{name}"
        );
    }
}

#[test]
fn a_snapshot_shows_queues_links_that_are_down_and_what_has_come_so_far() {
    let ms = Duration::from_millis;
    let (_, snapshots) = run(&case(), &[ms(150), ms(250), ms(350)]);
    let [before, down, after] = &snapshots[..] else { panic!("three were asked for") };
    let states = snapshots.iter().map(|snapshot| snapshot.links[0].down).collect::<Vec<_>>();
    assert_eq!(states, [false, true, false]);
    // The file and the calls want more than the half-duplex link carries.
    let queue = &before.links[0];
    assert!((1..=20).contains(&queue.queued_frames), "{queue:?}");
    assert!(
        queue.queued_bytes > 60 * queue.queued_frames && queue.queued_bytes <= 1514 * queue.queued_frames
    );
    assert_eq!((down.links[0].queued_frames, down.links[0].queued_bytes), (0, 0));
    let payload = |snapshot: &Snapshot| snapshot.flows[1].receivers[0].payload_bytes;
    assert!(0 < payload(before) && payload(before) <= payload(down) && payload(down) < payload(after));
    let text = serde_json::to_string(before).unwrap();
    assert_eq!(&serde_json::from_str::<Snapshot>(&text).unwrap(), before);
}
