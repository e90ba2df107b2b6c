//! The events of a link besides its deliveries, where they are asked for.

use std::collections::VecDeque;

use hopcast_core::{Buffer, Instant};

use crate::config::DropReason;
use crate::{Attachment, Event};

/// [`Event::Sent`] and [`Event::Dropped`], in the order of the times at which they happened.
#[derive(Debug, Default)]
pub(crate) struct Reports {
    on: bool,
    line: VecDeque<(Instant, Event)>,
}

impl Reports {
    pub(crate) fn turn(&mut self, on: bool) {
        self.on = on;
    }

    pub(crate) fn on(&self) -> bool {
        self.on
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
        } else {
            frame.recycle();
        }
    }

    /// When the first of them happened.
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
