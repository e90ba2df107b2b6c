//! The configuration of a host.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_wire::ethernet::Mac;
use hopcast_wire::ip::Version;

/// A host's addresses and interfaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The host's own addresses, of both versions. The first of a version is the source of the host's packets unless
    /// the machine above chooses another. Without an address of a version the host sends nothing of that version.
    pub addresses: Vec<IpAddr>,
    /// The interfaces; their numbers are those of the `Below` ports.
    pub interfaces: Vec<Interface>,
    /// Whether the host is a router. Default: false, and packets for others are dropped.
    pub forwarding: bool,
    /// The hop limit of the host's own packets, in hops. Default: 64 (RFC 1700). Too low, and far hosts cannot be
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

    /// The IPv4 source address of the host's own protocols on an interface.
    pub(crate) fn v4_on(&self, interface: u32) -> Option<Ipv4Addr> {
        let own = self.interfaces.get(interface as usize).and_then(|interface| interface.v4);
        own.or_else(|| match self.address(Version::V4) {
            Some(IpAddr::V4(address)) => Some(address),
            Some(IpAddr::V6(_)) | None => None,
        })
    }

    /// The IPv6 source address of the host's own protocols on an interface.
    pub(crate) fn v6_on(&self, interface: u32) -> Option<Ipv6Addr> {
        let own = self.interfaces.get(interface as usize).and_then(|interface| interface.v6);
        own.or_else(|| match self.address(Version::V6) {
            Some(IpAddr::V6(address)) => Some(address),
            Some(IpAddr::V4(_)) | None => None,
        })
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
    /// The source address of requests for neighbours on its link, one of the host's own; `None` for the host's first
    /// IPv4 address.
    pub v4: Option<Ipv4Addr>,
    /// The same for IPv6.
    pub v6: Option<Ipv6Addr>,
}

impl Interface {
    /// An interface without addresses of its own: on it the host uses its first addresses.
    pub const fn new(mac: Mac, mtu: u32) -> Self {
        Self { mac, mtu, v4: None, v6: None }
    }
}
