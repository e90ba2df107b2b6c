//! Pings, and the round trips they measure.

#![allow(clippy::unwrap_used)]

mod network;

use hopcast_core::{Duration, Instant, Item, Machine, Port};
use hopcast_host::{Ping, PingConfig};
use network::{A, B, Network, ROUTER, address, icmp_protocol};

#[test]
fn a_ping_goes_through_a_router_and_comes_back_in_both_versions() {
    for v6 in [false, true] {
        let mut network = Network::new(1500);
        network.hosts[A].bind_protocol(5, icmp_protocol(v6), None).unwrap();
        let config = PingConfig { count: Some(3), ..PingConfig::new(address(A, v6), address(B, v6)) };
        let mut ping = Ping::new(config);
        let mut answered = Vec::new();
        while let Some(at) = ping.deadline() {
            ping.wake(at);
            assert!(ping.deadline().is_none_or(|next| next > at));
            let Some((Port::Below(0), request)) = ping.poll(at) else { panic!("a request is due") };
            network.hand(A, Port::Above(5), request);
            for (above, reply) in network.take(A) {
                assert_eq!(above, 5);
                ping.handle(
                    at + Duration::from_millis(20 + at.as_nanos() / 1_000_000_000),
                    Port::Below(0),
                    reply,
                );
            }
            while let Some((port, Item::Message(message))) = ping.poll(at) {
                assert_eq!((port, message.payload.len()), (Port::Above(0), 56));
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

#[test]
fn a_ping_that_is_woken_late_sends_one_request() {
    let config = PingConfig::new(address(A, false), address(B, false));
    let mut ping = Ping::new(config);
    let late = Instant::from_nanos(10_500_000_000);
    ping.wake(late);
    assert!(ping.poll(late).is_some() && ping.poll(late).is_none());
    assert!(ping.deadline().is_some_and(|at| at > late));
}

fn ping_once(network: &mut Network, destination: std::net::IpAddr) {
    let mut ping = Ping::new(PingConfig::new(address(A, false), destination));
    ping.wake(Instant::ZERO);
    let (_, request) = ping.poll(Instant::ZERO).unwrap();
    network.hand(A, Port::Above(5), request);
}
