//! Settings of a querier.

use hopcast_core::Duration;
use hopcast_wire::membership::{Query, Version};

/// Settings of a querier: the variables of RFC 3376 section 8 (RFC 3810 section 9), and bounds. They hold for IGMP and
/// MLD, on every interface. All routers of a link should have the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The version of queries. Default: version 3. An older one is for links with routers that have no newer one (RFC
    /// 3376 section 7.3.1): hosts then report in that version, without sources. MLD has no counterpart of IGMPv1: for
    /// `V1`, as for `V2`, MLDv1 is sent.
    pub version: Version,
    /// *Robustness Variable* (8.1), 1 to 7: number of packets of a kind of which all but one may be lost. Default: 2.
    /// With 1, one lost packet deprives a member of its group for up to a query interval; each more delays by a query
    /// interval the time at which silent members are forgotten.
    pub robustness: u8,
    /// *Query Interval* (8.2). Default: 125 s. Shorter: more packets, since each host answers each query. Longer:
    /// packets to members that have vanished without a leave are sent for longer.
    pub query_interval: Duration,
    /// *Query Response Interval* (8.3), shorter than the query interval. Default: 10 s. Shorter: answers come in a
    /// burst; longer: a router learns of members later.
    pub query_response_interval: Duration,
    /// *Startup Query Interval* (8.6). Default: a quarter of the query interval. Shorter: more packets at the start;
    /// longer: if the first query is lost, a router learns of members later.
    pub startup_query_interval: Option<Duration>,
    /// *Startup Query Count* (8.7). Default: the robustness.
    pub startup_query_count: Option<u8>,
    /// *Last Member Query Interval* (8.8). Default: 1 s. Longer: a group without members is sent for longer. Too short,
    /// and members do not answer in time: they receive no packets until their next report.
    pub last_member_query_interval: Duration,
    /// *Last Member Query Count* (8.9). Default: the robustness. With 1, a lost query or answer deprives the remaining
    /// members of the group until their next report.
    pub last_member_query_count: Option<u8>,
    /// Maximum number of queries a second for groups and their sources, on an interface in an IP version; also the
    /// maximum burst. Default: 100, 50 kbit/s. Each leave takes the last member query count. A leave beyond the maximum
    /// is ignored and counted (`querier_leaves_ignored`): its group is sent until its timer ends. More: forged leaves
    /// make a router and all members send more.
    pub queries_per_second: u64,
    /// Maximum number of groups on an interface in an IP version. Default: 1024, a host's default maximum; with all
    /// sources less than 10 MB. A new group beyond it is refused and counted (`querier_groups_refused`), and existing
    /// ones stay. Fewer: members without packets. More: forged reports fill more memory.
    pub max_groups: usize,
    /// Maximum number of sources of a group. Default: 64, which fit one query. A source beyond it is refused and
    /// counted (`querier_sources_refused`): its packets are not sent to a member that included it, or are sent although
    /// all members excluded it.
    pub max_sources: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            version: Version::V3,
            robustness: 2,
            query_interval: Duration::from_secs(125),
            query_response_interval: Duration::from_secs(10),
            startup_query_interval: None,
            startup_query_count: None,
            last_member_query_interval: Duration::from_secs(1),
            last_member_query_count: None,
            queries_per_second: 100,
            max_groups: 1024,
            max_sources: 64,
        }
    }
}

impl Config {
    pub(super) fn startup_query_interval(&self) -> Duration {
        self.startup_query_interval.unwrap_or(self.query_interval / 4)
    }

    pub(super) fn startup_query_count(&self) -> u8 {
        self.startup_query_count.unwrap_or(self.robustness).max(1)
    }

    /// The router's own values of the variables that a querier announces.
    pub(super) fn timing(&self) -> Timing {
        Timing {
            robustness: self.robustness.clamp(1, 7),
            query_interval: self.query_interval.max(MIN_INTERVAL),
            query_response_interval: self.query_response_interval,
            last_member_query_interval: self.last_member_query_interval.max(MIN_INTERVAL),
            last_member_query_count: self.last_member_query_count.unwrap_or(self.robustness).clamp(1, 7),
        }
    }
}

/// Minimum time between queries: the unit of IGMP's maximum response time (RFC 3376 section 4.1.1). With less, a router
/// would send nothing but queries.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// The variables from which timers are set: the router's own, or those of the querier on the link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Timing {
    pub(super) robustness: u8,
    pub(super) query_interval: Duration,
    pub(super) query_response_interval: Duration,
    pub(super) last_member_query_interval: Duration,
    pub(super) last_member_query_count: u8,
}

impl Timing {
    /// The variables of the querier that has sent `query`, as far as it has them (RFC 3376 sections 4.1.6 and 4.1.7).
    pub(super) fn adopt(self, query: &Query) -> Self {
        let robustness = if query.robustness > 0 { query.robustness } else { self.robustness };
        let query_interval = if query.interval.is_zero() { self.query_interval } else { query.interval };
        Self { robustness, query_interval, ..self }
    }

    /// *Group Membership Interval* (8.4): time after its last report for which a member counts as present.
    pub(super) fn group_membership_interval(&self) -> Duration {
        self.query_interval * u64::from(self.robustness) + self.query_response_interval
    }

    /// *Other Querier Present Interval* (8.5): time after its last query for which another querier counts as present.
    pub(super) fn other_querier_present_interval(&self) -> Duration {
        self.query_interval * u64::from(self.robustness) + self.query_response_interval / 2
    }

    /// *Last Member Query Time* (8.10): time after a leave in which remaining members may answer.
    pub(super) fn last_member_query_time(&self) -> Duration {
        self.last_member_query_interval * u64::from(self.last_member_query_count)
    }

    /// *Older Host Present Interval* (8.13): time after its last report for which a host of an older version counts.
    pub(super) fn older_host_present_interval(&self) -> Duration {
        self.group_membership_interval()
    }
}
