//! Settings of a bridge.

use std::net::Ipv4Addr;

use hopcast_core::Duration;
use hopcast_wire::ethernet::Mac;
use hopcast_wire::vlan::CUSTOMER;

/// Maximum number of ports of a bridge, the host's included: that of Linux (`BR_MAX_PORTS`). A frame to all ports is
/// copied to each, so that more cost more than a bridge is good for.
pub const MAX_PORTS: usize = 1024;

/// Settings of a bridge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// The ports `Below(0)`, `Below(1)`, and so on.
    pub ports: Vec<BridgePort>,
    /// The host's own port, `Above(0)`, and its Ethernet address; `None` of a bridge that has none.
    pub host: Option<(BridgePort, Mac)>,
    /// Time after its last frame for which a station's address is known. Default: 300 s (IEEE 802.1D-2004 table 7-5,
    /// and Linux). Shorter: frames to quiet stations are sent to all ports; longer: a station that has moved misses
    /// what is sent to it until it sends something. With zero nothing is learned, and every frame is sent to all ports.
    pub ageing: Duration,
    /// Maximum number of addresses that are known at a time. Default: 16,384, the size of a common switch's table; each
    /// takes about 30 bytes. Frames to the addresses beyond are sent to all ports.
    pub max_addresses: usize,
    /// The tags of the VLANs that frames are sorted by; `None` of a bridge that knows no VLANs and passes tags on.
    /// Default: `None`, as Linux.
    pub vlans: Option<VlanFiltering>,
    /// Snooping of IGMP and MLD; `None` without. Default: on, without a querier, as Linux.
    pub snooping: Option<Snooping>,
}

/// Filtering by VLANs: a port takes and is given only the frames of its VLANs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanFiltering {
    /// The type of the tags: [`CUSTOMER`] (802.1Q) or `PROVIDER` (802.1ad). Frames with tags of the other type count as
    /// untagged.
    pub protocol: u16,
}

/// A port.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BridgePort {
    /// The VLAN of frames that arrive without a tag, or with one of VLAN 0; `None`, and such frames are dropped.
    pub native: Option<u16>,
    /// The VLANs whose frames leave with their tag.
    pub tagged: Vec<u16>,
    /// The VLANs whose frames leave without a tag; those in `tagged` too are untagged. The native VLAN need be in
    /// neither: frames are then taken from it and none sent to it.
    pub untagged: Vec<u16>,
    /// Whether multicast routers are behind it.
    pub router: RouterPort,
    /// Whether the port is told, by [`Item::Membership`](hopcast_core::Item::Membership), which groups without a VLAN's
    /// tag are wanted behind the others, as far as snooping knows: the unspecified address of an IP version stands for
    /// all groups while it does not. For a mesh, which floods no group that nobody wants; default false.
    pub tell_memberships: bool,
}

impl BridgePort {
    /// A port of one VLAN, whose frames have no tag on it.
    pub fn untagged(vlan: u16) -> Self {
        Self { native: Some(vlan), untagged: vec![vlan], ..Self::default() }
    }
}

/// Whether multicast routers are behind a port. They receive the reports of all hosts, and the packets of all groups.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RouterPort {
    /// While queries or Hellos of PIM come from there.
    #[default]
    Heard,
    /// Always.
    Always,
    /// Never, whatever comes from there.
    Never,
}

/// Snooping of IGMP and MLD. The times are Linux' defaults, which are those of RFC 2236 section 8.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Snooping {
    /// The bridge's own querier; `None` without. Default: `None`. Without any querier on the network nothing is known
    /// for long, and frames to groups are sent to all ports.
    pub querier: Option<Querier>,
    /// Maximum number of groups, of all VLANs together. Default: 4096, Linux' `mcast_hash_max`. While there are more,
    /// frames to the groups that are not known are sent to all ports.
    pub max_groups: usize,
}

/// A bridge's own querier, which sends IGMPv2 and MLDv1 queries in each VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Querier {
    /// The Ethernet address that queries are sent from; MLD's are sent from its link-local address.
    pub mac: Mac,
    /// The address that IGMP's queries are sent from. Unspecified, any other querier goes before this one (RFC 4541
    /// section 2.1.1); otherwise the lowest address queries.
    pub address: Ipv4Addr,
    /// Time between general queries. Default: 125 s. Shorter: more reports; longer: a port is given the packets of a
    /// group for longer after its last member has vanished without a leave.
    pub interval: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            ports: Vec::new(),
            host: None,
            ageing: Duration::from_secs(300),
            max_addresses: 16_384,
            vlans: None,
            snooping: Some(Snooping::default()),
        }
    }
}

impl Default for VlanFiltering {
    fn default() -> Self {
        Self { protocol: CUSTOMER }
    }
}

impl Default for Snooping {
    fn default() -> Self {
        Self { querier: None, max_groups: 4096 }
    }
}

impl Querier {
    /// A querier without an IPv4 address, at the default interval.
    pub const fn of(mac: Mac) -> Self {
        Self { mac, address: Ipv4Addr::UNSPECIFIED, interval: Duration::from_secs(125) }
    }
}
