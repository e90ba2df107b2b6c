//! B.A.T.M.A.N. V in virtual time: neighbours and their throughput, routes and how soon they change, and that whatever
//! a mesh carries is carried.

use crate::common::checks::{
    CLIENT, announcers, follows_a_client, forgets_what_is_gone, grid_carries, row_carries,
    time_to_leave_a_cut_link,
};
use crate::common::{World, frame, host, radio, station, tagged};
use hopcast_core::{Buffer, Duration, Rate};
use hopcast_mesh::wire::batman_v::messages;
use hopcast_mesh::wire::icmp::{ECHO_REQUEST, Icmp};
use hopcast_mesh::wire::{ETHER_TYPE, Header as _, TTL};
use hopcast_wire::ethernet::{self, BROADCAST, Header, Mac};

const ELP: u8 = 3;
const OGM2: u8 = 4;

const fn wire(megabits: u64) -> (bool, Option<Rate>) {
    (false, Some(Rate::from_mbit(megabits)))
}

const fn radio_of(megabits: u64) -> (bool, Option<Rate>) {
    (true, Some(Rate::from_mbit(megabits)))
}

/// Throughput of a path over this many links, each of that throughput.
fn path(hops: usize, link: u32, radio: bool) -> u32 {
    (1..hops).fold(link, |path, _| if radio && path > 10 { path / 2 } else { path * 225 / 255 })
}

/// The frames of a type that were captured, with their sender.
fn of_type(world: &World, kind: u8) -> Vec<&[u8]> {
    world.captured.iter().map(|frame| &frame[..]).filter(|frame| frame[14] == kind).collect()
}

#[test]
fn chains_have_routes_and_tables_to_all_and_carry_frames() {
    for (nodes, seconds) in [(2, 3), (3, 5), (5, 8), (20, 30)] {
        let mut world = World::batman_v(nodes, &[wire(1000)], 1).in_row(0.0);
        row_carries(&mut world, nodes, seconds);
        for to in 1..nodes {
            assert_eq!(world.metric(0, to), Some(path(to, 10_000, false)), "to {to}");
        }
    }
}

#[test]
fn a_radio_that_sends_on_what_it_receives_has_half() {
    let mut world = World::batman_v(12, &[radio_of(60)], 2).in_row(0.0);
    world.run(30);
    for to in 1..12 {
        // 600, 300, 150, 75, 37, 18, 9, and from there on a share of 225 / 255: 7, 6, 5, 4.
        assert_eq!(world.metric(0, to), Some(path(to, 600, true)), "to {to}");
    }
    assert_eq!(world.metric(0, 11), Some(4));
}

#[test]
fn paths_that_are_worth_nothing_are_no_routes() {
    // Nothing is known of the links: 10, 8, 7, 6, 5, 4, 3, 2, 1, 0.
    let mut world = World::batman_v(12, &[(false, None)], 3).in_row(0.0);
    world.run(30);
    assert_eq!((world.metric(0, 9), world.next_hop(0, 10)), (Some(1), None));
}

