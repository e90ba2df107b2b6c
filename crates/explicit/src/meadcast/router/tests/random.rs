use proptest::prelude::*;

use super::net::{Net, SENDER};
use super::*;
use crate::meadcast::wire::MAX_LIST;
use crate::testing::{receiver_address, router_address, trees};

/// Sections of a list, each a router with its receivers, as a packet from the sender.
fn packet(sections: &[(Ipv6Addr, Vec<Ipv6Addr>)]) -> Buffer {
    let (mut addresses, mut routers) = (Vec::new(), Vec::new());
    for (router, receivers) in sections {
        routers.push(addresses.len());
        addresses.push(router.octets());
        addresses.extend(receivers.iter().map(Ipv6Addr::octets));
    }
    data(&addresses, &routers, None)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn each_receiver_has_one_copy_whatever_the_tree_and_whoever_takes_part(
        tree in trees(),
        at in proptest::collection::vec((any::<prop::sample::Index>(), any::<prop::sample::Index>()), 1..20),
    ) {
        let places: Vec<usize> = at.iter().map(|(place, _)| place.index(tree.len())).collect();
        let mut net = Net::new(&tree, &places);
        // Each receiver has any of the routers on the way to it that speak MEADcast; one without any has no group.
        let mut sections: Vec<(Ipv6Addr, Vec<Ipv6Addr>)> = Vec::new();
        let mut listed = Vec::new();
        for (number, (place, (_, choice))) in places.iter().zip(&at).enumerate() {
            let able: Vec<usize> = net.path(*place).into_iter().filter(|&router| tree[router].1).collect();
            if able.is_empty() {
                continue;
            }
            let router = router_address(able[choice.index(able.len())]);
            listed.push(receiver_address(number));
            match sections.iter_mut().find(|(other, _)| *other == router) {
                Some((_, receivers)) => receivers.push(receiver_address(number)),
                None => sections.push((router, vec![receiver_address(number)])),
            }
        }
        prop_assume!(!listed.is_empty() && sections.len() + listed.len() <= MAX_LIST);
        net.send(packet(&sections));
        prop_assert!(net.each_has_one(&listed, PAYLOAD), "{:?} {:?}", sections, net.received);
    }

    #[test]
    fn a_forged_list_makes_no_more_packets_than_it_has_receivers(
        tree in trees(),
        places in proptest::collection::vec(any::<prop::sample::Index>(), 1..12),
        sections in proptest::collection::vec((0_usize..14, proptest::collection::vec(0_usize..14, 1..6)), 1..6),
        mask: u32,
    ) {
        let places: Vec<usize> = places.iter().map(|place| place.index(tree.len())).collect();
        let mut net = Net::new(&tree, &places);
        // routers that are on another path or do not exist, receivers that do not exist, any maps.
        let mut used = std::collections::BTreeSet::new();
        let sections: Vec<(Ipv6Addr, Vec<Ipv6Addr>)> = sections
            .into_iter()
            .map(|(router, receivers)| (router_address(router), receivers))
            .filter(|(router, _)| used.insert(*router))
            .collect::<Vec<_>>()
            .into_iter()
            .map(|(router, receivers)| {
                let address = |number| if number == 13 { SENDER.parse().unwrap() } else { receiver_address(number) };
                (router, receivers.into_iter().map(address).filter(|receiver| used.insert(*receiver)).collect())
            })
            .filter(|(_, receivers): &(_, Vec<_>)| !receivers.is_empty())
            .collect();
        let count: usize = sections.iter().map(|(_, receivers)| receivers.len()).sum();
        prop_assume!(!sections.is_empty() && sections.len() + count <= MAX_LIST);
        let mut forged = packet(&sections);
        let delivery = u32::from_be_bytes([forged[48], forged[49], forged[50], forged[51]]) & mask;
        prop_assume!(delivery != 0);
        forged[48..52].copy_from_slice(&delivery.to_be_bytes());
        net.send(forged);
        let received: usize = net.received.values().map(Vec::len).sum();
        prop_assert!(received + net.at_sender.len() <= count);
        prop_assert!(net.received.values().all(|got| got.len() == 1), "nobody gets two");
    }
}

#[test]
fn responses_come_from_the_routers_that_take_part_with_their_distances() {
    let mut net = Net::new(&[(0, true), (0, false), (1, true), (2, true)], &[3]);
    net.send(request("fd14::2:1", 0, 64));
    let responses: Vec<_> = net.at_sender.iter().map(|bytes| Packet::parse(bytes).unwrap()).collect();
    let found: Vec<_> = responses.iter().map(|response| (response.source, response.hops)).collect();
    assert_eq!(found, [(router_address(0), 1), (router_address(2), 2), (router_address(3), 3)]);
    let got = &net.received[&receiver_address(0)][0];
    assert_eq!((got.len(), Packet::parse(got).unwrap().hops), (72, 3), "the receiver ignores it");
}
