//! A tree of routers: every packet takes a millisecond a link, is counted there, and may be lost.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use hopcast_core::{Buffer, Duration, Egress, Instant, Item, Machine, Port, Transit};

use super::super::encapsulation::{self, Encapsulation};
use super::super::{Config, Router};
use crate::pgm::wire::{Body, Data, Member, Nak, Options, Packet, Parity, Spm, Tsi};

pub(super) const TSI: Tsi = Tsi { gsi: [1, 2, 3, 4, 5, 6], port: 77 };
const HOP: Duration = Duration::from_millis(1);

/// Kind of a packet, by the initial of its name in RFC 3208 and more.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Kind {
    Spm,
    Data,
    Repair,
    Nak,
    Ncf,
    NullNak,
    Ack,
    Poll,
    PollResponse,
}

/// A link by the node below it: a router, or a receiver.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Below {
    Router(usize),
    Receiver(usize),
}

pub(super) struct Net {
    pub(super) now: Instant,
    pub(super) routers: Vec<Option<Router>>,
    config: Config,
    v6: bool,
    pub(super) encapsulation: Encapsulation,
    /// For each router, what its interfaces from 1 on lead to; 0 leads to the one above, or the source.
    below: Vec<Vec<Below>>,
    parents: BTreeMap<Below, (usize, u32)>,
    line: VecDeque<(Instant, Arrival)>,
    /// Packets that crossed the link above a node.
    pub(super) crossed: BTreeMap<(Below, Kind), u64>,
    /// Packets to lose: the next so many of a kind on a link.
    pub(super) lose: BTreeMap<(Below, Kind), u64>,
    /// The path that each receiver knows.
    pub(super) paths: BTreeMap<usize, IpAddr>,
    /// Sequence numbers of data and repairs that each receiver has.
    pub(super) has: BTreeMap<usize, Vec<u32>>,
    /// What came to the source.
    pub(super) at_source: Vec<(Kind, u32)>,
    /// How, and with which options, NAKs came there.
    pub(super) naks_at_source: Vec<(Encapsulation, Options)>,
    pub(super) lead: u32,
    pub(super) trail: u32,
    spm: u32,
    /// Packets of a transmission group, if there is parity.
    pub(super) parity: Option<u32>,
    /// Whether that is sent unasked.
    pub(super) is_proactive: bool,
    /// What the source says of itself.
    pub(super) member: Option<Member>,
    /// Parity packets that were sent of each group.
    parity_sent: BTreeMap<u32, u32>,
    /// Whether the source answers NAKs.
    pub(super) answers: bool,
}

enum Arrival {
    Router(usize, u32, Buffer),
    Receiver(usize, Buffer),
    Source(Buffer),
}

impl Net {
    /// Routers with these parents, of which the first is next to the source, and with receivers below these.
    pub(super) fn new(parents: &[Option<usize>], receivers: &[usize], config: Config) -> Self {
        let mut net = Self {
            now: Instant::ZERO,
            routers: Vec::new(),
            config,
            v6: false,
            encapsulation: Encapsulation::Raw,
            below: vec![Vec::new(); parents.len()],
            parents: BTreeMap::new(),
            line: VecDeque::new(),
            crossed: BTreeMap::new(),
            lose: BTreeMap::new(),
            paths: BTreeMap::new(),
            has: BTreeMap::new(),
            at_source: Vec::new(),
            naks_at_source: Vec::new(),
            lead: u32::MAX,
            trail: 0,
            spm: 0,
            parity: None,
            is_proactive: false,
            member: None,
            parity_sent: BTreeMap::new(),
            answers: true,
        };
        let routers = parents.iter().enumerate().map(|(router, parent)| (Below::Router(router), *parent));
        let ends = receivers.iter().enumerate().map(|(receiver, at)| (Below::Receiver(receiver), Some(*at)));
        for (node, parent) in routers.chain(ends) {
            if let Some(parent) = parent {
                net.below[parent].push(node);
                net.parents.insert(node, (parent, net.below[parent].len() as u32));
            }
        }
        net.routers = (0..parents.len()).map(|router| Some(net.router(router))).collect();
        net
    }

    pub(super) fn over(mut self, v6: bool, encapsulation: Encapsulation) -> Self {
        (self.v6, self.encapsulation) = (v6, encapsulation);
        self.routers = (0..self.routers.len()).map(|router| Some(self.router(router))).collect();
        self
    }

