//! A router with a hook on four links, in virtual time and on the kernel, with the same machine and the same interface
//! to tests: a sender on link 0, and the packets that leave by each link.
//!
//! Link i is `fd0i::/64`; the router is `fd0i::1` there and the only other station `fd0i::2`. Where `reflects` is set,
//! the station on link 1 is a router with a hook, too, which sends all that it takes back by that link.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::OwnedFd;
use std::sync::mpsc;
use std::thread::JoinHandle;
use std::time::Duration;

use hopcast_core::plug::{HookPlug, Plug};
use hopcast_core::{Buffer, Egress, Frame, Hook, Instant, Item, Machine, Outbox, Port, Reactive, Transit};
use hopcast_host::{Config, Host, Interface, NextHop, StaticRoutes};
use hopcast_node::Clock;
use hopcast_node::runtime::{Runtime, Stop, packet_socket};
use hopcast_wire::{ethernet, ip};
use rustix::net::{Protocol, RawProtocol, RecvFlags, recv};

use crate::common::Namespace;

/// IPv6's routing header, and a type of it that no standard uses (RFC 3692 section 2.1).
pub(crate) const ROUTING: u8 = 43;
pub(crate) const KIND: u8 = 253;
/// No next header (RFC 8200 section 4.7): no host answers it.
pub(crate) const NOTHING: u8 = 59;
/// The UDP port on which the router listens.
pub(crate) const LISTENS: u16 = 7000;
pub(crate) const LINKS: usize = 4;

pub(crate) fn router(link: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00 + link as u16, 0, 0, 0, 0, 0, 0, 1)
}

pub(crate) fn station(link: usize) -> Ipv6Addr {
    Ipv6Addr::new(0xfd00 + link as u16, 0, 0, 0, 0, 0, 0, 2)
}

/// The answer of the test machine to a packet, by the fifth byte of its routing header, before the list of addresses.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Answer {
    /// A copy to each address of the list, without the header, by the routes.
    EachByRoutes,
    /// The packet as it is, to the neighbour at place i of the list on interface i + 1, or on the last one.
    EachToNeighbour,
    /// The packet as it is, to its group on interfaces 1, 2 and 3.
    Group,
    Nothing,
    /// The packet as it is, back to the host.
    Pass,
    /// A thousand copies to the first address, by the routes.
    ThousandByRoutes,
    /// A thousand to the first neighbour on interface 1.
    ThousandToNeighbour,
    /// A copy to each address, as a packet of the host's own.
    EachAsOwn,
    /// The packet as it is, to the one neighbour that the machine was made with.
    Onward,
}

impl Answer {
    const ALL: [Self; 9] = [
        Self::EachByRoutes,
        Self::EachToNeighbour,
        Self::Group,
        Self::Nothing,
        Self::Pass,
        Self::ThousandByRoutes,
        Self::ThousandToNeighbour,
        Self::EachAsOwn,
        Self::Onward,
    ];
}

/// A packet from the station on link 0 with a routing header of `kind` that asks for this answer.
pub(crate) fn packet(to: Ipv6Addr, kind: u8, hop_limit: u8, answer: Answer, list: &[Ipv6Addr]) -> Vec<u8> {
    with_payload(to, kind, hop_limit, answer, list, NOTHING, b"payload!")
}

pub(crate) fn with_payload(
    to: Ipv6Addr,
    kind: u8,
    hop_limit: u8,
    answer: Answer,
    list: &[Ipv6Addr],
    next_header: u8,
    payload: &[u8],
) -> Vec<u8> {
    let answer = Answer::ALL.iter().position(|&it| it == answer).unwrap() as u8;
    let mut bytes = vec![next_header, 2 * list.len() as u8, kind, 0, answer, 0, 0, 0];
    bytes.extend(list.iter().flat_map(|address| address.octets()));
    bytes.extend_from_slice(payload);
    let mut packet = Buffer::copy_from(&bytes);
    ip::prepend(&mut packet, station(0).into(), to.into(), ROUTING, hop_limit, 0);
    packet.to_vec()
}

/// The machine behind the hook: copies to listed addresses, as explicit multicast does.
pub(crate) struct Explicit {
    out: Outbox,
    onward: (u32, Ipv6Addr),
}

impl Explicit {
    pub(crate) fn new(onward: (u32, Ipv6Addr)) -> Self {
        Self { out: Outbox::new(), onward }
    }

