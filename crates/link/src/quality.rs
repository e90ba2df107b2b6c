//! Quality of a link, for routing.

use hopcast_core::{Dbm, Fraction, Rate};

/// Quality of a link from one attachment to another, in the long run and without contention: collisions, full queues
/// and scheduled changes to come are not in it.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Quality {
    /// Probability that a frame arrives that is sent once, as one to a group is.
    pub delivery: Fraction,
    /// Probability that a frame to this station alone arrives, with the retries of the link. As if each transmission
    /// were lost on its own, which in bursts they are not.
    pub delivery_with_retries: Fraction,
    /// Rate at which frames are sent; `None` if that takes no time.
    pub rate: Option<Rate>,
    /// Signal strength at the receiver, if the medium has one.
    pub signal: Option<Dbm>,
}

impl Quality {
    /// The quality of a link that loses the share `above` of the frames, and the share `below` of their transmissions,
    /// which it repeats up to `retries` times.
    pub(crate) fn new(above: Fraction, below: Fraction, retries: u32, rate: Option<Rate>) -> Self {
        let pass = |transmissions: i32| {
            let missed = below.get().powi(transmissions);
            Fraction::new(above.complement().get() * (1.0 - missed)).unwrap_or(Fraction::ZERO)
        };
        let retries = i32::try_from(retries).unwrap_or(i32::MAX - 1);
        Self { delivery: pass(1), delivery_with_retries: pass(retries + 1), rate, signal: None }
    }

    /// The same quality where the signal is known, or not.
    pub(crate) fn at(self, signal: Option<Dbm>) -> Self {
        Self { signal, ..self }
    }
}
