//! The machine: sorts destinations by their next hops.

use std::net::{IpAddr, Ipv6Addr, SocketAddr};
use std::sync::Arc;

use hopcast_core::{Buffer, Egress, Instant, Item, Machine, Outbox, Pace, Port, Transit};
use hopcast_wire::{ip, udp};

use super::config::Config;
use super::counters::Counters;
use super::plus::{Channel, Plus, PlusConfig, REGISTRATION_PORT, Registration, is_channel};
use super::{Hop, NextHops, TUNNEL};
use crate::address::of_ipv6;
use crate::header;
use crate::xcast::sender;
use crate::xcast::wire::{ALL_ROUTERS, Packet};
use crate::{Bitmap, Refusal, pace, transport};

/// An Xcast router; see the [module's documentation](super).
pub struct Router {
    config: Config,
    /// The node's own addresses, of which the first is that of tunnels.
    addresses: Vec<Ipv6Addr>,
    next_hops: Box<dyn NextHops>,
    copies: Pace,
    /// State of a designated router.
    plus: Option<Plus>,
    /// The next hops of a packet with the destinations behind each, in the order of the list; empty between packets.
    sorted: Vec<(Hop, Bitmap)>,
    out: Outbox,
    pub(super) counters: Counters,
}

impl Router {
    /// A router at a node with these addresses. Without one of IPv6 it is off.
    pub fn new(config: Config, addresses: &[IpAddr], next_hops: Box<dyn NextHops>) -> Self {
        Self {
            config,
            addresses: of_ipv6(addresses),
            next_hops,
            copies: pace(config.copies_per_second),
            plus: None,
            sorted: Vec::new(),
            out: Outbox::new(),
            counters: Counters::default(),
        }
    }

    /// The same, a designated router of Xcast+.
    #[must_use]
    pub fn designated(self, config: PlusConfig) -> Self {
        Self { plus: Some(Plus::new(config)), ..self }
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
            return Ok(self.take_registration(now, bytes) || self.take_multicast(now, transit)?);
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
        self.admit(now, packet.hop_limit, ingress)?;
        let copies = self.divide(now, packet, ingress);
        self.copies.sent(now, copies);
        Ok(())
    }

    /// Refuses a packet that may not be copied now.
    fn admit(&self, now: Instant, hop_limit: u8, ingress: Option<u32>) -> Result<(), Refusal> {
        if hop_limit < 2 && ingress.is_some() {
            return Err(Refusal::HopLimit);
        }
        if !self.copies.is_ready(now) {
            return Err(Refusal::Rate);
        }
        Ok(())
    }

    /// Makes the copies of a packet; their number.
    fn divide(&mut self, now: Instant, packet: &Packet<'_>, ingress: Option<u32>) -> u64 {
        self.counters.packets += 1;
        let mut sorted = std::mem::take(&mut self.sorted);
        let mut copies = 0;
        let mut to_group = None;
        for place in packet.marks.places() {
            let destination = Ipv6Addr::from(packet.list[place]);
            let own = self.addresses.contains(&destination);
            if own && let Some(group) = self.group_of(packet) {
                // A list may have several addresses of this node.
                to_group = Some(group);
                continue;
            }
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
                    None => sorted.push((hop, Bitmap::EMPTY.with(place))),
                },
                None => self.counters.no_route += 1,
            }
        }
        if let Some(group) = to_group {
            // Members on the link by which the list came have not had the packet yet.
            copies += self.send_multicast(group, packet, ingress, None);
            let channel = (packet.source, group);
            if self.plus.as_mut().is_some_and(|plus| plus.is_to_leave(now, channel)) {
                self.register(channel, 0);
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
        copies
    }

    /// Sends a plain packet to the destination at a place (X2U).
    fn send_plain(&mut self, packet: &Packet<'_>, place: usize, ingress: Option<u32>) {
        self.counters.unicast += 1;
        let (address, port) = (packet.list[place].into(), packet.ports.map(|ports| ports[place]));
        let packet = plain(packet, address, port);
        self.out.down(Item::Transit(Transit { packet, ingress, egress: Egress::Routes }));
    }

    /// Sends a copy to the router or destination at the end of a tunnel, unless it is too long for one.
    fn send_tunnel(&mut self, packet: &Packet<'_>, marks: Bitmap, peer: Ipv6Addr, ingress: Option<u32>) {
        let Some(&own) = self.addresses.first() else { return };
        if packet.total_len() > usize::from(u16::MAX) {
            return self.counters.refusals.add(Refusal::Payload);
        }
        self.counters.tunnels += 1;
        // The host does not see the hop limit inside.
        let hop_limit = packet.hop_limit - u8::from(ingress.is_some());
        let mut tunnel = Packet { marks, hop_limit, ..*packet }.emit();
        ip::prepend(&mut tunnel, own.into(), peer.into(), TUNNEL, self.config.hop_limit, 0);
        self.out.down(Item::Packet(tunnel));
    }
}

