//! The node as sender: which datagram is next, and what goes into it.

use hopcast_core::{Buffer, Datagram, Instant, Item};

use super::super::batch::{Kind, Mix};
use super::super::branch::waited_for;
use super::super::transmit::vector;
use super::super::wire::{self, Coding, Data, Info, Report, Writer};
use super::account::{Account, Hop};
use super::hop::{Packet, Sender};
use super::node::{BUDGET_UNIT, Neighbour, Node};
use super::ring::Slot;
use super::way::{BLOCK_BITS, Role, Way};

/// A relay lets its parent be so many packets ahead of what it can pass on, besides those of a round trip.
const ALLOWANCE: u64 = 128;
/// A sink lets it be so many ahead.
const SINK_ALLOWANCE: u64 = 8192;
/// When its parent may send fewer than this, and could be granted more, it is told at once.
const SHORT: u64 = 32;
/// A source makes nothing new while a child is so many packets behind.
const BEHIND: u64 = 64;
/// A packet on the link, about.
const PACKET: u64 = 1514;

impl Node {
    /// The next datagram for a neighbour, if there is any now.
    pub(super) fn transmit(&mut self, now: Instant, to: usize) -> Option<Item> {
        self.make(now, to);
        let Neighbour { out, sender, receiver, branch, .. } = &mut self.neighbours[to];
        let out = *out;
        let (mut packet, mut info) = (None, None);
        if let Some(way) = &self.ways[out] {
            let probing = sender.probe_is_due(now);
            packet = if branch.given_up { None } else { sender.choose(now, &way.ring) };
            if (probing || packet.is_some()) && sender.info_is_due(now) {
                info = Some(describe(way, sender, probing));
            }
            if probing && packet.is_none() {
                sender.probed(now);
            }
        }
        let due = receiver.due().is_some_and(|due| due <= now);
        let wants_report = due || packet.is_some() && receiver.is_welcome(now);
        if packet.is_none() && info.is_none() && !wants_report {
            // What is gone is to be told, too.
            let tells = self.ways[out]
                .as_ref()
                .is_some_and(|way| way.gone * u64::from(way.shape.block) > way.floor());
            // So is a child asked where others hold up what it could be sent: are they to blame, or are all cut off?
            let wants = tells || self.has_more(out);
            self.neighbours[to].sender.arm(now, wants);
            return None;
        }
        let report = if wants_report { self.report(now, to) } else { None };
        let report = report.map(|report| (report, self.account_for(now, to)));
        let datagram = self.assemble(now, to, report.as_ref(), info.as_ref(), packet);
        self.grant_more(now, out);
        let address = self.neighbours[to].address;
        Some(Item::Datagram(Datagram { local: self.local, remote: address, payload: datagram? }))
    }

    /// Makes a packet if the child can take it and nothing else is to be sent to it.
    fn make(&mut self, now: Instant, to: usize) {
        let Neighbour { out, sender, branch, .. } = &self.neighbours[to];
        let out = *out;
        if branch.given_up
            || sender.backlog() > 0
            || !sender.is_ready(now)
            || sender.probe_is_due(now)
            || !self.could_make(out)
        {
            return;
        }
        let (Some(way), Some(edge)) = (&mut self.ways[out], &mut self.edge) else { return };
        let Role::Source(source) = &mut way.role else { return };
        let before = way.ring.end();
        let changed = match source.owes(edge.framing.has_data()) {
            Some(owed) => source.repair(now, &mut way.ring, owed),
            None => {
                self.counters.symbols += 1;
                source.make(now, &mut way.ring, |number, symbol| edge.framing.fill(now, number, symbol))
            }
        };
        way.touched = now;
        let begun = way.ring.end() > before;
        if begun {
            self.plan(out);
        }
        if let Some(changed) = changed {
            self.refresh(out, changed);
        }
    }

    /// Whether the source could make a packet for its children.
    pub(super) fn could_make(&self, out: usize) -> bool {
        self.has_more(out) && self.backlog(out) < BEHIND
    }

