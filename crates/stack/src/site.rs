//! A transport between the sites of a deployment: what a node asks of it.

use std::fmt;
use std::net::SocketAddr;

use hopcast_config::Diagnostic;
use hopcast_config::decode::choice;
use hopcast_config::yaml::Node;
use hopcast_core::{Duration, Machine, Stream};

use crate::transport::{Layer, Port, Row};
use crate::transports::TRANSPORTS;

pub use crate::transports::{Splice, Tunnel};

/// A transport that carries packets or streams between sites, with relays at nodes between them.
pub trait SiteTransport {
    /// Bytes that it puts before the payload of a full datagram.
    fn overhead(&self) -> u16;

    /// The machine at a site.
    fn edge(&self, site: SiteEdge<'_>) -> Box<dyn Machine>;

    /// The machine at a node between two others.
    fn relay(&self, site: SiteRelay) -> Box<dyn Machine>;
}

/// A layer that can be between sites.
#[derive(Clone, Debug, PartialEq)]
pub struct SiteLayer(Layer);

impl SiteLayer {
    /// The transport with options that `over` names; `port` is what it must offer.
    ///
    /// # Errors
    /// A transport that cannot be between sites or does not offer that, or options that it does not have.
    pub fn read(node: &Node, port: Port) -> Result<Self, Diagnostic> {
        let names: Vec<&str> = between_sites(port).map(|row| row.name).collect();
        choice(node, "over", &names)?;
        crate::layer(node).map(Self)
    }

    /// The first transport of the table that can be between sites and offers `port`, with its defaults.
    ///
    /// # Panics
    /// Never for packets, datagrams and streams: a test holds that each is offered.
    pub fn default_for(port: Port) -> Self {
        Self(between_sites(port).next().expect("some transport between sites offers it").layer())
    }

    /// The transport.
    ///
    /// # Panics
    /// Never: there is no such layer without one.
    pub fn transport(&self) -> &dyn SiteTransport {
        self.0.settings().between_sites().expect("it was read as one")
    }
}

/// The name, with the options that are not the default.
impl fmt::Display for SiteLayer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The transports that can be between sites and offer `port`.
fn between_sites(port: Port) -> impl Iterator<Item = &'static Row> {
    let fits =
        move |row: &'static Row| row.offers.has(port) && row.layer().settings().between_sites().is_some();
    TRANSPORTS.iter().copied().filter(move |row| fits(row))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn datagrams_and_streams_can_be_carried_between_sites() {
        let names = |port| between_sites(port).map(|row| row.name).collect::<Vec<_>>();
        assert_eq!(names(Port::Datagram), ["btp", "brtp"]);
        assert_eq!(names(Port::Stream), ["brtp"]);
        assert_eq!(SiteLayer::default_for(Port::Datagram).to_string(), "btp");
    }
}
