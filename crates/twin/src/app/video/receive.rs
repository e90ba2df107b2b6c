//! The receiving ends of a video.

use std::collections::BTreeMap;

use hopcast_core::{Datagram, Instant, Item, Port, Reactive, StreamItem, StreamReader};

use crate::app::accepted::Accepted;
use crate::app::piece::{PIECE_HEADER, Piece, UnitReader};
use crate::app::stream::{Contents, READ_AHEAD};
use crate::meter::SharedMeter;
use crate::scenario::model::MAX_FRAME;

/// Maximum age of an incomplete frame, in frames. Chosen: 40 s at 25 frames a second; more is memory, with less a frame
/// that arrives very late counts as lost.
const WINDOW: u64 = 1000;

/// Assembles frames from datagrams.
pub(crate) struct FrameAssembler {
    /// Bytes of a frame in each datagram except its last.
    piece: u32,
    meter: SharedMeter,
    body: Contents,
    /// Frames of which a piece has arrived, by number; the latest [`WINDOW`] of them.
    frames: BTreeMap<u64, Partial>,
}

struct Partial {
    length: u32,
    /// Whether each piece has arrived.
    there: Vec<bool>,
    missing: usize,
}

impl FrameAssembler {
    pub(crate) fn new(piece: usize, meter: SharedMeter) -> Self {
        Self { piece: piece as u32, meter, body: Contents::pattern(None), frames: BTreeMap::new() }
    }

    /// Whether a piece has a valid place in its frame, and its bytes are those that were sent.
    fn fits(&self, piece: &Piece, bytes: &[u8]) -> bool {
        let Piece { number, length, offset, .. } = *piece;
        length <= MAX_FRAME
            && offset < length
            && offset.is_multiple_of(self.piece)
            && bytes.len() as u32 == self.piece.min(length - offset)
            && self.frames.get(&number).is_none_or(|frame| frame.length == length)
            && self.body.matches(offset.into(), bytes)
    }
}

impl Reactive for FrameAssembler {
    fn react(&mut self, now: Instant, _port: Port, item: Item) {
        let Item::Datagram(Datagram { payload, .. }) = item else { return };
        let mut meter = self.meter.borrow_mut();
        let piece = Piece::read(&payload, now).filter(|piece| self.fits(piece, &payload[PIECE_HEADER..]));
        let Some(piece) = piece else {
            meter.damaged_units += 1;
            return;
        };
        if self.frames.last_key_value().is_some_and(|(&latest, _)| piece.number + WINDOW <= latest) {
            meter.too_old_units += 1;
            return;
        }
        let frame = self.frames.entry(piece.number).or_insert_with(|| {
            let pieces = piece.length.div_ceil(self.piece) as usize;
            Partial { length: piece.length, there: vec![false; pieces], missing: pieces }
        });
        if std::mem::replace(&mut frame.there[(piece.offset / self.piece) as usize], true) {
            meter.duplicate_units += 1;
            return;
        }
        meter.payload(now, payload.len() - PIECE_HEADER);
        frame.missing -= 1;
        if frame.missing == 0 {
            meter.frame_delivered(piece.sent, now, piece.number);
        }
        while let Some(oldest) = self.frames.first_entry()
            && *oldest.key() + WINDOW <= piece.number
        {
            oldest.remove();
        }
    }
}

/// Reads frames from a stream.
pub(crate) struct FrameStreamSink {
    meter: SharedMeter,
    stream: Accepted,
    reader: StreamReader,
    frames: UnitReader,
}

impl FrameStreamSink {
    pub(crate) fn new(meter: SharedMeter) -> Self {
        Self {
            meter,
            stream: Accepted::default(),
            reader: StreamReader::new(READ_AHEAD),
            frames: UnitReader::default(),
        }
    }
}

impl Reactive for FrameStreamSink {
    fn react(&mut self, now: Instant, _port: Port, item: Item) {
        let Some(item) = self.stream.take(item, self.reader.first_grant()) else { return };
        match item {
            StreamItem::Data(data) => {
                let mut meter = self.meter.borrow_mut();
                let granted = self.reader.received(data.len());
                let mut bodies = 0;
                let intact = self.frames.take(now, &data, |frame| {
                    bodies += frame.length as usize;
                    meter.frame_delivered(frame.sent, now, frame.number);
                });
                meter.payload(now, bodies);
                meter.damaged_units += u64::from(!(granted && intact));
                self.stream.say(self.reader.consumed(data.len()));
            }
            StreamItem::Finish => self.stream.say([StreamItem::Finish]),
            StreamItem::Open { .. }
            | StreamItem::Opened
            | StreamItem::Credit(_)
            | StreamItem::Reset
            | StreamItem::Transmitted(_) => {}
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.stream.poll()
    }
}
