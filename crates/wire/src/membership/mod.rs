//! Group membership as IGMP and MLD tell it: one set of types for the messages of both.
//!
//! MLD is IGMP carried over to IPv6: the same messages, with longer addresses and other units. [`igmp`]
//! and [`mld`] hold the two formats; hosts and routers work with the [`Message`] that either reads.
//! [`parse`] takes it out of an IP packet and checks what the RFCs ask of the packet around it.

mod codes;
pub mod igmp;
pub mod mld;
mod query_packet;
mod records;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_core::Duration;

use crate::{Malformed, ip, router_alert};

pub(crate) use codes::{MANTISSA_OF_8, MANTISSA_OF_16, decode, encode};
pub use query_packet::{query_packet, sources_that_fit};
pub use records::{Record, Records, Sources, record_len};
pub(crate) use records::{put_address, put_records};

/// The version that a message belongs to, numbered as IGMP's. MLDv1 is as IGMPv2, MLDv2 as IGMPv3.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Version {
    /// IGMPv1 (RFC 1112): reports of groups, no leaves, no maximum response time.
    V1,
    /// IGMPv2 (RFC 2236), MLDv1 (RFC 2710): reports and leaves of groups.
    V2,
    /// IGMPv3 (RFC 3376), MLDv2 (RFC 3810): reports of groups with their sources.
    V3,
}

/// A message of IGMP or MLD.
#[derive(Clone, Copy, Debug)]
pub enum Message<'a> {
    /// A router asks who is a member; of a [`Query::group`] and, where there are any, of these sources.
    Query(Query, Sources<'a>),
    /// A host's report of version 3: any number of groups.
    Report(Records<'a>),
    /// A host's report of version 1 or 2: one group, from any source.
    OlderReport(Version, IpAddr),
    /// A host leaves a group; version 2.
    Leave(IpAddr),
}

/// A query, but for its sources.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Query {
    /// The version, which the length of the message tells.
    pub version: Version,
    /// The group that is asked about; `None` in a general query, which asks about all.
    pub group: Option<IpAddr>,
    /// Maximum time until a host answers. A query of version 1 has none, and reads as 10 s (RFC 3376 section 7.2.1).
    pub max_response: Duration,
    /// Whether other routers leave their timers as they are (the S flag). Always false before version 3.
    pub suppress: bool,
    /// The querier's robustness variable, 0 to 7; 0 stands for more than 7, and for "none" before version 3.
    pub robustness: u8,
    /// The querier's query interval; zero before version 3.
    pub interval: Duration,
}

/// The type of a [`Record`] (RFC 3376 section 4.2.12, RFC 3810 section 5.2.12).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum RecordType {
    /// Current state: only from the sources named.
    IsInclude = 1,
    /// Current state: from all but the sources named.
    IsExclude = 2,
    /// The filter mode has changed: only from the sources named.
    ToInclude = 3,
    /// The filter mode has changed: from all but the sources named.
    ToExclude = 4,
    /// These sources beside those before.
    Allow = 5,
    /// These sources no longer.
    Block = 6,
}

impl RecordType {
    const fn read(byte: u8) -> Option<Self> {
        Some(match byte {
            1 => Self::IsInclude,
            2 => Self::IsExclude,
            3 => Self::ToInclude,
            4 => Self::ToExclude,
            5 => Self::Allow,
            6 => Self::Block,
            _ => return None,
        })
    }

    /// Whether the sources named are those that are not wanted, in the filter mode *exclude*.
    pub const fn is_exclude(self) -> bool {
        matches!(self, Self::IsExclude | Self::ToExclude)
    }
}

/// Reads the message in `packet`, an IP packet whose header is `header`. `None` if it carries another protocol, another
/// kind of ICMPv6, or a type or length of IGMP or MLD that nobody knows, which is passed over in silence (RFC 3376
/// section 4 and 7.1, RFC 3810 section 5 and 8.1).
///
/// A packet that is not from this link is malformed: its hop limit must be 1, and MLD's must come from a link-local
/// address, or a report from none, with a Router Alert (RFC 3810 sections 5.1.14, 5.2.13 and 6.2). IGMP is read without
/// a Router Alert, which version 1 does not have.
pub fn parse<'a>(packet: &'a [u8], header: &ip::Header) -> Result<Option<Message<'a>>, Malformed> {
    let Some(payload) = packet.get(header.payload()) else {
        return Err(Malformed::truncated("IP", "payload", header.total_len, packet.len()));
    };
    let (message, format) = match (header.source, header.destination, header.protocol) {
        (IpAddr::V4(_), IpAddr::V4(_), ip::IGMP) => (igmp::parse(payload)?, "IGMP"),
        (IpAddr::V6(source), IpAddr::V6(destination), ip::ICMPV6) => {
            (mld::parse(source, destination, payload)?, "MLD")
        }
        _ => return Ok(None),
    };
    let Some(message) = message else { return Ok(None) };
    if header.hop_limit != 1 {
        return Err(Malformed::value(format, "hop limit", header.hop_limit.into()));
    }
    if let IpAddr::V6(source) = header.source {
        let nobody = source.is_unspecified() && !matches!(message, Message::Query(..));
        if !source.is_unicast_link_local() && !nobody {
            return Err(Malformed::value("MLD", "source address", u32::from(source.segments()[0])));
        }
        if !router_alert::is_present(packet) {
            return Err(Malformed::value("MLD", "Router Alert", 0));
        }
    }
    Ok(Some(message))
}

