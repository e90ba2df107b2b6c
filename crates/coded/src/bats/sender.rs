//! The sending end of a hop: what one child lacks, and when it may be sent.

use std::collections::VecDeque;

use hopcast_core::{Duration, Instant, Stream, earliest};

use super::idle::Idle;
use super::margin::Margin;
use super::marks::Marks;
use super::need::Need;
use super::rate::{self, HopReport, LinkRate};
use super::store::Store;
use super::wire::{self, Ranks};

/// INFO is repeated while data is sent, ...
const INFO_EVERY: Duration = Duration::from_millis(250);
/// ... and more often while the round trip that it tells changes by such a share.
const INFO_CHANGED: Duration = Duration::from_millis(50);
const CHANGED: u64 = 4;
/// New symbols that may be sent before the child has granted any.
const FIRST_GRANT: u64 = 128;
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
    child: Option<Child>,
    /// The first batch that the child needs something of.
    base: u64,
    floor: u64,
    grant: u64,
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
    idle: Option<Idle>,
}

/// What the child said last, to make sense of what it says next.
#[derive(Clone, Copy, Debug)]
struct Child {
    instance: u16,
    number: u16,
    last: wire::Arrivals,
    highest: u64,
    packets: u64,
    bytes: u64,
    at: u64,
    /// Losses, and runs of them, fading.
    lost: f64,
    runs: f64,
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

/// Why a report is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// It is older than one that was taken.
    Stale,
    /// It speaks of what was never sent.
    Absurd,
}

impl Sender {
    pub(super) fn new(mut random: Stream) -> Self {
        let epoch = random.bits() as u32;
        Self {
            rate: LinkRate::new(rate::Config::default(), random),
            epoch,
            next: 0,
            flights: VecDeque::new(),
            needs: Vec::new(),
            marks: Marks::new(0),
            backlog: 0,
            child: None,
            base: 0,
            floor: 0,
            grant: 0,
            rounds: None,
            margin: Margin::new(),
            probe: None,
            info: Instant::ZERO,
            told: Duration::ZERO,
            unheard: 0,
            informed: None,
            asked: false,
            asking: false,
            idle: None,
        }
    }

