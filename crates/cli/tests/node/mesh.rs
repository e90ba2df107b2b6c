//! Nodes of a mesh, whose `bat0` the kernel of each host uses.

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use hopcast_node::status::{Status, TableStatus, table};

use crate::lab::{Lab, Node, possible, within};

/// Time in which nodes find each other, and what they tell each other gets round, on a machine that does much else.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// `ship`, `hub` and `shore` in a row.
const NAMES: [&str; 3] = ["ship", "hub", "shore"];

/// Hosts in a row, whose interfaces have no addresses of their own.
fn network(names: &[&str]) -> Lab {
    let lab = Lab::row(names);
    for (place, host) in names.iter().enumerate() {
        let devices = [("left", place > 0), ("right", place + 1 < names.len())];
        for (device, _) in devices.iter().filter(|(_, is_there)| *is_there) {
            lab.run(host, &format!("ip -4 address flush dev {device}"));
        }
    }
    lab
}

/// The interfaces of a host of the row.
fn interfaces(host: &str) -> &'static [&'static str] {
    match host {
        "ship" => &["right"],
        "hub" => &["left", "right"],
        _ => &["left"],
    }
}

/// A node of the mesh, whose host has 10.9.0.`number`.
fn node(lab: &Lab, run: &str, (host, number): (&str, usize)) -> Node {
    let interfaces = interfaces(host).join(", ");
    let service = format!("run: {run}, tap: bat0, address: 10.9.0.{number}/24, interfaces: [{interfaces}]");
    lab.node(host, &format!("name: {host}\nlisten: 127.0.0.1:7400\nservices: {{ {service} }}"))
}

fn nodes(lab: &Lab, run: &str) -> [Node; 3] {
    std::array::from_fn(|place| node(lab, run, (NAMES[place], place + 1)))
}

/// An interface's Ethernet address, as the kernel has it.
fn address(lab: &Lab, host: &str, interface: &str) -> String {
    let line = lab.run(host, &format!("ip -o link show dev {interface}"));
    let (_, rest) = line.split_once("link/ether ").unwrap();
    rest.split(' ').next().unwrap().to_owned()
}

/// The address by which a node is known in the mesh: that of its first interface.
fn originator(lab: &Lab, host: &str) -> String {
    address(lab, host, interfaces(host)[0])
}

fn table_of<'s>(status: &'s Status, name: &str) -> Option<&'s TableStatus> {
    status.host[0].tables.iter().find(|table| table.table == name)
}

/// The cells of a column of a table.
pub(crate) fn column(status: &Status, name: &str, column: &str) -> BTreeSet<String> {
    let Some(found) = table_of(status, name) else { return BTreeSet::new() };
    let place = found.columns.iter().position(|title| title == column).unwrap();
    found.rows.iter().map(|row| row[place].clone()).collect()
}

/// Waits until each node has a way to each other.
fn converged(lab: &Lab, nodes: &[Node]) {
    let all: BTreeSet<String> = NAMES.iter().map(|host| originator(lab, host)).collect();
    let knows_others = |(host, node): (&&str, &Node)| {
        let known = column(&node.status(), "originators", "originator");
        all.iter().all(|other| known.contains(other) || *other == originator(lab, host))
    };
    let know_all = || NAMES.iter().zip(nodes).all(knows_others);
    assert!(within(PATIENCE, know_all), "{:?}", nodes.iter().map(Node::status).collect::<Vec<_>>());
}

fn pings(lab: &Lab, host: &str, arguments: &str) -> bool {
    lab.attempt(host, &format!("ping -q -c 3 -i 0.2 -W 5 {arguments}")).status.success()
}

fn counter(node: &Node, name: &str) -> u64 {
    node.status().host[0].counters.get(name).copied().unwrap_or_else(|| panic!("no counter `{name}`"))
}

