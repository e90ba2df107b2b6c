//! Where a receiver begins with a source: what it asks for of what was sent before it came.

use super::units::Units;
use super::window::Window;
use crate::Join;

/// What is known of a source when its first SPM has come.
#[derive(Clone, Copy, Debug)]
pub(super) struct Known {
    pub(super) trail: u64,
    pub(super) lead: u64,
    /// First sequence number that the source lets late receivers ask for, if it says so.
    pub(super) join: Option<u64>,
}

/// The first packet that is wanted.
pub(super) fn first(join: Join, known: Known, window: &Window) -> u64 {
    let heard = window.first_held();
    let now = heard.map_or(known.lead + 1, |(sequence, symbol)| Units::first(sequence, symbol).min(sequence));
    let first = match join {
        Join::Everything => known.trail,
        // Others say nothing about objects: what is heard first is the first (RFC 3208, section 6).
        Join::Object => known.join.unwrap_or(now).min(now),
        Join::Now => now,
    };
    first.max(known.trail)
}
