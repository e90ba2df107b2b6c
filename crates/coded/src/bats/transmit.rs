//! The node as sender: which datagram is next, and what goes into it.

use hopcast_core::{Buffer, Datagram, Instant, Item};

use super::batch::Mix;
use super::branch::{Asks as _, waited_for};
use super::direction::{Direction, Role};
use super::ranks::{Neighbour, Node};
use super::sender::{Cause, Content, Packet, Sender, Wait};
use super::wire::{self, BatchHeader, Coding, Data, Info, Report, Writer};

/// A relay lets its parent be so many symbols ahead of what it can pass on, besides those of a round trip.
const ALLOWANCE: u64 = 128;
/// And for each packet of a mean burst of losses so many more, of reports or of data, ...
const BURST_ALLOWANCE: f64 = 128.0;
/// ... but not more than pass in so many seconds: a hop that is cut off for a while must not leave the next one idle.
const MOST_ALLOWANCE: f64 = 0.04;
/// Single losses are runs too, sometimes of two.
const BURSTS: f64 = 1.5;
/// When its parent may send fewer than this, and could be granted more, it is told at once.
const SHORT: u64 = 32;
/// A source of several children makes nothing new while one of them is so many packets behind.
const BEHIND: u64 = 64;
/// What a packet is on the link besides its symbol, about.
const AROUND: u64 = 75;

impl Node {
    /// The next datagram for a neighbour, if there is any now.
    pub(super) fn transmit(&mut self, now: Instant, to: usize) -> Option<Item> {
        self.make(now, to);
        let Neighbour { out, sender, receiver, branch, .. } = &mut self.neighbours[to];
        let out = *out;
        let mut packet = None;
        let (mut info, mut dead) = (None, false);
        if let Some(way) = &self.ways[out] {
            let probing = sender.probe_is_due(now);
            packet = if branch.given_up { None } else { sender.choose(now, &way.store) };
            if (probing || packet.is_some()) && sender.info_is_due(now) {
                info = Some(describe(way, sender, probing));
            }
            if probing && packet.is_none() {
                sender.probed(now);
            }
            dead = probing && self.config.split && sender.is_silent();
        }
        let due = receiver.due().is_some_and(|due| due <= now);
        let wants_report = due || packet.is_some() && receiver.is_welcome(now);
        if dead {
            self.go_round(to);
        }
        if packet.is_none() && info.is_none() && !wants_report {
            self.arm(now, to);
            return None;
        }
        let mut list = core::mem::take(&mut self.mode.list);
        let report = if wants_report { self.report(now, to, &mut list) } else { None };
        let datagram = self.assemble(now, to, report.as_ref(), info.as_ref(), packet);
        self.mode.list = list;
        let Neighbour { address, out, .. } = self.neighbours[to];
        self.grant_more(now, out);
        Some(Item::Datagram(Datagram { local: self.local, remote: address, payload: datagram? }))
    }

    /// Makes the next symbol if the child can take it and nothing else is to be sent to it.
    fn make(&mut self, now: Instant, to: usize) {
        let Neighbour { out, sender, .. } = &self.neighbours[to];
        let out = *out;
        let Some(way) = &self.ways[out] else { return };
        if !sender.rate.may_send(now) || sender.probe_is_due(now) || sender.has_something(&way.store) {
            return;
        }
        // Where each batch takes one path, what is left of the last one is made first, for the path that it takes.
        while self.may_make(to) && self.make_symbol(now, to).is_some() {
            let Neighbour { out, sender, .. } = &self.neighbours[to];
            if self.ways[*out].as_ref().is_none_or(|way| sender.has_something(&way.store)) {
                return;
            }
        }
    }

    /// Makes a symbol, if there is data, because a child could be sent one. Whose it is.
    fn make_symbol(&mut self, now: Instant, to: usize) -> Option<usize> {
        let out = self.neighbours[to].out;
        let (way, edge) = (self.ways[out].as_mut()?, self.edge.as_mut()?);
        let begins = way.next()?.is_multiple_of(way.store.shape().symbols());
        let number = way.make(now, |number, symbol| edge.framing.fill(now, number, symbol))?;
        self.counters.symbols += 1;
        if begins {
            self.mode.owner = to;
        }
        let whose = if self.config.split { self.mode.owner } else { to };
        for (i, neighbour) in self.neighbours.iter_mut().enumerate().filter(|(_, other)| other.takes(out)) {
            if self.config.split && begins && i != whose {
                neighbour.sender.leave(number);
            }
            neighbour.sender.refresh(&way.store, number);
        }
        Some(whose)
    }

