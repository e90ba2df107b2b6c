//! Two edges and a relay of the BATS transport, a path that does what the input says, and somebody on it who forges:
//! nobody panics, runs away or sends what does not fit; and without forgeries and restarts what comes out are the units
//! that went in, in order, and where delivery is reliable in the end all of them.
#![no_main]

use std::collections::VecDeque;
use std::net::SocketAddr;

use arbitrary::Arbitrary;
use hopcast_coded::bats::{BatchSize, Config, Delivery, Feedback, Node};
use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Machine, Port, Seed};
use hopcast_fuzz::change::Change;
use hopcast_fuzz::timers::{MANY, Timers};
use libfuzzer_sys::fuzz_target;

#[derive(Arbitrary, Debug)]
struct Input {
    strict: bool,
    unreliable: bool,
    batch: u8,
    batches: u8,
    datagram: u8,
    seed: u8,
    steps: Vec<Step>,
}

#[derive(Arbitrary, Debug)]
enum Step {
    Unit {
        far: bool,
        len: u16,
    },
    Deliver {
        line: u8,
        packets: u8,
    },
    Lose {
        line: u8,
        at: u8,
    },
    Overtake {
        line: u8,
        at: u8,
    },
    Duplicate {
        line: u8,
        at: u8,
    },
    /// Datagrams under way arrive, and then once more, changed.
    Forge {
        line: u8,
        at: u8,
        change: Change,
    },
    Raw {
        line: u8,
        is_ours: bool,
        bytes: Vec<u8>,
    },
    Stranger {
        to: u8,
        bytes: Vec<u8>,
    },
    Wait {
        micros: u32,
    },
    Restart(u8),
    /// Datagrams under way arrive, and come back to their senders.
    Reflect {
        line: u8,
        at: u8,
    },
}

/// Edge, relay, edge.
const NODES: usize = 3;
/// Pairs of nodes between which packets are under way, from one to the other.
const LINES: [(usize, usize); 4] = [(0, 1), (1, 0), (1, 2), (2, 1)];
/// Packets under way on each; more are lost.
const QUEUE: usize = 512;
/// The first byte of the transport's datagrams.
const MAGIC: u8 = 0xB3;

fuzz_target!(|input: Input| {
    let mut path = Path::new(&input);
    for step in input.steps.iter().take(300) {
        path.act(step);
    }
    path.come_to_the_end();
});

struct Path {
    now: Instant,
    config: Config,
    seed: Seed,
    started: u32,
    nodes: Vec<Node>,
    lines: [VecDeque<Buffer>; LINES.len()],
    /// Units given to each end, and how many of those are known to have come out at the other.
    given: [Vec<Vec<u8>>; 2],
    taken: [usize; 2],
    disturbed: bool,
}

impl Timers for Path {
    fn now(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn machine(&mut self, which: usize) -> Option<&mut dyn Machine> {
        self.nodes.get_mut(which).map(|machine| machine as &mut dyn Machine)
    }

    fn woken(&mut self, which: usize) {
        self.drain(which);
    }
}

impl Path {
    fn new(input: &Input) -> Self {
        let batch = BatchSize::ALL[usize::from(input.batch) % BatchSize::ALL.len()];
        let batches = u16::from(input.batches % 8) + 1;
        let config = Config {
            batch,
            block: batches * batch.symbols() as u16,
            datagram: 200 + u16::from(input.datagram) * 4,
            window: 4 * batches + 16,
            delivery: if input.unreliable { Delivery::DEADLINE } else { Delivery::Reliable },
            feedback: if input.strict { Feedback::None } else { Feedback::Ranks },
            ..Config::default()
        };
        let mut path = Self {
            now: Instant::ZERO,
            config,
            seed: Seed::new(input.seed.into(), 0),
            started: 0,
            nodes: Vec::new(),
            lines: Default::default(),
            given: Default::default(),
            taken: [0; 2],
            disturbed: false,
        };
        for node in 0..NODES {
            let node = path.fresh(node);
            path.nodes.push(node);
        }
        (0..NODES).for_each(|node| path.drain(node));
        path
    }

    fn fresh(&mut self, node: usize) -> Node {
        self.started += 1;
        let (config, random) = (self.config.clone(), self.seed.stream(&["node"], self.started.into()));
        let ends = (address(100 + node), address(102 - node));
        match node {
            1 => Node::relay(config, address(1), &[address(0)], &[address(2)], random),
            _ => Node::edge(config, address(node), ends, &[address(1)], random),
        }
    }

