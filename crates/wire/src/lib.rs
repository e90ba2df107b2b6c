//! The packet formats that several crates read: Ethernet II, IPv4, IPv6, UDP and ICMP, on a [`hopcast_core::Buffer`].
//!
//! Reading is a look at lent bytes: each format has a `parse` that returns a small [`Copy`] header or an error that
//! names what was wrong and at which field ([`Malformed`]). Writing is a `prepend` into a buffer's headroom, or a
//! change in place. Nothing here copies a payload or allocates, and no bytes can make it panic.
//!
//! | module | what |
//! |---|---|
//! | [`ethernet`] | the 14 bytes in front of a packet |
//! | [`ip`] | one header type for both versions; writing, and taking one hop off in place |
//! | [`udp`] | the header, and the checksum over the pseudo-header |
//! | [`icmp`] | echo and errors, one message type for both versions |
//! | [`checksum`] | the Internet checksum, whole, in parts and incrementally |
//!
//! # Scope and departures
//!
//! The formats are those of RFC 894 (Ethernet), 791 (IPv4), 8200 (IPv6), 768 (UDP), 792 and 4443 (ICMP). IPv4 options
//! and IPv6 extension headers are skipped, not read; fragments are recognised, not reassembled; what is written never
//! has options and always has *don't fragment* set. A protocol's private format lives with the protocol. IPv6
//! jumbograms (RFC 2675) are malformed.

pub mod checksum;
pub mod ethernet;
pub mod icmp;
pub mod ip;
mod malformed;
pub mod udp;

pub use malformed::{Fault, Malformed};
