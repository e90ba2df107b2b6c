//! Ships: where they are at any time.
//!
//! | module | what |
//! |---|---|
//! | [`position`] | metres on a plane or degrees on the globe; distance and bearings |
//! | [`track`] | waypoints with times, found by time or by way in O(log n) |
//! | [`motion`] | a track of a ship's own, formations, convoys; joining and leaving |
//!
//! # Scope and departures
//!
//! - The globe is a sphere: see [`position::EARTH_RADIUS`] for the error.

pub mod motion;
pub mod position;
pub mod track;

pub use motion::Motion;
pub use position::{Position, Separation};
pub use track::{Fix, Track, Waypoint};
