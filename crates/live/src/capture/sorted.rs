//! The order of what several threads hand over.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant};

/// Time for which items are held back, since another thread may hand over older ones. Chosen; with less, those of a
/// thread that was delayed are out of order in the file; with more, more of them wait in memory.
const REORDER_WINDOW: Duration = Duration::from_millis(100);

/// Items that are held back until no older ones are to be expected.
pub(super) struct Sorted<T> {
    held: BTreeMap<(Instant, u64), T>,
    newest: Instant,
    added: u64,
}

impl<T> Default for Sorted<T> {
    fn default() -> Self {
        Self { held: BTreeMap::new(), newest: Instant::ZERO, added: 0 }
    }
}

impl<T> Sorted<T> {
    /// Adds an item of a time, and gives those that have been held back for long enough, the oldest first; of those of
    /// one time the one that was added first.
    pub(super) fn add(&mut self, at: Instant, item: T, mut give: impl FnMut(T)) {
        self.added += 1;
        self.newest = self.newest.max(at);
        self.held.insert((at, self.added), item);
        while let Some(oldest) =
            self.held.first_entry().filter(|it| it.key().0 + REORDER_WINDOW <= self.newest)
        {
            give(oldest.remove());
        }
    }

    /// Gives all that is held back.
    pub(super) fn drain(self, give: impl FnMut(T)) {
        self.held.into_values().for_each(give);
    }
}
