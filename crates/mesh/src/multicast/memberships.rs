//! Which groups are wanted behind this node, and how it announces that.
//!
//! A group is announced as a client of the node, by its Ethernet address, in no VLAN. The flags that are sent beside
//! the table say what is wanted without being announced.

use std::collections::BTreeSet;
use std::net::IpAddr;

use hopcast_core::Membership;
use hopcast_wire::ethernet::{self, Mac};
use hopcast_wire::ip;
use hopcast_wire::membership::{self, Message, RecordType, all_nodes, is_reported};

use super::config::{Above, MulticastConfig};
use super::frame::{self, is_link_local};
use crate::wire::tvlv::multicast::{
    HAS_MULTICAST_PACKETS, WANT_ALL_IPV4, WANT_ALL_IPV6, WANT_ALL_UNSNOOPABLES, WANT_NO_ROUTER_IPV4,
    WANT_NO_ROUTER_IPV6,
};

const VERSIONS: [ip::Version; 2] = [ip::Version::V4, ip::Version::V6];
/// Flags of each IP version: all groups are wanted; routable ones are not wanted by a router.
const WANT_ALL: [u8; 2] = [WANT_ALL_IPV4, WANT_ALL_IPV6];
const NO_ROUTER: [u8; 2] = [WANT_NO_ROUTER_IPV4, WANT_NO_ROUTER_IPV6];

/// The memberships behind a node.
#[derive(Debug)]
pub(crate) struct Memberships {
    above: Above,
    router: [bool; 2],
    max_groups: usize,
    groups: BTreeSet<IpAddr>,
    /// Whether all groups of an IP version are wanted, as far as is known.
    all: [bool; 2],
    /// Whether there were more groups of an IP version than are announced.
    overflowed: [bool; 2],
}

impl Memberships {
    pub(crate) fn new(config: &MulticastConfig) -> Self {
        Self {
            above: config.above,
            router: config.router,
            max_groups: config.max_groups,
            groups: BTreeSet::new(),
            all: [config.above != Above::Host; 2],
            overflowed: [false; 2],
        }
    }

    /// Takes a frame to a group that came from above: a host's reports change what is wanted. Returns whether one did.
    pub(crate) fn hear(&mut self, bytes: &[u8]) -> bool {
        if self.above != Above::Host {
            return false;
        }
        let Some(packet) = frame::ip_packet(bytes) else { return false };
        let Ok(header) = ip::parse(packet) else { return false };
        match membership::parse(packet, &header) {
            Ok(Some(Message::OlderReport(_, group))) => self.set(group, true),
            Ok(Some(Message::Leave(group))) => self.set(group, false),
            Ok(Some(Message::Report(records))) => {
                let mut changed = false;
                for record in records {
                    let includes = matches!(record.kind, RecordType::IsInclude | RecordType::ToInclude);
                    changed |= self.set(record.group, !(includes && record.sources.is_empty()));
                }
                changed
            }
            Ok(Some(Message::Query(..)) | None) | Err(_) => false,
        }
    }

    /// Takes what a host or a bridge says. Returns whether it changes anything.
    pub(crate) fn take(&mut self, membership: &Membership) -> bool {
        let Membership { group, joined, .. } = *membership;
        if self.above == Above::Unknown {
            return false;
        }
        if group.is_unspecified() {
            let all = &mut self.all[usize::from(group.is_ipv6())];
            return std::mem::replace(all, joined) != joined;
        }
        self.set(group, joined)
    }

    fn set(&mut self, group: IpAddr, joined: bool) -> bool {
        if !is_reported(group) {
            return false;
        }
        let v6 = usize::from(group.is_ipv6());
        if !joined {
            let removed = self.groups.remove(&group);
            // Which groups there was no room for is not known, so that all are wanted until none is left.
            self.overflowed[v6] &= self.groups.iter().any(|other| other.is_ipv6() == group.is_ipv6());
            return removed;
        }
        if self.groups.len() >= self.max_groups && !self.groups.contains(&group) {
            return !std::mem::replace(&mut self.overflowed[v6], true);
        }
        self.groups.insert(group)
    }

    /// Notes that the table had no room for a group of this Ethernet address.
    pub(crate) fn overflow(&mut self, group: Mac) {
        self.overflowed[usize::from(group[0] == 0x33)] = true;
    }

    /// The flags that announce what is wanted; `capable` says whether the node forwards multicast packets.
    pub(crate) fn flags(&self, capable: bool) -> u8 {
        let mut flags = if capable { HAS_MULTICAST_PACKETS } else { 0 };
        if self.above != Above::Host {
            // A bridge does not know who listens to them: hosts need not report them.
            flags |= WANT_ALL_UNSNOOPABLES;
        }
        for v6 in 0..2 {
            if self.all[v6] || self.overflowed[v6] {
                flags |= WANT_ALL[v6];
            } else if !self.router[v6] {
                flags |= NO_ROUTER[v6];
            }
        }
        flags
    }

