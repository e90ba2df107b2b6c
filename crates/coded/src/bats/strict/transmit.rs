//! The source without rank feedback: packets are made when a child can be sent them; and what sinks have, on its way
//! back.

use hopcast_core::Instant;

use super::super::branch::waited_for;
use super::super::hop::OverHop as _;
use super::super::transmit::MAX_BACKLOG;
use super::super::wire::{EndToEndReport, HopQuality};
use super::direction::{Direction, Role};
use super::node::{Neighbour, Node};

impl Node {
    /// Makes a packet if the child can take it and nothing else is to be sent to it.
    pub(super) fn make(&mut self, now: Instant, to: usize) {
        let Neighbour { out, sender, branch, .. } = &self.neighbours[to];
        let out = *out;
        if branch.given_up
            || sender.backlog() > 0
            || !sender.is_ready(now)
            || sender.hop.probe_is_due(now)
            || !self.could_make(out)
        {
            return;
        }
        let (Some(direction), Some(edge)) = (&mut self.directions[out], &mut self.edge) else { return };
        let Role::Source(source) = &mut direction.role else { return };
        let before = direction.ring.end();
        let changed = match source.owes(edge.framing.has_data()) {
            Some(owed) => source.repair(now, &mut direction.ring, owed),
            None => {
                self.counters.symbols += 1;
                source.make(now, &mut direction.ring, |number, symbol| edge.framing.fill(now, number, symbol))
            }
        };
        direction.touched = now;
        let begun = direction.ring.end() > before;
        if begun {
            self.plan(out);
        }
        if let Some(changed) = changed {
            self.refresh(out, changed);
        }
    }

    /// Whether the source could make a packet for its children.
    pub(super) fn could_make(&self, out: usize) -> bool {
        self.has_more(out) && self.backlog(out) < MAX_BACKLOG
    }

    /// Whether the source has something to make, if no child were behind.
    pub(super) fn has_more(&self, out: usize) -> bool {
        let (Some(Direction { role: Role::Source(source), .. }), Some(edge)) =
            (&self.directions[out], &self.edge)
        else {
            return false;
        };
        let has_data = edge.framing.has_data();
        source.has_room() && has_data || source.owes(has_data).is_some()
    }

    /// The state of the sinks of a direction, as the children have reported it.
    pub(super) fn end_to_end_of(&self, out: usize) -> Option<EndToEndReport> {
        let children = waited_for(&self.neighbours, out, self.has_deadline(out));
        let mut reports = children.map(|child| child.sender.end_to_end());
        let first = reports.next()??;
        reports.try_fold(first, |all, other| other.map(|other| all.merge(&other)))
    }

    /// The hop to the child with the highest loss.
    pub(super) fn worst_hop(&self, out: usize) -> HopQuality {
        let children = self.neighbours.iter().filter(|neighbour| neighbour.takes(out));
        let hops = children.map(|child| child.sender.quality());
        hops.max_by(|one, other| one.loss().total_cmp(&other.loss())).unwrap_or_default()
    }

