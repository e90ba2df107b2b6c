//! A node's sender to one neighbour: each chunk until it is acknowledged, each transmission under a number of its own.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use hopcast_core::bytes::{Malformed, complete};
use hopcast_core::{Duration, Instant, Stream, earliest};

use super::config::{MAX_AHEAD, MAX_HELD};
use super::counters::Counters;
use super::silence::Silence;
use super::wire::{Acknowledgement, Message, Packet};
use crate::tcp::{Acked, HopBbr, Snapshot};

/// Transmissions taken for lost of which an acknowledgement may still come; the oldest makes room. Chosen: it bounds
/// memory; with fewer, late packets are not recognised as such.
const MAX_GIVEN_UP: usize = 1024;

/// A transmission that is under way.
#[derive(Clone, Copy, Debug)]
struct Flight {
    index: u64,
    sent_at: Instant,
    snapshot: Snapshot,
}

/// The sending half of a hop.
#[derive(Debug)]
pub(super) struct Outgoing {
    session: u16,
    random: Stream,
    full: u32,
    /// Maximum delay of a wake-up.
    slack: Duration,
    control: HopBbr,
    /// Chunks that wait for their first transmission.
    fresh: VecDeque<Vec<u8>>,
    /// From index `base` on, chunks that have been sent; none once it has arrived.
    kept: VecDeque<Option<Vec<u8>>>,
    base: u64,
    /// Number of those that have not arrived.
    held: usize,
    /// Indices to send again.
    lost: BTreeSet<u64>,
    flight: BTreeMap<u64, Flight>,
    next_number: u64,
    /// The transmissions that are taken for lost, with their index and when they were sent.
    given_up: BTreeMap<u64, (u64, Instant)>,
    /// The newest transmission that has arrived, and the round trip that it took.
    newest: Option<(u64, Duration)>,
    /// Time that an older one may still take.
    reordering: Duration,
    /// Whether an acknowledgement has come in this session, and how many packets the newest one knew of.
    acknowledged: Option<u32>,
    paused: bool,
    /// Transmissions found lost since the last acknowledgement.
    found_lost: u32,
    silence: Silence,
    /// Whether one packet may leave whatever pause and window say, to be answered at once.
    probing: bool,
    timeout: Option<Instant>,
    /// Since when the neighbour owes an acknowledgement.
    owed_since: Option<Instant>,
}

impl Outgoing {
    pub(super) fn new(now: Instant, full: u16, slack: Duration, mut random: Stream) -> Self {
        Self {
            // None is 0.
            session: (random.bits() as u16).max(1),
            full: full.into(),
            slack,
            control: HopBbr::new(now, full.into(), random.fork()).with_slack(slack),
            random,
            fresh: VecDeque::new(),
            kept: VecDeque::new(),
            base: 0,
            held: 0,
            lost: BTreeSet::new(),
            flight: BTreeMap::new(),
            next_number: 0,
            given_up: BTreeMap::new(),
            newest: None,
            reordering: Duration::ZERO,
            acknowledged: None,
            paused: false,
            found_lost: 0,
            silence: Silence::default(),
            probing: false,
            timeout: None,
            owed_since: None,
        }
    }

    /// Begins anew, with nothing to send.
    pub(super) fn restart(&mut self, now: Instant) {
        let session = self.session;
        *self = Self::new(now, self.full as u16, self.slack, self.random.fork());
        if self.session == session {
            self.session = session.wrapping_add(1).max(1);
        }
    }

    pub(super) fn session(&self) -> u16 {
        self.session
    }

    /// Number of chunks that wait for their first transmission.
    pub(super) fn backlog(&self) -> usize {
        self.fresh.len()
    }

    fn window(&self) -> usize {
        self.control.window() as usize
    }

    pub(super) fn push(&mut self, chunk: Vec<u8>) {
        self.fresh.push_back(chunk);
    }

    /// The same, unless it is what was pushed last and still waits.
    pub(super) fn push_once(&mut self, chunk: Vec<u8>) {
        if self.fresh.back() != Some(&chunk) {
            self.push(chunk);
        }
    }

