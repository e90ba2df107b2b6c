//! The revision: whatever parts of it are used, each receiver has each datagram once.

use hopcast_wire::ip;
use proptest::prelude::*;

use super::network::bring;
use super::*;
use crate::meadcast::Key;
use crate::meadcast::router::tests::net::{Net, SENDER};
use crate::meadcast::router::{self, Router};
use crate::meadcast::wire::short;
use crate::testing::{receiver_address, router_address, trees};

const KEY: Key = Key::new([7; 16]);

/// Any settings of the revision.
fn configs() -> impl Strategy<Value = Config> {
    let parts = (any::<[bool; 6]>(), 2_usize..40, 0_usize..300, 0_u8..3);
    parts.prop_map(|([hold, next_hop, short_lists, nonce, has_key, by_bytes], max, list_bytes, merge)| {
        Config {
            hold,
            next_hop,
            short_lists,
            nonce,
            max,
            merge,
            min_leaves: 1,
            list_bytes: (list_bytes > 40).then_some(list_bytes),
            key: has_key.then_some(KEY),
            grouping: if by_bytes { Grouping::LeastBytes } else { Grouping::DepthFirst },
            ..Config::default()
        }
    })
}

/// A network whose routers have the key, and a sender that has made its first discovery.
fn begun(tree: &[(usize, bool)], places: &[usize], config: Config) -> (Net, Sender, Vec<Ipv6Addr>) {
    let receivers: Vec<Ipv6Addr> = (0..places.len()).map(receiver_address).collect();
    let routers: Vec<_> = tree
        .iter()
        .enumerate()
        .map(|(number, &(above, speaks))| (above, router_address(number), speaks))
        .collect();
    let settings = router::Config { key: Some(KEY), ..router::Config::default() };
    let mut net = Net::with(settings, &routers, receivers.iter().copied().zip(places.iter().copied()));
    let mut sender = Sender::new(config, at(SENDER), at(GROUP).into(), receivers.clone(), random());
    while sender.groups().packets.is_empty() && sender.tree().routers() == 0 {
        let Some(now) = sender.deadline().filter(|now| *now < Instant::ZERO + Duration::from_secs(8)) else {
            break;
        };
        sender.wake(now);
        bring(&mut net, &mut sender, now);
    }
    net.received.clear();
    (net, sender, receivers)
}

fn film(net: &mut Net, sender: &mut Sender) {
    let now = Instant::ZERO + Duration::from_secs(8);
    sender.handle(now, Port::Above(0), datagram(Buffer::copy_from(b"film")));
    bring(net, sender, now);
}

fn places(drawn: &[prop::sample::Index], tree: &[(usize, bool)]) -> Vec<usize> {
    drawn.iter().map(|place| place.index(tree.len())).collect()
}

/// Whether a packet has a list.
fn has_list(packet: &Buffer) -> bool {
    ip::parse(packet).is_ok_and(|header| header.header_len != ip::V6_HEADER)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn each_receiver_has_each_datagram_once_with_any_parts_of_the_revision(
        tree in trees(),
        drawn in proptest::collection::vec(any::<prop::sample::Index>(), 1..40),
        config in configs(),
    ) {
        let places = places(&drawn, &tree);
        let (mut net, mut sender, receivers) = begun(&tree, &places, config);
        film(&mut net, &mut sender);
        prop_assert!(net.each_has_one(&receivers, b"film"), "{}{}{:?}", sender.tree(), sender.groups(), net.received);
        prop_assert_eq!(crate::testing::counter(&sender, "refused_forged"), 0);
        let longest = sender.groups().packets.iter().map(|group| group.list.len()).max().unwrap_or(0);
        prop_assert!(longest <= config.max.max(2));
    }

    #[test]
    fn routers_that_no_list_names_may_stop_and_each_receiver_has_one_copy_all_the_same(
        tree in trees(),
        drawn in proptest::collection::vec(any::<prop::sample::Index>(), 1..40),
        config in configs(),
        stops: u16,
    ) {
        let places = places(&drawn, &tree);
        let (mut net, mut sender, receivers) = begun(&tree, &places, config);
        let listed: Vec<[u8; 16]> = sender.groups().packets.iter().flat_map(|group| group.list.clone()).collect();
        for (number, router) in net.routers.iter_mut().enumerate() {
            if stops >> number & 1 == 1 && !listed.contains(&router_address(number).octets()) {
                *router = None;
            }
        }
        film(&mut net, &mut sender);
        prop_assert!(net.each_has_one(&receivers, b"film"), "{}{}{:?}", sender.tree(), sender.groups(), net.received);
    }

    #[test]
    fn no_list_comes_to_a_receiver_by_the_next_hop_whatever_routers_stop(
        tree in trees(),
        drawn in proptest::collection::vec(any::<prop::sample::Index>(), 1..40),
        config in configs(),
        stops: u16,
    ) {
        let places = places(&drawn, &tree);
        let (mut net, mut sender, _) = begun(&tree, &places, Config { next_hop: true, ..config });
        for (number, router) in net.routers.iter_mut().enumerate() {
            if stops >> number & 1 == 1 {
                *router = None;
            }
        }
        film(&mut net, &mut sender);
        for (address, packets) in &net.received {
            prop_assert!(!net.receivers.contains_key(address) || !packets.iter().any(has_list), "{}", address);
        }
    }

    #[test]
    fn short_lists_on_hold_cross_each_link_once_if_one_packet_has_all(
        tree in trees(),
        drawn in proptest::collection::vec(any::<prop::sample::Index>(), 2..30),
        next_hop: bool,
    ) {
        let tree: Vec<(usize, bool)> = tree.into_iter().map(|(above, _)| (above, true)).collect();
        let places = places(&drawn, &tree);
        let config = Config {
            hold: true, next_hop, short_lists: true, max: 128, list_bytes: Some(2048),
            grouping: Grouping::LeastBytes, ..Config::default()
        };
        let (mut net, mut sender, receivers) = begun(&tree, &places, config);
        prop_assert_eq!(sender.groups().packets.len(), 1);
        let before = net.crossings;
        film(&mut net, &mut sender);
        prop_assert!(net.each_has_one(&receivers, b"film"));
        let used: std::collections::BTreeSet<usize> = places.iter().flat_map(|&place| net.path(place)).collect();
        prop_assert_eq!(net.crossings - before, used.len(), "{}", sender.groups());
    }
}

