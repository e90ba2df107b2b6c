//! Datagram ports on UDP sockets.

#![allow(clippy::unwrap_used)] // in what the tests share

mod common;

use std::net::UdpSocket;

use common::{Bench, Namespace, address, figure};
use hopcast_core::plug::Plug;
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
