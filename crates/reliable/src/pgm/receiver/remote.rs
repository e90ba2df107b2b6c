//! A source as a receiver sees it.

use std::net::{IpAddr, SocketAddr};

use hopcast_core::bytes::complete;
use hopcast_core::{Duration, Instant};

use super::acks::Acks;
use super::asks::{Asks, Key, State, doubled};
use super::round_trip::RoundTrip;
use super::start::{self, Known};
use super::units::Units;
use super::window::{Taken, Window};
use super::{Delivered, Delivery, Output, Shared};
use crate::pgm::answer_time::AnswerTime;
use crate::pgm::parity::{Parity, ParitySymbol, Symbol};
use crate::pgm::wire::{Body, Data, Packet, Poll, PollResponse, Spm, Tsi};
use crate::statistics::Deliveries;

/// A source.
#[derive(Debug)]
pub(super) struct Remote {
    pub(super) session: Tsi,
    pub(super) port: u16,
    /// Where its packets come from.
    pub(super) address: SocketAddr,
    /// Where requests go, once an SPM has come.
    pub(super) path: Option<IpAddr>,
    /// Whether repairs precede new data and SPMs, so that these show that they are over.
    pub(super) repairs_first: bool,
    /// Whether requests go to a network element: it confirms what has not come to the source yet.
    pub(super) is_behind_element: bool,
    pub(super) on_demand: bool,
    pub(super) window: Window,
    pub(super) asks: Asks,
    /// The next sequence number to be looked at for whether it is missing.
    pub(super) scan: u64,
    /// Highest sequence numbers of data, and of the last SPM.
    pub(super) data_lead: Option<u64>,
    pub(super) spm_lead: u64,
    pub(super) spm: u64,
    pub(super) round_trip: RoundTrip,
    /// Sequence numbers of the last request.
    pub(super) last_request: Vec<u32>,
    /// The time from a confirmation to the first repair.
    pub(super) repair_time: AnswerTime,
    /// Mean time between two packets of new data.
    pub(super) interval: Duration,
    last_data: Option<Instant>,
    last_heard: Instant,
    pub(super) last_repair: Instant,
    /// When an SPM is to be asked for, and how often it was.
    spm_request: Option<(Instant, u16)>,
    /// A poll to be answered.
    poll: Option<(Instant, PollResponse, IpAddr)>,
    /// What is acknowledged, where the source asks for that.
    pub(super) acks: Acks,
    /// A group that was ended early, as it was just learnt.
    pub(super) ended: Option<u64>,
    is_over: bool,
}

/// A sequence number that all of 32 bits precede, so that none is below zero.
const EPOCH: u64 = 1 << 32;
/// Requests for an SPM after which they become rare. Chosen: who has heard data hears SPMs in time.
const MAX_REQUESTS: u16 = 20;
/// How much older than the last one an SPM may be without being one of a source that began again. Chosen: no network
/// delays a packet so long.
const MAX_REORDERING: u64 = 1000;
/// Packets by which data may be ahead of an SPM that came after it. Chosen: as [`MAX_REORDERING`].
const MAX_AHEAD: u64 = 4096;

impl Remote {
    pub(super) fn new(now: Instant, session: Tsi, port: u16, address: SocketAddr, shared: &Shared) -> Self {
        Self {
            session,
            port,
            address,
            path: None,
            repairs_first: false,
            is_behind_element: false,
            on_demand: false,
            window: Window::new(EPOCH, shared.config.order),
            asks: Asks::default(),
            scan: EPOCH,
            data_lead: None,
            spm_lead: 0,
            spm: 0,
            round_trip: RoundTrip::new(shared.config.round_trip),
            last_request: Vec::new(),
            repair_time: AnswerTime::default(),
            interval: Duration::ZERO,
            last_data: None,
            last_heard: now,
            last_repair: now,
            spm_request: None,
            poll: None,
            acks: Acks::default(),
            ended: None,
            is_over: false,
        }
    }

    pub(super) const fn last_heard(&self) -> Instant {
        self.last_heard
    }

    pub(super) const fn deliveries(&self) -> Deliveries {
        self.window.units.deliveries
    }

    #[cfg(test)]
    pub(super) const fn held(&self) -> u64 {
        self.window.bytes()
    }

    /// Whether an SPM has come, so that it is known what the source sends and where requests go.
    pub(super) const fn is_known(&self) -> bool {
        self.path.is_some()
    }

    /// Last sequence number that the source is known to have sent.
    pub(super) fn lead(&self) -> u64 {
        self.data_lead.unwrap_or(0).max(self.spm_lead)
    }

