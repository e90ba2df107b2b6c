//! Nodes whose hops do not tell each other ranks.

use hopcast_core::{Buffer, Duration, Instant, Stream};

use super::super::age::Age;
use super::super::branch::waited_for;
use super::super::child::Refused;
use super::super::config::Config;
use super::super::hop::OverHop as _;
use super::super::mode::{Mode, Place, Said};
use super::super::node::{self, INTO, OUT};
use super::super::packet::Packet;
use super::super::receiver::Receiver;
use super::super::shape::Shape;
use super::super::wire::{self, Data, EndToEndReport, Info, Report, Session};
use super::direction::{Arrived, BLOCK_BITS, Direction, Role};
use super::sender::Sender;

/// A node whose hops do not.
pub(in super::super) type Node = node::Node<Strict>;
pub(super) type Neighbour = node::Neighbour<Sender>;

/// The state of such a node besides.
pub(in super::super) struct Strict {
    /// The mark of our end-to-end reports.
    instance: u16,
}

/// Minimum time between two reports for the sake of what the sink has alone. Chosen: it is as long at each hop, so that
/// an end-to-end report of six takes 6 ms longer; shorter, and each packet of a repair makes a report.
pub(super) const NEWS_WAIT: Duration = Duration::from_millis(1);

/// Unit in which a budget is sent, in bytes: 16 bits express up to 1 MiB a batch. Chosen; a smaller unit expresses
/// less, a larger one is coarse for small batches.
pub(super) const BUDGET_UNIT: f64 = 16.0;

/// Packets that a sink lets its parent be ahead. It has a place for each, so that this only bounds what is under way:
/// as many as are at 1 Gbit/s and 100 ms. Chosen; with fewer, such a hop is not filled.
const SINK_ALLOWANCE: u64 = 8192;
/// Bytes of a full packet on the link: an Ethernet frame, 14 bytes of header and 1500 (IEEE 802.3, section
/// 3.2.7).
pub(super) const FULL_PACKET: u64 = 1514;

impl Mode for Strict {
    type Direction = Direction;
    type Sender = Sender;
    type Arrived = Arrived;

    // Without ranks, the packets of a batch are planned beforehand.
    const BUDGETED: bool = true;
    // Nothing waits for the losses of a burst: the source makes up for them with later batches.
    const BURST_ALLOWANCE: f64 = 0.0;
    // INFO, which asks too, goes with the first probe, and every packet asks from then on.
    const PROBES_ASK: bool = false;

    fn new(random: &mut Stream) -> Self {
        Self { instance: random.bits() as u16 }
    }

    fn sender(config: &Config, random: Stream) -> Sender {
        Sender::new(config.overhead > 0.0, config.slack, random)
    }

    fn source(config: &Config, session: Session) -> Option<Direction> {
        Direction::source(config, session)
    }

    fn arriving(&self, config: &Config, info: &Info, sink: bool) -> Option<Direction> {
        Direction::arriving(config, info, sink.then_some(self.instance))
    }

    fn session(direction: &Direction) -> (Session, Shape) {
        (direction.session, direction.shape)
    }

    fn age(direction: &Direction) -> Option<&Age> {
        direction.age.as_ref()
    }

    fn age_mut(direction: &mut Direction) -> Option<&mut Age> {
        direction.age.as_mut()
    }

    fn look_ahead(direction: &mut Direction, ahead: Option<Duration>, rest: Option<Duration>) {
        direction.look_ahead(ahead, rest);
    }

    fn packet(data: &Data<'_>, direction: &Direction) -> Option<Arrived> {
        Arrived::new(data, direction)
    }

    fn begin(node: &mut Node, child: usize) {
        let Neighbour { out, sender, branch, .. } = &mut node.neighbours[child];
        let Some(direction) = &node.directions[*out] else { return };
        sender.start(&direction.ring);
        if !branch.given_up {
            sender.refresh(&direction.ring, direction.ring.first()..direction.ring.end());
        }
    }

    fn learn(direction: &mut Direction, info: &Info) {
        direction.budget = info.budget.map_or(0.0, |budget| f64::from(budget) * BUDGET_UNIT);
    }

    fn skip_to(node: &mut Node, now: Instant, into: usize, floor: u64) {
        let Some(direction) = &mut node.directions[into] else { return };
        let first = floor / u64::from(direction.shape.block);
        if let Role::Relay = direction.role {
            direction.give_up_before(first);
            node.refresh(into, 0..0);
        } else if direction.age.is_none() {
            // With a deadline a sink gives up by itself what is too late.
            node.skip_blocks(now, into, first);
        }
    }

    fn reached(
        direction: &Direction,
        _report: &Report<'_>,
        end_to_end: Option<&EndToEndReport>,
        before: u64,
    ) -> Option<u64> {
        let first = wire::complete(end_to_end?.first, 24, before);
        direction.age.is_none().then(|| first.min(direction.ring.block() + 1))
    }

