//! A member that begins anew at given times, with a store in memory.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use hopcast_core::{Instant, Item, Machine, Message, Port, Stream, earliest};
use hopcast_reliable::disservice::{Config, Peer, aged};

/// A member and its store. Whenever it begins anew it is another machine, which has nothing but what is in the store.
pub(super) struct Restarting {
    config: Config,
    peer: Peer,
    random: Stream,
    /// When it begins anew, ascending.
    restarts: VecDeque<Instant>,
    /// Records that the member has handed out, by key, each with the time.
    store: BTreeMap<Arc<[u8]>, (Instant, Message)>,
    /// Counters of the machines before.
    before: BTreeMap<&'static str, u64>,
}

impl Restarting {
    pub(super) fn new(config: Config, restarts: VecDeque<Instant>, mut random: Stream) -> Self {
        let config = Config { has_store: true, ..config };
        let peer = Peer::new(config.clone(), random.fork());
        Self { config, peer, random, restarts, store: BTreeMap::new(), before: BTreeMap::new() }
    }

    fn restart(&mut self, now: Instant) {
        while self.restarts.pop_front_if(|at| *at <= now).is_some() {
            self.peer.counters(&mut |counter, value| *self.before.entry(counter).or_default() += value);
            // None of its messages has the name of an earlier one.
            self.config.member.run = self.config.member.run.wrapping_add(1);
            self.peer = Peer::new(self.config.clone(), self.random.fork());
            for (at, record) in std::mem::take(&mut self.store).into_values() {
                let Some(record) = aged(record, now.since(at)) else { continue };
                self.keep(now, record.clone());
                self.peer.handle(now, Port::Above(1), Item::Message(record));
            }
        }
    }

    fn keep(&mut self, now: Instant, record: Message) {
        let Some(key) = record.name.clone() else { return };
        if record.payload.is_empty() {
            self.store.remove(&key);
        } else {
            self.store.insert(key, (now, record));
        }
    }
}

impl Machine for Restarting {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.restart(now);
        self.peer.handle(now, port, item);
    }

    fn wake(&mut self, now: Instant) {
        self.restart(now);
        self.peer.wake(now);
    }

    fn poll(&mut self, now: Instant) -> Option<(Port, Item)> {
        loop {
            match self.peer.poll(now)? {
                (Port::Above(1), Item::Message(record)) => self.keep(now, record),
                found => return Some(found),
            }
        }
    }

    fn deadline(&self) -> Option<Instant> {
        earliest(self.peer.deadline(), self.restarts.front().copied())
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.before.iter().for_each(|(counter, value)| report(counter, *value));
        self.peer.counters(report);
    }
}
