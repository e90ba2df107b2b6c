//! The machine.

use std::net::SocketAddr;

use hopcast_code::rlnc::Coefficients;
use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Machine, Port, Stream, earliest};

use super::super::config::{Config, Delivery};
use super::super::counters::Counters;
use super::super::edge::Edge;
use super::super::framing::LEAST_SYMBOL;
use super::super::receiver::{self, Receiver};
use super::super::sender::Refused;
use super::super::store::Shape;
use super::super::wire::{self, Data, Info, Report};
use super::account::Account;
use super::hop::Sender;
use super::way::{Packet, Role, Way};

/// The way out of an edge; at a relay, from the left to the right.
const OUT: usize = 0;
const INTO: usize = 1;

/// What the sink has need not be told more often than this, unless reports are sent anyway.
pub(super) const NEWS: Duration = Duration::from_millis(1);

/// The bytes that a budget is told in.
pub(super) const BUDGET_UNIT: f64 = 16.0;
/// What a relay spends of the budget: the rest lets its queue drain.
const FILLED: f64 = 0.995;

/// A node on the path of a session without rank feedback.
pub(in super::super) struct Node {
    pub(super) config: Config,
    pub(super) local: SocketAddr,
    pub(super) edge: Option<Edge>,
    pub(super) ways: [Option<Way>; 2],
    pub(super) neighbours: Vec<Neighbour>,
    /// Whose turn it is to send.
    turn: usize,
    pub(super) coefficients: Coefficients,
    pub(super) counters: Counters,
    /// What an account of ours is marked with.
    instance: u16,
}

/// A node next to this one.
pub(super) struct Neighbour {
    pub(super) address: SocketAddr,
    /// The way that goes to it, and that which comes from it.
    pub(super) out: usize,
    pub(super) into: usize,
    pub(super) sender: Sender,
    pub(super) receiver: Receiver,
    /// What the sink behind it has.
    pub(super) account: Option<Account>,
}

impl Node {
    /// See [`Node::edge`](super::super::Node::edge).
    pub(in super::super) fn edge(
        config: Config,
        session: u32,
        local: SocketAddr,
        ends: (SocketAddr, SocketAddr),
        neighbours: &[SocketAddr],
        random: Stream,
    ) -> Self {
        let edge = Edge::new(ends, &config);
        let source = Way::source(&config, session);
        let mut node = Self::new(config, local, Some(edge), (&[], neighbours), random);
        node.ways[OUT] = source;
        node
    }

    /// See [`Node::relay`](super::super::Node::relay).
    pub(in super::super) fn relay(
        config: Config,
        local: SocketAddr,
        left: &[SocketAddr],
        right: &[SocketAddr],
        random: Stream,
    ) -> Self {
        Self::new(config, local, None, (left, right), random)
    }

    fn new(
        config: Config,
        local: SocketAddr,
        edge: Option<Edge>,
        (left, right): (&[SocketAddr], &[SocketAddr]),
        mut random: Stream,
    ) -> Self {
        let sides = left.iter().map(|left| (left, INTO)).chain(right.iter().map(|right| (right, OUT)));
        let neighbours = sides.map(|(&address, out)| Neighbour {
            address,
            out,
            into: 1 - out,
            receiver: Receiver::new(random.bits() as u16),
            sender: Sender::new(config.idle_repair, random.fork()),
            account: None,
        });
        Self {
            neighbours: neighbours.collect(),
            coefficients: Coefficients::new(random.bits()),
            instance: random.bits() as u16,
            config,
            local,
            edge,
            ways: [None, None],
            turn: 0,
            counters: Counters::default(),
        }
    }

    fn on_datagram(&mut self, now: Instant, remote: SocketAddr, payload: Buffer) {
        let Some(from) = self.neighbours.iter().position(|neighbour| neighbour.address == remote) else {
            self.counters.foreign += 1;
            return;
        };
        let into = self.neighbours[from].into;
        let known = self.ways[into].as_ref().map(|way| (way.session, usize::from(way.shape.symbol)));
        let symbol = |session| known.filter(|&(known, _)| known == session).map(|(_, symbol)| symbol);
        let Ok(frames) = wire::parse(&payload, symbol) else {
            self.counters.malformed += 1;
            return;
        };
        if let Some(report) = &frames.report {
            self.on_report(now, from, report, frames.account.as_ref());
        }
        if let Some(info) = &frames.info {
            self.on_info(now, from, info);
        }
        if let Some(data) = &frames.data
            && let Some(packet) = self.admit(now, from, data, payload.len())
        {
            let header = payload.len() - data.payload.len();
            let mut payload = payload;
            payload.advance(header);
            self.take(now, into, &packet, payload);
        }
    }