    fn answer(&mut self, transit: Transit) {
        // A hook that selects more sees the kernels' own multicast, too.
        let Some(header) = ip::extension(&transit.packet, ROUTING) else { return };
        let len = 8 + 8 * usize::from(header[1]);
        let answer = Answer::ALL[usize::from(header[4])];
        let list: Vec<_> =
            header[8..len].as_chunks().0.iter().map(|&bytes: &[u8; 16]| Ipv6Addr::from(bytes)).collect();
        // The copy that an address gets: the header taken out, its own address as the destination.
        let copy = |to: &Ipv6Addr| {
            let mut bytes = transit.packet.to_vec();
            bytes[6] = header[0];
            bytes.drain(40..40 + len);
            let payload = (bytes.len() - 40) as u16;
            bytes[4..6].copy_from_slice(&payload.to_be_bytes());
            bytes[24..40].copy_from_slice(&to.octets());
            Buffer::copy_from(&bytes)
        };
        let to_neighbour = |interface, address: Ipv6Addr| Transit {
            egress: Egress::Neighbour { interface, address: address.into() },
            ..transit.clone()
        };
        let by_routes = |to| Transit { packet: copy(to), ..transit.clone() };
        let transits: Vec<Transit> = match answer {
            Answer::EachByRoutes => list.iter().map(by_routes).collect(),
            Answer::EachToNeighbour => {
                (1..).zip(&list).map(|(interface, &to)| to_neighbour(interface.min(3), to)).collect()
            }
            Answer::Group => vec![Transit { egress: Egress::Group([1, 2, 3].into()), ..transit.clone() }],
            Answer::Nothing => Vec::new(),
            Answer::Pass => vec![transit.clone()],
            Answer::ThousandByRoutes => vec![by_routes(&list[0]); 1000],
            Answer::ThousandToNeighbour => vec![to_neighbour(1, list[0]); 1000],
            Answer::EachAsOwn => {
                list.iter().for_each(|to| self.out.down(Item::Packet(copy(to))));
                Vec::new()
            }
            Answer::Onward => vec![to_neighbour(self.onward.0, self.onward.1)],
        };
        transits.into_iter().for_each(|transit| self.out.down(Item::Transit(transit)));
    }
}

impl Reactive for Explicit {
    fn react(&mut self, _now: Instant, _port: Port, item: Item) {
        let Item::Transit(transit) = item else { panic!("{item:?}") };
        assert_eq!(transit.egress, Egress::Routes);
        self.answer(transit);
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn is_pending(&self) -> bool {
        !self.out.is_empty()
    }
}

/// The router and its links, in either world.
pub(crate) trait Links {
    /// The station on link 0 sends a packet.
    fn send(&mut self, packet: &[u8]);

    /// The packets that have reached the stations since the last look, each with its link, in order of links; at
    /// least `expected` of them, if that number comes.
    fn arrived(&mut self, expected: usize) -> Vec<(usize, Vec<u8>)>;

    /// The datagrams that the router has received on its port since the last look; at least `expected` of them, if so
    /// many come.
    fn delivered(&mut self, expected: usize) -> Vec<Vec<u8>>;

    /// Ends it, and says how many answers were too many, and how many had no hop left.
    fn end(self: Box<Self>) -> (u64, u64);
}

/// In virtual time: hosts, and frames that are handed over at once.
pub(crate) struct Simulated {
    /// The router, and the reflecting station.
    hosts: Vec<(Host, Explicit)>,
    arrived: Vec<(usize, Vec<u8>)>,
    delivered: Vec<Vec<u8>>,
    reflects: bool,
}

const HOOK: u32 = 8;

fn mac(link: usize, is_router: bool) -> [u8; 6] {
    [2, 0, 0, 0, link as u8, is_router.into()]
}

impl Simulated {
    pub(crate) fn new(hook: Hook, reflects: bool) -> Self {
        let mut routes = StaticRoutes::new();
        for link in 0..LINKS {
            let hop = NextHop { interface: link as u32, mac: mac(link, false) };
            routes = routes.with(station(link).into(), 128, hop);
        }
        let host = |links: std::ops::Range<usize>, is_router, addresses: Vec<Ipv6Addr>, routes| {
            let interfaces = links.map(|link| Interface::new(mac(link, is_router), 1500)).collect();
            let addresses = addresses.into_iter().map(IpAddr::V6).collect();
            let config = Config { addresses, interfaces, forwarding: true, ..Config::default() };
            let mut host = Host::new(config, Box::new(routes));
            host.hook(HOOK, hook);
            host.bind_udp(2, LISTENS).unwrap();
            host
        };
        let central = host(0..LINKS, true, (0..LINKS).map(router).collect(), routes);
        let back = NextHop { interface: 0, mac: mac(1, true) };
        let reflecting =
            host(1..2, false, vec![station(1)], StaticRoutes::new().with(router(1).into(), 128, back));
        let hosts =
            vec![(central, Explicit::new((1, station(1)))), (reflecting, Explicit::new((0, router(1))))];
        Self { hosts, arrived: Vec::new(), delivered: Vec::new(), reflects }
    }

