//! Two TCPs joined by a path, and an application at each end, in virtual time.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};

use hopcast_core::{
    Buffer, Duration, Fraction, Instant, Item, Machine, Port, Rate, Seed, StreamId, StreamItem, StreamReader,
    earliest,
};
use hopcast_link::{self as link, Change, Event, Jitter, Link, Loss, PointToPoint, Queue, QueueLimit};

use crate::tcp::wire::{self, Header};
use crate::tcp::{Config, Tcp};

pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;
pub(super) const SERVER_PORT: u16 = 80;
/// The length of Ethernet's header.
const ETHERNET: usize = 14;

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// One direction of the path: a queue and its rate, then several hops that lose, then delay.
#[derive(Clone, Debug)]
pub(super) struct Direction {
    pub rate: Option<Rate>,
    /// Packets that wait.
    pub queue: u32,
    pub delay: Duration,
    pub loss: f64,
    /// Additional delay, uniformly up to this, each packet on its own: they overtake each other.
    pub jitter: Duration,
    pub duplicate: f64,
    pub corrupt: f64,
    /// Packets longer than this are answered with *packet too big*.
    pub mtu: usize,
}

impl Default for Direction {
    fn default() -> Self {
        Self {
            rate: Some(Rate::from_mbit(100)),
            queue: 1000,
            delay: ms(5),
            loss: 0.0,
            jitter: Duration::ZERO,
            duplicate: 0.0,
            corrupt: 0.0,
            mtu: 1500,
        }
    }
}

impl Direction {
    /// Its link model.
    fn model(&self) -> link::Direction {
        link::Direction {
            rate: self.rate,
            queue: Queue::DropTail { limit: QueueLimit::Packets(self.queue) },
            loss: self.loss(),
            delay: self.mean_delay(),
            jitter: Jitter::Uniform(self.jitter / 2),
            reorder: true,
            duplicate: share(self.duplicate),
            corrupt: share(self.corrupt),
            ..link::Direction::default()
        }
    }

    fn loss(&self) -> Loss {
        Loss::Independent(share(self.loss))
    }

    fn mean_delay(&self) -> Duration {
        self.delay + self.jitter / 2
    }
}

fn share(share: f64) -> Fraction {
    Fraction::new(share).expect("a share")
}

/// An application's side of one stream.
#[derive(Debug)]
pub(super) struct App {
    /// Bytes to write, and whether to finish after them.
    pub to_write: u64,
    pub finish: bool,
    pub written: u64,
    pub finished: bool,
    pub credit: u64,
    reader: StreamReader,
    granted: bool,
    /// Whether to grant credit for what is read.
    pub reading: bool,
    pub read: u64,
    pub peer_finished: bool,
    pub reset: bool,
    pub opened: bool,
    pub transmitted: u64,
    salt: u8,
}

impl App {
    fn new(salt: u8, window: u64) -> Self {
        Self {
            to_write: 0,
            finish: false,
            written: 0,
            finished: false,
            credit: 0,
            reader: StreamReader::new(window),
            granted: false,
            reading: true,
            read: 0,
            peer_finished: false,
            reset: false,
            opened: false,
            transmitted: 0,
            salt,
        }
    }
}

impl App {
    /// Begins to read, `window` bytes ahead.
    pub(super) fn set_reading(&mut self, window: u64) {
        self.reader = StreamReader::new(window);
        self.reading = true;
    }
}

/// Whether a packet is lost: who sent it, its header, its payload's length.
type Lose = Box<dyn FnMut(usize, &Header, usize) -> bool>;

fn pattern(salt: u8, at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8 ^ salt
}

pub(super) struct Pair {
    pub now: Instant,
    pub tcp: [Tcp; 2],
    link: PointToPoint,
    directions: [Direction; 2],
    /// Packets that were offered to each direction, and the largest number that waited.
    offered: [u64; 2],
    longest_queue: [u64; 2],
    pub apps: [BTreeMap<StreamId, App>; 2],
    /// The bytes that the server's applications are to write and whether to finish, once accepted.
    pub accept: (u64, bool),
    pub read_window: u64,
    /// Each packet that either end sent: when, from whom, the bytes.
    pub sent: Option<Vec<(Instant, usize, Buffer)>>,
    /// Further losses on the path.
    pub lose: Option<Lose>,
}

