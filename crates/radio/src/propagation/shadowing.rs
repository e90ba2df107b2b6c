//! Log-normal shadowing, fixed for a pair of ships or changing with their positions.
//!
//! It is a function of the seed, the two names and the two positions, and of nothing that was asked before: a frame
//! that leaves at some time sees the same shadow whatever was sent until then, and both directions see the same one.

use core::f64::consts::TAU;

use hopcast_core::{Seed, Stream};

use crate::position::Position;

/// Number of waves of a field. Chosen: a sum of 32 has a kurtosis of 2.95, where the normal has 3; a field is 1.8 kB.
const WAVES: usize = 32;

/// Shadowing of a channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shadowing {
    /// Standard deviation in dB. ITU-R and Rappaport have 4 to 12 on land; over sea it is small.
    pub deviation: f64,
    /// How it changes as ships move.
    pub correlation: Correlation,
}

/// Correlation over the ships' positions.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Correlation {
    /// One draw for each pair of ships, wherever they are.
    Pair,
    /// exp(-Δ/D) for a ship that has moved by Δ: Gudmundson, Electronics Letters 27 (1991). Of a pair whose ships both
    /// have moved it is the product of both.
    Position {
        /// Decorrelation distance D in metres, at which the correlation is 1/e. Minimum: 1 m.
        distance: f64,
    },
}

/// Shadowing between two ships.
#[derive(Clone, Debug)]
pub struct ShadowField {
    /// Whether the first ship is the second of the field, whose ends are in the order of their names.
    swapped: bool,
    field: Field,
}

#[derive(Clone, Debug)]
enum Field {
    Constant(f64),
    /// A sum of plane waves over the positions of both ends, as of Cai and Giannakis, IEEE Transactions on Vehicular
    /// Technology 52 (2003), with wave vectors whose density is the transform of exp(-r).
    Waves {
        amplitude: f64,
        waves: Box<[Wave; WAVES]>,
    },
}

#[derive(Clone, Copy, Debug, Default)]
struct Wave {
    /// Wave vectors of the two ends, in radians per metre.
    vectors: [[f64; 3]; 2],
    phase: f64,
}

impl Shadowing {
    /// Maximum in dB of any field; `None` if each pair of ships has its own.
    pub fn max(&self) -> Option<f64> {
        match self.correlation {
            Correlation::Pair => None,
            Correlation::Position { .. } => Some(self.amplitude().abs() * WAVES as f64),
        }
    }

    /// Amplitude of each wave of a field over positions, in dB.
    fn amplitude(&self) -> f64 {
        self.finite_deviation() * (2.0 / WAVES as f64).sqrt()
    }

    fn finite_deviation(&self) -> f64 {
        if self.deviation.is_finite() { self.deviation } else { 0.0 }
    }

    /// The field between the ships `a` and `b`, the same as between `b` and `a`. A deviation that is not finite
    /// counts as 0.
    pub fn between(&self, seed: &Seed, a: &str, b: &str) -> ShadowField {
        let swapped = a > b;
        let (first, second) = if swapped { (b, a) } else { (a, b) };
        let mut stream = seed.stream(&["shadowing", first, second], 0);
        let field = match self.correlation {
            Correlation::Pair => Field::Constant(self.finite_deviation() * stream.normal()),
            Correlation::Position { distance } => {
                let mut waves = Box::new([Wave::default(); WAVES]);
                waves.fill_with(|| Wave {
                    vectors: [wave_vector(&mut stream, distance), wave_vector(&mut stream, distance)],
                    phase: TAU * stream.uniform(),
                });
                Field::Waves { amplitude: self.amplitude(), waves }
            }
        };
        ShadowField { swapped, field }
    }
}

impl ShadowField {
    /// Maximum shadowing in dB, wherever the ships are.
    pub fn max(&self) -> f64 {
        match &self.field {
            Field::Constant(decibels) => *decibels,
            Field::Waves { amplitude, .. } => amplitude.abs() * WAVES as f64,
        }
    }

    /// Shadowing in dB, added to what is received, with the ships at `a` and `b`.
    pub fn at(&self, a: &Position, b: &Position) -> f64 {
        match &self.field {
            Field::Constant(decibels) => *decibels,
            Field::Waves { amplitude, waves } => {
                let (a, b) = if self.swapped { (b, a) } else { (a, b) };
                let ends = [a.cartesian(), b.cartesian()];
                amplitude * waves.iter().map(|wave| wave.at(&ends)).sum::<f64>()
            }
        }
    }
}

impl Wave {
    fn at(&self, ends: &[[f64; 3]; 2]) -> f64 {
        let mut angle = self.phase;
        for (vector, end) in self.vectors.iter().zip(ends) {
            angle += vector[0] * end[0] + vector[1] * end[1] + vector[2] * end[2];
        }
        angle.cos()
    }
}

/// A vector of which E cos(k·r) = exp(-|r| / `distance`): that of the multivariate Cauchy distribution, a normal vector
/// over a normal number.
fn wave_vector(stream: &mut Stream, distance: f64) -> [f64; 3] {
    let normal = [stream.normal(), stream.normal(), stream.normal()];
    // A divisor of almost 0 makes a wave shorter than anything sails, and stays finite.
    let scale = stream.normal().abs().max(1e-9) * if distance.is_finite() { distance.max(1.0) } else { 1.0 };
    normal.map(|axis| axis / scale)
}
