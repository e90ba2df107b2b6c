//! For tests: machines with a datagram port below and a stream port above, in a row, joined by paths of several hops,
//! with applications at both ends, in virtual time.

use std::collections::BTreeMap;
use std::net::SocketAddr;

use hopcast_core::{
    Buffer, Datagram, Duration, Fraction, Instant, Item, Machine, Port, Rate, Seed, Stream, StreamId,
    StreamItem, StreamReader, earliest,
};
use hopcast_link::{Change, Config, Direction, Event, Jitter, Link, Loss, PointToPoint, Queue, QueueLimit};

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;
/// Bytes of a frame around a datagram: the headers of Ethernet, IPv4 (RFC 791) and UDP (RFC 768).
const OVERHEAD: usize = 14 + 20 + 8;

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// One hop of a direction: a queue and its rate, then loss, then delay.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    pub rate: Rate,
    /// Packets that wait.
    pub queue: u32,
    pub loss: f64,
    /// Packets that are lost in a row, on the average (Gilbert-Elliott); at 1 each is lost on its own.
    pub burst: f64,
    pub duplicate: f64,
    pub delay: Duration,
    /// The delay varies uniformly by up to this, either way.
    pub jitter: Duration,
    /// Whether they overtake each other.
    pub reorder: bool,
}

impl Default for Hop {
    fn default() -> Self {
        Self {
            rate: Rate::from_mbit(100),
            queue: 1000,
            loss: 0.0,
            burst: 1.0,
            duplicate: 0.0,
            delay: ms(10),
            jitter: Duration::ZERO,
            reorder: false,
        }
    }
}

impl Hop {
    /// The link model of one of its directions.
    fn direction(&self) -> Direction {
        let share = |share: f64| Fraction::new(share).expect("a share");
        let loss = if self.burst <= 1.0 {
            Loss::Independent(share(self.loss))
        } else {
            let r = 1.0 / self.burst;
            let p = r * self.loss / (1.0 - self.loss);
            Loss::GilbertElliott { p: share(p), r: share(r), k: share(1.0), h: share(0.0) }
        };
        Direction {
            rate: Some(self.rate),
            queue: Queue::DropTail { limit: QueueLimit::Packets(self.queue) },
            loss,
            delay: self.delay,
            jitter: Jitter::Uniform(self.jitter),
            reorder: self.reorder,
            duplicate: share(self.duplicate),
            mtu: u32::MAX,
            ..Direction::default()
        }
    }
}

/// An application's side of one stream.
#[derive(Debug)]
pub(crate) struct App {
    /// Bytes to write, and whether to finish after them.
    pub to_write: u64,
    pub finish: bool,
    pub written: u64,
    pub finished: bool,
    pub credit: u64,
    /// Whether to grant credit for what is read.
    pub reading: bool,
    granted: bool,
    reader: StreamReader,
    pub read: u64,
    pub peer_finished: bool,
    pub reset: bool,
    pub opened: bool,
    pub transmitted: u64,
    salt: u8,
}

impl App {
    fn new(salt: u8, window: u64, (to_write, finish): (u64, bool)) -> Self {
        Self {
            to_write,
            finish,
            written: 0,
            finished: false,
            credit: 0,
            reading: true,
            granted: false,
            reader: StreamReader::new(window),
            read: 0,
            peer_finished: false,
            reset: false,
            opened: false,
            transmitted: 0,
            salt,
        }
    }
}

fn pattern(salt: u8, at: u64) -> u8 {
    (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32) as u8 ^ salt
}

/// Whether a datagram is lost: the place of who sent it, and its bytes.
type Lose = Box<dyn FnMut(usize, &[u8]) -> bool>;

pub(crate) struct Chain<M> {
    pub now: Instant,
    /// The first is the client's, the last the server's.
    pub machines: Vec<M>,
    /// Of each path its hops, from the client to the server.
    paths: Vec<Vec<PointToPoint>>,
    pub apps: [BTreeMap<StreamId, App>; 2],
    /// The bytes that the server's applications write, and whether they finish, once accepted.
    pub accept: (u64, bool),
    pub accept_reading: bool,
    pub window: u64,
    /// Whether any bytes may arrive, since datagrams are forged.
    pub unchecked: bool,
    /// A digest of each datagram that left an end, and when.
    pub trace: u64,
    /// Further losses on the path.
    pub lose: Option<Lose>,
}

/// The address of the machine in this place.
pub(crate) fn address(place: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, place as u8], 4000))
}