    fn counter(&self, wanted: &str) -> u64 {
        let mut sum = 0;
        for (host, _) in &self.hosts {
            host.counters(&mut |name, value| sum += if name == wanted { value } else { 0 });
        }
        sum
    }
}

impl Links for Simulated {
    fn send(&mut self, packet: &[u8]) {
        let to = ip::parse(packet).unwrap().destination;
        let destination = if to.is_multicast() { ethernet::of_group(to) } else { mac(0, true) };
        let mut frame = Buffer::copy_from(packet);
        let header = ethernet::Header { destination, source: mac(0, false), ether_type: ethernet::IPV6 };
        ethernet::prepend(&mut frame, header);
        let mut line = VecDeque::from([(0, Port::Below(0), Item::Frame(Frame::new(frame)))]);
        let mut steps = 0;
        while let Some((place, port, item)) = line.pop_front() {
            steps += 1;
            assert!(steps < 10_000, "it does not come to rest");
            let (host, machine) = &mut self.hosts[place];
            host.handle(Instant::ZERO, port, item);
            while let Some((port, item)) = host.poll(Instant::ZERO) {
                match (port, item) {
                    (Port::Above(HOOK), item) => {
                        machine.react(Instant::ZERO, Port::Below(0), item);
                        while let Some((_, item)) = machine.next() {
                            line.push_back((place, Port::Above(HOOK), item));
                        }
                    }
                    (Port::Above(_), Item::Datagram(datagram)) => {
                        self.delivered.push(datagram.payload.to_vec());
                    }
                    (Port::Below(interface), Item::Frame(frame)) => {
                        let link = interface as usize;
                        if place == 0 {
                            self.arrived.push((link, frame.bytes[ethernet::HEADER..].to_vec()));
                        }
                        if place == 1 {
                            line.push_back((0, Port::Below(1), Item::Frame(frame)));
                        } else if self.reflects && link == 1 {
                            line.push_back((1, Port::Below(0), Item::Frame(frame)));
                        }
                    }
                    other => panic!("{other:?}"),
                }
            }
        }
    }

    fn arrived(&mut self, _expected: usize) -> Vec<(usize, Vec<u8>)> {
        self.arrived.sort_by_key(|&(link, _)| link);
        std::mem::take(&mut self.arrived)
    }

    fn delivered(&mut self, _expected: usize) -> Vec<Vec<u8>> {
        std::mem::take(&mut self.delivered)
    }

    fn end(self: Box<Self>) -> (u64, u64) {
        (self.counter("hook_excess"), self.counter("hop_limit_exceeded"))
    }
}

/// On the kernel: a namespace for the router and one for each station.
pub(crate) struct Live {
    pub(crate) stations: Vec<(Namespace, OwnedFd)>,
    udp: UdpSocket,
    runtimes: Vec<(Stop, JoinHandle<(u64, u64)>)>,
    pub(crate) router: Namespace,
    sender: socket2::Socket,
}

impl Live {
    pub(crate) fn new(name: &str, hook: Hook, reflects: bool) -> Self {
        let mut live = Self::unhooked(name);
        live.hook(hook);
        if reflects {
            live.stations[1].0.sh("sysctl -q net.ipv6.conf.all.forwarding=1");
            let plug = HookPlug { hooks: vec![hook], interfaces: vec!["s1".to_owned()] };
            live.runtimes.push(run(&live.stations[1].0, plug, (0, router(1))));
        }
        live
    }

