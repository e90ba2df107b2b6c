//! One neighbour.

use std::collections::VecDeque;

use hopcast_core::{Buffer, Duration, Instant};
use hopcast_wire::ethernet::Mac;

use super::incomplete::Incomplete;
use super::probe::Probe;
use super::reachable::Reachable;

/// The entry of a neighbour.
#[derive(Debug)]
pub(super) struct Entry {
    /// Its Ethernet address; zero while it is incomplete.
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
    /// Its address is known from another packet than an answer, or from an answer that has expired; no probe is sent
    /// until it is used.
    Stale,
    /// It was used since; its own packets may confirm it before it is probed.
    Delay,
    Probe(Probe),
}

/// The kind of packet that named a neighbour's Ethernet address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// Its request for this host.
    Asked,
    /// Its request for another host, or its announcement to all stations.
    Mentioned,
    /// Its answer.
    Answered {
        /// Whether this host had requested it.
        solicited: bool,
        /// Whether its Ethernet address replaces a known one (the override flag of RFC 4861).
        replaces: bool,
    },
}

impl State {
    /// Whether the next packet to the neighbour starts the delay before a probe.
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

    /// Updates the Ethernet address from a received packet, and returns the next state if the state changes: RFC 4861
    /// sections 7.2.3 and 7.2.5, and for ARP RFC 826 ("Packet Reception"), by which a claim replaces a known address.
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
                // Another station claims the neighbour's address: a probe will decide, and until then the entry stays.
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
