use hopcast_wire::{ip, udp};

use super::*;
use crate::meadcast::wire::tests::segment;
use crate::testing::counter;

pub(super) fn seconds(at: u64) -> Instant {
    Instant::ZERO + Duration::from_secs(at)
}

fn sender(config: Config) -> Sender {
    Sender::new(config, at("fd14::1"), at(GROUP).into(), ["E1", "E2", "E3"].map(named), random())
}

pub(super) fn sent(sender: &mut Sender, now: Instant) -> Vec<Buffer> {
    let items = std::iter::from_fn(|| sender.poll(now));
    let packets = items.map(|item| match item {
        (Port::Below(1), Item::Packet(packet)) => packet,
        other => panic!("{other:?}"),
    });
    packets.collect()
}

/// Runs the sender up to an instant, and returns when it sent what to whom: requests, data.
pub(super) fn run(sender: &mut Sender, to: Instant) -> Vec<(u64, Kind, String)> {
    let mut all = Vec::new();
    while let Some(now) = sender.deadline().filter(|at| *at <= to) {
        sender.wake(now);
        for packet in sent(sender, now) {
            let packet = Packet::parse(&packet).unwrap();
            all.push((now.as_nanos() / 1_000_000_000, packet.kind, name(packet.destination)));
        }
        assert!(sender.deadline().is_none_or(|at| at > now), "a deadline lies ahead");
    }
    all
}

fn response(router: &str, hops: u8, receiver: &str) -> Buffer {
    let list = [named(receiver).octets()];
    let packet = Packet {
        traffic: 0,
        hop_limit: 250,
        source: named(router),
        destination: at("fd14::1"),
        kind: Kind::Response { nonce: 0, code: None },
        hops,
        hold: 0,
        reserved: 0,
        list: &list,
        ports: None,
        protocol: NO_NEXT_HEADER,
        payload: &[],
    };
    packet.emit()
}

fn respond(sender: &mut Sender, now: Instant, responses: &[(&str, u8, &str)]) {
    for &(router, hops, receiver) in responses {
        sender.handle(now, Port::Below(1), Item::Packet(response(router, hops, receiver)));
        assert_eq!(sender.poll(now), None, "a response ends here");
    }
}

/// Packets that a datagram becomes: the destination of each, and how many receivers it lists. Each carries the
/// datagram.
fn film(sender: &mut Sender, now: Instant) -> Vec<(String, usize)> {
    sender.handle(now, Port::Above(0), datagram(Buffer::copy_from(b"film")));
    let mut found = Vec::new();
    for packet in sent(sender, now) {
        let header = ip::parse(&packet).unwrap();
        assert_eq!(header.source, at("fd14::1"));
        let read = udp::parse(header.source, header.destination, &packet[header.payload()]);
        assert_eq!(read.map(|udp| (udp.source, udp.destination)), Ok((4000, 5001)), "a checksum that fits");
        assert!(packet.ends_with(b"film"));
        let listed = match Packet::parse(&packet) {
            Ok(packet) => match packet.kind {
                Kind::Data { routers, .. } => packet.list.len() - routers.len(),
                other => panic!("{other:?}"),
            },
            Err(_) => 0,
        };
        match header.destination {
            std::net::IpAddr::V6(destination) => found.push((name(destination), listed)),
            other @ std::net::IpAddr::V4(_) => panic!("{other}"),
        }
    }
    found
}

#[test]
fn requests_go_to_all_receivers_after_the_delay_and_then_at_the_interval_behind_each_timeout() {
    let mut sender = sender(Config::default());
    assert_eq!(sender.deadline(), Some(Instant::ZERO));
    let requests = run(&mut sender, seconds(20));
    let expected =
        |at| ["E1", "E2", "E3"].map(|receiver| (at, Kind::Request { nonce: 0 }, receiver.to_owned()));
    assert_eq!(requests, [expected(5), expected(12), expected(19)].concat());
    assert_eq!(
        (counter(&sender, "meadcast_sender_discoveries"), counter(&sender, "meadcast_sender_requests")),
        (2, 9)
    );
}

#[test]
fn without_an_interval_there_is_one_discovery() {
    let mut sender = sender(Config { interval: Duration::ZERO, delay: Duration::ZERO, ..Config::default() });
    assert_eq!(run(&mut sender, seconds(100)).len(), 3);
    assert_eq!(sender.deadline(), None);
}

