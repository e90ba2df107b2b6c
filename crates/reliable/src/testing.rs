//! Members of a group on a network in virtual time, for the tests of all protocols: each has a link into it of some
//! rate, and loses packets of its own.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};
use std::net::SocketAddr;

use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Machine, Port, Rate, Seed, Stream};

/// Bytes of Ethernet, IP and UDP before each datagram.
pub(crate) const HEADERS: u64 = 42;

pub(crate) fn group() -> SocketAddr {
    SocketAddr::from(([239, 0, 0, 1], 6003))
}

pub(crate) fn address(member: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, (member >> 8) as u8, member as u8], 6003))
}

/// How members are attached.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Link {
    pub(crate) rate: Rate,
    pub(crate) delay: Duration,
    /// Share of packets that a member loses of those that come.
    pub(crate) loss: f64,
    /// Time for which a packet may wait for the link; what would wait longer is dropped.
    pub(crate) queue: Duration,
    /// Share of packets that come later than others, and by how much.
    pub(crate) late: (f64, Duration),
    /// Share of packets that a queue on the way marks instead of dropping them, if they may be marked (ECN).
    pub(crate) marked: f64,
}

impl Default for Link {
    fn default() -> Self {
        Self {
            rate: Rate::from_mbit(10),
            delay: Duration::from_millis(5),
            loss: 0.0,
            queue: Duration::MAX,
            late: (0.0, Duration::ZERO),
            marked: 0.0,
        }
    }
}

/// A member, whose machine is a session of some protocol.
pub(crate) struct Member<S> {
    pub(crate) session: S,
    pub(crate) link: Link,
    free: Instant,
    losses: Stream,
    delays: Stream,
    /// Bytes that it has put on its link.
    pub(crate) sent: u64,
    pub(crate) packets: u64,
    /// Packets for it that were put on the network, of which it may have lost some.
    pub(crate) arrived: u64,
    pub(crate) up: Vec<(Instant, Item)>,
    /// What it handed to the machine at its second upper port.
    pub(crate) stored: Vec<Item>,
    /// Whether nothing reaches or leaves it.
    pub(crate) is_cut: bool,
    /// The part of a network that is cut in parts: only those of the same hear each other.
    pub(crate) part: u8,
}

pub(crate) struct Net<S> {
    pub(crate) now: Instant,
    pub(crate) members: Vec<Member<S>>,
    /// When each member is to be woken next, if at all; and the same by time.
    deadlines: Vec<Option<Instant>>,
    waking: BTreeSet<(Instant, usize)>,
    flying: BinaryHeap<Reverse<(Instant, u64, usize)>>,
    packets: BTreeMap<u64, Datagram>,
    number: u64,
    /// Pairs of members of which the second does not hear the first.
    pub(crate) unheard: BTreeSet<(usize, usize)>,
    /// Share of packets that the second of two members loses of those of the first, where it is not that of its link.
    pub(crate) loss_between: BTreeMap<(usize, usize), f64>,
    /// Rate that the members of a part share, if they do: their packets wait for each other.
    pub(crate) shared: Option<Rate>,
    /// When each part's shared medium is free.
    shared_free: BTreeMap<u8, Instant>,
    pub(crate) seed: Seed,
}

impl<S: Machine> Net<S> {
    pub(crate) fn new(seed: u64) -> Self {
        Self {
            now: Instant::ZERO,
            members: Vec::new(),
            deadlines: Vec::new(),
            waking: BTreeSet::new(),
            flying: BinaryHeap::new(),
            packets: BTreeMap::new(),
            number: 0,
            unheard: BTreeSet::new(),
            loss_between: BTreeMap::new(),
            shared: None,
            shared_free: BTreeMap::new(),
            seed: Seed::new(seed, 0),
        }
    }

    /// Adds a member.
    pub(crate) fn join(&mut self, session: S, link: Link) -> usize {
        let member = self.members.len();
        let losses = self.seed.stream(&["losses"], member as u64);
        let delays = self.seed.stream(&["delays"], member as u64);
        self.members.push(Member {
            session,
            link,
            free: Instant::ZERO,
            losses,
            delays,
            sent: 0,
            packets: 0,
            arrived: 0,
            up: Vec::new(),
            stored: Vec::new(),
            is_cut: false,
            part: 0,
        });
        member
    }

    /// Gives a member an item from above.
    pub(crate) fn give(&mut self, member: usize, item: Item) {
        self.members[member].session.handle(self.now, Port::Above(0), item);
        self.drain(member);
    }

    /// Gives a member a datagram that nobody sent.
    pub(crate) fn forge(&mut self, member: usize, from: usize, payload: &[u8]) {
        let datagram = Datagram::new(address(member), address(from), Buffer::copy_from(payload));
        self.members[member].session.handle(self.now, Port::Below(0), Item::Datagram(datagram));
        self.drain(member);
    }

    /// Puts another session in the place of a member's, which is given items at its second upper port first.
    pub(crate) fn restart(&mut self, member: usize, session: S, items: impl IntoIterator<Item = Item>) {
        self.members[member].session = session;
        for item in items {
            self.members[member].session.handle(self.now, Port::Above(1), item);
        }
        self.members[member].session.wake(self.now);
        self.drain(member);
    }

