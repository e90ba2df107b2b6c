//! An end of a segment: an encoder and a decoder, a packet port above and a frame port below.

use std::collections::VecDeque;

use hopcast_code::field::{Field, Gf2, Gf256};
use hopcast_core::{Buffer, Duration, Frame, Instant, Item, Machine, Port, Stream, earliest};
use hopcast_wire::ethernet::{self, Mac};
use hopcast_wire::{icmp, ip};

use super::acks::Acks;
use super::config::{self, Config, Links, Losses, Plan};
use super::decoder::Decoder;
use super::encoder::{Encoder, State, Surroundings, What};
use super::estimate::Estimate;
use super::gate::Gate;
use super::input::Input;
use super::session::{Met, Session};
use super::wire::{self, Ack, Coding, Common, Enc, Hello, Packet};

/// A helper that has not been heard for so long is taken to be gone.
const HELPER_GONE: Duration = Duration::from_millis(500);

/// One end of a segment, of which `local` and `peer` are the Ethernet addresses of its two ends.
///
/// # Errors
///
/// What [`Config::validate`] says.
pub fn edge(config: Config, local: Mac, peer: Mac, random: Stream) -> Result<Box<dyn Machine>, String> {
    config.validate()?;
    Ok(match config.field {
        config::Field::Binary => Box::new(Edge::<Gf2>::new(config, local, peer, random)),
        config::Field::Binary8 => Box::new(Edge::<Gf256>::new(config, local, peer, random)),
    })
}

/// One end of a segment; see the [module's documentation](super).
pub(super) struct Edge<F: Field> {
    config: Config,
    local: Mac,
    peer: Mac,
    session: Session,
    input: Input,
    encoder: Encoder<F>,
    decoder: Decoder<F>,
    acks: Acks,
    gate: Gate,
    /// In PlayNCool's terms, for what this end sends.
    e1: Estimate,
    e2: Estimate,
    e3: Estimate,
    /// When the helper was last heard.
    helper_heard: Option<Instant>,
    out: VecDeque<(Port, Item)>,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    packets_received: u64,
    frames_sent: u64,
    acks_sent: u64,
    hellos_sent: u64,
    acks_received: u64,
    restarts: u64,
    symbols_lost_in_restarts: u64,
    too_big: u64,
    refused: u64,
    damaged: u64,
    malformed: u64,
    foreign: u64,
    mismatched: u64,
}

impl<F: Field> Edge<F> {
    pub(super) fn new(config: Config, local: Mac, peer: Mac, mut random: Stream) -> Self {
        Self {
            session: Session::new(config.profile(), random.fork()),
            input: Input::new(config.queue, config.mtu),
            encoder: Encoder::new(config.clone(), random.bits()),
            decoder: Decoder::new(config.clone()),
            acks: Acks::new(&config),
            gate: Gate::default(),
            e1: Estimate::default(),
            e2: Estimate::default(),
            e3: Estimate::default(),
            helper_heard: None,
            out: VecDeque::new(),
            counters: Counters::default(),
            config,
            local,
            peer,
        }
    }

    fn receive_packet(&mut self, now: Instant, packet: Buffer) {
        if packet.len() > usize::from(self.config.mtu) {
            self.counters.too_big += 1;
            self.answer_too_big(&packet);
        } else if packet.is_empty() {
            self.counters.refused += 1;
        } else {
            self.input.push(now, packet);
        }
    }

    /// Tells the sender above what would have fitted; about a packet that is no IP there is nothing to tell.
    fn answer_too_big(&mut self, packet: &[u8]) {
        let Ok(header) = ip::parse(packet) else { return };
        let mut answer = Buffer::copy_from(icmp::quote(header.version, packet));
        let (from, to) = (header.destination, header.source);
        icmp::prepend(&mut answer, from, to, icmp::Message::PacketTooBig { mtu: u32::from(self.config.mtu) });
        ip::prepend(&mut answer, from, to, icmp::protocol(header.version), 64, 0);
        self.out.push_back((Port::Above(0), Item::Packet(answer)));
    }

