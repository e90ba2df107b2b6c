//! Link budgets: why there is a link between two ships, or none.

use core::fmt;
use std::sync::Arc;

use hopcast_core::{Instant, Rate, Seed};
use thiserror::Error;

use crate::beams::{Beam, BeamPair, BeamSelector, Sunflower};
use crate::motion::Motion;
use crate::position::{Position, Separation, full_turn};
use crate::propagation::{Law, ShadowField, Shadowing};
use crate::rates::RateTable;
use crate::track::Fix;

/// A ship.
#[derive(Clone, Debug)]
pub struct Ship {
    /// Its name.
    pub name: Arc<str>,
    /// Its motion, and when it takes part.
    pub motion: Motion,
    /// Its radio.
    pub radio: Radio,
}

/// Radio of a ship.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Radio {
    power: f64,
    antennas: Sunflower,
    height: f64,
}

/// The error of a radio that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum RadioError {
    /// A power that is not finite.
    #[error("expected a finite power in dBm, found {0}")]
    Power(f64),
    /// A height that is not finite, or below 0.
    #[error("expected a height of at least 0 m above the sea, found {0}")]
    Height(f64),
}

/// Propagation and rates that all links of a network share.
#[derive(Clone, Debug, PartialEq)]
pub struct Channel {
    /// Loss by distance.
    pub law: Law,
    /// Shadowing on top of it.
    pub shadowing: Option<Shadowing>,
    /// Rate by signal.
    pub rates: RateTable,
}

/// The link between two ships: its beams now, and its shadowing.
///
/// While there is a link, its ends hand over with hysteresis. If the current beams give no link in either direction,
/// both ends choose the best beams at once. If these give none either, the link forgets its beams.
#[derive(Clone, Debug)]
pub struct RadioLink {
    channel: Arc<Channel>,
    ships: [Arc<Ship>; 2],
    shadow: Option<ShadowField>,
    selectors: [BeamSelector; 2],
}

/// A link budget: everything between two ships at one time, and whether that is a link.
#[derive(Clone, Debug, PartialEq)]
pub struct Budget {
    /// The time.
    pub at: Instant,
    /// The two ships' names.
    pub names: [Arc<str>; 2],
    /// The path between them; `None` if there is none: a ship is absent, or one position is in metres and
    /// the other in degrees.
    pub path: Option<Path>,
    /// Reception of the first ship by the second.
    pub forward: RadioLinkState,
    /// Reception of the second ship by the first.
    pub back: RadioLinkState,
}

/// The path between two ships.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Path {
    /// Distance in metres.
    pub metres: f64,
    /// The ends.
    pub ends: [End; 2],
    /// Loss over the distance, in dB.
    pub loss: f64,
    /// Shadowing, in dB; above 0 it helps.
    pub shadowing: f64,
    /// Whether an end has changed to another beam since the link was last asked.
    pub handed_over: bool,
}

/// One end of a path.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct End {
    /// Position of the ship.
    pub position: Position,
    /// Heading in degrees clockwise from north.
    pub heading: f64,
    /// Direction of the other ship, in degrees clockwise from north.
    pub bearing: f64,
    /// The beam that is used.
    pub beam: Beam,
    /// Angle from the axis of the beam to the other ship, in degrees; clockwise above 0.
    pub off_axis: f64,
    /// Gain of the beam in that direction, in dB.
    pub gain: f64,
    /// Power of the transmitter, in dBm.
    pub power: f64,
}

/// State of a radio link in one direction: up, or the reason why there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RadioLinkState {
    /// There is a link.
    Up {
        /// Signal at the receiver, in dBm.
        signal: f64,
        /// The rate that it is enough for.
        rate: Rate,
        /// Decibels above the minimum of that rate.
        margin: f64,
    },
    /// The signal is too weak for any rate.
    TooWeak {
        /// Signal at the receiver, in dBm.
        signal: f64,
        /// Decibels that it is below the minimum of the lowest rate.
        missing: f64,
    },
    /// A ship, the first or second, has not joined yet or has left.
    Absent(usize),
    /// One ship's position is in metres and the other's in degrees.
    NotComparable,
}

