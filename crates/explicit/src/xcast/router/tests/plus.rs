use hopcast_core::{Duration, Membership};

use super::*;
use crate::Refusal;
use crate::xcast::router::{PlusConfig, REGISTRATION_PORT, TUNNEL};
use crate::xcast::wire::ALL_ROUTERS;

const SOURCE: &str = "fd14::1";
const GROUP: &str = "ff3e::4321:1234";

fn designated(own: &str, table: Table) -> Router {
    Router::new(Config::default(), &[at(own).into()], Box::new(table)).designated(PlusConfig::default())
}

fn membership(interface: u32, joined: bool) -> Item {
    let (group, source) = (at(GROUP).into(), Some(at(SOURCE).into()));
    Item::Membership(Membership { group, source, interface: Some(interface), joined })
}

/// Registrations that a router sends for a change of its members, each checked to be one.
fn registrations(router: &mut Router, now: Instant) -> Vec<Buffer> {
    let items = std::iter::from_fn(|| router.poll(now));
    let packets = items.map(|item| match item {
        (Port::Below(0), Item::Packet(packet)) => {
            let header = ip::parse(&packet).unwrap();
            let segment = &packet[header.payload()];
            let read = udp::parse(header.source, header.destination, segment).unwrap();
            assert_eq!((header.destination, read.destination), (at(SOURCE).into(), REGISTRATION_PORT));
            assert_eq!(segment[8..12], *b"X+\x01\x00");
            assert_eq!(segment[16..32], at(GROUP).octets());
            packet
        }
        other => panic!("{other:?}"),
    });
    packets.collect()
}

/// A packet of the source to the group, as its host makes it.
fn multicast() -> Buffer {
    multicast_of(PAYLOAD)
}

fn multicast_of(payload: &[u8]) -> Buffer {
    let mut packet = Buffer::copy_from(payload);
    udp::prepend(&mut packet, (at(SOURCE), 4000).into(), (at(GROUP), 5001).into());
    ip::prepend(&mut packet, at(SOURCE).into(), at(GROUP).into(), ip::UDP, 64, 0);
    packet
}

fn at_source(hops: &[(&str, Hop)]) -> Router {
    let hops = hops.iter().map(|(router, hop)| (at(router), *hop)).collect();
    designated(
        "fd14::a",
        Table {
            hops,
            routers: vec![at("fd14::b"), at("fd14::c")],
            attached: vec![at(SOURCE)],
            ..Table::default()
        },
    )
}

/// Interfaces and packets to the group that leave a router.
fn to_group(router: &mut Router, now: Instant) -> (Vec<(Vec<u32>, Buffer)>, Vec<Item>) {
    let (mut groups, mut others) = (Vec::new(), Vec::new());
    while let Some((_, item)) = router.poll(now) {
        match item {
            Item::Transit(Transit { packet, egress: Egress::Group(interfaces), .. }) => {
                assert_eq!(plain(&packet), (at(GROUP), 5001));
                groups.push((interfaces.to_vec(), packet));
            }
            other => others.push(other),
        }
    }
    (groups, others)
}

#[test]
fn a_channel_is_registered_with_its_first_member_again_in_time_and_left_with_its_last() {
    let mut router = designated("fd14::b", Table::default());
    let mut held = Vec::new();
    for (interface, joined) in [(1, true), (2, true), (1, true), (1, false), (7, false)] {
        router.handle(NOW, Port::Above(1), membership(interface, joined));
        held.extend(registrations(&mut router, NOW));
    }
    assert_eq!(held.len(), 1);
    assert_eq!(held[0][52..54], 210_u16.to_be_bytes());
    // Soon, in case the first is lost, and then up to a minute apart.
    for seconds in [1, 3, 7, 15, 31, 63, 123, 183] {
        let now = NOW + Duration::from_secs(seconds);
        assert_eq!(router.deadline(), Some(now));
        router.wake(now);
        assert_eq!(registrations(&mut router, now).len(), 1);
    }
    let now = NOW + Duration::from_secs(200);
    router.handle(now, Port::Above(1), membership(2, false));
    let left = registrations(&mut router, now);
    assert_eq!((left.len(), &left[0][52..54]), (1, &[0, 0][..]));
    assert_eq!(router.deadline(), None);
}

