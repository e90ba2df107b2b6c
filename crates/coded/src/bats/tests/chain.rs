//! Nodes over real link models, in virtual time: chains, and other graphs.

use std::collections::VecDeque;
use std::net::SocketAddr;

use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Machine, Port, Seed, StreamId, StreamItem};
use hopcast_link::{Change, Config as Cable, Event, Link, PointToPoint};

use crate::bats::{Config, Node};

/// Ethernet, IPv4 and UDP.
const HEADERS: usize = 42;

/// Number of datagrams sent that are remembered.
const REMEMBERED: usize = 16;

/// The role of a node, with its neighbours by number.
#[derive(Clone, Debug)]
pub(super) enum Place {
    Edge(Vec<usize>),
    Relay(Vec<usize>, Vec<usize>),
}

/// Changes a datagram of a node.
pub(super) type Tamper = Box<dyn FnMut(usize, &mut [u8])>;

pub(super) struct Chain {
    pub(super) now: Instant,
    pub(super) nodes: Vec<Node>,
    pub(super) links: Vec<PointToPoint>,
    places: Vec<Place>,
    /// The nodes at the ends of each link.
    ends: Vec<(usize, usize)>,
    config: Config,
    seed: Seed,
    starts: u64,
    /// By how much each node's clock is ahead.
    ahead: Vec<Duration>,
    /// Units that came out at the two edges.
    pub(super) arrived: Vec<(Instant, usize, Buffer)>,
    /// The same of streams.
    pub(super) streamed: Vec<(usize, StreamId, StreamItem)>,
    /// Number of units that the edges have granted and not been given yet.
    pub(super) credit: Vec<u64>,
    /// Datagrams that were sent, with who sent them, until somebody takes them.
    pub(super) sent: VecDeque<(usize, Buffer)>,
    /// A change to a datagram in the memory of the node that sends it, behind all checksums of lower layers.
    pub(super) tamper: Option<Tamper>,
    node_deadlines: Vec<Option<Instant>>,
    link_deadlines: Vec<Option<Instant>>,
}

pub(super) fn address(node: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, node as u8], 7000))
}

impl Chain {
    pub(super) fn new(config: &Config, cables: &[Cable], seed: u64) -> Self {
        let last = cables.len();
        let place = |i| match i {
            0 => Place::Edge(vec![1]),
            i if i == last => Place::Edge(vec![i - 1]),
            i => Place::Relay(vec![i - 1], vec![i + 1]),
        };
        let places: Vec<Place> = (0..=last).map(place).collect();
        let cables: Vec<_> = cables.iter().enumerate().map(|(i, cable)| (i, i + 1, cable.clone())).collect();
        Self::graph(config, &places, &cables, seed)
    }

    /// Nodes, and links between pairs of them.
    pub(super) fn graph(
        config: &Config,
        places: &[Place],
        cables: &[(usize, usize, Cable)],
        seed: u64,
    ) -> Self {
        let seed = Seed::new(seed, 0);
        let link = |(i, (_, _, cable)): (usize, &(usize, usize, Cable))| {
            PointToPoint::new(
                cable.clone(),
                [0, 1].map(|direction| seed.stream(&["link"], 2 * i as u64 + direction)),
            )
        };
        let mut chain = Self {
            now: Instant::ZERO,
            nodes: Vec::new(),
            links: cables.iter().enumerate().map(link).collect(),
            link_deadlines: vec![None; cables.len()],
            places: places.to_vec(),
            ends: cables.iter().map(|&(from, to, _)| (from, to)).collect(),
            config: config.clone(),
            seed,
            starts: 0,
            ahead: vec![Duration::ZERO; places.len()],
            arrived: Vec::new(),
            streamed: Vec::new(),
            credit: vec![0; places.len()],
            sent: VecDeque::new(),
            tamper: None,
            node_deadlines: vec![None; places.len()],
        };
        for i in 0..places.len() {
            let node = chain.fresh(i);
            chain.nodes.push(node);
        }
        chain
    }

    fn fresh(&mut self, i: usize) -> Node {
        self.starts += 1;
        let random = self.seed.stream(&["node"], self.starts);
        let ends = (address(100 + i), address(100 + self.places.len() - 1 - i));
        let config = self.config.clone();
        let addresses = |nodes: &[usize]| nodes.iter().map(|&node| address(node)).collect::<Vec<_>>();
        match &self.places[i] {
            Place::Edge(neighbours) => Node::edge(config, address(i), ends, &addresses(neighbours), random),
            Place::Relay(left, right) => {
                Node::relay(config, address(i), &addresses(left), &addresses(right), random)
            }
        }
    }

    /// Changes a byte of the symbol in the next full datagram of a node.
    pub(super) fn damage(&mut self, node: usize) {
        let mut is_done = false;
        self.tamper = Some(Box::new(move |from, datagram| {
            if from == node && datagram.len() > 1400 && !core::mem::replace(&mut is_done, true) {
                let at = datagram.len() - 700;
                datagram[at] ^= 0x10;
            }
        }));
    }

    /// Sets each node's clock ahead by its duration, before anything happens.
    pub(super) fn set_clocks(&mut self, ahead: &[Duration]) {
        self.ahead.copy_from_slice(ahead);
    }

    /// The time by a node's clock.
    fn clock(&self, node: usize) -> Instant {
        self.now + self.ahead[node]
    }