    fn act(&mut self, step: &Step) {
        match step {
            Step::Unit { far, len } => self.unit((*far).into(), usize::from(*len) % 4_000),
            Step::Deliver { line, packets } => (0..*packets).for_each(|_| self.deliver(line_of(*line), 0)),
            Step::Lose { line, at } => _ = self.remove(line_of(*line), (*at).into()),
            Step::Overtake { line, at } => self.deliver(line_of(*line), (*at).into()),
            Step::Duplicate { line, at } => {
                let line = &mut self.lines[line_of(*line)];
                if let Some(packet) = line.get(usize::from(*at) % line.len().max(1)).cloned()
                    && line.len() < QUEUE
                {
                    line.push_back(packet);
                }
            }
            Step::Forge { line, at, change } => {
                let line = line_of(*line);
                let Some(packet) = self.remove(line, (*at).into()) else { return };
                self.disturbed = true;
                let mut bytes = packet.to_vec();
                change.apply(&mut bytes);
                self.arrive(line, packet);
                self.arrive(line, Buffer::copy_from(&bytes));
            }
            Step::Raw { line, is_ours, bytes } => {
                self.disturbed = true;
                let bytes = [&[MAGIC][..usize::from(*is_ours)], bytes].concat();
                self.arrive(line_of(*line), Buffer::copy_from(&bytes));
            }
            Step::Stranger { to, bytes } => {
                let to = usize::from(*to) % NODES;
                let (local, remote, payload) = (address(to), address(50), Buffer::copy_from(bytes));
                self.give(to, Port::Below(0), Datagram::new(local, remote, payload));
            }
            Step::Wait { micros } => self.wait(Duration::from_micros(u64::from(*micros) % 2_000_000)),
            Step::Restart(node) => {
                let node = usize::from(*node) % NODES;
                self.disturbed = true;
                self.nodes[node] = self.fresh(node);
                self.drain(node);
            }
            Step::Reflect { line, at } => {
                let line = line_of(*line);
                let Some(packet) = self.remove(line, (*at).into()) else { return };
                self.arrive(line, packet.clone());
                // Each line stands beside the one that goes the other way.
                self.arrive(line ^ 1, packet);
            }
        }
    }

    fn unit(&mut self, end: usize, len: usize) {
        let number = self.given[end].len();
        let unit: Vec<u8> = (0..len).map(|at| (number * 31 + at) as u8).collect();
        let (local, remote) = (address(100 + 2 * end), address(102 - 2 * end));
        let refused = self.counter(2 * end, "units_refused");
        self.give(2 * end, Port::Above(0), Datagram::new(local, remote, Buffer::copy_from(&unit)));
        if self.counter(2 * end, "units_refused") == refused {
            self.given[end].push(unit);
        }
    }

    fn counter(&self, node: usize, name: &str) -> u64 {
        let mut found = None;
        self.nodes[node]
            .counters(&mut |counter, figure| found = found.or((counter == name).then_some(figure)));
        found.expect("there is such a counter")
    }

    fn remove(&mut self, line: usize, at: usize) -> Option<Buffer> {
        let line = &mut self.lines[line];
        line.remove(at % line.len().max(1))
    }

    /// The packet at that place of the line arrives.
    fn deliver(&mut self, line: usize, at: usize) {
        if let Some(packet) = self.remove(line, at) {
            self.arrive(line, packet);
        }
    }

    fn arrive(&mut self, line: usize, payload: Buffer) {
        let (from, to) = LINES[line];
        self.give(to, Port::Below(0), Datagram::new(address(to), address(from), payload));
    }

    fn give(&mut self, node: usize, port: Port, datagram: Datagram) {
        self.nodes[node].handle(self.now, port, Item::Datagram(datagram));
        self.drain(node);
    }

    fn drain(&mut self, node: usize) {
        let mut items = 0;
        while let Some((port, item)) = self.nodes[node].poll(self.now) {
            let Item::Datagram(datagram) = item else { panic!("{item:?}") };
            match port {
                Port::Below(0) => self.sent(node, datagram),
                Port::Above(0) => self.received(node, &datagram),
                other => panic!("{other:?}"),
            }
            items += 1;
            assert!(items < MANY, "there is no end to what it says");
        }
        if let Some(at) = self.nodes[node].deadline() {
            assert!(at > self.now, "node {node}: a deadline of {at} at {}", self.now);
        }
    }

    fn sent(&mut self, node: usize, Datagram { local, remote, payload, .. }: Datagram) {
        assert_eq!(local, address(node));
        let (len, max) = (payload.len(), usize::from(self.config.datagram));
        assert!(
            (1..=max).contains(&len),
            "node {node} sends {len} bytes where {max} fit: {:02x?}",
            &payload[..]
        );
        let line = LINES.iter().position(|&(from, to)| from == node && address(to) == remote);
        let line = &mut self.lines[line.expect("it is to a neighbour")];
        if line.len() < QUEUE {
            line.push_back(payload);
        }
    }

    fn received(&mut self, node: usize, datagram: &Datagram) {
        assert!(node != 1, "a relay hands nothing up");
        if self.disturbed {
            return;
        }
        let from = 1 - node / 2;
        let later =
            self.given[from][self.taken[from]..].iter().position(|unit| *unit == datagram.payload[..]);
        let skipped = later.expect("it is a unit that was given, and later than the one before");
        assert!(skipped == 0 || !self.is_reliable(), "{skipped} units are missing");
        self.taken[from] += skipped + 1;
    }

    fn is_reliable(&self) -> bool {
        self.config.delivery == Delivery::Reliable
    }

    /// The path is a good one from now on.
    fn come_to_the_end(&mut self) {
        for _ in 0..2_000 {
            let is_over = (0..2).all(|end| self.taken[end] == self.given[end].len());
            if self.disturbed || !self.is_reliable() || is_over {
                return;
            }
            for line in 0..LINES.len() {
                (0..self.lines[line].len()).for_each(|_| self.deliver(line, 0));
            }
            self.wait(Duration::from_millis(5));
        }
        panic!("{:?} of {:?} units have come out", self.taken, self.given.each_ref().map(Vec::len));
    }
}

fn line_of(number: u8) -> usize {
    usize::from(number) % LINES.len()
}

fn address(node: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, node as u8], 7000))
}
