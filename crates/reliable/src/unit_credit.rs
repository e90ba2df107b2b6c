//! Credit for datagrams and messages: an application is granted more as what it gave is sent.

use hopcast_core::{Item, Outbox};

/// Credit of one application, in units: datagrams and whole messages.
#[derive(Debug)]
pub(crate) struct UnitCredit {
    /// Whether the application is granted units at all.
    is_on: bool,
    /// Units that were granted and have not come.
    unused: u64,
}

impl UnitCredit {
    pub(crate) const fn new(is_on: bool) -> Self {
        Self { is_on, unused: 0 }
    }

    /// A unit has come.
    pub(crate) const fn spend(&mut self) {
        self.unused = self.unused.saturating_sub(1);
    }

    /// Grants units of `unit` bytes as far as a window has room beside what waits, once that is a quarter of it.
    pub(crate) fn grant(&mut self, window: u64, waiting: u64, unit: u64, out: &mut Outbox) {
        let free = (window.saturating_sub(waiting) / unit.max(1)).saturating_sub(self.unused);
        if self.is_on && free * unit >= window / 4 {
            self.unused += free;
            out.up(Item::Credit(free));
        }
    }
}