    fn router(&self, number: usize) -> Router {
        Router::new(self.config, vec![self.address(1, number)])
    }

    /// Gives one router other settings than the rest.
    pub(super) fn configure(&mut self, number: usize, config: Config) {
        self.routers[number] = Some(Router::new(config, vec![self.address(1, number)]));
    }

    /// A router that has forgotten all.
    pub(super) fn restart(&mut self, number: usize) {
        self.routers[number] = Some(self.router(number));
    }

    pub(super) fn address(&self, net: u8, number: usize) -> IpAddr {
        match self.v6 {
            false => [10, net, 0, number as u8 + 1].into(),
            true => [0xfd00, net.into(), 0, 0, 0, 0, 0, number as u16 + 1].into(),
        }
    }

    pub(super) fn source(&self) -> IpAddr {
        self.address(0, 0)
    }

    pub(super) fn receiver(&self, number: usize) -> IpAddr {
        self.address(2, number)
    }

    pub(super) fn group(&self) -> IpAddr {
        if self.v6 { [0xff0e, 0, 0, 0, 0, 0, 0, 9].into() } else { [239, 0, 0, 9].into() }
    }

    /// A packet of the source to the group.
    pub(super) fn to_group(&self, packet: &Packet<'_>) -> Buffer {
        let ends = (self.source(), self.group());
        encapsulation::wrap(packet.emit(), self.encapsulation, ends, (64, true))
    }

    fn send_to_group(&mut self, packet: &Packet<'_>) {
        let bytes = self.to_group(packet);
        self.cross(Below::Router(0), kind(packet), Arrival::Router(0, 0, bytes));
    }

    pub(super) fn spm(&mut self) {
        self.spm += 1;
        self.spm_with(self.spm);
    }

    /// Sends an SPM with this number.
    pub(super) fn spm_with(&mut self, sequence: u32) {
        let spm = Spm { sequence, trail: self.trail, lead: self.lead, path: self.source() };
        let mut packet = Packet::new(TSI, 88, Body::Spm(spm));
        let proactive = self.is_proactive;
        packet.options.parity = self.parity.map(|group| Parity { proactive, on_demand: true, group });
        packet.options.member = self.member;
        self.send_to_group(&packet);
        self.run(20);
    }

    /// Sends the next packet of data.
    pub(super) fn data(&mut self) -> u32 {
        self.lead = self.lead.wrapping_add(1);
        let data = Data { sequence: self.lead, trail: self.trail };
        self.send_to_group(&Packet { payload: &[7; 100], ..Packet::new(TSI, 88, Body::Original(data)) });
        self.run(20);
        self.lead
    }