#[test]
fn hosts_reach_each_other_over_a_mesh_and_the_status_shows_what_batctl_would() {
    if !possible() {
        return;
    }
    for (run, metric) in [("batman-iv", "tq"), ("batman-v", "throughput")] {
        let lab = network(&NAMES);
        let nodes = nodes(&lab, run);
        converged(&lab, &nodes);
        for (from, to) in [("ship", 2), ("ship", 3), ("shore", 1), ("hub", 3)] {
            assert!(within(PATIENCE, || pings(&lab, from, &format!("10.9.0.{to}"))), "{run}: {from} to {to}");
        }
        // By neighbour discovery too, and a packet that the mesh cuts into fragments.
        let link_local = lab.run("shore", "ip -6 -o address show dev bat0 scope link");
        let link_local = link_local.split_whitespace().find_map(|word| word.strip_suffix("/64")).unwrap();
        assert!(within(PATIENCE, || pings(&lab, "ship", &format!("-s 1452 {link_local}%bat0"))));

        for host in ["ship", "shore"] {
            assert!(lab.run(host, "ip link show dev bat0").contains("mtu 1500"));
            lab.run(host, "ip link set dev bat0 mtu 9000");
        }
        assert!(within(PATIENCE, || pings(&lab, "ship", "-M do -s 8000 10.9.0.3")), "{run}: jumbo");

        let [hub, ship, shore] = ["hub", "ship", "shore"].map(|host| originator(&lab, host));
        let right_of_hub = address(&lab, "hub", "right");
        let status = nodes[1].status();
        assert_eq!((&*status.host[0].name, &*status.host[0].over), ("bat0", run));
        let both = BTreeSet::from([ship.clone(), shore.clone()]);
        assert_eq!(column(&status, "neighbours", "neighbour"), both);
        assert_eq!(
            column(&status, "neighbours", "interface"),
            BTreeSet::from(["left", "right"].map(str::to_owned))
        );
        assert!(column(&status, "originators", "originator").is_superset(&both));
        assert!(table_of(&status, "originators").unwrap().columns.iter().any(|title| title == metric));
        // From its end, the only neighbour is the next hop to both.
        let status = nodes[0].status();
        assert_eq!(column(&status, "neighbours", "neighbour"), BTreeSet::from([hub.clone()]));
        assert_eq!(
            column(&status, "originators", "originator"),
            BTreeSet::from([hub.clone(), shore.clone()])
        );
        assert_eq!(column(&status, "originators", "next hop"), BTreeSet::from([hub.clone()]));
        let status = nodes[2].status();
        assert_eq!(column(&status, "neighbours", "neighbour"), BTreeSet::from([right_of_hub]));
        // The host's own address is that of `bat0`, here and at others.
        let bat0 = ["ship", "hub", "shore"].map(|host| address(&lab, host, "bat0"));
        assert!(column(&status, "local clients", "client").contains(&bat0[2]));
        let others = column(&status, "global clients", "client");
        assert!(others.contains(&bat0[0]) && others.contains(&bat0[1]), "{others:?}");
        assert_eq!(
            column(&status, "multicast flags", "originator"),
            BTreeSet::from([ship.clone(), hub, shore])
        );
        for node in &nodes {
            assert_eq!((counter(node, "wrong_items"), counter(node, "malformed")), (0, 0));
        }
        // As people read it.
        let text = table::table(&nodes[1].status());
        let line = |words: &[&str]| text.lines().any(|line| words.iter().all(|word| line.contains(word)));
        assert!(
            line(&["running", run, "bat0"]) && line(&["originator", "last seen", metric, "next hop"]),
            "{text}"
        );
        assert!(line(&[&ship, "left"]), "{text}");
    }
}

/// A socket on a host that is a member of a group on `bat0`.
fn member(lab: &Lab, host: &str, (group, own): (Ipv4Addr, Ipv4Addr)) -> UdpSocket {
    let join = move || {
        let socket = UdpSocket::bind(SocketAddr::from((group, PORT))).unwrap();
        socket.join_multicast_v4(&group, &own).unwrap();
        socket.set_read_timeout(Some(Duration::from_millis(500))).unwrap();
        socket
    };
    lab.inside(host, join).join().unwrap()
}

const PORT: u16 = 7000;

