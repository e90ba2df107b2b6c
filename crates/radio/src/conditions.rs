//! A radio link as the conditions of a direction of a point-to-point link.

use hopcast_core::{Dbm, Fraction, Instant, Rate};
use hopcast_link::{Condition, Conditions};

use crate::budget::{Outcome, RadioLink};

/// Conditions from the first ship of a radio link to the second.
///
/// A frame is sent at the rate of the budget, and lost by a constant share; without a link it is sent at the lowest
/// rate, since a radio does not know who hears it, and is lost.
#[derive(Clone, Debug)]
pub struct OneWay {
    link: RadioLink,
    lowest: Rate,
    loss: Fraction,
}

impl OneWay {
    /// The conditions from the first ship of `link` to the second, where a frame is lost by `loss` while there is a
    /// link. The other direction has a link of its own, of the ships in the other order.
    pub fn new(link: RadioLink, loss: Fraction) -> Self {
        let lowest = link.rates().lowest();
        Self { link, lowest, loss }
    }
}

impl Conditions for OneWay {
    fn at(&mut self, now: Instant) -> Condition {
        let (rate, loss, signal) = match self.link.at(now).forward {
            Outcome::Up { signal, rate, .. } => (rate, self.loss, Some(Dbm::new(signal))),
            Outcome::TooWeak { signal, .. } => (self.lowest, Fraction::ONE, Some(Dbm::new(signal))),
            Outcome::Absent(_) | Outcome::NotComparable => (self.lowest, Fraction::ONE, None),
        };
        Condition { rate, loss, signal }
    }
}
