//! Traffic over a segment in tests, compared with what was sent; and the unreliable link.

use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;

use hopcast_core::{
    Assembly, Buffer, Duration, Frame, Instant, Item, Machine, Outbox, Port, Rate, Reactive, Seed, StreamId,
    StreamItem, StreamReader, StreamWriter, earliest,
};
use hopcast_peers::tcp::{self, Tcp};
use hopcast_wire::ethernet::{self, Mac};

use super::net::mac;

/// Packets in frames as they are: the unreliable link.
pub(super) struct Bare {
    pub(super) local: Mac,
    pub(super) peer: Mac,
    pub(super) out: Outbox,
}

impl Bare {
    pub(super) fn boxed(local: usize, peer: usize) -> Box<dyn Machine> {
        Box::new(Self { local: mac(local), peer: mac(peer), out: Outbox::new() })
    }
}

impl Reactive for Bare {
    fn react(&mut self, _now: Instant, _port: Port, item: Item) {
        match item {
            Item::Packet(mut packet) => {
                let header = ethernet::Header {
                    destination: self.peer,
                    source: self.local,
                    ether_type: ethernet::IPV4,
                };
                ethernet::prepend(&mut packet, header);
                self.out.down(Item::Frame(Frame::new(packet)));
            }
            Item::Frame(mut frame) if !frame.overheard => {
                frame.bytes.advance(ethernet::HEADER);
                self.out.up(Item::Packet(frame.bytes));
            }
            _ => {}
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }
}

/// Packets that came out at the far end.
#[derive(Debug, Default)]
pub(super) struct Meter {
    pub(super) sent: u64,
    pub(super) received: u64,
    pub(super) bytes: u64,
    pub(super) wrong: u64,
    pub(super) out_of_order: u64,
    next: u64,
    pub(super) delays: Vec<(Instant, Duration)>,
    /// Of a stream: when which byte was first sent.
    stamps: std::collections::VecDeque<(u64, Instant)>,
}

pub(super) type SharedMeter = Rc<RefCell<Meter>>;

impl Meter {
    pub(super) fn shared() -> SharedMeter {
        Rc::default()
    }

    pub(super) fn mean_delay_ms(&self, from: Instant) -> f64 {
        let delays = self.delays.iter().filter(|(at, _)| *at >= from).map(|(_, delay)| delay.as_millis_f64());
        let (sum, count) = delays.fold((0.0, 0.0), |(sum, count), delay| (sum + delay, count + 1.0));
        sum / f64::max(count, 1.0)
    }
}

/// The byte `i` of packet `id`.
fn pattern(id: u64, i: usize) -> u8 {
    (id as u8).wrapping_mul(31).wrapping_add(i as u8).wrapping_mul(167)
}

/// Packets at a constant rate.
pub(super) struct Source {
    pub(super) every: Duration,
    pub(super) size: usize,
    pub(super) stop: Instant,
    pub(super) next: Instant,
    pub(super) meter: SharedMeter,
    pub(super) due: bool,
}

impl Source {
    /// A rate in bit/s of packets of `size` bytes, until `stop`.
    pub(super) fn boxed(rate: u64, size: usize, stop: Instant, meter: &SharedMeter) -> Box<dyn Machine> {
        let every = Rate::from_bits_per_sec(rate).time_for(size as u64);
        Box::new(Self { every, size, stop, next: Instant::ZERO, meter: meter.clone(), due: false })
    }
}

impl Machine for Source {
    fn handle(&mut self, _now: Instant, _port: Port, _item: Item) {}
    fn wake(&mut self, now: Instant) {
        self.due = self.next <= now && self.next < self.stop;
    }
    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        if !core::mem::take(&mut self.due) {
            return None;
        }
        self.next += self.every;
        let mut meter = self.meter.borrow_mut();
        let id = meter.sent;
        meter.sent += 1;
        let mut packet: Vec<u8> = (0..self.size).map(|i| pattern(id, i)).collect();
        packet[..8].copy_from_slice(&id.to_be_bytes());
        packet[8..16].copy_from_slice(&now.as_nanos().to_be_bytes());
        Some((Port::Below(0), Item::Packet(Buffer::copy_from(&packet))))
    }
    fn deadline(&self) -> Option<Instant> {
        (self.next < self.stop).then_some(self.next)
    }
}

/// Receives the packets of a [`Source`], and compares them with those expected.
pub(super) struct Sink {
    pub(super) meter: SharedMeter,
}

impl Sink {
    pub(super) fn boxed(meter: &SharedMeter) -> Box<dyn Machine> {
        Box::new(Self { meter: meter.clone() })
    }
}

impl Reactive for Sink {
    fn react(&mut self, now: Instant, _port: Port, item: Item) {
        let Item::Packet(packet) = item else { return };
        let mut meter = self.meter.borrow_mut();
        let (Some(id), Some(sent)) = (packet.first_chunk::<8>(), packet.get(8..16)) else {
            meter.wrong += 1;
            return;
        };
        let id = u64::from_be_bytes(*id);
        if id >= meter.sent || packet.iter().enumerate().skip(16).any(|(i, &byte)| byte != pattern(id, i)) {
            meter.wrong += 1;
            return;
        }
        meter.out_of_order += u64::from(id < meter.next);
        meter.next = meter.next.max(id + 1);
        meter.received += 1;
        meter.bytes += packet.len() as u64;
        let sent = Instant::from_nanos(u64::from_be_bytes(sent.try_into().unwrap()));
        meter.delays.push((now, now.since(sent)));
    }
}

