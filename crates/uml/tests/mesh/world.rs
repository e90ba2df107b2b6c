//! Our nodes in virtual time, joined by links without loss.

use std::collections::BTreeMap;

use hopcast_core::{Buffer, Duration, Frame, Instant, Item, Machine, Port, Seed};
use hopcast_mesh::{BatmanIvConfig, Mesh, MeshConfig, RoutingConfig};
use hopcast_wire::ethernet::Mac;

use crate::topology::{INTERVAL, Topology};

/// Delay of a link.
const DELAY: Duration = Duration::from_micros(50);
/// Nodes start within this time, as those do that are made one after another.
const STARTS: Duration = Duration::from_secs(12);

pub(crate) struct World {
    nodes: Vec<(Instant, Mesh)>,
    /// The other end of a node's interface.
    ends: BTreeMap<(usize, usize), (usize, usize)>,
    pub(crate) now: Instant,
    in_flight: BTreeMap<(Instant, u64), (usize, usize, Vec<u8>)>,
    ever: u64,
    /// Frames that were sent, and their bytes.
    pub(crate) sent: [u64; 2],
}

impl World {
    pub(crate) fn new(topology: &Topology, seed: u64) -> Self {
        let seed = Seed::new(seed, 0);
        let mut starts = seed.stream(&["starts"], 0);
        let mut start = || Instant::from_nanos(starts.below(STARTS.as_nanos()));
        let node = |number: usize| {
            let mut config = MeshConfig::new(topology.interfaces(number), topology.host(number));
            (config.arp_table, config.bridge_loop_avoidance) = (false, false);
            let interval = Duration::from_millis(INTERVAL);
            config.routing =
                RoutingConfig::BatmanIv(BatmanIvConfig { interval, ..BatmanIvConfig::default() });
            (start(), Mesh::new(config, seed.stream(&["node", &number.to_string()], 0)))
        };
        let nodes = (0..topology.nodes).map(node).collect();
        let end = |node, peer| (node, topology.interface(node, peer).unwrap());
        let links = topology.links.iter();
        let ends = links.flat_map(|&(a, b)| [(end(a, b), end(b, a)), (end(b, a), end(a, b))]).collect();
        Self { nodes, ends, now: Instant::ZERO, in_flight: BTreeMap::new(), ever: 0, sent: [0, 0] }
    }

    /// Has a link lose all frames from now on.
    pub(crate) fn cut(&mut self, end: (usize, usize)) {
        if let Some(other) = self.ends.remove(&end) {
            self.ends.remove(&other);
        }
    }

    /// A node's next hop to an originator, if there is a route.
    pub(crate) fn next_hop(&self, node: usize, to: Mac) -> Option<Mac> {
        let originators = self.nodes[node].1.originators();
        originators.iter().find(|status| status.originator == to).map(|status| status.next_hop)
    }

    /// Lets time pass.
    pub(crate) fn run(&mut self, time: Duration) {
        let end = self.now + time;
        loop {
            let due = |(number, (start, node)): (usize, &(Instant, Mesh))| {
                let deadline = node.deadline()?;
                Some((*start + deadline.since(Instant::ZERO), number))
            };
            let timer = self.nodes.iter().enumerate().filter_map(due).min();
            let frame = self.in_flight.first_key_value().map(|(&(at, _), _)| at);
            let Some(next) =
                timer.map(|(at, _)| at).into_iter().chain(frame).min().filter(|next| *next <= end)
            else {
                break;
            };
            self.now = self.now.max(next);
            if frame == Some(next) {
                let (_, (node, interface, bytes)) = self.in_flight.pop_first().unwrap();
                if let Some(now) = self.time_of(node) {
                    let frame = Item::Frame(Frame::new(Buffer::copy_from(&bytes)));
                    self.nodes[node].1.handle(now, Port::Below(interface as u32), frame);
                    self.drain(node, now);
                }
            } else if let Some((_, node)) = timer
                && let Some(now) = self.time_of(node)
            {
                self.nodes[node].1.wake(now);
                self.drain(node, now);
            }
        }
        self.now = end;
    }

    /// The time since a node's start, if it has started.
    fn time_of(&self, node: usize) -> Option<Instant> {
        let start = self.nodes[node].0;
        (start <= self.now).then(|| Instant::ZERO + self.now.since(start))
    }

    fn drain(&mut self, node: usize, now: Instant) {
        while let Some((port, item)) = self.nodes[node].1.poll(now) {
            let (Port::Below(interface), Item::Frame(frame)) = (port, item) else { continue };
            self.sent[0] += 1;
            self.sent[1] += frame.bytes.len() as u64;
            if let Some(&(to, by)) = self.ends.get(&(node, interface as usize)) {
                self.in_flight.insert((self.now + DELAY, self.ever), (to, by, frame.bytes.to_vec()));
                self.ever += 1;
            }
        }
    }
}
