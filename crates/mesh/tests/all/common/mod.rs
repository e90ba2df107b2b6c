//! A world in virtual time: nodes, links with loss and a delay, and frames that clients send.

#![allow(clippy::unwrap_used, dead_code)] // each test file uses its part

pub(crate) mod checks;
pub(crate) mod groups;
pub(crate) mod lan;

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use hopcast_core::{Buffer, Duration, Frame, Instant, Item, Machine, Port, Rate, Reception, Seed, Stream};
use hopcast_mesh::{BatmanVConfig, Mesh, MeshConfig, MeshInterface, RoutingConfig};
use hopcast_wire::ethernet::{self, Header, Mac};
use lan::Lan;

/// Delay of a link.
const DELAY: Duration = Duration::from_micros(500);
/// Time that the frames may take which wait for a link with a rate.
const MAX_BACKLOG: Duration = Duration::from_millis(50);

/// An interface of a node, by the numbers of both.
pub(crate) type Station = (usize, usize);

/// Number of the interface above.
const ABOVE: usize = usize::MAX;

/// A frame on its way to an interface.
type Arriving = (Station, Rc<[u8]>);

/// Address of a node's first interface.
pub(crate) const fn radio(node: usize) -> Mac {
    station((node, 0))
}

/// Address of an interface.
pub(crate) const fn station((node, interface): Station) -> Mac {
    [0x02, 0, 0, interface as u8, (node >> 8) as u8, node as u8]
}

/// Address of the interface that a node's mesh makes.
pub(crate) const fn host(node: usize) -> Mac {
    [0x06, 0, 0, 0, (node >> 8) as u8, node as u8]
}

/// The time this many milliseconds after the start.
pub(crate) fn at(millis: u64) -> Instant {
    Instant::ZERO + Duration::from_millis(millis)
}

/// A frame of a client.
pub(crate) fn frame(to: Mac, from: Mac, payload: &[u8]) -> Vec<u8> {
    let mut frame = Buffer::copy_from(payload);
    ethernet::prepend(&mut frame, Header { destination: to, source: from, ether_type: 0x88b5 });
    frame.to_vec()
}

/// A frame of a client in a VLAN.
pub(crate) fn tagged(to: Mac, from: Mac, vlan: u16, payload: &[u8]) -> Vec<u8> {
    let mut inner = vlan.to_be_bytes().to_vec();
    inner.extend(0x88b5_u16.to_be_bytes());
    inner.extend(payload);
    let mut frame = Buffer::copy_from(&inner);
    ethernet::prepend(&mut frame, Header { destination: to, source: from, ether_type: 0x8100 });
    frame.to_vec()
}

/// Nodes with one radio each or several, and who hears whom.
pub(crate) struct World {
    pub(crate) nodes: Vec<Mesh>,
    /// Number of interfaces of each node.
    interfaces: Vec<usize>,
    pub(crate) now: Instant,
    /// Loss of a link in one direction; there is none that is not here.
    links: BTreeMap<(Station, Station), f64>,
    in_flight: BTreeMap<(Instant, u64), Arriving>,
    /// When each node is to wake, and the same in the order of the times.
    deadlines: Vec<Option<Instant>>,
    wakings: BTreeSet<(Instant, usize)>,
    ever: u64,
    random: Stream,
    seed: Seed,
    routing: RoutingConfig,
    /// For each number of an interface, whether it is a radio's, and the throughput that is configured.
    kinds: Vec<(bool, Option<Rate>)>,
    /// Rate of each link in each direction, which holds a twentieth of a second of frames; `None` without a limit.
    pub(crate) link_rate: Option<Rate>,
    busy: BTreeMap<(Station, Station), Instant>,
    /// Changes a node's settings.
    configure: fn(usize, &mut MeshConfig),
    /// Rate at which frames to one station are sent, if receivers measure it.
    pub(crate) rate: Option<Rate>,
    /// Frames that were handed up, with the node and the time.
    pub(crate) delivered: Vec<(Instant, usize, Vec<u8>)>,
    /// The LAN that some nodes' interfaces above are bridged to.
    pub(crate) lan: Lan,
    /// Number of frames on the air, those that nobody hears included.
    pub(crate) sent: u64,
    /// The first frames on the air, as many as there is room for.
    pub(crate) captured: Vec<Vec<u8>>,
    pub(crate) max_captured: usize,
}

impl World {
    /// Nodes with radios, and no links.
    pub(crate) fn new(nodes: usize, seed: u64) -> Self {
        Self::with(vec![1; nodes], true, seed)
    }