/// The numbers of datagrams that come until there are no more.
fn received(socket: &UdpSocket) -> BTreeSet<u32> {
    let mut found = BTreeSet::new();
    let mut bytes = [0; 64];
    loop {
        match socket.recv(&mut bytes) {
            Ok(4) => {
                assert!(found.insert(u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])), "twice");
            }
            Ok(other) => panic!("{other} bytes"),
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {
                return found;
            }
            Err(error) => panic!("{error}"),
        }
    }
}

/// Frames that an interface has received.
fn frames_in(lab: &Lab, host: &str, interface: &str) -> u64 {
    let text = lab.run(host, &format!("ip -s -o link show dev {interface}"));
    let rest = text.split("RX:").nth(1).unwrap();
    let words: Vec<&str> = rest.split_whitespace().filter(|word| word.parse::<u64>().is_ok()).collect();
    words[1].parse().unwrap()
}

#[test]
fn a_groups_datagrams_come_to_members_and_to_no_other_host_until_they_leave() {
    if !possible() {
        return;
    }
    let lab = network(&NAMES);
    let nodes = nodes(&lab, "batman-iv");
    converged(&lab, &nodes);
    let group = Ipv4Addr::new(239, 1, 2, 3);
    let member = member(&lab, "shore", (group, Ipv4Addr::new(10, 9, 0, 3)));
    let ethernet = "01:00:5e:01:02:03".to_owned();
    let of_shore = originator(&lab, "shore");
    let announced = || {
        let status = nodes[0].status();
        let groups = table_of(&status, "groups");
        groups.is_some_and(|table| table.rows.contains(&vec![ethernet.clone(), of_shore.clone()]))
    };
    assert!(within(PATIENCE, announced), "{:?}", nodes[0].status());
    let sender = lab.inside("ship", || UdpSocket::bind("10.9.0.1:0").unwrap()).join().unwrap();
    let send = |numbers: std::ops::Range<u32>| {
        for number in numbers {
            sender.send_to(&number.to_be_bytes(), (group, PORT)).unwrap();
            std::thread::sleep(Duration::from_millis(5));
        }
    };
    let before = frames_in(&lab, "hub", "bat0");
    send(0..200);
    let got = received(&member);
    assert_eq!(got.len(), 200, "{got:?}");
    // Its host is given ARP and the like of other hosts, and no datagram of the group.
    let at_hub = frames_in(&lab, "hub", "bat0") - before;
    assert!(at_hub < 50, "{at_hub} frames at a host that is no member");
    drop(member);
    let is_left = || !announced();
    assert!(within(PATIENCE, is_left), "{:?}", nodes[0].status());
    let count = || counter(&nodes[0], "multicast_without_receiver");
    let unwanted = count();
    send(200..300);
    assert!(within(PATIENCE, || count() >= unwanted + 100), "{:?}", nodes[0].status().host[0].counters);
}

#[test]
fn an_interface_stays_the_hosts_own_beside_the_mesh() {
    if !possible() {
        return;
    }
    let lab = Lab::row(&NAMES);
    let nodes = nodes(&lab, "batman-iv");
    converged(&lab, &nodes);
    assert!(within(PATIENCE, || pings(&lab, "ship", "10.9.0.3")), "over the mesh");
    assert!(pings(&lab, "ship", "192.0.2.2") && pings(&lab, "shore", "192.0.3.1"), "beside it");
    assert_eq!(lab.run("hub", "nft list tables").trim(), "", "nothing of the host's is taken");
}

#[test]
fn a_bridge_of_the_kernel_above_joins_stations_to_the_mesh_and_wants_all_groups() {
    if !possible() {
        return;
    }
    let lab = network(&["ship", "hub", "shore", "station"]);
    let nodes = nodes(&lab, "batman-iv");
    for line in [
        "ip address flush dev bat0",
        "ip link add br0 type bridge",
        "ip link set bat0 master br0",
        "ip link set right master br0",
        "ip link set br0 up",
    ] {
        lab.run("shore", line);
    }
    lab.run("station", "ip address add 10.9.0.9/24 dev left");
    converged(&lab, &nodes);
    assert!(within(PATIENCE, || pings(&lab, "ship", "10.9.0.9")), "{:?}", nodes[0].status());
    let of_shore = originator(&lab, "shore");
    let wants_all = || {
        let status = nodes[0].status();
        let flags = table_of(&status, "multicast flags").map(|table| table.rows.clone()).unwrap_or_default();
        flags.iter().any(|row| row[0] == of_shore && row[1].contains("46"))
    };
    assert!(within(PATIENCE, wants_all), "{:?}", table_of(&nodes[0].status(), "multicast flags"));
}

