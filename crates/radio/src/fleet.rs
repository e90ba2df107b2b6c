//! The ships whose radios share a medium.

use std::sync::Arc;

use hopcast_core::{Dbm, Duration, Fraction, Instant, Rate, Seed, earliest};
use hopcast_link::{Hearing, RadioSource, Radios};

use crate::budget::{Channel, RadioLink, RadioLinkState, Ship};
use crate::motion::Drift;
use crate::track::Fix;

/// Ships on one channel: station i of their medium is ship i.
///
/// Two ships have one [`RadioLink`] in both directions, as they have one pair of beams: a hand-over because of a frame
/// one way is one for the other way too.
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
    /// The link of ship `a` and ship `b`, which there must be, in a run with this seed.
    pub fn link(&self, a: usize, b: usize, seed: &Seed) -> RadioLink {
        let [a, b] = [a, b].map(|ship| self.ships[ship].clone());
        RadioLink::new(self.channel.clone(), a, b, seed, self.hysteresis)
    }

    /// A distance beyond which two ships do not hear each other with at most this shadowing.
    fn reach(&self, ends: (usize, usize), shadowing: f64) -> Option<f64> {
        let radios = [ends.0, ends.1].map(|ship| &self.ships[ship].radio);
        let gains = radios[0].antennas().max_gain() + radios[1].antennas().max_gain();
        let power = radios[0].power().max(radios[1].power());
        // A millionth of a decibel for what sums round.
        self.channel.law.reach(power + gains + shadowing - self.sensitivity + 1e-6)
    }
}

impl RadioSource for Fleet {
    fn radios(&self, seed: &Seed) -> Box<dyn Radios> {
        let count = self.ships.len();
        let located = |ship: &Arc<Ship>| Located { drift: ship.motion.drift(), last: None };
        Box::new(FleetRadios {
            rates: self.channel.rates.rows().iter().map(|row| row.rate).collect(),
            located: self.ships.iter().map(located).collect(),
            apart_until: vec![Instant::ZERO; count * count],
            pairs: (0..count * count).map(|_| None).collect(),
            fleet: self.clone(),
            seed: *seed,
        })
    }
}

/// The radios of a fleet during a run.
///
/// A frame concerns the ships near its sender, and the others must cost next to nothing: of two ships out of range the
/// time is kept before which they cannot be in range again, and the budget of two that stand still is kept until one
/// of them moves. Neither changes an answer.
#[derive(Debug)]
struct FleetRadios {
    fleet: Fleet,
    seed: Seed,
    rates: Vec<Rate>,
    located: Vec<Located>,
    /// For each ordered pair, the time before which neither hears the other; in rows, since a sender's is gone through
    /// at each of its frames.
    apart_until: Vec<Instant>,
    /// For each ordered pair whose first ship has the lower number, made when they are first near each other.
    pairs: Vec<Option<Box<Pair>>>,
}

/// A ship, and where it was when that was last asked.
#[derive(Debug)]
struct Located {
    drift: Option<Drift>,
    last: Option<Known<Option<Fix>>>,
}

/// Two ships, and how they heard each other when that was last asked.
#[derive(Debug)]
struct Pair {
    link: RadioLink,
    /// Distance beyond which there is no link, if one is known.
    reach: Option<f64>,
    last: Option<Known<[Option<Reading>; 2]>>,
}

/// Rate and signal at a receiver.
type Reading = (Rate, f64);

/// An answer that holds at one time, and from then on until another; `None`: for ever.
#[derive(Clone, Copy, Debug)]
struct Known<T> {
    at: Instant,
    until: Option<Instant>,
    what: T,
}

impl<T: Copy> Known<T> {
    fn at(&self, now: Instant) -> Option<T> {
        let holds = now == self.at || (now > self.at && self.until.is_none_or(|until| now < until));
        holds.then_some(self.what)
    }
}

/// Metres by which positions may be off through rounding, with a good margin: of 4e10 m, a float's are 1e-5 m.
const ROUNDING: f64 = 1.0;

/// The time that two ships never are in range before.
const NEVER: Instant = Instant::from_nanos(u64::MAX);

impl FleetRadios {
    /// Reception by each of two ships of the other, the lower number first, as `ends` hear each other at `now`.
    fn readings(&mut self, now: Instant, ends: (usize, usize)) -> [Option<Reading>; 2] {
        let count = self.fleet.ships.len();
        let place = ends.0 * count + ends.1;
        if let Some(pair) = &self.pairs[place]
            && let Some(known) = pair.last.as_ref().and_then(|last| last.at(now))
        {
            return known;
        }
        let (Some(a), Some(b)) = (self.locate(now, ends.0), self.locate(now, ends.1)) else {
            return [None; 2];
        };
        // A track is on a plane or on the globe, and so are its ships always.
        let Some(between) = a.position.to(&b.position) else {
            self.keep_apart(ends, NEVER);
            return [None; 2];
        };
        let reach = match &self.pairs[place] {
            Some(pair) => pair.reach,
            None => self.reach(ends),
        };
        if let Some(reach) = reach.filter(|&reach| between.metres > reach) {
            let until = self.nearer_by(now, ends, between.metres - reach - ROUNDING);
            if let Some(pair) = &mut self.pairs[place] {
                pair.link.forget();
            }
            self.keep_apart(ends, until);
            return [None; 2];
        }
        let until = earliest(self.rests_until(ends.0), self.rests_until(ends.1));
        let sensitivity = self.fleet.sensitivity;
        let pair = self.pair(ends);
        let (_, states) = pair.link.between(&[a, b], &between);
        let what = states.map(|state| read(state, sensitivity));
        pair.last = Some(Known { at: now, until, what });
        what
    }