    /// Nodes with these numbers of interfaces, and no links.
    pub(crate) fn with(interfaces: Vec<usize>, wireless: bool, seed: u64) -> Self {
        let kinds = vec![(wireless, None); interfaces.iter().copied().max().unwrap_or(0)];
        Self::build(interfaces, RoutingConfig::default(), kinds, seed)
    }

    /// Nodes of B.A.T.M.A.N. V, and no links. Each has interfaces of these kinds: whether it is a radio, and the
    /// throughput that is configured.
    pub(crate) fn batman_v(nodes: usize, kinds: &[(bool, Option<Rate>)], seed: u64) -> Self {
        let routing = RoutingConfig::BatmanV(BatmanVConfig::default());
        Self::build(vec![kinds.len(); nodes], routing, kinds.to_vec(), seed)
    }

    fn build(
        interfaces: Vec<usize>,
        routing: RoutingConfig,
        kinds: Vec<(bool, Option<Rate>)>,
        seed: u64,
    ) -> Self {
        let seed = Seed::new(seed, 0);
        let mut world = Self {
            nodes: Vec::new(),
            deadlines: vec![None; interfaces.len()],
            wakings: BTreeSet::new(),
            interfaces,
            now: Instant::ZERO,
            links: BTreeMap::new(),
            in_flight: BTreeMap::new(),
            ever: 0,
            random: seed.stream(&["world"], 0),
            seed,
            routing,
            kinds,
            link_rate: None,
            busy: BTreeMap::new(),
            configure: |_, _| (),
            rate: None,
            delivered: Vec::new(),
            lan: Lan::default(),
            sent: 0,
            captured: Vec::new(),
            max_captured: 0,
        };
        let nodes = world.interfaces.len();
        world.nodes = (0..nodes).map(|node| world.make(node, node, 0)).collect();
        (0..nodes).for_each(|node| world.plan(node));
        world
    }

    /// A node with the interfaces of one and the addresses of another.
    fn make(&self, place: usize, node: usize, life: u64) -> Mesh {
        let interface = |(number, &(wireless, throughput))| MeshInterface {
            mac: station((node, number)),
            wireless,
            throughput,
        };
        let kinds = self.kinds[..self.interfaces[place]].iter().enumerate();
        let config = MeshConfig::new(kinds.map(interface).collect(), host(node));
        let random = self.seed.stream(&["node", &node.to_string()], life);
        // Worlds have no LAN unless a test sets one.
        let mut config = MeshConfig { routing: self.routing.clone(), bridge_loop_avoidance: false, ..config };
        (self.configure)(node, &mut config);
        Mesh::new(config, random)
    }

    /// Replaces the nodes by new ones with other settings.
    pub(crate) fn configured(mut self, configure: fn(usize, &mut MeshConfig)) -> Self {
        self.configure = configure;
        self.nodes = (0..self.nodes.len()).map(|node| self.make(node, node, 0)).collect();
        self
    }

    /// Nodes with interfaces that are no radios, and no links.
    pub(crate) fn unlinked(nodes: usize, seed: u64) -> Self {
        Self::with(vec![1; nodes], false, seed)
    }

    /// Nodes in a row, by links that are no radios.
    pub(crate) fn wires(nodes: usize, seed: u64) -> Self {
        Self::unlinked(nodes, seed).in_row(0.0)
    }

    /// Nodes in a row.
    pub(crate) fn chain(nodes: usize, loss: f64, seed: u64) -> Self {
        Self::new(nodes, seed).in_row(loss)
    }

    /// Nodes in a square.
    pub(crate) fn grid(side: usize, loss: f64, seed: u64) -> Self {
        Self::new(side * side, seed).in_square(side, loss)
    }

    /// The same with a link between each node and the next.
    pub(crate) fn in_row(mut self, loss: f64) -> Self {
        (1..self.nodes.len()).for_each(|node| self.link(node - 1, node, loss));
        self
    }

    /// The same with the links of a square.
    pub(crate) fn in_square(mut self, side: usize, loss: f64) -> Self {
        for node in 0..side * side {
            if node % side + 1 < side {
                self.link(node, node + 1, loss);
            }
            if node + side < side * side {
                self.link(node, node + side, loss);
            }
        }
        self
    }

    /// Sets a link's loss in both directions.
    pub(crate) fn link(&mut self, a: usize, b: usize, loss: f64) {
        self.join((a, 0), (b, 0), loss);
    }

