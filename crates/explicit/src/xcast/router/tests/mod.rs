mod net;
mod packets;
mod plus;
mod random;

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};

use hopcast_core::{Buffer, Egress, Instant, Item, Machine, Port, Transit};
use hopcast_wire::{ip, udp};

use super::{Config, Hop, NextHops, Router};
use crate::Bitmap;
use crate::testing::at;
use crate::xcast::wire::Packet;
use crate::xcast::wire::tests::segment;

const NOW: Instant = Instant::ZERO;
/// The interface of all hosts that are attached.
const SOURCE_LINK: u32 = 3;
const PAYLOAD: &[u8] = b"the first frame of the film";

/// Next hops of a table.
#[derive(Clone, Default)]
struct Table {
    hops: BTreeMap<Ipv6Addr, Hop>,
    routers: Vec<Ipv6Addr>,
    attached: Vec<Ipv6Addr>,
    /// Groups that designated routers do not serve.
    unserved: Vec<Ipv6Addr>,
}

impl NextHops for Table {
    fn next_hop(&mut self, destination: Ipv6Addr) -> Option<Hop> {
        self.hops.get(&destination).copied()
    }

    fn is_router(&self, address: Ipv6Addr) -> bool {
        self.routers.contains(&address)
    }

    fn attached(&self, address: Ipv6Addr) -> Option<u32> {
        self.attached.contains(&address).then_some(SOURCE_LINK)
    }

    fn serves_group(&self, group: Ipv6Addr) -> bool {
        !self.unserved.contains(&group)
    }
}

/// A packet to these destinations, as its sender makes it.
fn packet(destinations: &[Ipv6Addr], change: impl for<'a> FnOnce(Packet<'a>) -> Packet<'a>) -> Buffer {
    let list: Vec<[u8; 16]> = destinations.iter().map(Ipv6Addr::octets).collect();
    let payload = segment(at("fd14::1"), 5001, PAYLOAD);
    let packet = crate::xcast::wire::tests::packet(&list, &payload);
    change(packet).emit()
}

/// A packet that leaves a router.
#[derive(Clone, Debug, PartialEq)]
enum Left {
    /// A plain packet by the routes.
    Plain(Buffer),
    /// A copy to a neighbour.
    Neighbour(u32, Ipv6Addr, Buffer),
    /// A packet of the node's own, by the routes.
    Own(Buffer),
}

fn answers(router: &mut Router, now: Instant, transit: Transit) -> Vec<Left> {
    let ingress = transit.ingress;
    router.handle(now, Port::Below(0), Item::Transit(transit));
    let items = std::iter::from_fn(|| router.poll(now));
    let left = items.map(|item| match item {
        (Port::Below(0), Item::Transit(Transit { packet, ingress: found, egress })) => {
            assert_eq!(found, ingress);
            match egress {
                Egress::Routes => Left::Plain(packet),
                Egress::Neighbour { interface, address: IpAddr::V6(address) } => {
                    Left::Neighbour(interface, address, packet)
                }
                other => panic!("{other:?}"),
            }
        }
        (Port::Below(0), Item::Packet(packet)) => Left::Own(packet),
        other => panic!("{other:?}"),
    });
    left.collect()
}

/// Destination and port of a plain packet with the payload and a checksum that fits.
fn plain(packet: &[u8]) -> (Ipv6Addr, u16) {
    let header = ip::parse(packet).unwrap();
    let segment = &packet[header.payload()];
    let read = udp::parse(header.source, header.destination, segment).unwrap();
    assert_eq!(&segment[udp::HEADER..], PAYLOAD);
    assert_eq!((header.header_len, header.source), (ip::V6_HEADER, at("fd14::1").into()));
    match header.destination {
        IpAddr::V6(destination) => (destination, read.destination),
        other @ IpAddr::V4(_) => panic!("{other}"),
    }
}
