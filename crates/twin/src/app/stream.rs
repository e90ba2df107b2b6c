//! Bytes over a stream: `bulk` and `file`.

use std::collections::VecDeque;
use std::sync::Arc;

use hopcast_core::{
    Instant, Item, Machine, Port, Rate, Reactive, StreamId, StreamItem, StreamReader, StreamWriter,
};
use sha2::{Digest, Sha256};

use super::accepted::Accepted;
use super::{BLOCK, Ends, Schedule, pattern};
use crate::meter::SharedMeter;

/// The contents of a stream: a file, or the repeated pattern.
#[derive(Clone)]
pub(crate) struct Contents {
    bytes: Arc<[u8]>,
    /// Length in bytes; `None` without an end.
    len: Option<u64>,
    /// Whether the whole is one unit and its hash is checked; otherwise each block is a unit.
    is_file: bool,
}

impl Contents {
    pub(crate) fn file(bytes: Arc<[u8]>) -> Self {
        Self { len: Some(bytes.len() as u64), bytes, is_file: true }
    }

    pub(crate) fn pattern(len: Option<u64>) -> Self {
        Self { len, bytes: pattern(), is_file: false }
    }

    /// The longest contiguous slice of the contents at `offset`; empty at the end.
    pub(super) fn at(&self, offset: u64) -> &[u8] {
        let start = (offset % (self.bytes.len() as u64).max(1)) as usize;
        let left = self.len.map_or(u64::MAX, |len| len - offset);
        let piece = &self.bytes[start..];
        &piece[..usize::try_from(left).unwrap_or(usize::MAX).min(piece.len())]
    }

    /// Copies the bytes from `offset` on.
    pub(super) fn copy(&self, mut offset: u64, mut into: &mut [u8]) {
        while !into.is_empty() {
            let piece = self.at(offset);
            let len = piece.len().min(into.len());
            into[..len].copy_from_slice(&piece[..len]);
            offset += len as u64;
            into = &mut into[len..];
        }
    }

    /// Whether `data` are the contents at `offset`.
    pub(super) fn matches(&self, offset: u64, data: &[u8]) -> bool {
        self.intact_bytes(offset, data) == data.len()
    }

    /// Number of bytes of `data` that equal those of the contents at the same offsets, from `offset` on.
    pub(super) fn intact_bytes(&self, mut offset: u64, mut data: &[u8]) -> usize {
        let mut intact = 0;
        while !data.is_empty() && self.len.is_none_or(|len| offset < len) {
            let expected = self.at(offset);
            let n = expected.len().min(data.len());
            intact += equal_bytes(&expected[..n], &data[..n]);
            offset += n as u64;
            data = &data[n..];
        }
        intact
    }

    /// The end of the block with the byte at `offset`, at which latency is sampled.
    fn block_end(&self, offset: u64) -> u64 {
        let end = (offset / BLOCK as u64 + 1) * BLOCK as u64;
        self.len.map_or(end, |len| end.min(len))
    }
}

/// Number of places at which two equally long slices are equal.
pub(super) fn equal_bytes(one: &[u8], other: &[u8]) -> usize {
    // The usual case: all are equal.
    if one == other { one.len() } else { one.iter().zip(other).filter(|(one, other)| one == other).count() }
}

/// Length of one write at a limited rate, in bytes. Chosen: a segment of TCP; longer writes are coarse steps at low
/// rates, shorter ones cost items.
const PIECE: usize = 1448;

/// Connects, and writes as fast as the stream accepts, or at a limited rate.
pub(crate) struct StreamSource {
    ends: Ends,
    schedule: Schedule,
    contents: Contents,
    rate: Option<Rate>,
    /// Time and offset at which it began to write in this span of its schedule.
    began: (Instant, u64),
    meter: SharedMeter,
    writer: StreamWriter,
    state: State,
    written: u64,
    transmitted: u64,
    next: Option<Instant>,
    out: VecDeque<StreamItem>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Idle,
    Connected,
    Finished,
}

const STREAM: StreamId = StreamId(0);

impl StreamSource {
    pub(crate) fn new(
        ends: Ends,
        schedule: Schedule,
        contents: Contents,
        rate: Option<Rate>,
        meter: SharedMeter,
    ) -> Self {
        let next = schedule.next_active(Instant::ZERO);
        Self {
            ends,
            schedule,
            contents,
            rate,
            began: (Instant::ZERO, 0),
            meter,
            writer: StreamWriter::default(),
            state: State::Idle,
            written: 0,
            transmitted: 0,
            next,
            out: VecDeque::new(),
        }
    }

    fn write(&mut self, now: Instant) {
        if self.state != State::Connected {
            return;
        }
        let Some(end) = self.schedule.end_of_span(now) else {
            self.next = self.schedule.next_active(now);
            if let Some(next) = self.next {
                self.began = (next, self.written);
            } else {
                self.finish();
            }
            return;
        };
        self.next = Some(end);
        loop {
            let mut data = self.contents.at(self.written);
            if let Some(rate) = self.rate {
                let (began, from) = self.began;
                // A piece is written once its time at the rate has passed.
                let due = began + rate.time_for(self.written + PIECE as u64 - from);
                if due > now {
                    self.next = Some(due.min(end));
                    break;
                }
                data = &data[..data.len().min(PIECE)];
            }
            let Some((item, accepted)) = self.writer.write(data) else { break };
            self.out.push_back(item);
            self.written += accepted as u64;
        }
        if self.contents.len == Some(self.written) {
            self.finish();
        }
    }

    fn finish(&mut self) {
        self.state = State::Finished;
        self.next = None;
        self.out.push_back(StreamItem::Finish);
    }