#[test]
fn what_a_source_sends_comes_to_the_members_links_over_xcast() {
    let mut near = at_source(&[
        ("fd14::b", Hop::Neighbour { interface: 1, address: at("fd14::b") }),
        ("fd14::c", Hop::Plain),
    ]);
    // Nobody has registered: it goes on as it would.
    assert_eq!(answers(&mut near, NOW, Transit::arrived(multicast(), 3)), [Left::Plain(multicast())]);
    let mut far = ["fd14::b", "fd14::c"].map(|own| designated(own, Table::default()));
    for router in &mut far {
        router.handle(NOW, Port::Above(1), membership(5, true));
        router.handle(NOW, Port::Above(1), membership(6, true));
        for packet in registrations(router, NOW) {
            assert_eq!(answers(&mut near, NOW, Transit::arrived(packet, 2)), [], "it ends here");
        }
    }
    let left = answers(&mut near, NOW, Transit::arrived(multicast(), 3));
    let [Left::Neighbour(1, _, copy), Left::Own(tunnel)] = &left[..] else { panic!("{left:?}") };
    let header = ip::parse(tunnel).unwrap();
    assert_eq!((header.protocol, header.destination), (TUNNEL, at("fd14::c").into()));
    let read = Packet::parse(copy).unwrap();
    assert!(read.stays && udp::parse(read.source.into(), ALL_ROUTERS.into(), read.payload).is_ok());
    assert_eq!(Ipv6Addr::from(read.channel), at(GROUP));
    let [b, c] = &mut far;
    for (router, packet) in [(b, copy), (c, tunnel)] {
        router.handle(NOW, Port::Below(0), Item::Transit(Transit::arrived(packet.clone(), 0)));
        let (groups, others) = to_group(router, NOW);
        assert_eq!(groups.iter().map(|(interfaces, _)| &interfaces[..]).collect::<Vec<_>>(), [&[5, 6]]);
        assert_eq!(others, []);
    }
}

#[test]
fn members_at_the_sources_own_router_need_no_registration() {
    let mut router = at_source(&[]);
    router.handle(NOW, Port::Above(1), membership(3, true));
    router.handle(NOW, Port::Above(1), membership(4, true));
    assert_eq!(registrations(&mut router, NOW), Vec::<Buffer>::new());
    router.handle(NOW, Port::Below(0), Item::Transit(Transit::arrived(multicast(), 3)));
    let (groups, others) = to_group(&mut router, NOW);
    assert_eq!((groups.len(), &groups[0].0[..]), (1, &[4][..]), "not back to the source's link");
    assert_eq!(others, []);
}

#[test]
fn what_a_source_sends_is_taken_from_its_own_link_alone() {
    let mut router = at_source(&[("fd14::b", Hop::Plain)]);
    register(&mut router, "fd14::b");
    router.handle(NOW, Port::Above(1), membership(5, true));
    // Another router's copy, or one of a host that forges the source.
    let elsewhere = Transit::arrived(multicast(), SOURCE_LINK + 1);
    assert_eq!(answers(&mut router, NOW, elsewhere), [Left::Plain(multicast())]);
    router.handle(NOW, Port::Below(0), Item::Transit(Transit::arrived(multicast(), SOURCE_LINK)));
    let (groups, others) = to_group(&mut router, NOW);
    assert_eq!((groups.len(), others.len()), (1, 1));
}

#[test]
fn members_on_the_link_by_which_a_list_comes_are_served_too() {
    let mut router = designated("fd14::b", Table::default());
    for interface in [5, 6] {
        router.handle(NOW, Port::Above(1), membership(interface, true));
    }
    registrations(&mut router, NOW);
    let list = packet(&[at("fd14::b")], |packet| Packet {
        stays: true,
        channel: at(GROUP).into(),
        source: at(SOURCE),
        ..packet
    });
    router.handle(NOW, Port::Below(0), Item::Transit(Transit::arrived(list, 5)));
    let (groups, others) = to_group(&mut router, NOW);
    assert_eq!((groups.len(), &groups[0].0[..], others.len()), (1, &[5, 6][..], 0));
}

#[test]
fn what_a_router_itself_sends_to_a_group_becomes_xcast_there() {
    let hop = Hop::Neighbour { interface: 1, address: at("fd14::b") };
    let hops = [(at("fd14::b"), hop)].into();
    let mut router = designated(SOURCE, Table { hops, routers: vec![at("fd14::b")], ..Table::default() });
    let own = || Transit { packet: multicast(), ingress: None, egress: Egress::Routes };
    assert_eq!(answers(&mut router, NOW, own()), [Left::Plain(multicast())], "nobody has registered");
    register(&mut router, "fd14::b");
    let left = answers(&mut router, NOW, own());
    let [Left::Neighbour(1, _, copy)] = &left[..] else { panic!("{left:?}") };
    assert_eq!(Packet::parse(copy).unwrap().hop_limit, 64);
    // What only says that it is of this node is not.
    let forged = Transit::arrived(multicast(), 3);
    assert_eq!(answers(&mut router, NOW, forged), [Left::Plain(multicast())]);
    // Its own members need no registration.
    router.handle(NOW, Port::Above(1), membership(4, true));
    router.handle(NOW, Port::Below(0), Item::Transit(own()));
    let (groups, others) = to_group(&mut router, NOW);
    assert_eq!((groups.len(), &groups[0].0[..], others.len()), (1, &[4][..], 1));
}

