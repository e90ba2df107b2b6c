//! What holds for a mesh by whichever algorithm it routes, each checked in a world that the test has made.

use hopcast_core::Duration;
use hopcast_mesh::Key;
use hopcast_wire::ethernet::{BROADCAST, Mac};
use proptest::prelude::*;

use super::{World, at, frame, host, radio, station};

/// A client that is no host of a node.
pub(crate) const CLIENT: Mac = [2, 0x55, 0, 0, 0, 1];

/// The nodes that announce [`CLIENT`] in a VLAN, as node `at` has it.
pub(crate) fn announcers(world: &World, at: usize, vlan: u16) -> Vec<Mac> {
    let clients = world.nodes[at].global_clients();
    clients
        .into_iter()
        .filter(|(key, _)| *key == Key { vlan, address: CLIENT })
        .map(|(_, node)| node)
        .collect()
}

/// The nodes at which a frame came out, in the order of time.
fn receivers(world: &World, sent: &[u8]) -> Vec<usize> {
    world.delivered.iter().filter(|(.., bytes)| *bytes == sent).map(|found| found.1).collect()
}

/// Routes and pings of nodes in a row after `seconds`, and their tables after as many more.
pub(crate) fn row_carries(world: &mut World, nodes: usize, seconds: u64) {
    world.run(seconds);
    let last = nodes - 1;
    assert_eq!(world.route(0, last), (1..nodes).collect::<Vec<_>>());
    assert_eq!(world.route(last, 0), (0..last).rev().collect::<Vec<_>>());
    assert!(world.pings(0, last) && world.pings(last, 0));
    world.run(seconds);
    assert!(world.agrees(), "{nodes} nodes");
}

/// Routes and floods of a settled grid of five by five.
pub(crate) fn grid_carries(mut world: World) {
    assert!(world.agrees());
    for (from, to) in [(0, 24), (24, 0), (4, 20), (12, 3)] {
        let route = world.route(from, to);
        assert_eq!(route.last(), Some(&to), "{route:?}");
        assert!(world.pings(from, to), "from {from} to {to} by {route:?}");
    }
    world.delivered.clear();
    let all = frame(BROADCAST, host(7), b"to all");
    world.send(7, &all);
    world.run(2);
    let mut heard = receivers(&world, &all);
    heard.sort_unstable();
    assert_eq!(heard, (0..25).filter(|&node| node != 7).collect::<Vec<_>>(), "each once");
}

/// A settled ring of four, 0 - 1 - 3 and 0 - 2 - 3, of whose route from 0 to 3 the second link is cut. Gives the time
/// until there is another one.
pub(crate) fn time_to_leave_a_cut_link(world: &mut World) -> Duration {
    let by = world.next_hop(0, 3).unwrap();
    let other = 3 - by;
    assert!(world.pings(0, 3));
    world.cut(by, 3);
    let cut = world.now;
    while world.next_hop(0, 3) != Some(other) {
        world.until(world.now + Duration::from_millis(100));
        assert!(world.now < cut + Duration::from_millis(6_500), "no new route");
    }
    let taken = world.now.since(cut);
    assert!(world.pings(0, 3));
    assert_eq!(world.route(0, 3), [other, 3]);
    taken
}

/// A row of three after 30 seconds, whose last node goes.
pub(crate) fn forgets_what_is_gone(world: &mut World) {
    world.cut(1, 2);
    world.run(190);
    assert!(world.next_hop(0, 2).is_some(), "a route is kept for 200 seconds");
    world.run(20);
    assert_eq!(world.next_hop(0, 2), None);
    assert!(world.nodes[0].global_clients().iter().all(|(_, node)| *node != radio(2)));
    assert!(!world.nodes[1].neighbours(0).contains(&radio(2)));
    assert_eq!(world.counter(0, "originators"), 2);
    world.run(200);
    assert_eq!(world.counter(0, "originators"), 1);
    assert_eq!(world.now, at(440_000));
}

