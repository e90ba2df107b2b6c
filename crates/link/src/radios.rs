//! Radios of the stations of a medium: who hears whom, how well, and at which rates, as a function of the time.

use core::fmt;
use std::sync::Arc;

use hopcast_core::{Dbm, Fraction, Instant, Rate, Seed};

use crate::Attachment;

/// Reception of one station's frames by another at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Hearing {
    /// The station that hears.
    pub to: Attachment,
    /// The highest rate that it can read; a frame that is sent at a higher one is noise to it. 0 if it reads none of
    /// the [rates](Radios::rates), and only senses frames.
    pub rate: Rate,
    /// Probability that a frame whose last bit leaves now is lost there.
    pub loss: Fraction,
    /// Signal strength there, if it is known.
    pub signal: Option<Dbm>,
}

impl Hearing {
    /// Whether the station reads frames of any rate, and does not only sense them.
    pub fn reads(&self) -> bool {
        self.rate > Rate::default()
    }
}

/// The radios of all stations of a medium. They are asked as frames begin and end, at times that never go back and that
/// no wake of the medium changes; nothing happens between two questions. An answer may depend on the questions before
/// it, as a hand-over with hysteresis does, but the same question twice at one time has the same answer.
pub trait Radios: fmt::Debug + Send {
    /// The rates, from the highest to the lowest; there is at least one, and none is 0. Frames to groups are sent at
    /// the lowest.
    fn rates(&self) -> &[Rate];

    /// Reception of `from`'s frames by `to` at `now`; `None` if that hears nothing of them.
    fn hearing(&mut self, now: Instant, from: Attachment, to: Attachment) -> Option<Hearing>;

    /// As [`hearing`](Self::hearing), for a spectator: no later answer depends on it.
    fn peek(&mut self, now: Instant, from: Attachment, to: Attachment) -> Option<Hearing>;

    /// All that hear `from` at `now`, in the order of attachments, at the end of `hearers`.
    fn hearers(&mut self, now: Instant, from: Attachment, hearers: &mut Vec<Hearing>);
}

/// Makes the radios of a medium from the root of a run's randomness.
pub trait RadioSource: fmt::Debug + Send + Sync {
    /// The radios of its stations at the start of a run.
    fn radios(&self, seed: &Seed) -> Box<dyn Radios>;
}

/// The radios in the configuration of a medium.
#[derive(Clone)]
pub struct RadioModel(pub Arc<dyn RadioSource>);

/// Only the name: a fleet is part of a scenario, whose text would hold all its waypoints once more.
impl fmt::Debug for RadioModel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("RadioModel")
    }
}

/// Two are equal if they are the same.
impl PartialEq for RadioModel {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
