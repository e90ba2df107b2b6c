//! Incomplete: the neighbour has been asked for, and packets wait for its answer.

use std::collections::VecDeque;

use hopcast_core::Buffer;

/// A neighbour that has been asked for.
#[derive(Debug)]
pub(super) struct Incomplete {
    /// Number of requests so far.
    pub(super) asked: u32,
    /// The packets that wait, oldest first; at least one.
    pub(super) queue: VecDeque<Buffer>,
}

impl Incomplete {
    pub(super) fn new(packet: Buffer) -> Self {
        Self { asked: 1, queue: VecDeque::from([packet]) }
    }

    /// Lets one more packet wait, `limit` at most; returns the one that is dropped for it (RFC 4861 section 7.2.2: the
    /// oldest).
    pub(super) fn wait(&mut self, packet: Buffer, limit: usize) -> Option<Buffer> {
        let dropped = if self.queue.len() >= limit { self.queue.pop_front() } else { None };
        self.queue.push_back(packet);
        dropped
    }
}
