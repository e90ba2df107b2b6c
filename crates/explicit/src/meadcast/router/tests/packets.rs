use super::*;

const NOW: Instant = Instant::ZERO;
/// The list of the thesis' example in figure 2.5.
const FIGURE: [&str; 6] = ["fd14::5:1", "fd14::2", "fd14::3", "fd14::6:1", "fd14::4", "fd14::5"];

#[test]
fn a_request_goes_on_with_a_hop_more_and_is_answered_with_it() {
    let mut router = router(Config::default(), "fd14::9:1");
    let (back, own) = answers(&mut router, NOW, request("fd14::2", 2, 64));
    assert_eq!((back.len(), own.len()), (1, 1));
    assert_eq!(back[0], request("fd14::2", 3, 64));
    let response = Packet::parse(&own[0]).unwrap();
    assert_eq!(
        (response.kind, response.hops, response.hop_limit),
        (Kind::Response { nonce: 0, code: None }, 3, 255)
    );
    assert_eq!((response.source, response.destination), (at("fd14::9:1"), at("fd14::1")));
    assert_eq!(response.list, list(&["fd14::2"]));
    assert_eq!(counter(&router, "meadcast_responses"), 1);
}

#[test]
fn a_response_in_transit_goes_on_as_it_is() {
    let mut first = router(Config::default(), "fd14::9:1");
    let (_, own) = answers(&mut first, NOW, request("fd14::2", 0, 64));
    let mut second = router(Config::default(), "fd14::8:1");
    let (back, none) = answers(&mut second, NOW, own[0].clone());
    assert_eq!((back, none), (own, vec![]));
}

#[test]
fn data_for_other_routers_is_copied_for_each_as_in_figure_2_5() {
    let mut router = router(Config::default(), "fd14::1:1");
    let (back, own) = answers(&mut router, NOW, data(&list(&FIGURE), &[0, 3], None));
    assert!(own.is_empty());
    let copies: Vec<_> = back.iter().map(|packet| copy(packet)).collect();
    assert_eq!(copies, [(at("fd14::2"), Bitmap::of(0), PORT), (at("fd14::4"), Bitmap::of(3), PORT)]);
    assert!(back.iter().all(|packet| Packet::parse(packet).unwrap().hops == 1));
    // What R4 does with one of them: it passes on, with a hop more.
    let (again, _) = answers(&mut router, NOW, back[1].clone());
    assert_eq!((again.len(), copy(&again[0])), (1, (at("fd14::4"), Bitmap::of(3), PORT)));
    assert_eq!(counter(&router, "meadcast_copies"), 3);
}

#[test]
fn data_of_the_routers_own_becomes_a_plain_packet_for_each_receiver() {
    for (own, copied, receivers) in [
        ("fd14::5:1", Some("fd14::4"), ["fd14::2", "fd14::3"]),
        ("fd14::6:1", Some("fd14::2"), ["fd14::4", "fd14::5"]),
    ] {
        let mut router = router(Config::default(), own);
        let (back, _) = answers(&mut router, NOW, data(&list(&FIGURE), &[0, 3], None));
        let (copies, plain): (Vec<_>, Vec<_>) = back.iter().partition(|packet| Packet::parse(packet).is_ok());
        assert_eq!(copies.iter().map(|packet| Some(copy(packet).0)).collect::<Vec<_>>(), [copied.map(at)]);
        let plain: Vec<_> = plain.iter().map(|packet| unicast(packet)).collect();
        assert_eq!(plain, receivers.map(|receiver| (at(receiver), PORT)));
        assert_eq!((counter(&router, "meadcast_unicast"), counter(&router, "meadcast_premature")), (2, 0));
    }
}

#[test]
fn a_section_that_was_delivered_is_not_delivered_again() {
    let addresses = list(&FIGURE);
    let mut packet = data(&addresses, &[0, 3], None);
    packet[48..52].copy_from_slice(&Bitmap::of(3).bytes()[..4]);
    let mut router = router(Config::default(), "fd14::5:1");
    let (back, _) = answers(&mut router, NOW, packet);
    assert_eq!(
        back.iter().map(|packet| copy(packet)).collect::<Vec<_>>(),
        [(at("fd14::4"), Bitmap::of(3), PORT)]
    );
}