    fn receive_frame(&mut self, now: Instant, frame: &Frame) {
        let Ok(header) = ethernet::parse(&frame.bytes) else {
            self.counters.malformed += 1;
            return;
        };
        if header.ether_type != wire::ETHER_TYPE {
            self.counters.refused += 1;
            return;
        }
        if header.source == self.local {
            if header.destination == self.peer {
                self.gate.echo();
            }
            return;
        }
        let from_peer = header.source == self.peer;
        let for_us = header.destination == self.local;
        // Other segments' stations may be on the medium. What is not for us is the helper's at most.
        if !for_us && (from_peer || header.destination != self.peer) {
            return;
        }
        let config = self.config.clone();
        let (common, packet) = match wire::parse(&frame.bytes[ethernet::HEADER..], &config) {
            Ok(parsed) => parsed,
            Err(wire::Refused::Damaged) => {
                self.counters.damaged += 1;
                return;
            }
            Err(_) => {
                self.counters.malformed += 1;
                return;
            }
        };
        match packet {
            Packet::Hello(hello) if from_peer && for_us => self.receive_hello(hello),
            Packet::Hello(_) => {}
            _ if Some(common.association) != self.session.association() => {
                self.counters.foreign += 1;
                if from_peer && for_us {
                    self.session.ask();
                }
            }
            Packet::Enc(enc) => self.receive_enc(now, &enc, common, from_peer, for_us),
            Packet::Ack(ack) if from_peer && for_us && common.up == self.is_up() => {
                self.session.used();
                self.receive_ack(now, &ack);
            }
            Packet::Ack(_) => {}
        }
    }

    fn receive_hello(&mut self, hello: Hello) {
        match self.session.hello(hello) {
            Met::Nothing => {}
            Met::Mismatch => self.counters.mismatched += 1,
            Met::Peer => self.gate.answered(),
            Met::Restarted => {
                self.counters.restarts += 1;
                self.counters.symbols_lost_in_restarts += self.encoder.restart();
                self.decoder.restart();
                self.input.restart();
                self.acks.restart();
                self.helper_heard = None;
                for estimate in [&mut self.e1, &mut self.e2, &mut self.e3] {
                    estimate.restart();
                }
            }
        }
    }

    fn receive_enc(&mut self, now: Instant, enc: &Enc<'_>, common: Common, from_peer: bool, for_us: bool) {
        if common.up == self.is_up() {
            // Our own data, on their way from the helper to the peer.
            if let Some(report) = &enc.report {
                self.helper_heard = Some(now);
                self.e1.update(report.heard);
                self.encoder.report(report);
            }
            return;
        }
        if !for_us || from_peer == enc.report.is_some() {
            self.counters.foreign += 1;
            return;
        }
        self.session.used();
        if let Some(ack) = &enc.ack {
            self.receive_ack(now, ack);
        }
        let (out, received) = (&mut self.out, &mut self.counters.packets_received);
        let arrival = self.decoder.push(enc, |packet| {
            *received += 1;
            out.push_back((Port::Above(0), Item::Packet(Buffer::copy_from(packet))));
        });
        self.acks.on_arrival(now, arrival, self.decoder.is_missing());
    }

    fn receive_ack(&mut self, now: Instant, ack: &Ack) {
        self.counters.acks_received += 1;
        self.gate.answered();
        self.e3.update(ack.heard);
        self.e2.update(ack.helper);
        self.encoder.acknowledge(now, ack);
    }

    /// Hands the interface what there is to send.
    fn send(&mut self, now: Instant) {
        let unmet = self.session.association().is_none() && !self.input.is_empty();
        if unmet || (self.session.is_new() && self.encoder.state() != State::Idle) {
            self.session.ask();
        }
        while self.gate.is_open(now) {
            let frame = match self.session.poll(now) {
                Some(hello) => {
                    self.counters.hellos_sent += 1;
                    Some(self.emit(false, 0, &Packet::Hello(hello)))
                }
                None => self.next_frame(now),
            };
            let Some(frame) = frame else { return };
            self.hand_over(now, frame);
        }
    }

    fn next_frame(&mut self, now: Instant) -> Option<Buffer> {
        let association = self.session.association()?;
        let ack_wanted = self.decoder.has_begun() && self.acks.is_wanted(now);
        let piggybacks = self.config.plan == Plan::Deficit;
        let ack = self.decoder.has_begun().then(|| self.decoder.acknowledgement(self.acks.number()));
        let ack_len = ack.as_ref().map_or(0, |ack| ack.len(self.config.block));
        let longest = self.config.longest_frame();
        // A new symbol leaves room for an acknowledgement that is wanted.
        let reserved = if ack_wanted && piggybacks { ack_len } else { 0 };
        let held = self.input.since().is_some_and(|since| now.since(since) < self.config.gather);
        let around = Surroundings {
            losses: self.losses(),
            helped: self.is_helped(now),
            partial: self.gate.is_idle() && !held,
            room: usize::from(self.config.symbol).min(longest.saturating_sub(wire::ENC + 1 + reserved)),
        };
        let Some(made) = self.encoder.next(now, &mut self.input, &around) else {
            if !self.acks.is_due(now) {
                return None;
            }
            return self.acknowledge(now, association, ack?);
        };
        let symbol = self.encoder.symbol();
        let (coding, coding_len) = match made.what {
            What::Symbol(index) => (Coding::Symbol(index), 1),
            What::Sum(among) => (Coding::Sum(among), wire::bitmap_len(self.config.block)),
        };
        let used = symbol.iter().rposition(|&byte| byte != 0).map_or(0, |last| last + 1);
        let fits = wire::ENC + coding_len + used + ack_len <= longest;
        let due = self.acks.is_due(now);
        let ack = ack.filter(|_| due || ack_wanted || self.acks.has_news());
        let (along, alone) = if fits && piggybacks { (ack, None) } else { (None, ack.filter(|_| due)) };
        let acknowledges = along.is_some();
        let enc = Enc {
            block: made.block,
            sequence: made.sequence,
            added: made.added,
            coding,
            ack: along,
            report: None,
            symbol,
        };
        let frame = self.emit(self.is_up(), association, &Packet::Enc(enc));
        if acknowledges {
            self.acks.sent(now, self.decoder.is_missing());
        } else if let Some(ack) = alone
            && let Some(ack) = self.acknowledge(now, association, ack)
        {
            self.hand_over(now, ack);
        }
        Some(frame)
    }

