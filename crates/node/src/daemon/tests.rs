//! Whole nodes in virtual time: what goes in at one site comes out at the other.

use std::collections::VecDeque;
use std::net::SocketAddr;

use hopcast_core::plug::{Accept, Plug};
use hopcast_core::{Buffer, Datagram, Duration, Instant, Item, Machine, Port, StreamId, StreamItem};
use proptest::prelude::*;

use super::error::Error;
use super::site::Site;
use crate::config::Config;
use crate::test_network::TestNetwork;
use hopcast_core::Shared;

/// A node with its address, and what came out of its ports but the first.
struct Node {
    site: Shared<Site>,
    plugs: Vec<Plug>,
    at: SocketAddr,
    came: VecDeque<(u32, Item)>,
}

/// Nodes, and a network between them that takes 5 ms and loses a share.
struct Net {
    now: Instant,
    nodes: Vec<Node>,
    network: TestNetwork,
}

impl Net {
    fn new(loss: f64, configs: &[&str]) -> Self {
        let nodes = configs.iter().zip(1..).map(|(text, seed)| {
            let config = Config::parse(text, "node.yaml").unwrap();
            let super::Built { site, plugs, .. } = super::build(&config, &super::Interfaces::new(), seed);
            Node { site, plugs, at: config.listen, came: VecDeque::new() }
        });
        let network = TestNetwork::new(9, Duration::from_millis(5), loss);
        Self { now: Instant::ZERO, nodes: nodes.collect(), network }
    }

    /// Gives a node an item by one of its ports.
    fn give(&mut self, node: usize, port: u32, item: Item) {
        self.nodes[node].site.handle(self.now, Port::Below(port), item);
        self.drain(node);
    }

    fn drain(&mut self, node: usize) {
        let Node { site, at, came, .. } = &mut self.nodes[node];
        while let Some((port, item)) = site.poll(self.now) {
            match (port, item) {
                (Port::Below(0), Item::Datagram(datagram)) => {
                    self.network.send(self.now, *at, datagram);
                }
                (Port::Below(port), item) => came.push_back((port, item)),
                (Port::Above(_), item) => panic!("nothing is above a node: {item:?}"),
            }
        }
    }

    fn run(&mut self, span: Duration) {
        let until = self.now + span;
        while self.now < until {
            while let Some(datagram) = self.network.arrived(self.now) {
                if let Some(node) = self.nodes.iter().position(|node| node.at == datagram.local) {
                    self.give(node, 0, Item::Datagram(datagram));
                }
            }
            for node in 0..self.nodes.len() {
                if self.nodes[node].site.deadline().is_some_and(|at| at <= self.now) {
                    self.nodes[node].site.wake(self.now);
                    self.drain(node);
                }
            }
            self.now += Duration::from_micros(500);
        }
    }
}

const ROW: [&str; 3] = [
    "name: harbour
listen: 192.0.2.1:7400
peers: { hill: 192.0.2.2:7400 }
carry: { to: island, packets: { tun: hop0, address: 10.77.0.1/30 }, tcp: [10.20.0.0/16] }",
    "name: hill
listen: 192.0.2.2:7400
peers: { harbour: 192.0.2.1:7400, island: anywhere }
relay: [harbour, island]",
    "name: island
listen: 192.0.2.3:7400
peers: { hill: 192.0.2.2:7400 }
carry: { to: harbour, packets: { tun: hop0, address: 10.77.0.2/30 }, tcp: { reach: [10.20.0.0/16] } }",
];

fn packet(key: u8, len: usize) -> Buffer {
    // An IPv4 header is all that the tunnel looks at.
    let mut packet = vec![key; len];
    packet[..20].copy_from_slice(&[0x45, 0, 0, 0, 0, 0, 0, 0, 64, 17, 0, 0, 10, 77, 0, 1, 10, 77, 0, 2]);
    packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    let sum = packet[..20].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum::<u32>();
    let sum = !(((sum & 0xFFFF) + (sum >> 16)) as u16);
    packet[10..12].copy_from_slice(&sum.to_be_bytes());
    Buffer::copy_from(&packet)
}

