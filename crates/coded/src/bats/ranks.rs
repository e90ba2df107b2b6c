//! Hops that tell each other ranks.

use hopcast_core::{Buffer, Duration, Instant, Item, Stream};

use super::age::Age;
use super::branch::waited_for;
use super::child::Refused;
use super::config::{Config, Delivery};
use super::direction::{Arrived, Direction, Role, Taken};
use super::mode::Mode;
use super::node::{self, INTO, OUT};
use super::sender::Sender;
use super::store::Shape;
use super::strict::Account;
use super::transmit;
use super::wire::{self, Data, Info, Report, Session};

/// A node whose hops do.
pub(super) type Node = node::Node<Ranks>;
pub(super) type Neighbour = node::Neighbour<Sender>;

/// What it keeps besides.
#[derive(Default)]
pub(super) struct Ranks {
    /// Where each batch takes one path: that of the last one.
    pub(super) owner: usize,
    /// The memory of a report's list.
    pub(super) list: Vec<u8>,
}

/// How long the news that data was delivered may wait, while nobody needs it.
const FLOOR_WAIT: Duration = Duration::from_millis(50);

impl Mode for Ranks {
    type Way = Direction;
    type Sender = Sender;
    type Packet = Arrived;

    const BUDGETED: bool = false;

    fn new(_random: &mut Stream) -> Self {
        Self::default()
    }

    fn sender(config: &Config, random: Stream) -> Sender {
        let mut sender = Sender::new(config.slack, random);
        if !config.congestion_control {
            sender.rate.unbind();
        }
        sender
    }

    fn source(config: &Config, session: Session) -> Option<Direction> {
        Some(Direction::source(config, session))
    }

    fn arriving(&self, config: &Config, info: &Info, sink: bool) -> Option<Direction> {
        Direction::arriving(config, info, sink)
    }

    fn session(way: &Direction) -> (Session, Shape) {
        (way.session, way.store.shape())
    }

    fn age(way: &mut Direction) -> Option<&mut Age> {
        way.age.as_mut()
    }

    fn has_deadline(way: &Direction) -> bool {
        way.age.is_some()
    }

    fn least_round_trip(sender: &Sender) -> Option<Duration> {
        sender.rate.min_rtt()
    }

    fn packet(data: &Data<'_>, way: &Direction) -> Option<Arrived> {
        Arrived::new(data, &way.store)
    }

    fn begin(node: &mut Node, child: usize) {
        let Neighbour { out, sender, branch, .. } = &mut node.neighbours[child];
        let Some(direction) = &node.ways[*out] else { return };
        let rounds = match node.config.delivery {
            Delivery::Deadline { rounds, .. } if direction.age.is_some() => rounds,
            Delivery::Deadline { .. } | Delivery::Reliable => Delivery::UNTIL_DEADLINE,
        };
        let rounds = (rounds < Delivery::UNTIL_DEADLINE).then_some(rounds);
        let store = &direction.store;
        sender.start(store, rounds, node.config.idle_repair, node.config.split);
        if !branch.given_up {
            (store.first()..store.end()).for_each(|number| sender.refresh(store, number));
        }
    }

    fn describe(way: &Direction, sender: &Sender) -> Info {
        transmit::describe(way, sender, false)
    }

    fn skip_to(node: &mut Node, now: Instant, into: usize, floor: u64) {
        // With a deadline each node gives up by itself what is too old.
        let Some(way) = node.ways[into].as_mut().filter(|way| way.age.is_none()) else { return };
        match &mut way.role {
            Role::Sink(sink) if floor > sink.next() => {
                sink.skip_to(floor);
                node.deliver(now, into);
            }
            Role::Relay => way.gone = way.gone.max(floor),
            Role::Sink(_) | Role::Source(_) => {}
        }
    }

    fn reached(way: &Direction, report: &Report<'_>, _account: Option<&Account>, before: u64) -> Option<u64> {
        way.age.is_none().then(|| wire::complete(report.floor, 32, before).min(way.store.top()))
    }

    fn on_given_up(node: &mut Node, now: Instant, out: usize) {
        node.follow_floor(now, out);
    }

    fn on_report(
        node: &mut Node,
        now: Instant,
        from: usize,
        report: &Report<'_>,
        _account: Option<&Account>,
    ) -> Result<(), Refused> {
        let Neighbour { out, sender, .. } = &mut node.neighbours[from];
        let out = *out;
        let Some(way) = &node.ways[out] else { return Err(Refused::Stale) };
        let made_all = matches!(way.role, Role::Source(_));
        sender.on_report(now, report, &way.store, made_all)?;
        node.follow_floor(now, out);
        Ok(())
    }