#[test]
fn two_fast_links_are_chosen_over_a_slow_one_until_one_is_cut() {
    // All hear each other by the first channel.
    let mut world = World::batman_v(3, &[wire(1), wire(100)], 4);
    [(0, 1), (1, 2), (0, 2)].into_iter().for_each(|(a, b)| world.join((a, 0), (b, 0), 0.0));
    [(0, 1), (1, 2)].into_iter().for_each(|(a, b)| world.join((a, 1), (b, 1), 0.0));
    world.run(10);
    assert_eq!((world.route(0, 2), world.route(2, 0)), (vec![1, 2], vec![1, 0]));
    assert_eq!((world.metric(0, 1), world.metric(0, 2)), (Some(1000), Some(path(2, 1000, false))));
    assert!(world.agrees());
    let to_2 = world.nodes[0].originators().into_iter().find(|status| status.originator == radio(2)).unwrap();
    assert_eq!((to_2.interface, to_2.next_hop), (1, station((1, 1))));
    assert!(to_2.alternatives.contains(&(radio(2), 10)));
    assert_eq!(
        [world.nodes[0].throughput(0, radio(2)), world.nodes[0].throughput(1, station((1, 1)))],
        [Some(10), Some(1000)]
    );
    world.max_captured = 1000;
    assert!(world.pings(0, 2));
    let unicast = of_type(&world, 0x40);
    let hops: Vec<(&[u8], &[u8])> = unicast.iter().map(|frame| (&frame[6..12], &frame[..6])).collect();
    let by = |a, b| (station((a, 1)), station((b, 1)));
    let expected = [by(0, 1), by(1, 2)];
    assert_eq!(hops, expected.iter().map(|(from, to)| (&from[..], &to[..])).collect::<Vec<_>>());
    world.part((1, 1), (2, 1));
    // Five numbers later the fast path is over; each may wait 110 ms at a forwarder.
    world.until(world.now + Duration::from_millis(6_500));
    assert_eq!((world.route(0, 2), world.metric(0, 2)), (vec![2], Some(10)));
    assert!(world.pings(0, 2) && world.pings(2, 0));
}

#[test]
fn a_grid_with_loss_settles_and_floods_reach_all() {
    let mut world = World::batman_v(25, &[radio_of(54)], 5).in_square(5, 0.1);
    world.run(60);
    grid_carries(world);
}

#[test]
fn routes_have_no_loops_at_any_time_while_a_grid_loses_a_node() {
    let mut world = World::batman_v(16, &[wire(100)], 6).in_square(4, 0.02);
    world.run(20);
    let neighbours = [1, 4, 6, 9];
    neighbours.into_iter().for_each(|other| world.cut(5, other));
    let mut looping = 0;
    for _ in 0..200 {
        world.until(world.now + Duration::from_millis(100));
        for (from, to) in
            (0..16).flat_map(|a| (0..16).map(move |b| (a, b))).filter(|&(a, b)| a != b && b != 5)
        {
            let route = world.route(from, to);
            let (last, before) = route.split_last().unwrap_or((&to, &[]));
            looping += usize::from(*last == from || before.contains(last));
        }
    }
    assert_eq!(looping, 0);
    for (from, to) in [(1, 9), (4, 6), (0, 15)] {
        let route = world.route(from, to);
        assert!(!route.contains(&5), "{route:?}");
        // Wires do not send again what is lost.
        assert!((0..3).any(|_| world.pings(from, to)), "{route:?}");
    }
}

#[test]
fn a_link_that_is_cut_is_left_when_the_other_path_is_five_numbers_ahead() {
    // A ring of four: 0 - 1 - 3 and 0 - 2 - 3.
    let mut world = World::batman_v(4, &[wire(100)], 7);
    [(0, 1), (1, 3), (0, 2), (2, 3)].into_iter().for_each(|(a, b)| world.link(a, b, 0.0));
    world.run(20);
    let taken = time_to_leave_a_cut_link(&mut world);
    assert!(taken >= Duration::from_millis(3_500), "not before five numbers: {taken}");
}

#[test]
fn a_node_that_restarts_is_found_again_and_its_old_table_is_forgotten() {
    let mut world = World::batman_v(3, &[wire(100)], 8).in_row(0.0);
    world.run(60);
    world.send(2, &frame(BROADCAST, CLIENT, b"a client"));
    world.run(5);
    assert_eq!(announcers(&world, 0, 0), [radio(2)]);
    for restarted in [2, 1] {
        world.restart(restarted);
        world.run(60);
        assert!(announcers(&world, 0, 0).is_empty() && world.agrees());
        assert!(world.pings(0, 2) && world.pings(2, 0));
        assert_eq!(world.next_hop(0, 2), Some(1));
    }
}

#[test]
fn what_is_gone_is_forgotten_after_its_time() {
    let mut world = World::batman_v(3, &[wire(100)], 9).in_row(0.0);
    world.run(30);
    forgets_what_is_gone(&mut world);
}

