//! The share of datagrams that a peer has lost lately, from the counts that hellos carry.

use std::collections::VecDeque;

use super::wire::Counts;

/// Over how many hellos it is taken: at one a second, ten seconds.
const HELLOS: usize = 10;

/// The losses of one direction of a hop. Over a window, which a person can state, where
/// [`FadingLoss`](hopcast_core::FadingLoss) fades.
#[derive(Clone, Debug, Default)]
pub(crate) struct Loss(VecDeque<Counts>);

impl Loss {
    /// The counts of one more hello. What comes out of order says nothing new.
    pub(crate) fn note(&mut self, counts: Counts) {
        if self.0.back().is_some_and(|last| !is_later(counts.sent, last.sent)) {
            return;
        }
        if self.0.len() > HELLOS {
            self.0.pop_front();
        }
        self.0.push_back(counts);
    }

    /// The share that was lost between the first and the last of them; `None` before there are two.
    pub(crate) fn share(&self) -> Option<f64> {
        let (first, last) = (self.0.front()?, self.0.back()?);
        let sent = last.sent.wrapping_sub(first.sent);
        let received = last.received.wrapping_sub(first.received);
        // What was overtaken by the first hello counts as received after it.
        (sent > 0).then(|| 1.0 - f64::from(received.min(sent)) / f64::from(sent))
    }

    /// Both ends count from zero again.
    pub(crate) fn restart(&mut self) {
        self.0.clear();
    }
}

/// Whether a count is after another, of which the lowest 32 bits are known.
const fn is_later(count: u32, other: u32) -> bool {
    count.wrapping_sub(other) as i32 > 0
}