pub(super) fn address(station: usize) -> SocketAddr {
    format!("10.0.0.{}:{}", station + 1, 6000 + station).parse().unwrap()
}

/// One end of a TCP connection: `from` sends as much as it may.
pub(super) fn tcp_end(
    station: usize,
    listens: bool,
    mtu: u32,
    congestion: tcp::Congestion,
) -> Box<dyn Machine> {
    let config = tcp::Config { mtu, congestion, ..tcp::Config::default() };
    let random = Seed::new(5, 0).stream(&["tcp", &station.to_string()], 0);
    let own = address(station);
    Box::new(Tcp::new(config, listens.then(|| own.port()), vec![own.ip()], random))
}

const STREAM: StreamId = StreamId(0);

/// Sends a stream for ever.
pub(super) struct BulkSource {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
    writer: StreamWriter,
    offset: u64,
    meter: SharedMeter,
    out: std::collections::VecDeque<StreamItem>,
    begun: bool,
}

impl BulkSource {
    pub(super) fn boxed(local: usize, remote: usize, meter: &SharedMeter) -> Box<dyn Machine> {
        Box::new(Self {
            local: address(local),
            remote: address(remote),
            writer: StreamWriter::default(),
            offset: 0,
            meter: meter.clone(),
            out: Default::default(),
            begun: false,
        })
    }

    fn write(&mut self) {
        loop {
            let data: Vec<u8> = (0..8_192).map(|i| byte_at(self.offset + i)).collect();
            let Some((item, len)) = self.writer.write(&data) else { return };
            self.offset += len as u64;
            self.out.push_back(item);
        }
    }
}

fn byte_at(offset: u64) -> u8 {
    (offset ^ (offset >> 8).wrapping_mul(31) ^ (offset >> 16)) as u8
}

impl Machine for BulkSource {
    fn handle(&mut self, now: Instant, _port: Port, item: Item) {
        let Item::Stream(_, item) = item else { return };
        match item {
            StreamItem::Credit(credit) => {
                self.writer.credit(credit);
                self.write();
            }
            StreamItem::Transmitted(until) => self.meter.borrow_mut().stamps.push_back((until, now)),
            StreamItem::Opened => self.write(),
            _ => {}
        }
    }
    fn wake(&mut self, _now: Instant) {
        if !core::mem::replace(&mut self.begun, true) {
            self.out.push_back(StreamItem::Open { local: self.local, remote: self.remote });
        }
    }
    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop_front().map(|item| (Port::Below(0), Item::Stream(STREAM, item)))
    }
    fn deadline(&self) -> Option<Instant> {
        (!self.begun).then_some(Instant::ZERO)
    }
}

/// Reads the bytes of a [`BulkSource`].
pub(super) struct BulkSink {
    reader: StreamReader,
    offset: u64,
    meter: SharedMeter,
    out: Outbox,
}

impl BulkSink {
    pub(super) fn boxed(meter: &SharedMeter) -> Box<dyn Machine> {
        let reader = StreamReader::new(4 << 20);
        Box::new(Self { reader, offset: 0, meter: meter.clone(), out: Outbox::new() })
    }
}

impl Reactive for BulkSink {
    fn react(&mut self, now: Instant, _port: Port, item: Item) {
        let Item::Stream(id, item) = item else { return };
        match item {
            StreamItem::Open { .. } => {
                let grant = self.reader.first_grant();
                self.out.down(Item::Stream(id, grant));
            }
            StreamItem::Data(data) => {
                let mut meter = self.meter.borrow_mut();
                meter.wrong +=
                    data.iter().zip(self.offset..).filter(|(byte, at)| **byte != byte_at(*at)).count() as u64;
                self.offset += data.len() as u64;
                meter.bytes += data.len() as u64;
                while let Some((_, at)) = meter.stamps.pop_front_if(|(until, _)| *until <= self.offset) {
                    meter.delays.push((now, now.since(at)));
                }
                if let Some(grant) = self.reader.consumed(data.len()) {
                    self.out.down(Item::Stream(id, grant));
                }
            }
            _ => {}
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }
}

/// Two machines on one packet port: the first receives IPv4, the second the rest, and either sends.
pub(super) struct Both(Box<dyn Machine>, Box<dyn Machine>);

impl Both {
    pub(super) fn boxed(ip: Box<dyn Machine>, rest: Box<dyn Machine>) -> Box<dyn Machine> {
        Box::new(Self(ip, rest))
    }
}

impl Machine for Both {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        match &item {
            Item::Packet(packet) if packet[0] >> 4 == 4 => self.0.handle(now, port, item),
            _ => self.1.handle(now, port, item),
        }
    }
    fn wake(&mut self, now: Instant) {
        self.0.wake(now);
        self.1.wake(now);
    }
    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        self.0.poll(now).or_else(|| self.1.poll(now))
    }
    fn deadline(&self) -> Option<Instant> {
        earliest(self.0.deadline(), self.1.deadline())
    }
}

/// An application on a transport, as one machine.
pub(super) fn stacked(transport: Box<dyn Machine>, application: Box<dyn Machine>) -> Box<dyn Machine> {
    let mut assembly = Assembly::new();
    let (below, above) = (assembly.add(transport), assembly.add(application));
    assembly.wire((below, Port::Above(0)), (above, Port::Below(0)));
    assembly.expose((below, Port::Below(0)), Port::Below(0));
    Box::new(assembly)
}
