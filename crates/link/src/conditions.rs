//! Rate and loss that are a function of the time, such as those between two ships.

use core::fmt;

use hopcast_core::{Dbm, Fraction, Instant, Rate};

/// Rate and loss of one direction of a link at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition {
    /// Rate of a frame that begins now, above 0: a frame begun at 0 would never end. Without a radio link, the lowest
    /// rate, at which the frame is sent and lost.
    pub rate: Rate,
    /// Probability that a frame whose last bit leaves now is lost.
    pub loss: Fraction,
    /// Signal strength at the receiver, if it is a radio's.
    pub signal: Option<Dbm>,
}

/// The conditions of one direction, asked once at time zero, and then as the first and as the last bit of each frame
/// leaves: nothing happens between two frames.
///
/// The rate is that of the answer at a frame's first bit, and the loss that of the answer at its last. These times
/// never go back, and are the same however often the link is woken, so that an answer may depend on those before it, as
/// a hand-over with hysteresis does. It must not depend on what the other direction asks, whose order is not defined.
pub trait Conditions: fmt::Debug + Send {
    /// The condition at `now`.
    fn at(&mut self, now: Instant) -> Condition;
}
