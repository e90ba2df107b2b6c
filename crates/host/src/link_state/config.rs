//! Settings of link-state routing.

use hopcast_core::Duration;

/// The backbone, through which all other areas reach each other (RFC 2328 section 3.1).
pub const BACKBONE: u32 = 0;

/// Settings of a router, the same on all of its interfaces. Defaults are those of RFC 2328, appendices B and C, unless
/// a line says otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Interval of Hello messages (*HelloInterval*), the same at all routers of a link. Default: 10 s. Shorter: more
    /// packets; longer: routers of a link find each other later.
    pub hello_interval: Duration,
    /// Time without a Hello after which a neighbour counts as gone (*RouterDeadInterval*), the same at all routers of a
    /// link. Default: 40 s. Shorter: a few lost Hellos end an adjacency; longer: packets take a dead route for longer.
    pub dead_interval: Duration,
    /// Time until an advertisement that a neighbour has not acknowledged is sent to it again (*RxmtInterval*). Default:
    /// 5 s. Shorter than a round trip: all is sent twice; longer: a loss delays news for longer.
    pub retransmit_interval: Duration,
    /// Minimum time between two originations of one advertisement (*MinLSInterval*). Default: 5 s. Shorter: a link that
    /// flaps costs more; longer: the second change in a row is known later.
    pub min_origination: Duration,
    /// Minimum time between two instances of one advertisement that are taken (*MinLSArrival*); another is dropped, and
    /// taken when it is sent again. Default: 1 s, below `min_origination`. Shorter: a forger costs more.
    pub min_arrival: Duration,
    /// Time from a change until routes are computed. Default: 200 ms, common practice. Shorter: changes that belong
    /// together are computed apart; longer: packets take a dead route for longer.
    pub spf_delay: Duration,
    /// Minimum time between two computations; it doubles with each change within it, up to `spf_max_hold`. Default: 1
    /// s, common practice. Shorter: more work in unrest; longer: the second change in a row is followed later.
    pub spf_hold: Duration,
    /// Maximum of `spf_hold`. Default: 10 s, common practice.
    pub spf_max_hold: Duration,
    /// Whether a link of the router's own that goes down is noticed at once. Default: true. Off, as where a switch
    /// stands between, its routers are missed after the `dead_interval`.
    pub carrier: bool,
    /// Identifier of the router. Default: the bits of its first IPv4 address. Two routers of one area may not have the
    /// same: see the [module's documentation](super).
    pub router_id: Option<u32>,
    /// Maximum number of neighbours on an interface, up to [`MAX_NEIGHBOURS`]. Default: that. Beyond it, new ones are
    /// refused and counted (`link_state_refused_neighbours`), and known ones stay.
    pub max_neighbours: usize,
    /// Maximum number of advertisements in an area. Default: 16,384. Beyond it, new ones of others are refused and
    /// counted (`link_state_refused_room`), and known ones stay.
    pub max_advertisements: usize,
}

/// Maximum number of neighbours on an interface. Chosen: so many identifiers fit a Hello on a link of the smallest MTU,
/// 576 bytes.
pub const MAX_NEIGHBOURS: usize = 100;

impl Default for Config {
    fn default() -> Self {
        Self {
            hello_interval: Duration::from_secs(10),
            dead_interval: Duration::from_secs(40),
            retransmit_interval: Duration::from_secs(5),
            min_origination: Duration::from_secs(5),
            min_arrival: Duration::from_secs(1),
            spf_delay: Duration::from_millis(200),
            spf_hold: Duration::from_secs(1),
            spf_max_hold: Duration::from_secs(10),
            carrier: true,
            router_id: None,
            max_neighbours: MAX_NEIGHBOURS,
            max_advertisements: 16_384,
        }
    }
}

/// Settings of one interface.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InterfaceConfig {
    /// The area that its link is in; 0 is the [backbone](BACKBONE).
    pub area: u32,
    /// Cost of sending by it, at least 1. Lower is better.
    pub cost: u16,
}

impl Default for InterfaceConfig {
    fn default() -> Self {
        Self { area: BACKBONE, cost: 10 }
    }
}
