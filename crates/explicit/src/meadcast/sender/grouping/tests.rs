//! Grouping by bytes beside all groupings that there are, on links that are counted.

use std::collections::BTreeMap;

use hopcast_core::Buffer;
use hopcast_wire::ip;
use proptest::prelude::*;

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

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, max_shrink_iters: 50, ..ProptestConfig::default() })]

    #[test]
    fn few_bytes_are_close_to_the_fewest_that_any_grouping_has(
        network in networks(),
        (max, short_lists, hold, payload) in (4_usize..12, any::<bool>(), any::<bool>(), prop_oneof![Just(300), Just(1000)]),
    ) {
        let config = Config { max, short_lists, hold, payload, grouping: Grouping::LeastBytes, ..Config::default() };
        let groups = Groups::new(&network.tree(), &config, at(SENDER), &network.addresses());
        let (found, least) = (network.bytes(&config, &groups), network.least(&config));
        prop_assert!(found as f64 <= 1.15 * least as f64, "{} of {}, {:?} {:?}\n{}", found, least, network, config, groups);
    }
}
