//! The daemon as its users run it: the real command in network namespaces, on links that lose, move and break.
//!
//! All of it needs root, TUN and namespaces, and is skipped aloud where those are missing.

#![allow(clippy::unwrap_used)]
#![allow(clippy::disallowed_methods)] // these tests run in real time

mod bridge;
mod carry;
mod cut_short;
mod explicit;
mod group;
mod howto;
mod lab;
mod limits;
mod mesh;
mod mesh_beside_linux;
mod mistakes;
mod scenario;
mod store_forward;
mod trouble;
