//! Two KCPs joined by a path of several hops, and applications at each end, in virtual time.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use hopcast_core::{
    Buffer, Datagram, Duration, Instant, Item, Machine, Port, Rate, Seed, Stream, StreamId, StreamItem,
    StreamReader, earliest,
};

use crate::kcp::{Config, Kcp};

pub(super) const CLIENT: usize = 0;
pub(super) const SERVER: usize = 1;
/// Ethernet, IPv4 and UDP.
const OVERHEAD: u64 = 14 + 20 + 8;

pub(super) const fn ms(millis: u64) -> Duration {
    Duration::from_millis(millis)
}

/// One hop of a direction: a queue and its rate, then loss, then delay.
#[derive(Clone, Debug)]
pub(super) struct Hop {
    pub rate: Rate,
    /// Packets that wait.
    pub queue: usize,
    pub loss: f64,
    pub duplicate: f64,
    pub delay: Duration,
    /// The delay is up to so much more or less, uniformly.
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
        let lost = self.random.chance(self.hop.loss);
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
}

/// What an application does with one stream.
#[derive(Debug)]
pub(super) struct App {
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

/// Whether a datagram is lost: who sent it, and its bytes.
type Lose = Box<dyn FnMut(usize, &[u8]) -> bool>;

pub(super) struct Pair {
    pub now: Instant,
    pub kcp: [Kcp; 2],
    lines: [Vec<Line>; 2],
    /// What arrives when at which hop of which direction; the order of events at an instant is that of their numbers.
    under_way: BTreeMap<(Instant, u64), (usize, usize, Buffer)>,
    events: u64,
    pub apps: [BTreeMap<StreamId, App>; 2],
    /// What the server's applications write and whether they finish, once accepted.
    pub accept: (u64, bool),
    pub accept_reading: bool,
    pub window: u64,
    /// Whether what arrives may be anything, since the datagrams are.
    pub unchecked: bool,
    /// A digest of each datagram that left an end, and when.
    pub trace: u64,
    /// What else is lost on the way.
    pub lose: Option<Lose>,
}

pub(super) fn address(host: u8) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], 4000))
}

