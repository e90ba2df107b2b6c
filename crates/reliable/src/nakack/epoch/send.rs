//! Sending in a view: repairs, the order, new messages, and announcements of how far the member has come.

use std::net::SocketAddr;

use hopcast_core::{Buffer, Duration, Instant};

use super::super::config::Repairs;
use super::super::credit;
use super::super::outgoing::Outgoing;
use super::super::wire::{Flags, MAX_RUNS, Packet, Sent};
use super::{Counted, Epoch};
use crate::statistics::Kind;

/// A packet to be sent.
pub(in super::super) struct ToSend {
    pub(in super::super) bytes: Buffer,
    /// Whether it is for all members, and not just for the coordinator and those that send.
    pub(in super::super) to_all: bool,
}

impl Epoch {
    /// The next packet to all members at the sender's rate, if there is one now.
    pub(in super::super) fn next(
        &mut self,
        now: Instant,
        outgoing: &mut Outgoing,
        counted: &mut Counted,
    ) -> Option<ToSend> {
        let is_news_first = self.repairs_in_row >= MAX_REPAIRS_IN_ROW && self.may_send_new(outgoing);
        let found = if is_news_first { None } else { self.repair(counted) };
        let found =
            found.or_else(|| self.record(now, counted)).or_else(|| self.new_message(now, outgoing, counted));
        let found = found.or_else(|| self.announcement(now, outgoing, counted));
        let bytes = found?;
        self.last_sent = now;
        Some(ToSend { bytes, to_all: true })
    }

    /// Packets to all members that wait for no rate: digests, and signs of life.
    pub(in super::super) fn next_digest(&mut self, now: Instant, counted: &mut Counted) -> Option<ToSend> {
        let others = self.windows.len() > 1;
        let is_gossip = self.must_ask || self.gossips() && self.said + self.stack.stable_every <= now;
        if others && (is_gossip || self.digest_due.is_some_and(|due| due <= now)) {
            // Who still holds something may have missed what others have said, and asks; so few do that whoever answers
            // has said it for this time.
            let asks = is_gossip && self.holds();
            self.must_ask = false;
            self.last_sent = now;
            let entries = self.entries(now);
            let bytes = self.digest_packet(asks, false, entries);
            counted.traffic.add(Kind::Feedback, bytes.len());
            return Some(ToSend { bytes, to_all: self.own == 0 || self.has_sent() });
        }
        if others && self.last_sent + self.stack.heartbeat <= now {
            self.last_sent = now;
            let bytes = self.digest_packet(false, false, Vec::new());
            counted.traffic.add(Kind::Control, bytes.len());
            return Some(ToSend { bytes, to_all: self.own == 0 || self.has_sent() });
        }
        None
    }

    /// A request that is due, and whom it is for.
    pub(in super::super) fn next_request(
        &mut self,
        now: Instant,
        counted: &mut Counted,
    ) -> Option<(SocketAddr, Buffer)> {
        for origin in 0..self.windows.len() {
            if !self.requests[origin].is_due(now) {
                continue;
            }
            let limit = self.limit(origin);
            let Some((first, _)) = self.windows[origin].missing(limit).next() else {
                self.requests[origin].complete();
                continue;
            };
            let to = self.whom_to_ask(origin);
            let mut at = first;
            let runs = self.windows[origin].missing(limit).take(MAX_RUNS).map(|(start, length)| {
                let between = start - at;
                at = start + length;
                (between, length)
            });
            let runs = runs.collect();
            let from =
                Sent { tag: self.tag, rank: self.own, transmission: self.heard[usize::from(to)].last as u32 };
            let packet = Packet::Request { from, origin: origin as u16, first: first as u32, runs };
            let bytes = packet.emit();
            self.requests[origin].sent(now, first);
            counted.traffic.add(Kind::Feedback, bytes.len());
            counted.requests.sent += 1;
            return Some((self.view.members[usize::from(to)].1, bytes));
        }
        None
    }

    /// Whom to ask for messages of `origin`'s: the one that the leader says, the origin, or any that has them.
    fn whom_to_ask(&mut self, origin: usize) -> u16 {
        if let Some(end) = &self.end
            && end.targets[origin].1 != self.own
        {
            return end.targets[origin].1;
        }
        let members = self.windows.len() as u64;
        if self.stack.repairs == Repairs::Anyone && self.requests[origin].vain() == 0 && members > 2 {
            let other = self.random.below(members) as u16;
            if other != self.own {
                return other;
            }
        }
        origin as u16
    }

