use hopcast_core::Duration;

use super::*;
use crate::Refusal;
use crate::xcast::router::TUNNEL;
use crate::xcast::wire::ALL_ROUTERS;

const NAMES: [&str; 3] = ["fd14::b", "fd14::c", "fd14::d"];

/// The destinations of RFC 5058's figure 8: B, C, D.
fn all() -> [Ipv6Addr; 3] {
    NAMES.map(at)
}

fn router(hops: [Option<Hop>; 3]) -> Router {
    let hops = all().into_iter().zip(hops).filter_map(|(to, hop)| Some((to, hop?))).collect();
    let table =
        Table { hops, routers: vec![at("fd14::11"), at("fd14::13"), at("fd14::17")], ..Table::default() };
    Router::new(Config::default(), &[IpAddr::from([10, 0, 0, 1]), at("fd14::99").into()], Box::new(table))
}

fn arrived(packet: Buffer) -> Transit {
    Transit::arrived(packet, 3)
}

fn neighbour(interface: u32) -> Option<Hop> {
    Some(Hop::Neighbour { interface, address: at("fd14::42") })
}

fn marked(packet: &[u8]) -> Vec<Ipv6Addr> {
    let packet = Packet::parse(packet).unwrap();
    packet.marks.places().map(|place| packet.list[place].into()).collect()
}

#[test]
fn figure_8_s_first_router_sends_one_copy_in_a_tunnel() {
    let x3 = at("fd14::13");
    let mut router = router([Some(Hop::Tunnel(x3)); 3]);
    let left = answers(&mut router, NOW, arrived(packet(&all(), |packet| packet)));
    let [Left::Own(tunnel)] = &left[..] else { panic!("{left:?}") };
    let header = ip::parse(tunnel).unwrap();
    assert_eq!((header.source, header.destination), (at("fd14::99").into(), x3.into()));
    assert_eq!((header.protocol, header.hop_limit), (TUNNEL, 255));
    let inner = Packet::parse(&tunnel[header.payload()]).unwrap();
    assert_eq!((inner.hop_limit, inner.marks), (63, Bitmap::first(3)));
}

#[test]
fn figure_8_s_second_router_takes_it_out_and_sends_a_plain_packet_and_a_tunnel() {
    let mut inner = packet(&all(), |packet| packet);
    ip::prepend(&mut inner, at("fd14::11").into(), at("fd14::99").into(), TUNNEL, 255, 0);
    let mut router =
        router([Some(Hop::Plain), Some(Hop::Tunnel(at("fd14::17"))), Some(Hop::Tunnel(at("fd14::17")))]);
    let left = answers(&mut router, NOW, arrived(inner));
    let [Left::Plain(b), Left::Own(tunnel)] = &left[..] else { panic!("{left:?}") };
    assert_eq!(plain(b), (at("fd14::b"), 5001));
    let header = ip::parse(tunnel).unwrap();
    assert_eq!(header.destination, at("fd14::17"));
    assert_eq!(marked(&tunnel[header.payload()]), [at("fd14::c"), at("fd14::d")]);
}

#[test]
fn destinations_behind_one_neighbour_share_a_copy_and_a_single_one_gets_a_plain_packet() {
    let mut router = router([neighbour(1), neighbour(2), neighbour(1)]);
    let left = answers(&mut router, NOW, arrived(packet(&all(), |packet| packet)));
    let [Left::Neighbour(1, address, copy), Left::Plain(c)] = &left[..] else { panic!("{left:?}") };
    assert_eq!((*address, marked(copy)), (at("fd14::42"), vec![at("fd14::b"), at("fd14::d")]));
    let read = Packet::parse(copy).unwrap();
    assert!(udp::parse(read.source.into(), ALL_ROUTERS.into(), read.payload).is_ok(), "its checksum stays");
    assert_eq!(read.hop_limit, 64, "the host takes the hop off");
    assert_eq!(plain(c), (at("fd14::c"), 5001));
}

#[test]
fn a_packet_that_must_stay_as_it_is_comes_to_destinations_in_tunnels() {
    let sent = packet(&all(), |packet| Packet { stays: true, ..packet });
    let mut router = router([Some(Hop::Plain), neighbour(2), None]);
    let left = answers(&mut router, NOW, arrived(sent));
    let [Left::Own(tunnel), Left::Neighbour(2, _, copy)] = &left[..] else { panic!("{left:?}") };
    let header = ip::parse(tunnel).unwrap();
    assert_eq!(header.destination, at("fd14::b"));
    assert_eq!(marked(&tunnel[header.payload()]), [at("fd14::b")]);
    assert_eq!(marked(copy), [at("fd14::c")]);
    assert_eq!(router.counters.no_route, 1);
}

