//! The machine: sorts destinations by their next hops.

use std::net::{IpAddr, Ipv6Addr};

use hopcast_core::{Buffer, Egress, Instant, Item, Outbox, Pace, Port, Reactive, Transit};
use hopcast_wire::ip;

use super::config::Config;
use super::counters::Counters;
use super::{Hop, NextHops, TUNNEL};
use crate::xcast::wire::{ALL_ROUTERS, Marks, Packet};
use crate::{Refusal, transport};

/// An Xcast router; see the [module's documentation](super).
pub struct Router {
    config: Config,
    /// The node's own addresses, of which the first is that of tunnels.
    addresses: Vec<Ipv6Addr>,
    next_hops: Box<dyn NextHops>,
    copies: Pace,
    /// The next hops of a packet with the destinations behind each, in the order of the list; empty between packets.
    sorted: Vec<(Hop, Marks)>,
    out: Outbox,
    pub(super) counters: Counters,
}

impl Router {
    /// A router at a node with these addresses. Without one of IPv6 it is off.
    pub fn new(config: Config, addresses: &[IpAddr], next_hops: Box<dyn NextHops>) -> Self {
        let v6 = |address: &IpAddr| match address {
            IpAddr::V6(address) => Some(*address),
            IpAddr::V4(_) => None,
        };
        let rate = config.copies_per_second;
        Self {
            config,
            addresses: addresses.iter().filter_map(v6).collect(),
            next_hops,
            copies: Pace::new(rate.into(), u64::from(rate / 10).max(1)),
            sorted: Vec::new(),
            out: Outbox::new(),
            counters: Counters::default(),
        }
    }

    /// Turns it on or off.
    pub const fn set_enabled(&mut self, enable: bool) {
        self.config.enable = enable;
    }

    /// Number of packets that were dropped for a reason.
    pub const fn refused(&self, reason: Refusal) -> u64 {
        self.counters.refusals.get(reason)
    }

    fn receive(&mut self, now: Instant, transit: Transit) {
        let outcome = match self.config.enable && !self.addresses.is_empty() {
            true => self.process(now, &transit),
            false => Ok(false),
        };
        match outcome {
            Ok(true) => transit.packet.recycle(),
            Ok(false) => {
                self.counters.passed += 1;
                self.out.down(Item::Transit(transit));
            }
            Err(reason) => {
                self.counters.refusals.add(reason);
                transit.packet.recycle();
            }
        }
    }

    /// Whether a packet was one of Xcast, or a tunnel with one.
    fn process(&mut self, now: Instant, transit: &Transit) -> Result<bool, Refusal> {
        let bytes = &transit.packet[..];
        match Packet::parse(bytes) {
            Ok(packet) => return self.sort(now, &packet, transit.ingress).map(|()| true),
            Err(Refusal::NoHeader) => {}
            Err(reason) => return Err(reason),
        }
        let Some(header) = ip::parse(bytes).ok().filter(|header| header.protocol == TUNNEL) else {
            return Ok(false);
        };
        let (IpAddr::V6(source), IpAddr::V6(destination)) = (header.source, header.destination) else {
            return Ok(false);
        };
        if !self.addresses.contains(&destination) {
            return Ok(false);
        }
        let packet = match Packet::parse(&bytes[header.payload()]) {
            Ok(packet) => packet,
            // Another's tunnel, unless it pretends to be one of ours.
            Err(Refusal::NoHeader | Refusal::Packet) if !self.next_hops.is_router(source) => {
                return Ok(false);
            }
            Err(Refusal::NoHeader) if bytes.get(header.header_len + 6) == Some(&TUNNEL) => {
                return Err(Refusal::NestedTunnel);
            }
            Err(reason) => return Err(reason),
        };
        let lists_this = || packet.marks.places().any(|place| self.owns(&packet.list[place]));
        if !self.next_hops.is_router(source) && !lists_this() {
            return Err(Refusal::Source);
        }
        self.sort(now, &packet, transit.ingress).map(|()| true)
    }

    fn owns(&self, address: &[u8; 16]) -> bool {
        self.addresses.iter().any(|own| own.octets() == *address)
    }

