//! The machine: discovery by its timers, and data.

use std::collections::{BTreeSet, VecDeque};
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use hopcast_core::{Buffer, Datagram, Instant, Item, Machine, Outbox, Pace, Port, Stream, Timer, Timers};
use hopcast_wire::{ip, udp};

use super::config::{Config, Grouping};
use super::counters::Counters;
use super::discovery::{Paths, Response};
use super::grouping::{Group, Groups};
use super::tree::Tree;
use crate::address::is_host;
use crate::meadcast::key::{Key, Nonces, Statement};
use crate::meadcast::wire::{self, Kind, NO_NEXT_HEADER, Packet, short};
use crate::{Refusal, header, pace, transport};

/// The port of packets: those that it sends, and responses.
const PACKETS: Port = Port::Below(1);

/// A MEADcast sender; see the [module's documentation](super).
pub struct Sender {
    config: Config,
    /// Address from which it sends.
    own: Ipv6Addr,
    /// Address whose packets go to all receivers.
    group: IpAddr,
    receivers: Vec<Ipv6Addr>,
    /// The same in the order of addresses.
    known: BTreeSet<Ipv6Addr>,
    /// Nonces are drawn from it.
    random: Stream,
    /// Those of the last discovery, if it has any.
    nonces: Option<Nonces>,
    /// The receivers that this discovery has still to ask about.
    to_ask: VecDeque<Ipv6Addr>,
    /// The receivers that have joined since the last discovery began, if they are asked about before the next.
    newcomers: BTreeSet<Ipv6Addr>,
    /// Whether this discovery is about newcomers alone.
    is_partial: bool,
    requests: Pace,
    /// Whether the delay before the first discovery has begun.
    is_begun: bool,
    timers: Timers<Alarm, 3>,
    /// The paths that this discovery has found so far.
    found: Paths,
    /// Those that the last discovery has found.
    pub(super) paths: Paths,
    groups: Groups,
    /// Whether receivers have come or gone since the groups were made.
    is_stale: bool,
    out: Outbox,
    counters: Counters,
}

#[derive(Clone, Copy)]
enum Alarm {
    /// When to begin a discovery.
    Discovery,
    /// When to send more of its requests.
    Requests,
    /// When to end it.
    Timeout,
}

impl Timer for Alarm {
    const ALL: &'static [Self] = &[Self::Discovery, Self::Requests, Self::Timeout];
    fn index(self) -> usize {
        self as usize
    }
}

/// The fields of IPv6's header that are as the application has them.
#[derive(Clone, Copy)]
pub(super) struct Form {
    pub(super) traffic: u32,
    pub(super) hop_limit: u8,
    pub(super) protocol: u8,
}

impl Sender {
    /// A sender at an address, to a group of these receivers. Those that are no addresses of single hosts are left out,
    /// and the second of two that are the same. Nonces are drawn from `random`.
    pub fn new(
        config: Config,
        own: Ipv6Addr,
        group: IpAddr,
        receivers: impl IntoIterator<Item = Ipv6Addr>,
        random: Stream,
    ) -> Self {
        let mut sender = Self {
            config,
            own,
            group,
            receivers: Vec::new(),
            known: BTreeSet::new(),
            random,
            nonces: None,
            to_ask: VecDeque::new(),
            newcomers: BTreeSet::new(),
            is_partial: false,
            requests: pace(config.requests_per_second),
            is_begun: false,
            timers: Timers::default(),
            found: Paths::default(),
            paths: Paths::default(),
            groups: Groups::default(),
            is_stale: false,
            out: Outbox::new(),
            counters: Counters::default(),
        };
        for receiver in receivers {
            sender.add(receiver);
        }
        sender.regroup();
        sender
    }

    /// Bytes that lists add to a packet at most: the MTU above is that much less than the one below.
    pub fn overhead(config: &Config) -> usize {
        config.longest_header()
    }

    /// Adds a receiver, which is served by unicast until a discovery has ended that asked about it: the next one, or
    /// with [`Config::ask_joiners`] one of its own that begins at the next call of a machine's method.
    pub fn join(&mut self, receiver: Ipv6Addr) {
        if self.add(receiver) && self.config.ask_joiners {
            self.newcomers.insert(receiver);
        }
        self.is_stale = true;
    }