impl Pair {
    pub(super) fn new(seed: u64, config: Config, direction: Direction) -> Self {
        Self::asymmetric(seed, config.clone(), config, [direction.clone(), direction])
    }

    pub(super) fn asymmetric(seed: u64, client: Config, server: Config, directions: [Direction; 2]) -> Self {
        let seed = Seed::new(seed, 0);
        let addresses = |host: u8| -> Vec<IpAddr> {
            vec![IpAddr::from([10, 0, 0, host]), format!("fd00::{host}").parse().unwrap()]
        };
        let [forward, backward] = directions.each_ref().map(Direction::model);
        let config = link::Config { forward, backward, ..link::Config::default() };
        let streams = ["there", "back"].map(|name| seed.stream(&[name], 0));
        Self {
            now: Instant::ZERO,
            tcp: [
                Tcp::new(client, None, addresses(1), seed.stream(&["client"], 0)),
                Tcp::new(server, Some(SERVER_PORT), addresses(2), seed.stream(&["server"], 0)),
            ],
            link: PointToPoint::new(config, streams),
            directions,
            offered: [0; 2],
            longest_queue: [0; 2],
            apps: [BTreeMap::new(), BTreeMap::new()],
            accept: (0, true),
            read_window: 1 << 20,
            sent: None,
            lose: None,
        }
    }

    pub(super) fn change(&mut self, from: usize, change: impl FnOnce(&mut Direction)) {
        let direction = &mut self.directions[from];
        change(direction);
        for change in [
            Change::Rate(direction.rate),
            Change::Delay(direction.mean_delay()),
            Change::Jitter(Jitter::Uniform(direction.jitter / 2)),
            Change::Loss(direction.loss()),
        ] {
            self.link.change(self.now, Some(from), &change);
        }
    }

    /// Maximum number of packets that waited since the last reset.
    pub(super) fn longest_queue(&self, from: usize) -> u64 {
        self.longest_queue[from]
    }

    pub(super) fn reset_longest_queue(&mut self, from: usize) {
        self.longest_queue[from] = 0;
    }

    /// Offers a packet to the link.
    fn offer(&mut self, from: usize, mut packet: Buffer) {
        packet.prepend(ETHERNET).fill(0);
        self.link.offer(self.now, from, packet);
        self.offered[from] += 1;
        let counters = self.link.counters(self.now, from, 1 - from);
        let there = self.offered[from] - counters.sent_packets - counters.queue_dropped_packets;
        // One of them is in serialisation.
        self.longest_queue[from] = self.longest_queue[from].max(there.saturating_sub(1));
    }

    pub(super) fn counter(&self, host: usize, name: &str) -> u64 {
        let mut found = None;
        self.tcp[host].counters(&mut |counter, value| {
            if counter == name {
                found = Some(value);
            }
        });
        found.expect("a counter of this name")
    }

    /// Opens a connection from the client over IPv4, to write `bytes` and then perhaps finish.
    pub(super) fn open(&mut self, bytes: u64, finish: bool) -> StreamId {
        self.open_to("10.0.0.2:80".parse().unwrap(), bytes, finish)
    }

    pub(super) fn open_to(&mut self, remote: SocketAddr, bytes: u64, finish: bool) -> StreamId {
        let id = StreamId(2 * self.apps[CLIENT].len() as u64);
        let unspecified: IpAddr = if remote.is_ipv4() { [0, 0, 0, 0].into() } else { "::".parse().unwrap() };
        let mut app = App::new(1, self.read_window);
        (app.to_write, app.finish) = (bytes, finish);
        self.apps[CLIENT].insert(id, app);
        self.give(CLIENT, id, StreamItem::Open { local: SocketAddr::new(unspecified, 0), remote });
        id
    }

    /// The server's stream of the first connection that it accepted.
    pub(super) fn accepted(&self) -> Option<StreamId> {
        self.apps[SERVER].keys().next().copied()
    }

    pub(super) fn client(&self) -> &App {
        self.apps[CLIENT].values().next().unwrap()
    }

    pub(super) fn server(&self) -> &App {
        self.apps[SERVER].values().next().expect("a connection that was accepted")
    }