    fn drain(&mut self, member: usize) {
        while let Some((port, item)) = self.members[member].session.poll(self.now) {
            match (port, item) {
                (Port::Below(_), Item::Datagram(datagram)) => self.transmit(member, datagram),
                (Port::Above(0), item) => self.members[member].up.push((self.now, item)),
                (Port::Above(_), item) => self.members[member].stored.push(item),
                other => panic!("{other:?}"),
            }
        }
        let deadline = self.members[member].session.deadline();
        assert!(deadline.is_none_or(|at| at > self.now), "member {member}: {deadline:?} at {:?}", self.now);
        self.deadlines.resize(self.members.len(), None);
        if let Some(before) = std::mem::replace(&mut self.deadlines[member], deadline) {
            self.waking.remove(&(before, member));
        }
        self.waking.extend(deadline.map(|at| (at, member)));
    }

    fn transmit(&mut self, from: usize, mut datagram: Datagram) {
        let bytes = datagram.payload.len() as u64 + HEADERS;
        let sender = &mut self.members[from];
        if sender.free.since(self.now) > sender.link.queue {
            return;
        }
        sender.sent += bytes;
        sender.packets += 1;
        sender.free = sender.free.max(self.now) + sender.link.rate.time_for(bytes);
        let mut leaves = sender.free;
        if sender.is_cut {
            return;
        }
        let (own, part) = (sender.link.delay, sender.part);
        if let Some(rate) = self.shared {
            let free = self.shared_free.entry(part).or_insert(leaves);
            if free.since(self.now) > sender.link.queue {
                return;
            }
            *free = (*free).max(self.now) + rate.time_for(bytes);
            leaves = *free;
        }
        let remote = datagram.remote;
        datagram.remote = address(from);
        for to in (0..self.members.len()).filter(|&to| to != from) {
            if remote != group() && remote != address(to) {
                continue;
            }
            let member = &mut self.members[to];
            member.arrived += 1;
            let is_unheard = member.part != part || self.unheard.contains(&(from, to));
            let loss = self.loss_between.get(&(from, to)).copied().unwrap_or(member.link.loss);
            if is_unheard || member.losses.chance(loss) || member.is_cut {
                continue;
            }
            let (share, by) = member.link.late;
            let late = if member.delays.chance(share) { by } else { Duration::ZERO };
            let at = leaves + own + member.link.delay + late;
            self.number += 1;
            let mut datagram = Datagram { local: address(to), ..datagram.clone() };
            if datagram.attributes.traffic_class & 0b11 == 0b10 && member.losses.chance(member.link.marked) {
                datagram.attributes.traffic_class |= 0b11;
            }
            self.packets.insert(self.number, datagram);
            self.flying.push(Reverse((at, self.number, to)));
        }
    }

    /// The clock of all members jumps ahead, and each is woken if that was due.
    pub(crate) fn jump(&mut self, by: Duration) {
        self.now += by;
        for member in 0..self.members.len() {
            let session = &mut self.members[member].session;
            if session.deadline().is_some_and(|at| at <= self.now) {
                session.wake(self.now);
            }
            self.drain(member);
        }
    }

    /// Runs until a time, or until `done`.
    pub(crate) fn run(&mut self, until: Duration, mut done: impl FnMut(&Self) -> bool) -> bool {
        let until = Instant::ZERO + until;
        for member in 0..self.members.len() {
            // One that is new may have something to do first.
            if self.members[member].session.deadline().is_some_and(|at| at <= self.now) {
                self.members[member].session.wake(self.now);
            }
            self.drain(member);
        }
        while !done(self) {
            let flying = self.flying.peek().map(|Reverse((at, ..))| *at);
            let waking = self.waking.first().map(|&(at, _)| at);
            let Some(next) = flying.into_iter().chain(waking).min().filter(|&next| next <= until) else {
                self.now = until;
                return false;
            };
            self.now = self.now.max(next);
            while let Some(&Reverse((at, number, to))) =
                self.flying.peek().filter(|Reverse((at, ..))| *at <= self.now)
            {
                let _ = at;
                self.flying.pop();
                if let Some(datagram) = self.packets.remove(&number) {
                    self.members[to].session.handle(self.now, Port::Below(0), Item::Datagram(datagram));
                    self.drain(to);
                }
            }
            // Those that are due now, in their order; whoever is drained is due later.
            let due: BTreeSet<usize> = self
                .waking
                .iter()
                .take_while(|&&(at, _)| at <= self.now)
                .map(|&(_, member)| member)
                .collect();
            for member in due {
                self.members[member].session.wake(self.now);
                self.drain(member);
            }
        }
        true
    }

    /// Bytes that all members have put on their links.
    pub(crate) fn bytes(&self) -> u64 {
        self.members.iter().map(|member| member.sent).sum()
    }

    pub(crate) fn counter(&self, member: usize, name: &str) -> u64 {
        let mut found = 0;
        self.members[member].session.counters(&mut |at, value| {
            if at == name {
                found += value;
            }
        });
        found
    }
}

/// `len` bytes that differ from place to place.
pub(crate) fn contents(len: usize, seed: u64) -> Vec<u8> {
    let mut bytes = vec![0; len];
    Seed::new(seed, 0).stream(&["contents"], 0).fill(&mut bytes);
    bytes
}
