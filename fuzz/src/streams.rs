//! Two ends that carry streams in datagrams, a path that does what the input says, and somebody on it who changes what
//! is under way.

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::timers::{MANY, Timers};
use arbitrary::Arbitrary;
use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Machine, Port, StreamId, StreamItem};

use crate::change::Change;

/// An event on the path.
#[derive(Arbitrary, Debug)]
#[allow(missing_docs)] // the names say it
pub enum Step {
    Open {
        far: bool,
    },
    Write {
        far: bool,
        stream: u8,
        len: u16,
    },
    Read {
        far: bool,
        stream: u8,
        bytes: u16,
    },
    Finish {
        far: bool,
        stream: u8,
    },
    Reset {
        far: bool,
        stream: u8,
    },
    Deliver {
        far: bool,
        at: u8,
        packets: u8,
    },
    Lose {
        far: bool,
        at: u8,
    },
    Duplicate {
        far: bool,
        at: u8,
    },
    /// Datagrams under way arrive changed, and then as they were.
    Forge {
        far: bool,
        at: u8,
        change: Change,
    },
    Raw {
        far: bool,
        bytes: Vec<u8>,
    },
    Wait {
        micros: u32,
    },
}

/// Packets under way each way; more are lost.
const QUEUE: usize = 512;

/// Lets two ends do what the steps say, and then whatever they still have to do: nobody panics, runs away, or sends
/// what does not fit; and what comes out are the bytes that went in, in order, where `genuine`, since nobody can forge
/// them.
pub fn drive<M: Machine>(ends: [M; 2], genuine: bool, steps: &[Step]) {
    let mut path = Path::new(ends, genuine);
    for step in steps.iter().take(300) {
        path.act(step);
    }
    for _ in 0..50 {
        for end in 0..2 {
            (0..path.lines[end].len()).for_each(|_| path.deliver(end, 0));
        }
        path.wait(Duration::from_millis(20));
    }
}

struct Path<M> {
    now: Instant,
    ends: [M; 2],
    genuine: bool,
    /// Datagrams under way to each end.
    lines: [VecDeque<Buffer>; 2],
    /// The streams of each end that stand, in the order in which they came to be.
    streams: [Vec<Stream>; 2],
    opened: u64,
}

struct Stream {
    id: StreamId,
    /// Bytes that may be written, and that have been; that have been granted, and read.
    credit: u64,
    written: u64,
    granted: u64,
    read: u64,
}

impl<M: Machine> Timers for Path<M> {
    fn now(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn machine(&mut self, which: usize) -> Option<&mut dyn Machine> {
        self.ends.get_mut(which).map(|machine| machine as &mut dyn Machine)
    }

    fn woken(&mut self, which: usize) {
        self.drain(which);
    }
}

impl<M: Machine> Path<M> {
    fn new(ends: [M; 2], genuine: bool) -> Self {
        let (lines, streams) = Default::default();
        Self { now: Instant::ZERO, ends, genuine, lines, streams, opened: 0 }
    }

    fn act(&mut self, step: &Step) {
        match step {
            Step::Open { far } => {
                let end = usize::from(*far);
                let id = StreamId(2 * self.opened);
                self.opened += 1;
                self.streams[end].push(Stream { id, credit: 0, written: 0, granted: 0, read: 0 });
                self.above(end, id, StreamItem::Open { local: address(end), remote: address(1 - end) });
            }
            Step::Write { far, stream, len } => {
                let end = usize::from(*far);
                let Some(stream) = self.stream(end, *stream) else { return };
                let len = stream.credit.min((*len).into());
                let bytes: Vec<u8> = (stream.written..stream.written + len).map(pattern).collect();
                let id = stream.id;
                (stream.credit, stream.written) = (stream.credit - len, stream.written + len);
                self.above(end, id, StreamItem::Data(Buffer::copy_from(&bytes)));
            }
            Step::Read { far, stream, bytes } => {
                let end = usize::from(*far);
                let Some(stream) = self.stream(end, *stream) else { return };
                stream.granted += u64::from(*bytes);
                let id = stream.id;
                self.above(end, id, StreamItem::Credit((*bytes).into()));
            }
            Step::Finish { far, stream } => self.end(usize::from(*far), *stream, StreamItem::Finish),
            Step::Reset { far, stream } => self.end(usize::from(*far), *stream, StreamItem::Reset),
            Step::Deliver { far, at, packets } => {
                (0..*packets).for_each(|_| self.deliver((*far).into(), (*at).into()));
            }
            Step::Lose { far, at } => _ = self.remove((*far).into(), (*at).into()),
            Step::Duplicate { far, at } => {
                let line = &mut self.lines[usize::from(*far)];
                if let Some(packet) = line.get(usize::from(*at) % line.len().max(1)).cloned()
                    && line.len() < QUEUE
                {
                    line.push_back(packet);
                }
            }
            Step::Forge { far, at, change } => {
                let end = usize::from(*far);
                let Some(packet) = self.remove(end, (*at).into()) else { return };
                let mut bytes = packet.to_vec();
                change.apply(&mut bytes);
                self.arrive(end, Buffer::copy_from(&bytes));
                self.arrive(end, packet);
            }
            Step::Raw { far, bytes } => self.arrive((*far).into(), Buffer::copy_from(bytes)),
            Step::Wait { micros } => self.wait(Duration::from_micros(u64::from(*micros) % 100_000_000)),
        }
    }

