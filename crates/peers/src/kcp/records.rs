//! Beginning and end of streams: what KCP, which carries bytes and nothing else, leaves to whoever uses it.
//!
//! Each direction's bytes are records: two bytes of length, little-endian, and that many bytes of the stream. Two
//! lengths mean something else: [`BEGIN`] is the first record of whoever opens the conversation, so that there is
//! something to send; [`END`] is the last record of a direction.

use std::collections::VecDeque;

use hopcast_core::bytes::Malformed;

/// Length of the field before each record, in bytes: 16 bits count to [`MAX_RECORD`] and beyond.
pub(super) const LENGTH: u64 = 2;
/// Maximum length of a record that is written, in bytes. Chosen; shorter ones cost more headers, longer ones are copied
/// in larger pieces. Any length but the two special ones is read.
pub(super) const MAX_RECORD: usize = 32 << 10;
/// In place of a length: this direction is over. No record is empty.
pub(super) const END: [u8; 2] = [0, 0];
/// In place of a length: a conversation begins. No record is so long.
pub(super) const BEGIN: [u8; 2] = [0xFF, 0xFF];

/// A part of the bytes that arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Piece {
    Begin,
    /// This many of the stream's bytes.
    Data(usize),
    End,
}

/// Reads records.
#[derive(Clone, Copy, Debug)]
pub(super) struct RecordReader {
    state: Reading,
    /// The first byte of a length, where a segment ended after it.
    half: Option<u8>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reading {
    /// Expects [`BEGIN`].
    Beginning,
    Length,
    Bytes(usize),
    Ended,
}

impl RecordReader {
    /// For the end that accepts, if `accepting`; the opener is sent no beginning.
    pub(super) const fn new(accepting: bool) -> Self {
        Self { state: if accepting { Reading::Beginning } else { Reading::Length }, half: None }
    }

    pub(super) fn has_begun(&self) -> bool {
        self.state != Reading::Beginning
    }

    pub(super) fn has_ended(&self) -> bool {
        self.state == Reading::Ended
    }

    /// The piece at the front of `bytes`, and how many of them it takes; at most `credit` of the stream's.
    /// `None` once it needs more bytes, or credit.
    pub(super) fn next(&mut self, bytes: &[u8], credit: u64) -> Result<(Option<Piece>, usize), Malformed> {
        let mut read = 0;
        while let Some(&byte) = bytes.get(read) {
            match self.state {
                Reading::Ended => return Err(Malformed { field: "record after the end" }),
                Reading::Bytes(left) => {
                    let limit = usize::try_from(credit).unwrap_or(usize::MAX);
                    let len = left.min(bytes.len() - read).min(limit);
                    if len == 0 || read > 0 {
                        // The piece begins at the front of what it is called with next.
                        return Ok((None, read));
                    }
                    self.state = if len == left { Reading::Length } else { Reading::Bytes(left - len) };
                    return Ok((Some(Piece::Data(len)), len));
                }
                Reading::Beginning | Reading::Length => {
                    read += 1;
                    let Some(low) = self.half.take() else {
                        self.half = Some(byte);
                        continue;
                    };
                    match ([low, byte], self.state) {
                        (BEGIN, Reading::Beginning) => {
                            self.state = Reading::Length;
                            return Ok((Some(Piece::Begin), read));
                        }
                        (BEGIN, _) | (_, Reading::Beginning) => {
                            return Err(Malformed { field: "first record" });
                        }
                        (END, _) => {
                            self.state = Reading::Ended;
                            return Ok((Some(Piece::End), read));
                        }
                        (length, _) => self.state = Reading::Bytes(u16::from_le_bytes(length).into()),
                    }
                }
            }
        }
        Ok((None, read))
    }
}

/// Places of the application's bytes in the bytes that KCP carries.
#[derive(Debug, Default)]
pub(super) struct Ledger {
    /// The records of which not all is acknowledged.
    records: VecDeque<Record>,
    /// Bytes that have been written, of either.
    carried: u64,
    application: u64,
}

#[derive(Clone, Copy, Debug)]
struct Record {
    carried: u64,
    application: u64,
    len: u64,
}

impl Ledger {
    /// A mark of two bytes was written.
    pub(super) fn mark(&mut self) {
        self.carried += LENGTH;
    }

