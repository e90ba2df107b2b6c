//! Settings of PIM.

use hopcast_core::Duration;

/// Settings of a router's PIM, the same on all of its interfaces. Defaults are those of RFC 7761 section 4.11.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Priority in the election of the designated router of a link; the highest wins. Default: 1. Where all are the
    /// same, the highest address wins.
    pub dr_priority: u32,
    /// Interval of Hello messages (*Hello_Period*), up to 18,724 s; a neighbour counts as gone after 3.5 of them.
    /// Default: 30 s. Shorter: more packets; longer: a router that has died is missed later.
    pub hello_interval: Duration,
    /// Maximum time until a router greets its links, and new neighbours on them (*Triggered_Hello_Delay*). Default: 5
    /// s. Shorter: all routers of a link answer at once; longer: the first trees are made later.
    pub triggered_hello_delay: Duration,
    /// Interval of joins (*t_periodic*), up to 18,724 s; they hold for 3.5 of them. Default: 60 s. Shorter: more
    /// packets; longer: branches of routers that have died are sent to for longer.
    pub join_interval: Duration,
    /// Delay of a message on a link (*Propagation_delay*), up to 32 s. Default: 500 ms. Too short, and a branch is cut
    /// before another router's join arrives.
    pub propagation_delay: Duration,
    /// Time within which others on a link override a prune (*Override_Interval*), up to 65 s. Default: 2.5 s. Shorter:
    /// all of them answer at once; longer: a branch that nobody wants is sent to for longer.
    pub override_interval: Duration,
    /// Preference of the router's unicast routes in Asserts, up to 2^31 - 2; lower wins. Default: 110, that of OSPF in
    /// common routers; it only matters beside routers of other routing protocols.
    pub preference: u32,
    /// Interval at which routes are looked at for changes, and the router's own host for memberships. Default: 1 s.
    /// Shorter: more work for nothing; longer: a tree follows a change of routes later.
    pub route_check: Duration,
    /// Maximum number of neighbours on an interface, for each IP version. Default: 256. Beyond it, new ones are refused
    /// and counted (`pim_refused_neighbours`), and known ones stay.
    pub max_neighbours: usize,
    /// Maximum number of pairs of source and group. Default: 4096. Beyond it, new ones are refused and counted
    /// (`pim_refused_routes`), and known ones stay.
    pub max_routes: usize,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            dr_priority: 1,
            hello_interval: Duration::from_secs(30),
            triggered_hello_delay: Duration::from_secs(5),
            join_interval: Duration::from_secs(60),
            propagation_delay: Duration::from_millis(500),
            override_interval: Duration::from_millis(2500),
            preference: 110,
            route_check: Duration::from_secs(1),
            max_neighbours: 256,
            max_routes: 4096,
        }
    }
}

impl Config {
    /// Time for which a Hello or a join holds that is repeated at an interval, in seconds (section 4.11: 3.5 times).
    pub(super) fn holdtime(interval: Duration) -> u16 {
        // 0xffff says for ever.
        u16::try_from((interval.as_millis_f64() * 3.5 / 1000.0).ceil() as u64)
            .unwrap_or(u16::MAX)
            .min(u16::MAX - 1)
    }
}
