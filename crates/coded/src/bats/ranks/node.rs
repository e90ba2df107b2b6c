//! Nodes whose hops tell each other ranks.

use hopcast_core::{Buffer, Duration, Instant, Stream};

use super::super::age::Age;
use super::super::branch::waited_for;
use super::super::child::Refused;
use super::super::config::{Config, Delivery};
use super::super::mode::{Mode, Place, Said};
use super::super::node::{self, INTO, OUT};
use super::super::packet::Packet;
use super::super::receiver::Receiver;
use super::super::shape::Shape;
use super::super::wire::{self, BatchHeader, Data, EndToEndReport, Info, Report, Session};
use super::ahead;
use super::direction::{Arrived, Direction, Role, Taken};
use super::sender::Sender;

/// A node whose hops do.
pub(in super::super) type Node = node::Node<Ranks>;
pub(super) type Neighbour = node::Neighbour<Sender>;

/// The state of such a node besides.
#[derive(Default)]
pub(in super::super) struct Ranks {
    /// Path of the last batch, where each batch takes one path.
    pub(super) owner: usize,
}

/// Bytes of a full packet on the link besides its symbol: Ethernet, IPv4 and UDP (42), the byte that names the
/// protocol, and DATA's header with a vector of 16.
const FRAME_OVERHEAD: u64 = 75;

/// Time that the news of a delivery may wait, while nobody needs it. Chosen: longer, and a parent keeps batches for
/// longer; shorter costs reports where no data is sent in their direction.
const FLOOR_WAIT: Duration = Duration::from_millis(50);

impl Mode for Ranks {
    type Direction = Direction;
    type Sender = Sender;
    type Arrived = Arrived;

    // Ranks tell what each batch needs.
    const BUDGETED: bool = false;
    // Losses of a burst are repaired over the hop, and meanwhile the next hop has only the packets that wait before it.
    // Chosen: for each packet as many as a relay grants in any case; fewer, and the next hop falls idle during the
    // repair; more, and the bound in seconds decides alone.
    const BURST_ALLOWANCE: f64 = 128.0;
    const PROBES_ASK: bool = true;

    fn new(_random: &mut Stream) -> Self {
        Self::default()
    }

    fn sender(config: &Config, random: Stream) -> Sender {
        let mut sender = Sender::new(config.slack, random);
        if !config.congestion_control {
            sender.hop.rate.unbind();
        }
        sender
    }

    fn source(config: &Config, session: Session) -> Option<Direction> {
        Some(Direction::source(config, session))
    }

    fn arriving(&self, config: &Config, info: &Info, sink: bool) -> Option<Direction> {
        Direction::arriving(config, info, sink)
    }

    fn session(direction: &Direction) -> (Session, Shape) {
        (direction.session, direction.store.shape())
    }

    fn age(direction: &Direction) -> Option<&Age> {
        direction.age.as_ref()
    }

    fn age_mut(direction: &mut Direction) -> Option<&mut Age> {
        direction.age.as_mut()
    }

    fn packet(data: &Data<'_>, direction: &Direction) -> Option<Arrived> {
        Arrived::new(data, &direction.store)
    }

    fn begin(node: &mut Node, child: usize) {
        let Neighbour { out, sender, branch, .. } = &mut node.neighbours[child];
        let Some(direction) = &node.directions[*out] else { return };
        let rounds = match node.config.delivery {
            Delivery::Deadline { rounds, .. } if direction.age.is_some() => rounds,
            Delivery::Deadline { .. } | Delivery::Reliable => Delivery::UNTIL_DEADLINE,
        };
        let rounds = (rounds < Delivery::UNTIL_DEADLINE).then_some(rounds);
        let store = &direction.store;
        let Config { overhead, tolerance, delivery, .. } = node.config;
        let inside = tolerance.is_some() && matches!(delivery, Delivery::Deadline { fixed: false, .. });
        let limits = ahead::Limits { overhead, inside, asks: rounds != Some(0) };
        sender.start(store, rounds, limits, node.config.split);
        if !branch.given_up {
            (store.first()..store.end()).for_each(|number| sender.refresh(store, number));
        }
    }

