//! Rate and loss that are a function of the time, such as those between two ships.

use core::fmt;

use hopcast_core::{Dbm, Fraction, Instant, Rate};

/// Rate and loss of one direction of a link at one time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Condition {
    /// Rate of a frame that begins now. Without a link it is what a radio sends at that does not know of that; a rate
    /// of zero would have to be told when it is over.
    pub rate: Rate,
    /// Probability that a frame whose last bit leaves now is lost.
    pub loss: Fraction,
    /// Signal strength at the receiver, if it is a radio's.
    pub signal: Option<Dbm>,
}

/// The conditions of one direction, asked when a frame leaves and at no other time: nothing happens between two frames.
///
/// The rate is asked for as the first bit of a frame leaves, and the loss as the last one does. These times never go
/// back, and are the same however often the link is woken, so that an answer may depend on those before it, as a
/// hand-over with hysteresis does. It must not depend on what the other direction asks, whose order is not defined.
pub trait Conditions: fmt::Debug + Send {
    /// The condition at `now`.
    fn at(&mut self, now: Instant) -> Condition;
}
