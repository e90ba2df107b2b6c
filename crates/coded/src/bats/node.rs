//! The machine.

use std::net::SocketAddr;

use hopcast_code::rlnc::Coefficients;
use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Machine, Port, Stream, earliest};

use super::config::{Config, Delivery};
use super::counters::Counters;
use super::direction::{Arrived, Direction, Role, Taken};
use super::edge::Edge;
use super::receiver::{self, Receiver};
use super::sender::{self, Sender};
use super::wire::{self, Data, Info, Report};

/// What both ways of a session are called here: where things come from, and where they go.
pub(super) type Way = usize;

/// A node on the path of a session whose hops tell each other ranks.
pub(super) struct Node {
    pub(super) config: Config,
    pub(super) local: SocketAddr,
    pub(super) edge: Option<Edge>,
    pub(super) ways: [Option<Direction>; 2],
    pub(super) neighbours: Vec<Neighbour>,
    /// Whose turn it is to send.
    turn: usize,
    /// Where each batch takes one path: that of the last one.
    pub(super) owner: usize,
    pub(super) coefficients: Coefficients,
    pub(super) list: Vec<u8>,
    pub(super) counters: Counters,
}

/// A node next to this one.
pub(super) struct Neighbour {
    pub(super) address: SocketAddr,
    /// The way that goes to it.
    pub(super) out: Way,
    /// The way that comes from it.
    pub(super) into: Way,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
}

/// The way out of an edge; at a relay, from the left to the right.
const OUT: Way = 0;
const INTO: Way = 1;

/// How long the news that data was delivered may wait, while nobody needs it.
const FLOOR_WAIT: Duration = Duration::from_millis(50);

impl Node {
    /// See [`Node::edge`](super::Node::edge).
    pub(super) fn edge(
        config: Config,
        session: u32,
        local: SocketAddr,
        ends: (SocketAddr, SocketAddr),
        neighbours: &[SocketAddr],
        random: Stream,
    ) -> Self {
        let source = Direction::source(&config, session);
        let edge = Edge::new(ends, &config);
        let mut node = Self::new(config, local, Some(edge), &[], neighbours, random);
        node.ways[OUT] = Some(source);
        node.start_senders(OUT);
        node
    }

    /// See [`Node::relay`](super::Node::relay).
    pub(super) fn relay(
        config: Config,
        local: SocketAddr,
        left: &[SocketAddr],
        right: &[SocketAddr],
        random: Stream,
    ) -> Self {
        Self::new(config, local, None, left, right, random)
    }

    fn new(
        config: Config,
        local: SocketAddr,
        edge: Option<Edge>,
        left: &[SocketAddr],
        right: &[SocketAddr],
        mut random: Stream,
    ) -> Self {
        let sides = left.iter().map(|left| (left, INTO)).chain(right.iter().map(|right| (right, OUT)));
        let neighbours = sides.map(|(&address, out)| Neighbour {
            address,
            out,
            into: 1 - out,
            receiver: Receiver::new(random.bits() as u16),
            sender: Sender::new(random.fork()),
        });
        Self {
            neighbours: neighbours.collect(),
            coefficients: Coefficients::new(random.bits()),
            config,
            local,
            edge,
            ways: [None, None],
            turn: 0,
            owner: 0,
            list: Vec::new(),
            counters: Counters::default(),
        }
    }

    fn start_senders(&mut self, way: Way) {
        let Some(direction) = &self.ways[way] else { return };
        let rounds = match self.config.delivery {
            Delivery::Deadline { rounds, .. } if direction.deadline.is_some() => rounds,
            Delivery::Deadline { .. } | Delivery::Reliable => Delivery::UNTIL_DEADLINE,
        };
        let rounds = (rounds < Delivery::UNTIL_DEADLINE).then_some(rounds);
        for neighbour in self.neighbours.iter_mut().filter(|neighbour| neighbour.out == way) {
            if !self.config.congestion_control {
                neighbour.sender.rate.unbind();
            }
            neighbour.sender.start(&direction.store, rounds, self.config.idle_repair, self.config.split);
        }
    }

    fn on_datagram(&mut self, now: Instant, remote: SocketAddr, payload: Buffer) {
        let Some(from) = self.neighbours.iter().position(|neighbour| neighbour.address == remote) else {
            self.counters.foreign += 1;
            return;
        };
        let into = self.neighbours[from].into;
        let known = self.ways[into].as_ref().map(|way| (way.session, usize::from(way.store.shape().symbol)));
        let symbol = |session| known.filter(|&(known, _)| known == session).map(|(_, symbol)| symbol);
        let Ok(frames) = wire::parse(&payload, symbol) else {
            self.counters.malformed += 1;
            return;
        };
        if let Some(report) = &frames.report {
            self.on_report(now, from, report);
        }
        if let Some(info) = &frames.info {
            self.on_info(now, from, info);
        }
        if let Some(data) = &frames.data
            && let Some(arrived) = self.admit(now, from, data, payload.len())
        {
            let header = payload.len() - data.payload.len();
            let mut payload = payload;
            payload.advance(header);
            self.take(now, into, &arrived, payload);
        }
    }