    /// A number of 32 bits near what is being sent.
    pub(super) fn number(&self, low: u32) -> u64 {
        if self.data_lead.is_none() && !self.is_known() {
            return EPOCH + u64::from(low);
        }
        complete(low, u32::BITS, self.lead())
    }

    pub(super) fn heard(
        &mut self,
        now: Instant,
        from: SocketAddr,
        packet: &Packet<'_>,
        shared: &mut Shared,
        output: &mut Output,
    ) {
        self.last_heard = now;
        // OpenPGM sends new data and repairs from two ports.
        if from.ip() != self.address.ip() {
            self.address = from;
        }
        let mut out = Vec::new();
        match &packet.body {
            Body::Spm(spm) => self.spm_heard(now, packet, spm, shared, &mut out),
            Body::Original(data) => self.original(now, packet, *data, shared, &mut out),
            Body::Repair(data) => self.repair(now, packet, *data, shared, &mut out),
            Body::Confirmation(nak) => self.confirmed(now, packet, nak, shared),
            Body::Poll(poll) => self.polled(now, poll, shared),
            Body::Nak(_) | Body::NullNak(_) | Body::SpmRequest | Body::PollResponse(_) | Body::Ack(_) => {}
        }
        if self.is_known() {
            if let Some(first) = self.ended.take() {
                // With fewer packets in it, what there is may be enough.
                self.decode(first, shared, &mut out);
            }
            self.window.advance(&mut out);
            self.scan = self.scan.max(self.window.next());
            self.look_for_missing(now, shared);
        } else {
            let due = now + shared.config.round_trip.mul_f64(shared.random.uniform());
            self.spm_request.get_or_insert((due, 0));
        }
        self.hand_over(out, shared, output);
    }

    pub(super) fn hand_over(&mut self, out: Vec<Delivered>, shared: &mut Shared, output: &mut Output) {
        shared.counts.malformed += std::mem::take(&mut self.window.units.malformed);
        let (session, address) = (self.session, self.address);
        output.delivered.extend(out.into_iter().map(|what| Delivery { session, address, what }));
    }

    fn spm_heard(
        &mut self,
        now: Instant,
        packet: &Packet<'_>,
        spm: &Spm,
        shared: &mut Shared,
        out: &mut Vec<Delivered>,
    ) {
        let sequence = if self.is_known() {
            complete(spm.sequence, u32::BITS, self.spm)
        } else {
            EPOCH + u64::from(spm.sequence)
        };
        let is_newer = sequence > self.spm || sequence + MAX_REORDERING < self.spm;
        if self.is_known() && !is_newer {
            return;
        }
        let was_known = self.is_known();
        let lead = self.number(spm.lead);
        let trail = complete(spm.trail, u32::BITS, lead).min(lead + 1);
        self.spm = sequence;
        self.spm_lead = lead;
        // A source that does not know how it is known names none.
        let path = if spm.path.is_unspecified() { self.address.ip() } else { spm.path };
        self.path = Some(path);
        self.is_behind_element = path != self.address.ip();
        let member = packet.options.member.unwrap_or_default();
        self.repairs_first = member.repairs_first;
        self.window.units.is_framed = member.is_framed;
        self.learn_parity(packet);
        if let Some(size) = packet.options.group_size {
            let first = self.window.groups.first(lead);
            self.window.groups.ended_early(first, size);
            self.ended = Some(first);
        }
        if was_known {
            self.check_lead(lead, shared);
            self.trail(trail, shared, out);
        } else {
            self.spm_request = None;
            let join = packet.options.join.map(|join| complete(join, u32::BITS, lead));
            let known = Known { trail, lead, join };
            let first = start::first(shared.config.join, known, &self.window);
            self.window.start(first);
            self.scan = first;
            self.decode_all(shared, out);
        }
        self.over(now, true, shared);
        if packet.options.fin && !std::mem::replace(&mut self.is_over, true) {
            shared.counts.ended += 1;
        }
    }

    /// What an SPM says of the lead is true of data that came before it: more was never sent, and less is a source
    /// that began again, or a lie before.
    fn check_lead(&mut self, lead: u64, shared: &mut Shared) {
        if self.data_lead.is_some_and(|data| data > lead + MAX_AHEAD) {
            self.data_lead = Some(lead);
            self.window.forget_after(lead);
        }
        let end = self.window.groups.first(lead) + self.window.groups.full() as u64;
        if self.data_lead.is_none_or(|data| data <= lead) && self.scan > end {
            self.asks.keep(self.window.groups.first(self.window.next()), lead);
            self.scan = end;
        }
        if end.max(self.lead() + 1) < self.window.next() {
            shared.counts.resynchronised += 1;
            self.asks.keep(u64::MAX, u64::MAX);
            self.window.forget_after(0);
            self.window.start(lead + 1);
            self.scan = lead + 1;
            self.data_lead = None;
        }
    }

