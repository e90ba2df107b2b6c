//! The recent share of a peer's datagrams that were lost, from the counts in hellos.

use std::collections::VecDeque;

use super::wire::Counts;

/// Number of hellos over which the share is computed: ten seconds, at one a second. Chosen; fewer are noisy, more
/// follow a change late.
const WINDOW: usize = 10;

/// The losses of one direction of a hop. It is no [`FadingLoss`](hopcast_core::FadingLoss), which never forgets the
/// past entirely: ten seconds after the last loss the status must show none.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loss(VecDeque<Counts>);

impl Loss {
    /// Adds the counts of a hello. A hello out of order is ignored.
    pub(crate) fn note(&mut self, counts: Counts) {
        if self.0.back().is_some_and(|last| !is_later(counts.sent, last.sent)) {
            return;
        }
        if self.0.len() > WINDOW {
            self.0.pop_front();
        }
        self.0.push_back(counts);
    }

    /// The share lost between the first and the last hello; `None` before there are two.
    pub(crate) fn share(&self) -> Option<f64> {
        let (first, last) = (self.0.front()?, self.0.back()?);
        let sent = last.sent.wrapping_sub(first.sent);
        let received = last.received.wrapping_sub(first.received);
        // Datagrams that the first hello overtook count as received after it.
        (sent > 0).then(|| 1.0 - f64::from(received.min(sent)) / f64::from(sent))
    }

    /// Begins anew: both ends count from zero again.
    pub(crate) fn restart(&mut self) {
        self.0.clear();
    }
}

/// Whether a count is after another one, by their lowest 32 bits.
const fn is_later(count: u32, other: u32) -> bool {
    count.wrapping_sub(other) as i32 > 0
}
