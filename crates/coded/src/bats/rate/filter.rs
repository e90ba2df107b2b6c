//! The largest of the last rounds.

/// Rounds that the filter looks back (BBR v1, Linux `bbr_bw_rtts`).
pub(super) const ROUNDS: usize = 10;

/// A maximum over the last [`ROUNDS`] rounds.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct MaxFilter {
    /// The largest of each round, the present one first.
    rounds: [f64; ROUNDS],
    largest: f64,
}

impl MaxFilter {
    pub(super) fn update(&mut self, value: f64) {
        self.rounds[0] = self.rounds[0].max(value);
        self.largest = self.largest.max(value);
    }

    /// A round with something in it is over.
    pub(super) fn advance(&mut self) {
        if self.rounds[0] > 0.0 {
            self.rounds.rotate_right(1);
            self.rounds[0] = 0.0;
            self.find_largest();
        }
    }

    /// Forgets all but the present round and the `rounds` before it, if those know anything.
    pub(super) fn shorten(&mut self, rounds: usize) {
        let kept = (rounds + 1).min(ROUNDS);
        if self.rounds[..kept].iter().any(|&value| value > 0.0) {
            self.rounds[kept..].fill(0.0);
            self.find_largest();
        }
    }

    /// Believes `value` and nothing else.
    pub(super) fn replace(&mut self, value: f64) {
        *self = Self::default();
        (self.rounds[0], self.largest) = (value, value);
    }

    /// The largest of the present round.
    pub(super) const fn present(&self) -> f64 {
        self.rounds[0]
    }

    pub(super) const fn get(&self) -> f64 {
        self.largest
    }

    fn find_largest(&mut self) {
        self.largest = self.rounds.iter().copied().fold(0.0, f64::max);
    }
}
