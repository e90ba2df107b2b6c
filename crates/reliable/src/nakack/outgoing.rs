//! FRAG2, down: units and streams of the application that wait to be sent, cut into messages that fit a packet.

use std::collections::VecDeque;
use std::sync::Arc;

use hopcast_core::Instant;

use super::wire::Flags;
use crate::down_streams::SendsStreams;
use crate::out_streams::OutStreams;

/// A unit of the application.
#[derive(Clone, Debug)]
struct Unit {
    /// The length of the name and the name, if there is one; and the bytes.
    bytes: Arc<[u8]>,
    kind: u8,
}

/// Units and streams that wait to be sent, in their order. The first unit may be sent in part; streams take turns,
/// piece by piece.
#[derive(Debug)]
pub(super) struct Outgoing {
    /// Bytes of units that may wait; one always may, whatever its size.
    max_bytes: u64,
    queue: VecDeque<Entry>,
    streams: OutStreams,
    /// Bytes of the first unit that were sent in this view.
    sent: usize,
    /// Bytes of units that wait, with [`UNIT`] for each.
    bytes: u64,
}

#[derive(Debug)]
enum Entry {
    Unit(Unit),
    /// A stream that has something to send.
    Stream(u64),
}

/// Bytes that each unit counts beside its own, so that empty ones are bounded too.
const UNIT: u64 = 64;
/// Bytes before those of a piece of a stream: its number.
pub(super) const STREAM_HEADER: usize = 2;

impl Outgoing {
    pub(super) fn new(max_bytes: u64) -> Self {
        let (queue, streams) = (VecDeque::new(), OutStreams::default());
        Self { max_bytes, queue, streams, sent: 0, bytes: 0 }
    }

    /// Takes a datagram. False if too much waits.
    pub(super) fn datagram(&mut self, payload: &[u8]) -> bool {
        self.take(Unit { bytes: Arc::from(payload), kind: 0 })
    }

    /// Takes a message, with its name if it has one. False if too much waits, or its name is too long.
    pub(super) fn message(&mut self, payload: &[u8], name: Option<&[u8]>) -> bool {
        let Some(name) = name else {
            return self.take(Unit { bytes: Arc::from(payload), kind: Flags::MESSAGE });
        };
        let Ok(len) = u16::try_from(name.len()) else { return false };
        let bytes = [&len.to_be_bytes(), name, payload].concat();
        self.take(Unit { bytes: Arc::from(bytes), kind: Flags::MESSAGE | Flags::NAMED })
    }

    fn take(&mut self, unit: Unit) -> bool {
        let cost = unit.bytes.len() as u64 + UNIT;
        if self.bytes > 0 && self.bytes + cost > self.max_bytes {
            return false;
        }
        self.bytes += cost;
        self.queue.push_back(Entry::Unit(unit));
        true
    }

    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty()
    }

    /// Bytes of units that wait.
    pub(super) const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Length of the next message, of at most `fragment` bytes.
    pub(super) fn next_len(&self, fragment: usize) -> Option<usize> {
        let len = match self.queue.front()? {
            Entry::Unit(first) => first.bytes.len() - self.sent,
            &Entry::Stream(number) => STREAM_HEADER + self.streams.waiting(number) as usize,
        };
        Some(len.min(fragment))
    }

    /// The next message, of at most `fragment` bytes.
    pub(super) fn next(&mut self, fragment: usize) -> Option<(Flags, Arc<[u8]>)> {
        let first = match self.queue.front()? {
            Entry::Unit(first) => first,
            &Entry::Stream(number) => {
                self.queue.pop_front();
                return self.piece(number, fragment);
            }
        };
        let end = (self.sent + fragment).min(first.bytes.len());
        let (is_first, is_last) = (self.sent == 0, end == first.bytes.len());
        let piece =
            if is_first && is_last { first.bytes.clone() } else { Arc::from(&first.bytes[self.sent..end]) };
        let flags = edges(is_first, is_last) | first.kind;
        self.sent = end;
        if is_last {
            self.bytes -= first.bytes.len() as u64 + UNIT;
            self.queue.pop_front();
            self.sent = 0;
        }
        Some((Flags(flags), piece))
    }

    /// A piece of a stream, as a message.
    fn piece(&mut self, number: u64, fragment: usize) -> Option<(Flags, Arc<[u8]>)> {
        let piece = self.streams.take(number, fragment - STREAM_HEADER)?;
        if self.streams.waiting(number) > 0 {
            self.queue.push_back(Entry::Stream(number));
        }
        let payload = [&(number as u16).to_be_bytes()[..], &piece.bytes].concat();
        Some((Flags(Flags::STREAM | edges(piece.is_first, piece.is_last)), Arc::from(payload)))
    }

    /// Another view has begun: a unit that was sent in part is sent again from its beginning, as new members lack that.
    /// A stream goes on.
    pub(super) fn restart(&mut self) {
        self.sent = 0;
    }
}

