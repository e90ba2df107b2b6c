//! Beams: which of them looks at another ship, its gain, and hand-over.
#![allow(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

use crate::common::*;
use hopcast_radio::beams::{DEFAULT_HYSTERESIS, SunflowerError};
use hopcast_radio::{Beam, BeamPair, BeamSelector, Pattern, Sunflower};
use proptest::prelude::*;

const PARABOLIC: Pattern = Pattern::Parabolic { front_to_back: 20.0 };
const SECTOR: Pattern = Pattern::Sector { front_to_back: 20.0 };

fn sunflower(beams: u8, pattern: Pattern) -> Sunflower {
    Sunflower::new(beams, 5.0, pattern).unwrap()
}

#[test]
fn the_beam_whose_axis_is_nearest_looks_at_the_other_ship() {
    let six = sunflower(6, SECTOR);
    let beams = [0.0, 29.9, 30.0, 60.0, 180.0, -30.1, 329.0, 331.0, 3600.0].map(|at| six.best(at).0);
    assert_eq!(beams, [0, 0, 1, 1, 3, 5, 5, 0, 0]);
    assert_eq!(sunflower(12, SECTOR).best(-15.1), Beam(11));
    assert_eq!(sunflower(24, SECTOR).best(187.4), Beam(12));
    assert_eq!(sunflower(1, SECTOR).best(123.0), Beam(0));
    assert_eq!(BeamPair { a: Beam(3), b: Beam(9) }.to_string(), "3-9");
}

#[test]
fn a_sector_has_one_gain_all_over() {
    let six = sunflower(6, SECTOR);
    let gains = [60.0, 31.0, 89.0, 91.0, 240.0].map(|at| six.gain(Beam(1), at));
    assert_eq!(gains, [5.0, 5.0, 5.0, -15.0, -15.0]);
}

#[test]
fn the_best_beam_has_its_full_gain_at_the_edges_of_all_sectors() {
    for beams in 1..=99 {
        let antennas = sunflower(beams, SECTOR);
        let edges = (0..beams).map(|k| (f64::from(k) + 0.5) * antennas.width());
        let around = edges.flat_map(|edge| [edge.next_down(), edge, edge.next_up()]);
        for at in around.flat_map(|at| [at, at - 360.0]).chain([180.0, -180.0, 29.999999999999996]) {
            assert_eq!(antennas.gain(antennas.best(at), at), 5.0, "{beams} beams at {at}");
        }
    }
}

#[test]
fn a_parabola_is_3_db_down_at_the_edge_and_no_more_than_front_to_back() {
    for beams in [6, 12, 24] {
        let antennas = sunflower(beams, PARABOLIC);
        let width = antennas.width();
        close(antennas.gain(Beam(2), 2.0 * width), 5.0, 1e-12);
        close(antennas.gain(Beam(2), 2.5 * width), 2.0, 1e-9);
        close(antennas.gain(Beam(2), 3.0 * width), -7.0, 1e-9);
        assert_eq!(antennas.gain(Beam(0), 180.0), -15.0);
    }
}

#[test]
fn a_ship_hands_over_past_the_edge_by_the_hysteresis() {
    let antennas = sunflower(6, PARABOLIC);
    let mut selector = BeamSelector::new(2.0);
    assert_eq!(selector.select(&antennas, 0.0), (Beam(0), false), "the first choice is no hand-over");
    // At φ from one axis and 60° - φ from the other the difference is 12 (2 φ - 60) / 60 dB: 2 dB at 35°.
    assert_eq!(selector.select(&antennas, 34.9), (Beam(0), false));
    assert_eq!(selector.select(&antennas, 35.1), (Beam(1), true));
    assert_eq!(selector.select(&antennas, 25.1), (Beam(1), false));
    assert_eq!(selector.select(&antennas, 24.9), (Beam(0), true));
    // To a ship that is suddenly behind, at once.
    assert_eq!(selector.select(&antennas, 180.0), (Beam(3), true));
}

#[test]
fn without_hysteresis_a_yawing_ship_hands_over_each_time_and_with_it_never() {
    let antennas = sunflower(12, PARABOLIC);
    let handovers = |hysteresis: f64| {
        let mut selector = BeamSelector::new(hysteresis);
        (0..100).filter(|n| selector.select(&antennas, if n % 2 == 0 { 14.5 } else { 15.5 }).1).count()
    };
    assert_eq!([handovers(0.0), handovers(f64::NAN), handovers(-3.0)], [99, 99, 99]);
    assert_eq!(handovers(DEFAULT_HYSTERESIS), 0);
}

#[test]
fn a_sector_is_left_at_its_edge_unless_hysteresis_exceeds_front_to_back() {
    let antennas = sunflower(6, SECTOR);
    let after = |hysteresis: f64| {
        let mut selector = BeamSelector::new(hysteresis);
        selector.select(&antennas, 0.0);
        selector.select(&antennas, 31.0)
    };
    assert_eq!(after(2.0), (Beam(1), true));
    assert_eq!(after(20.0), (Beam(0), false));
}

#[test]
fn antennas_that_cannot_be_are_refused() {
    assert_eq!(Sunflower::new(0, 0.0, SECTOR), Err(SunflowerError::Beams(0)));
    assert_eq!(Sunflower::new(100, 0.0, SECTOR), Err(SunflowerError::Beams(100)));
    assert!(matches!(Sunflower::new(6, f64::NAN, SECTOR), Err(SunflowerError::Decibels(_))));
    let pattern = Pattern::Parabolic { front_to_back: -1.0 };
    assert_eq!(Sunflower::new(6, 0.0, pattern), Err(SunflowerError::Decibels(-1.0)));
}

proptest! {
    #[test]
    fn no_beam_has_more_gain_than_the_best(beams in 1u8..=99, at in -720.0..720.0, parabolic: bool) {
        let antennas = sunflower(beams, if parabolic { PARABOLIC } else { SECTOR });
        let best = antennas.best(at);
        prop_assert!(best.0 < beams);
        let gain = antennas.gain(best, at);
        for beam in 0..beams {
            prop_assert!(antennas.gain(Beam(beam), at) <= gain + 1e-9);
        }
    }

    /// The beam in use is never further below the best than the hysteresis.
    #[test]
    fn hysteresis_costs_no_more_than_itself(turns in prop::collection::vec(-180.0..180.0, 1..50), hysteresis in 0.0..6.0) {
        let antennas = sunflower(12, PARABOLIC);
        let mut selector = BeamSelector::new(hysteresis);
        for at in turns {
            let (beam, _) = selector.select(&antennas, at);
            prop_assert!(antennas.gain(beam, at) >= antennas.gain(antennas.best(at), at) - hysteresis - 1e-9);
        }
    }
}