    /// Whether the source has something to make, if no child were behind.
    fn has_more(&self, out: usize) -> bool {
        let (Some(Way { role: Role::Source(source), .. }), Some(edge)) = (&self.ways[out], &self.edge) else {
            return false;
        };
        let has_data = edge.framing.has_data();
        source.has_room() && has_data || source.owes(has_data).is_some()
    }

    /// What the sinks of a way have, as the children have told it.
    pub(super) fn account_of(&self, out: usize) -> Option<Account> {
        let children = waited_for(&self.neighbours, out, self.has_deadline(out));
        let mut accounts = children.map(|child| child.sender.account());
        let first = accounts.next()??;
        accounts.try_fold(first, |all, other| other.map(|other| all.merge(&other)))
    }

    /// The hop to a child that loses the most.
    pub(super) fn worst_hop(&self, out: usize) -> Hop {
        let children = self.neighbours.iter().filter(|neighbour| neighbour.takes(out));
        let hops = children.map(|child| child.sender.hop());
        hops.max_by(|one, other| one.loss().total_cmp(&other.loss())).unwrap_or_default()
    }

    /// The account that goes to a parent.
    fn account_for(&mut self, now: Instant, to: usize) -> Option<Account> {
        let into = self.neighbours[to].into;
        match &mut self.ways[into].as_mut()?.role {
            Role::Sink(sink) => Some(sink.account(now)),
            Role::Relay => {
                let mut account = self.account_of(into)?;
                account.pass(self.worst_hop(into));
                Some(account)
            }
            Role::Source(_) => None,
        }
    }

    /// Makes the report for a parent.
    fn report(&mut self, now: Instant, to: usize) -> Option<Report<'static>> {
        let into = self.neighbours[to].into;
        let way = self.ways[into].as_ref()?;
        let grant = self.grant(to, way);
        let receiver = &mut self.neighbours[to].receiver;
        receiver.granted = receiver.highest().map_or(0, |highest| highest + 1) + grant;
        let report = receiver.report(now, way.session.mark)?;
        Some(Report { floor: way.floor() as u32, grant: grant as u16, ..report })
    }

    /// How many packets a parent may send.
    fn grant(&self, parent: usize, way: &Way) -> u64 {
        let Neighbour { into, receiver, .. } = &self.neighbours[parent];
        let Role::Relay = way.role else { return SINK_ALLOWANCE };
        let horizon = (receiver.round_trip() + receiver.interval() * 2).as_secs_f64();
        let ahead = waited_for(&self.neighbours, *into, way.age.is_some()).map(|child| {
            let rate = child.sender.rate.rate().bits_per_sec() as f64;
            allowance(rate, horizon).saturating_sub(child.sender.backlog())
        });
        ahead.min().unwrap_or(0).min(u64::from(u16::MAX))
    }

    /// Something of a way was passed on: if a parent has run short of grants, it is told of new ones.
    fn grant_more(&mut self, now: Instant, way: usize) {
        let Some(direction) = &self.ways[way] else { return };
        if !matches!(direction.role, Role::Relay) {
            return;
        }
        for parent in 0..self.neighbours.len() {
            let Neighbour { into, receiver, .. } = &self.neighbours[parent];
            let Some(highest) = receiver.highest() else { continue };
            if *into == way
                && receiver.granted < highest + 1 + SHORT
                && highest + 1 + self.grant(parent, direction) >= receiver.granted + SHORT / 2
            {
                self.neighbours[parent].receiver.report_at(now);
            }
        }
    }

    /// Puts a datagram together. A packet that does not fit beside the rest is left for the next one.
    fn assemble(
        &mut self,
        now: Instant,
        to: usize,
        report: Option<&(Report<'_>, Option<Account>)>,
        info: Option<&Info>,
        packet: Option<Packet>,
    ) -> Option<Buffer> {
        let reports =
            report.map_or(0, |(report, account)| report.len() + account.map_or(0, |account| account.len()));
        let control = 1 + reports + info.map_or(0, Info::len);
        let mut mix = Mix::default();
        let way = self.ways[self.neighbours[to].out].as_ref();
        let chosen =
            way.zip(packet).and_then(|(way, packet)| Some((way, packet, way.ring.get(packet.serial)?)));
        if let Some((_, Packet { row: None, .. }, slot)) = chosen {
            mix = slot.batch.mix(0, &mut self.coefficients);
        }
        let frame = chosen.map(|(way, packet, slot)| {
            let frame = compose(way, (&packet, slot), &self.neighbours[to].sender, &mix);
            (way, packet, slot, frame)
        });
        let limit = usize::from(self.config.datagram);
        let fits = |data: &Data<'_>, payload| control == 1 || control + data.header_len() + payload <= limit;
        let frame = frame.filter(|(_, _, _, (data, payload))| fits(data, *payload));
        let total =
            control + frame.as_ref().map_or(0, |(_, _, _, (data, payload))| data.header_len() + payload);
        if total == 1 {
            return None;
        }
        let mut datagram = Buffer::zeroed(total);
        let mut writer = Writer::new(&mut datagram);
        writer.u8(wire::MAGIC);
        if let Some((report, account)) = report {
            report.write(&mut writer);
            if let Some(account) = account {
                account.write(&mut writer);
            }
            self.counters.reports_sent += 1;
            self.counters.report_bytes += reports as u64;
        }
        if let Some(info) = info {
            info.write(&mut writer);
            self.neighbours[to].sender.informed(now);
            self.counters.info_bytes += info.len() as u64;
        }
        if let Some((way, packet, slot, (data, payload))) = frame {
            data.write_header(payload, &mut writer);
            match packet.row.and_then(|row| slot.batch.row(row)) {
                Some((_, payload)) => writer.put(payload),
                None => slot.batch.write(&mix, writer.rest()),
            }
            self.counters.sent(packet.cause, &data, payload);
            let could = self.could_make(self.neighbours[to].out);
            self.neighbours[to].sender.on_sent(now, &packet, &way.ring, total, could);
        }
        Some(datagram)
    }
}