    pub(super) fn nak_of(&self, numbers: &[u32], is_parity: bool) -> Packet<'static> {
        let nak = Nak { sequence: numbers[0], source: self.source(), group: self.group() };
        let options = Options { nak_list: numbers[1..].to_vec(), ..Options::default() };
        Packet { is_parity, options, ..Packet::new(TSI, 88, Body::Nak(nak)) }
    }

    pub(super) fn ncf_of(&self, numbers: &[u32]) -> Packet<'static> {
        let packet = self.nak_of(numbers, false);
        let nak = Nak { sequence: numbers[0], source: self.source(), group: self.group() };
        Packet { body: Body::Confirmation(nak), ..packet }
    }

    /// A receiver asks for packets.
    pub(super) fn ask(&mut self, receiver: usize, numbers: &[u32]) {
        self.send_nak(receiver, &self.nak_of(numbers, false));
    }

    pub(super) fn ask_parity(&mut self, receiver: usize, first: u32, count: u32) {
        self.send_nak(receiver, &self.nak_of(&[first + count - 1], true));
    }

    pub(super) fn send_nak(&mut self, receiver: usize, packet: &Packet<'_>) {
        let Some(&path) = self.paths.get(&receiver) else { return };
        let ends = (self.receiver(receiver), path);
        let bytes =
            encapsulation::wrap(packet.emit(), self.encapsulation.towards_source(), ends, (64, false));
        let (router, interface) = self.parents[&Below::Receiver(receiver)];
        let at = Arrival::Router(router, interface, bytes);
        self.cross(Below::Receiver(receiver), kind(packet), at);
    }

    /// Puts a packet at an interface of a router.
    pub(super) fn inject(&mut self, router: usize, interface: u32, bytes: Buffer) {
        self.line.push_back((self.now, Arrival::Router(router, interface, bytes)));
    }

    fn cross(&mut self, link: Below, kind: Kind, arrival: Arrival) {
        *self.crossed.entry((link, kind)).or_default() += 1;
        match self.lose.get_mut(&(link, kind)) {
            Some(left @ 1..) => *left -= 1,
            _ => self.line.push_back((self.now + HOP, arrival)),
        }
    }

    /// Number of packets of a kind that crossed the link above a node, in either direction.
    pub(super) fn on(&self, link: Below, kind: Kind) -> u64 {
        self.crossed.get(&(link, kind)).copied().unwrap_or(0)
    }

    /// The links that packets of a kind have crossed, with their number.
    pub(super) fn links(&self, wanted: Kind) -> Vec<(Below, u64)> {
        let of = self.crossed.iter().filter(|&(&(_, kind), &count)| kind == wanted && count > 0);
        of.map(|(&(link, _), &count)| (link, count)).collect()
    }

    pub(super) fn clear(&mut self) {
        self.crossed.clear();
        self.at_source.clear();
    }

    /// Lets so many milliseconds pass.
    pub(super) fn run(&mut self, ms: u64) {
        let end = self.now + Duration::from_millis(ms);
        for steps in 0.. {
            assert!(steps < 1_000_000, "the network does not come to rest");
            let arrival = self.line.iter().map(|&(at, _)| at).min();
            let timers = self.routers.iter().flatten().filter_map(Machine::deadline).min();
            let Some(next) = [arrival, timers].into_iter().flatten().min().filter(|&next| next <= end) else {
                break;
            };
            self.now = self.now.max(next);
            for router in 0..self.routers.len() {
                if let Some(machine) = &mut self.routers[router] {
                    machine.wake(self.now);
                    self.drain(router);
                }
            }
            let due = self.line.iter().position(|&(at, _)| at <= self.now);
            match due.and_then(|place| self.line.remove(place)) {
                Some((_, Arrival::Router(router, interface, bytes))) => {
                    self.arrive(router, interface, bytes);
                }
                Some((_, Arrival::Receiver(receiver, bytes))) => self.deliver(receiver, &bytes),
                Some((_, Arrival::Source(bytes))) => self.answer(&bytes),
                None => {}
            }
        }
        self.now = end;
    }

    fn arrive(&mut self, router: usize, interface: u32, bytes: Buffer) {
        match &mut self.routers[router] {
            Some(machine) => {
                let transit = Transit::arrived(bytes, interface);
                machine.handle(self.now, Port::Below(0), Item::Transit(transit));
                self.drain(router);
            }
            // A router that knows no PGM.
            None => self.forward(router, &Transit::arrived(bytes, interface)),
        }
    }

    fn drain(&mut self, router: usize) {
        let poll = |net: &mut Self| net.routers[router].as_mut().and_then(|machine| machine.poll(net.now));
        while let Some((_, item)) = poll(self) {
            match item {
                Item::Transit(transit) => self.forward(router, &transit),
                Item::Packet(bytes) => self.send_up(router, bytes),
                _ => panic!("{item:?}"),
            }
        }
        let load = self.routers[router].as_ref().map(Router::load);
        assert!(load.is_none_or(|(sessions, _)| sessions <= self.config.sessions));
    }

    fn forward(&mut self, router: usize, transit: &Transit) {
        let (place, packet) = encapsulation::read(&transit.packet).unwrap();
        let kind = kind(&packet);
        let interfaces: Vec<u32> = match &transit.egress {
            Egress::Group(interfaces) => interfaces.to_vec(),
            Egress::Routes if place.header.destination == self.group() => {
                (1..=self.below[router].len() as u32).collect()
            }
            // For the node itself, which has nobody to take it.
            Egress::Routes | Egress::Neighbour { .. } => Vec::new(),
        };
        let distinct: BTreeSet<u32> = interfaces.iter().copied().collect();
        assert_eq!(distinct.len(), interfaces.len(), "each interface once");
        for interface in interfaces {
            assert!(interface > 0, "nothing is sent back to the source's side: {packet:?}");
            let link = self.below[router][interface as usize - 1];
            let bytes = transit.packet.clone();
            let arrival = match link {
                Below::Router(below) => Arrival::Router(below, 0, bytes),
                Below::Receiver(receiver) => Arrival::Receiver(receiver, bytes),
            };
            self.cross(link, kind, arrival);
        }
    }

    fn send_up(&mut self, router: usize, bytes: Buffer) {
        let (place, packet) = encapsulation::read(&bytes).unwrap();
        let (kind, to) = (kind(&packet), place.header.destination);
        assert_eq!(place.header.source, self.address(1, router));
        let is_to = |below: &Below| matches!(below, Below::Router(n) if to == self.address(1, *n));
        if let Some(&link @ Below::Router(below)) = self.below[router].iter().find(|below| is_to(below)) {
            self.cross(link, kind, Arrival::Router(below, 0, bytes));
            return;
        }
        match self.parents.get(&Below::Router(router)) {
            Some(&(above, interface)) => {
                assert_eq!(to, self.address(1, above), "each element asks the next");
                self.cross(Below::Router(router), kind, Arrival::Router(above, interface, bytes));
            }
            None => {
                assert_eq!(to, self.source());
                self.cross(Below::Router(router), kind, Arrival::Source(bytes));
            }
        }
    }

    fn deliver(&mut self, receiver: usize, bytes: &[u8]) {
        let (place, packet) = encapsulation::read(bytes).unwrap();
        if (place.header.source, packet.session) != (self.source(), TSI) {
            return;
        }
        match packet.body {
            Body::Spm(spm) => _ = self.paths.insert(receiver, spm.path),
            Body::Original(data) | Body::Repair(data) => {
                self.has.entry(receiver).or_default().push(data.sequence);
            }
            _ => {}
        }
    }

    fn answer(&mut self, bytes: &[u8]) {
        let (place, packet) = encapsulation::read(bytes).unwrap();
        let nak = match packet.body {
            Body::Nak(nak) => {
                self.naks_at_source.push((place.encapsulation, packet.options.clone()));
                nak
            }
            Body::NullNak(nak) => nak,
            Body::Ack(ack) => return self.at_source.push((Kind::Ack, ack.highest)),
            _ => panic!("{packet:?}"),
        };
        let numbers: Vec<u32> =
            [nak.sequence].into_iter().chain(packet.options.nak_list.iter().copied()).collect();
        self.at_source.extend(numbers.iter().map(|&number| (kind(&packet), number)));
        if !self.answers || matches!(packet.body, Body::NullNak(_)) {
            return;
        }
        let ncf = Packet { body: Body::Confirmation(nak), ..packet.clone() };
        self.send_to_group(&ncf);
        for number in numbers {
            match self.parity.filter(|_| packet.is_parity) {
                None => self.repair(number),
                Some(len) => (0..=number % len).for_each(|_| self.repair_by_parity(number - number % len)),
            }
        }
    }

    pub(super) fn repair(&mut self, sequence: u32) {
        let data = Data { sequence, trail: self.trail };
        self.send_to_group(&Packet { payload: &[7; 100], ..Packet::new(TSI, 88, Body::Repair(data)) });
    }

    pub(super) fn repair_by_parity(&mut self, first: u32) {
        let sent = self.parity_sent.entry(first).or_default();
        *sent += 1;
        let data = Data { sequence: first + *sent - 1, trail: self.trail };
        let packet = Packet::new(TSI, 88, Body::Repair(data));
        self.send_to_group(&Packet { payload: &[9; 100], is_parity: true, ..packet });
    }

    /// A counter of a router.
    pub(super) fn counter(&self, router: usize, wanted: &str) -> u64 {
        let mut found = 0;
        let router = self.routers[router].as_ref().unwrap();
        router.counters(&mut |name, value| found += if name == wanted { value } else { 0 });
        found
    }
}

fn kind(packet: &Packet<'_>) -> Kind {
    match packet.body {
        Body::Spm(_) => Kind::Spm,
        Body::Original(_) => Kind::Data,
        Body::Repair(_) => Kind::Repair,
        Body::Nak(_) => Kind::Nak,
        Body::Confirmation(_) => Kind::Ncf,
        Body::NullNak(_) => Kind::NullNak,
        Body::Ack(_) => Kind::Ack,
        Body::Poll(_) => Kind::Poll,
        Body::PollResponse(_) => Kind::PollResponse,
        _ => panic!("{packet:?}"),
    }
}
