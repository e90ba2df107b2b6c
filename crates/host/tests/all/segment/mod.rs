//! Hosts on one Ethernet segment, in virtual time: frames arrive at once, unless the test loses them.
#![allow(dead_code)]

use std::collections::VecDeque;
use std::net::IpAddr;

use hopcast_core::{Buffer, Duration, Frame, Instant, Item, Machine, Port, Seed};
use hopcast_host::{Config, Host, Interface, NeighbourConfig, StaticRoutes};
use hopcast_wire::ethernet::{self, Mac};
use hopcast_wire::icmp::{self, Message};
use hopcast_wire::{arp, ip, nd};

/// The port above of the packets of TEST, and of all ICMP.
pub(crate) const PACKETS: u32 = 0;
pub(crate) const ERRORS: u32 = 1;
/// A protocol for experiments (RFC 3692).
pub(crate) const TEST: u8 = 253;

/// Whether the link loses a frame.
pub(crate) type Lose = Box<dyn FnMut(&[u8]) -> bool>;

pub(crate) struct Segment {
    pub(crate) now: Instant,
    pub(crate) hosts: Vec<Host>,
    /// Every frame that was sent, lost ones included, with the time.
    pub(crate) frames: Vec<(Instant, Buffer)>,
    /// Whether a frame is lost.
    pub(crate) lose: Lose,
    /// The packets of TEST that each host has received.
    pub(crate) received: Vec<Vec<Buffer>>,
    /// The ICMP errors about packets of TEST that each host has received, its own ones included.
    pub(crate) errors: Vec<Vec<Message>>,
}

pub(crate) fn mac(host: usize) -> Mac {
    [2, 0, 0, 0, 0, host as u8 + 1]
}

pub(crate) fn address(host: usize, v6: bool) -> IpAddr {
    let number = host as u8 + 1;
    if v6 { [0xfd00, 0, 0, 0, 0, 0, 0, number.into()].into() } else { [10, 0, 0, number].into() }
}

pub(crate) fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A host whose destinations are all on the link.
pub(crate) fn host(number: usize, config: NeighbourConfig) -> Host {
    let everything = |routes: StaticRoutes, v6| {
        let zero = if v6 { [0u16; 8].into() } else { [0u8; 4].into() };
        routes.via((zero, 0), 0, None)
    };
    let routes = everything(everything(StaticRoutes::new(), false), true);
    let own = Config {
        addresses: vec![address(number, false), address(number, true)],
        interfaces: vec![Interface::new(mac(number), 1500)],
        ..Config::default()
    };
    let mut host = Host::new(own, Box::new(routes));
    host.resolve_neighbours(config, Seed::new(1, 0).stream(&["neighbours", &number.to_string()], 0));
    host.bind_protocol(PACKETS, TEST, None).unwrap();
    host.bind_protocol(ERRORS, ip::ICMP, None).unwrap();
    host.bind_protocol(ERRORS, ip::ICMPV6, None).unwrap();
    host
}

/// A packet between hosts, whose payload is a number. The protocol has its errors delivered.
pub(crate) fn packet(from: usize, to: IpAddr, number: u8) -> Buffer {
    let mut packet = Buffer::copy_from(&[number; 4]);
    ip::prepend(&mut packet, address(from, to.is_ipv6()), to, TEST, 64, 1);
    packet
}

impl Segment {
    pub(crate) fn new(hosts: usize) -> Self {
        Self::with(hosts, NeighbourConfig::default())
    }

    pub(crate) fn with(hosts: usize, config: NeighbourConfig) -> Self {
        Self {
            now: Instant::ZERO,
            hosts: (0..hosts).map(|number| host(number, config)).collect(),
            frames: Vec::new(),
            lose: Box::new(|_| false),
            received: vec![Vec::new(); hosts],
            errors: vec![Vec::new(); hosts],
        }
    }

    /// Sends a packet from a host to an address.
    pub(crate) fn send(&mut self, from: usize, to: IpAddr, number: u8) {
        let packet = packet(from, to, number);
        self.hosts[from].handle(self.now, Port::Above(PACKETS), Item::Packet(packet));
        self.settle();
    }

    /// Puts a frame of no host on the link.
    pub(crate) fn inject(&mut self, frame: &[u8]) {
        self.carry(None, Buffer::copy_from(frame));
        self.settle();
    }

