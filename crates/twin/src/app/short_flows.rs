//! Many short flows: each is a stream of its own, which is opened, filled and closed, as when a web page is fetched.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::ops::Range;

use hopcast_core::{
    Instant, Item, Machine, Port, Reactive, Stream, StreamId, StreamItem, StreamReader, StreamWriter,
};

use super::pace::{Clock, Pace};
use super::piece::{PIECE_HEADER, Piece, UnitReader, UnitWriter};
use super::stream::READ_AHEAD;
use super::{Ends, Schedule};
use crate::meter::SharedMeter;
use crate::scenario::model::{SHORT_FLOW, SizeLaw};

/// Maximum number of open streams; further flows wait. Chosen: half of the 1,024 streams that every transport carries,
/// since one may keep a closed stream for a while; with more, streams are refused, with fewer, flows wait.
const MAX_OPEN: usize = 512;
/// Maximum number of waiting flows; further ones are skipped. Chosen: it bounds memory where the load exceeds the
/// capacity; fewer skip flows of a burst.
const MAX_WAITING: usize = 1 << 16;
/// Number of local ports that a sender uses in turn. Chosen: twice the maximum in use, so that none is reused soon
/// after its connection has ended; with fewer, a port may still be in TIME-WAIT.
pub(crate) const PORTS: u16 = 2 * MAX_OPEN as u16;

/// Opens a stream for each flow that arrives, writes its bytes, and closes the stream.
pub(crate) struct ShortFlowSource {
    ends: Ends,
    clock: Clock,
    sizes: Sizes,
    meter: SharedMeter,
    /// Unused ports, the longest unused first.
    ports: VecDeque<u16>,
    open: BTreeMap<StreamId, Open>,
    waiting: VecDeque<Piece>,
    number: u64,
    opened: u64,
    waited: u64,
    skipped: u64,
    failed: u64,
    out: VecDeque<(StreamId, StreamItem)>,
}

struct Open {
    port: u16,
    unit: UnitWriter,
    writer: StreamWriter,
    /// Whether all its bytes are written.
    finished: bool,
}

impl ShortFlowSource {
    /// A source that connects from `ports`, [`PORTS`] in number.
    pub(crate) fn new(
        ends: Ends,
        schedule: Schedule,
        pace: Pace,
        sizes: Sizes,
        ports: Range<u16>,
        meter: SharedMeter,
    ) -> Self {
        Self {
            ends,
            clock: Clock::new(schedule, pace),
            sizes,
            meter,
            ports: ports.collect(),
            open: BTreeMap::new(),
            waiting: VecDeque::new(),
            number: 0,
            opened: 0,
            waited: 0,
            skipped: 0,
            failed: 0,
            out: VecDeque::new(),
        }
    }

    fn arrive(&mut self, now: Instant) {
        let length = (self.sizes.draw() - PIECE_HEADER as u64) as u32;
        let flow = Piece { number: self.number, sent: now, length, offset: 0 };
        self.number += 1;
        let mut meter = self.meter.borrow_mut();
        meter.start(now);
        meter.unit_sent(now);
        drop(meter);
        if self.waiting.len() >= MAX_WAITING {
            self.skipped += 1;
            return;
        }
        self.waiting.push_back(flow);
        self.open_waiting();
        self.waited += u64::from(!self.waiting.is_empty());
    }

    fn open_waiting(&mut self) {
        while self.open.len() < MAX_OPEN
            && let Some(port) = self.ports.pop_front()
        {
            let Some(flow) = self.waiting.pop_front() else {
                self.ports.push_front(port);
                return;
            };
            // On a stream port the machine above uses even numbers.
            let id = StreamId(2 * self.opened);
            self.opened += 1;
            let local = SocketAddr::new(self.ends.local.ip(), port);
            self.out.push_back((id, StreamItem::Open { local, remote: self.ends.remote }));
            let (unit, writer) = (UnitWriter::new(flow), StreamWriter::default());
            self.open.insert(id, Open { port, unit, writer, finished: false });
        }
    }

    fn write(&mut self, id: StreamId, credit: u64) {
        let Some(flow) = self.open.get_mut(&id) else { return };
        flow.writer.credit(credit);
        let out = &mut self.out;
        if !flow.finished && flow.unit.write(&mut flow.writer, |item| out.push_back((id, item))) {
            flow.finished = true;
            out.push_back((id, StreamItem::Finish));
        }
    }

    /// Removes a stream that has ended, so that a waiting flow can begin.
    fn close(&mut self, id: StreamId, failed: bool) {
        if let Some(flow) = self.open.remove(&id) {
            self.failed += u64::from(failed);
            self.ports.push_back(flow.port);
            self.open_waiting();
        }
    }
}

impl Machine for ShortFlowSource {
    fn handle(&mut self, _now: Instant, _port: Port, item: Item) {
        let Item::Stream(id, item) = item else { return };
        match item {
            StreamItem::Credit(granted) => self.write(id, granted),
            // The receiver closes its direction once it has received everything.
            StreamItem::Finish => self.close(id, false),
            StreamItem::Reset => self.close(id, true),
            StreamItem::Open { .. }
            | StreamItem::Opened
            | StreamItem::Data(_)
            | StreamItem::Transmitted(_) => {}
        }
    }

