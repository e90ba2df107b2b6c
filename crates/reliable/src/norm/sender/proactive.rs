//! The amount of parity that is sent before anybody asks.

use crate::Proactive;

/// The parity symbols that blocks needed, from which the need of the next one is estimated.
///
/// A block's need is what its worst receiver asked for, with what it had been sent before. The mean less a deviation
/// is asked for nearly always: sending that much at once wastes little (with a normal distribution 0.08 deviations a
/// block) and saves a round of requests.
#[derive(Clone, Debug)]
pub(super) struct Need {
    proactive: Proactive,
    /// Mean and variance, as shares of the source symbols; none before the first block.
    known: Option<(f64, f64)>,
}

/// Weight of a new block. Chosen: ten blocks are a megabyte; less follows changes too slowly, more takes one block
/// for the rule.
const WEIGHT: f64 = 0.2;

impl Need {
    pub(super) fn new(proactive: Proactive) -> Self {
        Self { proactive, known: None }
    }

    /// Takes the need of a block of `source` symbols.
    pub(super) fn block(&mut self, source: u16, need: u16) {
        let share = f64::from(need) / f64::from(source.max(1));
        // Of one block the deviation is assumed to be that of independent losses.
        let (mean, variance) = self.known.unwrap_or((share, share / f64::from(source.max(1))));
        let off = share - mean;
        self.known = Some((mean + WEIGHT * off, (1.0 - WEIGHT) * (variance + WEIGHT * off * off)));
    }

    /// Parity to send with the next block of `source` symbols, at most `parity`.
    ///
    /// Before the need of any block is known, that of the blocks in `asked` is taken for it, as far as it shows by now.
    /// In a large group the first round of requests takes seconds, and each block of it would be asked for by many.
    pub(super) fn proactive(&self, source: u16, parity: u16, asked: impl Iterator<Item = u16>) -> u16 {
        let of = |(mean, variance): (f64, f64)| {
            ((mean - variance.sqrt()) * f64::from(source)).round().max(0.0) as u16
        };
        let symbols = match (self.proactive, self.known) {
            (Proactive::Fixed(symbols), _) => symbols,
            (Proactive::Adaptive, Some(known)) => of(known),
            (Proactive::Adaptive, None) => {
                let mut first = Self::new(Proactive::Adaptive);
                asked.for_each(|need| first.block(source, need));
                first.known.map_or(0, of)
            }
        };
        symbols.min(parity)
    }

    /// Share of symbols that the worst receiver loses, as far as blocks have shown.
    pub(super) fn loss(&self) -> f64 {
        // Of k + kx symbols that are sent k arrive.
        self.known.map_or(0.0, |(mean, _)| mean / (1.0 + mean)).min(MAX_LOSS)
    }
}

/// Loss for which answers make up at most: a receiver that says it has nothing is not worth everybody's rate. Chosen.
const MAX_LOSS: f64 = 0.5;

#[cfg(test)]
mod tests {
    use super::*;
    use std::iter::empty;

    #[test]
    fn before_any_is_known_it_is_what_has_been_asked_for_so_far() {
        let need = Need::new(Proactive::Adaptive);
        let found = need.proactive(64, 64, [20, 24].into_iter());
        assert!((15..=18).contains(&found), "{found}: the mean is 21, the deviation about 4");
        assert_eq!(Need::new(Proactive::Fixed(3)).proactive(64, 64, [20, 24].into_iter()), 3);
        let mut known = need;
        known.block(64, 0);
        assert_eq!(known.proactive(64, 64, [20, 24].into_iter()), 0);
    }

    #[test]
    fn it_is_what_the_group_asks_for_in_any_case() {
        let mut need = Need::new(Proactive::Adaptive);
        assert_eq!(need.proactive(64, 64, empty()), 0);
        (0..40).for_each(|block| need.block(64, 16 + 4 * (block % 2)));
        let found = need.proactive(64, 64, empty());
        assert!((15..=17).contains(&found), "{found}: the mean is 18, the deviation 2");
        assert_eq!(need.proactive(64, 5, empty()), 5);
        assert!((need.loss() - 18.0 / 82.0).abs() < 0.02);
        (0..40).for_each(|_| need.block(64, 0));
        assert_eq!(need.proactive(64, 64, empty()), 0);
    }

    #[test]
    fn a_number_that_was_set_stays() {
        let mut need = Need::new(Proactive::Fixed(8));
        (0..9).for_each(|_| need.block(64, 30));
        assert_eq!(need.proactive(64, 64, empty()), 8);
    }
}
