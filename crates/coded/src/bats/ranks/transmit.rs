//! The source with rank feedback: symbols are made when a child can be sent them.

use hopcast_core::Instant;

use super::super::branch::waited_for;
use super::super::hop::OverHop as _;
use super::super::transmit::MAX_BACKLOG;
use super::direction::Role;
use super::node::{Neighbour, Node};
use super::sender::Wait;

impl Node {
    /// Makes the next symbol if the child can take it and nothing else is to be sent to it.
    pub(super) fn make(&mut self, now: Instant, to: usize) {
        if !self.edge.as_ref().is_some_and(|edge| edge.framing.has_data()) {
            return;
        }
        let Neighbour { out, sender, .. } = &self.neighbours[to];
        let out = *out;
        let Some(direction) = &self.directions[out] else { return };
        if !sender.hop.rate.may_send(now)
            || sender.hop.probe_is_due(now)
            || sender.has_something(&direction.store)
        {
            return;
        }
        // Where each batch takes one path, what is left of the last one is made first, for the path that it takes.
        while self.may_make(to) && self.make_symbol(now, to).is_some() {
            let Neighbour { out, sender, .. } = &self.neighbours[to];
            if self.directions[*out].as_ref().is_none_or(|direction| sender.has_something(&direction.store)) {
                return;
            }
        }
    }

    /// Makes a symbol, if there is data, because a child could be sent one; `None` if there is none.
    fn make_symbol(&mut self, now: Instant, to: usize) -> Option<()> {
        let out = self.neighbours[to].out;
        let (direction, edge) = (self.directions[out].as_mut()?, self.edge.as_mut()?);
        let begins = direction.next()?.is_multiple_of(direction.store.shape().symbols());
        let made = edge.framing.oldest(now);
        let number = direction.make(now, made, |number, symbol| edge.framing.fill(now, number, symbol))?;
        self.counters.symbols += 1;
        if begins {
            self.mode.owner = to;
        }
        let whose = if self.config.split { self.mode.owner } else { to };
        for (i, neighbour) in self.neighbours.iter_mut().enumerate().filter(|(_, other)| other.takes(out)) {
            if self.config.split && begins && i != whose {
                neighbour.sender.leave(number);
            }
            neighbour.sender.refresh(&direction.store, number);
        }
        Some(())
    }

    /// Whether a symbol may be made because a child could be sent one.
    fn may_make(&self, to: usize) -> bool {
        let Neighbour { out, sender, branch, .. } = &self.neighbours[to];
        if branch.given_up || !self.edge.as_ref().is_some_and(|edge| edge.framing.has_data()) {
            return false;
        }
        let Some((direction, next)) =
            self.directions[*out].as_ref().and_then(|direction| Some((direction, direction.next()?)))
        else {
            return false;
        };
        let ready = |child: &Neighbour| child.sender.is_granted(next) && child.sender.backlog() < MAX_BACKLOG;
        if self.config.split {
            let begins = next.is_multiple_of(direction.store.shape().symbols());
            let whose = if begins { to } else { self.mode.owner };
            !sender.hop.is_silent() && ready(&self.neighbours[whose])
        } else {
            ready(&self.neighbours[to])
                && waited_for(&self.neighbours, *out, direction.age.is_some()).all(ready)
        }
    }

    /// Whether there is data for a neighbour that it may be sent as soon as its link allows.
    pub(in super::super) fn could_send(&self, to: usize) -> bool {
        let neighbour = &self.neighbours[to];
        let something = self.directions[neighbour.out]
            .as_ref()
            .is_some_and(|direction| neighbour.sender.has_something(&direction.store));
        something || self.may_make(to)
    }

    /// One of several paths seems to be dead: its share of the data is sent over the others.
    pub(super) fn go_round(&mut self, dead: usize) {
        let out = self.neighbours[dead].out;
        let Some(direction) = &self.directions[out] else { return };
        for (i, neighbour) in self.neighbours.iter_mut().enumerate() {
            if neighbour.out == out && i != dead {
                neighbour.sender.take_over(&direction.store);
            }
        }
        self.mode.owner = (0..self.neighbours.len())
            .find(|&i| self.neighbours[i].out == out && !self.neighbours[i].sender.hop.is_silent())
            .unwrap_or(self.mode.owner);
    }

