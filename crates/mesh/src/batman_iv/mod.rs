//! The routing of B.A.T.M.A.N. IV: every node floods messages of its own (OGM), and the neighbour by which an
//! originator's messages come best is the next hop to it.
//!
//! | file | state |
//! |---|---|
//! | `originators` | by which neighbours each originator's messages come, and how well; the next hops |
//! | `tq` | the quality of links and paths |
//! | `queue` | messages that are to be sent, several in a packet |
//! | `receive` | the rules by which a message changes all of it |

mod originators;
mod queue;
mod receive;
mod tq;

use hopcast_core::{Duration, Instant, Stream};
use hopcast_wire::ethernet::Mac;

use crate::wire::ogm::{self, Ogm};
use crate::wire::{MAX_TQ, TTL};
use originators::Originators;
pub(crate) use originators::{Removal, Via};
use queue::{Message, OgmQueue};
pub(crate) use receive::Event;

/// Largest deviation of the interval of own messages (`BATADV_JITTER`).
const JITTER: Duration = Duration::from_millis(20);
/// Hops of the messages of an interface that is not the first: its neighbours send them back, and no others.
const SECONDARY_TTL: u8 = 2;

/// Settings of B.A.T.M.A.N. IV.
#[derive(Clone, Debug)]
pub struct BatmanIvConfig {
    /// Mean interval of the node's own messages. Shorter, routes change sooner, and the airtime of messages grows with
    /// the number of nodes; default 1 s.
    pub interval: Duration,
    /// Share of a path's quality, of 255, that each hop takes. Less, paths become longer where links are better;
    /// default 30.
    pub hop_penalty: u8,
    /// Whether messages wait up to 100 ms and leave several in a packet; default true.
    pub aggregation: bool,
    /// Maximum number of originators that are known. Beyond, those without a route make room for others, and then
    /// others are ignored; default 4096, some 2 MB with few neighbours each.
    pub max_originators: usize,
}

impl Default for BatmanIvConfig {
    fn default() -> Self {
        Self { interval: Duration::from_secs(1), hop_penalty: 30, aggregation: true, max_originators: 4096 }
    }
}

/// An interface below the mesh, as routing sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) mac: Mac,
    pub(crate) wireless: bool,
    pub(crate) mtu: usize,
}

/// A packet of messages that is to be sent to all neighbours of an interface.
pub(crate) struct Outgoing {
    pub(crate) interface: usize,
    pub(crate) bytes: Vec<u8>,
    /// Interface whose next message is to be made now.
    pub(crate) schedule: Option<usize>,
}

/// An originator, as `batctl o` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginatorStatus {
    /// Address of the interface whose messages they are.
    pub originator: Mac,
    /// Time of its last message.
    pub last_seen: Instant,
    /// Average quality of the path, 0 to 255.
    pub tq: u8,
    /// Address of the next hop.
    pub next_hop: Mac,
    /// Number of the interface by which packets leave to it.
    pub interface: usize,
    /// The other neighbours by which its messages come, with the quality of each path.
    pub alternatives: Vec<(Mac, u8)>,
}

/// The state of routing.
pub(crate) struct Routing {
    config: BatmanIvConfig,
    links: Vec<Link>,
    /// For each interface, the number of its next message.
    seqnos: Vec<u32>,
    originators: Originators,
    queue: OgmQueue,
    random: Stream,
    pub(crate) counters: Counters,
}

#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) ogms_received: u64,
    pub(crate) ogms_sent: u64,
    pub(crate) ogms_forwarded: u64,
    pub(crate) ogm_packets_sent: u64,
    pub(crate) ogms_of_own: u64,
    pub(crate) ogms_not_best: u64,
    pub(crate) ogms_looping: u64,
    pub(crate) ogms_of_restart_refused: u64,
    pub(crate) ogms_without_quality: u64,
    pub(crate) ogms_by_unknown_neighbours: u64,
    pub(crate) ogms_expired: u64,
    pub(crate) originators_refused: u64,
    pub(crate) neighbours_refused: u64,
    pub(crate) ogms_too_long: u64,
    pub(crate) queue_full: u64,
    pub(crate) route_changes: u64,
}

