//! The sending end of a hop: what one child lacks, and when it may be sent.

mod reports;

use std::collections::VecDeque;

use hopcast_core::{Duration, Instant, Stream, earliest};

use super::super::bursts::Bursts;
use super::super::counters::Counters;
use super::super::hop::{FIRST_GRANT, HopSender, OverHop};
use super::super::packet::{Cause, Content, Packet};
use super::ahead::{self, Ahead, Limits};
use super::margin::Margin;
use super::marks::Marks;
use super::need::Need;
use super::store::Store;

/// Time to wait for news from a child that needs nothing, until everything is delivered. Chosen: the floor travels in
/// steps of up to 50 ms a hop; shorter, and probes ask for what comes by itself, longer, and a child that was restarted
/// is found later.
const CONFIRMATION: Duration = Duration::from_millis(200);
/// Probability that the last of so many rounds as are asked for leaves something out. Chosen: most batches are complete
/// before it, so that this is one in ten thousand of few; a smaller one costs packets in every last round.
const LAST_ROUND_SHORTFALL: f64 = 1e-4;
/// Maximum number of packets that are followed, as many as `rate` follows: probes are sent for as long as nobody
/// answers. Chosen: it bounds memory; with fewer, a report about the oldest finds nothing.
const MAX_FLIGHTS: usize = 1 << 16;

/// The sending end of a hop, and the needs of its child.
#[derive(Debug)]
pub(in super::super) struct Sender {
    pub(super) hop: HopSender<Bursts>,
    /// The batches of the packets that no report has covered yet; the last is that of the packet sent last.
    flights: VecDeque<u64>,
    needs: Vec<Need>,
    marks: Marks,
    /// Number of packets that the child needs and that can be sent.
    backlog: u64,
    /// The first batch that the child needs something of.
    base: u64,
    floor: u64,
    grant: Grant,
    /// Number of rounds of repair that a batch gets; `None` for as many as it takes.
    rounds: Option<u8>,
    margin: Margin,
    ahead: Ahead,
}

/// Amount of new data that a child may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grant {
    /// The symbols before this one.
    UpTo(u64),
    /// This number of packets that it has not yet reported. Of several paths each carries some of the batches, so that
    /// numbers say nothing of how much there is.
    InFlight(u64),
}

/// A reason for a sender to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// There is nothing that it does not know.
    Nothing,
    /// A report of packets that were sent, or a grant of further ones.
    Report,
    /// The child has everything, but it has not been delivered yet: a child that is restarted meanwhile would need it
    /// again, and does not know whom to ask.
    Delivery,
}

impl OverHop for Sender {
    type Losses = Bursts;

    fn hop(&self) -> &HopSender<Bursts> {
        &self.hop
    }

    fn hop_mut(&mut self) -> &mut HopSender<Bursts> {
        &mut self.hop
    }

    fn backlog(&self) -> u64 {
        self.backlog
    }

    fn probed(&mut self, now: Instant) {
        let held = self.held();
        self.hop.probed(now, held);
    }
}

impl Sender {
    pub(super) fn new(slack: Duration, random: Stream) -> Self {
        Self {
            hop: HopSender::new(slack, false, random),
            flights: VecDeque::new(),
            needs: Vec::new(),
            marks: Marks::new(0),
            backlog: 0,
            base: 0,
            floor: 0,
            grant: Grant::UpTo(0),
            rounds: None,
            margin: Margin::new([LAST_ROUND_SHORTFALL; 2]),
            ahead: Ahead::new(),
        }
    }

    /// Begins with another session.
    pub(super) fn start(&mut self, store: &Store, rounds: Option<u8>, limits: Limits, split: bool) {
        self.hop.start();
        self.needs.clear();
        self.needs.resize_with(store.window() as usize, Need::default);
        self.marks = Marks::new(store.window());
        self.flights.iter_mut().for_each(|flight| *flight = u64::MAX);
        self.backlog = 0;
        (self.base, self.floor) = (store.first(), store.floor());
        self.grant =
            if split { Grant::InFlight(FIRST_GRANT) } else { Grant::UpTo(store.floor() + FIRST_GRANT) };
        self.rounds = rounds;
        self.ahead.start(limits);
    }

    pub(super) const fn floor(&self) -> u64 {
        self.floor
    }

    /// The grant, for the messages of tests that fail.
    #[cfg(test)]
    pub(super) const fn granted(&self) -> Grant {
        self.grant
    }

    /// Number of rounds of repair, for tests.
    #[cfg(test)]
    pub(super) const fn rounds(&self) -> Option<u8> {
        self.rounds
    }

