//! Routes that are written in the file, which win over shortest paths.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_host::{Prefix, PrefixTable};

use super::NodeId;
use super::addresses::addresses_of;

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
    /// Both addresses of a node.
    Node(NodeId),
    /// The addresses with these first bits.
    Prefix(Prefix),
}

impl Destinations {
    fn prefixes(self) -> [Option<Prefix>; 2] {
        match self {
            Self::Default => {
                let all = [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)];
                all.map(|first| Prefix::new(first, 0))
            }
            Self::Node(node) => addresses_of(node).map(|address| Some(Prefix::of(address))),
            Self::Prefix(prefix) => [Some(prefix), None],
        }
    }
}

/// The next hop of a static route: the number of the interface, and the neighbour.
pub(super) type Gateway = (u32, NodeId);

/// The static routes of all nodes.
#[derive(Debug, Default)]
pub(super) struct StaticTable(BTreeMap<NodeId, PrefixTable<Gateway>>);

impl StaticTable {
    pub(super) fn add(&mut self, node: NodeId, to: Destinations, gateway: Gateway) {
        let routes = self.0.entry(node).or_default();
        let prefixes = to.prefixes().into_iter().flatten();
        prefixes.for_each(|prefix| routes.insert_new(prefix, gateway));
    }

    /// The route of the longest prefix that an address has.
    pub(super) fn find(&self, node: NodeId, address: IpAddr) -> Option<Gateway> {
        self.0.get(&node)?.find(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(text: &str, length: u8) -> Option<Prefix> {
        Prefix::new(text.parse().unwrap(), length)
    }

    #[test]
    fn the_longest_prefix_wins_and_versions_keep_apart() {
        let mut table = StaticTable::default();
        table.add(0, Destinations::Default, (0, 7));
        table.add(0, Destinations::Node(4), (1, 8));
        table.add(0, Destinations::Prefix(prefix("10.0.0.4", 30).unwrap()), (2, 9));
        let find = |text: &str| table.find(0, text.parse().unwrap()).map(|(_, via)| via);
        assert_eq!((find("10.0.0.5"), find("10.0.0.6"), find("10.0.0.8")), (Some(8), Some(9), Some(7)));
        assert_eq!((find("fd00::5"), find("fd00::6")), (Some(8), Some(7)));
        assert_eq!(table.find(1, "10.0.0.5".parse().unwrap()), None);
    }
}
