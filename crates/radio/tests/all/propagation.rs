//! Laws of propagation, each held against its source.
#![allow(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

use crate::common::*;
use hopcast_core::{Seed, Stream};
use hopcast_radio::propagation::{Correlation, Polarisation, Sea, SeaState, Shadowing};
use hopcast_radio::{Frequency, Law};
use proptest::prelude::*;

const MASTS: [f64; 2] = [10.0, 10.0];

fn carrier(gigahertz: f64) -> Frequency {
    Frequency::hertz(gigahertz * 1e9).unwrap()
}

fn two_ray(gigahertz: f64, polarisation: Polarisation, state: f64) -> Law {
    Law::TwoRay { carrier: carrier(gigahertz), sea: Sea::water(polarisation, SeaState(state)) }
}

/// ITU-R P.525-4, equation 6: 32.4 + 20 log f + 20 log d, with f in MHz and d in km; the constant is rounded there.
#[test]
fn free_space_is_that_of_itu_r_p_525() {
    let free = |gigahertz| Law::FreeSpace { carrier: carrier(gigahertz) };
    for (gigahertz, metres) in [(0.1, 1e3), (2.4, 100.0), (5.8, 20e3), (60.0, 1.0)] {
        let formula = 32.4 + 20.0 * (gigahertz * 1e3_f64).log10() + 20.0 * (metres / 1e3_f64).log10();
        close(free(gigahertz).loss(metres, MASTS), formula, 0.05);
    }
    // Twice as far is a quarter of the power.
    close(free(2.4).loss(2e4, MASTS) - free(2.4).loss(1e4, MASTS), 6.0206, 1e-4);
}

#[test]
fn log_distance_is_a_straight_line_over_decades() {
    let law = Law::LogDistance { reference: 40.0, exponent: 3.5 };
    assert_eq!(law.loss(1.0, MASTS), 40.0);
    close(law.loss(1e4, MASTS), 180.0, 1e-9);
}

#[test]
fn distances_of_zero_and_infinity_are_defined() {
    let laws = [
        Law::FreeSpace { carrier: carrier(2.4) },
        two_ray(2.4, Polarisation::Vertical, 0.5),
        Law::LogDistance { reference: 0.0, exponent: 2.35 },
    ];
    for law in laws {
        let [zero, near] = [0.0, 1.0].map(|metres| law.loss(metres, MASTS));
        assert!(zero.is_finite());
        assert_eq!(zero, near, "nearer than a metre counts as a metre");
        assert_eq!(law.loss(-5.0, MASTS), near);
        assert_eq!(law.loss(f64::INFINITY, MASTS), f64::INFINITY);
        assert_eq!(law.loss(f64::NAN, MASTS), f64::INFINITY);
    }
    let broken = Law::LogDistance { reference: f64::NAN, exponent: 2.0 };
    assert_eq!(broken.loss(10.0, MASTS), f64::INFINITY);
    // No receiver gets more than was sent, at long waves near by.
    assert_eq!(Law::FreeSpace { carrier: Frequency::hertz(1e6).unwrap() }.loss(1.0, MASTS), 0.0);
    assert_eq!([0.0, f64::NAN, 1e15].map(Frequency::hertz), [None; 3]);
}

/// Far out the two rays cancel as 40 log d - 20 log (h₁ h₂), whatever the wavelength: Parsons, equation 2.23;
/// Rappaport, equation 4.52.
#[test]
fn far_over_a_calm_sea_the_loss_is_that_of_a_plane_earth() {
    for gigahertz in [0.15, 0.4, 2.4] {
        let law = two_ray(gigahertz, Polarisation::Horizontal, 0.0);
        // A few hundred times 4 h₁ h₂ / λ, where angles are small.
        let metres = 200.0 * 4.0 * 100.0 * gigahertz / 0.3;
        let plane = 40.0 * metres.log10() - 20.0 * 100f64.log10();
        close(law.loss(metres, MASTS), plane, 0.3);
        close(law.loss(2.0 * metres, MASTS) - law.loss(metres, MASTS), 12.04, 0.1);
    }
}