    /// Takes a receiver out, at once.
    pub fn leave(&mut self, receiver: Ipv6Addr) {
        self.receivers.retain(|other| *other != receiver);
        self.known.remove(&receiver);
        self.newcomers.remove(&receiver);
        self.is_stale = true;
    }

    /// Adds a receiver; false if it is there already, or can be none.
    fn add(&mut self, receiver: Ipv6Addr) -> bool {
        let is_new = is_host(&receiver.octets()) && receiver != self.own && self.known.insert(receiver);
        if is_new {
            self.receivers.push(receiver);
        }
        is_new
    }

    /// The tree, by the last discovery, with the routers that have been taken out of it.
    pub fn tree(&self) -> Tree {
        Tree::new(&self.receivers, self.paths.by_receiver())
    }

    /// The groups, as of the last data or discovery.
    pub const fn groups(&self) -> &Groups {
        &self.groups
    }

    /// Builds the groups anew.
    fn regroup(&mut self) {
        let mut tree = self.tree();
        if self.config.grouping == Grouping::DepthFirst {
            tree.cut(self.config.min_leaves, self.config.min_routers);
        }
        self.groups = Groups::new(&tree, &self.config, self.own, &self.receivers);
        self.is_stale = false;
    }

    fn begin(&mut self, now: Instant) {
        self.is_begun = true;
        self.timers.set(Alarm::Discovery, now + self.config.delay);
    }

    /// Begins a discovery about all receivers; one about newcomers ends with it.
    fn discover(&mut self, now: Instant) {
        self.is_partial = false;
        self.newcomers.clear();
        self.found = Paths::default();
        self.to_ask = self.receivers.iter().copied().collect();
        self.begin_asking(now);
    }

    /// Begins a discovery about newcomers alone, which leaves the other paths as they are.
    fn discover_newcomers(&mut self, now: Instant) {
        // One that was away between two discoveries is where it was.
        self.newcomers.retain(|&receiver| !self.paths.has(receiver));
        if self.newcomers.is_empty() {
            return;
        }
        self.is_partial = true;
        self.found = self.paths.of(&self.known);
        self.to_ask = std::mem::take(&mut self.newcomers).into_iter().collect();
        self.begin_asking(now);
    }

    fn begin_asking(&mut self, now: Instant) {
        self.timers.stop(Alarm::Requests);
        self.timers.stop(Alarm::Timeout);
        self.nonces = self.config.has_nonce().then(|| Nonces::draw(&mut self.random));
        self.ask(now);
    }

    /// Sends requests, as many as the rate allows.
    fn ask(&mut self, now: Instant) {
        while let Some(&receiver) = self.to_ask.front() {
            if !self.requests.is_ready(now) {
                return self.timers.set(Alarm::Requests, self.requests.ready_at());
            }
            self.to_ask.pop_front();
            if !self.known.contains(&receiver) {
                continue;
            }
            self.requests.sent(now, 1);
            let list = [receiver.octets()];
            let request = Packet {
                traffic: 0,
                hop_limit: self.config.hop_limit,
                source: self.own,
                destination: receiver,
                kind: Kind::Request { nonce: self.nonces.map_or(0, |nonces| nonces.of(receiver)) },
                hops: 0,
                hold: 0,
                reserved: 0,
                list: &list,
                ports: None,
                protocol: NO_NEXT_HEADER,
                payload: &[],
            };
            self.counters.requests += 1;
            self.out.push(PACKETS, Item::Packet(request.emit()));
        }
        self.timers.set(Alarm::Timeout, now + self.config.timeout);
    }

    fn is_discovering(&self) -> bool {
        self.timers.get(Alarm::Requests).is_some() || self.timers.get(Alarm::Timeout).is_some()
    }

    fn end_discovery(&mut self, now: Instant) {
        self.paths = std::mem::take(&mut self.found);
        self.regroup();
        if self.is_partial {
            self.counters.partial_discoveries += 1;
            return;
        }
        self.counters.discoveries += 1;
        if !self.config.interval.is_zero() {
            self.timers.set(Alarm::Discovery, now + self.config.interval);
        }
    }

