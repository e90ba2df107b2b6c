//! What stands above an edge.

use std::net::SocketAddr;

use hopcast_core::{Datagram, Instant, Item, Port};

use super::config::Config;
use super::framing::{self, Framing, Up};

/// What the application gave and gets.
pub(super) struct Edge {
    /// The addresses of units handed up: this end and the other.
    ends: (SocketAddr, SocketAddr),
    pub(super) framing: Framing,
}

impl Edge {
    pub(super) fn new(ends: (SocketAddr, SocketAddr), config: &Config) -> Self {
        let bounds = framing::Config {
            unit_delay: config.unit_delay,
            // A stream cannot miss anything.
            queue: config.queue,
            streams: if config.delivery.is_reliable() { usize::from(config.streams) } else { 0 },
            ..framing::Config::default()
        };
        Self { ends, framing: Framing::new(&bounds) }
    }

    /// Takes what the application hands over; false if that is nothing for this port.
    pub(super) fn handle(&mut self, now: Instant, item: Item) -> bool {
        match item {
            Item::Datagram(Datagram { payload, .. }) => {
                self.framing.push_unit(now, payload);
            }
            Item::Stream(id, item) => self.framing.handle_stream(id, item),
            Item::Frame(_) | Item::Packet(_) | Item::Transit(_) | Item::Message(_) => return false,
        }
        true
    }

    /// Takes the next symbol, before which some are missing.
    pub(super) fn take(&mut self, missing: u64, symbol: &[u8]) {
        self.framing.skip(missing);
        self.framing.take(symbol);
    }

    /// What the application gets next.
    pub(super) fn poll(&mut self) -> Option<(Port, Item)> {
        let item = match self.framing.poll()? {
            Up::Unit(payload) => {
                let (local, remote) = self.ends;
                Item::Datagram(Datagram { local, remote, payload })
            }
            Up::Stream(id, item) => Item::Stream(id, item),
        };
        Some((Port::Above(0), item))
    }

    pub(super) fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let figures = self.framing.counters();
        let figures = [
            ("units_sent", figures.units_sent),
            ("units_refused", figures.units_refused),
            ("units_received", figures.units_received),
            ("units_broken", figures.units_broken),
            ("symbols_malformed", figures.symbols_malformed),
            ("chunks_stray", figures.chunks_stray),
            ("streams_refused", figures.streams_refused),
            ("streams_broken", figures.streams_broken),
        ];
        figures.into_iter().for_each(|(name, figure)| report(name, figure));
    }
}