    fn skip_to(node: &mut Node, now: Instant, into: usize, floor: u64) {
        // With a deadline each node gives up by itself what is too old.
        let Some(direction) = node.directions[into].as_mut().filter(|direction| direction.age.is_none())
        else {
            return;
        };
        match &mut direction.role {
            Role::Sink(sink) if floor > sink.next() => {
                sink.skip_to(floor);
                node.deliver(now, into);
            }
            Role::Relay => direction.gone = direction.gone.max(floor),
            Role::Sink(_) | Role::Source(_) => {}
        }
    }

    fn reached(
        direction: &Direction,
        report: &Report<'_>,
        _account: Option<&EndToEndReport>,
        before: u64,
    ) -> Option<u64> {
        direction.age.is_none().then(|| wire::complete(report.floor, 32, before).min(direction.store.top()))
    }

    fn on_given_up(node: &mut Node, now: Instant, out: usize) {
        node.follow_floor(now, out);
    }

    fn on_report(
        node: &mut Node,
        now: Instant,
        from: usize,
        report: &Report<'_>,
        _account: Option<&EndToEndReport>,
    ) -> Result<(), Refused> {
        let Neighbour { out, sender, .. } = &mut node.neighbours[from];
        let out = *out;
        let Some(direction) = &node.directions[out] else { return Err(Refused::Stale) };
        let made_all = matches!(direction.role, Role::Source(_));
        sender.on_report(now, report, &direction.store, made_all)?;
        node.follow_floor(now, out);
        Ok(())
    }

    fn take(node: &mut Node, now: Instant, into: usize, arrived: &Arrived, payload: Buffer) {
        let Some(direction) = &mut node.directions[into] else { return };
        if let Some(floor) = direction.crowded_out(arrived.number) {
            if let Role::Sink(sink) = &mut direction.role {
                sink.skip_to(floor);
            }
            node.advance(now, into, floor);
        }
        let Some(direction) = &mut node.directions[into] else { return };
        match direction.take(now, arrived, payload) {
            Taken::Redundant => node.counters.redundant += 1,
            Taken::Beyond => node.counters.beyond += 1,
            Taken::Innovative(number) => {
                node.counters.innovative += 1;
                for neighbour in node.neighbours.iter_mut().filter(|neighbour| neighbour.takes(into)) {
                    neighbour.sender.refresh(&direction.store, number);
                }
                node.deliver(now, into);
            }
        }
    }

    /// Gives up batches that have taken too long.
    fn pass(node: &mut Node, now: Instant) {
        for side in [OUT, INTO] {
            while let Some(direction) = &mut node.directions[side]
                && direction.gives_up().is_some_and(|at| at <= now)
            {
                if let Role::Sink(sink) = &mut direction.role {
                    sink.give_up();
                    node.deliver(now, side);
                } else {
                    let (store, floor) = (&direction.store, direction.expired(now));
                    node.counters.given_up += floor / store.shape().symbols() - store.first();
                    node.advance(now, side, floor);
                }
            }
        }
    }

    fn next_event(direction: &Direction) -> Option<Instant> {
        direction.gives_up()
    }

    fn make(node: &mut Node, now: Instant, to: usize) {
        node.make(now, to);
    }

    fn choose(sender: &mut Sender, now: Instant, direction: &Direction) -> Option<Packet> {
        sender.choose(now, &direction.store)
    }

