//! The addresses of all nodes: each has its own, whatever it is attached to, and one in each prefix of the segments
//! that it is on.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopcast_host::{Prefix, PrefixTable};

use super::errors::{PrefixCause, PrefixError};
use super::numbering::{addresses_of, node_of};
use super::segments::{Segment, SegmentId, SegmentPrefix, Segments};
use super::{Network, NodeId, Target};

/// The addresses of all nodes.
///
/// The hosts of a segment are numbered in its prefixes in the order in which the link names them, from the first
/// address that a host may have. A node's first address of a version is that on its first interface with such a prefix,
/// or else its own.
#[derive(Clone, Debug, Default)]
pub struct AddressPlan {
    nodes: usize,
    subnets: PrefixTable<SegmentId>,
    /// For each prefix, the nodes with an address in it, in its order.
    owners: BTreeMap<Prefix, Vec<NodeId>>,
    /// The addresses of nodes in prefixes, in the order of their interfaces.
    of_node: BTreeMap<NodeId, Vec<OnInterface>>,
}

/// A node's address on an interface.
#[derive(Clone, Copy, Debug)]
struct OnInterface {
    interface: u32,
    address: IpAddr,
    prefix: Prefix,
}

/// A prefix of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subnet {
    /// The prefix.
    pub prefix: Prefix,
    /// The segment.
    pub segment: SegmentId,
}

/// Addresses that no host of a segment can have.
const RESERVED: [(&str, u8, &str); 8] = [
    ("0.0.0.0", 8, "is not for hosts (RFC 1122)"),
    ("127.0.0.0", 8, "is for loopback (RFC 1122)"),
    ("224.0.0.0", 3, "is for groups and reserved (RFC 1112)"),
    ("172.16.0.0", 12, "is for the TUN devices of live runs"),
    ("::", 8, "is not for hosts (RFC 4291)"),
    ("fe80::", 10, "is for addresses of one link (RFC 4291)"),
    ("ff00::", 8, "is for groups (RFC 4291)"),
    ("fd01::", 16, "is for the TUN devices of live runs"),
];

impl AddressPlan {
    /// The addresses of a network's nodes on its segments.
    ///
    /// # Errors
    /// The first prefix that its segment cannot have.
    pub fn of(network: Network<'_>, segments: &Segments) -> Result<Self, PrefixError> {
        let mut addresses = Self { nodes: network.nodes.len(), ..Self::default() };
        let mut taken: BTreeMap<IpAddr, (Prefix, SegmentId)> = BTreeMap::new();
        for (number, segment) in segments.iter().enumerate() {
            for &given in &segment.prefixes {
                let error = |cause| PrefixError { given, link: segment.link, cause };
                let prefix = given.prefix;
                addresses.check(given, segment, network).map_err(error)?;
                // None of those that are taken overlap, so only the nearest can.
                let before = taken.range(..=prefix.first()).next_back();
                let near = before.into_iter().chain(taken.range(prefix.first()..).next());
                if let Some((other, of)) = near.map(|(_, near)| *near).find(|near| near.0.overlaps(prefix)) {
                    let segment = segments.get(of).name(network.links);
                    return Err(error(PrefixCause::Overlaps { prefix, other, segment }));
                }
                taken.insert(prefix.first(), (prefix, number));
                addresses.add(prefix, segment, number);
            }
        }
        addresses.of_node.values_mut().for_each(|all| all.sort_by_key(|known| known.interface));
        Ok(addresses)
    }

    fn check(
        &self,
        given: SegmentPrefix,
        segment: &Segment,
        network: Network<'_>,
    ) -> Result<(), PrefixCause> {
        let SegmentPrefix { prefix, .. } = given;
        let (name, hosts) = (segment.name(network.links), segment.ends.len() as u64);
        let same_version =
            |other: &&SegmentPrefix| other.prefix.first().is_ipv4() == prefix.first().is_ipv4();
        let first = segment.prefixes.iter().find(same_version).filter(|first| **first != given);
        if let Some(&SegmentPrefix { prefix: first, .. }) = first {
            return Err(PrefixCause::SecondOfVersion { segment: name, first });
        }
        for (first, length, about) in RESERVED {
            let reserved = first.parse().ok().and_then(|first| Prefix::new(first, length));
            if let Some(reserved) = reserved.filter(|reserved| reserved.overlaps(prefix)) {
                return Err(PrefixCause::Reserved { prefix, reserved, about });
            }
        }
        if capacity(prefix) < hosts {
            return Err(PrefixCause::TooSmall { prefix, room: capacity(prefix), segment: name, hosts });
        }
        // The nodes' own addresses follow each other without a gap.
        let first_own = addresses_of(0)[usize::from(prefix.first().is_ipv6())];
        let first = if prefix.contains(first_own) { Some(0) } else { node_of(prefix.first()) };
        if let Some(node) = first.filter(|&node| node < self.nodes) {
            let own = addresses_of(node)[usize::from(prefix.first().is_ipv6())];
            let node = network.nodes[node].name.clone();
            return Err(PrefixCause::HasOwnAddress { prefix, own, node });
        }
        if !segment.is_meshed && network.links[segment.link].partly_heard().is_some() {
            return Err(PrefixCause::PartlyHeard(name));
        }
        Ok(())
    }