    fn learn_parity(&mut self, packet: &Packet<'_>) {
        let groups = &mut self.window.groups;
        let Some(parity) = packet.options.parity else {
            // A source does not change its groups within a session.
            return;
        };
        if groups.code.is_none() && (2..=u32::from(crate::pgm::config::MAX_GROUP)).contains(&parity.group) {
            groups.code = Parity::new(parity.group as usize);
        }
        groups.proactive = parity.proactive;
        self.on_demand = parity.on_demand && groups.code.is_some();
    }

    /// The source has moved on: what is before its trail cannot be repaired.
    fn trail(&mut self, trail: u64, shared: &mut Shared, out: &mut Vec<Delivered>) {
        if self.is_known() && trail > self.window.next() && trail <= self.lead() + 1 {
            if self.window.move_to(trail, out) {
                shared.counts.overruns += 1;
            }
            self.asks.keep(self.window.groups.first(self.window.next()), u64::MAX);
        }
    }

    fn original(
        &mut self,
        now: Instant,
        packet: &Packet<'_>,
        data: Data,
        shared: &mut Shared,
        out: &mut Vec<Delivered>,
    ) {
        let sequence = self.number(data.sequence);
        if let Some(last) = self.last_data.replace(now) {
            // A pause is no interval.
            let since = now.since(last).min(MAX_INTERVAL);
            self.interval = self.interval.mul_f64(0.875) + since.mul_f64(0.125);
        }
        self.acks.heard(sequence);
        if let Some(data) = &packet.options.congestion_data {
            self.acks.data(now, data, self.round_trip.mean(), shared);
        }
        if self.insert(sequence, packet, shared, out) == Taken::Refused {
            return;
        }
        self.data_lead = Some(self.data_lead.map_or(sequence, |lead| lead.max(sequence)));
        let trail = complete(data.trail, u32::BITS, sequence);
        self.trail(trail.min(sequence), shared, out);
        self.over(now, false, shared);
    }

    fn repair(
        &mut self,
        now: Instant,
        packet: &Packet<'_>,
        data: Data,
        shared: &mut Shared,
        out: &mut Vec<Delivered>,
    ) {
        let sequence = self.number(data.sequence);
        self.last_repair = now;
        let key = match packet.is_parity {
            true => Key::Group(self.window.groups.first(sequence)),
            false => Key::Packet(sequence),
        };
        self.confirmed_by_repair(now, key);
        if let Some(since) = self.asks.get(key).and_then(|ask| ask.confirmed) {
            self.repair_time.sample(now.since(since));
            self.asks.answered(key);
        }
        if packet.is_parity {
            let first = self.window.groups.first(sequence);
            let group = packet.options.parity_group.unwrap_or(0) as usize;
            let index =
                group.saturating_mul(self.window.groups.full()).saturating_add((sequence - first) as usize);
            let symbol = ParitySymbol {
                payload: packet.payload.to_vec(),
                is_variable: packet.is_variable,
                fragment: packet.options.fragment,
            };
            let is_wanted = self.is_known() && self.window.missing_of(first) > 0;
            if !is_wanted || !self.window.groups.insert(first, index, symbol) {
                shared.counts.duplicates += 1;
                return;
            }
            self.progress(now, Key::Group(first));
            self.decode(first, shared, out);
        } else {
            self.insert(sequence, packet, shared, out);
        }
        let trail = complete(data.trail, u32::BITS, sequence);
        self.trail(trail, shared, out);
    }

    fn insert(
        &mut self,
        sequence: u64,
        packet: &Packet<'_>,
        shared: &mut Shared,
        out: &mut Vec<Delivered>,
    ) -> Taken {
        let symbol = Symbol { payload: packet.payload.to_vec(), fragment: packet.options.fragment };
        if !Units::is_sound(sequence, &symbol, shared.config.max_unit) {
            shared.counts.malformed += 1;
            return Taken::Refused;
        }
        if !self.is_known() && self.data_lead.is_none() {
            self.window.start(sequence);
        } else if !self.is_known() && sequence < self.window.next() {
            // One that was overtaken, before it is known where to begin.
            self.window.start(sequence);
        }
        let taken = self.window.insert(sequence, symbol, shared.config.window, out);
        match taken {
            Taken::New => {
                self.asks.end(Key::Packet(sequence));
                let first = self.window.groups.first(sequence);
                if self.window.groups.parity_held(first) > 0 {
                    self.decode(first, shared, out);
                }
                if self.window.missing_of(first) == 0 {
                    self.asks.end(Key::Group(first));
                }
            }
            Taken::Duplicate => shared.counts.duplicates += 1,
            Taken::Refused => shared.counts.refused += 1,
        }
        taken
    }

