//! Several senders, each with a [`LinkRate`], and perhaps a TCP, through one queue, in virtual time.

use hopcast_core::{
    Buffer, Duration, Instant, Item, Machine, Port, Rate, Seed, Stream, StreamId, StreamItem, StreamReader,
};
use hopcast_link::config::{Config as LinkConfig, Direction};
use hopcast_link::{Change, Event, Link, PointToPoint};
use hopcast_peers::tcp::{self, Congestion, Tcp};

use super::super::{Config, HopReport, LinkRate};
use super::arrivals::Arrivals;

/// UDP payload of a data packet; a frame of 1514 bytes.
pub(super) const PAYLOAD: usize = 1472;
const FRAME: usize = PAYLOAD + 42;
/// A report's frame.
const REPORT: usize = 82;

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// The load of a flow.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Load {
    /// As much as may be sent.
    Greedy,
    /// A packet each so often.
    Every(Duration),
}

/// One sender with its receiver.
pub(super) struct Flow {
    pub rate: LinkRate,
    pub load: Load,
    pub begins: Instant,
    next: u64,
    due: Instant,
    probe_at: Option<Instant>,
    receiver: Receiver,
    /// Data bytes that arrived, as frames.
    pub arrived: u64,
    pub sent: u64,
}

struct Receiver {
    arrivals: Arrivals,
    bytes: u64,
    latest: Instant,
    since_report: u64,
    reported: Instant,
    due: Option<Instant>,
}

impl Receiver {
    /// Takes a packet; whether to report at once.
    fn on_data(&mut self, now: Instant, sequence: u64, rtt: Duration) -> bool {
        let gap = self.arrivals.on_packet(sequence);
        self.bytes += PAYLOAD as u64;
        self.latest = now;
        self.since_report += 1;
        if gap || (self.since_report >= 4 && now.since(self.reported) >= rtt / 4) {
            return true;
        }
        self.due = Some(now + (rtt / 4).max(Duration::from_micros(500)));
        false
    }

    fn report(&mut self, now: Instant) -> HopReport {
        (self.since_report, self.reported, self.due) = (0, now, None);
        HopReport {
            highest: self.arrivals.highest(),
            arrival_ns: self.latest.as_nanos().wrapping_sub(1_000_000),
            hold: now.since(self.latest),
            received_packets: self.arrivals.received(),
            received_bytes: self.bytes,
            mean_burst: self.arrivals.mean_burst(),
        }
    }
}

/// A TCP connection that always has something to send.
struct Rival {
    ends: [Tcp; 2],
    credit: u64,
    reader: Option<(StreamId, StreamReader)>,
    arrived: u64,
}

/// The link and all who send through it, from attachment 0 to attachment 1.
pub(super) struct Net {
    pub now: Instant,
    pub link: PointToPoint,
    pub flows: Vec<Flow>,
    rivals: Vec<Rival>,
    /// Senders and receivers are woken at multiples of this only; at zero, whenever there is something to do.
    coarse: Duration,
}

impl Net {
    pub(super) fn new(seed: u64, flows: usize, direction: Direction) -> Self {
        let seed = Seed::new(seed, 0);
        let config = LinkConfig { forward: direction.clone(), backward: direction, ..LinkConfig::default() };
        let streams = [seed.stream(&["there"], 0), seed.stream(&["back"], 0)];
        let flow = |i: usize| Flow {
            rate: LinkRate::new(Config::default(), random(seed, i)),
            load: Load::Greedy,
            // Not quite at once.
            begins: Instant::ZERO + Duration::from_micros(137 * i as u64),
            next: 0,
            due: Instant::ZERO,
            probe_at: None,
            receiver: Receiver {
                arrivals: Arrivals::new(),
                bytes: 0,
                latest: Instant::ZERO,
                since_report: 0,
                reported: Instant::ZERO,
                due: None,
            },
            arrived: 0,
            sent: 0,
        };
        Self {
            now: Instant::ZERO,
            link: PointToPoint::new(config, streams),
            flows: (0..flows).map(flow).collect(),
            rivals: Vec::new(),
            coarse: Duration::ZERO,
        }
    }

    /// Interval at which all are woken, and the slack that makes up for it.
    pub(super) fn woken_every(mut self, coarse: Duration, slack: Duration) -> Self {
        self.coarse = coarse;
        for flow in &mut self.flows {
            flow.rate = LinkRate::new(Config { slack, ..Config::default() }, random(Seed::new(1, 0), 0));
        }
        self
    }

    /// Time at which a node that is to be woken at `at` is woken.
    fn tick(&self, at: Instant) -> Instant {
        let coarse = self.coarse.as_nanos().max(1);
        Instant::from_nanos(at.as_nanos().next_multiple_of(coarse))
    }

