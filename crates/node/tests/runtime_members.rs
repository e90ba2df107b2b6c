//! Members of groups that share a host and a port, each with an address of its own.

#![allow(clippy::unwrap_used)] // in what the tests share

mod common;

use std::cell::RefCell;
use std::net::{IpAddr, SocketAddr};
use std::rc::Rc;

use common::{Bench, Namespace, Traffic, address, figure};
use hopcast_core::plug::Plug;
use hopcast_core::{Item, Membership};
use hopcast_node::runtime::Runtime;
use hopcast_node::testing::{Requirement, require};

/// Members with their addresses, which a test plays.
struct Members {
    bench: Bench,
    all: Vec<(SocketAddr, Runtime, Rc<RefCell<Traffic>>)>,
}

impl Members {
    fn new() -> Self {
        Self { bench: Bench::new(), all: Vec::new() }
    }

    fn add(&mut self, at: SocketAddr) {
        let (runtime, traffic) = self.bench.played(&[Plug::Udp(at)]);
        self.all.push((runtime.address(0).unwrap(), runtime, traffic));
    }

    /// All of this thread's machines run until `done`; false if that does not happen in `seconds`.
    fn until(&mut self, seconds: u64, mut done: impl FnMut(&[Rc<RefCell<Traffic>>]) -> bool) -> bool {
        let traffic: Vec<_> = self.all.iter().map(|(_, _, traffic)| Rc::clone(traffic)).collect();
        let mut runtimes: Vec<_> = self.all.iter_mut().map(|(_, runtime, _)| runtime).collect();
        self.bench.until(seconds, &mut runtimes, || done(&traffic))
    }

    fn change(&mut self, member: usize, group: IpAddr, joined: bool) {
        let change = Membership { group, source: None, interface: None, joined };
        self.all[member].2.borrow_mut().out.down(Item::Membership(change));
        assert!(self.until(10, |traffic| traffic[member].borrow().out.is_empty()));
    }

    /// What each member receives, by its sender and destination, when each sends to each of `to` once; all of
    /// `wanted` is waited for, and after it what should not come.
    fn heard(&mut self, to: &[SocketAddr], wanted: usize) -> Vec<Vec<(IpAddr, SocketAddr)>> {
        for (own, _, traffic) in &self.all {
            to.iter().for_each(|&to| traffic.borrow_mut().send(*own, to, b"to all"));
        }
        let count = |traffic: &[Rc<RefCell<Traffic>>]| -> usize {
            traffic.iter().map(|traffic| traffic.borrow().arrived.len()).sum()
        };
        assert!(self.until(10, |traffic| count(traffic) >= wanted), "not all arrives");
        for (_, runtime, traffic) in &mut self.all {
            // What else the kernel has for a member comes with its next turn.
            let until = self.bench.clock.now() + hopcast_core::Duration::from_millis(20);
            runtime.run(Some(until), &self.bench.stop).unwrap();
            assert_eq!(figure(runtime, "socket_groups_refused"), 0);
            assert!(traffic.borrow().out.is_empty());
        }
        let heard = self.all.iter().map(|(_, _, traffic)| {
            let datagrams = traffic.borrow_mut().datagrams();
            let mut ends: Vec<_> = datagrams.iter().map(|one| (one.remote.ip(), one.local)).collect();
            ends.sort_unstable();
            ends
        });
        heard.collect()
    }
}