fn edges(is_first: bool, is_last: bool) -> u8 {
    (u8::from(is_first) * Flags::FIRST) | (u8::from(is_last) * Flags::LAST)
}

impl SendsStreams for Outgoing {
    fn open(&mut self, _: Instant) -> Option<u64> {
        self.streams.open()
    }

    fn write(&mut self, number: u64, bytes: &[u8]) {
        if self.streams.write(number, bytes) {
            self.queue.push_back(Entry::Stream(number));
        }
    }

    fn end(&mut self, number: u64) {
        if self.streams.end(number) {
            self.queue.push_back(Entry::Stream(number));
        }
    }

    fn waiting(&self, number: u64) -> u64 {
        self.streams.waiting(number)
    }

    fn progress(&mut self, number: u64) -> Option<(u64, bool)> {
        self.streams.progress(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_is_cut_and_begins_again_in_another_view() {
        let mut outgoing = Outgoing::new(1000);
        assert!(outgoing.message(b"abcdef", Some(b"n")) && outgoing.datagram(b""));
        let next = |outgoing: &mut Outgoing| outgoing.next(4).map(|(flags, bytes)| (flags.0, bytes.to_vec()));
        let kind = Flags::MESSAGE | Flags::NAMED;
        assert_eq!(next(&mut outgoing), Some((kind | Flags::FIRST, vec![0, 1, b'n', b'a'])));
        outgoing.restart();
        assert_eq!(next(&mut outgoing), Some((kind | Flags::FIRST, vec![0, 1, b'n', b'a'])));
        assert_eq!(next(&mut outgoing), Some((kind, b"bcde".to_vec())));
        assert_eq!(next(&mut outgoing), Some((kind | Flags::LAST, b"f".to_vec())));
        assert_eq!(next(&mut outgoing), Some((Flags::FIRST | Flags::LAST, vec![])));
        assert_eq!((next(&mut outgoing), outgoing.bytes()), (None, 0));
    }

    #[test]
    fn what_waits_is_bounded_and_one_unit_always_fits() {
        let mut outgoing = Outgoing::new(1000);
        assert!(outgoing.datagram(&[0; 1001]));
        assert!(!outgoing.datagram(b""));
        assert!(!outgoing.message(b"", Some(&vec![0; 1 << 16])), "a name has a length of two bytes");
    }

    #[test]
    fn streams_take_turns_and_go_on_in_another_view() {
        let mut outgoing = Outgoing::new(1000);
        let [one, other] = [0; 2].map(|_| outgoing.open(Instant::ZERO).unwrap());
        outgoing.write(one, b"abcde");
        outgoing.write(other, b"x");
        outgoing.end(other);
        assert!(outgoing.message(b"unit", None));
        let mut next = || outgoing.next(5).map(|(flags, bytes)| (flags.0, bytes.to_vec()));
        let stream = Flags::STREAM;
        assert_eq!(next(), Some((stream | Flags::FIRST, b"\0\0abc".to_vec())));
        assert_eq!(next(), Some((stream | Flags::FIRST | Flags::LAST, b"\0\x01x".to_vec())));
        assert_eq!(next(), Some((Flags::MESSAGE | Flags::FIRST | Flags::LAST, b"unit".to_vec())));
        outgoing.restart();
        assert_eq!(outgoing.next_len(5), Some(4));
        let rest = outgoing.next(5).map(|(flags, bytes)| (flags.0, bytes.to_vec()));
        assert_eq!(rest, Some((stream, b"\0\0de".to_vec())));
        assert!(outgoing.is_empty());
        outgoing.end(one);
        assert_eq!(outgoing.next_len(5), Some(STREAM_HEADER), "the end is a message too");
    }
}
