//! Sending: packets in transit, and the host's own.

use std::net::IpAddr;

use hopcast_core::{Buffer, Egress, Frame, Instant, Item, Port};
use hopcast_wire::icmp::{Message, Unreachable};
use hopcast_wire::ip::{Header, Version};
use hopcast_wire::{ethernet, ip};

use crate::groups::is_group;
use crate::host::Host;
use crate::routes::NextHop;

/// The station, or stations, that a frame is for.
#[derive(Clone, Copy)]
pub(crate) enum Station {
    /// One station.
    At(ethernet::Mac),
    /// All stations that listen to a group.
    Group(IpAddr),
    /// The neighbour with this IP address, whose Ethernet address may have to be resolved.
    Neighbour(IpAddr),
}

/// The next hop of a packet: an interface, and the station or stations there.
#[derive(Clone, Copy)]
pub(crate) struct OutgoingHop {
    pub(crate) interface: u32,
    pub(crate) to: Station,
}

impl Host {
    /// Forwards a packet in transit, with its hop limit decremented, in the frame in which it came: the usual case.
    ///
    /// The frame is changed in place; to take its header off and put another one on would cost as much as everything
    /// else here.
    #[inline]
    pub(crate) fn forward_frame(&mut self, now: Instant, mut frame: Buffer, header: &Header) {
        let end = ethernet::HEADER + header.total_len;
        if frame.len() > end {
            frame.truncate(end);
        }
        if self.neighbours.is_none()
            && header.hop_limit > 1
            && let Some(NextHop { interface, mac }) = self.routes.next_hop(header.destination)
            && let Some(own) = self.config.interfaces.get(interface as usize)
            && header.total_len <= own.mtu as usize
        {
            ip::decrement_hop_limit(&mut frame[ethernet::HEADER..]);
            self.counters.forwarded += 1;
            ethernet::readdress(&mut frame, mac, own.mac);
            return self.put_out(interface, frame);
        }
        frame.advance(ethernet::HEADER);
        self.forward(now, frame, header);
    }

    /// As [`forward_frame`](Self::forward_frame), for a packet without a frame, for one whose neighbour's Ethernet
    /// address must be resolved, and for one that cannot be forwarded.
    #[inline(never)]
    pub(crate) fn forward(&mut self, now: Instant, mut packet: Buffer, header: &Header) {
        match self.next_hop_of_transit(header) {
            Some(hop) => {
                ip::decrement_hop_limit(&mut packet);
                self.counters.forwarded += 1;
                self.send_to(now, packet, header.version, hop);
            }
            None => self.report_stuck(now, &packet, header),
        }
    }

    /// The next hop of a packet in transit; `None` if it cannot be forwarded.
    #[inline]
    fn next_hop_of_transit(&mut self, header: &Header) -> Option<OutgoingHop> {
        let (hop, mtu) = self.next_hop(header.destination)?;
        (header.hop_limit > 1 && header.total_len <= mtu as usize).then_some(hop)
    }

    /// Sends an ICMP error to the sender of a packet in transit that cannot be forwarded.
    #[cold]
    fn report_stuck(&mut self, now: Instant, packet: &[u8], header: &Header) {
        if header.hop_limit < 2 {
            self.counters.hop_limit_exceeded += 1;
            return self.send_error(now, packet, header, Message::TimeExceeded);
        }
        match self.next_hop(header.destination) {
            Some((_, mtu)) => self.report_too_big(now, packet, header, mtu),
            None => self.report_no_route(now, packet, header),
        }
    }

    /// Sends a complete packet of the host's own, from the machine on `Above(above)`.
    pub(crate) fn originate(&mut self, now: Instant, above: u32, mut packet: Buffer) {
        self.loopback_from = self.bindings.hook_place(above).map_or(0, |place| place + 1);
        match ip::parse(&packet) {
            // RFC 1122 section 3.2.1.7: a host must not send a hop limit of 0.
            Ok(header) if header.hop_limit == 0 => self.counters.unsendable += 1,
            Ok(header) => {
                packet.truncate(header.total_len);
                self.send(now, packet, (header.source, header.destination), None);
            }
            Err(malformed) => self.count_malformed(malformed),
        }
    }

    /// Sends a packet that the host made: to itself, by the route to its destination, or to a group, then only on one
    /// interface if one is named.
    pub(crate) fn send(
        &mut self,
        now: Instant,
        packet: Buffer,
        (source, destination): (IpAddr, IpAddr),
        interface: Option<u32>,
    ) {
        if self.config.owns(destination) {
            self.counters.originated += 1;
            self.loopback.push_back(packet);
        } else if is_group(destination) {
            self.send_to_group(now, packet, (source, destination), interface);
        } else {
            self.send_by_route(now, packet, destination);
        }
    }