impl Routing {
    pub(crate) fn new(config: BatmanIvConfig, links: Vec<Link>, mut random: Stream) -> Self {
        let seqnos = links.iter().map(|_| random.bits() as u32).collect();
        let originators = Originators::new(links.len() + 1, config.max_originators.max(1));
        let queue = OgmQueue::new(config.aggregation);
        Self { config, links, seqnos, originators, queue, random, counters: Counters::default() }
    }

    pub(crate) fn set_mtu(&mut self, interface: usize, mtu: usize) {
        if let Some(link) = self.links.get_mut(interface) {
            link.mtu = mtu;
        }
    }

    /// Whether an address is one of the node's own interfaces.
    #[inline]
    pub(crate) fn is_own(&self, address: Mac) -> bool {
        self.links.iter().any(|link| link.mac == address)
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.queue.deadline()
    }

    /// Makes the next message of an interface, which leaves an interval later. Only those of the first interface,
    /// number 0, go through the whole mesh, and have containers.
    pub(crate) fn schedule(&mut self, now: Instant, interface: usize, containers: &[u8]) {
        let (primary, link) = (interface == queue::PRIMARY, self.links[interface]);
        let containers = if primary { containers } else { &[] };
        let ogm = Ogm {
            ttl: if primary { TTL } else { SECONDARY_TTL },
            flags: 0,
            seqno: self.seqnos[interface],
            originator: link.mac,
            previous_sender: link.mac,
            tq: MAX_TQ,
            tvlv_len: containers.len() as u16,
        };
        self.seqnos[interface] = self.seqnos[interface].wrapping_add(1);
        self.originators.iter_mut().for_each(|originator| originator.echoes[interface] <<= 1);
        let jitter = Duration::from_nanos(self.random.below(2 * JITTER.as_nanos()));
        let at = now + self.config.interval.saturating_sub(JITTER) + jitter + Duration::from_nanos(1);
        let outs = if primary { 0..self.links.len() } else { interface..interface + 1 };
        for out in outs {
            self.queue.push_own(at, &Message { ogm, containers, out, interface });
        }
    }

    /// The next packet of messages that is due.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Outgoing> {
        let packet = self.queue.due(now)?;
        self.counters.ogm_packets_sent += 1;
        self.counters.ogms_sent += ogm::messages(&packet.bytes).map_or(0, |messages| messages.count() as u64);
        let schedule = (packet.own && packet.interface == packet.out).then_some(packet.interface);
        Some(Outgoing { interface: packet.out, bytes: packet.bytes, schedule })
    }

    /// The next hop to an originator for a packet that came by an interface, or for one of the node's own.
    #[inline]
    pub(crate) fn next_hop(&self, originator: Mac, came_by: Option<usize>) -> Option<Via> {
        self.originators.get(originator)?.outs[came_by.unwrap_or(self.links.len())].router
    }

    /// Quality of the path to an originator, if there is a route.
    pub(crate) fn quality(&self, originator: Mac) -> Option<u8> {
        let entry = self.originators.get(originator)?;
        entry.outs[self.links.len()].router.map(|via| entry.quality(self.links.len(), via))
    }

    /// Whether an originator is known, with a route or without.
    #[inline]
    pub(crate) fn knows(&self, originator: Mac) -> bool {
        self.originators.get(originator).is_some()
    }

    /// Forgets what has not been heard of for long.
    pub(crate) fn purge(&mut self, now: Instant, removed: impl FnMut(Removal)) {
        self.originators.purge(now, removed);
    }

    /// Number of originators that are known.
    pub(crate) fn len(&self) -> usize {
        self.originators.len()
    }

    /// Neighbours on an interface: their addresses, and those of their originators.
    pub(crate) fn neighbours_on(&self, interface: usize) -> impl Iterator<Item = (Mac, Mac)> {
        self.originators.neighbours_on(interface)
    }

    /// The originators to which there is a route.
    pub(crate) fn status(&self) -> Vec<OriginatorStatus> {
        let own = self.links.len();
        let reached = self.originators.iter().filter_map(|(originator, entry)| {
            let router = entry.outs[own].router?;
            let others = entry.paths(own).filter(|(via, _)| *via != router);
            Some(OriginatorStatus {
                originator,
                last_seen: entry.last_seen,
                tq: entry.quality(own, router),
                next_hop: router.address,
                interface: router.interface,
                alternatives: others.map(|(via, tq)| (via.address, tq)).collect(),
            })
        });
        reached.collect()
    }
}
