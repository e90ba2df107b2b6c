//! How a client's frame enters the mesh, and leaves it.

use hopcast_core::{Buffer, Frame, Instant, Item};
use hopcast_wire::ethernet::{self, BROADCAST, Mac};
use hopcast_wire::vlan;

use super::broadcast::TRANSMISSIONS_BY_RADIO;
use super::{Arrival, Mesh};
use crate::bridge_loops::{Encapsulation, is_loop_probe};
use crate::translation::{Key, crc32c};
use crate::wire::data::{Broadcast, Unicast, Unicast4Addr};
use crate::wire::translation::vlan_of;
use crate::wire::{ETHER_TYPE, Header, TTL};

/// Bytes of headers around a client's packet, its Ethernet header included (`batadv_max_header_len`).
pub(super) const OVERHEAD: usize = Unicast4Addr::LEN + ethernet::HEADER;

/// Groups of bridges among themselves, whose protocols do not help a mesh: the spanning tree's, and that of loop tests.
const NOT_CARRIED: [Mac; 2] = [[0x01, 0x80, 0xc2, 0, 0, 0], [0xcf, 0, 0, 0, 0, 0]];

/// A client's frame, as far as the mesh looks at it.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClientFrame {
    pub(super) source: Key,
    pub(super) destination: Key,
}

impl ClientFrame {
    /// Reads a frame. `None` if it is none, or one that a mesh does not carry: a packet of a mesh.
    pub(super) fn parse(frame: &[u8]) -> Option<Self> {
        let header = ethernet::parse(frame).ok()?;
        let tag = vlan::tag(frame).filter(|tag| tag.kind == vlan::CUSTOMER);
        let inner = match header.ether_type {
            vlan::CUSTOMER => {
                let end = ethernet::HEADER + vlan::TAG;
                u16::from_be_bytes(*frame.get(end - 2..end)?.first_chunk()?)
            }
            other => other,
        };
        let vlan = vlan_of(tag);
        let key = |address| Key { vlan, address };
        (inner != ETHER_TYPE)
            .then_some(Self { source: key(header.source), destination: key(header.destination) })
    }
}

impl Mesh {
    /// Takes a frame of a client of this node.
    pub(super) fn send(&mut self, now: Instant, frame: Buffer) {
        self.counters.frames_in += 1;
        let Some(client) = ClientFrame::parse(&frame) else {
            self.counters.not_carried += 1;
            return frame.recycle();
        };
        if !self.takes_from_lan(now, client, &frame) {
            return frame.recycle();
        }
        let ClientFrame { source, destination } = client;
        if !ethernet::is_group(source.address)
            && !is_loop_probe(source)
            // The host's own address without a tag stays. In a VLAN it goes with the VLAN, when nothing is sent there.
            && !self.translation.register(now, source, false, self.room())
        {
            return frame.recycle();
        }
        if NOT_CARRIED.contains(&destination.address) {
            self.counters.not_carried += 1;
            frame.recycle();
        } else if ethernet::is_group(destination.address) {
            let Some(frame) = self.send_by_gateway(destination.vlan, frame) else { return };
            let Some(frame) = self.resolve(now, true, frame) else { return };
            self.send_to_group(now, destination, frame);
        } else {
            let Some(frame) = self.resolve(now, false, frame) else { return };
            self.send_unicast(destination, frame);
        }
    }

    pub(super) fn send_unicast(&mut self, client: Key, mut frame: Buffer) {
        let found = self.translation.find(client, |originator| self.routing.metric(originator));
        let Some(destination) = found else {
            self.counters.client_not_known += 1;
            return frame.recycle();
        };
        // Of a client between two nodes, the node before knows more: an old version has it look where the client is.
        let ttvn =
            self.translation.ttvn_of(destination).wrapping_sub(u8::from(self.translation.is_roaming(client)));
        Unicast { ttl: TTL, ttvn, destination }.prepend(&mut frame);
        self.counters.unicast_sent += 1;
        self.send_to(destination, None, frame);
    }

    pub(super) fn send_broadcast(&mut self, now: Instant, mut frame: Buffer) {
        let (seqno, originator) = (self.broadcasts.next_seqno(), self.address());
        Broadcast { ttl: TTL - 1, seqno, originator }.prepend(&mut frame);
        self.counters.broadcasts_sent += 1;
        self.flood(now, originator, None, frame);
    }

    /// Takes a broadcast of another node.
    pub(super) fn receive_broadcast(&mut self, arrival: Arrival, mut packet: Buffer) {
        let Arrival { now, from, .. } = arrival;
        let Ok((header, _)) = Broadcast::parse(&packet) else {
            self.counters.malformed += 1;
            return packet.recycle();
        };
        if self.routing.is_own(header.originator) {
            self.counters.from_own += 1;
            return packet.recycle();
        }
        if header.ttl < 2 {
            self.counters.ttl_exceeded += 1;
            return packet.recycle();
        }
        if !self.routing.knows(header.originator) {
            self.counters.originator_not_known += 1;
            return packet.recycle();
        }
        if !self.broadcasts.is_first(now, header.originator, header.seqno) {
            self.counters.broadcast_duplicates += 1;
            return packet.recycle();
        }
        // Another node on the LAN from which it comes may have sent the same one.
        let checksum = crc32c(0, &packet[Broadcast::LEN..]);
        if self.bridge_loops.is_duplicate(now, Some(header.originator), checksum) {
            return packet.recycle();
        }
        Broadcast { ttl: header.ttl - 1, ..header }.emit(&mut packet);
        self.counters.broadcasts_forwarded += 1;
        self.flood(now, header.originator, self.routing.originator_of(from), packet.clone());
        packet.advance(Broadcast::LEN);
        if self.is_of_lan(header.originator, &packet) {
            packet.recycle();
        } else if self.hear_arp(now, false, &packet) {
            self.deliver(now, Some(header.originator), Encapsulation::Broadcast, packet);
        } else {
            packet.recycle();
        }
    }

    /// Sends a broadcast by every interface on which there is a neighbour that may not have it: none is sent where
    /// there is no neighbour, or only the originator or the one from whom it came.
    fn flood(&mut self, now: Instant, originator: Mac, from: Option<Mac>, packet: Buffer) {
        for interface in 0..self.interfaces.len() {
            if !self.routing.has_receivers(interface, originator, from) {
                self.counters.broadcasts_suppressed += 1;
                continue;
            }
            if packet.len() > self.mtus[interface] {
                // A broadcast is not sent in fragments.
                self.counters.too_long += 1;
                continue;
            }
            let transmissions = if self.interfaces[interface].wireless { TRANSMISSIONS_BY_RADIO } else { 1 };
            self.transmit(interface, packet.clone(), BROADCAST);
            if transmissions > 1 && !self.broadcasts.repeat(now, interface, packet.clone(), transmissions - 1)
            {
                self.counters.queue_full += 1;
            }
        }
        packet.recycle();
    }

    /// Hands a frame of a client elsewhere up. With its originator, it shows where the client is.
    pub(super) fn deliver(
        &mut self,
        now: Instant,
        originator: Option<Mac>,
        encapsulation: Encapsulation,
        frame: Buffer,
    ) {
        let Some(client) = ClientFrame::parse(&frame) else {
            self.counters.not_carried += 1;
            return frame.recycle();
        };
        if !self.takes_from_mesh(now, encapsulation, client, &frame) {
            return frame.recycle();
        }
        if let Some(originator) = originator
            && !is_loop_probe(client.source)
        {
            self.translation.hear(now, originator, client.source);
        }
        self.counters.frames_out += 1;
        self.out.up(Item::Frame(Frame::new(frame)));
    }
}
