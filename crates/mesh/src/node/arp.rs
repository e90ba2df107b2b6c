//! ARP of clients, answered for others or asked of the nodes that keep entries; see [`arp_table`](crate::arp_table).

use hopcast_core::{Buffer, Frame, Instant, Item};
use hopcast_wire::arp::{Operation, Packet};

use super::Mesh;
use crate::arp_table::{ArpEntry, Name, answer};
use crate::translation::Key;
use crate::wire::data::{SUBTYPE_ARP_CACHE_REPLY, SUBTYPE_ARP_GET, SUBTYPE_ARP_PUT};

impl Mesh {
    /// The node's entries of the distributed ARP table, as `batctl dc` shows them.
    pub fn arp_table(&self) -> Vec<ArpEntry> {
        self.arp_table.entries().collect()
    }

    /// Looks at a frame of a client, for all or for one station. Gives it back if it is sent on now.
    pub(super) fn resolve(&mut self, now: Instant, for_all: bool, frame: Buffer) -> Option<Buffer> {
        let Some((vlan, packet)) = self.arp_table.read(&frame) else { return Some(frame) };
        match packet.operation {
            Operation::Request => self.resolve_request(now, for_all, vlan, &packet, frame),
            Operation::Reply => {
                if !for_all {
                    self.publish(now, vlan, &packet, &frame);
                }
                Some(frame)
            }
            Operation::Other(_) => Some(frame),
        }
    }

    fn resolve_request(
        &mut self,
        now: Instant,
        for_all: bool,
        vlan: u16,
        request: &Packet,
        frame: Buffer,
    ) -> Option<Buffer> {
        self.arp_table.learn(now, vlan, request.sender);
        let name = (vlan, request.target.address);
        if let Some(owner) = self.arp_table.find(name) {
            self.counters.arp_requests_answered += 1;
            frame.recycle();
            let owner_key = Key { vlan, address: owner };
            // A client of this node answers itself; for one that another node on the LAN has claimed, that node does.
            if !self.translation.is_here(owner_key) && !self.bridge_loops.is_claimed_elsewhere(owner_key) {
                self.counters.frames_out += 1;
                self.out.up(Item::Frame(Frame::new(answer(vlan, request, owner))));
            }
            return None;
        }
        let asked = self.send_to_keepers(name, SUBTYPE_ARP_GET, &frame);
        self.counters.arp_gets_sent += asked;
        match (asked > 0, for_all) {
            (false, _) => Some(frame),
            (true, true) => self.arp_table.wait(now, name, frame),
            (true, false) => {
                frame.recycle();
                None
            }
        }
    }

    /// Has the entries of both stations of an answer kept.
    fn publish(&mut self, now: Instant, vlan: u16, reply: &Packet, frame: &Buffer) {
        for station in [reply.sender, reply.target] {
            self.arp_table.learn(now, vlan, station);
            self.counters.arp_puts_sent +=
                self.send_to_keepers((vlan, station.address), SUBTYPE_ARP_PUT, frame);
        }
    }

    /// Sends a frame to those who keep an entry. Returns to how many.
    fn send_to_keepers(&mut self, name: Name, subtype: u8, frame: &Buffer) -> u64 {
        let keepers = self.arp_table.keepers(name).into_iter();
        let reached: Vec<_> = keepers.filter(|node| self.routing.next_hop(*node, None).is_some()).collect();
        reached.iter().for_each(|node| self.send_with_source(*node, subtype, frame.clone()));
        reached.len() as u64
    }

    /// Floods the requests that were not answered in time.
    pub(super) fn flood_requests(&mut self, now: Instant) {
        while let Some((known, request)) = self.arp_table.due(now) {
            if known {
                self.counters.arp_requests_resolved += 1;
                request.recycle();
            } else {
                self.send_broadcast(now, request);
            }
        }
    }

    /// Looks at a frame from the mesh, in a packet with its sender or not. Returns whether it is handed up.
    pub(super) fn hear_arp(&mut self, now: Instant, with_source: bool, frame: &[u8]) -> bool {
        let Some((vlan, packet)) = self.arp_table.read(frame) else { return true };
        match packet.operation {
            Operation::Request => !self.answer_for_another(now, with_source, vlan, &packet),
            Operation::Reply => {
                let is_wanted = self.take_reply(now, vlan, &packet);
                self.counters.arp_replies_taken += u64::from(!is_wanted);
                is_wanted
            }
            Operation::Other(_) => true,
        }
    }

    /// Answers a request that has come. Returns whether there was an answer to send.
    fn answer_for_another(&mut self, now: Instant, with_source: bool, vlan: u16, request: &Packet) -> bool {
        self.arp_table.learn(now, vlan, request.sender);
        let Some(owner) = self.arp_table.find((vlan, request.target.address)) else { return false };
        let client = Key { vlan, address: request.sender.mac };
        let found = self.translation.find(client, |originator| self.routing.metric(originator));
        let Some(node) = found else { return false };
        self.counters.arp_cache_replies_sent += 1;
        let reply = answer(vlan, request, owner);
        // Who asks without its address may not know packets with one.
        match with_source {
            true => self.send_with_source(node, SUBTYPE_ARP_CACHE_REPLY, reply),
            false => self.send_unicast(client, reply),
        }
        true
    }

    /// Takes an answer. Returns whether it is news for a client of this node.
    fn take_reply(&mut self, now: Instant, vlan: u16, reply: &Packet) -> bool {
        let is_known = self.arp_table.find((vlan, reply.sender.address)) == Some(reply.sender.mac);
        self.arp_table.learn(now, vlan, reply.sender);
        self.arp_table.learn(now, vlan, reply.target);
        // Where another node on the LAN has claimed the sender, that node brings the answer there.
        let elsewhere = self.bridge_loops.is_claimed_elsewhere(Key { vlan, address: reply.sender.mac });
        let is_here = |address| self.translation.is_here(Key { vlan, address });
        !is_known && !elsewhere && is_here(reply.target.mac) && !is_here(reply.sender.mac)
    }
}
