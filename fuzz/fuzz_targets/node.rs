//! Two whole nodes, the network between them, and somebody who writes to their ports, changes what they say, and says
//! it in other places: nobody panics or runs away, and once he is silent what is given to one comes out at the other.
//! Only where he has spoken with a peer's address may a peer be gone for longer.
#![no_main]

use std::collections::VecDeque;
use std::net::SocketAddr;

use arbitrary::Arbitrary;
use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Machine, Port};
use hopcast_fuzz::change::Change;
use hopcast_fuzz::timers::{MANY, Timers};
use hopcast_node::config::Config;
use hopcast_node::daemon;
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    seed: u8,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    /// A packet is given to a node, to be carried.
    Packet {
        node: u8,
        len: u16,
    },
    Deliver {
        to: u8,
        datagrams: u8,
    },
    Lose {
        to: u8,
        at: u8,
    },
    Overtake {
        to: u8,
        at: u8,
    },
    /// Datagrams under way arrive changed, with their sender's address.
    Forge {
        to: u8,
        at: u8,
        change: Change,
    },
    /// Datagrams under way arrive, and once more from elsewhere, changed.
    Elsewhere {
        to: u8,
        at: u8,
        from: u8,
        change: Change,
    },
    Raw {
        to: u8,
        from: u8,
        bytes: Vec<u8>,
    },
    Wait {
        micros: u32,
    },
    Restart(u8),
}

const CONFIGS: [&str; 2] = [
    "name: harbour
listen: 192.0.2.1:7400
peers: { hill: 192.0.2.2:7400 }
carry: { to: hill, packets: { tun: hop0, address: 10.77.0.1/30 }, tcp: [10.20.0.0/16] }",
    "name: hill
listen: 192.0.2.2:7400
peers: { harbour: anywhere }
carry: { to: harbour, packets: { tun: hop0, address: 10.77.0.2/30 }, tcp: { reach: [10.20.0.0/16] } }",
];
/// Datagrams under way to each node; more are lost.
const QUEUE: usize = 512;
/// The port of a node's TUN.
const TUN: Port = Port::Below(1);

fuzz_target!(|input: Input| {
    let mut net = Net::new(input.seed);
    for step in input.steps.iter().take(200) {
        net.act(step);
    }
    net.goes_on();
});

struct Net {
    now: Instant,
    configs: [Config; 2],
    nodes: Vec<Box<dyn Machine>>,
    /// Datagrams under way to each node, with their sources.
    under_way: [VecDeque<(SocketAddr, Buffer)>; 2],
    /// Packets that have come out of each node.
    came: [usize; 2],
    started: u32,
    /// Something has come with a peer's address that the peer did not send.
    impersonated: bool,
}

impl Timers for Net {
    fn now(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn machine(&mut self, which: usize) -> Option<&mut dyn Machine> {
        Some(&mut **self.nodes.get_mut(which)?)
    }

    fn woken(&mut self, which: usize) {
        self.drain(which);
    }
}

impl Net {
    fn new(seed: u8) -> Self {
        let configs = CONFIGS.map(|text| Config::parse(text, "node.yaml").expect("a configuration"));
        let mut net = Self {
            now: Instant::ZERO,
            configs,
            nodes: Vec::new(),
            under_way: Default::default(),
            came: [0; 2],
            started: seed.into(),
            impersonated: false,
        };
        for node in 0..2 {
            let fresh = net.fresh(node);
            net.nodes.push(fresh);
            net.drain(node);
        }
        net
    }

    fn fresh(&mut self, node: usize) -> Box<dyn Machine> {
        self.started += 1;
        Box::new(daemon::machine(&self.configs[node], self.started.into()))
    }

