//! Ships and their radios: where they are, and what is lost between them.
//!
//! | module | what |
//! |---|---|
//! | [`position`] | metres on a plane or degrees on the globe; distance and bearings |
//! | [`track`] | waypoints with times, found by time or by way in O(log n) |
//! | [`motion`] | a track of a ship's own, formations, convoys; joining and leaving |
//! | [`propagation`] | free space, two rays over sea, log-distance; shadowing |
//!
//! # Scope and departures
//!
//! - The globe is a sphere: see [`position::EARTH_RADIUS`] for the error.
//! - The two-ray law has a flat sea. Beyond the radio horizon, 4.12 km (√h₁ + √h₂) with heights in metres (a ray over
//!   an earth of 4/3 of its radius), its loss is too small.

pub mod motion;
pub mod position;
pub mod propagation;
pub mod track;

pub use motion::Motion;
pub use position::{Position, Separation};
pub use propagation::{Carrier, Law, Shadowing};
pub use track::{Fix, Track, Waypoint};
