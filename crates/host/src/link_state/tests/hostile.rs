//! Messages that nobody should send.

use std::net::IpAddr;

use hopcast_core::{Buffer, Duration};

use super::net::{End, Net, address, link, seconds};
use crate::link_state::Config;
use crate::link_state::wire::{
    self, Advertisement, Content, Hello, Key, Kind, Link, MAX_AGE, MAX_SEQUENCE, Message, Packet, Reach,
};
use crate::prefixes::Prefix;

const FORGER: u32 = 0x0a00_00c8;

fn packet(message: Message) -> Buffer {
    let mut buffer = Buffer::default();
    let from: IpAddr = "fe80::bad".parse().unwrap();
    wire::prepend(&mut buffer, from, &Packet { router: FORGER, area: 0, message });
    buffer
}

fn hello(heard: Vec<u32>, address: Option<IpAddr>) -> Message {
    Message::Hello(Hello { interval: 10_000, dead: 40_000, generation: 5, addresses: [address, None], heard })
}

fn identifier(router: usize) -> u32 {
    0x0a00_0001 + router as u32
}

fn chain(routers: usize) -> Vec<Vec<End>> {
    (1..routers).map(|router| link(&[router - 1, router])).collect()
}

/// A chain of routers that has its routes, the first of which hears the forger on its link.
fn net() -> Net {
    let mut net = Net::new(Config::default(), chain(4));
    net.run(seconds(30.0));
    net.arrive(0, 0, packet(hello(vec![identifier(0)], Some(address(200, false)))));
    net.run(seconds(1.0));
    net
}

fn update(net: &mut Net, all: Vec<Advertisement>) {
    net.arrive(0, 0, packet(Message::Update(all)));
}

fn key(originator: u32, kind: Kind, fragment: u16) -> Key {
    Key { originator, kind, fragment }
}

#[test]
fn a_router_that_lies_about_its_links_attracts_nobody() {
    let mut net = net();
    let wanted = Prefix::of(address(3, false));
    // It says that it is joined to all, at the lowest cost, and has what router 3 has.
    let links = (0..4).map(|one| Link { to: identifier(one), cost: 1 }).collect();
    let content = Content::Links { is_border: true, links };
    let lies = vec![
        Advertisement::new(key(FORGER, Kind::Links, 0), 1, 0, content),
        Advertisement::new(
            key(FORGER, Kind::Prefixes, 0),
            1,
            0,
            Content::Prefixes(vec![Reach { prefix: wanted, metric: 0 }]),
        ),
    ];
    // Nor does one that no link leads to.
    let nobody = Advertisement::new(
        key(77, Kind::Links, 0),
        1,
        0,
        Content::Links { is_border: false, links: vec![Link { to: identifier(3), cost: 1 }] },
    );
    update(&mut net, lies.into_iter().chain([nobody]).collect());
    net.run(seconds(10.0));
    for from in 1..3 {
        assert_eq!(net.cost(from, 3, false), Some(10 * (3 - from as u32)), "{from}");
    }
}

#[test]
fn an_own_advertisement_that_was_forged_is_made_anew() {
    for sequence in [5, 1000, MAX_SEQUENCE - 1, MAX_SEQUENCE] {
        let mut net = net();
        for (originator, kind) in [(2, Kind::Links), (2, Kind::Prefixes), (0, Kind::Links)] {
            let key = key(identifier(originator), kind, 0);
            update(&mut net, vec![Advertisement::new(key, sequence, 0, kind.nothing())]);
            // And one that says that it is over.
            update(&mut net, vec![Advertisement::new(key, sequence, MAX_AGE, kind.nothing())]);
        }
        // The forger acknowledges nothing, and is missed after the dead interval.
        net.run(seconds(60.0));
        assert_eq!(net.first_wrong(), None, "{sequence}");
        assert!(net.counter(2, "link_state_contested") > 0);
    }
}

#[test]
fn an_own_advertisement_that_never_was_is_taken_back() {
    let mut net = net();
    let fragment = key(identifier(2), Kind::Prefixes, 9);
    let reach = Reach { prefix: Prefix::of("10.9.9.9".parse().unwrap()), metric: 1 };
    update(&mut net, vec![Advertisement::new(fragment, 4, 0, Content::Prefixes(vec![reach]))]);
    net.run(seconds(10.0));
    for router in 0..4 {
        assert_eq!(net.route(router, "10.9.9.9".parse().unwrap()), None, "{router}");
    }
    net.run(seconds(30.0));
    assert_eq!(net.first_wrong(), None);
}

