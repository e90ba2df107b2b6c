//! PlayNCool's budgets: how many packets a source and its helper send for one generation.
//!
//! Source, helper and destination share the medium evenly, and e1, e2 and e3 are the loss probabilities from source to
//! helper, helper to destination and source to destination (Pahlevani et al., "PlayNCool: Opportunistic network coding
//! for local optimization of routing in wireless mesh networks", 2013; Khamfroush et al., ICC 2014).

use super::config::Losses;

/// The budgets of one generation, in packets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Budgets {
    /// Packets that the source has sent when the helper begins.
    pub before_helper: f64,
    /// Packets that the helper has received when it begins.
    pub threshold: f64,
    /// Packets that the helper sends.
    pub helper: f64,
    /// Packets that the source sends.
    pub source: f64,
}

/// Maximum loss that a link is taken to have. Chosen: budgets stay finite; less would plan too few packets for a link
/// that loses as much.
const WORST: f64 = 0.98;

impl Budgets {
    /// The budgets for `symbols` with a helper.
    pub fn with_helper(symbols: f64, losses: Losses) -> Self {
        let Losses { e1, e2, e3 } = losses.within_reason();
        // A helper that is cut off from one side is no help.
        if e1 >= WORST || e2 >= e3 {
            return Self::without_helper(symbols, losses);
        }
        let before_helper = if 1.0 - e2 < e3 * (1.0 - e1) {
            1.0 / (e3 * (1.0 - e1))
        } else {
            symbols * (1.0 - e2 - e3 + e1 * e3) / (1.0 - e2 - e1 * e3 + e1 * e2 * e3)
        };
        let before_helper = before_helper.clamp(0.0, symbols / (1.0 - e3));
        let helper = (symbols - before_helper * (1.0 - e3)) / (2.0 - e2 - e3);
        Self { before_helper, threshold: before_helper * (1.0 - e1), helper, source: before_helper + helper }
    }

    /// The budgets for `symbols` without one.
    pub fn without_helper(symbols: f64, losses: Losses) -> Self {
        let source = symbols / (1.0 - losses.within_reason().e3);
        Self { before_helper: source, threshold: f64::INFINITY, helper: 0.0, source }
    }
}

/// Packets that the helper may send for each innovative one that it hears.
pub fn helper_credit(losses: Losses) -> f64 {
    1.0 / (1.0 - losses.within_reason().e1)
}

/// Packets that the source may send for each symbol that it is given, while a helper listens too.
pub fn source_credit(losses: Losses) -> f64 {
    let Losses { e1, e3, .. } = losses.within_reason();
    1.0 / (1.0 - e1 * e3)
}

impl Losses {
    fn within_reason(self) -> Self {
        let [e1, e2, e3] =
            [self.e1, self.e2, self.e3].map(|e| if e.is_nan() { 0.0 } else { e.clamp(0.0, WORST) });
        Self { e1, e2, e3 }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_authors_example_comes_out() {
        let budgets = Budgets::with_helper(64.0, Losses { e1: 0.1, e2: 0.3, e3: 0.5 });
        let Budgets { before_helper, threshold, helper, source } = budgets;
        for (found, expected) in [(before_helper, 24.1), (threshold, 21.7), (helper, 43.3), (source, 67.4)] {
            assert!((found - expected).abs() < 0.05, "{budgets:?}");
        }
        assert!((helper + source - 110.7).abs() < 0.1);
        let without_helper = Budgets::without_helper(64.0, Losses { e3: 0.5, ..Losses::default() });
        assert_eq!(without_helper.source, 128.0);
    }

    #[test]
    fn credits_are_one_over_what_arrives() {
        let losses = Losses { e1: 0.1, e2: 0.3, e3: 0.5 };
        // At the helper nine of ten; at the helper or the destination all but one in twenty.
        assert!((helper_credit(losses) - 10.0 / 9.0).abs() < 1e-12);
        assert!((source_credit(losses) - 20.0 / 19.0).abs() < 1e-12);
        let clean = Losses { e1: 0.0, ..losses };
        assert_eq!((helper_credit(clean), source_credit(clean)), (1.0, 1.0));
    }

    proptest! {
        #[test]
        fn budgets_are_finite_and_a_helper_never_costs_more_than_it_saves(
            e1 in 0.0..1.0f64, e2 in 0.0..1.0f64, e3 in 0.0..1.0f64, symbols in 1.0..255.0f64,
        ) {
            let losses = Losses { e1, e2, e3 };
            let budgets = Budgets::with_helper(symbols, losses);
            prop_assert!(budgets.source.is_finite() && budgets.source >= 0.0);
            prop_assert!(budgets.helper.is_finite() && budgets.helper >= 0.0);
            prop_assert!(helper_credit(losses).is_finite() && source_credit(losses).is_finite());
            let without_helper = Budgets::without_helper(symbols, losses).source;
            prop_assert!(budgets.source + budgets.helper <= without_helper + 1e-9, "{budgets:?} against {without_helper}");
        }
    }

    #[test]
    fn no_link_is_taken_to_lose_more_than_98_percent() {
        let cut = Losses { e1: 1.0, e2: 1.0, e3: 1.0 };
        assert!((Budgets::without_helper(3.0, cut).source - 150.0).abs() < 1e-9);
        assert!((helper_credit(cut) - 50.0).abs() < 1e-9);
        assert!((source_credit(cut) - 1.0 / (1.0 - 0.98 * 0.98)).abs() < 1e-9);
    }
}
