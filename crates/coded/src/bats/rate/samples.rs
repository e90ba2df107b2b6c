//! Delivery rates from reports.

use std::collections::VecDeque;

use hopcast_core::Duration;

use super::flight::Sent;

/// Minimum number of packets of a sample. Chosen; fewer are too coarse, more follow a change late.
pub(super) const MIN_PACKETS: u64 = 8;
/// Maximum number of reports that are remembered. Chosen: it bounds memory and search; with fewer, samples cannot be
/// long where reports are frequent.
const MAX_REPORTS: usize = 64;
/// Minimum number of packets between two reports that are remembered. Chosen: half of the minimum of a sample; closer
/// ones fill the memory, wider ones make samples longer.
const SPACING: u64 = 4;

/// The state of the link as a report told it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Mark {
    /// The highest packet that had arrived, and when it was sent and arrived (each by its own clock).
    pub highest: u64,
    pub sent: Sent,
    pub arrival: u64,
    /// Sequence number of the packet to be sent next as the report came.
    pub next: u64,
    /// Bytes that had passed the link by then: arrived, or lost for no fault of the sender.
    pub passed: f64,
    /// Bytes that had arrived by then.
    pub received: u64,
}

/// Bytes that passed the link, and the time that they took.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    /// Rates of packets that passed and of those that arrived, in bits per second.
    pub passed: f64,
    pub received: f64,
    /// Whether the sender could have sent more in it.
    pub limited: bool,
}

/// The reports of the last round trip or two.
#[derive(Clone, Debug, Default)]
pub(super) struct Samples {
    marks: VecDeque<Mark>,
}

impl Samples {
    /// The rate over the last round trip: since a report that was in before the packet at `mark` was sent; over at
    /// least `min_time`.
    pub(super) fn sample(&self, mark: &Mark, min_time: Duration) -> Option<Sample> {
        let from = self.marks.iter().rev().find(|from| {
            from.next <= mark.highest
                && mark.highest >= from.highest.saturating_add(MIN_PACKETS)
                && mark.arrival.wrapping_sub(from.arrival) >= min_time.as_nanos()
        })?;
        // What arrives in a lump may seem faster than the link is, but not faster than it was sent.
        let arrived = Duration::from_nanos(mark.arrival.wrapping_sub(from.arrival));
        let time = arrived.max(mark.sent.at.since(from.sent.at));
        if time.is_zero() {
            return None;
        }
        let per_second = 8.0 / time.as_secs_f64();
        let passed = (mark.passed - from.passed) * per_second;
        let received = mark.received.saturating_sub(from.received) as f64 * per_second;
        Some(Sample { passed, received, limited: mark.sent.limited > from.sent.limited })
    }

    /// Remembers `mark`, unless another was hardly before it: samples are to last for about `span`.
    pub(super) fn push(&mut self, mark: Mark, span: Duration) {
        let near = self.marks.back().is_some_and(|last| {
            mark.highest < last.highest.saturating_add(SPACING)
                || mark.sent.at.since(last.sent.at) < span / 16
        });
        if near {
            return;
        }
        if self.marks.len() == MAX_REPORTS {
            self.marks.pop_front();
        }
        self.marks.push_back(mark);
    }

    pub(super) fn clear(&mut self) {
        self.marks.clear();
    }
}
