//! UNICAST: control messages between two members, acknowledged, once each and in their order.
//!
//! Who sends draws a connection number, so that a member that has forgotten the connection, or is another, does not
//! take the one for the other. An acknowledgement bears the number too: it shows that its sender hears at its
//! address.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

use hopcast_core::{Duration, Instant, Stream};

use super::wire::{Between, Control, MemberId, Packet};
use crate::round_trip::RoundTrip;

/// All connections of a member.
#[derive(Debug)]
pub(super) struct Unicast {
    own: MemberId,
    out: BTreeMap<MemberId, Outgoing>,
    incoming: BTreeMap<MemberId, Incoming>,
    random: Stream,
}

/// A connection to another member.
#[derive(Debug)]
struct Outgoing {
    address: SocketAddr,
    connection: u32,
    /// Number of the first message that waits.
    first: u32,
    waiting: VecDeque<Waiting>,
    /// When the first is sent again.
    due: Instant,
    tries: u32,
    answer: RoundTrip,
    /// When the connection was last acknowledged, since it was made.
    heard: Option<Instant>,
}

#[derive(Debug)]
struct Waiting {
    control: Control,
    /// When it was sent, and whether again.
    sent: Instant,
    is_repeated: bool,
}

/// A connection from another member.
#[derive(Debug)]
struct Incoming {
    connection: u32,
    /// Number of the next message, and those that came ahead of it.
    next: u32,
    ahead: BTreeMap<u32, Control>,
    used: Instant,
}

/// A packet for a member.
#[derive(Debug, PartialEq)]
pub(super) struct ToMember {
    pub(super) address: SocketAddr,
    pub(super) packet: Packet<'static>,
}

/// Timeout before the first acknowledgement, and the longest between two tries (timeout of UNICAST in JGroups 2.12's
/// udp.xml: 300, 600, 1200 ms). Chosen: one doubling more than there, so that repetitions on a congested path cost it
/// less.
const FIRST_TIMEOUT: Duration = Duration::from_millis(300);
const MAX_TIMEOUT: Duration = Duration::from_millis(2400);
/// Messages that wait on a connection. Chosen: a change of views takes three.
const MAX_WAITING: usize = 256;
/// Messages that are held ahead of one that is missing. Chosen: as many as a sender has in flight here.
const MAX_AHEAD: u32 = 32;
/// Connections from others. Chosen: those of a full view, and as many that want to be in it.
const MAX_INCOMING: usize = 2 * super::wire::MAX_MEMBERS;
/// Tries after which a message to a member that is in no view is given up: the first two seconds take four.
const MAX_TRIES: u32 = 12;

impl Unicast {
    pub(super) const fn new(own: MemberId, random: Stream) -> Self {
        Self { own, out: BTreeMap::new(), incoming: BTreeMap::new(), random }
    }

    /// Sends a message. It is dropped if too many wait, which only a peer that never acknowledges brings about.
    pub(super) fn send(
        &mut self,
        now: Instant,
        (to, address): (MemberId, SocketAddr),
        control: Control,
        packets: &mut Vec<ToMember>,
    ) {
        let random = &mut self.random;
        let out = self.out.entry(to).or_insert_with(|| Outgoing {
            address,
            connection: random.bits() as u32,
            first: 0,
            waiting: VecDeque::new(),
            due: now,
            tries: 0,
            answer: RoundTrip::new(FIRST_TIMEOUT),
            heard: None,
        });
        out.address = address;
        if out.waiting.len() >= MAX_WAITING {
            return;
        }
        if out.waiting.is_empty() {
            out.due = now + out.answer.timeout();
            out.tries = 1;
        }
        let number = out.first.wrapping_add(out.waiting.len() as u32);
        if out.waiting.len() < MAX_AHEAD as usize {
            packets.push(out.packet(self.own, to, number, &control));
        }
        out.waiting.push_back(Waiting { control, sent: now, is_repeated: false });
    }

    /// When a member has last acknowledged something.
    pub(super) fn heard(&self, member: MemberId) -> Option<Instant> {
        self.out.get(&member)?.heard
    }

    /// Whether a member has acknowledged all that it was sent.
    #[cfg(test)]
    pub(super) fn is_acknowledged(&self, member: MemberId) -> bool {
        self.out.get(&member).is_none_or(|out| out.waiting.is_empty())
    }

