//! The routing of B.A.T.M.A.N. V: neighbours find each other, and the throughput of the link between them, by probes
//! (ELP); every node floods messages of its own (OGM2), and the neighbour behind whom the path has the highest
//! throughput is the next hop.
//!
//! A path has the throughput of its slowest link, and a little less for each hop. Where it enters and leaves a node by
//! one radio, it has half.
//!
//! | file | state |
//! |---|---|
//! | `elp` | probes: which neighbours there are, and how fast the link to each is |
//! | `receive` | the rules by which an originator message changes routes, and goes on |
//! | `queue` | messages that are to be sent, several in a packet |
//! | `table` | what is kept of each path and neighbour |
//! | `throughput` | units, averages and penalties |

mod elp;
mod queue;
mod receive;
mod table;
#[cfg(test)]
mod tests;
mod throughput;

use std::collections::VecDeque;

use hopcast_core::{Duration, Instant, Rate, Stream, earliest};
use hopcast_wire::ethernet::{BROADCAST, Mac};

use crate::routing::{Common, Due, Event, Link, PRIMARY, Via, jittered};
use crate::wire::batman_v::Ogm2;
use crate::wire::{PacketType, TTL};
use elp::Prober;
use queue::{Message, OgmQueue};
use table::V;

/// Throughput of a path that has no link yet (`BATADV_THROUGHPUT_MAX_VALUE`): that of a node to itself.
const MAX_THROUGHPUT: u32 = u32::MAX;

/// Settings of B.A.T.M.A.N. V.
#[derive(Clone, Debug)]
pub struct BatmanVConfig {
    /// Mean interval of the node's own messages. Shorter, routes change sooner, and the airtime of messages grows with
    /// the number of nodes; default 1 s.
    pub interval: Duration,
    /// Mean interval of the probes on each interface. Shorter, neighbours are found sooner, and the throughput of links
    /// follows sooner what it is; default 500 ms.
    pub elp_interval: Duration,
    /// Share of a path's throughput, of 255, that each hop takes. Less, paths become longer where links are faster;
    /// default 30.
    pub hop_penalty: u8,
    /// Whether messages wait up to 110 ms and leave several in a packet; default true.
    pub aggregation: bool,
    /// Maximum number of originators that are known. Beyond, those without a route make room for others, and then
    /// others are ignored; default 4096, some 2 MB with few neighbours each.
    pub max_originators: usize,
    /// Maximum number of neighbours on an interface; further ones are ignored until one has been silent for 200 s. On a
    /// radio each is sent two probes of 200 bytes an interval. Default 256, more stations than hear each other on one
    /// channel.
    pub max_neighbours: usize,
}

impl Default for BatmanVConfig {
    fn default() -> Self {
        Self {
            interval: Duration::from_secs(1),
            elp_interval: Duration::from_millis(500),
            hop_penalty: 30,
            aggregation: true,
            max_originators: 4096,
            max_neighbours: 256,
        }
    }
}

/// The state of routing by B.A.T.M.A.N. V.
pub(crate) struct BatmanV {
    pub(crate) common: Common<V>,
    config: BatmanVConfig,
    /// Number of the node's next message.
    seqno: u32,
    /// When to make it.
    schedule_at: Option<Instant>,
    /// For each interface.
    probers: Vec<Prober>,
    queue: OgmQueue,
    /// Packets that are to be sent now.
    ready: VecDeque<Due>,
    /// Time of the last look for what is due.
    clock: Instant,
}

impl BatmanV {
    pub(crate) fn new(config: BatmanVConfig, links: Vec<Link>, mut random: Stream) -> Self {
        let probers = links.iter().map(|_| Prober::new(random.bits() as u32)).collect();
        Self {
            seqno: random.bits() as u32,
            schedule_at: None,
            probers,
            queue: OgmQueue::new(links.len(), config.aggregation),
            ready: VecDeque::new(),
            clock: Instant::ZERO,
            common: Common::new(links, config.max_originators, random),
            config,
        }
    }

