//! Beams: antennas round a ship's mast like the leaves of a sunflower, which of them is used, and hand-over.

use core::fmt;

use thiserror::Error;

use crate::position::half_turn;

/// Maximum number of beams of a ship. Chosen: it fits a number of two digits, and no antenna known to us has more.
const MAX_BEAMS: u8 = 99;

/// Distance beyond the edge of a sector that still counts as inside, in widths. [`Sunflower::best`] and
/// [`Sunflower::gain`] round an angle at the edge differently, by up to some 1e-14 widths: without it the best beam
/// there could have the gain of the back.
const EDGE: f64 = 1e-9;

/// A beam of a ship, by its number: 0 looks ahead, the others follow clockwise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Beam(pub u8);

/// The beams of the two ends of a link. Two frames with different pairs crossed different radios, between which there
/// was a hand-over.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BeamPair {
    /// The beam of the first ship.
    pub a: Beam,
    /// The beam of the second ship.
    pub b: Beam,
}

/// Gain of a beam over the angle from its axis.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Pattern {
    /// The same gain all over the beam's sector; outside it, `front_to_back` dB less.
    Sector {
        /// Decibels between the sector and all other directions.
        front_to_back: f64,
    },
    /// 12 (φ / width)² dB less at the angle φ, so 3 dB less at the edge of the sector, and at most `front_to_back`
    /// less: the horizontal pattern of 3GPP TR 36.814, table A.2.1.1-2, with the sector as its 3 dB beamwidth.
    Parabolic {
        /// Maximum attenuation in decibels: 25 there, 20 in ITU-R M.2135.
        front_to_back: f64,
    },
}

/// Antennas of equal sectors round a mast.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sunflower {
    beams: u8,
    gain: f64,
    pattern: Pattern,
}

/// The error of antennas that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum SunflowerError {
    /// A number of beams out of range.
    #[error("expected 1 to {MAX_BEAMS} beams, found {0}")]
    Beams(u8),
    /// A gain, or a ratio of front to back, that is not finite, or a ratio below 0.
    #[error("expected a finite number of decibels, and a ratio of front to back of at least 0, found {0}")]
    Decibels(f64),
}

impl Sunflower {
    /// `beams` antennas, the first of which looks ahead; `gain` is that on the axis of each, in dB.
    ///
    /// # Errors
    ///
    /// Unless there are 1 to 99 beams, and the figures are finite.
    pub fn new(beams: u8, gain: f64, pattern: Pattern) -> Result<Self, SunflowerError> {
        if beams == 0 || beams > MAX_BEAMS {
            return Err(SunflowerError::Beams(beams));
        }
        let (Pattern::Sector { front_to_back } | Pattern::Parabolic { front_to_back }) = pattern;
        if !gain.is_finite() {
            return Err(SunflowerError::Decibels(gain));
        }
        if !(0.0..f64::INFINITY).contains(&front_to_back) {
            return Err(SunflowerError::Decibels(front_to_back));
        }
        Ok(Self { beams, gain, pattern })
    }

    /// Number of beams.
    pub const fn beams(&self) -> u8 {
        self.beams
    }

    /// Maximum gain in any direction, in dB.
    pub const fn max_gain(&self) -> f64 {
        self.gain
    }

    /// Width of the sector of a beam, in degrees.
    pub fn width(&self) -> f64 {
        360.0 / f64::from(self.beams)
    }

    /// Angle from the axis of `beam` to a direction `relative` to the bow, both in degrees; from -180 to below 180.
    pub fn off_axis(&self, beam: Beam, relative: f64) -> f64 {
        half_turn(relative - f64::from(beam.0) * self.width())
    }

    /// Gain of `beam` in a direction `relative` to the bow, in dB.
    pub fn gain(&self, beam: Beam, relative: f64) -> f64 {
        let off = self.off_axis(beam, relative).abs() / self.width();
        let less = match self.pattern {
            Pattern::Sector { front_to_back } if off > 0.5 + EDGE => front_to_back,
            Pattern::Sector { .. } => 0.0,
            Pattern::Parabolic { front_to_back } => (12.0 * off * off).min(front_to_back),
        };
        self.gain - less
    }

    /// The beam with the maximum gain in a direction `relative` to the bow: that whose axis is nearest. Between two
    /// axes it is the one clockwise.
    pub fn best(&self, relative: f64) -> Beam {
        let sectors = (half_turn(relative) / self.width() + 0.5).floor();
        Beam(sectors.rem_euclid(f64::from(self.beams)) as u8)
    }
}

/// The beam that one end of a link uses, and when it changes to another.
///
/// It stays with a beam until another's gain is more than `hysteresis` dB above it, as a mobile does at a cell's edge
/// (event A3 of 3GPP TS 36.331, 5.5.4.4, with no time to trigger). On [`Pattern::Sector`] a hysteresis below
/// `front_to_back` has no effect: at the edge the gain falls by all of that at once, and the ship hands over there.
///
/// Its state depends on when it was asked: a ship that turned while no frame was sent chooses as the next one is.
#[derive(Clone, Copy, Debug)]
pub struct BeamSelector {
    hysteresis: f64,
    beam: Option<Beam>,
}

/// Default hysteresis in dB. Chosen: on parabolic beams the hand-over is a twelfth of a sector past the edge. At 0 a
/// ship that yaws at an edge changes beams each time; at the beams' ratio of front to back or more it never does.
pub const DEFAULT_HYSTERESIS: f64 = 2.0;

impl BeamSelector {
    /// A selector that has not chosen yet; what is not a finite number of at least 0 dB counts as 0.
    pub fn new(hysteresis: f64) -> Self {
        let hysteresis = if hysteresis.is_finite() { hysteresis.max(0.0) } else { 0.0 };
        Self { hysteresis, beam: None }
    }

    /// The beam that it has chosen.
    pub(crate) const fn beam(&self) -> Option<Beam> {
        self.beam
    }

    /// The same selector before it has chosen.
    pub(crate) const fn forget(self) -> Self {
        Self { beam: None, ..self }
    }

    /// The beam for a direction `relative` to the bow, in degrees, and whether it has replaced another.
    pub fn select(&mut self, antennas: &Sunflower, relative: f64) -> (Beam, bool) {
        let best = antennas.best(relative);
        let stays = self
            .beam
            .filter(|&beam| antennas.gain(best, relative) <= antennas.gain(beam, relative) + self.hysteresis);
        let chosen = stays.unwrap_or(best);
        let handed_over = self.beam.is_some_and(|beam| beam != chosen);
        self.beam = Some(chosen);
        (chosen, handed_over)
    }
}

impl fmt::Display for Beam {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Display for BeamPair {
    /// `3-9`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.a, self.b)
    }
}
