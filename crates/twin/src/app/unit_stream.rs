//! Units of one size in a stream to a group: who comes late goes on with the next whole one.

use std::collections::VecDeque;

use hopcast_core::{
    Buffer, Datagram, Instant, Item, Machine, Port, Reactive, StreamId, StreamItem, StreamReader,
};

use super::datagrams::{DatagramSink, DatagramSource};
use super::stream::READ_AHEAD;
use super::{Ends, check_unit};

const STREAM: StreamId = StreamId(0);

/// Writes the units of a source into a stream, as fast as the stream takes them.
pub(crate) struct UnitStreamSource {
    ends: Ends,
    /// The source, granted.
    units: DatagramSource,
    /// Bytes of a unit; the last one may be shorter.
    size: u64,
    /// Number of units left to send; without end if `None`.
    left: Option<u64>,
    /// Bytes that may be written, less than a unit.
    credit: u64,
    is_open: bool,
    out: VecDeque<StreamItem>,
}

impl UnitStreamSource {
    /// `count` units of at most `size` bytes, or units without end.
    pub(crate) fn new(ends: Ends, units: DatagramSource, size: usize, count: Option<u64>) -> Self {
        let (units, size) = (units.granted(), size as u64);
        Self { ends, units, size, left: count, credit: 0, is_open: false, out: VecDeque::new() }
    }
}

impl Machine for UnitStreamSource {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        if let Item::Stream(STREAM, StreamItem::Credit(granted)) = item {
            self.credit += granted;
            let units = self.credit / self.size;
            self.credit %= self.size;
            self.units.handle(now, port, Item::Credit(units));
        }
    }

    fn wake(&mut self, now: Instant) {
        if !std::mem::replace(&mut self.is_open, true) {
            let (local, remote) = (self.ends.local, self.ends.remote);
            self.out.push_back(StreamItem::Open { local, remote });
        }
        self.units.wake(now);
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        if self.out.is_empty()
            && let Some((_, Item::Datagram(unit))) = self.units.poll(now)
        {
            self.out.push_back(StreamItem::Data(unit.payload));
            self.left = self.left.map(|left| left.saturating_sub(1));
            if self.left == Some(0) {
                self.out.push_back(StreamItem::Finish);
            }
        }
        self.out.pop_front().map(|item| (Port::Below(0), Item::Stream(STREAM, item)))
    }

    fn deadline(&self) -> Option<Instant> {
        if self.is_open { self.units.deadline() } else { Some(Instant::ZERO) }
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.units.counters(report);
    }
}

/// Reads the units of a stream, from the first whole one on; after a reset, those of the next stream.
pub(crate) struct UnitStreamSink {
    units: DatagramSink,
    /// Addresses of a unit, which the sink does not look at.
    ends: Ends,
    size: usize,
    stream: Option<StreamId>,
    reader: StreamReader,
    /// Whether it is known where units begin.
    is_found: bool,
    waiting: Vec<u8>,
    out: VecDeque<(StreamId, StreamItem)>,
}

impl UnitStreamSink {
    /// Units of `size` bytes, of which the last one may be shorter.
    pub(crate) fn new(ends: Ends, units: DatagramSink, size: usize) -> Self {
        let reader = StreamReader::new(READ_AHEAD);
        let (stream, waiting, out) = Default::default();
        Self { units, ends, size, stream, reader, is_found: false, waiting, out }
    }

    fn take_units(&mut self, now: Instant) {
        if !self.is_found {
            let is_whole = |unit: &[u8]| check_unit(unit, now).is_some();
            let found = self.waiting.windows(self.size).position(is_whole);
            self.is_found = found.is_some();
            // The end may be the beginning of one.
            let end = self.waiting.len().saturating_sub(self.size - 1);
            self.waiting.drain(..found.unwrap_or(end));
        }
        if self.is_found {
            let whole = self.waiting.len() / self.size * self.size;
            let rest = self.waiting.split_off(whole);
            let units = std::mem::replace(&mut self.waiting, rest);
            units.chunks(self.size).for_each(|unit| self.take_unit(now, unit));
        }
    }