    /// Whether a symbol may be made because a child could be sent one.
    fn may_make(&self, to: usize) -> bool {
        let Neighbour { out, sender, branch, .. } = &self.neighbours[to];
        if branch.given_up || !self.edge.as_ref().is_some_and(|edge| edge.framing.has_data()) {
            return false;
        }
        let Some((way, next)) = self.ways[*out].as_ref().and_then(|way| Some((way, way.next()?))) else {
            return false;
        };
        let ready = |child: &Neighbour| child.sender.is_granted(next) && child.sender.backlog() < BEHIND;
        if self.config.split {
            let begins = next.is_multiple_of(way.store.shape().symbols());
            let whose = if begins { to } else { self.mode.owner };
            !sender.is_silent() && ready(&self.neighbours[whose])
        } else {
            ready(&self.neighbours[to]) && waited_for(&self.neighbours, *out, way.age.is_some()).all(ready)
        }
    }

    /// Whether there is data for a neighbour that it may be sent as soon as its link allows.
    pub(super) fn could_send(&self, to: usize) -> bool {
        let neighbour = &self.neighbours[to];
        let something =
            self.ways[neighbour.out].as_ref().is_some_and(|way| neighbour.sender.has_something(&way.store));
        something || self.may_make(to)
    }

    /// One of several paths seems to be dead: what it was to carry goes over the others.
    fn go_round(&mut self, dead: usize) {
        let out = self.neighbours[dead].out;
        let Some(way) = &self.ways[out] else { return };
        for (i, neighbour) in self.neighbours.iter_mut().enumerate() {
            if neighbour.out == out && i != dead {
                neighbour.sender.take_over(&way.store);
            }
        }
        self.mode.owner = (0..self.neighbours.len())
            .find(|&i| self.neighbours[i].out == out && !self.neighbours[i].sender.is_silent())
            .unwrap_or(self.mode.owner);
    }

    /// Nothing can be sent now: sees to it that a lost report does not stop everything.
    fn arm(&mut self, now: Instant, to: usize) {
        let neighbour = &mut self.neighbours[to];
        let Some(way) = &self.ways[neighbour.out] else { return };
        let has_data = matches!(way.role, Role::Source(_))
            && self.edge.as_ref().is_some_and(|edge| edge.framing.has_data());
        // What is gone is to be told, too.
        let undelivered = way.store.floor() < way.store.top().max(way.gone) && !way.is_over(now);
        let waits_for = if has_data || undelivered && neighbour.sender.is_waiting() {
            Wait::Report
        } else if undelivered {
            Wait::Delivery
        } else {
            Wait::Nothing
        };
        neighbour.sender.arm(now, waits_for);
    }

