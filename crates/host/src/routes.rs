//! Next hops of packets: the trait [`Routes`], a table that implements it, and the cache in front of it.

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopcast_wire::ethernet::Mac;

use crate::prefixes::PrefixTable;

/// The next hop: an interface of the host, and the station to send to on its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NextHop {
    /// The number of the interface.
    pub interface: u32,
    /// The next station's Ethernet address.
    pub mac: Mac,
}

/// A route as a machine on the host may look it up: to choose an egress of its own, or to know the ingress of a
/// sender's packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RouteEntry {
    /// The number of the interface of the route.
    pub interface: u32,
    /// The next hop's address; the destination's own on the last hop.
    pub neighbour: IpAddr,
    /// The cost of the route, smaller is better; the number of hops unless the routing has another metric.
    pub metric: u32,
}

/// A host's routing table: the host looks up next hops in it, and a machine on the host whole routes.
pub trait Routes {
    /// The next hop towards `destination`; `None` if there is no route. The host keeps the answer until
    /// [`version`](Self::version) changes.
    fn next_hop(&mut self, destination: IpAddr) -> Option<NextHop>;

    /// A number that changes whenever an answer may have changed. It is read for each packet, so it must be cheap.
    fn version(&self) -> u64;

    /// The route towards `destination`, with its neighbour and metric; `None` if there is none, or if the table has
    /// only the Ethernet address of the next station.
    fn route(&mut self, destination: IpAddr) -> Option<RouteEntry> {
        let _ = destination;
        None
    }

    /// The next hop towards `destination` by its IP address, for a host that resolves Ethernet addresses itself: the
    /// number of the interface, and the neighbour. The host keeps the answer as that of [`next_hop`](Self::next_hop).
    fn neighbour(&mut self, destination: IpAddr) -> Option<(u32, IpAddr)> {
        self.route(destination).map(|route| (route.interface, route.neighbour))
    }

    /// The Ethernet address of a neighbour on an interface; `None` if there is no such neighbour there.
    fn station(&mut self, interface: u32, neighbour: IpAddr) -> Option<Mac> {
        self.next_hop(neighbour).filter(|hop| hop.interface == interface).map(|hop| hop.mac)
    }
}

/// A routing table: the longest prefix wins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StaticRoutes {
    table: PrefixTable<NextHop>,
    /// Routes by the gateway's IP address; `None` for destinations on the link itself.
    gateways: PrefixTable<(u32, Option<IpAddr>)>,
    version: u64,
}

impl StaticRoutes {
    /// A table without routes.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a route to the `length`-bit prefix of `address` by `next_hop`, in place of an earlier one to the same
    /// prefix. A length past the address's is its whole length.
    #[must_use]
    pub fn with(mut self, address: IpAddr, length: u8, next_hop: NextHop) -> Self {
        self.table.insert(address, length, next_hop);
        self.version += 1;
        self
    }

    /// As [`with`](Self::with), for a host that resolves Ethernet addresses itself: by a gateway on the link of an
    /// interface; without one, the destinations are on that link.
    #[must_use]
    pub fn via(mut self, (address, length): (IpAddr, u8), interface: u32, gateway: Option<IpAddr>) -> Self {
        self.gateways.insert(address, length, (interface, gateway));
        self.version += 1;
        self
    }
}

impl Routes for StaticRoutes {
    fn next_hop(&mut self, destination: IpAddr) -> Option<NextHop> {
        self.table.find(destination)
    }

    fn neighbour(&mut self, destination: IpAddr) -> Option<(u32, IpAddr)> {
        let (interface, gateway) = self.gateways.find(destination)?;
        Some((interface, gateway.unwrap_or(destination)))
    }

    fn version(&self) -> u64 {
        self.version
    }
}

/// The answers of [`Routes`], kept until its version changes: a direct-mapped table that grows while destinations
/// collide, up to [`MAX_SLOTS`].
pub(crate) struct RouteCache {
    routes: Box<dyn Routes>,
    version: u64,
    /// The last answer: consecutive packets mostly have the same destination.
    last: Option<(IpAddr, Option<NextHop>)>,
    slots: Vec<Option<(IpAddr, Option<NextHop>)>>,
    /// Next hops by their IP addresses, at most [`MAX_SLOTS`].
    neighbours: BTreeMap<IpAddr, Option<(u32, IpAddr)>>,
}

/// Initial number of slots, up to [`MAX_SLOTS`]. Chosen; more is memory at each node, with fewer destinations collide
/// and are looked up again.
const FIRST_SLOTS: usize = 16;
/// Maximum number of slots: see [`FIRST_SLOTS`].
const MAX_SLOTS: usize = 1024;

impl RouteCache {
    pub(crate) fn new(routes: Box<dyn Routes>) -> Self {
        let neighbours = BTreeMap::new();
        Self { version: routes.version(), routes, last: None, slots: Vec::new(), neighbours }
    }

    #[inline]
    pub(crate) fn next_hop(&mut self, destination: IpAddr) -> Option<NextHop> {
        let version = self.routes.version();
        if version == self.version
            && let Some((last, answer)) = self.last
            && last == destination
        {
            return answer;
        }
        let answer = self.look_up(version, destination);
        self.last = Some((destination, answer));
        answer
    }