    /// The same of a link between any interfaces.
    pub(crate) fn join(&mut self, a: Station, b: Station, loss: f64) {
        self.links.insert((a, b), loss);
        self.links.insert((b, a), loss);
    }

    pub(crate) fn cut(&mut self, a: usize, b: usize) {
        self.part((a, 0), (b, 0));
    }

    /// The same of a link between any interfaces.
    pub(crate) fn part(&mut self, a: Station, b: Station) {
        self.links.remove(&(a, b));
        self.links.remove(&(b, a));
    }

    /// Puts a new node, which knows nothing, in the place of one.
    pub(crate) fn restart(&mut self, node: usize) {
        self.nodes[node] = self.make(node, node, self.now.as_nanos());
        self.plan(node);
    }

    /// Puts a node in the place of one that takes itself for another.
    pub(crate) fn impersonate(&mut self, node: usize, victim: usize) {
        self.nodes[node] = self.make(node, victim, 1 + node as u64);
        self.plan(node);
    }

    /// Lets time pass until then.
    pub(crate) fn until(&mut self, end: Instant) {
        loop {
            let timer = self.wakings.first().copied();
            let frame = self.in_flight.first_key_value().map(|(&(at, _), _)| at);
            let next = timer.map(|(at, _)| at).into_iter().chain(frame).min();
            let Some(next) = next.filter(|next| *next <= end) else { break };
            self.now = self.now.max(next);
            if frame.is_some_and(|frame| frame <= next) {
                let (_, ((node, interface), bytes)) = self.in_flight.pop_first().unwrap();
                let below = Port::Below(interface as u32);
                self.give(node, if interface == ABOVE { Port::Above(0) } else { below }, &bytes);
            } else if let Some((_, node)) = timer {
                self.nodes[node].wake(self.now);
                self.drain(node);
            }
        }
        self.now = end;
    }

    /// Lets this many seconds pass.
    pub(crate) fn run(&mut self, seconds: u64) {
        self.until(self.now + Duration::from_secs(seconds));
    }

    /// Has a client behind a node send a frame.
    pub(crate) fn send(&mut self, node: usize, frame: &[u8]) {
        self.give(node, Port::Above(0), frame);
    }

    /// Has a host on the LAN send a frame.
    pub(crate) fn send_on_lan(&mut self, frame: &[u8]) {
        self.switch(None, frame);
    }

    /// Has the LAN carry a frame of a node, or of a host on it.
    fn switch(&mut self, from: Option<usize>, frame: &[u8]) {
        for to in self.lan.switch(self.now, from, frame) {
            self.in_flight.insert((self.now + lan::DELAY, self.ever), ((to, ABOVE), frame.into()));
            self.ever += 1;
        }
    }

    /// Has a node hear a frame that no node has sent.
    pub(crate) fn forge(&mut self, node: usize, frame: &[u8]) {
        self.give(node, Port::Below(0), frame);
    }

    /// The same by any interface.
    pub(crate) fn forge_by(&mut self, (node, interface): Station, frame: &[u8]) {
        self.give(node, Port::Below(interface as u32), frame);
    }

    /// Tells a node the MTU of its first interface.
    pub(crate) fn set_mtu(&mut self, node: usize, mtu: u32) {
        self.nodes[node].handle(self.now, Port::Below(0), Item::Mtu(mtu));
        self.drain(node);
    }

    fn give(&mut self, node: usize, port: Port, bytes: &[u8]) {
        let mut frame = Frame::new(Buffer::copy_from(bytes));
        let for_one = ethernet::parse(bytes).is_ok_and(|header| !ethernet::is_group(header.destination));
        if for_one && port != Port::Above(0) {
            frame.reception = self.rate.map(|rate| Reception { rate: Some(rate), signal: None });
        }
        self.nodes[node].handle(self.now, port, Item::Frame(frame));
        self.drain(node);
    }

    fn drain(&mut self, node: usize) {
        while let Some((port, item)) = self.nodes[node].poll(self.now) {
            match (port, item) {
                (Port::Above(0), Item::Frame(frame)) => {
                    self.switch(Some(node), &frame.bytes);
                    self.delivered.push((self.now, node, frame.bytes.to_vec()));
                }
                (Port::Above(0), Item::Mtu(_)) => {}
                (Port::Below(interface), Item::Frame(frame)) => {
                    self.transmit((node, interface as usize), &frame.bytes);
                    frame.bytes.recycle();
                }
                other => panic!("{other:?}"),
            }
        }
        self.plan(node);
        assert!(self.deadlines[node].is_none_or(|next| next > self.now), "a deadline that has passed");
    }

