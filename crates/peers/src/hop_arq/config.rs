//! The configuration of a hop-by-hop ARQ.

use hopcast_core::{Bytes, Duration};

/// Maximum number of streams; more are refused with a reset. Chosen: it bounds memory.
pub const MAX_STREAMS: usize = 4096;
/// Chunks that a hop keeps until they are acknowledged, and as many that wait to be sent. So a hop has no more than
/// these under way in a round trip. Chosen: it bounds memory; with fewer, a fast and long hop is not filled.
pub const MAX_HELD: usize = 8192;
/// Maximum number of chunks that one that has arrived may be ahead of the first one that has not, on one hop: the
/// window of 3GPP's radio links (RLC, TS 38.322 section 7.2). Of such chunks a hop knows only that they have arrived.
/// With less, a chunk that is lost a dozen times in a row stops a long hop; more is only memory.
pub const MAX_AHEAD: u64 = 131_072;
/// Range of [`Config::datagram`]. Chosen: less leaves hardly a payload, more is no UDP datagram.
pub const DATAGRAM: core::ops::RangeInclusive<u16> = 200..=65_000;

/// The settings of a [`HopArq`](super::HopArq); all nodes of a path must have the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Config {
    /// Maximum length of a UDP payload, in bytes. Default: 1,472, what an MTU of 1,500 leaves.
    pub datagram: u16,
    /// Bytes of a stream that its sender keeps before they are sent for the first time. Default: 4 MiB.
    pub send_buffer: Bytes,
    /// Bytes of a stream that its receiver keeps until they are in order, or until the application takes them. Default:
    /// 64 MiB, what 140 Mbit/s bring in the 3 s that a hop of 200 ms there and back may take over a chunk where it
    /// loses half. Less holds the sender back, more only costs memory.
    pub receive_buffer: Bytes,
    /// Time that a neighbour may owe an acknowledgement before its streams are reset. Default: 120 s. Less gives up
    /// links that come back, more keeps applications waiting that could try another way.
    pub silence: Duration,
    /// Maximum delay of a node's wake-ups at which its hop loses no rate. Default: zero, for virtual time.
    pub slack: Duration,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            datagram: 1472,
            send_buffer: Bytes::new(4 << 20),
            receive_buffer: Bytes::new(64 << 20),
            silence: Duration::from_secs(120),
            slack: Duration::ZERO,
        }
    }
}