    /// Notes the ends of blocks that have been transmitted for the first time by now.
    fn transmitted(&mut self, now: Instant, upto: u64) {
        let mut meter = self.meter.borrow_mut();
        while self.transmitted < upto.min(self.written) {
            let end = self.contents.block_end(self.transmitted);
            if end > upto {
                break;
            }
            self.transmitted = end;
            meter.block_sent(end, now, !self.contents.is_file);
        }
    }
}

impl Machine for StreamSource {
    fn handle(&mut self, now: Instant, _port: Port, item: Item) {
        let Item::Stream(STREAM, item) = item else { return };
        match item {
            StreamItem::Credit(granted) => {
                self.writer.credit(granted);
                self.write(now);
            }
            StreamItem::Transmitted(upto) => self.transmitted(now, upto),
            StreamItem::Reset => {
                self.state = State::Finished;
                self.next = None;
            }
            StreamItem::Open { .. } | StreamItem::Opened | StreamItem::Data(_) | StreamItem::Finish => {}
        }
    }

    fn wake(&mut self, now: Instant) {
        if self.next.is_none_or(|next| next > now) {
            return;
        }
        if self.state == State::Idle {
            self.state = State::Connected;
            self.began = (now, 0);
            let mut meter = self.meter.borrow_mut();
            if self.contents.is_file {
                meter.start(now);
                meter.unit_sent(now);
            } else {
                meter.start_of(now, self.contents.len.map_or(0, |len| len.div_ceil(BLOCK as u64)));
            }
            self.out.push_back(StreamItem::Open { local: self.ends.local, remote: self.ends.remote });
        }
        self.write(now);
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop_front().map(|item| (Port::Below(0), Item::Stream(STREAM, item)))
    }

    fn deadline(&self) -> Option<Instant> {
        self.next
    }
}

/// Accepts a stream, and compares the bytes that arrive with those sent.
pub(crate) struct StreamSink {
    contents: Contents,
    meter: SharedMeter,
    stream: Accepted,
    reader: StreamReader,
    received: u64,
    hash: Sha256,
    damaged: bool,
}

/// Window of the receiving application, in bytes. Chosen: it reads at once, so that this never limits the transport;
/// less might.
pub(super) const READ_AHEAD: u64 = 64 << 20;

impl StreamSink {
    pub(crate) fn new(contents: Contents, meter: SharedMeter) -> Self {
        Self {
            contents,
            meter,
            stream: Accepted::default(),
            reader: StreamReader::new(READ_AHEAD),
            received: 0,
            hash: Sha256::new(),
            damaged: false,
        }
    }

    fn data(&mut self, now: Instant, data: &[u8]) {
        let mut meter = self.meter.borrow_mut();
        let intact = self.contents.intact_bytes(self.received, data);
        if !self.damaged && intact < data.len() {
            self.damaged = true;
            meter.damaged_units += 1;
        }
        if self.contents.is_file {
            self.hash.update(data);
        }
        self.received += data.len() as u64;
        meter.payload(now, intact);
        let all = self.contents.len == Some(self.received);
        meter.stream_received(now, self.received, !self.contents.is_file, all);
        drop(meter);
        self.complete(now);
        self.stream.say(self.reader.consumed(data.len()));
    }

    /// Notes the end, if all has arrived.
    fn complete(&self, now: Instant) {
        let mut meter = self.meter.borrow_mut();
        if self.contents.len == Some(self.received) && meter.completed.is_none() {
            meter.completed = Some(now);
            if self.contents.is_file {
                let intact = self.hash.clone().finalize() == Sha256::digest(&self.contents.bytes);
                meter.file_complete(now, intact);
            }
        }
    }
}

impl Reactive for StreamSink {
    fn react(&mut self, now: Instant, _port: Port, item: Item) {
        let Some(item) = self.stream.take(item, self.reader.first_grant()) else { return };
        match item {
            StreamItem::Data(data) => {
                if !self.reader.received(data.len()) {
                    // More than was granted: the transport breaks the contract, which the results must show.
                    self.meter.borrow_mut().damaged_units += 1;
                }
                self.data(now, &data);
            }
            // The receiver sends no data: it closes its own direction in answer.
            StreamItem::Finish => {
                // An empty file is complete with the end of the stream.
                self.complete(now);
                self.stream.say([StreamItem::Finish]);
            }
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use hopcast_core::Duration;

    use super::*;
    use crate::meter::Meter;
    use crate::scenario::model::Measure;

    fn meter() -> SharedMeter {
        let to = Instant::from_nanos(1_000);
        let measure = Measure { from: Instant::ZERO, to, interval: Duration::from_nanos(1_000) };
        Rc::new(RefCell::new(Meter::new(measure, to.since(Instant::ZERO))))
    }

    #[test]
    fn a_damaged_byte_of_a_stream_is_no_goodput() {
        let meter = meter();
        let contents = Contents::pattern(None);
        let mut sent = vec![0; 3000];
        contents.copy(0, &mut sent);
        for place in [0, 1500, 1501] {
            sent[place] ^= 0x80;
        }
        let mut sink = StreamSink::new(contents, meter.clone());
        sent.chunks(1000).for_each(|data| sink.data(Instant::from_nanos(5), data));
        assert_eq!((meter.borrow().payload_bytes, meter.borrow().damaged_units), (2997, 1));
    }

    #[test]
    fn what_arrives_beyond_the_end_is_no_goodput() {
        let meter = meter();
        let mut sink = StreamSink::new(Contents::file(b"hello".to_vec().into()), meter.clone());
        sink.data(Instant::from_nanos(5), b"hello, world");
        assert_eq!((meter.borrow().payload_bytes, meter.borrow().damaged_units), (5, 1));
    }
}
