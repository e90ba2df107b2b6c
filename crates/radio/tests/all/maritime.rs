//! MaritimeManet's law against its published tables.
#![allow(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

use std::sync::Arc;

use crate::common::*;
use hopcast_core::{Instant, Rate, Seed};
use hopcast_radio::maritime::{Size, channel};
use hopcast_radio::rates::RateTableError;
use hopcast_radio::{Motion, Radio, RadioLink, RadioLinkState, RateRow, RateTable, Ship, Track};

/// Table 8: antennas, and the maximum distance in metres of each rate of table 7, highest first.
const DISTANCES: &str = include_str!("published/maritime_max_distance.csv");
/// Table 7: minimum signal in dBm, and rate in Mbit/s.
const RATES: &str = include_str!("published/maritime_rssi_to_rate.csv");

/// Reception of a ship by another of the same size, straight ahead.
fn heard(radio: Radio, metres: f64) -> RadioLinkState {
    let ship = |name: &str, y: f64| {
        let motion = Motion::along(Track::still(plane(0.0, y), 0.0));
        Arc::new(Ship { name: name.into(), motion, radio })
    };
    let (a, b) = (ship("a", 0.0), ship("b", metres));
    RadioLink::new(Arc::new(channel()), a, b, &Seed::new(1, 0), 0.0).at(Instant::ZERO).forward
}

fn rate_at(radio: Radio, metres: f64) -> Option<Rate> {
    match heard(radio, metres) {
        RadioLinkState::Up { rate, .. } => Some(rate),
        _ => None,
    }
}

#[test]
fn the_table_of_rates_is_the_published_one_up_to_its_last_signal() {
    let published: Vec<(f64, Rate)> = RATES
        .lines()
        .skip(1)
        .map(|line| {
            let (signal, mbit) = line.split_once(',').unwrap();
            (signal.parse().unwrap(), format!("{mbit} Mbit/s").parse().unwrap())
        })
        .collect();
    let channel = channel();
    let ours: Vec<(f64, Rate)> = channel.rates.rows().iter().map(|row| (row.signal, row.rate)).collect();
    assert_eq!(ours[..8], published[..8]);
    // The thesis prints -90, but its distances are those of -89.
    assert_eq!((ours[8], published[8]), ((-89.0, Rate::from_mbit(1)), (-90.0, Rate::from_mbit(1))));
    assert_eq!(channel.rates.sensitivity(), -89.0);
    let rate = |signal: f64| channel.rates.row(signal).map(|row| row.rate);
    assert_eq!(rate(-64.0), Some(Rate::from_mbit(65)));
    assert_eq!(rate(-64.001), Some("58.5 Mbit/s".parse().unwrap()));
    assert_eq!(rate(-89.001), None);
    assert_eq!(rate(f64::NAN), None);
}

#[test]
fn all_27_published_distances_are_those_of_the_law() {
    let channel = channel();
    let (mut exact, mut total) = (0, 0);
    for line in DISTANCES.lines().skip(1) {
        let mut cells = line.split(',');
        let radio = Size::of_antennas(cells.next().unwrap().parse().unwrap()).unwrap().radio();
        for (row, cell) in channel.rates.rows().iter().zip(cells) {
            let metres: f64 = cell.parse().unwrap();
            total += 1;
            let (reaches, ends) = (rate_at(radio, metres), rate_at(radio, metres + 1.0));
            if reaches == Some(row.rate) && ends < Some(row.rate) {
                exact += 1;
                continue;
            }
            // To the printed precision of a metre there are three others; in decibels they are within 0.003.
            let (RadioLinkState::Up { signal, .. } | RadioLinkState::TooWeak { signal, .. }) =
                heard(radio, metres)
            else {
                panic!("{line}: no path")
            };
            close(signal, row.signal, 0.003);
            // And to the nearest metre or the next.
            assert_eq!(rate_at(radio, metres - 2.0), Some(row.rate), "{line}");
            assert!(rate_at(radio, metres + 2.0) < Some(row.rate), "{line}");
        }
    }
    assert_eq!((total, exact), (27, 24));
}

/// The thesis' own example: "a pair of small ships (each with 6 antennas) separated by 2000 meters achieves a
/// bandwidth of 19.5 Mb/s".
#[test]
fn two_small_ships_2000_metres_apart_have_19_5_mbit() {
    assert_eq!(rate_at(Size::Small.radio(), 2000.0), Some("19.5 Mbit/s".parse().unwrap()));
}

#[test]
fn ships_in_one_place_hear_each_other_as_at_a_metre() {
    assert_eq!(heard(Size::Small.radio(), 0.0), heard(Size::Small.radio(), 1.0));
    assert_eq!(rate_at(Size::Small.radio(), 0.0), Some(Rate::from_mbit(65)));
}

#[test]
fn each_size_has_its_beams_and_there_are_three() {
    let beams = [Size::Small, Size::Medium, Size::Large].map(|size| size.radio().antennas().beams());
    assert_eq!(beams, [6, 12, 24]);
    assert_eq!(Size::of_antennas(7), None);
}

#[test]
fn a_table_whose_rows_do_not_fall_is_refused() {
    let row = |signal, mbit| RateRow { signal, rate: Rate::from_mbit(mbit) };
    assert_eq!(RateTable::new(vec![]), Err(RateTableError::Empty));
    assert_eq!(RateTable::new(vec![row(-60.0, 9), row(-60.0, 5)]), Err(RateTableError::Signal(1)));
    assert_eq!(RateTable::new(vec![row(-60.0, 9), row(-70.0, 9)]), Err(RateTableError::Rate(1)));
    assert_eq!(RateTable::new(vec![row(-60.0, 0)]), Err(RateTableError::Rate(0)));
    assert_eq!(RateTable::new(vec![row(f64::NAN, 1)]), Err(RateTableError::Signal(0)));
}