#[test]
fn a_router_that_is_sent_what_nobody_wants_leaves_again_once_in_a_second() {
    let mut router = designated("fd14::b", Table::default());
    let own = [at("fd14::b")];
    let unwanted = packet(&own, |packet| Packet {
        stays: true,
        channel: at(GROUP).into(),
        source: at(SOURCE),
        ..packet
    });
    let mut left = Vec::new();
    for millis in (0..2500).step_by(10) {
        let now = NOW + Duration::from_millis(millis);
        router.handle(now, Port::Below(0), Item::Transit(Transit::arrived(unwanted.clone(), 0)));
        left.extend(
            registrations(&mut router, now).into_iter().map(|packet| (millis, packet[52..54] == [0, 0])),
        );
    }
    assert_eq!(left, [(0, true), (1000, true), (2000, true)]);
}

/// Hands the source's router the registration of a router with a member.
fn register(near: &mut Router, own: &str) {
    let mut far = designated(own, Table::default());
    far.handle(NOW, Port::Above(1), membership(5, true));
    for packet in registrations(&mut far, NOW) {
        assert_eq!(answers(near, NOW, Transit::arrived(packet, 2)), []);
    }
}

#[test]
fn what_is_too_long_with_a_list_is_not_sent_in_one() {
    // A list of one router takes 48 bytes; a tunnel takes 40 more.
    let hop = Hop::Neighbour { interface: 1, address: at("fd14::b") };
    for (hop, segment, fits) in [
        (hop, 65_487, true),
        (hop, 65_488, false),
        (hop, 65_495, false),
        (hop, 65_535, false),
        (Hop::Plain, 65_447, true),
        (Hop::Plain, 65_448, false),
        (Hop::Plain, 65_495, false),
    ] {
        let mut near = at_source(&[("fd14::b", hop)]);
        register(&mut near, "fd14::b");
        let sent = multicast_of(&vec![0; segment - udp::HEADER]);
        let left = answers(&mut near, NOW, Transit::arrived(sent, 3));
        assert_eq!((left.len(), near.refused(Refusal::Payload)), (fits.into(), (!fits).into()), "{segment}");
    }
}

#[test]
fn a_list_is_as_long_as_fits_the_mtu_beside_the_datagram() {
    let hops = ["fd14::b", "fd14::c"].map(|router| (router, Hop::Plain));
    // Two headers of IPv6, and 32 bytes beside 16 for each router.
    for (segment, packets) in [(1500 - 80 - 64, 1), (1500 - 80 - 63, 2), (1500, 2)] {
        let hop = Hop::Neighbour { interface: 1, address: at("fd14::b") };
        let mut near = at_source(&hops.map(|(router, _)| (router, hop)));
        hops.iter().for_each(|(router, _)| register(&mut near, router));
        let sent = multicast_of(&vec![0; segment - udp::HEADER]);
        assert_eq!(answers(&mut near, NOW, Transit::arrived(sent, SOURCE_LINK)).len(), packets, "{segment}");
    }
}

#[test]
fn groups_that_it_does_not_serve_are_left_alone() {
    let table = Table { attached: vec![at(SOURCE)], unserved: vec![at(GROUP)], ..Table::default() };
    let mut router = designated("fd14::a", table);
    router.handle(NOW, Port::Above(1), membership(5, true));
    assert!(router.poll(NOW).is_none() && router.deadline().is_none(), "nothing is registered");
    let arrived = Transit::arrived(multicast(), SOURCE_LINK);
    assert_eq!(answers(&mut router, NOW, arrived), [Left::Plain(multicast())]);
}

#[test]
fn what_no_packet_of_xcast_may_have_does_not_become_one() {
    let mut near = at_source(&[("fd14::b", Hop::Plain)]);
    register(&mut near, "fd14::b");
    // Encapsulating security, and one for experiments.
    for protocol in [50, 253] {
        let mut packet = Buffer::copy_from(PAYLOAD);
        ip::prepend(&mut packet, at(SOURCE).into(), at(GROUP).into(), protocol, 64, 0);
        assert_eq!(answers(&mut near, NOW, Transit::arrived(packet, 3)), []);
    }
    assert_eq!(near.refused(Refusal::Extension), 2);
}

