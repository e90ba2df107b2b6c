//! Links of a router, and destinations on them, which no protocol tells it.

use std::net::IpAddr;

use crate::prefixes::Prefix;

/// The router's own links.
pub trait Attachments {
    /// A number that changes whenever a link may have gone down or up. It is cheap to read.
    fn version(&self) -> u64;

    /// Whether the link of an interface can be sent on.
    fn is_up(&self, interface: u32) -> bool;

    /// Destinations on the router's links, behind no other router, in any order; always the same, whatever is down.
    fn attached(&self) -> Vec<Attached>;
}

/// Destinations on a link of the router.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Attached {
    /// The destinations: the prefix of the link, or an address of a host on it.
    pub to: Prefix,
    /// The number of the interface.
    pub interface: u32,
    /// The host's address as a neighbour; `None` where each destination is one itself.
    pub gateway: Option<IpAddr>,
}
