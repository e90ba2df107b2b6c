//! Radios of tests.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::percent;
use hopcast_core::{Buffer, Dbm, Fraction, Instant, Rate, Seed};
use hopcast_link::{
    Attachment, Csma, Direction, Hearing, Mac, MediumConfig, RadioModel, RadioSource, Radios, Station,
};

/// From the highest to the lowest; the tests' frames take whole nanoseconds at each.
pub const RATES: [u64; 4] = [64, 16, 8, 1];

/// The rate in Mbit/s at which one station hears another at a time, 0 if it only senses it, and the percentage that is
/// lost.
type Air = dyn Fn(Instant, Attachment, Attachment) -> Option<(u64, f64)> + Send + Sync;

/// Radios of stations that hear each other as a function says.
#[derive(Clone)]
struct FixedRadios {
    stations: usize,
    air: Arc<Air>,
    rates: Vec<Rate>,
    last: Instant,
}

/// The radios of this number of stations, which hear each other as `air` says.
pub fn fixed_radios(
    stations: usize,
    air: impl Fn(Instant, Attachment, Attachment) -> Option<(u64, f64)> + Send + Sync + 'static,
) -> Option<RadioModel> {
    let rates = RATES.map(Rate::from_mbit).to_vec();
    Some(RadioModel(Arc::new(FixedRadios { stations, air: Arc::new(air), rates, last: Instant::ZERO })))
}

/// Stations with radios: their addresses end in their numbers.
pub fn with_radios(
    stations: usize,
    mac: Mac,
    air: impl Fn(Instant, Attachment, Attachment) -> Option<(u64, f64)> + Send + Sync + 'static,
) -> MediumConfig {
    MediumConfig {
        // Neither means anything here.
        direction: Direction {
            rate: Some(Rate::from_mbit(3)),
            loss: hopcast_link::Loss::Independent(Fraction::ONE),
            ..Direction::default()
        },
        stations: (0..stations)
            .map(|i| Station { address: [2, 0, 0, 0, 0, i as u8], ..Station::default() })
            .collect(),
        mac,
        radios: fixed_radios(stations, air),
        ..MediumConfig::default()
    }
}

/// Without a choice of slots everything has its time: slots begin at 50 µs and each 20 µs after it.
pub fn exact() -> Csma {
    Csma { cw_min: 0, cw_max: 0, ..Csma::default() }
}

/// A frame of `len` bytes to one station, which holds its number.
pub fn to(destination: u8, id: u64, len: usize) -> Buffer {
    let mut frame = super::frame(id, len);
    frame[..6].copy_from_slice(&[2, 0, 0, 0, 0, destination]);
    frame
}

impl std::fmt::Debug for FixedRadios {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("FixedRadios")
    }
}

impl RadioSource for FixedRadios {
    fn radios(&self, _: &Seed) -> Box<dyn Radios> {
        Box::new(self.clone())
    }
}

impl FixedRadios {
    fn find(&self, now: Instant, from: Attachment, to: Attachment) -> Option<Hearing> {
        let (mbit, loss) = (self.air)(now, from, to).filter(|_| from != to)?;
        let signal = Some(Dbm::new(-90.0 + mbit as f64 / 10.0));
        Some(Hearing { to, rate: Rate::from_mbit(mbit), loss: percent(loss), signal })
    }
}

impl Radios for FixedRadios {
    fn rates(&self) -> &[Rate] {
        &self.rates
    }

    fn hearing(&mut self, now: Instant, from: Attachment, to: Attachment) -> Option<Hearing> {
        assert!(now >= self.last, "a question that goes back from {} to {now}", self.last);
        self.last = now;
        self.find(now, from, to)
    }

    fn peek(&mut self, now: Instant, from: Attachment, to: Attachment) -> Option<Hearing> {
        assert!(now >= self.last, "a question that goes back from {} to {now}", self.last);
        self.find(now, from, to)
    }

    fn hearers(&mut self, now: Instant, from: Attachment, hearers: &mut Vec<Hearing>) {
        hearers.extend((0..self.stations).filter_map(|to| self.hearing(now, from, to)));
    }
}

/// Radios whose answers depend on all questions before, as a hand-over with hysteresis does.
#[derive(Clone, Debug)]
pub struct Stateful {
    pub stations: usize,
    rates: Vec<Rate>,
    last: Instant,
    /// For each pair without order, the time of the last question, and what became of all.
    pairs: BTreeMap<[Attachment; 2], (Instant, u64)>,
}

impl Stateful {
    pub fn new(stations: usize) -> Self {
        let rates = RATES.map(Rate::from_mbit).to_vec();
        Self { stations, rates, last: Instant::ZERO, pairs: BTreeMap::new() }
    }
}

impl RadioSource for Stateful {
    fn radios(&self, _: &Seed) -> Box<dyn Radios> {
        Box::new(self.clone())
    }
}

impl Radios for Stateful {
    fn rates(&self) -> &[Rate] {
        &self.rates
    }

    fn hearing(&mut self, now: Instant, from: Attachment, to: Attachment) -> Option<Hearing> {
        assert!(now >= self.last, "a question that goes back from {} to {now}", self.last);
        self.last = now;
        if from == to {
            return None;
        }
        let fresh = (Instant::ZERO, 31 * (from.min(to) as u64 + 7 * from.max(to) as u64 + 1));
        let (at, sum) = self.pairs.entry([from.min(to), from.max(to)]).or_insert(fresh);
        if *at != now {
            *at = now;
            *sum = sum.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(now.as_nanos() | 1);
        }
        let bits = *sum >> 33;
        let loss = [0.0, 30.0, 100.0][(bits >> 8) as usize % 3];
        // Some only sense each other.
        let rate = self.rates.get((bits >> 4) as usize % (self.rates.len() + 1)).copied().unwrap_or_default();
        (bits % 4 > 0).then(|| Hearing { to, rate, loss: percent(loss), signal: None })
    }

    fn peek(&mut self, now: Instant, from: Attachment, to: Attachment) -> Option<Hearing> {
        self.clone().hearing(now, from, to)
    }

    fn hearers(&mut self, now: Instant, from: Attachment, hearers: &mut Vec<Hearing>) {
        hearers.extend((0..self.stations).filter_map(|to| self.hearing(now, from, to)));
    }
}
