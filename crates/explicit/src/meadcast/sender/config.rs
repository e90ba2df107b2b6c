//! The settings of a sender.

use hopcast_core::Duration;

use crate::meadcast::Key;
use crate::meadcast::wire::{self, MAX_LIST, short};

/// The way in which receivers are put into packets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Grouping {
    /// The thesis' algorithm 1, which fills a packet in depth-first order.
    #[default]
    DepthFirst,
    /// Few bytes on the links of the tree, by the lengths of headers and of the payload. `ok`, `merge`, `min_leaves`,
    /// `min_routers` and `split` do not apply.
    LeastBytes,
}

/// The settings of a sender: the options of the thesis' program (listing A.3), by their names and with its defaults,
/// and behind them those of the revision, without which all is as in the thesis.
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
    /// Maximum number of addresses in a packet, routers and receivers, 2 to 32, and to 128 with short lists. Default:
    /// 10. With fewer, there are more packets; with more, each has a longer header.
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
    /// Whether a receiver that joins between discoveries is asked about at once. Default: false, and it is served by
    /// unicast until the next discovery has ended. On, each that joins costs a request more.
    pub ask_joiners: bool,
    /// Hop limit of all packets. Default: 64. Too low, and they do not arrive.
    pub hop_limit: u8,
    /// Whether packets are not copied before the paths of their receivers part. Default: false. Off, the first MEADcast
    /// router makes a copy for each router of the list, which share the links behind it.
    pub hold: bool,
    /// Whether packets are addressed to the router of the list that is to handle them, instead of its first receiver.
    /// Default: false. Off, a router that has stopped hands the whole list to that receiver; on, neither its receivers
    /// get the packet nor those of routers behind it that are in the same list.
    pub next_hop: bool,
    /// Whether lists are compressed by prefix, lose what was served, and are split where the tree parts. Default:
    /// false. Routers that do not know it drop its packets.
    pub short_lists: bool,
    /// Maximum length of the header with a short list, in bytes, 48 to 2048. Default: `None`, which is that of other
    /// lists of as many addresses. With fewer, there are more packets; with more, less of the MTU is left to data.
    pub list_bytes: Option<usize>,
    /// Whether responses have to repeat a number of the request. Default: false. On, whoever does not see the request
    /// to a receiver cannot forge a response about it.
    pub nonce: bool,
    /// Key of the domain, under which responses have to be authenticated; has a nonce too. Default: none. Routers
    /// without it are not found.
    pub key: Option<Key>,
    /// The way in which receivers are put into packets. Default: depth-first.
    pub grouping: Grouping,
    /// Length of the data that grouping by bytes reckons with, in bytes. Default: 1,000. Far more than data has, and
    /// lists are longer than they are worth; far less, and there are more packets.
    pub payload: usize,
    /// Maximum number of requests in a second, a tenth of them at once. Default: 5,000, half of what a router responds
    /// to. With more, routers leave requests of large groups without a response; with fewer, discovery takes longer.
    pub requests_per_second: u32,
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
            ask_joiners: false,
            hop_limit: 64,
            hold: false,
            next_hop: false,
            short_lists: false,
            list_bytes: None,
            nonce: false,
            key: None,
            grouping: Grouping::DepthFirst,
            payload: 1000,
            requests_per_second: 5000,
        }
    }
}

impl Config {
    /// The maximum number of addresses within what a packet can have.
    pub(super) fn max(&self) -> usize {
        self.max.clamp(2, if self.short_lists { short::MAX_LIST } else { MAX_LIST })
    }

    /// Number of addresses with which a packet ends.
    pub fn ok(&self) -> usize {
        self.ok.unwrap_or(self.max() * 4 / 5)
    }

    /// Length of the longest header with a list, in bytes, a multiple of 8.
    pub fn longest_header(&self) -> usize {
        let plain = wire::overhead(self.max(), 0);
        match self.short_lists {
            // A router and a receiver that have nothing in common fit at least.
            true => self.list_bytes.unwrap_or(plain).clamp(48, short::MAX_HEADER) / 8 * 8,
            false => plain,
        }
    }

    /// Whether requests have a nonce.
    pub(super) const fn has_nonce(&self) -> bool {
        self.nonce || self.key.is_some()
    }
}