impl Radio {
    /// A radio of `power` in dBm at its antennas, which are `height` metres above the sea.
    ///
    /// # Errors
    ///
    /// Unless both are finite, and the height is at least 0.
    pub fn new(power: f64, antennas: Sunflower, height: f64) -> Result<Self, RadioError> {
        if !power.is_finite() {
            return Err(RadioError::Power(power));
        }
        if !(0.0..f64::INFINITY).contains(&height) {
            return Err(RadioError::Height(height));
        }
        Ok(Self { power, antennas, height })
    }

    /// Power of the transmitter at its antennas, in dBm.
    pub const fn power(&self) -> f64 {
        self.power
    }

    /// The antennas.
    pub const fn antennas(&self) -> &Sunflower {
        &self.antennas
    }

    /// Height of the antennas above the sea, in metres.
    pub const fn height(&self) -> f64 {
        self.height
    }
}

impl RadioLink {
    /// The link of the ships `a` and `b` on `channel`, which hand over with a hysteresis in dB.
    pub fn new(channel: Arc<Channel>, a: Arc<Ship>, b: Arc<Ship>, seed: &Seed, hysteresis: f64) -> Self {
        let shadow = channel.shadowing.map(|shadowing| shadowing.between(seed, &a.name, &b.name));
        Self { channel, ships: [a, b], shadow, selectors: [BeamSelector::new(hysteresis); 2] }
    }

    /// The rates of the channel.
    pub fn rates(&self) -> &RateTable {
        &self.channel.rates
    }

    /// The budget at `now`. Beams follow the ships, with hysteresis against those of the last call.
    pub fn at(&mut self, now: Instant) -> Budget {
        let fixes =
            [0, 1].map(|end: usize| self.ships[end].motion.at(now).ok_or(RadioLinkState::Absent(end)));
        let found = match fixes {
            [Ok(a), Ok(b)] => match a.position.to(&b.position) {
                Some(between) => Ok(self.between(&[a, b], &between)),
                None => Err(RadioLinkState::NotComparable),
            },
            [Err(absent), _] | [_, Err(absent)] => Err(absent),
        };
        let (path, [forward, back]) = match found {
            Ok((path, states)) => (Some(path), states),
            Err(state) => (None, [state; 2]),
        };
        let names = [0, 1].map(|end: usize| self.ships[end].name.clone());
        Budget { at: now, names, path, forward, back }
    }

    /// As [`at`](Self::at), where the ships are known, and how one lies from the other.
    pub(crate) fn between(&mut self, fixes: &[Fix; 2], between: &Separation) -> (Path, [RadioLinkState; 2]) {
        let before = self.selectors.map(|selector| selector.beam());
        let (mut path, mut states) = self.by_beams(fixes, between);
        if !states.iter().any(RadioLinkState::is_up) {
            self.forget();
            if before != [None; 2] {
                (path, states) = self.by_beams(fixes, between);
                let changed =
                    |(end, before): (&End, Option<Beam>)| before.is_some_and(|beam| beam != end.beam);
                path.handed_over = path.ends.iter().zip(before).any(changed);
            }
            if !states.iter().any(RadioLinkState::is_up) {
                self.forget();
            }
        }
        (path, states)
    }

    /// The same as [`between`](Self::between), without hand-over.
    pub(crate) fn peek(&mut self, fixes: &[Fix; 2], between: &Separation) -> (Path, [RadioLinkState; 2]) {
        let selectors = self.selectors;
        let found = self.between(fixes, between);
        self.selectors = selectors;
        found
    }

    /// There is no link.
    pub(crate) fn forget(&mut self) {
        self.selectors = self.selectors.map(BeamSelector::forget);
    }

    /// Maximum shadowing in dB, wherever the ships are.
    pub(crate) fn max_shadowing(&self) -> f64 {
        self.shadow.as_ref().map_or(0.0, ShadowField::max)
    }

    fn by_beams(&mut self, fixes: &[Fix; 2], between: &Separation) -> (Path, [RadioLinkState; 2]) {
        let bearings = [between.bearing, between.back_bearing];
        let mut handed_over = false;
        let ends = [0, 1].map(|end: usize| {
            let (fix, Radio { power, antennas, .. }) = (&fixes[end], &self.ships[end].radio);
            let relative = bearings[end] - fix.heading;
            let (beam, changed) = self.selectors[end].select(antennas, relative);
            handed_over |= changed;
            End {
                position: fix.position,
                heading: fix.heading,
                bearing: bearings[end],
                beam,
                off_axis: antennas.off_axis(beam, relative),
                gain: antennas.gain(beam, relative),
                power: *power,
            }
        });
        let heights = [0, 1].map(|end: usize| self.ships[end].radio.height);
        let loss = self.channel.law.loss(between.metres, heights);
        let shadow = |field: &ShadowField| field.at(&ends[0].position, &ends[1].position);
        let shadowing = self.shadow.as_ref().map_or(0.0, shadow);
        let path = Path { metres: between.metres, ends, loss, shadowing, handed_over };
        let states = [0, 1].map(|sender| self.state(&path, sender));
        (path, states)
    }

