//! A BATS relay in steady state allocates nothing for the datagrams that pass it. Without rank feedback it does for a
//! new plan of recoding, when what it measures of its hop has changed.

use std::net::SocketAddr;

use hopcast_coded::bats::{Config, Delivery, Node};
use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Machine, Port, Rate, Seed};
use hopcast_counting::{Counting, allocations};
use hopcast_link::{Config as Cable, Direction, Event, Link, Loss, PointToPoint, Queue, QueueLimit};

#[global_allocator]
static COUNTING: Counting = Counting;

const RELAY: usize = 1;
/// Time that a full frame takes on a link, about.
const FRAME: Duration = Duration::from_micros(120);

fn address(node: usize) -> SocketAddr {
    ([10, 0, 0, node as u8], 7000).into()
}

/// The link after a node: 100 Mbit/s, 2 ms, a queue of 64, and every seventh packet is lost: in turn, so that
/// there is a steady state.
fn link(after: u64) -> PointToPoint {
    let direction = Direction {
        rate: Some(Rate::from_mbit(100)),
        delay: Duration::from_millis(2),
        queue: Queue::DropTail { limit: QueueLimit::Packets(64) },
        loss: Loss::Trace([false, false, false, false, false, false, true].into()),
        ..Direction::default()
    };
    let stream = |name| Seed::new(1, after).stream(&[name], 0);
    let cable = Cable { forward: direction.clone(), backward: direction, ..Cable::default() };
    PointToPoint::new(cable, [stream("there"), stream("back")])
}

/// An edge, a relay and an edge.
struct Path {
    now: Instant,
    nodes: [Node; 3],
    /// Each after the node of its number.
    links: [PointToPoint; 2],
    delivered: u64,
    /// Calls of the relay, with a datagram that has come or for one to send, and those in which it has allocated.
    calls: u64,
    allocating: u64,
}

impl Path {
    fn new(config: &Config) -> Self {
        let random = |node| Seed::new(1, 0).stream(&["node"], node);
        let ends = [(address(10), address(12)), (address(12), address(10))];
        let edge = |at: usize, end| {
            Node::edge(config.clone(), address(at), ends[end], &[address(RELAY)], random(at as u64))
        };
        let relay =
            Node::relay(config.clone(), address(RELAY), &[address(0)], &[address(2)], random(RELAY as u64));
        Self {
            now: Instant::ZERO,
            nodes: [edge(0, 0), relay, edge(2, 1)],
            links: [link(0), link(1)],
            delivered: 0,
            calls: 0,
            allocating: 0,
        }
    }

    /// A node acts, and hands over what it has to; if it is the relay, its allocations are counted.
    fn act(&mut self, node: usize, act: impl FnOnce(&mut Node)) {
        let mut act = Some(act);
        loop {
            let (now, acting) = (self.now, &mut self.nodes[node]);
            let mut handed = None;
            let allocated = allocations(|| {
                if let Some(act) = act.take() {
                    act(acting);
                }
                handed = acting.poll(now);
            });
            if node == RELAY {
                self.calls += 1;
                self.allocating += u64::from(allocated > 0);
            }
            match handed {
                Some((Port::Below(_), Item::Datagram(Datagram { remote, payload, .. }))) => {
                    let to = (0..3).find(|&to| address(to) == remote).expect("a neighbour");
                    self.links[node.min(to)].offer(now, usize::from(node > to), payload);
                }
                Some((_, item)) => {
                    self.delivered += 1;
                    if let Item::Datagram(unit) = item {
                        unit.payload.recycle();
                    }
                }
                None => return,
            }
        }
    }

    /// Gives the first edge units of 1200 bytes, 40 % of what the links carry, until `end`.
    fn run(&mut self, end: Instant) {
        let mut next = self.now;
        while self.now < end {
            let arrival = self.links.iter().filter_map(PointToPoint::deadline).min();
            let wake = self.nodes.iter().filter_map(Node::deadline).min();
            self.now = [arrival, wake].into_iter().flatten().fold(next, Instant::min).max(self.now);
            let now = self.now;
            if now == next {
                next += FRAME * 2;
                let payload = Buffer::zeroed(1200);
                let unit = Datagram::new(address(10), address(12), payload);
                self.act(0, |edge| edge.handle(now, Port::Above(0), Item::Datagram(unit)));
            }
            for link in 0..2 {
                self.links[link].wake(now);
                while let Some(event) = self.links[link].poll(now) {
                    let Event::Delivered { from, to, frame: payload, .. } = event else { continue };
                    let (local, remote) = (address(link + to), address(link + from));
                    let datagram = Datagram::new(local, remote, payload);
                    self.act(link + to, |node| node.handle(now, Port::Below(0), Item::Datagram(datagram)));
                }
            }
            for node in 0..3 {
                if self.nodes[node].deadline().is_some_and(|at| at <= now) {
                    self.act(node, |node| node.wake(now));
                }
            }
        }
    }
}

/// Calls in which the relay allocates, and all calls, after every batch of its window has been used.
fn steady(config: &Config) -> (u64, u64) {
    let mut path = Path::new(&Config { window: 128, ..config.clone() });
    path.run(Instant::ZERO + Duration::from_secs(2));
    assert!(path.allocating > 100, "allocations are counted");
    let delivered = path.delivered;
    (path.calls, path.allocating) = (0, 0);
    path.run(Instant::ZERO + Duration::from_secs(4));
    assert!(path.delivered > delivered + 5000, "{} units", path.delivered - delivered);
    assert!(path.calls > 20_000, "{} calls", path.calls);
    (path.allocating, path.calls)
}

#[test]
fn with_rank_feedback_no_datagram_allocates() {
    for delivery in [Delivery::Reliable, Delivery::DEADLINE] {
        let (allocating, calls) = steady(&Config { delivery, ..Config::default() });
        assert_eq!(allocating, 0, "of {calls} calls, {delivery:?}");
    }
}

#[test]
fn without_rank_feedback_plans_allocate_and_no_datagrams() {
    for delivery in [Delivery::Reliable, Delivery::DEADLINE] {
        let (allocating, calls) = steady(&Config { delivery, ..Config::strict() });
        // A plan is made for a new batch, of which there is one in a hundred calls.
        assert!(allocating * 100 < calls, "{allocating} of {calls} calls, {delivery:?}");
    }
}