    /// Takes a message of a member, and acknowledges it: those that may be handed on with it.
    pub(super) fn receive(
        &mut self,
        now: Instant,
        (between, address): (Between, SocketAddr),
        number: u32,
        control: Control,
        packets: &mut Vec<ToMember>,
    ) -> Vec<Control> {
        if between.to != self.own || between.from == self.own {
            return Vec::new();
        }
        let fresh =
            || Incoming { connection: between.connection, next: 0, ahead: BTreeMap::new(), used: now };
        if self.incoming.len() >= MAX_INCOMING && !self.incoming.contains_key(&between.from) {
            let idle = self.incoming.iter().min_by_key(|(_, incoming)| incoming.used).map(|(&from, _)| from);
            idle.map(|from| self.incoming.remove(&from));
        }
        let back = Between { from: self.own, to: between.from, connection: between.connection };
        let is_known =
            self.incoming.get(&between.from).is_some_and(|known| known.connection == between.connection);
        if !is_known && number != 0 {
            // A connection that was forgotten begins anew; a late message of an older one does not.
            packets.push(ToMember { address, packet: Packet::Ack { between: back, number: 0 } });
            return Vec::new();
        }
        let incoming = self.incoming.entry(between.from).or_insert_with(fresh);
        if !is_known {
            *incoming = fresh();
        }
        incoming.used = now;
        let ahead = number.wrapping_sub(incoming.next);
        if ahead < MAX_AHEAD {
            incoming.ahead.entry(number).or_insert(control);
        }
        let mut found = Vec::new();
        while let Some(next) = incoming.ahead.remove(&incoming.next) {
            found.push(next);
            incoming.next = incoming.next.wrapping_add(1);
        }
        packets.push(ToMember { address, packet: Packet::Ack { between: back, number: incoming.next } });
        found
    }

    /// Takes an acknowledgement: all before a number have come.
    pub(super) fn acknowledged(&mut self, now: Instant, between: Between, number: u32) {
        let Some(out) = self.out.get_mut(&between.from).filter(|out| out.connection == between.connection)
        else {
            return;
        };
        if between.to == self.own && number == 0 && out.first != 0 && !out.waiting.is_empty() {
            // The other end has forgotten the connection.
            (out.connection, out.first, out.due, out.tries) = (self.random.bits() as u32, 0, now, 1);
            return;
        }
        let count = number.wrapping_sub(out.first) as usize;
        if between.to != self.own || count > out.waiting.len() {
            return;
        }
        out.heard = Some(now);
        for acknowledged in out.waiting.drain(..count) {
            // Karn: what was sent twice says nothing.
            if !acknowledged.is_repeated {
                out.answer.sample(now.since(acknowledged.sent));
            }
        }
        out.first = number;
        if count > 0 {
            out.tries = 1;
            out.due = now + out.answer.timeout();
        }
    }

    /// Sends again what was not acknowledged in time. Messages to members that are not `kept` are given up in the end.
    pub(super) fn wake(
        &mut self,
        now: Instant,
        kept: impl Fn(MemberId) -> bool,
        packets: &mut Vec<ToMember>,
    ) {
        let own = self.own;
        self.out.retain(|&to, out| !(out.is_due(now) && out.tries >= MAX_TRIES && !kept(to)));
        for (&to, out) in self.out.iter_mut().filter(|(_, out)| out.is_due(now)) {
            for place in 0..out.waiting.len().min(REPEATED) {
                let number = out.first.wrapping_add(place as u32);
                out.waiting[place].is_repeated = true;
                packets.push(out.packet(own, to, number, &out.waiting[place].control));
            }
            let wait = out.answer.timeout() * (1 << out.tries.min(8));
            out.tries += 1;
            out.due = now + wait.clamp(Duration::from_millis(1), MAX_TIMEOUT);
        }
    }

    /// Forgets the connections to members that are not `kept` and for whom nothing waits.
    pub(super) fn forget(&mut self, kept: impl Fn(MemberId) -> bool) {
        self.out.retain(|&to, out| kept(to) || !out.waiting.is_empty());
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        self.out.values().filter(|out| !out.waiting.is_empty()).map(|out| out.due).min()
    }
}

