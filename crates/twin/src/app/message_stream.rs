//! Messages of one length in a stream.

use std::collections::VecDeque;

use hopcast_core::{StreamItem, StreamReader, StreamWriter};

/// Minimum window of a stream, in bytes; it is at least two messages too, since only whole messages are consumed.
/// Chosen: with less, a fast and long path is not filled; more is memory.
const WINDOW: u64 = 4 << 20;

/// Messages of one length over a stream, in both directions.
pub(super) struct MessageStream {
    size: usize,
    reader: StreamReader,
    writer: StreamWriter,
    /// Bytes written by the application that the stream has not accepted yet.
    waiting: VecDeque<u8>,
    /// Bytes received of an incomplete message.
    received: VecDeque<u8>,
}

impl MessageStream {
    pub(super) fn new(size: usize) -> Self {
        Self {
            size,
            reader: StreamReader::new(WINDOW.max(2 * size as u64)),
            writer: StreamWriter::default(),
            waiting: VecDeque::new(),
            received: VecDeque::new(),
        }
    }

    /// Number of bytes that wait for the stream.
    pub(super) fn waiting(&self) -> usize {
        self.waiting.len()
    }

    /// The first credit for the other end.
    pub(super) fn first_grant(&self) -> StreamItem {
        self.reader.first_grant()
    }

    pub(super) fn handle(&mut self, item: StreamItem) -> Vec<StreamItem> {
        match item {
            StreamItem::Data(data) => {
                // Nothing but the length of the buffer depends on it; the sink of `bulk` checks the contract.
                let _ = self.reader.received(data.len());
                self.received.extend(data.iter());
                Vec::new()
            }
            StreamItem::Credit(granted) => {
                self.writer.credit(granted);
                self.flush()
            }
            StreamItem::Finish => vec![StreamItem::Finish],
            StreamItem::Open { .. } | StreamItem::Opened | StreamItem::Reset | StreamItem::Transmitted(_) => {
                Vec::new()
            }
        }
    }

    pub(super) fn send(&mut self, message: &[u8]) -> Vec<StreamItem> {
        self.waiting.extend(message);
        self.flush()
    }

    fn flush(&mut self) -> Vec<StreamItem> {
        let mut items = Vec::new();
        while let Some((item, accepted)) = self.writer.write(self.waiting.make_contiguous()) {
            self.waiting.drain(..accepted);
            items.push(item);
        }
        items
    }

    pub(super) fn next_message(&mut self) -> Option<Vec<u8>> {
        (self.received.len() >= self.size).then(|| self.received.drain(..self.size).collect())
    }

    /// The credit for a message that has been consumed.
    pub(super) fn used(&mut self) -> Option<StreamItem> {
        self.reader.consumed(self.size)
    }
}
