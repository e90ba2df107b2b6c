//! The revision on the thesis' network, beside the bound of explicit multicast: each link between routers once, and a
//! copy for each receiver in its own network. And on a network of 2,000 routers.

use std::collections::VecDeque;

use super::discovery::{seconds, sent};
use super::network::bring;
use super::*;
use crate::meadcast::router;
use crate::meadcast::router::tests::net::{Net, SENDER};
use crate::testing::counter;

/// Links between the routers of the thesis' network, in its published topology.
const LINKS: [(u16, u16); 47] = [
    (1, 2),
    (1, 3),
    (1, 4),
    (2, 4),
    (3, 4),
    (1, 10),
    (1, 11),
    (1, 12),
    (10, 11),
    (10, 100),
    (11, 12),
    (11, 110),
    (11, 111),
    (12, 120),
    (12, 121),
    (2, 20),
    (2, 21),
    (20, 21),
    (20, 200),
    (20, 201),
    (20, 202),
    (21, 202),
    (21, 210),
    (21, 211),
    (202, 203),
    (211, 212),
    (3, 30),
    (3, 31),
    (3, 32),
    (30, 31),
    (30, 300),
    (30, 301),
    (31, 32),
    (31, 310),
    (31, 311),
    (32, 320),
    (32, 321),
    (4, 40),
    (4, 41),
    (40, 41),
    (40, 400),
    (40, 401),
    (41, 410),
    (41, 411),
    (41, 412),
    (41, 414),
    (412, 413),
];
/// A use case: the sender's router, and of each network with receivers its number and its router.
struct Case {
    name: &'static str,
    sender: u16,
    networks: &'static [(u16, u16)],
}

const CASES: [Case; 2] = [
    Case {
        name: "UC1",
        sender: 300,
        networks: &[
            (11, 100),
            (14, 111),
            (16, 121),
            (21, 201),
            (22, 201),
            (23, 201),
            (28, 212),
            (35, 311),
            (36, 311),
            (38, 321),
            (42, 410),
            (43, 411),
            (44, 412),
            (46, 413),
        ],
    },
    Case {
        name: "UC2",
        sender: 400,
        networks: &[
            (30, 300),
            (31, 300),
            (32, 301),
            (33, 310),
            (34, 310),
            (35, 311),
            (36, 311),
            (37, 320),
            (38, 321),
        ],
    },
];

/// Bytes of Ethernet's header, which links carry too.
const ETHERNET: usize = 14;
/// Bytes of IPv6's and UDP's headers.
const HEADERS: usize = 48;

/// A random interface identifier in a subnet of the network's.
fn random_address(subnet: u16, random: &mut Stream) -> Ipv6Addr {
    let mut address = at("fd14::").octets();
    address[6..8].copy_from_slice(&subnet.to_be_bytes());
    random.fill(&mut address[8..]);
    address.into()
}

/// The network of a use case as the tree of shortest paths from its sender: of each router the one above it and its
/// address, and of each receiver its router.
struct Testbed {
    routers: Vec<(usize, Ipv6Addr, bool)>,
    receivers: Vec<(Ipv6Addr, usize)>,
}

impl Testbed {
    fn new(case: &Case, clients: usize, random: &mut Stream) -> Self {
        let mut order = vec![(case.sender, 0)];
        let mut line = VecDeque::from([(case.sender, 0)]);
        while let Some((router, place)) = line.pop_front() {
            for (one, other) in LINKS {
                let next = if one == router { other } else { one };
                if [one, other].contains(&router) && order.iter().all(|(known, _)| *known != next) {
                    line.push_back((next, order.len()));
                    order.push((next, place));
                }
            }
        }
        let routers: Vec<_> = order
            .iter()
            .map(|&(number, above)| (above, random_address(0x1000 + number, random), true))
            .collect();
        let place = |router| order.iter().position(|(known, _)| *known == router).unwrap();
        let mut receivers = Vec::new();
        for &(number, router) in case.networks {
            receivers.extend((0..clients).map(|_| (random_address(number, random), place(router))));
        }
        Self { routers, receivers }
    }

    fn addresses(&self) -> Vec<Ipv6Addr> {
        self.receivers.iter().map(|(address, _)| *address).collect()
    }

    /// Of each router, the receivers at it or behind it.
    fn behind(&self) -> Vec<usize> {
        let mut behind = vec![0; self.routers.len()];
        for &(_, mut place) in &self.receivers {
            behind[place] += 1;
            while place > 0 {
                place = self.routers[place].0;
                behind[place] += 1;
            }
        }
        behind
    }

