//! A file that is handed over as one message; the transport detects that it is complete.

use std::sync::Arc;

use hopcast_core::{Buffer, Instant, Item, Machine, Message, Port, Reactive};

use super::Schedule;
use super::stream::equal_bytes;
use crate::meter::{Meters, SharedMeter};

/// Hands the file over at the start of its schedule.
pub(crate) struct WholeFileSender {
    next: Option<Instant>,
    contents: Arc<[u8]>,
    meters: Meters,
    ready: bool,
}

impl WholeFileSender {
    pub(crate) fn new(schedule: Schedule, contents: Arc<[u8]>, meters: Meters) -> Self {
        Self { next: schedule.next_active(Instant::ZERO), contents, meters, ready: false }
    }
}

impl Machine for WholeFileSender {
    fn handle(&mut self, _now: Instant, _port: Port, _item: Item) {}

    fn wake(&mut self, now: Instant) {
        self.ready |= self.next.take_if(|next| *next <= now).is_some();
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        if !std::mem::take(&mut self.ready) {
            return None;
        }
        self.meters.each(|meter| {
            meter.start(now);
            meter.unit_sent(now);
        });
        Some((Port::Below(0), Item::Message(Message::new(0, Buffer::copy_from(&self.contents)))))
    }

    fn deadline(&self) -> Option<Instant> {
        self.next
    }
}

/// Receives the file as one message.
pub(crate) struct WholeFileReceiver {
    /// The file that was sent, to check against.
    contents: Arc<[u8]>,
    meter: SharedMeter,
}

impl WholeFileReceiver {
    pub(crate) fn new(contents: Arc<[u8]>, meter: SharedMeter) -> Self {
        Self { contents, meter }
    }
}

impl Reactive for WholeFileReceiver {
    fn react(&mut self, now: Instant, _port: Port, item: Item) {
        let Item::Message(Message { payload, .. }) = item else { return };
        let mut meter = self.meter.borrow_mut();
        if meter.hash_ok == Some(true) {
            meter.duplicate_units += 1;
            return;
        }
        let common = payload.len().min(self.contents.len());
        meter.payload(now, equal_bytes(&payload[..common], &self.contents[..common]));
        if payload[..] == self.contents[..] {
            meter.file_complete(now, true);
        } else {
            // Another file than was sent, or a damaged one, completes nothing.
            meter.damaged_units += 1;
            meter.hash_ok = Some(false);
        }
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
    fn a_file_is_complete_only_if_every_byte_is_as_it_was_sent_and_only_once() {
        let to = Instant::from_nanos(1_000);
        let measure = Measure { from: Instant::ZERO, to, interval: Duration::from_nanos(1_000) };
        let meter = Rc::new(RefCell::new(Meter::new(measure, to.since(Instant::ZERO))));
        meter.borrow_mut().start(Instant::ZERO);
        let mut receiver = WholeFileReceiver::new(b"hello, world".to_vec().into(), meter.clone());
        let mut take = |bytes: &[u8], at: u64| {
            let message = Message::new(0, Buffer::copy_from(bytes));
            receiver.handle(Instant::from_nanos(at), Port::Below(0), Item::Message(message));
            let meter = meter.borrow();
            (meter.completed.map(Instant::as_nanos), meter.hash_ok, meter.delivered_units)
        };
        assert_eq!(take(b"hello, worle", 5), (None, Some(false), 0), "a byte is wrong");
        assert_eq!(take(b"hello, worl", 6), (None, Some(false), 0), "a byte is missing");
        assert_eq!(take(b"hello, world!", 7), (None, Some(false), 0), "there is a byte too many");
        assert_eq!(take(b"hello, world", 8), (Some(8), Some(true), 1));
        assert_eq!(take(b"hello, world", 9), (Some(8), Some(true), 1));
        let meter = meter.borrow();
        assert_eq!((meter.damaged_units, meter.duplicate_units), (3, 1));
    }
}
