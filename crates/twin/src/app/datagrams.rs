//! Units at a constant rate, like iperf2's UDP test: `cbr`, `bulk` over datagrams, and `messages` that are not echoed.

use hopcast_core::{Buffer, Datagram, Instant, Item, Machine, Message, Port, Reactive};

use super::admission::Admission;
use super::pace::{Clock, Pace};
use super::seen::{Arrival, Seen};
use super::{Ends, STAMP, Schedule, check_unit, unit, write_stamp};
use crate::meter::{Meters, SharedMeter};

/// Sends numbered datagrams or messages at a constant rate.
pub(crate) struct DatagramSource {
    ends: Ends,
    clock: Clock,
    /// The payload of each datagram except the last, in bytes, at least [`STAMP`].
    size: usize,
    /// Bytes left to send; `None` without an end.
    left: Option<u64>,
    /// Number of datagrams in all; zero without an end.
    units: u64,
    meters: Meters,
    admission: Admission,
    /// Whether units are handed over as messages, and not as datagrams.
    of_messages: bool,
    number: u64,
    bytes: u64,
    /// The payload of the datagram that is due now.
    ready: Option<usize>,
    template: Buffer,
}

impl DatagramSource {
    /// A source with `size` bytes in each datagram, and `bytes` in all.
    pub(crate) fn new(
        ends: Ends,
        schedule: Schedule,
        pace: Pace,
        size: usize,
        bytes: Option<u64>,
        meters: Meters,
    ) -> Self {
        let clock = Clock::new(schedule, pace);
        let units = bytes.map_or(0, |bytes| Self::count(bytes, size));
        Self {
            ends,
            clock,
            size,
            left: bytes,
            units,
            meters,
            admission: Admission::Ungranted,
            of_messages: false,
            number: 0,
            bytes: 0,
            ready: None,
            template: unit(size),
        }
    }

    /// Sets it to wait for grants of datagrams from the transport.
    pub(crate) fn granted(self) -> Self {
        Self { admission: Admission::Granted(0), ..self }
    }

    /// Sets it to hand units over as messages, which may be longer than a datagram.
    pub(crate) fn of_messages(self) -> Self {
        Self { of_messages: true, ..self }
    }

    fn tick(&mut self, now: Instant) {
        // The last one is as long as what is left, but for its stamp.
        let size = self.left.map_or(self.size, |left| self.size.min((left as usize).max(STAMP)));
        if self.ready.is_none() && self.admission.is_open() && self.clock.tick(now, size) {
            self.admission.use_one();
            self.left = self.left.map(|left| left.saturating_sub(size as u64));
            self.ready = Some(size);
            if self.left == Some(0) {
                self.clock.stop();
            }
        }
    }

    /// Number of datagrams for `bytes`.
    pub(crate) fn count(bytes: u64, size: usize) -> u64 {
        bytes.div_ceil(size as u64)
    }
}

impl Machine for DatagramSource {
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
        let size = self.ready.take()?;
        let mut payload = self.template.clone();
        payload.truncate(size);
        let number = self.number;
        write_stamp(&mut payload, number, now);
        self.number += 1;
        self.bytes += size as u64;
        let units = self.units;
        self.meters.each(|meter| {
            meter.start_of(now, units);
            meter.unit_sent(now);
        });
        if self.left == Some(0) {
            self.meters.each(|meter| meter.end(now));
        }
        let item = match self.of_messages {
            true => Item::Message(Message::new(number, payload)),
            false => Item::Datagram(Datagram::new(self.ends.local, self.ends.remote, payload)),
        };
        Some((Port::Below(0), item))
    }

    fn deadline(&self) -> Option<Instant> {
        self.clock.due().filter(|_| self.admission.is_open())
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("datagrams_sent", self.number);
        report("payload_bytes_sent", self.bytes);
    }
}

/// Receives numbered datagrams or messages.
pub(crate) struct DatagramSink {
    meter: SharedMeter,
    seen: Seen,
    /// Number of datagrams in all; `None` if it is not known.
    expected: Option<u64>,
    received: u64,
}

impl DatagramSink {
    pub(crate) fn new(expected: Option<u64>, meter: SharedMeter) -> Self {
        Self { meter, seen: Seen::new(), expected, received: 0 }
    }
}

impl Reactive for DatagramSink {
    fn react(&mut self, now: Instant, _port: Port, item: Item) {
        let (Item::Datagram(Datagram { payload, .. }) | Item::Message(Message { payload, .. })) = item else {
            return;
        };
        let (unit, len) = (check_unit(&payload, now), payload.len());
        payload.recycle();
        let mut meter = self.meter.borrow_mut();
        let Some((number, sent)) = unit else {
            meter.damaged_units += 1;
            return;
        };
        match self.seen.note(number) {
            Arrival::First => {}
            Arrival::Again => {
                meter.duplicate_units += 1;
                return;
            }
            Arrival::TooOld => {
                meter.too_old_units += 1;
                return;
            }
        }
        self.received += 1;
        meter.payload(now, len);
        meter.unit_delivered(sent);
        meter.latency(sent, now);
        meter.arrival(sent, now);
        if self.expected == Some(self.received) {
            meter.completed = Some(now);
        }
    }
}