    /// Adds a TCP that is greedy from the beginning.
    pub(super) fn with_rival(mut self, congestion: Congestion) -> Self {
        let number = self.rivals.len();
        self.rivals.push(Rival::new(congestion, number, self.now));
        self.drain_rival(number, 0);
        self
    }

    pub(super) fn change(&mut self, change: &Change) {
        self.link.change(self.now, Some(0), change);
    }

    /// Bytes and packets that entered the link from 0 to 1, and the packets that its queue dropped: bytes, drops,
    /// packets.
    pub(super) fn link_counters(&mut self) -> (u64, u64, u64) {
        let c = self.link.counters(self.now, 0, 1);
        (c.sent_bytes, c.queue_dropped_packets, c.sent_packets)
    }

    pub(super) fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        while let Some(at) = self.deadline().filter(|&at| at <= end) {
            self.now = self.now.max(at);
            self.step();
        }
        self.now = end;
    }

    /// Shares of the rate that each flow got over `span` from now on, and the rival last if there is one.
    pub(super) fn goodputs(&mut self, span: Duration) -> Vec<f64> {
        let before: Vec<u64> = self.all_arrived();
        self.run_for(span);
        let after = self.all_arrived();
        before.iter().zip(after).map(|(b, a)| (a - b) as f64 * 8.0 / span.as_secs_f64() / 1e6).collect()
    }

    fn all_arrived(&self) -> Vec<u64> {
        let rival = self.rivals.iter().map(|rival| rival.arrived);
        self.flows.iter().map(|flow| flow.arrived).chain(rival).collect()
    }

    fn deadline(&self) -> Option<Instant> {
        let flows = self.flows.iter().filter_map(|flow| flow.deadline(self.now));
        let flows = flows.filter(|_| self.coarse.is_zero());
        let tick = (!self.coarse.is_zero()).then(|| self.tick(self.now + Duration::from_nanos(1)));
        let rival = self.rivals.iter().flat_map(|rival| &rival.ends).filter_map(Machine::deadline);
        flows.chain(tick).chain(rival).chain(self.link.deadline()).min()
    }

    fn step(&mut self) {
        let now = self.now;
        self.link.wake(now);
        self.deliver();
        let awake = if self.tick(now) == now { self.flows.len() } else { 0 };
        for i in 0..awake {
            if self.flows[i].receiver.due.is_some_and(|due| due <= now) {
                self.send_report(i);
            }
            while let Some(frame) = self.flows[i].poll(now, i) {
                self.link.offer(now, 0, frame);
            }
        }
        for (number, end) in (0..self.rivals.len()).flat_map(|number| [(number, 0), (number, 1)]) {
            let tcp = &mut self.rivals[number].ends[end];
            if tcp.deadline().is_some_and(|at| at <= now) {
                tcp.wake(now);
                self.drain_rival(number, end);
            }
        }
        self.deliver();
    }

    fn deliver(&mut self) {
        while let Some(event) = self.link.poll(self.now) {
            let Event::Delivered { to, frame, .. } = event else { continue };
            match frame[0] as usize {
                rival @ RIVAL.. => self.rival_arrives(rival - RIVAL, to, frame),
                i if to == 1 => self.data_arrives(i, &frame),
                i => self.report_arrives(i, &frame),
            }
        }
    }

    fn data_arrives(&mut self, i: usize, frame: &[u8]) {
        let seen = self.tick(self.now);
        let flow = &mut self.flows[i];
        flow.arrived += frame.len() as u64;
        let rtt = flow.rate.srtt().unwrap_or(ms(1));
        if flow.receiver.on_data(seen, number(frame, 0), rtt) {
            self.send_report(i);
        }
    }

    fn send_report(&mut self, i: usize) {
        let report = self.flows[i].receiver.report(self.now);
        let mut frame = Buffer::zeroed(REPORT);
        frame[0] = i as u8;
        let numbers = [
            report.highest,
            report.arrival_ns,
            report.hold.as_nanos(),
            report.received_packets,
            report.received_bytes,
            report.mean_burst.to_bits(),
        ];
        for (place, number) in numbers.iter().enumerate() {
            frame[8 + 8 * place..][..8].copy_from_slice(&number.to_be_bytes());
        }
        self.link.offer(self.now, 1, frame);
    }

    fn report_arrives(&mut self, i: usize, frame: &[u8]) {
        let report = HopReport {
            highest: number(frame, 0),
            arrival_ns: number(frame, 1),
            hold: Duration::from_nanos(number(frame, 2)),
            received_packets: number(frame, 3),
            received_bytes: number(frame, 4),
            mean_burst: f64::from_bits(number(frame, 5)),
        };
        let flow = &mut self.flows[i];
        if flow.rate.on_report(self.now, &report).is_ok() {
            flow.probe_at = Some(self.now + flow.rate.probe_timeout());
        }
    }

    fn rival_arrives(&mut self, number: usize, end: usize, mut frame: Buffer) {
        frame.advance(14);
        self.rivals[number].ends[end].handle(self.now, Port::Below(0), Item::Packet(frame));
        self.drain_rival(number, end);
    }

    fn drain_rival(&mut self, number: usize, end: usize) {
        let rival = &mut self.rivals[number];
        while let Some((port, item)) = rival.ends[end].poll(self.now) {
            match (port, item) {
                (Port::Below(_), Item::Packet(mut packet)) => {
                    packet.prepend(14).fill(0);
                    packet[0] = (RIVAL + number) as u8;
                    self.link.offer(self.now, end, packet);
                }
                (Port::Above(_), Item::Stream(id, item)) => rival.on_item(self.now, end, id, item),
                other => panic!("{other:?}"),
            }
        }
    }
}

