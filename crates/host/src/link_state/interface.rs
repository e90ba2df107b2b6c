//! An interface of the router: its neighbours, and what is to be sent there.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use hopcast_core::{Buffer, Duration, Egress, Instant, Item, Outbox, Stream, Transit, earliest};
use hopcast_wire::ethernet;
use hopcast_wire::ip::Version;

use super::config::{Config, InterfaceConfig};
use super::counters::Counters;
use super::database::Database;
use super::neighbour::{Neighbour, State};
use super::wire::{self, Header, Hello, Key, Message, Packet};

/// Maximum time until the first Hello of an interface. Chosen: routers that start together do not greet at one instant,
/// and all have heard each other within a second.
const FIRST_HELLO: Duration = Duration::from_secs(1);
/// Minimum time between two Hellos. Chosen: it bounds what forged ones cost, and the answer to a new neighbour is not
/// late.
const MIN_HELLO_GAP: Duration = Duration::from_millis(10);
/// Maximum number of messages with advertisements or their headers that are sent at once, and the time after which
/// there may be more. Chosen: 5.8 Mbit/s at most; common routers send one every 33 ms. With more a forged request, or a
/// new neighbour in a large network, fills queues; with less a large database takes long.
const BURST: usize = 16;
const BURST_GAP: Duration = Duration::from_millis(33);

/// State that all interfaces of a router share.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) config: Config,
    /// Identifier of the router.
    pub(super) router: u32,
    pub(super) generation: u32,
    pub(super) random: Stream,
    pub(super) counters: Counters,
    pub(super) out: Outbox,
}

/// An interface.
#[derive(Debug)]
pub(super) struct Interface {
    pub(super) config: InterfaceConfig,
    /// The address that messages are sent from; `None` if it has no address, and there is nobody then.
    pub(super) own: Option<IpAddr>,
    /// The addresses by which the router is a neighbour, of IPv4 and IPv6.
    gateways: [Option<IpAddr>; 2],
    mtu: u32,
    egress: Arc<[u32]>,
    pub(super) is_up: bool,
    hello_at: Option<Instant>,
    last_hello: Option<Instant>,
    /// Time from which on advertisements may be sent.
    free_at: Instant,
    pub(super) neighbours: BTreeMap<u32, Neighbour>,
    acknowledgements: Vec<Header>,
    requests: BTreeSet<Key>,
}

impl Interface {
    pub(super) fn new(number: u32, host: &crate::Config, config: InterfaceConfig) -> Self {
        let gateways = [host.v4_on(number).map(IpAddr::from), host.v6_on(number).map(IpAddr::from)];
        let on_link = |interface: &crate::Interface| match gateways {
            [_, Some(_)] => Some(ethernet::link_local(interface.mac).into()),
            [own, None] => own,
        };
        let interface = host.interfaces.get(number as usize);
        Self {
            config,
            own: interface.and_then(on_link),
            gateways,
            mtu: interface.map_or(0, |interface| interface.mtu),
            egress: Arc::new([number]),
            is_up: true,
            hello_at: None,
            last_hello: None,
            free_at: Instant::ZERO,
            neighbours: BTreeMap::new(),
            acknowledgements: Vec::new(),
            requests: BTreeSet::new(),
        }
    }

    /// Starts to greet.
    pub(super) fn start(&mut self, now: Instant, random: &mut Stream) {
        self.is_up = true;
        self.hello_at = Some(now + Duration::from_nanos(random.below(FIRST_HELLO.as_nanos())));
    }

    /// Stops, as its link is down; returns the number of neighbours that were lost.
    pub(super) fn stop(&mut self) -> u64 {
        self.is_up = false;
        self.hello_at = None;
        self.acknowledgements.clear();
        self.requests.clear();
        let lost = self.neighbours.values().filter(|one| one.is_two_way()).count();
        self.neighbours.clear();
        lost as u64
    }

    /// Greets as soon as may be; says when.
    pub(super) fn greet_soon(&mut self, now: Instant) -> Instant {
        let at = self.last_hello.map_or(now, |last| now.max(last + MIN_HELLO_GAP));
        self.hello_at = Some(self.hello_at.map_or(at, |before| before.min(at)));
        at
    }

    /// Removes the neighbours that have not been heard for too long; says how many of them heard this router.
    pub(super) fn expire(&mut self, now: Instant) -> u64 {
        let before = self.neighbours.values().filter(|one| one.is_two_way()).count();
        self.neighbours.retain(|_, one| one.until > now);
        (before - self.neighbours.values().filter(|one| one.is_two_way()).count()) as u64
    }

    /// Tells all neighbours of an advertisement.
    pub(super) fn flood(&mut self, now: Instant, key: Key) {
        self.neighbours.values_mut().for_each(|one| one.tell(now, key));
    }

    pub(super) fn acknowledge(&mut self, header: Header) {
        self.acknowledgements.push(header);
    }

    pub(super) fn request(&mut self, key: Key) {
        self.requests.insert(key);
    }

