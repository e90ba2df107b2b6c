//! Hooks into a host: selections of the packets that a machine takes out of it.
//!
//! In virtual time a simulated host has the hooks, live a [`HookPlug`](crate::plug::HookPlug); what a machine is given
//! and may answer is the same, see [`Transit`](crate::Transit).

use std::net::IpAddr;

/// Packets that a machine takes out of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hook {
    /// All packets in transit.
    All,
    /// Packets in transit of an IP protocol.
    Protocol(u8),
    /// Packets of an IP protocol, in transit and for the host itself.
    Transport {
        /// The protocol's number.
        protocol: u8,
        /// The destination port that they have, in the second 16-bit word behind the IP header; `None` for any.
        port: Option<u16>,
    },
    /// Packets in transit to a prefix, which may be one of groups.
    Destination {
        /// An address in the prefix.
        prefix: IpAddr,
        /// The prefix's length in bits; a length past the address's is its whole length.
        length: u8,
    },
    /// Packets to a group that a host drops because they arrived on another interface than that of their route: a
    /// router that forwards there learns of another that does. In virtual time alone.
    WrongInterface,
    /// Packets that the host itself sends to a group whose scope is wider than a link, before its members on this host
    /// are given them: a router may bring them to members by other means than routes. In virtual time alone.
    OwnToGroup,
    /// IPv6 packets with an extension header, in transit and for the host itself.
    ExtensionHeader {
        /// Its number among IP's protocols: 0 hop-by-hop options, 43 routing, 60 destination options.
        header: u8,
        /// The type in its third byte, of a routing header; `None` for any.
        kind: Option<u8>,
    },
}

impl Hook {
    /// Whether it selects packets for the host itself, too.
    pub const fn is_for_host(&self) -> bool {
        matches!(self, Self::ExtensionHeader { .. } | Self::Transport { .. })
    }
}

/// Maximum number of transits that a hook may hand over for each packet that it received; at an instant without such
/// a packet this many, and one more for each interface. Chosen: with fewer, an explicit multicast packet to many
/// receivers is cut short; with more, a faulty hook costs more.
pub const MAX_ANSWERS: u32 = 256;