    /// Time at which the neighbour is given up, if it owes an acknowledgement and says nothing for `silence`.
    pub(super) fn gives_up(&self, silence: Duration) -> Option<Instant> {
        self.owed_since.filter(|_| self.silence.may_give_up()).map(|since| since + silence)
    }

    /// Whether the first chunk that has not arrived, or how many have not, keep new ones from being sent.
    fn is_full(&self) -> bool {
        self.held >= MAX_HELD || self.kept.len() as u64 >= MAX_AHEAD
    }

    fn is_owed(&self) -> bool {
        !self.flight.is_empty() || !self.lost.is_empty()
    }

    /// Whether a packet would leave now if there were one; with `more` there is one besides those given already.
    pub(super) fn may_send(&self, now: Instant, more: bool) -> bool {
        self.departure(more).is_some_and(|at| at <= now)
    }

    /// Time at which the next packet may leave, if there is one and the window has room, or it is a probe.
    fn departure(&self, more: bool) -> Option<Instant> {
        let room = self.flight.len() < self.limit();
        let more = more || !self.fresh.is_empty();
        let new = more && !self.paused && !self.is_full();
        let probe = self.probing && (more || !self.kept.is_empty());
        (probe || room && (new || !self.lost.is_empty())).then(|| self.control.departure())
    }

    /// Maximum number of packets in flight: the window, and room for a neighbour's silence.
    pub(super) fn limit(&self) -> usize {
        self.window() + if self.control.is_emptying() { 0 } else { self.silence.room() }
    }

    /// Time at which [`wake`](Self::wake) has something to do, or a packet may leave.
    pub(super) fn deadline(&self, more: bool) -> Option<Instant> {
        earliest(earliest(self.departure(more), self.timeout), self.overdue())
    }

    /// Time at which the oldest transmission before the newest that has arrived is lost.
    fn overdue(&self) -> Option<Instant> {
        let (newest, rtt) = self.newest?;
        let (&number, flight) = self.flight.first_key_value()?;
        (number < newest).then(|| flight.sent_at + rtt + self.reordering)
    }

    /// The next packet to leave, if one may; the neighbour's session that is known goes with the first ones.
    pub(super) fn pop(&mut self, now: Instant, knows: u16, counters: &mut Counters) -> Option<Vec<u8>> {
        if !self.may_send(now, false) {
            return None;
        }
        let index = self.next_index(counters)?;
        let probe = core::mem::take(&mut self.probing);
        let in_flight = self.flight.len() as u32;
        let last = self.fresh.is_empty() && self.lost.is_empty() || self.flight.len() + 1 >= self.limit();
        let chunk = self.kept.get((index - self.base) as usize)?.as_ref()?;
        let packet = Packet {
            session: self.session,
            first: self.acknowledged.is_none().then_some(knows),
            urgent: last || probe,
            number: self.next_number as u32,
            index: index as u32,
            chunk,
        };
        let bytes = Message::Packet(packet).emit();
        let snapshot = self.control.sent(now, in_flight, bytes.len() as u32);
        self.flight.insert(self.next_number, Flight { index, sent_at: now, snapshot });
        self.next_number += 1;
        self.timeout.get_or_insert(now + self.patience(now));
        self.owed_since.get_or_insert(now);
        counters.packets_sent += 1;
        Some(bytes)
    }

    /// Index of the chunk that is sent next: what is lost, what is new, and as a probe what has been sent already, of
    /// which more copies than one are then under way.
    fn next_index(&mut self, counters: &mut Counters) -> Option<u64> {
        if let Some(index) = self.lost.pop_first() {
            counters.retransmits += 1;
            return Some(index);
        }
        let no_new = self.paused || self.is_full() || self.fresh.is_empty();
        if no_new && !self.kept.is_empty() {
            counters.retransmits += 1;
            return Some(self.base);
        }
        self.kept.push_back(Some(self.fresh.pop_front()?));
        self.held += 1;
        Some(self.base + self.kept.len() as u64 - 1)
    }

