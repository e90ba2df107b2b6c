//! One neighbour.

use std::collections::VecDeque;

use hopcast_core::{Buffer, Duration, Instant};
use hopcast_wire::ethernet::Mac;

use super::incomplete::Incomplete;
use super::probe::Probe;
use super::reachable::Reachable;

/// A neighbour, as far as it is known.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its Ethernet address; of one that is incomplete, zero.
    pub(super) mac: Mac,
    pub(super) state: State,
    /// Time of the last packet to it; `None` if it only asked for this host.
    pub(super) last_used: Option<Instant>,
    /// Time at which the entry was made.
    pub(super) made: Instant,
}

/// The states of RFC 4861 section 7.3.2.
#[derive(Debug)]
pub(super) enum State {
    Incomplete(Incomplete),
    Reachable(Reachable),
    /// It was heard of, or has answered long ago; nothing is done until it is used.
    Stale,
    /// It was used since; its own packets may confirm it before it is probed.
    Delay,
    Probe(Probe),
}

/// What was heard of a neighbour, with its Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// It asked for this host.
    Asked,
    /// It asked for another, or said who it is to everybody.
    Mentioned,
    /// It answered.
    Answered {
        /// What this host asked.
        solicited: bool,
        /// Whether its Ethernet address replaces a known one.
        replaces: bool,
    },
}

impl State {
    /// Whether the next packet begins to ask whether the neighbour is still there.
    pub(super) fn is_stale(&self, now: Instant) -> bool {
        match self {
            Self::Stale => true,
            Self::Reachable(reachable) => reachable.until <= now,
            Self::Incomplete(_) | Self::Delay | Self::Probe(_) => false,
        }
    }
}

impl Entry {
    pub(super) fn incomplete(now: Instant, packet: Buffer) -> Self {
        let state = State::Incomplete(Incomplete::new(packet));
        Self { mac: [0; 6], state, last_used: Some(now), made: now }
    }

    pub(super) fn stale(now: Instant, mac: Mac) -> Self {
        Self { mac, state: State::Stale, last_used: None, made: now }
    }

    /// Takes in what was heard: the entry's Ethernet address, and its next state if that changes. RFC 4861 sections 7.2.3
    /// and 7.2.5, and for ARP RFC 826 ("Packet Reception"), whose claims replace what is known.
    pub(super) fn next_state(
        &mut self,
        now: Instant,
        mac: Mac,
        heard: Heard,
        reachable_time: Duration,
    ) -> Option<State> {
        let is_incomplete = matches!(self.state, State::Incomplete(_));
        let changes = is_incomplete || mac != self.mac;
        match heard {
            Heard::Answered { replaces: false, .. } if changes && !is_incomplete => {
                // Somebody else says that it is this neighbour: who it is shall be found out, and until then it stays.
                matches!(self.state, State::Reachable(_)).then_some(State::Stale)
            }
            Heard::Answered { solicited: true, .. } => {
                self.mac = mac;
                Some(State::Reachable(Reachable { until: now + reachable_time }))
            }
            Heard::Asked | Heard::Mentioned | Heard::Answered { solicited: false, .. } => {
                self.mac = mac;
                changes.then_some(State::Stale)
            }
        }
    }

    /// Changes the state; returns the packets that waited in the one before.
    pub(super) fn go_to(&mut self, next: State) -> VecDeque<Buffer> {
        let waiting = self.take_waiting();
        self.state = next;
        waiting
    }

    pub(super) fn take_waiting(&mut self) -> VecDeque<Buffer> {
        match &mut self.state {
            State::Incomplete(incomplete) => std::mem::take(&mut incomplete.queue),
            State::Reachable(_) | State::Stale | State::Delay | State::Probe(_) => VecDeque::new(),
        }
    }
}
