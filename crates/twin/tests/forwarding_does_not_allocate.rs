//! Hosts that forward, and the links between them, allocate nothing for a packet in steady state: its buffer goes from
//! the sender to the receiver, and its memory back to the sender.

#![allow(clippy::unwrap_used)]

use std::path::Path;

use hopcast_core::{Duration, Instant};
use hopcast_counting::{Counting, allocations};
use hopcast_runner::load_text;
use hopcast_twin::scenario::Overrides;
use hopcast_twin::{Monitor, World};

#[global_allocator]
static COUNTING: Counting = Counting;

/// Packets over a hop, and allocations, from 4 s to 8 s of a run.
fn counted(text: &str) -> (u64, u64) {
    let plan = load_text(Path::new("test.yaml"), text, &Overrides::default()).unwrap();
    let mut world = World::new(plan.cases[0].scenario.clone(), 0, None).unwrap();
    let monitor = Monitor::default();
    let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
    // Queues and pools reach their length.
    world.run_until(at(4), &monitor);
    let before = world.packet_hops();
    let counted = allocations(|| {
        world.run_until(at(8), &monitor);
    });
    (world.packet_hops() - before, counted)
}

#[test]
fn packets_cross_six_hops_without_an_allocation() {
    let text = "duration: 10s
measure: { interval: 10s }
topology: { chain: { hops: 6, link: { rate: 50 Mbit/s, delay: 1ms, loss: 1 % } } }
flows: [{ from: n0, to: n6, over: udp, app: { cbr: { rate: saturate } } }]
";
    let (hops, counted) = counted(text);
    assert!(hops > 90_000, "{hops} packets over a hop");
    // What is measured of them may grow.
    assert!(counted < 100, "{counted} allocations for {hops} packets over a hop");
}

#[test]
fn packets_to_a_group_cross_a_tree_without_an_allocation() {
    let text = "duration: 10s
measure: { interval: 10s }
topology:
  tree: { depth: 3, fanout: 3, link: { rate: 50 Mbit/s, delay: 1ms } }
  nodes: [a, b, c]
  links: [{ switch: [n39, a, b, c], rate: 50 Mbit/s, delay: 1ms }]
groups: [{ name: g, members: all, delivery: ip-multicast }]
flows: [{ from: n0, to: g, over: udp, app: { cbr: { rate: 10 Mbit/s } } }]
";
    let (hops, counted) = counted(text);
    assert!(hops > 130_000, "{hops} packets over a hop");
    // What is measured of them, at 42 receivers, may grow.
    assert!(counted < 500, "{counted} allocations for {hops} packets over a hop");
}