impl Pair {
    pub(super) fn new(seed: u64, config: &Config, hops: &[Hop]) -> Self {
        let seed = Seed::new(seed, 0);
        let kcp = |end: usize| {
            let (local, remote) = (address(end as u8), address(1 - end as u8));
            Kcp::new(config.clone(), local, remote, seed.stream(&["kcp"], end as u64))
        };
        let line = |end: u64, (number, hop): (usize, &Hop)| Line {
            hop: hop.clone(),
            random: seed.stream(&["line", &number.to_string()], end),
            leaving: VecDeque::new(),
            last: Instant::ZERO,
        };
        Self {
            now: Instant::ZERO,
            kcp: [kcp(CLIENT), kcp(SERVER)],
            lines: [0, 1].map(|end| hops.iter().enumerate().map(|hop| line(end, hop)).collect()),
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

    /// The client opens a stream, to write so many bytes and to finish if asked to.
    pub(super) fn open(&mut self, to_write: u64, finish: bool) -> StreamId {
        let id = StreamId(2 * self.apps[CLIENT].len() as u64);
        self.apps[CLIENT].insert(id, App::new(0, self.window, (to_write, finish)));
        let item = StreamItem::Open { local: address(0), remote: address(1) };
        self.hand(CLIENT, Port::Above(0), Item::Stream(id, item));
        self.act(CLIENT, id);
        id
    }

    pub(super) fn client(&mut self) -> &mut App {
        self.apps[CLIENT].values_mut().next().unwrap()
    }

    pub(super) fn server(&mut self) -> &mut App {
        self.apps[SERVER].values_mut().next().unwrap()
    }

    pub(super) fn counter(&self, end: usize, wanted: &str) -> u64 {
        let mut found = None;
        self.kcp[end].counters(&mut |name, value| {
            if name == wanted {
                found = Some(value);
            }
        });
        found.unwrap()
    }

    /// Whether an end has anything to do, or anything is on its way.
    pub(super) fn is_busy(&self) -> bool {
        !(self.under_way.is_empty() && self.kcp.iter().all(Kcp::is_still))
    }

    /// A datagram of the other end's arrives at an end.
    pub(super) fn inject(&mut self, end: usize, payload: &[u8]) {
        self.inject_from(end, address(1 - end as u8), payload);
    }

    pub(super) fn inject_from(&mut self, end: usize, remote: SocketAddr, payload: &[u8]) {
        let datagram = Datagram { local: address(end as u8), remote, payload: Buffer::copy_from(payload) };
        self.hand(end, Port::Below(0), Item::Datagram(datagram));
    }

    pub(super) fn reset(&mut self, end: usize, id: StreamId) {
        self.hand(end, Port::Above(0), Item::Stream(id, StreamItem::Reset));
    }

    /// Lets an application do what it has to do: read, write, finish.
    pub(super) fn act(&mut self, end: usize, id: StreamId) {
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
    pub(super) fn run(&mut self, span: Duration) {
        let until = self.now + span;
        self.run_while(until, |_| true);
        self.now = until;
    }

    /// Runs until something holds; fails if that takes longer than `span`.
    pub(super) fn run_until(&mut self, span: Duration, mut holds: impl FnMut(&Self) -> bool) {
        let until = self.now + span;
        self.run_while(until, |pair| !holds(pair));
        assert!(holds(self), "not within {span:?}: {:?} {:?}", self.apps, self.kcp);
    }

    fn run_while(&mut self, until: Instant, mut goes_on: impl FnMut(&Self) -> bool) {
        while goes_on(self) {
            let arrival = self.under_way.first_key_value().map(|(&(at, _), _)| at);
            let machines = earliest(self.kcp[0].deadline(), self.kcp[1].deadline());
            let Some(next) = earliest(arrival, machines).filter(|&next| next <= until) else { break };
            self.now = self.now.max(next);
            if arrival == Some(next) {
                let (_, (from, hop, payload)) = self.under_way.pop_first().unwrap();
                self.arrive(from, hop, payload);
                continue;
            }
            for end in [CLIENT, SERVER] {
                if self.kcp[end].deadline().is_some_and(|at| at <= self.now) {
                    self.kcp[end].wake(self.now);
                    self.drain(end);
                }
            }
        }
    }

    fn arrive(&mut self, from: usize, hop: usize, payload: Buffer) {
        if hop == self.lines[from].len() {
            self.inject(1 - from, &payload);
            return;
        }
        for at in self.lines[from][hop].offer(self.now, payload.len()) {
            self.events += 1;
            self.under_way.insert((at, self.events), (from, hop + 1, payload.clone()));
        }
    }

    fn hand(&mut self, end: usize, port: Port, item: Item) {
        self.kcp[end].handle(self.now, port, item);
        self.drain(end);
    }

    fn drain(&mut self, end: usize) {
        let mut touched = Vec::new();
        while let Some((port, item)) = self.kcp[end].poll(self.now) {
            match (port, item) {
                (Port::Below(0), Item::Datagram(datagram)) => {
                    assert_eq!(
                        (datagram.local, datagram.remote),
                        (address(end as u8), address(1 - end as u8))
                    );
                    self.leave(end, datagram.payload);
                }
                (Port::Above(0), Item::Stream(id, item)) => {
                    self.take(end, id, item);
                    if !touched.contains(&id) {
                        touched.push(id);
                    }
                }
                other => panic!("{other:?}"),
            }
        }
        let deadline = self.kcp[end].deadline();
        assert!(deadline.is_none_or(|at| at > self.now), "{deadline:?} at {:?}", self.now);
        for id in touched {
            self.act(end, id);
        }
    }

    fn leave(&mut self, end: usize, payload: Buffer) {
        let fold = |trace: u64, value: u64| (trace ^ value).wrapping_mul(0x100_0000_01b3).rotate_left(5);
        self.trace = fold(self.trace, self.now.as_nanos());
        self.trace = payload.iter().fold(self.trace, |trace, &byte| fold(trace, byte.into()));
        if self.lose.as_mut().is_some_and(|lose| lose(end, &payload)) {
            return;
        }
        self.events += 1;
        self.under_way.insert((self.now, self.events), (end, 0, payload));
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
