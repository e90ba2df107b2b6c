//! The two-ray law over sea.
//!
//! The loss of free space over the direct ray r₁, less 20 log10 |1 + ρ Γ (r₁/r₂) exp(-j 2π (r₂ - r₁) / λ)|, where r₂
//! is the ray that the sea reflects at the grazing angle ψ: Parsons, The Mobile Radio Propagation Channel, 2nd
//! edition, section 2.3.
//!
//! Γ is Fresnel's coefficient for the complex permittivity ε - j 60 σ λ (Parsons 2.12, 2.13), and ρ = exp(-2 (2π s sin
//! ψ / λ)²) the part of it that is left of a specular reflection from waves of a deviation of height s (Ament, Proc.
//! IRE 41, 1953).

use core::f64::consts::PI;
use core::ops::{Add, Div, Mul, Sub};

use super::{Frequency, free_space};

/// Polarisation of both antennas.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Polarisation {
    /// The electric field is vertical, as of most ships' antennas.
    Vertical,
    /// The electric field is parallel to the sea.
    Horizontal,
}

/// The sea's surface as a reflector.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Sea {
    /// Polarisation of the antennas.
    pub polarisation: Polarisation,
    /// Height of the waves.
    pub state: SeaState,
    /// Relative permittivity.
    pub permittivity: f64,
    /// Conductivity in siemens per metre.
    pub conductivity: f64,
}

/// Roughness of the sea: the standard deviation of its height, in metres; a quarter of the significant wave height.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct SeaState(pub f64);

impl Sea {
    /// Sea water of 20 °C and average salinity, ε = 70 and σ = 5 S/m: ITU-R P.527-3, figure 1, curve A. Above 3 GHz σ
    /// grows; at grazing angles, which are those of ships, the reflection hardly depends on either.
    pub const fn water(polarisation: Polarisation, state: SeaState) -> Self {
        Self { polarisation, state, permittivity: 70.0, conductivity: 5.0 }
    }

    /// Fresnel's reflection coefficient at the sine of a grazing angle, and its magnitude and phase in radians.
    pub fn reflection(&self, carrier: Frequency, sine: f64) -> (f64, f64) {
        let gamma = self.fresnel(carrier, sine);
        (gamma.magnitude(), gamma.im.atan2(gamma.re))
    }

    /// Whether it reflects no more than it receives, as any water does.
    pub(super) fn is_passive(&self) -> bool {
        (1.0..f64::INFINITY).contains(&self.permittivity) && (0.0..f64::INFINITY).contains(&self.conductivity)
    }

    pub(super) fn loss(&self, carrier: Frequency, metres: f64, heights: [f64; 2]) -> f64 {
        let [sender, receiver] = heights;
        let direct = metres.hypot(sender - receiver);
        let reflected = metres.hypot(sender + receiver);
        let sine = (sender + receiver) / reflected;
        // As a quotient, since the difference of two long distances has few digits.
        let excess = 4.0 * sender * receiver / (direct + reflected);
        let phase = -2.0 * PI * excess / carrier.wavelength();
        let roughness = 2.0 * PI * self.state.0 * sine / carrier.wavelength();
        let specular = (-2.0 * roughness * roughness).exp();
        let turn = Complex::new(phase.cos(), phase.sin());
        let scale = Complex::new(specular * direct / reflected, 0.0);
        let sum = Complex::new(1.0, 0.0) + self.fresnel(carrier, sine) * turn * scale;
        free_space(carrier, direct) - 20.0 * sum.magnitude().log10()
    }

    fn fresnel(&self, carrier: Frequency, sine: f64) -> Complex {
        let epsilon = Complex::new(self.permittivity, -60.0 * self.conductivity * carrier.wavelength());
        let root = (epsilon - Complex::new(1.0 - sine * sine, 0.0)).sqrt();
        let sine = Complex::new(sine, 0.0);
        let incident = match self.polarisation {
            Polarisation::Vertical => epsilon * sine,
            Polarisation::Horizontal => sine,
        };
        (incident - root) / (incident + root)
    }
}

#[derive(Clone, Copy, Debug)]
struct Complex {
    re: f64,
    im: f64,
}

impl Complex {
    const fn new(re: f64, im: f64) -> Self {
        Self { re, im }
    }

    fn magnitude(self) -> f64 {
        self.re.hypot(self.im)
    }

    /// The root with a real part that is not negative.
    fn sqrt(self) -> Self {
        let magnitude = self.magnitude();
        let re = ((magnitude + self.re) / 2.0).max(0.0).sqrt();
        let im = ((magnitude - self.re) / 2.0).max(0.0).sqrt();
        Self::new(re, im.copysign(self.im))
    }
}

impl Add for Complex {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self::new(self.re + other.re, self.im + other.im)
    }
}

impl Sub for Complex {
    type Output = Self;
    fn sub(self, other: Self) -> Self {
        Self::new(self.re - other.re, self.im - other.im)
    }
}

impl Mul for Complex {
    type Output = Self;
    fn mul(self, other: Self) -> Self {
        Self::new(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)
    }
}

impl Div for Complex {
    type Output = Self;
    fn div(self, other: Self) -> Self {
        let square = other.re * other.re + other.im * other.im;
        let product = self * Self::new(other.re, -other.im);
        Self::new(product.re / square, product.im / square)
    }
}
