//! Incomplete: the neighbour's address has been requested, and packets wait for the answer.

use std::collections::VecDeque;

use hopcast_core::Buffer;

/// The state of a neighbour whose address has been requested.
#[derive(Debug)]
pub(super) struct Incomplete {
    /// Number of requests so far.
    pub(super) asked: u32,
    /// The packets that wait for the answer, oldest first; at least one.
    pub(super) queue: VecDeque<Buffer>,
}

impl Incomplete {
    pub(super) fn new(packet: Buffer) -> Self {
        Self { asked: 1, queue: VecDeque::from([packet]) }
    }

    /// Queues a packet; if there are more than `limit` then, returns the oldest, which is to be dropped (RFC 4861
    /// section 7.2.2).
    pub(super) fn wait(&mut self, packet: Buffer, limit: usize) -> Option<Buffer> {
        let dropped = if self.queue.len() >= limit { self.queue.pop_front() } else { None };
        self.queue.push_back(packet);
        dropped
    }
}
