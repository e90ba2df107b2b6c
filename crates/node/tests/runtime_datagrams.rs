//! Datagram ports on UDP sockets.

#![allow(clippy::unwrap_used)] // in what the tests share

mod common;

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::rc::Rc;

use common::{Bench, Namespace, Traffic, address, figure};
use hopcast_core::plug::Plug;
use hopcast_core::{Attributes, Buffer, Datagram, Item, Membership};
use hopcast_node::runtime::Runtime;
use hopcast_node::testing::{Requirement, require};

/// Sends rows of equal and of mixed sizes, and back; nothing is lost, changed or out of order.
fn datagrams_go_both_ways(host: &str) {
    let bench = Bench::new();
    let plug = Plug::Udp(address(&format!("{host}:0")));
    let (mut one, of_one) = bench.played(std::slice::from_ref(&plug));
    let (mut other, of_other) = bench.played(&[plug]);
    let (at_one, at_other) = (one.address(0).unwrap(), other.address(0).unwrap());
    let sizes = [1400, 1400, 1400, 900, 1400, 20, 20, 0, 1, 1, 0, 1400, 1400, 1399, 1400];
    for round in 0..40_u8 {
        for (from, to, traffic) in [(at_one, at_other, &of_one), (at_other, at_one, &of_other)] {
            for (i, &size) in sizes.iter().enumerate() {
                traffic.borrow_mut().send(from, to, &vec![round ^ i as u8; size]);
            }
        }
        let arrived = |traffic: &std::cell::RefCell<common::Traffic>| traffic.borrow().arrived.len();
        let all = || arrived(&of_one) == sizes.len() && arrived(&of_other) == sizes.len();
        assert!(bench.until(10, &mut [&mut one, &mut other], all), "all arrive");
        for (from, to, traffic) in [(at_one, at_other, &of_other), (at_other, at_one, &of_one)] {
            for ((i, &size), datagram) in sizes.iter().enumerate().zip(traffic.borrow_mut().datagrams()) {
                assert_eq!((datagram.remote, datagram.local), (from, to));
                assert_eq!(datagram.payload[..], vec![round ^ i as u8; size], "number {i}");
            }
        }
    }
    assert_eq!(figure(&one, "socket_sent"), 40 * sizes.len() as u64);
    assert_eq!(figure(&other, "socket_receive_dropped"), 0);
}

#[test]
fn datagrams_go_both_ways_over_ipv4() {
    datagrams_go_both_ways("127.0.0.1");
}

#[test]
fn datagrams_go_both_ways_over_ipv6() {
    datagrams_go_both_ways("[::1]");
}

#[test]
fn a_row_of_equal_datagrams_leaves_in_few_calls() {
    let bench = Bench::new();
    let plug = Plug::Udp(address("127.0.0.1:0"));
    let (mut one, of_one) = bench.played(std::slice::from_ref(&plug));
    let (mut other, of_other) = bench.played(&[plug]);
    let (from, to) = (one.address(0).unwrap(), other.address(0).unwrap());
    (0..60).for_each(|i| of_one.borrow_mut().send(from, to, &[i; 1000]));
    let all = || of_other.borrow().arrived.len() == 60;
    assert!(bench.until(10, &mut [&mut one, &mut other], all));
    // Each turn waits once, and a host without segmentation offload sends one by one.
    let calls = figure(&one, "syscalls");
    assert!(calls < 20, "{calls} calls for 60 datagrams");
}

#[test]
fn a_socket_of_all_addresses_says_which_was_written_to_and_answers_from_the_one_it_is_told() {
    let bench = Bench::new();
    let (mut all, of_all) = bench.played(&[Plug::Udp(address("0.0.0.0:0"))]);
    let (mut one, of_one) = bench.played(&[Plug::Udp(address("127.0.0.1:0"))]);
    let port = all.address(0).unwrap().port();
    let to = address(&format!("127.0.0.7:{port}"));
    of_one.borrow_mut().send(one.address(0).unwrap(), to, b"question");
    assert!(bench.until(10, &mut [&mut one, &mut all], || !of_all.borrow().arrived.is_empty()));
    let question = of_all.borrow_mut().datagrams().remove(0);
    assert_eq!(question.local, to);
    of_all.borrow_mut().send(question.local, question.remote, b"answer");
    assert!(bench.until(10, &mut [&mut all, &mut one], || !of_one.borrow().arrived.is_empty()));
    assert_eq!(of_one.borrow_mut().datagrams().remove(0).remote, to);
}