impl<M: Machine + core::fmt::Debug> Chain<M> {
    /// Machines in a row, with a path of these hops between any two. `make` is given a machine's place and a stream of
    /// its own.
    pub(crate) fn of(seed: u64, machines: usize, hops: &[Hop], make: impl Fn(usize, Stream) -> M) -> Self {
        let seed = Seed::new(seed, 0);
        let link = |path: usize, number: usize| {
            let hop = &hops[number];
            let number = (path * hops.len() + number).to_string();
            let config = Config { forward: hop.direction(), backward: hop.direction(), ..Config::default() };
            PointToPoint::new(config, [0, 1].map(|end| seed.stream(&["line", &number], end)))
        };
        Self {
            now: Instant::ZERO,
            machines: (0..machines)
                .map(|place| make(place, seed.stream(&["machine"], place as u64)))
                .collect(),
            paths: (1..machines)
                .map(|number| (0..hops.len()).map(|hop| link(number - 1, hop)).collect())
                .collect(),
            apps: [BTreeMap::new(), BTreeMap::new()],
            accept: (0, false),
            accept_reading: true,
            window: 16 << 20,
            unchecked: false,
            trace: 0,
            lose: None,
        }
    }

    /// Sets the rate of a path, both ways.
    pub(crate) fn slow(&mut self, path: usize, rate: Rate) {
        for link in &mut self.paths[path] {
            link.change(self.now, None, &Change::Rate(Some(rate)));
        }
    }

    /// The client opens a stream, to write `to_write` bytes and to finish if asked to.
    pub(crate) fn open(&mut self, to_write: u64, finish: bool) -> StreamId {
        let id = StreamId(2 * self.apps[CLIENT].len() as u64);
        self.apps[CLIENT].insert(id, App::new(0, self.window, (to_write, finish)));
        let remote = address(self.place(SERVER));
        let item = StreamItem::Open { local: address(0), remote };
        self.hand(CLIENT, Port::Above(0), Item::Stream(id, item));
        self.act(CLIENT, id);
        id
    }

    pub(crate) fn client(&mut self) -> &mut App {
        self.apps[CLIENT].values_mut().next().unwrap()
    }

    pub(crate) fn server(&mut self) -> &mut App {
        self.apps[SERVER].values_mut().next().unwrap()
    }

    pub(crate) fn counter(&self, end: usize, wanted: &str) -> u64 {
        let mut found = None;
        self.machines[self.place(end)].counters(&mut |name, value| {
            if name == wanted {
                found = Some(value);
            }
        });
        found.unwrap()
    }

    /// Whether a machine has a deadline, or anything is on its way.
    pub(crate) fn is_busy(&self) -> bool {
        self.paths.iter().flatten().any(|link| link.deadline().is_some())
            || self.machines.iter().any(|machine| machine.deadline().is_some())
    }

    /// The place of an end's machine.
    fn place(&self, end: usize) -> usize {
        if end == CLIENT { 0 } else { self.machines.len() - 1 }
    }

    /// A datagram of its neighbour's arrives at an end.
    pub(crate) fn inject(&mut self, end: usize, payload: &[u8]) {
        let place = self.place(end);
        self.inject_from(end, address(if end == CLIENT { 1 } else { place - 1 }), payload);
    }

    pub(crate) fn inject_from(&mut self, end: usize, remote: SocketAddr, payload: &[u8]) {
        self.arrive(self.place(end), remote, payload);
    }

    fn arrive(&mut self, place: usize, remote: SocketAddr, payload: &[u8]) {
        let datagram = Datagram::new(address(place), remote, Buffer::copy_from(payload));
        self.machines[place].handle(self.now, Port::Below(0), Item::Datagram(datagram));
        self.drain(place);
    }

    pub(crate) fn reset(&mut self, end: usize, id: StreamId) {
        self.hand(end, Port::Above(0), Item::Stream(id, StreamItem::Reset));
    }

    /// Lets an application read, write and finish.
    pub(crate) fn act(&mut self, end: usize, id: StreamId) {
        loop {
            let Some(app) = self.apps[end].get_mut(&id) else { return };
            let item = if app.reset {
                return;
            } else if app.reading && !app.granted {
                app.granted = true;
                app.reader.first_grant()
            } else if app.written < app.to_write && app.credit > 0 {
                let len = (app.to_write - app.written).min(app.credit).min(64 << 10);
                let bytes: Vec<u8> =
                    (app.written..app.written + len).map(|at| pattern(app.salt, at)).collect();
                app.written += len;
                app.credit -= len;
                StreamItem::Data(Buffer::copy_from(&bytes))
            } else if app.finish && !app.finished && app.written == app.to_write {
                app.finished = true;
                StreamItem::Finish
            } else {
                return;
            };
            self.hand(end, Port::Above(0), Item::Stream(id, item));
        }
    }

    /// Runs for so long.
    pub(crate) fn run(&mut self, span: Duration) {
        let until = self.now + span;
        self.run_while(until, |_| true);
        self.now = until;
    }

    /// Runs until something holds; fails if that takes longer than `span`.
    pub(crate) fn run_until(&mut self, span: Duration, mut holds: impl FnMut(&Self) -> bool) {
        let until = self.now + span;
        self.run_while(until, |pair| !holds(pair));
        assert!(holds(self), "not within {span:?}: {:?} {:?}", self.apps, self.machines);
    }

