//! The interface of sockets and devices to the runtime.

use std::net::SocketAddr;

use hopcast_core::{Instant, Item};
use rustix::event::epoll::EventFlags;

use super::counters::Counters;

/// A socket or device that carries a port.
pub(super) trait Socket {
    /// The kernel reports that descriptor `key` is ready.
    fn ready(&mut self, key: u64, flags: EventFlags);

    /// A turn begins, in which a bounded number of items may be read.
    fn begin_turn(&mut self) {}

    /// The next items of the machine answer another socket's item or a deadline, not an item of this socket.
    fn answers_others(&mut self) {}

    /// The next item that was received, of those that this turn may read.
    fn next(&mut self) -> Option<Item>;

    /// Takes an item of the machine. It may wait for [`flush`](Self::flush).
    fn give(&mut self, item: Item);

    /// Sends the items that wait.
    fn flush(&mut self) {}

    /// Whether items can be read without an event.
    fn has_more(&self) -> bool {
        false
    }

    /// The time at which there will be items to read, if no event comes before.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    /// Permits links to fragment packets that are too long for them.
    fn allow_fragments(&mut self) {}

    /// The name of the device, if it no longer exists.
    fn gone(&self) -> Option<String> {
        None
    }

    /// The address on which it receives.
    fn address(&self) -> Option<SocketAddr> {
        None
    }

    fn counters(&self) -> Counters;
}