#[test]
fn a_path_between_two_probes_is_worth_as_much_as_its_slowest_link() {
    // 0 - 1 by the fast channel, 1 - 2 by the slow one.
    let mut world = World::batman_v(3, &[wire(10), wire(100)], 10);
    world.join((0, 1), (1, 1), 0.0);
    world.join((1, 0), (2, 0), 0.0);
    world.run(10);
    let slowest = 100 * 225 / 255;
    assert_eq!([world.metric(0, 2), world.metric(2, 0)], [Some(slowest), Some(100)]);
    assert_eq!((world.metric(0, 1), world.metric(2, 1)), (Some(1000), Some(100)));
}

#[test]
fn idle_neighbours_on_a_radio_are_probed_alone_and_tell_their_rate() {
    let probes = |world: &World, from: usize| {
        let all = of_type(world, ELP);
        let mine = all.iter().filter(|frame| frame[6..12] == radio(from));
        let (to_all, to_one): (Vec<&&[u8]>, Vec<&&[u8]>) = mine.partition(|frame| frame[..6] == BROADCAST);
        assert!(
            to_all.iter().all(|frame| frame.len() == 34) && to_one.iter().all(|frame| frame.len() == 214)
        );
        (to_all.len(), to_one.len())
    };
    let mut world = World::batman_v(3, &[(true, None)], 11).in_row(0.0);
    world.rate = Some(Rate::from_mbit(54));
    world.run(5);
    world.max_captured = 100_000;
    world.run(100);
    let (to_all, to_one) = probes(&world, 1);
    assert!((192..=209).contains(&to_all), "{to_all} probes in 100 s");
    assert_eq!(to_one, 2 * 2 * to_all, "two to each of two neighbours");
    // Two may be on their way.
    let missing = (world.counter(1, "elp_probes_sent") / 2).abs_diff(world.counter(0, "elp_probes_received"));
    assert!(missing <= 2, "{missing} probes");
    assert_eq!(world.nodes[0].throughput(0, radio(1)), Some(179), "180, cut off");
    let half = world.metric(0, 2);
    assert!(world.metric(0, 1) == Some(179) && (half == Some(89) || half == Some(90)), "{half:?}");
    // Not if something is sent to it every 50 ms anyway.
    world.captured.clear();
    for _ in 0..400 {
        world.send(0, &frame(host(1), host(0), b"busy"));
        world.until(world.now + Duration::from_millis(50));
    }
    let (to_all, to_one) = probes(&world, 0);
    assert!((38..=42).contains(&to_all) && to_one == 0, "{to_all} and {to_one}");
    // Nor on a wire.
    let mut world = World::batman_v(2, &[wire(10)], 11).in_row(0.0);
    world.max_captured = 1000;
    world.run(20);
    assert_eq!(probes(&world, 0).1, 0);
}

#[test]
fn messages_share_packets_and_leave_only_where_somebody_needs_them() {
    let mut world = World::batman_v(9, &[wire(100)], 12).in_square(3, 0.0);
    world.run(10);
    let (packets, messages_before) = (world.counter(4, "ogm_packets_sent"), world.counter(4, "ogms_sent"));
    world.run(50);
    let packets = world.counter(4, "ogm_packets_sent") - packets;
    let sent = world.counter(4, "ogms_sent") - messages_before;
    // Each number of each node once, its own included: 50 of each of nine.
    assert!((9 * 48..=9 * 52).contains(&sent), "{sent}");
    assert!(packets <= 50 * 1000 / 90, "{packets} packets");
    // At the ends of a row the only neighbour has every message already.
    let mut world = World::batman_v(3, &[wire(100)], 12).in_row(0.0);
    world.max_captured = 10_000;
    world.run(20);
    for (node, expected) in [(0, vec![radio(0)]), (1, vec![radio(0), radio(1), radio(2)])] {
        let frames = of_type(&world, OGM2).into_iter().filter(|frame| frame[6..12] == radio(node));
        let mut originators: Vec<Mac> =
            frames.flat_map(|frame| messages(&frame[14..]).unwrap()).map(|(ogm, _)| ogm.originator).collect();
        originators.sort_unstable();
        originators.dedup();
        assert_eq!(originators, expected);
    }
    // And a node without neighbours sends probes alone.
    let mut world = World::batman_v(1, &[wire(100)], 12);
    world.max_captured = 1000;
    world.run(20);
    assert!(of_type(&world, OGM2).is_empty() && of_type(&world, ELP).len() >= 38);
}