    fn on_report(&mut self, now: Instant, from: usize, report: &Report<'_>, account: Option<&Account>) {
        let Neighbour { out, sender, .. } = &mut self.neighbours[from];
        let out = *out;
        if self.ways[out].as_ref().is_none_or(|way| way.session != report.session) {
            self.counters.stale += 1;
            return;
        }
        match sender.on_report(now, report) {
            Ok(()) => {}
            Err(Refused::Stale) => self.counters.stale += 1,
            Err(Refused::Absurd) => self.counters.malformed += 1,
        }
        if let Some(account) = account {
            self.on_account(now, from, account);
        }
    }

    fn on_account(&mut self, now: Instant, from: usize, account: &Account) {
        let Neighbour { out, account: old, .. } = &mut self.neighbours[from];
        let out = *out;
        if old.is_some_and(|old| !account.is_newer(&old)) {
            return;
        }
        *old = Some(*account);
        let Some(account) = self.account_of(out) else { return };
        let own = self.worst_hop(out);
        let Some(way) = &mut self.ways[out] else { return };
        match &mut way.role {
            Role::Source(source) => {
                if source.on_account(now, &account, own) {
                    way.drop_over();
                }
                self.refresh(out, 0..0);
            }
            Role::Relay => {
                way.pass(account.first);
                self.refresh(out, 0..0);
                for parent in self.neighbours.iter_mut().filter(|neighbour| neighbour.into == out) {
                    parent.receiver.report_at(now + NEWS);
                }
            }
            Role::Sink(_) => {}
        }
    }

    fn on_info(&mut self, now: Instant, from: usize, info: &Info) {
        let into = self.neighbours[from].into;
        let newer = |way: &Way| info.session.wrapping_sub(way.session) as i32 > 0;
        let Some(budget) = info.budget else {
            // It wants ranks.
            self.counters.malformed += 1;
            return;
        };
        match &self.ways[into] {
            Some(way) if way.session == info.session => {}
            Some(way) if !newer(way) => {
                self.counters.stale += 1;
                return;
            }
            known => {
                // An edge that is first heard of has no streams to forget.
                let again = known.is_some();
                let sink = self.edge.as_ref().map(|_| self.instance);
                let Some(way) = Way::arriving(&self.config, info, sink) else {
                    self.counters.malformed += 1;
                    return;
                };
                self.ways[into] = Some(way);
                for neighbour in self.neighbours.iter_mut().filter(|neighbour| neighbour.out == into) {
                    neighbour.sender.start();
                    neighbour.account = None;
                }
                if let Some(edge) = self.edge.as_mut().filter(|_| again) {
                    edge.framing.restart();
                }
            }
        }
        if let Some(way) = &mut self.ways[into] {
            way.budget = f64::from(budget) * BUDGET_UNIT;
        }
        self.neighbours[from].receiver.on_info(now, info);
    }

    /// Whether to take a packet, as far as its hop is concerned.
    fn admit(&mut self, now: Instant, from: usize, data: &Data<'_>, bytes: usize) -> Option<Packet> {
        let Neighbour { into, receiver, .. } = &mut self.neighbours[from];
        let Some(way) = self.ways[*into].as_ref().filter(|way| way.session == data.session) else {
            self.counters.stale += 1;
            return None;
        };
        let Some(packet) = Packet::new(data, way) else {
            self.counters.malformed += 1;
            return None;
        };
        match receiver.on_data(now, data, bytes) {
            Ok(()) => return Some(packet),
            Err(receiver::Refused::Epoch) => self.counters.stale += 1,
            Err(receiver::Refused::Repeated) => self.counters.repeated += 1,
        }
        None
    }