    /// Notes a packet from below if it is a response of discovery about a receiver; whether it was one. A node may have
    /// several senders, each of which sees the others' responses.
    fn receive(&mut self, packet: &[u8]) -> bool {
        let Ok(response) = Packet::parse(packet) else { return false };
        let Kind::Response { nonce, code } = response.kind else { return false };
        let receiver = response.list.first().map(|octets| Ipv6Addr::from(*octets));
        let receiver = receiver.filter(|receiver| self.known.contains(receiver));
        let Some(receiver) = receiver.filter(|_| response.destination == self.own) else { return false };
        if !self.is_discovering() {
            self.counters.late += 1;
            return true;
        }
        let statement =
            Statement { nonce, sender: self.own, router: response.source, receiver, hops: response.hops };
        if !self.believes(&statement, code) {
            self.counters.refusals.add(Refusal::Forged);
            return true;
        }
        match self.found.note(&response, receiver, self.own, |address| self.known.contains(&address)) {
            Ok(Response::New) => self.counters.responses += 1,
            Ok(Response::Same) => {}
            Ok(Response::Contradiction) => self.counters.contradictions += 1,
            Err(reason) => self.counters.refusals.add(reason),
        }
        true
    }

    /// Whether a response has the nonce of the receiver's request and the code of the domain's key, as far as there are
    /// any.
    fn believes(&self, statement: &Statement, code: Option<[u8; wire::CODE]>) -> bool {
        let is_fresh = self.nonces.is_none_or(|nonces| statement.nonce == nonces.of(statement.receiver));
        let is_own = |key: &Key| code.is_some_and(|code| key.accepts(statement, &code));
        is_fresh && self.config.key.as_ref().is_none_or(is_own)
    }

    /// Sends a datagram of the application to all receivers.
    fn send_datagram(&mut self, now: Instant, datagram: Datagram) {
        let Datagram { local, remote, payload: mut segment, attributes } = datagram;
        if udp::HEADER + segment.len() > self.max_payload() {
            self.counters.unsendable += 1;
            return segment.recycle();
        }
        // The checksum covers the unspecified address until there is a receiver.
        let ends = [(self.own, local.port()), (Ipv6Addr::UNSPECIFIED, remote.port())];
        let [source, destination] = ends.map(|(address, port)| SocketAddr::from((address, port)));
        udp::prepend(&mut segment, source, destination);
        let hop_limit = attributes.hop_limit.unwrap_or(self.config.hop_limit);
        let traffic = u32::from(attributes.traffic_class) << 20;
        self.send(now, segment, [0; 16], Form { traffic, hop_limit, protocol: ip::UDP });
    }

    /// Sends an IPv6 packet of the application to all receivers.
    fn send_packet(&mut self, now: Instant, mut packet: Buffer) {
        let read = match ip::parse(&packet) {
            Ok(read) if !read.fragment && read.header_len == ip::V6_HEADER => read,
            _ => return self.unsendable(packet),
        };
        let (IpAddr::V6(source), IpAddr::V6(destination)) = (read.source, read.destination) else {
            return self.unsendable(packet);
        };
        let traffic = packet.first_chunk().map(header::traffic).unwrap_or_default();
        packet.truncate(read.total_len);
        packet.advance(read.header_len);
        if packet.len() > self.max_payload() || !transport::is_whole(read.protocol, &packet) {
            return self.unsendable(packet);
        }
        // A program above a TUN device sends from whichever address this has.
        transport::readdress(read.protocol, &mut packet, &source.octets(), &self.own.octets(), None);
        let form = Form { traffic, hop_limit: self.config.hop_limit, protocol: read.protocol };
        self.send(now, packet, destination.octets(), form);
    }

    fn unsendable(&mut self, packet: Buffer) {
        self.counters.unsendable += 1;
        packet.recycle();
    }

    /// The longest segment that fits a packet of any length field, in bytes.
    fn max_payload(&self) -> usize {
        usize::from(u16::MAX) - Self::overhead(&self.config)
    }