    fn sent(&mut self) -> Sent {
        self.transmission += 1;
        Sent { tag: self.tag, rank: self.own, transmission: self.transmission as u32 }
    }

    /// The next message that was asked for.
    fn repair(&mut self, counted: &mut Counted) -> Option<Buffer> {
        while let Some((origin, number)) = self.asked.pop_first() {
            let Some(held) = self.windows[usize::from(origin)].get(number) else { continue };
            let (flags, payload) = (held.flags, held.payload.clone());
            let from = self.sent();
            let packet = Packet::Repair { from, origin, sequence: number as u32, flags, payload: &payload };
            let bytes = packet.emit();
            if let Some(held) = self.windows[usize::from(origin)].get_mut(number) {
                held.transmitted = self.transmission;
            }
            counted.traffic.add(Kind::Repair, bytes.len());
            counted.repaired_for_others += u64::from(origin != self.own);
            self.repairs_in_row += 1;
            self.announcing.rest();
            return Some(bytes);
        }
        None
    }

    /// The coordinator's order of what it has.
    fn record(&mut self, now: Instant, counted: &mut Counted) -> Option<Buffer> {
        if !self.is_sequencer() || self.is_frozen() || !self.windows[0].has_room() {
            return None;
        }
        let have = self.windows.iter().map(super::Window::contiguous);
        let record = self.order.place(self.own, have, usize::from(self.stack.fragment))?;
        let flags = Flags(Flags::FIRST | Flags::LAST | Flags::ORDER);
        Some(self.put(now, flags, &record, Kind::Control, counted))
    }

    /// Whether flow control and stability leave room for a new message, if there is one.
    fn may_send_new(&self, outgoing: &Outgoing) -> bool {
        let own = &self.windows[usize::from(self.own)];
        let Some(len) = outgoing.next_len(usize::from(self.stack.fragment)) else { return false };
        !self.is_frozen()
            && !self.holds_back
            && own.has_room()
            && own.bytes() + credit::cost(len) <= self.stack.buffer
            && self.credits.allows(self.own, credit::cost(len))
    }

    fn new_message(
        &mut self,
        now: Instant,
        outgoing: &mut Outgoing,
        counted: &mut Counted,
    ) -> Option<Buffer> {
        if !self.may_send_new(outgoing) {
            return None;
        }
        let (flags, payload) = outgoing.next(usize::from(self.stack.fragment))?;
        self.credits.sent(credit::cost(payload.len()));
        self.repairs_in_row = 0;
        Some(self.put(now, flags, &payload, Kind::Data, counted))
    }

    /// Appends a message to this member's stream.
    fn put(
        &mut self,
        now: Instant,
        flags: Flags,
        payload: &[u8],
        kind: Kind,
        counted: &mut Counted,
    ) -> Buffer {
        let from = self.sent();
        let window = &mut self.windows[usize::from(self.own)];
        let number = window.known();
        window.insert(number, flags, payload, self.transmission);
        let bytes = Packet::Data { from, sequence: number as u32, flags, payload }.emit();
        counted.traffic.add(kind, bytes.len());
        self.acknowledge_own(now, usize::from(self.own));
        self.unsaid += payload.len() as u64 + 1;
        if self.unsaid >= self.stack.stable_bytes {
            self.digest_due = Some(now);
        }
        self.announcing.rest();
        bytes
    }

    /// Says how far this member has come, once it has nothing to send and not all have acknowledged.
    fn announcement(&mut self, now: Instant, outgoing: &Outgoing, counted: &mut Counted) -> Option<Buffer> {
        if self.windows.len() < 2 || self.is_stable() || self.is_frozen() {
            self.announcing.due = None;
            return None;
        }
        let wait = self.announcing.wait(self.stack.heartbeat);
        let due = *self.announcing.due.get_or_insert(now + wait);
        if due > now {
            return None;
        }
        // One that is held back by what others have not acknowledged asks at once.
        let asks = self.announcing.step >= QUIET_STEPS || !outgoing.is_empty();
        self.announcing.step += 1;
        self.announcing.due = Some(now + self.announcing.wait(self.stack.heartbeat));
        let mut entries = if asks { self.entries(now) } else { Vec::new() };
        let own = (self.own, self.windows[usize::from(self.own)].known() as u32);
        entries.retain(|&(rank, _)| rank != self.own);
        entries.push(own);
        let bytes = self.digest_packet(asks, true, entries);
        self.announcing.last = Some((self.transmission, now));
        counted.traffic.add(Kind::Control, bytes.len());
        Some(bytes)
    }

