//! Propagation: how much of a signal is lost on the way, in dB.

mod shadowing;
mod two_ray;

use core::f64::consts::PI;

pub use shadowing::{Correlation, ShadowField, Shadowing};
pub use two_ray::{Polarisation, Sea, SeaState};

/// Speed of light in metres per second (SI).
pub const SPEED_OF_LIGHT: f64 = 299_792_458.0;

/// Minimum distance in metres; what is nearer counts as this far. Chosen: nearer, the laws are wrong (the antennas'
/// near field), and at 0 they have no value; two ships in one place are heard as well as two side by side.
pub const MIN_DISTANCE: f64 = 1.0;

/// A law of the loss over distance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Law {
    /// Loss in free space, 20 log10(4π d / λ): ITU-R P.525, for point-to-point links; Friis, Proc. IRE 34 (1946).
    FreeSpace {
        /// Frequency of the carrier.
        carrier: Frequency,
    },
    /// The direct ray and the one that the sea reflects, over a flat sea: [`Sea`].
    TwoRay {
        /// Frequency of the carrier.
        carrier: Frequency,
        /// The surface that reflects.
        sea: Sea,
    },
    /// `reference` + 10 `exponent` log10(d / 1 m): the log-distance law of Rappaport, Wireless Communications, 2nd
    /// edition, section 4.9.1, with a reference distance of 1 m.
    LogDistance {
        /// Loss at 1 m, in dB.
        reference: f64,
        /// Exponent of the distance: 2 in free space, 4 far from antennas over a plane.
        exponent: f64,
    },
}

/// Frequency of a carrier, above 0 and finite.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Frequency(f64);

impl Frequency {
    /// The frequency in hertz; `None` unless it is from 1 kHz to 1 THz, beyond which no law here is meant.
    pub fn hertz(frequency: f64) -> Option<Self> {
        (1e3..=1e12).contains(&frequency).then_some(Self(frequency))
    }

    /// The wavelength in metres.
    pub fn wavelength(self) -> f64 {
        SPEED_OF_LIGHT / self.0
    }
}

impl Law {
    /// Loss in dB over `metres` between antennas at two `heights` in metres above the sea, which the two-ray law alone
    /// needs. At least 0: no receiver gets more than was sent. Infinite over a distance that is infinite or not a
    /// number; it may be infinite where two rays cancel.
    pub fn loss(&self, metres: f64, heights: [f64; 2]) -> f64 {
        if !metres.is_finite() {
            return f64::INFINITY;
        }
        let metres = metres.max(MIN_DISTANCE);
        let loss = match self {
            Self::FreeSpace { carrier } => free_space(*carrier, metres),
            Self::TwoRay { carrier, sea } => sea.loss(*carrier, metres, heights),
            Self::LogDistance { reference, exponent } => reference + 10.0 * exponent * metres.log10(),
        };
        // Not a number only from parameters that are none: nothing is received.
        if loss.is_nan() { f64::INFINITY } else { loss.max(0.0) }
    }
}

impl Law {
    /// A distance in metres beyond which the loss is above `decibels`, whatever the heights; `None` if none is known.
    /// It is not the smallest: two rays may add up at any distance.
    pub fn reach(&self, decibels: f64) -> Option<f64> {
        let metres = match self {
            Self::FreeSpace { carrier } => free_space_reach(*carrier, decibels),
            // Two rays are at most twice as strong as one if the sea reflects no more than it receives.
            Self::TwoRay { carrier, sea } if sea.is_passive() => free_space_reach(*carrier, decibels + 6.03),
            Self::TwoRay { .. } => return None,
            Self::LogDistance { reference, exponent } if *exponent > 0.0 => {
                10f64.powf((decibels - reference) / (10.0 * exponent))
            }
            Self::LogDistance { .. } => return None,
        };
        // The laws and their inverses round differently.
        let metres = metres.max(MIN_DISTANCE) * (1.0 + 1e-9);
        metres.is_finite().then_some(metres)
    }
}

fn free_space_reach(carrier: Frequency, decibels: f64) -> f64 {
    10f64.powf(decibels / 20.0) * carrier.wavelength() / (4.0 * PI)
}

fn free_space(carrier: Frequency, metres: f64) -> f64 {
    20.0 * (4.0 * PI * metres / carrier.wavelength()).log10()
}