    /// Makes the report for a parent.
    fn report<'a>(&mut self, now: Instant, to: usize, list: &'a mut Vec<u8>) -> Option<Report<'a>> {
        let into = self.neighbours[to].into;
        let way = self.ways[into].as_ref()?;
        let (store, granted) = (&way.store, grant(&self.neighbours, to, way));
        let room =
            usize::from(self.config.datagram).saturating_sub(1 + wire::REPORT_LEN + wire::LONGEST_INFO);
        list.clear();
        let complete = store.list(list, room.max(1));
        let receiver = &mut self.neighbours[to].receiver;
        receiver.granted = receiver.granted.max(granted);
        let grant = match self.config.split {
            true => granted.saturating_sub(store.top()),
            false => receiver.granted.saturating_sub(store.floor()),
        };
        let grant = grant.min(u64::from(u16::MAX)) as u16;
        let report = receiver.report(now, way.session.mark)?;
        let (floor, base) = (store.floor() as u32, (store.base() - store.first()) as u16);
        Some(Report { floor, grant, base, complete, list, ..report })
    }

    /// Puts a datagram together. A packet that does not fit beside the rest is left for the next one.
    fn assemble(
        &mut self,
        now: Instant,
        to: usize,
        report: Option<&Report<'_>>,
        info: Option<&Info>,
        packet: Option<Packet>,
    ) -> Option<Buffer> {
        let control = 1 + report.map_or(0, Report::len) + info.map_or(0, Info::len);
        let mut mix = Mix::default();
        let way = self.ways[self.neighbours[to].out].as_ref();
        if let (Some(way), Some(Packet { batch, content: Content::Mix(first), .. })) = (way, packet) {
            mix = way.store.get(batch).batch.mix(first, &mut self.coefficients);
        }
        let frame = way.zip(packet).map(|(way, packet)| {
            let frame = compose(way, &packet, &self.neighbours[to].sender, &mix);
            (way, packet, frame)
        });
        let limit = usize::from(self.config.datagram);
        let fits = |data: &Data<'_>, payload| control == 1 || control + data.header_len() + payload <= limit;
        let frame = frame.filter(|(_, _, (data, payload))| fits(data, *payload));
        let total = control + frame.as_ref().map_or(0, |(_, _, (data, payload))| data.header_len() + payload);
        if total == 1 {
            return None;
        }
        let mut datagram = Buffer::zeroed(total);
        let mut writer = Writer::new(&mut datagram);
        writer.u8(wire::MAGIC);
        if let Some(report) = report {
            report.write(&mut writer);
            self.counters.reports_sent += 1;
            self.counters.report_bytes += report.len() as u64;
        }
        if let Some(info) = info {
            info.write(&mut writer);
            self.neighbours[to].sender.informed(now);
            self.counters.info_bytes += info.len() as u64;
        }
        if let Some((way, packet, (data, payload))) = frame {
            data.write_header(payload, &mut writer);
            let batch = &way.store.get(packet.batch).batch;
            match packet.content {
                Content::Symbol(index) => writer.put(batch.symbol(index).unwrap_or_default()),
                Content::Mix(_) => batch.write(&mix, writer.rest()),
            }
            self.counters.sent(packet.cause, &data, payload);
            self.neighbours[to].sender.on_sent(&packet, &way.store);
            let more = self.could_send(to);
            self.neighbours[to].sender.follow(now, &packet, total, more);
        }
        Some(datagram)
    }

    /// Something of a way was passed on: if a parent has run short of grants, it is told of new ones.
    fn grant_more(&mut self, now: Instant, way: usize) {
        let Some(direction) = &self.ways[way] else { return };
        if !matches!(direction.role, Role::Relay) {
            return;
        }
        for parent in 0..self.neighbours.len() {
            let Neighbour { into, receiver, .. } = &self.neighbours[parent];
            if *into == way && receiver.granted < direction.store.top() + SHORT {
                let granted = grant(&self.neighbours, parent, direction);
                if granted >= receiver.granted + SHORT / 2 {
                    self.neighbours[parent].receiver.report_at(now);
                }
            }
        }
    }
}

/// Up to which symbol a parent may send.
fn grant(neighbours: &[Neighbour], parent: usize, way: &Direction) -> u64 {
    let Neighbour { into, receiver, .. } = &neighbours[parent];
    let Role::Relay = way.role else { return way.store.limit() };
    let horizon = (receiver.round_trip() + receiver.interval() * 2).as_secs_f64();
    let ahead = waited_for(neighbours, *into, way.age.is_some()).map(|child| {
        let drain = packets(child.sender.rate.rate().bits_per_sec() as f64, way.store.shape().symbol);
        let burst = child.sender.rate.mean_burst().max(receiver.mean_burst());
        allowance(drain, horizon, burst).saturating_sub(child.sender.backlog())
    });
    (way.store.top() + ahead.min().unwrap_or(0)).min(way.store.limit())
}

/// How many packets with symbols of so many bytes a rate in bits per second is.
fn packets(rate: f64, symbol: u16) -> f64 {
    rate / ((u64::from(symbol) + AROUND) * 8) as f64
}

/// How many symbols a parent may be ahead of a child that takes `drain` of them in a second and tells of them after `horizon`
/// seconds, where losses come in bursts of this mean length.
fn allowance(drain: f64, horizon: f64, burst: f64) -> u64 {
    let bursts = ((burst - BURSTS).max(0.0) * BURST_ALLOWANCE).min(MOST_ALLOWANCE * drain);
    (drain * horizon + bursts) as u64 + ALLOWANCE
}

