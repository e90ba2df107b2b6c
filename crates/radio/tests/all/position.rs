//! Positions: distances and bearings on the plane and the globe, at the poles and the date line.
#![allow(clippy::unwrap_used, reason = "a test may panic, in its helpers too")]

use crate::common::*;
use hopcast_radio::position::{EARTH_RADIUS, PositionError, full_turn, half_turn};
use hopcast_radio::{Position, Separation};
use proptest::prelude::*;

#[test]
fn on_a_plane_distance_and_bearings_are_those_of_a_compass() {
    let way = plane(100.0, 100.0).to(&plane(400.0, -300.0)).unwrap();
    assert_eq!(way.metres, 500.0);
    close(way.bearing, 180.0 - 36.869_897_645_844, 1e-9);
    close(way.back_bearing, 360.0 - 36.869_897_645_844, 1e-9);
    near(plane(100.0, 100.0).moved(way.bearing, 500.0), plane(400.0, -300.0), 1e-9);
}

#[test]
fn two_ships_in_one_place_are_at_distance_zero() {
    let here = Separation { metres: 0.0, bearing: 0.0, back_bearing: 0.0 };
    assert_eq!(plane(3.0, -4.0).to(&plane(3.0, -4.0)), Some(here));
    assert_eq!(globe(52.0, 4.0).to(&globe(52.0, 4.0)), Some(here));
    assert_eq!(globe(52.0, 184.0).to(&globe(52.0, -176.0)), Some(here));
}

/// Flinders Peak to Buninyon (Geocentric Datum of Australia technical manual, Vincenty's formulae): 54,972.271 m on
/// the ellipsoid, at 306°52'05.37", and 127°10'25.07" back.
#[test]
fn a_great_circle_is_the_geodesic_within_half_a_percent() {
    let sexagesimal = |degrees: f64, minutes: f64, seconds: f64| degrees + minutes / 60.0 + seconds / 3600.0;
    let flinders = globe(-sexagesimal(37.0, 57.0, 3.72030), sexagesimal(144.0, 25.0, 29.52440));
    let buninyon = globe(-sexagesimal(37.0, 39.0, 10.15610), sexagesimal(143.0, 55.0, 35.38390));
    let way = flinders.to(&buninyon).unwrap();
    close(way.metres, 54_972.271, 54_972.271 * 0.0056);
    close(way.bearing, sexagesimal(306.0, 52.0, 5.37), 0.2);
    close(way.back_bearing, sexagesimal(127.0, 10.0, 25.07), 0.2);
}

#[test]
fn the_date_line_is_no_border() {
    let (fiji, samoa) = (globe(-17.0, 179.9), globe(-17.0, -179.9));
    let way = fiji.to(&samoa).unwrap();
    close(way.metres, 0.2_f64.to_radians() * EARTH_RADIUS * 17f64.to_radians().cos(), 1.0);
    close(way.bearing, 90.0, 0.1);
    near(fiji.moved(way.bearing, way.metres), samoa, 1e-3);
    let (_, longitude) = coordinates(fiji.moved(90.0, way.metres / 2.0 + 100.0));
    assert!((-180.0..-179.9).contains(&longitude), "{longitude}");
    // Both ways of writing the line are one place.
    assert_eq!(globe(0.0, 180.0), globe(0.0, -180.0));
    assert_eq!(globe(0.0, 190.0), globe(0.0, -170.0));
}

