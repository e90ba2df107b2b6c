//! Ships and their radios: where they are, how they hear each other, and why.
//!
//! A [`Ship`] has a [`Motion`] and a [`Radio`]. A [`RadioLink`] of two ships says at any time what there is between
//! them: distance and bearings, the beams that look at each other and their gains, the loss of the [`Channel`], the
//! signal, and the rate that it carries or the decibels that are missing. That is a [`Budget`], which prints as a
//! table.
//! Nothing happens between two questions: there are no events, and no time step.
//!
//! | module | what |
//! |---|---|
//! | [`position`] | metres on a plane or degrees on the globe; distance and bearings |
//! | [`track`] | waypoints with times, found by time or by distance sailed in O(log n) |
//! | [`motion`] | a track of a ship's own, formations, convoys; joining and leaving |
//! | [`traces`] | tracks from files: ns-2 setdest, BonnMotion, GPX, AIS as NMEA and as CSV |
//! | [`beams`] | antennas round a mast, their gains, hand-over with hysteresis |
//! | [`propagation`] | free space, two rays over sea, log-distance; shadowing |
//! | [`rates`] | rate by signal |
//! | [`budget`] | why there is a link or none |
//! | [`fleet`] | the ships of a medium, as its stations' radios |
//! | [`maritime`] | the radio of MaritimeManet, with the distances of its tables |
//!
//! # Scope and departures
//!
//! - The globe is a sphere: see [`position::EARTH_RADIUS`] for the error.
//! - The two-ray law has a flat sea. Beyond the radio horizon, 4.12 km (√h₁ + √h₂) with heights in metres (a ray over
//!   an earth of 4/3 of its radius), its loss is too small.
//! - Beams are horizontal: no roll, pitch or elevation.
//! - A frame has the rate of the instant at which it begins, and is lost unless there is a link at any rate when it
//!   ends; no fading is faster than ships move.
//! - Both ends of a pair use one pair of beams in both directions. Of other pairs' beams nothing is known: a ship sends
//!   to all that are in range by their best beams, and hears them, at once.

pub mod beams;
pub mod budget;
pub mod fleet;
pub mod maritime;
pub mod motion;
pub mod position;
pub mod propagation;
pub mod rates;
pub mod traces;
pub mod track;

pub use beams::{Beam, BeamPair, BeamSelector, Pattern, Sunflower};
pub use budget::{Budget, Channel, Radio, RadioError, RadioLink, RadioLinkState, Ship};
pub use fleet::Fleet;
pub use motion::{Drift, Motion};
pub use position::{Position, Separation};
pub use propagation::{Frequency, Law, Shadowing};
pub use rates::{RateRow, RateTable};
pub use track::{Fix, Track, Waypoint};
