//! Wishes of other nodes for frames to groups, by the flags that they send.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_wire::ethernet::Mac;

use crate::address_map::AddressMap;
use crate::wire::tvlv::multicast::{
    HAS_MULTICAST_PACKETS, WANT_ALL_IPV4, WANT_ALL_IPV6, WANT_ALL_UNSNOOPABLES, WANT_NO_ROUTER_IPV4,
    WANT_NO_ROUTER_IPV6,
};

/// A reason for which a node gets frames to groups that it does not announce.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Want {
    Unsnoopables,
    All { ipv6: bool },
    Routable { ipv6: bool },
}

impl Want {
    const EACH: [Self; 5] = [
        Self::Unsnoopables,
        Self::All { ipv6: false },
        Self::All { ipv6: true },
        Self::Routable { ipv6: false },
        Self::Routable { ipv6: true },
    ];

    const fn is_in(self, flags: u8) -> bool {
        match self {
            Self::Unsnoopables => flags & WANT_ALL_UNSNOOPABLES != 0,
            Self::All { ipv6: false } => flags & WANT_ALL_IPV4 != 0,
            Self::All { ipv6: true } => flags & WANT_ALL_IPV6 != 0,
            Self::Routable { ipv6: false } => flags & WANT_NO_ROUTER_IPV4 == 0,
            Self::Routable { ipv6: true } => flags & WANT_NO_ROUTER_IPV6 == 0,
        }
    }
}

/// The flags of other nodes.
#[derive(Debug, Default)]
pub(crate) struct Listeners {
    /// `None` of a node that sends none: it knows nothing of multicast, and gets all frames to groups.
    flags: AddressMap<Option<u8>>,
    wants: BTreeMap<Want, BTreeSet<Mac>>,
    incapable: BTreeSet<Mac>,
}

impl Listeners {
    /// Takes the flags of a node's message, or that it has none.
    pub(crate) fn set(&mut self, node: Mac, announced: Option<u8>) {
        if self.flags.get(node) == Some(&announced) {
            return;
        }
        self.flags.insert(node, announced);
        let mut flags = announced.unwrap_or(WANT_ALL_IPV4 | WANT_ALL_IPV6);
        // Whoever wants all of them need not be listed as a router, too.
        if flags & WANT_ALL_IPV4 != 0 {
            flags |= WANT_NO_ROUTER_IPV4;
        }
        if flags & WANT_ALL_IPV6 != 0 {
            flags |= WANT_NO_ROUTER_IPV6;
        }
        for want in Want::EACH {
            put(self.wants.entry(want).or_default(), node, want.is_in(flags));
        }
        put(&mut self.incapable, node, flags & HAS_MULTICAST_PACKETS == 0);
    }

    /// Forgets a node.
    pub(crate) fn forget(&mut self, node: Mac) {
        self.flags.remove(node);
        self.wants.values_mut().for_each(|nodes| _ = nodes.remove(&node));
        self.incapable.remove(&node);
    }

    /// The nodes that get frames for this reason.
    pub(crate) fn that_want(&self, want: Want) -> impl Iterator<Item = Mac> {
        self.wants.get(&want).into_iter().flatten().copied()
    }

    /// Whether every node forwards multicast packets, as far as is known.
    pub(crate) fn are_capable(&self) -> bool {
        self.incapable.is_empty()
    }

    /// Number of nodes whose flags are known.
    pub(crate) const fn len(&self) -> usize {
        self.flags.len()
    }

    /// The nodes with their flags.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (Mac, Option<u8>)> {
        self.flags.iter().map(|(node, &flags)| (node, flags))
    }
}

fn put(nodes: &mut BTreeSet<Mac>, node: Mac, present: bool) {
    if present {
        nodes.insert(node);
    } else {
        nodes.remove(&node);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Mac = [2, 0, 0, 0, 0, 1];
    const B: Mac = [2, 0, 0, 0, 0, 2];

    fn wants(listeners: &Listeners, node: Mac) -> Vec<Want> {
        let is_wanted = |want: &Want| listeners.that_want(*want).any(|other| other == node);
        Want::EACH.into_iter().filter(is_wanted).collect()
    }

    #[test]
    fn a_node_without_flags_gets_all_and_forwards_no_multicast_packets() {
        let mut listeners = Listeners::default();
        assert!(listeners.are_capable());
        listeners.set(A, None);
        assert_eq!(wants(&listeners, A), [Want::All { ipv6: false }, Want::All { ipv6: true }]);
        assert!(!listeners.are_capable());
        listeners.set(A, Some(HAS_MULTICAST_PACKETS | WANT_NO_ROUTER_IPV4 | WANT_ALL_UNSNOOPABLES));
        assert_eq!(wants(&listeners, A), [Want::Unsnoopables, Want::Routable { ipv6: true }]);
        assert!(listeners.are_capable());
    }

    #[test]
    fn whoever_wants_all_is_not_a_router_too_and_a_node_that_has_gone_wants_nothing() {
        let mut listeners = Listeners::default();
        listeners.set(A, Some(WANT_ALL_IPV4 | WANT_NO_ROUTER_IPV6));
        listeners.set(B, Some(0));
        assert_eq!(wants(&listeners, A), [Want::All { ipv6: false }]);
        assert_eq!(wants(&listeners, B), [Want::Routable { ipv6: false }, Want::Routable { ipv6: true }]);
        listeners.forget(A);
        assert!(wants(&listeners, A).is_empty() && !listeners.are_capable());
        listeners.forget(B);
        assert!(listeners.are_capable() && listeners.len() == 0);
    }
}