    /// Sends a packet on to the next hops of its destinations; one without an ingress is the host's own.
    fn sort(&mut self, now: Instant, packet: &Packet<'_>, ingress: Option<u32>) -> Result<(), Refusal> {
        if packet.hop_limit < 2 && ingress.is_some() {
            return Err(Refusal::HopLimit);
        }
        if !self.copies.is_ready(now) {
            return Err(Refusal::Rate);
        }
        self.counters.packets += 1;
        let mut sorted = std::mem::take(&mut self.sorted);
        let mut copies = 0;
        for place in packet.marks.places() {
            let destination = Ipv6Addr::from(packet.list[place]);
            let own = self.addresses.contains(&destination);
            let hop = match if own { Some(Hop::Plain) } else { self.next_hops.next_hop(destination) } {
                // What must stay as it is comes to the destination in a tunnel; on this node its end is here.
                Some(Hop::Plain) if packet.stays && !own => Some(Hop::Tunnel(destination)),
                found => found,
            };
            match hop {
                Some(Hop::Plain) => {
                    copies += 1;
                    self.send_plain(packet, place, ingress);
                }
                Some(hop) => match sorted.iter_mut().find(|(other, _)| *other == hop) {
                    Some((_, marks)) => *marks = marks.with(place),
                    None => sorted.push((hop, Marks::NONE.with(place))),
                },
                None => self.counters.no_route += 1,
            }
        }
        for (hop, marks) in sorted.drain(..) {
            copies += 1;
            let first = marks.places().next().unwrap_or_default();
            match hop {
                Hop::Plain => {}
                _ if marks.len() == 1 && !packet.stays => self.send_plain(packet, first, ingress),
                Hop::Neighbour { interface, address } => {
                    self.counters.copies += 1;
                    let egress = Egress::Neighbour { interface, address: address.into() };
                    let packet = Packet { marks, ..*packet }.emit();
                    self.out.down(Item::Transit(Transit { packet, ingress, egress }));
                }
                Hop::Tunnel(peer) => self.send_tunnel(packet, marks, peer, ingress),
            }
        }
        self.sorted = sorted;
        self.copies.sent(now, copies);
        Ok(())
    }

    /// Sends a plain packet to the destination at a place (X2U).
    fn send_plain(&mut self, packet: &Packet<'_>, place: usize, ingress: Option<u32>) {
        self.counters.unicast += 1;
        let Packet { traffic, hop_limit, source, protocol, .. } = *packet;
        let (address, port) = (packet.list[place], packet.ports.map(|ports| ports[place]));
        let mut plain = Buffer::copy_from(packet.payload);
        transport::readdress(protocol, &mut plain, &ALL_ROUTERS.octets(), &address, port);
        ip::prepend(&mut plain, source.into(), Ipv6Addr::from(address).into(), protocol, hop_limit, 0);
        plain[..4].copy_from_slice(&(6 << 28 | traffic).to_be_bytes());
        self.out.down(Item::Transit(Transit { packet: plain, ingress, egress: Egress::Routes }));
    }

    /// Sends a copy to the router or destination at the end of a tunnel.
    fn send_tunnel(&mut self, packet: &Packet<'_>, marks: Marks, peer: Ipv6Addr, ingress: Option<u32>) {
        let Some(&own) = self.addresses.first() else { return };
        self.counters.tunnels += 1;
        // The host does not see the hop limit inside.
        let hop_limit = packet.hop_limit - u8::from(ingress.is_some());
        let mut tunnel = Packet { marks, hop_limit, ..*packet }.emit();
        ip::prepend(&mut tunnel, own.into(), peer.into(), TUNNEL, self.config.hop_limit, 0);
        self.out.down(Item::Packet(tunnel));
    }
}

impl Reactive for Router {
    fn react(&mut self, now: Instant, port: Port, item: Item) {
        match (port, item) {
            (Port::Below(0), Item::Transit(transit)) => self.receive(now, transit),
            (Port::Above(0), Item::Packet(packet)) => {
                self.receive(now, Transit { packet, ingress: None, egress: Egress::Routes });
            }
            _ => self.counters.wrong_items += 1,
        }
    }

    fn next(&mut self) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.counters.report(report);
    }
}