    /// Whether this symbol, which is new to the child, may be sent.
    pub(super) fn is_granted(&self, symbol: u64) -> bool {
        match self.grant {
            Grant::UpTo(limit) => symbol < limit,
            Grant::InFlight(limit) => (self.flights.len() as u64) < limit,
        }
    }

    fn need(&mut self, number: u64) -> &mut Need {
        let at = number % self.needs.len() as u64;
        &mut self.needs[at as usize]
    }

    /// Something has changed about a batch: finds out anew what the child needs of it.
    pub(super) fn refresh(&mut self, store: &Store, number: u64) {
        if !store.holds(number) {
            return;
        }
        let (rounds, reported) = (self.rounds, self.hop.next() - self.flights.len() as u64);
        let at = number % self.needs.len() as u64;
        let Self { needs, margin, ahead, .. } = self;
        let need = &mut needs[at as usize];
        let before = need.wanted();
        let own = store.get(number).rank;
        need.refresh(own, rounds, reported, margin);
        if need.guard.is_on() {
            let lacks = need.is_unreported(own);
            ahead.on_report(number, &mut need.guard, need.in_flight, lacks);
        }
        let after = need.wanted();
        self.backlog = self.backlog + u64::from(after) - u64::from(before);
        self.marks.set(number, after > 0);
    }

    /// A batch, of which nothing has been sent, goes to another child.
    pub(super) fn leave(&mut self, number: u64) {
        self.need(number).elsewhere = true;
    }

    /// Batches that went to other children go to this one too.
    pub(super) fn take_over(&mut self, store: &Store) {
        for number in self.base.max(store.first())..store.end() {
            if core::mem::take(&mut self.need(number).elsewhere) {
                self.refresh(store, number);
            }
        }
    }

    /// Batches from `from` up to `to` are over; the packets sent of each are counted.
    pub(super) fn forget(&mut self, from: u64, to: u64, counters: &mut Counters) {
        for number in from..to.min(from + self.needs.len() as u64) {
            let mut need = core::mem::take(self.need(number));
            self.ahead.drop(number, &mut need.guard);
            counters.batch_over(need.packets, need.reported());
            self.backlog -= u64::from(need.wanted());
            self.marks.set(number, false);
        }
        self.base = self.base.max(to);
    }

    /// The oldest batch of which the child needs something, if it may be sent.
    fn next_need(&self, store: &Store) -> Option<(u64, Content)> {
        let number = self.marks.first(self.base.max(store.first()), store.end())?;
        let (need, slot) = (&self.needs[(number % store.window()) as usize], store.get(number));
        let begin = number * store.shape().symbols();
        let unsent = slot.batch.symbols() & !need.sent;
        if unsent != 0 {
            let index = unsent.trailing_zeros();
            let granted = self.is_granted(begin + u64::from(index));
            return granted.then_some((number, Content::Symbol(index as u8)));
        }
        let granted = matches!(self.grant, Grant::InFlight(_)) || self.is_granted(begin);
        granted.then_some((number, Content::Mix(need.mix_from(slot.rank))))
    }

    /// Whether the child needs something that may be sent.
    pub(super) fn has_something(&self, store: &Store) -> bool {
        self.backlog > 0 && self.next_need(store).is_some()
    }

    /// The packet to send now, if there is any.
    pub(super) fn choose(&mut self, now: Instant, store: &Store) -> Option<Packet> {
        if self.hop.probe_is_due(now) {
            return self.choose_probe(store);
        }
        if !self.hop.rate.may_send(now) {
            return None;
        }
        let new = if self.backlog > 0 { self.next_need(store) } else { None };
        while let Some(batch) = self.ahead.due(now, new.is_some()) {
            let at = batch % self.needs.len() as u64;
            let Self { ahead, needs, hop, .. } = self;
            let need = &mut needs[at as usize];
            let rank = store.get(batch).rank;
            if !store.holds(batch) || !need.is_unreported(rank) {
                ahead.drop(batch, &mut need.guard);
            } else if ahead.wants(now, batch, &mut need.guard, &hop.rate) {
                let content = Content::Mix(need.mix_from(rank));
                return Some(Packet { batch, content, cause: Cause::Ahead });
            }
        }
        let (batch, content) = new?;
        let first = self.need(batch).is_first(store.get(batch).rank);
        let cause = if first { Cause::First } else { Cause::Repair };
        Some(Packet { batch, content, cause })
    }

