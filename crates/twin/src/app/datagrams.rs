//! Datagrams at a constant rate, like iperf2's UDP test: `cbr`, and `bulk` over datagrams.

use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Machine, Port, Rate};

use super::seen::Seen;
use super::{Ends, Schedule, check_unit, unit, write_stamp};
use crate::meter::SharedMeter;

/// How fast datagrams leave: `rate`, counting `bytes` for each of them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) rate: Rate,
    pub(crate) bytes: u64,
}

/// Sends numbered datagrams at a constant rate.
pub(crate) struct DatagramSource {
    ends: Ends,
    schedule: Schedule,
    pace: Pace,
    size: usize,
    /// How many more to send; for ever if `None`.
    left: Option<u64>,
    meter: SharedMeter,
    next: Option<Instant>,
    carry: u64,
    number: u64,
    ready: Option<Instant>,
    template: Buffer,
}

impl DatagramSource {
    /// `size` is the UDP payload, at least [`STAMP`](super::STAMP) bytes.
    pub(crate) fn new(
        ends: Ends,
        schedule: Schedule,
        pace: Pace,
        size: usize,
        left: Option<u64>,
        meter: SharedMeter,
    ) -> Self {
        let next = schedule.next_active(Instant::ZERO);
        let template = unit(size);
        Self { ends, schedule, pace, size, left, meter, next, carry: 0, number: 0, ready: None, template }
    }
}

impl Machine for DatagramSource {
    fn handle(&mut self, _now: Instant, _port: Port, _item: Item) {}

    fn wake(&mut self, now: Instant) {
        let Some(due) = self.next.filter(|&due| due <= now) else { return };
        if self.left == Some(0) {
            self.next = None;
            return;
        }
        self.left = self.left.map(|left| left - 1);
        self.ready = Some(now);
        // A saturated sender keeps to its own clock; time with no rate at all is not made up for.
        let gap =
            self.pace.rate.time_with_carry(self.pace.bytes, &mut self.carry).max(Duration::from_nanos(1));
        self.next = self.schedule.next_active(due + gap);
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        self.ready.take()?;
        let mut payload = self.template.clone();
        write_stamp(&mut payload, self.number, now);
        self.number += 1;
        let mut meter = self.meter.borrow_mut();
        meter.start(now);
        meter.unit_sent(now);
        let datagram = Datagram { local: self.ends.local, remote: self.ends.remote, payload };
        Some((Port::Below(0), Item::Datagram(datagram)))
    }

    fn deadline(&self) -> Option<Instant> {
        self.next
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("datagrams_sent", self.number);
        report("payload_bytes_sent", self.number * self.size as u64);
    }
}

/// Receives numbered datagrams.
pub(crate) struct DatagramSink {
    meter: SharedMeter,
    seen: Seen,
    /// How many there will be, if that is known.
    expected: Option<u64>,
    received: u64,
}

impl DatagramSink {
    pub(crate) fn new(expected: Option<u64>, meter: SharedMeter) -> Self {
        Self { meter, seen: Seen::new(), expected, received: 0 }
    }
}

impl Machine for DatagramSink {
    fn handle(&mut self, now: Instant, _port: Port, item: Item) {
        let Item::Datagram(Datagram { payload, .. }) = item else { return };
        let mut meter = self.meter.borrow_mut();
        let Some((number, sent)) = check_unit(&payload, now) else {
            meter.damaged_units += 1;
            return;
        };
        if !self.seen.first(number) {
            meter.duplicate_units += 1;
            return;
        }
        self.received += 1;
        meter.payload(now, payload.len());
        meter.unit_delivered(sent);
        meter.latency(sent, now);
        meter.arrival(sent, now);
        if self.expected == Some(self.received) {
            meter.completed = Some(now);
        }
    }

    fn wake(&mut self, _now: Instant) {}

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        None
    }

    fn deadline(&self) -> Option<Instant> {
        None
    }
}
