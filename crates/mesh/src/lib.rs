//! Meshes of layer 2, whose members carry Ethernet frames for one another: the protocol family of batman-adv,
//! compatibility version 15, as it is in the Linux kernel.
//!
//! Every node floods messages about itself, and learns from those of others who the best next hop to each is. A client
//! is a station behind a node: its host, or one beyond a bridge. A frame of a client is sent to the node that announces
//! its receiver, or flooded if it is for all.
//!
//! | module | what |
//! |---|---|
//! | [`node`] | a node of a mesh, by B.A.T.M.A.N. IV or V: [`Mesh`] |
//! | [`arp_table`] | what nodes know of their clients' IPv4 addresses: the distributed ARP table |
//! | [`bridge_loops`] | nodes that are bridged to one LAN: who brings which client's frames to it |
//! | [`gateway`] | which nodes are gateways to other networks, and which of them a node uses |
//! | [`multicast`] | which nodes want a frame to a group, and how it is sent to them |
//! | [`wire`] | every packet format: originator messages of versions IV and V, data, fragments, TVLV containers |
//!
//! # Bounds
//!
//! Nobody is authenticated: a station may announce anything, and is believed. What it can cost is bounded. A node with
//! one interface takes 11 MB at most with the defaults: originators are bounded by [`BatmanIvConfig::max_originators`]
//! and [`BatmanVConfig::max_originators`], of whom those without a route are forgotten first, the paths to them by
//! 32,768, clients by [`MeshConfig::max_clients`] and [`MeshConfig::max_clients_of_node`], groups by
//! [`MulticastConfig::max_groups`], entries of the ARP table by 4096, claims of clients by 8192, fragments by a
//! megabyte and 256 packets, and packets that wait by 256 of each kind. A packet makes at most three copies of itself
//! on each interface, one to each destination that it lists, goes 50 hops, and has one answer; a node gets four answers
//! about a table in three seconds.
//!
//! A station on the LAN may claim clients of the mesh, or announce claims that it never makes; nodes there then carry
//! no broadcasts, in any VLAN, for as long as it does. Nodes on the LAN are bounded by 256, of whom those that are not
//! in the mesh make room for those that are, and its VLANs by 256, of which none ends: a station that fills them leaves
//! no room for a further one until the node restarts.
//!
//! A node that lies about its paths draws the packets of those who have no better ones. With B.A.T.M.A.N. V it is
//! believed up to the throughput of the link to it, so that who has a path of more than that keeps it.
//!
//! # Scope and departures
//!
//! - Bonding and isolation are not there yet.
//! - Answers for a table that was not asked for are ignored; the kernel takes them.
//! - VLANs are learned from clients' frames, and are gone when their last client has been silent for ten minutes; the
//!   kernel knows those that have an interface, and keeps the interface's own address.
//! - Originators, clients of others, the nodes that announce one client, answers, and incomplete packets of all
//!   originators together have bounds; the kernel's is its memory. A node whose clients find no room is asked for its
//!   table less and less often.
//! - The numbers of a node's broadcasts begin anywhere; the kernel's begin at 1, so that those after a restart may be
//!   taken for ones that were heard before.
//! - The containers of an originator message are read once for each number; the kernel reads them in each copy.
//! - A fragment without a byte is dropped, and one that says another length of its packet begins the packet anew.
//! - Packets of the throughput meter are forwarded, and not answered.
//! - The throughput of a link of B.A.T.M.A.N. V is configured, or a third of the rate at which a radio's neighbour
//!   sends to this node; the kernel asks the driver for the rate at which it sends itself. A radio is half duplex, and
//!   nothing else is.
//! - With B.A.T.M.A.N. V there are routes for packets that came by an interface also where the only neighbour there is
//!   the originator or its forwarder; the kernel has none, and drops a packet that is to go back because its client has
//!   roamed.
//! - An originator message of B.A.T.M.A.N. V with a throughput of 0, which nobody takes, is not forwarded. One after a
//!   restart makes its sender the next hop, since numbers from before cannot be compared with those from then on.
//! - Packets of a type that is not known are not forwarded.
//! - A packet that is reassembled from fragments and is a fragment itself is malformed.

pub mod arp_table;
pub mod bridge_loops;
pub mod gateway;
pub mod multicast;
pub mod node;
pub mod wire;

mod address_map;
mod batman_iv;
mod batman_v;
#[cfg(test)]
mod captured;
mod routing;
mod translation;
mod window;

pub use arp_table::ArpEntry;
pub use batman_iv::BatmanIvConfig;
pub use batman_v::BatmanVConfig;
pub use bridge_loops::{BackboneStatus, ClaimStatus};
pub use gateway::{GatewayConfig, GatewayMode, GatewayStatus};
pub use multicast::{Above, MulticastConfig, MulticastMode, MulticastStatus, SizeLimit};
pub use node::{Mesh, MeshConfig, MeshInterface};
pub use routing::{OriginatorStatus, RoutingConfig};
pub use translation::Key;