    fn add(&mut self, prefix: Prefix, segment: &Segment, number: SegmentId) {
        self.subnets.insert_new(prefix, number);
        for (place, end) in (first_host(prefix)..).zip(&segment.ends) {
            let Some(address) = prefix.nth(place) else { return };
            let known = OnInterface { interface: end.interface, address, prefix };
            self.of_node.entry(end.node).or_default().push(known);
        }
        self.owners.insert(prefix, segment.ends.iter().map(|end| end.node).collect());
    }

    /// All addresses of a node, the first of each version first.
    pub fn all(&self, node: NodeId) -> Vec<IpAddr> {
        let on_segments = self.of_node.get(&node).into_iter().flatten().map(|known| known.address);
        on_segments.chain(addresses_of(node)).collect()
    }

    /// The address that a node sends from and is sent to, unless something else is said.
    pub fn first(&self, node: NodeId, ipv6: bool) -> IpAddr {
        let known = self.of_node.get(&node).into_iter().flatten();
        let mut of_version = known.filter(|known| known.address.is_ipv6() == ipv6);
        of_version.next().map_or_else(|| addresses_of(node)[usize::from(ipv6)], |known| known.address)
    }

    /// The address by which a node is a neighbour on an interface: that in the segment's prefix, or else its own.
    pub fn on(&self, node: NodeId, interface: u32, ipv6: bool) -> IpAddr {
        let mut known = self.in_prefixes(node, interface).filter(|(address, _)| address.is_ipv6() == ipv6);
        known.next().map_or_else(|| addresses_of(node)[usize::from(ipv6)], |(address, _)| address)
    }

    /// A node's addresses in the prefixes of an interface's segment, each with its prefix.
    pub fn in_prefixes(&self, node: NodeId, interface: u32) -> impl Iterator<Item = (IpAddr, Prefix)> {
        let known = self.of_node.get(&node).into_iter().flatten();
        let known = known.filter(move |known| known.interface == interface);
        known.map(|known| (known.address, known.prefix))
    }

    /// The node with an address.
    pub fn owner(&self, address: IpAddr) -> Option<NodeId> {
        let Some(Subnet { prefix, .. }) = self.subnet(address) else {
            return node_of(address).filter(|&node| node < self.nodes);
        };
        let place = prefix.place(address)?.checked_sub(first_host(prefix))?;
        self.owners.get(&prefix)?.get(usize::try_from(place).ok()?).copied()
    }

    /// The prefix of a segment that an address is in.
    pub fn subnet(&self, address: IpAddr) -> Option<Subnet> {
        let found = self.subnets.find_within(address, 0, u8::MAX);
        found.map(|(prefix, segment)| Subnet { prefix, segment })
    }

    /// The prefixes of all segments.
    pub fn subnets(&self) -> impl Iterator<Item = Subnet> {
        self.subnets.iter().map(|(prefix, segment)| Subnet { prefix, segment })
    }

    /// The address of a prefix that stands for the network or for all of its hosts, and which of these; `None` of any
    /// other.
    pub fn of_no_host(&self, address: IpAddr) -> Option<(Prefix, &'static str)> {
        let Subnet { prefix, .. } = self.subnet(address)?;
        if first_host(prefix) == 0 {
            return None;
        }
        if address == prefix.first() {
            return Some((prefix, if address.is_ipv4() { "network" } else { "subnet-router anycast" }));
        }
        let is_last = prefix.place(address) == Some((1 << prefix.host_bits().min(63)) - 1);
        (address.is_ipv4() && is_last).then_some((prefix, "broadcast"))
    }

    /// The target of the routes to an address: its segment if it is in a prefix, or else its node.
    pub fn target(&self, address: IpAddr) -> Option<Target> {
        match self.subnet(address) {
            Some(subnet) => Some(Target::Segment(subnet.segment)),
            None => self.owner(address).map(Target::Node),
        }
    }

    /// The target of the routes to a node's first address.
    pub fn target_of(&self, node: NodeId, ipv6: bool) -> Target {
        self.target(self.first(node, ipv6)).unwrap_or(Target::Node(node))
    }
}

/// Number of hosts that a prefix has addresses for. Of IPv4 the first stands for the network and the last for all of
/// its hosts (RFC 1122 section 3.2.1.3), of IPv6 the first for its routers (RFC 4291 section 2.6.1); where there are
/// only two, both are hosts' (RFC 3021, RFC 6164).
fn capacity(prefix: Prefix) -> u64 {
    match (prefix.host_bits(), prefix.first().is_ipv4()) {
        (bits @ (0 | 1), _) => 1 << bits,
        (bits, true) => (1 << bits) - 2,
        (bits, false) => (1 << bits.min(63)) - 1,
    }
}

