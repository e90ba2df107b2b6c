//! A sender with routers: what it finds is the network's tree, and its data comes to each receiver once.

use proptest::prelude::*;

use super::*;
use crate::meadcast::router::tests::net::{Net, SENDER};
use crate::testing::{receiver_address, trees};

pub(super) fn bring(net: &mut Net, sender: &mut Sender, now: Instant) {
    while let Some((port, item)) = sender.poll(now) {
        match (port, item) {
            (Port::Below(1), Item::Packet(packet)) => net.send(packet),
            other => panic!("{other:?}"),
        }
        for packet in std::mem::take(&mut net.at_sender) {
            sender.handle(now, Port::Below(1), Item::Packet(packet));
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn each_receiver_has_each_datagram_once_before_and_after_discovery_and_while_routers_stop_and_start(
        tree in trees(),
        places in proptest::collection::vec(any::<prop::sample::Index>(), 1..40),
        (max, merge, min_leaves, split) in (2_usize..=32, 0_u8..4, 0_usize..4, any::<bool>()),
    ) {
        let places: Vec<usize> = places.iter().map(|place| place.index(tree.len())).collect();
        let mut net = Net::new(&tree, &places);
        let receivers: Vec<Ipv6Addr> = (0..places.len()).map(receiver_address).collect();
        let config = Config { max, merge, min_leaves, split, ..Config::default() };
        let mut sender = Sender::new(config, at(SENDER), at(GROUP).into(), receivers.clone(), random());
        let mut crossed = Vec::new();
        for step in 0..3_u64 {
            // Data before the first discovery, behind it, and behind the second, for which all routers are off.
            let now = Instant::ZERO + Duration::from_secs(4 + 7 * step);
            while let Some(at) = sender.deadline().filter(|at| *at <= now) {
                sender.wake(at);
                bring(&mut net, &mut sender, at);
            }
            net.received.clear();
            let before = net.crossings;
            sender.handle(now, Port::Above(0), datagram(Buffer::copy_from(b"film")));
            bring(&mut net, &mut sender, now);
            prop_assert!(net.each_has_one(&receivers, b"film"), "{}{}{:?}", sender.tree(), sender.groups(), net.received);
            crossed.push(net.crossings - before);
            if step == 1 {
                net.routers.iter_mut().for_each(|router| *router = None);
            }
        }
        prop_assert!(crossed[1] <= crossed[0], "{:?}", crossed);
        prop_assert_eq!(crossed[2], crossed[0], "all by unicast again");
    }
}
