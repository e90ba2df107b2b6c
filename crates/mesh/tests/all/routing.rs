//! Routes of B.A.T.M.A.N. IV in chains and in a grid: which they are, and how soon they change.

use crate::common::checks::{forgets_what_is_gone, grid_carries, row_carries, time_to_leave_a_cut_link};
use crate::common::{World, frame, host, radio};
use hopcast_core::Buffer;
use hopcast_mesh::wire::icmp::{self, Icmp};
use hopcast_mesh::wire::ogm::{self, DIRECT_LINK, NOT_BEST_NEXT_HOP};
use hopcast_mesh::wire::{ETHER_TYPE, Header as _, TTL};
use hopcast_wire::ethernet::{self, BROADCAST, Header};

#[test]
fn chains_have_routes_and_tables_to_all_and_carry_frames() {
    for (nodes, seconds) in [(3, 10), (5, 15), (20, 45)] {
        let mut world = World::wires(nodes, 1);
        row_carries(&mut world, nodes, seconds);
    }
}

#[test]
fn qualities_fall_by_the_hop_penalty_and_the_shared_radios() {
    // Of a link without loss, 64 of 64 own messages have come back, or 63 where the last one's echo is on its way.
    let link = |tq: u32, own: u32| tq * own / 255;
    // A forwarder takes 30 of 255 for the radio by which it comes and goes, and as much as a hop.
    let hop = |tq: u32, own: u32, wireless| {
        let here = if wireless { tq * own * 255 * 225 / 255_u32.pow(3) } else { link(tq, own) };
        here * 225 / 255
    };
    for wireless in [false, true] {
        let mut world = if wireless { World::chain(4, 0.0, 2) } else { World::wires(4, 2) };
        world.run(90);
        let path = |hops, own| link((1..hops).fold(255, |tq, _| hop(tq, own, wireless)), own);
        for to in 1..4 {
            let found = world.metric(0, to).unwrap();
            assert!(
                (path(to, 251)..=path(to, 255)).contains(&found),
                "{found} over {to} hops, radio {wireless}"
            );
        }
    }
}

#[test]
fn paths_that_are_worth_nothing_are_no_routes() {
    // By radios, 255 is 0 after 19 hops of 225 * 225 / 255^2, whose parts are cut off each time.
    let mut world = World::chain(20, 0.0, 2);
    world.run(90);
    assert!(world.next_hop(0, 10).is_some() && world.next_hop(0, 19).is_none());
}

#[test]
fn the_better_of_two_paths_is_taken() {
    // 0 - 1 - 3, where the first link loses much, and 0 - 2 - 3, which does not.
    let mut world = World::new(4, 3);
    for (a, b, loss) in [(0, 1, 0.5), (1, 3, 0.0), (0, 2, 0.02), (2, 3, 0.02)] {
        world.link(a, b, loss);
    }
    world.run(120);
    assert_eq!((world.route(0, 3), world.route(3, 0)), (vec![2, 3], vec![2, 0]));
    let (good, bad) = (world.metric(0, 2).unwrap(), world.metric(0, 1).unwrap());
    assert!(good > 230 && bad < good, "{good} and {bad}");
}

#[test]
fn a_grid_with_loss_settles_and_floods_reach_all() {
    let mut world = World::grid(5, 0.1, 4);
    world.run(120);
    grid_carries(world);
}

#[test]
fn a_link_that_is_cut_is_left_within_the_window_of_averages() {
    // A ring of four: 0 - 1 - 3 and 0 - 2 - 3.
    let mut world = World::new(4, 5);
    for (a, b) in [(0, 1), (1, 3), (0, 2), (2, 3)] {
        world.link(a, b, 0.0);
    }
    world.run(90);
    // Each message of 3 that comes by the other alone counts 0 for the path that was cut: at the latest with the fifth
    // its average is 0. The first comes within an interval, and each may wait 110 ms at a forwarder.
    time_to_leave_a_cut_link(&mut world);
}

#[test]
fn a_node_that_restarts_is_found_again_and_its_old_table_is_forgotten() {
    let mut world = World::chain(3, 0.0, 6);
    world.run(60);
    world.send(2, &frame(BROADCAST, [2, 7, 7, 7, 7, 7], b"a client"));
    world.run(5);
    let client = |world: &World| {
        world.nodes[0].global_clients().iter().any(|(key, _)| key.address == [2, 7, 7, 7, 7, 7])
    };
    assert!(client(&world));
    world.restart(2);
    world.run(60);
    assert!(!client(&world) && world.agrees());
    assert!(world.pings(0, 2));
    assert!(world.pings(2, 0));
    assert_eq!(world.next_hop(0, 2), Some(1));
}

#[test]
fn what_is_gone_is_forgotten_after_its_time() {
    let mut world = World::chain(3, 0.0, 7);
    world.run(30);
    forgets_what_is_gone(&mut world);
}

