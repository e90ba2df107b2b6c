//! The stream port: bytes in order, with back-pressure, half-close and reset.
//!
//! The port is symmetric. Each end grants the other [`Credit`](StreamItem::Credit) in bytes and never hands over more
//! than it was granted, so a TCP, a proxy and an application plug into each other in any order, and a relay passes
//! back-pressure on by passing credit on. [`StreamWriter`] gives a machine the familiar view of this: a write that
//! accepts n bytes, and a writable event.

use std::net::SocketAddr;

use crate::buffer::Buffer;

/// A stream of one port. Whoever opens it names it: the machine above takes even numbers, the one below odd ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct StreamId(pub u64);

/// An item that crosses a stream port, in either direction unless stated otherwise.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StreamItem {
    /// Down: connect `local` to `remote`. Up: `remote` has connected to `local`.
    Open {
        /// This end; an unspecified address or port 0 leaves the choice to the lower machine.
        local: SocketAddr,
        /// The other end.
        remote: SocketAddr,
    },
    /// Up: the connection that was asked for is open.
    Opened,
    /// The next bytes of the stream; never more than the credit granted.
    Data(Buffer),
    /// The receiver of this item may hand over this many bytes more than before. Grants add up.
    Credit(u64),
    /// No more bytes follow in this direction; the other direction stays open.
    Finish,
    /// Both directions end here and now; bytes on the way may be lost. No item follows.
    Reset,
    /// Up: all bytes before this offset have been put on the wire at least once. Informative: latency is measured
    /// from here, so that a send buffer's wait does not count as the network's.
    Transmitted(u64),
}

/// The writing half of a stream, as the machine that writes keeps it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StreamWriter {
    credit: u64,
    /// Whether a write was cut short, so that the next credit is an event.
    blocked: bool,
}

impl StreamWriter {
    /// Takes as much of `data` as the credit allows: the item to hand over, and how many bytes it holds. `None` if
    /// not one byte may be written; [`credit`](Self::credit) will then say when to try again.
    pub fn write(&mut self, data: &[u8]) -> Option<(StreamItem, usize)> {
        let accepted = usize::try_from(self.credit).unwrap_or(usize::MAX).min(data.len());
        self.blocked = accepted < data.len();
        if accepted == 0 {
            return None;
        }
        self.credit -= accepted as u64;
        Some((StreamItem::Data(Buffer::copy_from(&data[..accepted])), accepted))
    }

    /// Takes a grant. True if the stream has just become writable after a write that was cut short.
    pub fn credit(&mut self, granted: u64) -> bool {
        self.credit = self.credit.saturating_add(granted);
        core::mem::take(&mut self.blocked)
    }
}

/// The reading half of a stream: keeps the peer's credit topped up as bytes are used.
///
/// Grants are returned in lots of half the window, as a TCP receiver avoids silly windows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StreamReader {
    window: u64,
    used: u64,
    outstanding: u64,
}

impl StreamReader {
    /// A reader that lets the peer be `window` bytes ahead. Hand over the first grant, [`Self::first_grant`].
    pub const fn new(window: u64) -> Self {
        Self { window, used: 0, outstanding: window }
    }

    /// The credit to grant when the stream opens.
    pub const fn first_grant(&self) -> StreamItem {
        StreamItem::Credit(self.window)
    }

    /// Notes that `len` bytes arrived. False if that is more than was granted: the peer breaks the contract.
    pub fn received(&mut self, len: usize) -> bool {
        let len = len as u64;
        let allowed = len <= self.outstanding;
        self.outstanding = self.outstanding.saturating_sub(len);
        allowed
    }

    /// Notes that `len` bytes were used up; returns the credit to grant for them, once it is worth an item.
    pub fn consumed(&mut self, len: usize) -> Option<StreamItem> {
        self.used += len as u64;
        if self.used < self.window.div_ceil(2) {
            return None;
        }
        let granted = core::mem::take(&mut self.used);
        self.outstanding += granted;
        Some(StreamItem::Credit(granted))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_accepts_what_the_credit_allows_and_credit_makes_it_writable() {
        let mut writer = StreamWriter::default();
        assert_eq!(writer.write(b"abc"), None);
        assert!(writer.credit(2), "a blocked writer becomes writable");
        assert_eq!(writer.write(b"abc"), Some((StreamItem::Data(Buffer::copy_from(b"ab")), 2)));
        assert!(writer.credit(5));
        assert_eq!(writer.write(b"c").unwrap().1, 1);
        assert!(!writer.credit(1), "a writer that was not cut short has no event");
    }

    #[test]
    fn a_reader_keeps_the_peer_a_window_ahead() {
        let mut reader = StreamReader::new(10);
        assert!(reader.received(10));
        assert!(!reader.received(1), "more than was granted");
        assert_eq!(reader.consumed(4), None);
        assert_eq!(reader.consumed(4), Some(StreamItem::Credit(8)));
        assert!(reader.received(8));
    }
}