    /// A packet that says something new to the child if anything does.
    fn choose_probe(&self, store: &Store) -> Option<Packet> {
        let open = |&number: &u64| {
            let need = &self.needs[(number % store.window()) as usize];
            !need.done && !need.elsewhere && store.get(number).batch.rank() > 0
        };
        let batch = (self.base.max(store.first())..store.end()).find(open)?;
        let need = &self.needs[(batch % store.window()) as usize];
        let content = Content::Mix(need.mix_from(store.get(batch).rank));
        Some(Packet { batch, content, cause: Cause::Probe })
    }

    /// Notes that a packet is sent; when its content was made. [`follow`](Self::follow) is to be called next.
    pub(super) fn on_sent(&mut self, packet: &Packet, store: &Store) -> Instant {
        let sequence = self.hop.number();
        if self.flights.len() == MAX_FLIGHTS
            && let Some(batch) = self.pass_one(store)
        {
            self.refresh(store, batch);
        }
        self.flights.push_back(packet.batch);
        let slot = store.get(packet.batch);
        let rank = slot.rank;
        let need = self.need(packet.batch);
        let made = slot.made(need.brings(rank));
        if let Content::Symbol(index) = packet.content {
            need.sent |= 1 << index;
        }
        need.on_sent(packet.cause, rank, sequence);
        self.refresh(store, packet.batch);
        made
    }

    /// The oldest packet that no report has covered is covered, or forgotten; its batch.
    fn pass_one(&mut self, store: &Store) -> Option<u64> {
        let batch = self.flights.pop_front().filter(|&batch| store.holds(batch))?;
        let need = self.need(batch);
        need.in_flight = need.in_flight.saturating_sub(1);
        Some(batch)
    }

    /// Notes the kind of the packet that was just sent.
    pub(super) fn follow(&mut self, now: Instant, packet: &Packet, sent: &ahead::Packet) {
        self.hop.sent(now, sent.bytes, !sent.more);
        let at = packet.batch % self.needs.len() as u64;
        let Self { ahead, needs, hop, .. } = self;
        let guarded = (packet.batch, &mut needs[at as usize].guard);
        match packet.cause {
            Cause::Probe => self.probed(now),
            Cause::First | Cause::Repair => ahead.on_sent(now, guarded, sent, &hop.rate),
            Cause::Ahead => ahead.on_repair(now, guarded, sent.bytes, &hop.rate),
        }
    }

    /// Somebody has set a deadline, at which data of this age is too old.
    pub(super) fn aim(&mut self, deadline: Option<Duration>) {
        self.ahead.aim(deadline.zip(self.hop.to_end()));
    }

    /// Sees to it that a probe is sent if there is something to wait for.
    pub(super) fn arm(&mut self, now: Instant, waits_for: Wait) {
        let patience = match waits_for {
            Wait::Nothing => {
                self.hop.set_probe(None);
                return;
            }
            Wait::Report => self.patience(),
            Wait::Delivery => self.patience() + CONFIRMATION,
        };
        self.hop.set_probe(earliest(self.hop.probe(), Some(now + patience)));
    }

    /// Whether anything is sent and not reported, or waits to be.
    pub(super) fn is_waiting(&self) -> bool {
        self.backlog > 0 || !self.flights.is_empty()
    }

    /// Time to wait for a report.
    fn patience(&self) -> Duration {
        self.hop.rate.probe_timeout() + self.held()
    }

    /// Time that a report may be held back besides.
    fn held(&self) -> Duration {
        self.ahead.patience(self.hop.rate.srtt())
    }

    /// Time at which there is something to do next; `something`: there is data that the child may be sent.
    pub(super) fn deadline(&self, something: bool) -> Option<Instant> {
        let send = if something { self.hop.rate.next_send() } else { None };
        let ahead = self.ahead.deadline();
        let ahead = ahead.and_then(|at| self.hop.rate.next_send().map(|send| at.max(send)));
        earliest(earliest(send, ahead), self.hop.probe())
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::*;
    use crate::bats::Config;
    use crate::bats::shape::Shape;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn begun() -> (Sender, Store) {
        let store = Store::new(Shape::begun(&Config::default(), u16::MAX), 64, 0);
        let mut sender = Sender::new(Duration::ZERO, Seed::new(1, 0).stream(&["sender"], 0));
        sender.start(&store, None, Limits::default(), false);
        (sender, store)
    }

    #[test]
    fn who_waits_for_delivery_asks_200_ms_later_than_who_waits_for_a_report() {
        let due = |waits_for| {
            let (mut sender, _) = begun();
            sender.arm(at(10), waits_for);
            sender.hop.probe()
        };
        let report = due(Wait::Report).unwrap();
        assert_eq!(due(Wait::Delivery), Some(report + Duration::from_millis(200)));
        assert_eq!(due(Wait::Nothing), None);
    }
}
