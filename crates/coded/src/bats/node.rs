//! The node, whatever its hops tell each other: it knows its neighbours and the two directions of its session,
//! judges what comes, and gives everybody a turn to send.

use std::net::SocketAddr;

use hopcast_code::rlnc::Coefficients;
use hopcast_core::{Buffer, Datagram, Instant, Item, Machine, Port, Stream, earliest};

use super::branch::{Branch, Front};
use super::child::Refused;
use super::config::Config;
use super::counters::Counters;
use super::edge::Edge;
use super::hop::OverHop as _;
use super::mode::Mode;
use super::receiver::{self, Receiver};
use super::vouch::Vouch;
use super::wire::{self, Data, EndToEndReport, Frames, Info, Report, Session};

/// A node on the path of a session.
pub(super) struct Node<M: Mode> {
    pub(super) config: Config,
    pub(super) local: SocketAddr,
    pub(super) edge: Option<Edge>,
    pub(super) directions: [Option<M::Direction>; 2],
    pub(super) neighbours: Vec<Neighbour<M::Sender>>,
    pub(super) fronts: [Front; 2],
    /// Time at which a parent of each direction last vouched for its session.
    pub(super) vouched: [Option<Instant>; 2],
    /// Source of numbers that nobody can guess.
    pub(super) random: Stream,
    /// Index of the one whose turn it is to send.
    turn: usize,
    pub(super) coefficients: Coefficients,
    pub(super) counters: Counters,
    /// The memory of a report's list.
    pub(super) list: Vec<u8>,
    pub(super) mode: M,
}

/// A node next to this one.
pub(super) struct Neighbour<S> {
    pub(super) address: SocketAddr,
    /// The direction that goes to it, and that which comes from it.
    pub(super) out: usize,
    pub(super) into: usize,
    pub(super) sender: S,
    pub(super) receiver: Receiver,
    /// The branch behind it.
    pub(super) branch: Branch,
    /// The challenges between it and this node, before a session replaces another one.
    pub(super) vouch: Vouch,
}

impl<S> Neighbour<S> {
    /// Whether it is a child in this direction, and is served.
    pub(super) const fn takes(&self, direction: usize) -> bool {
        self.out == direction && !self.branch.given_up
    }
}

/// The direction out of an edge; at a relay, from the left to the right.
pub(super) const OUT: usize = 0;
/// The other direction, which has the next index.
pub(super) const INTO: usize = 1;

/// Greatest first symbol of a session that is believed: those after it can still be counted, and no session is that
/// long. Chosen: far from the end of 64 bits, so that sums with it do not overflow.
const MAX_FLOOR: u64 = 1 << 62;