    fn wake(&mut self, now: Instant) {
        while self.clock.due().is_some_and(|due| due <= now) {
            if self.clock.tick(now, 0) {
                self.arrive(now);
            }
        }
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop_front().map(|(id, item)| (Port::Below(0), Item::Stream(id, item)))
    }

    fn deadline(&self) -> Option<Instant> {
        self.clock.due()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("flows_opened", self.opened);
        report("flows_waited", self.waited);
        report("flows_skipped", self.skipped);
        report("flows_failed", self.failed);
    }
}

/// Accepts any number of streams, and compares the bytes that arrive on each with those sent.
pub(crate) struct ShortFlowSink {
    meter: SharedMeter,
    streams: BTreeMap<StreamId, Accepted>,
    out: VecDeque<(StreamId, StreamItem)>,
}

struct Accepted {
    reader: StreamReader,
    unit: UnitReader,
}

impl ShortFlowSink {
    pub(crate) fn new(meter: SharedMeter) -> Self {
        Self { meter, streams: BTreeMap::new(), out: VecDeque::new() }
    }
}

impl Reactive for ShortFlowSink {
    fn react(&mut self, now: Instant, _port: Port, item: Item) {
        let Item::Stream(id, item) = item else { return };
        if let StreamItem::Open { .. } = item {
            let reader = StreamReader::new(READ_AHEAD);
            self.out.push_back((id, reader.first_grant()));
            self.streams.insert(id, Accepted { reader, unit: UnitReader::default() });
            return;
        }
        let Some(stream) = self.streams.get_mut(&id) else { return };
        let mut meter = self.meter.borrow_mut();
        match item {
            StreamItem::Data(data) => {
                let granted = stream.reader.received(data.len());
                let intact = stream.unit.take(now, &data, |flow| {
                    meter.unit_delivered(flow.sent);
                    meter.latency(flow.sent, now);
                });
                if !stream.unit.is_damaged() {
                    meter.payload(now, data.len());
                }
                meter.damaged_units += u64::from(!(granted && intact));
                self.out.extend(stream.reader.consumed(data.len()).map(|item| (id, item)));
            }
            StreamItem::Finish => {
                meter.damaged_units += u64::from(!stream.unit.is_between_units());
                self.streams.remove(&id);
                self.out.push_back((id, StreamItem::Finish));
            }
            StreamItem::Reset => {
                self.streams.remove(&id);
            }
            StreamItem::Open { .. }
            | StreamItem::Opened
            | StreamItem::Credit(_)
            | StreamItem::Transmitted(_) => {}
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop_front().map(|(id, item)| (Port::Below(0), Item::Stream(id, item)))
    }
}

/// A generator of the sizes of flows, in bytes.
pub(crate) struct Sizes {
    pub(crate) law: SizeLaw,
    pub(crate) random: Stream,
}

impl Sizes {
    fn draw(&mut self) -> u64 {
        let bytes = match self.law {
            SizeLaw::Fixed(size) => return size.get(),
            SizeLaw::Exponential(mean) => mean.get() as f64 * self.random.exponential(),
            SizeLaw::Pareto { mean, shape } => {
                let min = mean.get() as f64 * (shape - 1.0) / shape;
                min / (1.0 - self.random.uniform()).powf(1.0 / shape)
            }
        };
        (bytes.round() as u64).clamp(*SHORT_FLOW.start(), *SHORT_FLOW.end())
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::{Bytes, Seed};

    use super::*;

    fn mean_and_share_above(law: SizeLaw, limit: u64) -> (f64, f64) {
        let mut sizes = Sizes { law, random: Seed::new(1, 0).stream(&["sizes"], 0) };
        let drawn: Vec<u64> = (0..200_000).map(|_| sizes.draw()).collect();
        let above = drawn.iter().filter(|&&size| size > limit).count();
        (drawn.iter().sum::<u64>() as f64 / 200_000.0, above as f64 / 200_000.0)
    }

    #[test]
    fn sizes_follow_their_law() {
        let mean = Bytes::new(100_000);
        assert_eq!(mean_and_share_above(SizeLaw::Fixed(mean), 99_999), (100_000.0, 1.0));
        let (found, above) = mean_and_share_above(SizeLaw::Exponential(mean), 200_000);
        assert!((found / 1e5 - 1.0).abs() < 0.01 && (above / (-2.0f64).exp() - 1.0).abs() < 0.02);
        // P(X > x) = (least / x)^shape, with the minimum at 60,000.
        let (found, above) = mean_and_share_above(SizeLaw::Pareto { mean, shape: 2.5 }, 120_000);
        assert!((found / 1e5 - 1.0).abs() < 0.02, "{found}");
        assert!((above / 0.5f64.powf(2.5) - 1.0).abs() < 0.02, "{above}");
    }
}