    fn state(&self, path: &Path, sender: usize) -> RadioLinkState {
        let gains = path.ends[0].gain + path.ends[1].gain;
        let signal = path.ends[sender].power + gains - path.loss + path.shadowing;
        match self.channel.rates.row(signal) {
            Some(row) => RadioLinkState::Up { signal, rate: row.rate, margin: signal - row.signal },
            None => RadioLinkState::TooWeak { signal, missing: self.channel.rates.sensitivity() - signal },
        }
    }
}

impl RadioLinkState {
    /// Whether there is a link.
    pub const fn is_up(&self) -> bool {
        matches!(self, Self::Up { .. })
    }
}

impl Budget {
    /// The beams that carry the link; `None` if there is no path.
    pub fn beams(&self) -> Option<BeamPair> {
        self.path.map(|path| BeamPair { a: path.ends[0].beam, b: path.ends[1].beam })
    }
}

impl Path {
    fn lines(&self, names: &[Arc<str>; 2], f: &mut fmt::Formatter<'_>) -> fmt::Result {
        line(f, "distance", format_args!("{:>10.1} m", self.metres))?;
        for (end, name) in self.ends.iter().zip(names) {
            let relative = full_turn(end.bearing - end.heading);
            line(f, name, format_args!("{}", end.position))?;
            line(f, "  heading", format_args!("{:>10.1}°", end.heading))?;
            line(f, "  other ship", format_args!("{:>10.1}°, {relative:.1}° from the bow", end.bearing))?;
            line(f, "  beam", format_args!("{:>10}, {:+.1}° off its axis", end.beam.0, end.off_axis))?;
            line(f, "  gain", format_args!("{:>10.2} dB", end.gain))?;
            line(f, "  power", format_args!("{:>10.2} dBm", end.power))?;
        }
        line(f, "path loss", format_args!("{:>10.2} dB", self.loss))?;
        line(f, "shadowing", format_args!("{:>10.2} dB", self.shadowing))?;
        if self.handed_over {
            line(f, "hand-over", format_args!("to beams {}-{}", self.ends[0].beam, self.ends[1].beam))?;
        }
        Ok(())
    }
}

impl fmt::Display for Budget {
    /// A line for each term, its name in one column and its value in the next; then the state of the link, once if it
    /// is the same in both directions.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b] = &self.names;
        line(f, "at", format_args!("{}", self.at))?;
        if let Some(path) = &self.path {
            path.lines(&self.names, f)?;
        }
        if self.forward == self.back {
            return state(f, &format!("{a} and {b}"), &self.forward, &self.names);
        }
        state(f, &format!("{a} to {b}"), &self.forward, &self.names)?;
        state(f, &format!("{b} to {a}"), &self.back, &self.names)
    }
}

fn state(
    f: &mut fmt::Formatter<'_>,
    who: &str,
    state: &RadioLinkState,
    names: &[Arc<str>; 2],
) -> fmt::Result {
    match state {
        RadioLinkState::Up { signal, rate, margin } => {
            line(f, "signal", format_args!("{signal:>10.2} dBm"))?;
            line(f, who, format_args!("{rate}, {margin:.2} dB above its minimum"))
        }
        RadioLinkState::TooWeak { signal, missing } => {
            line(f, "signal", format_args!("{signal:>10.2} dBm"))?;
            line(f, who, format_args!("no link, {missing:.2} dB missing"))
        }
        RadioLinkState::Absent(end) => line(f, who, format_args!("no link, {} is absent", names[*end])),
        RadioLinkState::NotComparable => {
            line(f, who, format_args!("no link, one position is in metres and the other in degrees"))
        }
    }
}

/// A line of two columns.
fn line(f: &mut fmt::Formatter<'_>, name: &str, value: fmt::Arguments<'_>) -> fmt::Result {
    writeln!(f, "{name:<20} {value}")
}