    fn act(&mut self, step: &Step) {
        match step {
            Step::Packet { node, len } => self.packet(node_of(*node), usize::from(*len)),
            Step::Deliver { to, datagrams } => (0..*datagrams).for_each(|_| self.deliver(node_of(*to), 0)),
            Step::Lose { to, at } => _ = self.remove(node_of(*to), *at),
            Step::Overtake { to, at } => self.deliver(node_of(*to), *at),
            Step::Forge { to, at, change } => {
                let to = node_of(*to);
                let Some((from, payload)) = self.remove(to, *at) else { return };
                self.impersonated = true;
                let mut bytes = payload.to_vec();
                change.apply(&mut bytes);
                self.arrive(to, from, Buffer::copy_from(&bytes));
            }
            Step::Elsewhere { to, at, from, change } => {
                let to = node_of(*to);
                let Some((peer, payload)) = self.remove(to, *at) else { return };
                let mut bytes = payload.to_vec();
                change.apply(&mut bytes);
                self.arrive(to, peer, payload);
                self.arrive(to, stranger(*from), Buffer::copy_from(&bytes));
            }
            Step::Raw { to, from, bytes } => {
                self.arrive(node_of(*to), stranger(*from), Buffer::copy_from(bytes))
            }
            Step::Wait { micros } => self.wait(Duration::from_micros(u64::from(*micros) % 3_000_000)),
            Step::Restart(node) => {
                let node = node_of(*node);
                self.nodes[node] = self.fresh(node);
                self.drain(node);
            }
        }
    }

    /// An IPv4 header is all that a tunnel looks at.
    fn packet(&mut self, node: usize, len: usize) {
        let mut packet = vec![7; 20 + len % 1_600];
        let len = (packet.len() as u16).to_be_bytes();
        packet[..20].copy_from_slice(&[
            0x45, 0, len[0], len[1], 0, 0, 0, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2,
        ]);
        let words = packet[..20].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]));
        let sum = words.sum::<u32>();
        let sum = !(((sum & 0xFFFF) + (sum >> 16)) as u16);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        self.nodes[node].handle(self.now, TUN, Item::Packet(Buffer::copy_from(&packet)));
        self.drain(node);
    }

    fn remove(&mut self, to: usize, at: u8) -> Option<(SocketAddr, Buffer)> {
        let line = &mut self.under_way[to];
        line.remove(usize::from(at) % line.len().max(1))
    }

    fn deliver(&mut self, to: usize, at: u8) {
        if let Some((from, payload)) = self.remove(to, at) {
            self.arrive(to, from, payload);
        }
    }

    fn arrive(&mut self, to: usize, remote: SocketAddr, payload: Buffer) {
        let datagram = Datagram::new(self.configs[to].listen, remote, payload);
        self.nodes[to].handle(self.now, Port::Below(0), Item::Datagram(datagram));
        self.drain(to);
    }

    fn drain(&mut self, node: usize) {
        let mut items = 0;
        while let Some((port, item)) = self.nodes[node].poll(self.now) {
            items += 1;
            assert!(items < MANY, "there is no end to what it says");
            match (port, item) {
                (Port::Below(0), Item::Datagram(datagram)) => {
                    let to = self.configs.iter().position(|config| config.listen == datagram.remote);
                    let Some(to) = to.filter(|to| *to != node) else { continue };
                    if self.under_way[to].len() < QUEUE {
                        self.under_way[to].push_back((self.configs[node].listen, datagram.payload));
                    }
                }
                (TUN, Item::Packet(_)) => self.came[node] += 1,
                // Of connections that somebody has made up.
                (Port::Below(_), Item::Stream(..)) => {}
                other => panic!("node {node}: {other:?}"),
            }
        }
    }

    /// The network is a good one from now on.
    fn goes_on(&mut self) {
        if self.impersonated {
            return;
        }
        self.came = [0; 2];
        for round in 0..4_000 {
            if self.came.iter().all(|&packets| packets > 0) {
                return;
            }
            if round % 40 == 0 {
                (0..2).for_each(|node| self.packet(node, 100));
            }
            for to in 0..2 {
                (0..self.under_way[to].len()).for_each(|_| self.deliver(to, 0));
            }
            self.wait(Duration::from_millis(5));
        }
        panic!("nothing is carried any more: {:?}", self.came);
    }
}

fn node_of(number: u8) -> usize {
    usize::from(number) % 2
}

/// An address that is nobody's.
fn stranger(number: u8) -> SocketAddr {
    SocketAddr::from(([192, 0, 2, 128 + number % 4], 7400))
}