/// The place in a prefix of the first host's address.
fn first_host(prefix: Prefix) -> u64 {
    u64::from(prefix.host_bits() > 1)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use hopcast_link::MediumConfig;

    use super::*;
    use crate::network::{Link, LinkModel, Node};

    fn prefix(text: &str) -> Prefix {
        let (first, length) = text.split_once('/').unwrap();
        Prefix::new(first.parse().unwrap(), length.parse().unwrap()).unwrap()
    }

    /// Media of these nodes with these prefixes.
    fn addresses(media: &[(&[NodeId], &[&str])]) -> Result<AddressPlan, String> {
        let nodes: Vec<_> =
            (0..8).map(|n| Node { name: format!("n{n}"), position: None, claims: Vec::new() }).collect();
        let link = |(number, (ends, prefixes)): (usize, &(&[NodeId], &[&str]))| Link {
            name: format!("m{number}"),
            ends: ends.to_vec(),
            prefixes: prefixes.iter().map(|text| prefix(text)).collect(),
            model: LinkModel::Medium(MediumConfig::default()),
        };
        let links: Vec<_> = media.iter().enumerate().map(link).collect();
        let network = Network { nodes: &nodes, links: &links, roles: &BTreeMap::new(), services: &[] };
        AddressPlan::of(network, &Segments::plain(nodes.len(), &links)).map_err(|error| error.to_string())
    }

    #[test]
    fn hosts_are_numbered_in_the_order_of_the_segment() {
        let found = addresses(&[(&[5, 2], &[]), (&[2, 5, 1], &["10.7.0.0/29", "fd07::/64"])]).unwrap();
        let all = |node| found.all(node).iter().map(ToString::to_string).collect::<Vec<_>>();
        assert_eq!(all(5), ["10.7.0.2", "fd07::2", "10.0.0.6", "fd00::6"]);
        assert_eq!(found.first(1, false).to_string(), "10.7.0.3");
        assert_eq!(found.first(0, true).to_string(), "fd00::1");
        // On its other link a node is a neighbour by its own address.
        assert_eq!(found.on(5, 0, false).to_string(), "10.0.0.6");
        assert_eq!(found.on(5, 1, false).to_string(), "10.7.0.2");
        let owner = |text: &str| found.owner(text.parse().unwrap());
        assert_eq!((owner("10.7.0.1"), owner("10.7.0.3"), owner("10.7.0.4")), (Some(2), Some(1), None));
        assert_eq!((owner("10.7.0.0"), owner("fd07::"), owner("fd07::3")), (None, None, Some(1)));
        assert_eq!((owner("10.0.0.8"), owner("10.0.0.9")), (Some(7), None));
    }

    #[test]
    fn a_pair_has_both_addresses_of_the_smallest_prefix() {
        let found = addresses(&[(&[0, 1], &["10.7.0.0/31", "fd07::/127"])]).unwrap();
        assert_eq!(found.first(0, false).to_string(), "10.7.0.0");
        assert_eq!(found.first(1, true).to_string(), "fd07::1");
        assert_eq!(found.of_no_host("10.7.0.0".parse().unwrap()), None);
    }

    #[test]
    fn addresses_that_are_no_hosts_are_told_apart() {
        let found = addresses(&[(&[0, 1], &["10.7.0.0/24", "fd07::/64"])]).unwrap();
        let what = |text: &str| found.of_no_host(text.parse().unwrap()).map(|(_, what)| what);
        assert_eq!((what("10.7.0.0"), what("10.7.0.255")), (Some("network"), Some("broadcast")));
        assert_eq!((what("fd07::"), what("10.7.0.9")), (Some("subnet-router anycast"), None));
    }

    #[test]
    fn prefixes_that_segments_cannot_have_are_refused() {
        let pair: &[NodeId] = &[0, 1];
        let why = |media: &[(&[NodeId], &[&str])]| addresses(media).unwrap_err();
        assert_eq!(
            why(&[(&[0, 1, 2], &["10.7.0.0/30"])]),
            "10.7.0.0/30 has 2 addresses for hosts, and `m0` has 3 stations"
        );
        assert_eq!(
            why(&[(pair, &["10.7.0.0/24"]), (pair, &["10.7.0.128/25"])]),
            "10.7.0.128/25 overlaps 10.7.0.0/24 of `m0`"
        );
        assert_eq!(
            why(&[(pair, &["10.7.1.0/24"]), (pair, &["10.7.0.0/16"])]),
            "10.7.0.0/16 overlaps 10.7.1.0/24 of `m0`"
        );
        for (bad, of, node) in [("10.0.0.0/24", "10.0.0.1", 0), ("10.0.0.8/30", "10.0.0.8", 7)] {
            let expected = format!("{bad} has {of}, the address that `n{node}` has on all of its links");
            assert_eq!(why(&[(pair, &[bad])]), expected);
        }
        assert!(why(&[(pair, &["fd00::/64"])]).contains("fd00::1"));
        assert!(
            why(&[(pair, &["239.7.0.0/24"])]).ends_with("224.0.0.0/3 is for groups and reserved (RFC 1112)")
        );
        assert!(why(&[(pair, &["fe80::/64"])]).contains("one link"));
        assert!(addresses(&[(pair, &["10.0.0.12/30"])]).is_ok(), "nobody's own");
    }
}