    fn on_given_up(node: &mut Node, now: Instant, out: usize) {
        node.on_end_to_end(now, out);
        node.refresh(out, 0..0);
    }

    fn on_report(
        node: &mut Node,
        now: Instant,
        from: usize,
        report: &Report<'_>,
        end_to_end: Option<&EndToEndReport>,
    ) -> Result<(), Refused> {
        let Neighbour { out, sender, .. } = &mut node.neighbours[from];
        let (out, taken) = (*out, sender.on_report(now, report));
        // The end-to-end report is older or newer by itself.
        if end_to_end.is_some_and(|end_to_end| sender.on_end_to_end(end_to_end)) {
            node.on_end_to_end(now, out);
        }
        taken
    }

    fn take(node: &mut Node, now: Instant, into: usize, packet: &Arrived, payload: Buffer) {
        let Some(direction) = &mut node.directions[into] else { return };
        direction.touched = now;
        if let Role::Sink(_) = direction.role {
            node.decode(now, into, packet, &payload);
            payload.recycle();
            return;
        }
        if !direction.is_in_reach(packet.block) {
            node.counters.beyond += 1;
            return;
        }
        let stamps = direction.stamps(packet, &payload);
        let made = direction.age.as_mut().zip(stamps).and_then(|(age, (_, last))| age.sent(now, last));
        let before = direction.ring.end();
        let (serial, over) = direction.ring.admit(packet.block, packet.header, packet.depth);
        let innovative = direction.ring.grow(serial, |batch| match packet.index {
            Some(index) => batch.push_symbol(index, payload),
            None => batch.push_coded(packet.vector, payload),
        });
        if innovative {
            direction.ring.made(serial, made.unwrap_or(now));
            node.counters.innovative += 1;
        } else {
            node.counters.redundant += 1;
        }
        for over in over.clone() {
            let rank = direction.ring.get(over).map_or(0, |slot| slot.batch.rank());
            node.counters.ranks[usize::from(rank)] += 1;
        }
        if direction.ring.end() > before {
            node.plan(into);
        }
        node.refresh(into, over);
        node.refresh(into, serial..serial + 1);
    }

    fn pass(node: &mut Node, now: Instant) {
        for out in [OUT, INTO] {
            let backlog = node.backlog(out);
            let Some(direction) = &mut node.directions[out] else { continue };
            let mut settled = 0..0;
            if direction.settles().is_some_and(|at| at <= now) {
                settled = direction.ring.settle();
            }
            let over = match &mut direction.role {
                Role::Source(source) => source.wake(now, &mut direction.ring, backlog > 0),
                Role::Relay => direction.expires().is_some_and(|at| at <= now),
                Role::Sink(_) => false,
            };
            if over {
                direction.drop_over();
                let expired = direction.drop_expired(now);
                let children = node.neighbours.iter().filter(|neighbour| neighbour.takes(out));
                let waited = |serial| children.clone().any(|child| child.sender.is_due(serial));
                node.counters.given_up += expired.filter(|&serial| waited(serial)).count() as u64;
            }
            if over || !settled.is_empty() {
                node.refresh(out, settled);
            }
            node.sink_passes(now, out);
        }
    }

    fn next_event(direction: &Direction) -> Option<Instant> {
        direction.next_event()
    }

    fn make(node: &mut Node, now: Instant, to: usize) {
        node.make(now, to);
    }

    fn choose(sender: &mut Sender, now: Instant, direction: &Direction) -> Option<Packet> {
        sender.choose(now, &direction.ring)
    }