    /// The neighbours to which the link is announced.
    pub(super) fn full(&self) -> impl Iterator<Item = (u32, &Neighbour)> {
        self.neighbours.iter().filter(|(_, one)| one.state == State::Full).map(|(&router, one)| (router, one))
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let of = |one: &Neighbour| {
            let (until, due) = one.deadlines();
            earliest(Some(until), due.map(|due| due.max(self.free_at)))
        };
        self.neighbours.values().fold(self.hello_at, |next, one| earliest(next, of(one)))
    }

    /// Sends what is due.
    pub(super) fn flush(&mut self, now: Instant, database: &Database, shared: &mut Shared) {
        if self.hello_at.is_some_and(|at| at <= now) {
            self.greet(now, shared);
        }
        let Some(version) = self.own.map(Version::of) else { return };
        let room = wire::room(version, self.mtu);
        let acknowledgements = std::mem::take(&mut self.acknowledgements);
        for part in acknowledgements.chunks((room / Header::LENGTH).max(1)) {
            shared.counters.acknowledgements += 1;
            self.put(shared, Message::Acknowledgement(part.to_vec()));
        }
        let requests: Vec<Key> = std::mem::take(&mut self.requests).into_iter().collect();
        for part in requests.chunks((room / Key::LENGTH).max(1)) {
            shared.counters.requests += 1;
            self.put(shared, Message::Request(part.to_vec()));
        }
        if self.free_at <= now {
            self.send_due(now, room, database, shared);
        }
    }

    /// Sends advertisements and headers that are due, as many at once as may be.
    fn send_due(&mut self, now: Instant, room: usize, database: &Database, shared: &mut Shared) {
        let mut due: BTreeMap<Key, bool> = BTreeMap::new();
        for (&key, one) in self.neighbours.values().flat_map(|one| &one.outstanding) {
            if one.due <= now {
                *due.entry(key).or_default() |= one.whole;
            }
        }
        let (mut wholes, mut headers): (Vec<Vec<_>>, Vec<Vec<_>>) = (Vec::new(), Vec::new());
        let mut left = [0; 2];
        for (key, whole) in due {
            let Some(found) = database.to_send(now, key) else {
                self.neighbours.values_mut().for_each(|one| _ = one.outstanding.remove(&key));
                continue;
            };
            let cost = if whole { found.length() } else { Header::LENGTH };
            let starts = cost > left[usize::from(whole)];
            if starts && wholes.len() + headers.len() >= BURST {
                self.free_at = now + BURST_GAP;
                break;
            }
            self.mark_sent(now, key, whole, shared);
            if starts {
                left[usize::from(whole)] = room;
                if whole { wholes.push(Vec::new()) } else { headers.push(Vec::new()) }
            }
            let left = &mut left[usize::from(whole)];
            *left = left.saturating_sub(cost);
            if whole {
                wholes.last_mut().into_iter().for_each(|all| all.push(found.clone()));
            } else {
                headers.last_mut().into_iter().for_each(|all| all.push(found.header));
            }
        }
        for all in wholes {
            shared.counters.updates += 1;
            self.put(shared, Message::Update(all));
        }
        for all in headers {
            shared.counters.offers += 1;
            self.put(shared, Message::Offer(all));
        }
    }

    /// Notes that an advertisement, or its header, is sent now to those whom it is due to.
    fn mark_sent(&mut self, now: Instant, key: Key, whole: bool, shared: &mut Shared) {
        let again = now + shared.config.retransmit_interval;
        let mut is_repeated = false;
        for neighbour in self.neighbours.values_mut() {
            if let Some(one) = neighbour.outstanding.get_mut(&key).filter(|one| one.due <= now) {
                is_repeated |= one.sent.is_some();
                (one.due, one.sent) = (again, Some(now));
            }
        }
        shared.counters.advertisements += u64::from(whole);
        shared.counters.retransmissions += u64::from(is_repeated);
    }

    /// Sends a Hello.
    fn greet(&mut self, now: Instant, shared: &mut Shared) {
        let Config { hello_interval, dead_interval, .. } = shared.config;
        // Up to a tenth earlier, so that routers do not stay in step.
        let early = Duration::from_nanos(shared.random.below(hello_interval.as_nanos() / 10));
        self.hello_at = Some(now + hello_interval.saturating_sub(early));
        self.last_hello = Some(now);
        let hello = Hello {
            interval: millis(hello_interval),
            dead: millis(dead_interval),
            generation: shared.generation,
            addresses: self.gateways,
            heard: self.neighbours.keys().copied().collect(),
        };
        shared.counters.hellos += 1;
        self.put(shared, Message::Hello(hello));
    }

    fn put(&self, shared: &mut Shared, message: Message) {
        let Some(own) = self.own else { return };
        let mut packet = Buffer::default();
        wire::prepend(&mut packet, own, &Packet { router: shared.router, area: self.config.area, message });
        if packet.len() > self.mtu as usize {
            shared.counters.unsendable += 1;
            return packet.recycle();
        }
        let egress = Egress::Group(Arc::clone(&self.egress));
        shared.out.down(Item::Transit(Transit { packet, ingress: None, egress }));
    }
}

/// An interval as Hellos have it.
pub(super) fn millis(interval: Duration) -> u32 {
    u32::try_from(interval.as_millis()).unwrap_or(u32::MAX)
}