    /// Lets time pass, waking hosts when they ask for it.
    pub(crate) fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        while let Some(at) = self.deadline().filter(|&at| at <= end) {
            assert!(at > self.now, "a deadline lies in the future");
            self.now = at;
            for host in &mut self.hosts {
                if host.deadline().is_some_and(|deadline| deadline <= at) {
                    host.wake(at);
                }
            }
            self.settle();
        }
        self.now = end;
    }

    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.hosts.iter().filter_map(Machine::deadline).min()
    }

    pub(crate) fn counter(&self, host: usize, name: &str) -> u64 {
        crate::counter(&self.hosts[host], name)
    }

    /// Seconds at which requests were sent, by whoever.
    pub(crate) fn requests(&self) -> Vec<u64> {
        let requests = self.frames.iter().filter(|(_, frame)| is_request(frame));
        requests.map(|(at, _)| at.as_nanos() / 1_000_000_000).collect()
    }

    /// The numbers of the packets that a host has received.
    pub(crate) fn numbers(&self, host: usize) -> Vec<u8> {
        self.received[host].iter().map(|packet| packet[packet.len() - 1]).collect()
    }

    fn settle(&mut self) {
        let mut steps = 0;
        loop {
            let mut sent = VecDeque::new();
            for number in 0..self.hosts.len() {
                while let Some((port, item)) = self.hosts[number].poll(self.now) {
                    match (port, item) {
                        (Port::Below(0), Item::Frame(frame)) => sent.push_back((number, frame.bytes)),
                        (Port::Above(PACKETS), Item::Packet(packet)) => self.note(number, packet),
                        (Port::Above(ERRORS), Item::Packet(packet)) => self.note(number, packet),
                        other => panic!("{other:?}"),
                    }
                }
            }
            if sent.is_empty() {
                return;
            }
            for (from, frame) in sent {
                steps += 1;
                assert!(steps < 10_000, "the link does not come to rest");
                self.carry(Some(from), frame);
            }
        }
    }

    fn note(&mut self, host: usize, packet: Buffer) {
        let header = ip::parse(&packet).unwrap();
        if header.protocol == TEST {
            return self.received[host].push(packet);
        }
        let message = icmp::parse(header.source, header.destination, &packet[header.payload()]).unwrap();
        self.errors[host].push(message);
    }

    /// Hands a frame to the stations it is for.
    fn carry(&mut self, from: Option<usize>, frame: Buffer) {
        self.frames.push((self.now, frame.clone()));
        if (self.lose)(&frame) {
            return;
        }
        let to = ethernet::parse(&frame).unwrap().destination;
        for number in 0..self.hosts.len() {
            if Some(number) != from && (ethernet::is_group(to) || to == mac(number)) {
                let item = Item::Frame(Frame::new(frame.clone()));
                self.hosts[number].handle(self.now, Port::Below(0), item);
            }
        }
    }
}

/// Whether a frame carries ARP or neighbour discovery.
pub(crate) fn is_resolution(frame: &[u8]) -> bool {
    resolution(frame).is_some()
}

/// Whether it asks for an address.
pub(crate) fn is_request(frame: &[u8]) -> bool {
    resolution(frame) == Some(true)
}

/// Of a frame that carries ARP or neighbour discovery, whether it asks.
fn resolution(frame: &[u8]) -> Option<bool> {
    let header = ethernet::parse(frame).unwrap();
    let payload = &frame[ethernet::HEADER..];
    match header.ether_type {
        arp::ETHER_TYPE => Some(arp::parse(payload).ok()?.operation == arp::Operation::Request),
        ethernet::IPV6 => {
            let header = ip::parse(payload).ok()?;
            let (IpAddr::V6(source), IpAddr::V6(destination)) = (header.source, header.destination) else {
                return None;
            };
            let message = nd::parse((source, destination), header.hop_limit, &payload[header.payload()]);
            let asks = match message {
                Ok(Some(nd::Message::Solicitation { .. })) => Some(true),
                Ok(Some(nd::Message::Advertisement { .. })) => Some(false),
                Ok(None) | Err(_) => None,
            };
            asks.filter(|_| header.protocol == ip::ICMPV6)
        }
        _ => None,
    }
}