    fn place(direction: &Direction, batch: u64) -> Option<Place<'_>> {
        let shape = direction.store.shape();
        let block = (batch / shape.batches()) as u32 & 0xFF_FFFF;
        let id = (batch % shape.batches()) as u16;
        let header = BatchHeader { block: shape.block, batch: shape.batch, id };
        Some(Place { batch: &direction.store.get(batch).batch, block, header })
    }

    fn on_sent(node: &mut Node, now: Instant, to: usize, packet: &Packet, bytes: usize) {
        let Neighbour { out, sender, .. } = &mut node.neighbours[to];
        let Some(direction) = &node.directions[*out] else { return };
        sender.aim(direction.age.as_ref().and_then(Age::aim));
        let made = sender.on_sent(packet, &direction.store);
        let full = direction.store.is_done(packet.batch);
        let newest = direction.store.get(packet.batch).newest();
        let more = node.could_send(to);
        let sent = ahead::Packet { made, newest, bytes, full, more };
        node.neighbours[to].sender.follow(now, packet, &sent);
    }

    fn arm(node: &mut Node, now: Instant, to: usize) {
        node.arm(now, to);
    }

    fn go_round(node: &mut Node, dead: usize) {
        node.go_round(dead);
    }

    fn floor(direction: &Direction) -> u64 {
        direction.store.floor().max(direction.gone)
    }

    fn is_relay(direction: &Direction) -> bool {
        matches!(direction.role, Role::Relay)
    }

    fn packet_len(direction: &Direction) -> u64 {
        u64::from(direction.store.shape().symbol) + FRAME_OVERHEAD
    }

    fn position(direction: &Direction, _receiver: &Receiver) -> Option<u64> {
        Some(direction.store.top())
    }

    fn limit(direction: &Direction, _receiver: &Receiver) -> u64 {
        direction.store.limit()
    }

    fn report(
        config: &Config,
        direction: &Direction,
        receiver: &mut Receiver,
        granted: u64,
        list: &mut Vec<u8>,
    ) -> Option<Said> {
        let store = &direction.store;
        let room = usize::from(config.datagram).saturating_sub(1 + wire::MAX_REPORT_LEN + wire::MAX_INFO_LEN);
        list.clear();
        let complete = store.list(list, room.max(1));
        receiver.granted = receiver.granted.max(granted);
        let grant = match config.split {
            true => granted.saturating_sub(store.top()),
            false => receiver.granted.saturating_sub(store.floor()),
        };
        let grant = grant.min(u64::from(u16::MAX)) as u16;
        let base = (store.base() - store.first()) as u16;
        Some(Said { floor: store.floor() as u32, grant, base, complete })
    }

    fn next_send(node: &Node, to: usize) -> Option<Instant> {
        node.neighbours[to].sender.deadline(node.could_send(to))
    }

    /// Load and losses of the hops, in each direction: the relay's or source's right is out, its left back.
    fn counters(node: &Node, report: &mut dyn FnMut(&'static str, u64)) {
        let names = [
            ["hop_bytes_out", "hop_packets_out", "hop_lost_out"],
            ["hop_bytes_back", "hop_packets_back", "hop_lost_back"],
        ];
        for Neighbour { out, sender, .. } in &node.neighbours {
            let hop = &sender.hop;
            let figures = [hop.bytes, hop.next(), hop.lost];
            for (name, figure) in names[*out].into_iter().zip(figures).filter(|&(_, figure)| figure > 0) {
                report(name, figure);
            }
        }
    }
}

impl Node {
    /// Gives up batches that all children have.
    fn follow_floor(&mut self, now: Instant, direction: usize) {
        let children = waited_for(&self.neighbours, direction, self.has_deadline(direction));
        if let Some(floor) = children.map(|child| child.sender.floor()).min() {
            self.advance(now, direction, floor);
        }
    }

    /// Nothing before `floor` is of use any more.
    fn advance(&mut self, now: Instant, side: usize, floor: u64) {
        let Some(direction) = &mut self.directions[side] else { return };
        let before = direction.store.first();
        if floor <= direction.store.floor() {
            return;
        }
        direction.count_ranks(floor, &mut self.counters);
        direction.store.advance(now, floor);
        let store = &direction.store;
        let short = store.limit() < store.top() + store.window() * store.shape().symbols() / 2;
        for neighbour in &mut self.neighbours {
            if neighbour.out == side {
                neighbour.sender.forget(before, store.first(), &mut self.counters);
            } else {
                let wait = if short { neighbour.receiver.interval() } else { FLOOR_WAIT };
                neighbour.receiver.report_at(now + wait);
            }
        }
    }

