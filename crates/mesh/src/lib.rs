//! Meshes of layer 2, whose members carry Ethernet frames for one another: the protocol family of batman-adv,
//! compatibility version 15, as it is in the Linux kernel.
//!
//! | module | what |
//! |---|---|
//! | [`wire`] | every packet format: originator messages of versions IV and V, data, fragments, TVLV containers |
//!
//! # Scope and departures
//!
//! The formats are complete but for network coding's packets and the throughput meter's.

pub mod wire;
