//! Our nodes of a mesh and the kernel's: in one mesh, and next to each other in meshes of the same shape.

#![allow(clippy::disallowed_methods)] // The guest keeps its own time.
#![allow(clippy::unwrap_used)]

mod arp_table;
mod both;
mod bridge_loops;
mod control;
mod gateways;
mod host;
mod lan;
mod live;
mod multicast;
mod topology;
mod world;
