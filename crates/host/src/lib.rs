//! A small IP host and router for virtual time.
//!
//! A [`Host`] is a [`Machine`](hopcast_core::Machine). Its `Below` ports are its interfaces and carry Ethernet frames;
//! its `Above` ports are the machines bound on it: UDP ports ([`Host::bind_udp`]), IP protocols such as TCP
//! ([`Host::bind_protocol`]), hooks into forwarding ([`Host::hook`]), and frames of a type of their own
//! ([`Host::bind_frames`]).
//!
//! A frame that arrives is checked and its packet goes one of three ways. To one of the host's own addresses it is
//! delivered: to what is bound, or to the host's own ICMP, which answers pings. Otherwise it is in transit: a hook may
//! take it, and what no hook takes is forwarded, one hop less, in the buffer in which it came. What cannot be delivered
//! or forwarded is answered with the ICMP error that says why, so that path-MTU discovery and traceroute work as they
//! do on the Internet. What machines above hand down leaves by the same routes, and comes right back if it is for the
//! host itself.
//!
//! | module | what |
//! |---|---|
//! | [`config`] | addresses, interfaces, and whether to forward |
//! | [`routes`] | where to send: [`Routes`], [`StaticRoutes`], and the cache in front of them |
//! | [`prefixes`] | prefixes of addresses, and tables in which the longest wins |
//! | [`binding`] | the bindings of ports above, and the forward hook's filters |
//! | `host` | the machine: sorts what arrives |
//! | `forward` | transit, and what the host itself sends |
//! | `groups` | memberships, and packets to groups: [`GroupRoutes`] |
//! | `udp`, `icmp` | delivery of these two; errors, their limits, and the path MTUs in them |
//! | [`neighbours`] | Ethernet addresses of neighbours, asked for: ARP and neighbour discovery |
//! | [`membership`], [`querier`] | IGMP and MLD: the host's side, and the router's |
//! | [`Udp`] | UDP on its own, for stacks whose packets go into a tunnel |
//! | [`ping`] | messages as echo requests through a packet port, and their round trips |
//! | [`EchoResponder`] | the answers to echo requests on its own, for stacks that bring packets |
//!
//! # Scope and departures
//!
//! - **Neighbours are known** unless [`Host::resolve_neighbours`] is called: [`Routes`] gives the next station's
//!   Ethernet address at once, an idealised resolution that has converged. With it the host asks, by ARP and neighbour
//!   discovery (RFC 826, 4861); see [`neighbours`].
//! - **No fragmentation and no reassembly.** What the host sends has *don't fragment* set. A packet from elsewhere that
//!   has not, and is too big for the next link, is dropped and counted (`unfragmented`), where RFC 1812 would have it
//!   fragmented. Fragments are forwarded, and dropped at their destination (`fragments`).
//! - **A transit packet's transport checksum is not looked at**, as on any router. UDP's and ICMP's are verified before
//!   anything is delivered; another protocol's are left to the machine that is bound to it.
//! - **Multicast is forwarded by [`GroupRoutes`]**, a router's table of groups, or by a hook; broadcast by a hook
//!   alone. A packet to a group that did not arrive from where its sender is goes no further (reverse-path check). A
//!   machine receives the groups that it [joined](hopcast_core::Membership) itself, and no others that its port hears.
//!   What the host sends to a group it gets itself, if a machine on it has joined.
//! - **Path MTUs that ICMP announces are remembered** ([`Host::path_mtu`]) and delivered to the machine whose packet
//!   was too big, unless it is UDP's, which has no way to hear of it; nothing is held back on their account.
//! - **Memberships are reported** by IGMP and MLD only where [`Host::report_memberships`] is called; see
//!   [`membership`]. [`querier`] is the router's side.
//! - **A host has no timers** but those of its neighbours and reports: without them its deadline is always `None`.
//! - The source of the host's own packets is its first address of the version, not the interface's: hosts here are
//!   known by one address, as if it were a loopback address.
//! - No redirects, no source routes, no options: they are forwarded unread. A packet whose IPv6 extension headers do
//!   not read is malformed in transit too, where a router would not look.

mod agenda;
pub mod binding;
pub mod config;
mod counters;
mod echo;
mod forward;
mod groups;
mod host;
mod icmp;
pub mod membership;
pub mod neighbours;
mod pace;
pub mod ping;
pub mod prefixes;
pub mod querier;
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
pub use routes::{NextHop, RouteEntry, Routes, StaticRoutes};
pub use udp_machine::Udp;
