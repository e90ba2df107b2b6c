//! Hosts back to back: their frames are handed over at once, and what goes up is kept for the test to see.
#![allow(dead_code)]

use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, SocketAddr};

use hopcast_core::{Buffer, Datagram, Frame, Instant, Item, Machine, Port};
use hopcast_host::{Config, Host, Interface, NextHop, StaticRoutes};
use hopcast_wire::{icmp, ip};

/// Hosts `a` (0), a router (1) and `b` (2) in a row: `a`.0 - 0.router.1 - 0.`b`.
pub(crate) struct Network {
    pub(crate) hosts: Vec<Host>,
    /// The items that each host handed up.
    pub(crate) up: Vec<Vec<(u32, Item)>>,
    pub(crate) now: Instant,
    links: BTreeMap<(usize, u32), (usize, u32)>,
    /// Every frame that crossed a link, in order.
    pub(crate) frames: Vec<Buffer>,
    /// Flips this bit of each frame that enters the host.
    pub(crate) flip: Option<(usize, usize)>,
}

pub(crate) const A: usize = 0;
pub(crate) const ROUTER: usize = 1;
pub(crate) const B: usize = 2;

pub(crate) fn address(host: usize, v6: bool) -> IpAddr {
    let n = host as u8 + 1;
    if v6 { [0xfd00, 0, 0, 0, 0, 0, 0, n.into()].into() } else { [10, 0, 0, n].into() }
}

pub(crate) fn socket(host: usize, v6: bool, port: u16) -> SocketAddr {
    SocketAddr::new(address(host, v6), port)
}

pub(crate) fn mac(host: usize, interface: u32) -> [u8; 6] {
    [2, 0, 0, 0, host as u8, interface as u8]
}

impl Network {
    /// Three in a row, with this MTU between the router and `b`.
    pub(crate) fn new(far_mtu: u32) -> Self {
        let everywhere = |hop| StaticRoutes::new().with(zero(false), 0, hop).with(zero(true), 0, hop);
        let a = host(A, &[1500], false, everywhere(hop(0, ROUTER, 0)));
        let b = host(B, &[far_mtu], false, everywhere(hop(0, ROUTER, 1)));
        let mut routes = StaticRoutes::new();
        for v6 in [false, true] {
            routes = routes.with(address(A, v6), 128, hop(0, A, 0)).with(address(B, v6), 128, hop(1, B, 0));
        }
        let router = host(ROUTER, &[1500, far_mtu], true, routes);
        let links = BTreeMap::from([
            ((A, 0), (ROUTER, 0)),
            ((ROUTER, 0), (A, 0)),
            ((ROUTER, 1), (B, 0)),
            ((B, 0), (ROUTER, 1)),
        ]);
        Self {
            hosts: vec![a, router, b],
            up: vec![Vec::new(), Vec::new(), Vec::new()],
            now: Instant::ZERO,
            links,
            frames: Vec::new(),
            flip: None,
        }
    }

    /// Hands an item to a host, and all frames on until the network is quiet.
    pub(crate) fn hand(&mut self, host: usize, port: Port, item: Item) {
        let mut line = VecDeque::from([(host, port, item)]);
        let mut steps = 0;
        while let Some((host, port, mut item)) = line.pop_front() {
            steps += 1;
            assert!(steps < 10_000, "the network does not come to rest");
            if let (Item::Frame(frame), Some((at, bit))) = (&mut item, self.flip)
                && at == host
            {
                let bit = bit % (8 * frame.bytes.len());
                frame.bytes[bit / 8] ^= 1 << (bit % 8);
            }
            self.hosts[host].handle(self.now, port, item);
            while let Some((port, item)) = self.hosts[host].poll(self.now) {
                match (port, item) {
                    (Port::Below(interface), Item::Frame(frame)) => {
                        self.frames.push(frame.bytes.clone());
                        let (to, interface) = self.links[&(host, interface)];
                        line.push_back((to, Port::Below(interface), Item::Frame(frame)));
                    }
                    (Port::Above(above), item) => self.up[host].push((above, item)),
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    pub(crate) fn hand_frame(&mut self, host: usize, interface: u32, bytes: &[u8]) {
        let frame = Frame::new(Buffer::copy_from(bytes));
        self.hand(host, Port::Below(interface), Item::Frame(frame));
    }

    pub(crate) fn hand_packet(&mut self, host: usize, packet: Buffer) {
        self.hand(host, Port::Above(99), Item::Packet(packet));
    }

    /// Sends from the UDP port bound on `Above(above)`, whatever it is.
    pub(crate) fn send(&mut self, host: usize, above: u32, remote: SocketAddr, payload: &[u8]) {
        let local = SocketAddr::new(zero(remote.is_ipv6()), 0);
        let datagram = Datagram::new(local, remote, Buffer::copy_from(payload));
        self.hand(host, Port::Above(above), Item::Datagram(datagram));
    }

    /// The items that a host has handed up since the last look.
    pub(crate) fn take(&mut self, host: usize) -> Vec<(u32, Item)> {
        std::mem::take(&mut self.up[host])
    }

    /// The ICMP messages that have gone up on a host since the last look, with who sent them.
    pub(crate) fn take_icmp(&mut self, host: usize) -> Vec<(IpAddr, icmp::Message)> {
        let items = self.take(host);
        items
            .into_iter()
            .map(|(_, item)| {
                let Item::Packet(packet) = item else { panic!("{item:?}") };
                let header = ip::parse(&packet).unwrap();
                let message = icmp::parse(header.source, header.destination, &packet[header.payload()]);
                (header.source, message.unwrap())
            })
            .collect()
    }

    pub(crate) fn counter(&self, host: usize, name: &str) -> u64 {
        crate::counter(&self.hosts[host], name)
    }
}

fn zero(v6: bool) -> IpAddr {
    if v6 { [0u16; 8].into() } else { [0u8; 4].into() }
}

pub(crate) fn hop(interface: u32, to: usize, at: u32) -> NextHop {
    NextHop { interface, mac: mac(to, at) }
}

pub(crate) fn host(number: usize, mtus: &[u32], forwarding: bool, routes: StaticRoutes) -> Host {
    let interfaces = mtus.iter().zip(0..).map(|(&mtu, i)| Interface::new(mac(number, i), mtu)).collect();
    let addresses = vec![address(number, false), address(number, true)];
    Host::new(Config { addresses, interfaces, forwarding, ..Config::default() }, Box::new(routes))
}

/// A packet of `protocol` from `a` to `b` whose payload is `size` bytes that begin with the ports 1000 and 2000.
pub(crate) fn packet(v6: bool, protocol: u8, hop_limit: u8, size: usize) -> Buffer {
    let mut packet = Buffer::zeroed(size);
    if size >= 4 {
        packet[..4].copy_from_slice(&[0x03, 0xe8, 0x07, 0xd0]);
    }
    ip::prepend(&mut packet, address(A, v6), address(B, v6), protocol, hop_limit, 1);
    packet
}

pub(crate) fn icmp_protocol(v6: bool) -> u8 {
    if v6 { ip::ICMPV6 } else { ip::ICMP }
}
