//! The configuration of a host.

use std::net::IpAddr;

use hopcast_wire::ethernet::Mac;
use hopcast_wire::ip::Version;

/// A host's addresses and interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The host's own addresses, of both versions. The first of a version is the source of what the host says unless
    /// the machine above chooses another. Without an address of a version the host sends nothing of that version.
    pub addresses: Vec<IpAddr>,
    /// The interfaces; their numbers are those of the `Below` ports.
    pub interfaces: Vec<Interface>,
    /// Whether the host is a router. Default: false, and what is not for the host is dropped.
    pub forwarding: bool,
    /// The hop limit of what the host itself sends, in hops. Default: 64 (RFC 1700). Too low, and far hosts cannot be
    /// reached; too high, and a routing loop costs more before it ends.
    pub hop_limit: u8,
}

impl Default for Config {
    fn default() -> Self {
        Self { addresses: Vec::new(), interfaces: Vec::new(), forwarding: false, hop_limit: 64 }
    }
}

impl Config {
    /// The address that the host uses as its own of `version`.
    pub(crate) fn address(&self, version: Version) -> Option<IpAddr> {
        self.addresses.iter().copied().find(|&address| Version::of(address) == version)
    }

    /// Whether `address` is the host's.
    #[inline]
    pub(crate) fn owns(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address)
    }
}

/// An interface of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// Its Ethernet address.
    pub mac: Mac,
    /// Maximum length of a packet that its link carries, in bytes, from the IP header on.
    pub mtu: u32,
}