    /// Begins: the first message and the first probes leave an interval later.
    pub(crate) fn start(&mut self, now: Instant) {
        let random = &mut self.common.random;
        self.schedule_at = Some(jittered(now, self.config.interval, random));
        for prober in &mut self.probers {
            prober.at = Some(jittered(now, self.config.elp_interval, random));
        }
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        let probes = self.probers.iter().filter_map(|prober| prober.at).min();
        earliest(self.schedule_at, earliest(probes, self.queue.deadline()))
    }

    /// What is due first.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Due> {
        self.clock = now;
        let is_due = |at: Option<Instant>| at.is_some_and(|at| at <= now);
        for interface in 0..self.probers.len() {
            if is_due(self.probers[interface].at) {
                self.probe(now, interface);
            }
        }
        if is_due(self.schedule_at) {
            self.schedule_at = None;
            return Some(Due::Schedule(PRIMARY));
        }
        if let Some(packet) = self.queue.due(now) {
            self.send(packet);
        }
        self.ready.pop_front()
    }

    /// Makes the node's next message, which leaves by every interface on which there are neighbours.
    pub(crate) fn schedule(&mut self, now: Instant, containers: &[u8]) {
        let ogm = Ogm2 {
            ttl: TTL,
            flags: 0,
            seqno: self.seqno,
            originator: self.common.links[PRIMARY].mac,
            tvlv_len: containers.len() as u16,
            throughput: MAX_THROUGHPUT,
        };
        self.seqno = self.seqno.wrapping_add(1);
        for out in 0..self.common.links.len() {
            if self.common.originators.neighbours_on(out).next().is_some() {
                self.push(now, &Message { ogm, containers, out });
            }
        }
        self.schedule_at = Some(jittered(now, self.config.interval, &mut self.common.random));
    }

    /// Has a message sent. Returns whether the interface takes one of its length.
    fn push(&mut self, now: Instant, message: &Message<'_>) -> bool {
        let Common { links, random, counters, .. } = &mut self.common;
        let mtu = links[message.out].mtu;
        if message.len() > mtu {
            counters.ogms_too_long += 1;
            return false;
        }
        if let Some(full) = self.queue.push(now, message, mtu, random) {
            self.send(full);
        }
        true
    }

    fn send(&mut self, queue::Packet { out, bytes, messages }: queue::Packet) {
        self.common.counters.ogm_packets_sent += 1;
        self.common.counters.ogms_sent += messages;
        self.ready.push_back(Due::Packet { interface: out, destination: BROADCAST, bytes });
    }

    /// Takes a packet of a type. Returns whether it is well formed.
    pub(crate) fn receive<'a>(
        &mut self,
        now: Instant,
        from: Via,
        kind: PacketType,
        packet: &'a [u8],
        events: &mut Vec<Event<'a>>,
    ) -> bool {
        match kind {
            PacketType::Elp => self.receive_elp(now, from, packet, events),
            _ => self.receive_ogms(now, from, packet, events),
        }
    }

    /// Notes that a packet is sent to a neighbour alone, which is as good as a probe.
    pub(crate) fn note_sent(&mut self, via: Via) {
        if self.common.links[via.interface()].wireless
            && let Some(neighbour) = self.common.originators.neighbour_mut(via)
        {
            neighbour.state.last_unicast = Some(self.clock);
        }
    }

    /// Notes a packet that a neighbour has sent to this node alone. A probe of this kind has done its work.
    pub(crate) fn note_received(&mut self, from: Via, kind: PacketType, rate: Option<Rate>) {
        self.common.counters.elp_probes_received += u64::from(kind == PacketType::Elp);
        if rate.is_some()
            && let Some(neighbour) = self.common.originators.neighbour_mut(from)
        {
            neighbour.state.rate = rate;
        }
    }

    /// Throughput of the link to a neighbour, in units of 100 kbit/s.
    pub(crate) fn throughput(&self, interface: usize, address: Mac) -> Option<u32> {
        let neighbour = self.common.originators.neighbour(Via::new(interface, address))?;
        Some(neighbour.state.throughput.get())
    }
}