    /// A record of `len` bytes of the application's was written.
    pub(super) fn record(&mut self, len: usize) {
        let len = len as u64;
        self.records.push_back(Record { carried: self.carried, application: self.application, len });
        self.carried += LENGTH + len;
        self.application += len;
    }

    /// Number of the application's bytes.
    pub(super) fn written(&self) -> u64 {
        self.application
    }

    /// Number of the application's bytes before `carried`.
    pub(super) fn before(&self, carried: u64) -> u64 {
        let place = self.records.partition_point(|record| record.carried < carried);
        match place.checked_sub(1).and_then(|place| self.records.get(place)) {
            Some(record) => {
                record.application + (carried - record.carried).saturating_sub(LENGTH).min(record.len)
            }
            None => self.records.front().map_or(self.application, |record| record.application),
        }
    }

    /// Forgets what ended by `carried`; offsets before it are not asked for any more.
    pub(super) fn forget(&mut self, carried: u64) {
        while self.records.pop_front_if(|record| record.carried + LENGTH + record.len <= carried).is_some() {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(
        mut reader: RecordReader,
        bytes: &[u8],
        at_a_time: usize,
    ) -> Result<(Vec<Piece>, Vec<u8>), Malformed> {
        let (mut pieces, mut data) = (Vec::new(), Vec::new());
        for mut part in bytes.chunks(at_a_time) {
            loop {
                let (piece, read) = reader.next(part, u64::MAX)?;
                match piece {
                    Some(Piece::Data(len)) => data.extend_from_slice(&part[..len]),
                    Some(piece) => pieces.push(piece),
                    None if read == 0 => break,
                    None => {}
                }
                part = &part[read..];
            }
        }
        Ok((pieces, data))
    }

    #[test]
    fn records_are_read_wherever_segments_cut_them() {
        let bytes = [&BEGIN[..], &[3, 0], b"abc", &[1, 0], b"d", &END].concat();
        for at_a_time in 1..=bytes.len() {
            let (pieces, data) = read(RecordReader::new(true), &bytes, at_a_time).unwrap();
            assert_eq!((pieces, data), (vec![Piece::Begin, Piece::End], b"abcd".to_vec()), "{at_a_time}");
        }
    }

    #[test]
    fn bytes_before_the_beginning_or_after_the_end_break_the_stream() {
        let fault = |accepting, bytes: &[u8]| read(RecordReader::new(accepting), bytes, 5).unwrap_err().field;
        assert_eq!(fault(true, &[3, 0, 1, 2, 3]), "first record");
        assert_eq!(fault(false, &BEGIN), "first record");
        assert_eq!(fault(false, &[0, 0, 1]), "record after the end");
    }

    #[test]
    fn no_more_is_read_than_there_is_credit_for() {
        let mut reader = RecordReader::new(false);
        assert_eq!(reader.next(&[3, 0, 7, 8, 9], 2), Ok((None, 2)));
        assert_eq!(reader.next(&[7, 8, 9], 2), Ok((Some(Piece::Data(2)), 2)));
        assert_eq!(reader.next(&[9], 0), Ok((None, 0)));
        assert_eq!(reader.next(&[9], 1), Ok((Some(Piece::Data(1)), 1)));
    }

    #[test]
    fn the_ledger_finds_the_applications_bytes() {
        let mut ledger = Ledger::default();
        ledger.mark();
        ledger.record(10);
        ledger.record(5);
        ledger.mark();
        let found: Vec<u64> = [0, 2, 4, 5, 14, 15, 16, 17, 21, 23].map(|at| ledger.before(at)).into();
        assert_eq!(found, [0, 0, 0, 1, 10, 10, 10, 11, 15, 15]);
        ledger.forget(14);
        assert_eq!((ledger.before(14), ledger.before(17)), (10, 11));
        ledger.forget(21);
        assert_eq!((ledger.before(23), ledger.written()), (15, 15));
    }
}
