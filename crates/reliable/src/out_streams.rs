//! Streams that wait to be sent, and are cut into pieces as packets have room for them.

use std::collections::{BTreeMap, VecDeque};

/// The streams of a sender, by their numbers.
#[derive(Debug, Default)]
pub(crate) struct OutStreams {
    streams: BTreeMap<u64, Waiting>,
    next: u64,
}

#[derive(Debug, Default)]
struct Waiting {
    bytes: VecDeque<u8>,
    /// Bytes that were sent.
    sent: u64,
    has_begun: bool,
    is_ended: bool,
    is_over: bool,
    /// Whether it is in its sender's queue.
    is_queued: bool,
}

/// A piece of a stream.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) bytes: Vec<u8>,
    /// Whether the stream begins with it, and ends with it.
    pub(crate) is_first: bool,
    pub(crate) is_last: bool,
}

/// Maximum number of streams at a time. Chosen: as many as a receiver tells apart.
const MAX_STREAMS: usize = 64;

impl OutStreams {
    /// Opens a stream; `None` if there are too many.
    pub(crate) fn open(&mut self) -> Option<u64> {
        if self.streams.len() >= MAX_STREAMS {
            return None;
        }
        let number = self.next;
        self.next += 1;
        self.streams.insert(number, Waiting::default());
        Some(number)
    }

    /// Appends bytes. True if its sender is to queue it.
    pub(crate) fn write(&mut self, number: u64, bytes: &[u8]) -> bool {
        let Some(stream) = self.streams.get_mut(&number).filter(|stream| !stream.is_ended) else {
            return false;
        };
        stream.bytes.extend(bytes);
        !std::mem::replace(&mut stream.is_queued, true)
    }

    /// Ends a stream after what was written. True if its sender is to queue it.
    pub(crate) fn end(&mut self, number: u64) -> bool {
        let Some(stream) = self.streams.get_mut(&number).filter(|stream| !stream.is_ended) else {
            return false;
        };
        stream.is_ended = true;
        !std::mem::replace(&mut stream.is_queued, true)
    }

    /// Bytes of a stream that wait.
    pub(crate) fn waiting(&self, number: u64) -> u64 {
        self.streams.get(&number).map_or(0, |stream| stream.bytes.len() as u64)
    }

    /// Bytes of a stream that were sent, and whether it is over; forgets it then.
    pub(crate) fn progress(&mut self, number: u64) -> Option<(u64, bool)> {
        let stream = self.streams.get(&number)?;
        let found = (stream.sent, stream.is_over);
        if stream.is_over {
            self.streams.remove(&number);
        }
        Some(found)
    }

    /// Takes the next piece, of at most `max` bytes, of a stream at the head of its sender's queue. The sender queues
    /// it again, behind the others, if more of it [waits](Self::waiting).
    pub(crate) fn take(&mut self, number: u64, max: usize) -> Option<Piece> {
        let stream = self.streams.get_mut(&number)?;
        let bytes: Vec<u8> = stream.bytes.drain(..max.min(stream.bytes.len())).collect();
        stream.sent += bytes.len() as u64;
        stream.is_queued = !stream.bytes.is_empty();
        stream.is_over = stream.is_ended && !stream.is_queued;
        let is_first = !std::mem::replace(&mut stream.has_begun, true);
        Some(Piece { bytes, is_first, is_last: stream.is_over })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_is_cut_to_what_fits_and_says_where_it_begins_and_ends() {
        let mut streams = OutStreams::default();
        let number = streams.open().unwrap();
        assert!(streams.write(number, b"abc") && !streams.write(number, b"de"), "it is queued once");
        let piece =
            |bytes: &[u8], is_first, is_last| Some(Piece { bytes: bytes.to_vec(), is_first, is_last });
        assert_eq!(streams.take(number, 4), piece(b"abcd", true, false));
        assert!(!streams.end(number), "the last byte still waits");
        assert_eq!(streams.progress(number), Some((4, false)));
        assert_eq!(streams.take(number, 4), piece(b"e", false, true));
        assert_eq!((streams.progress(number), streams.progress(number)), (Some((5, true)), None));
        let empty = streams.open().unwrap();
        assert!(streams.end(empty) && !streams.write(empty, b"x"), "nothing comes after the end");
        assert_eq!(streams.take(empty, 4), piece(b"", true, true));
    }

    #[test]
    fn one_stream_too_many_is_not_opened_until_another_is_over() {
        let mut streams = OutStreams::default();
        (0..MAX_STREAMS).for_each(|_| assert!(streams.open().is_some()));
        assert_eq!(streams.open(), None);
        streams.end(3);
        streams.take(3, 9);
        streams.progress(3);
        assert_eq!(streams.open(), Some(MAX_STREAMS as u64));
    }
}
