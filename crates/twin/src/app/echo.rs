//! Messages at a fixed rate, echoed by the receiver, as in a game or a control loop, and by `ping`.

use std::collections::VecDeque;

use hopcast_core::{
    Datagram, Duration, Instant, Item, Machine, Message, Outbox, Port, Reactive, StreamId, StreamItem,
};

use super::accepted::Accepted;
use super::message_stream::MessageStream;
use super::seen::{Arrival, Seen};
use super::{Ends, Schedule, check_unit, unit, write_stamp};
use crate::meter::SharedMeter;

/// The port by which messages are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Transport {
    /// A datagram for each message.
    Datagrams,
    /// A stream, one message after another without delimiters: all have the same length.
    Stream,
    /// An echo request for each message, which the receiver's host answers.
    Echoes,
}

/// Maximum number of bytes that wait while the stream accepts nothing; beyond it, messages are skipped. Chosen: it
/// bounds memory; with less, messages of the maximum size are skipped at once.
const MAX_WAITING: usize = 16 << 20;
const STREAM: StreamId = StreamId(0);

/// Sends messages at intervals, and measures the round trip of each echo.
pub(crate) struct MessageClient {
    ends: Ends,
    schedule: Schedule,
    transport: Transport,
    size: usize,
    every: Duration,
    meter: SharedMeter,
    next: Option<Instant>,
    number: u64,
    skipped: u64,
    echoed: Seen,
    link: MessageStream,
    out: VecDeque<Item>,
}

impl MessageClient {
    /// A client whose messages have `size` bytes, at least [`STAMP`](super::STAMP).
    pub(crate) fn new(
        ends: Ends,
        schedule: Schedule,
        transport: Transport,
        size: usize,
        every: Duration,
        meter: SharedMeter,
    ) -> Self {
        let next = schedule.next_active(Instant::ZERO);
        Self {
            ends,
            schedule,
            transport,
            size,
            every,
            meter,
            next,
            number: 0,
            skipped: 0,
            echoed: Seen::new(),
            link: MessageStream::new(size),
            out: VecDeque::new(),
        }
    }

    fn echo(&mut self, now: Instant, message: &[u8]) {
        let mut meter = self.meter.borrow_mut();
        let Some((number, sent)) = check_unit(message, now) else {
            meter.damaged_units += 1;
            return;
        };
        match self.echoed.note(number) {
            Arrival::First => {
                meter.round_trip(sent, now);
                // The receiver has no application that would note its arrival.
                if self.transport == Transport::Echoes {
                    meter.payload(now, message.len());
                    meter.unit_delivered(sent);
                }
            }
            Arrival::Again => meter.duplicate_units += 1,
            Arrival::TooOld => meter.too_old_units += 1,
        }
    }
}

impl Machine for MessageClient {
    fn handle(&mut self, now: Instant, _port: Port, item: Item) {
        match item {
            Item::Datagram(datagram) => self.echo(now, &datagram.payload),
            Item::Message(message) => self.echo(now, &message.payload),
            Item::Stream(STREAM, item) => {
                let items = self.link.handle(item);
                self.out.extend(items.into_iter().map(|item| Item::Stream(STREAM, item)));
                while let Some(message) = self.link.next_message() {
                    self.echo(now, &message);
                    self.out.extend(self.link.used().map(|item| Item::Stream(STREAM, item)));
                }
            }
            Item::Stream(..)
            | Item::Frame(_)
            | Item::ReportFrameStatus
            | Item::FrameStatus(_)
            | Item::Mtu(_)
            | Item::Packet(_)
            | Item::Transit(_)
            | Item::Membership(_)
            | Item::Credit(_) => {}
        }
    }

    fn wake(&mut self, now: Instant) {
        let Some(due) = self.next.filter(|&due| due <= now) else { return };
        self.next = self.schedule.next_active(due + self.every.max(Duration::from_nanos(1)));
        let mut message = unit(self.size);
        write_stamp(&mut message, self.number, now);
        {
            let mut meter = self.meter.borrow_mut();
            meter.start(now);
            meter.unit_sent(now);
        }
        match self.transport {
            Transport::Datagrams => {
                let Ends { local, remote } = self.ends;
                self.out.push_back(Item::Datagram(Datagram::new(local, remote, message)));
            }
            Transport::Echoes => {
                self.out.push_back(Item::Message(Message::new(self.number, message)));
            }
            Transport::Stream => {
                if self.number == 0 {
                    let Ends { local, remote } = self.ends;
                    self.out.push_back(Item::Stream(STREAM, StreamItem::Open { local, remote }));
                    self.out.push_back(Item::Stream(STREAM, self.link.first_grant()));
                }
                let waiting = self.link.waiting();
                if waiting > 0 && waiting + self.size > MAX_WAITING {
                    self.skipped += 1;
                } else {
                    let items = self.link.send(&message);
                    self.out.extend(items.into_iter().map(|item| Item::Stream(STREAM, item)));
                }
            }
        }
        self.number += 1;
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop_front().map(|item| (Port::Below(0), item))
    }

    fn deadline(&self) -> Option<Instant> {
        self.next
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        // The machine that sends the requests counts them.
        if self.transport != Transport::Echoes {
            report("messages_sent", self.number - self.skipped);
            report("messages_skipped", self.skipped);
        }
    }
}

/// Sends each datagram back to its sender.
pub(crate) struct DatagramEcho {
    meter: SharedMeter,
    seen: Seen,
    out: Outbox,
}

impl DatagramEcho {
    pub(crate) fn new(meter: SharedMeter) -> Self {
        Self { meter, seen: Seen::new(), out: Outbox::new() }
    }
}

impl Reactive for DatagramEcho {
    fn react(&mut self, now: Instant, _port: Port, item: Item) {
        let Item::Datagram(datagram) = item else { return };
        delivered(&self.meter, &mut self.seen, now, &datagram.payload);
        // The answer's source is the address that the datagram was sent to.
        self.out.down(Item::Datagram(datagram));
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }
}

/// Sends each message of a stream back once it is complete.
pub(crate) struct StreamEcho {
    meter: SharedMeter,
    seen: Seen,
    stream: Accepted,
    link: MessageStream,
}

impl StreamEcho {
    pub(crate) fn new(size: usize, meter: SharedMeter) -> Self {
        Self { meter, seen: Seen::new(), stream: Accepted::default(), link: MessageStream::new(size) }
    }
}

impl Reactive for StreamEcho {
    fn react(&mut self, now: Instant, _port: Port, item: Item) {
        let Some(item) = self.stream.take(item, self.link.first_grant()) else { return };
        self.stream.say(self.link.handle(item));
        while self.link.waiting() <= MAX_WAITING
            && let Some(message) = self.link.next_message()
        {
            delivered(&self.meter, &mut self.seen, now, &message);
            self.stream.say(self.link.send(&message));
            self.stream.say(self.link.used());
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.stream.poll()
    }
}

fn delivered(meter: &SharedMeter, seen: &mut Seen, now: Instant, message: &[u8]) {
    let mut meter = meter.borrow_mut();
    let Some((number, sent)) = check_unit(message, now) else {
        meter.damaged_units += 1;
        return;
    };
    match seen.note(number) {
        Arrival::First => {
            meter.payload(now, message.len());
            meter.unit_delivered(sent);
            meter.latency(sent, now);
            meter.arrival(sent, now);
        }
        Arrival::Again => meter.duplicate_units += 1,
        Arrival::TooOld => meter.too_old_units += 1,
    }
}