/// The first byte of a frame of the first rival's.
const RIVAL: usize = 250;

impl Rival {
    fn new(congestion: Congestion, number: usize, now: Instant) -> Self {
        let config = tcp::Config { congestion, ..tcp::Config::default() };
        let seed = Seed::new(9, number as u64);
        let mut client =
            Tcp::new(config.clone(), None, vec!["10.0.0.1".parse().unwrap()], seed.stream(&["client"], 0));
        let server =
            Tcp::new(config, Some(80), vec!["10.0.0.2".parse().unwrap()], seed.stream(&["server"], 0));
        let open =
            StreamItem::Open { local: "0.0.0.0:0".parse().unwrap(), remote: "10.0.0.2:80".parse().unwrap() };
        client.handle(now, Port::Above(0), Item::Stream(StreamId(0), open));
        Self { ends: [client, server], credit: 0, reader: None, arrived: 0 }
    }

    fn on_item(&mut self, now: Instant, end: usize, id: StreamId, item: StreamItem) {
        match item {
            StreamItem::Credit(credit) if end == 0 => self.credit += credit,
            StreamItem::Open { .. } => {
                let reader = StreamReader::new(16 << 20);
                self.ends[1].handle(now, Port::Above(0), Item::Stream(id, reader.first_grant()));
                self.reader = Some((id, reader));
            }
            StreamItem::Data(data) => {
                self.arrived += data.len() as u64;
                let (id, reader) = self.reader.as_mut().unwrap();
                reader.received(data.len());
                if let Some(grant) = reader.consumed(data.len()) {
                    self.ends[1].handle(now, Port::Above(0), Item::Stream(*id, grant));
                }
            }
            _ => {}
        }
        while end == 0 && self.credit > 0 {
            let len = self.credit.min(64 << 10);
            self.credit -= len;
            let data = StreamItem::Data(Buffer::zeroed(len as usize));
            self.ends[0].handle(now, Port::Above(0), Item::Stream(id, data));
        }
    }
}

impl Flow {
    fn deadline(&self, now: Instant) -> Option<Instant> {
        let send = match self.load {
            Load::Greedy => self.rate.next_send(),
            Load::Every(_) => self.rate.next_send().map(|at| at.max(self.due)),
        };
        // What is overdue is sent within the step in which it fell due.
        let send = send.map(|at| at.max(self.begins)).filter(|&at| at > now || now == Instant::ZERO);
        send.into_iter().chain(self.receiver.due).chain(self.probe_at.filter(|&at| at > now)).min()
    }

    fn poll(&mut self, now: Instant, i: usize) -> Option<Buffer> {
        if now < self.begins || self.load != Load::Greedy && now < self.due {
            return None;
        }
        let probe = self.probe_at.is_some_and(|at| at <= now);
        if probe {
            self.rate.on_probe(now);
            self.probe_at = Some(now + self.rate.probe_timeout());
        }
        if !self.rate.may_send(now) {
            return None;
        }
        let mut frame = Buffer::zeroed(FRAME);
        frame[0] = i as u8;
        frame[8..16].copy_from_slice(&self.next.to_be_bytes());
        if let Load::Every(gap) = self.load {
            self.due = self.due.max(self.begins) + gap;
        }
        self.rate.on_sent(now, self.next, PAYLOAD as u64, self.load != Load::Greedy);
        self.next += 1;
        self.sent += 1;
        self.probe_at.get_or_insert(now + self.rate.probe_timeout());
        Some(frame)
    }
}

fn random(seed: Seed, flow: usize) -> Stream {
    seed.stream(&["flow"], flow as u64)
}

fn number(frame: &[u8], place: usize) -> u64 {
    u64::from_be_bytes(frame[8 + 8 * place..][..8].try_into().unwrap())
}

/// A link of `mbit` Mbit/s and `delay` with a drop-tail queue of `packets`.
pub(super) fn link(mbit: u64, delay: Duration, packets: u32) -> Direction {
    Direction {
        rate: Some(Rate::from_mbit(mbit)),
        delay,
        queue: hopcast_link::Queue::DropTail { limit: hopcast_link::QueueLimit::Packets(packets) },
        ..Direction::default()
    }
}
