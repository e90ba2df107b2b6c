//! Settings of a host's membership.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_core::Duration;
use hopcast_wire::ethernet;
use hopcast_wire::membership::Version;

/// The sources from which a host wants a group's packets on an interface: of all of its sockets together.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Filter {
    /// None: the host is no member.
    #[default]
    None,
    /// These sources alone, INCLUDE mode. Without any, it is [`Filter::None`].
    Include(BTreeSet<IpAddr>),
    /// All sources, EXCLUDE mode without an exception.
    Any,
}

/// What memberships come to together: each names its source, or `None` for any.
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

/// An interface, as far as reports and queries depend on it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interface {
    /// The longest packet that its link carries, in bytes, from the IP header on.
    pub mtu: u32,
    /// The source of IGMP. Without one a host reports from 0.0.0.0, which RFC 3376 section 4.2.13 permits, and a
    /// querier speaks no IGMP there; the querier with the lowest asks.
    pub v4: Option<Ipv4Addr>,
    /// The source of MLD, a [link-local](ethernet::link_local) address. Without one a host reports from `::`, which is
    /// for switches alone (RFC 3590 section 4), and a querier speaks no MLD there.
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
    /// The newest version that the host speaks. Default: version 3. An older one knows no sources.
    pub version: Version,
    /// The oldest version that a querier may make the host speak. Default: version 1, as the RFCs have it. With an
    /// older querier than this the host's groups are not known to it; with one that is forged, nobody on the link can
    /// keep the host from reporting its sources (RFC 3376 section 9.1).
    pub oldest: Version,
    /// Number of times that a change is reported, until a querier says another (*Robustness Variable*, RFC 3376 section
    /// 8.1), 1 to 7. Default: 2, which one lost packet does not harm. Fewer: a lost report costs a query interval.
    /// More: each join costs as many packets.
    pub robustness: u8,
    /// Maximum time between two reports of a change (*Unsolicited Report Interval*, section 8.11). Default: 1 s.
    /// Shorter: one burst of losses takes all of them; longer: a lost report is made up for later.
    pub unsolicited_interval: Duration,
    /// Interval of queries, until a querier of version 3 says another (*Query Interval*, section 8.2). Default: 125 s.
    /// It is part of the time after which an older querier counts as gone.
    pub query_interval: Duration,
    /// Maximum number of groups on an interface, for each IP version. Default: 1024. With more the host's memory and
    /// the length of its answers grow; a group beyond is not reported, and counted (`membership_groups_refused`).
    pub max_groups: usize,
    /// Maximum number of sources of a group. Default: 256. A source beyond is not reported, and counted
    /// (`membership_sources_refused`).
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
