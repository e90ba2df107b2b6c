//! The machine at a member, which joins and leaves by messages.

use std::collections::VecDeque;
use std::net::Ipv6Addr;

use hopcast_core::{Duration, Instant, Item, Machine, Outbox, Port, Stream, earliest};

use super::wire::{Kind, Message};

/// The port of packets, which has the [hook](super::HOOK) of messages.
const PACKETS: Port = Port::Below(1);

/// Time from a request to its first repetition, that of a transport that knows no round trip yet (RFC 6298, section 2).
/// With less, requests are repeated that have not been lost; with more, a lost one costs a member that much.
const FIRST_PAUSE: Duration = Duration::from_secs(1);
/// Maximum time between requests without an answer. Chosen: with less, members of a sender that is gone cost more; with
/// more, they are without data for longer once it is back.
const MAX_PAUSE: Duration = Duration::from_secs(8);
/// Number of requests to leave, after which the membership ends by itself.
const MAX_LEAVES: u8 = 5;

/// A member of a group, at given times; everything else passes between `Above(0)` and `Below(0)`.
pub struct Member {
    own: Ipv6Addr,
    directory: Ipv6Addr,
    group: Ipv6Addr,
    /// When it joins or leaves, in the order of time.
    changes: VecDeque<(Instant, bool)>,
    random: Stream,
    /// The cookie of the last answer; 0 is none.
    cookie: u64,
    /// The time for which the last answer has made it a member; zero before the first.
    hold: Duration,
    state: State,
    out: Outbox,
    counters: Counters,
}

#[derive(Clone, Copy, Debug)]
enum State {
    /// It is no member, and nothing is to be said.
    Out,
    /// It has said something.
    Asking(Request),
    /// It is a member, and says so again at this time.
    In(Instant),
}

/// A request without an answer.
#[derive(Clone, Copy, Debug)]
struct Request {
    /// Whether it is one to join.
    joins: bool,
    /// The number that its answer repeats, whichever time it was sent.
    nonce: u64,
    /// Whether a challenge has answered it since it was last repeated.
    is_challenged: bool,
    /// When it is repeated.
    again: Instant,
    /// The time from then to the next.
    pause: Duration,
    /// Number of times it was sent.
    sent: u8,
}

#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    requests: u64,
    repeated: u64,
    accepted: u64,
    refused: u64,
}

impl Member {
    /// A member at an address, of the group whose directory is at another, that joins and leaves at these times.
    pub fn new(
        own: Ipv6Addr,
        directory: Ipv6Addr,
        group: Ipv6Addr,
        changes: impl IntoIterator<Item = (Instant, bool)>,
        random: Stream,
    ) -> Self {
        Self {
            own,
            directory,
            group,
            changes: changes.into_iter().collect(),
            random,
            cookie: 0,
            hold: Duration::ZERO,
            state: State::Out,
            out: Outbox::new(),
            counters: Counters::default(),
        }
    }

    /// Whether the directory has accepted it, and it has not left since.
    pub const fn is_accepted(&self) -> bool {
        matches!(self.state, State::In(_))
    }

    /// Sends a new request.
    fn ask(&mut self, now: Instant, joins: bool) {
        let nonce = self.random.bits();
        // One that is a member may lose two requests before that ends, however short it is.
        let is_member = joins && !self.hold.is_zero();
        let first = if is_member { FIRST_PAUSE.min(self.hold / 6) } else { FIRST_PAUSE };
        let (again, pause) = (now + first, first * 2);
        let request = Request { joins, nonce, is_challenged: false, again, pause, sent: 1 };
        self.counters.requests += 1;
        self.state = State::Asking(request);
        self.send(&request);
    }

    fn send(&mut self, request: &Request) {
        let message = Message {
            source: self.own,
            destination: self.directory,
            kind: if request.joins { Kind::Join } else { Kind::Leave },
            nonce: request.nonce,
            cookie: self.cookie,
            group: self.group,
        };
        self.out.push(PACKETS, Item::Packet(message.emit()));
    }

    /// Sends a request again.
    fn repeat(&mut self, now: Instant, request: Request) {
        if !request.joins && request.sent >= MAX_LEAVES {
            self.state = State::Out;
            return;
        }
        let again = now + request.pause;
        let (pause, sent) = ((request.pause * 2).min(MAX_PAUSE), request.sent.saturating_add(1));
        let request = Request { is_challenged: false, again, pause, sent, ..request };
        self.counters.repeated += 1;
        self.state = State::Asking(request);
        self.send(&request);
    }

    /// Takes an answer; false if it is none of this group's directory.
    fn receive(&mut self, now: Instant, packet: &[u8]) -> bool {
        let Some(message) = Message::parse(packet) else { return false };
        let is_answer = matches!(message.kind, Kind::Challenge | Kind::Accepted { .. });
        let ends = (message.source, message.destination, message.group);
        if !is_answer || ends != (self.directory, self.own, self.group) {
            return false;
        }
        let State::Asking(request) = self.state else {
            self.counters.refused += 1;
            if let (State::Out, Kind::Accepted { hold: 1.. }) = (self.state, message.kind) {
                // A request to join that came late, or again, has made it a member after it left.
                self.ask(now, false);
            }
            return true;
        };
        match message.kind {
            _ if message.nonce != request.nonce => self.counters.refused += 1,
            Kind::Challenge if !request.is_challenged => {
                self.cookie = message.cookie;
                let request = Request { is_challenged: true, ..request };
                self.state = State::Asking(request);
                self.send(&request);
            }
            Kind::Accepted { hold } if request.joins == (hold > 0) => {
                self.counters.accepted += 1;
                self.cookie = message.cookie;
                self.hold = Duration::from_secs(hold.into());
                let refresh = now + self.hold / 3;
                self.state = if request.joins { State::In(refresh) } else { State::Out };
            }
            _ => self.counters.refused += 1,
        }
        true
    }

    /// When the state asks for something to be sent.
    const fn due(&self) -> Option<Instant> {
        match self.state {
            State::Out => None,
            State::Asking(request) => Some(request.again),
            State::In(refresh) => Some(refresh),
        }
    }
}

impl Machine for Member {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.wake(now);
        match (port, item) {
            (PACKETS, Item::Transit(transit)) if self.receive(now, &transit.packet) => {
                transit.packet.recycle();
            }
            (PACKETS, Item::Packet(packet)) if self.receive(now, &packet) => packet.recycle(),
            // The next hook may be that of another group.
            (PACKETS, item) => self.out.push(PACKETS, item),
            (Port::Above(_), item) => self.out.down(item),
            (Port::Below(_), item) => self.out.up(item),
        }
    }

    fn wake(&mut self, now: Instant) {
        while let Some((_, joins)) = self.changes.pop_front_if(|&mut (at, _)| at <= now) {
            self.ask(now, joins);
        }
        if self.due().is_some_and(|at| at <= now) {
            match self.state {
                State::Out => {}
                State::Asking(request) => self.repeat(now, request),
                State::In(_) => self.ask(now, true),
            }
        }
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        earliest(self.due(), self.changes.front().map(|&(at, _)| at))
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("directory_member_requests", self.counters.requests);
        report("directory_member_repeated", self.counters.repeated);
        report("directory_member_accepted", self.counters.accepted);
        report("directory_member_refused", self.counters.refused);
    }
}
