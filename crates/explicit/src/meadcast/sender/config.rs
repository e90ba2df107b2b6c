//! The settings of a sender.

use hopcast_core::Duration;

use crate::meadcast::wire::MAX_LIST;

/// The settings of a sender: the options of the thesis' program (listing A.3), by their names and with its defaults.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Time until the first discovery. Default: 5 s. With less, senders that start together ask together; with more,
    /// data goes by unicast for longer.
    pub delay: Duration,
    /// Time from the end of a discovery to the next; zero for one discovery alone. Default: 5 s. With less, discovery
    /// costs more; with more, receivers behind a route or a router that is gone get nothing for longer.
    pub interval: Duration,
    /// Time for which responses are collected. Default: 2 s. Less than a round trip, and routers are missed; with more,
    /// changes are known later.
    pub timeout: Duration,
    /// Whether the delay begins with the first data. Default: false.
    pub wait: bool,
    /// Maximum number of addresses in a packet, routers and receivers, 2 to 32. Default: 10. With fewer, there are more
    /// packets; with more, each has a longer header.
    pub max: usize,
    /// Number of addresses with which a packet is long enough, so that it ends there. Default: `None`, which is 80 % of
    /// the maximum. With fewer, a packet has fewer routers and is copied less near the sender; of the maximum or more,
    /// packets are as full as can be.
    pub ok: Option<usize>,
    /// Range, in MEADcast hops, within which receivers of several routers are served by one that all of them are
    /// behind: that one is no more hops before the first of these routers, and each of the others no more hops behind
    /// the one that serves until then. Default: 0, none are. With more, lists have fewer routers, and plain packets
    /// longer paths.
    pub merge: u8,
    /// Number of receivers below which a router is not listed: those go to the router before it if it has fewer than
    /// [`min_routers`](Self::min_routers) behind it, and by unicast otherwise. Default: 2. With fewer, addresses of
    /// routers are listed for one receiver; with more, receivers are copied to earlier, or by the sender.
    pub min_leaves: usize,
    /// Number of routers behind a router with which it stays in the tree, whatever receivers it has. Default: 1.
    pub min_routers: usize,
    /// Whether receivers of one router may be in several packets, to fill these. Default: false. Those of a router with
    /// more than fit a packet always are, and fill the packet before theirs too.
    pub split: bool,
    /// Hop limit of all packets. Default: 64. Too low, and they do not arrive.
    pub hop_limit: u8,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            delay: Duration::from_secs(5),
            interval: Duration::from_secs(5),
            timeout: Duration::from_secs(2),
            wait: false,
            max: 10,
            ok: None,
            merge: 0,
            min_leaves: 2,
            min_routers: 1,
            split: false,
            hop_limit: 64,
        }
    }
}

impl Config {
    /// The maximum within what a packet can have.
    pub(super) fn max(&self) -> usize {
        self.max.clamp(2, MAX_LIST)
    }

    /// Number of addresses with which a packet ends.
    pub fn ok(&self) -> usize {
        self.ok.unwrap_or(self.max() * 4 / 5)
    }
}