impl<M: Mode> Node<M> {
    /// See [`Node::edge`](super::Node::edge).
    pub(super) fn edge(
        config: Config,
        local: SocketAddr,
        ends: (SocketAddr, SocketAddr),
        neighbours: &[SocketAddr],
        random: Stream,
    ) -> Self {
        let edge = Edge::new(ends, &config);
        let mut node = Self::new(config, local, Some(edge), (&[], neighbours), random);
        // 0 is no session.
        let session = Session { mark: (node.random.bits() as u32).max(1) };
        node.edge.iter_mut().for_each(|edge| edge.framing.begin(session.mark));
        node.directions[OUT] = M::source(&node.config, session);
        node.begin(OUT);
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
            sender: M::sender(&config, random.fork()),
            branch: Branch::default(),
            vouch: Vouch::default(),
        });
        Self {
            neighbours: neighbours.collect(),
            coefficients: Coefficients::new(random.bits()),
            mode: M::new(&mut random),
            config,
            local,
            edge,
            directions: [None, None],
            fronts: Default::default(),
            vouched: [None; 2],
            random,
            turn: 0,
            counters: Counters::default(),
            list: Vec::new(),
        }
    }

    fn on_datagram(&mut self, now: Instant, remote: SocketAddr, mut payload: Buffer) {
        let Some(from) = self.neighbours.iter().position(|neighbour| neighbour.address == remote) else {
            self.counters.foreign += 1;
            return;
        };
        let into = self.neighbours[from].into;
        let known = self.directions[into].as_ref().map(M::session);
        let symbol = |mark| known.filter(|(known, _)| known.mark == mark).map(|(_, shape)| shape.symbol);
        let Ok(frames) = wire::parse(&payload, |mark| symbol(mark).map(usize::from)) else {
            self.counters.malformed += 1;
            return;
        };
        if self.is_own(from, &frames) {
            self.counters.own += 1;
            return;
        }
        if let Some(nonce) = frames.challenge {
            self.on_challenge(now, from, nonce);
        }
        if let Some(report) = &frames.report {
            self.on_report(now, from, report, frames.end_to_end.as_ref());
        }
        if let Some(info) = &frames.info {
            self.on_info(now, from, info);
        }
        let data = frames.data.and_then(|data| {
            let packet = self.admit(now, from, &data, payload.len())?;
            Some((packet, payload.len() - data.payload.len()))
        });
        match data {
            Some((packet, header)) => {
                payload.advance(header);
                M::take(self, now, into, &packet, payload);
            }
            None => payload.recycle(),
        }
    }

    /// The mark of a direction's session.
    fn mark(&self, direction: usize) -> Option<u32> {
        self.directions[direction].as_ref().map(|direction| M::session(direction).0.mark)
    }

    /// Whether a datagram that has come from a neighbour is one that goes to it: it was reflected, here or further on.
    fn is_own(&self, from: usize, frames: &Frames<'_>) -> bool {
        let Neighbour { out, into, .. } = self.neighbours[from];
        let is = |direction, mark: Option<u32>| mark.is_some() && mark == self.mark(direction);
        is(out, frames.info.map(|info| info.session.mark))
            || is(out, frames.data.map(|data| data.session))
            || is(into, frames.report.map(|report| report.session))
    }

    fn on_report(
        &mut self,
        now: Instant,
        from: usize,
        report: &Report<'_>,
        end_to_end: Option<&EndToEndReport>,
    ) {
        let Neighbour { out, branch, .. } = self.neighbours[from];
        let Some(direction) =
            self.directions[out].as_ref().filter(|direction| M::session(direction).0.mark == report.session)
        else {
            self.counters.stale += 1;
            return;
        };
        let reached =
            M::reached(direction, report, end_to_end, branch.reached()).filter(|_| !self.config.split);
        if let (true, Some(reached)) = (branch.given_up, reached) {
            if reached <= branch.reached() {
                return;
            }
            self.neighbours[from].branch.given_up = false;
            M::begin(self, from);
        }
        match M::on_report(self, now, from, report, end_to_end) {
            Ok(()) => {
                reached.into_iter().for_each(|reached| self.follow_branches(now, from, reached));
                self.look_ahead(out);
            }
            // Of this session, and repeated or overtaken in transit: that says nothing of the session.
            Err(Refused::Stale) => self.counters.repeated += 1,
            Err(Refused::NeverSent) => self.counters.malformed += 1,
        }
    }

    /// Whether the data of a direction has a deadline.
    pub(super) fn has_deadline(&self, direction: usize) -> bool {
        self.directions[direction].as_ref().and_then(M::age).is_some()
    }

    /// Finds out how far the children of a direction are away, where there is a deadline that follows from it.
    fn look_ahead(&mut self, out: usize) {
        if !self.has_deadline(out) {
            return;
        }
        let children = self.neighbours.iter().filter(|child| child.takes(out));
        let ahead = children.clone().filter_map(|child| child.sender.hop().ahead()).max();
        let to_ends = children.map(|child| child.sender.hop().to_end().map(|(child, rest)| child + rest));
        let rest = to_ends.reduce(|one, other| Some(one?.max(other?))).flatten();
        if let Some(direction) = &mut self.directions[out] {
            M::look_ahead(direction, ahead, rest);
        }
    }

    /// A direction has begun: sending to its children begins, and so do their reports.
    fn begin(&mut self, direction: usize) {
        self.fronts[direction] = Front::default();
        for i in 0..self.neighbours.len() {
            if self.neighbours[i].out == direction {
                self.neighbours[i].branch = Branch::default();
                M::begin(self, i);
            } else {
                self.neighbours[i].receiver.begin();
            }
        }
    }

    fn on_info(&mut self, now: Instant, from: usize, info: &Info) {
        let into = self.neighbours[from].into;
        // Symbols that do not fit our datagrams could not be passed on.
        let limit = wire::symbol_len(usize::from(self.config.datagram), info.batch);
        let fits = usize::from(info.symbol) <= limit && info.floor <= MAX_FLOOR;
        if info.budget.is_some() != M::BUDGETED || !fits {
            self.counters.malformed += 1;
            return;
        }
        let is_vouched_for = self.hear_vouch(now, from, info);
        match self.directions[into].as_ref().map(|direction| M::session(direction).0) {
            Some(session) if session == info.session => {}
            Some(_) if !is_vouched_for => {
                self.counters.stale += 1;
                self.challenge(now, from);
                return;
            }
            // The first one is taken at its word, and replaced by the first that is vouched for.
            Some(_) | None => {
                let Some(direction) = self.mode.arriving(&self.config, info, self.edge.is_some()) else {
                    self.counters.malformed += 1;
                    return;
                };
                self.directions[into] = Some(direction);
                self.begin(into);
                if let Some(edge) = &mut self.edge {
                    edge.framing.meet(info.session.mark, info.floor == 0);
                }
            }
        }
        if let Some(direction) = &mut self.directions[into] {
            M::learn(direction, info);
        }
        self.neighbours[from].receiver.on_info(now, info);
        let parents = self.neighbours.iter().filter(|parent| parent.into == into);
        let elapsed = parents.filter_map(|parent| parent.receiver.elapsed(now)).min();
        if let Some(age) = self.directions[into].as_mut().and_then(M::age_mut) {
            age.learn(now, elapsed);
        }
        self.follow_parents(now, into);
    }

    /// Whether to take a packet, as far as its hop is concerned.
    fn admit(&mut self, now: Instant, from: usize, data: &Data<'_>, bytes: usize) -> Option<M::Arrived> {
        let Neighbour { into, receiver, .. } = &mut self.neighbours[from];
        let direction = self.directions[*into].as_ref();
        let Some(direction) = direction.filter(|direction| M::session(direction).0.mark == data.session)
        else {
            self.counters.stale += 1;
            return None;
        };
        let Some(packet) = M::packet(data, direction) else {
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
}

impl<M: Mode> Machine for Node<M> {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Below(_), Item::Datagram(Datagram { remote, payload, .. })) => {
                self.on_datagram(now, remote, payload);
            }
            (Port::Above(_), item) => {
                let taken = self.edge.as_mut().is_some_and(|edge| edge.handle(now, item));
                self.counters.wrong_items += u64::from(!taken);
            }
            _ => self.counters.wrong_items += 1,
        }
    }

    fn wake(&mut self, _now: Instant) {
        // Whatever is due is found when polled.
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        if let Some(edge) = &mut self.edge {
            edge.framing.wake(now);
        }
        M::pass(self, now);
        if let Some(edge) = &mut self.edge {
            let [out, into] = &mut self.directions;
            if let Some(age) = out.as_mut().and_then(M::age_mut) {
                edge.framing.expire(now, age.bound());
            }
            if let Some(item) = edge.poll(now, into.as_mut().and_then(M::age_mut)) {
                return Some(item);
            }
        }
        // Whoever has something to send is served in turn.
        for _ in 0..self.neighbours.len() {
            if let Some(item) = self.next_vouch(now, self.turn) {
                return Some((Port::Below(0), item));
            }
            if let Some(item) = self.transmit(now, self.turn) {
                return Some((Port::Below(0), item));
            }
            self.turn = (self.turn + 1) % self.neighbours.len();
        }
        None
    }

    fn deadline(&self) -> Option<Instant> {
        let neighbours = self.neighbours.iter().enumerate();
        let neighbours = neighbours.map(|(i, it)| earliest(M::next_send(self, i), it.receiver.due()));
        let directions = self.directions.iter().flatten().map(M::next_event);
        let streams = self.edge.as_ref().and_then(|edge| edge.framing.deadline());
        // Before anything else the application is granted what it may hand over.
        let grant = self.edge.as_ref().and_then(|edge| edge.framing.grant_due()).map(|_| Instant::ZERO);
        neighbours.chain(directions).chain([streams, grant]).flatten().min()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.counters.report(report);
        M::counters(self, report);
        if let Some(edge) = &self.edge {
            edge.counters(report);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::ranks::Ranks;
    use super::*;

    #[test]
    fn a_session_that_is_longer_than_symbols_can_be_counted_is_refused() {
        let [local, left, right] = [1, 2, 3].map(|last| ([10, 0, 0, last], 9000).into());
        for (floor, taken) in [(0, true), (1 << 62, true), ((1 << 62) + 1, false), (u64::MAX, false)] {
            let random = hopcast_core::Seed::new(1, 0).stream(&["node"], 0);
            let mut node = Node::<Ranks>::relay(Config::default(), local, &[left], &[right], random);
            node.on_info(Instant::ZERO, 0, &Info { floor, ..Info::example() });
            assert_eq!(
                (node.directions[OUT].is_some(), node.counters.malformed),
                (taken, u64::from(!taken)),
                "{floor}"
            );
        }
    }
}