    /// The Ethernet addresses of the groups that are announced: those that no flag covers.
    pub(crate) fn announced(&self) -> BTreeSet<Mac> {
        let flags = self.flags(false);
        let is_covered = |group: IpAddr| {
            let v6 = usize::from(group.is_ipv6());
            let unsnoopable = frame::is_unsnoopable(group);
            flags & WANT_ALL[v6] != 0
                || flags & WANT_ALL_UNSNOOPABLES != 0 && unsnoopable
                || flags & NO_ROUTER[v6] == 0 && !unsnoopable && !is_link_local(group)
        };
        let of_all_nodes = VERSIONS.map(all_nodes);
        let groups = self.groups.iter().copied().chain(of_all_nodes);
        groups.filter(|&group| !is_covered(group)).map(ethernet::of_group).collect()
    }

    /// The groups that are wanted, as far as they are known.
    pub(crate) fn groups(&self) -> impl Iterator<Item = IpAddr> {
        self.groups.iter().copied()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn memberships(above: Above, max_groups: usize) -> Memberships {
        Memberships::new(&MulticastConfig { above, max_groups, ..MulticastConfig::default() })
    }

    fn membership(group: &str, joined: bool) -> Membership {
        Membership { group: group.parse().unwrap(), source: None, interface: None, joined }
    }

    const ALL_NODES: [Mac; 2] = [[1, 0, 0x5e, 0, 0, 1], [0x33, 0x33, 0, 0, 0, 1]];

    #[test]
    fn a_host_announces_its_groups_and_those_of_all_nodes() {
        let mut of_host = memberships(Above::Host, 512);
        assert_eq!(of_host.announced(), BTreeSet::from(ALL_NODES));
        assert_eq!(of_host.flags(true), WANT_NO_ROUTER_IPV4 | WANT_NO_ROUTER_IPV6 | HAS_MULTICAST_PACKETS);
        assert!(of_host.take(&membership("239.1.2.3", true)) && of_host.take(&membership("224.0.0.5", true)));
        assert!(
            !of_host.take(&membership("239.1.2.3", true)) && !of_host.take(&membership("10.0.0.1", true))
        );
        let groups = [[1, 0, 0x5e, 0, 0, 5], [1, 0, 0x5e, 1, 2, 3]];
        assert_eq!(of_host.announced(), groups.into_iter().chain(ALL_NODES).collect());
        assert!(of_host.take(&membership("239.1.2.3", false)));
        assert_eq!(of_host.announced().len(), 3);
    }

    #[test]
    fn a_router_wants_all_routable_groups_and_announces_the_others() {
        let config = MulticastConfig { router: [true, false], ..MulticastConfig::default() };
        let mut of_router = Memberships::new(&config);
        of_router.take(&membership("239.1.2.3", true));
        of_router.take(&membership("224.0.0.5", true));
        of_router.take(&membership("ff0e::5", true));
        assert_eq!(of_router.flags(false), WANT_NO_ROUTER_IPV6);
        let groups = [[1, 0, 0x5e, 0, 0, 5], [0x33, 0x33, 0, 0, 0, 5]];
        assert_eq!(of_router.announced(), groups.into_iter().chain(ALL_NODES).collect());
    }

    #[test]
    fn a_bridge_wants_all_until_it_knows_who_listens() {
        let mut of_bridge = memberships(Above::Bridge, 512);
        let all = WANT_ALL_UNSNOOPABLES | WANT_ALL_IPV4 | WANT_ALL_IPV6;
        assert_eq!((of_bridge.flags(false), of_bridge.announced().len()), (all, 0));
        of_bridge.take(&membership("239.1.2.3", true));
        of_bridge.take(&membership("224.0.0.5", true));
        assert!(of_bridge.take(&membership("0.0.0.0", false)));
        let known = WANT_ALL_UNSNOOPABLES | WANT_NO_ROUTER_IPV4 | WANT_ALL_IPV6;
        assert_eq!(of_bridge.flags(false), known);
        assert_eq!(of_bridge.announced(), BTreeSet::from([[1, 0, 0x5e, 1, 2, 3]]));
        of_bridge.take(&membership("0.0.0.0", true));
        assert_eq!(of_bridge.flags(false), all);
        assert_eq!(memberships(Above::Unknown, 512).flags(false), all);
    }

    #[test]
    fn beyond_the_maximum_all_groups_of_the_version_are_wanted() {
        let mut many = memberships(Above::Host, 2);
        assert!(many.take(&membership("239.0.0.1", true)) && many.take(&membership("239.0.0.2", true)));
        assert!(many.take(&membership("239.0.0.3", true)) && !many.take(&membership("239.0.0.4", true)));
        assert_eq!(many.flags(false), WANT_ALL_IPV4 | WANT_NO_ROUTER_IPV6);
        assert_eq!(many.announced(), BTreeSet::from([ALL_NODES[1]]));
        many.take(&membership("239.0.0.1", false));
        many.take(&membership("239.0.0.2", false));
        assert_eq!(many.flags(false), WANT_NO_ROUTER_IPV4 | WANT_NO_ROUTER_IPV6);
    }
}