#[test]
fn what_the_kernel_refuses_is_counted_and_the_rest_goes_on() {
    let bench = Bench::new();
    let (mut one, of_one) = bench.played(&[Plug::Udp(address("127.0.0.1:0"))]);
    let (mut other, of_other) = bench.played(&[Plug::Udp(address("127.0.0.1:0"))]);
    let (from, to) = (one.address(0).unwrap(), other.address(0).unwrap());
    // Port 0 is nobody's, a loopback address cannot write abroad, and IPv6 is none of this socket's.
    for nowhere in ["127.0.0.1:0", "192.0.2.1:9", "[::1]:9"] {
        of_one.borrow_mut().send(from, address(nowhere), b"lost");
        of_one.borrow_mut().send(from, address(nowhere), b"lost");
    }
    of_one.borrow_mut().send(from, to, &[0; 65_500]);
    of_one.borrow_mut().send(from, to, b"found");
    assert!(bench.until(10, &mut [&mut one, &mut other], || !of_other.borrow().arrived.is_empty()));
    assert_eq!(of_other.borrow_mut().datagrams()[0].payload[..], *b"found");
    assert_eq!(figure(&one, "socket_send_refused"), 7);
    // It still sends rows.
    let calls = figure(&one, "syscalls");
    (0..50).for_each(|i| of_one.borrow_mut().send(from, to, &[i; 500]));
    assert!(bench.until(10, &mut [&mut one, &mut other], || of_other.borrow().arrived.len() == 50));
    assert!(figure(&one, "syscalls") - calls < 20);
}

#[test]
fn an_address_that_cannot_be_had_is_one_line() {
    let bench = Bench::new();
    let (one, _) = bench.played(&[Plug::Udp(address("127.0.0.1:0"))]);
    let taken = one.address(0).unwrap();
    for at in [taken, address("192.0.2.77:7000")] {
        let (machine, _) = common::Played::new();
        let Err(why) = hopcast_node::runtime::Runtime::open(machine, &[Plug::Udp(at)], bench.clock) else {
            panic!("opened {at}")
        };
        let why = why.to_string();
        assert!(why.starts_with(&format!("cannot open UDP {at}: ")) && why.lines().count() == 1, "{why}");
    }
}

#[test]
fn what_is_not_read_in_time_is_counted() {
    let bench = Bench::new();
    let (mut one, of_one) = bench.played(&[Plug::Udp(address("127.0.0.1:0"))]);
    let (other, _) = bench.played(&[Plug::Udp(address("127.0.0.1:0"))]);
    let (from, to) = (one.address(0).unwrap(), other.address(0).unwrap());
    let dropped = || figure(&other, "socket_receive_dropped") > 0;
    for _ in 0..100 {
        (0..100).for_each(|_| of_one.borrow_mut().send(from, to, &[0; 60_000]));
        if bench.until(0, &mut [&mut one], dropped) {
            break;
        }
        one.run(Some(bench.clock.now()), &bench.stop).unwrap();
    }
    assert!(dropped());
}

