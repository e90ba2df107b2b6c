//! The application of an edge.

use std::net::SocketAddr;

use hopcast_core::{Datagram, Instant, Item, Port};

use super::age::{self, Age};
use super::config::Config;
use super::framing::{self, Framing, Up};

/// A symbol that a sink delivers.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivered<'a> {
    pub(super) number: u64,
    /// Number of symbols that are missing before it.
    pub(super) missing: u64,
    pub(super) bytes: &'a [u8],
}

/// The application's side of an edge.
pub(super) struct Edge {
    /// The addresses of units handed up: this end and the other.
    ends: (SocketAddr, SocketAddr),
    pub(super) framing: Framing,
    /// Units that came too late to be handed up.
    late: u64,
}

impl Edge {
    pub(super) fn new(ends: (SocketAddr, SocketAddr), config: &Config) -> Self {
        let bounds = framing::Config {
            unit_delay: config.unit_delay,
            unit_credit: config.unit_credit,
            unit_stamps: !config.delivery.is_reliable(),
            // A stream cannot miss anything.
            queue: config.queue,
            streams: if config.delivery.is_reliable() { usize::from(config.streams) } else { 0 },
            stream_timeout: config.stream_timeout,
            ..framing::Config::default()
        };
        Self { ends, framing: Framing::new(&bounds), late: 0 }
    }

    /// Takes an item of the application's; false if this port has no use for it.
    pub(super) fn handle(&mut self, now: Instant, item: Item) -> bool {
        match item {
            Item::Datagram(Datagram { payload, .. }) => {
                self.framing.push_unit(now, payload);
            }
            Item::Stream(id, item) => self.framing.handle_stream(now, id, item),
            Item::Frame(_)
            | Item::ReportFrameStatus
            | Item::FrameStatus(_)
            | Item::Mtu(_)
            | Item::Packet(_)
            | Item::Transit(_)
            | Item::Membership(_)
            | Item::Message(_)
            | Item::Credit(_) => return false,
        }
        true
    }

    /// Takes the next symbol.
    pub(super) fn take(&mut self, now: Instant, symbol: &Delivered<'_>) {
        self.framing.skip(symbol.missing);
        self.framing.take(now, symbol.number, symbol.bytes);
    }

    /// The next item for the application; `age`: that of arriving data, where delivery has a deadline.
    pub(super) fn poll(&mut self, now: Instant, mut age: Option<&mut Age>) -> Option<(Port, Item)> {
        if let Some(units) = self.framing.grant() {
            return Some((Port::Above(0), Item::Credit(units)));
        }
        loop {
            let item = match self.framing.poll()? {
                Up::Unit(mut payload) => {
                    if let Some(age) = &mut age {
                        if age::read(&payload).is_none_or(|stamp| age.is_late(now, stamp)) {
                            self.late += 1;
                            continue;
                        }
                        payload.advance(age::STAMP);
                    }
                    let (local, remote) = self.ends;
                    Item::Datagram(Datagram::new(local, remote, payload))
                }
                Up::Stream(id, item) => Item::Stream(id, item),
            };
            return Some((Port::Above(0), item));
        }
    }

    pub(super) fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let figures = self.framing.counters();
        let figures = [
            ("units_sent", figures.units_sent),
            ("units_refused", figures.units_refused),
            ("units_expired", figures.units_expired),
            ("units_received", figures.units_received),
            ("units_late", self.late),
            ("units_broken", figures.units_broken),
            ("symbols_damaged", figures.symbols_damaged),
            ("symbols_malformed", figures.symbols_malformed),
            ("chunks_stray", figures.chunks_stray),
            ("streams_refused", figures.streams_refused),
            ("streams_broken", figures.streams_broken),
            ("streams_damaged", figures.streams_damaged),
            ("streams_damaged_there", figures.streams_damaged_there),
            ("streams_restarted", figures.streams_restarted),
            ("streams_timed_out", figures.streams_timed_out),
        ];
        figures.into_iter().for_each(|(name, figure)| report(name, figure));
    }
}