    /// Nothing can be sent now: sees to it that a lost report does not stop everything.
    pub(super) fn arm(&mut self, now: Instant, to: usize) {
        let neighbour = &mut self.neighbours[to];
        let Some(direction) = &self.directions[neighbour.out] else { return };
        let has_data = matches!(direction.role, Role::Source(_))
            && self.edge.as_ref().is_some_and(|edge| edge.framing.has_data());
        // What is gone is to be announced, too.
        let undelivered =
            direction.store.floor() < direction.store.top().max(direction.gone) && !direction.is_over(now);
        let waits_for = if has_data || undelivered && neighbour.sender.is_waiting() {
            Wait::Report
        } else if undelivered {
            Wait::Delivery
        } else {
            Wait::Nothing
        };
        neighbour.sender.arm(now, waits_for);
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use hopcast_core::{Buffer, Datagram, Duration, Item, Machine, Port, Seed};

    use super::super::super::config::{BatchSize, Config};
    use super::super::super::mode::Mode as _;
    use super::super::super::node::OUT;
    use super::super::super::wire::{self, Info};
    use super::*;

    const NOW: Instant = Instant::ZERO;

    fn address(last: u8) -> SocketAddr {
        ([10, 0, 0, last], 9000).into()
    }

    fn random() -> hopcast_core::Stream {
        Seed::new(1, 0).stream(&["transmit"], 0)
    }

    /// An edge with children 2 and up.
    fn edge(children: &[SocketAddr]) -> Node {
        Node::edge(Config::default(), address(1), (address(1), children[0]), children, random())
    }

    /// Gives it units that fill a symbol each, or almost.
    fn give(node: &mut Node, units: usize) {
        for _ in 0..units {
            let payload = Buffer::zeroed(1400);
            let unit = Datagram::new(address(1), address(2), payload);
            node.handle(NOW, Port::Above(0), Item::Datagram(unit));
        }
    }

    /// The packets that it sends now: to whom, and whether they ask for a report.
    fn sent(node: &mut Node, now: Instant) -> Vec<(SocketAddr, bool)> {
        let symbol = wire::symbol_len(1472, BatchSize::M16);
        let datagrams = core::iter::from_fn(|| node.poll(now)).filter_map(|(_, item)| match item {
            Item::Datagram(datagram) => Some(datagram),
            _ => None,
        });
        let asks = |datagram: Datagram| {
            let frames = wire::parse(&datagram.payload, |_| Some(symbol)).expect("what it made itself");
            frames.data.map(|data| (datagram.remote, data.ask))
        };
        datagrams.filter_map(asks).collect()
    }

    #[test]
    fn a_packet_asks_for_a_report_from_the_first_probe_on() {
        let mut node = edge(&[address(2)]);
        give(&mut node, 1);
        let mut now = NOW;
        assert_eq!(sent(&mut node, now), [(address(2), false)]);
        for probe in 0..3 {
            now = node.deadline().expect("a probe");
            assert_eq!(sent(&mut node, now), [(address(2), true)], "probe {probe}");
        }
        give(&mut node, 2);
        now += Duration::from_millis(1);
        assert!(sent(&mut node, now).contains(&(address(2), true)), "as nobody has answered");
    }

    #[test]
    fn a_source_makes_nothing_new_while_a_child_is_64_packets_behind() {
        let mut node = edge(&[address(2), address(3)]);
        // The first takes whatever it is granted, the second what it may be sent before it has reported.
        node.neighbours[0].sender.hop.rate.unbind();
        give(&mut node, 100);
        let packets = sent(&mut node, NOW);
        let to = |child| packets.iter().filter(|(to, _)| *to == address(child)).count();
        assert_eq!((to(2) - to(3), to(3) < 20), (64, true), "{} to the second", to(3));
    }

    #[test]
    fn a_parent_that_may_send_fewer_than_32_is_told_if_it_is_granted_16_more() {
        // What a relay grants that knows nothing of its child, and one that has place for four batches of four.
        let (much, little) = ((BatchSize::M16, 1024), (BatchSize::M4, 4));
        for ((batch, window), granted, told) in
            [(much, 31, true), (much, 32, false), (little, 0, true), (little, 1, false)]
        {
            let config = Config { batch, window, ..Config::default() };
            let mut node = Node::relay(config, address(1), &[address(2)], &[address(3)], random());
            let info = Info { batch, ..Info::example() };
            node.directions[OUT] = node.mode.arriving(&node.config, &info, false);
            node.neighbours[0].receiver.on_info(NOW, &info);
            node.neighbours[0].receiver.granted = granted;
            node.grant_more(NOW, OUT);
            let due = node.neighbours[0].receiver.due();
            assert_eq!(due, told.then_some(NOW), "{granted} granted, a window of {window}");
        }
    }
}
