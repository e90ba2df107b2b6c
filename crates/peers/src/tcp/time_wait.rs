//! TIME-WAIT: connections that are over, remembered so that late segments meet someone who knows (RFC 9293 section
//! 3.6).

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use hopcast_core::{Duration, Instant};

use super::config::MAX_TIME_WAIT;

/// Length of TIME-WAIT: Linux `TCP_TIMEWAIT_LEN`. Shorter, a late segment may reach a new connection; longer, more is
/// kept.
const LENGTH: Duration = Duration::from_secs(60);

/// Both ends of a connection, this end first.
pub(super) type Pair = (SocketAddr, SocketAddr);

/// The state of a connection that is remembered.
#[derive(Clone, Copy, Debug)]
pub(super) struct Remembered {
    /// The next sequence number to send, and the next one expected.
    pub next_out: u32,
    pub next_in: u32,
    /// The timestamp to echo, and the offset of this end's clock.
    pub timestamps: Option<super::wire::Timestamps>,
    pub at: Instant,
}

/// All connections in TIME-WAIT, at most [`MAX_TIME_WAIT`].
#[derive(Clone, Debug, Default)]
pub(super) struct TimeWait {
    connections: BTreeMap<Pair, Remembered>,
    order: VecDeque<(Instant, Pair)>,
}

impl TimeWait {
    pub(super) fn insert(&mut self, pair: Pair, remembered: Remembered) {
        if self.order.len() >= MAX_TIME_WAIT {
            self.forget_oldest();
        }
        self.order.push_back((remembered.at, pair));
        self.connections.insert(pair, remembered);
    }

    pub(super) fn get(&self, pair: &Pair) -> Option<&Remembered> {
        self.connections.get(pair)
    }

    /// Ends one early: a new connection takes its place (RFC 6191).
    pub(super) fn remove(&mut self, pair: &Pair) {
        if let Some(remembered) = self.connections.remove(pair) {
            self.order.retain(|&(at, other)| (at, other) != (remembered.at, *pair));
        }
    }

    pub(super) fn expire(&mut self, now: Instant) {
        while self.order.front().is_some_and(|&(at, _)| at + LENGTH <= now) {
            self.forget_oldest();
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.order.front().map(|&(at, _)| at + LENGTH)
    }

    fn forget_oldest(&mut self) {
        if let Some((_, pair)) = self.order.pop_front() {
            self.connections.remove(&pair);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_of_4096_makes_room() {
        let mut time_wait = TimeWait::default();
        let pair = |port| (SocketAddr::from(([10, 0, 0, 1], port)), SocketAddr::from(([10, 0, 0, 2], 80)));
        for port in 0..=4096 {
            let remembered = Remembered { next_out: 0, next_in: 0, timestamps: None, at: Instant::ZERO };
            time_wait.insert(pair(port), remembered);
            assert_eq!(time_wait.get(&pair(0)).is_some(), port < 4096);
        }
        assert_eq!(time_wait.connections.len(), 4096);
    }
}
