//! Link budgets: why there is a link between two ships, or none.
#![allow(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

use std::sync::Arc;

use crate::common::*;
use hopcast_core::{Instant, Seed};
use hopcast_radio::beams::DEFAULT_HYSTERESIS;
use hopcast_radio::maritime::{Size, channel};
use hopcast_radio::propagation::Correlation;
use hopcast_radio::{
    Beam, BeamPair, Channel, Motion, Pattern, Radio, RadioError, RadioLink, RadioLinkState, Shadowing, Ship,
    Sunflower, Track,
};

fn ship(name: &str, motion: Motion, radio: Radio) -> Arc<Ship> {
    Arc::new(Ship { name: name.into(), motion, radio })
}

fn still(x: f64, y: f64, heading: f64) -> Motion {
    Motion::along(Track::still(plane(x, y), heading))
}

fn link(channel: Channel, a: Arc<Ship>, b: Arc<Ship>) -> RadioLink {
    RadioLink::new(Arc::new(channel), a, b, &Seed::new(5, 0), DEFAULT_HYSTERESIS)
}

fn signal(outcome: RadioLinkState) -> f64 {
    match outcome {
        RadioLinkState::Up { signal, .. } | RadioLinkState::TooWeak { signal, .. } => signal,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_budget_is_the_sum_of_its_terms() {
    let a = ship("anna", still(0.0, 0.0, 90.0), Size::Small.radio());
    let b = ship("bert", still(3000.0, 4000.0, 0.0), Size::Large.radio());
    let budget = link(channel(), a, b).at(seconds(30.0));
    let path = budget.path.unwrap();
    assert_eq!(path.metres, 5000.0);
    close(path.loss, 23.5 * 5000f64.log10(), 1e-9);
    let [anna, bert] = path.ends;
    // 36.87° is 53.13° to port of a ship that heads east: beam 5 of 6 looks there, 6.87° beside its axis.
    assert_eq!((anna.beam, bert.beam), (Beam(5), Beam(14)));
    close(anna.off_axis, 6.87, 0.01);
    close(bert.off_axis, 216.87 - 210.0, 0.01);
    let sum = anna.power + anna.gain + bert.gain - path.loss;
    close(signal(budget.forward), sum, 1e-12);
    let RadioLinkState::Up { rate, margin, .. } = budget.forward else { panic!() };
    assert_eq!(rate, "19.5 Mbit/s".parse().unwrap());
    close(margin, sum + 77.0, 1e-12);
    assert_eq!(budget.beams(), Some(BeamPair { a: Beam(5), b: Beam(14) }));
}

#[test]
fn a_budget_prints_in_columns() {
    let a = ship("anna", still(0.0, 0.0, 90.0), Size::Small.radio());
    let b = ship("bert", still(3000.0, 4000.0, 0.0), Size::Large.radio());
    let text = link(channel(), a, b).at(seconds(30.0)).to_string();
    let expected = "\
at                   30s
distance                 5000.0 m
anna                 0.0 m E, 0.0 m N
  heading                  90.0°
  other ship               36.9°, 306.9° from the bow
  beam                        5, +6.9° off its axis
  gain                     0.00 dB
  power                    0.74 dBm
bert                 3000.0 m E, 4000.0 m N
  heading                   0.0°
  other ship              216.9°, 216.9° from the bow
  beam                       14, +6.9° off its axis
  gain                    10.00 dB
  power                    0.74 dBm
path loss                 86.93 dB
shadowing                  0.00 dB
signal                   -76.19 dBm
anna and bert        19.5 Mbit/s, 0.81 dB above its minimum
";
    assert_eq!(text, expected, "\n{text}");
}

#[test]
fn a_ship_too_far_away_lacks_decibels() {
    let at = |metres: f64| {
        let a = ship("a", still(0.0, 0.0, 0.0), Size::Small.radio());
        link(channel(), a, ship("b", still(0.0, metres, 0.0), Size::Small.radio())).at(Instant::ZERO)
    };
    let RadioLinkState::TooWeak { missing, .. } = at(65_860.0).forward else { panic!() };
    close(missing, 23.5, 0.01);
    assert!(at(65_860.0).to_string().ends_with("a and b              no link, 23.50 dB missing\n"));
    assert!(matches!(at(4e10).forward, RadioLinkState::TooWeak { missing, .. } if missing.is_finite()));
}

#[test]
fn a_ship_that_is_absent_or_on_another_chart_has_no_path() {
    let here = ship("here", still(0.0, 0.0, 0.0), Size::Small.radio());
    let gone = ship("gone", still(0.0, 100.0, 0.0).leaving(seconds(10.0)), Size::Small.radio());
    let mut link_to_it = link(channel(), here.clone(), gone);
    assert!(matches!(link_to_it.at(seconds(9.0)).forward, RadioLinkState::Up { .. }));
    let budget = link_to_it.at(seconds(10.0));
    assert_eq!(
        (budget.forward, budget.back, budget.path),
        (RadioLinkState::Absent(1), RadioLinkState::Absent(1), None)
    );
    assert_eq!(
        budget.to_string(),
        "at                   10s\nhere and gone        no link, gone is absent\n"
    );
    assert_eq!(budget.beams(), None);

    let elsewhere = ship("far", Motion::along(Track::still(globe(0.0, 0.0), 0.0)), Size::Small.radio());
    let budget = link(channel(), here, elsewhere).at(Instant::ZERO);
    assert_eq!(budget.forward, RadioLinkState::NotComparable);
    assert!(budget.to_string().contains("one position is in metres and the other in degrees"));
}

#[test]
fn ships_of_different_power_hear_each_other_differently() {
    let loud = Radio::new(20.0, *Size::Small.radio().antennas(), 10.0).unwrap();
    let budget = link(
        channel(),
        ship("loud", still(0.0, 0.0, 0.0), loud),
        ship("soft", still(0.0, 20_000.0, 0.0), Size::Small.radio()),
    )
    .at(Instant::ZERO);
    close(signal(budget.forward) - signal(budget.back), 20.0 - 0.7378, 1e-9);
    assert!(matches!(
        (budget.forward, budget.back),
        (RadioLinkState::Up { .. }, RadioLinkState::TooWeak { .. })
    ));
    let text = budget.to_string();
    assert!(text.contains("\nloud to soft ") && text.contains("\nsoft to loud         no link, "), "{text}");
}

#[test]
fn a_radio_has_a_finite_power_and_height() {
    let antennas = *Size::Small.radio().antennas();
    assert!(matches!(Radio::new(f64::NAN, antennas, 10.0), Err(RadioError::Power(_))));
    assert_eq!(Radio::new(f64::INFINITY, antennas, 10.0), Err(RadioError::Power(f64::INFINITY)));
    assert!(matches!(Radio::new(20.0, antennas, f64::NAN), Err(RadioError::Height(_))));
    assert_eq!(Radio::new(20.0, antennas, -1.0), Err(RadioError::Height(-1.0)));
}

/// A ship passes another at 1 km: its beams follow it one after another, and each hand-over is told once.
#[test]
fn a_passing_ship_is_handed_from_beam_to_beam() {
    let pattern = Pattern::Parabolic { front_to_back: 20.0 };
    let antennas = Sunflower::new(12, 4.0, pattern).unwrap();
    let radio = Radio::new(Size::Medium.radio().power(), antennas, 10.0).unwrap();
    let passing = track(&[(0.0, -20_000.0, 1000.0), (4000.0, 20_000.0, 1000.0)]);
    let a = ship("pier", still(0.0, 0.0, 0.0), radio);
    let mut link = link(channel(), a, ship("ferry", Motion::along(passing), radio));
    let (mut pairs, mut handovers) = (Vec::new(), 0);
    for time in 0..=4000 {
        let budget = link.at(seconds(f64::from(time)));
        handovers += usize::from(budget.path.unwrap().handed_over);
        pairs.push(budget.beams().unwrap());
    }
    pairs.dedup();
    assert_eq!(handovers, pairs.len() - 1, "{pairs:?}");
    let pier: Vec<u8> = pairs.iter().map(|pair| pair.a.0).collect();
    let ferry: Vec<u8> = pairs.iter().map(|pair| pair.b.0).collect();
    // From the west by north to the east; the ferry heads east and sees the pier ahead, to starboard, and astern.
    let mut seen = pier;
    seen.dedup();
    assert_eq!(seen, [9, 10, 11, 0, 1, 2, 3]);
    let mut seen = ferry;
    seen.dedup();
    assert_eq!(seen, [0, 1, 2, 3, 4, 5, 6]);
}

#[test]
fn the_same_question_has_the_same_answer_and_shadows_add_to_it() {
    let shadowing =
        Some(Shadowing { deviation: 6.0, correlation: Correlation::Position { distance: 100.0 } });
    let ships = || {
        let moving = Motion::along(track(&[(0.0, 0.0, 3000.0), (1000.0, 5000.0, 3000.0)]));
        (ship("a", still(0.0, 0.0, 0.0), Size::Small.radio()), ship("b", moving, Size::Small.radio()))
    };
    let at = |channel: Channel, time: f64| {
        let (a, b) = ships();
        link(channel, a, b).at(seconds(time))
    };
    let shadowed = || Channel { shadowing, ..channel() };
    let (with, without) = (at(shadowed(), 500.0), at(channel(), 500.0));
    assert_eq!(with, at(shadowed(), 500.0));
    close(signal(with.forward) - signal(without.forward), with.path.unwrap().shadowing, 1e-9);
    assert_ne!(with.path.unwrap().shadowing, 0.0);
    // Asked from the other side it is the same signal.
    let (a, b) = ships();
    close(signal(link(shadowed(), b, a).at(seconds(500.0)).forward), signal(with.forward), 1e-9);
}
