//! The queue before the serialiser.

use hopcast_core::codel::{Backlog, CoDel, Waiting};
use hopcast_core::{Buffer, Instant};

use crate::config::{DropReason, Queue, QueueLimit};

/// A queue with its discipline.
#[derive(Debug)]
pub(crate) struct FrameQueue {
    backlog: Backlog,
    limit: QueueLimit,
    codel: Option<CoDel>,
}

impl FrameQueue {
    /// A queue for frames of at most `max_frame` bytes.
    pub(crate) fn new(discipline: Queue, max_frame: u64) -> Self {
        let mut queue = Self { backlog: Backlog::default(), limit: QueueLimit::default(), codel: None };
        queue.replace(discipline, max_frame);
        queue
    }

    /// Replaces the discipline by another, which begins anew; the frames that wait stay.
    pub(crate) fn replace(&mut self, discipline: Queue, max_frame: u64) {
        (self.limit, self.codel) = match discipline {
            Queue::DropTail { limit } => (limit, None),
            Queue::CoDel { limit, target, interval } => {
                (limit, Some(CoDel::new(target, interval, max_frame)))
            }
        };
    }

    /// Frames have at most `max_frame` bytes from now on.
    pub(crate) fn resize_frames(&mut self, max_frame: u64) {
        if let Some(codel) = &mut self.codel {
            codel.set_max_packet(max_frame);
        }
    }

    /// Queues `frame`, or gives it back if there is no room.
    pub(crate) fn push(&mut self, now: Instant, frame: Buffer) -> Result<(), Buffer> {
        let full = match self.limit {
            QueueLimit::Packets(limit) => self.backlog.len() >= limit as usize,
            QueueLimit::Bytes(limit) => self.backlog.bytes() + frame.len() as u64 > limit.get(),
        };
        if full {
            return Err(frame);
        }
        self.backlog.push(frame, now);
        Ok(())
    }

    /// A frame goes straight to the serialiser past this queue, which is empty.
    pub(crate) fn pass(&mut self) {
        if let Some(codel) = &mut self.codel {
            codel.passed();
        }
    }

    /// The next frame to serialise at `now`; what the discipline drops on the way goes to `drop`.
    pub(crate) fn pop(&mut self, now: Instant, mut drop: impl FnMut(Waiting, DropReason)) -> Option<Waiting> {
        match &mut self.codel {
            None => self.backlog.pop(),
            Some(codel) => codel.pop(now, &mut self.backlog, &mut |waiting| drop(waiting, DropReason::CoDel)),
        }
    }

    /// Takes the head, whatever the discipline says.
    pub(crate) fn discard(&mut self) -> Option<Waiting> {
        self.backlog.pop()
    }

    /// The time since which the head has waited; `None` if the queue is empty.
    pub(crate) fn since(&self) -> Option<Instant> {
        self.backlog.since()
    }

    /// Number of frames, and of their bytes.
    pub(crate) fn size(&self) -> (u64, u64) {
        (self.backlog.len() as u64, self.backlog.bytes())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.backlog.is_empty()
    }
}
