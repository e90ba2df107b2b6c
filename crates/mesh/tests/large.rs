//! A mesh of hundreds of nodes, to see what its routing and its frames to groups cost:
//! `cargo test --release -p hopcast-mesh --test large -- --ignored --nocapture`.

#[path = "all/common/mod.rs"]
mod common;

use std::net::Ipv4Addr;

use common::World;
use common::groups::{data, join};
use hopcast_core::Duration;

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
/// Length of a frame with 1226 bytes in a datagram.
const FRAME: usize = 14 + 20 + 8 + 1226;
/// Interval of the datagrams of 1 Mbit/s.
const INTERVAL: Duration = Duration::from_micros(1226 * 8);

/// A number that the environment may set.
fn setting(name: &str, default: usize) -> usize {
    std::env::var(name).map_or(default, |given| given.parse().expect("a number"))
}

#[test]
#[ignore = "takes minutes, and measures nothing by itself"]
fn two_hundred_nodes_of_degree_eight_know_each_other_after_ten_minutes() {
    // A torus whose nodes hear those beside and diagonally. Up to 16 members get copies; to more, frames are flooded.
    // With `MEMBERS=0` there is no flow.
    let (width, height) = (setting("WIDTH", 20), setting("HEIGHT", 10));
    let (seconds, members) = (setting("SECONDS", 600), setting("MEMBERS", 10));
    let nodes = width * height;
    let mut world = World::new(nodes, 1);
    for node in 0..nodes {
        let (x, y) = (node % width, node / width);
        for (dx, dy) in [(1, 0), (0, 1), (1, 1), (width - 1, 1)] {
            world.link(node, (x + dx) % width + (y + dy) % height * width, 0.0);
        }
    }
    (1..=members).for_each(|member| join(&mut world, member * (nodes - 1) / members, GROUP));
    let frame = data(0, GROUP, FRAME);
    let mut delivered = 0;
    for second in 0..seconds {
        let end = world.now + Duration::from_secs(1);
        // The flow begins when the routes are there.
        while second >= 60 && members > 0 && world.now + INTERVAL < end {
            world.send(0, &frame);
            world.until(world.now + INTERVAL);
        }
        world.until(end);
        delivered += world.delivered.drain(..).filter(|(_, _, bytes)| *bytes == frame).count();
    }
    let routes = (0..nodes).filter(|&to| world.next_hop(0, to).is_some()).count();
    let received: u64 = (0..nodes).map(|node| world.counter(node, "ogms_received")).sum();
    println!("{received} messages received, {} frames sent, {delivered} delivered", world.sent);
    println!("routes to {routes} nodes");
    if seconds >= 120 {
        assert_eq!(routes, nodes - 1);
        assert!(members == 0 || delivered > 0);
    }
}