    /// The network without a hook.
    pub(crate) fn unhooked(name: &str) -> Self {
        let plain = |name: &str| {
            let namespace = Namespace::new(name);
            namespace.sh("sysctl -q net.ipv6.conf.all.accept_dad=0 net.ipv6.conf.default.accept_dad=0");
            namespace
        };
        let central = plain(&format!("{name}-r"));
        central.sh("sysctl -q net.ipv6.conf.all.forwarding=1");
        let station_on = |link: usize| {
            let namespace = plain(&format!("{name}-{link}"));
            let own = format!("{}/64", station(link));
            let (end, far) = (format!("s{link}"), format!("g{link}"));
            namespace.join(&end, &[&own], &central, &far, &[&format!("{}/64", router(link))]);
            namespace.sh(&format!("ip -6 route add default via {}", router(link)));
            let protocol = RawProtocol::new(u32::from(ethernet::IPV6.to_be())).map(Protocol::from_raw);
            let socket = namespace.run(move || packet_socket(protocol.unwrap(), 4 << 20).unwrap());
            (namespace, socket)
        };
        let stations: Vec<_> = (0..LINKS).map(station_on).collect();
        let udp = central.run(|| UdpSocket::bind(("::", LISTENS)).unwrap());
        udp.set_nonblocking(true).unwrap();
        let sender = stations[0].0.run(|| raw(socket2::Domain::IPV6));
        Self { stations, udp, runtimes: Vec::new(), router: central, sender }
    }

    /// Puts the hook on the router.
    pub(crate) fn hook(&mut self, hook: Hook) {
        let interfaces = (0..LINKS).map(|link| format!("g{link}")).collect();
        let plug = HookPlug { hooks: vec![hook], interfaces };
        self.runtimes.push(run(&self.router, plug, (1, station(1))));
    }

    /// The packets that wait at the stations.
    fn take(&self, found: &mut Vec<(usize, Vec<u8>)>) {
        let mut frame = [0; 2000];
        for (link, (_, socket)) in self.stations.iter().enumerate() {
            while let Ok((len, _)) = recv(socket, &mut frame[..], RecvFlags::empty()) {
                let packet = &frame[ethernet::HEADER..len];
                // Neighbours' and listeners' messages are the kernels' business, and so are errors about neighbours
                // that do not answer.
                let is_kernels =
                    packet[6] == 0 || packet[6] == ip::ICMPV6 && (packet[40] >= 130 || packet[40] == 1);
                if !is_kernels {
                    found.push((link, packet.to_vec()));
                }
            }
        }
    }
}

/// The items that `take` finds until there are as many as expected, or for five seconds; and those that arrive a moment
/// later, of which there should be none.
#[allow(clippy::disallowed_methods)] // a kernel's time is what passes
fn wait<T>(expected: usize, mut take: impl FnMut(&mut Vec<T>)) -> Vec<T> {
    let mut found = Vec::new();
    for _ in 0..500 {
        take(&mut found);
        if found.len() >= expected {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_millis(150));
    take(&mut found);
    found
}

/// A socket that sends whole packets.
pub(crate) fn raw(domain: socket2::Domain) -> socket2::Socket {
    socket2::Socket::new(domain, socket2::Type::RAW, Some(socket2::Protocol::from(255))).unwrap()
}

/// Runs a hook with the test machine in a namespace; in the end it says its counters.
fn run(namespace: &Namespace, plug: HookPlug, onward: (u32, Ipv6Addr)) -> (Stop, JoinHandle<(u64, u64)>) {
    let stop = Stop::new().unwrap();
    let own_stop = stop.clone();
    let (opened, is_open) = mpsc::channel();
    let running = namespace.spawn(move || {
        let machine = Box::new(Explicit::new(onward));
        let mut runtime = Runtime::open(machine, &[Plug::Hook(plug)], Clock::starting_now()).unwrap();
        opened.send(()).unwrap();
        runtime.run(None, &own_stop).unwrap();
        let figure = |name| crate::common::figure(&runtime, name);
        assert_eq!(
            figure("socket_wrong_items") + figure("socket_receive_errors") + figure("socket_send_refused"),
            0
        );
        (figure("socket_hook_excess"), figure("socket_hop_limit_exceeded"))
    });
    is_open.recv().unwrap();
    (stop, running)
}

impl Links for Live {
    fn send(&mut self, packet: &[u8]) {
        let to = ip::parse(packet).unwrap().destination;
        self.sender.send_to(packet, &SocketAddr::new(to, 0).into()).unwrap();
    }

    fn arrived(&mut self, expected: usize) -> Vec<(usize, Vec<u8>)> {
        let mut found = wait(expected, |found| self.take(found));
        found.sort_by_key(|&(link, _)| link);
        found
    }

    fn delivered(&mut self, expected: usize) -> Vec<Vec<u8>> {
        let mut datagram = [0; 2000];
        wait(expected, |found| {
            while let Ok(len) = self.udp.recv(&mut datagram) {
                found.push(datagram[..len].to_vec());
            }
        })
    }

    fn end(self: Box<Self>) -> (u64, u64) {
        let ended = self.runtimes.into_iter().map(|(stop, running)| {
            stop.request();
            running.join().unwrap()
        });
        ended.fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1))
    }
}
