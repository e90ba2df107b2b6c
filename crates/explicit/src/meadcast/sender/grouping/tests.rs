//! Grouping by bytes beside all groupings that there are, on links that are counted.

use std::collections::BTreeMap;

use hopcast_core::Buffer;
use hopcast_wire::ip;
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use proptest::test_runner::TestRunner;

use super::super::machine::{Form, prepend_list};
use super::super::tree::Path;
use super::*;
use crate::header;
use crate::meadcast::router::tests::net::{Net, SENDER};
use crate::meadcast::wire::tests::segment;
use crate::testing::{at, receiver_address, router_address};

/// Routers that all take part, each with the one above it, and the routers of receivers.
#[derive(Clone, Debug)]
struct Network {
    parents: Vec<usize>,
    receivers: Vec<usize>,
}

impl Network {
    fn tree(&self) -> Tree {
        let paths: BTreeMap<Ipv6Addr, Path> = self
            .receivers
            .iter()
            .enumerate()
            .map(|(number, &router)| {
                let path = crate::testing::path(&self.parents, router);
                (receiver_address(number), (1..).zip(path.into_iter().map(router_address)).collect())
            })
            .collect();
        Tree::new(&self.addresses(), &paths)
    }

    fn addresses(&self) -> Vec<Ipv6Addr> {
        (0..self.receivers.len()).map(receiver_address).collect()
    }

    /// Bytes on the links of routers, of a datagram that comes to each receiver once.
    fn bytes(&self, config: &Config, groups: &Groups) -> usize {
        let routers: Vec<(usize, bool)> = self.parents.iter().map(|&parent| (parent, true)).collect();
        let mut net = Net::new(&routers, &self.receivers);
        let payload = vec![7; config.payload];
        let form = Form { traffic: 0, hop_limit: 64, protocol: ip::UDP };
        for &receiver in &groups.unicast {
            let mut packet = segment(at(SENDER), receiver, 5001, &payload);
            header::prepend(&mut packet, [at(SENDER), receiver], ip::UDP, 0, 64);
            net.send(packet);
        }
        for group in &groups.packets {
            let to = group.destination(config.next_hop).unwrap();
            let mut packet: Buffer = segment(at(SENDER), to, 5001, &payload);
            prepend_list(&mut packet, group, config, [at(SENDER), to], form);
            net.send(packet);
        }
        assert!(net.each_has_one(&self.addresses(), &payload), "{groups}");
        net.bytes
    }

    /// The fewest bytes of any grouping. Receivers at one router are together.
    fn least(&self, config: &Config) -> usize {
        let tree = self.tree();
        let blocks: Vec<usize> =
            (1..tree.places.len()).filter(|&place| !tree.places[place].leaves.is_empty()).collect();
        let mut least = usize::MAX;
        let mut packets = Vec::new();
        self.assign(config, &tree, &blocks, &mut packets, &mut least);
        least
    }

    /// Puts the first block into each packet that there is, and into one of its own, behind each router on its path, or
    /// serves it by unicast.
    fn assign(
        &self,
        config: &Config,
        tree: &Tree,
        blocks: &[usize],
        packets: &mut Vec<Vec<Section>>,
        least: &mut usize,
    ) {
        let Some((&block, rest)) = blocks.split_first() else {
            if let Some(groups) = self.groups(config, tree, packets) {
                *least = (*least).min(self.bytes(config, &groups));
            }
            return;
        };
        self.assign(config, tree, rest, packets, least);
        let receivers = &tree.places[block].leaves;
        let mut head = block;
        while head != Tree::ROOT {
            for packet in 0..=packets.len() {
                if packet == packets.len() {
                    packets.push(Vec::new());
                }
                packets[packet].push(Section { place: head, receivers: receivers.clone() });
                self.assign(config, tree, rest, packets, least);
                packets[packet].pop();
                if packets[packet].is_empty() {
                    packets.pop();
                }
            }
            head = tree.places[head].parent;
        }
    }

