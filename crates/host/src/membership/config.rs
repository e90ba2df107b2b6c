//! Settings of a host's membership.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_core::Duration;
use hopcast_wire::ethernet;
use hopcast_wire::membership::Version;

/// The sources from which a host wants a group's packets on an interface: those of all its sockets together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// None: the host is no member.
    #[default]
    None,
    /// Only these sources: mode INCLUDE. An empty set is equivalent to [`Filter::None`].
    Include(BTreeSet<IpAddr>),
    /// All sources: mode EXCLUDE without an exception.
    Any,
}

/// The union of memberships, each with its source, or `None` for any.
impl FromIterator<Option<IpAddr>> for Filter {
    fn from_iter<I: IntoIterator<Item = Option<IpAddr>>>(memberships: I) -> Self {
        let sources: Option<BTreeSet<IpAddr>> = memberships.into_iter().collect();
        match sources {
            None => Self::Any,
            Some(none) if none.is_empty() => Self::None,
            Some(sources) => Self::Include(sources),
        }
    }
}

/// The properties of an interface on which reports and queries depend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The longest packet that its link carries, in bytes, from the IP header on.
    pub mtu: u32,
    /// Source address of IGMP. Without one a host reports from 0.0.0.0, which RFC 3376 section 4.2.13 permits, and a
    /// querier sends no IGMP there. Of several queriers the one with the lowest address sends queries.
    pub v4: Option<Ipv4Addr>,
    /// Source address of MLD, a [link-local](ethernet::link_local) one. Without one a host reports from `::`, which
    /// only switches evaluate (RFC 3590 section 4), and a querier sends no MLD there.
    pub v6: Option<Ipv6Addr>,
}

impl Interface {
    /// The interfaces of a host, each with sources of both versions as far as the host has addresses.
    pub fn of_host(host: &crate::Config) -> Vec<Self> {
        let interface = |(number, interface): (u32, &crate::Interface)| Self {
            mtu: interface.mtu,
            v4: host.v4_on(number),
            v6: Some(ethernet::link_local(interface.mac)),
        };
        (0..).zip(&host.interfaces).map(interface).collect()
    }
}

/// Settings of a host's membership, the same on all of its interfaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The newest version in which the host reports. Default: version 3. An older one has no sources.
    pub version: Version,
    /// The oldest version to which a querier may move the host. Default: version 1, as in the RFCs. Newer, and an older
    /// querier does not learn the host's groups; older, and a forged query keeps the host from reporting its sources
    /// (RFC 3376 section 9.1).
    pub oldest: Version,
    /// Number of times that a change is reported, 1 to 7, until a querier announces another (*Robustness Variable*, RFC
    /// 3376 section 8.1). Default: 2, which tolerates one lost packet. Fewer: a lost report costs a query interval.
    /// More: each join costs that number of packets.
    pub robustness: u8,
    /// Maximum time between two reports of a change (*Unsolicited Report Interval*, section 8.11). Default: 1 s.
    /// Shorter: one burst of losses takes all of them; longer: a lost report is repeated later.
    pub unsolicited_interval: Duration,
    /// Interval of queries, until a querier of version 3 announces another (*Query Interval*, section 8.2). Default:
    /// 125 s. It is part of the time after which an older querier counts as gone.
    pub query_interval: Duration,
    /// Maximum number of groups on an interface, for each IP version. Default: 1024. A group beyond it is not reported,
    /// and counted (`membership_groups_refused`). More: the host's memory and the length of its answers grow.
    pub max_groups: usize,
    /// Maximum number of sources of a group. Default: 256. A source beyond it is not reported, and counted
    /// (`membership_sources_refused`). More: reports and memory grow.
    pub max_sources: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            version: Version::V3,
            oldest: Version::V1,
            robustness: 2,
            unsolicited_interval: Duration::from_secs(1),
            query_interval: Duration::from_secs(125),
            max_groups: 1024,
            max_sources: 256,
        }
    }
}