#[test]
fn copies_to_the_group_count_as_all_others() {
    let table = Table { attached: vec![at(SOURCE)], ..Table::default() };
    let config = Config { copies_per_second: 300, ..Config::default() };
    let own = ["fd14::a", "fd14::aa"].map(|own| IpAddr::from(at(own)));
    let mut router = Router::new(config, &own, Box::new(table)).designated(PlusConfig::default());
    router.handle(NOW, Port::Above(1), membership(4, true));
    router.handle(NOW, Port::Above(1), membership(5, true));
    // From a source here, and of Xcast with two addresses of this node.
    let both = ["fd14::a", "fd14::aa"].map(at);
    let xcast = packet(&both, |packet| Packet { stays: true, channel: at(GROUP).into(), ..packet });
    for (step, sent) in [multicast(), xcast].into_iter().enumerate() {
        let (mut made, mut arrived) = (0, 0);
        for millis in 0..1000 {
            let now = NOW + Duration::from_secs(10 * step as u64) + Duration::from_millis(millis);
            router.handle(now, Port::Below(0), Item::Transit(Transit::arrived(sent.clone(), 3)));
            let (groups, others) = to_group(&mut router, now);
            assert!(groups.len() <= 1 && others.is_empty(), "once for a packet");
            made += groups.iter().map(|(interfaces, _)| interfaces.len()).sum::<usize>();
            arrived += 1;
        }
        assert!((300..=300 + 30 + 2).contains(&made), "{made} of {arrived}");
    }
    assert!(router.refused(Refusal::Rate) > 1600);
}

#[test]
fn registrations_end_by_themselves_and_by_a_leave_and_forged_ones_do_not_count() {
    let hops = [("fd14::b", Hop::Plain), ("fd14::c", Hop::Plain)];
    let mut near = at_source(&hops);
    let copies = |near: &mut Router, now| answers(near, now, Transit::arrived(multicast(), 3)).len();
    let mut packets = Vec::new();
    for own in ["fd14::b", "fd14::c"] {
        let mut router = designated(own, Table::default());
        router.handle(NOW, Port::Above(1), membership(5, true));
        packets.extend(registrations(&mut router, NOW));
        router.handle(NOW, Port::Above(1), membership(5, false));
        packets.extend(registrations(&mut router, NOW));
    }
    let [b, leave_b, c, _] = &packets[..] else { panic!() };
    // From another router than it names: it passes, and changes nothing.
    let mut forged = b.clone();
    forged[8..24].copy_from_slice(&at("fd14::66").octets());
    forged[46..48].fill(0);
    let sum =
        hopcast_wire::checksum::transport(at("fd14::66").into(), at(SOURCE).into(), ip::UDP, &forged[40..]);
    forged[46..48].copy_from_slice(&sum.to_be_bytes());
    assert_eq!(answers(&mut near, NOW, Transit::arrived(forged.clone(), 2)), [Left::Plain(forged)]);
    for packet in [b, c] {
        answers(&mut near, NOW, Transit::arrived(packet.clone(), 2));
    }
    assert_eq!(copies(&mut near, NOW), 2);
    answers(&mut near, NOW, Transit::arrived(leave_b.clone(), 2));
    assert_eq!(copies(&mut near, NOW), 1);
    let end = NOW + Duration::from_secs(210);
    assert_eq!(answers(&mut near, end, Transit::arrived(multicast(), 3)), [Left::Plain(multicast())]);
    // A router that no source is attached to hands registrations on, and is no designated one without Xcast+.
    let mut other = designated("fd14::d", Table::default());
    assert_eq!(answers(&mut other, NOW, Transit::arrived(b.clone(), 2)), [Left::Plain(b.clone())]);
}

/// The registration of a group by a router, for so many seconds.
fn registration(router: &str, group: &str, hold: u64) -> Buffer {
    let config = PlusConfig { hold: Duration::from_secs(hold), ..PlusConfig::default() };
    let mut far = Router::new(Config::default(), &[at(router).into()], Box::new(Table::default()));
    far = far.designated(config);
    let (group, source) = (at(group).into(), Some(at(SOURCE).into()));
    far.handle(
        NOW,
        Port::Above(1),
        Item::Membership(Membership { group, source, interface: Some(5), joined: true }),
    );
    match far.poll(NOW) {
        Some((Port::Below(0), Item::Packet(packet))) => packet,
        other => panic!("{other:?}"),
    }
}