#[test]
fn what_the_kernel_has_no_room_for_waits_and_the_oldest_is_dropped_and_counted() {
    if !require(&[Requirement::Root, Requirement::Program("ip"), Requirement::Program("tc")]) {
        return;
    }
    let [one, other] = ["full", "wide"].map(Namespace::new);
    one.join("o0", &["10.1.0.1/24"], &other, "w0", &["10.1.0.2/24"]);
    // Far less than is sent below, and more room in the queue than the socket has.
    one.sh("tc qdisc add dev o0 root tbf rate 8mbit burst 10kb limit 100mb");
    let far = address("10.1.0.2:9");
    let receiver = other.run(|| UdpSocket::bind(far).unwrap());
    receiver.set_nonblocking(true).unwrap();
    rustix::net::sockopt::set_socket_recv_buffer_size_force(&receiver, 16 << 20).unwrap();
    one.run(|| {
        let bench = Bench::new();
        let (mut runtime, traffic) = bench.played(&[Plug::Udp(address("10.1.0.1:0"))]);
        let from = runtime.address(0).unwrap();
        const ALL: u64 = 8000;
        for number in 0..ALL {
            traffic.borrow_mut().send(from, far, &[&number.to_be_bytes()[..], &[0; 1192]].concat());
        }
        bench.until(0, &mut [&mut runtime], || false);
        runtime.run(Some(bench.clock.now()), &bench.stop).unwrap();
        let [full, dropped] = ["socket_send_full", "socket_send_dropped"].map(|name| figure(&runtime, name));
        assert!(full > 0 && dropped > 0, "{full} times full, {dropped} dropped");
        // The road is clear: what waited leaves, and what came last is among it.
        one.sh("tc qdisc del dev o0 root");
        let last = || {
            let mut datagram = [0; 2000];
            while receiver.recv(&mut datagram).is_ok() {}
            datagram.starts_with(&(ALL - 1).to_be_bytes())
        };
        assert!(bench.until(10, &mut [&mut runtime], last));
        assert_eq!(figure(&runtime, "socket_sent") + figure(&runtime, "socket_send_dropped"), ALL);
    });
}

#[test]
fn a_port_that_chooses_attributes_sends_from_its_own_address() {
    let bench = Bench::new();
    let (mut port, traffic) = bench.played(&[Plug::Udp(address("127.0.0.7:0"))]);
    let far = UdpSocket::bind("127.0.0.1:0").unwrap();
    far.set_nonblocking(true).unwrap();
    for hop_limit in [None, Some(9)] {
        let attributes = Attributes { hop_limit, ..Attributes::CHOICE };
        let (local, remote) = (port.address(0).unwrap(), far.local_addr().unwrap());
        let datagram = Datagram { attributes, ..Datagram::new(local, remote, Buffer::copy_from(b"whose")) };
        traffic.borrow_mut().out.down(Item::Datagram(datagram));
        let mut from = None;
        assert!(bench.until(10, &mut [&mut port], || {
            from = from.or(far.recv_from(&mut [0; 9]).ok().map(|(_, from)| from));
            from.is_some()
        }));
        assert_eq!(from, Some(local));
    }
}

/// Sends from a socket of the kernel's, by the interface of this address and index.
fn send_from(from: (IpAddr, u32), to: SocketAddr, hops: u8, class: u8) {
    let (own, index) = from;
    let socket = socket2::Socket::from(UdpSocket::bind((own, 0)).unwrap());
    if let IpAddr::V4(own) = own {
        socket.set_multicast_if_v4(&own).unwrap();
        socket.set_multicast_ttl_v4(hops.into()).unwrap();
        socket.set_ttl_v4(hops.into()).unwrap();
        rustix::net::sockopt::set_ip_tos(&socket, class).unwrap();
    } else {
        socket.set_multicast_if_v6(index).unwrap();
        socket.set_multicast_hops_v6(hops.into()).unwrap();
        socket.set_unicast_hops_v6(hops.into()).unwrap();
        rustix::net::sockopt::set_ipv6_tclass(&socket, class.into()).unwrap();
    }
    socket.send_to(b"told", &to.into()).unwrap();
}

/// A port of the kernel's UDP, which a test plays.
struct Listener {
    bench: Bench,
    runtime: Runtime,
    traffic: Rc<RefCell<Traffic>>,
}

impl Listener {
    fn at(local: SocketAddr) -> Self {
        let bench = Bench::new();
        let (runtime, traffic) = bench.played(&[Plug::Udp(local)]);
        Self { bench, runtime, traffic }
    }

    /// Hands an item to the socket.
    fn give(&mut self, item: Item) {
        self.traffic.borrow_mut().out.down(item);
        let Self { bench, runtime, traffic } = self;
        assert!(bench.until(10, &mut [runtime], || traffic.borrow().out.is_empty()));
    }

