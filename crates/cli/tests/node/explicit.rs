//! Nodes that take part in explicit multicast for their hosts: routers, and senders for programs.

use std::net::{Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use crate::lab::{Lab, Node, possible, within};

/// Number of datagrams that a program sends.
const DATAGRAMS: u64 = 200;

/// `ship`, two routers, and `shore`, which has three addresses.
fn network() -> Lab {
    let lab = Lab::row(&["ship", "hill", "mast", "shore"]);
    for (place, pair) in ["ship", "hill", "mast", "shore"].windows(2).enumerate() {
        for (host, device, end) in [(pair[0], "right", 1), (pair[1], "left", 2)] {
            lab.run(host, &format!("ip address add fd00:{}::{end}/64 dev {device} nodad", place + 2));
        }
    }
    for router in ["hill", "mast"] {
        lab.run(router, "sysctl -q net.ipv6.conf.all.forwarding=1");
    }
    for number in 1..=3 {
        lab.run("shore", &format!("ip address add fd00:9::{number}/128 dev lo nodad"));
    }
    for (host, network, via) in [
        ("ship", "default", "fd00:2::2"),
        ("hill", "fd00:9::/64", "fd00:3::2"),
        ("mast", "fd00:9::/64", "fd00:4::2"),
        ("mast", "default", "fd00:3::1"),
        ("shore", "default", "fd00:4::1"),
    ] {
        lab.run(host, &format!("ip -6 route add {network} via {via}"));
    }
    lab
}

fn router(lab: &Lab, name: &str, listen: &str, address: &str) -> Node {
    lab.node(
        name,
        &format!(
            "name: {name}
listen: {listen}:7400
services: {{ run: meadcast-router, address: \"{address}\", interfaces: [left, right] }}"
        ),
    )
}

/// What arrives at a port of an address of `shore`, with its senders' addresses.
fn receive(lab: &Lab, at: &str) -> std::thread::JoinHandle<Vec<(Ipv6Addr, Vec<u8>)>> {
    let at: SocketAddr = at.parse().unwrap();
    let (ready, is_ready) = std::sync::mpsc::channel();
    let receiver = lab.inside("shore", move || {
        let socket = UdpSocket::bind(at).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        ready.send(()).unwrap();
        let mut came = Vec::new();
        let mut buffer = [0; 2000];
        while let Ok((len, SocketAddr::V6(from))) = socket.recv_from(&mut buffer) {
            came.push((*from.ip(), buffer[..len].to_vec()));
            if came.len() as u64 == DATAGRAMS {
                break;
            }
        }
        came
    });
    is_ready.recv().unwrap();
    receiver
}

fn payload(number: u64) -> Vec<u8> {
    number.to_be_bytes().repeat(100)
}

/// Sends datagrams of a program of `ship` to an address of a group.
fn send(lab: &Lab, to: &str) {
    let to: SocketAddr = to.parse().unwrap();
    let program = lab.inside("ship", move || {
        let socket = UdpSocket::bind("[::]:0").unwrap();
        for number in 0..DATAGRAMS {
            socket.send_to(&payload(number), to).unwrap();
            std::thread::sleep(Duration::from_millis(2));
        }
    });
    program.join().unwrap();
}

#[test]
fn programs_send_to_an_address_and_lists_bring_it_to_each_member_over_routers_that_are_nodes() {
    if !possible() {
        return;
    }
    let lab = network();
    let hill = router(&lab, "hill", "192.0.3.1", "fd00:3::1");
    let mast = router(&lab, "mast", "192.0.4.1", "fd00:4::1");
    let over = "{ meadcast: { delay: 2 s, interval: 10 s } }";
    let ship = lab.node(
        "ship",
        &format!(
            "name: ship
listen: 192.0.2.1:7400
send:
  - to: ff18::1
    tun: group0
    from: fd00:2::1
    members: [\"fd00:9::1\", \"fd00:9::2\", \"fd00:9::3\"]
    interfaces: right
    over: {over}
  - to: fd77::1
    tun: group1
    from: fd00:2::1
    members: [\"fd00:9::2\", \"fd00:9::3\"]
    interfaces: right
    over: {over}"
        ),
    );
    // Both have heard the routers, whose responses come to one plug.
    let shown = |place: usize| ship.status().host[place].shown.clone();
    let has_lists = || (0..2).all(|place| shown(place).contains("list | fd00:4::1"));
    assert!(within(Duration::from_secs(40), has_lists), "{} {}", shown(0), shown(1));
    assert_eq!(
        shown(1),
        "sender\n  fd00:3::1 (1)\n    fd00:4::1 (2)\n      - fd00:9::2\n      - fd00:9::3\nlist | fd00:4::1 fd00:9::2 fd00:9::3\n"
    );
    let count = |node: &Node, name: &str| node.status().host[0].count(&format!("meadcast_{name}"));
    for (to, members) in [("[ff18::1]:5000", &[1, 2, 3][..]), ("[fd77::1]:5000", &[2, 3])] {
        let before = [&hill, &mast].map(|node| ["data", "copies", "unicast"].map(|name| count(node, name)));
        let receivers: Vec<_> =
            members.iter().map(|number| receive(&lab, &format!("[fd00:9::{number}]:5000"))).collect();
        send(&lab, to);
        for receiver in receivers {
            let came = receiver.join().unwrap();
            let own: Ipv6Addr = "fd00:2::1".parse().unwrap();
            let sent: Vec<_> = (0..DATAGRAMS).map(|number| (own, payload(number))).collect();
            assert!(came == sent, "{to}: {} of {DATAGRAMS} came", came.len());
        }
        // One packet on each link up to the last router, which makes a plain one for each member.
        let all = members.len() as u64 * DATAGRAMS;
        let expected = [[DATAGRAMS, DATAGRAMS, 0], [DATAGRAMS, 0, all]];
        let passed = || {
            let after =
                [&hill, &mast].map(|node| ["data", "copies", "unicast"].map(|name| count(node, name)));
            [0, 1].map(|node| [0, 1, 2].map(|place| after[node][place] - before[node][place]))
        };
        assert!(within(Duration::from_secs(5), || passed() == expected), "{to}: {:?}", passed());
    }
    let status = lab.command(
        "ship",
        &[env!("CARGO_BIN_EXE_hopcast"), "node", "status", "--socket", ship.socket.to_str().unwrap()],
    );
    let status = String::from_utf8(status.stdout).unwrap();
    let head = "sending to ff18::1 over meadcast (delay 2s, interval 10s)\nsender\n  fd00:3::1 (1)\n";
    assert!(status.contains(head), "{status}");

    // Rules go with a node, and those of one that was killed with the next.
    let (mut hill, mut mast) = (hill, mast);
    mast.signal("TERM");
    assert_eq!(mast.ends(), Some(0));
    assert_eq!(lab.run("mast", "nft list tables"), "");
    hill.kill();
    let tables = || lab.run("hill", "nft list tables").lines().count();
    assert_eq!(tables(), 1);
    let _again = router(&lab, "hill", "192.0.3.1", "fd00:3::1");
    assert!(within(Duration::from_secs(20), || tables() == 1), "{}", lab.run("hill", "nft list tables"));
}