/// How many packets a parent may be ahead of a child of this rate, in bits per second, that tells of them after `horizon`
/// seconds.
fn allowance(rate: f64, horizon: f64) -> u64 {
    (rate / (PACKET * 8) as f64 * horizon) as u64 + ALLOWANCE
}

/// INFO about a way.
pub(super) fn describe(way: &Way, sender: &Sender, ask: bool) -> Info {
    let round_trip = sender.rate.srtt().map_or(0, |srtt| srtt.as_micros().clamp(1, u64::from(u32::MAX)));
    let info = Info {
        session: way.session,
        echo: None,
        batch: way.shape.batch,
        block: way.shape.block,
        symbol: way.shape.symbol,
        epoch: sender.epoch(),
        round_trip: round_trip as u32,
        deadline: None,
        fixed: false,
        elapsed: 0,
        // The cast saturates.
        budget: Some((way.budget / BUDGET_UNIT) as u16),
        ask,
        floor: way.floor().max(way.gone * u64::from(way.shape.block)),
    };
    info.timed(way.age.as_ref(), sender.rate.min_rtt())
}

/// The frame of a packet, and how long its payload is.
fn compose<'a>(
    way: &Way,
    (packet, slot): (&Packet, &'a Slot),
    sender: &Sender,
    mix: &'a Mix,
) -> (Data<'a>, usize) {
    let symbols = way.shape.batch.symbols();
    let (coding, len) = match packet.row.and_then(|row| slot.batch.row(row)) {
        Some((Kind::Symbol(index), payload)) => (Coding::Symbol(*index), payload.len()),
        Some((Kind::Coded(coefficients), payload)) => (vector(&coefficients[..symbols]), payload.len()),
        None => (vector(&mix.vector[..symbols]), mix.len),
    };
    let (trimmed, len) = wire::trim(len, usize::from(way.shape.symbol));
    let data = Data {
        session: way.session.mark,
        epoch: sender.epoch() as u8,
        sequence: sender.next() as u32 & 0xFF_FFFF,
        block: u32::from(slot.depth) << BLOCK_BITS | slot.block as u32 & ((1 << BLOCK_BITS) - 1),
        header: slot.header,
        coding,
        ask: sender.is_asking(),
        trimmed,
        payload: &[],
    };
    (data, len)
}

