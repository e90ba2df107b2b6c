//! An end of a segment: an encoder and a decoder, a packet port above and a frame port below.

mod receiving;
mod sending;

use hopcast_code::field::{Field, Gf2, Gf256};
use hopcast_core::{Duration, Instant, Item, Machine, Outbox, Port, Stream, earliest};
use hopcast_wire::ethernet::Mac;

use super::acks::Acks;
use super::config::{self, Config, ConfigError, Links, Losses};
use super::decoder::Decoder;
use super::encoder::Encoder;
use super::estimate::Estimate;
use super::gate::Gate;
use super::input::Input;
use super::session::Session;

/// Silence after which a helper is taken to be gone. Chosen; shorter, and losses or a pause are taken for it; longer,
/// and what was left to the helper waits.
const HELPER_GONE: Duration = Duration::from_millis(500);

/// One end of a segment, of which `local` and `peer` are the Ethernet addresses of its two ends.
///
/// # Errors
///
/// The error of [`Config::validate`].
pub fn edge(config: Config, local: Mac, peer: Mac, random: Stream) -> Result<Box<dyn Machine>, ConfigError> {
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
    /// Whether packets have to wait for long at the input.
    behind: bool,
    /// Time at which the helper was last heard.
    helper_heard: Option<Instant>,
    out: Outbox,
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
    wrong_items: u64,
    checksum_errors: u64,
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
            behind: false,
            helper_heard: None,
            out: Outbox::new(),
            counters: Counters::default(),
            config,
            local,
            peer,
        }
    }

    /// Whether the direction in which this end sends is the upper one.
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
            _ => self.counters.wrong_items += 1,
        }
        self.send(now);
    }

    fn wake(&mut self, now: Instant) {
        self.send(now);
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        if let Some(opens) = self.gate.deadline() {
            return Some(opens);
        }
        let mut next = self.session.deadline();
        if self.session.association().is_some() {
            let gathered = self.input.since().filter(|_| self.gate.is_idle());
            let gathered =
                gathered.filter(|_| self.encoder.has_room()).map(|since| since + self.config.gather);
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
            wrong_items,
            checksum_errors,
            malformed,
            foreign,
            mismatched,
        } = self.counters;
        let (encoder, decoder) = (self.encoder.counters, self.decoder.counters);
        for (name, value) in [
            ("packets_sent", self.input.taken()),
            ("packets_received", packets_received),
            ("packets_dropped_at_input", self.input.dropped()),
            ("too_big", too_big),
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
            ("wrong_items", wrong_items),
            ("checksum_errors", checksum_errors),
            ("malformed", malformed),
            ("foreign", foreign),
            ("mismatched", mismatched),
        ] {
            report(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::{Buffer, Frame, Seed};

    use super::super::wire::{self, Ack, Common, Packet};
    use super::*;

    #[test]
    fn a_helper_that_is_not_heard_for_half_a_second_is_gone() {
        let at = |millis| Instant::ZERO + Duration::from_millis(millis);
        let random = || Seed::new(1, 0).stream(&["edge"], 0);
        let mut edge = Edge::<Gf256>::new(Config::default().with_helper(), [2; 6], [4; 6], random());
        assert!(!edge.is_helped(at(100)), "none was heard yet");
        edge.helper_heard = Some(at(100));
        assert!(edge.is_helped(at(599)) && !edge.is_helped(at(600)));
        let mut edge = Edge::<Gf256>::new(Config::default(), [2; 6], [4; 6], random());
        edge.helper_heard = Some(at(100));
        assert!(!edge.is_helped(at(100)), "the settings have none");
    }

    #[test]
    fn packets_that_are_too_big_are_counted() {
        let random = Seed::new(1, 0).stream(&["edge"], 0);
        let mut edge = Edge::<Gf256>::new(Config::default(), [2; 6], [4; 6], random);
        for (bytes, too_big) in [(1500, 0), (1501, 1), (9000, 2)] {
            edge.handle(Instant::ZERO, Port::Above(0), Item::Packet(Buffer::zeroed(bytes)));
            assert_eq!(edge.counters.too_big, too_big, "{bytes}");
        }
    }

    #[test]
    fn a_packet_of_another_association_is_answered_with_a_hello_only_if_the_peer_sent_it_to_us() {
        let (us, peer, other) = ([2; 6], [4; 6], [6; 6]);
        for (source, destination, asks, foreign) in
            [(peer, us, true, 1), (other, us, false, 1), (other, peer, false, 1), (peer, other, false, 0)]
        {
            let random = Seed::new(1, 0).stream(&["edge"], 0);
            let mut edge = Edge::<Gf256>::new(Config::default(), us, peer, random);
            let common = Common { association: 7, up: true };
            let bytes =
                wire::emit((source, destination), common, &Packet::Ack(Ack::default()), &Config::default());
            edge.receive_frame(Instant::ZERO, &Frame::new(bytes));
            let what = format!("from {source:?} to {destination:?}");
            assert_eq!((edge.session.deadline().is_some(), edge.counters.foreign), (asks, foreign), "{what}");
        }
    }
}