    fn run_while(&mut self, until: Instant, mut goes_on: impl FnMut(&Self) -> bool) {
        while goes_on(self) {
            let arrival = self.paths.iter().flatten().map(Link::deadline).fold(None, earliest);
            let machines = self.machines.iter().map(Machine::deadline).fold(None, earliest);
            let Some(next) = earliest(arrival, machines).filter(|&next| next <= until) else { break };
            self.now = self.now.max(next);
            if arrival == Some(next) {
                self.deliver();
                continue;
            }
            for place in 0..self.machines.len() {
                if self.machines[place].deadline().is_some_and(|at| at <= self.now) {
                    self.machines[place].wake(self.now);
                    self.drain(place);
                }
            }
        }
    }

    /// Takes what the links have delivered by now to the next hop, or to where it goes.
    fn deliver(&mut self) {
        for path in 0..self.paths.len() {
            for hop in 0..self.paths[path].len() {
                self.paths[path][hop].wake(self.now);
                while let Some(event) = self.paths[path][hop].poll(self.now) {
                    let Event::Delivered { to, mut frame, .. } = event else { continue };
                    let next = if to == 1 { hop.checked_add(1) } else { hop.checked_sub(1) };
                    match next.and_then(|next| self.paths[path].get_mut(next)) {
                        Some(link) => link.offer(self.now, 1 - to, frame),
                        None => {
                            frame.advance(OVERHEAD);
                            self.arrive(path + to, address(path + 1 - to), &frame);
                        }
                    }
                }
            }
        }
    }

    fn hand(&mut self, end: usize, port: Port, item: Item) {
        let place = self.place(end);
        self.machines[place].handle(self.now, port, item);
        self.drain(place);
    }

    fn drain(&mut self, place: usize) {
        let end = if place == 0 { CLIENT } else { SERVER };
        let mut touched = Vec::new();
        while let Some((port, item)) = self.machines[place].poll(self.now) {
            match (port, item) {
                (Port::Below(0), Item::Datagram(datagram)) => {
                    assert_eq!(datagram.local, address(place));
                    let forwards = datagram.remote == address(place + 1);
                    assert!(forwards || datagram.remote == address(place.wrapping_sub(1)));
                    self.leave(place, usize::from(!forwards), datagram.payload);
                }
                (Port::Above(0), Item::Stream(id, item)) => {
                    assert!(place == 0 || place + 1 == self.machines.len(), "streams end at the ends");
                    self.take(end, id, item);
                    if !touched.contains(&id) {
                        touched.push(id);
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        let deadline = self.machines[place].deadline();
        assert!(deadline.is_none_or(|at| at > self.now), "{deadline:?} at {:?}", self.now);
        for id in touched {
            self.act(end, id);
        }
    }

    fn leave(&mut self, place: usize, direction: usize, payload: Buffer) {
        let fold = |trace: u64, value: u64| (trace ^ value).wrapping_mul(0x100_0000_01b3).rotate_left(5);
        self.trace = fold(self.trace, self.now.as_nanos());
        self.trace = payload.iter().fold(self.trace, |trace, &byte| fold(trace, byte.into()));
        if self.lose.as_mut().is_some_and(|lose| lose(place, &payload)) {
            return;
        }
        let mut frame = payload;
        frame.prepend(OVERHEAD).fill(0);
        let path = if direction == 0 { place } else { place - 1 };
        let hop = if direction == 0 { 0 } else { self.paths[path].len() - 1 };
        self.paths[path][hop].offer(self.now, direction, frame);
    }

    fn take(&mut self, end: usize, id: StreamId, item: StreamItem) {
        if let StreamItem::Open { .. } = item {
            assert!(end == SERVER || self.unchecked);
            let mut app = App::new(1, self.window, self.accept);
            app.reading = self.accept_reading;
            app.opened = true;
            assert!(self.apps[end].insert(id, app).is_none(), "opened twice");
            return;
        }
        let app = self.apps[end].get_mut(&id).expect("an item of a stream that stands");
        assert!(!app.reset, "{item:?} after a reset");
        match item {
            StreamItem::Opened => {
                assert!(!core::mem::replace(&mut app.opened, true));
            }
            StreamItem::Credit(bytes) => app.credit += bytes,
            StreamItem::Transmitted(upto) => {
                assert!(upto > app.transmitted && upto <= app.written);
                app.transmitted = upto;
            }
            StreamItem::Data(data) => {
                assert!(!app.peer_finished && !data.is_empty());
                assert!(app.reader.received(data.len()), "more than was granted");
                for &byte in data.iter() {
                    let expected = pattern(1 - app.salt, app.read);
                    assert!(byte == expected || self.unchecked, "{byte} at {}", app.read);
                    app.read += 1;
                }
                if let Some(StreamItem::Credit(bytes)) = app.reader.consumed(data.len()) {
                    self.hand(end, Port::Above(0), Item::Stream(id, StreamItem::Credit(bytes)));
                }
            }
            StreamItem::Finish => assert!(!core::mem::replace(&mut app.peer_finished, true)),
            StreamItem::Reset => app.reset = true,
            StreamItem::Open { .. } => unreachable!(),
        }
    }
}
