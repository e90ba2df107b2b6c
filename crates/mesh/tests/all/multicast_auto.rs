//! The mode `auto` beside the fixed ones: at equal frames it delivers about what the best of them does.

#![allow(clippy::unwrap_used)]

use std::net::Ipv4Addr;

use crate::common::World;
use crate::common::groups::{data, join};
use hopcast_core::{Duration, Rate};
use hopcast_mesh::{MeshConfig, MulticastMode};

const GROUPS: [Ipv4Addr; 2] = [Ipv4Addr::new(239, 1, 2, 3), Ipv4Addr::new(239, 1, 2, 4)];
/// Share of frames by which `auto` may stay behind the best fixed mode.
const BEHIND: f64 = 0.03;

/// A flow to a group: its sender and its receivers.
struct Flow {
    group: Ipv4Addr,
    from: usize,
    to: &'static [usize],
}

/// A run: its world, flows and changes.
struct Case {
    world: fn(u64) -> World,
    flows: &'static [Flow],
    /// Length of the frames, and the time between two of a flow.
    len: usize,
    gap: Duration,
    /// Changes the world each second.
    change: fn(&mut World, u64),
}

const FIXED: [fn(usize, &mut MeshConfig); 3] = [
    |_, config| config.multicast.mode = MulticastMode::Packet,
    |_, config| config.multicast.mode = MulticastMode::Unicast,
    |_, config| config.multicast.mode = MulticastMode::Broadcast,
];
const AUTO: fn(usize, &mut MeshConfig) = |_, config| config.multicast.mode = MulticastMode::Auto;

/// Share of the frames that its receivers get, of all flows, in a minute; and the world at its end.
fn share(case: &Case, mode: fn(usize, &mut MeshConfig), seed: u64) -> (f64, World) {
    let mut world = (case.world)(seed).configured(mode);
    for flow in case.flows {
        flow.to.iter().for_each(|&node| join(&mut world, node, flow.group));
    }
    world.run(70);
    world.delivered.clear();
    let (mut wanted, mut got) = (0, 0);
    for second in 0..60 {
        (case.change)(&mut world, second);
        let end = world.now + Duration::from_secs(1);
        while world.now < end {
            for flow in case.flows {
                world.send(flow.from, &data(flow.from, flow.group, case.len));
                wanted += flow.to.len();
            }
            world.until(end.min(world.now + case.gap));
        }
        for (_, node, bytes) in std::mem::take(&mut world.delivered) {
            let flow = case.flows.iter().find(|flow| bytes == data(flow.from, flow.group, case.len));
            got += usize::from(flow.is_some_and(|flow| flow.to.contains(&node)));
        }
    }
    (got as f64 / wanted as f64, world)
}

/// Mean shares over seeds: of `auto`, and of the fixed modes.
fn shares(case: &Case) -> (f64, [f64; 3]) {
    const SEEDS: u64 = 4;
    let mean = |mode| (0..SEEDS).map(|seed| share(case, mode, seed).0).sum::<f64>() / SEEDS as f64;
    let (auto, fixed) = (mean(AUTO), FIXED.map(mean));
    println!("auto {auto:.4}, packet, unicast, broadcast {fixed:.4?}");
    (auto, fixed)
}

fn best(fixed: [f64; 3]) -> f64 {
    fixed.into_iter().fold(0.0, f64::max)
}

/// A sender, three nodes around it, and three behind these.
fn star(seed: u64) -> World {
    let mut world = World::unlinked(7, seed);
    for node in 1..4 {
        world.link(0, node, 0.002);
        world.link(node, node + 3, 0.002);
    }
    world
}