/// A settled row of four, whose client goes from node 3 to 2.
pub(crate) fn follows_a_client(mut world: World) {
    world.send(3, &frame(BROADCAST, CLIENT, b"here"));
    world.run(5);
    assert_eq!(announcers(&world, 0, 0), [radio(3)]);
    // It sends at node 2 to one client, whom nobody else hears.
    world.send(2, &frame(host(1), CLIENT, b"moved"));
    world.until(world.now + Duration::from_millis(20));
    assert_eq!(world.counter(3, "tt_roamings_received"), 1);
    // Node 0 does not know yet, and sends to 3, which sends it on.
    assert_eq!(announcers(&world, 0, 0), [radio(3)]);
    let late = frame(CLIENT, host(0), b"on the way");
    world.send(0, &late);
    world.until(world.now + Duration::from_millis(50));
    assert_eq!(receivers(&world, &late), [2]);
    world.run(8);
    for node in [0, 1, 3] {
        assert_eq!(announcers(&world, node, 0), [radio(2)], "as {node} has it");
    }
    assert!(world.agrees());
}

/// A settled row of six, whose last node takes the address of the first.
pub(crate) fn bears_two_nodes_with_one_address(mut world: World) {
    let before = world.sent;
    world.run(20);
    let usual = world.sent - before;
    world.impersonate(5, 0);
    world.run(60);
    let before = world.sent;
    world.run(20);
    assert!(world.sent - before < 2 * usual, "{} frames, of {usual}", world.sent - before);
    assert!(world.pings(1, 4) && world.pings(3, 2));
}

/// A row of three, in which node 0 has had messages of 2 with forged numbers just now.
pub(crate) fn recovers_from_forged_numbers(mut world: World) {
    assert!(world.pings(0, 2), "the route stays");
    assert!(world.counter(0, "ogms_of_restart_refused") >= 1);
    world.run(40);
    let refused = world.counter(0, "ogms_of_restart_refused");
    world.run(10);
    assert_eq!(world.counter(0, "ogms_of_restart_refused"), refused, "its messages count again");
    assert!(world.pings(0, 2));
}

/// Changes to a frame that was captured: its number, bytes that are set, and its length.
pub(crate) type Damage = (usize, Vec<(usize, u8)>, usize);

/// Any damage behind the Ethernet header.
pub(crate) fn damage() -> impl Strategy<Value = Damage> {
    (
        any::<usize>(),
        prop::collection::vec((14..90_usize, any::<u8>()), 0..6),
        prop_oneof![3 => Just(2000), 1 => 0..120_usize],
    )
}

/// Sends damaged frames of a settled row of three to its nodes. Gives the number of frames that these have sent
/// meanwhile, and in five seconds more.
pub(crate) fn frames_caused_by(world: &mut World, frames: Vec<Damage>) -> u64 {
    for node in 0..3 {
        world.send(node, &frame(host((node + 1) % 3), host(node), &[0; 1500]));
        world.send(node, &frame(BROADCAST, [2, 9, 9, 9, 9, node as u8], b"client"));
    }
    world.run(3);
    let (captured, before) = (world.captured.clone(), world.sent);
    for (which, bytes, len) in frames {
        let mut damaged = captured[which % captured.len()].clone();
        for (place, byte) in bytes {
            if let Some(found) = damaged.get_mut(place) {
                *found = byte;
            }
        }
        damaged.truncate(len);
        // The station that it is for takes it, or the one in the middle.
        let stations = (0..3).flat_map(|node| [(node, 0), (node, 1)]);
        let mut its = stations.filter(|&to| damaged.get(..6) == Some(&station(to)[..]));
        world.forge_by(its.next().unwrap_or((1, 0)), &damaged);
        world.until(world.now + Duration::from_millis(1));
    }
    world.run(5);
    world.sent - before
}