    /// Neither of two ships hears the other before `until`.
    fn keep_apart(&mut self, ends: (usize, usize), until: Instant) {
        let count = self.fleet.ships.len();
        self.apart_until[ends.0 * count + ends.1] = until;
        self.apart_until[ends.1 * count + ends.0] = until;
    }

    /// A time before which two ships are not nearer by `gap` metres.
    fn nearer_by(&self, now: Instant, ends: (usize, usize), gap: f64) -> Instant {
        let (Some(a), Some(b)) = (self.located[ends.0].drift, self.located[ends.1].drift) else {
            return Instant::ZERO;
        };
        let (gap, speed) = (gap - a.slack - b.slack, a.speed + b.speed);
        if gap.is_nan() || gap <= 0.0 {
            return Instant::ZERO;
        }
        // At a speed of 0 it is infinite, and a float that is too big becomes the latest time. Rounded down.
        now + Duration::from_nanos((gap / speed * 1e9) as u64)
    }

    /// A distance beyond which two ships do not hear each other, by any of their beams; `None` if none is known.
    fn reach(&mut self, ends: (usize, usize)) -> Option<f64> {
        match self.fleet.channel.shadowing.map(|shadowing| shadowing.max()) {
            None => self.fleet.reach(ends, 0.0),
            Some(Some(max)) => self.fleet.reach(ends, max),
            Some(None) => self.pair(ends).reach,
        }
    }

    fn pair(&mut self, ends: (usize, usize)) -> &mut Pair {
        let Self { fleet, seed, pairs, .. } = self;
        pairs[ends.0 * fleet.ships.len() + ends.1].get_or_insert_with(|| {
            let link = fleet.link(ends.0, ends.1, seed);
            Box::new(Pair { reach: fleet.reach(ends, link.max_shadowing()), link, last: None })
        })
    }

    /// Position and heading of a ship at `now`; `None` while it is absent.
    fn locate(&mut self, now: Instant, ship: usize) -> Option<Fix> {
        let Self { fleet, located, .. } = self;
        let located = &mut located[ship];
        if let Some(fix) = located.last.as_ref().and_then(|last| last.at(now)) {
            return fix;
        }
        let motion = &fleet.ships[ship].motion;
        let known = Known { at: now, until: motion.rests_until(now), what: motion.at(now) };
        located.last = Some(known);
        known.what
    }

    /// The time until which a ship stays where it was last located.
    fn rests_until(&self, ship: usize) -> Option<Instant> {
        self.located[ship].last.as_ref().and_then(|last| last.until)
    }

    /// The two ships with the lower number first; `None` if there is no such pair.
    fn ends(&self, from: usize, to: usize) -> Option<(usize, usize)> {
        let known = from != to && from.max(to) < self.fleet.ships.len();
        known.then(|| (from.min(to), from.max(to)))
    }

    fn heard(&self, from: usize, to: usize, readings: [Option<Reading>; 2]) -> Option<Hearing> {
        let (rate, signal) = readings[usize::from(from > to)]?;
        Some(Hearing { to, rate, loss: self.fleet.loss, signal: Some(Dbm::new(signal)) })
    }
}

/// Reception in one direction; a rate of 0 of what is only sensed.
fn read(state: RadioLinkState, sensitivity: f64) -> Option<Reading> {
    match state {
        RadioLinkState::Up { signal, rate, .. } => Some((rate, signal)),
        RadioLinkState::TooWeak { signal, .. } if signal >= sensitivity => Some((Rate::default(), signal)),
        RadioLinkState::TooWeak { .. } | RadioLinkState::Absent(_) | RadioLinkState::NotComparable => None,
    }
}

impl Radios for FleetRadios {
    fn rates(&self) -> &[Rate] {
        &self.rates
    }

    fn hearing(&mut self, now: Instant, from: usize, to: usize) -> Option<Hearing> {
        let ends = self.ends(from, to)?;
        if now < self.apart_until[from * self.fleet.ships.len() + to] {
            return None;
        }
        let readings = self.readings(now, ends);
        self.heard(from, to, readings)
    }

    fn peek(&mut self, now: Instant, from: usize, to: usize) -> Option<Hearing> {
        let ends = self.ends(from, to)?;
        let fixes = [self.locate(now, ends.0)?, self.locate(now, ends.1)?];
        let between = fixes[0].position.to(&fixes[1].position)?;
        let sensitivity = self.fleet.sensitivity;
        let (_, states) = self.pair(ends).link.peek(&fixes, &between);
        let readings = states.map(|state| read(state, sensitivity));
        self.heard(from, to, readings)
    }

    fn hearers(&mut self, now: Instant, from: usize, hearers: &mut Vec<Hearing>) {
        let count = self.fleet.ships.len();
        if from >= count {
            return;
        }
        for to in 0..count {
            if now >= self.apart_until[from * count + to] {
                hearers.extend(self.hearing(now, from, to));
            }
        }
    }
}