#[test]
fn a_neighbour_by_whom_no_path_leads_still_gets_its_messages_back() {
    // 0 - 2 loses much, so that node 0 reaches 2 by 1.
    let mut world = World::new(3, 8);
    for (a, b, loss) in [(0, 1, 0.0), (1, 2, 0.0), (0, 2, 0.6)] {
        world.link(a, b, loss);
    }
    world.run(90);
    assert_eq!(world.route(0, 2), [1, 2]);
    world.max_captured = 10_000;
    world.run(20);
    let by_0 = world.captured.iter().filter(|frame| frame[6..12] == radio(0) && frame[14] == 0);
    let messages = by_0.flat_map(|frame| ogm::messages(&frame[14..]).unwrap()).map(|(ogm, _)| ogm);
    let of_2: Vec<u8> = messages.filter(|ogm| ogm.originator == radio(2)).map(|ogm| ogm.flags).collect();
    assert!(of_2.contains(&(DIRECT_LINK | NOT_BEST_NEXT_HOP)) && !of_2.contains(&DIRECT_LINK), "{of_2:?}");
}

#[test]
fn an_echo_that_records_its_way_comes_back_with_the_hops_of_both_directions() {
    let mut world = World::wires(4, 11);
    world.run(30);
    world.max_captured = 1000;
    let echo = |recorded: u8, len| {
        let mut packet = Buffer::copy_from(&vec![0; len]);
        let (destination, originator) = (radio(3), radio(0));
        let kind = icmp::ECHO_REQUEST;
        Icmp { ttl: TTL, kind, destination, originator, uid: 1, recorded, seqno: 2 }.prepend(&mut packet);
        let header = Header { destination: radio(1), source: radio(0), ether_type: ETHER_TYPE };
        ethernet::prepend(&mut packet, header);
        packet.to_vec()
    };
    let mut last = |recorded, len| {
        world.captured.clear();
        world.forge(1, &echo(recorded, len));
        let now = world.now;
        world.until(now + hopcast_core::Duration::from_millis(50));
        let echoes = world.captured.iter().filter(|frame| frame[14] == 0x43);
        echoes.map(|frame| frame[14..].to_vec()).next_back().unwrap_or_default()
    };
    let reply = last(0, 96);
    let (header, rest) = Icmp::parse(&reply).unwrap();
    assert_eq!((header.kind, header.recorded, rest.len()), (icmp::ECHO_REPLY, 5, 96));
    let hops: Vec<&[u8]> = rest.chunks(6).take(5).collect();
    assert_eq!(hops, [radio(1), radio(2), radio(3), radio(2), radio(1)]);
    assert!(rest[30..].iter().all(|&byte| byte == 0));
    // One that is too short for it records nothing, and one that is full goes no further.
    let reply = last(0, 95);
    let (header, rest) = Icmp::parse(&reply).unwrap();
    assert_eq!((header.kind, header.recorded, rest), (icmp::ECHO_REPLY, 0, &[0; 95][..]));
    assert!(last(16, 96).is_empty());
    // 11 are there, and five places left: the answer stops behind the second hop back.
    let reply = last(11, 96);
    assert_eq!((reply[2], reply[3], reply[17]), (TTL - 2, icmp::ECHO_REPLY, 16));
    assert_eq!(world.counter(1, "malformed"), 1);
}

#[test]
fn messages_that_are_forwarded_share_packets() {
    let mut world = World::grid(5, 0.0, 9);
    world.max_captured = 100_000;
    world.run(60);
    let (packets, messages) = (world.counter(12, "ogm_packets_sent"), world.counter(12, "ogms_sent"));
    assert!(packets * 2 < messages, "{packets} packets of {messages} messages");
    let longest = world.captured.iter().filter(|frame| frame[14] == 0).map(Vec::len).max().unwrap();
    assert!((400..=14 + 512).contains(&longest), "{longest} bytes");
}

#[test]
fn a_broadcast_is_sent_only_where_somebody_may_not_have_it() {
    let mut world = World::wires(3, 10);
    world.run(20);
    world.max_captured = 1000;
    for (from, by) in [(1, vec![1]), (0, vec![0, 1])] {
        world.captured.clear();
        world.send(from, &frame(BROADCAST, host(from), b"all"));
        let now = world.now;
        world.until(now + hopcast_core::Duration::from_millis(50));
        let broadcasts = world.captured.iter().filter(|frame| frame[14] == 1);
        let senders: Vec<usize> = broadcasts.map(|frame| usize::from(frame[11])).collect();
        assert_eq!(senders, by, "from {from}");
    }
    // A radio sends each three times.
    let mut world = World::chain(2, 0.0, 10);
    world.run(20);
    world.max_captured = 1000;
    world.send(0, &frame(BROADCAST, host(0), b"all"));
    let now = world.now;
    world.until(now + hopcast_core::Duration::from_millis(50));
    assert_eq!(world.captured.iter().filter(|frame| frame[14] == 1).count(), 3);
}
