//! A transport between the sites of a deployment: what a node asks of it.

use std::net::SocketAddr;

use hopcast_core::{Duration, Machine, Stream};

/// A transport that carries packets or streams between sites, with relays at nodes between them.
pub trait SiteTransport {
    /// Bytes that it puts before the payload of a full datagram.
    fn overhead(&self) -> u16;

    /// The machine at a site.
    fn edge(&self, site: SiteEdge<'_>) -> Box<dyn Machine>;

    /// The machine at a node between two others.
    fn relay(&self, site: SiteRelay) -> Box<dyn Machine>;
}

/// One site, for [`SiteTransport::edge`].
pub struct SiteEdge<'a> {
    /// Maximum length of a datagram that fits every hop, in bytes.
    pub datagram: u16,
    /// Maximum delay of the node's wake-ups.
    pub slack: Duration,
    /// The machine's share of the node's memory.
    pub memory: MemoryShare,
    /// Streams at a time; `None` for the transport's own choice.
    pub streams: Option<u16>,
    /// This end and the other, by the names that the node gives them.
    pub ends: (SocketAddr, SocketAddr),
    /// Next hops; several are disjoint routes that share the load.
    pub neighbours: &'a [SocketAddr],
    /// Its random stream.
    pub random: Stream,
}

/// One node between two others, for [`SiteTransport::relay`].
pub struct SiteRelay {
    /// Maximum length of a datagram that fits every hop, in bytes.
    pub datagram: u16,
    /// Maximum delay of the node's wake-ups.
    pub slack: Duration,
    /// The machine's share of the node's memory.
    pub memory: MemoryShare,
    /// The node itself.
    pub address: SocketAddr,
    /// The two neighbours.
    pub between: [SocketAddr; 2],
    /// Its random stream.
    pub random: Stream,
}

/// The share of one machine in a node's memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryShare {
    /// Bytes of batches, each way.
    pub batches: u64,
    /// Bytes of streams that wait to be sent.
    pub queue: u64,
}