    /// Bytes that all links carry of a datagram of this length.
    fn bound(&self, payload: usize) -> Bound {
        let plain = payload + HEADERS + ETHERNET;
        let behind = self.behind();
        let links = behind.iter().filter(|count| **count > 0).count();
        let depth = |mut place: usize| {
            let mut depth = 2;
            while place > 0 {
                place = self.routers[place].0;
                depth += 1;
            }
            depth
        };
        let unicast: usize = self.receivers.iter().map(|&(_, place)| depth(place)).sum();
        let copies = (links + self.receivers.len()) * plain;
        // Random identifiers are 8 bytes each however they are written, behind 8 of a routing header.
        let lists: usize =
            behind.iter().filter(|count| **count > 0).map(|count| (8 + 8 * count).next_multiple_of(8)).sum();
        Bound { copies, with_lists: copies + lists, unicast: unicast * plain }
    }
}

/// Bytes on all links of one datagram.
#[derive(Clone, Copy)]
struct Bound {
    /// Of explicit multicast, were lists of no length.
    copies: usize,
    /// With the addresses in its lists that cannot be written shorter.
    with_lists: usize,
    unicast: usize,
}

/// Bytes on all links of one datagram by a sender with these settings, and on the sender's own.
fn measured(testbed: &Testbed, config: Config, payload: usize) -> (usize, usize) {
    let mut net = Net::with(router::Config::default(), &testbed.routers, testbed.receivers.iter().copied());
    let receivers = testbed.addresses();
    let own = at(SENDER);
    let mut sender = Sender::new(config, own, at(GROUP).into(), receivers.clone(), random());
    while let Some(now) = sender.deadline().filter(|now| *now < seconds(8)) {
        sender.wake(now);
        bring(&mut net, &mut sender, now);
    }
    net.received.clear();
    (net.bytes, net.sender_bytes, net.crossings) = (0, 0, 0);
    let film = vec![7; payload];
    sender.handle(seconds(8), Port::Above(0), datagram(Buffer::copy_from(&film)));
    let packets: u64 =
        counter(&sender, "meadcast_sender_packets") + counter(&sender, "meadcast_sender_unicast");
    bring(&mut net, &mut sender, seconds(8));
    assert!(net.each_has_one(&receivers, &film), "{}", sender.groups());
    let delivered: usize = net.received.values().flatten().map(|packet| packet.len() + ETHERNET).sum();
    (net.bytes + ETHERNET * net.crossings + delivered, net.sender_bytes + ETHERNET * packets as usize)
}

const THESIS: Config = Config {
    delay: Duration::ZERO,
    interval: Duration::ZERO,
    timeout: Duration::from_secs(2),
    wait: false,
    max: 10,
    ok: None,
    merge: 0,
    min_leaves: 1,
    min_routers: 1,
    split: false,
    ask_joiners: false,
    hop_limit: 64,
    hold: false,
    next_hop: false,
    short_lists: false,
    list_bytes: None,
    nonce: false,
    key: None,
    grouping: Grouping::DepthFirst,
    payload: 1000,
    requests_per_second: 5000,
};

/// The largest payload of a packet of 1,500 bytes, at most 1,000, whose list has this many bytes.
fn payload(list_bytes: usize) -> usize {
    (1500 - HEADERS - list_bytes).min(1000)
}

#[test]
fn the_revision_is_close_to_the_bound_of_explicit_multicast() {
    let mut random = random();
    for case in &CASES {
        for clients in 3..=5 {
            let testbed = Testbed::new(case, clients, &mut random);
            let whole = Config {
                hold: true,
                next_hop: true,
                short_lists: true,
                max: 128,
                list_bytes: Some(2048),
                grouping: Grouping::LeastBytes,
                ..THESIS
            };
            // As long as one list of all receivers needs.
            let one_list = |bytes: &usize| {
                groups(&testbed, Config { list_bytes: Some(*bytes), ..whole }).packets.len() == 1
            };
            let list_bytes = (48..2048).step_by(8).find(one_list).unwrap();
            let revision = Config { list_bytes: Some(list_bytes), ..whole };
            let len = payload(list_bytes);
            let (bytes, sent) = measured(&testbed, revision, len);
            let bound = testbed.bound(len);
            let saved = |bytes: usize| 100.0 * (1.0 - bytes as f64 / bound.unicast as f64);
            let beyond = |bound: usize| 100.0 * (bytes as f64 / bound as f64 - 1.0);
            let (thesis, _) = measured(&testbed, THESIS, len);
            println!(
                "{} {clients}: payload {len}, list {list_bytes}: {:.1} % saved of unicast, bound {:.1} %, with lists {:.1} %, thesis {:.1} %; \
                 {:.1} % and {:.1} % beyond the bounds; sender {:.2} of multicast's",
                case.name,
                saved(bytes),
                saved(bound.copies),
                saved(bound.with_lists),
                saved(thesis),
                beyond(bound.copies),
                beyond(bound.with_lists),
                sent as f64 / (len + HEADERS + ETHERNET) as f64,
            );
            assert!(beyond(bound.copies) < 8.0);
            assert!(beyond(bound.with_lists) < 3.0);
            assert!(sent <= 2 * (len + HEADERS + ETHERNET));
        }
    }
}