#[test]
fn packets_and_a_connection_cross_a_relay_over_lossy_hops() {
    let mut net = Net::new(0.1, &ROW);
    net.run(Duration::from_secs(2));
    let Plug::Tun(tun) = &net.nodes[0].plugs[1] else { panic!("a TUN") };
    let mtu = tun.mtu as usize;
    assert!((1400..1500).contains(&mtu));
    for key in 0..50 {
        net.give(0, 1, Item::Packet(packet(key, mtu)));
        net.run(Duration::from_millis(10));
    }
    net.run(Duration::from_secs(1));
    let came: Vec<_> = net.nodes[2].came.drain(..).collect();
    let whole =
        |(port, item): &&(u32, Item)| *port == 1 && matches!(item, Item::Packet(it) if it.len() == mtu);
    assert_eq!(came.iter().filter(whole).count(), 50, "{came:?}");

    // What comes from this host, and what would be forwarded.
    assert!(
        matches!(&net.nodes[0].plugs[2], Plug::Tcp(tcp) if matches!(tcp.accept, Some(Accept::LocalOutput { .. })))
    );
    assert!(
        matches!(&net.nodes[0].plugs[3], Plug::Tcp(tcp) if matches!(tcp.accept, Some(Accept::Forwarded { .. })))
    );
    let (client, server) = ("10.1.0.1:4000".parse().unwrap(), "10.20.0.1:80".parse().unwrap());
    let id = StreamId(1);
    net.give(0, 3, Item::Stream(id, StreamItem::Open { local: server, remote: client }));
    net.give(0, 3, Item::Stream(id, StreamItem::Credit(1 << 20)));
    net.run(Duration::from_millis(500));
    let Some((2, Item::Stream(far, StreamItem::Open { local, remote }))) = net.nodes[2].came.pop_front()
    else {
        panic!("a connection")
    };
    assert_eq!((local, remote), (client, server));
    net.give(2, 2, Item::Stream(far, StreamItem::Opened));
    net.give(2, 2, Item::Stream(far, StreamItem::Credit(1 << 20)));
    net.run(Duration::from_millis(500));
    net.give(0, 3, Item::Stream(id, StreamItem::Data(Buffer::copy_from(&[7; 10_000]))));
    net.give(0, 3, Item::Stream(id, StreamItem::Finish));
    net.run(Duration::from_secs(2));
    let mut bytes = 0;
    let mut finished = false;
    for (port, item) in net.nodes[2].came.drain(..) {
        match item {
            Item::Stream(id, StreamItem::Data(data)) if id == far && port == 2 => bytes += data.len(),
            Item::Stream(_, StreamItem::Finish) => finished = true,
            _ => {}
        }
    }
    assert_eq!((bytes, finished), (10_000, true));
    let granted = net.nodes[0].came.iter().any(|(port, item)| {
        *port == 3 && matches!(item, Item::Stream(id, StreamItem::Credit(_)) if *id == StreamId(1))
    });
    assert!(granted, "what goes back finds the port that it came from");
}

#[test]
fn nothing_is_taken_from_a_stranger_nor_from_a_peer_that_is_not_up() {
    let mut net = Net::new(0.0, &ROW);
    for remote in ["192.0.2.9:7400", "192.0.2.2:7400"] {
        let (local, remote) = (net.nodes[0].at, remote.parse().unwrap());
        let payload = Buffer::copy_from(&[0x80, 0xB3, 0]);
        net.give(0, 0, Item::Datagram(Datagram::new(local, remote, payload)));
    }
    let dropped = net.nodes[0].site.get().switchboard.dropped;
    assert_eq!((dropped.foreign, dropped.unwanted), (1, 1));
}

/// INFO of a session that nobody has, for a lane: of `wire` in the crate of the coded transports.
fn claim(tag: u8, mark: u32, deadline: bool) -> Buffer {
    let mut bytes = vec![tag, 0xB3, 2 << 4 | u8::from(deadline) << 1];
    bytes.extend_from_slice(&mark.to_be_bytes());
    // What is echoed: the number of a session, far ahead, as it was once.
    bytes.extend_from_slice(&0x7FFF_FFFF_u32.to_be_bytes());
    // Batches of 16, blocks of 256, symbols of 1,000 bytes.
    bytes.extend_from_slice(&[0b101 << 5, 1, 0, 3, 0xE8]);
    bytes.extend_from_slice(&[0; 4 + 4 + 2 + 8]);
    if deadline {
        // The minimum time from the source.
        bytes.extend_from_slice(&[0; 4]);
    }
    Buffer::copy_from(&bytes)
}

#[test]
fn a_session_that_somebody_claims_in_a_peers_name_ends_no_carrier() {
    let mut net = Net::new(0.0, &ROW);
    net.run(Duration::from_secs(2));
    let cross = |net: &mut Net| {
        for node in [0, 2] {
            net.nodes[2 - node].came.clear();
            (0..10).for_each(|_| {
                net.give(node, 1, Item::Packet(packet(1, 100)));
                net.run(Duration::from_millis(20));
            });
            net.run(Duration::from_millis(200));
            let came = net.nodes[2 - node].came.iter().filter(|(port, _)| *port == 1).count();
            assert_eq!(came, 10, "from node {node}");
        }
    };
    cross(&mut net);
    for mark in 1..=100 {
        for (node, peer) in [(0, 1), (1, 0), (1, 2), (2, 1)] {
            for (tag, deadline) in [(0x80, true), (0xC0, false)] {
                let (local, remote) = (net.nodes[node].at, net.nodes[peer].at);
                let payload = claim(tag, mark, deadline);
                net.give(node, 0, Item::Datagram(Datagram::new(local, remote, payload)));
            }
        }
    }
    cross(&mut net);
    let mut challenges = 0;
    let site = net.nodes[2].site.get();
    site.machines.counters(&mut |name, count| challenges += count * u64::from(name == "challenges_sent"));
    assert!(challenges > 0, "the claims have been heard");
}

