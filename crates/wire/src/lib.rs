//! The packet formats that several crates read: Ethernet II, ARP, IPv4, IPv6, UDP, ICMP, neighbour discovery,
//! IGMP and MLD, on a [`hopcast_core::Buffer`].
//!
//! Reading is a look at lent bytes: each format has a `parse` that returns a small [`Copy`] header or an error that
//! names what was wrong and at which field ([`Malformed`]). Writing is a `prepend` into a buffer's headroom, or a
//! change in place. Nothing here copies a payload or allocates, but to write messages of group membership and addresses
//! as text, and no bytes can make it panic.
//!
//! | module | what |
//! |---|---|
//! | [`ethernet`] | the 14 bytes in front of a packet |
//! | [`arp`], [`nd`] | a neighbour's Ethernet address, by IPv4 and by IPv6 |
//! | [`ip`] | one header type for both versions; writing, and taking one hop off in place |
//! | [`udp`] | the header, and the checksum over the pseudo-header |
//! | [`icmp`] | echo and errors, one message type for both versions |
//! | [`membership`] | group membership: one set of types for IGMP and MLD |
//! | [`igmp`], [`mld`] | the two formats of it |
//! | [`router_alert`] | the IP headers around them |
//! | [`checksum`] | the Internet checksum, whole, in parts and incrementally |
//!
//! # Scope and departures
//!
//! The formats are those of RFC 894 (Ethernet), 826 (ARP), 791 (IPv4), 8200 (IPv6), 768 (UDP), 792 and 4443 (ICMP),
//! 4861 (neighbour solicitations and advertisements), 1112, 2236 and 3376 (IGMP), 2710 and 3810 (MLD; RFC 9776 and
//! 9777 are newer editions of the last of each, with the same bytes). Of IPv4 options and IPv6 hop-by-hop options
//! Router Alert is known (RFC 2113, 2711); other options and extension headers are skipped, not read. Fragments are
//! recognised, not reassembled; what is written always has *don't fragment* set. A protocol's private format lives
//! with the protocol. IPv6 jumbograms (RFC 2675) are malformed.

pub mod arp;
pub mod checksum;
pub mod ethernet;
pub mod icmp;
pub mod ip;
mod malformed;
pub mod membership;
pub mod nd;
pub mod router_alert;
pub mod udp;
pub mod vlan;

pub use malformed::{Fault, Malformed};
pub use membership::{igmp, mld};