    /// Sends a segment whose checksum covers this destination to all receivers.
    fn send(&mut self, now: Instant, mut segment: Buffer, mut covered: [u8; 16], form: Form) {
        if !self.is_begun {
            self.begin(now);
        }
        // Many may have come or gone since the last.
        if self.is_stale {
            self.regroup();
        }
        self.counters.data += 1;
        let Form { traffic, hop_limit, protocol } = form;
        let mut address = |segment: &mut Buffer, to: Ipv6Addr| {
            let old = std::mem::replace(&mut covered, to.octets());
            transport::readdress(protocol, segment, &old, &to.octets(), None);
            segment.clone()
        };
        for &receiver in &self.groups.unicast {
            let mut packet = address(&mut segment, receiver);
            header::prepend(&mut packet, [self.own, receiver], protocol, traffic, hop_limit);
            self.counters.unicast += 1;
            self.out.push(PACKETS, Item::Packet(packet));
        }
        for group in &self.groups.packets {
            let Some(destination) = group.destination(self.config.next_hop) else { continue };
            let mut packet = address(&mut segment, destination);
            let ends = [self.own, destination];
            self.counters.header_bytes += prepend_list(&mut packet, group, &self.config, ends, form) as u64;
            self.counters.packets += 1;
            self.counters.listed += (group.list.len() - group.routers.len()) as u64;
            self.out.push(PACKETS, Item::Packet(packet));
        }
        segment.recycle();
    }
}

impl Machine for Sender {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.wake(now);
        match (port, item) {
            (Port::Above(0), Item::Datagram(datagram)) if datagram.remote.ip() == self.group => {
                self.send_datagram(now, datagram);
            }
            (Port::Above(0), Item::Packet(packet)) if destination(&packet) == Some(self.group) => {
                self.send_packet(now, packet);
            }
            (PACKETS, Item::Packet(packet)) if self.receive(&packet) => packet.recycle(),
            (PACKETS, Item::Transit(transit)) => {
                self.receive(&transit.packet);
                // The next hook may be that of another sender; the host drops a response without an error.
                self.out.push(PACKETS, Item::Transit(transit));
            }
            (Port::Above(_), item) => self.out.down(item),
            (Port::Below(_), item) => self.out.up(item),
        }
        // The delay may be none.
        self.wake(now);
    }

    fn wake(&mut self, now: Instant) {
        if !self.is_begun && !self.config.wait {
            self.begin(now);
        }
        while let Some(alarm) = self.timers.expired(now) {
            match alarm {
                Alarm::Discovery => self.discover(now),
                Alarm::Requests => self.ask(now),
                Alarm::Timeout => self.end_discovery(now),
            }
        }
        // Until the first discovery has ended, it is about newcomers too.
        if !self.newcomers.is_empty() && self.counters.discoveries > 0 && !self.is_discovering() {
            self.discover_newcomers(now);
        }
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        match self.is_begun || self.config.wait {
            true => self.timers.next(),
            false => Some(Instant::ZERO),
        }
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.counters.report(report);
    }
}

/// Puts the headers of a group's packet, between these ends, in front of its segment; the bytes that its list takes.
pub(super) fn prepend_list(
    segment: &mut Buffer,
    group: &Group,
    config: &Config,
    [source, destination]: [Ipv6Addr; 2],
    Form { traffic, hop_limit, protocol }: Form,
) -> usize {
    let len = segment.len() + ip::V6_HEADER;
    if config.short_lists {
        let packet =
            short::Packet { traffic, hop_limit, source, destination, hops: 0, protocol, payload: &[] };
        packet.prepend(segment, group.sections());
    } else {
        let kind = Kind::Data { delivery: group.routers, routers: group.routers };
        let (hold, list) = (group.hold, &group.list);
        let packet = Packet {
            traffic,
            hop_limit,
            source,
            destination,
            kind,
            hops: 0,
            hold,
            reserved: 0,
            list,
            ports: None,
            protocol,
            payload: &[],
        };
        packet.prepend(segment);
    }
    segment.len() - len
}

/// Destination of an IP packet.
fn destination(packet: &[u8]) -> Option<IpAddr> {
    ip::parse(packet).ok().map(|header| header.destination)
}
