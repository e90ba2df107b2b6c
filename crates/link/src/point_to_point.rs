//! A link between two attachments.

use hopcast_core::{Buffer, Instant, Stream, earliest};

use crate::config::{Config, Duplex};
use crate::direction::DirectionState;
use crate::flight::Arriving;
use crate::reports::Reports;
use crate::sender::longest_waiting;
use crate::{Attachment, Change, Counters, Event, Link, Quality, QueueSnapshot};

/// A link between two attachments, which are numbered 0 and 1.
///
/// A frame costs one wake, at its arrival: what happened before (the end of its serialisation, the start of the next
/// frame's) is caught up with, in the order of time, whenever the link is called.
#[derive(Debug)]
pub struct PointToPoint {
    directions: [DirectionState; 2],
    duplex: Duplex,
    reports: Reports,
    /// The instant with which it has caught up; `None` if something has come since that may have left by then.
    current: Option<Instant>,
}

impl PointToPoint {
    /// A link; `streams` decide about the frames from 0 to 1, and about those from 1 to 0.
    pub fn new(config: Config, streams: [Stream; 2]) -> Self {
        let [forward, backward] = streams;
        Self {
            directions: [
                DirectionState::new(&config.forward, 0, 1, forward),
                DirectionState::new(&config.backward, 1, 0, backward),
            ],
            duplex: config.duplex,
            reports: Reports::default(),
            current: None,
        }
    }

    #[inline]
    fn advance(&mut self, now: Instant) {
        if self.current != Some(now) {
            self.catch_up(now);
        }
    }

    fn catch_up(&mut self, now: Instant) {
        match self.duplex {
            Duplex::Full => {
                for direction in &mut self.directions {
                    direction.advance(now, &mut self.reports);
                }
            }
            Duplex::Half => {
                while let Some(sending) = self.sending() {
                    let Some(end) = self.directions[sending].finish(now, &mut self.reports) else {
                        break;
                    };
                    self.take_turn(end);
                }
            }
        }
        self.current = Some(now);
    }

    /// The direction that occupies the line of a half-duplex link.
    fn sending(&self) -> Option<Attachment> {
        self.directions.iter().position(|direction| direction.sender.end().is_some())
    }

    /// The line of a half-duplex link is free at `at`: the frame that has waited longest is sent.
    fn take_turn(&mut self, at: Instant) {
        if let Some(next) = longest_waiting(self.directions.iter().map(|direction| &direction.sender)) {
            self.directions[next].sender.start_next(at, &mut self.reports);
        }
    }

    /// Begins to send the frames that a change has made possible.
    fn resume(&mut self, now: Instant) {
        match self.duplex {
            Duplex::Full => {
                for direction in &mut self.directions {
                    if direction.sender.end().is_none() {
                        direction.sender.start_next(now, &mut self.reports);
                    }
                }
            }
            Duplex::Half if self.sending().is_none() => self.take_turn(now),
            Duplex::Half => {}
        }
        self.catch_up(now);
    }
}

impl Link for PointToPoint {
    fn attachments(&self) -> usize {
        2
    }

    fn offer(&mut self, now: Instant, from: Attachment, frame: Buffer) {
        self.advance(now);
        let free = self.duplex == Duplex::Full || self.sending().is_none();
        let direction = &mut self.directions[from];
        direction.offer(now, frame, free, &mut self.reports);
        if direction.sender.end().is_some_and(|end| end <= now) {
            self.current = None;
        }
    }

    fn wake(&mut self, now: Instant) {
        self.advance(now);
    }

    fn poll(&mut self, now: Instant) -> Option<Event> {
        self.advance(now);
        let [forward, backward] = self.directions.each_ref().map(DirectionState::next_arrival);
        let (from, arrival) = match (forward, backward) {
            (Some(forward), Some(backward)) if backward < forward => (1, backward),
            (Some(forward), _) => (0, forward),
            (None, Some(backward)) => (1, backward),
            (None, None) => return self.reports.pop(),
        };
        if self.reports.next().is_some_and(|report| report <= arrival) {
            return self.reports.pop();
        }
        if arrival > now {
            return None;
        }
        self.directions[from].arrive().map(Arriving::into_event)
    }

    fn deadline(&self) -> Option<Instant> {
        let [forward, backward] = &self.directions;
        let mut deadline = earliest(forward.arrives_by(), backward.arrives_by());
        if self.reports.on() || self.duplex == Duplex::Half {
            for (direction, other) in [(forward, backward), (backward, forward)] {
                let Some(end) = direction.sender.end() else {
                    continue;
                };
                if self.reports.on() {
                    deadline = earliest(deadline, Some(end));
                }
                if self.duplex == Duplex::Half {
                    deadline = earliest(deadline, other.follows_by(end));
                }
            }
        }
        deadline
    }

    fn change(&mut self, now: Instant, from: Option<Attachment>, change: &Change) {
        self.advance(now);
        for (index, direction) in self.directions.iter_mut().enumerate() {
            if from.is_none_or(|from| from == index) {
                direction.change(now, change, &mut self.reports);
            }
        }
        self.resume(now);
    }

    fn report_sent(&mut self, report: bool) {
        self.reports.turn(report);
    }

    fn keep_drops(&mut self) {
        self.reports.keep_drops();
    }

    fn take_drop(&mut self) -> Option<(Instant, Event)> {
        self.reports.take_drop()
    }

    fn quality(&mut self, now: Instant, from: Attachment, to: Attachment) -> Option<Quality> {
        self.advance(now);
        self.directions.get(from).filter(|_| to == 1 - from).and_then(DirectionState::quality)
    }

    fn sender_counters(&mut self, now: Instant, from: Attachment) -> Counters {
        self.advance(now);
        self.directions.get(from).map_or_else(Counters::default, |direction| direction.sender.counters(now))
    }

    fn counters(&mut self, now: Instant, from: Attachment, to: Attachment) -> Counters {
        self.advance(now);
        match self.directions.get(from) {
            Some(direction) if to == 1 - from => direction.counters(now),
            _ => Counters::default(),
        }
    }

    fn backlog(&mut self, now: Instant, from: Attachment) -> QueueSnapshot {
        self.advance(now);
        self.directions.get(from).map_or_else(QueueSnapshot::default, |direction| direction.sender.backlog())
    }
}