#[test]
fn a_sender_that_waits_begins_with_its_first_data() {
    for delay in [0, 3] {
        let delay_of = Duration::from_secs(delay);
        let mut sender = sender(Config { wait: true, delay: delay_of, ..Config::default() });
        assert_eq!(sender.deadline(), None);
        let now = seconds(10);
        sender.handle(now, Port::Above(0), datagram(Buffer::copy_from(b"film")));
        assert_eq!(sent(&mut sender, now).len(), if delay == 0 { 6 } else { 3 });
        assert_eq!(sender.deadline(), Some(seconds(if delay == 0 { 12 } else { 13 })));
    }
}

#[test]
fn data_goes_by_unicast_until_the_first_discovery_has_ended_and_then_in_lists() {
    let mut sender = sender(Config::default());
    run(&mut sender, Instant::ZERO);
    let by_unicast = ["E1", "E2", "E3"].map(|receiver| (receiver.to_owned(), 0));
    assert_eq!(film(&mut sender, seconds(1)), by_unicast);
    run(&mut sender, seconds(5));
    respond(&mut sender, seconds(6), &[("R1", 1, "E1"), ("R1", 1, "E3")]);
    assert_eq!(film(&mut sender, seconds(6)), by_unicast);
    run(&mut sender, seconds(7));
    assert_eq!(film(&mut sender, seconds(8)), [("E2".to_owned(), 0), ("E1".to_owned(), 2)]);
    assert_eq!(sender.groups().packets.iter().map(names).collect::<Vec<_>>(), ["R1 E1 E3"]);
    // The next discovery begins anew: a router that is silent is not listed any more, and not before it ends.
    run(&mut sender, seconds(13));
    assert_eq!(film(&mut sender, seconds(13)).len(), 2);
    run(&mut sender, seconds(14));
    assert_eq!(film(&mut sender, seconds(14)), by_unicast);
}

#[test]
fn responses_that_do_not_fit_change_nothing() {
    let mut sender = sender(Config { min_leaves: 1, ..Config::default() });
    run(&mut sender, Instant::ZERO);
    respond(&mut sender, seconds(1), &[("R1", 1, "E1")]);
    assert_eq!(counter(&sender, "meadcast_sender_responses_late"), 1);
    run(&mut sender, seconds(5));
    let now = seconds(6);
    respond(&mut sender, now, &[("R1", 0, "E1"), ("E2", 1, "E1")]);
    let mut elsewhere = response("R1", 1, "E1");
    elsewhere[24..40].copy_from_slice(&at("fd14::7").octets());
    let elsewhere = Item::Transit(Transit::arrived(elsewhere, 2));
    sender.handle(now, Port::Below(1), elsewhere.clone());
    assert_eq!(sender.poll(now), Some((Port::Below(1), elsewhere)), "another's");
    let refused = ["hops", "destination", "source"].map(|it| counter(&sender, &format!("refused_{it}")));
    assert_eq!(refused, [1, 0, 1]);
    let own = Item::Transit(Transit::arrived(response("R1", 0, "E1"), 2));
    sender.handle(now, Port::Below(1), own.clone());
    assert_eq!(sender.poll(now), Some((Port::Below(1), own)), "a hook hands back what it has read");
    assert_eq!(counter(&sender, "refused_hops"), 2);
    respond(&mut sender, now, &[("R1", 1, "E1"), ("R1", 1, "E1"), ("R2", 1, "E1"), ("R1", 2, "E1")]);
    assert_eq!(counter(&sender, "meadcast_sender_contradictions"), 2);
    assert_eq!(counter(&sender, "meadcast_sender_responses"), 1);
    run(&mut sender, seconds(7));
    assert_eq!(all_names(sender.groups()), (vec!["R1 E1".to_owned()], "E2 E3".to_owned()));
}

