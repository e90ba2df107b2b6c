//! The paper's plan: a budget for each symbol, spent at once, and a timeout when it has not sufficed (section II-D).

use crate::franc::config::{Config, Losses};
use crate::franc::playncool::{Budgets, source_credit};

/// The budget of the block at work.
#[derive(Debug)]
pub(super) struct Budget {
    overshoot: f64,
    credit: f64,
    granted: f64,
}

impl Budget {
    pub(super) fn new(overshoot: f64) -> Self {
        Self { overshoot, credit: 0.0, granted: 0.0 }
    }

    /// A symbol has been added, the last one of its block if `last`.
    pub(super) fn added(&mut self, last: bool, losses: Losses, config: &Config) {
        self.grant(self.for_symbol(losses, config));
        if last && config.helper {
            // What source and helper are still to send together.
            let whole = self.overshoot * Budgets::with_helper(f64::from(config.block), losses).source;
            self.grant((whole - self.granted).max(0.0));
        }
    }

    /// The decoder has not answered in time.
    pub(super) fn timeout(&mut self, losses: Losses, config: &Config) {
        self.grant(self.for_symbol(losses, config).max(1.0));
    }

    /// Spends one packet, if there is one left.
    pub(super) fn spend(&mut self) -> bool {
        let some = self.can_spend();
        if some {
            self.credit -= 1.0;
        }
        some
    }

    pub(super) fn can_spend(&self) -> bool {
        self.credit >= 1.0
    }

    /// A block begins.
    pub(super) fn restart(&mut self) {
        (self.credit, self.granted) = (0.0, 0.0);
    }

    fn grant(&mut self, packets: f64) {
        self.credit += packets;
        self.granted += packets;
    }

    fn for_symbol(&self, losses: Losses, config: &Config) -> f64 {
        let each =
            if config.helper { source_credit(losses) } else { Budgets::without_helper(1.0, losses).source };
        self.overshoot * each
    }
}