/// The address that all hosts on a link listen to: general queries.
pub const fn all_nodes(version: ip::Version) -> IpAddr {
    match version {
        ip::Version::V4 => IpAddr::V4(Ipv4Addr::new(224, 0, 0, 1)),
        ip::Version::V6 => IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 1)),
    }
}

/// The address that all routers on a link listen to: leaves of version 2.
pub const fn all_routers(version: ip::Version) -> IpAddr {
    match version {
        ip::Version::V4 => IpAddr::V4(Ipv4Addr::new(224, 0, 0, 2)),
        ip::Version::V6 => IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 2)),
    }
}

/// The address that routers of version 3 listen to: reports of version 3 (RFC 3376 section 4.2.14, RFC 3810 section
/// 5.2.14).
pub const fn report_routers(version: ip::Version) -> IpAddr {
    match version {
        ip::Version::V4 => IpAddr::V4(Ipv4Addr::new(224, 0, 0, 22)),
        ip::Version::V6 => IpAddr::V6(Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 0, 0x16)),
    }
}

/// Whether membership of `group` is reported: a multicast address that is neither that of all nodes nor confined to the
/// host (RFC 3376 section 6, RFC 3810 section 6).
pub fn is_reported(group: IpAddr) -> bool {
    let confined = match group {
        IpAddr::V4(_) => false,
        // Scopes 0 (reserved) and 1 (of the interface): RFC 4291 section 2.7.
        IpAddr::V6(group) => group.segments()[0] & 0x000f < 2,
    };
    group.is_multicast() && !confined && group != all_nodes(ip::Version::of(group))
}

/// Whether `group` is only joined with its sources: 232/8 and ff3x::/32 (RFC 4607 section 1).
pub const fn is_source_specific(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.octets()[0] == 232,
        IpAddr::V6(group) => group.segments()[0] & 0xfff0 == 0xff30 && group.segments()[1] == 0,
    }
}

/// The byte of reserved bits, S flag and robustness, and that of the query interval.
pub(crate) fn put_querier(query: &Query) -> [u8; 2] {
    // RFC 3376 section 4.1.6: what does not fit the field is sent as 0.
    let robustness = if query.robustness > 7 { 0 } else { query.robustness };
    let seconds = u32::try_from(query.interval.as_millis() / 1000).unwrap_or(u32::MAX);
    [u8::from(query.suppress) << 3 | robustness, encode(seconds, MANTISSA_OF_8) as u8]
}

/// The S flag, the robustness and the query interval in these two bytes.
pub(crate) fn read_querier([flags, interval]: [u8; 2]) -> (bool, u8, Duration) {
    let interval = Duration::from_secs(decode(interval.into(), MANTISSA_OF_8).into());
    (flags & 0x08 != 0, flags & 0x07, interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn groups_of_the_host_alone_and_of_all_nodes_are_not_reported() {
        let reported = |group: &str| is_reported(group.parse().unwrap());
        for group in ["224.0.0.1", "10.0.0.1", "ff02::1", "ff01::5", "ff10::5", "fd00::1"] {
            assert!(!reported(group), "{group}");
        }
        for group in ["224.0.0.2", "239.1.2.3", "ff02::2", "ff15::1", "ff3e::1"] {
            assert!(reported(group), "{group}");
        }
    }

    #[test]
    fn groups_with_sources_only_have_ranges_of_their_own() {
        let specific = |group: &str| is_source_specific(group.parse().unwrap());
        assert!(specific("232.0.0.1") && specific("ff3e::8000:1") && specific("ff35::1"));
        assert!(!specific("233.0.0.1") && !specific("ff1e::1") && !specific("ff3e:40::1"));
    }
}
