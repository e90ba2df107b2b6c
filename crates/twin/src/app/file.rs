//! A file over datagrams: numbered pieces, each of which may be missing at the end.

use std::sync::Arc;

use hopcast_core::{Buffer, Datagram, Instant, Item, Machine, Port, Reactive};
use sha2::{Digest, Sha256};

use super::admission::Admission;
use super::pace::{Clock, Pace};
use super::stream::equal_bytes;
use super::{Ends, STAMP, Schedule, read_stamp, write_stamp};
use crate::meter::{Meters, SharedMeter};

/// Sends a file in pieces of at most `piece` bytes, one a datagram, each once.
pub(crate) struct FileSender {
    ends: Ends,
    clock: Clock,
    contents: Arc<[u8]>,
    piece: usize,
    meters: Meters,
    admission: Admission,
    /// The next piece.
    number: usize,
    ready: bool,
}

impl FileSender {
    pub(crate) fn new(
        ends: Ends,
        schedule: Schedule,
        pace: Pace,
        contents: Arc<[u8]>,
        piece: usize,
        meters: Meters,
    ) -> Self {
        let clock = Clock::new(schedule, pace);
        Self {
            ends,
            clock,
            contents,
            piece,
            meters,
            admission: Admission::Ungranted,
            number: 0,
            ready: false,
        }
    }

    /// Sets it to wait for grants of datagrams from the transport.
    pub(crate) fn granted(self) -> Self {
        Self { admission: Admission::Granted(0), ..self }
    }

    fn tick(&mut self, now: Instant) {
        let due = self.clock.due().is_some_and(|due| due <= now);
        if due && self.admission.is_open() && self.clock.tick(now, STAMP + self.next_piece().len()) {
            self.admission.use_one();
            self.ready = true;
        }
    }

    /// The bytes of the next piece.
    fn next_piece(&self) -> &[u8] {
        let start = self.number * self.piece;
        &self.contents[start..self.contents.len().min(start + self.piece)]
    }
}

impl Machine for FileSender {
    fn handle(&mut self, now: Instant, _port: Port, item: Item) {
        if self.admission.grant(&item) {
            self.clock.resume(now);
            self.tick(now);
        }
    }

    fn wake(&mut self, now: Instant) {
        self.tick(now);
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        if !std::mem::take(&mut self.ready) {
            return None;
        }
        if self.number == 0 {
            self.meters.each(|meter| {
                meter.start(now);
                meter.unit_sent(now);
            });
        }
        let piece = self.next_piece();
        let mut payload = Buffer::zeroed(STAMP + piece.len());
        write_stamp(&mut payload, self.number as u64, now);
        payload[STAMP..].copy_from_slice(piece);
        self.number += 1;
        if self.number * self.piece >= self.contents.len() {
            self.clock.stop();
            self.meters.each(|meter| meter.end(now));
        }
        let datagram = Datagram::new(self.ends.local, self.ends.remote, payload);
        Some((Port::Below(0), Item::Datagram(datagram)))
    }

    fn deadline(&self) -> Option<Instant> {
        self.clock.due().filter(|_| self.admission.is_open())
    }
}

/// Assembles a file from its pieces.
pub(crate) struct FileReceiver {
    /// The file that was sent, to check against at the end.
    contents: Arc<[u8]>,
    piece: usize,
    meter: SharedMeter,
    received: Vec<u8>,
    missing: Vec<bool>,
    missing_count: usize,
}

impl FileReceiver {
    pub(crate) fn new(contents: Arc<[u8]>, piece: usize, meter: SharedMeter) -> Self {
        // An empty file has one empty piece.
        let pieces = contents.len().div_ceil(piece).max(1);
        let received = vec![0; contents.len()];
        Self { contents, piece, meter, received, missing: vec![true; pieces], missing_count: pieces }
    }
}

impl Reactive for FileReceiver {
    fn react(&mut self, now: Instant, _port: Port, item: Item) {
        let Item::Datagram(Datagram { payload, .. }) = item else { return };
        let mut meter = self.meter.borrow_mut();
        let Some((number, sent)) = read_stamp(&payload).filter(|&(_, sent)| sent <= now) else {
            meter.damaged_units += 1;
            return;
        };
        let number = usize::try_from(number).unwrap_or(usize::MAX);
        match self.missing.get(number) {
            Some(true) => {}
            Some(false) => {
                meter.duplicate_units += 1;
                return;
            }
            None => {
                meter.damaged_units += 1;
                return;
            }
        }
        let start = number * self.piece;
        let end = self.received.len().min(start + self.piece);
        let data = &payload[STAMP..];
        if data.len() != end - start {
            meter.damaged_units += 1;
            return;
        }
        self.received[start..end].copy_from_slice(data);
        self.missing[number] = false;
        self.missing_count -= 1;
        let intact = equal_bytes(data, &self.contents[start..end]);
        meter.damaged_units += u64::from(intact < data.len());
        meter.payload(now, intact);
        meter.latency(sent, now);
        meter.arrival(sent, now);
        if self.missing_count == 0 {
            let intact = Sha256::digest(&self.received) == Sha256::digest(&self.contents);
            meter.file_complete(now, intact);
        }
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("file_pieces", self.missing.len() as u64);
        report("file_pieces_missing", self.missing_count as u64);
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

    #[test]
    fn a_damaged_byte_of_a_piece_is_no_goodput() {
        let to = Instant::from_nanos(1_000);
        let measure = Measure { from: Instant::ZERO, to, interval: Duration::from_nanos(1_000) };
        let meter = Rc::new(RefCell::new(Meter::new(measure, to.since(Instant::ZERO))));
        let contents: Arc<[u8]> = b"hello, world".to_vec().into();
        let mut receiver = FileReceiver::new(contents.clone(), 8, meter.clone());
        let address = std::net::SocketAddr::from(([10, 0, 0, 1], 1));
        for (number, data) in contents.chunks(8).enumerate() {
            let mut payload = Buffer::zeroed(STAMP + data.len());
            write_stamp(&mut payload, number as u64, Instant::ZERO);
            payload[STAMP..].copy_from_slice(data);
            payload[STAMP] ^= 1;
            let datagram = Datagram::new(address, address, payload);
            receiver.handle(Instant::from_nanos(5), Port::Below(0), Item::Datagram(datagram));
        }
        let meter = meter.borrow();
        assert_eq!((meter.payload_bytes, meter.damaged_units, meter.hash_ok), (10, 2, Some(false)));
    }
}
