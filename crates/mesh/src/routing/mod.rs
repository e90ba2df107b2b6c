//! Routing as the node sees it, whichever algorithm it has.
//!
//! | file | state |
//! |---|---|
//! | `originators` | by which neighbours each originator's messages come, and how well; the next hops |
//!
//! The algorithms have modules of their own.

mod originators;
#[cfg(test)]
mod tests;

use hopcast_core::{Duration, Instant, Rate, Stream};
use hopcast_wire::ethernet::Mac;

use crate::address_map::Slot;
use crate::batman_iv::{BatmanIv, BatmanIvConfig};
use crate::batman_v::{BatmanV, BatmanVConfig};
use crate::wire::PacketType;
pub(crate) use originators::{Algorithm, Originator, Originators};

/// Interface whose messages go through the whole mesh, and whose address is that of the node.
pub(crate) const PRIMARY: usize = 0;

/// The algorithm by which a node finds its routes, with its settings. All nodes of a mesh have the same.
#[derive(Clone, Debug)]
pub enum RoutingConfig {
    /// B.A.T.M.A.N. IV, whose metric is the share of messages that arrive.
    BatmanIv(BatmanIvConfig),
    /// B.A.T.M.A.N. V, whose metric is throughput.
    BatmanV(BatmanVConfig),
}

impl Default for RoutingConfig {
    fn default() -> Self {
        Self::BatmanIv(BatmanIvConfig::default())
    }
}

/// An originator, as `batctl o` shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OriginatorStatus {
    /// Address of the interface whose messages they are.
    pub originator: Mac,
    /// Time of its last message.
    pub last_seen: Instant,
    /// Metric of the path: with B.A.T.M.A.N. IV the average transmit quality, 0 to 255, with V the
    /// throughput in units of 100 kbit/s.
    pub metric: u32,
    /// Address of the next hop.
    pub next_hop: Mac,
    /// Number of the interface by which packets leave to it.
    pub interface: usize,
    /// The other neighbours by which its messages come, with the metric of each path.
    pub alternatives: Vec<(Mac, u32)>,
}

/// The paths to an originator, for packets of the node's own, as B.A.T.M.A.N. IV knows them.
#[derive(Clone, Debug)]
pub(crate) struct PathStatus {
    /// The next hop, with the quality of the path and the time of the last message by it.
    pub(crate) router: Option<(Via, u8, Instant)>,
    /// Number of hops that its last message came.
    pub(crate) hops: u8,
    /// Time of its first message, and of its last by any neighbour.
    pub(crate) first_seen: Instant,
    pub(crate) last_seen: Instant,
    /// Quality of the paths by other neighbours, each with the time of its last message.
    pub(crate) others: Vec<(u8, Instant)>,
}

/// A neighbour, by its address and the interface on which it is heard.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Via {
    interface: u16,
    pub(crate) address: Mac,
}

impl Via {
    pub(crate) const fn new(interface: usize, address: Mac) -> Self {
        Self { interface: interface as u16, address }
    }

    #[inline]
    pub(crate) const fn interface(self) -> usize {
        self.interface as usize
    }
}

/// An interface below the mesh, as routing sees it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) mac: Mac,
    pub(crate) wireless: bool,
    pub(crate) throughput: Option<Rate>,
    pub(crate) mtu: usize,
}

/// A message that has arrived, in the form of its algorithm.
#[derive(Clone, Copy)]
pub(crate) struct Arrival<'a, M> {
    pub(crate) now: Instant,
    pub(crate) from: Via,
    pub(crate) ogm: M,
    pub(crate) containers: &'a [u8],
}

/// Something that is due now.
pub(crate) enum Due {
    /// A packet, for one station or all on an interface.
    Packet { interface: usize, destination: Mac, bytes: Vec<u8> },
    /// The next message of the node's own for an interface, which [`Routing::schedule`] takes.
    Schedule(usize),
}

/// Consequence of a message for the rest of the mesh.
#[derive(Debug)]
pub(crate) enum Event<'a> {
    /// An originator's containers.
    Containers(Mac, &'a [u8]),
    /// There is no route any more, or the originator is forgotten.
    Removed(Removal),
}

/// Consequence of a purge or a full table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Removal {
    /// There is no next hop to it any more.
    Route(Mac),
    /// It is forgotten.
    Originator(Mac),
}

