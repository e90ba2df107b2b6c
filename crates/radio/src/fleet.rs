//! The ships whose radios share a medium.

use std::collections::BTreeMap;
use std::sync::Arc;

use hopcast_core::{Dbm, Fraction, Instant, Rate, Seed};
use hopcast_link::{Hearing, RadioSource, Radios};

use crate::budget::{Channel, RadioLink, RadioLinkState, Ship};

/// Ships on one channel: station i of their medium is ship i.
#[derive(Clone, Debug)]
pub struct Fleet {
    /// Propagation and rates.
    pub channel: Arc<Channel>,
    /// The ships.
    pub ships: Vec<Arc<Ship>>,
    /// Share of frames that a link loses at any signal.
    pub loss: Fraction,
    /// Decibels by which another beam's gain must be higher before a ship hands over to it.
    pub hysteresis: f64,
    /// Signal in dBm from which on a ship senses frames, also of those whose rate it cannot read.
    pub sensitivity: f64,
}

impl Fleet {
    /// The link of ship `a` and ship `b`, in a run with this seed.
    pub fn link(&self, a: usize, b: usize, seed: &Seed) -> RadioLink {
        let [a, b] = [a, b].map(|ship| self.ships[ship].clone());
        RadioLink::new(self.channel.clone(), a, b, seed, self.hysteresis)
    }
}

impl RadioSource for Fleet {
    fn radios(&self, seed: &Seed) -> Box<dyn Radios> {
        let rates = self.channel.rates.rows().iter().map(|row| row.rate).collect();
        Box::new(FleetRadios { fleet: self.clone(), seed: *seed, rates, links: BTreeMap::new() })
    }
}

/// The radios of a fleet during a run.
#[derive(Debug)]
struct FleetRadios {
    fleet: Fleet,
    seed: Seed,
    rates: Vec<Rate>,
    /// By the numbers of their ships, the lower first.
    links: BTreeMap<(usize, usize), RadioLink>,
}

impl Radios for FleetRadios {
    fn rates(&self) -> &[Rate] {
        &self.rates
    }

    fn hearing(&mut self, now: Instant, from: usize, to: usize) -> Option<Hearing> {
        if from == to || from.max(to) >= self.fleet.ships.len() {
            return None;
        }
        let ends = (from.min(to), from.max(to));
        let link = self.links.entry(ends).or_insert_with(|| self.fleet.link(ends.0, ends.1, &self.seed));
        let budget = link.at(now);
        let state = if from < to { budget.forward } else { budget.back };
        let (signal, rate) = match state {
            RadioLinkState::Up { signal, rate, .. } => (signal, rate),
            RadioLinkState::TooWeak { signal, .. } if signal >= self.fleet.sensitivity => {
                (signal, Rate::default())
            }
            _ => return None,
        };
        Some(Hearing { to, rate, loss: self.fleet.loss, signal: Some(Dbm::new(signal)) })
    }

    fn hearers(&mut self, now: Instant, from: usize, hearers: &mut Vec<Hearing>) {
        hearers.extend((0..self.fleet.ships.len()).filter_map(|to| self.hearing(now, from, to)));
    }
}
