//! ARP (RFC 826): requests, answers, and reception.

use std::net::{IpAddr, Ipv4Addr};

use hopcast_core::{Buffer, Instant};
use hopcast_wire::arp::{self, Operation, Packet, Station};
use hopcast_wire::ethernet::{self, Mac};

use super::Heard;
use crate::host::Host;

impl Host {
    /// Takes an ARP packet. `destination` is its frame's.
    ///
    /// RFC 826, "Packet Reception": an entry of the sender is updated, and a new one is made only if the packet asks
    /// for this host.
    pub(crate) fn receive_arp(&mut self, now: Instant, interface: u32, destination: Mac, bytes: &[u8]) {
        let packet = match arp::parse(bytes) {
            Ok(packet) => packet,
            Err(malformed) => return self.count_malformed(malformed),
        };
        let Packet { operation, sender, target } = packet;
        let key = (interface, IpAddr::V4(sender.address));
        if operation != Operation::Request && operation != Operation::Reply {
            return self.count_neighbours(|counters| counters.neighbours_invalid += 1);
        }
        if self.config.owns(key.1) {
            // The host hears itself where two of its interfaces are on one link.
            if !self.is_own_mac(sender.mac) {
                self.count_neighbours(|counters| counters.address_conflicts += 1);
            }
            return;
        }
        // A probe (RFC 5227 section 2.1.1) is answered, and its sender has no address yet.
        let is_probe = operation == Operation::Request && sender.address.is_unspecified();
        let is_answerable = is_probe && !ethernet::is_group(sender.mac);
        if !is_answerable && !Self::can_be_neighbour(sender.mac, key.1) {
            return self.count_neighbours(|counters| counters.neighbours_invalid += 1);
        }
        let for_us = self.config.owns(target.address.into());
        let heard = match operation {
            Operation::Request if for_us => Heard::Asked,
            // Only a frame to this station alone can answer its request.
            Operation::Reply if for_us && !ethernet::is_group(destination) => {
                let solicited = self.neighbours.as_ref().is_some_and(|neighbours| neighbours.is_asked(key));
                Heard::Answered { solicited, replaces: true }
            }
            Operation::Request | Operation::Reply | Operation::Other(_) => Heard::Mentioned,
        };
        if !is_probe {
            self.heard_neighbour(now, key, sender.mac, heard);
        }
        match operation {
            Operation::Request if for_us => self.answer_arp(interface, sender, target.address),
            Operation::Request => {
                self.count_neighbours(|counters| counters.neighbour_requests_for_others += 1);
            }
            Operation::Reply | Operation::Other(_) => {}
        }
    }

    /// Requests the Ethernet address of a neighbour, from all stations or from its last known one.
    pub(super) fn ask_by_arp(&mut self, interface: u32, address: Ipv4Addr, to: Option<Mac>) {
        let Some(own) = self.config.v4_on(interface) else { return };
        let target = Station { mac: to.unwrap_or_default(), address };
        self.send_arp(interface, to.unwrap_or(ethernet::BROADCAST), Operation::Request, own, target);
    }

    fn answer_arp(&mut self, interface: u32, sender: Station, own: Ipv4Addr) {
        self.count_neighbours(|counters| counters.neighbour_requests_answered += 1);
        self.send_arp(interface, sender.mac, Operation::Reply, own, sender);
    }

    fn send_arp(&mut self, interface: u32, to: Mac, operation: Operation, own: Ipv4Addr, target: Station) {
        let Some(mac) = self.config.interfaces.get(interface as usize).map(|own| own.mac) else { return };
        let mut frame = Buffer::default();
        arp::prepend(&mut frame, &Packet { operation, sender: Station { mac, address: own }, target });
        let header = ethernet::Header { destination: to, source: mac, ether_type: arp::ETHER_TYPE };
        ethernet::prepend(&mut frame, header);
        self.put_out(interface, frame);
    }
}
