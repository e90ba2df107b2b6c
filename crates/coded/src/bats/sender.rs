//! The sending end of a hop: what one child lacks, and when it may be sent.

mod reports;

use std::collections::VecDeque;

use hopcast_core::{Duration, Instant, Stream, earliest};

use super::branch::Asks;
use super::bursts::Bursts;
use super::child::Child;
use super::counters::Counters;
use super::idle::Idle;
use super::margin::Margin;
use super::marks::Marks;
use super::need::Need;
use super::rate::{self, LinkRate};
use super::store::Store;

/// INFO is repeated while data is sent, ...
const INFO_EVERY: Duration = Duration::from_millis(250);
/// ... and more often while the round trip that it tells changes by such a share.
const INFO_CHANGED: Duration = Duration::from_millis(50);
const CHANGED: u64 = 4;
/// New symbols that may be sent before the child has granted any.
const FIRST_GRANT: u64 = 128;
/// How long to wait for news from a child that needs nothing, until everything is delivered.
const CONFIRMATION: Duration = Duration::from_millis(200);
/// So many packets are followed, as many as `rate` follows: probes are sent for as long as nobody answers.
const MOST_FLIGHTS: usize = 1 << 16;
/// Before a report comes, INFO goes with the first datagrams, and then with every so many.
const UNHEARD: u64 = 4;

/// What is sent, and what is known of the child that gets it.
#[derive(Debug)]
pub(super) struct Sender {
    pub(super) rate: LinkRate,
    /// Drawn when this node started.
    epoch: u32,
    next: u64,
    /// The batches of the packets that no report has covered yet; the last is that of packet `next - 1`.
    flights: VecDeque<u64>,
    needs: Vec<Need>,
    marks: Marks,
    /// How many packets the child needs that can be sent.
    backlog: u64,
    child: Option<Child<Bursts>>,
    /// The first batch that the child needs something of.
    base: u64,
    floor: u64,
    grant: Grant,
    /// How many rounds of repair a batch gets; `None` for as many as it takes.
    rounds: Option<u8>,
    margin: Margin,
    probe: Option<Instant>,
    /// When INFO was sent last, and the round trip that it told.
    info: Instant,
    told: Duration,
    /// Packets sent without any report.
    unheard: u64,
    /// That number when INFO was sent last.
    informed: Option<u64>,
    /// INFO has gone with the probe that is due.
    asked: bool,
    /// A probe has been sent, and no report has come since: every packet asks for one.
    asking: bool,
    /// Probes since the last report.
    probes: u32,
    idle: Option<Idle>,
    /// Bytes sent, and packets that were lost on the way, for the statistics.
    pub(super) bytes: u64,
    pub(super) lost: u64,
}

/// How much that is new a child may be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Grant {
    /// The symbols before this one.
    UpTo(u64),
    /// So many packets that it has not yet told of. Of several paths each carries some of the batches, so that numbers say
    /// nothing of how much there is.
    InFlight(u64),
}

/// A packet to be sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Packet {
    pub(super) batch: u64,
    pub(super) content: Content,
    pub(super) cause: Cause,
}

/// What it holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Content {
    /// The symbol of this index.
    Symbol(u8),
    /// A combination of what is held, from this packet on.
    Mix(u8),
}

/// Why a packet is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cause {
    /// Something new.
    First,
    /// The child reported that it lacks something.
    Repair,
    /// A hop with capacity to spare: ahead of need.
    Idle,
    /// No report has come for too long.
    Probe,
}

/// What a sender waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Wait {
    /// There is nothing that it does not know.
    Nothing,
    /// A report of what was sent, or a grant for what is to be.
    Report,
    /// The child has everything, but it has not been delivered yet: a child that is restarted meanwhile would need it
    /// again, and does not know whom to ask.
    Delivery,
}

impl Asks for Sender {
    fn unanswered(&self) -> u32 {
        self.probes
    }
}

