//! Frames to a group, in multicast packets that nodes of both make, divide and deliver.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};

use hopcast_core::Buffer;
use hopcast_mesh::Key;
use hopcast_mesh::wire::Header as _;
use hopcast_mesh::wire::data::Multicast;
use hopcast_mesh::wire::tvlv::{MULTICAST_TRACKER, Tracker, containers};
use hopcast_wire::ethernet::{self, Header, Mac};
use hopcast_wire::icmp::{self, Message};
use hopcast_wire::membership::Version;
use hopcast_wire::{igmp, ip};

use crate::both::row;
use crate::host::address;
use crate::live::{Live, Passed};
use crate::topology::text;

const GROUP: Ipv4Addr = Ipv4Addr::new(239, 1, 2, 3);
/// Number of frames that a sender sends.
const FRAMES: usize = 5;

/// Destinations of multicast packets: the node of ours, whether it sent them, the hops that they may go yet, and the
/// nodes that they list.
type Seen = BTreeSet<(usize, bool, u8, BTreeSet<usize>)>;

impl Live {
    /// Has the host of one of our nodes send an IP packet to a group.
    fn send_to_group(&mut self, node: usize, group: Ipv4Addr, protocol: u8, mut packet: Buffer) {
        let (source, group) = (IpAddr::from(address(0, node as u8 + 1)), IpAddr::from(group));
        // Messages of IGMP go one hop.
        ip::prepend(&mut packet, source, group, protocol, 1, 0);
        let (destination, source) = (ethernet::of_group(group), self.topology.host(node));
        ethernet::prepend(&mut packet, Header { destination, source, ether_type: ethernet::IPV4 });
        self.ours.send(node, packet, &self.guest);
    }

    /// Has the host of one of our nodes join the group, or leave it.
    fn report(&mut self, node: usize, joins: bool) {
        let mut message = Buffer::copy_from(&[]);
        if joins {
            igmp::prepend_older_report(&mut message, Version::V2, GROUP);
            self.send_to_group(node, GROUP, ip::IGMP, message);
        } else {
            igmp::prepend_leave(&mut message, GROUP);
            self.send_to_group(node, Ipv4Addr::new(224, 0, 0, 2), ip::IGMP, message);
        }
    }

    /// Whether every node lists the group behind all these nodes but itself, and behind no others.
    fn agrees_on_members(&mut self, members: &[usize]) -> Result<(), String> {
        let others = |at: usize| members.iter().copied().filter(move |&member| member != at).collect();
        let key = Key { vlan: 0, address: ethernet::of_group(GROUP.into()) };
        for (&at, node) in &self.ours.nodes {
            let clients = node.mesh.global_clients().into_iter().filter(|(found, _)| *found == key);
            let found: BTreeSet<usize> = clients.filter_map(|(_, node)| self.topology.node(node)).collect();
            if found != others(at) {
                return Err(format!("{at} has {found:?}"));
            }
        }
        for at in self.kernels() {
            let output = self.at(at, "batctl meshif bat0 tg -n");
            let lines = output.lines().filter(|line| line.contains(&text(key.address)));
            let words = lines.flat_map(str::split_whitespace).filter_map(crate::live::mac);
            let found: BTreeSet<usize> = words.filter_map(|mac: Mac| self.topology.node(mac)).collect();
            if found != others(at) {
                return Err(format!("{at} has {found:?}\n{output}"));
            }
        }
        Ok(())
    }

    /// Number of echo requests that a kernel's host has got.
    fn requests(&mut self, node: usize) -> usize {
        let output = self.at(node, "grep IcmpMsg: /proc/net/snmp || true");
        let mut lines = output.lines().map(str::split_whitespace);
        let (Some(mut names), Some(mut values)) = (lines.next(), lines.next()) else { return 0 };
        let at = names.position(|name| name == "InType8");
        at.and_then(|at| values.nth(at)).map_or(0, |value| value.parse().unwrap())
    }

    /// The frames to the group that the host of a node of ours has got.
    fn received(&self, node: usize) -> usize {
        let received = &self.ours.nodes[&node].host.received;
        received.iter().filter(|frame| is_request(frame)).count()
    }

