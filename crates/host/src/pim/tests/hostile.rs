//! Messages that nobody should send.

use std::net::{IpAddr, Ipv4Addr};

use hopcast_core::Buffer;

use super::net::{Net, after, group};
use crate::pim::Config;
use crate::pim::wire::{self, Assert, GroupEntry, Hello, JoinPrune, Message};

const SENDER: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 99));

fn packet(from: IpAddr, message: &Message) -> Buffer {
    let mut packet = Buffer::default();
    wire::prepend(&mut packet, from, message);
    packet
}

fn hello(generation: u32) -> Message {
    let addresses = Vec::new();
    Message::Hello(Hello {
        holdtime: 105,
        lan_delay: None,
        priority: Some(0),
        generation: Some(generation),
        addresses,
    })
}

/// A join of a channel of source `number` at a router.
fn join(router: u8, number: u16) -> Message {
    let source = Ipv4Addr::from(0x0a63_0000 + u32::from(number)).into();
    let entry = GroupEntry { group: group(false), joined: vec![source], pruned: Vec::new(), shared: 0 };
    let upstream = IpAddr::V4(Ipv4Addr::new(10, 1, 0, router + 1));
    Message::JoinPrune(JoinPrune { upstream, holdtime: 210, groups: vec![entry] })
}

/// A sender, routers 0 and 1, and hosts.
fn net(config: Config) -> Net {
    let mut net = Net::new(config, vec![vec![0], vec![0, 1], vec![1]], 0, false);
    net.run(after(20.0));
    net
}

#[test]
fn a_flood_of_joins_takes_nothing_from_those_that_are_there() {
    let mut net = net(Config { max_routes: 20, ..Config::default() });
    net.set_members(2, true);
    net.run(after(1.0));
    net.arrive(0, 1, packet(SENDER, &hello(1)));
    for number in 0..100 {
        net.arrive(0, 1, packet(SENDER, &join(0, number)));
    }
    assert_eq!(net.counter(0, "pim_refused_routes"), 100 - 19);
    assert_eq!(net.send(), [0, 1, 1]);
    // What was refused has left nothing, and what was taken expires.
    net.run(after(300.0));
    for number in 200..220 {
        net.arrive(0, 1, packet(SENDER, &hello(1)));
        net.arrive(0, 1, packet(SENDER, &join(0, number)));
    }
    assert_eq!(net.counter(0, "pim_refused_routes"), 100 - 19 + 1);
    assert_eq!(net.send(), [0, 1, 1]);
}

#[test]
fn members_that_found_no_room_are_served_when_there_is_some_unless_they_have_left() {
    for stays in [true, false] {
        let mut net = net(Config { max_routes: 20, ..Config::default() });
        net.arrive(1, 0, packet(SENDER, &hello(1)));
        for number in 0..20 {
            net.arrive(1, 0, packet(SENDER, &join(1, number)));
        }
        net.set_members(2, true);
        net.run(after(1.0));
        assert_eq!((net.send(), net.counter(1, "pim_refused_routes")), (vec![0, 0, 0], 1));
        net.set_members(2, stays);
        // The joins expire.
        net.run(after(210.0));
        assert_eq!(net.send(), if stays { [0, 1, 1] } else { [0, 0, 0] });
        net.set_members(2, false);
        net.run(after(1.0));
        assert_eq!(net.send(), [0, 0, 0]);
    }
}

#[test]
fn who_has_not_said_hello_is_not_heard() {
    let mut net = net(Config::default());
    let (group, source) = (group(false), super::net::host(0, false));
    let entry = GroupEntry { group, joined: vec![source], pruned: Vec::new(), shared: 0 };
    let upstream = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 1));
    let list = Message::JoinPrune(JoinPrune { upstream, holdtime: 210, groups: vec![entry] });
    net.arrive(0, 1, packet(SENDER, &list));
    assert_eq!((net.counter(0, "pim_refused_stranger"), net.send()), (1, vec![0, 0, 0]));
    net.arrive(0, 1, packet(SENDER, &hello(1)));
    net.arrive(0, 1, packet(SENDER, &list));
    assert_eq!((net.counter(0, "pim_refused_stranger"), net.send()), (1, vec![0, 1, 0]));
    // Goodbye.
    let bye = Hello { holdtime: 0, lan_delay: None, priority: None, generation: None, addresses: Vec::new() };
    net.arrive(0, 1, packet(SENDER, &Message::Hello(bye)));
    net.arrive(0, 1, packet(SENDER, &list));
    assert_eq!(net.counter(0, "pim_refused_stranger"), 2);
}

#[test]
fn a_flood_of_neighbours_drives_no_known_one_out_and_is_answered_once() {
    let mut net = net(Config { max_neighbours: 5, ..Config::default() });
    net.set_members(2, true);
    net.run(after(1.0));
    let hellos = net.counter(0, "pim_hellos");
    for number in 0..50 {
        let from = IpAddr::V4(Ipv4Addr::new(10, 1, 0, 100 + number));
        net.arrive(0, 1, packet(from, &hello(number.into())));
    }
    assert_eq!(net.counter(0, "pim_refused_neighbours"), 50 - 4);
    net.run(after(5.0));
    assert!(net.counter(0, "pim_hellos") <= hellos + 2);
    assert_eq!(net.send(), [0, 1, 1]);
}

#[test]
fn an_assert_about_nothing_leaves_nothing() {
    let mut net = net(Config::default());
    net.arrive(0, 1, packet(SENDER, &hello(1)));
    for source in 0..100 {
        let source = IpAddr::V4(Ipv4Addr::new(10, 0, 1, source + 1));
        let assert = Assert { group: group(false), source, shared_tree: false, preference: 0, metric: 0 };
        net.arrive(0, 1, packet(SENDER, &Message::Assert(assert)));
    }
    assert_eq!(net.counter(0, "pim_asserts_heard"), 100);
    assert_eq!((net.counter(0, "pim_asserts"), net.counter(0, "pim_refused_routes")), (0, 0));
}
