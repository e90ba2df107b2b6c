//! Neighbour discovery (RFC 4861): solicitations, advertisements, and reception.

use std::net::{IpAddr, Ipv6Addr};

use hopcast_core::{Buffer, Instant};
use hopcast_wire::ethernet::{self, Mac};
use hopcast_wire::ip::{self, Header, Version};
use hopcast_wire::nd::{self, Flags, Message};

use super::Heard;
use crate::forward::Station;
use crate::host::Host;

impl Host {
    /// Whether a packet is one of neighbour discovery that this host listens to: to it, to all nodes, or to a
    /// solicited-node group of its own.
    pub(crate) fn takes_nd(&self, header: &Header, packet: &[u8]) -> bool {
        if self.neighbours.is_none() || header.protocol != ip::ICMPV6 || header.fragment {
            return false;
        }
        let IpAddr::V6(destination) = header.destination else { return false };
        let is_own = |own: &IpAddr| match *own {
            IpAddr::V6(own) => own == destination || nd::solicited_node(own) == destination,
            IpAddr::V4(_) => false,
        };
        packet.get(header.header_len).is_some_and(|&kind| nd::is_nd(kind))
            && (destination == nd::ALL_NODES || self.config.addresses.iter().any(is_own))
    }

    /// Takes a packet that it [listens to](Self::takes_nd). `station` is the sender of its frame.
    pub(crate) fn receive_nd(
        &mut self,
        now: Instant,
        interface: u32,
        station: Mac,
        header: &Header,
        packet: &[u8],
    ) {
        let (IpAddr::V6(source), IpAddr::V6(destination)) = (header.source, header.destination) else {
            return;
        };
        match nd::parse((source, destination), header.hop_limit, &packet[header.payload()]) {
            Ok(Some(Message::Solicitation { target, source: mac })) => {
                self.receive_solicitation(now, interface, (source, mac, station), target);
            }
            Ok(Some(Message::Advertisement { target, mac, flags })) => {
                self.receive_advertisement(now, interface, (target, mac, station), flags);
            }
            Ok(None) => {}
            Err(malformed) => self.count_malformed(malformed),
        }
    }

    /// Takes a solicitation: RFC 4861 sections 7.2.3 and 7.2.4.
    fn receive_solicitation(
        &mut self,
        now: Instant,
        interface: u32,
        (source, mac, station): (Ipv6Addr, Option<Mac>, Mac),
        target: Ipv6Addr,
    ) {
        if !self.config.owns(target.into()) {
            return self.count_neighbours(|counters| counters.neighbour_requests_for_others += 1);
        }
        if source.is_unspecified() {
            // Duplicate address detection of the host's own address: all stations are told that it is taken.
            return self.advertise(
                interface,
                ethernet::of_group(nd::ALL_NODES.into()),
                nd::ALL_NODES,
                target,
            );
        }
        if self.config.owns(source.into()) {
            if !self.is_own_mac(mac.unwrap_or(station)) {
                self.count_neighbours(|counters| counters.address_conflicts += 1);
            }
            return;
        }
        let answer_to = mac.unwrap_or(station);
        if !Self::can_be_neighbour(answer_to, source.into()) {
            return self.count_neighbours(|counters| counters.neighbours_invalid += 1);
        }
        if let Some(mac) = mac {
            self.heard_neighbour(now, (interface, source.into()), mac, Heard::Asked);
        }
        self.advertise(interface, answer_to, source, target);
    }

    /// Takes an advertisement: RFC 4861 section 7.2.5.
    fn receive_advertisement(
        &mut self,
        now: Instant,
        interface: u32,
        (target, mac, station): (Ipv6Addr, Option<Mac>, Mac),
        flags: Flags,
    ) {
        if self.config.owns(target.into()) {
            if !self.is_own_mac(mac.unwrap_or(station)) {
                self.count_neighbours(|counters| counters.address_conflicts += 1);
            }
            return;
        }
        let key = (interface, IpAddr::V6(target));
        let known = self.neighbours.as_ref().and_then(|neighbours| neighbours.mac(key));
        // Without an Ethernet address it only confirms a known one.
        let mac = mac.or(known).filter(|&mac| Self::can_be_neighbour(mac, key.1));
        let Some(mac) = mac else {
            return self.count_neighbours(|counters| counters.neighbours_invalid += 1);
        };
        let heard = Heard::Answered { solicited: flags.solicited, replaces: flags.replaces };
        self.heard_neighbour(now, key, mac, heard);
    }

    /// Requests the Ethernet address of a neighbour, from its solicited-node group or from its last known station.
    pub(super) fn ask_by_nd(&mut self, interface: u32, target: Ipv6Addr, to: Option<Mac>) {
        let Some(own) = self.config.v6_on(interface) else { return };
        let group = nd::solicited_node(target);
        let (destination, station) = match to {
            Some(mac) => (target, mac),
            None => (group, ethernet::of_group(group.into())),
        };
        let source = self.config.interfaces.get(interface as usize).map(|own| own.mac);
        self.send_nd(interface, station, (own, destination), &Message::Solicitation { target, source });
    }

    fn advertise(&mut self, interface: u32, station: Mac, to: Ipv6Addr, own: Ipv6Addr) {
        self.count_neighbours(|counters| counters.neighbour_requests_answered += 1);
        let mac = self.config.interfaces.get(interface as usize).map(|own| own.mac);
        let flags = Flags { router: self.config.forwarding, solicited: !to.is_multicast(), replaces: true };
        self.send_nd(interface, station, (own, to), &Message::Advertisement { target: own, mac, flags });
    }

    fn send_nd(&mut self, interface: u32, station: Mac, (from, to): (Ipv6Addr, Ipv6Addr), message: &Message) {
        let mut packet = Buffer::default();
        nd::prepend(&mut packet, from, to, message);
        ip::prepend(&mut packet, from.into(), to.into(), ip::ICMPV6, nd::HOP_LIMIT, 0);
        self.transmit(packet, Version::V6, Station::At(station), interface);
    }
}
