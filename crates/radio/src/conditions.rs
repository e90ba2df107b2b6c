//! A radio link as the conditions of a direction of a point-to-point link.

use hopcast_core::{Dbm, Fraction, Instant, Rate};
use hopcast_link::{Condition, Conditions};

use crate::budget::{RadioLink, RadioLinkState};

/// Conditions from the first ship of a radio link to the second.
///
/// A frame is sent at the rate of the budget, and lost by a constant share; without a link it is sent at the lowest
/// rate, since a radio does not know who hears it, and is lost. Each direction has a link of its own: both hand over
/// independently, each as its own frames find the ships.
#[derive(Clone, Debug)]
pub struct OneWay {
    link: RadioLink,
    lowest: Rate,
    loss: Fraction,
    /// The last condition and its time: of frames back to back the one begins as the other ends.
    last: Option<(Instant, Condition)>,
}

impl OneWay {
    /// The conditions from the first ship of `link` to the second, where a frame is lost by `loss` while there is a
    /// link. The other direction has a link of its own, of the ships in the other order.
    pub fn new(link: RadioLink, loss: Fraction) -> Self {
        let lowest = link.rates().lowest();
        Self { link, lowest, loss, last: None }
    }
}

impl Conditions for OneWay {
    fn at(&mut self, now: Instant) -> Condition {
        if let Some((_, condition)) = self.last.filter(|&(at, _)| at == now) {
            return condition;
        }
        let (rate, loss, signal) = match self.link.at(now).forward {
            RadioLinkState::Up { signal, rate, .. } => (rate, self.loss, Some(Dbm::new(signal))),
            RadioLinkState::TooWeak { signal, .. } => {
                let signal = (!signal.is_nan()).then(|| Dbm::new(signal));
                (self.lowest, Fraction::ONE, signal)
            }
            RadioLinkState::Absent(_) | RadioLinkState::NotComparable => (self.lowest, Fraction::ONE, None),
        };
        let condition = Condition { rate, loss, signal };
        self.last = Some((now, condition));
        condition
    }
}
