//! An interface that the host gives up: its frames come up with their tags, and the kernel takes none of them.

#![allow(clippy::unwrap_used)] // in what the tests share

mod common;

use std::cell::RefCell;
use std::net::UdpSocket;
use std::rc::Rc;

use common::{Bench, Namespace, Played, Traffic, figure};
use hopcast_core::plug::Plug;
use hopcast_core::{Buffer, Frame, Item};
use hopcast_node::Clock;
use hopcast_node::runtime::Runtime;
use hopcast_node::testing::{Requirement, require};
use hopcast_wire::{ip, udp};

const NEEDS: [Requirement<'_>; 3] =
    [Requirement::Root, Requirement::Program("ip"), Requirement::Program("nft")];
const NEAR: [u8; 6] = [2, 0, 0, 0, 0, 1];
const FAR: [u8; 6] = [2, 0, 0, 0, 0, 2];
const OTHER: [u8; 6] = [2, 0, 0, 0, 0, 9];

/// A namespace with a cable from `near` to `far`, whose kernel has 10.0.0.1 and forwards.
fn cable(name: &str) -> Namespace {
    let namespace = Namespace::new(name);
    for line in [
        "sysctl -qw net.ipv4.ip_forward=1",
        "sysctl -qw net.ipv4.conf.all.rp_filter=0",
        "ip link add near address 02:00:00:00:00:01 type veth peer name far address 02:00:00:00:00:02",
        "sysctl -qw net.ipv4.conf.far.rp_filter=0",
        "ip link set near up",
        "ip link set far up",
        "ip addr add 10.0.0.1/32 dev lo",
    ] {
        namespace.sh(line);
    }
    namespace
}

fn whole(interface: &str) -> Plug {
    Plug::Interface(interface.to_owned())
}

/// A frame with these tags, each with its type and content.
fn tagged(to: [u8; 6], from: [u8; 6], tags: &[(u16, u16)], ether_type: u16, payload: &[u8]) -> Vec<u8> {
    let tags = tags.iter().flat_map(|(kind, content)| [kind.to_be_bytes(), content.to_be_bytes()].concat());
    [&to[..], &from, &tags.collect::<Vec<_>>(), &ether_type.to_be_bytes(), payload].concat()
}

fn send(traffic: &Rc<RefCell<Traffic>>, bytes: &[u8]) {
    traffic.borrow_mut().out.down(Item::Frame(Frame::new(Buffer::copy_from(bytes))));
}

/// The frames that have arrived, without what kernels say of themselves.
fn arrived(traffic: &Rc<RefCell<Traffic>>) -> Vec<Vec<u8>> {
    let traffic = traffic.borrow();
    let frames = traffic.arrived.iter().map(|(_, item)| match item {
        Item::Frame(Frame { bytes, overheard: false, .. }) => bytes.to_vec(),
        other => panic!("{other:?}"),
    });
    frames.collect()
}

#[test]
fn every_frame_comes_up_with_the_tags_that_it_was_sent_with() {
    if !require(&NEEDS) {
        return;
    }
    let namespace = cable("tags");
    namespace.run(|| {
        let bench = Bench::new();
        let (mut near, of_near) = bench.played(&[whole("near")]);
        let (mut far, of_far) = bench.played(&[whole("far")]);
        let sent = [
            tagged(FAR, NEAR, &[], 0x88b5, &[1; 1500]),
            tagged(OTHER, NEAR, &[], 0x88b5, &[2; 50]),
            tagged([0xff; 6], NEAR, &[(0x8100, 7)], 0x88b5, &[3; 1500]),
            // With a priority, and the mark of what may be dropped.
            tagged(OTHER, NEAR, &[(0x8100, 0xb007)], 0x88b5, &[4; 50]),
            // Of VLAN 0, a priority alone.
            tagged(FAR, NEAR, &[(0x8100, 0xe000)], 0x88b5, &[5; 50]),
            tagged(FAR, NEAR, &[(0x88a8, 100), (0x8100, 7)], 0x88b5, &[6; 50]),
            tagged(
                FAR,
                NEAR,
                &[(0x8100, 1), (0x8100, 2), (0x8100, 3), (0x8100, 4), (0x8100, 5)],
                0x88b5,
                &[7; 50],
            ),
            // The sender's own address, as by a loop.
            tagged(OTHER, FAR, &[], 0x88b5, &[8; 50]),
        ];
        for (from, to) in [(&of_near, &of_far), (&of_far, &of_near)] {
            sent.iter().for_each(|bytes| send(from, bytes));
            let done = || arrived(to).len() >= sent.len();
            assert!(bench.until(5, &mut [&mut near, &mut far], done), "{:x?}", arrived(to));
            assert_eq!(arrived(to), sent);
            to.borrow_mut().arrived.clear();
            assert_eq!(arrived(from), Vec::<Vec<u8>>::new(), "what one sends does not come up");
        }
        assert_eq!((figure(&near, "socket_sent"), figure(&near, "socket_received")), (8, 8));
        // Longer than the interface takes, and cut short: neither is a frame.
        send(&of_near, &tagged(FAR, NEAR, &[], 0x88b5, &[0; 1505]));
        send(&of_near, &[1; 13]);
        bench.until(0, &mut [&mut near, &mut far], || false);
        bench.until(1, &mut [&mut near, &mut far], || false);
        assert_eq!(figure(&near, "socket_send_refused"), 2);
        assert_eq!(arrived(&of_far), Vec::<Vec<u8>>::new());
    });
}

/// A request by ARP for the address of the host.
fn request() -> Vec<u8> {
    let sender = [&NEAR[..], &[10, 0, 0, 9]].concat();
    let payload = [&[0, 1, 8, 0, 6, 4, 0, 1][..], &sender, &[0; 6], &[10, 0, 0, 1]].concat();
    tagged([0xff; 6], NEAR, &[], 0x0806, &payload)
}

/// A datagram to a port of an address.
fn datagram(to: [u8; 4]) -> Vec<u8> {
    let mut packet = Buffer::copy_from(b"hello");
    let (from, to) = (([10, 0, 0, 9], 9).into(), (to, 4077).into());
    udp::prepend(&mut packet, from, to);
    ip::prepend(&mut packet, from.ip(), to.ip(), ip::UDP, 64, 0);
    tagged(FAR, NEAR, &[], 0x0800, &packet)
}

#[test]
fn the_kernel_neither_answers_nor_delivers_nor_forwards_what_is_taken_and_does_again_afterwards() {
    if !require(&NEEDS) {
        return;
    }
    let namespace = cable("silent");
    namespace.sh("ip route add 10.0.0.0/24 dev near");
    namespace.sh("ip neigh replace 10.0.0.7 lladdr 02:00:00:00:00:07 dev near");
    namespace.run(|| {
        let bench = Bench::new();
        let socket = UdpSocket::bind("0.0.0.0:4077").unwrap();
        socket.set_nonblocking(true).unwrap();
        let (mut near, of_near) = bench.played(&[whole("near")]);
        let is_answer = |bytes: &Vec<u8>| bytes[12..14] == [8, 6] && bytes[20..22] == [0, 2];
        for round in 0..3 {
            let is_taken = round == 1;
            let mut far = is_taken.then(|| bench.played(&[whole("far")]));
            let rules = namespace.sh("nft list tables");
            assert_eq!(rules.lines().count(), 1 + usize::from(is_taken), "{rules}");
            let off = namespace.sh("cat /proc/sys/net/ipv6/conf/far/disable_ipv6");
            assert_eq!(off.trim(), if is_taken { "1" } else { "0" });
            of_near.borrow_mut().arrived.clear();
            for bytes in [request(), datagram([10, 0, 0, 1]), datagram([255; 4])] {
                send(&of_near, &bytes);
            }
            let mut runtimes = vec![&mut near];
            if let Some((far, _)) = &mut far {
                runtimes.push(far);
            }
            let answered = || arrived(&of_near).iter().any(is_answer);
            let came = bench.until(if is_taken { 1 } else { 5 }, &mut runtimes, answered);
            let mut delivered = 0;
            while socket.recv(&mut [0; 9]).is_ok() {
                delivered += 1;
            }
            assert_eq!((came, delivered), if is_taken { (false, 0) } else { (true, 2) }, "round {round}");
            if let Some((_, of_far)) = far {
                assert_eq!(arrived(&of_far), [request(), datagram([10, 0, 0, 1]), datagram([255; 4])]);
            }
        }
    });
}

#[test]
fn an_interface_that_the_host_uses_is_refused_in_a_line() {
    if !require(&NEEDS) {
        return;
    }
    let namespace = cable("refused");
    namespace.sh("ip addr add 10.8.0.1/24 dev far");
    namespace.run(|| {
        let refusals = [
            (
                "far",
                "cannot open all frames of `far`: the interface `far` has the address 10.8.0.1: \
                 one whose frames are all taken has none",
            ),
            ("nowhere", "cannot open all frames of `nowhere`: there is no interface `nowhere`"),
        ];
        for (interface, expected) in refusals {
            let opened = Runtime::open(Played::new().0, &[whole(interface)], Clock::starting_now());
            let Err(why) = opened else { panic!("opened: {expected}") };
            assert_eq!(why.to_string(), expected);
        }
    });
    assert_eq!(namespace.sh("nft list tables").trim(), "", "nothing is left behind");
}
