//! Applications that do anything they may, and symbols that nobody has made.

use std::collections::BTreeMap;

use hopcast_core::{Seed, Stream, StreamReader};
use proptest::prelude::*;

use super::*;

proptest! {
    #[test]
    fn garbage_does_no_harm(symbols in proptest::collection::vec(proptest::collection::vec(any::<u8>(), 0..80), 0..60)) {
        let config = Config { streams: 8, ..Config::default() };
        let [mut edge, _] = acquainted([&config, &config]);
        for id in 0..4 {
            edge.handle_stream(at(0), StreamId(2 * id), open(1));
        }
        while edge.has_data() {
            symbol(&mut edge);
        }
        for body in &symbols {
            edge.take(at(0), 0, body);
            let symbol = made_up(&edge, body);
            take(&mut edge, &symbol);
        }
        prop_assert!(edge.streams.held().1 <= 8);
        while edge.has_data() {
            symbol(&mut edge);
        }
    }

    #[test]
    fn all_bytes_arrive_in_order_and_nothing_leaks(seed in any::<u64>()) {
        let mut world = World::new(seed);
        for _ in 0..400 {
            world.act();
        }
        world.wind_up();
    }
}

/// Two edges, symbols under way in order, and applications that do anything they may.
struct World {
    random: Stream,
    edges: [Framing; 2],
    under_way: [VecDeque<(u64, Vec<u8>)>; 2],
    apps: [BTreeMap<u64, App>; 2],
    opened: [u64; 2],
    /// Bytes written to each stream that was not reset, by its opener's name: from the opener and back.
    units: [[u64; 2]; 2],
}

#[derive(Debug)]
struct App {
    reader: StreamReader,
    credit: u64,
    written: u64,
    read: u64,
    finished: bool,
    peer_finished: bool,
    transmitted: u64,
}

/// The byte at an offset of a stream, from its opener or back.
fn pattern(stream: u64, from: usize, offset: u64) -> u8 {
    (offset.wrapping_mul(31) ^ (stream * 7 + from as u64 * 3)) as u8
}

impl World {
    fn new(seed: u64) -> Self {
        let config = Config { streams: 16, stream_bytes: 700, ..Config::default() };
        Self {
            random: Seed::new(seed, 0).stream(&["world"], 0),
            edges: acquainted([&config, &config]),
            under_way: Default::default(),
            apps: Default::default(),
            opened: [0; 2],
            units: [[0; 2]; 2],
        }
    }

    fn below(&mut self, bound: usize) -> usize {
        self.random.below(bound as u64) as usize
    }

    fn act(&mut self) {
        let edge = self.below(2);
        match self.below(12) {
            0 => self.open(edge),
            1 => {
                let unit = [self.units[edge][0] as u8; 1].repeat(1 + self.below(600));
                self.units[edge][0] += u64::from(self.edges[edge].push_unit(at(0), unit[..].into()));
            }
            2..=5 => self.send(edge),
            6..=8 => self.arrive(edge),
            _ => self.use_stream(edge),
        }
        self.drain(edge);
    }

    fn open(&mut self, edge: usize) {
        let id = 2 * self.opened[edge];
        self.opened[edge] += 1;
        let mut app = App::new(self.below(1500) as u64 + 1);
        app.credit = 0;
        let grant = app.reader.first_grant();
        self.apps[edge].insert(id, app);
        self.edges[edge].handle_stream(at(0), StreamId(id), open(1));
        self.edges[edge].handle_stream(at(0), StreamId(id), grant);
    }

    fn send(&mut self, edge: usize) {
        if self.edges[edge].has_data() {
            let symbol = symbol(&mut self.edges[edge]);
            self.under_way[edge].push_back(symbol);
        }
    }

    fn arrive(&mut self, edge: usize) {
        if let Some(symbol) = self.under_way[1 - edge].pop_front() {
            take(&mut self.edges[edge], &symbol);
        }
    }

    fn use_stream(&mut self, edge: usize) {
        let ids: Vec<u64> = self.apps[edge].keys().copied().collect();
        if ids.is_empty() {
            return;
        }
        let id = ids[self.below(ids.len())];
        let (dice, len) = (self.below(20), 1 + self.below(900) as u64);
        match dice {
            0 => {
                self.apps[edge].remove(&id);
                self.edges[edge].handle_stream(at(0), StreamId(id), StreamItem::Reset);
            }
            1..=3 => self.finish(edge, id),
            _ => self.write(edge, id, len),
        }
    }