#[test]
fn clients_in_vlans_long_tables_and_long_frames_are_carried() {
    let mut world = World::batman_v(3, &[radio_of(54)], 13).in_row(0.02);
    world.run(20);
    world.send(2, &tagged(BROADCAST, CLIENT, 7, b"here"));
    world.run(5);
    assert_eq!(announcers(&world, 0, 0x8007), [radio(2)]);
    assert_eq!(world.nodes[0].table_of(radio(2), 0x8007), world.nodes[2].table(0x8007));
    let inside = tagged(CLIENT, host(0), 7, b"inside");
    world.send(0, &inside);
    world.run(1);
    assert!(world.delivered.iter().any(|(_, node, bytes)| *node == 2 && *bytes == inside));
    for client in 0..400_u16 {
        let [high, low] = client.to_be_bytes();
        world.send(2, &frame(BROADCAST, [2, 0x66, 0, 0, high, low], b"here"));
    }
    world.run(30);
    assert_eq!(world.nodes[0].table_of(radio(2), 0), world.nodes[2].table(0));
    assert!(world.counter(0, "tt_requests_sent") >= 1 && world.counter(2, "fragments_sent") >= 4);
    let long = frame(host(2), host(0), &[7; 1500]);
    let before = world.counter(0, "fragments_sent");
    world.send(0, &long);
    world.run(1);
    assert!(world.delivered.iter().any(|(_, node, bytes)| *node == 2 && *bytes == long));
    assert_eq!(world.counter(0, "fragments_sent") - before, 2);
}

#[test]
fn a_client_that_goes_to_another_node_is_reached_there_at_once() {
    let mut world = World::batman_v(4, &[wire(100)], 14).in_row(0.0);
    world.run(20);
    follows_a_client(world);
}

#[test]
fn echoes_of_the_mesh_are_answered_over_two_hops() {
    let mut world = World::batman_v(3, &[wire(100)], 15).in_row(0.0);
    world.run(10);
    let (destination, originator) = (radio(2), radio(0));
    let mut packet = Buffer::copy_from(&[]);
    Icmp { ttl: TTL, kind: ECHO_REQUEST, destination, originator, uid: 3, recorded: 0, seqno: 9 }
        .prepend(&mut packet);
    let header = Header { destination: radio(1), source: radio(0), ether_type: ETHER_TYPE };
    ethernet::prepend(&mut packet, header);
    world.forge(1, &packet);
    world.run(1);
    assert_eq!((world.counter(2, "echoes_answered"), world.counter(0, "echo_replies")), (1, 1));
}

#[test]
fn nodes_of_two_algorithms_hear_nothing_of_each_other() {
    let mut world = World::batman_v(2, &[wire(100)], 16).in_row(0.0);
    world.nodes[1] = World::wires(2, 16).nodes.remove(1);
    world.run(20);
    assert!(world.nodes.iter().all(|node| node.originators().is_empty() && node.neighbours(0).is_empty()));
    let (probes, messages) = (world.counter(1, "of_other_routing"), world.counter(0, "of_other_routing"));
    assert!((38..=42).contains(&probes) && (18..=21).contains(&messages), "{probes} and {messages}");
}

#[test]
fn the_same_seed_gives_the_same_frames() {
    let frames = |seed| {
        let mut world = World::batman_v(9, &[radio_of(54), wire(10)], seed).in_square(3, 0.1);
        world.join((0, 1), (8, 1), 0.0);
        world.max_captured = 100_000;
        world.run(20);
        world.captured
    };
    assert!(frames(1) == frames(1) && frames(1) != frames(2));
}