    fn place(direction: &Direction, batch: u64) -> Option<Place<'_>> {
        let slot = direction.ring.get(batch)?;
        let block = u32::from(slot.depth) << BLOCK_BITS | slot.block as u32 & ((1 << BLOCK_BITS) - 1);
        Some(Place { batch: &slot.batch, block, header: slot.header })
    }

    fn on_sent(node: &mut Node, now: Instant, to: usize, packet: &Packet, bytes: usize) {
        let could = node.could_make(node.neighbours[to].out);
        let Neighbour { out, sender, .. } = &mut node.neighbours[to];
        if let Some(direction) = &node.directions[*out] {
            sender.on_sent(now, packet, &direction.ring, bytes, could);
        }
    }

    fn arm(node: &mut Node, now: Instant, to: usize) {
        let out = node.neighbours[to].out;
        // What is gone is to be announced, too.
        let tells =
            |direction: &Direction| direction.gone * u64::from(direction.shape.block) > direction.floor();
        // So is a child asked where others hold up what it could be sent: are they to blame, or are all cut off?
        let wants = node.directions[out].as_ref().is_some_and(tells) || node.has_more(out);
        node.neighbours[to].sender.arm(now, wants);
    }

    fn floor(direction: &Direction) -> u64 {
        direction.floor().max(direction.gone * u64::from(direction.shape.block))
    }

    fn budget(direction: &Direction) -> Option<u16> {
        // The cast saturates.
        Some((direction.budget / BUDGET_UNIT) as u16)
    }

    fn is_relay(direction: &Direction) -> bool {
        matches!(direction.role, Role::Relay)
    }

    fn packet_len(_way: &Direction) -> u64 {
        FULL_PACKET
    }

    fn position(_way: &Direction, receiver: &Receiver) -> Option<u64> {
        receiver.highest().map(|highest| highest + 1)
    }

    fn limit(direction: &Direction, receiver: &Receiver) -> u64 {
        let limit = if Self::is_relay(direction) { u64::from(u16::MAX) } else { SINK_ALLOWANCE };
        Self::position(direction, receiver).unwrap_or(0) + limit
    }

    fn report(
        _config: &Config,
        direction: &Direction,
        receiver: &mut Receiver,
        granted: u64,
        _list: &mut Vec<u8>,
    ) -> Option<Said> {
        receiver.granted = granted;
        let grant = (granted - Self::position(direction, receiver).unwrap_or(0)) as u16;
        Some(Said { floor: direction.floor() as u32, grant, base: 0, complete: true })
    }

    fn end_to_end(node: &mut Node, now: Instant, to: usize) -> Option<EndToEndReport> {
        node.end_to_end_for(now, to)
    }

    fn next_send(node: &Node, to: usize) -> Option<Instant> {
        let Neighbour { out, sender, branch, .. } = &node.neighbours[to];
        sender.deadline(!branch.given_up && node.could_make(*out))
    }
}

impl Node {
    /// A child's end-to-end report is news.
    fn on_end_to_end(&mut self, now: Instant, out: usize) {
        let Some(end_to_end) = self.end_to_end_of(out) else { return };
        let own = self.worst_hop(out);
        let Some(direction) = &mut self.directions[out] else { return };
        match &mut direction.role {
            Role::Source(source) => {
                if source.on_end_to_end(now, &end_to_end, own) {
                    direction.drop_over();
                }
                self.refresh(out, 0..0);
            }
            Role::Relay => {
                direction.pass(end_to_end.first);
                self.refresh(out, 0..0);
                for parent in self.neighbours.iter_mut().filter(|neighbour| neighbour.into == out) {
                    parent.receiver.report_at(now + NEWS_WAIT);
                }
            }
            Role::Sink(_) => {}
        }
    }

    /// A batch has begun: plans are brought up to date.
    pub(super) fn plan(&mut self, out: usize) {
        let Some(direction) = &mut self.directions[out] else { return };
        let children = || self.neighbours.iter().filter(|neighbour| neighbour.takes(out));
        if let Role::Source(source) = &direction.role {
            // All hops spend as many bytes, so that those with longer packets, as more of them are coded, are not
            // slower.
            let size = children().map(|child| child.sender.packet_size()).fold(0.0, f64::max);
            // Of a batch that is not whole, it is as much as it is of a batch.
            let whole = direction.shape.batch.symbols() as f64;
            direction.budget = source.path.budget() * size * direction.ring.mean().unwrap_or(whole) / whole;
        }
        let (symbols, budget) = (direction.shape.batch.symbols(), direction.spends());
        for neighbour in self.neighbours.iter_mut().filter(|neighbour| neighbour.out == out) {
            neighbour.sender.begin(&direction.ring, symbols, budget);
        }
    }

    /// Batches have changed.
    pub(super) fn refresh(&mut self, out: usize, serials: core::ops::Range<u64>) {
        let Some(direction) = &self.directions[out] else { return };
        for neighbour in self.neighbours.iter_mut().filter(|neighbour| neighbour.takes(out)) {
            neighbour.sender.refresh(&direction.ring, serials.clone());
        }
    }

    /// Number of packets that wait for the child that has the longest queue before it, of those that are waited for.
    pub(super) fn backlog(&self, out: usize) -> u64 {
        let children = waited_for(&self.neighbours, out, self.has_deadline(out));
        children.map(|child| child.sender.backlog()).max().unwrap_or(0)
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::*;
    use crate::bats::Config;

    #[test]
    fn what_the_sink_needs_is_passed_on_after_a_millisecond() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let [local, left, right] = [1, 2, 3].map(|last| ([10, 0, 0, last], 9000).into());
        let random = Seed::new(1, 0).stream(&["strict"], 0);
        let mut node = Node::relay(Config::strict(), local, &[left], &[right], random);
        let info = Info { budget: Some(0), ..Info::example() };
        node.directions[OUT] = Direction::arriving(&Config::strict(), &info, None);
        node.neighbours.iter_mut().for_each(|neighbour| neighbour.receiver.on_info(at(0), &info));
        assert!(node.neighbours[1].sender.on_end_to_end(&EndToEndReport::default()));
        node.on_end_to_end(at(10), OUT);
        assert_eq!([0, 1].map(|i| node.neighbours[i].receiver.due()), [Some(at(11)), None]);
    }
}
