//! The helper: overhears a segment, and sends the decoder what it lacks.

use hopcast_code::field::{Field, Gf2, Gf256};
use hopcast_core::{Frame, Instant, Item, Machine, Outbox, Port, Stream};
use hopcast_wire::ethernet::{self, Mac};

use super::config::{self, Config, ConfigError};
use super::gate::Gate;
use super::relay::Relay;
use super::wire::{self, Common, Packet};

/// Number of packets of another association in a row after which it is the one to help. Chosen; fewer, and a stray
/// packet changes it; more, and a new association goes without help for longer.
const PERSUASIVE: u32 = 3;

/// A helper at `local` of the segment between `ends`, for both directions.
///
/// # Errors
///
/// The error of [`Config::validate`], or [`ConfigError::NoHelper`].
pub fn helper(
    config: Config,
    local: Mac,
    ends: [Mac; 2],
    random: Stream,
) -> Result<Box<dyn Machine>, ConfigError> {
    config.validate()?;
    if !config.helper {
        return Err(ConfigError::NoHelper);
    }
    Ok(match config.field {
        config::Field::Binary => Box::new(Helper::<Gf2>::new(config, local, ends, random)),
        config::Field::Binary8 => Box::new(Helper::<Gf256>::new(config, local, ends, random)),
    })
}

/// A helper of both directions of a segment.
pub(super) struct Helper<F: Field> {
    config: Config,
    local: Mac,
    ends: [Mac; 2],
    association: Option<u32>,
    strangers: u32,
    /// One for each end's data.
    relays: [Relay<F>; 2],
    gate: Gate,
    out: Outbox,
    counters: Counters,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    overheard: u64,
    innovative: u64,
    relayed: u64,
    acks: u64,
    associations: u64,
    wrong_items: u64,
    checksum_errors: u64,
    malformed: u64,
    foreign: u64,
}

impl<F: Field> Helper<F> {
    pub(super) fn new(config: Config, local: Mac, ends: [Mac; 2], mut random: Stream) -> Self {
        Self {
            relays: [(); 2].map(|()| Relay::new(config.clone(), random.bits())),
            config,
            local,
            ends,
            association: None,
            strangers: 0,
            gate: Gate::default(),
            out: Outbox::new(),
            counters: Counters::default(),
        }
    }

    fn overhear(&mut self, frame: &Frame) {
        let Ok(header) = ethernet::parse(&frame.bytes) else {
            self.counters.malformed += 1;
            return;
        };
        if header.ether_type != wire::ETHER_TYPE {
            self.counters.foreign += 1;
            return;
        }
        if header.source == self.local {
            if self.ends.contains(&header.destination) {
                self.gate.echo();
            }
            return;
        }
        let Some(from) = self.ends.iter().position(|end| *end == header.source) else {
            self.counters.foreign += 1;
            return;
        };
        if header.destination != self.ends[1 - from] {
            self.counters.foreign += 1;
            return;
        }
        let config = self.config.clone();
        let (common, packet) = match wire::parse(&frame.bytes[ethernet::HEADER..], &config) {
            Ok(parsed) => parsed,
            Err(refused) => {
                return refused.count(&mut self.counters.checksum_errors, &mut self.counters.malformed);
            }
        };
        if matches!(packet, Packet::Hello(_)) || !self.belongs(common) {
            return;
        }
        self.counters.overheard += 1;
        match packet {
            Packet::Enc(enc) if common.up == self.goes_up(from) && enc.report.is_none() => {
                if self.relays[from].hear(&enc) {
                    self.counters.innovative += 1;
                }
                if let Some(ack) = &enc.ack {
                    self.relays[1 - from].acknowledge(ack);
                }
            }
            Packet::Ack(ack) if common.up == self.goes_up(1 - from) => {
                self.counters.acks += 1;
                self.relays[1 - from].acknowledge(&ack);
            }
            Packet::Enc(_) | Packet::Ack(_) | Packet::Hello(_) => self.counters.foreign += 1,
        }
    }

    /// Whether a packet is of the association that is being helped; it may become that by being persistent.
    fn belongs(&mut self, common: Common) -> bool {
        if self.association == Some(common.association) {
            self.strangers = 0;
            return true;
        }
        self.strangers += 1;
        if self.association.is_some() && self.strangers < PERSUASIVE {
            return false;
        }
        self.strangers = 0;
        self.association = Some(common.association);
        self.counters.associations += 1;
        self.relays.iter_mut().for_each(Relay::restart);
        true
    }

    fn send(&mut self, now: Instant) {
        let Some(association) = self.association else { return };
        // The directions take turns.
        let mut idle = 0;
        for from in [0, 1].into_iter().cycle() {
            if idle == 2 || !self.gate.is_open(now) {
                return;
            }
            let common = Common { association, up: self.goes_up(from) };
            let addresses = (self.local, self.ends[1 - from]);
            match self.relays[from].next() {
                Some(enc) => {
                    let bytes = wire::emit(addresses, common, &Packet::Enc(enc), &self.config);
                    idle = 0;
                    self.counters.relayed += 1;
                    self.gate.handed(now);
                    self.out.down(Item::Frame(Frame::new(bytes)));
                }
                None => idle += 1,
            }
        }
    }

    fn goes_up(&self, from: usize) -> bool {
        self.ends[from] < self.ends[1 - from]
    }
}

impl<F: Field> Machine for Helper<F> {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Below(_), Item::Frame(frame)) => self.overhear(&frame),
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
        self.gate.deadline()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let Counters {
            overheard,
            innovative,
            relayed,
            acks,
            associations,
            wrong_items,
            checksum_errors,
            malformed,
            foreign,
        } = self.counters;
        for (name, value) in [
            ("overheard", overheard),
            ("innovative_overheard", innovative),
            ("relayed", relayed),
            ("acks_overheard", acks),
            ("associations", associations),
            ("wrong_items", wrong_items),
            ("checksum_errors", checksum_errors),
            ("malformed", malformed),
            ("foreign", foreign),
        ] {
            report(name, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::*;

    #[test]
    fn three_packets_in_a_row_of_another_association_persuade_a_helper() {
        let random = Seed::new(1, 0).stream(&["helper"], 0);
        let mut helper =
            Helper::<Gf256>::new(Config::default().with_helper(), [1; 6], [[2; 6], [4; 6]], random);
        let found =
            [7, 8, 8, 7, 8, 8, 8, 7, 8].map(|association| helper.belongs(Common { association, up: true }));
        assert_eq!(found, [true, false, false, true, false, false, true, false, true]);
        assert_eq!((helper.association, helper.counters.associations), (Some(8), 2));
    }

    #[test]
    fn what_is_overheard_of_its_association_is_counted() {
        let random = Seed::new(1, 0).stream(&["helper"], 0);
        let config = Config::default().with_helper();
        let mut helper = Helper::<Gf256>::new(config.clone(), [1; 6], [[2; 6], [4; 6]], random);
        for (association, overheard) in [(7, 1), (7, 2), (8, 2), (7, 3)] {
            let common = Common { association, up: true };
            let ack = Packet::Ack(wire::Ack::default());
            let bytes = wire::emit(([4; 6], [2; 6]), common, &ack, &config);
            helper.overhear(&Frame { overheard: true, ..Frame::new(bytes) });
            assert_eq!(helper.counters.overheard, overheard);
        }
    }
}
