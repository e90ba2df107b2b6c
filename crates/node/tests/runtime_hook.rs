//! A hook into forwarding does the same on the kernel as in virtual time: one machine, and the same expectations.

#![allow(clippy::unwrap_used)] // in what the tests share

mod common;
mod hooked;

use std::io::{BufRead, BufReader};
use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::process::{Command, Stdio};
use std::time::Duration;

use common::{Bench, Namespace, figure, state};
use hooked::{Answer, Explicit, KIND, LISTENS, Links, Live, NOTHING, Simulated};
use hooked::{packet, raw, router, station, with_payload};
use hopcast_core::hook::MAX_ANSWERS;
use hopcast_core::plug::{HookPlug, Plug};
use hopcast_core::{Buffer, Egress, Hook, Instant, Item, Transit};
use hopcast_node::Clock;
use hopcast_node::daemon::sweep;
use hopcast_node::runtime::{Runtime, Stop};
use hopcast_node::testing::{Requirement, require};
use hopcast_wire::{ip, udp};

const NEEDS: [Requirement<'_>; 4] =
    [Requirement::Root, Requirement::Tun, Requirement::Program("ip"), Requirement::Program("nft")];
const EXPLICIT: Hook = Hook::ExtensionHeader { header: 43, kind: Some(KIND) };
const RECEIVERS: [usize; 3] = [1, 2, 3];

/// Runs a test in virtual time, and on the kernel where that can be.
fn in_both_worlds(name: &str, hook: Hook, reflects: bool, test: impl Fn(&str, Box<dyn Links>)) {
    test("in virtual time", Box::new(Simulated::new(hook, reflects)));
    if require(&NEEDS) {
        test("live", Box::new(Live::new(name, hook, reflects)));
    }
}

fn all() -> Vec<Ipv6Addr> {
    RECEIVERS.map(station).into()
}

/// Link, destination, hop limit and protocol of each packet.
fn summary(packets: &[(usize, Vec<u8>)]) -> Vec<(usize, Ipv6Addr, u8, u8)> {
    let of = |(link, packet): &(usize, Vec<u8>)| {
        let destination: [u8; 16] = packet[24..40].try_into().unwrap();
        (*link, destination.into(), packet[7], packet[6])
    };
    packets.iter().map(of).collect()
}

#[test]
fn a_packet_with_the_header_comes_out_as_a_copy_to_each_receiver() {
    in_both_worlds("copies", EXPLICIT, false, |world, mut links| {
        links.send(&packet(station(1), KIND, 64, Answer::EachByRoutes, &all()));
        let arrived = links.arrived(3);
        let expected = RECEIVERS.map(|link| (link, station(link), 63, NOTHING));
        assert_eq!(summary(&arrived), expected, "{world}");
        assert!(arrived.iter().all(|(_, packet)| packet[40..] == *b"payload!"), "{world}");
        assert_eq!(links.end(), (0, 0), "{world}");
    });
}

#[test]
fn a_packet_without_the_header_passes_and_the_machine_never_sees_it() {
    in_both_worlds("untouched", EXPLICIT, false, |world, mut links| {
        // The machine would answer it with copies.
        let sent = packet(station(2), KIND - 1, 64, Answer::EachByRoutes, &all());
        links.send(&sent);
        let mut expected = sent;
        expected[7] = 63;
        assert_eq!(links.arrived(1), [(2, expected)], "{world}");
        links.end();
    });
}

#[test]
fn a_packet_that_is_not_answered_is_gone() {
    in_both_worlds("consumed", EXPLICIT, false, |world, mut links| {
        links.send(&packet(station(1), KIND, 64, Answer::Nothing, &all()));
        links.send(&packet(station(2), KIND, 64, Answer::EachByRoutes, &[station(2)]));
        assert_eq!(summary(&links.arrived(1)), [(2, station(2), 63, NOTHING)], "the next one is: {world}");
        links.end();
    });
}

#[test]
fn a_packet_that_is_handed_back_goes_on_as_it_was() {
    in_both_worlds("pass", EXPLICIT, false, |world, mut links| {
        let mut sent = packet(station(3), KIND, 64, Answer::Pass, &all());
        links.send(&sent);
        sent[7] = 63;
        assert_eq!(links.arrived(1), [(3, sent)], "{world}");
        links.end();
    });
}

#[test]
fn a_copy_goes_to_the_neighbour_that_it_names_whatever_its_destination_is() {
    in_both_worlds("neighbour", EXPLICIT, false, |world, mut links| {
        let mut sent = packet(station(3), KIND, 64, Answer::EachToNeighbour, &all());
        links.send(&sent);
        sent[7] = 63;
        let expected = RECEIVERS.map(|link| (link, sent.clone()));
        assert_eq!(links.arrived(3), expected, "{world}");
        links.end();
    });
}

#[test]
fn a_packet_to_a_group_leaves_by_the_interfaces_that_are_named() {
    in_both_worlds("group", EXPLICIT, false, |world, mut links| {
        let group = "ff0e::253".parse().unwrap();
        let mut sent = packet(group, KIND, 64, Answer::Group, &[]);
        links.send(&sent);
        sent[7] = 63;
        assert_eq!(links.arrived(3), RECEIVERS.map(|link| (link, sent.clone())), "{world}");
        links.end();
    });
}

#[test]
fn what_is_for_the_router_itself_is_taken_and_delivered_when_it_is_handed_back() {
    in_both_worlds("local", EXPLICIT, false, |world, mut links| {
        let mut datagram = Buffer::copy_from(b"hello");
        let end = |address: Ipv6Addr| (address, LISTENS).into();
        udp::prepend(&mut datagram, end(station(0)), end(router(2)));
        let to_router = |answer| with_payload(router(2), KIND, 1, answer, &[station(1)], ip::UDP, &datagram);
        links.send(&to_router(Answer::Nothing));
        assert!(links.delivered(0).is_empty(), "{world}");
        links.send(&to_router(Answer::Pass));
        assert_eq!(links.delivered(1), [b"hello"], "on its last hop: {world}");
        links.send(&packet(router(0), KIND, 64, Answer::EachByRoutes, &all()));
        let expected = RECEIVERS.map(|link| (link, station(link), 63, NOTHING));
        assert_eq!(summary(&links.arrived(3)), expected, "{world}");
        links.end();
    });
}

#[test]
fn a_copy_for_the_router_itself_is_delivered() {
    in_both_worlds("copy-local", EXPLICIT, false, |world, mut links| {
        let mut datagram = Buffer::copy_from(b"hello");
        let end = |address: Ipv6Addr| (address, LISTENS).into();
        udp::prepend(&mut datagram, end(station(0)), end(router(2)));
        for answer in [Answer::EachByRoutes, Answer::EachAsOwn] {
            let list = [router(2)];
            links.send(&with_payload(station(1), KIND, 64, answer, &list, ip::UDP, &datagram));
            assert_eq!(links.delivered(1), [b"hello"], "{world} {}", answer as u8);
        }
        links.end();
    });
}

#[test]
fn packets_of_the_machines_own_keep_their_hop_limit() {
    in_both_worlds("own", EXPLICIT, false, |world, mut links| {
        links.send(&packet(station(1), KIND, 64, Answer::EachAsOwn, &all()));
        let expected = RECEIVERS.map(|link| (link, station(link), 64, NOTHING));
        assert_eq!(summary(&links.arrived(3)), expected, "{world}");
        links.end();
    });
}

#[test]
fn a_copy_whose_hops_are_used_up_goes_no_further() {
    in_both_worlds("hops", EXPLICIT, false, |world, mut links| {
        links.send(&packet(station(3), KIND, 1, Answer::EachToNeighbour, &all()));
        assert_eq!(links.arrived(0), [], "of those to neighbours nobody is told: {world}");
        links.send(&packet(station(3), KIND, 1, Answer::EachByRoutes, &[station(2)]));
        let arrived = links.arrived(1);
        let [(0, error)] = &arrived[..] else { panic!("{world}: {arrived:?}") };
        assert_eq!((error[6], error[40]), (ip::ICMPV6, 3), "time exceeded, to the sender: {world}");
        links.end();
    });
}

#[test]
fn a_thousand_copies_are_no_more_than_a_hook_may_send() {
    in_both_worlds("thousand", EXPLICIT, false, |world, mut links| {
        for answer in [Answer::ThousandByRoutes, Answer::ThousandToNeighbour] {
            links.send(&packet(station(1), KIND, 64, answer, &[station(1)]));
            let arrived = links.arrived(MAX_ANSWERS as usize).len();
            assert_eq!(arrived, MAX_ANSWERS as usize, "{world}");
        }
        links.send(&packet(station(1), KIND, 64, Answer::EachByRoutes, &all()));
        assert_eq!(links.arrived(3).len(), 3, "the next packet may be answered again: {world}");
        let (excess, _) = links.end();
        assert_eq!(excess, 2 * (1000 - u64::from(MAX_ANSWERS)), "{world}");
    });
}

#[test]
fn a_loop_of_two_hooks_ends_when_the_hops_are_used_up() {
    in_both_worlds("loop", EXPLICIT, true, |world, mut links| {
        links.send(&packet(station(3), KIND, 64, Answer::Onward, &[]));
        let arrived = links.arrived(32);
        // The other half of its hops it takes on its way back.
        let expected: Vec<_> = (0..32).map(|turn| (1, station(3), 63 - 2 * turn, 43)).collect();
        assert_eq!(summary(&arrived), expected, "{world}");
        assert_eq!(links.end(), (0, 1), "{world}");
    });
}

#[test]
fn hooks_on_destinations_and_protocols_take_what_is_in_transit_only() {
    let protocol = Hook::Protocol(NOTHING);
    let destination = Hook::Destination { prefix: "fd02::".parse().unwrap(), length: 64 };
    let every_routing_header = Hook::ExtensionHeader { header: 43, kind: None };
    for (name, hook, to) in [
        ("protocol", protocol, station(1)),
        ("destination", destination, station(2)),
        ("every", every_routing_header, station(3)),
        ("all", Hook::All, station(3)),
    ] {
        in_both_worlds(name, hook, false, |world, mut links| {
            links.send(&packet(to, KIND - 1, 64, Answer::EachByRoutes, &all()));
            assert_eq!(links.arrived(3).len(), 3, "{name} {world}");
            links.send(&packet(station(3), KIND - 1, 64, Answer::EachByRoutes, &all()));
            let expected = if hook == destination { 1 } else { 3 };
            assert_eq!(links.arrived(expected).len(), expected, "{name} {world}");
            let mut datagram = Buffer::copy_from(b"hello");
            let end = |address: Ipv6Addr| (address, LISTENS).into();
            udp::prepend(&mut datagram, end(station(0)), end(router(2)));
            links.send(&with_payload(router(2), KIND - 1, 64, Answer::Nothing, &[], ip::UDP, &datagram));
            let expected = usize::from(!hook.is_for_host());
            assert_eq!(links.delivered(expected).len(), expected, "{name} {world}");
            links.end();
        });
    }
}

#[test]
fn a_router_of_many_neighbours_reaches_each() {
    in_both_worlds("neighbours", EXPLICIT, false, |world, mut links| {
        // More than have a route at once, and one that is there after each sixty.
        for round in 0..5 {
            let nobody =
                |number: u16| Ipv6Addr::new(0xfd00 + (number + 1).min(3), 0, 0, 0, 0, 0, 1 + round, number);
            let mut list: Vec<_> = (0..60).map(nobody).collect();
            list.push(station(3));
            links.send(&packet(station(2), KIND, 64, Answer::EachToNeighbour, &list));
            assert_eq!(summary(&links.arrived(1)), [(3, station(2), 63, 43)], "{world} {round}");
        }
        links.send(&packet(station(2), KIND, 64, Answer::EachToNeighbour, &all()));
        let expected = RECEIVERS.map(|link| (link, station(2), 63, 43));
        assert_eq!(summary(&links.arrived(3)), expected, "{world}");
        links.end();
    });
}

/// IPv4 over one router, whose interfaces all check sources strictly: 10.0.0.2 and 10.1.0.2.
#[test]
fn packets_of_ipv4_are_put_back_even_where_the_host_checks_their_sources() {
    if !require(&NEEDS) {
        return;
    }
    let [central, one, two] = ["four-r", "four-1", "four-2"].map(Namespace::new);
    central.sh("sysctl -q net.ipv4.ip_forward=1 net.ipv4.conf.all.rp_filter=1");
    one.join("s0", &["10.0.0.2/24"], &central, "g0", &["10.0.0.1/24"]);
    two.join("s1", &["10.1.0.2/24"], &central, "g1", &["10.1.0.1/24"]);
    one.sh("ip route add default via 10.0.0.1");
    two.sh("ip route add default via 10.1.0.1");
    let before = state(&central);
    let receiver = two.run(|| UdpSocket::bind("0.0.0.0:7000").unwrap());
    receiver
        .join_multicast_v4(&"239.1.1.1".parse().unwrap(), &"10.1.0.2".parse().unwrap())
        .unwrap_or_default();
    receiver.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    // Complete, as from a wire: the checksums of a kernel's own datagrams a pair of interfaces leaves to hardware.
    let sender = one.run(|| raw(socket2::Domain::IPV4));
    let group = Hook::Destination { prefix: "239.0.0.0".parse().unwrap(), length: 8 };
    let network = Hook::Destination { prefix: "10.1.0.0".parse().unwrap(), length: 24 };
    central.run(|| {
        let bench = Bench::new();
        let interfaces = vec!["g0".to_owned(), "g1".to_owned()];
        let plug = HookPlug { hooks: vec![group, network], interfaces };
        let (mut runtime, traffic) = bench.played(&[Plug::Hook(plug)]);
        let neighbour = Egress::Neighbour { interface: 1, address: "10.1.0.2".parse().unwrap() };
        let cases = [("10.1.0.2:7000", Egress::Routes), ("10.1.0.2:7000", neighbour)];
        for (to, egress) in cases.into_iter().chain([("239.1.1.1:7000", Egress::Group([1].into()))]) {
            let to: SocketAddr = to.parse().unwrap();
            let mut sent = Buffer::copy_from(b"hello");
            udp::prepend(&mut sent, "10.0.0.2:9".parse().unwrap(), to);
            ip::prepend(&mut sent, "10.0.0.2".parse().unwrap(), to.ip(), ip::UDP, 64, 1);
            sender.send_to(&sent, &to.into()).unwrap();
            let taken = || traffic.borrow().arrived.len() == 1;
            assert!(bench.until(10, &mut [&mut runtime], taken), "taken: {to}");
            let Some((0, Item::Transit(transit))) = traffic.borrow_mut().arrived.pop() else {
                panic!("{to}")
            };
            assert_eq!(transit.ingress, Some(0));
            traffic.borrow_mut().out.down(Item::Transit(Transit { egress: egress.clone(), ..transit }));
            let mut got = [0; 16];
            let has_come = || receiver.recv(&mut got).is_ok_and(|len| got[..len] == *b"hello");
            let came = bench.until(10, &mut [&mut runtime], has_come);
            assert!(came, "{to} {egress:?}");
        }
        assert_eq!(figure(&runtime, "socket_send_refused"), 0);
    });
    assert_eq!(state(&central), before, "rules and routes are gone");
}

#[test]
fn on_a_host_that_does_not_forward_nothing_is_in_transit() {
    if !require(&NEEDS) {
        return;
    }
    let mut live = Live::unhooked("end-host");
    live.router.sh("sysctl -q net.ipv6.conf.all.forwarding=0");
    live.hook(EXPLICIT);
    live.send(&packet(station(2), KIND, 64, Answer::EachToNeighbour, &all()));
    assert_eq!(live.arrived(0), []);
    live.send(&packet(router(0), KIND, 64, Answer::EachToNeighbour, &all()));
    assert_eq!(live.arrived(3).len(), 3, "what is for itself is taken");
    Box::new(live).end();
}

fn plug(hook: Hook, interfaces: &[&str]) -> HookPlug {
    HookPlug { hooks: vec![hook], interfaces: interfaces.iter().map(|&name| name.to_owned()).collect() }
}

#[test]
fn a_hook_that_cannot_be_says_why_in_a_line_and_leaves_nothing_behind() {
    if !require(&NEEDS) {
        return;
    }
    let live = Live::unhooked("mistakes");
    let before = state(&live.router);
    let unknown = Hook::ExtensionHeader { header: 139, kind: None };
    for (plug, expected) in [
        (plug(EXPLICIT, &["g0", "g9"]), "cannot open a hook on `g0`, `g9`: there is no interface `g9`"),
        (plug(EXPLICIT, &[]), "cannot open a hook on ``: a hook names the packets that it takes and"),
        (plug(unknown, &["g0"]), "cannot open a hook on `g0`: no rule of nft selects ExtensionHeader"),
    ] {
        let opened = live.router.spawn(move || {
            let machine = Box::new(Explicit::new((1, station(1))));
            Runtime::open(machine, &[Plug::Hook(plug)], Clock::starting_now()).err().unwrap().to_string()
        });
        let why = opened.join().unwrap();
        assert!(why.starts_with(expected) && why.lines().count() == 1, "{why}");
        assert_eq!(state(&live.router), before);
    }
}

#[test]
fn what_a_killed_process_leaves_behind_is_swept_and_the_router_forwards_again() {
    if !require(&NEEDS) {
        return;
    }
    let mut live = Live::unhooked("killed");
    let before = state(&live.router);
    let own = std::env::current_exe().unwrap();
    let mut child = Command::new("ip")
        .args(["netns", "exec", live.router.name()])
        .arg(own)
        .args(["--exact", "runs_a_hook_until_it_is_killed", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.ends_with("it runs")));
    let sent = packet(station(2), KIND, 64, Answer::Nothing, &all());
    live.send(&sent);
    assert_eq!(live.arrived(0), [], "it takes packets");
    child.kill().unwrap();
    child.wait().unwrap();
    let removed = live.router.run(sweep);
    assert!(matches!(&removed[..], [line] if line.contains("nft table `hopcast_0`")), "{removed:?}");
    assert_eq!(state(&live.router), before);
    assert!(!live.router.sh("ip -o link").contains("hopcast"));
    live.send(&sent);
    assert_eq!(live.arrived(1).len(), 1);
}

/// Not a test: the process of the one above.
#[test]
#[ignore = "the test of what a killed process leaves behind starts it"]
fn runs_a_hook_until_it_is_killed() {
    let machine = Box::new(Explicit::new((1, station(1))));
    let plug = Plug::Hook(plug(EXPLICIT, &["g0", "g1", "g2", "g3"]));
    let mut runtime = Runtime::open(machine, &[plug], Clock::starting_now()).unwrap();
    println!("it runs");
    runtime.run(Some(Instant::ZERO + hopcast_core::Duration::from_secs(60)), &Stop::new().unwrap()).unwrap();
}

#[test]
fn rules_and_routes_go_with_the_hook() {
    if !require(&NEEDS) {
        return;
    }
    let live = Live::unhooked("undone");
    let before = state(&live.router);
    live.router.run(|| {
        let (mut runtime, _) = Bench::new().played(&[Plug::Hook(plug(EXPLICIT, &["g0"]))]);
        assert_ne!(state(&live.router), before);
        runtime.run(Some(Instant::ZERO), &Stop::new().unwrap()).unwrap();
    });
    assert_eq!(state(&live.router), before);
}