    fn acknowledge(&mut self, now: Instant, association: u32, ack: Ack) -> Option<Buffer> {
        self.counters.acks_sent += 1;
        self.acks.sent(now, self.decoder.is_missing());
        // About the data of the other direction.
        Some(self.emit(!self.is_up(), association, &Packet::Ack(ack)))
    }

    fn emit(&self, up: bool, association: u32, packet: &Packet<'_>) -> Buffer {
        wire::emit((self.local, self.peer), Common { association, up }, packet, &self.config)
    }

    fn hand_over(&mut self, now: Instant, bytes: Buffer) {
        self.counters.frames_sent += 1;
        self.gate.handed(now);
        self.out.push_back((Port::Below(0), Item::Frame(Frame { bytes, overheard: false })));
    }

    /// Whether what this end sends goes up.
    fn is_up(&self) -> bool {
        self.local < self.peer
    }

    fn losses(&self) -> Losses {
        match self.config.links {
            Links::Given(losses) => losses,
            Links::Measured => Losses { e1: self.e1.loss(), e2: self.e2.loss(), e3: self.e3.loss() },
        }
    }

    fn is_helped(&self, now: Instant) -> bool {
        self.config.helper && self.helper_heard.is_some_and(|heard| now.since(heard) < HELPER_GONE)
    }
}

impl<F: Field> Machine for Edge<F> {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Above(_), Item::Packet(packet)) => self.receive_packet(now, packet),
            (Port::Below(_), Item::Frame(frame)) => self.receive_frame(now, &frame),
            _ => self.counters.refused += 1,
        }
        self.send(now);
    }

    fn wake(&mut self, now: Instant) {
        self.send(now);
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop_front()
    }

    fn deadline(&self) -> Option<Instant> {
        if let Some(opens) = self.gate.deadline() {
            return Some(opens);
        }
        let mut next = self.session.deadline();
        if self.session.association().is_some() {
            let gathered = self.input.since().filter(|_| self.gate.is_idle());
            let gathered = gathered.filter(|_| self.encoder.has_room()).map(|since| since + self.config.gather);
            let idle = self.gate.idle_at().filter(|_| !self.input.is_empty());
            for at in [self.encoder.deadline(), self.acks.deadline(), gathered, idle] {
                next = earliest(next, at);
            }
        }
        next
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let Counters {
            packets_received,
            frames_sent,
            acks_sent,
            hellos_sent,
            acks_received,
            restarts,
            symbols_lost_in_restarts,
            too_big,
            refused,
            damaged,
            malformed,
            foreign,
            mismatched,
        } = self.counters;
        let (encoder, decoder) = (self.encoder.counters, self.decoder.counters);
        for (name, value) in [
            ("packets_sent", self.input.taken()),
            ("packets_received", packets_received),
            ("packets_dropped_at_input", self.input.dropped()),
            ("packets_too_big", too_big),
            ("frames_sent", frames_sent),
            ("symbols_sent", encoder.symbols),
            ("symbols_sent_again", encoder.again),
            ("coded_sent", encoder.coded),
            ("acks_sent", acks_sent),
            ("acks_received", acks_received),
            ("hellos_sent", hellos_sent),
            ("blocks_acknowledged", encoder.blocks),
            ("block_transmissions", encoder.block_packets),
            ("timeouts", encoder.timeouts),
            ("innovative_received", decoder.innovative),
            ("redundant_received", decoder.redundant),
            ("out_of_window", decoder.outside),
            ("restarts", restarts),
            ("symbols_lost_in_restarts", symbols_lost_in_restarts),
            ("refused", refused),
            ("damaged", damaged),
            ("malformed", malformed),
            ("foreign", foreign),
            ("mismatched", mismatched),
        ] {
            report(name, value);
        }
    }
}
