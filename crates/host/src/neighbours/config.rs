//! The configuration of neighbours.

use hopcast_core::Duration;

/// Times and limits of a host's neighbours.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NeighbourConfig {
    /// Number of requests before a neighbour counts as unreachable, at least 1. Default: 3 (RFC 4861 section 10,
    /// `MAX_MULTICAST_SOLICIT` and `MAX_UNICAST_SOLICIT`). Too few, and lost frames make a neighbour unreachable; too
    /// many, and senders learn late that there is none.
    pub requests: u32,
    /// Time between two requests, at least 1 ms. Default: 1 s (RFC 4861 section 10, `RETRANS_TIMER`; for ARP it is the
    /// minimum of RFC 1122 section 2.3.2.1). Too short, and requests cross their answers; too long, and packets wait.
    pub interval: Duration,
    /// Mean time for which an answer holds. Each interface draws its own between half and one and a half of it.
    /// Default: 30 s (RFC 4861 section 10, `REACHABLE_TIME`). Too short, and the link carries more probes; too long,
    /// and packets are sent to a station that has gone.
    pub reachable: Duration,
    /// Time between the first packet to a neighbour whose answer has expired and the first probe. Default: 5 s (RFC
    /// 4861 section 10, `DELAY_FIRST_PROBE_TIME`). The neighbour's own packets may confirm it before.
    pub delay: Duration,
    /// Maximum number of packets that wait for one neighbour; the oldest is dropped for another. Default: 3, as Linux
    /// had until 3.3 (`unres_qlen`). RFC 4861 section 7.2.2 asks for at least one: a packet and its fragments, or what
    /// a connection begins with. More outlive a burst, and cost memory for each address that does not exist.
    pub queue: usize,
    /// Maximum number of neighbours of an interface. Default: 1024, as Linux's `gc_thresh3`. Fewer are forgotten and
    /// asked for again on a link with more stations; more is memory that whoever sends to invented addresses can fill:
    /// 5 MB of packets that wait with these defaults.
    pub entries: usize,
}

impl Default for NeighbourConfig {
    fn default() -> Self {
        Self {
            requests: 3,
            interval: Duration::from_secs(1),
            reachable: Duration::from_secs(30),
            delay: Duration::from_secs(5),
            queue: 3,
            entries: 1024,
        }
    }
}

impl NeighbourConfig {
    /// The configuration with each value below its minimum raised to it.
    pub(super) fn sane(self) -> Self {
        let min = Duration::from_millis(1);
        Self {
            requests: self.requests.max(1),
            interval: self.interval.max(min),
            delay: self.delay.max(min),
            queue: self.queue.max(1),
            entries: self.entries.max(1),
            ..self
        }
    }
}