impl Sender {
    pub(super) fn new(slack: Duration, mut random: Stream) -> Self {
        let epoch = random.bits() as u32;
        Self {
            rate: LinkRate::new(rate::Config { slack, ..rate::Config::default() }, random),
            epoch,
            next: 0,
            flights: VecDeque::new(),
            needs: Vec::new(),
            marks: Marks::new(0),
            backlog: 0,
            child: None,
            base: 0,
            floor: 0,
            grant: Grant::UpTo(0),
            rounds: None,
            margin: Margin::new(),
            probe: None,
            info: Instant::ZERO,
            told: Duration::ZERO,
            unheard: 0,
            informed: None,
            asked: false,
            asking: false,
            probes: 0,
            idle: None,
            bytes: 0,
            lost: 0,
        }
    }

    /// Begins with another session.
    pub(super) fn start(&mut self, store: &Store, rounds: Option<u8>, idle: bool, split: bool) {
        self.needs.clear();
        self.needs.resize_with(store.window() as usize, Need::default);
        self.marks = Marks::new(store.window());
        self.flights.iter_mut().for_each(|flight| *flight = u64::MAX);
        self.backlog = 0;
        self.child = None;
        (self.base, self.floor) = (store.first(), store.floor());
        self.grant =
            if split { Grant::InFlight(FIRST_GRANT) } else { Grant::UpTo(store.floor() + FIRST_GRANT) };
        self.rounds = rounds;
        self.probe = None;
        (self.unheard, self.informed) = (0, None);
        self.asked = false;
        self.idle = idle.then(Idle::default);
    }

    pub(super) const fn epoch(&self) -> u32 {
        self.epoch
    }

    pub(super) const fn backlog(&self) -> u64 {
        self.backlog
    }

    pub(super) const fn floor(&self) -> u64 {
        self.floor
    }

    /// What has been granted, for tests that fail to tell.
    #[cfg(test)]
    pub(super) const fn granted(&self) -> Grant {
        self.grant
    }

    /// How many rounds of repair there are, for tests.
    #[cfg(test)]
    pub(super) const fn rounds(&self) -> Option<u8> {
        self.rounds
    }

    /// Whether this symbol, which is new to the child, may be sent.
    pub(super) fn is_granted(&self, symbol: u64) -> bool {
        match self.grant {
            Grant::UpTo(limit) => symbol < limit,
            Grant::InFlight(most) => (self.flights.len() as u64) < most,
        }
    }

