//! Multicast: which nodes want a frame to a group, and how it is sent to them.
//!
//! Each node announces the groups that are wanted behind it as clients, in its translation table, and beside it flags
//! of what else it wants: all groups of an IP version, those that hosts need not report, those that routers forward. So
//! a sender knows the receivers of a frame, and sends it in one of three ways:
//!
//! - in *multicast packets*, which list the receivers and are divided at each node by next hop;
//! - as *unicast copies*, one for each receiver;
//! - *flooded*, as a broadcast.
//!
//! | file | state |
//! |---|---|
//! | `memberships` | which groups are wanted behind this node |
//! | `listeners` | what other nodes want |
//! | `frame` | no state: kinds of frames |
//! | `packet` | no state: multicast packets |
//! | [`auto`] | what each receiver's path was worth, by flow |
//!
//! # The decision
//!
//! As the kernel's (`batadv_mcast_forw_mode`, `multicast.c` of Linux 6.12), in this order:
//!
//! 1. Frames that are not IP or have a VLAN's tag, reports of IGMP and MLD, and frames to a group of the host's own are
//!    flooded; all are with [`MulticastConfig::force_flood`].
//! 2. A frame that no node wants is dropped. One to a group that hosts need not report (224.0.0.0/24, ff02::1) is
//!    flooded if a node wants all of those.
//! 3. It is sent in a multicast packet if every node forwards them and the packet keeps to
//!    [`MulticastConfig::size_limit`]; this holds for a single receiver, too.
//! 4. It is sent as copies if there are no more receivers than [`MulticastConfig::fanout`], and flooded otherwise.
//!
//! The [mode](MulticastMode) leaves out 3, or 3 and 4; `auto` chooses anew for each flow, five times a second.
//!
//! # Scope and departures
//!
//! - A node that has two reasons to get a frame is one receiver; the kernel counts and lists it twice.
//! - A destination that is listed twice in a multicast packet is passed on once. A packet without a tracker is
//!   malformed; the kernel takes it for one to itself. Of several trackers only the first is read.
//! - A bridge with a multicast router behind it asks for all groups of the IP version, where the kernel's flag is that
//!   of a router. Since it asks for the unsnoopable groups in any case, the frames are the same.

pub mod auto;
mod config;
mod frame;
mod listeners;
mod memberships;
mod packet;

use std::collections::BTreeSet;
use std::net::IpAddr;

use hopcast_wire::ethernet::Mac;

pub(crate) use auto::{Auto, Receiver, Surroundings};
pub use config::{Above, MulticastConfig, MulticastMode, SizeLimit};
pub(crate) use frame::{Kind, kind};
pub(crate) use listeners::{Listeners, Want};
pub(crate) use memberships::Memberships;
pub(crate) use packet::{ByNextHop, Received, by_next_hop, prepend};

use crate::wire::tvlv::multicast::{
    HAS_MULTICAST_PACKETS, WANT_ALL_IPV4, WANT_ALL_IPV6, WANT_ALL_UNSNOOPABLES, WANT_NO_ROUTER_IPV4,
    WANT_NO_ROUTER_IPV6,
};

/// Maximum length of a multicast packet, and the MTU that a node's interfaces must have for it to forward them: that
/// which every link of IPv6 has.
pub(crate) const MAX_PACKET: usize = 1280;

/// How a frame is sent.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Decision {
    /// Nobody wants it.
    Drop,
    /// As a broadcast.
    Flood,
    /// As unicast copies to these nodes.
    Copies(Vec<Mac>),
    /// In a multicast packet to each of these lists of nodes.
    Packets(Vec<Vec<Mac>>),
    /// As copies to the former nodes, and in multicast packets to the latter.
    Mixed(Vec<Mac>, Vec<Vec<Mac>>),
}

/// The state of multicast in a node.
#[derive(Debug)]
pub(crate) struct Multicast {
    pub(crate) config: MulticastConfig,
    pub(crate) memberships: Memberships,
    pub(crate) listeners: Listeners,
    /// The groups that are announced in the table.
    pub(crate) announced: BTreeSet<Mac>,
    pub(crate) auto: Auto,
}

impl Multicast {
    pub(crate) fn new(config: MulticastConfig) -> Self {
        Self {
            memberships: Memberships::new(&config),
            config,
            listeners: Listeners::default(),
            announced: BTreeSet::new(),
            auto: Auto::default(),
        }
    }