#[test]
fn ports_are_those_of_the_list_in_plain_packets() {
    let ports = [7001_u16, 7002, 7003].map(u16::to_be_bytes);
    let list = all().map(|address| address.octets());
    let payload = segment(at("fd14::1"), 0, PAYLOAD);
    let sent = Packet { ports: Some(&ports), ..crate::xcast::wire::tests::packet(&list, &payload) };
    let left = answers(&mut router([Some(Hop::Plain); 3]), NOW, arrived(sent.emit()));
    let found: Vec<_> = left
        .iter()
        .map(|left| match left {
            Left::Plain(packet) => plain(packet),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(found, [(all()[0], 7001), (all()[1], 7002), (all()[2], 7003)]);
}

#[test]
fn what_a_sender_hands_down_leaves_as_the_hosts_own() {
    let mut router = router([Some(Hop::Plain), neighbour(2), neighbour(2)]);
    router.handle(
        NOW,
        Port::Above(0),
        Item::Packet(packet(&all(), |packet| Packet { hop_limit: 1, ..packet })),
    );
    let mut ingresses = Vec::new();
    while let Some((_, Item::Transit(transit))) = router.poll(NOW) {
        ingresses.push(transit.ingress);
    }
    assert_eq!(ingresses, [None, None]);
}

#[test]
fn tunnels_of_others_pass_and_those_that_nobody_may_send_are_dropped() {
    let tunnel = |from: &str, to: &str, mut inner: Buffer| {
        ip::prepend(&mut inner, at(from).into(), at(to).into(), TUNNEL, 255, 0);
        inner
    };
    let xcast = || packet(&all(), |packet| packet);
    let hops = || router([Some(Hop::Plain); 3]);
    for passes in [
        tunnel("fd14::66", "fd14::77", xcast()),
        tunnel("fd14::66", "fd14::99", Buffer::copy_from(b"no packet at all")),
        Buffer::copy_from(b"nothing"),
    ] {
        let is_packet = ip::parse(&passes).is_ok();
        let mut router = hops();
        let left = answers(&mut router, NOW, arrived(passes.clone()));
        match is_packet {
            true => assert_eq!(left, [Left::Plain(passes)]),
            false => assert_eq!((left.len(), router.refused(Refusal::Packet)), (0, 1)),
        }
    }
    for (drops, reason) in [
        (tunnel("fd14::66", "fd14::99", xcast()), Refusal::Source),
        (tunnel("fd14::11", "fd14::99", tunnel("fd14::11", "fd14::99", xcast())), Refusal::NestedTunnel),
        (
            tunnel("fd14::11", "fd14::99", packet(&all(), |packet| Packet { hop_limit: 1, ..packet })),
            Refusal::HopLimit,
        ),
    ] {
        let mut router = hops();
        assert_eq!(answers(&mut router, NOW, arrived(drops)), []);
        assert_eq!(router.refused(reason), 1, "{reason}");
    }
    // A tunnel from anybody that lists this node, as a packet that stays comes to its destination.
    let own = packet(&[at("fd14::99")], |packet| Packet { stays: true, ..packet });
    let left = answers(&mut hops(), NOW, arrived(tunnel("fd14::66", "fd14::99", own)));
    assert!(matches!(&left[..], [Left::Plain(packet)] if plain(packet) == (at("fd14::99"), 5001)));
}

#[test]
fn a_router_that_is_off_hands_on_what_it_is_given() {
    let sent = packet(&all(), |packet| packet);
    let hops: BTreeMap<_, _> = all().into_iter().map(|to| (to, Hop::Plain)).collect();
    for (enable, expected) in [(false, 1), (true, 3)] {
        let config = Config { enable, ..Config::default() };
        let table = Table { hops: hops.clone(), ..Table::default() };
        let mut router = Router::new(config, &[at("fd14::99").into()], Box::new(table));
        let left = answers(&mut router, NOW, arrived(sent.clone()));
        assert_eq!(left.len(), expected);
        assert_eq!(left[0] == Left::Plain(sent.clone()), !enable);
    }
}

#[test]
fn the_rate_of_copies_is_bounded() {
    let table = Table { hops: all().into_iter().map(|to| (to, Hop::Plain)).collect(), ..Table::default() };
    let config = Config { copies_per_second: 300, ..Config::default() };
    let mut router = Router::new(config, &[at("fd14::99").into()], Box::new(table));
    let mut sent = 0;
    for millis in 0..1000 {
        let now = NOW + Duration::from_millis(millis);
        sent += answers(&mut router, now, arrived(packet(&all(), |packet| packet))).len();
    }
    assert!((300..=300 + 30 + 3).contains(&sent), "{sent}");
    assert!(router.refused(Refusal::Rate) > 800);
}

#[test]
fn what_is_too_long_for_a_tunnel_is_not_sent_in_one() {
    let router = |hop| router([Some(hop), Some(hop), Some(Hop::Plain)]);
    let list = all().map(|address| address.octets());
    for (total, fits) in [(65_535, true), (65_536, false), (65_575, false)] {
        let payload = vec![0; total - 40 - crate::xcast::wire::overhead(3, false) - udp::HEADER];
        let payload = segment(at("fd14::1"), 5001, &payload);
        let sent = crate::xcast::wire::tests::packet(&list, &payload);
        assert!(sent.fits() && sent.total_len() == total);
        let sent = sent.emit();
        let mut tunnels = router(Hop::Tunnel(at("fd14::b")));
        let left = answers(&mut tunnels, NOW, arrived(sent.clone()));
        assert_eq!(left.iter().filter(|left| matches!(left, Left::Own(_))).count(), usize::from(fits));
        assert_eq!(left.len(), 1 + usize::from(fits), "the plain packet is shorter");
        assert_eq!(tunnels.refused(Refusal::Payload), u64::from(!fits));
        let hop = Hop::Neighbour { interface: 1, address: at("fd14::b") };
        assert_eq!(answers(&mut router(hop), NOW, arrived(sent)).len(), 2, "a copy is as long as it was");
    }
}
