//! The routing of B.A.T.M.A.N. IV: every node floods messages of its own (OGM), and the neighbour by which an
//! originator's messages come best is the next hop to it.
//!
//! | file | state |
//! |---|---|
//! | `table` | which messages of an originator came by which neighbour, and how good that path is |
//! | `tq` | the quality of links and paths |
//! | `queue` | messages that are to be sent, several in a packet |
//! | `receive` | the rules by which a message changes all of it |

mod queue;
mod receive;
mod table;
mod tq;

use std::collections::VecDeque;

use hopcast_core::{Duration, Instant, Stream};
use hopcast_wire::ethernet::{BROADCAST, Mac};

use crate::routing::{Common, Due, Link, PRIMARY, PathStatus, Via, jittered};
use crate::wire::ogm::Ogm;
use crate::wire::{MAX_TQ, TTL};
use queue::{Message, OgmQueue};
use table::Iv;

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

/// The state of routing by B.A.T.M.A.N. IV.
pub(crate) struct BatmanIv {
    pub(crate) common: Common<Iv>,
    pub(crate) config: BatmanIvConfig,
    /// For each interface, the number of its next message.
    seqnos: Vec<u32>,
    queue: OgmQueue,
    /// Interfaces whose next message is to be made now.
    to_schedule: VecDeque<usize>,
}

impl BatmanIv {
    pub(crate) fn new(config: BatmanIvConfig, links: Vec<Link>, mut random: Stream) -> Self {
        let seqnos = links.iter().map(|_| random.bits() as u32).collect();
        let queue = OgmQueue::new(config.aggregation);
        let common = Common::new(links, config.max_originators, random);
        Self { common, config, seqnos, queue, to_schedule: VecDeque::new() }
    }

    /// Begins: the first message of each interface is to be made.
    pub(crate) fn start(&mut self) {
        self.to_schedule.extend(0..self.common.links.len());
    }

    /// The paths to an originator.
    pub(crate) fn path(&self, originator: Mac) -> Option<PathStatus> {
        let own = self.common.own();
        let entry = self.common.originators.get(originator)?;
        let out = &entry.outs[own];
        // A quality has 8 bits.
        let heard = || entry.heard_by(own).map(|(via, metric, seen)| (via, metric as u8, seen));
        let is_router = |via: Via| out.router == Some(via);
        Some(PathStatus {
            router: heard().find(|(via, ..)| is_router(*via)),
            hops: (TTL + 1).saturating_sub(out.state.last_ttl),
            first_seen: entry.first_seen,
            last_seen: entry.last_seen,
            others: heard()
                .filter(|(via, ..)| !is_router(*via))
                .map(|(_, quality, seen)| (quality, seen))
                .collect(),
        })
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.queue.deadline()
    }

    /// Makes the next message of an interface, which leaves an interval later. Only those of the first interface,
    /// number 0, go through the whole mesh, and have containers.
    pub(crate) fn schedule(&mut self, now: Instant, interface: usize, containers: &[u8]) {
        let (primary, link) = (interface == PRIMARY, self.common.links[interface]);
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
        let at = jittered(now, self.config.interval, &mut self.common.random);
        let outs = if primary { 0..self.common.links.len() } else { interface..interface + 1 };
        for out in outs {
            self.queue.push_own(at, &Message { ogm, containers, out, interface });
        }
    }

    /// The next packet of messages that is due, or the interface whose next message is to be made.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Due> {
        if let Some(interface) = self.to_schedule.pop_front() {
            return Some(Due::Schedule(interface));
        }
        let packet = self.queue.due(now)?;
        let counters = &mut self.common.counters;
        counters.ogm_packets_sent += 1;
        counters.ogms_sent += packet.messages as u64;
        if packet.own && packet.interface == packet.out {
            self.to_schedule.push_back(packet.interface);
        }
        Some(Due::Packet { interface: packet.out, destination: BROADCAST, bytes: packet.bytes })
    }
}