/// Figures of any algorithm; what one does not know stays 0.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    pub(crate) ogms_received: u64,
    pub(crate) ogms_sent: u64,
    pub(crate) ogms_forwarded: u64,
    pub(crate) ogm_packets_sent: u64,
    pub(crate) ogms_of_own: u64,
    pub(crate) ogms_not_best: u64,
    pub(crate) ogms_outdated: u64,
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
    pub(crate) elps_sent: u64,
    pub(crate) elps_received: u64,
    pub(crate) elps_of_own: u64,
    pub(crate) elps_outdated: u64,
    pub(crate) elp_probes_sent: u64,
    pub(crate) elp_probes_received: u64,
}

/// Largest deviation of the interval of a node's own packets (`BATADV_JITTER`).
pub(crate) const JITTER: Duration = Duration::from_millis(20);

/// The time of the next packet of the node's own, an interval later but for the jitter.
pub(crate) fn jittered(now: Instant, interval: Duration, random: &mut Stream) -> Instant {
    let jitter = Duration::from_nanos(random.below(2 * JITTER.as_nanos()));
    now + interval.saturating_sub(JITTER) + jitter + Duration::from_nanos(1)
}

/// The state that every algorithm has.
pub(crate) struct Common<A: Algorithm> {
    pub(crate) links: Vec<Link>,
    pub(crate) originators: Originators<A>,
    pub(crate) random: Stream,
    pub(crate) counters: Counters,
}

impl<A: Algorithm> Common<A> {
    pub(crate) fn new(links: Vec<Link>, max_originators: usize, random: Stream) -> Self {
        let originators = Originators::new(links.len() + 1, max_originators.max(1));
        Self { links, originators, random, counters: Counters::default() }
    }

    /// Whether an address is one of the node's own interfaces.
    #[inline]
    pub(crate) fn is_own(&self, address: Mac) -> bool {
        self.links.iter().any(|link| link.mac == address)
    }

    /// Number by which the table of originators has what is known for the node's own packets, behind the interfaces.
    #[inline]
    pub(crate) const fn own(&self) -> usize {
        self.links.len()
    }

    /// Makes sure that an originator is known. Returns where it is in the table; `None` if there is no room.
    #[inline]
    pub(crate) fn ensure(
        &mut self,
        now: Instant,
        originator: Mac,
        events: &mut Vec<Event<'_>>,
    ) -> Option<Slot> {
        let (known, forgotten) = self.originators.ensure(now, originator);
        events.extend(forgotten.map(|forgotten| Event::Removed(Removal::Originator(forgotten))));
        self.counters.originators_refused += u64::from(known.is_none());
        known
    }
}

/// The routing of a node.
pub(crate) enum Routing {
    BatmanIv(BatmanIv),
    BatmanV(BatmanV),
}

/// Does something with the algorithm, or with the state that it has in common with all others.
macro_rules! with {
    ($self:ident, $routing:ident => $done:expr) => {
        match $self {
            Self::BatmanIv($routing) => $done,
            Self::BatmanV($routing) => $done,
        }
    };
    ($self:ident.common, $common:ident => $done:expr) => {
        match $self {
            Self::BatmanIv(BatmanIv { common: $common, .. }) => $done,
            Self::BatmanV(BatmanV { common: $common, .. }) => $done,
        }
    };
}

impl Routing {
    pub(crate) fn new(config: RoutingConfig, links: Vec<Link>, random: Stream) -> Self {
        match config {
            RoutingConfig::BatmanIv(config) => Self::BatmanIv(BatmanIv::new(config, links, random)),
            RoutingConfig::BatmanV(config) => Self::BatmanV(BatmanV::new(config, links, random)),
        }
    }

    /// Begins.
    pub(crate) fn start(&mut self, now: Instant) {
        match self {
            Self::BatmanIv(routing) => routing.start(),
            Self::BatmanV(routing) => routing.start(now),
        }
    }

    /// Makes the next message of the node's own for an interface. Only those of [`PRIMARY`] have containers, and
    /// B.A.T.M.A.N. V has no others.
    pub(crate) fn schedule(&mut self, now: Instant, interface: usize, containers: &[u8]) {
        match self {
            Self::BatmanIv(routing) => routing.schedule(now, interface, containers),
            Self::BatmanV(routing) => routing.schedule(now, containers),
        }
    }

    /// The packet or message that is due first.
    pub(crate) fn due(&mut self, now: Instant) -> Option<Due> {
        with!(self, routing => routing.due(now))
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        with!(self, routing => routing.deadline())
    }

