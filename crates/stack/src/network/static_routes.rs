//! Routes that are written in the file, which win over shortest paths.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_host::{Prefix, PrefixTable};

use super::NodeId;
use super::address_plan::AddressPlan;
use super::shortest_paths::Step;

/// A route that a node has whatever the shortest paths are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StaticRoute {
    /// The node.
    pub node: NodeId,
    /// The destinations.
    pub to: Destinations,
    /// The next hop, a neighbour.
    pub via: NodeId,
}

/// The destinations of a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Destinations {
    /// Everything, of both versions.
    Default,
    /// All addresses of a node.
    Node(NodeId),
    /// The addresses with these first bits.
    Prefix(Prefix),
}

impl Destinations {
    pub(super) fn prefixes(self, addresses: &AddressPlan) -> Vec<Prefix> {
        match self {
            Self::Default => {
                let all = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
                all.into_iter().filter_map(|first| Prefix::new(first, 0)).collect()
            }
            Self::Node(node) => addresses.all(node).into_iter().map(Prefix::of).collect(),
            Self::Prefix(prefix) => vec![prefix],
        }
    }
}

/// The static routes of all nodes, each with the step to its next hop.
#[derive(Debug, Default)]
pub(super) struct StaticTable(BTreeMap<NodeId, PrefixTable<Step>>);

impl StaticTable {
    pub(super) fn add(&mut self, node: NodeId, to: &[Prefix], step: Step) {
        let routes = self.0.entry(node).or_default();
        to.iter().for_each(|&prefix| routes.insert_new(prefix, step));
    }

    /// The route of the longest prefix that an address has, if it has at least `min` bits.
    pub(super) fn find(&self, node: NodeId, address: IpAddr, min: u8) -> Option<Step> {
        self.0.get(&node)?.find_within(address, min, u8::MAX).map(|(_, step)| step)
    }

    /// The route of the longest prefix that has all addresses of another.
    pub(super) fn covering(&self, node: NodeId, prefix: Prefix) -> Option<Step> {
        self.0.get(&node)?.find_within(prefix.first(), 0, prefix.length()).map(|(_, step)| step)
    }

    /// The routes of parts of a prefix.
    pub(super) fn within(&self, node: NodeId, prefix: Prefix) -> Vec<(Prefix, Step)> {
        let routes = self.0.get(&node).into_iter().flat_map(PrefixTable::iter);
        let is_part = |part: &Prefix| part.length() > prefix.length() && prefix.contains(part.first());
        routes.filter(|(part, _)| is_part(part)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str, length: u8) -> Prefix {
        Prefix::new(text.parse().unwrap(), length).unwrap()
    }

    fn step(number: u32) -> Step {
        Step { from: 0, to: number }
    }

    #[test]
    fn the_longest_prefix_wins_and_versions_keep_apart() {
        let (mut table, addresses) = (StaticTable::default(), AddressPlan::default());
        table.add(0, &Destinations::Default.prefixes(&addresses), step(7));
        table.add(0, &Destinations::Node(4).prefixes(&addresses), step(8));
        table.add(0, &Destinations::Prefix(prefix("10.0.0.4", 30)).prefixes(&addresses), step(9));
        let find = |text: &str| table.find(0, text.parse().unwrap(), 0).map(|step| step.to);
        assert_eq!((find("10.0.0.5"), find("10.0.0.6"), find("10.0.0.8")), (Some(8), Some(9), Some(7)));
        assert_eq!((find("fd00::5"), find("fd00::6")), (Some(8), Some(7)));
        assert_eq!(table.find(1, "10.0.0.5".parse().unwrap(), 0), None);
    }

    #[test]
    fn a_prefix_has_routes_that_cover_it_and_routes_of_its_parts() {
        let mut table = StaticTable::default();
        for (number, (first, length)) in
            [("10.7.0.0", 16), ("10.7.0.0", 24), ("10.7.0.8", 29)].into_iter().enumerate()
        {
            table.add(0, &[prefix(first, length)], step(number as u32));
        }
        let lan = prefix("10.7.0.0", 24);
        assert_eq!(table.covering(0, lan), Some(step(1)));
        assert_eq!(table.covering(0, prefix("10.7.1.0", 24)), Some(step(0)));
        assert_eq!(table.within(0, lan), [(prefix("10.7.0.8", 29), step(2))]);
        assert_eq!(table.find(0, "10.7.0.9".parse().unwrap(), 25), Some(step(2)));
        assert_eq!(table.find(0, "10.7.0.1".parse().unwrap(), 25), None);
    }
}