    /// Has `send` send the frames. Returns which multicast packets our nodes saw, when all of these nodes have got the
    /// frames.
    fn send_and_watch(&mut self, members: &[usize], send: impl FnOnce(&mut Self)) -> Seen {
        self.ours.multicast.clear();
        let count = |live: &mut Self, node: usize| match live.ours.nodes.contains_key(&node) {
            true => live.received(node),
            false => live.requests(node),
        };
        let before: Vec<usize> = members.iter().map(|&node| count(self, node)).collect();
        send(self);
        self.until("frames", |live| {
            let now: Vec<usize> = members.iter().map(|&node| count(live, node)).collect();
            let all = now.iter().zip(&before).all(|(now, before)| now - before == FRAMES);
            all.then_some(()).ok_or(format!("{members:?} had {before:?}, and have {now:?}"))
        });
        let passed = std::mem::take(&mut self.ours.multicast);
        passed.iter().map(|passed| self.seen(passed)).collect()
    }

    fn seen(&self, passed: &Passed) -> (usize, bool, u8, BTreeSet<usize>) {
        let (header, rest) = Multicast::parse(&passed.packet).unwrap();
        let mut found = containers(&rest[..usize::from(header.tvlv_len)]);
        let tracker = found.find(|found| found.kind == MULTICAST_TRACKER).unwrap();
        let nodes = Tracker::parse(tracker.value).unwrap().destinations();
        let nodes = nodes.map(|mac| self.topology.node(mac).expect("a node's address"));
        (passed.node, passed.sent, header.ttl, nodes.collect())
    }
}

fn is_request(frame: &[u8]) -> bool {
    frame.get(..6) == Some(&ethernet::of_group(GROUP.into())[..])
        && frame.get(14 + 9) == Some(&ip::ICMP)
        && frame.get(14 + ip::V4_HEADER) == Some(&8)
}

#[test]
fn nodes_of_both_make_divide_and_deliver_multicast_packets() {
    let Some(mut live) = row(|_, _| ()) else { return };
    for node in live.kernels() {
        live.at(node, "ip route add 239.0.0.0/8 dev bat0; ip addr add 239.1.2.3/32 dev bat0 autojoin");
    }
    live.report(2, true);
    live.until("members", |live| live.agrees_on_members(&[1, 2, 3, 4]));
    let flags = live.at(3, "batctl meshif bat0 mcast_flags -n");
    for node in [0, 1, 2, 4] {
        let address = text(live.topology.mac(node, 0));
        let line = flags.lines().find(|line| line.contains(&address)).unwrap_or_default();
        assert!(line.contains("[.... . .]"), "{flags}");
    }

    // Our node at the end sends, the kernel's next to it divides, and so does ours in the middle.
    let seen = live.send_and_watch(&[1, 2, 3, 4], |live| {
        for sequence in 0..FRAMES as u16 {
            let (source, group) = (address(0, 1).into(), GROUP.into());
            let mut packet = Buffer::copy_from(&[b'.'; 200]);
            icmp::prepend(&mut packet, source, group, Message::EchoRequest { identifier: 9, sequence });
            live.send_to_group(0, GROUP, ip::ICMP, packet);
        }
    });
    let expected = [
        (0, true, 50, BTreeSet::from([1, 2, 3, 4])),
        (2, false, 49, BTreeSet::from([2, 3, 4])),
        (2, true, 48, BTreeSet::from([3, 4])),
    ];
    assert_eq!(seen, expected.into());

    // The kernel's node at the other end sends, which leaves: its membership is an address of its own, too.
    live.at(4, "ip addr del 239.1.2.3/32 dev bat0");
    live.report(0, true);
    live.until("members", |live| live.agrees_on_members(&[0, 1, 2, 3]));
    let seen = live.send_and_watch(&[0, 1, 2, 3], |live| {
        live.at(4, &format!("ping -q -c {FRAMES} -i 0.1 -W 1 -I bat0 {GROUP} >/dev/null 2>&1 || true"));
    });
    let expected = [
        (2, false, 49, BTreeSet::from([0, 1, 2])),
        (2, true, 48, BTreeSet::from([0, 1])),
        (0, false, 47, BTreeSet::from([0])),
    ];
    assert_eq!(seen, expected.into());

    // Who has left is no destination.
    live.report(2, false);
    live.until("members", |live| live.agrees_on_members(&[0, 1, 3]));
    for node in live.ours.nodes.values() {
        for name in ["malformed", "not_supported", "wrong_destination", "wrong_items"] {
            assert_eq!(node.counter(name), 0, "{name}");
        }
    }
}
