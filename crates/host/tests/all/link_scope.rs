//! Packets that stay on their link: no router forwards them, and none counts them among those whose hops were used up.

#![allow(clippy::unwrap_used)]

use std::net::{IpAddr, Ipv6Addr};

use crate::network::{A, Network, ROUTER, mac};
use hopcast_core::{Buffer, Duration, Item, Port};
use hopcast_host::{GroupRoute, GroupRoutes, Hook};
use hopcast_wire::membership::{Query, Version};
use hopcast_wire::{ethernet, igmp, ip, mld, router_alert};

/// Routes of all groups from the first interface to the second, whoever sends.
struct Onwards;

impl GroupRoutes for Onwards {
    fn route(&mut self, _: IpAddr, _: IpAddr) -> Option<GroupRoute> {
        Some(GroupRoute { ingress: Some(0), upstream: None, egress: [1].into() })
    }

    fn version(&self) -> u64 {
        0
    }

    fn member(&mut self, _: IpAddr, _: Option<IpAddr>, _: bool) {}
}

fn network() -> Network {
    let mut network = Network::new(1500);
    network.hosts[ROUTER].set_group_routes(Box::new(Onwards));
    network
}

/// The query of a router beside this one for one group.
fn query(group: IpAddr) -> Buffer {
    let (version, max_response) = (Version::V3, Duration::from_secs(1));
    let interval = Duration::from_secs(125);
    let query = Query { version, group: Some(group), max_response, suppress: false, robustness: 2, interval };
    let mut packet = Buffer::default();
    match group {
        IpAddr::V4(to) => {
            igmp::prepend_query(&mut packet, &query, &[]);
            router_alert::prepend_v4(&mut packet, [10, 0, 0, 9].into(), to);
        }
        IpAddr::V6(to) => {
            let own = Ipv6Addr::from([0xfe80, 0, 0, 0, 0, 0, 0, 9]);
            mld::prepend_query(&mut packet, own, to, &query, &[]);
            router_alert::prepend_v6(&mut packet, own, to);
        }
    }
    packet
}

/// A packet of a protocol that nobody has, to a group.
fn packet(group: &str, hop_limit: u8) -> Buffer {
    let group: IpAddr = group.parse().unwrap();
    let mut packet = Buffer::zeroed(20);
    ip::prepend(&mut packet, crate::network::address(A, group.is_ipv6()), group, 99, hop_limit, 0);
    packet
}

fn arrive(network: &mut Network, mut packet: Buffer) {
    let header = ip::parse(&packet).unwrap();
    let ether_type = if header.version == ip::Version::V4 { ethernet::IPV4 } else { ethernet::IPV6 };
    let destination = ethernet::of_group(header.destination);
    ethernet::prepend(&mut packet, ethernet::Header { destination, source: mac(A, 0), ether_type });
    network.hand_frame(ROUTER, 0, &packet);
}

/// `hop_limit_exceeded`, `multicast_dropped` and `forwarded` of the router.
fn counted(network: &Network) -> [u64; 3] {
    ["hop_limit_exceeded", "multicast_dropped", "forwarded"].map(|name| network.counter(ROUTER, name))
}

const GROUPS: [&str; 2] = ["239.1.2.3", "ff15::7"];

#[test]
fn a_query_for_a_group_is_dropped_by_a_router_that_neither_reports_nor_asks() {
    for group in GROUPS {
        let mut network = network();
        arrive(&mut network, query(group.parse().unwrap()));
        assert_eq!(counted(&network), [0, 1, 0], "{group}");
        assert!(network.frames.is_empty(), "{group}");
    }
}

#[test]
fn a_query_that_a_hook_hands_back_goes_no_further_and_nobody_is_told() {
    for group in GROUPS {
        for routed in [false, true] {
            let mut network = if routed { network() } else { Network::new(1500) };
            network.hosts[ROUTER].hook(8, Hook::All);
            arrive(&mut network, query(group.parse().unwrap()));
            let [(8, Item::Transit(transit))] = &network.take(ROUTER)[..] else { panic!("{group}") };
            network.hand(ROUTER, Port::Above(8), Item::Transit(transit.clone()));
            assert_eq!(counted(&network), [0, 1, 0], "{group}, {routed}");
            assert!(network.frames.is_empty(), "{group}");
        }
    }
}

#[test]
fn groups_of_the_link_are_not_forwarded_whatever_hops_they_have_left() {
    for group in ["224.0.0.251", "ff02::fb", "ff12::7", "ff01::7"] {
        let mut network = network();
        arrive(&mut network, packet(group, 255));
        assert_eq!(counted(&network), [0, 1, 0], "{group}");
        assert!(network.frames.is_empty(), "{group}");
    }
}

#[test]
fn a_fragment_whose_bytes_look_like_mld_is_forwarded() {
    for kind in [130, 131, 132, 143] {
        let mut network = network();
        let mut fragment = packet("ff15::7", 64);
        // A later fragment of a message of ICMPv6 (RFC 8200 section 4.5): its payload may be anything.
        fragment[6] = 44;
        fragment[40..48].copy_from_slice(&[ip::ICMPV6, 0, 0, 8, 0, 0, 0, 1]);
        fragment[48] = kind;
        arrive(&mut network, fragment);
        assert_eq!(counted(&network), [0, 0, 1], "{kind}");
    }
}

#[test]
fn a_packet_to_a_wider_group_is_forwarded_until_its_hops_are_used_up() {
    for group in GROUPS {
        let mut network = network();
        arrive(&mut network, packet(group, 2));
        assert_eq!(counted(&network), [0, 0, 1], "{group}");
        arrive(&mut network, packet(group, 1));
        assert_eq!(counted(&network), [1, 0, 1], "{group}");
    }
}
