//! Units that are longer than a datagram or a write, and their pieces.

use hopcast_core::{Instant, StreamItem, StreamWriter};

use super::stream::Contents;
use super::{STAMP, read_stamp, write_stamp};

/// Length of the header of a piece, in bytes:
///
/// ```text
/// 0       16       20       24
/// | stamp | length | offset |      network order
/// ```
pub(crate) const PIECE_HEADER: usize = STAMP + 8;

/// The header of a piece of a unit. Over a stream a unit has one piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Piece {
    pub(crate) number: u64,
    pub(crate) sent: Instant,
    /// Length of the unit without headers, in bytes.
    pub(crate) length: u32,
    /// Offset of the piece in the unit, in bytes.
    pub(crate) offset: u32,
}

impl Piece {
    pub(crate) fn write(&self, into: &mut [u8]) {
        write_stamp(into, self.number, self.sent);
        into[STAMP..STAMP + 4].copy_from_slice(&self.length.to_be_bytes());
        into[STAMP + 4..PIECE_HEADER].copy_from_slice(&self.offset.to_be_bytes());
    }

    /// Reads the header at the start of `from`; `None` if there is none, or if its time is after `now`.
    pub(crate) fn read(from: &[u8], now: Instant) -> Option<Self> {
        let (number, sent) = read_stamp(from).filter(|&(_, sent)| sent <= now)?;
        let word = |at: usize| from.get(at..at + 4)?.try_into().ok().map(u32::from_be_bytes);
        Some(Self { number, sent, length: word(STAMP)?, offset: word(STAMP + 4)? })
    }
}

/// A unit that is being written into a stream: its header, then the pattern from its beginning.
pub(crate) struct UnitWriter {
    header: [u8; PIECE_HEADER],
    body: Contents,
    /// Bytes left to write, of header and body.
    left: u64,
    written: u64,
}

impl UnitWriter {
    /// A unit that has `piece` as its only one.
    pub(crate) fn new(piece: Piece) -> Self {
        let mut header = [0; PIECE_HEADER];
        piece.write(&mut header);
        let left = PIECE_HEADER as u64 + u64::from(piece.length);
        Self { header, body: Contents::pattern(Some(piece.length.into())), left, written: 0 }
    }

    /// Writes as much as the stream accepts; true once the whole unit is written.
    pub(crate) fn write(&mut self, writer: &mut StreamWriter, mut give: impl FnMut(StreamItem)) -> bool {
        while self.left > 0 {
            let first;
            let data = match self.written.checked_sub(PIECE_HEADER as u64) {
                // The header is written together with the body, so that it does not become a segment of its own.
                None => {
                    first = [&self.header[self.written as usize..], self.body.at(0)].concat();
                    &first
                }
                Some(offset) => self.body.at(offset),
            };
            let Some((item, accepted)) = writer.write(data) else { return false };
            give(item);
            self.written += accepted as u64;
            self.left -= accepted as u64;
        }
        true
    }
}

/// Reads units from a stream, one after another, and compares their bytes with those sent.
pub(crate) struct UnitReader {
    header: Vec<u8>,
    /// The incomplete unit, and the number of its bytes that have arrived.
    unit: Option<(Piece, u32)>,
    body: Contents,
    damaged: bool,
}

impl Default for UnitReader {
    fn default() -> Self {
        Self { header: Vec::new(), unit: None, body: Contents::pattern(None), damaged: false }
    }
}

impl UnitReader {
    /// Takes the next bytes, and calls `done` for each unit that they complete. False, once, if the bytes are not those
    /// that were sent: then nothing after them can be read.
    pub(crate) fn take(&mut self, now: Instant, mut data: &[u8], mut done: impl FnMut(Piece)) -> bool {
        while !self.damaged && !data.is_empty() {
            let Some((piece, received)) = &mut self.unit else {
                let missing = (PIECE_HEADER - self.header.len()).min(data.len());
                self.header.extend_from_slice(&data[..missing]);
                data = &data[missing..];
                if self.header.len() == PIECE_HEADER {
                    let whole = |piece: &Piece| piece.offset == 0;
                    self.unit = Piece::read(&self.header, now).filter(whole).map(|piece| (piece, 0));
                    self.header.clear();
                    self.damaged = self.unit.is_none();
                    self.end(&mut done);
                    if self.damaged {
                        return false;
                    }
                }
                continue;
            };
            let len = data.len().min((piece.length - *received) as usize);
            if !self.body.matches(u64::from(*received), &data[..len]) {
                self.damaged = true;
                return false;
            }
            *received += len as u32;
            data = &data[len..];
            self.end(&mut done);
        }
        true
    }

    fn end(&mut self, done: &mut impl FnMut(Piece)) {
        if let Some((piece, _)) = self.unit.take_if(|(piece, received)| *received == piece.length) {
            done(piece);
        }
    }

    /// Whether bytes arrived that differ from those sent.
    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged
    }

    /// Whether the stream is between two units.
    pub(crate) fn is_between_units(&self) -> bool {
        self.unit.is_none() && self.header.is_empty() && !self.damaged
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn piece(number: u64, length: u32) -> Piece {
        Piece { number, sent: Instant::from_nanos(5), length, offset: 0 }
    }

    fn bytes_of(units: &[Piece]) -> Vec<u8> {
        let mut writer = StreamWriter::default();
        writer.credit(1 << 30);
        let mut bytes = Vec::new();
        for &unit in units {
            let mut unit = UnitWriter::new(unit);
            assert!(unit.write(&mut writer, |item| match item {
                StreamItem::Data(data) => bytes.extend_from_slice(&data),
                other => panic!("{other:?}"),
            }));
        }
        bytes
    }

    #[test]
    fn units_come_out_of_a_stream_as_they_went_in_however_it_is_cut() {
        let units = [piece(0, 1), piece(1, 0), piece(2, 200_000), piece(3, 70)];
        let bytes = bytes_of(&units);
        for cut in [1, 7, 24, 1448, bytes.len()] {
            let (mut reader, mut found) = (UnitReader::default(), Vec::new());
            for data in bytes.chunks(cut) {
                assert!(reader.take(Instant::from_nanos(9), data, |piece| found.push(piece)));
            }
            assert_eq!(found, units);
            assert!(reader.is_between_units());
        }
    }

    #[test]
    fn a_wrong_byte_anywhere_is_found_out_once() {
        let good = bytes_of(&[piece(0, 100), piece(1, 100)]);
        for place in [0, 20, 24, 123] {
            let mut bytes = good.clone();
            bytes[place] ^= 0x80;
            let mut reader = UnitReader::default();
            let found = bytes.chunks(10).filter(|data| !reader.take(Instant::from_nanos(9), data, |_| ()));
            assert_eq!(found.count(), 1, "byte {place}");
        }
        let mut reader = UnitReader::default();
        assert!(!reader.take(Instant::ZERO, &good, |_| ()), "nothing arrives before it was sent");
    }
}
