//! Meshes of layer 2, whose members carry Ethernet frames for one another: the protocol family of batman-adv,
//! compatibility version 15, as it is in the Linux kernel.
//!
//! Every node floods messages about itself, and learns from those of others who the best next hop to each is. A client
//! is a station behind a node: its host, or one beyond a bridge. A frame of a client is sent to the node that announces
//! its receiver, or flooded if it is for all.
//!
//! | module | what |
//! |---|---|
//! | [`node`] | a node of a mesh of B.A.T.M.A.N. IV: [`Mesh`] |
//! | [`wire`] | every packet format: originator messages of versions IV and V, data, fragments, TVLV containers |
//!
//! # Bounds
//!
//! Nobody is authenticated: a station may announce anything, and is believed. What it can cost is bounded: originators
//! by [`BatmanIvConfig::max_originators`], of whom those without a route are forgotten first, clients by
//! [`MeshConfig::max_clients`] and [`MeshConfig::max_clients_of_node`], fragments by a megabyte, and packets that
//! wait by 256. A packet makes at most three copies of itself on each interface, and goes 50 hops.
//!
//! # Scope and departures
//!
//! - B.A.T.M.A.N. V, multicast packets, group announcements, the distributed ARP table, gateways, bridge-loop
//!   avoidance, bonding and isolation are not there yet; of all but the last three the formats are.
//! - Frames to groups are flooded. A node without the container of multicast flags is taken to want all of them, so
//!   that the kernel's nodes send them all here.
//! - Answers for a table that was not asked for are ignored; the kernel takes them.
//! - VLANs are learned from clients' frames; the kernel knows those that have an interface.
//! - Packets of a type that is not known are not forwarded.
//! - A packet that is reassembled from fragments and is a fragment itself is malformed.

pub mod node;
pub mod wire;

mod batman_iv;
#[cfg(test)]
mod captured;
mod routing;
mod translation;
mod window;

pub use batman_iv::BatmanIvConfig;
pub use node::{Mesh, MeshConfig, MeshInterface};
pub use routing::{OriginatorStatus, RoutingConfig};
pub use translation::Key;