    /// Whether the algorithm has packets of a type.
    pub(crate) const fn takes(&self, kind: PacketType) -> bool {
        match self {
            Self::BatmanIv(_) => matches!(kind, PacketType::OgmIv),
            Self::BatmanV(_) => matches!(kind, PacketType::Elp | PacketType::Ogm2),
        }
    }

    /// Takes a packet of a type that the algorithm has, for all. Returns whether it is well formed.
    pub(crate) fn receive<'a>(
        &mut self,
        now: Instant,
        from: Via,
        kind: PacketType,
        packet: &'a [u8],
        events: &mut Vec<Event<'a>>,
    ) -> bool {
        match self {
            Self::BatmanIv(routing) => routing.receive(now, from, packet, events),
            Self::BatmanV(routing) => routing.receive(now, from, kind, packet, events),
        }
    }

    /// Notes a packet that was received from a neighbour for this node alone, and the rate at which it was sent, if it
    /// was measured.
    #[inline]
    pub(crate) fn note_received(&mut self, from: Via, kind: PacketType, rate: Option<Rate>) {
        if let Self::BatmanV(routing) = self {
            routing.note_received(from, kind, rate);
        }
    }

    /// Notes a packet that is sent to a neighbour alone.
    #[inline]
    pub(crate) fn note_sent(&mut self, to: Via) {
        if let Self::BatmanV(routing) = self {
            routing.note_sent(to);
        }
    }

    /// Throughput of the link to a neighbour, in units of 100 kbit/s, if the algorithm measures it.
    pub(crate) fn throughput(&self, interface: usize, address: Mac) -> Option<u32> {
        match self {
            Self::BatmanIv(_) => None,
            Self::BatmanV(routing) => routing.throughput(interface, address),
        }
    }

    /// Address of the node whose interface a neighbour is, if it is known.
    #[inline]
    pub(crate) fn originator_of(&self, via: Via) -> Option<Mac> {
        with!(self.common, common => Some(common.originators.neighbour(via)?.originator))
    }

    pub(crate) fn set_mtu(&mut self, interface: usize, mtu: usize) {
        with!(self.common, common => common.links[interface].mtu = mtu);
    }

    /// Whether an address is one of the node's own interfaces.
    #[inline]
    pub(crate) fn is_own(&self, address: Mac) -> bool {
        with!(self.common, common => common.is_own(address))
    }

    /// The next hop to an originator for a packet that came by an interface, or for one of the node's own.
    #[inline]
    pub(crate) fn next_hop(&self, originator: Mac, came_by: Option<usize>) -> Option<Via> {
        with!(self.common, common => common.originators.router(originator, came_by.unwrap_or(common.own())))
    }

    /// Metric of the path to an originator, of which more is better, if there is a route.
    pub(crate) fn metric(&self, originator: Mac) -> Option<u32> {
        with!(self.common, common => {
            let entry = common.originators.get(originator)?;
            entry.outs[common.own()].router.map(|via| entry.metric(common.own(), via))
        })
    }

    /// The routing by B.A.T.M.A.N. IV, if it is that.
    pub(crate) const fn batman_iv(&self) -> Option<&BatmanIv> {
        match self {
            Self::BatmanIv(routing) => Some(routing),
            Self::BatmanV(_) => None,
        }
    }

    /// Whether an originator is known, with a route or without.
    #[inline]
    pub(crate) fn knows(&self, originator: Mac) -> bool {
        with!(self.common, common => common.originators.get(originator).is_some())
    }

    /// Forgets what has not been heard of for long.
    pub(crate) fn purge(&mut self, now: Instant, removed: impl FnMut(Removal)) {
        with!(self.common, common => common.originators.purge(now, removed));
    }

    /// Number of originators that are known.
    pub(crate) fn len(&self) -> usize {
        with!(self.common, common => common.originators.len())
    }

    /// The addresses of neighbours on an interface.
    pub(crate) fn neighbours_on(&self, interface: usize) -> Vec<Mac> {
        with!(self.common, common => common.originators.neighbours_on(interface).map(|(via, _)| via.address).collect())
    }

    /// See [`Originators::has_receivers`].
    pub(crate) fn has_receivers(&self, interface: usize, originator: Mac, from: Option<Mac>) -> bool {
        with!(self.common, common => common.originators.has_receivers(interface, originator, from))
    }

    /// The originators to which there is a route.
    pub(crate) fn status(&self) -> Vec<OriginatorStatus> {
        with!(self.common, common => common.originators.status())
    }

    pub(crate) fn counters(&self) -> &Counters {
        with!(self.common, common => &common.counters)
    }
}