    fn take(&mut self, now: Instant, into: usize, packet: &Packet, payload: Buffer) {
        let Some(way) = &mut self.ways[into] else { return };
        way.touched = now;
        if let Role::Sink(_) = way.role {
            self.decode(now, into, packet, &payload);
            return;
        }
        if !way.is_in_reach(packet.block) {
            self.counters.beyond += 1;
            return;
        }
        let before = way.ring.end();
        let (serial, over) = way.ring.admit(packet.block, packet.header, packet.depth);
        let innovative = way.ring.grow(serial, |batch| match packet.index {
            Some(index) => batch.push_symbol(index, payload),
            None => batch.push_coded(packet.vector, payload),
        });
        if innovative {
            self.counters.innovative += 1;
        } else {
            self.counters.redundant += 1;
        }
        for over in over.clone() {
            let rank = way.ring.get(over).map_or(0, |slot| slot.batch.rank());
            self.counters.ranks[usize::from(rank)] += 1;
        }
        if way.ring.end() > before {
            self.begin(into);
        }
        self.refresh(into, over);
        self.refresh(into, serial..serial + 1);
    }

    /// A batch has begun: plans are brought up to date.
    pub(super) fn begin(&mut self, out: usize) {
        let Some(way) = &mut self.ways[out] else { return };
        let children = || self.neighbours.iter().filter(|neighbour| neighbour.out == out);
        if let Role::Source(source) = &way.role {
            // All hops spend as many bytes, so that those with longer packets, as more of them are coded, are not slower.
            let size = children().map(|child| child.sender.packet_size()).fold(0.0, f64::max);
            // Of a batch that is not whole, it is as much as it is of a batch.
            let whole = way.shape.batch.symbols() as f64;
            way.budget = source.path.budget() * size * way.ring.mean().unwrap_or(whole) / whole;
        }
        let (symbols, budget) =
            (way.shape.batch.symbols(), way.budget * if way.is_source() { 1.0 } else { FILLED });
        for neighbour in self.neighbours.iter_mut().filter(|neighbour| neighbour.out == out) {
            neighbour.sender.begin(&way.ring, symbols, budget);
        }
    }

    /// Batches have changed.
    pub(super) fn refresh(&mut self, out: usize, serials: core::ops::Range<u64>) {
        let Some(way) = &self.ways[out] else { return };
        for neighbour in self.neighbours.iter_mut().filter(|neighbour| neighbour.out == out) {
            neighbour.sender.refresh(&way.ring, serials.clone());
        }
    }

    /// Does what time has brought.
    fn pass(&mut self, now: Instant) {
        for out in [OUT, INTO] {
            let backlog = self.backlog(out);
            let Some(way) = &mut self.ways[out] else { continue };
            let mut settled = 0..0;
            if way.settles().is_some_and(|at| at <= now) {
                settled = way.ring.settle();
            }
            let over = match &mut way.role {
                Role::Source(source) => source.wake(now, &mut way.ring, backlog > 0),
                Role::Relay | Role::Sink(_) => false,
            };
            if over {
                way.drop_over();
            }
            if over || !settled.is_empty() {
                self.refresh(out, settled);
            }
            self.sink_passes(now, out);
        }
    }

    /// How many packets wait for the child that has the most before it.
    pub(super) fn backlog(&self, out: usize) -> u64 {
        let children = self.neighbours.iter().filter(|neighbour| neighbour.out == out);
        children.map(|child| child.sender.backlog()).max().unwrap_or(0)
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
        self.pass(now);
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
        let neighbours = self.neighbours.iter().map(|neighbour| {
            let something = self.could_make(neighbour.out);
            earliest(neighbour.sender.deadline(something), neighbour.receiver.due())
        });
        let ways = self.ways.iter().flatten().map(Way::next_event);
        neighbours.chain(ways).flatten().min()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.counters.report(report);
        if let Some(edge) = &self.edge {
            edge.counters(report);
        }
    }
}

/// How long a node works for a batch, as a session is told of it.
pub(super) const fn deadline(config: &Config) -> Option<Duration> {
    match config.delivery {
        Delivery::Reliable => None,
        Delivery::Deadline { after, .. } => Some(after),
    }
}

/// The shape of the session that an edge begins.
pub(super) fn shape(config: &Config) -> Shape {
    let symbols = config.batch.symbols() as u16;
    Shape {
        batch: config.batch,
        // So many systematic batches leave enough of the 8,192 for repairs.
        block: (config.block / symbols).clamp(1, MOST_BLOCK_BATCHES) * symbols,
        symbol: wire::symbol_len(usize::from(config.datagram), config.batch).max(LEAST_SYMBOL) as u16,
    }
}

/// The most systematic batches of a block.
const MOST_BLOCK_BATCHES: u16 = 256;