    fn take_unit(&mut self, now: Instant, unit: &[u8]) {
        let datagram = Datagram::new(self.ends.local, self.ends.remote, Buffer::copy_from(unit));
        self.units.react(now, Port::Below(0), Item::Datagram(datagram));
    }

    fn say(&mut self, item: StreamItem) {
        self.out.extend(self.stream.map(|stream| (stream, item)));
    }
}

impl Reactive for UnitStreamSink {
    fn react(&mut self, now: Instant, _port: Port, item: Item) {
        let Item::Stream(stream, item) = item else { return };
        if matches!(item, StreamItem::Open { .. }) {
            (self.stream, self.is_found) = (Some(stream), false);
            self.reader = StreamReader::new(READ_AHEAD);
            self.waiting.clear();
            self.say(self.reader.first_grant());
        }
        if self.stream != Some(stream) {
            return;
        }
        match item {
            StreamItem::Data(data) => {
                self.waiting.extend_from_slice(&data);
                self.take_units(now);
                if let Some(credit) = self.reader.consumed(data.len()) {
                    self.say(credit);
                }
            }
            StreamItem::Finish => {
                let last = std::mem::take(&mut self.waiting);
                if self.is_found && !last.is_empty() {
                    self.take_unit(now, &last);
                }
                self.say(StreamItem::Finish);
            }
            StreamItem::Reset => self.stream = None,
            StreamItem::Open { .. }
            | StreamItem::Opened
            | StreamItem::Credit(_)
            | StreamItem::Transmitted(_) => {}
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop_front().map(|(stream, item)| (Port::Below(0), Item::Stream(stream, item)))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::net::SocketAddr;
    use std::rc::Rc;

    use hopcast_core::Duration;

    use super::super::{unit, write_stamp};
    use super::*;
    use crate::meter::Meter;
    use crate::scenario::model::Measure;

    #[test]
    fn a_reader_that_comes_in_the_middle_begins_with_the_next_whole_unit_and_again_after_a_reset() {
        let to = Instant::from_nanos(1_000);
        let measure = Measure { from: Instant::ZERO, to, interval: Duration::from_nanos(1_000) };
        let meter = Rc::new(RefCell::new(Meter::new(measure, to.since(Instant::ZERO))));
        let address = SocketAddr::from(([10, 0, 0, 1], 1));
        let ends = Ends { local: address, remote: address };
        let mut sink = UnitStreamSink::new(ends, DatagramSink::new(None, meter.clone()), 100);
        let mut sent = Vec::new();
        for (number, size) in [100, 100, 100, 40].into_iter().enumerate() {
            let mut bytes = unit(size);
            write_stamp(&mut bytes, number as u64, Instant::from_nanos(1));
            sent.extend_from_slice(&bytes);
        }
        let mut take = |stream: u64, item: StreamItem| {
            sink.handle(Instant::from_nanos(5), Port::Below(0), Item::Stream(StreamId(stream), item));
            let meter = meter.borrow();
            (meter.delivered_units, meter.damaged_units)
        };
        let open = || StreamItem::Open { local: address, remote: address };
        let data = |from: usize, to: usize| StreamItem::Data(Buffer::copy_from(&sent[from..to]));
        take(1, open());
        assert_eq!(take(1, data(30, 110)), (0, 0));
        assert_eq!(take(1, data(110, 199)), (0, 0));
        assert_eq!(take(1, data(199, 250)), (1, 0), "the second is whole");
        take(1, StreamItem::Reset);
        assert_eq!(take(1, data(250, 300)), (1, 0), "nothing comes after a reset");
        take(3, open());
        assert_eq!(take(3, data(150, 340)), (2, 0));
        assert_eq!(take(3, StreamItem::Finish), (3, 0), "the last is shorter");
    }
}