    /// Notes when a node is to wake.
    fn plan(&mut self, node: usize) {
        let deadline = self.nodes[node].deadline();
        let before = std::mem::replace(&mut self.deadlines[node], deadline);
        if before != deadline {
            before.map(|at| self.wakings.remove(&(at, node)));
            deadline.map(|at| self.wakings.insert((at, node)));
        }
    }

    /// A radio's frame to one station is sent again up to seven times.
    fn transmit(&mut self, from: Station, frame: &[u8]) {
        self.sent += 1;
        if self.captured.len() < self.max_captured {
            self.captured.push(frame.to_vec());
        }
        assert!(frame.len() <= 1514, "{} bytes", frame.len());
        let destination = ethernet::parse(frame).unwrap().destination;
        let tries = if ethernet::is_group(destination) || !self.kinds[from.1].0 { 1 } else { 8 };
        let frame: Rc<[u8]> = frame.into();
        for (&(_, to), &loss) in self.links.range((from, (0, 0))..=(from, (usize::MAX, 0))) {
            if !ethernet::is_group(destination) && destination != station(to) {
                continue;
            }
            let mut sent = self.now;
            if let Some(rate) = self.link_rate {
                let busy = self.busy.entry((from, to)).or_insert(sent);
                if busy.since(sent) > MAX_BACKLOG {
                    continue;
                }
                *busy = sent.max(*busy) + rate.time_for(frame.len() as u64);
                sent = *busy;
            }
            if (0..tries).any(|_| !self.random.chance(loss)) {
                self.in_flight.insert((sent + DELAY, self.ever), (to, frame.clone()));
                self.ever += 1;
            }
        }
    }

    /// The next hop of a node to another.
    pub(crate) fn next_hop(&self, node: usize, to: usize) -> Option<usize> {
        let found =
            self.nodes[node].originators().into_iter().find(|status| status.originator == radio(to))?;
        (0..self.nodes.len()).find(|&node| station((node, found.interface)) == found.next_hop)
    }

    /// The nodes on the way from one to another, without the first; it ends where there is no route, or a loop.
    pub(crate) fn route(&self, mut node: usize, to: usize) -> Vec<usize> {
        let (mut route, mut seen) = (Vec::new(), BTreeSet::from([node]));
        while node != to
            && let Some(next) = self.next_hop(node, to)
        {
            route.push(next);
            if !seen.insert(next) {
                break;
            }
            node = next;
        }
        route
    }

    /// Metric of the path from a node to another.
    pub(crate) fn metric(&self, node: usize, to: usize) -> Option<u32> {
        let found = self.nodes[node].originators().into_iter().find(|status| status.originator == radio(to));
        found.map(|status| status.metric)
    }

    /// Whether every node has a route to every other, and the clients of every other by the same table as that one.
    pub(crate) fn agrees(&self) -> bool {
        let nodes = 0..self.nodes.len();
        let pairs = nodes.clone().flat_map(|a| nodes.clone().map(move |b| (a, b))).filter(|(a, b)| a != b);
        pairs.into_iter().all(|(a, b)| {
            let announced = self.nodes[b].table(0);
            self.next_hop(a, b).is_some()
                && announced.1.is_some()
                && self.nodes[a].table_of(radio(b), 0) == announced
                && self.nodes[a]
                    .global_clients()
                    .iter()
                    .any(|(key, node)| (key.vlan, key.address, *node) == (0, host(b), radio(b)))
        })
    }

    /// Sends a frame from the host of one node to that of another. Returns whether it arrives within a second, once and
    /// unchanged.
    pub(crate) fn pings(&mut self, from: usize, to: usize) -> bool {
        let payload = format!("from {from} to {to} at {}", self.now);
        let sent = frame(host(to), host(from), payload.as_bytes());
        self.delivered.clear();
        self.send(from, &sent);
        self.run(1);
        let arrived: Vec<_> = self.delivered.iter().filter(|(_, _, bytes)| *bytes == sent).collect();
        arrived.len() == 1 && arrived[0].1 == to
    }

    /// A node's counter.
    pub(crate) fn counter(&self, node: usize, name: &str) -> u64 {
        let mut found = None;
        self.nodes[node].counters(&mut |counter, value| {
            if counter == name {
                found = Some(value);
            }
        });
        found.unwrap_or_else(|| panic!("no counter `{name}`"))
    }
}
