//! The source of a session: new data, repairs and SPMs, at its rate.

mod control;
mod outgoing;
mod proactive;
mod repairs;
mod spm;
mod window;

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopcast_core::bytes::complete;
use hopcast_core::{Buffer, Duration, Instant, Pacer, Rate};

use self::control::Control;
use self::outgoing::{Object, Outgoing};
use self::proactive::Needs;
use self::repairs::Repairs;
use self::spm::Schedule;
use self::window::Window;
use super::config::{Framing, RateControl, SourceConfig};
use super::parity::{Parity, Symbol};
use super::wire::{Ack, Body, Data, Fragment, Member, Options, Packet, Spm, Tsi};
use crate::down_streams::SendsStreams;
use crate::statistics::{Kind, Traffic};

/// When a repair was sent, as its receivers see it: after this data and this SPM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Mark {
    lead: u64,
    spm: u64,
    at: Instant,
}

/// The source of a session.
#[derive(Debug)]
pub(super) struct Source {
    config: SourceConfig,
    session: Tsi,
    /// Data-destination port.
    port: u16,
    /// Own address, and the group's.
    addresses: (IpAddr, IpAddr),
    outgoing: Outgoing,
    window: Window,
    parity: Option<Parity>,
    repairs: Repairs,
    needs: Needs,
    schedule: Schedule,
    /// Congestion control, if the rate is not fixed.
    control: Option<Control>,
    /// Number of the last SPM.
    spm: u64,
    pacer: Pacer,
    /// First sequence numbers of the objects that are being sent, and of the one that began last.
    objects: BTreeMap<Object, u64>,
    latest: Option<u64>,
    leaves: bool,
    traffic: Traffic,
    counts: Counts,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    nacks: u64,
    null_nacks: u64,
    parity: u64,
    spms: u64,
    confirmations: u64,
    too_late: u64,
    poll_responses: u64,
}

/// A sequence number that all of 32 bits precede, so that none is below zero.
const EPOCH: u64 = 1 << 32;

impl Source {
    pub(super) fn new(
        config: SourceConfig,
        session: Tsi,
        port: u16,
        addresses: (IpAddr, IpAddr),
        random: u32,
    ) -> Self {
        let config = config.bounded();
        let parity = if config.parity > 0 { Parity::new(config.group.into()) } else { None };
        let group = parity.as_ref().map_or(1, |parity| parity.group() as u64);
        let first = EPOCH + u64::from(config.first.unwrap_or(random)) / group * group;
        Self {
            session,
            port,
            addresses,
            outgoing: Outgoing::new(config.framing),
            window: Window::new(first, group),
            parity,
            repairs: Repairs::default(),
            needs: Needs::new(config.proactive),
            schedule: Schedule::new(config.ambient),
            control: match config.rate {
                RateControl::Fixed(_) => None,
                RateControl::Pgmcc { max } => Some(Control::new(max, addresses.0.is_ipv6())),
            },
            spm: EPOCH,
            pacer: Pacer::new(config.slack),
            objects: BTreeMap::new(),
            latest: None,
            leaves: false,
            traffic: Traffic::default(),
            counts: Counts::default(),
            config,
        }
    }

    /// Takes a datagram.
    pub(super) fn datagram(&mut self, bytes: &[u8]) {
        self.outgoing.datagram(bytes);
    }

    /// Takes a message, which is a file if it has a name. False if one of both is too long.
    pub(super) fn message(&mut self, name: Option<&[u8]>, bytes: &[u8]) -> bool {
        self.outgoing.message(name, bytes)
    }

    /// Bytes of datagrams and messages that wait.
    pub(super) const fn unit_bytes(&self) -> u64 {
        self.outgoing.unit_bytes()
    }

    /// Says to the group that the session ends, once all has been sent.
    pub(super) fn leave(&mut self, now: Instant) {
        self.leaves = true;
        self.schedule.request(now);
    }

    /// Somebody asks for an SPM.
    pub(super) fn spm_request(&mut self, now: Instant) {
        self.schedule.request(now);
    }

    /// Somebody has answered a poll.
    pub(super) fn poll_response(&mut self) {
        self.counts.poll_responses += 1;
    }

    /// Takes an acknowledgement.
    pub(super) fn ack(&mut self, now: Instant, packet: &Packet<'_>, ack: &Ack) {
        let (Some(control), Some(feedback)) = (&mut self.control, &packet.options.congestion_feedback) else {
            return;
        };
        if control.feedback(now, feedback) {
            let window = &self.window;
            control.ack(now, ack, window.lead(), |sequence| window.has(sequence));
        }
    }