    /// Replaces a node by a fresh one.
    pub(super) fn restart(&mut self, i: usize) {
        self.nodes[i] = self.fresh(i);
        self.node_deadlines[i] = None;
    }

    pub(super) fn last(&self) -> usize {
        self.nodes.len() - 1
    }

    /// An application gives a unit to an edge.
    pub(super) fn give(&mut self, edge: usize, unit: &[u8]) {
        let (local, remote) = (address(100), address(101));
        let datagram = Datagram::new(local, remote, Buffer::copy_from(unit));
        let now = self.clock(edge);
        self.nodes[edge].handle(now, Port::Above(0), Item::Datagram(datagram));
        self.drain(edge);
    }

    /// An application gives an item of a stream to an edge.
    pub(super) fn give_stream(&mut self, edge: usize, id: StreamId, item: StreamItem) {
        let now = self.clock(edge);
        self.nodes[edge].handle(now, Port::Above(0), Item::Stream(id, item));
        self.drain(edge);
    }

    pub(super) fn inject(&mut self, node: usize, remote: SocketAddr, payload: Buffer) {
        let datagram = Datagram::new(address(node), remote, payload);
        let now = self.clock(node);
        self.nodes[node].handle(now, Port::Below(0), Item::Datagram(datagram));
        self.drain(node);
    }

    pub(super) fn change(&mut self, link: usize, from: Option<usize>, change: &Change) {
        self.links[link].change(self.now, from, change);
        self.drain_link(link);
    }

    fn drain(&mut self, i: usize) {
        let now = self.clock(i);
        while let Some((port, item)) = self.nodes[i].poll(now) {
            if let Item::Stream(id, item) = item {
                self.streamed.push((i, id, item));
                continue;
            }
            if let Item::Credit(units) = item {
                self.credit[i] += units;
                continue;
            }
            let Item::Datagram(Datagram { remote, mut payload, .. }) = item else { panic!("a datagram") };
            if port == Port::Above(0) {
                self.arrived.push((self.now, i, payload));
                continue;
            }
            let to = (0..self.nodes.len()).find(|&to| address(to) == remote).expect("a node");
            assert!(payload.len() <= 1472);
            self.sent.push_back((i, payload.clone()));
            if self.sent.len() > REMEMBERED {
                self.sent.pop_front();
            }
            if let Some(tamper) = &mut self.tamper {
                tamper(i, &mut payload);
            }
            let sum = checksum(&payload);
            payload.prepend(HEADERS)[..8].copy_from_slice(&sum);
            let joins = |&ends: &(usize, usize)| ends == (i, to) || ends == (to, i);
            let link = self.ends.iter().position(joins).expect("a link");
            let from = usize::from(self.ends[link].0 != i);
            self.links[link].offer(self.now, from, payload);
            self.drain_link(link);
        }
        let due = |at: Instant| Instant::ZERO + at.since(Instant::ZERO + self.ahead[i]);
        self.node_deadlines[i] = self.nodes[i].deadline().map(due);
        assert!(
            self.node_deadlines[i].is_none_or(|at| at > self.now),
            "node {i} at {:?}: {}",
            self.now,
            self.nodes[i].state()
        );
    }

    fn drain_link(&mut self, link: usize) {
        loop {
            match self.links[link].poll(self.now) {
                Some(Event::Delivered { from, mut frame, .. }) => {
                    let (one, other) = self.ends[link];
                    let (sender, receiver) = if from == 0 { (one, other) } else { (other, one) };
                    let sum = frame[..8].to_vec();
                    frame.advance(HEADERS);
                    // As the checksum of UDP would.
                    if sum == checksum(&frame) {
                        self.inject(receiver, address(sender), frame);
                    }
                }
                Some(_) => {}
                None => break,
            }
        }
        self.link_deadlines[link] = self.links[link].deadline();
    }

    pub(super) fn next(&self) -> Option<Instant> {
        self.node_deadlines.iter().chain(&self.link_deadlines).flatten().min().copied()
    }

    /// Runs until `end`.
    pub(super) fn run(&mut self, end: Instant) {
        while let Some(at) = self.next().filter(|&at| at <= end) {
            self.now = self.now.max(at);
            for link in 0..self.links.len() {
                if self.link_deadlines[link].is_some_and(|at| at <= self.now) {
                    self.links[link].wake(self.now);
                    self.drain_link(link);
                }
            }
            for node in 0..self.nodes.len() {
                if self.node_deadlines[node].is_some_and(|at| at <= self.now) {
                    let now = self.clock(node);
                    self.nodes[node].wake(now);
                    self.drain(node);
                }
            }
        }
        self.now = end;
    }

    pub(super) fn run_for(&mut self, span: Duration) {
        self.run(self.now + span);
    }

    pub(super) fn counter(&self, node: usize, name: &str) -> u64 {
        let mut found = 0;
        self.nodes[node].counters(&mut |counter, figure| {
            if counter == name {
                found = figure;
            }
        });
        found
    }
}

fn checksum(bytes: &[u8]) -> [u8; 8] {
    let mut sum = 0xCBF2_9CE4_8422_2325_u64;
    for chunk in bytes.chunks(8) {
        let mut word = [0; 8];
        word[..chunk.len()].copy_from_slice(chunk);
        sum = (sum ^ u64::from_le_bytes(word)).wrapping_mul(0x0100_0000_01B3).rotate_left(23);
    }
    sum.to_le_bytes()
}