/// R0 in front of R1, which is in front of R2 and R3, which have two receivers each.
const FORK: [(usize, bool); 4] = [(0, true), (0, true), (1, true), (1, true)];

#[test]
fn a_packet_on_hold_is_copied_where_paths_part() {
    let fork = |hold| {
        let config = Config { hold, ..Config::default() };
        let (mut net, mut sender, receivers) = begun(&FORK, &[2, 2, 3, 3], config);
        let before = net.crossings;
        film(&mut net, &mut sender);
        assert!(net.each_has_one(&receivers, b"film"));
        net.crossings - before
    };
    // Once to R0, and twice from there on; or once to R1.
    assert_eq!((fork(false), fork(true)), (5, 4));
}

#[test]
fn a_router_that_has_stopped_hands_its_receiver_the_list_unless_packets_go_to_the_next_hop() {
    for (next_hop, lists) in [(false, 1), (true, 0)] {
        let (mut net, mut sender, _) = begun(&FORK, &[2, 2, 3, 3], Config { next_hop, ..Config::default() });
        net.routers[2] = None;
        film(&mut net, &mut sender);
        let with_list = |at: usize| {
            net.received.get(&receiver_address(at)).into_iter().flatten().filter(|it| has_list(it))
        };
        assert_eq!((0..4).flat_map(with_list).count(), lists);
        assert_eq!((2..4).filter(|&at| net.received.contains_key(&receiver_address(at))).count(), 2);
    }
}

#[test]
fn a_short_list_loses_what_was_served() {
    let config = Config {
        short_lists: true,
        hold: true,
        max: 32,
        grouping: Grouping::LeastBytes,
        ..Config::default()
    };
    let (net, mut sender, _) = begun(&FORK, &[1, 1, 2, 2, 3, 3], config);
    sender.handle(
        Instant::ZERO + Duration::from_secs(8),
        Port::Above(0),
        datagram(Buffer::copy_from(b"film")),
    );
    let Some((_, Item::Packet(mut packet))) = sender.poll(Instant::ZERO) else { panic!("a packet") };
    let mut list = short::List::default();
    let mut lens = Vec::new();
    // R0 passes it on whole, and R1 serves its own and makes a copy for each of the others.
    for (number, copies, plain) in [(0, 1, 0), (1, 2, 2), (2, 0, 2)] {
        let config = router::Config::default();
        let mut router = Router::new(config, &[router_address(number).into()]);
        lens.push(packet.len());
        router.handle(Instant::ZERO, Port::Below(0), Item::Transit(Transit::arrived(packet, 1)));
        let sent = std::iter::from_fn(|| router.poll(Instant::ZERO)).map(|(_, item)| match item {
            Item::Transit(transit) => transit.packet,
            other => panic!("{other:?}"),
        });
        let (lists, others): (Vec<_>, Vec<_>) = sent.partition(short_is);
        assert_eq!((lists.len(), others.len()), (copies, plain), "R{number}");
        packet = lists.into_iter().next().unwrap_or_default();
        if copies > 0 {
            assert!(short::Packet::parse(&packet, &mut list).is_ok());
        }
    }
    assert_eq!(
        list.addresses,
        [router_address(2), receiver_address(2), receiver_address(3)].map(|it| it.octets())
    );
    assert!(lens[0] == lens[1] && lens[2] < lens[1], "{lens:?}");
    drop(net);
}

fn short_is(packet: &Buffer) -> bool {
    short::is_short(packet)
}