    /// See [`Routes::station`].
    pub(crate) fn station(&mut self, interface: u32, neighbour: IpAddr) -> Option<Mac> {
        self.routes.station(interface, neighbour)
    }

    /// See [`Routes::neighbour`].
    pub(crate) fn neighbour(&mut self, destination: IpAddr) -> Option<(u32, IpAddr)> {
        let version = self.routes.version();
        self.keep_version(version);
        if let Some(&known) = self.neighbours.get(&destination) {
            return known;
        }
        if self.neighbours.len() >= MAX_SLOTS {
            self.neighbours.clear();
        }
        let answer = self.routes.neighbour(destination);
        self.neighbours.insert(destination, answer);
        answer
    }

    /// Forgets the answers of another version.
    fn keep_version(&mut self, version: u64) {
        if version != self.version {
            self.version = version;
            self.slots.clear();
            self.neighbours.clear();
            self.last = None;
        }
    }

    fn look_up(&mut self, version: u64, destination: IpAddr) -> Option<NextHop> {
        self.keep_version(version);
        if self.slots.is_empty() {
            self.slots.resize(FIRST_SLOTS, None);
        }
        let slot = slot(destination, self.slots.len());
        match self.slots[slot] {
            Some((found, answer)) if found == destination => return answer,
            Some(_) if self.slots.len() < MAX_SLOTS => self.grow(),
            _ => {}
        }
        let answer = self.routes.next_hop(destination);
        let slot = self::slot(destination, self.slots.len());
        self.slots[slot] = Some((destination, answer));
        answer
    }

    fn grow(&mut self) {
        let grown = vec![None; self.slots.len() * 2];
        for entry in core::mem::replace(&mut self.slots, grown).into_iter().flatten() {
            let slot = slot(entry.0, self.slots.len());
            self.slots[slot] = Some(entry);
        }
    }
}

/// Fibonacci hashing: the upper bits of a product with 2^64 / the golden ratio. `slots` is a power of two.
fn slot(address: IpAddr, slots: usize) -> usize {
    let bits = match address {
        IpAddr::V4(address) => u64::from(address.to_bits()),
        IpAddr::V6(address) => {
            let bits = address.to_bits();
            ((bits >> 64) as u64).rotate_left(32) ^ bits as u64
        }
    };
    (bits.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as usize & (slots - 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hop(interface: u32) -> NextHop {
        NextHop { interface, mac: [2; 6] }
    }

    fn at(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn the_longest_prefix_wins_and_versions_keep_apart() {
        let mut routes = StaticRoutes::new()
            .with(at("10.0.0.0"), 8, hop(1))
            .with(at("10.1.0.0"), 16, hop(2))
            .with(at("fd00::"), 8, hop(3))
            .with(at("::"), 0, hop(4));
        assert_eq!(routes.next_hop(at("10.1.2.3")), Some(hop(2)));
        assert_eq!(routes.next_hop(at("10.2.2.3")), Some(hop(1)));
        assert_eq!(routes.next_hop(at("11.2.2.3")), None);
        assert_eq!(routes.next_hop(at("fd12::1")), Some(hop(3)));
        assert_eq!(routes.next_hop(at("2001:db8::1")), Some(hop(4)));
    }

    /// Counts questions through a shared cell, and answers with the address's last byte.
    struct CountingRoutes {
        asked: std::rc::Rc<core::cell::Cell<u32>>,
        version: std::rc::Rc<core::cell::Cell<u64>>,
    }

    impl Routes for CountingRoutes {
        fn next_hop(&mut self, destination: IpAddr) -> Option<NextHop> {
            self.asked.set(self.asked.get() + 1);
            let IpAddr::V4(address) = destination else { return None };
            Some(hop(u32::from(address.octets()[3]) + self.version.get() as u32))
        }
        fn version(&self) -> u64 {
            self.version.get()
        }
    }

    #[test]
    fn an_answer_is_kept_until_the_version_changes() {
        let (asked, version) = (std::rc::Rc::default(), std::rc::Rc::default());
        let oracle =
            CountingRoutes { asked: std::rc::Rc::clone(&asked), version: std::rc::Rc::clone(&version) };
        let mut cache = RouteCache::new(Box::new(oracle));
        for _ in 0..10 {
            assert_eq!(cache.next_hop(at("10.0.0.1")), Some(hop(1)));
            assert_eq!(cache.next_hop(at("10.0.0.2")), Some(hop(2)));
            assert_eq!(cache.next_hop(at("::1")), None);
        }
        assert_eq!(asked.get(), 3);
        version.set(7);
        assert_eq!(cache.next_hop(at("::1")), None);
        assert_eq!(cache.next_hop(at("10.0.0.1")), Some(hop(8)));
        assert_eq!(asked.get(), 5);
    }

    #[test]
    fn many_destinations_do_not_grow_the_cache_past_its_bound() {
        let (asked, version) = (std::rc::Rc::default(), std::rc::Rc::default());
        let mut cache = RouteCache::new(Box::new(CountingRoutes { asked, version }));
        for n in 0..100_000u32 {
            let destination = IpAddr::from(n.to_be_bytes());
            assert_eq!(cache.next_hop(destination), Some(hop(n & 0xff)));
            assert_eq!(cache.next_hop(destination), Some(hop(n & 0xff)));
        }
        assert!(cache.slots.len() <= MAX_SLOTS);
    }
}