    /// Up to where this member has the messages of those that have sent any.
    fn entries(&mut self, now: Instant) -> Vec<(u16, u32)> {
        (self.unsaid, self.digest_due, self.said) = (0, None, now);
        let first = self.first;
        let has = |(rank, window): (usize, &super::Window)| {
            (window.contiguous() > first).then_some((rank as u16, window.contiguous() as u32))
        };
        self.windows.iter().enumerate().filter_map(has).collect()
    }

    fn digest_packet(&mut self, asks: bool, is_idle: bool, entries: Vec<(u16, u32)>) -> Buffer {
        let from = self.sent();
        let stable = self.stability.stable(self.own);
        let stable = (stable > self.first).then_some(stable as u32);
        Packet::Digest { from, asks, is_idle, stable, entries }.emit()
    }

    /// All have acknowledged what this member sent: it says so once more, so that they forget it.
    pub(super) fn finish_announcing(&mut self, now: Instant) {
        if self.announcing.step > 0 && self.is_stable() {
            self.announcing.rest();
            self.digest_due = Some(now);
        }
    }

    /// Whether this member has sent messages in this view.
    fn has_sent(&self) -> bool {
        self.windows[usize::from(self.own)].known() > self.first
    }

    /// The others that are interested in what this member has: the coordinator, which watches all, and those that send.
    pub(in super::super) fn interested(&self) -> Vec<SocketAddr> {
        let is_interested = |&rank: &usize| {
            rank != usize::from(self.own) && (rank == 0 || self.windows[rank].known() > self.first)
        };
        (0..self.windows.len()).filter(is_interested).map(|rank| self.view.members[rank].1).collect()
    }

    /// When something is due that no arrival brings about: of what the rate holds back, after `departure`.
    pub(in super::super) fn deadline(&self, departure: Instant, outgoing: &Outgoing) -> Option<Instant> {
        let others = self.windows.len() > 1;
        let paced = !self.asked.is_empty()
            || self.may_send_new(outgoing)
            || (self.is_sequencer() && !self.is_frozen() && self.has_to_place());
        let announces = others && !self.is_frozen() && !self.is_stable();
        let announced = announces.then(|| self.announcing.due.unwrap_or(departure).max(departure));
        let digest = self.digest_due.filter(|_| others);
        let gossip = (others && self.gossips()).then(|| self.said + self.stack.stable_every);
        let alive = others.then(|| self.last_sent + self.stack.heartbeat);
        let requests = self.requests.iter().filter_map(super::Requests::due).min();
        [paced.then_some(departure), announced, digest, gossip, alive, requests].into_iter().flatten().min()
    }

    /// Whether there is a reason to say what is here, by and by.
    fn gossips(&self) -> bool {
        self.unsaid > 0 || self.holds()
    }

    /// Whether messages are held that are not stable, as far as is known here.
    fn holds(&self) -> bool {
        self.windows.iter().any(|window| window.bytes() > 0)
    }

    fn has_to_place(&self) -> bool {
        self.windows[0].has_room()
            && self.order.has_to_place(self.own, self.windows.iter().map(super::Window::contiguous))
    }
}

impl super::Announcing {
    /// Something was sent: announcements begin anew once there is nothing more.
    const fn rest(&mut self) {
        self.due = None;
        self.step = 0;
    }

    /// Time to the next announcement.
    fn wait(&self, max: Duration) -> Duration {
        let base = self.round_trip.mean().unwrap_or(super::FIRST_ANNOUNCED).max(MIN_ANNOUNCED);
        (base * (1 << self.step.min(16))).min(max)
    }
}

/// Repairs in a row, after which a new message is sent in between. Chosen: whoever asks for everything all the time
/// costs the others eight ninths of the rate, and not all of it.
const MAX_REPAIRS_IN_ROW: u32 = 8;
/// Announcements that ask for no answer. Chosen: those that lack something answer in any case.
const QUIET_STEPS: u32 = 2;
/// Chosen: no round trip is shorter but on one machine.
const MIN_ANNOUNCED: Duration = Duration::from_millis(1);