    fn on_report(&mut self, now: Instant, from: usize, report: &Report<'_>) {
        let Neighbour { out, sender, .. } = &mut self.neighbours[from];
        let out = *out;
        let Some(way) = self.ways[out].as_ref().filter(|way| way.session == report.session) else {
            self.counters.stale += 1;
            return;
        };
        let made_all = matches!(way.role, Role::Source(_));
        match sender.on_report(now, report, &way.store, made_all) {
            Ok(()) => self.follow_floor(now, out),
            Err(sender::Refused::Stale) => self.counters.stale += 1,
            Err(sender::Refused::Absurd) => self.counters.malformed += 1,
        }
    }

    /// Gives up what all children have been served.
    fn follow_floor(&mut self, now: Instant, way: Way) {
        let children = self.neighbours.iter().filter(|neighbour| neighbour.out == way);
        if let Some(floor) = children.map(|child| child.sender.floor()).min() {
            self.advance(now, way, floor);
        }
    }

    /// Nothing before `floor` is of use any more.
    fn advance(&mut self, now: Instant, way: Way, floor: u64) {
        let Some(direction) = &mut self.ways[way] else { return };
        let before = direction.store.first();
        if floor <= direction.store.floor() {
            return;
        }
        direction.count_ranks(floor, &mut self.counters);
        direction.store.advance(now, floor);
        let store = &direction.store;
        let short = store.limit() < store.top() + store.window() * store.shape().symbols() / 2;
        for neighbour in &mut self.neighbours {
            if neighbour.out == way {
                neighbour.sender.forget(before, store.first(), &mut self.counters);
            } else {
                let wait = if short { neighbour.receiver.interval() } else { FLOOR_WAIT };
                neighbour.receiver.report_at(now + wait);
            }
        }
    }

    fn on_info(&mut self, now: Instant, from: usize, info: &Info) {
        let into = self.neighbours[from].into;
        let newer = |way: &Direction| info.session.wrapping_sub(way.session) as i32 > 0;
        match &self.ways[into] {
            Some(way) if way.session == info.session => {}
            Some(way) if !newer(way) => {
                self.counters.stale += 1;
                return;
            }
            known => {
                // An edge that is first heard of has no streams to forget.
                let again = known.is_some();
                let Some(way) = Direction::arriving(&self.config, info, self.edge.is_some()) else {
                    self.counters.malformed += 1;
                    return;
                };
                self.ways[into] = Some(way);
                self.start_senders(into);
                if let Some(edge) = self.edge.as_mut().filter(|_| again) {
                    edge.framing.restart();
                }
            }
        }
        self.neighbours[from].receiver.on_info(now, info);
    }

    /// Whether to take a packet, as far as its hop is concerned.
    fn admit(&mut self, now: Instant, from: usize, data: &Data<'_>, bytes: usize) -> Option<Arrived> {
        let Neighbour { into, receiver, .. } = &mut self.neighbours[from];
        let Some(way) = self.ways[*into].as_ref().filter(|way| way.session == data.session) else {
            self.counters.stale += 1;
            return None;
        };
        let Some(arrived) = Arrived::new(data, &way.store) else {
            self.counters.malformed += 1;
            return None;
        };
        match receiver.on_data(now, data, bytes) {
            Ok(()) => return Some(arrived),
            Err(receiver::Refused::Epoch) => self.counters.stale += 1,
            Err(receiver::Refused::Repeated) => self.counters.repeated += 1,
        }
        None
    }

    fn take(&mut self, now: Instant, into: Way, arrived: &Arrived, payload: Buffer) {
        let Some(way) = &mut self.ways[into] else { return };
        if let Some(floor) = way.crowded_out(arrived.number) {
            if let Role::Sink(sink) = &mut way.role {
                sink.skip_to(floor);
            }
            self.advance(now, into, floor);
        }
        let Some(way) = &mut self.ways[into] else { return };
        match way.take(now, arrived, payload) {
            Taken::Redundant => self.counters.redundant += 1,
            Taken::Beyond => self.counters.beyond += 1,
            Taken::Innovative(number) => {
                self.counters.innovative += 1;
                for neighbour in self.neighbours.iter_mut().filter(|neighbour| neighbour.out == into) {
                    neighbour.sender.refresh(&way.store, number);
                }
                self.deliver(now, into);
            }
        }
    }