    /// A repairer has repaired something.
    pub(super) fn null_nak(&mut self, packet: &Packet<'_>) {
        self.counts.null_nacks += 1 + packet.options.nak_list.len() as u64;
    }

    /// Bytes of a datagram that fit a packet.
    pub(super) fn unit(&self) -> u64 {
        (self.whole() - self.unit_header()) as u64
    }

    /// The next packet for the group that may be sent now.
    pub(super) fn next(&mut self, now: Instant) -> Option<Buffer> {
        if let Some(confirmation) = self.repairs.confirmation() {
            self.counts.confirmations += 1;
            return Some(self.send(now, Kind::Control, confirmation));
        }
        if self.pacer.departure() > now {
            return None;
        }
        if let Some(repair) = self.repair(now) {
            return Some(repair);
        }
        let is_idle = !self.is_ready(now);
        if self.schedule.is_due(now, is_idle) {
            return Some(self.next_spm(now, is_idle));
        }
        if is_idle { None } else { self.data(now) }
    }

    /// When there is something to send next.
    pub(super) fn deadline(&self, now: Instant) -> Instant {
        let is_full = self.window.room_due(now, self.config.patience);
        let is_limited = self.control.as_ref().and_then(Control::deadline);
        // Until when new data is held back.
        let held = is_full.into_iter().chain(is_limited).max().filter(|_| !self.outgoing.is_empty());
        let waits = self.outgoing.is_empty() || held.is_some();
        let ready = if self.repairs.is_empty() && waits { self.schedule.due(waits) } else { now };
        self.pacer.departure().max(held.map_or(ready, |at| at.min(ready)))
    }

    /// Whether new data may be sent.
    fn is_ready(&mut self, now: Instant) -> bool {
        !self.outgoing.is_empty()
            && self.control.as_mut().is_none_or(|control| control.may_send(now))
            && self.window.make_room(now, self.config.window, self.config.patience)
    }

    fn data(&mut self, now: Instant) -> Option<Buffer> {
        let whole = self.whole();
        let piece = self.outgoing.next(whole, whole - Fragment::LEN)?;
        let sequence = self.window.next();
        let fragment = piece.part.map(|(offset, length)| Fragment {
            // The pieces of a unit follow each other without a gap.
            first: (sequence - u64::from(offset) / (whole - Fragment::LEN) as u64) as u32,
            offset,
            length,
            ..Fragment::default()
        });
        if fragment.is_none_or(|fragment| fragment.offset == 0) {
            let begins = match piece.object {
                Object::Message => true,
                Object::Datagrams | Object::Stream(_) => !self.objects.contains_key(&piece.object),
            };
            if begins {
                self.objects.insert(piece.object, sequence);
                self.latest = Some(sequence);
            }
        }
        if piece.is_last && piece.object != Object::Datagrams {
            self.objects.remove(&piece.object);
        }
        let symbol = Symbol { payload: piece.payload, fragment };
        let payload = Buffer::copy_from(&symbol.payload);
        self.window.push(symbol);
        if let Some(control) = &mut self.control {
            control.sent(now);
        }
        let packet = self.data_packet(now, false, sequence, fragment);
        let bytes = self.send(now, Kind::Data, packet.emit_before(payload));
        self.schedule.data(now, self.packet_time());
        if self.window.ends_group(sequence) {
            self.group_ended(sequence);
        }
        Some(bytes)
    }