/// Messages that are sent again at a time. Chosen: after a loss there is more than one only after a pause.
const REPEATED: usize = 4;

impl Outgoing {
    fn is_due(&self, now: Instant) -> bool {
        !self.waiting.is_empty() && self.due <= now
    }

    fn packet(&self, own: MemberId, to: MemberId, number: u32, control: &Control) -> ToMember {
        let between = Between { from: own, to, connection: self.connection };
        ToMember {
            address: self.address,
            packet: Packet::Unicast { between, number, control: control.clone() },
        }
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Seed;

    use super::*;

    fn id(node: u32) -> MemberId {
        MemberId { node, run: 1 }
    }

    fn address(node: u8) -> SocketAddr {
        SocketAddr::from(([10, 0, 0, node], 1))
    }

    struct Pair {
        now: Instant,
        ends: [Unicast; 2],
        found: Vec<Control>,
    }

    impl Pair {
        fn new() -> Self {
            let end = |node| Unicast::new(id(node), Seed::new(1, 0).stream(&["unicast"], node.into()));
            Self { now: Instant::ZERO, ends: [end(1), end(2)], found: Vec::new() }
        }

        fn send(&mut self, control: Control) -> Vec<ToMember> {
            let mut packets = Vec::new();
            self.ends[0].send(self.now, (id(2), address(2)), control, &mut packets);
            packets
        }

        /// Brings packets to the other end, and the acknowledgements back.
        fn bring(&mut self, packets: Vec<ToMember>) {
            let mut answers = Vec::new();
            for packet in packets {
                let Packet::Unicast { between, number, control } = packet.packet else { panic!() };
                let from = (between, address(1));
                self.found.extend(self.ends[1].receive(self.now, from, number, control, &mut answers));
            }
            for answer in answers {
                let Packet::Ack { between, number } = answer.packet else { panic!() };
                self.ends[0].acknowledged(self.now, between, number);
            }
        }

        fn wake(&mut self, kept: bool) -> Vec<ToMember> {
            let mut packets = Vec::new();
            self.now = self.ends[0].deadline().unwrap();
            self.ends[0].wake(self.now, |_| kept, &mut packets);
            packets
        }
    }

    fn credit(bytes: u64) -> Control {
        Control::Credit { tag: 0, bytes }
    }

    #[test]
    fn what_is_lost_or_overtaken_comes_once_and_in_order() {
        let mut pair = Pair::new();
        let lost = pair.send(credit(0));
        let overtaken = pair.send(credit(1));
        let third = pair.send(credit(2));
        drop(lost);
        pair.bring(third);
        assert_eq!(pair.found, []);
        let again = pair.wake(true);
        assert_eq!(again.len(), 3);
        pair.bring(again);
        pair.bring(overtaken);
        assert_eq!(pair.found, [credit(0), credit(1), credit(2)]);
        assert!(pair.ends[0].is_acknowledged(id(2)) && pair.ends[0].deadline().is_none());
    }

    #[test]
    fn a_message_to_one_that_is_in_no_view_is_given_up() {
        let mut pair = Pair::new();
        drop(pair.send(Control::Join));
        let mut tries = 1;
        while pair.ends[0].deadline().is_some() {
            tries += u32::from(!pair.wake(false).is_empty());
        }
        assert_eq!(tries, MAX_TRIES);
    }

    #[test]
    fn a_connection_that_the_other_end_has_forgotten_begins_anew() {
        let mut pair = Pair::new();
        let packets = pair.send(credit(0));
        pair.bring(packets);
        pair.ends[1].incoming.clear();
        let packets = pair.send(credit(1));
        pair.bring(packets);
        assert_eq!(pair.found, [credit(0)]);
        let packets = pair.wake(true);
        pair.bring(packets);
        assert_eq!(pair.found, [credit(0), credit(1)]);
    }

    #[test]
    fn an_acknowledgement_of_another_connection_is_none() {
        let mut pair = Pair::new();
        drop(pair.send(Control::Join));
        let forged = Between { from: id(2), to: id(1), connection: 99 };
        pair.ends[0].acknowledged(pair.now, forged, 1);
        assert!(!pair.ends[0].is_acknowledged(id(2)) && pair.ends[0].heard(id(2)).is_none());
    }
}