    fn deliver(&mut self, now: Instant, into: Way) {
        let Some(Direction { role: Role::Sink(sink), .. }) = &mut self.ways[into] else { return };
        let Some(edge) = &mut self.edge else { return };
        let counters = &mut self.counters;
        sink.deliver(|missing, symbol| {
            counters.delivered += 1;
            counters.lost += missing;
            edge.take(missing, symbol);
        });
        let next = sink.next();
        self.advance(now, into, next);
    }

    /// What the hops carry and lose, each way: the relay's or source's right is out, its left back.
    fn report_hops(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let names = [
            ["hop_bytes_out", "hop_packets_out", "hop_lost_out", "hop_rate_kbit_out"],
            ["hop_bytes_back", "hop_packets_back", "hop_lost_back", "hop_rate_kbit_back"],
        ];
        for Neighbour { out, sender, .. } in &self.neighbours {
            let figures =
                [sender.bytes, sender.next(), sender.lost, sender.rate.rate().bits_per_sec() / 1000];
            for (name, figure) in names[*out].into_iter().zip(figures).filter(|&(_, figure)| figure > 0) {
                report(name, figure);
            }
        }
    }

    /// How many batches it holds packets of, each way.
    #[cfg(test)]
    pub(super) fn held(&self) -> usize {
        let held = |way: &Direction| match &way.role {
            Role::Sink(sink) => sink.held(),
            Role::Source(_) | Role::Relay => way.store.held(),
        };
        self.ways.iter().flatten().map(held).sum()
    }

    /// What a test that fails shows.
    #[cfg(test)]
    pub(super) fn state(&self) -> String {
        let mut state = String::new();
        for (i, Neighbour { address, out, sender, receiver, .. }) in self.neighbours.iter().enumerate() {
            let (something, rate) = (self.could_send(i), &sender.rate);
            state += &format!(
                "to {address}: {:?}, round trip {:?}, loss {:.3}",
                rate.rate(),
                rate.srtt(),
                rate.loss()
            );
            state += &format!(", in flight {}, backlog {}", rate.in_flight(), sender.backlog());
            state += &format!(", {:?}, floor {}", sender.granted(), sender.floor());
            state += &format!(", could send {something}, deadline {:?}", sender.deadline(something));
            state += &format!(", report due {:?}", receiver.due());
            if let Some(way) = &self.ways[*out] {
                let store = &way.store;
                state += &format!("; next {:?}, limit {}", way.next(), store.limit());
                state += &format!(", held {}: {} to {}", store.held(), store.base(), store.end());
            }
            state += "\n";
        }
        state
    }

    /// Gives up what has taken too long.
    fn give_up(&mut self, now: Instant) {
        for way in [OUT, INTO] {
            while let Some(direction) = &mut self.ways[way]
                && direction.gives_up().is_some_and(|at| at <= now)
            {
                if let Role::Sink(sink) = &mut direction.role {
                    sink.give_up();
                    self.deliver(now, way);
                } else {
                    let (store, floor) = (&direction.store, direction.expired(now));
                    self.counters.given_up += floor / store.shape().symbols() - store.first();
                    self.advance(now, way, floor);
                }
            }
        }
    }
}

impl Machine for Node {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Below(_), Item::Datagram(Datagram { remote, payload, .. })) => {
                self.on_datagram(now, remote, payload);
            }
            (Port::Above(_), item) => {
                let taken = self.edge.as_mut().is_some_and(|edge| edge.handle(now, item));
                self.counters.foreign += u64::from(!taken);
            }
            _ => self.counters.foreign += 1,
        }
    }

    fn wake(&mut self, _now: Instant) {
        // Whatever is due is found when polled.
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        self.give_up(now);
        if let Some(item) = self.edge.as_mut().and_then(Edge::poll) {
            return Some(item);
        }
        // Whoever has something to send is served in turn.
        for _ in 0..self.neighbours.len() {
            if let Some(item) = self.transmit(now, self.turn) {
                return Some((Port::Below(0), item));
            }
            self.turn = (self.turn + 1) % self.neighbours.len();
        }
        None
    }

    fn deadline(&self) -> Option<Instant> {
        let neighbours = self.neighbours.iter().enumerate().map(|(i, neighbour)| {
            let something = self.could_send(i);
            earliest(neighbour.sender.deadline(something), neighbour.receiver.due())
        });
        let ways = self.ways.iter().flatten().map(Direction::gives_up);
        neighbours.chain(ways).flatten().min()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.counters.report(report);
        self.report_hops(report);
        if let Some(edge) = &self.edge {
            edge.counters(report);
        }
    }
}