    /// Decodes a group if as much has come as it takes.
    fn decode(&mut self, first: u64, shared: &mut Shared, out: &mut Vec<Delivered>) {
        if self.window.lacks(first) > 0 {
            return;
        }
        let size = self.window.groups.size(first);
        let Some(code) = &self.window.groups.code else { return };
        let found = code.decode(size, &self.window.of_group(first), &self.window.groups.parity(first));
        self.window.groups.drop_parity(first);
        for (place, symbol) in found {
            let sequence = first + place as u64;
            if !Units::is_sound(sequence, &symbol, shared.config.max_unit) {
                shared.counts.malformed += 1;
                continue;
            }
            if self.window.insert(sequence, symbol, u64::MAX, out) == Taken::New {
                shared.counts.decoded += 1;
                self.asks.end(Key::Packet(sequence));
            }
        }
        if self.window.missing_of(first) == 0 {
            self.asks.end(Key::Group(first));
        }
    }

    /// Decodes what can be, once it is known where to begin.
    fn decode_all(&mut self, shared: &mut Shared, out: &mut Vec<Delivered>) {
        self.window.advance(out);
        let first = self.window.groups.first(self.window.next());
        self.decode(first, shared, out);
    }

    fn polled(&mut self, now: Instant, poll: &Poll, shared: &mut Shared) {
        if !shared.is_polled(poll) || shared.config.silent {
            return;
        }
        let due = now + poll.max_backoff().min(MAX_POLL).mul_f64(shared.random.uniform());
        let response = PollResponse { sequence: poll.sequence, round: poll.round };
        self.poll = Some((due, response, poll.path));
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let requests = self.asks.deadline().filter(|_| self.is_known());
        let spm = self.spm_request.filter(|_| !self.is_known()).map(|(due, _)| due);
        let poll = self.poll.map(|(due, ..)| due);
        let ack = self.acks.deadline().filter(|_| self.is_known());
        requests.into_iter().chain(spm).chain(poll).chain(ack).min()
    }

    pub(super) fn wake(&mut self, now: Instant, shared: &mut Shared, output: &mut Output) {
        if let Some((_, times)) = self.spm_request.filter(|&(due, _)| due <= now && !self.is_known()) {
            if !shared.config.silent {
                let request = Packet::new(self.session, self.port, Body::SpmRequest);
                output.packets.push((shared.upstream(self.address.ip(), self.address), request.emit()));
            }
            let time = doubled(shared.config.round_trip.max(MIN_REQUEST), times);
            let time = if times < MAX_REQUESTS { time } else { RARE };
            self.spm_request = Some((now + time, times.saturating_add(1)));
        }
        if let Some((_, response, path)) = self.poll.take_if(|(due, ..)| *due <= now) {
            let packet = Packet::new(self.session, self.port, Body::PollResponse(response));
            output.packets.push((shared.upstream(path, self.address), packet.emit()));
        }
        if let (Some(path), Some((ack, feedback))) = (self.path, self.acks.due(now, shared)) {
            let mut packet = Packet::new(self.session, self.port, Body::Ack(ack));
            packet.options.congestion_feedback = Some(feedback);
            output.packets.push((shared.upstream(path, self.address), packet.emit()));
        }
        if self.is_known() {
            let mut out = Vec::new();
            self.make_requests(now, shared, output);
            self.window.advance(&mut out);
            self.scan = self.scan.max(self.window.next());
            self.look_for_missing(now, shared);
            self.hand_over(out, shared, output);
        }
    }

    /// Notes what came of a request.
    pub(super) fn progress(&mut self, now: Instant, key: Key) {
        if self.asks.get(key).is_some() {
            let due = now + self.answer_time();
            self.asks.set(key, State::WaitData, due, |ask| {
                ask.made = None;
                (ask.unconfirmed, ask.unanswered) = (0, 0);
            });
        }
    }
}

/// Time between two packets of data that is a pause.
const MAX_INTERVAL: Duration = Duration::from_secs(1);
/// Longest back-off of an answer to a poll. Chosen: forged polls would else be remembered for an hour.
const MAX_POLL: Duration = Duration::from_secs(60);
/// Shortest time between two requests for an SPM.
const MIN_REQUEST: Duration = Duration::from_millis(20);
/// Time between two requests of a source that does not answer them.
const RARE: Duration = Duration::from_secs(30);