    /// The end-to-end report that goes to a parent.
    pub(super) fn end_to_end_for(&mut self, now: Instant, to: usize) -> Option<EndToEndReport> {
        let into = self.neighbours[to].into;
        match &mut self.directions[into].as_mut()?.role {
            Role::Sink(sink) => Some(sink.end_to_end(now)),
            Role::Relay => {
                let mut end_to_end = self.end_to_end_of(into)?;
                end_to_end.pass(self.worst_hop(into));
                Some(end_to_end)
            }
            Role::Source(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::{Buffer, Datagram, Duration, Item, Machine, Port, Seed};

    use super::super::super::mode::Mode as _;
    use super::super::super::node::OUT;
    use super::super::super::transmit::describe;
    use super::super::super::wire::{self, Data, Info, Writer};
    use super::super::node::Strict;
    use super::super::sender::Sender;
    use super::*;
    use crate::bats::Config;

    /// INFO of a session, with a budget in 16 bytes.
    fn info(budget: u16) -> Info {
        Info { budget: Some(budget), floor: 512, ..Info::example() }
    }

    #[test]
    fn a_budget_is_told_in_16_bytes() {
        let mut direction = Direction::arriving(&Config::strict(), &info(0), None).unwrap();
        Strict::learn(&mut direction, &info(1000));
        assert_eq!(direction.budget, 16_000.0);
        let sender = Sender::new(true, Duration::ZERO, Seed::new(1, 0).stream(&["strict"], 0));
        let told = describe::<Strict>(&direction, &sender, true);
        assert_eq!((told.budget, told.floor, told.block, told.symbol), (Some(1000), 512, 256, 1000));
        direction.budget = 1e9;
        assert_eq!(describe::<Strict>(&direction, &sender, false).budget, Some(u16::MAX));
    }

    #[test]
    fn a_sink_takes_8192_packets_beyond_the_last() {
        let [local, left] = [1, 2].map(|last| ([10, 0, 0, last], 9000).into());
        let random = Seed::new(1, 0).stream(&["strict"], 0);
        let node = Node::edge(Config::strict(), local, (local, left), &[left], random);
        let sink = Direction::arriving(&Config::strict(), &info(0), Some(1)).unwrap();
        assert_eq!(node.grant(0, &sink), 8192);
    }

    #[test]
    fn a_source_makes_nothing_new_while_a_child_is_64_packets_behind() {
        let [local, left, right] = [1, 2, 3].map(|last| ([10, 0, 0, last], 9000).into());
        let random = Seed::new(1, 0).stream(&["strict"], 0);
        let mut node = Node::edge(Config::strict(), local, (local, left), &[left, right], random);
        // The first takes whatever it is granted, the second what it may be sent before it has reported.
        node.neighbours[0].sender.hop.rate.unbind();
        for _ in 0..100 {
            let unit = Datagram::new(local, left, Buffer::zeroed(1400));
            node.handle(Instant::ZERO, Port::Above(0), Item::Datagram(unit));
        }
        while node.poll(Instant::ZERO).is_some() {}
        let [first, second] = [0, 1].map(|child| node.neighbours[child].sender.hop.next());
        assert_eq!(node.counters.symbols, first);
        assert_eq!((first - second, second < 20), (64, true), "{second} to the second");
    }

    #[test]
    fn a_parent_that_may_send_fewer_than_32_is_told_if_it_is_granted_16_more() {
        let [local, left, right] = [1, 2, 3].map(|last| ([10, 0, 0, last], 9000).into());
        let random = Seed::new(1, 0).stream(&["strict"], 0);
        let mut node = Node::relay(Config::strict(), local, &[left], &[right], random);
        node.directions[OUT] = Direction::arriving(&Config::strict(), &info(0), None);
        let data = Data { sequence: 1000, ..Data::example() };
        // Packet 1000 is the last; 128 more are granted as long as none waits.
        for (granted, told) in [(1001 + 31, true), (1001 + 32, false)] {
            let receiver = &mut node.neighbours[0].receiver;
            *receiver = super::super::super::receiver::Receiver::new(1);
            receiver.on_info(Instant::ZERO, &info(0));
            assert_eq!(receiver.on_data(Instant::ZERO, &data, 1000), Ok(()));
            receiver.granted = granted;
            let now = Instant::ZERO + Duration::from_micros(1);
            assert_ne!(receiver.due(), Some(now));
            node.grant_more(now, OUT);
            assert_eq!(node.neighbours[0].receiver.due() == Some(now), told, "{granted}");
        }
    }

    #[test]
    fn what_reports_take_is_counted() {
        let [local, left] = [1, 2].map(|last| ([10, 0, 0, last], 9000).into());
        let random = Seed::new(1, 0).stream(&["strict"], 0);
        let mut node = Node::edge(Config::strict(), local, (local, left), &[left], random);
        let asking = Info { ask: true, ..info(0) };
        let (mut reports, mut bytes) = (0, 0);
        for round in 0..3 {
            let mut payload = Buffer::zeroed(1 + asking.len());
            let mut writer = Writer::new(&mut payload);
            writer.u8(wire::MAGIC);
            asking.write(&mut writer);
            let now = Instant::ZERO + Duration::from_millis(10 * round);
            node.handle(now, Port::Below(0), Item::Datagram(Datagram::new(local, left, payload)));
            while let Some((_, Item::Datagram(report))) = node.poll(now) {
                reports += 1;
                // All but the byte that names the protocol.
                bytes += report.payload.len() as u64 - 1;
            }
            assert!(reports > round, "each is answered");
            assert_eq!((node.counters.reports_sent, node.counters.report_bytes), (reports, bytes));
        }
    }
}
