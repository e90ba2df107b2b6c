//! Data: its copies for other routers, and the plain packets for this router's receivers.

use std::ops::Range;

use hopcast_core::{Buffer, Egress, Instant, Item, Transit};
use hopcast_wire::ip;

use super::machine::Router;
use crate::meadcast::wire::{Packet, edit};
use crate::{Bitmap, Refusal, transport};

/// The form of a packet of data.
pub(super) struct Data {
    delivery: Bitmap,
    routers: Bitmap,
    /// Number of addresses in its list.
    listed: usize,
    has_ports: bool,
    protocol: u8,
    /// Bytes of all headers in front of the payload, and of the packet.
    header_len: usize,
    len: usize,
}

impl Data {
    pub(super) fn new(packet: &Packet<'_>, delivery: Bitmap, routers: Bitmap) -> Self {
        let header_len = packet.header_len();
        Self {
            delivery,
            routers,
            listed: packet.list.len(),
            has_ports: packet.ports.is_some(),
            protocol: packet.protocol,
            header_len,
            len: header_len + packet.payload.len(),
        }
    }

    /// Places of the receivers of the router at a place.
    fn receivers(&self, router: usize) -> Range<usize> {
        router + 1..self.routers.next(router + 1).unwrap_or(self.listed)
    }

    /// Port of the receiver at a place, if ports are listed.
    fn port(&self, packet: &[u8], receiver: usize) -> Option<[u8; 2]> {
        let place = receiver - self.routers.before(receiver);
        self.has_ports.then(|| edit::listed_port(packet, self.listed, place))
    }
}

/// The receiver that a copy is addressed to.
struct Target {
    /// Place of its router in the list.
    router: usize,
    address: [u8; 16],
    port: Option<[u8; 2]>,
    /// Whether the copy is a plain packet for it.
    is_unicast: bool,
}

impl Router {
    /// Copies a packet for each of its sections that are to be delivered.
    pub(super) fn forward(&mut self, now: Instant, transit: Transit, data: &Data) {
        if !self.copies.is_ready(now) {
            return self.refuse(transit, Refusal::Rate);
        }
        let mut left = 0;
        for router in data.delivery.places() {
            left += if self.serves(&transit.packet, data, router) { data.receivers(router).len() } else { 1 };
        }
        self.copies.sent(now, left as u64);
        let Transit { mut packet, ingress, .. } = transit;
        packet.truncate(data.len);
        edit::increment_hops(&mut packet);
        for router in data.delivery.places() {
            let is_unicast = self.serves(&packet, data, router);
            let receivers = data.receivers(router);
            if is_unicast && !self.owns(&edit::listed(&packet, router)) {
                self.counters.premature += receivers.len() as u64;
            }
            let addressed = if is_unicast { receivers } else { router + 1..router + 2 };
            for receiver in addressed {
                let address = edit::listed(&packet, receiver);
                let target = Target { router, address, port: data.port(&packet, receiver), is_unicast };
                left -= 1;
                if left == 0 {
                    // The last copy is the packet itself.
                    let copy = if is_unicast { strip(packet, data) } else { packet };
                    return self.send(copy, ingress, data, &target);
                }
                let copy = if is_unicast { stripped(&packet, data) } else { packet.clone() };
                self.send(copy, ingress, data, &target);
            }
        }
    }

    /// Whether the receivers of the router at a place get plain packets from here.
    fn serves(&self, packet: &[u8], data: &Data, router: usize) -> bool {
        data.receivers(router).len() < self.config.min_dsts.into() || self.owns(&edit::listed(packet, router))
    }

    fn send(&mut self, mut copy: Buffer, ingress: Option<u32>, data: &Data, target: &Target) {
        let payload = if target.is_unicast { ip::V6_HEADER } else { data.header_len };
        if target.is_unicast {
            self.counters.unicast += 1;
        } else {
            self.counters.copies += 1;
            edit::set_delivery(&mut copy, Bitmap::of(target.router));
        }
        let old = edit::set_destination(&mut copy, &target.address);
        transport::readdress(data.protocol, &mut copy[payload..], &old, &target.address, target.port);
        self.out.down(Item::Transit(Transit { packet: copy, ingress, egress: Egress::Routes }));
    }
}

/// The packet without its extension headers.
fn strip(mut packet: Buffer, data: &Data) -> Buffer {
    let mut header = [0; ip::V6_HEADER];
    header.copy_from_slice(&packet[..ip::V6_HEADER]);
    packet.advance(data.header_len);
    packet.prepend(ip::V6_HEADER).copy_from_slice(&header);
    edit::set_payload(&mut packet, data.protocol);
    packet
}

/// A copy of the packet without its extension headers.
fn stripped(packet: &[u8], data: &Data) -> Buffer {
    let mut copy = Buffer::copy_from(&packet[data.header_len..]);
    copy.prepend(ip::V6_HEADER).copy_from_slice(&packet[..ip::V6_HEADER]);
    edit::set_payload(&mut copy, data.protocol);
    copy
}