#[test]
fn a_receiver_that_moves_is_flooded_to() {
    let case = Case {
        world: |seed| {
            let mut world = star(seed);
            (4..7).for_each(|node| world.cut(node - 3, node));
            world.link(1, 4, 0.002);
            world
        },
        flows: &[Flow { group: GROUPS[0], from: 0, to: &[4] }],
        len: 1250,
        gap: Duration::from_millis(20),
        change: |world, second| {
            if second % 10 == 9 {
                let (from, to) = (1 + second as usize / 10 % 3, 1 + (second as usize / 10 + 1) % 3);
                world.cut(from, 4);
                world.link(to, 4, 0.002);
            }
        },
    };
    let (auto, fixed) = shares(&case);
    assert!(auto >= best(fixed) - BEHIND, "{auto} {fixed:?}");
    // There is something to choose.
    assert!(fixed[2] > fixed[0] + 0.1, "{fixed:?}");
}

#[test]
fn links_with_loss_and_several_paths_are_flooded() {
    let case = Case {
        world: |seed| {
            let mut world = World::unlinked(9, seed);
            for node in 0..9 {
                if node % 3 < 2 {
                    world.link(node, node + 1, 0.15);
                }
                if node < 6 {
                    world.link(node, node + 3, 0.15);
                }
            }
            world
        },
        flows: &[Flow { group: GROUPS[0], from: 0, to: &[2, 8] }],
        len: 500,
        gap: Duration::from_millis(100),
        change: |_, _| (),
    };
    let (auto, fixed) = shares(&case);
    assert!(auto >= best(fixed) - BEHIND, "{auto} {fixed:?}");
    assert!(fixed[2] > fixed[0] + 0.1, "{fixed:?}");
}

#[test]
fn two_flows_that_fill_their_links_are_not_flooded() {
    let case = Case {
        world: |seed| {
            let mut world = star(seed);
            // A second sender beside the first, and a way round.
            world.link(4, 5, 0.002);
            world.link_rate = Some(Rate::from_mbit(2));
            world
        },
        flows: &[Flow { group: GROUPS[0], from: 0, to: &[4] }, Flow { group: GROUPS[1], from: 2, to: &[5] }],
        len: 1240,
        // 1.98 Mbit/s of each flow, without the headers.
        gap: Duration::from_millis(5),
        change: |_, _| (),
    };
    let (auto, fixed) = shares(&case);
    assert!(auto >= best(fixed) - BEHIND, "{auto} {fixed:?}");
    assert!(fixed[0] > fixed[2] + 0.1, "{fixed:?}");
}

#[test]
fn copies_that_would_fill_a_link_are_flooded_instead() {
    let case = Case {
        world: |seed| {
            let mut world = World::unlinked(5, seed);
            world.link(0, 1, 0.002);
            (2..5).for_each(|node| world.link(1, node, 0.002));
            world.link_rate = Some(Rate::from_mbit(2));
            world
        },
        flows: &[Flow { group: GROUPS[0], from: 0, to: &[2, 3, 4] }],
        // Too long for a packet.
        len: 1300,
        gap: Duration::from_millis(7),
        change: |_, _| (),
    };
    let (auto, fixed) = shares(&case);
    assert!(auto >= best(fixed) - BEHIND, "{auto} {fixed:?}");
    assert!(fixed[2] > fixed[1] + 0.3, "{fixed:?}");
}

#[test]
fn without_loss_a_frame_takes_one_packet_for_receivers_with_a_common_next_hop_and_copies_for_others() {
    let case = Case {
        world: |seed| {
            let mut world = star(seed);
            world.link(1, 5, 0.0);
            world.cut(2, 5);
            world
        },
        flows: &[Flow { group: GROUPS[0], from: 0, to: &[4, 5, 6] }],
        len: 1000,
        gap: Duration::from_millis(100),
        change: |_, _| (),
    };
    let (share, world) = share(&case, AUTO, 1);
    assert!(share > 0.98, "{share}");
    let [packets, copies, flooded] =
        ["multicast_packets_sent", "multicast_copies_sent", "multicast_as_broadcast"]
            .map(|name| world.counter(0, name));
    assert!(packets > 550 && copies > 550 && flooded < 50, "{packets} {copies} {flooded}");
}
