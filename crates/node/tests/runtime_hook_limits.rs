//! Bounds, losses and refusals of a hook's plug: each is counted, and costs no other packet.

#![allow(clippy::unwrap_used)]

mod common;
#[allow(dead_code)] // each test file uses its part
mod hooked;

use std::collections::BTreeMap;
use std::net::{Ipv6Addr, SocketAddr, UdpSocket};

use common::{Bench, figure};
use hooked::{Answer, KIND, Links, Live, NOTHING, packet, raw, router, station, with_payload};
use hopcast_core::hook::MAX_ANSWERS;
use hopcast_core::plug::{HookPlug, Plug};
use hopcast_core::{Buffer, Duration, Egress, Hook, Instant, Item, Machine, Outbox, Port, Transit};
use hopcast_node::runtime::Runtime;
use hopcast_node::testing::{Requirement, require};
use hopcast_wire::ip;
use socket2::Socket;

const NEEDS: [Requirement<'_>; 4] =
    [Requirement::Root, Requirement::Tun, Requirement::Program("ip"), Requirement::Program("nft")];
/// Number of the router's interfaces.
const INTERFACES: u32 = hooked::LINKS as u32;
/// Maximum number of transits of a hook that answer no packet of it.
const UNASKED: u32 = MAX_ANSWERS + INTERFACES;
/// Maximum length of a packet that a report of the kernel's log has room for (`NFULNL_COPY_RANGE_MAX`).
const LONGEST: usize = 0xffff - 4;

/// The plug of a hook on all interfaces of the router.
fn plug() -> Plug {
    let hooks = vec![Hook::ExtensionHeader { header: hooked::ROUTING, kind: Some(KIND) }];
    Plug::Hook(HookPlug { hooks, interfaces: (0..INTERFACES).map(|link| format!("g{link}")).collect() })
}

/// A packet of this length from the router to a station, which no hook takes.
fn own_packet(to: Ipv6Addr, len: usize) -> Buffer {
    let mut packet = Buffer::zeroed(len - 40);
    ip::prepend(&mut packet, router(0).into(), to.into(), NOTHING, 64, 0);
    packet
}

/// The same as a transit of the machine's own, to a neighbour on a link.
fn to_neighbour(link: usize, address: Ipv6Addr, len: usize) -> Item {
    let egress = Egress::Neighbour { interface: link as u32, address: address.into() };
    Item::Transit(Transit { packet: own_packet(station(link), len), ingress: None, egress })
}

/// Hands over one transit more than a hook may: at its start, for each item that arrives, and at the wake after it.
struct Greedy {
    out: Outbox,
    deadline: Option<Instant>,
    packets: u64,
    datagrams: u64,
    wakes: u64,
}

impl Greedy {
    fn new() -> Self {
        let mut greedy = Self { out: Outbox::new(), deadline: None, packets: 0, datagrams: 0, wakes: 0 };
        greedy.exceed(UNASKED);
        greedy
    }

    fn exceed(&mut self, allowed: u32) {
        (0..=allowed).for_each(|_| self.out.down(to_neighbour(1, station(1), 60)));
    }
}

impl Machine for Greedy {
    fn handle(&mut self, now: Instant, _port: Port, item: Item) {
        self.deadline = Some(now);
        if matches!(item, Item::Transit(_)) {
            self.packets += 1;
            self.exceed(MAX_ANSWERS);
        } else {
            self.datagrams += 1;
            self.exceed(UNASKED);
        }
    }

    fn wake(&mut self, _now: Instant) {
        if self.deadline.take().is_some() {
            self.wakes += 1;
            self.exceed(UNASKED);
        }
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("packets", self.packets);
        report("datagrams", self.datagrams);
        report("wakes", self.wakes);
    }
}

/// The router without a hook, and a socket by which the station on link 0 sends packets.
fn network(name: &str) -> Option<(Live, Socket)> {
    require(&NEEDS).then(|| {
        let mut live = Live::unhooked(name);
        // So that neighbours are known before time counts.
        live.send(&packet(station(1), KIND - 1, 64, Answer::Nothing, &[]));
        assert_eq!(live.arrived(1).len(), 1);
        let sender = live.stations[0].0.run(|| raw(socket2::Domain::IPV6));
        (live, sender)
    })
}

fn send(sender: &Socket, packet: &[u8]) {
    let to = ip::parse(packet).unwrap().destination;
    sender.send_to(packet, &SocketAddr::new(to, 0).into()).unwrap();
}

/// Lets it run for a while, in one piece.
fn run(bench: &Bench, runtime: &mut Runtime, millis: u64) {
    let end = bench.clock.now() + Duration::from_millis(millis);
    runtime.run(Some(end), &bench.stop).unwrap();
}

#[test]
fn what_answers_no_packet_of_the_hook_has_a_budget_of_its_own_at_each_instant() {
    let Some((live, sender)) = network("budget") else { return };
    let neighbour = live.stations[0].0.run(|| UdpSocket::bind((station(0), 0)).unwrap());
    live.router.run(|| {
        let bench = Bench::new();
        let mut runtime = bench.open(Box::new(Greedy::new()), &[plug(), Plug::Udp((router(0), 0).into())]);
        let port = runtime.address(1).unwrap();
        run(&bench, &mut runtime, 1);
        let sent =
            |runtime: &Runtime| ["socket_sent", "socket_hook_excess"].map(|name| figure(runtime, name));
        assert_eq!(sent(&runtime), [UNASKED.into(), 1], "what it hands over before anything has come");
        // Both wait when it goes on.
        send(&sender, &packet(station(2), KIND, 64, Answer::Nothing, &[]));
        neighbour.send_to(b"hello", port).unwrap();
        run(&bench, &mut runtime, 500);
        let mut seen = BTreeMap::new();
        runtime.machine().counters(&mut |name, count| {
            seen.insert(name, count);
        });
        let [packets, datagrams, wakes] = ["packets", "datagrams", "wakes"].map(|name| seen[name]);
        assert!((packets, datagrams) == (1, 1) && wakes > 0, "{seen:?}");
        let allowed = u64::from(MAX_ANSWERS) + (2 + wakes) * u64::from(UNASKED);
        assert_eq!(sent(&runtime), [allowed, 3 + wakes], "{seen:?}");
    });
}

#[test]
fn a_neighbour_that_can_have_no_route_costs_its_own_packets_alone() {
    let Some((mut live, _)) = network("no-route") else { return };
    let refused = live.router.run(|| {
        let bench = Bench::new();
        let (mut runtime, traffic) = bench.played(&[plug()]);
        let mut hand_over = |items: &mut dyn Iterator<Item = Item>| {
            items.for_each(|item| traffic.borrow_mut().out.down(item));
            run(&bench, &mut runtime, 1);
            figure(&runtime, "socket_send_refused")
        };
        // As many as have a route at once: the station is the first that loses it.
        let others = (1..256).map(|number| Ipv6Addr::new(0xfd01, 0, 0, 0, 0, 0, 1, number));
        let all = [station(1)].into_iter().chain(others);
        assert_eq!(hand_over(&mut all.map(|address| to_neighbour(1, address, 60))), 0);
        // The router's own address is no gateway. Asked for twice: what failed is not taken for known.
        let own = [router(1); 2].into_iter().map(|address| to_neighbour(1, address, 61));
        let well = [station(1), station(1)].into_iter().map(|address| to_neighbour(1, address, 62));
        hand_over(&mut own.chain(well).chain([to_neighbour(2, station(2), 63)]))
    });
    let arrived: Vec<_> = live.arrived(4).into_iter().map(|(link, packet)| (link, packet.len())).collect();
    assert_eq!((refused, arrived), (2, vec![(1, 60), (1, 62), (1, 62), (2, 63)]));
}

#[test]
fn packets_that_the_log_had_no_room_for_are_counted_although_none_follows() {
    /// More than the log's buffer has room for, twice.
    const PACKETS: u64 = 20_000;
    let Some((live, sender)) = network("overrun") else { return };
    live.router.run(|| {
        let bench = Bench::new();
        let (mut runtime, _) = bench.played(&[plug()]);
        let taken = packet(station(2), KIND, 64, Answer::Nothing, &[]);
        (0..PACKETS).for_each(|_| send(&sender, &taken));
        let dropped = figure(&runtime, "socket_device_dropped");
        assert!((1..PACKETS).contains(&dropped), "before anything is read: {dropped}");
        run(&bench, &mut runtime, 1000);
        let received = figure(&runtime, "socket_received");
        assert_eq!(received + figure(&runtime, "socket_device_dropped"), PACKETS);
    });
}

#[test]
fn a_packet_longer_than_the_log_carries_is_counted_and_the_longest_is_taken_whole() {
    let Some((live, sender)) = network("long") else { return };
    for (namespace, device) in [(&live.stations[0].0, "s0"), (&live.router, "g0")] {
        namespace.sh(&format!("ip link set {device} mtu 65535"));
    }
    let long = |len: usize| {
        let payload = vec![7; len - 48];
        with_payload(station(2), KIND, 64, Answer::Nothing, &[], NOTHING, &payload)
    };
    live.router.run(|| {
        let bench = Bench::new();
        let (mut runtime, traffic) = bench.played(&[plug()]);
        for (len, errors) in [(LONGEST + 1, 1), (LONGEST, 1), (0xffff, 2)] {
            send(&sender, &long(len));
            run(&bench, &mut runtime, 100);
            assert_eq!(figure(&runtime, "socket_receive_errors"), errors, "{len}");
        }
        let arrived = &traffic.borrow().arrived;
        let [(0, Item::Transit(transit))] = &arrived[..] else { panic!("{} packets", arrived.len()) };
        assert!(transit.packet[..] == long(LONGEST));
    });
}

#[test]
fn a_packet_too_long_for_its_interface_is_refused_and_by_the_routes_its_sender_is_told() {
    let Some((mut live, sender)) = network("too-long") else { return };
    for (namespace, device) in [(&live.stations[0].0, "s0"), (&live.router, "g0")] {
        namespace.sh(&format!("ip link set {device} mtu 9000"));
    }
    let [refused, sent] = live.router.run(|| {
        let bench = Bench::new();
        let (mut runtime, traffic) = bench.played(&[plug()]);
        send(&sender, &with_payload(station(2), KIND, 64, Answer::Nothing, &[], NOTHING, &[7; 2000]));
        assert!(bench.until(10, &mut [&mut runtime], || traffic.borrow().arrived.len() == 1), "taken");
        let Some((0, Item::Transit(transit))) = traffic.borrow_mut().arrived.pop() else { panic!("taken") };
        let neighbour = Egress::Neighbour { interface: 2, address: station(2).into() };
        for egress in [neighbour, Egress::Group([2].into()), Egress::Routes] {
            traffic.borrow_mut().out.down(Item::Transit(Transit { egress, ..transit.clone() }));
        }
        run(&bench, &mut runtime, 1);
        ["socket_send_refused", "socket_sent"].map(|name| figure(&runtime, name))
    });
    assert_eq!([refused, sent], [2, 1]);
    let arrived = live.arrived(1);
    let [(0, error)] = &arrived[..] else { panic!("{arrived:?}") };
    assert_eq!((error[6], error[40]), (ip::ICMPV6, 2), "packet too big");
}