#[test]
fn a_pole_is_one_place_and_a_way_leads_across_it() {
    let pole = globe(90.0, 17.0);
    close(pole.to(&globe(90.0, -100.0)).unwrap().metres, 0.0, 1e-6);
    // North is along the pole's own meridian, beyond it: to 163° W, and south is the way back to 17° E.
    close(pole.to(&globe(89.0, -163.0)).unwrap().bearing, 0.0, 1e-6);
    close(pole.to(&globe(89.0, 17.0)).unwrap().bearing, 180.0, 1e-6);
    close(pole.to(&globe(0.0, 45.0)).unwrap().metres, EARTH_RADIUS * core::f64::consts::FRAC_PI_2, 1e-3);

    let (here, beyond) = (globe(89.9, 30.0), globe(89.9, -150.0));
    let way = here.to(&beyond).unwrap();
    close(way.metres, 0.2_f64.to_radians() * EARTH_RADIUS, 1e-3);
    close(half_turn(way.bearing), 0.0, 1e-6);
    close(half_turn(way.back_bearing), 0.0, 1e-6);
    near(here.moved(0.0, way.metres / 2.0), pole, 1e-3);
    near(globe(-89.9, 0.0).moved(180.0, way.metres), globe(-89.9, 180.0), 1e-3);
}

#[test]
fn antipodes_are_half_the_circumference_apart() {
    let way = globe(30.0, 40.0).to(&globe(-30.0, -140.0)).unwrap();
    close(way.metres, EARTH_RADIUS * core::f64::consts::PI, 1.0);
    assert!((0.0..360.0).contains(&way.bearing) && (0.0..360.0).contains(&way.back_bearing));
}

#[test]
fn a_ship_on_a_plane_is_nowhere_on_the_globe() {
    assert_eq!(plane(0.0, 0.0).to(&globe(0.0, 0.0)), None);
}

#[test]
fn what_is_no_position_is_refused() {
    assert!(matches!(Position::metres(f64::NAN, 0.0), Err(PositionError::Metres(_))));
    assert_eq!(Position::metres(0.0, f64::INFINITY), Err(PositionError::Metres(f64::INFINITY)));
    assert_eq!(Position::degrees(90.5, 0.0), Err(PositionError::Latitude(90.5)));
    assert_eq!(Position::degrees(0.0, 400.0), Err(PositionError::Longitude(400.0)));
    assert!(matches!(Position::degrees(f64::NAN, 0.0), Err(PositionError::Latitude(_))));
    assert!(matches!(Position::degrees(0.0, f64::NAN), Err(PositionError::Longitude(_))));
    // At the border of the plane a ship stays.
    let border = plane(4e10, 0.0);
    near(border.moved(90.0, 1e9), border, 1e-6);
    near(plane(0.0, 0.0).moved(90.0, f64::INFINITY), border, 1.0);
    near(globe(52.0, 4.0).moved(90.0, f64::NAN), globe(52.0, 4.0), 0.1);
}

#[test]
fn turns_are_less_than_a_whole_one() {
    assert_eq!([full_turn(-90.0), full_turn(720.0), full_turn(-1e-20)], [270.0, 0.0, 0.0]);
    assert_eq!([half_turn(180.0), half_turn(-180.0), half_turn(539.0)], [-180.0, -180.0, 179.0]);
}

fn anywhere() -> impl Strategy<Value = Position> {
    let degrees =
        |limit: f64| prop_oneof![8 => -limit..limit, 1 => Just(limit), 1 => Just(-limit), 1 => Just(0.0)];
    (degrees(90.0), degrees(180.0)).prop_map(|(latitude, longitude)| globe(latitude, longitude))
}

proptest! {
    #[test]
    fn who_sails_the_bearing_and_the_distance_arrives(from in anywhere(), to in anywhere()) {
        let way = from.to(&to).unwrap();
        let back = to.to(&from).unwrap();
        prop_assert!((way.metres - back.metres).abs() < 1e-3);
        prop_assert!((0.0..360.0).contains(&way.bearing));
        let arrived = from.moved(way.bearing, way.metres);
        prop_assert!(arrived.to(&to).unwrap().metres < 0.1, "{arrived} instead of {to}");
    }

    #[test]
    fn a_ship_stays_on_the_globe(from in anywhere(), bearing in -1e3..1e3, metres in -1e8..1e8) {
        let (latitude, longitude) = coordinates(from.moved(bearing, metres));
        prop_assert!(Position::degrees(latitude, longitude).is_ok());
    }
}