    /// Sends a packet that the host made by the route to `destination`.
    pub(crate) fn send_by_route(&mut self, now: Instant, packet: Buffer, destination: IpAddr) {
        let next = self.next_hop(destination);
        if let Some((hop, mtu)) = next
            && packet.len() <= mtu as usize
        {
            self.counters.originated += 1;
            self.send_to(now, packet, Version::of(destination), hop);
            return;
        }
        // The error goes to the sender, who is most likely bound on this very host.
        let Ok(header) = ip::parse(&packet) else { return };
        match next {
            Some((_, mtu)) => self.report_too_big(now, &packet, &header, mtu),
            None => self.report_no_route(now, &packet, &header),
        }
    }

    /// Sends a packet of a hook by the egress that it names, with its hop limit decremented if it was in transit.
    pub(crate) fn send_out(
        &mut self,
        now: Instant,
        mut packet: Buffer,
        header: &Header,
        in_transit: bool,
        egress: &Egress,
    ) {
        packet.truncate(header.total_len);
        if in_transit && !ip::decrement_hop_limit(&mut packet) {
            // Its sender gets no error: it may be one of many copies, and each would cause one.
            self.counters.hop_limit_exceeded += 1;
            return packet.recycle();
        }
        match egress {
            Egress::Routes => {}
            Egress::Group(interfaces) => self.send_copies(packet, header.destination, interfaces),
            &Egress::Neighbour { interface, address } => {
                let mtu = self.config.interfaces.get(interface as usize).map_or(0, |own| own.mtu as usize);
                let to = match self.neighbours {
                    Some(_) => Some(Station::Neighbour(address)),
                    None => self.routes.station(interface, address).map(Station::At),
                };
                match to {
                    Some(_) if packet.len() > mtu => self.counters.too_big += 1,
                    Some(to) => {
                        let count = if in_transit {
                            &mut self.counters.forwarded
                        } else {
                            &mut self.counters.originated
                        };
                        *count += 1;
                        self.send_to(now, packet, header.version, OutgoingHop { interface, to });
                    }
                    None => self.counters.no_route += 1,
                }
            }
        }
    }

    /// The next hop towards `destination`, and the MTU of the link to it.
    #[inline]
    pub(crate) fn next_hop(&mut self, destination: IpAddr) -> Option<(OutgoingHop, u32)> {
        let hop = if self.neighbours.is_some() {
            self.hop_to_resolve(destination)?
        } else {
            let NextHop { interface, mac } = self.routes.next_hop(destination)?;
            OutgoingHop { interface, to: Station::At(mac) }
        };
        // A route by an interface that the host does not have is no route.
        let interface = self.config.interfaces.get(hop.interface as usize)?;
        Some((hop, interface.mtu))
    }

    /// The next hop on a host that resolves the Ethernet addresses of its neighbours itself.
    fn hop_to_resolve(&mut self, destination: IpAddr) -> Option<OutgoingHop> {
        let (interface, neighbour) = self.routes.neighbour(destination)?;
        let to = match is_group(neighbour) {
            true => Station::Group(neighbour),
            false => Station::Neighbour(neighbour),
        };
        Some(OutgoingHop { interface, to })
    }

    /// Sends a packet to its next hop; it waits if the Ethernet address is not resolved yet.
    #[inline]
    fn send_to(&mut self, now: Instant, packet: Buffer, version: Version, hop: OutgoingHop) {
        match hop.to {
            Station::Neighbour(address) => self.send_to_neighbour(now, packet, (hop.interface, address)),
            to => self.transmit(packet, version, to, hop.interface),
        }
    }

    /// Sends a packet to stations whose Ethernet address is known.
    #[inline]
    pub(crate) fn transmit(&mut self, mut packet: Buffer, version: Version, to: Station, interface: u32) {
        let Some(own) = self.config.interfaces.get(interface as usize) else { return };
        let ether_type = match version {
            Version::V4 => ethernet::IPV4,
            Version::V6 => ethernet::IPV6,
        };
        let destination = match to {
            Station::At(mac) => mac,
            Station::Group(group) => ethernet::of_group(group),
            Station::Neighbour(_) => return packet.recycle(),
        };
        let header = ethernet::Header { destination, source: own.mac, ether_type };
        ethernet::prepend(&mut packet, header);
        self.put_out(interface, packet);
    }

    #[inline]
    pub(crate) fn put_out(&mut self, interface: u32, bytes: Buffer) {
        let frame = Frame::new(bytes);
        self.out.push(Port::Below(interface), Item::Frame(frame));
    }

    #[cold]
    fn report_no_route(&mut self, now: Instant, packet: &[u8], header: &Header) {
        self.counters.no_route += 1;
        self.send_error(now, packet, header, Message::Unreachable(Unreachable::Network));
    }

    #[cold]
    fn report_too_big(&mut self, now: Instant, packet: &[u8], header: &Header, mtu: u32) {
        if header.dont_fragment {
            self.counters.too_big += 1;
            self.send_error(now, packet, header, Message::PacketTooBig { mtu });
        } else {
            self.counters.unfragmented += 1;
        }
    }
}