/// INFO about a way.
pub(super) fn describe(way: &Direction, sender: &Sender, ask: bool) -> Info {
    let shape = way.store.shape();
    let round_trip = sender.rate.srtt().map_or(0, |srtt| srtt.as_micros().clamp(1, u64::from(u32::MAX)));
    let info = Info {
        session: way.session,
        echo: None,
        batch: shape.batch,
        block: shape.block,
        symbol: shape.symbol,
        epoch: sender.epoch(),
        round_trip: round_trip as u32,
        deadline: None,
        fixed: false,
        elapsed: 0,
        budget: None,
        ask,
        floor: way.store.floor().max(way.gone),
    };
    info.timed(way.age.as_ref(), sender.rate.min_rtt())
}

/// The frame of a packet, and how long its payload is.
fn compose<'a>(way: &Direction, packet: &Packet, sender: &Sender, mix: &'a Mix) -> (Data<'a>, usize) {
    let slot = way.store.get(packet.batch);
    let shape = way.store.shape();
    let (coding, len) = match packet.content {
        Content::Symbol(index) => (Coding::Symbol(index), slot.batch.symbol(index).map_or(0, <[u8]>::len)),
        Content::Mix(_) => (vector(&mix.vector[..shape.batch.symbols()]), mix.len),
    };
    let (trimmed, len) = wire::trim(len, usize::from(shape.symbol));
    let data = Data {
        session: way.session.mark,
        epoch: sender.epoch() as u8,
        sequence: sender.next() as u32 & 0xFF_FFFF,
        block: (packet.batch / shape.batches()) as u32 & 0xFF_FFFF,
        header: BatchHeader {
            block: shape.block,
            batch: shape.batch,
            id: (packet.batch % shape.batches()) as u16,
        },
        coding,
        ask: packet.cause == Cause::Probe || sender.is_asking(),
        trimmed,
        payload: &[],
    };
    (data, len)
}

/// A vector as it is sent: without the zeros at its ends, if that is shorter.
pub(super) fn vector(all: &[u8]) -> Coding<'_> {
    let some = |&coefficient: &u8| coefficient != 0;
    let first = all.iter().position(some).unwrap_or(0);
    let end = all.iter().rposition(some).map_or(1, |last| last + 1);
    if end - first + 2 < all.len() {
        Coding::Vector { first: first as u8, vector: &all[first..end] }
    } else {
        Coding::Vector { first: 0, vector: all }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use hopcast_core::{Duration, Machine, Port, Seed};

    use super::super::config::{BatchSize, Config};
    use super::super::mode::Mode as _;
    use super::super::node::OUT;
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
            let unit = Datagram { local: address(1), remote: address(2), payload };
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
        node.neighbours[0].sender.rate.unbind();
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
            node.ways[OUT] = node.mode.arriving(&node.config, &info, false);
            node.neighbours[0].receiver.on_info(NOW, &info);
            node.neighbours[0].receiver.granted = granted;
            node.grant_more(NOW, OUT);
            let due = node.neighbours[0].receiver.due();
            assert_eq!(due, told.then_some(NOW), "{granted} granted, a window of {window}");
        }
    }

    #[test]
    fn a_parent_may_be_ahead_by_what_passes_until_it_hears_and_128_symbols() {
        // 10,000 in a second, in 20 ms.
        for burst in [1.0, 1.25, 1.5] {
            assert_eq!(allowance(1e4, 0.02, burst), 200 + 128, "{burst}");
        }
        assert_eq!(allowance(0.0, 0.02, 1.0), 128);
    }

    #[test]
    fn where_losses_come_in_bursts_it_may_be_ahead_by_128_more_for_each_packet_of_one_but_by_no_more_than_40_ms()
     {
        assert_eq!(allowance(1e6, 0.0, 1.75), 128 + 32);
        assert_eq!(allowance(1e6, 0.0, 2.5), 128 + 128);
        assert_eq!(allowance(1e6, 0.0, 8.0), 128 + 832);
        assert_eq!(allowance(1e4, 0.0, 8.0), 128 + 400);
        assert_eq!(allowance(1e6, 0.0, 1e6), 128 + 40_000);
    }

    #[test]
    fn a_packet_is_its_symbol_and_the_headers_of_all_layers() {
        // Ethernet, IPv4, UDP; the protocol, DATA's header with a vector of 16.
        let around = 14 + 20 + 8 + 1 + 16 + 16;
        assert!((packets(1e8, 1439) - 1e8 / f64::from((1439 + around) * 8)).abs() < 1e-6);
    }
}
