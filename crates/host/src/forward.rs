//! Sending: packets in transit, and the host's own.

use std::net::IpAddr;

use hopcast_core::{Buffer, Frame, Instant, Item, Port};
use hopcast_wire::icmp::{Message, Unreachable};
use hopcast_wire::ip::{Header, Version};
use hopcast_wire::{ethernet, ip};

use crate::host::Host;
use crate::routes::NextHop;

impl Host {
    /// Forwards a packet in transit, one hop less, in the frame in which it came, as most packets are.
    ///
    /// The frame is changed in place, where taking its header off and putting one on again would cost as much as all
    /// the rest.
    #[inline]
    pub(crate) fn forward_frame(&mut self, now: Instant, mut frame: Buffer, header: &Header) {
        let end = ethernet::HEADER + header.total_len;
        if frame.len() > end {
            frame.truncate(end);
        }
        match self.transit_way_out(header) {
            Some(hop) => {
                ip::decrement_hop_limit(&mut frame[ethernet::HEADER..]);
                self.counters.forwarded += 1;
                if let Some(interface) = self.config.interfaces.get(hop.interface as usize) {
                    ethernet::readdress(&mut frame, hop.mac, interface.mac);
                }
                self.put_out(hop.interface, frame);
            }
            None => {
                frame.advance(ethernet::HEADER);
                self.report_stuck(now, &frame, header);
            }
        }
    }

    /// As [`forward_frame`](Self::forward_frame), for a packet without a frame.
    pub(crate) fn forward(&mut self, now: Instant, mut packet: Buffer, header: &Header) {
        match self.transit_way_out(header) {
            Some(hop) => {
                ip::decrement_hop_limit(&mut packet);
                self.counters.forwarded += 1;
                self.transmit(packet, header.version, hop);
            }
            None => self.report_stuck(now, &packet, header),
        }
    }

    /// The next hop of a packet in transit that can go on.
    #[inline]
    fn transit_way_out(&mut self, header: &Header) -> Option<NextHop> {
        let (hop, mtu) = self.way_out(header.destination)?;
        (header.hop_limit > 1 && header.total_len <= mtu as usize).then_some(hop)
    }

    /// Answers the sender of a packet in transit with the reason why it cannot go on.
    #[cold]
    fn report_stuck(&mut self, now: Instant, packet: &[u8], header: &Header) {
        if header.hop_limit < 2 {
            self.counters.hop_limit_exceeded += 1;
            return self.send_error(now, packet, header, Message::TimeExceeded);
        }
        match self.way_out(header.destination) {
            Some((_, mtu)) => self.report_too_big(now, packet, header, mtu),
            None => self.report_no_route(now, packet, header),
        }
    }

    /// Sends a complete packet of the host's own.
    pub(crate) fn originate(&mut self, now: Instant, mut packet: Buffer) {
        match ip::parse(&packet) {
            // RFC 1122 section 3.2.1.7: a host must not send a hop limit of 0.
            Ok(header) if header.hop_limit == 0 => self.counters.unsendable += 1,
            Ok(header) => {
                packet.truncate(header.total_len);
                self.send(now, packet, header.destination);
            }
            Err(malformed) => self.count_malformed(malformed),
        }
    }

    /// Sends a packet that the host made, to itself or by the route to `destination`.
    pub(crate) fn send(&mut self, now: Instant, packet: Buffer, destination: IpAddr) {
        if self.config.owns(destination) {
            self.counters.originated += 1;
            self.loopback.push_back(packet);
            return;
        }
        let way_out = self.way_out(destination);
        if let Some((hop, mtu)) = way_out
            && packet.len() <= mtu as usize
        {
            self.counters.originated += 1;
            self.transmit(packet, Version::of(destination), hop);
            return;
        }
        // The error goes to the sender, who is most likely bound on this very host.
        let Ok(header) = ip::parse(&packet) else { return };
        match way_out {
            Some((_, mtu)) => self.report_too_big(now, &packet, &header, mtu),
            None => self.report_no_route(now, &packet, &header),
        }
    }

    /// The next hop towards `destination`, and the MTU of the link to it.
    #[inline]
    pub(crate) fn way_out(&mut self, destination: IpAddr) -> Option<(NextHop, u32)> {
        let hop = self.routes.next_hop(destination)?;
        // An interface that the host has not got leads nowhere.
        let interface = self.config.interfaces.get(hop.interface as usize)?;
        Some((hop, interface.mtu))
    }

    #[inline]
    fn transmit(&mut self, mut packet: Buffer, version: Version, hop: NextHop) {
        let Some(interface) = self.config.interfaces.get(hop.interface as usize) else { return };
        let ether_type = match version {
            Version::V4 => ethernet::IPV4,
            Version::V6 => ethernet::IPV6,
        };
        let header = ethernet::Header { destination: hop.mac, source: interface.mac, ether_type };
        ethernet::prepend(&mut packet, header);
        self.put_out(hop.interface, packet);
    }

    #[inline]
    fn put_out(&mut self, interface: u32, bytes: Buffer) {
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