/// Members whose addresses are the last of these: each joins before the next one's socket is there. Then each hears
/// all, of its own groups alone.
fn members_of_one_host_share_a_port(own: &[&str; 3], groups: [&str; 2]) {
    let [one, other] = groups.map(|group| group.parse::<IpAddr>().unwrap());
    let mut members = Members::new();
    members.add(address(own[0]));
    members.change(0, one, true);
    let port = members.all[0].0.port();
    for at in &own[1..] {
        let at = SocketAddr::new(address(at).ip(), port);
        members.add(at);
        members.change(members.all.len() - 1, one, true);
    }
    members.change(2, other, true);
    let [to_one, to_other] = [one, other].map(|group| SocketAddr::new(group, port));
    let senders: Vec<IpAddr> = own.iter().map(|own| address(own).ip()).collect();
    let from_all = |to: SocketAddr| senders.iter().map(move |&from| (from, to));
    let of_one: Vec<_> = from_all(to_one).collect();
    let mut of_both: Vec<_> = from_all(to_one).chain(from_all(to_other)).collect();
    of_both.sort_unstable();
    let heard = members.heard(&[to_one, to_other], 12);
    assert_eq!(heard, [of_one.clone(), of_one.clone(), of_both]);
    // One leaves a group; its other one goes on, and so do the others.
    members.change(2, one, false);
    members.change(1, one, false);
    let heard = members.heard(&[to_one, to_other], 6);
    assert_eq!(heard, [of_one, vec![], from_all(to_other).collect()]);
    members.change(1, one, true);
    assert_eq!(members.heard(&[to_one], 6)[1].len(), 3, "it joins again");
}

#[test]
fn members_of_one_host_share_a_port_on_loopback() {
    let own = ["127.0.0.1:0", "127.0.0.2:0", "127.0.0.3:0"];
    members_of_one_host_share_a_port(&own, ["239.1.2.3", "239.1.2.4"]);
}

/// On two interfaces, of which the first has the members' addresses.
fn members_of_one_host_share_a_port_on_a_link(own: [&'static str; 3], groups: [&'static str; 2]) {
    if !require(&[Requirement::Root, Requirement::Program("ip")]) {
        return;
    }
    let version = if own[0].starts_with('[') { 6 } else { 4 };
    let [here, far] = ["members", "far"].map(|side| Namespace::new(&format!("{side}{version}")));
    let addresses = own.map(|own| format!("{}/{}", address(own).ip(), if version == 6 { 64 } else { 24 }));
    here.join("eth0", &addresses.each_ref().map(|own| &**own), &far, "eth0", &[]);
    here.join("eth1", &[], &far, "eth1", &[]);
    here.run(|| members_of_one_host_share_a_port(&own, groups));
}

#[test]
fn members_of_one_host_share_a_port_on_a_link_of_ipv4() {
    let own = ["10.1.0.1:7000", "10.1.0.2:7000", "10.1.0.3:7000"];
    members_of_one_host_share_a_port_on_a_link(own, ["239.1.2.3", "239.1.2.4"]);
}

#[test]
fn members_of_one_host_share_a_port_on_a_link_of_ipv6() {
    let own = ["[fd01::1]:7000", "[fd01::2]:7000", "[fd01::3]:7000"];
    // The second is a group of each link of its own.
    members_of_one_host_share_a_port_on_a_link(own, ["ff15::3", "ff12::3"]);
}

#[test]
fn a_broadcast_is_heard_by_those_who_asked_for_it() {
    if !require(&[Requirement::Root, Requirement::Program("ip")]) {
        return;
    }
    let [here, far] = ["cast", "farcast"].map(Namespace::new);
    here.join("eth0", &["10.1.0.1/24", "10.1.0.2/24"], &far, "eth0", &["10.1.0.9/24"]);
    let all = "255.255.255.255:7000";
    let received = here.run(|| {
        let mut heard = Members::new();
        for own in ["10.1.0.1:7000", "10.1.0.2:7000"] {
            heard.add(address(own));
        }
        heard.change(1, address(all).ip(), true);
        far.run(|| {
            let socket = std::net::UdpSocket::bind("10.1.0.9:9").unwrap();
            socket.set_broadcast(true).unwrap();
            let socket = socket2::Socket::from(socket);
            socket.bind_device(Some(b"eth0")).unwrap();
            socket.send_to(b"to all", &address(all).into()).unwrap();
        });
        assert!(heard.until(10, |traffic| !traffic[1].borrow().arrived.is_empty()));
        heard
            .all
            .into_iter()
            .map(|(_, _, traffic)| traffic.borrow_mut().datagrams().len())
            .collect::<Vec<_>>()
    });
    assert_eq!(received, [0, 1]);
}