    pub(super) fn give(&mut self, host: usize, id: StreamId, item: StreamItem) {
        self.tcp[host].handle(self.now, Port::Above(0), Item::Stream(id, item));
        self.drain(host);
    }

    /// A packet arrives at `host`, wherever it is from.
    pub(super) fn inject(&mut self, host: usize, packet: Buffer) {
        self.tcp[host].handle(self.now, Port::Below(0), Item::Packet(packet));
        self.drain(host);
    }

    fn drain(&mut self, host: usize) {
        while let Some((port, item)) = self.tcp[host].poll(self.now) {
            match (port, item) {
                (Port::Below(0), Item::Packet(packet)) => self.transmit(host, packet),
                (Port::Above(0), Item::Stream(id, item)) => self.on_item(host, id, item),
                other => panic!("{other:?}"),
            }
        }
        if let Some(at) = self.tcp[host].deadline() {
            assert!(at > self.now, "a deadline of {at} at {}", self.now);
        }
    }

    fn transmit(&mut self, host: usize, packet: Buffer) {
        if let Some(sent) = &mut self.sent {
            sent.push((self.now, host, packet.clone()));
        }
        if let Some(lose) = &mut self.lose {
            let (header, payload) = read(&packet);
            if lose(host, &header, payload.len()) {
                return;
            }
        }
        let mtu = self.directions[host].mtu;
        if packet.len() > mtu {
            let error = too_big(&packet, mtu as u32);
            self.tcp[host].handle(self.now, Port::Below(0), Item::Packet(error));
            return;
        }
        self.offer(host, packet);
    }

    fn on_item(&mut self, host: usize, id: StreamId, item: StreamItem) {
        if let StreamItem::Open { .. } = item {
            assert_eq!(host, SERVER);
            assert_eq!(id.0 % 2, 1, "a stream opened by the machine below has an odd number");
            let mut app = App::new(2, self.read_window);
            (app.to_write, app.finish) = self.accept;
            app.opened = true;
            app.reading = self.read_window > 0;
            assert!(self.apps[SERVER].insert(id, app).is_none());
            self.act(host, id);
            return;
        }
        let app = self.apps[host].get_mut(&id).expect("a stream that is known");
        assert!(!app.reset, "nothing follows a reset");
        match item {
            StreamItem::Opened => app.opened = true,
            StreamItem::Credit(credit) => app.credit += credit,
            StreamItem::Data(bytes) => {
                assert!(!app.peer_finished && !bytes.is_empty());
                let other = if host == CLIENT { 2 } else { 1 };
                for &byte in &bytes[..] {
                    assert_eq!(byte, pattern(other, app.read), "byte {} is intact", app.read);
                    app.read += 1;
                }
                assert!(app.reader.received(bytes.len()), "more than was granted");
                if app.reading
                    && let Some(grant) = app.reader.consumed(bytes.len())
                {
                    self.tcp[host].handle(self.now, Port::Above(0), Item::Stream(id, grant));
                }
            }
            StreamItem::Finish => {
                assert!(!app.peer_finished);
                app.peer_finished = true;
            }
            StreamItem::Reset => app.reset = true,
            StreamItem::Transmitted(offset) => {
                assert!(offset > app.transmitted && offset <= app.written);
                app.transmitted = offset;
            }
            StreamItem::Open { .. } => unreachable!(),
        }
        self.act(host, id);
    }

