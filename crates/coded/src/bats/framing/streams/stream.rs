//! One stream: what is queued of it, and how far each end may go.

use std::collections::VecDeque;
use std::net::SocketAddr;

use hopcast_core::{Buffer, StreamId, StreamItem};

use super::super::chunk::{Chunk, Filler};
use super::super::up::Up;

/// Length up to which writes are merged, in bytes: one symbol, and some more. Chosen: shorter, and many small writes
/// become many small buffers with the headroom of each; longer, and more is copied than a symbol takes.
const MERGED: usize = 2048;

/// One stream. Counts are of bytes since it began.
#[derive(Debug, Default)]
pub(super) struct Stream {
    /// The addresses, until the stream has been announced to the other end.
    pub(super) open: Option<(SocketAddr, SocketAddr)>,
    pub(super) opened: bool,
    pub(super) credit: u64,
    /// Whether the application has heard that it stands.
    pub(super) stands: bool,
    pub(super) out: Sending,
    pub(super) into: Receiving,
}

#[derive(Debug, Default)]
pub(super) struct Sending {
    pub(super) queue: VecDeque<Buffer>,
    pub(super) queued: u64,
    /// Bytes that left in symbols.
    pub(super) sent: u64,
    /// Bytes that the far application lets us send, and that we let the near one hand over.
    pub(super) allowed: u64,
    pub(super) granted: u64,
    pub(super) finish: bool,
    pub(super) finished: bool,
    /// Whether it is among the turns.
    pub(super) waits: bool,
}

#[derive(Debug, Default)]
pub(super) struct Receiving {
    pub(super) granted: u64,
    pub(super) received: u64,
    pub(super) finished: bool,
}

impl Stream {
    /// Fills in control chunks; false if the symbol is full.
    pub(super) fn fill_control(&mut self, stream: u64, filler: &mut Filler<'_>) -> bool {
        if let Some((local, remote)) = self.open {
            if !filler.put(&Chunk::Open { stream, local, remote }) {
                return false;
            }
            self.open = None;
        }
        if self.opened {
            if !filler.put(&Chunk::Opened { stream }) {
                return false;
            }
            self.opened = false;
        }
        if self.credit > 0 {
            if !filler.put(&Chunk::Credit { stream, bytes: self.credit }) {
                return false;
            }
            self.credit = 0;
        }
        true
    }
}

impl Sending {
    /// Queues data from the application; false if that is more than it was granted, or after its end.
    pub(super) fn take(&mut self, data: Buffer) -> bool {
        let len = data.len() as u64;
        if self.finish || self.sent + self.queued + len > self.granted {
            return false;
        }
        self.queued += len;
        match self.queue.back_mut() {
            // Many small writes do not become many small buffers.
            Some(back) if back.len() + data.len() <= MERGED => back.append(&data),
            _ if data.is_empty() => {}
            _ => self.queue.push_back(data),
        }
        true
    }

    pub(super) fn has_data(&self) -> bool {
        self.queued > 0 || (self.finish && !self.finished)
    }

    /// Fills in one chunk of data, and the end if it follows.
    pub(super) fn fill(&mut self, stream: u64, filler: &mut Filler<'_>) {
        while let Some(front) = self.queue.front_mut() {
            let Some(room) = filler.room_for(stream) else { return };
            let len = room.min(front.len());
            filler.put(&Chunk::Data { stream, bytes: &front[..len] });
            front.advance(len);
            if front.is_empty() {
                self.queue.pop_front().into_iter().for_each(Buffer::recycle);
            }
            self.queued -= len as u64;
            self.sent += len as u64;
        }
        if self.finish && !self.finished {
            self.finished = filler.put(&Chunk::Finish { stream, bytes: self.sent });
        }
    }

    /// Grants the application what the other end allows and there is room for, once it is worth an item.
    /// The result is that amount.
    pub(super) fn grant(&mut self, stream: u64, room: u64, up: &mut VecDeque<Up>) -> u64 {
        let limit = self.allowed.min(self.sent.saturating_add(room));
        let more = limit.saturating_sub(self.granted);
        if more == 0 || (limit < self.allowed && more < room / 4) {
            return 0;
        }
        self.granted = limit;
        up.push_back(Up::Stream(StreamId(stream), StreamItem::Credit(more)));
        more
    }
}

impl Receiving {
    /// Notes data; false if it is more than was granted, or after the end.
    pub(super) fn take(&mut self, len: usize) -> bool {
        self.received += len as u64;
        !self.finished && self.received <= self.granted
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn writes_are_merged_up_to_2048_bytes() {
        let mut out = Sending { granted: 10_000, ..Sending::default() };
        for (len, buffers) in [(1024, 1), (1024, 1), (1, 2), (2047, 2), (1, 3), (3000, 4)] {
            assert!(out.take(Buffer::zeroed(len)));
            assert_eq!(out.queue.len(), buffers, "{len}");
        }
        assert!(out.take(Buffer::zeroed(0)) && out.queued == 7097);
        assert!(!out.take(Buffer::zeroed(2904)), "that is more than was granted");
    }
}