#[test]
fn strangers_register_nothing_and_routers_no_more_than_their_share_for_no_longer_than_the_hold_time() {
    let table = Table {
        hops: [(at("fd14::b"), Hop::Plain), (at("fd14::66"), Hop::Plain)].into(),
        routers: vec![at("fd14::b")],
        attached: vec![at(SOURCE)],
        ..Table::default()
    };
    let plus = PlusConfig { max_channels_of_source: 3, ..PlusConfig::default() };
    let mut near = Router::new(Config::default(), &[at("fd14::a").into()], Box::new(table)).designated(plus);
    let mut register = |router, group: &str, hold| {
        let before = near.counters.registrations;
        assert_eq!(answers(&mut near, NOW, Transit::arrived(registration(router, group, hold), 2)), []);
        near.counters.registrations > before
    };
    assert!(!register("fd14::66", GROUP, 210), "a stranger");
    assert!(register("fd14::b", GROUP, 65_535));
    let groups: Vec<String> = (1..=4).map(|number| format!("ff3e::{number}")).collect();
    assert_eq!(groups.iter().filter(|group| register("fd14::b", group, 210)).count(), 2, "of three channels");
    assert!(register("fd14::b", GROUP, 65_535), "one that is there has room");
    assert_eq!(near.counters.registrations_refused, 3);
    let hold = |seconds, near: &mut Router| {
        let left = answers(near, NOW + Duration::from_secs(seconds), Transit::arrived(multicast(), 3));
        matches!(&left[..], [Left::Own(_)])
    };
    assert!(hold(209, &mut near) && !hold(210, &mut near));
    let later = NOW + Duration::from_secs(210);
    let another = registration("fd14::b", "ff3e::4", 210);
    answers(&mut near, later, Transit::arrived(another, 2));
    assert_eq!(near.counters.registrations_refused, 3, "what has ended makes room");
}

#[test]
fn lists_and_state_are_bounded() {
    let plus = PlusConfig { max_channels: 2, max_list: 3, ..PlusConfig::default() };
    let hop = Hop::Neighbour { interface: 1, address: at("fd14::b") };
    let routers: Vec<Ipv6Addr> = (0..8).map(|number| at(&format!("fd14::b:{number}"))).collect();
    let table = Table {
        hops: routers.iter().map(|router| (*router, hop)).collect(),
        routers: routers.clone(),
        attached: vec![at(SOURCE)],
        ..Table::default()
    };
    let mut near = Router::new(Config::default(), &[at("fd14::a").into()], Box::new(table)).designated(plus);
    for router in &routers {
        let mut far =
            Router::new(Config::default(), &[(*router).into()], Box::new(Table::default())).designated(plus);
        far.handle(NOW, Port::Above(1), membership(5, true));
        let packet = registrations(&mut far, NOW).remove(0);
        answers(&mut near, NOW, Transit::arrived(packet, 2));
    }
    let left = answers(&mut near, NOW, Transit::arrived(multicast(), 3));
    let lists: Vec<usize> = left
        .iter()
        .map(|left| match left {
            Left::Neighbour(_, _, packet) => Packet::parse(packet).unwrap().list.len(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(lists, [3, 3, 2]);
}

#[test]
fn members_of_more_channels_than_there_is_room_for_wait_until_there_is() {
    let plus = PlusConfig { max_channels: 2, ..PlusConfig::default() };
    let mut far =
        Router::new(Config::default(), &[at("fd14::b").into()], Box::new(Table::default())).designated(plus);
    let mut change = |number: u16, joined| {
        let group = at(&format!("ff3e::{number:x}")).into();
        let change = Membership { group, source: Some(at(SOURCE).into()), interface: Some(1), joined };
        far.handle(NOW, Port::Above(1), Item::Membership(change));
        if far.deadline() == Some(NOW) {
            far.wake(NOW);
        }
        let packets = std::iter::from_fn(|| far.poll(NOW)).map(|(_, item)| match item {
            Item::Packet(packet) => (u16::from(packet[71]), packet[52..54] != [0, 0]),
            other => panic!("{other:?}"),
        });
        packets.collect::<Vec<_>>()
    };
    for number in 0..5 {
        let registered = if number < 2 { vec![(number, true)] } else { vec![] };
        assert_eq!(change(number, true), registered);
    }
    assert_eq!(change(2, false), [], "of those that wait");
    assert_eq!(change(0, false), [(0, false), (3, true)]);
    assert_eq!(change(1, false), [(1, false), (4, true)]);
    assert_eq!(change(3, false), [(3, false)]);
}