/// The rays are in phase where their difference, 2 h₁ h₂ / d, is half a wavelength more than a whole number of them,
/// since the sea turns the phase; and cancel where it is a whole number.
#[test]
fn near_by_the_two_rays_help_and_cancel_in_turn() {
    let (gigahertz, heights) = (2.4, [20.0, 10.0]);
    let wavelength = carrier(gigahertz).wavelength();
    let law = two_ray(gigahertz, Polarisation::Horizontal, 0.0);
    let free = Law::FreeSpace { carrier: carrier(gigahertz) };
    let gain = |metres: f64| free.loss(metres, heights) - law.loss(metres, heights);
    for whole in [1.0, 2.0, 3.0] {
        let place = |waves: f64| 2.0 * heights[0] * heights[1] / (waves * wavelength);
        assert!(gain(place(whole - 0.5)) > 5.5, "{whole}: {}", gain(place(whole - 0.5)));
        assert!(gain(place(whole - 0.5)) < 6.03);
        assert!(gain(place(whole)) < -15.0, "{whole}: {}", gain(place(whole)));
    }
}

#[test]
fn a_rough_sea_reflects_nothing_and_a_calm_one_nearly_all() {
    let free = Law::FreeSpace { carrier: carrier(5.8) };
    let rough = two_ray(5.8, Polarisation::Vertical, 5.0);
    close(rough.loss(500.0, MASTS), free.loss(500.0, MASTS), 0.01);
    // Ament's factor on its own: waves with 4π s sin ψ / λ = 1 leave exp(-1/2).
    let sine = 20.0 / 500f64.hypot(20.0);
    let state = carrier(5.8).wavelength() / (4.0 * core::f64::consts::PI * sine);
    let field = |state: f64| {
        let excess =
            free.loss(500.0, MASTS) - two_ray(5.8, Polarisation::Horizontal, state).loss(500.0, MASTS);
        10f64.powf(excess / 20.0)
    };
    let (sum, rest) = (field(0.0), field(state));
    // |1 + x| and |1 + x e^(-1/2)|, with x from the first (its phase by the difference of the rays).
    let phase =
        core::f64::consts::PI - core::f64::consts::TAU * (2.0 * 100.0 / 500.0) / carrier(5.8).wavelength();
    let magnitude = |x: f64| (1.0 + 2.0 * x * phase.cos() + x * x).sqrt();
    close(sum, magnitude(1.0), 0.06);
    close(rest, magnitude((-0.5f64).exp()), 0.06);
}

/// At grazing angles the coefficient is -1 for both polarisations. For vertical polarisation it has its minimum at the
/// pseudo-Brewster angle, sin ψ ≈ 1 / √|ε|, where its phase passes through 90 degrees (ITU-R P.527; Parsons, figure
/// 2.5).
#[test]
fn the_sea_reflects_as_fresnel_says() {
    for polarisation in [Polarisation::Vertical, Polarisation::Horizontal] {
        let (magnitude, phase) = Sea::water(polarisation, SeaState(0.0)).reflection(carrier(3.0), 1e-6);
        close(magnitude, 1.0, 1e-4);
        close(phase.abs(), core::f64::consts::PI, 1e-3);
    }
    let vertical = Sea::water(Polarisation::Vertical, SeaState(0.0));
    let magnitude = |degrees: f64| vertical.reflection(carrier(3.0), degrees.to_radians().sin()).0;
    // |ε| is |70 - j 60 · 5 · 0.1| = 76: 6.6 degrees.
    let minimum =
        (1..900).map(|tenth| f64::from(tenth) / 10.0).min_by(|a, b| magnitude(*a).total_cmp(&magnitude(*b)));
    close(minimum.unwrap(), 6.6, 0.3);
    close(
        vertical.reflection(carrier(3.0), minimum.unwrap().to_radians().sin()).1.abs(),
        core::f64::consts::FRAC_PI_2,
        0.2,
    );
    // From straight above both polarisations are the same, up to the sign: (√ε - 1) / (√ε + 1).
    let above = Sea::water(Polarisation::Horizontal, SeaState(0.0)).reflection(carrier(3.0), 1.0).0;
    close(magnitude(90.0), above, 1e-12);
    close(above, 0.795, 0.01);
}

fn fields(shadowing: Shadowing, count: u64) -> impl Iterator<Item = hopcast_radio::propagation::ShadowField> {
    let seed = Seed::new(22, 0);
    (0..count).map(move |n| shadowing.between(&seed, &format!("a{n}"), "b"))
}

/// Mean of the products of `pairs`.
fn covariance(pairs: impl Iterator<Item = (f64, f64)>) -> f64 {
    let (sum, count) = pairs.fold((0.0, 0.0), |(sum, count), (a, b)| (sum + a * b, count + 1.0));
    sum / count
}

