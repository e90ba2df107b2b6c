//! Forged responses to discovery.

use super::discovery::{run, seconds, sent};
use super::network::bring;
use super::*;
use crate::meadcast::router;
use crate::meadcast::router::tests::net::{Net, SENDER};
use crate::meadcast::{Key, Statement};
use crate::testing::{counter, receiver_address, router_address};

const KEY: Key = Key::new([7; 16]);
/// R0 in front of R1 and R2.
const TREE: [(usize, usize); 3] = [(0, 0), (0, 1), (0, 2)];

fn network(key: Option<Key>) -> (Net, Vec<Ipv6Addr>) {
    let receivers: Vec<Ipv6Addr> = (0..6).map(receiver_address).collect();
    let routers = TREE.map(|(above, number)| (above, router_address(number), true));
    let config = router::Config { key, ..router::Config::default() };
    (Net::with(config, &routers, receivers.iter().copied().zip([1, 1, 1, 2, 2, 2])), receivers)
}

fn forged(said: &Statement, code: Option<[u8; 16]>) -> Item {
    let Statement { nonce, sender, router, receiver, hops } = *said;
    let list = [receiver.octets()];
    let packet = Packet {
        traffic: 0,
        hop_limit: 250,
        source: router,
        destination: sender,
        kind: Kind::Response { nonce, code },
        hops,
        hold: 0,
        reserved: 0,
        list: &list,
        ports: None,
        protocol: NO_NEXT_HEADER,
        payload: &[],
    };
    Item::Packet(packet.emit())
}

/// Requests that a forger has seen.
#[derive(Clone, Copy)]
enum Knows {
    Nothing,
    /// That to itself, which is the first receiver.
    ItsRequest,
    AllRequests,
}

/// A sender that asks, of which `count` forged responses arrive before those of routers; and what the first datagram
/// after it comes to.
fn attacked(config: Config, key: Option<Key>, count: u64, knows: Knows) -> (Net, Sender, Vec<Ipv6Addr>) {
    let (mut net, receivers) = network(key);
    let config = Config { delay: Duration::ZERO, interval: Duration::ZERO, ..config };
    let mut sender = Sender::new(config, at(SENDER), at(GROUP).into(), receivers.clone(), random());
    sender.wake(Instant::ZERO);
    let requests = sent(&mut sender, Instant::ZERO);
    let nonces: Vec<u64> = requests
        .iter()
        .map(|request| match Packet::parse(request).unwrap().kind {
            Kind::Request { nonce } => nonce,
            other => panic!("{other:?}"),
        })
        .collect();
    for number in 0..count {
        let router = at(&format!("fd14::3:{:x}", number / 6 % 63 + 1));
        let about = number as usize % receivers.len();
        let receiver = receivers[about];
        let hops = (number / 6 % 63) as u8 + 1;
        let nonce = match knows {
            Knows::Nothing => number.wrapping_mul(0x9e37_79b9_7f4a_7c15),
            // It says nothing about its own path.
            Knows::ItsRequest if about == 0 => 1,
            Knows::ItsRequest => nonces[0],
            Knows::AllRequests => nonces[about],
        };
        let said = Statement { nonce, sender: at(SENDER), router, receiver, hops };
        let code = (nonce != 0).then(|| Key::new([8; 16]).code(&said));
        sender.handle(Instant::ZERO, Port::Below(1), forged(&said, code));
        assert_eq!(sender.poll(Instant::ZERO), None);
    }
    requests.into_iter().for_each(|request| net.send(request));
    for packet in std::mem::take(&mut net.at_sender) {
        sender.handle(Instant::ZERO, Port::Below(1), Item::Packet(packet));
    }
    run(&mut sender, seconds(3));
    net.received.clear();
    sender.handle(seconds(3), Port::Above(0), datagram(Buffer::copy_from(b"film")));
    bring(&mut net, &mut sender, seconds(3));
    (net, sender, receivers)
}

#[test]
fn a_million_forged_responses_change_nothing() {
    let clean = attacked(Config::default(), None, 0, Knows::Nothing).1.groups().clone();
    assert_eq!(clean.packets.len(), 1);
    let with = [
        (Config { nonce: true, ..Config::default() }, Knows::Nothing),
        (Config { nonce: true, ..Config::default() }, Knows::ItsRequest),
        (Config { key: Some(KEY), ..Config::default() }, Knows::Nothing),
        (Config { key: Some(KEY), ..Config::default() }, Knows::AllRequests),
    ];
    for (config, knows) in with {
        let (net, sender, receivers) = attacked(config, Some(KEY), 1_000_000, knows);
        assert_eq!(sender.groups(), &clean, "they capture nobody and block nobody");
        assert!(net.each_has_one(&receivers, b"film"));
        assert_eq!(counter(&sender, "refused_forged"), 1_000_000);
        assert_eq!(counter(&sender, "meadcast_sender_contradictions"), 0);
    }
}

#[test]
fn without_a_key_whoever_sees_requests_can_forge_responses_and_without_a_nonce_anybody() {
    for (config, knows) in [
        (Config::default(), Knows::Nothing),
        (Config { nonce: true, ..Config::default() }, Knows::AllRequests),
    ] {
        let (net, _, receivers) = attacked(config, None, 6 * 63, knows);
        assert!(!net.each_has_one(&receivers, b"film"), "they go to a router that does not exist");
    }
}

#[test]
fn routers_without_the_key_or_with_another_are_not_found() {
    for key in [None, Some(Key::new([9; 16]))] {
        let (net, sender, receivers) =
            attacked(Config { key: Some(KEY), ..Config::default() }, key, 0, Knows::Nothing);
        assert_eq!((sender.tree().routers(), sender.groups().packets.len()), (0, 0));
        assert_eq!(counter(&sender, "refused_forged"), 12);
        assert!(net.each_has_one(&receivers, b"film"), "by unicast");
    }
}

#[test]
fn a_response_of_the_discovery_before_is_forged() {
    let mut sender = Sender::new(
        Config { delay: Duration::ZERO, key: Some(KEY), ..Config::default() },
        at(SENDER),
        at(GROUP).into(),
        [receiver_address(0)],
        random(),
    );
    let nonce = |sender: &mut Sender, now| {
        sender.wake(now);
        let request = sent(sender, now).remove(0);
        match Packet::parse(&request).unwrap().kind {
            Kind::Request { nonce } => nonce,
            other => panic!("{other:?}"),
        }
    };
    let said = |nonce| Statement {
        nonce,
        sender: at(SENDER),
        router: router_address(0),
        receiver: receiver_address(0),
        hops: 1,
    };
    let first = nonce(&mut sender, Instant::ZERO);
    let response = |said: &Statement| forged(said, Some(KEY.code(said)));
    sender.handle(seconds(1), Port::Below(1), response(&said(first)));
    assert_eq!(counter(&sender, "meadcast_sender_responses"), 1);
    sender.wake(seconds(2));
    let second = nonce(&mut sender, seconds(7));
    assert_ne!(first, second);
    sender.handle(seconds(8), Port::Below(1), response(&said(first)));
    assert_eq!(counter(&sender, "refused_forged"), 1);
    sender.handle(seconds(8), Port::Below(1), response(&said(second)));
    assert_eq!(counter(&sender, "meadcast_sender_responses"), 2);
}