    /// The sender, the destination and the attributes of the only datagram that arrives.
    fn next(&mut self) -> (IpAddr, SocketAddr, Attributes) {
        let Self { bench, runtime, traffic } = self;
        assert!(bench.until(10, &mut [runtime], || !traffic.borrow().arrived.is_empty()), "nothing arrives");
        let datagrams = traffic.borrow_mut().datagrams();
        let [datagram] = &datagrams[..] else { panic!("{datagrams:?}") };
        assert_eq!(datagram.payload[..], *b"told");
        (datagram.remote.ip(), datagram.local, datagram.attributes)
    }
}

/// The addresses of two hosts on each of two links between them, and a group.
struct Places {
    near: [&'static str; 2],
    far: [&'static str; 2],
    prefix: u8,
    group: &'static str,
    any: &'static str,
}

const PLACES: [Places; 2] = [
    Places {
        near: ["10.1.0.1", "10.1.1.1"],
        far: ["10.1.0.2", "10.1.1.2"],
        prefix: 24,
        group: "239.1.2.3",
        any: "0.0.0.0",
    },
    Places {
        near: ["fd01::1", "fd01:1::1"],
        far: ["fd01::2", "fd01:1::2"],
        prefix: 64,
        group: "ff15::3",
        any: "::",
    },
];

#[test]
fn interface_hop_limit_traffic_class_and_destination_come_up_as_they_were_on_the_wire() {
    if !require(&[Requirement::Root, Requirement::Program("ip")]) {
        return;
    }
    for (version, Places { near, far, prefix, group, any }) in PLACES.into_iter().enumerate() {
        let [one, other] = ["near", "far"].map(|side| Namespace::new(&format!("{side}{version}")));
        for link in 0..2 {
            let ends = [near, far].map(|ends| format!("{}/{prefix}", ends[link]));
            let name = format!("eth{link}");
            one.join(&name, &[&ends[0]], &other, &name, &[&ends[1]]);
        }
        let [near, far] = [near, far].map(|ends| ends.map(|end| end.parse::<IpAddr>().unwrap()));
        let [group, any] = [group, any].map(|address| address.parse::<IpAddr>().unwrap());
        let send = |link: usize, to: SocketAddr, hops, class| {
            let send = || {
                let index = nix::net::if_::if_nametoindex(&*format!("eth{link}")).unwrap();
                send_from((near[link], index), to, hops, class);
            };
            one.run(send);
        };
        let to_group = SocketAddr::new(group, 7000);
        other.run(|| {
            // Bound to an address of the second link, and to all.
            for local in [far[1], any] {
                let mut ear = Listener::at(SocketAddr::new(local, 7000));
                let unicast = SocketAddr::new(far[1], 7000);
                // Nobody has asked: DSCP and hop limit are not known, and nothing is made up.
                send(1, unicast, 9, 0xba);
                let attributes = Attributes { interface: Some(1), traffic_class: 2, ..Attributes::CHOICE };
                assert_eq!(ear.next(), (near[1], unicast, attributes));
                // A machine that chooses attributes itself.
                let chosen = Attributes {
                    interface: Some(1),
                    hop_limit: Some(3),
                    traffic_class: 0x20,
                    ..Attributes::CHOICE
                };
                let away = Datagram::new(unicast, SocketAddr::new(near[1], 9), Buffer::copy_from(b"away"));
                ear.give(Item::Datagram(Datagram { attributes: chosen, ..away }));
                let hears = |ear: &mut Listener, link: usize, to, hops, traffic_class| {
                    send(link, to, hops, traffic_class);
                    let interface = Some(link as u32);
                    let attributes =
                        Attributes { interface, hop_limit: Some(hops), traffic_class, ..Attributes::CHOICE };
                    assert_eq!(ear.next(), (near[link], to, attributes));
                };
                let values = [(1, 0), (64, 0xb8), (255, 0xff)];
                for (hops, class) in values {
                    hears(&mut ear, 1, unicast, hops, class);
                    if local == any {
                        hears(&mut ear, 0, SocketAddr::new(far[0], 7000), hops, class);
                    }
                }
                // One that joins groups, on every interface.
                ear.give(Item::Membership(Membership { group, source: None, interface: None, joined: true }));
                for (hops, class) in values {
                    hears(&mut ear, 0, to_group, hops, class);
                    hears(&mut ear, 1, to_group, hops, class);
                    hears(&mut ear, 1, unicast, hops, class);
                }
            }
        });
    }
}
