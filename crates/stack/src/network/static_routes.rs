//! Routes that are written in the file, which win over shortest paths.

use core::fmt;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

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

/// The addresses of one version that have the same first bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Prefix {
    first: IpAddr,
    length: u8,
}

impl Prefix {
    /// The addresses that agree with `first` in `length` bits, all others of which must be zero; `None` if they are
    /// not, or an address has not as many.
    pub fn new(first: IpAddr, length: u8) -> Option<Self> {
        let prefix = Self { first, length };
        (length <= bits(first).1 && masked(first, length) == bits(first).0).then_some(prefix)
    }

    /// Whether an address is one of them.
    pub fn contains(&self, address: IpAddr) -> bool {
        address.is_ipv4() == self.first.is_ipv4() && masked(address, self.length) == bits(self.first).0
    }
}

impl fmt::Display for Prefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.first, self.length)
    }
}

/// The bits of an address, from the left of 128, and their number.
fn bits(address: IpAddr) -> (u128, u8) {
    match address {
        IpAddr::V4(address) => (u128::from(address.to_bits()) << 96, 32),
        IpAddr::V6(address) => (address.to_bits(), 128),
    }
}

fn masked(address: IpAddr, length: u8) -> u128 {
    bits(address).0 & u128::MAX.checked_shl(128 - u32::from(length)).unwrap_or(0)
}

impl Destinations {
    fn prefixes(self) -> [Option<Prefix>; 2] {
        let whole = |first: IpAddr| Some(Prefix { first, length: bits(first).1 });
        match self {
            Self::Default => [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V6(Ipv6Addr::UNSPECIFIED)]
                .map(|first| Some(Prefix { first, length: 0 })),
            Self::Node(node) => addresses_of(node).map(whole),
            Self::Prefix(prefix) => [Some(prefix), None],
        }
    }
}

/// The next hop of a static route: the number of the interface, and the neighbour.
pub(super) type Gateway = (u32, NodeId);

/// The static routes of all nodes.
#[derive(Debug, Default)]
pub(super) struct StaticTable {
    /// For each node, its routes by their length, the longest first.
    routes: BTreeMap<NodeId, Vec<(Prefix, Gateway)>>,
}

impl StaticTable {
    pub(super) fn add(&mut self, node: NodeId, to: Destinations, gateway: Gateway) {
        let routes = self.routes.entry(node).or_default();
        routes.extend(to.prefixes().into_iter().flatten().map(|prefix| (prefix, gateway)));
        routes.sort_by_key(|(prefix, _)| std::cmp::Reverse(prefix.length));
    }

    /// The route of the longest prefix that an address has.
    pub(super) fn find(&self, node: NodeId, address: IpAddr) -> Option<Gateway> {
        let routes = self.routes.get(&node)?;
        routes.iter().find(|(prefix, _)| prefix.contains(address)).map(|&(_, gateway)| gateway)
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

    #[test]
    fn a_prefix_has_no_bits_beyond_its_length() {
        assert_eq!(prefix("10.0.0.5", 30), None);
        assert_eq!((prefix("10.0.0.0", 33), prefix("fd00::", 129)), (None, None));
        assert_eq!(prefix("fd00::", 16).unwrap().to_string(), "fd00::/16");
        assert!(prefix("::", 0).unwrap().contains("fd00::1".parse().unwrap()));
        assert!(!prefix("0.0.0.0", 0).unwrap().contains("fd00::1".parse().unwrap()));
    }
}