#[test]
fn ports_are_those_of_the_list_in_copies_and_in_plain_packets() {
    let ports = [7001_u16, 7002, 7003, 7004].map(u16::to_be_bytes);
    let packet = data(&list(&FIGURE), &[0, 3], Some(&ports));
    let mut far = router(Config::default(), "fd14::1:1");
    let (back, _) = answers(&mut far, NOW, packet);
    let copies: Vec<_> = back.iter().map(|packet| copy(packet)).collect();
    assert_eq!(copies, [(at("fd14::2"), Bitmap::of(0), 7001), (at("fd14::4"), Bitmap::of(3), 7003)]);
    let mut near = router(Config::default(), "fd14::6:1");
    let (plain, _) = answers(&mut near, NOW, back[1].clone());
    let plain: Vec<_> = plain.iter().map(|packet| unicast(packet)).collect();
    assert_eq!(plain, [(at("fd14::4"), 7003), (at("fd14::5"), 7004)]);
}

#[test]
fn a_section_of_fewer_receivers_than_min_dsts_becomes_plain_packets_before_its_router() {
    let addresses = list(&["fd14::5:1", "fd14::2", "fd14::3", "fd14::6:1", "fd14::4"]);
    for (min_dsts, plain, copies) in [(0, 0, 2), (1, 0, 2), (2, 1, 1), (3, 3, 0)] {
        let mut router = router(Config { min_dsts, ..Config::default() }, "fd14::1:1");
        let (back, _) = answers(&mut router, NOW, data(&addresses, &[0, 3], None));
        assert_eq!(back.len(), plain + copies);
        assert_eq!(counter(&router, "meadcast_premature"), plain as u64, "{min_dsts}");
        assert_eq!(back.iter().filter(|packet| Packet::parse(packet).is_ok()).count(), copies);
    }
}

#[test]
fn a_router_that_is_off_forwards_as_any_other() {
    let packets = || [request("fd14::2", 2, 64), data(&list(&FIGURE), &[0, 3], None)];
    let router = |enable| router(Config { enable, ..Config::default() }, "fd14::5:1");
    let (mut on, mut off) = (router(true), router(false));
    for packet in packets() {
        let (back, own) = answers(&mut on, NOW, packet.clone());
        assert!(back.len() + own.len() > 1);
    }
    let mut of_ipv4 = Router::new(Config::default(), &[IpAddr::from([10, 0, 0, 1])]);
    for packet in packets() {
        for router in [&mut off, &mut of_ipv4] {
            assert_eq!(answers(router, NOW, packet.clone()), (vec![packet.clone()], vec![]));
        }
    }
}

#[test]
fn icmp_and_tcp_are_copied_with_their_checksums_and_other_protocols_as_they_are() {
    let addresses = list(&FIGURE[..3]);
    let routers = Bitmap::of(0);
    for (protocol, place) in [(ip::ICMPV6, Some(2)), (ip::TCP, Some(16)), (113, None)] {
        let mut payload = *b"a segment of twenty bytes and more";
        let destination = Ipv6Addr::from(addresses[1]);
        let sum = |payload: &[u8], to: Ipv6Addr| {
            hopcast_wire::checksum::transport(at("fd14::1").into(), to.into(), protocol, payload)
        };
        if let Some(place) = place {
            payload[place..place + 2].fill(0);
            let sum = sum(&payload, destination);
            payload[place..place + 2].copy_from_slice(&sum.to_be_bytes());
        }
        let sent = data(&addresses, &[0], None);
        let packet = Packet {
            protocol,
            payload: &payload,
            kind: Kind::Data { delivery: routers, routers },
            ..Packet::parse(&sent).unwrap()
        };
        let mut router = router(Config::default(), FIGURE[0]);
        let (back, _) = answers(&mut router, NOW, packet.emit());
        assert_eq!(back.len(), 2);
        for (packet, receiver) in back.iter().zip(&FIGURE[1..]) {
            let header = ip::parse(packet).unwrap();
            assert_eq!((header.protocol, header.destination), (protocol, at(receiver).into()));
            let found = &packet[header.payload()];
            match place {
                Some(_) => assert_eq!(sum(found, at(receiver)), 0),
                None => assert_eq!(found, payload),
            }
        }
    }
}