#[test]
fn nodes_that_are_bridged_to_one_lan_agree_on_who_carries_its_frames() {
    if !possible() {
        return;
    }
    // `hub` and `shore` are in the mesh by `left` and `right`, and bridged to a LAN of their own, by `lan`.
    let lab = network(&NAMES);
    let shore = lab.space("shore");
    lab.run("hub", &format!("ip link add lan type veth peer name lan netns {shore}"));
    let run = "batman-iv, bridge-loop-avoidance: on";
    let nodes = nodes(&lab, run);
    for host in ["hub", "shore"] {
        for line in [
            "ip address flush dev bat0",
            "ip link add br0 type bridge",
            "ip link set bat0 master br0",
            "ip link set lan master br0",
            "ip link set lan up",
            "ip link set br0 up",
        ] {
            lab.run(host, line);
        }
    }
    lab.run("shore", "ip address add 10.9.0.9/24 dev br0");
    converged(&lab, &nodes);
    let backbones = |place: usize| column(&nodes[place].status(), "backbones", "node");
    let (of_hub, of_shore) = (originator(&lab, "hub"), originator(&lab, "shore"));
    let see_each_other = || backbones(1).contains(&of_shore) && backbones(2).contains(&of_hub);
    assert!(within(PATIENCE, see_each_other), "{:?}", nodes.each_ref().map(Node::status));
    assert!(within(PATIENCE, || pings(&lab, "ship", "10.9.0.9")), "{:?}", nodes[0].status());
    // One of them carries what comes of `ship`, and both know which.
    let client = address(&lab, "ship", "bat0");
    let carriers = |place: usize| {
        let status = nodes[place].status();
        let rows = table_of(&status, "claims").map(|table| table.rows.clone()).unwrap_or_default();
        rows.iter().filter(|row| row[0] == client).map(|row| row[2].clone()).collect::<BTreeSet<_>>()
    };
    let agree = || carriers(1).len() == 1 && carriers(1) == carriers(2);
    assert!(within(PATIENCE, agree), "{:?}", [1, 2].map(carriers));
}

#[test]
fn a_node_that_is_killed_leaves_nothing_behind_and_comes_back() {
    if !possible() {
        return;
    }
    let lab = network(&NAMES);
    let mut nodes = nodes(&lab, "batman-iv");
    converged(&lab, &nodes);
    let links = || lab.run("hub", "ip -o link show");
    assert!(links().contains("bat0"));
    nodes[1].kill();
    assert!(within(Duration::from_secs(5), || !links().contains("bat0")));
    let rest = [
        lab.run("hub", "nft list tables"),
        lab.run("hub", "ip -4 address show scope global"),
        lab.run("hub", "ip -4 route show table all type unicast"),
    ];
    assert_eq!(rest.map(|text| text.trim().to_owned()), ["", "", ""]);
    assert!(!links().contains("PROMISC"));
    let silent = |device| lab.run("hub", &format!("cat /proc/sys/net/ipv6/conf/{device}/disable_ipv6"));
    assert_eq!([silent("left"), silent("right")].map(|text| text.trim().to_owned()), ["0", "0"]);
    nodes[1] = node(&lab, "batman-iv", ("hub", 2));
    assert!(within(PATIENCE, || pings(&lab, "ship", "10.9.0.3")), "{:?}", nodes[0].status());
    nodes[1].signal("TERM");
    assert_eq!(nodes[1].ends(), Some(0));
    assert!(within(Duration::from_secs(5), || !links().contains("bat0")));
}
