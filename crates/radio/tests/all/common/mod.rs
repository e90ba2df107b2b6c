//! Helpers of the tests of ships.
#![allow(dead_code, clippy::unwrap_used, reason = "each test uses a part, and may panic")]

use hopcast_core::{Duration, Instant};
use hopcast_radio::{Position, Track, Waypoint};

pub(crate) fn seconds(seconds: f64) -> Instant {
    Instant::ZERO + Duration::from_secs_f64(seconds)
}

pub(crate) fn plane(x: f64, y: f64) -> Position {
    Position::metres(x, y).unwrap()
}

pub(crate) fn globe(latitude: f64, longitude: f64) -> Position {
    Position::degrees(latitude, longitude).unwrap()
}

pub(crate) fn point(at: f64, position: Position) -> Waypoint {
    Waypoint { at: seconds(at), position, heading: None }
}

/// The track through points of a plane: seconds, metres east, metres north.
pub(crate) fn track(points: &[(f64, f64, f64)]) -> Track {
    Track::new(points.iter().map(|&(at, x, y)| point(at, plane(x, y)))).unwrap()
}

/// Coordinates of a position, of either kind.
pub(crate) fn coordinates(position: Position) -> (f64, f64) {
    match position {
        Position::Plane { x, y } => (x, y),
        Position::Globe { latitude, longitude } => (latitude, longitude),
    }
}

#[track_caller]
pub(crate) fn close(found: f64, expected: f64, within: f64) {
    assert!((found - expected).abs() <= within, "found {found}, expected {expected} within {within}");
}

/// Whether two positions are the same within metres.
#[track_caller]
pub(crate) fn near(found: Position, expected: Position, within: f64) {
    let apart = found.to(&expected).unwrap().metres;
    assert!(apart <= within, "found {found}, expected {expected}: {apart} m apart");
}
