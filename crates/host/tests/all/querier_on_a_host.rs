//! A querier hooked into a router, and a member's reports in frames.

#![allow(clippy::unwrap_used)]

use std::net::IpAddr;

use crate::network::{B, ROUTER, address, host, mac};
use hopcast_core::{Buffer, Duration, Frame, Instant, Item, Machine, Membership, Port, Seed};
use hopcast_host::membership::{self, Filter};
use hopcast_host::querier::{self, Querier};
use hopcast_host::{Hook, Host, StaticRoutes};
use hopcast_wire::ethernet::{self, link_local};
use hopcast_wire::{ip, membership as wire};

/// The port of the router on which the querier is hooked.
const QUERIER: u32 = 7;

/// A router with two interfaces and a querier, and what leaves.
struct Router {
    host: Host,
    querier: Querier,
    now: Instant,
    told: Vec<Membership>,
    frames: Vec<(u32, Buffer)>,
}

impl Router {
    fn new() -> Self {
        let mut router = host(ROUTER, &[1500, 1500], true, StaticRoutes::new());
        router.hook(QUERIER, Hook::Protocol(ip::IGMP));
        router.hook(QUERIER, Hook::ExtensionHeader { header: 0, kind: None });
        let IpAddr::V4(v4) = address(ROUTER, false) else { panic!("IPv4") };
        let interface = |number| querier::Interface {
            mtu: 1500,
            v4: Some(v4),
            v6: Some(link_local(mac(ROUTER, number))),
        };
        let querier = Querier::new(querier::Config::default(), &[interface(0), interface(1)]);
        Self { host: router, querier, now: Instant::ZERO, told: Vec::new(), frames: Vec::new() }
    }

    fn arrive(&mut self, interface: u32, frame: Buffer) {
        let frame = Frame::new(frame);
        self.host.handle(self.now, Port::Below(interface), Item::Frame(frame));
        self.settle();
    }

    fn settle(&mut self) {
        loop {
            if let Some((port, item)) = self.host.poll(self.now) {
                match (port, item) {
                    (Port::Above(QUERIER), item) => self.querier.handle(self.now, Port::Below(0), item),
                    (Port::Below(interface), Item::Frame(frame)) => {
                        self.frames.push((interface, frame.bytes));
                    }
                    other => panic!("{other:?}"),
                }
            } else if let Some((port, item)) = self.querier.poll(self.now) {
                match (port, item) {
                    (Port::Below(0), item) => self.host.handle(self.now, Port::Above(QUERIER), item),
                    (Port::Above(0), Item::Membership(membership)) => self.told.push(membership),
                    (Port::Above(1), Item::Membership(_)) => {}
                    other => panic!("{other:?}"),
                }
            } else {
                return;
            }
        }
    }
}

#[test]
fn queries_leave_on_each_interface_and_reports_are_told_with_the_interface_they_came_by() {
    let mut router = Router::new();
    router.querier.wake(router.now);
    router.settle();
    let mut asked = Vec::new();
    for (interface, frame) in &router.frames {
        let packet = &frame[ethernet::HEADER..];
        let header = ip::parse(packet).unwrap();
        assert!(matches!(wire::parse(packet, &header), Ok(Some(wire::Message::Query(..)))));
        let frame = ethernet::parse(frame).unwrap();
        assert_eq!(frame.destination, ethernet::of_group(header.destination));
        asked.push((*interface, header.destination));
    }
    let (v4, v6) = (wire::all_nodes(ip::Version::V4), wire::all_nodes(ip::Version::V6));
    assert_eq!(asked, [(0, v4), (0, v6), (1, v4), (1, v6)]);

    let IpAddr::V4(own) = address(B, false) else { panic!("IPv4") };
    let interface = membership::Interface { mtu: 1500, v4: Some(own), v6: Some(link_local(mac(B, 0))) };
    for version in [wire::Version::V2, wire::Version::V3] {
        let random = Seed::new(1, 0).stream(&["b"], 0);
        let config = membership::Config { version, ..Default::default() };
        let mut member = membership::MembershipReports::new(config, vec![interface], random);
        for group in ["239.1.2.3", "ff15::7"] {
            let group: IpAddr = group.parse().unwrap();
            for (filter, joined) in [(Filter::Any, true), (Filter::None, false)] {
                member.set(router.now, 0, group, filter);
                while let Some(mut report) = member.poll(router.now) {
                    let header = ethernet::Header {
                        destination: ethernet::of_group(report.destination),
                        source: mac(B, 0),
                        ether_type: if report.destination.is_ipv4() {
                            ethernet::IPV4
                        } else {
                            ethernet::IPV6
                        },
                    };
                    ethernet::prepend(&mut report.packet, header);
                    router.arrive(1, report.packet);
                }
                router.now += Duration::from_secs(2);
                router.querier.wake(router.now);
                router.settle();
                let told = router.told.pop().unwrap();
                assert_eq!(told, Membership { group, source: None, interface: Some(1), joined });
            }
        }
    }
    assert!(router.told.is_empty());
}