    /// Writes and grants what can be.
    pub(super) fn act(&mut self, host: usize, id: StreamId) {
        let Some(app) = self.apps[host].get_mut(&id) else { return };
        let mut items = Vec::new();
        if !app.granted && app.reading && !app.reset {
            app.granted = true;
            items.push(app.reader.first_grant());
        }
        let salt = app.salt;
        while app.opened && app.credit > 0 && app.written < app.to_write && !app.reset {
            let len = app.credit.min(app.to_write - app.written).min(64 << 10);
            let bytes: Vec<u8> = (app.written..app.written + len).map(|at| pattern(salt, at)).collect();
            items.push(StreamItem::Data(Buffer::copy_from(&bytes)));
            app.written += len;
            app.credit -= len;
        }
        if app.opened && app.finish && app.written == app.to_write && !app.finished && !app.reset {
            app.finished = true;
            items.push(StreamItem::Finish);
        }
        for item in items {
            self.tcp[host].handle(self.now, Port::Above(0), Item::Stream(id, item));
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let tcp = self.tcp.iter().filter_map(Machine::deadline).min();
        earliest(tcp, self.link.deadline())
    }

    /// Has an application write more.
    pub(super) fn write(&mut self, host: usize, id: StreamId, bytes: u64) {
        self.apps[host].get_mut(&id).unwrap().to_write += bytes;
        self.act(host, id);
        self.drain(host);
    }

    /// Whether both ends have heard the other's end.
    pub(super) fn is_over(&self) -> bool {
        self.client().peer_finished && self.apps[SERVER].values().any(|app| app.peer_finished)
    }

    /// Runs until both ends have heard the other's end; false if that takes longer than `span`.
    pub(super) fn run_to_the_end(&mut self, span: Duration) -> bool {
        self.run_while(span, |pair| !pair.is_over())
    }

    /// Runs until `until`; false if nothing is left to happen before.
    pub(super) fn run_until(&mut self, until: Instant) -> bool {
        loop {
            let Some(at) = self.deadline() else { return false };
            if at > until {
                self.now = until;
                return true;
            }
            self.now = self.now.max(at);
            self.step();
        }
    }

    pub(super) fn run_for(&mut self, span: Duration) -> bool {
        self.run_until(self.now + span)
    }

    /// Runs until `done`, for at most `span`. False if it did not come to that.
    pub(super) fn run_while(&mut self, span: Duration, mut going: impl FnMut(&Self) -> bool) -> bool {
        let end = self.now + span;
        while going(self) {
            match self.deadline() {
                Some(at) if at <= end => self.now = self.now.max(at),
                _ => return false,
            }
            self.step();
        }
        true
    }

    fn step(&mut self) {
        let now = self.now;
        self.link.wake(now);
        while let Some(event) = self.link.poll(now) {
            if let Event::Delivered { to, mut frame, .. } = event {
                frame.advance(ETHERNET);
                self.inject(to, frame);
            }
        }
        for host in 0..2 {
            if self.tcp[host].deadline().is_some_and(|at| at <= now) {
                self.tcp[host].wake(now);
                self.drain(host);
            }
        }
    }

    /// Goodput in Mbit/s from the client to the server over `span` from now on.
    pub(super) fn goodput(&mut self, span: Duration) -> f64 {
        let before = self.apps[SERVER].values().map(|app| app.read).sum::<u64>();
        self.run_for(span);
        let after = self.apps[SERVER].values().map(|app| app.read).sum::<u64>();
        (after - before) as f64 * 8.0 / span.as_secs_f64() / 1e6
    }
}

/// The TCP header and the payload of a packet.
pub(super) fn read(packet: &[u8]) -> (Header, &[u8]) {
    let ip = hopcast_wire::ip::parse(packet).unwrap();
    let segment = &packet[ip.payload()];
    let (header, offset) = wire::parse(ip.source, ip.destination, segment).unwrap();
    (header, &segment[offset..])
}

/// A packet with a TCP header of one's own making.
pub(super) fn forge(source: SocketAddr, destination: SocketAddr, header: &Header, payload: &[u8]) -> Buffer {
    let mut packet = Buffer::copy_from(payload);
    wire::prepend(&mut packet, source, destination, header);
    hopcast_wire::ip::prepend(&mut packet, source.ip(), destination.ip(), 6, 64, 0);
    packet
}

/// The answer of a router of the path to a packet that does not fit.
fn too_big(packet: &[u8], mtu: u32) -> Buffer {
    use hopcast_wire::icmp;
    let header = hopcast_wire::ip::parse(packet).unwrap();
    let router: IpAddr = match header.source {
        IpAddr::V4(_) => "10.0.9.9".parse().unwrap(),
        IpAddr::V6(_) => "fd00:9::9".parse().unwrap(),
    };
    let mut buffer = Buffer::copy_from(icmp::quote(header.version, packet));
    icmp::prepend(&mut buffer, router, header.source, icmp::Message::PacketTooBig { mtu });
    let protocol = icmp::protocol(header.version);
    hopcast_wire::ip::prepend(&mut buffer, router, header.source, protocol, 64, 0);
    buffer
}
