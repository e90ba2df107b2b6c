//! Pings, their round trips, and the assignment of answers to requests.

#![allow(clippy::unwrap_used)]

use crate::network::{A, B, Network, ROUTER, address, icmp_protocol};
use hopcast_core::{Buffer, Duration, Instant, Item, Machine, Message, Port};
use hopcast_host::{EchoResponder, Ping, PingConfig};
use hopcast_wire::ip;

#[test]
fn a_ping_goes_through_a_router_and_comes_back_in_both_versions() {
    for v6 in [false, true] {
        let mut network = Network::new(1500);
        network.hosts[A].bind_protocol(5, icmp_protocol(v6), None).unwrap();
        let mut ping = ping(1, v6);
        let mut answered = Vec::new();
        for id in 0..3 {
            let at = Instant::from_nanos(id * 1_000_000_000);
            network.hand(A, Port::Above(5), request(&mut ping, at, id));
            for (above, reply) in network.take(A) {
                assert_eq!(above, 5);
                ping.handle(at + Duration::from_millis(20 + id), Port::Below(0), reply);
            }
            while let Some((port, Item::Message(message))) = ping.poll(at) {
                assert_eq!((port, &*message.payload), (Port::Above(0), &payload(id)[..]));
                answered.push(message.id);
            }
        }
        assert_eq!(answered, [0, 1, 2]);
        let round_trips = ping.round_trips();
        assert_eq!(
            (round_trips.min, round_trips.max),
            (Duration::from_millis(20), Duration::from_millis(22))
        );
        assert_eq!(network.counter(ROUTER, "forwarded"), 6);
        assert_eq!(network.counter(B, "echoes_answered"), 3);
    }
}

#[test]
fn the_answers_of_two_pings_go_to_the_one_that_asked() {
    for v6 in [false, true] {
        let mut network = Network::new(1500);
        // The identifier 0 is one like the others.
        for (above, identifier) in [(5, 700), (6, 0)] {
            network.hosts[A].bind_protocol(above, icmp_protocol(v6), Some(identifier)).unwrap();
        }
        let mut pings = [ping(700, v6), ping(0, v6)];
        for (ping, above) in pings.iter_mut().zip([5, 6]) {
            network.hand(A, Port::Above(above), request(ping, Instant::ZERO, 0));
            let [(by, Item::Packet(_))] = &network.take(A)[..] else { panic!("one answer") };
            assert_eq!(*by, above);
        }
        // Of an identifier that nobody has, the answer goes to a binding of all of ICMP, or nowhere.
        network.hand(A, Port::Above(5), request(&mut ping(701, v6), Instant::ZERO, 0));
        assert!(network.take(A).is_empty());
        assert_eq!(network.counter(A, "icmp_ignored"), 1);
        network.hosts[A].bind_protocol(7, icmp_protocol(v6), None).unwrap();
        network.hand(A, Port::Above(5), request(&mut ping(701, v6), Instant::ZERO, 0));
        assert_eq!(network.take(A)[0].0, 7);
        let taken = network.hosts[A].bind_protocol(8, icmp_protocol(v6), Some(700)).unwrap_err();
        assert_eq!(taken.to_string(), "the echo identifier 700 is bound already, by Above(5)");
    }
}

#[test]
fn an_error_about_a_ping_goes_to_the_ping_that_it_is_about() {
    for v6 in [false, true] {
        let mut network = Network::new(600);
        for (above, identifier) in [(5, 1), (6, 2)] {
            network.hosts[A].bind_protocol(above, icmp_protocol(v6), Some(identifier)).unwrap();
        }
        let mut pings = [ping(1, v6), ping(2, v6)];
        let big = Message::new(0, Buffer::zeroed(1000));
        pings[1].handle(Instant::ZERO, Port::Above(0), Item::Message(big));
        let (_, big) = pings[1].poll(Instant::ZERO).unwrap();
        network.hand(A, Port::Above(6), big);
        let [(6, error)] = &network.take(A)[..] else { panic!("one error, to the second") };
        for (ping, expected) in pings.iter_mut().zip([("pings_ignored", 1), ("ping_errors", 1)]) {
            ping.handle(Instant::ZERO, Port::Below(0), error.clone());
            assert!(ping.poll(Instant::ZERO).is_none());
            assert_eq!(counter(ping, expected.0), expected.1);
        }
    }
}

#[test]
fn an_answer_counts_once_however_late_and_however_often_it_comes() {
    let mut network = Network::new(1500);
    network.hosts[A].bind_protocol(5, ip::ICMP, None).unwrap();
    let mut ping = ping(1, false);
    let mut answers = Vec::new();
    // More requests than there are sequence numbers.
    for id in 0..70_000 {
        network.hand(A, Port::Above(5), request(&mut ping, Instant::ZERO, id));
        let (_, answer) = network.take(A).pop().unwrap();
        answers.push(answer);
        network.frames.clear();
    }
    let mut take = |place: usize| {
        ping.handle(Instant::ZERO, Port::Below(0), answers[place].clone());
        ping.poll(Instant::ZERO).map(|(_, item)| {
            let Item::Message(message) = item else { panic!() };
            message.id
        })
    };
    assert_eq!(take(69_999), Some(69_999));
    assert_eq!(take(69_999), None);
    assert_eq!(take(70_000 - Ping::MAX_AWAITED), Some((70_000 - Ping::MAX_AWAITED) as u64));
    // Older ones are forgotten, and not taken for newer ones.
    assert_eq!(take(70_000 - Ping::MAX_AWAITED - 1), None);
    assert_eq!(counter(&ping, "pings_ignored"), 2);
}