    fn take(node: &mut Node, now: Instant, into: usize, arrived: &Arrived, payload: Buffer) {
        let Some(way) = &mut node.ways[into] else { return };
        if let Some(floor) = way.crowded_out(arrived.number) {
            if let Role::Sink(sink) = &mut way.role {
                sink.skip_to(floor);
            }
            node.advance(now, into, floor);
        }
        let Some(way) = &mut node.ways[into] else { return };
        match way.take(now, arrived, payload) {
            Taken::Redundant => node.counters.redundant += 1,
            Taken::Beyond => node.counters.beyond += 1,
            Taken::Innovative(number) => {
                node.counters.innovative += 1;
                for neighbour in node.neighbours.iter_mut().filter(|neighbour| neighbour.takes(into)) {
                    neighbour.sender.refresh(&way.store, number);
                }
                node.deliver(now, into);
            }
        }
    }

    /// Gives up what has taken too long.
    fn pass(node: &mut Node, now: Instant) {
        for way in [OUT, INTO] {
            while let Some(direction) = &mut node.ways[way]
                && direction.gives_up().is_some_and(|at| at <= now)
            {
                if let Role::Sink(sink) = &mut direction.role {
                    sink.give_up();
                    node.deliver(now, way);
                } else {
                    let (store, floor) = (&direction.store, direction.expired(now));
                    node.counters.given_up += floor / store.shape().symbols() - store.first();
                    node.advance(now, way, floor);
                }
            }
        }
    }

    fn next_event(way: &Direction) -> Option<Instant> {
        way.gives_up()
    }

    fn transmit(node: &mut Node, now: Instant, to: usize) -> Option<Item> {
        node.transmit(now, to)
    }

    fn next_send(node: &Node, to: usize) -> Option<Instant> {
        node.neighbours[to].sender.deadline(node.could_send(to))
    }

    /// What the hops carry and lose, each way: the relay's or source's right is out, its left back.
    fn counters(node: &Node, report: &mut dyn FnMut(&'static str, u64)) {
        let names = [
            ["hop_bytes_out", "hop_packets_out", "hop_lost_out", "hop_rate_kbit_out"],
            ["hop_bytes_back", "hop_packets_back", "hop_lost_back", "hop_rate_kbit_back"],
        ];
        for Neighbour { out, sender, .. } in &node.neighbours {
            let figures =
                [sender.bytes, sender.next(), sender.lost, sender.rate.rate().bits_per_sec() / 1000];
            for (name, figure) in names[*out].into_iter().zip(figures).filter(|&(_, figure)| figure > 0) {
                report(name, figure);
            }
        }
    }
}

impl Node {
    /// Gives up what all children have been served.
    fn follow_floor(&mut self, now: Instant, way: usize) {
        let children = waited_for(&self.neighbours, way, self.has_deadline(way));
        if let Some(floor) = children.map(|child| child.sender.floor()).min() {
            self.advance(now, way, floor);
        }
    }

    /// Nothing before `floor` is of use any more.
    fn advance(&mut self, now: Instant, way: usize, floor: u64) {
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

    fn deliver(&mut self, now: Instant, into: usize) {
        let Some(Direction { role: Role::Sink(sink), .. }) = &mut self.ways[into] else { return };
        let Some(edge) = &mut self.edge else { return };
        let counters = &mut self.counters;
        sink.deliver(|symbol| {
            counters.delivered += 1;
            counters.lost += symbol.missing;
            edge.take(now, symbol);
        });
        let next = sink.next();
        self.advance(now, into, next);
        if let Some(direction) = &mut self.ways[into] {
            direction.hold(now);
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
        node.ways[OUT] = node.mode.arriving(&node.config, &info, false);
        node.neighbours.iter_mut().for_each(|neighbour| neighbour.receiver.on_info(at(0), &info));
        node.advance(at(100), OUT, 0);
        let due = |node: &Node| [0, 1].map(|neighbour| node.neighbours[neighbour].receiver.due());
        assert_eq!(due(&node), [None, None], "it has not moved");
        node.advance(at(100), OUT, 16);
        assert_eq!(due(&node), [Some(at(150)), None], "the parent is told");
    }
}