    /// Time to wait for an acknowledgement.
    fn patience(&self, now: Instant) -> Duration {
        let control = &self.control;
        self.silence.timeout(now, control.timeout(), control.packet_time(), control.round_trip())
    }

    /// Notes that there was nothing to send although the path would have taken it.
    pub(super) fn note_empty(&mut self) {
        if self.flight.len() < self.limit() && self.lost.is_empty() && self.fresh.is_empty() {
            self.control.limited_by_application(self.flight.len() as u32);
        }
    }

    /// Takes an acknowledgement of this session.
    pub(super) fn on_acknowledgement(
        &mut self,
        now: Instant,
        ack: &Acknowledgement,
        counters: &mut Counters,
    ) -> Result<(), Malformed> {
        let highest = complete(ack.highest, 32, self.next_number);
        let next_index = complete(ack.next_index, 32, self.base);
        let told: u64 = ack.runs.iter().copied().map(u64::from).sum();
        Malformed::unless(highest < self.next_number, "highest")?;
        Malformed::unless(next_index <= self.base + self.kept.len() as u64, "next index")?;
        Malformed::unless(told <= highest + 1, "runs")?;
        if self.acknowledged.is_none_or(|seen| ack.received.wrapping_sub(seen) as i32 >= 0) {
            self.acknowledged = Some(ack.received);
            self.paused = ack.pause;
        }
        let mut acked = Acked { before: self.flight.len() as u32, ..Acked::default() };
        let before = self.newest.map_or(0, |(newest, _)| newest);
        let mut from = highest + 1;
        for (place, &run) in ack.runs.iter().enumerate() {
            let upto = from;
            from -= u64::from(run);
            if place % 2 == 0 {
                self.arrived(now, from..upto, highest, &mut acked, counters);
            }
        }
        while self.base < next_index {
            self.lost.remove(&self.base);
            self.held -= usize::from(self.kept.pop_front().flatten().is_some());
            self.base += 1;
        }
        while self.kept.pop_front_if(|kept| kept.is_none()).is_some() {
            self.base += 1;
        }
        self.find_lost(now);
        self.owed_since = self.is_owed().then_some(now);
        self.silence.heard((highest > before).then(|| highest - before));
        if acked.packets > 0 {
            acked.lost = core::mem::take(&mut self.found_lost);
            acked.after = self.flight.len() as u32;
            self.control.acknowledged(now, acked);
            self.timeout = (!self.flight.is_empty()).then(|| now + self.patience(now));
        }
        Ok(())
    }

    /// Notes that the transmissions with these numbers have arrived.
    fn arrived(
        &mut self,
        now: Instant,
        numbers: core::ops::Range<u64>,
        highest: u64,
        acked: &mut Acked,
        counters: &mut Counters,
    ) {
        // Packets that were taken for lost and are not: the path lets packets overtake each other.
        let mut given_up = core::mem::take(&mut self.given_up);
        for (number, (index, sent_at)) in given_up.extract_if(numbers.clone(), |_, _| true) {
            if number == highest {
                self.control.late(now, now.since(sent_at));
            }
            counters.needless_retransmits += 1;
            self.delivered(index);
            let round_trip = self.control.round_trip().unwrap_or_default();
            let step = (self.reordering * 2).max(round_trip / 8);
            self.reordering = step.min(round_trip);
        }
        self.given_up = given_up;
        let mut flights = core::mem::take(&mut self.flight);
        for (number, flight) in flights.extract_if(numbers, |_, _| true) {
            self.delivered(flight.index);
            acked.packets += 1;
            acked.newest.note(flight.sent_at, number, flight.snapshot);
            if number == highest {
                let rtt = now.since(flight.sent_at);
                acked.rtt = Some(rtt);
                if self.newest.is_none_or(|(newest, _)| number > newest) {
                    self.newest = Some((number, rtt));
                }
            }
        }
        self.flight = flights;
    }

    /// The place of a chunk that has been sent, unless all before it and itself have arrived.
    fn kept_mut(&mut self, index: u64) -> Option<&mut Option<Vec<u8>>> {
        let place = usize::try_from(index.checked_sub(self.base)?).ok()?;
        self.kept.get_mut(place)
    }

