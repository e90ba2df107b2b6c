//! Packets for one originator: whether they are for this node, and where they go else.

use hopcast_core::{Buffer, Instant};
use hopcast_wire::ethernet::{self, Mac};

use super::clients::ClientFrame;
use super::fragments::cut;
use super::{Arrival, Mesh};
use crate::bridge_loops::Encapsulation;
use crate::routing::Via;
use crate::translation::{Key, PendingTvlv};
use crate::wire::data::{Fragment, Place, SUBTYPE_DATA, Unicast, Unicast4Addr, UnicastTvlv};
use crate::wire::icmp::{self, Icmp};
use crate::wire::translation::{REQUEST, RESPONSE, TableData};
use crate::wire::tvlv::{self, Roaming, containers};
use crate::wire::{self, Header, PacketType, TTL};

impl Mesh {
    /// Sends a packet to an originator, by the route for packets that came by that interface.
    pub(super) fn send_to(&mut self, destination: Mac, came_by: Option<usize>, packet: Buffer) {
        let Some(via) = self.routing.next_hop(destination, came_by) else {
            self.counters.no_route += 1;
            return packet.recycle();
        };
        if packet.len() <= self.mtus[via.interface()] {
            self.transmit_to(via, packet);
        } else {
            self.send_fragments(destination, via, packet);
        }
    }

    fn transmit_to(&mut self, via: Via, packet: Buffer) {
        self.routing.note_sent(via);
        self.transmit(via.interface(), packet, via.address);
    }

    pub(super) fn send_fragments(&mut self, destination: Mac, via: Via, packet: Buffer) {
        // A fragment that is cut again could not be put together: fragments in fragments are malformed.
        let is_fragment = wire::packet_type(&packet) == Ok(PacketType::Fragment);
        let fragments =
            cut(&packet, self.mtus[via.interface()]).filter(|_| self.fragmentation && !is_fragment);
        let Some(fragments) = fragments else {
            self.counters.too_long += 1;
            return;
        };
        let (originator, seqno, total_len) =
            (self.address(), self.fragments.next_seqno(), packet.len() as u16);
        for (number, payload) in fragments {
            let place = Place { number, priority: 0 };
            let mut fragment = Buffer::copy_from(payload);
            Fragment { ttl: TTL, place, destination, originator, seqno, total_len }.prepend(&mut fragment);
            self.counters.fragments_sent += 1;
            self.transmit_to(via, fragment);
        }
    }

    /// Sends a packet on to its originator, one hop further. All packets for one originator have the hops that they may
    /// go, and the destination, in the same place.
    fn forward(&mut self, Arrival { from, .. }: Arrival, mut packet: Buffer) -> bool {
        let Some(destination) = packet.get(4..10).and_then(|bytes| bytes.first_chunk().copied()) else {
            self.counters.malformed += 1;
            return false;
        };
        if packet[2] < 2 {
            self.counters.ttl_exceeded += 1;
            packet.recycle();
            return false;
        }
        packet[2] -= 1;
        self.send_to(destination, Some(from.interface()), packet);
        true
    }

    /// Takes a packet with a client's frame.
    pub(super) fn receive_unicast(&mut self, arrival: Arrival, kind: PacketType, mut packet: Buffer) {
        let (four, with_source) =
            (kind == PacketType::Unicast4Addr, Unicast4Addr::parse(&packet).ok().map(|(header, _)| header));
        let len = if four { Unicast4Addr::LEN } else { Unicast::LEN };
        let frame = packet.get(len..).and_then(ClientFrame::parse);
        let Some(ClientFrame { destination, .. }) = frame.filter(|_| !four || with_source.is_some()) else {
            self.counters.malformed += 1;
            return packet.recycle();
        };
        if !self.redirect(&mut packet, destination) {
            self.counters.table_outdated += 1;
            return packet.recycle();
        }
        let is_own = packet.get(4..10).and_then(|bytes| bytes.first_chunk().copied());
        if !is_own.is_some_and(|address| self.routing.is_own(address)) {
            self.counters.unicast_forwarded += u64::from(self.forward(arrival, packet));
            return;
        }
        packet.advance(len);
        if self.is_of_lan(arrival.from.address, &packet) {
            return packet.recycle();
        }
        if !self.hear_arp(arrival.now, four, &packet) {
            return packet.recycle();
        }
        let data = with_source.filter(|header| header.subtype == SUBTYPE_DATA);
        let source = data.map(|header| header.source).filter(|&source| self.routing.knows(source));
        let encapsulation = if four { Encapsulation::Unicast4Addr } else { Encapsulation::Unicast };
        self.deliver(arrival.now, source, encapsulation, packet);
    }

