//! Gateways of both, and clients of each other's.

use std::net::SocketAddr;

use hopcast_core::{Buffer, Rate};
use hopcast_mesh::GatewayMode;
use hopcast_wire::ethernet::{self, BROADCAST, Header};
use hopcast_wire::{ip, udp};

use crate::both::row;
use crate::live::Live;
use crate::topology::text;

/// Whether a frame is for a DHCP server.
fn is_request(frame: &[u8]) -> bool {
    const PORT: usize = ethernet::HEADER + ip::V4_HEADER + 2;
    frame.get(12..14) == Some(&[8, 0])
        && frame.get(23) == Some(&ip::UDP)
        && frame.get(PORT..PORT + 2) == Some(&[0, 67])
}

impl Live {
    /// Number of messages to DHCP servers that the host of a node of ours has got.
    fn dhcp_requests(&self, node: usize) -> usize {
        self.ours.nodes[&node].host.received.iter().filter(|frame| is_request(frame)).count()
    }
}

#[test]
fn nodes_of_both_choose_each_others_gateways_and_ask_them_alone() {
    let row = row(|node, config| {
        config.gateway.mode = match node {
            0 => GatewayMode::Client,
            _ => GatewayMode::Server { down: Rate::from_mbit(30), up: Rate::from_mbit(5) },
        };
    });
    let Some(mut live) = row else { return };
    live.at(1, "batctl meshif bat0 gw_mode server 12mbit/4mbit");
    live.at(3, "batctl meshif bat0 gw_mode client");
    let [first, middle] = [1, 2].map(|node| live.topology.mac(node, 0));
    live.until("our client's gateways", |live| {
        let found = live.ours.nodes[&0].mesh.gateways();
        let shown: Vec<_> =
            found.iter().map(|found| (found.node, found.down, found.up, found.selected)).collect();
        let expected = [
            (first, Rate::from_mbit(12), Rate::from_mbit(4), true),
            (middle, Rate::from_mbit(30), Rate::from_mbit(5), false),
        ];
        (shown == expected).then_some(()).ok_or(format!("{found:x?}"))
    });
    let output = live.until("the kernel's client's gateways", |live| {
        let output = live.at(3, "batctl meshif bat0 gwl -n");
        let is_chosen = |line: &str| line.trim_start().starts_with('*') && line.contains(&text(middle));
        if output.lines().any(is_chosen) { Ok(output) } else { Err(output) }
    });
    assert!(output.lines().any(|line| line.contains(&text(middle)) && line.contains("30.0/5.0")), "{output}");

    // What the kernel's client asks comes to our gateway, and to no other node of ours.
    live.try_at(3, "udhcpc -i bat0 -n -q -t 2 -T 1 -s /bin/true").unwrap_err();
    live.until("requests", |live| {
        let requests = live.dhcp_requests(2);
        (requests > 0).then_some(()).ok_or(format!("{requests} requests"))
    });
    assert_eq!(live.dhcp_requests(0), 0);

    // What ours asks goes to the kernel's gateway, and to no other node.
    let mut request = Buffer::copy_from(&[0; 240]);
    let [from, to]: [SocketAddr; 2] =
        ["0.0.0.0:68", "255.255.255.255:67"].map(|address| address.parse().unwrap());
    udp::prepend(&mut request, from, to);
    ip::prepend(&mut request, from.ip(), to.ip(), ip::UDP, 64, 0);
    let header = Header { destination: BROADCAST, source: live.topology.host(0), ether_type: ethernet::IPV4 };
    ethernet::prepend(&mut request, header);
    let others = [3, 4];
    let (before, of_others) = (received(&mut live, 1), others.map(|node| received(&mut live, node)));
    let of_ours = live.dhcp_requests(2);
    live.ours.send(0, request, &live.guest);
    live.until("our request", |live| {
        let now = received(live, 1);
        (now > before).then_some(()).ok_or(format!("{before} and {now}"))
    });
    assert_eq!(others.map(|node| received(&mut live, node)), of_others);
    assert_eq!(live.dhcp_requests(2), of_ours);
    assert_eq!(live.ours.nodes[&0].counter("gateway_requests_sent"), 1);
}

/// Number of frames that a kernel's host has got from the mesh.
fn received(live: &mut Live, node: usize) -> u64 {
    let output = live.at(node, "grep bat0: /proc/net/dev");
    let (_, figures) = output.split_once("bat0:").unwrap();
    figures.split_whitespace().nth(1).unwrap().parse().unwrap()
}