    fn delivered(&mut self, index: u64) {
        if let Some(kept) = self.kept_mut(index) {
            let held = usize::from(kept.take().is_some());
            self.held -= held;
            self.lost.remove(&index);
        }
    }

    /// Finds the transmissions that are overdue.
    fn find_lost(&mut self, now: Instant) {
        while self.overdue().is_some_and(|at| at <= now || self.reordering.is_zero()) {
            self.give_up_oldest();
        }
    }

    fn give_up_oldest(&mut self) {
        let Some((number, flight)) = self.flight.pop_first() else { return };
        self.found_lost = self.found_lost.saturating_add(1);
        self.given_up.insert(number, (flight.index, flight.sent_at));
        if self.given_up.len() > MAX_GIVEN_UP {
            self.given_up.pop_first();
        }
        if self.kept_mut(flight.index).is_some_and(|kept| kept.is_some()) {
            self.lost.insert(flight.index);
        }
    }

    /// Does the work that is due.
    pub(super) fn wake(&mut self, now: Instant, counters: &mut Counters) {
        self.find_lost(now);
        if self.timeout.is_none_or(|at| at > now) {
            return;
        }
        counters.timeouts += 1;
        self.silence.probe(now);
        if self.kept.is_empty() {
            // A copy that nobody needs was lost.
            self.flight.clear();
        }
        self.owed_since = self.owed_since.filter(|_| self.is_owed());
        self.probing = self.is_owed() || !self.fresh.is_empty() || self.paused;
        self.timeout = (self.is_owed() || !self.fresh.is_empty()).then(|| now + self.patience(now));
    }

    /// Makes sure that a pause is asked about, as the word of its end may be lost.
    pub(super) fn watch_pause(&mut self, now: Instant, more: bool) {
        if self.paused && (more || !self.fresh.is_empty()) && self.timeout.is_none() {
            self.timeout = Some(now + self.patience(now));
        }
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::*;

    fn at(ms: u64) -> Instant {
        Instant::ZERO + Duration::from_millis(ms)
    }

    fn outgoing() -> Outgoing {
        Outgoing::new(at(0), 1472, Duration::ZERO, Seed::new(1, 0).stream(&["outgoing"], 0))
    }

    /// Whether another chunk leaves where `held` chunks have been sent and not arrived, and `arrived` behind them have.
    fn another_leaves(held: usize, arrived: usize) -> bool {
        let mut outgoing = outgoing();
        outgoing.kept.extend(core::iter::repeat_n(Some(Vec::new()), held));
        outgoing.kept.extend(core::iter::repeat_n(None, arrived));
        outgoing.held = held;
        outgoing.push(vec![0; 100]);
        outgoing.pop(at(0), 0, &mut Counters::default()).is_some()
    }

    #[test]
    fn a_hop_has_8192_chunks_that_have_not_arrived_and_none_131072_beyond_the_first_of_them() {
        assert!(another_leaves(8191, 0) && !another_leaves(8192, 0));
        // The window of RLC with numbers of 18 bits: 3GPP TS 38.322 section 7.2.
        assert!(another_leaves(1, 131_070) && !another_leaves(1, 131_071));
    }

    #[test]
    fn an_acknowledgement_that_comes_late_is_known_for_1024_transmissions_taken_for_lost() {
        let mut outgoing = outgoing();
        let snapshot = outgoing.control.sent(at(0), 0, 100);
        for number in 0..=1024 {
            outgoing.flight.insert(number, Flight { index: number, sent_at: at(0), snapshot });
            outgoing.give_up_oldest();
        }
        let mut counters = Counters::default();
        outgoing.arrived(at(9), 0..2, 1, &mut Acked::default(), &mut counters);
        assert_eq!(counters.needless_retransmits, 1, "the second of 1,025, not the first");
        outgoing.arrived(at(9), 2..1025, 1024, &mut Acked::default(), &mut counters);
        assert_eq!(counters.needless_retransmits, 1024);
    }
}
