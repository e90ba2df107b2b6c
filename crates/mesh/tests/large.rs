//! A mesh of 200 nodes, to see what its routing costs:
//! `cargo test --release -p hopcast-mesh --test large -- --ignored --nocapture`.

mod common;

use common::World;

#[test]
#[ignore = "takes minutes, and measures nothing by itself"]
fn two_hundred_nodes_of_degree_eight_know_each_other_after_ten_minutes() {
    let seconds = std::env::var("SECONDS").map_or(600, |given| given.parse().unwrap());
    // A torus of 20 x 10 whose nodes hear those beside and diagonally.
    let (width, height) = (20, 10);
    let mut world = World::new(width * height, 1);
    for node in 0..width * height {
        let (x, y) = (node % width, node / width);
        for (dx, dy) in [(1, 0), (0, 1), (1, 1), (width - 1, 1)] {
            world.link(node, (x + dx) % width + (y + dy) % height * width, 0.0);
        }
    }
    world.run(seconds);
    let routes = (0..width * height).filter(|&to| world.next_hop(0, to).is_some()).count();
    let received: u64 = (0..width * height).map(|node| world.counter(node, "ogms_received")).sum();
    println!("{received} messages received, {} frames sent, routes to {routes} nodes", world.sent);
    assert_eq!(routes, width * height - 1);
}
