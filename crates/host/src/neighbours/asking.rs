//! The host's part: packets to neighbours, requests, and timeouts.

use std::collections::VecDeque;
use std::net::IpAddr;

use hopcast_core::{Buffer, Instant, Stream};
use hopcast_wire::ethernet::{self, Mac};
use hopcast_wire::icmp::{Message, Unreachable};
use hopcast_wire::ip::{self, Version};

use super::config::NeighbourConfig;
use super::{Due, Heard, Key, Neighbours, Sending};
use crate::forward::Station;
use crate::host::Host;

impl Host {
    /// Lets the host resolve the Ethernet addresses of its neighbours itself, by ARP and neighbour discovery. Otherwise
    /// it has them from [`Routes`](crate::Routes), of which it then uses the neighbour's IP address only
    /// ([`Routes::neighbour`](crate::Routes::neighbour)). The host has timers from then on.
    pub fn resolve_neighbours(&mut self, config: NeighbourConfig, random: Stream) {
        self.neighbours = Some(Box::new(Neighbours::new(config, random)));
    }

    /// Sends a packet to a neighbour, now or when its Ethernet address is known.
    pub(crate) fn send_to_neighbour(&mut self, now: Instant, packet: Buffer, key: Key) {
        let Some(neighbours) = &mut self.neighbours else { return packet.recycle() };
        match neighbours.send(now, key, packet) {
            Sending::Now(mac, packet) => {
                self.transmit(packet, Version::of(key.1), Station::At(mac), key.0);
            }
            Sending::Waits { ask: true } => self.ask_neighbour(key, None),
            Sending::Waits { ask: false } => {}
            Sending::Refused(packet) => self.report_unresolved(now, packet),
        }
    }

    /// Updates a neighbour's entry from a received packet, and sends the packets that waited for it.
    pub(super) fn heard_neighbour(&mut self, now: Instant, key: Key, mac: Mac, heard: Heard) {
        let Some(neighbours) = &mut self.neighbours else { return };
        for packet in neighbours.heard(now, key, mac, heard) {
            self.transmit(packet, Version::of(key.1), Station::At(mac), key.0);
        }
    }

    /// Sends the requests and errors that are due.
    #[cold]
    pub(crate) fn wake_neighbours(&mut self, now: Instant) {
        while let Some(due) = self.neighbours.as_mut().and_then(|neighbours| neighbours.expired(now)) {
            match due {
                Due::Ask(key, to) => self.ask_neighbour(key, to),
                Due::Failed(packets) => self.report_all_unresolved(now, packets),
            }
        }
    }

    fn report_all_unresolved(&mut self, now: Instant, packets: VecDeque<Buffer>) {
        for packet in packets {
            self.report_unresolved(now, packet);
        }
    }

    /// Sends an ICMP error to the sender of a packet whose next hop does not answer (RFC 4861 section 7.2.2, RFC 1812
    /// section 3.3.2).
    fn report_unresolved(&mut self, now: Instant, packet: Buffer) {
        self.count_neighbours(|counters| counters.unresolved += 1);
        if let Ok(header) = ip::parse(&packet) {
            self.send_error(now, &packet, &header, Message::Unreachable(Unreachable::Host));
        }
        packet.recycle();
    }

    /// Requests the Ethernet address of a neighbour, from all stations or from its last known one.
    fn ask_neighbour(&mut self, (interface, address): Key, to: Option<Mac>) {
        self.count_neighbours(|counters| counters.neighbour_requests_sent += 1);
        match address {
            IpAddr::V4(address) => self.ask_by_arp(interface, address, to),
            IpAddr::V6(address) => self.ask_by_nd(interface, address, to),
        }
    }

    /// Whether an Ethernet and an IP address can be a neighbour's: neither is multicast or broadcast.
    pub(super) fn can_be_neighbour(mac: Mac, address: IpAddr) -> bool {
        crate::icmp::is_one_host(address) && !ethernet::is_group(mac) && mac != [0; 6]
    }

    /// Whether an Ethernet address is one of the host's own.
    pub(super) fn is_own_mac(&self, mac: Mac) -> bool {
        self.config.interfaces.iter().any(|interface| interface.mac == mac)
    }

    pub(super) fn count_neighbours(&mut self, count: impl FnOnce(&mut super::counters::Counters)) {
        if let Some(neighbours) = &mut self.neighbours {
            count(&mut neighbours.counters);
        }
    }
}