#[test]
fn senders_of_one_node_each_hear_the_responses_about_their_receivers_and_count_no_others() {
    let sender = |delay, receivers: &[&str]| {
        let config = Config { delay: Duration::from_secs(delay), ..Config::default() };
        let receivers: Vec<Ipv6Addr> = receivers.iter().copied().map(named).collect();
        Sender::new(config, at("fd14::1"), at(GROUP).into(), receivers, random())
    };
    // E3 is a receiver of both. The first sender's discovery ends at 2 s, and the second's at 3 s.
    let mut senders = [sender(0, &["E1", "E2", "E3"]), sender(1, &["E3", "E4", "E5"])];
    // The hooks see each packet in their order, as long as it is handed back.
    let arrive = |senders: &mut [Sender; 2], now, router, receiver| {
        let mut item = Item::Transit(Transit::arrived(response(router, 1, receiver), 2));
        for sender in senders {
            run(sender, now);
            sender.handle(now, Port::Below(1), item.clone());
            let (port, handed_back) = sender.poll(now).expect("a transit is handed back");
            assert_eq!((port, &handed_back, sender.poll(now)), (Port::Below(1), &item, None));
            item = handed_back;
        }
    };
    for receiver in ["E1", "E2", "E3"] {
        arrive(&mut senders, seconds(1), "R1", receiver);
    }
    for receiver in ["E4", "E5"] {
        // The first sender has ended its discovery.
        arrive(&mut senders, Instant::ZERO + Duration::from_millis(2500), "R1", receiver);
    }
    for (sender, list) in senders.iter_mut().zip(["R1 E1 E2 E3", "R1 E3 E4 E5"]) {
        run(sender, seconds(3));
        assert_eq!(sender.groups().packets.iter().map(names).collect::<Vec<_>>(), [list]);
        for name in ["responses_late", "contradictions"] {
            assert_eq!(counter(sender, &format!("meadcast_sender_{name}")), 0, "{name}");
        }
        for (_, name) in crate::Refusal::ALL {
            assert_eq!(counter(sender, name), 0, "{name}");
        }
    }
}

#[test]
fn receivers_come_by_unicast_and_go_at_once() {
    let mut sender = sender(Config::default());
    run(&mut sender, seconds(5));
    respond(&mut sender, seconds(6), &[("R1", 1, "E1"), ("R1", 1, "E2"), ("R1", 1, "E3")]);
    run(&mut sender, seconds(7));
    sender.leave(named("E2"));
    sender.join(named("E4"));
    sender.join(named("E4"));
    sender.join(at("ff02::1"));
    sender.join(at("fd14::1"));
    assert_eq!(film(&mut sender, seconds(8)).len(), 2);
    assert_eq!(all_names(sender.groups()), (vec!["R1 E1 E3".to_owned()], "E4".to_owned()));
    let requests = run(&mut sender, seconds(12));
    assert_eq!(requests.iter().map(|(_, _, to)| to.as_str()).collect::<Vec<_>>(), ["E1", "E3", "E4"]);
}

#[test]
fn packets_of_a_tun_device_are_sent_from_the_senders_address_with_their_class_and_label() {
    let tun = at("fd15::1");
    let mut sender = Sender::new(Config::default(), at("fd14::1"), tun.into(), [named("E1")], random());
    let mut packet = segment(at("fd15::9"), tun, 5001, b"film");
    ip::prepend(&mut packet, at("fd15::9").into(), tun.into(), ip::UDP, 64, 0);
    packet[..4].copy_from_slice(&[0x6b, 0x80, 0x12, 0x34]);
    let now = seconds(1);
    sender.handle(now, Port::Above(0), Item::Packet(packet.clone()));
    let found = sent(&mut sender, now);
    assert_eq!(found.len(), 1);
    let header = ip::parse(&found[0]).unwrap();
    assert_eq!((header.source, header.destination), (at("fd14::1").into(), named("E1").into()));
    assert!(udp::parse(header.source, header.destination, &found[0][header.payload()]).is_ok());
    assert_eq!(found[0][..4], [0x6b, 0x80, 0x12, 0x34]);
    // What is for others passes, and so do packets that are no responses.
    packet[39] = 7;
    for (from, to) in [(Port::Above(0), Port::Below(0)), (Port::Below(0), Port::Above(0))] {
        sender.handle(now, from, Item::Packet(packet.clone()));
        assert_eq!(sender.poll(now), Some((to, Item::Packet(packet.clone()))));
    }
}

#[test]
fn data_that_no_packet_can_be_is_dropped() {
    let mut sender = sender(Config { max: 32, ..Config::default() });
    assert_eq!(Sender::overhead(&Config { max: 32, ..Config::default() }), 528);
    for (len, is_sent) in [(65_535 - 528 - 8, true), (65_535 - 528 - 7, false)] {
        sender.handle(seconds(1), Port::Above(0), datagram(Buffer::zeroed(len)));
        assert_eq!(!sent(&mut sender, seconds(1)).is_empty(), is_sent, "{len}");
    }
    assert_eq!(counter(&sender, "meadcast_sender_unsendable"), 1);
}

