//! A MEADcast router (thesis, section 4.2): it names itself to senders, copies data for other routers, and turns data
//! of its own into plain packets for its receivers.
//!
//! [`Router`] is attached to a host by a hook, on `Below(0)`: it takes whole IPv6 packets with MEADcast's routing
//! header ([`Item::Transit`](hopcast_core::Item::Transit)), and hands back what is to follow the host's routes, so it
//! needs to know none. It has no state of senders, groups or receivers.
//!
//! - **A request** of discovery goes on to its receiver with one hop more, and causes a response with the router's
//!   address and distance.
//! - **Data** has a section for each router whose receivers have not been served. The section of this router, and one
//!   with fewer receivers than [`Config::min_dsts`], becomes a plain packet for each of its receivers (M2U, and
//!   premature M2U); of any other a copy goes on, with that section alone to deliver, to its first receiver.
//! - **Data that is on hold** goes on whole while the counter says so, and at the latest to the first router of its
//!   list that it meets.
//! - **Data with a [short list](super::wire::short)** is split where the tree parts: each copy lists what is behind it.
//!   This router's own section, and a part that is one section of fewer receivers than `min_dsts`, becomes plain
//!   packets.
//! - **Anything else**, responses too, goes on as it is; so does all while it is [off](Config::enable).
//!
//! # Bounds
//!
//! Nobody is authenticated. Forged data makes at most as many packets as its list has receivers, on all routers
//! together, since copies share no receiver; a forged request makes a response at each router on its path. Packets that
//! would go round in a circle end at 63 MEADcast hops. A router
//! makes no more than a number of [copies](Config::copies_per_second) and of
//! [responses](Config::responses_per_second) in a second. A packet that is at the end of its hop limit is dropped, and
//! causes no error of ICMP, of which each copy would cause one. Whoever forges a response to a sender gets what is for
//! receivers, unless there is a [key](Config::key).
//!
//! # Departures
//!
//! - The transport's checksum fits the destination in copies too, and not only after M2U, as does the port if ports are
//!   listed: so a receiver that a copy reaches unchanged can read it.
//! - A response is made anew, and not from the request's bytes, and comes from the node's first address; the thesis
//!   takes that of the interface towards the sender.

mod config;
mod counters;
mod data;
mod machine;
mod short;
#[cfg(test)]
pub(super) mod tests;

use hopcast_core::Hook;

pub use config::Config;
pub use machine::Router;

use super::wire::ROUTING_TYPE;
use crate::header::ROUTING;

/// The hook that selects the packets of MEADcast.
pub const HOOKS: [Hook; 1] = [Hook::ExtensionHeader { header: ROUTING, kind: Some(ROUTING_TYPE) }];
