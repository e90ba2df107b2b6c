//! The events of a link besides its deliveries, where they are asked for.

use std::collections::VecDeque;

use hopcast_core::{Buffer, FrameOutcome, FrameStatus, Instant};

use crate::address::is_group;
use crate::config::DropReason;
use crate::{Attachment, Event};

/// [`Event::Sent`], [`Event::Dropped`] and [`Event::Status`], in the order of the times at which they happened or will
/// happen.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    on: bool,
    /// Whether drops are kept for [`Link::take_drop`](crate::Link::take_drop).
    keeps_drops: bool,
    kept: VecDeque<(Instant, Event)>,
    /// For each attachment up to the last that asked, whether it asked for the status of its frames.
    asked: Vec<bool>,
    line: VecDeque<(Instant, Event)>,
}

impl Reports {
    pub(crate) fn turn(&mut self, on: bool) {
        self.on = on;
    }

    pub(crate) fn on(&self) -> bool {
        self.on
    }

    /// Keeps drops from now on.
    pub(crate) fn keep_drops(&mut self) {
        self.keeps_drops = true;
    }

    /// Whether drops are reported or kept.
    pub(crate) fn wants_drops(&self) -> bool {
        self.on || self.keeps_drops
    }

    /// The next drop that is kept, with its time.
    pub(crate) fn take_drop(&mut self) -> Option<(Instant, Event)> {
        self.kept.pop_front()
    }

    pub(crate) fn sent(&mut self, at: Instant, from: Attachment, frame: &Buffer) {
        if self.on {
            self.push(at, Event::Sent { from, frame: frame.clone() });
        }
    }

    pub(crate) fn dropped(
        &mut self,
        at: Instant,
        from: Attachment,
        to: Option<Attachment>,
        frame: Buffer,
        reason: DropReason,
    ) {
        if self.on {
            self.push(at, Event::Dropped { from, to, frame, reason });
        } else if self.keeps_drops {
            self.kept.push_back((at, Event::Dropped { from, to, frame, reason }));
        } else {
            frame.recycle();
        }
    }

    /// Reports the status of the frames that `from` sends from now on.
    pub(crate) fn ask(&mut self, from: Attachment) {
        if self.asked.len() <= from {
            self.asked.resize(from + 1, false);
        }
        self.asked[from] = true;
    }

    /// The link is done, at `at`, with a frame that was sent.
    pub(crate) fn status(
        &mut self,
        at: Instant,
        from: Attachment,
        frame: &Buffer,
        outcome: FrameOutcome,
        transmissions: u32,
    ) {
        if self.asked.get(from) == Some(&true) && !is_group(frame) {
            let status = FrameStatus { bytes: frame.clone(), outcome, transmissions };
            self.push(at, Event::Status { from, status });
        }
    }

    /// A frame is dropped that was never sent.
    #[inline]
    pub(crate) fn unsent(&mut self, at: Instant, from: Attachment, frame: &Buffer) {
        if !self.asked.is_empty() {
            self.status(at, from, frame, FrameOutcome::Unsent, 0);
        }
    }

    /// The time at which the first of them happened, or will happen.
    pub(crate) fn next(&self) -> Option<Instant> {
        self.line.front().map(|&(at, _)| at)
    }

    pub(crate) fn pop(&mut self) -> Option<Event> {
        self.line.pop_front().map(|(_, event)| event)
    }

    /// A link that was woken late goes through its directions one by one: their reports are sorted in.
    fn push(&mut self, at: Instant, event: Event) {
        let place = self.line.iter().rposition(|&(before, _)| before <= at).map_or(0, |index| index + 1);
        self.line.insert(place, (at, event));
    }
}