    fn stream(&mut self, end: usize, number: u8) -> Option<&mut Stream> {
        let streams = &mut self.streams[end];
        let place = usize::from(number) % streams.len().max(1);
        streams.get_mut(place)
    }

    /// The application ends one direction of a stream, or both; it writes no more.
    fn end(&mut self, end: usize, number: u8, item: StreamItem) {
        let Some(stream) = self.stream(end, number) else { return };
        stream.credit = 0;
        let id = stream.id;
        if item == StreamItem::Reset {
            self.streams[end].retain(|stream| stream.id != id);
        }
        self.above(end, id, item);
    }

    fn above(&mut self, end: usize, id: StreamId, item: StreamItem) {
        self.ends[end].handle(self.now, Port::Above(0), Item::Stream(id, item));
        self.drain(end);
    }

    fn remove(&mut self, end: usize, at: usize) -> Option<Buffer> {
        let line = &mut self.lines[end];
        line.remove(at % line.len().max(1))
    }

    fn deliver(&mut self, end: usize, at: usize) {
        if let Some(packet) = self.remove(end, at) {
            self.arrive(end, packet);
        }
    }

    fn arrive(&mut self, end: usize, payload: Buffer) {
        let datagram = Datagram::new(address(end), address(1 - end), payload);
        self.ends[end].handle(self.now, Port::Below(0), Item::Datagram(datagram));
        self.drain(end);
    }

    fn drain(&mut self, end: usize) {
        let mut items = 0;
        while let Some((port, item)) = self.ends[end].poll(self.now) {
            match (port, item) {
                (Port::Below(0), Item::Datagram(datagram)) => {
                    assert!((1..=1472).contains(&datagram.payload.len()), "{}", datagram.payload.len());
                    if self.lines[1 - end].len() < QUEUE {
                        self.lines[1 - end].push_back(datagram.payload);
                    }
                }
                (Port::Above(0), Item::Stream(id, item)) => self.take(end, id, item),
                other => panic!("{other:?}"),
            }
            items += 1;
            assert!(items < MANY, "there is no end to what it says");
        }
        if let Some(at) = self.ends[end].deadline() {
            assert!(at > self.now, "end {end}: a deadline of {at} at {}", self.now);
        }
    }

    fn take(&mut self, end: usize, id: StreamId, item: StreamItem) {
        if let StreamItem::Open { .. } = item {
            self.streams[end].push(Stream { id, credit: 0, written: 0, granted: 0, read: 0 });
            return;
        }
        let stream = self.streams[end].iter_mut().find(|stream| stream.id == id);
        let stream = stream.expect("it is of a stream that stands");
        match item {
            StreamItem::Credit(bytes) => stream.credit += bytes,
            StreamItem::Data(data) => {
                for &byte in data.iter() {
                    assert!(byte == pattern(stream.read) || !self.genuine, "{byte} at {}", stream.read);
                    stream.read += 1;
                }
                assert!(stream.read <= stream.granted, "more than was granted");
            }
            StreamItem::Reset => self.streams[end].retain(|stream| stream.id != id),
            StreamItem::Opened | StreamItem::Finish | StreamItem::Transmitted(_) => {}
            StreamItem::Open { .. } => unreachable!(),
        }
    }
}

fn pattern(at: u64) -> u8 {
    (at.wrapping_mul(0x9E37_79B9) >> 16) as u8
}

/// The address of an end.
pub fn address(end: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, end as u8 + 1], 4433))
}