/// Xcast+.
impl Router {
    /// The group of a packet between designated routers.
    fn group_of(&self, packet: &Packet<'_>) -> Option<Ipv6Addr> {
        let group = Ipv6Addr::from(packet.channel);
        (self.plus.is_some() && packet.stays && is_channel((packet.source, group))).then_some(group)
    }

    /// Whether this router is the designated one of a source: a host on one of its links, or its own.
    fn serves(&self, source: Ipv6Addr) -> bool {
        self.addresses.contains(&source) || self.next_hops.attached(source).is_some()
    }

    /// Registers a channel with the router of its source, unless that is this one.
    fn register(&mut self, (source, group): Channel, hold: u16) {
        let Some(&router) = self.addresses.first() else { return };
        if self.serves(source) {
            return;
        }
        self.counters.registrations_sent += 1;
        let registration = Registration { channel: (source, group), hold, router };
        let mut packet = Buffer::copy_from(&registration.emit());
        let [from, to] = [router, source].map(|address| SocketAddr::from((address, REGISTRATION_PORT)));
        udp::prepend(&mut packet, from, to);
        ip::prepend(&mut packet, router.into(), source.into(), ip::UDP, self.config.hop_limit, 0);
        self.out.down(Item::Packet(packet));
    }

    /// Whether a packet was a registration for a source here.
    fn take_registration(&mut self, now: Instant, packet: &[u8]) -> bool {
        let Some(registration) = Registration::read(packet) else { return false };
        if !self.serves(registration.channel.0) {
            return false;
        }
        let Some(plus) = &mut self.plus else { return false };
        // Anybody else would have a source send to any number of victims.
        let is_noted = self.next_hops.is_router(registration.router) && plus.register(now, &registration);
        let counters = &mut self.counters;
        *(if is_noted { &mut counters.registrations } else { &mut counters.registrations_refused }) += 1;
        true
    }

    /// Whether a packet was one of a source here to a group that has members, which it is sent on to (M2X).
    fn take_multicast(&mut self, now: Instant, transit: &Transit) -> Result<bool, Refusal> {
        let bytes = &transit.packet[..];
        let read = ip::parse(bytes).ok().filter(|header| header.header_len == ip::V6_HEADER);
        let (Some(read), Some(plus)) = (read, &self.plus) else {
            return Ok(false);
        };
        let ingress = transit.ingress;
        let (IpAddr::V6(source), IpAddr::V6(group)) = (read.source, read.destination) else {
            return Ok(false);
        };
        let channel = (source, group);
        let is_of_source = match ingress {
            // On another link it is another router's copy, or has a forged source.
            Some(_) => ingress == self.next_hops.attached(source),
            None => self.addresses.contains(&source),
        };
        if !is_channel(channel) || !is_of_source || !self.next_hops.serves_group(group) {
            return Ok(false);
        }
        let lists = sender::Config { max: plus.config.max_list, mtu: plus.config.mtu };
        let (routers, max) = (plus.routers(channel), lists.listed(read.payload().len()));
        let is_here = plus.interfaces(channel).next().is_some();
        if routers.is_empty() && !is_here {
            return Ok(false);
        }
        let mut payload = Buffer::copy_from(&bytes[read.payload()]);
        if !transport::is_whole(read.protocol, &payload) {
            return Err(Refusal::Payload);
        }
        // No packet of Xcast has one behind its own: the next router would drop it.
        if header::is_extension(read.protocol) {
            return Err(Refusal::Extension);
        }
        transport::readdress(read.protocol, &mut payload, &group.octets(), &ALL_ROUTERS.octets(), None);
        let packet = Packet {
            traffic: bytes.first_chunk().map(header::traffic).unwrap_or_default(),
            hop_limit: read.hop_limit,
            source,
            is_anonymous: false,
            stays: true,
            reserved: 0,
            channel: group.into(),
            marks: Bitmap::EMPTY,
            list: &[],
            ports: None,
            protocol: read.protocol,
            payload: &payload,
        };
        let lists =
            routers.chunks(max).map(|list| Packet { list, marks: Bitmap::first(list.len()), ..packet });
        if !lists.clone().all(|packet| packet.fits()) {
            return Err(Refusal::Payload);
        }
        self.admit(now, read.hop_limit, ingress)?;
        self.counters.from_multicast += 1;
        let mut copies = self.send_multicast(group, &packet, ingress, ingress);
        for packet in lists {
            copies += self.divide(now, &packet, ingress);
        }
        self.copies.sent(now, copies);
        Ok(true)
    }