#[cfg(test)]
mod tests {
    use hopcast_core::{Duration, Machine, Port, Seed};

    use super::super::super::mode::Mode as _;
    use super::super::super::node::OUT;
    use super::super::node::Strict;
    use super::*;
    use crate::bats::Config;

    #[test]
    fn a_parent_may_be_ahead_by_what_passes_until_it_hears_and_128_packets() {
        assert_eq!(allowance(0.0, 0.02), 128);
        // 1000 full frames in a second, of which 20.5 pass in 20.5 ms.
        assert_eq!(allowance(1514.0 * 8.0 * 1000.0, 0.0205), 20 + 128);
    }

    /// INFO of a session, with a budget in 16 bytes.
    fn info(budget: u16) -> Info {
        Info { budget: Some(budget), floor: 512, ..Info::example() }
    }

    #[test]
    fn a_budget_is_told_in_16_bytes() {
        let mut way = Way::arriving(&Config::strict(), &info(0), None).unwrap();
        Strict::learn(&mut way, &info(1000));
        assert_eq!(way.budget, 16_000.0);
        let sender = Sender::new(true, Duration::ZERO, Seed::new(1, 0).stream(&["strict"], 0));
        let told = describe(&way, &sender, true);
        assert_eq!((told.budget, told.floor, told.block, told.symbol), (Some(1000), 512, 256, 1000));
        way.budget = 1e9;
        assert_eq!(describe(&way, &sender, false).budget, Some(u16::MAX));
    }

    #[test]
    fn a_sink_takes_8192_packets_beyond_the_last() {
        let [local, left] = [1, 2].map(|last| ([10, 0, 0, last], 9000).into());
        let random = Seed::new(1, 0).stream(&["strict"], 0);
        let node = Node::edge(Config::strict(), local, (local, left), &[left], random);
        let sink = Way::arriving(&Config::strict(), &info(0), Some(1)).unwrap();
        assert_eq!(node.grant(0, &sink), 8192);
    }

    #[test]
    fn a_source_makes_nothing_new_while_a_child_is_64_packets_behind() {
        let [local, left, right] = [1, 2, 3].map(|last| ([10, 0, 0, last], 9000).into());
        let random = Seed::new(1, 0).stream(&["strict"], 0);
        let mut node = Node::edge(Config::strict(), local, (local, left), &[left, right], random);
        // The first takes whatever it is granted, the second what it may be sent before it has reported.
        node.neighbours[0].sender.rate.unbind();
        for _ in 0..100 {
            let unit = Datagram { local, remote: left, payload: Buffer::zeroed(1400) };
            node.handle(Instant::ZERO, Port::Above(0), Item::Datagram(unit));
        }
        while node.poll(Instant::ZERO).is_some() {}
        let [first, second] = [0, 1].map(|child| node.neighbours[child].sender.next());
        assert_eq!(node.counters.symbols, first);
        assert_eq!((first - second, second < 20), (64, true), "{second} to the second");
    }

    #[test]
    fn a_parent_that_may_send_fewer_than_32_is_told_if_it_is_granted_16_more() {
        let [local, left, right] = [1, 2, 3].map(|last| ([10, 0, 0, last], 9000).into());
        let random = Seed::new(1, 0).stream(&["strict"], 0);
        let mut node = Node::relay(Config::strict(), local, &[left], &[right], random);
        node.ways[OUT] = Way::arriving(&Config::strict(), &info(0), None);
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
            node.handle(now, Port::Below(0), Item::Datagram(Datagram { local, remote: left, payload }));
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