/// Paths to all receivers, as discovery finds them.
fn paths(testbed: &Testbed) -> BTreeMap<Ipv6Addr, Path> {
    let path = |mut place: usize| -> Path {
        let mut path = vec![place];
        while place > 0 {
            place = testbed.routers[place].0;
            path.push(place);
        }
        path.reverse();
        (1..).zip(path.into_iter().map(|place| testbed.routers[place].1)).collect()
    };
    testbed.receivers.iter().map(|&(address, place)| (address, path(place))).collect()
}

fn groups(testbed: &Testbed, config: Config) -> Groups {
    Groups::new(&Tree::new(&testbed.addresses(), &paths(testbed)), &config, at(SENDER), &testbed.addresses())
}

#[test]
fn each_part_of_the_revision_saves_or_costs_what_it_says() {
    let testbed = Testbed::new(&CASES[1], 5, &mut random());
    let of = |config: Config| measured(&testbed, config, 900).0;
    let thesis = of(THESIS);
    let hold = of(Config { hold: true, ..THESIS });
    let next_hop = of(Config { next_hop: true, ..THESIS });
    let short = of(Config { short_lists: true, ..THESIS });
    let both = of(Config { short_lists: true, hold: true, ..THESIS });
    let bytes = of(Config { grouping: Grouping::LeastBytes, ..THESIS });
    println!(
        "thesis {thesis}, hold {hold}, next hop {next_hop}, short {short}, both {both}, by bytes {bytes}"
    );
    assert!(hold < thesis && short < thesis && both < hold && both < short && bytes <= thesis);
    assert_eq!(next_hop, thesis);
}

/// A random tree of 2,000 routers, of which those at the end have 5,000 receivers.
fn large() -> Testbed {
    let mut random = random();
    let mut routers = vec![(0, random_address(0, &mut random), true)];
    let mut depth = vec![1];
    while routers.len() < 2000 {
        // Routers before it among the last 300, so that paths are of many lengths.
        let number = routers.len() as u64;
        let above = (number - 1 - random.below(number.min(300))) as usize;
        if depth[above] < 30 {
            depth.push(depth[above] + 1);
            routers.push((above, random_address(number as u16, &mut random), true));
        }
    }
    let receivers = (0..5000).map(|_| {
        let place = random.below(2000) as usize;
        (random_address(0x8000 + place as u16, &mut random), place)
    });
    let receivers = receivers.collect();
    Testbed { routers, receivers }
}

#[test]
fn two_thousand_routers_and_five_thousand_receivers_are_found_grouped_and_served() {
    let testbed = large();
    let routers = router::Config {
        copies_per_second: 1_000_000_000,
        responses_per_second: 1_000_000_000,
        ..Default::default()
    };
    let mut net = Net::with(routers, &testbed.routers, testbed.receivers.iter().copied());
    let receivers = testbed.addresses();
    let config = Config {
        hold: true,
        short_lists: true,
        max: 128,
        list_bytes: Some(400),
        grouping: Grouping::LeastBytes,
        ..THESIS
    };
    let mut sender = Sender::new(config, at("fd14::1"), at(GROUP).into(), receivers.clone(), random());
    // 500 requests at once, and 5,000 a second.
    sender.wake(Instant::ZERO);
    let first = sent(&mut sender, Instant::ZERO);
    assert_eq!(first.len(), 500);
    let mut asked = first.len();
    first.into_iter().for_each(|request| net.send(request));
    while let Some(now) = sender.deadline().filter(|now| *now < seconds(8)) {
        sender.wake(now);
        for request in sent(&mut sender, now) {
            asked += 1;
            net.send(request);
        }
        for response in std::mem::take(&mut net.at_sender) {
            sender.handle(now, Port::Below(1), Item::Packet(response));
        }
    }
    assert_eq!(asked, 5000);
    let begun = sender.tree();
    assert!(begun.routers() > 1500, "{}", begun.routers());
    net.received.clear();
    net.crossings = 0;
    sender.handle(seconds(8), Port::Above(0), datagram(Buffer::copy_from(b"film")));
    for packet in sent(&mut sender, seconds(8)) {
        net.send(packet);
    }
    assert!(net.each_has_one(&receivers, b"film"));
    // No link has more packets than twice those that its receivers' addresses fill.
    let used: usize = testbed.behind().iter().map(|count| (count * 12).div_ceil(392)).sum();
    assert!(net.crossings <= 2 * used, "{} crossings, {used} at least", net.crossings);
}
