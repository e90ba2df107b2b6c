//! Packet and frame ports: TUN and TAP devices, and packet sockets.

#![allow(clippy::unwrap_used)] // in what the tests share

mod common;

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::mpsc::channel;
use std::thread;

use common::{Bench, Namespace, Played, address, figure};
use hopcast_coded::{Tunnel, franc};
use hopcast_core::plug::{DevicePlug, FramesPlug, Plug};
use hopcast_core::{Assembly, Buffer, Duration, Frame, Item, Machine, Port, Seed};
use hopcast_host::{Host, NextHop, StaticRoutes};
use hopcast_node::Clock;
use hopcast_node::runtime::{Runtime, RuntimeError, Stop};
use hopcast_node::testing::{Requirement, require};

const NEEDS: [Requirement<'_>; 3] = [Requirement::Root, Requirement::Tun, Requirement::Program("ip")];
const ETHER_TYPE: u16 = 0x88b5;

fn tun(name: &str, ends: [&str; 2]) -> Plug {
    Plug::Tun(DevicePlug {
        name: name.to_owned(),
        addresses: ends
            .iter()
            .map(|end| (end.parse().unwrap(), if end.contains(':') { 64 } else { 24 }))
            .collect(),
        routes: vec![("10.99.0.0".parse().unwrap(), 16)],
        mtu: 1400,
        reports_memberships: false,
    })
}

/// Whether there is no such device any more. A program that another test starts has our descriptors for the moment
/// until it begins.
fn is_gone(namespace: &Namespace, name: &str) -> bool {
    (0..100).any(|_| !namespace.sh("ip link").contains(name))
}

/// Packets that two hosts route into a TUN device pass whatever `make` puts below it, on each of the two.
fn packets_pass(name: &str, make: fn(usize) -> (Box<dyn Machine>, Plug)) {
    if !require(&[Requirement::Program("ping"), NEEDS[0], NEEDS[1], NEEDS[2]]) {
        return;
    }
    let [left, right] = ["left", "right"].map(|side| Namespace::new(&format!("{name}-{side}")));
    left.join("e0", &["10.1.0.1/24"], &right, "e0", &["10.1.0.2/24"]);
    left.sh("ip link set e0 address 02:00:00:00:00:01");
    right.sh("ip link set e0 address 02:00:00:00:00:02");
    let stop = Stop::new().unwrap();
    let (opened, is_open) = channel();
    let sides = [(&left, ["10.9.0.1", "fd09::1"], 0), (&right, ["10.9.0.2", "fd09::2"], 1)];
    let running = sides.map(|(namespace, ends, side)| {
        let (stop, opened) = (stop.clone(), opened.clone());
        namespace.spawn(move || {
            let (machine, plug) = make(side);
            let mut stack = Assembly::new();
            let machine = stack.add(machine);
            stack.expose((machine, Port::Below(0)), Port::Below(0));
            stack.expose((machine, Port::Above(0)), Port::Below(1));
            let plugs = [plug, tun("hop0", ends)];
            let mut runtime = Runtime::open(Box::new(stack), &plugs, Clock::starting_now()).unwrap();
            opened.send(()).unwrap();
            runtime.run(None, &stop).unwrap();
        })
    });
    is_open.recv().unwrap();
    is_open.recv().unwrap();
    for (size, to) in [(56, "10.9.0.2"), (1372, "10.9.0.2"), (3000, "10.9.0.2"), (1352, "fd09::2")] {
        left.sh(&format!("ping -q -c 3 -i 0.05 -W 5 -s {size} {to}"));
    }
    assert!(left.sh("ip route").contains("10.99.0.0/16 dev hop0"));
    // A TCP connection through it, whose checksums and segments the device must get right.
    let listener = right.run(|| TcpListener::bind("10.9.0.2:7").unwrap());
    let serving = thread::spawn(move || {
        let mut bytes = Vec::new();
        listener.accept().unwrap().0.read_to_end(&mut bytes).unwrap();
        bytes.len()
    });
    let mut stream = left.run(|| TcpStream::connect("10.9.0.2:7").unwrap());
    stream.write_all(&vec![1; 2_000_000]).unwrap();
    drop(stream);
    assert_eq!(serving.join().unwrap(), 2_000_000);
    stop.request();
    running.into_iter().for_each(|running| running.join().unwrap());
    assert!(is_gone(&left, "hop0"));
    assert!(!left.sh("ip route").contains("hop0"), "and its routes are");
}

#[test]
fn packets_pass_a_tunnel_between_two_hosts() {
    packets_pass("tunnel", |side| {
        let ends = ["10.1.0.1:7000", "10.1.0.2:7000"].map(address);
        let tunnel = Tunnel::new(ends[side], ends[1 - side], 1400);
        (Box::new(tunnel), Plug::Udp(ends[side]))
    });
}

#[test]
fn packets_pass_coded_frames_between_two_interfaces() {
    packets_pass("franc", |side| {
        let ends = [[2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]];
        let random = Seed::new(1, 0).stream(&["edge"], side as u64);
        let edge = franc::edge(franc::Config::default(), ends[side], ends[1 - side], random);
        let interface = "e0".to_owned();
        let plug = FramesPlug { interface, ether_type: franc::ETHER_TYPE, promiscuous: true };
        (edge.unwrap(), Plug::Frames(plug))
    });
}

fn frames(interface: &str, promiscuous: bool) -> Plug {
    Plug::Frames(FramesPlug { interface: interface.to_owned(), ether_type: ETHER_TYPE, promiscuous })
}

fn frame(to: [u8; 6], from: [u8; 6], ether_type: u16, payload: &[u8]) -> Item {
    let bytes = [&to[..], &from, &ether_type.to_be_bytes(), payload].concat();
    Item::Frame(Frame::new(Buffer::copy_from(&bytes)))
}

#[test]
fn frames_of_a_type_pass_between_interfaces_and_others_are_overheard_where_asked() {
    if !require(&[NEEDS[0], NEEDS[2]]) {
        return;
    }
    let namespace = Namespace::new("frames");
    let pair = "f0 address 02:00:00:00:00:01 type veth peer name f1 address 02:00:00:00:00:02";
    namespace.sh(&format!("ip link add {pair}"));
    namespace.sh("ip link set f0 up");
    namespace.sh("ip link set f1 up");
    namespace.run(|| {
        let bench = Bench::new();
        let (own, far, other) = ([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2], [2, 0, 0, 0, 0, 3]);
        let group = [0xff; 6];
        for promiscuous in [false, true] {
            let (mut one, of_one) = bench.played(&[frames("f0", false)]);
            let (mut two, of_two) = bench.played(&[frames("f1", promiscuous)]);
            let hears = |on: bool| namespace.sh("ip -d link show dev f1").contains("promiscuity 1") == on;
            assert!(hears(promiscuous));
            let sent = [
                (far, own, ETHER_TYPE, &[1; 1500][..]),
                (other, own, ETHER_TYPE, &[2; 50]),
                (far, own, 0x88b6, &[3; 50]),
                // As a medium gives a frame back to its sender.
                (other, far, ETHER_TYPE, &[4; 50]),
                (group, own, ETHER_TYPE, &[5; 50]),
            ];
            for (to, from, ether_type, payload) in sent {
                of_one.borrow_mut().out.down(frame(to, from, ether_type, payload));
            }
            let wanted: &[(u8, bool)] = match promiscuous {
                true => &[(1, false), (2, true), (4, true), (5, false)],
                false => &[(1, false), (5, false)],
            };
            let got = || {
                let of_two = of_two.borrow();
                let frames = of_two.arrived.iter().map(|(_, item)| match item {
                    Item::Frame(frame) => (frame.bytes[14], frame.overheard),
                    other => panic!("{other:?}"),
                });
                frames.collect::<Vec<_>>()
            };
            assert!(bench.until(5, &mut [&mut one, &mut two], || got().len() >= wanted.len()), "{:?}", got());
            bench.until(0, &mut [&mut one, &mut two], || false);
            assert_eq!(got(), wanted);
            assert!(of_one.borrow().arrived.is_empty(), "one's own do not come up");
            assert_eq!(figure(&one, "socket_sent"), 5);
            drop(two);
            assert!(hears(false), "it is as it was before");
        }
    });
}

/// The host of virtual time is a neighbour of the kernel's.
#[test]
fn frames_pass_between_the_kernel_and_a_machine_on_a_tap() {
    if !require(&[Requirement::Program("ping"), NEEDS[0], NEEDS[1], NEEDS[2]]) {
        return;
    }
    let namespace = Namespace::new("tap");
    let [kernel, ours] = ["10.7.0.1", "10.7.0.2"].map(|address| address.parse().unwrap());
    let [kernel_mac, our_mac] = [[2, 0, 0, 0, 7, 1], [2, 0, 0, 0, 7, 2]];
    let device = DevicePlug {
        name: "tap0".to_owned(),
        addresses: vec![(kernel, 24)],
        routes: vec![("10.99.0.0".parse().unwrap(), 16)],
        mtu: 1500,
        reports_memberships: false,
    };
    let (stop, (opened, is_open)) = (Stop::new().unwrap(), channel());
    let running = namespace.spawn({
        let stop = stop.clone();
        move || {
            let interface = hopcast_host::Interface::new(our_mac, 1500);
            let config = hopcast_host::Config {
                addresses: vec![ours],
                interfaces: vec![interface],
                ..hopcast_host::Config::default()
            };
            let to_kernel = NextHop { interface: 0, mac: kernel_mac };
            let host = Host::new(config, Box::new(StaticRoutes::new().with(kernel, 32, to_kernel)));
            let plugs = [Plug::Tap(kernel_mac, device)];
            let mut runtime = Runtime::open(Box::new(host), &plugs, Clock::starting_now()).unwrap();
            opened.send(()).unwrap();
            runtime.run(None, &stop).unwrap();
            (figure(&runtime, "socket_received"), figure(&runtime, "socket_sent"))
        }
    });
    is_open.recv().unwrap();
    assert!(namespace.sh("ip link show dev tap0").contains("02:00:00:00:07:01"));
    assert!(namespace.sh("ip route").contains("10.99.0.0/16 dev tap0"));
    namespace.sh("ip neigh replace 10.7.0.2 lladdr 02:00:00:00:07:02 dev tap0");
    namespace.sh("ping -q -c 3 -i 0.05 -W 5 -s 1472 10.7.0.2");
    stop.request();
    let (received, sent) = running.join().unwrap();
    // The kernel tells its neighbours more than they asked.
    assert!(received >= 3 && sent >= 3, "{received} in, {sent} out");
    assert!(is_gone(&namespace, "tap0"));
}

#[test]
fn a_device_that_cannot_be_had_is_one_line() {
    if !require(&NEEDS) {
        return;
    }
    let namespace = Namespace::new("errors");
    namespace.run(|| {
        let mut bad_route = tun("hop1", ["10.9.0.1", "fd09::1"]);
        if let Plug::Tun(plug) = &mut bad_route {
            plug.routes.push(("10.0.0.0".parse().unwrap(), 99));
        }
        let plugs = [
            (
                frames("nowhere", false),
                "cannot open frames 0x88b5 of `nowhere`: there is no interface `nowhere`",
            ),
            (
                tun("a-name-of-16-bytes", ["10.9.0.1", "fd09::1"]),
                "cannot open TUN `a-name-of-16-bytes`: an interface's",
            ),
            (tun("lo", ["10.9.0.1", "fd09::1"]), "cannot open TUN `lo`: "),
            (bad_route, "cannot open TUN `hop1`: `ip -4 route add 10.0.0.0/99 dev hop1`: "),
        ];
        for (plug, expected) in plugs {
            let Err(why) = Runtime::open(Played::new().0, &[plug], Clock::starting_now()) else {
                panic!("opened: {expected}")
            };
            let why = why.to_string();
            assert!(why.starts_with(expected) && why.lines().count() == 1, "{why}");
        }
    });
    assert!(is_gone(&namespace, "hop1"), "what was opened halfway is closed");
}

#[test]
fn a_device_that_is_deleted_ends_the_run() {
    if !require(&NEEDS) {
        return;
    }
    let namespace = Namespace::new("deleted");
    namespace.sh("ip link add f0 type veth peer name f1");
    namespace.sh("ip link set f0 up");
    let plugs = [(tun("hop2", ["10.9.0.1", "fd09::1"]), "hop2"), (frames("f0", false), "f0")];
    namespace.run(|| {
        for (plug, name) in plugs {
            let bench = Bench::new();
            let (mut runtime, _) = bench.played(&[plug]);
            bench.until(0, &mut [&mut runtime], || false);
            namespace.sh(&format!("ip link del {name}"));
            let until = bench.clock.now() + Duration::from_secs(10);
            let error = runtime.run(Some(until), &bench.stop).unwrap_err();
            assert!(
                matches!(&error, RuntimeError::Gone(what) if what.contains(&format!("`{name}`"))),
                "{error}"
            );
        }
    });
}