#[test]
fn one_that_joins_is_asked_about_at_once_where_that_is_wanted_and_no_other_is() {
    for ask_joiners in [false, true] {
        let config = Config { ask_joiners, delay: Duration::ZERO, min_leaves: 1, ..Config::default() };
        let mut sender = with_one_router(config);
        assert_eq!(film(&mut sender, seconds(2)), [("E1".to_owned(), 3)]);
        sender.join(named("E4"));
        sender.wake(seconds(3));
        let asked: Vec<String> = sent(&mut sender, seconds(3))
            .iter()
            .map(|packet| name(Packet::parse(packet).unwrap().destination))
            .collect();
        assert_eq!(asked, if ask_joiners { vec!["E4"] } else { vec![] });
        assert_eq!(film(&mut sender, seconds(3)), [("E4".to_owned(), 0), ("E1".to_owned(), 3)]);
        // Of the others nobody says anything, and they stay where they are.
        sender.handle(seconds(4), Port::Below(1), Item::Packet(response("R1", 1, "E4")));
        // Another waits until that has ended; one that left before is not asked about.
        for receiver in ["E5", "E6"] {
            sender.join(named(receiver));
        }
        sender.wake(seconds(4));
        assert!(sent(&mut sender, seconds(4)).is_empty());
        sender.leave(named("E6"));
        let later = run(&mut sender, seconds(5));
        let expected =
            if ask_joiners { vec![(5, Kind::Request { nonce: 0 }, "E5".to_owned())] } else { vec![] };
        assert_eq!(later, expected);
        let with_path = if ask_joiners { vec![("E1".to_owned(), 4)] } else { vec![("E1".to_owned(), 3)] };
        assert!(film(&mut sender, seconds(5)).ends_with(&with_path));
        // The next about all begins when it would have, and ends that of the fifth.
        assert_eq!(run(&mut sender, seconds(7)).len(), 5);
        assert_eq!(counter(&sender, "meadcast_sender_partial_discoveries"), u64::from(ask_joiners));
        run(&mut sender, seconds(9));
        assert_eq!(counter(&sender, "meadcast_sender_discoveries"), 2);
    }
}

/// A sender whose first discovery has ended after two seconds, and has found all three receivers behind one router.
fn with_one_router(config: Config) -> Sender {
    let mut sender = sender(config);
    run(&mut sender, Instant::ZERO);
    respond(&mut sender, seconds(1), &[("R1", 1, "E1"), ("R1", 1, "E2"), ("R1", 1, "E3")]);
    run(&mut sender, seconds(2));
    sender
}

#[test]
fn one_that_is_back_during_a_discovery_that_did_not_ask_about_it_is_asked_about_after_it() {
    let config = Config { ask_joiners: true, delay: Duration::ZERO, min_leaves: 1, ..Config::default() };
    let mut sender = with_one_router(config);
    sender.leave(named("E1"));
    assert_eq!(run(&mut sender, seconds(7)).len(), 2);
    sender.join(named("E1"));
    sender.wake(seconds(8));
    assert!(sent(&mut sender, seconds(8)).is_empty());
    let asked = run(&mut sender, seconds(9));
    assert_eq!(asked, [(9, Kind::Request { nonce: 0 }, "E1".to_owned())]);
}

#[test]
fn paths_of_receivers_that_are_gone_are_forgotten_with_the_next_discovery_of_any_kind() {
    let config =
        Config { ask_joiners: true, delay: Duration::ZERO, interval: Duration::ZERO, ..Config::default() };
    let mut sender = with_one_router(config);
    sender.leave(named("E1"));
    sender.join(named("E4"));
    sender.wake(seconds(3));
    run(&mut sender, seconds(5));
    assert!(!sender.paths.has(named("E1")) && sender.paths.has(named("E2")));
}

#[test]
fn one_that_is_back_before_the_next_discovery_is_where_it_was_and_not_asked_about() {
    let config = Config { ask_joiners: true, delay: Duration::ZERO, min_leaves: 1, ..Config::default() };
    let mut sender = with_one_router(config);
    sender.leave(named("E1"));
    sender.join(named("E1"));
    sender.wake(seconds(3));
    assert!(sent(&mut sender, seconds(3)).is_empty());
    assert_eq!(film(&mut sender, seconds(3)), [("E2".to_owned(), 3)]);
}
