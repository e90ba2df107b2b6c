//! What is missing, and the state of its requests (RFC 3208, section 6.3): BACK-OFF, WAIT-NCF, WAIT-DATA.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};

use hopcast_core::{Duration, Instant};

/// A packet, or a transmission group by its first sequence number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Key {
    Packet(u64),
    Group(u64),
}

impl Key {
    pub(super) const fn sequence(self) -> u64 {
        match self {
            Self::Packet(sequence) | Self::Group(sequence) => sequence,
        }
    }
}

/// State of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum State {
    /// It is to be made, unless somebody else does before.
    BackOff,
    /// It was made, and is not confirmed.
    WaitNcf,
    /// It, or another for the same, was confirmed.
    WaitData,
}

/// A request.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ask {
    pub(super) state: State,
    /// When the state is over.
    pub(super) due: Instant,
    /// When it was last made; of those that one packet names at the same time.
    pub(super) asked: Option<Instant>,
    /// When it was made, if once since it was last confirmed.
    pub(super) made: Option<Instant>,
    /// When it, or another for the same, was first confirmed.
    pub(super) confirmed: Option<Instant>,
    /// Requests in vain: that nobody confirmed, and that were confirmed and not answered.
    pub(super) unconfirmed: u16,
    pub(super) unanswered: u16,
}

/// All requests for what is missing of a source.
#[derive(Debug, Default)]
pub(super) struct Asks {
    asks: BTreeMap<Key, Ask>,
    timers: BTreeSet<(Instant, Key)>,
    /// Number in the state WAIT-DATA.
    awaited: usize,
}

/// Requests at a time. What is missing beyond them waits; a source that lies about its data costs no more.
pub(super) const MAX_ASKS: usize = 4096;

impl Asks {
    pub(super) fn len(&self) -> usize {
        self.asks.len()
    }

    pub(super) fn get(&self, key: Key) -> Option<&Ask> {
        self.asks.get(&key)
    }

    /// Notes that something is missing, if that is new.
    pub(super) fn begin(&mut self, key: Key, due: Instant) {
        if let Entry::Vacant(vacant) = self.asks.entry(key) {
            vacant.insert(Ask {
                state: State::BackOff,
                due,
                asked: None,
                made: None,
                confirmed: None,
                unconfirmed: 0,
                unanswered: 0,
            });
            self.timers.insert((due, key));
        }
    }

    /// Notes that nothing is missing any more.
    pub(super) fn end(&mut self, key: Key) {
        if let Some(ask) = self.asks.remove(&key) {
            self.timers.remove(&(ask.due, key));
            self.awaited -= usize::from(ask.state == State::WaitData);
        }
    }

    /// Changes a request.
    pub(super) fn set(&mut self, key: Key, state: State, due: Instant, change: impl FnOnce(&mut Ask)) {
        let Some(ask) = self.asks.get_mut(&key) else { return };
        self.timers.remove(&(ask.due, key));
        self.awaited -= usize::from(ask.state == State::WaitData);
        self.awaited += usize::from(state == State::WaitData);
        (ask.state, ask.due) = (state, due);
        change(ask);
        self.timers.insert((due, key));
    }

    /// Notes that an answer has come: the time of the next is not that of the request.
    pub(super) fn answered(&mut self, key: Key) {
        if let Some(ask) = self.asks.get_mut(&key) {
            ask.confirmed = None;
        }
    }

    /// Requests in a state, in the order of what is missing.
    pub(super) fn in_state(&self, state: State) -> Vec<Key> {
        if state == State::WaitData && self.awaited == 0 {
            return Vec::new();
        }
        self.asks.iter().filter(|(_, ask)| ask.state == state).map(|(&key, _)| key).collect()
    }

    /// Those whose state is over.
    pub(super) fn due(&self, now: Instant) -> Vec<(Key, Ask)> {
        let due = self.timers.iter().take_while(|&&(at, _)| at <= now);
        due.filter_map(|&(_, key)| self.asks.get(&key).map(|&ask| (key, ask))).collect()
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.timers.first().map(|&(at, _)| at)
    }

    /// Forgets those for what comes before or after a range.
    pub(super) fn keep(&mut self, first: u64, last: u64) {
        let gone = |key: &Key| key.sequence() < first || key.sequence() > last;
        let keys: Vec<Key> = self.asks.keys().copied().filter(gone).collect();
        keys.into_iter().for_each(|key| self.end(key));
    }
}

/// Time of a state, doubled for each request in vain, up to a factor of 16.
pub(super) fn doubled(time: Duration, times: u16) -> Duration {
    time * (1 << times.min(4))
}
