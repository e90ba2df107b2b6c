//! A neighbour on a link: whether it is heard, and what it is still to be told (RFC 2328 section 10).

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopcast_core::Instant;

use super::wire::Key;

/// A router that is heard on a link.
#[derive(Debug)]
pub(super) struct Neighbour {
    /// The address that it sends from.
    pub(super) source: IpAddr,
    /// The addresses by which it is a next hop, of IPv4 and IPv6.
    pub(super) gateways: [Option<IpAddr>; 2],
    pub(super) generation: u32,
    /// Time at which it counts as gone.
    pub(super) until: Instant,
    pub(super) state: State,
    /// Time from which on it knows that it is heard, and takes what it is told.
    told_from: Instant,
    /// Advertisements that it has not acknowledged.
    pub(super) outstanding: BTreeMap<Key, Outstanding>,
}

/// How far two routers have come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum State {
    /// It is heard, and does not hear this router.
    Heard,
    /// Both hear each other, and it is told what this router knows.
    Exchange,
    /// It knows what this router knew: the link to it is announced.
    Full,
}

/// An advertisement that a neighbour has not acknowledged.
#[derive(Clone, Copy, Debug)]
pub(super) struct Outstanding {
    /// Time at which to send it.
    pub(super) due: Instant,
    /// Whether it is sent, or only its header.
    pub(super) whole: bool,
    /// Whether it was there when both began to hear each other.
    pub(super) initial: bool,
    /// Time at which it was last sent.
    pub(super) sent: Option<Instant>,
}

impl Neighbour {
    pub(super) fn new(source: IpAddr, generation: u32, until: Instant) -> Self {
        Self {
            source,
            gateways: [None; 2],
            generation,
            until,
            state: State::Heard,
            told_from: until,
            outstanding: BTreeMap::new(),
        }
    }

    /// Whether both hear each other.
    pub(super) fn is_two_way(&self) -> bool {
        self.state >= State::Exchange
    }

    /// Begins to tell it what this router knows, from a time on.
    pub(super) fn begin(&mut self, known: impl Iterator<Item = Key>, from: Instant) {
        self.state = State::Exchange;
        self.told_from = from;
        let offer = Outstanding { due: from, whole: false, initial: true, sent: None };
        self.outstanding = known.map(|key| (key, offer)).collect();
    }

    /// Goes back to where it is only heard.
    pub(super) fn reset(&mut self) {
        self.state = State::Heard;
        self.outstanding.clear();
    }

    /// Sends it an advertisement, and again until it is acknowledged.
    pub(super) fn tell(&mut self, now: Instant, key: Key) {
        if self.is_two_way() {
            let initial = self.outstanding.get(&key).is_some_and(|one| one.initial);
            let due = now.max(self.told_from);
            self.outstanding.insert(key, Outstanding { due, whole: true, initial, sent: None });
        }
    }

    /// Whether it now knows for the first time what this router knew.
    pub(super) fn becomes_full(&mut self) -> bool {
        let is_told = self.state == State::Exchange && !self.outstanding.values().any(|one| one.initial);
        if is_told {
            self.state = State::Full;
        }
        is_told
    }

    /// Time of the next thing to do.
    pub(super) fn deadlines(&self) -> (Instant, Option<Instant>) {
        (self.until, self.outstanding.values().map(|one| one.due).min())
    }
}