#[test]
fn a_flood_of_advertisements_takes_nothing_from_those_that_are_there() {
    let config = Config { max_advertisements: 30, ..Config::default() };
    let mut net = Net::new(config, chain(4));
    net.run(seconds(30.0));
    net.arrive(0, 0, packet(hello(vec![identifier(0)], None)));
    for number in 0..1000 {
        let key = key(0xc000_0000 + number, Kind::Links, 0);
        update(&mut net, vec![Advertisement::new(key, 1, 0, Kind::Links.nothing())]);
    }
    assert_eq!(net.counter(0, "link_state_refused_room"), 1000 - (30 - 8));
    net.run(seconds(120.0));
    assert_eq!(net.first_wrong(), None);
    net.set_up(1, false);
    net.run(seconds(20.0));
    assert_eq!(net.first_wrong(), None);
    net.set_up(1, true);
    net.run(seconds(20.0));
    assert_eq!(net.first_wrong(), None);
}

#[test]
fn a_flood_of_neighbours_drives_no_known_one_out_and_costs_few_answers() {
    let config = Config { max_neighbours: 5, ..Config::default() };
    let mut net = Net::new(config, chain(3));
    net.run(seconds(30.0));
    let sent = net.sent;
    for number in 0..100_u32 {
        let mut buffer = Buffer::default();
        let message = hello(vec![identifier(0)], None);
        let from: IpAddr = std::net::Ipv6Addr::from(0xfe80_u128 << 112 | u128::from(number) | 1 << 20).into();
        wire::prepend(&mut buffer, from, &Packet { router: 500 + number, area: 0, message });
        net.arrive(0, 0, buffer);
    }
    assert_eq!(net.counter(0, "link_state_refused_neighbours"), 100 - 4);
    assert!(net.sent - sent < 10, "{}", net.sent - sent);
    net.run(seconds(60.0));
    assert_eq!(net.first_wrong(), None);
}

#[test]
fn instances_that_come_too_soon_are_not_taken() {
    let mut net = net();
    for sequence in 1..=500 {
        let key = key(FORGER, Kind::Links, 0);
        update(&mut net, vec![Advertisement::new(key, sequence, 0, Kind::Links.nothing())]);
        net.run(Duration::from_millis(10));
    }
    // Five seconds.
    assert!(net.counter(0, "link_state_refused_too_soon") >= 494);
    assert!(net.counter(3, "link_state_installed") < 40);
}

#[test]
fn who_is_no_neighbour_that_both_hear_is_not_heard() {
    let mut net = Net::new(Config::default(), chain(3));
    net.run(seconds(30.0));
    let lie = || {
        let content = Content::Prefixes(Vec::new());
        vec![Advertisement::new(key(identifier(2), Kind::Prefixes, 0), 99, 0, content)]
    };
    update(&mut net, lie());
    // A Hello that does not name the router is not enough, nor one of other intervals.
    net.arrive(0, 0, packet(hello(Vec::new(), None)));
    update(&mut net, lie());
    let Message::Hello(other) = hello(vec![identifier(0)], None) else { panic!("a Hello") };
    net.arrive(0, 0, packet(Message::Hello(Hello { dead: 1, ..other })));
    update(&mut net, lie());
    assert_eq!(net.counter(0, "link_state_refused_stranger"), 3);
    assert_eq!(net.counter(0, "link_state_refused_timers"), 1);
    net.run(seconds(10.0));
    assert_eq!((net.first_wrong(), net.counter(2, "link_state_contested")), (None, 0));
}

#[test]
fn a_request_that_is_repeated_is_answered_no_more_than_once_a_second() {
    let mut net = net();
    let sent = net.counter(0, "link_state_updates");
    for _ in 0..1000 {
        let keys = (0..4).map(|one| key(identifier(one), Kind::Links, 0)).collect();
        net.arrive(0, 0, packet(Message::Request(keys)));
        net.run(Duration::from_millis(1));
    }
    assert!(
        net.counter(0, "link_state_updates") - sent <= 3,
        "{}",
        net.counter(0, "link_state_updates") - sent
    );
}