#[test]
fn packets_in_the_name_of_somebody_here_do_not_come_out_of_the_tunnel() {
    let mut net = Net::new(0.0, &ROW);
    net.run(Duration::from_secs(2));
    let from = |source: [u8; 4]| {
        let mut packet = packet(1, 100);
        packet[12..16].copy_from_slice(&source);
        packet[10..12].fill(0);
        let sum =
            packet[..20].chunks(2).map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1])).sum::<u32>();
        let sum = !(((sum & 0xFFFF) + (sum >> 16)) as u16);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        Item::Packet(packet)
    };
    for source in [[192, 0, 2, 3], [127, 0, 0, 1], [10, 77, 0, 1]] {
        net.give(0, 1, from(source));
        net.run(Duration::from_millis(100));
    }
    assert_eq!(net.nodes[2].came.iter().filter(|(port, _)| *port == 1).count(), 1);
    let mut spoofed = 0;
    let site = net.nodes[2].site.get();
    site.machines.counters(&mut |name, count| spoofed += count * u64::from(name == "packets_spoofed"));
    assert_eq!(spoofed, 2);
}

/// The lines that are in the log of each node.
fn notices(net: &Net) -> Vec<Vec<String>> {
    let lines = |node: &Node| {
        let mut site = node.site.get_mut();
        std::iter::from_fn(|| site.switchboard.notices().pop()).map(|it| it.to_string()).collect()
    };
    net.nodes.iter().map(lines).collect()
}

#[test]
fn a_relay_misses_nothing_that_nobody_carries_and_a_site_what_the_other_does_not() {
    let packets_only = |text: &str| {
        let end = text.find(", tcp").unwrap();
        format!("{} }}", &text[..end])
    };
    let (harbour, island) = (packets_only(ROW[0]), packets_only(ROW[2]));
    let complaint = "does not carry tcp on channel 0";
    let mut net = Net::new(0.0, &[&harbour, ROW[1], &island]);
    net.run(Duration::from_secs(5));
    let lines = notices(&net);
    assert!(lines.iter().flatten().all(|line| line.contains("is up")), "{lines:?}");

    let mut net = Net::new(0.0, &[ROW[0], ROW[1], &island]);
    net.run(Duration::from_secs(5));
    let lines = notices(&net);
    let complains = |node: usize| lines[node].iter().filter(|line| line.contains(complaint)).count();
    assert_eq!([complains(0), complains(1), complains(2)], [1, 0, 0], "{lines:?}");
}

#[test]
fn the_clock_of_a_node_that_had_to_wait_for_its_devices_begins_when_they_are_there() {
    let stop = crate::runtime::Stop::new().unwrap();
    let waited = crate::Clock::starting_now();
    let mut attempts = 0;
    let open = |clock: crate::Clock| {
        attempts += 1;
        if attempts < 5 { Err(Error::DeviceInUse("hop0".to_owned())) } else { Ok(clock.zero()) }
    };
    let (zero, clock) = super::open_within(Duration::from_secs(60), &stop, open).unwrap();
    assert!(waited.now() >= Instant::ZERO + Duration::from_millis(400), "{}", waited.now());
    assert_eq!(zero, clock.zero(), "what was opened has the same clock");
    assert!(zero >= waited.zero() + 400_000_000, "it is at zero when the last attempt begins");
    let never = |_| Err::<(), _>(Error::DeviceInUse("hop1".to_owned()));
    let error = super::open_within(Duration::ZERO, &stop, never).unwrap_err();
    assert_eq!(error.to_string(), "cannot make TUN `hop1`: there is already an interface `hop1`");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever arrives at the port, the node goes on: afterwards its packets still arrive.
    #[test]
    fn no_datagram_stops_a_node(
        strange in proptest::collection::vec((0..4u8, 0..4usize, proptest::collection::vec(any::<u8>(), 0..120)), 0..60),
    ) {
        let mut net = Net::new(0.0, &ROW);
        net.run(Duration::from_secs(2));
        for (from, start, bytes) in strange {
            let starts: [&[u8]; 4] = [b"", b"hop\x02\x04hill", b"\x80\xB2", b"\xC0\xB2"];
            let payload = Buffer::copy_from(&[starts[start], &bytes].concat());
            let remote = SocketAddr::from(([192, 0, 2, from], 7400));
            let local = net.nodes[0].at;
            net.give(0, 0, Item::Datagram(Datagram::new(local, remote, payload)));
        }
        net.run(Duration::from_secs(1));
        net.nodes[2].came.clear();
        for _ in 0..20 {
            net.give(0, 1, Item::Packet(packet(1, 100)));
            net.run(Duration::from_millis(200));
        }
        prop_assert!(net.nodes[2].came.iter().any(|(port, _)| *port == 1));
    }
}
