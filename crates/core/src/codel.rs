//! CoDel, as in the pseudocode of RFC 8289, section 5, with its names; and the queue it works on.

use std::collections::VecDeque;

use crate::buffer::Buffer;
use crate::time::{Duration, Instant};

/// Packets or frames in a queue, and their bytes.
#[derive(Debug, Default)]
pub struct Backlog {
    frames: VecDeque<Waiting>,
    bytes: u64,
}

/// A packet or frame in the queue.
#[derive(Debug)]
pub struct Waiting {
    /// The packet's bytes.
    pub frame: Buffer,
    /// Time at which it was queued.
    pub since: Instant,
}

impl Backlog {
    /// Appends a frame.
    pub fn push(&mut self, frame: Buffer, since: Instant) {
        self.bytes += frame.len() as u64;
        self.frames.push_back(Waiting { frame, since });
    }

    /// Takes the head.
    pub fn pop(&mut self) -> Option<Waiting> {
        let waiting = self.frames.pop_front()?;
        self.bytes -= waiting.frame.len() as u64;
        Some(waiting)
    }

    /// The time since which the head waits; `None` if the queue is empty.
    pub fn since(&self) -> Option<Instant> {
        self.frames.front().map(|head| head.since)
    }

    /// The number of packets that wait.
    pub fn len(&self) -> usize {
        self.frames.len()
    }

    /// Whether no packet waits.
    pub fn is_empty(&self) -> bool {
        self.frames.is_empty()
    }

    /// The bytes that wait.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The state of one queue's controller.
#[derive(Debug)]
pub struct CoDel {
    target: Duration,
    interval: Duration,
    /// "Maximum packet size in bytes (should use interface MTU)": no drop leaves less than this waiting.
    max_packet: u64,
    /// Time at which the delay will have been above target for an interval; `None` while it is below.
    first_above: Option<Instant>,
    /// Time at which to drop next, while dropping.
    drop_next: Instant,
    /// Drops since dropping began.
    count: u32,
    /// `count` as dropping began.
    last_count: u32,
    dropping: bool,
}

impl CoDel {
    /// A controller that keeps the standing delay near `target`, judged over each `interval`, of a queue whose packets
    /// have at most `max_packet` bytes.
    pub fn new(target: Duration, interval: Duration, max_packet: u64) -> Self {
        Self {
            target,
            interval,
            max_packet,
            first_above: None,
            drop_next: Instant::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }

    /// Packets have at most `max_packet` bytes from now on.
    pub fn set_max_packet(&mut self, max_packet: u64) {
        self.max_packet = max_packet;
    }

    /// A frame found the queue empty and the serialiser idle, so its delay was zero.
    pub fn passed(&mut self) {
        self.first_above = None;
        self.dropping = false;
    }

    /// The frame to send next at `now`; those dropped at the head go to `drop`. (`deque` in the RFC.)
    pub fn pop(
        &mut self,
        now: Instant,
        backlog: &mut Backlog,
        drop: &mut impl FnMut(Waiting),
    ) -> Option<Waiting> {
        let (mut head, mut ok_to_drop) = self.take(now, backlog);
        if self.dropping {
            self.dropping = ok_to_drop;
            while self.dropping && now >= self.drop_next {
                head.into_iter().for_each(&mut *drop);
                self.count = self.count.saturating_add(1);
                (head, ok_to_drop) = self.take(now, backlog);
                if ok_to_drop {
                    self.drop_next = self.control_law(self.drop_next);
                } else {
                    self.dropping = false;
                }
            }
        } else if ok_to_drop {
            head.into_iter().for_each(&mut *drop);
            (head, _) = self.take(now, backlog);
            self.dropping = true;
            // Soon after the last episode, its drop rate is a good start for this one.
            let delta = self.count.saturating_sub(self.last_count);
            let recent = now.since(self.drop_next) < self.interval * 16;
            self.count = if delta > 1 && recent { delta } else { 1 };
            self.drop_next = self.control_law(now);
            self.last_count = self.count;
        }
        head
    }

    /// Takes the head, and says whether the delay has been above target for an interval. (`dodequeue` in the RFC.)
    fn take(&mut self, now: Instant, backlog: &mut Backlog) -> (Option<Waiting>, bool) {
        let head = backlog.pop();
        let sojourn = head.as_ref().map_or(Duration::ZERO, |head| now.since(head.since));
        if head.is_none() || sojourn < self.target || backlog.bytes() <= self.max_packet {
            self.first_above = None;
            return (head, false);
        }
        match self.first_above {
            None => {
                self.first_above = Some(now + self.interval);
                (head, false)
            }
            Some(at) => (head, now >= at),
        }
    }

    fn control_law(&self, from: Instant) -> Instant {
        from + self.interval.mul_f64(1.0 / f64::from(self.count).sqrt())
    }
}

#[cfg(test)]
mod tests;
