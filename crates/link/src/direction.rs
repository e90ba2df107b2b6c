//! One direction of a point-to-point link.

use hopcast_core::{Buffer, Instant, Stream, earliest};

use crate::config::{Direction, DropReason};
use crate::flight::{Arriving, Flight, Wired};
use crate::path::Path;
use crate::reports::Reports;
use crate::sender::Sender;
use crate::{Attachment, Change, Counters, Quality};

/// A sender, the path to its one listener, and the frames under way.
#[derive(Debug)]
pub(crate) struct DirectionState {
    pub(crate) sender: Sender,
    path: Path,
    flight: Flight<Wired>,
    from: Attachment,
    to: Attachment,
}

impl DirectionState {
    pub(crate) fn new(config: &Direction, from: Attachment, to: Attachment, stream: Stream) -> Self {
        Self {
            sender: Sender::new(from, config),
            path: Path::new(config, stream),
            flight: Flight::new(config.reorder),
            from,
            to,
        }
    }

    /// Sends all that leaves by `now`, frame after frame; nobody else is on the line.
    #[inline]
    pub(crate) fn advance(&mut self, now: Instant, reports: &mut Reports) {
        while let Some(end) = self.finish(now, reports) {
            self.sender.start_next(end, reports);
        }
    }

    /// Decides about the frame in serialisation, if it has left by `now`, and returns when it left.
    #[inline]
    pub(crate) fn finish(&mut self, now: Instant, reports: &mut Reports) -> Option<Instant> {
        let end = self.sender.end().filter(|&end| end <= now)?;
        self.decide(end, reports)
    }

    /// The rare half of [`finish`](Self::finish), apart so that the question is inlined wherever it is asked.
    #[inline(never)]
    fn decide(&mut self, end: Instant, reports: &mut Reports) -> Option<Instant> {
        let frame = self.sender.finish(reports)?;
        match self.path.fate(end, None) {
            Some(fate) => self.flight.launch(fate, frame, self.from, self.to, false, Wired),
            None => reports.dropped(end, self.from, Some(self.to), frame, DropReason::Lost),
        }
        Some(end)
    }

    /// The time at which the next frame arrives.
    #[inline]
    pub(crate) fn next_arrival(&self) -> Option<Instant> {
        self.flight.next()
    }

    /// Takes the next frame, arrived or not.
    #[inline]
    pub(crate) fn arrive(&mut self) -> Option<Arriving<Wired>> {
        let frame = self.flight.pop()?;
        self.path.delivered(&frame);
        Some(frame)
    }

    /// An instant not after the next arrival: exactly that, if it is known.
    #[inline]
    pub(crate) fn arrives_by(&self) -> Option<Instant> {
        match self.flight.next() {
            // Nothing that leaves later overtakes it.
            Some(next) if self.flight.is_in_order() => Some(next),
            next => earliest(next, self.launches_by()),
        }
    }

    /// An instant not after the first arrival among the frame in serialisation and those behind it: exactly that of
    /// the frame in serialisation if nothing behind it can arrive earlier.
    fn launches_by(&self) -> Option<Instant> {
        let end = self.sender.end()?;
        if self.path.varies() && self.sender.has_backlog() {
            return Some(end + self.path.min_delay());
        }
        Some(self.path.arrival(end))
    }

    /// An instant not after the first arrival of the frames that wait for the line to be free at `end`.
    pub(crate) fn follows_by(&self, end: Instant) -> Option<Instant> {
        self.sender.ready_since().map(|_| end + self.path.min_delay())
    }

    #[inline]
    pub(crate) fn offer(&mut self, now: Instant, frame: Buffer, free: bool, reports: &mut Reports) {
        self.sender.offer(now, frame, free, reports);
    }

    pub(crate) fn change(&mut self, now: Instant, change: &Change, reports: &mut Reports) {
        self.sender.change(now, change, reports);
        self.path.change(change);
        if *change == Change::Reorder(true) {
            self.flight.allow_reordering();
        }
    }

    /// The quality of the direction; `None` if it is down.
    pub(crate) fn quality(&self) -> Option<Quality> {
        let (above, below) = self.path.loss_shares();
        let up = !self.sender.backlog().down;
        up.then(|| Quality::new(above, below, 0, self.sender.rate()))
    }

    pub(crate) fn counters(&self, now: Instant) -> Counters {
        self.sender.counters(now) + self.path.counters(self.flight.due(now))
    }
}