    /// Changes the destination of a packet whose sender did not know where its client is now. Returns whether there is
    /// a destination.
    fn redirect(&mut self, packet: &mut Buffer, client: Key) -> bool {
        let &[_, _, _, ttvn, a, b, c, d, e, f, ..] = &packet[..] else { return false };
        let destination = [a, b, c, d, e, f];
        if ethernet::is_group(client.address) {
            return true;
        }
        if self.translation.has_left(client) {
            self.reroute(packet, destination, client);
            return true;
        }
        let known = if self.routing.is_own(destination) {
            self.translation.ttvn()
        } else if self.routing.knows(destination) {
            self.translation.ttvn_of(destination)
        } else {
            return false;
        };
        let is_older = ttvn.wrapping_sub(known) > 128;
        !is_older || self.reroute(packet, destination, client)
    }

    fn reroute(&mut self, packet: &mut Buffer, destination: Mac, client: Key) -> bool {
        let (to, ttvn) = if self.translation.is_here(client) {
            (self.address(), self.translation.ttvn())
        } else {
            let found = self.translation.find(client, |originator| self.routing.metric(originator));
            let Some(to) = found.filter(|&to| to != destination) else { return false };
            (to, self.translation.ttvn_of(to))
        };
        self.counters.unicast_rerouted += 1;
        readdress(packet, to, ttvn);
        true
    }

    /// Takes a fragment of a packet.
    pub(super) fn receive_fragment(&mut self, arrival: Arrival, packet: Buffer) {
        let Ok((header, payload)) = Fragment::parse(&packet) else {
            self.counters.malformed += 1;
            return packet.recycle();
        };
        if !self.routing.knows(header.originator) {
            self.counters.originator_not_known += 1;
            return packet.recycle();
        }
        if !self.routing.is_own(header.destination)
            && let Some(via) = self.routing.next_hop(header.destination, Some(arrival.from.interface()))
            && usize::from(header.total_len) > self.mtus[via.interface()]
        {
            self.counters.fragments_forwarded += u64::from(self.forward(arrival, packet));
            return;
        }
        self.counters.fragments_received += 1;
        let whole = self.fragments.receive(arrival.now, header, payload);
        packet.recycle();
        let Some(whole) = whole else { return };
        match wire::packet_type(&whole) {
            Ok(kind) => {
                self.receive_packet(Arrival { merged: true, ..arrival }, kind, Buffer::copy_from(&whole));
            }
            Err(_) => self.counters.malformed += 1,
        }
    }

    /// Takes an echo of the mesh's own, or an error.
    pub(super) fn receive_icmp(&mut self, arrival: Arrival, mut packet: Buffer) {
        let Ok((mut header, _)) = Icmp::parse(&packet) else {
            self.counters.malformed += 1;
            return packet.recycle();
        };
        if matches!(header.kind, icmp::ECHO_REQUEST | icmp::ECHO_REPLY) && packet.len() >= icmp::RECORDING_LEN
        {
            // Each hop adds the address by which the packet came to it, the last one too, and one that finds no room
            // drops the packet.
            let recorded = usize::from(header.recorded);
            if recorded >= icmp::MAX_RECORDED {
                self.counters.malformed += 1;
                return packet.recycle();
            }
            let place = Icmp::LEN + 6 * recorded;
            packet[place..place + 6].copy_from_slice(&self.interfaces[arrival.from.interface()].mac);
            header.recorded += 1;
            header.emit(&mut packet);
        }
        let for_this = self.routing.is_own(header.destination);
        let answer = match (for_this, header.kind) {
            (true, icmp::ECHO_REQUEST) => icmp::ECHO_REPLY,
            (true, icmp::ECHO_REPLY) => {
                self.counters.echo_replies += 1;
                return packet.recycle();
            }
            (false, icmp::ECHO_REQUEST) if header.ttl < 2 => icmp::TTL_EXCEEDED,
            (true, _) => {
                self.counters.not_supported += 1;
                return packet.recycle();
            }
            (false, _) => {
                self.forward(arrival, packet);
                return;
            }
        };
        let (destination, originator) = (header.originator, self.address());
        Icmp { ttl: TTL, kind: answer, destination, originator, ..header }.emit(&mut packet);
        self.counters.echoes_answered += 1;
        self.send_to(destination, None, packet);
    }

