//! Data: its copies for other routers, and the plain packets for this router's receivers.

use std::mem::take;
use std::ops::Range;

use hopcast_core::{Buffer, Egress, Instant, Item, Transit};
use hopcast_wire::ip;

use super::machine::Router;
use crate::meadcast::wire::{Packet, edit};
use crate::transport::Readdressing;
use crate::{Bitmap, Refusal};

/// The form of a packet of data.
pub(super) struct Data {
    delivery: Bitmap,
    routers: Bitmap,
    /// Number of addresses in its list.
    listed: usize,
    has_ports: bool,
    /// Number of MEADcast routers that pass it on before it is copied.
    hold: u8,
    /// Whether it is addressed to a router of its list.
    to_router: bool,
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
            hold: packet.hold,
            to_router: routers.places().any(|router| packet.list[router] == packet.destination.octets()),
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

/// Copies of a packet: what they have in common.
pub(super) struct Copies {
    ingress: Option<u32>,
    pub(super) readdressing: Readdressing,
    /// IPv6's header of plain packets, which have no other header in front of the payload.
    plain: [u8; ip::V6_HEADER],
}

impl Copies {
    pub(super) fn new(packet: &[u8], ingress: Option<u32>, protocol: u8, header_len: usize) -> Self {
        let payload = &packet[header_len..];
        Self {
            ingress,
            readdressing: Readdressing::new(protocol, payload, &edit::destination(packet)),
            plain: edit::plain_header(packet, protocol, payload.len()),
        }
    }

    /// The copy for the router at this place of the list, of this packet, which is addressed to it or to the first of
    /// its receivers.
    fn list(&self, mut packet: Buffer, data: &Data, router: usize) -> Transit {
        let first = router + 1;
        let to = if data.to_router { router } else { first };
        let (address, port) = (edit::listed(&packet, to), data.port(&packet, first));
        edit::set_delivery(&mut packet, Bitmap::of(router));
        edit::set_hold(&mut packet, 0);
        edit::set_destination(&mut packet, &address);
        self.readdressing.apply(&mut packet[data.header_len..], &address, port);
        self.transit(packet)
    }

    /// The plain packet with this payload.
    pub(super) fn plain(&self, mut payload: Buffer, address: &[u8; 16], port: Option<[u8; 2]>) -> Transit {
        self.readdressing.apply(&mut payload, address, port);
        let mut header = self.plain;
        edit::set_destination(&mut header, address);
        payload.prepend(ip::V6_HEADER).copy_from_slice(&header);
        self.transit(payload)
    }

    pub(super) const fn transit(&self, packet: Buffer) -> Transit {
        Transit { packet, ingress: self.ingress, egress: Egress::Routes }
    }
}

impl Router {
    /// Passes a packet on that is not to be copied yet.
    pub(super) fn pass_whole(&mut self, now: Instant, mut packet: Buffer, ingress: Option<u32>) {
        self.counters.held += 1;
        self.copies.sent(now, 1);
        edit::increment_hops(&mut packet);
        self.out.down(Item::Transit(Transit { packet, ingress, egress: Egress::Routes }));
    }

    /// Copies a packet for each of its sections that are to be delivered. The payload is copied once for each copy but
    /// the last, which is the packet itself.
    pub(super) fn forward(&mut self, now: Instant, transit: Transit, data: &Data) {
        if !self.copies.is_ready(now) {
            return self.refuse(transit, Refusal::Rate);
        }
        let Transit { mut packet, ingress, .. } = transit;
        if data.hold > 0 && !data.delivery.places().any(|router| self.owns(&edit::listed(&packet, router))) {
            edit::set_hold(&mut packet, data.hold - 1);
            return self.pass_whole(now, packet, ingress);
        }
        let (mut served, mut left) = (Bitmap::EMPTY, 0);
        for router in data.delivery.places() {
            let (receivers, is_own) =
                (data.receivers(router).len(), self.owns(&edit::listed(&packet, router)));
            if is_own || receivers < self.config.min_dsts.into() {
                served = served.with(router);
                left += receivers;
                self.counters.unicast += receivers as u64;
                self.counters.premature += if is_own { 0 } else { receivers as u64 };
            } else {
                left += 1;
                self.counters.copies += 1;
            }
        }
        self.copies.sent(now, left as u64);
        packet.truncate(data.len);
        edit::increment_hops(&mut packet);
        let copies = Copies::new(&packet, ingress, data.protocol, data.header_len);
        for router in data.delivery.places() {
            if !served.has(router) {
                left -= 1;
                let copy = if left == 0 { take(&mut packet) } else { packet.clone() };
                let copy = copies.list(copy, data, router);
                self.out.down(Item::Transit(copy));
                continue;
            }
            for receiver in data.receivers(router) {
                left -= 1;
                let (address, port) = (edit::listed(&packet, receiver), data.port(&packet, receiver));
                let payload = match left {
                    0 => {
                        packet.advance(data.header_len);
                        take(&mut packet)
                    }
                    _ => Buffer::copy_from(&packet[data.header_len..]),
                };
                self.out.down(Item::Transit(copies.plain(payload, &address, port)));
            }
        }
    }
}