    /// Whether the child has been heard of.
    pub(super) const fn is_heard(&self) -> bool {
        self.child.is_some()
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
        let (rounds, reported) = (self.rounds, self.next - self.flights.len() as u64);
        let at = number % self.needs.len() as u64;
        let Self { needs, margin, .. } = self;
        let need = &mut needs[at as usize];
        let before = need.wanted();
        need.refresh(store.get(number).rank, rounds, reported, margin);
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

    /// Batches from `from` up to `to` are over; what was sent of each is counted.
    pub(super) fn forget(&mut self, from: u64, to: u64, counters: &mut Counters) {
        for number in from..to.min(from + self.needs.len() as u64) {
            let need = core::mem::take(self.need(number));
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

    /// What to send now, if anything.
    pub(super) fn choose(&mut self, now: Instant, store: &Store) -> Option<Packet> {
        if self.probe.is_some_and(|at| at <= now) {
            return self.choose_probe(store);
        }
        if !self.rate.may_send(now) {
            return None;
        }
        if self.backlog > 0
            && let Some((batch, content)) = self.next_need(store)
        {
            let first = self.need(batch).is_first(store.get(batch).rank);
            let cause = if first { Cause::First } else { Cause::Repair };
            return Some(Packet { batch, content, cause });
        }
        while let Some(batch) = self.idle.as_ref()?.due(now) {
            if store.holds(batch) && self.need(batch).is_unreported(store.get(batch).rank) {
                let content = Content::Mix(self.need(batch).mix_from(store.get(batch).rank));
                return Some(Packet { batch, content, cause: Cause::Idle });
            }
            self.idle.as_mut()?.done();
        }
        None
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

    /// The sequence number of the next packet.
    pub(super) const fn next(&self) -> u64 {
        self.next
    }

    /// Notes that a packet is sent. [`follow`](Self::follow) is to be called next.
    pub(super) fn on_sent(&mut self, packet: &Packet, store: &Store) {
        let sequence = self.next;
        self.next += 1;
        if self.flights.len() == MOST_FLIGHTS
            && let Some(batch) = self.pass_one(store)
        {
            self.refresh(store, batch);
        }
        self.flights.push_back(packet.batch);
        let rank = store.get(packet.batch).rank;
        let need = self.need(packet.batch);
        if let Content::Symbol(index) = packet.content {
            need.sent |= 1 << index;
        }
        need.on_sent(packet.cause, rank, sequence);
        self.refresh(store, packet.batch);
    }

    /// The oldest packet that no report has covered is covered, or forgotten; its batch.
    fn pass_one(&mut self, store: &Store) -> Option<u64> {
        let batch = self.flights.pop_front().filter(|&batch| store.holds(batch))?;
        let need = self.need(batch);
        need.in_flight = need.in_flight.saturating_sub(1);
        Some(batch)
    }

    /// Notes what the packet was that was just sent: its datagram had so many bytes; `more`: another could follow.
    pub(super) fn follow(&mut self, now: Instant, packet: &Packet, bytes: usize, more: bool) {
        let sequence = self.next - 1;
        self.rate.on_sent(now, sequence, bytes as u64, !more);
        self.bytes += bytes as u64;
        self.unheard += u64::from(self.child.is_none());
        match packet.cause {
            Cause::Probe => self.probed(now),
            Cause::First => {
                if let Some(idle) = &mut self.idle {
                    idle.on_sent(now, bytes, packet.batch, sequence, !more, &self.rate);
                }
            }
            Cause::Idle => {
                if let Some(idle) = &mut self.idle {
                    idle.done();
                }
            }
            Cause::Repair => {}
        }
    }

    /// The probe timeout has gone off, and a probe is sent, if only to ask.
    pub(super) fn probed(&mut self, now: Instant) {
        self.rate.on_probe(now);
        self.probes += 1;
        (self.asked, self.asking) = (false, true);
        self.probe = Some(now + self.patience());
    }

    pub(super) const fn is_asking(&self) -> bool {
        self.asking
    }

    /// Sees to it that a probe is sent if there is something to wait for.
    pub(super) fn arm(&mut self, now: Instant, waits_for: Wait) {
        let patience = match waits_for {
            Wait::Nothing => {
                self.probe = None;
                return;
            }
            Wait::Report => self.patience(),
            Wait::Delivery => self.patience() + CONFIRMATION,
        };
        self.probe = earliest(self.probe, Some(now + patience));
    }

    /// Whether anything is sent and not reported, or waits to be.
    pub(super) fn is_waiting(&self) -> bool {
        self.backlog > 0 || !self.flights.is_empty()
    }

    /// How long to wait for a report.
    fn patience(&self) -> Duration {
        let held = self.idle.as_ref().map_or(Duration::ZERO, |idle| idle.patience(self.rate.srtt()));
        self.rate.probe_timeout() + held
    }

    pub(super) fn probe_is_due(&self, now: Instant) -> bool {
        self.probe.is_some_and(|at| at <= now)
    }

    /// Whether INFO is to go with what is sent now.
    pub(super) fn info_is_due(&self, now: Instant) -> bool {
        if self.probe_is_due(now) {
            !self.asked
        } else if self.is_heard() {
            let round_trip = self.rate.srtt().unwrap_or_default();
            let changed = round_trip.abs_diff(self.told) > self.told / CHANGED;
            now >= self.info + if changed { INFO_CHANGED } else { INFO_EVERY }
        } else {
            let often = self.unheard < UNHEARD || self.unheard.is_multiple_of(2 * UNHEARD);
            often && self.informed != Some(self.unheard)
        }
    }

    pub(super) fn informed(&mut self, now: Instant) {
        (self.info, self.told) = (now, self.rate.srtt().unwrap_or_default());
        self.informed = Some(self.unheard);
        self.asked = self.probe_is_due(now);
    }

    /// When there is something to do next; `something`: there is data that the child may be sent.
    pub(super) fn deadline(&self, something: bool) -> Option<Instant> {
        let send = if something { self.rate.next_send() } else { None };
        let idle = self.idle.as_ref().and_then(Idle::deadline);
        let idle = idle.and_then(|at| self.rate.next_send().map(|send| at.max(send)));
        earliest(earliest(send, idle), self.probe)
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::rate::HopReport;
    use super::*;
    use crate::bats::Config;
    use crate::bats::store::Shape;
    use crate::bats::wire::Report;

    fn at(millis: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(millis)
    }

    fn begun() -> (Sender, Store) {
        let store = Store::new(Shape::begun(&Config::default(), u16::MAX), 64, 0);
        let mut sender = Sender::new(Duration::ZERO, Seed::new(1, 0).stream(&["sender"], 0));
        sender.start(&store, None, false, false);
        (sender, store)
    }

    /// The same, whose child has been heard.
    fn heard() -> (Sender, Store) {
        let (mut sender, store) = begun();
        let report = Report::example(sender.epoch());
        assert_eq!(sender.on_report(at(0), &report, &store, false), Ok(()));
        (sender, store)
    }

    #[test]
    fn info_goes_with_the_first_four_datagrams_and_then_with_every_eighth_until_a_report_comes() {
        let (mut sender, _) = begun();
        let mut told = Vec::new();
        for unheard in 0..30 {
            sender.unheard = unheard;
            if sender.info_is_due(at(0)) {
                told.push(unheard);
                sender.informed(at(0));
                assert!(!sender.info_is_due(at(0)), "once with each");
            }
        }
        assert_eq!(told, [0, 1, 2, 3, 8, 16, 24]);
    }

    #[test]
    fn info_is_repeated_every_quarter_of_a_second() {
        let (mut sender, _) = heard();
        sender.informed(at(1000));
        assert!(!sender.info_is_due(at(1249)) && sender.info_is_due(at(1250)));
    }

    #[test]
    fn info_is_repeated_every_50_ms_while_the_round_trip_is_a_quarter_off_what_it_told() {
        let (mut sender, _) = heard();
        sender.rate.on_sent(at(0), 0, 1000, true);
        assert_eq!(sender.rate.on_report(at(100), &HopReport::example()), Ok(()));
        assert_eq!(sender.rate.srtt(), Some(Duration::from_millis(100)));
        sender.informed(at(1000));
        assert_eq!(sender.told, Duration::from_millis(100));
        for (told, changed) in [(50, true), (79, true), (81, false), (100, false), (133, false), (134, true)]
        {
            sender.told = Duration::from_millis(told);
            assert_eq!(sender.info_is_due(at(1050)), changed, "{told}");
            assert!(!sender.info_is_due(at(1049)));
        }
    }

    #[test]
    fn who_waits_for_delivery_asks_200_ms_later_than_who_waits_for_a_report() {
        let due = |waits_for| {
            let (mut sender, _) = begun();
            sender.arm(at(10), waits_for);
            sender.probe
        };
        let report = due(Wait::Report).unwrap();
        assert_eq!(due(Wait::Delivery), Some(report + Duration::from_millis(200)));
        assert_eq!(due(Wait::Nothing), None);
    }

    #[test]
    fn after_six_probes_without_a_report_a_child_is_silent() {
        let (mut sender, _) = begun();
        for probes in 1..=6 {
            assert!(!sender.is_silent());
            sender.probed(at(probes * 1000));
        }
        assert!(sender.is_silent() && sender.is_asking());
    }
}
