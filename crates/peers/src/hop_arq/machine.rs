//! A node of a path: an edge with the streams of its applications, or a relay.

use std::net::SocketAddr;

use hopcast_core::{Buffer, Datagram, Instant, Item, Machine, Outbox, Port, Stream, earliest};

use super::config::{Config, DATAGRAM, MAX_HELD};
use super::counters::Counters;
use super::edge::Edge;
use super::hop::{Event, Hop};
use super::wire::Chunk;

/// A relay keeps twice what the onward path takes at a time, and this, before it asks for a pause; half of it when it
/// asks to go on. Chosen: more would be delay, less would starve the onward path.
const BACKLOG: usize = 16;

/// A node of a path with an ARQ on each of its hops. [`Port::Below`]`(0)` is a datagram port; an edge has a stream
/// port, [`Port::Above`]`(0)`, with any number of streams to the other edge. Either may open.
#[derive(Debug)]
pub struct HopArq {
    config: Config,
    local: SocketAddr,
    /// One at an edge, two at a relay.
    hops: Vec<Hop>,
    edge: Option<Edge>,
    out: Outbox,
    counters: Counters,
}

impl HopArq {
    /// An edge at `ends.0`, as applications see it, whose route to the other, `ends.1`, begins at `neighbour`.
    pub fn edge(
        config: Config,
        local: SocketAddr,
        ends: (SocketAddr, SocketAddr),
        neighbour: SocketAddr,
        mut random: Stream,
    ) -> Self {
        let first = random.fork().bits() as u32;
        let mut this = Self::new(config, local, &[neighbour], random);
        this.edge = Some(Edge::new(this.config.clone(), ends, first));
        this
    }

    /// A relay between two neighbours.
    pub fn relay(config: Config, local: SocketAddr, neighbours: [SocketAddr; 2], random: Stream) -> Self {
        Self::new(config, local, &neighbours, random)
    }

    fn new(mut config: Config, local: SocketAddr, neighbours: &[SocketAddr], mut random: Stream) -> Self {
        config.datagram = config.datagram.clamp(*DATAGRAM.start(), *DATAGRAM.end());
        let hops = neighbours.iter().map(|&to| Hop::new(&config, to, random.fork())).collect();
        Self { config, local, hops, edge: None, out: Outbox::new(), counters: Counters::default() }
    }

    fn on_datagram(&mut self, now: Instant, datagram: &Datagram) {
        let from = self.hops.iter().position(|hop| hop.neighbour == datagram.remote);
        let Some(from) = from else {
            self.counters.foreign += 1;
            return;
        };
        let full = match &self.edge {
            Some(edge) => edge.is_full(),
            None => self.hops[1 - from].outgoing.backlog() >= MAX_HELD,
        };
        match self.hops[from].on_datagram(now, &datagram.payload, full, &mut self.counters) {
            Ok(Event::Nothing) => {}
            Ok(Event::Chunk(bytes)) => self.on_chunk(from, bytes),
            Ok(Event::Lost) => self.lost(from),
            // An end has no streams from before.
            Ok(Event::LostHere) if self.edge.is_some() => {}
            Ok(Event::LostHere) => self.lost(from),
            Err(_) => self.counters.malformed += 1,
        }
    }

    fn on_chunk(&mut self, from: usize, bytes: &[u8]) {
        // A chunk that does not parse here would not parse anywhere.
        let Ok(chunk) = Chunk::parse(bytes) else {
            self.counters.malformed += 1;
            return;
        };
        match &mut self.edge {
            Some(edge) => edge.on_chunk(&chunk, &mut self.counters),
            None => self.hops[1 - from].outgoing.push(bytes.to_vec()),
        }
    }

    /// Chunks on their way over a hop are lost: the streams' ends must know.
    fn lost(&mut self, hop: usize) {
        match &mut self.edge {
            Some(edge) => edge.lose_all(&mut self.counters),
            // The neighbour over that hop knows.
            None => self.hops[1 - hop].outgoing.push_once(Chunk::GONE.emit()),
        }
    }

    /// Sends all packets that may leave.
    fn settle(&mut self, now: Instant) {
        for number in 0..self.hops.len() {
            loop {
                let Self { hops, edge, counters, .. } = self;
                let hop = &mut hops[number];
                if let Some(edge) = edge
                    && hop.outgoing.backlog() == 0
                    && hop.outgoing.may_send(now, edge.has_chunk())
                    && let Some(chunk) = edge.next_chunk()
                {
                    hop.outgoing.push(chunk);
                }
                let Some(datagram) = hop.pop(now, counters) else { break };
                self.send(number, &datagram);
            }
            let more = self.edge.as_ref().is_some_and(Edge::has_chunk);
            let hop = &mut self.hops[number];
            if !more {
                hop.outgoing.note_empty();
            }
            hop.outgoing.watch_pause(now, more);
        }
        if self.edge.is_none() {
            for (from, to) in [(0, 1), (1, 0)] {
                let onward = &self.hops[to].outgoing;
                let limit = (2 * onward.limit() + BACKLOG).min(MAX_HELD / 2);
                let full = onward.backlog() > if self.hops[from].is_pausing() { limit / 2 } else { limit };
                self.hops[from].pause(now, full, &mut self.counters);
                if let Some(datagram) = self.hops[from].pop(now, &mut self.counters) {
                    self.send(from, &datagram);
                }
            }
        }
        while let Some((port, item)) = self.edge.as_mut().and_then(Edge::poll) {
            self.out.push(port, item);
        }
    }

    fn send(&mut self, hop: usize, datagram: &[u8]) {
        let (local, remote) = (self.local, self.hops[hop].neighbour);
        let datagram = Datagram::new(local, remote, Buffer::copy_from(datagram));
        self.out.down(Item::Datagram(datagram));
    }

    fn wake_hops(&mut self, now: Instant) {
        for number in 0..self.hops.len() {
            if self.hops[number].wake(now, &self.config, &mut self.counters) == Event::Lost {
                self.lost(number);
            }
        }
    }
}

#[cfg(test)]
impl HopArq {
    /// Streams that stand.
    pub(super) fn streams(&self) -> usize {
        self.edge.as_ref().map_or(0, Edge::len)
    }

    /// The session of a hop.
    pub(super) fn session(&self, hop: usize) -> u16 {
        self.hops[hop].outgoing.session()
    }
}

impl Machine for HopArq {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        // Timers that are due at the instant of an arrival go off first.
        self.wake_hops(now);
        match (port, item, &mut self.edge) {
            (Port::Below(0), Item::Datagram(datagram), _) => self.on_datagram(now, &datagram),
            (Port::Above(0), Item::Stream(id, item), Some(edge)) => {
                edge.on_stream(id, item, &mut self.counters);
            }
            _ => self.counters.wrong_items += 1,
        }
        self.settle(now);
    }

    fn wake(&mut self, now: Instant) {
        self.wake_hops(now);
        self.settle(now);
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        let more = self.edge.as_ref().is_some_and(Edge::has_chunk);
        self.hops.iter().map(|hop| hop.deadline(&self.config, more)).fold(None, earliest)
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.counters.report(report);
    }
}
