//! Xcast (RFC 5058): explicit multicast in which every router sorts the list of receivers by next hop.
//!
//! A packet lists its receivers in a routing header and is addressed to all Xcast routers of a link. Each router looks
//! up the next hop of every receiver that is still marked, and sends a copy to each next hop, in which only the
//! receivers behind that are marked.

pub mod router;
pub mod sender;
pub mod wire;
