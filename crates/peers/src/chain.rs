//! For tests: machines with a datagram port below and a stream port above, in a row, joined by paths of several hops,
//! with applications at both ends, in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use hopcast_core::{
    Buffer, Datagram, Duration, Instant, Item, Machine, Port, Rate, Seed, Stream, StreamId, StreamItem,
    StreamReader, earliest,
};

pub(crate) const CLIENT: usize = 0;
pub(crate) const SERVER: usize = 1;
/// Ethernet, IPv4 and UDP.
const OVERHEAD: u64 = 14 + 20 + 8;

pub(crate) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// One hop of a direction: a queue and its rate, then loss, then delay.
#[derive(Clone, Debug)]
pub(crate) struct Hop {
    pub rate: Rate,
    /// Packets that wait.
    pub queue: usize,
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

struct Line {
    hop: Hop,
    random: Stream,
    /// Within a burst of losses.
    bad: bool,
    /// When the packets that wait have left.
    leaving: VecDeque<Instant>,
    last: Instant,
}

impl Line {
    /// When a packet arrives at the far end, each time that it does.
    fn offer(&mut self, now: Instant, len: usize) -> Vec<Instant> {
        while self.leaving.pop_front_if(|&mut at| at <= now).is_some() {}
        if self.leaving.len() > self.hop.queue {
            return Vec::new();
        }
        let begins = self.leaving.back().map_or(now, |&at| at);
        let left = begins + self.hop.rate.time_for(len as u64 + OVERHEAD);
        self.leaving.push_back(left);
        let lost = self.lost();
        let twice = self.random.chance(self.hop.duplicate);
        let jitter = self.random.below(2 * self.hop.jitter.as_nanos() + 1);
        if lost {
            return Vec::new();
        }
        let delay = (self.hop.delay + Duration::from_nanos(jitter)).saturating_sub(self.hop.jitter);
        let mut at = left + delay;
        if !self.hop.reorder {
            at = at.max(self.last);
            self.last = at;
        }
        vec![at; 1 + usize::from(twice)]
    }

    fn lost(&mut self) -> bool {
        let Hop { loss, burst, .. } = self.hop;
        if burst <= 1.0 {
            return self.random.chance(loss);
        }
        let ends = 1.0 / burst;
        let changes = if self.bad { ends } else { ends * loss / (1.0 - loss) };
        self.bad ^= self.random.chance(changes);
        self.bad
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
    /// Of each path, there and back, its hops.
    paths: Vec<[Vec<Line>; 2]>,
    /// Datagrams under way: when each arrives at which hop of which path and direction; the order of events at an
    /// instant is that of their numbers.
    under_way: BTreeMap<(Instant, u64), (usize, usize, usize, Buffer)>,
    events: u64,
    pub apps: [BTreeMap<StreamId, App>; 2],
    /// The bytes that the server's applications write, and whether they finish, once accepted.
    pub accept: (u64, bool),
    pub accept_reading: bool,
    pub window: u64,
    /// Whether what arrives may be anything, since the datagrams are.
    pub unchecked: bool,
    /// A digest of each datagram that left an end, and when.
    pub trace: u64,
    /// Further losses on the way.
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
        let line = |number: usize, end: u64, hop: &Hop| Line {
            hop: hop.clone(),
            random: seed.stream(&["line", &number.to_string()], end),
            bad: false,
            leaving: VecDeque::new(),
            last: Instant::ZERO,
        };
        let path = |path: usize| {
            let number = |hop| path * hops.len() + hop;
            [0, 1].map(|end| hops.iter().enumerate().map(|(at, hop)| line(number(at), end, hop)).collect())
        };
        Self {
            now: Instant::ZERO,
            machines: (0..machines)
                .map(|place| make(place, seed.stream(&["machine"], place as u64)))
                .collect(),
            paths: (1..machines).map(|number| path(number - 1)).collect(),
            under_way: BTreeMap::new(),
            events: 0,
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
        for line in self.paths[path].iter_mut().flatten() {
            line.hop.rate = rate;
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
        !self.under_way.is_empty() || self.machines.iter().any(|machine| machine.deadline().is_some())
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
        let datagram = Datagram { local: address(place), remote, payload: Buffer::copy_from(payload) };
        self.machines[place].handle(self.now, Port::Below(0), Item::Datagram(datagram));
        self.drain(place);
    }

    pub(crate) fn reset(&mut self, end: usize, id: StreamId) {
        self.hand(end, Port::Above(0), Item::Stream(id, StreamItem::Reset));
    }

    /// Lets an application do what it has to do: read, write, finish.
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
            let arrival = self.under_way.first_key_value().map(|(&(at, _), _)| at);
            let machines = self.machines.iter().map(Machine::deadline).fold(None, earliest);
            let Some(next) = earliest(arrival, machines).filter(|&next| next <= until) else { break };
            self.now = self.now.max(next);
            if arrival == Some(next) {
                let (_, (path, direction, hop, payload)) = self.under_way.pop_first().unwrap();
                self.go_on(path, direction, hop, payload);
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

    fn go_on(&mut self, path: usize, direction: usize, hop: usize, payload: Buffer) {
        if hop == self.paths[path][direction].len() {
            let (from, to) = if direction == 0 { (path, path + 1) } else { (path + 1, path) };
            self.arrive(to, address(from), &payload);
            return;
        }
        for at in self.paths[path][direction][hop].offer(self.now, payload.len()) {
            self.events += 1;
            self.under_way.insert((at, self.events), (path, direction, hop + 1, payload.clone()));
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
        self.events += 1;
        let path = if direction == 0 { place } else { place - 1 };
        self.under_way.insert((self.now, self.events), (path, direction, 0, payload));
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
