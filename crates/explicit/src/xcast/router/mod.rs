//! An Xcast router (RFC 5058): it sorts the destinations of a packet by their next hops.
//!
//! [`Router`] is attached to a host by hooks, on `Below(0)`: it takes whole IPv6 packets
//! ([`Item::Transit`](hopcast_core::Item::Transit)), and hands back copies with the neighbour that each goes to. It
//! learns next hops from [`NextHops`], which also knows where other Xcast routers are:
//!
//! - **A neighbour** that is one gets a copy in which the destinations behind it are marked.
//! - **A router farther ahead** ([`Hop::Tunnel`]) gets it in a packet of IPv6 to its address (RFC 5058, section 11.1),
//!   past routers that would drop it.
//! - **A plain packet** (Xcast to unicast, X2U) goes to a destination that is alone behind its next hop, and to each
//!   behind a next hop that knows no Xcast (premature X2U, section 11.2). Of a packet that must stay as it is (X) each
//!   such destination gets a copy in a tunnel to itself instead, and a neighbour one even for a single destination.
//!
//! A sender has the same machine: what comes down on `Above(0)` as [`Item::Packet`](hopcast_core::Item::Packet) is
//! sorted as if it had arrived, and leaves as the host's own.
//!
//! A [designated](Router::designated) router speaks Xcast+ too: it registers the channels that its hosts join, of which
//! it hears on any `Above` port ([`Item::Membership`](hopcast_core::Item::Membership), from a querier), and turns
//! packets to groups into packets of Xcast to the routers that have registered, and back.
//!
//! # Bounds
//!
//! It has no state of senders, groups or destinations, unless it is a designated router. Destinations are only divided,
//! so a forged packet makes at most as many as it lists, on all routers together; one that goes round in a circle ends
//! with its hop limit, and causes no error of ICMP. A router makes no more than a number of
//! [copies](Config::copies_per_second) in a second. A tunnel ends here only if it comes from an Xcast router that
//! [`NextHops`] knows, or lists this node.
//!
//! A designated router has state: channels with members, and the routers that have registered for the channels of
//! sources here, both [bounded](PlusConfig). Of one packet it makes more: to a group one copy for each interface with
//! members (X2M), and of a source's packet one for each router that has registered (M2X). All count as copies. It
//! accepts registrations of routers that [`NextHops`] knows alone; their source address is not authenticated. For
//! packets that it has no members for it leaves again, once in a second.
//!
//! # Departures
//!
//! - Xcast+ has the channel identifier hold the group, and registrations of our own form.
//! - Whether a neighbour knows Xcast is configured, or known by whoever gives the next hops: the RFC leaves a protocol
//!   for that, and semi-permeable tunnels (section 11.3) would need a hop-by-hop option.

mod config;
mod counters;
mod machine;
mod plus;
#[cfg(test)]
mod tests;

use std::net::Ipv6Addr;

use hopcast_core::Hook;

use super::wire::ROUTING_TYPE;
use crate::header::ROUTING;

pub use config::Config;
pub use machine::Router;
pub use plus::{PLUS_HOOKS, PlusConfig, REGISTRATION, REGISTRATION_PORT};

/// Number of IPv6 in a packet of IP (RFC 2473, section 3): a tunnel.
pub const TUNNEL: u8 = 41;

/// The hooks that select the packets of Xcast, and tunnels.
pub const HOOKS: [Hook; 2] = [
    Hook::ExtensionHeader { header: ROUTING, kind: Some(ROUTING_TYPE) },
    Hook::Transport { protocol: TUNNEL, port: None },
];

/// The next hop of a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Hop {
    /// No Xcast router is before the destination, or the next hop knows no Xcast: plain packets follow the routes.
    Plain,
    /// An Xcast router on this interface.
    Neighbour {
        /// The number of the interface.
        interface: u32,
        /// The router's address.
        address: Ipv6Addr,
    },
    /// An Xcast router on the way behind others that know no Xcast, by its address.
    Tunnel(Ipv6Addr),
}

/// The routes, as an Xcast router needs them.
pub trait NextHops {
    /// The next hop of a destination; `None` if there is no route.
    fn next_hop(&mut self, destination: Ipv6Addr) -> Option<Hop>;

    /// Whether an address is that of another Xcast router, which tunnels and registrations may come from.
    fn is_router(&self, address: Ipv6Addr) -> bool;

    /// The interface of the link with a host that this node is the designated router of, which is none itself; `None`
    /// if there is no such host.
    fn attached(&self, address: Ipv6Addr) -> Option<u32>;

    /// Whether designated routers bring the packets of a group to its members; those of others follow the host's
    /// routes.
    fn serves_group(&self, group: Ipv6Addr) -> bool {
        let _ = group;
        true
    }
}