    /// Takes a packet of containers.
    pub(super) fn receive_containers(&mut self, arrival: Arrival, packet: Buffer) {
        let parsed = UnicastTvlv::parse(&packet);
        let found =
            parsed.ok().and_then(|(header, rest)| Some((header, rest.get(..usize::from(header.tvlv_len))?)));
        let Some((header, bytes)) = found else {
            self.counters.malformed += 1;
            return packet.recycle();
        };
        let for_this = self.routing.is_own(header.destination);
        let (mut done, mut has_table) = (for_this, false);
        for container in containers(bytes) {
            match (container.kind, container.version) {
                // No node sends two tables in a packet, which would have two answers.
                (tvlv::TRANSLATION, wire::translation::VERSION) if has_table => self.counters.malformed += 1,
                (tvlv::TRANSLATION, wire::translation::VERSION) => match TableData::parse(container.value) {
                    Ok(data) => {
                        has_table = true;
                        done |= self.receive_table(arrival.now, header, data);
                    }
                    Err(_) => self.counters.malformed += 1,
                },
                (tvlv::ROAMING, 1) if for_this => match Roaming::parse(container.value) {
                    Ok(Roaming { client, vlan }) if self.routing.knows(header.source) => {
                        let key = Key { vlan, address: client };
                        self.translation.receive_roaming(arrival.now, header.source, key);
                    }
                    Ok(_) => self.counters.originator_not_known += 1,
                    Err(_) => self.counters.malformed += 1,
                },
                _ => {}
            }
        }
        match done {
            true => packet.recycle(),
            false => _ = self.forward(arrival, packet),
        }
        self.send_pending();
    }

    /// Takes a request for a table, or the answer to one. Returns whether it need not go on.
    fn receive_table(&mut self, now: Instant, header: UnicastTvlv, data: TableData<'_>) -> bool {
        let for_this = self.routing.is_own(header.destination);
        match data.flags & 0x0f {
            REQUEST if self.routing.knows(header.source) => {
                let of = (!for_this).then_some(header.destination);
                self.translation.receive_request(now, header.source, of, data, self.max_packet())
            }
            RESPONSE if for_this && self.routing.knows(header.source) => {
                self.translation.receive_response(now, header.source, data);
                true
            }
            _ => false,
        }
    }

    /// Sends the containers that the translation table has for others.
    pub(super) fn send_pending(&mut self) {
        for PendingTvlv { source, destination, kind, value } in self.translation.take_pending() {
            let mut bytes = Vec::with_capacity(tvlv::HEADER + value.len());
            tvlv::put(&mut bytes, kind, 1, &value);
            let (source, tvlv_len) = (source.unwrap_or(self.address()), bytes.len() as u16);
            let mut packet = Buffer::copy_from(&bytes);
            UnicastTvlv { ttl: TTL, destination, source, tvlv_len }.prepend(&mut packet);
            self.send_to(destination, None, packet);
        }
    }
}

/// Sets the destination of a packet with a client's frame, and the version of its table.
fn readdress(packet: &mut [u8], destination: Mac, ttvn: u8) {
    packet[3] = ttvn;
    packet[4..10].copy_from_slice(&destination);
}
