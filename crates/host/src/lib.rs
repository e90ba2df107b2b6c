//! A small IP host and router for virtual time.
//!
//! A [`Host`] is a [`Machine`](hopcast_core::Machine). Its `Below` ports are its interfaces and carry Ethernet frames;
//! its `Above` ports are the machines bound on it: UDP ports ([`Host::bind_udp`]), IP protocols such as TCP
//! ([`Host::bind_protocol`]), hooks into forwarding ([`Host::hook`]), and frames of a type of their own
//! ([`Host::bind_frames`]).
//!
//! A frame that arrives is checked. If its packet is for one of the host's own addresses, it is delivered to a binding,
//! or to the host's own ICMP, which answers echo requests. Otherwise it is in transit: a hook may take it, and a packet
//! that no hook takes is forwarded, with its hop limit decremented, in the buffer in which it came. If it can neither
//! be delivered nor forwarded, its sender receives the ICMP error that gives the reason, so that path-MTU discovery and
//! traceroute work as they do on the Internet. Packets that machines above hand down leave by the same routes, and are
//! looped back if they are for the host itself.
//!
//! | module | what |
//! |---|---|
//! | [`config`] | addresses, interfaces, and whether to forward |
//! | [`routes`] | next hops: [`Routes`], [`StaticRoutes`], and the cache in front of them |
//! | [`prefixes`] | prefixes of addresses, and tables with longest-prefix match |
//! | [`binding`] | the bindings of ports above, and the forward hook's filters |
//! | `host` | the machine: classifies what arrives |
//! | `forward` | transit, and the host's own packets |
//! | `groups` | memberships, and packets to groups: [`GroupRoutes`] |
//! | `udp`, `icmp` | delivery of these two; errors, their limits, and the path MTUs in them |
//! | [`neighbours`] | resolution of neighbours' Ethernet addresses: ARP and neighbour discovery |
//! | [`membership`], [`querier`] | IGMP and MLD: the host's side, and the router's |
//! | [`pim`] | multicast routing by source trees: the Joins, Prunes and Asserts of routers |
//! | [`link_state`] | unicast routing by flooded advertisements and shortest paths |
//! | [`firewall`] | drops of packets in transit |
//! | [`RawIp`] | datagrams as a protocol of IP, above a binding |
//! | [`Udp`] | UDP without a host, for stacks whose packets go into a tunnel |
//! | [`ping`] | messages as echo requests through a packet port, and their round trips |
//! | [`EchoResponder`] | answers to echo requests without a host, for stacks whose packets come out of a tunnel |
//!
//! # Scope and departures
//!
//! - **Neighbours are known** unless [`Host::resolve_neighbours`] is called: [`Routes`] has the next station's Ethernet
//!   address, as if it had been resolved already. With it the host resolves addresses by ARP and neighbour discovery
//!   (RFC 826, 4861); see [`neighbours`].
//! - **No fragmentation and no reassembly.** The host's own packets have *don't fragment* set. A packet in transit
//!   without it that is too big for the next link is dropped and counted (`unfragmented`), where RFC 1812 would have it
//!   fragmented. Fragments are forwarded, and dropped at their destination (`fragments`).
//! - **A transit packet's transport checksum is not verified**, as on any router. UDP's and ICMP's are verified before
//!   delivery; another protocol's are left to the machine that is bound to it.
//! - **Multicast is forwarded by [`GroupRoutes`]**, a router's table of groups, or by a hook; broadcast by a hook
//!   alone. A packet to a group that did not arrive on the interface towards its sender is dropped (reverse-path
//!   check). A machine receives only the groups that it [joined](hopcast_core::Membership) itself. The host receives
//!   its own packets to a group, if a machine on it has joined.
//! - **Path MTUs that ICMP announces are remembered** ([`Host::path_mtu`]) and delivered to the machine whose packet
//!   was too big, unless it is UDP's, which cannot receive them; the host itself drops nothing because of them.
//! - **Memberships are reported** by IGMP and MLD only where [`Host::report_memberships`] is called; see
//!   [`membership`]. [`querier`] is the router's side. A mesh below is told by [`Host::tell_memberships`].
//! - **A host has no timers** except those of its neighbours and reports: without them its deadline is always `None`.
//! - The source of the host's own packets is its first address of the version, not the interface's: hosts here are
//!   known by one address, as if it were a loopback address.
//! - No redirects, no source routes, no options: they are forwarded unread. A packet whose IPv6 extension headers do
//!   not parse is malformed in transit too, where a router would not parse them.

pub mod binding;
pub mod config;
mod counters;
mod echo;
pub mod firewall;
mod forward;
mod groups;
mod host;
mod icmp;
mod link_message;
pub mod link_state;
pub mod membership;
mod memberships_below;
pub mod neighbours;
mod packet_port;
pub mod pim;
pub mod ping;
pub mod prefixes;
pub mod querier;
mod raw_machine;
mod reports;
pub mod routes;
mod udp;
mod udp_machine;

pub use binding::BindError;
pub use config::{Config, Interface};
pub use echo::EchoResponder;
pub use groups::{GroupRoute, GroupRoutes};
pub use hopcast_core::Hook;
pub use host::Host;
pub use neighbours::config::NeighbourConfig;
pub use ping::{Ping, PingConfig};
pub use prefixes::{Prefix, PrefixTable};
pub use raw_machine::RawIp;
pub use routes::{NextHop, RouteEntry, Routes, StaticRoutes};
pub use udp_machine::Udp;