    /// Begins with another session.
    pub(super) fn start(&mut self, store: &Store, rounds: Option<u8>, idle: bool) {
        self.needs.clear();
        self.needs.resize_with(store.window() as usize, Need::default);
        self.marks = Marks::new(store.window());
        self.flights.iter_mut().for_each(|flight| *flight = u64::MAX);
        self.backlog = 0;
        self.child = None;
        (self.base, self.floor) = (store.first(), store.floor());
        self.grant = store.floor() + FIRST_GRANT;
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

    pub(super) const fn grant(&self) -> u64 {
        self.grant
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

    /// Batches from `from` up to `to` are over.
    pub(super) fn forget(&mut self, from: u64, to: u64) {
        for number in from..to.min(from + self.needs.len() as u64) {
            let need = core::mem::take(self.need(number));
            self.backlog -= u64::from(need.wanted());
            self.marks.set(number, false);
        }
        self.base = self.base.max(to);
    }

    /// Takes a report.
    ///
    /// # Errors
    ///
    /// It is old or makes no sense; nothing has changed.
    pub(super) fn on_report(
        &mut self,
        now: Instant,
        report: &wire::Report<'_>,
        store: &Store,
    ) -> Result<(), Refused> {
        let symbols = store.shape().symbols();
        let floor = wire::complete(report.floor, 32, self.floor);
        let restarted = self.child.is_some_and(|child| child.instance != report.instance);
        let known = self.child.filter(|child| child.instance == report.instance);
        if known.is_some_and(|child| report.number.wrapping_sub(child.number) as i16 <= 0) {
            return Err(Refused::Stale);
        }
        if floor > store.end() * symbols {
            return Err(Refused::Absurd);
        }
        let arrivals = report.arrivals.filter(|_| report.epoch == self.epoch as u8);
        let highest = arrivals.map(|arrivals| wire::complete(arrivals.highest, 24, self.next));
        if highest.is_some_and(|highest| highest >= self.next) {
            return Err(Refused::Absurd);
        }
        if restarted {
            self.forgotten(store);
        }
        let mut child = known.unwrap_or(Child {
            instance: report.instance,
            number: report.number,
            last: arrivals.unwrap_or_default(),
            highest: highest.unwrap_or(0),
            packets: 0,
            bytes: 0,
            at: 0,
            lost: 0.0,
            runs: 0.0,
        });
        child.number = report.number;
        if let (Some(arrivals), Some(highest)) = (arrivals, highest) {
            child.add(&arrivals, highest);
            let hop = HopReport {
                highest,
                arrival_ns: child.at,
                hold: Duration::from_micros(u64::from(arrivals.hold)),
                received_packets: child.packets,
                received_bytes: child.bytes,
                mean_burst: if child.runs > 0.0 { child.lost / child.runs } else { 1.0 },
            };
            // What it cannot believe, or knows, it leaves alone.
            _ = self.rate.on_report(now, &hop);
            if self.rounds.is_some() {
                self.margin.update(self.rate.loss(), self.rate.mean_burst());
            }
        }
        self.child = Some(child);
        self.unheard = 0;
        self.floor = self.floor.max(floor);
        self.grant = self.grant.max(floor + u64::from(report.grant));
        self.take_ranks(report, floor / symbols + u64::from(report.base), highest, store);
        (self.probe, self.asking) = (None, false);
        if let Some(idle) = &mut self.idle {
            idle.on_report(highest.map_or(0, |highest| highest + 1));
        }
        Ok(())
    }

    /// The child was restarted and has nothing.
    fn forgotten(&mut self, store: &Store) {
        self.base = store.first();
        self.grant = store.floor() + FIRST_GRANT;
        self.flights.iter_mut().for_each(|flight| *flight = u64::MAX);
        for number in store.first()..store.end() {
            let before = core::mem::take(self.need(number)).wanted();
            self.backlog -= u64::from(before);
            self.refresh(store, number);
        }
    }

    fn take_ranks(&mut self, report: &wire::Report<'_>, base: u64, highest: Option<u64>, store: &Store) {
        let (first, end) = (store.first(), store.end());
        for number in self.base.max(first)..base.min(end) {
            self.complete(store, number);
        }
        self.base = self.base.max(base.min(end));
        let mut number = base;
        for &item in report.list {
            match Ranks::of(item) {
                Ranks::Rank(rank) => {
                    if (first..end).contains(&number) {
                        let own = store.get(number).rank;
                        self.need(number).report(rank, own);
                    }
                    number += 1;
                }
                Ranks::Complete(run) => {
                    for number in number.max(first)..(number + u64::from(run)).min(end) {
                        self.complete(store, number);
                    }
                    number += u64::from(run);
                }
                Ranks::Nothing(run) => {
                    for number in number.max(first)..(number + u64::from(run)).min(end) {
                        self.need(number).report(0, 1);
                    }
                    number += u64::from(run);
                }
            }
        }
        let listed = if report.complete { u64::MAX } else { number };
        if let Some(highest) = highest {
            let mut passed = self.next - self.flights.len() as u64;
            while passed <= highest {
                let Some(batch) = self.flights.pop_front() else { break };
                passed += 1;
                if (first..end).contains(&batch) {
                    let need = self.need(batch);
                    need.in_flight = need.in_flight.saturating_sub(1);
                    need.unsure = batch >= listed;
                    self.refresh(store, batch);
                }
            }
        }
        for number in base.max(first)..number.min(end) {
            self.refresh(store, number);
        }
    }

    fn complete(&mut self, store: &Store, number: u64) {
        let need = self.need(number);
        if !need.done {
            need.done = true;
            self.refresh(store, number);
        }
    }

    /// The oldest batch of which the child needs something, if it may be sent.
    fn next_need(&self, store: &Store) -> Option<(u64, Content)> {
        let number = self.marks.first(self.base.max(store.first()), store.end())?;
        let (need, slot) = (&self.needs[(number % store.window()) as usize], store.get(number));
        let begin = number * store.shape().symbols();
        let unsent = slot.batch.symbols() & !need.sent;
        let (content, symbol) = if unsent != 0 {
            let index = unsent.trailing_zeros();
            (Content::Symbol(index as u8), begin + u64::from(index))
        } else {
            (Content::Mix(need.known), begin)
        };
        (symbol < self.grant).then_some((number, content))
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
                let content = Content::Mix(self.need(batch).known);
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
            !need.done && store.get(number).batch.rank() > 0
        };
        let batch = (self.base.max(store.first())..store.end()).find(open)?;
        let content = Content::Mix(self.needs[(batch % store.window()) as usize].known);
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
        self.flights.push_back(packet.batch);
        let rank = store.get(packet.batch).rank;
        let need = self.need(packet.batch);
        if let Content::Symbol(index) = packet.content {
            need.sent |= 1 << index;
        }
        need.on_sent(packet.cause, rank, sequence);
        self.refresh(store, packet.batch);
    }

    /// Notes what the packet was that was just sent: its datagram had so many bytes; `more`: another could follow.
    pub(super) fn follow(&mut self, now: Instant, packet: &Packet, bytes: usize, more: bool) {
        let sequence = self.next - 1;
        self.rate.on_sent(now, sequence, bytes as u64, !more);
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
        self.rate.on_probe();
        (self.asked, self.asking) = (false, true);
        self.probe = Some(now + self.patience());
    }

    pub(super) const fn is_asking(&self) -> bool {
        self.asking
    }

    /// Sees to it that a probe is sent if there is something to wait for.
    pub(super) fn arm(&mut self, now: Instant, wants: bool) {
        if !wants {
            self.probe = None;
        } else if self.probe.is_none() {
            self.probe = Some(now + self.patience());
        }
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

impl Child {
    /// Brings the totals up to date; each wraps by itself.
    fn add(&mut self, arrivals: &wire::Arrivals, highest: u64) {
        let last = core::mem::replace(&mut self.last, *arrivals);
        let packets = arrivals.packets.wrapping_sub(last.packets) & 0xFF_FFFF;
        let sent = highest.saturating_sub(core::mem::replace(&mut self.highest, highest));
        self.packets += u64::from(packets);
        self.bytes += u64::from(arrivals.bytes.wrapping_sub(last.bytes));
        self.at += u64::from(arrivals.at.wrapping_sub(last.at)) << 4;
        let runs = f64::from(arrivals.runs.wrapping_sub(last.runs));
        if runs > 0.0 {
            self.lost = self.lost * FADE.powf(runs) + (sent as f64 - f64::from(packets)).max(runs);
            self.runs = self.runs * FADE.powf(runs) + runs;
        }
    }
}

/// How much of the estimate of bursts is left after each run of losses: that of the last fifty counts.
const FADE: f64 = 0.98;