    fn write(&mut self, edge: usize, id: u64, len: u64) {
        let app = self.apps[edge].get_mut(&id).unwrap();
        let len = len.min(app.credit);
        if len == 0 || app.finished {
            return;
        }
        let from = (id % 2) as usize;
        let bytes: Vec<u8> = (app.written..app.written + len).map(|at| pattern(id & !1, from, at)).collect();
        (app.written, app.credit) = (app.written + len, app.credit - len);
        self.edges[edge].handle_stream(at(0), StreamId(id), data(&bytes));
    }

    fn finish(&mut self, edge: usize, id: u64) {
        let app = self.apps[edge].get_mut(&id).unwrap();
        if !core::mem::replace(&mut app.finished, true) {
            self.edges[edge].handle_stream(at(0), StreamId(id), StreamItem::Finish);
        }
        self.close(edge, id);
    }

    fn close(&mut self, edge: usize, id: u64) {
        if self.apps[edge].get(&id).is_some_and(|app| app.finished && app.peer_finished) {
            self.apps[edge].remove(&id);
        }
    }

    fn drain(&mut self, edge: usize) {
        while let Some(up) = self.edges[edge].poll() {
            match up {
                Up::Unit(unit) => {
                    assert!(
                        unit.iter().all(|&byte| byte == self.units[1 - edge][1] as u8),
                        "units keep their order"
                    );
                    self.units[1 - edge][1] += 1;
                }
                Up::Stream(StreamId(id), item) => self.on_item(edge, id, item),
            }
        }
    }

    fn on_item(&mut self, edge: usize, id: u64, item: StreamItem) {
        if let StreamItem::Open { .. } = item {
            assert_eq!(id % 2, 1);
            let app = App::new(self.below(1500) as u64 + 1);
            let grant = app.reader.first_grant();
            assert!(self.apps[edge].insert(id, app).is_none());
            self.edges[edge].handle_stream(at(0), StreamId(id), grant);
            return;
        }
        let Some(app) = self.apps[edge].get_mut(&id) else {
            // Both ends have finished, so that nothing matters any more, but not all has left.
            use StreamItem::{Credit, Reset, Transmitted};
            assert!(matches!(item, Transmitted(_) | Credit(_) | Reset), "{item:?}");
            return;
        };
        match item {
            StreamItem::Credit(bytes) => app.credit += bytes,
            StreamItem::Data(bytes) => {
                assert!(!app.peer_finished && app.reader.received(bytes.len()), "within the credit");
                for &byte in &bytes[..] {
                    assert_eq!(byte, pattern(id & !1, 1 - (id % 2) as usize, app.read));
                    app.read += 1;
                }
                if let Some(grant) = app.reader.consumed(bytes.len()) {
                    self.edges[edge].handle_stream(at(0), StreamId(id), grant);
                }
            }
            StreamItem::Finish => {
                assert!(!core::mem::replace(&mut app.peer_finished, true));
                self.close(edge, id);
            }
            StreamItem::Reset => _ = self.apps[edge].remove(&id),
            StreamItem::Transmitted(to) => {
                assert!(to > app.transmitted && to <= app.written);
                app.transmitted = to;
            }
            StreamItem::Opened => {}
            StreamItem::Open { .. } => unreachable!(),
        }
    }

    /// All applications finish, and read all; then nothing may be left anywhere.
    fn wind_up(&mut self) {
        for round in 0.. {
            assert!(round < 10_000, "it comes to an end");
            for edge in 0..2 {
                for id in self.apps[edge].keys().copied().collect::<Vec<_>>() {
                    self.finish(edge, id);
                }
                self.send(edge);
                self.arrive(1 - edge);
                self.drain(0);
                self.drain(1);
            }
            let idle = (0..2).all(|edge| !self.edges[edge].has_data() && self.under_way[edge].is_empty());
            if idle && self.apps.iter().all(BTreeMap::is_empty) {
                break;
            }
        }
        for edge in 0..2 {
            assert_eq!(self.edges[edge].streams.held(), (0, 0, 0));
            assert_eq!(self.units[edge][0], self.units[edge][1], "each unit arrived");
            assert_eq!(self.edges[edge].counters().streams_broken, 0);
            assert_eq!(self.edges[edge].counters().symbols_malformed, 0);
        }
    }
}

impl App {
    fn new(window: u64) -> Self {
        Self {
            reader: StreamReader::new(window),
            credit: 0,
            written: 0,
            read: 0,
            finished: false,
            peer_finished: false,
            transmitted: 0,
        }
    }
}