    /// The header of data, for the first time or again.
    fn data_packet(
        &self,
        now: Instant,
        again: bool,
        sequence: u64,
        fragment: Option<Fragment>,
    ) -> Packet<'static> {
        let data = Data { sequence: sequence as u32, trail: self.window.trail() as u32 };
        let body = if again { Body::Repair(data) } else { Body::Original(data) };
        let mut packet = Packet::new(self.session, self.port, body);
        packet.options.fragment = fragment;
        packet.options.congestion_data = self.control.as_ref().map(|control| control.option(now));
        packet
    }

    fn next_spm(&mut self, now: Instant, is_idle: bool) -> Buffer {
        self.spm += 1;
        self.counts.spms += 1;
        if is_idle && self.outgoing.is_empty() && self.config.framing == Framing::Ours {
            let first = self.window.group_of(self.window.next());
            if self.parity.is_some() && self.window.end_group().is_some() {
                self.group_ended(first);
            }
        }
        let spm = Spm {
            sequence: self.spm as u32,
            trail: self.window.trail() as u32,
            lead: self.window.lead() as u32,
            path: self.addresses.0,
        };
        let mut packet = Packet::new(self.session, self.port, Body::Spm(spm));
        let proactive = self.needs.is_proactive();
        packet.options = Options {
            join: Some(self.join() as u32),
            parity: self.parity.as_ref().map(|parity| super::wire::Parity {
                proactive,
                on_demand: true,
                group: parity.group() as u32,
            }),
            group_size: self.window.ended_early().map(u32::from),
            fin: self.leaves && self.outgoing.is_empty(),
            member: Some(Member { is_framed: self.config.framing == Framing::Ours, repairs_first: true }),
            ..Options::default()
        };
        let bytes = self.send(now, Kind::Control, packet.emit());
        self.schedule.sent(now);
        bytes
    }

    /// First sequence number that who comes late may ask for: that of the objects that are being sent.
    fn join(&self) -> u64 {
        let first = self.objects.values().copied().chain(self.latest).min();
        first.unwrap_or(self.window.next()).max(self.window.trail())
    }

    /// A transmission group is complete: its parity that nobody has asked for.
    fn group_ended(&mut self, sequence: u64) {
        if self.parity.is_none() {
            return;
        }
        let first = self.window.group_of(sequence);
        let size = self.window.size(first);
        let count = self.needs.group_ended(first, &mut self.window, size);
        if count > 0 {
            self.repairs.promise(&mut self.window, first, count);
        }
    }

    fn send(&mut self, now: Instant, kind: Kind, bytes: Buffer) -> Buffer {
        self.traffic.add(kind, bytes.len());
        self.pacer.sent(now, self.rate(), bytes.len() as u64 + u64::from(self.config.overhead));
        bytes
    }

    /// The rate at which it sends.
    pub(super) fn rate(&self) -> Rate {
        let bytes = u64::from(self.config.packet) + u64::from(self.config.overhead);
        match (self.config.rate, &self.control) {
            (_, Some(control)) => control.rate(bytes),
            (RateControl::Fixed(rate) | RateControl::Pgmcc { max: rate }, None) => rate,
        }
    }

    /// Time that a packet of data takes at its rate.
    fn packet_time(&self) -> Duration {
        self.rate().time_for(u64::from(self.config.packet) + u64::from(self.config.overhead))
    }

    /// Bytes of payload that fit a packet, so that parity of it fits too; a unit's own header is among them.
    fn whole(&self) -> usize {
        let (data, parity) = self.config.overhead(self.addresses.0.is_ipv6());
        usize::from(self.config.packet - data - parity) + self.unit_header()
    }

    /// Bytes of the header of a datagram.
    fn unit_header(&self) -> usize {
        if self.config.framing == Framing::Ours { 1 } else { 0 }
    }

    /// A number of 32 bits near what is being sent.
    fn number(&self, low: u32) -> u64 {
        complete(low, u32::BITS, self.window.next())
    }

    pub(super) fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.traffic.counters(report);
        let counts = &self.counts;
        for (name, value) in [
            ("parity_packets_sent", counts.parity),
            ("spms_sent", counts.spms),
            ("ncfs_sent", counts.confirmations),
            ("null_nacks_received", counts.null_nacks),
            ("nacks_too_late", counts.too_late),
            ("poll_responses_received", counts.poll_responses),
        ] {
            report(name, value);
        }
        let control = self.control.as_ref().map_or_else(Default::default, |control| control.counts);
        for (name, value) in [
            ("acks_received", control.acks),
            ("acker_elections", control.elections),
            ("window_halvings", control.halvings),
            ("ack_timeouts", control.timeouts),
        ] {
            report(name, value);
        }
    }

    /// Requests received.
    pub(super) const fn nacks(&self) -> u64 {
        self.counts.nacks
    }
}

impl SendsStreams for Source {
    fn open(&mut self, _now: Instant) -> Option<u64> {
        self.outgoing.open()
    }

    fn write(&mut self, number: u64, bytes: &[u8]) {
        self.outgoing.write(number, bytes);
    }

    fn end(&mut self, number: u64) {
        self.outgoing.end(number);
    }

    fn waiting(&self, number: u64) -> u64 {
        self.outgoing.waiting(number)
    }

    fn progress(&mut self, number: u64) -> Option<(u64, bool)> {
        self.outgoing.progress(number)
    }
}