#[test]
fn shadowing_has_its_deviation_and_decays_as_gudmundson_says() {
    let correlation = Correlation::Position { distance: 200.0 };
    let shadowing = Shadowing { deviation: 6.0, correlation };
    let count = 20_000;
    let all: Vec<_> = fields(shadowing, count).collect();
    let here = (plane(1e4, -3e3), plane(2e4, 5e3));
    let at = |a: f64, b: f64| (plane(1e4 + a, -3e3), plane(2e4, 5e3 + b));
    // Five standard errors of a correlation: 5 / √20,000 = 0.035, for the variance √2 as much.
    for (a, b, expected) in [
        (0.0, 0.0, 1.0),
        (100.0, 0.0, -0.5),
        (200.0, 0.0, -1.0),
        (0.0, 200.0, -1.0),
        (200.0, 200.0, -2.0),
        (2000.0, 0.0, -10.0),
    ] {
        let expected: f64 = if expected == 1.0 { 1.0 } else { f64::exp(expected) };
        let there = at(a, b);
        let pairs = all.iter().map(|field| (field.at(&here.0, &here.1), field.at(&there.0, &there.1)));
        close(covariance(pairs) / 36.0, expected, 0.05);
    }
    let mean = all.iter().map(|field| field.at(&here.0, &here.1)).sum::<f64>() / count as f64;
    close(mean, 0.0, 5.0 * 6.0 / (count as f64).sqrt());
    // On the globe, with 200 m as an arc.
    let (east, west) = (globe(0.0, 179.999_5), globe(0.0, -179.998_701));
    let far = globe(0.0, 179.5);
    close(east.to(&west).unwrap().metres, 200.0, 0.1);
    let pairs = all.iter().map(|field| (field.at(&east, &far), field.at(&west, &far)));
    close(covariance(pairs) / 36.0, (-1f64).exp(), 0.05);
}

#[test]
fn shadowing_of_a_pair_is_normal_and_stays() {
    let shadowing = Shadowing { deviation: 6.0, correlation: Correlation::Pair };
    let draws: Vec<f64> =
        fields(shadowing, 20_000).map(|field| field.at(&plane(0.0, 0.0), &plane(1.0, 1.0))).collect();
    close(covariance(draws.iter().map(|&x| (x, x))).sqrt(), 6.0, 0.15);
    let within = draws.iter().filter(|x| x.abs() < 6.0).count() as f64 / 20_000.0;
    close(within, 0.6827, 0.02);
    let field = fields(shadowing, 1).next().unwrap();
    assert_eq!(field.at(&plane(0.0, 0.0), &plane(1.0, 1.0)), field.at(&plane(9e5, 0.0), &plane(1.0, 7.0)));
}

#[test]
fn both_directions_see_one_shadow_and_it_depends_on_the_seed_and_the_names_alone() {
    let (a, b) = (plane(100.0, 200.0), plane(-300.0, 50.0));
    for correlation in [Correlation::Pair, Correlation::Position { distance: 100.0 }] {
        let shadowing = Shadowing { deviation: 8.0, correlation };
        let between = |seed: u64, from: &str, to: &str| shadowing.between(&Seed::new(seed, 0), from, to);
        let forward = between(1, "x", "y").at(&a, &b);
        assert_eq!(forward, between(1, "y", "x").at(&b, &a));
        assert_eq!(forward, between(1, "x", "y").at(&a, &b));
        assert_ne!(forward, between(2, "x", "y").at(&a, &b));
        assert_ne!(forward, between(1, "x", "z").at(&a, &b));
    }
    let none = Shadowing { deviation: f64::NAN, correlation: Correlation::Position { distance: f64::NAN } };
    assert_eq!(none.between(&Seed::new(1, 0), "x", "y").at(&a, &b), 0.0);
}

fn uniform(stream: &mut Stream, low: f64, high: f64) -> f64 {
    low + (high - low) * stream.uniform()
}

proptest! {
    #[test]
    fn a_loss_is_a_number_of_at_least_zero(seed: u64) {
        let stream = &mut Seed::new(seed, 0).stream(&["any"], 0);
        let metres = 10f64.powf(uniform(stream, -3.0, 9.0));
        let heights = [uniform(stream, 0.0, 100.0), uniform(stream, 0.0, 100.0)];
        let gigahertz = 10f64.powf(uniform(stream, -2.0, 2.0));
        for polarisation in [Polarisation::Vertical, Polarisation::Horizontal] {
            let loss = two_ray(gigahertz, polarisation, uniform(stream, 0.0, 3.0)).loss(metres, heights);
            prop_assert!(loss >= 0.0, "{loss}");
            // Two rays are at most twice one.
            let free = Law::FreeSpace { carrier: carrier(gigahertz) }.loss(metres, heights);
            prop_assert!(loss >= free - 6.03, "{loss} of {free}");
        }
    }
}