    /// The nodes that want a frame to a group of this kind, which these nodes announce; `None` if it is flooded for
    /// one that wants all unsnoopable groups.
    pub(crate) fn receivers(
        &self,
        announcers: impl Iterator<Item = Mac>,
        kind: (bool, bool, bool),
    ) -> Option<BTreeSet<Mac>> {
        let (ipv6, unsnoopable, routable) = kind;
        if unsnoopable && self.listeners.that_want(Want::Unsnoopables).next().is_some() {
            return None;
        }
        let mut receivers: BTreeSet<Mac> = announcers.collect();
        receivers.extend(self.listeners.that_want(Want::All { ipv6 }));
        if routable {
            receivers.extend(self.listeners.that_want(Want::Routable { ipv6 }));
        }
        Some(receivers)
    }

    /// How a frame of this length is sent to these nodes, in a fixed mode. `capable` says whether this node forwards
    /// multicast packets.
    pub(crate) fn decide(&self, frame_len: usize, receivers: BTreeSet<Mac>, capable: bool) -> Decision {
        let MulticastConfig { mode, fanout, .. } = self.config;
        if receivers.is_empty() {
            return Decision::Drop;
        }
        let receivers: Vec<Mac> = receivers.into_iter().collect();
        if mode == MulticastMode::Packet
            && let Some(packets) = self.packets(frame_len, &receivers, capable)
        {
            return Decision::Packets(packets);
        }
        if mode == MulticastMode::Broadcast || receivers.len() > fanout {
            return Decision::Flood;
        }
        Decision::Copies(receivers)
    }

    /// How a frame is sent by the routes to its receivers: those that share a next hop in multicast packets, if these
    /// may be sent and have room, and others as copies. Flooded if those are too many.
    pub(crate) fn by_routes(&self, frame_len: usize, by_next_hop: ByNextHop, capable: bool) -> Decision {
        let capable = capable && self.listeners.are_capable();
        let (mut copies, mut packets) = (Vec::new(), Vec::new());
        for (_, receivers) in by_next_hop.hops {
            let most =
                (2..=receivers.len()).rev().find(|&number| self.config.size_limit.fits(frame_len, number));
            match most.filter(|_| capable) {
                Some(most) => packets.extend(receivers.chunks(most).map(<[Mac]>::to_vec)),
                None => copies.extend(receivers),
            }
        }
        if copies.len() > self.config.fanout { Decision::Flood } else { Decision::Mixed(copies, packets) }
    }

    /// The receivers, divided among as many multicast packets as are needed; `None` if they would be too many or too
    /// long, or a node does not forward them.
    fn packets(&self, frame_len: usize, receivers: &[Mac], capable: bool) -> Option<Vec<Vec<Mac>>> {
        let MulticastConfig { size_limit, max_packets, .. } = self.config;
        if !capable || !self.listeners.are_capable() {
            return None;
        }
        let number = (1..=max_packets.min(receivers.len()))
            .find(|number| size_limit.fits(frame_len, receivers.len().div_ceil(*number)))?;
        let most = receivers.len().div_ceil(number);
        Some(receivers.chunks(most).map(<[Mac]>::to_vec).collect())
    }
}

/// Multicast in a node, as `batctl mcast_flags` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MulticastStatus {
    /// Flags of the node itself; see [the container](crate::wire::tvlv::multicast).
    pub flags: u8,
    /// The groups that are wanted behind it, as far as they are known.
    pub groups: Vec<IpAddr>,
    /// Flags of the other nodes; `None` of a node that sends none.
    pub others: Vec<(Mac, Option<u8>)>,
}

/// Flags as `batctl mcast_flags` writes them, as `[U46R4R6.]`: unsnoopable groups, all groups of IPv4 and IPv6, and
/// routable ones are wanted; `P` at the end if multicast packets are not forwarded. A dot stands for each that does not
/// hold.
pub fn flags_text(flags: u8) -> String {
    let has = |flag: u8| flags & flag != 0;
    let either =
        |holds: bool, text: &'static str, otherwise: &'static str| if holds { text } else { otherwise };
    [
        "[",
        either(has(WANT_ALL_UNSNOOPABLES), "U", "."),
        either(has(WANT_ALL_IPV4), "4", "."),
        either(has(WANT_ALL_IPV6), "6", "."),
        either(has(WANT_NO_ROUTER_IPV4), ". ", "R4"),
        either(has(WANT_NO_ROUTER_IPV6), ". ", "R6"),
        either(has(HAS_MULTICAST_PACKETS), ".", "P"),
        "]",
    ]
    .concat()
}

#[cfg(test)]
mod tests;