#[test]
fn a_message_that_no_packet_holds_is_not_sent() {
    let mut ping = ping(1, false);
    for (size, sent) in [(Ping::MAX_PAYLOAD, true), (Ping::MAX_PAYLOAD + 1, false)] {
        let message = Message::new(0, Buffer::zeroed(size));
        ping.handle(Instant::ZERO, Port::Above(0), Item::Message(message));
        assert_eq!(ping.poll(Instant::ZERO).is_some(), sent);
    }
    assert_eq!(counter(&ping, "pings_ignored"), 1);
    let mut mixed = Ping::new(PingConfig::new(address(A, false), address(B, true)));
    let message = Message::new(0, Buffer::zeroed(20));
    mixed.handle(Instant::ZERO, Port::Above(0), Item::Message(message));
    assert!(mixed.poll(Instant::ZERO).is_none());
}

#[test]
fn a_responder_answers_as_a_host_does_and_nothing_else() {
    for v6 in [false, true] {
        let mut ping = ping(9, v6);
        let mut responder = EchoResponder::new(address(B, v6), 255);
        let mut answer = |item: Item| {
            responder.handle(Instant::ZERO, Port::Below(0), item);
            responder.poll(Instant::ZERO).map(|(_, item)| item)
        };
        let Item::Packet(asked) = request(&mut ping, Instant::ZERO, 3) else { panic!() };
        let reply = answer(Item::Packet(asked.clone())).unwrap();
        ping.handle(Instant::ZERO, Port::Below(0), reply.clone());
        let Some((_, Item::Message(message))) = ping.poll(Instant::ZERO) else { panic!("an answer") };
        assert_eq!((message.id, &*message.payload), (3, &payload(3)[..]));

        // An answer is not answered, nor what is for somebody else, or damaged.
        assert_eq!(answer(reply), None);
        let mut damaged = asked.to_vec();
        *damaged.last_mut().unwrap() ^= 1;
        assert_eq!(answer(Item::Packet(Buffer::copy_from(&damaged))), None);
        let elsewhere = Ping::new(PingConfig::new(address(A, v6), address(ROUTER, v6)));
        assert_eq!(answer(request(&mut { elsewhere }, Instant::ZERO, 0)), None);
        assert_eq!(answer(Item::Packet(Buffer::copy_from(b"no packet"))), None);
        // Nor one from what is no single host.
        let group = if v6 { "ff02::1" } else { "224.0.0.1" }.parse().unwrap();
        let forged = Ping::new(PingConfig::new(group, address(B, v6)));
        assert_eq!(answer(request(&mut { forged }, Instant::ZERO, 0)), None);
        assert_eq!(counter(&responder, "echoes_answered"), 1);
        assert_eq!(counter(&responder, "packets_ignored"), 5);
    }
}

#[test]
fn a_router_answers_pings_itself() {
    let mut network = Network::new(1500);
    network.hosts[A].bind_protocol(5, 1, None).unwrap();
    ping_once(&mut network, address(ROUTER, false));
    assert_eq!(network.take_icmp(A).len(), 1);
    assert_eq!(network.counter(ROUTER, "forwarded"), 0);
}

#[test]
fn a_host_that_pings_itself_touches_no_interface() {
    let mut network = Network::new(1500);
    network.hosts[A].bind_protocol(5, 1, None).unwrap();
    ping_once(&mut network, address(A, false));
    assert_eq!(network.take_icmp(A).len(), 1);
    assert!(network.frames.is_empty());
}

fn ping_once(network: &mut Network, destination: std::net::IpAddr) {
    let mut ping = Ping::new(PingConfig::new(address(A, false), destination));
    network.hand(A, Port::Above(5), request(&mut ping, Instant::ZERO, 0));
}

fn ping(identifier: u16, v6: bool) -> Ping {
    Ping::new(PingConfig { identifier, ..PingConfig::new(address(A, v6), address(B, v6)) })
}

fn payload(id: u64) -> [u8; 56] {
    [id as u8; 56]
}

/// The packet in which a ping sends a message.
fn request(ping: &mut Ping, at: Instant, id: u64) -> Item {
    let message = Message::new(id, Buffer::copy_from(&payload(id)));
    ping.handle(at, Port::Above(0), Item::Message(message));
    let Some((Port::Below(0), request)) = ping.poll(at) else { panic!("a request is sent") };
    request
}

fn counter(machine: &dyn Machine, name: &str) -> u64 {
    let mut found = None;
    machine.counters(&mut |counter, value| found = found.or((counter == name).then_some(value)));
    found.unwrap_or_else(|| panic!("no counter {name}"))
}