    /// Sends a packet of Xcast to a group, on the interfaces with members (X2M) except one, on which they have it from
    /// the source itself; their number.
    fn send_multicast(
        &mut self,
        group: Ipv6Addr,
        packet: &Packet<'_>,
        ingress: Option<u32>,
        except: Option<u32>,
    ) -> u64 {
        let interfaces = self.plus.iter().flat_map(|plus| plus.interfaces((packet.source, group)));
        let interfaces: Arc<[u32]> = interfaces.filter(|interface| Some(*interface) != except).collect();
        let copies = interfaces.len() as u64;
        if copies > 0 {
            self.counters.to_multicast += 1;
            let packet = plain(packet, group, None);
            self.out.down(Item::Transit(Transit { packet, ingress, egress: Egress::Group(interfaces) }));
        }
        copies
    }
}

/// The packet without Xcast's headers, to one address.
fn plain(packet: &Packet<'_>, address: Ipv6Addr, port: Option<[u8; 2]>) -> Buffer {
    let Packet { traffic, hop_limit, source, protocol, .. } = *packet;
    let mut plain = Buffer::copy_from(packet.payload);
    transport::readdress(protocol, &mut plain, &ALL_ROUTERS.octets(), &address.octets(), port);
    header::prepend(&mut plain, [source, address], protocol, traffic, hop_limit);
    plain
}

impl Machine for Router {
    fn handle(&mut self, now: Instant, port: Port, item: Item) {
        self.wake(now);
        match (port, item) {
            (Port::Below(0), Item::Transit(transit)) => self.receive(now, transit),
            (Port::Above(0), Item::Packet(packet)) => {
                self.receive(now, Transit { packet, ingress: None, egress: Egress::Routes });
            }
            (Port::Above(_), Item::Membership(change)) if self.plus.is_some() => {
                let is_served =
                    matches!(change.group, IpAddr::V6(group) if self.next_hops.serves_group(group));
                let plus = self.plus.as_mut().filter(|_| is_served);
                let changed = plus.and_then(|plus| plus.change(now, change));
                if let Some((channel, hold)) = changed {
                    self.register(channel, hold);
                }
            }
            _ => self.counters.wrong_items += 1,
        }
    }

    fn wake(&mut self, now: Instant) {
        if let Some(plus) = &mut self.plus {
            plus.expire(now);
        }
        while let Some((channel, hold)) = self.plus.as_mut().and_then(|plus| plus.due(now)) {
            self.register(channel, hold);
        }
    }

    fn poll(&mut self, _now: Instant) -> Option<(Port, Item)> {
        self.out.pop()
    }

    fn deadline(&self) -> Option<Instant> {
        self.plus.as_ref().and_then(Plus::deadline)
    }

    fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        self.counters.report(report);
    }
}