    /// The groups of some packets, if these are not too long.
    fn groups(&self, config: &Config, tree: &Tree, packets: &[Vec<Section>]) -> Option<Groups> {
        let mut groups = Groups::default();
        for sections in packets {
            let mut together: BTreeMap<usize, Vec<Ipv6Addr>> = BTreeMap::new();
            for Section { place, receivers } in sections {
                together.entry(*place).or_default().extend(receivers);
            }
            let mut sections: Vec<Section> =
                together.into_iter().map(|(place, receivers)| Section { place, receivers }).collect();
            let group = Group::new(tree, config, &mut sections);
            let bytes = short::overhead(&at(SENDER).octets(), group.sections());
            if group.list.len() > config.max() || config.short_lists && bytes > config.longest_header() {
                return None;
            }
            groups.packets.push(group);
        }
        let grouped: BTreeSet<Ipv6Addr> = groups.packets.iter().flat_map(Group::receivers).collect();
        groups.unicast =
            self.addresses().into_iter().filter(|receiver| !grouped.contains(receiver)).collect();
        Some(groups)
    }
}

/// Up to 6 routers, of which 4 have receivers.
fn networks() -> impl Strategy<Value = Network> {
    let index = any::<prop::sample::Index>;
    let receivers = proptest::collection::vec((index(), 1_usize..4), 1..=4);
    (proptest::collection::vec(index(), 1..=6), receivers).prop_map(|(above, receivers)| {
        let parents: Vec<usize> = above
            .iter()
            .enumerate()
            .map(|(number, index)| if number == 0 { 0 } else { index.index(number) })
            .collect();
        let at = receivers.iter().flat_map(|(router, count)| vec![router.index(parents.len()); *count]);
        Network { receivers: at.collect(), parents }
    })
}

/// Sections that no list may have twice: one of all receivers of a router does not fit, and two of them would.
#[test]
fn a_router_whose_receivers_are_in_two_packets_is_in_no_list_twice() {
    let router = at("fd14:0:0:5::1");
    let mut receivers: Vec<Ipv6Addr> = (2..9).map(|number| at(&format!("fd14:0:0:5::{number}"))).collect();
    receivers.push(at("fd14:0:0:5:8c21:77ff:fe3b:9d01"));
    let paths = receivers.iter().map(|&receiver| (receiver, [(1, router)].into_iter().collect())).collect();
    let config = Config {
        short_lists: true,
        grouping: Grouping::LeastBytes,
        list_bytes: Some(64),
        ..Config::default()
    };
    let tree = Tree::new(&receivers, &paths);
    let groups = Groups::new(&tree, &config, at("fd14::1"), &receivers);
    assert_eq!(groups.packets.len(), 1, "the one with the other identifier goes by unicast");
    assert_eq!(groups.packets[0].sections().count(), 1);
    assert_eq!(groups.unicast.len(), 1);
}

#[test]
fn few_bytes_are_close_to_the_fewest_of_any_grouping_that_keeps_receivers_of_a_router_together() {
    // The same networks each time, of which the worst is known.
    let mut runner = TestRunner::deterministic();
    let cases = (networks(), 4_usize..12, any::<bool>(), any::<bool>(), prop_oneof![Just(300), Just(1000)]);
    let (mut worst, mut sum) = (1.0_f64, 0.0);
    const CASES: u32 = 300;
    for _ in 0..CASES {
        let (network, max, short_lists, hold, payload) = cases.new_tree(&mut runner).unwrap().current();
        let config =
            Config { max, short_lists, hold, payload, grouping: Grouping::LeastBytes, ..Config::default() };
        let groups = Groups::new(&network.tree(), &config, at(SENDER), &network.addresses());
        let ratio = network.bytes(&config, &groups) as f64 / network.least(&config) as f64;
        (worst, sum) = (worst.max(ratio), sum + ratio);
    }
    let mean = sum / f64::from(CASES);
    // Below 1, since it also divides the receivers of a router.
    assert!(mean <= 0.96, "{mean}");
    // Where each router takes a place in the list, and all receivers would fit if the first of them served them.
    assert!(worst <= 1.21, "{worst}");
}