    fn deliver(&mut self, now: Instant, into: usize) {
        let Some(Direction { role: Role::Sink(sink), .. }) = &mut self.directions[into] else { return };
        let Some(edge) = &mut self.edge else { return };
        let counters = &mut self.counters;
        sink.deliver(|symbol| {
            counters.delivered += 1;
            counters.lost += symbol.missing;
            edge.take(now, symbol);
        });
        let next = sink.next();
        self.advance(now, into, next);
        if let Some(direction) = &mut self.directions[into] {
            direction.hold(now);
        }
    }

    /// Number of batches that it holds packets of, in each direction.
    #[cfg(test)]
    pub(in super::super) fn held(&self) -> usize {
        let held = |direction: &Direction| match &direction.role {
            Role::Sink(sink) => sink.held(),
            Role::Source(_) | Role::Relay => direction.store.held(),
        };
        self.directions.iter().flatten().map(held).sum()
    }

    /// The state, for the message of a test that fails.
    #[cfg(test)]
    pub(in super::super) fn state(&self) -> String {
        use super::super::hop::OverHop as _;
        let mut state = String::new();
        for (i, Neighbour { address, out, sender, receiver, .. }) in self.neighbours.iter().enumerate() {
            let (something, rate) = (self.could_send(i), &sender.hop.rate);
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
            if let Some(direction) = &self.directions[*out] {
                let store = &direction.store;
                state += &format!("; next {:?}, limit {}", direction.next(), store.limit());
                state += &format!(", held {}: {} to {}", store.held(), store.base(), store.end());
            }
            state += "\n";
        }
        state
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::*;

    #[test]
    fn rounds_of_repair_are_counted_where_delivery_has_a_deadline_and_somebody_says_so() {
        let with = |rounds| match Delivery::DEADLINE {
            Delivery::Deadline { after, fixed, .. } => Delivery::Deadline { after, fixed, rounds },
            Delivery::Reliable => Delivery::Reliable,
        };
        for (delivery, rounds) in [
            (Delivery::Reliable, None),
            (with(0), Some(0)),
            (with(254), Some(254)),
            (with(Delivery::UNTIL_DEADLINE), None),
        ] {
            let [local, right] = [1, 2].map(|last| ([10, 0, 0, last], 9000).into());
            let random = Seed::new(1, 0).stream(&["ranks"], 0);
            let config = Config { delivery, ..Config::default() };
            let node = Node::edge(config, local, (local, right), &[right], random);
            assert_eq!(node.neighbours[0].sender.rounds(), rounds, "{delivery:?}");
        }
    }

    #[test]
    fn that_the_floor_moves_is_told_after_50_ms_if_nothing_else_is() {
        let at = |millis| Instant::ZERO + hopcast_core::Duration::from_millis(millis);
        let [local, left, right] = [1, 2, 3].map(|last| ([10, 0, 0, last], 9000).into());
        let random = Seed::new(1, 0).stream(&["ranks"], 0);
        let mut node = Node::relay(Config::default(), local, &[left], &[right], random);
        let info = Info { round_trip: 8000, ..Info::example() };
        node.directions[OUT] = node.mode.arriving(&node.config, &info, false);
        node.neighbours.iter_mut().for_each(|neighbour| neighbour.receiver.on_info(at(0), &info));
        node.advance(at(100), OUT, 0);
        let due = |node: &Node| [0, 1].map(|neighbour| node.neighbours[neighbour].receiver.due());
        assert_eq!(due(&node), [None, None], "it has not moved");
        node.advance(at(100), OUT, 16);
        assert_eq!(due(&node), [Some(at(150)), None], "the parent is told");
    }

    #[test]
    fn a_packet_is_its_symbol_and_the_headers_of_all_layers() {
        // Ethernet, IPv4, UDP; the protocol, DATA's header with a vector of 16.
        let headers = 14 + 20 + 8 + 1 + 16 + 16;
        let direction = Direction::source(&Config::default(), Session { mark: 1 });
        assert_eq!(Ranks::packet_len(&direction), 1439 + headers);
    }
}
