//! What the nodes on a LAN say to each other.

use hopcast_core::Instant;
use hopcast_wire::ethernet::Mac;

use super::wire::{ClaimFrame, Message};
use super::{BridgeLoops, Change};
use crate::translation::Key;

impl BridgeLoops {
    /// Takes a claim frame. Returns whether it is one of another node; all others are clients' frames.
    pub(super) fn take_claim_frame(
        &mut self,
        now: Instant,
        frame: ClaimFrame,
        knows: impl Fn(Mac) -> bool,
    ) -> bool {
        let ClaimFrame { group, vlan, message } = frame;
        let node = message.node();
        if matches!(message, Message::LoopProbe { .. }) || node == self.own {
            return false;
        }
        if group != self.group {
            if !knows(node) {
                self.counters.frames_foreign += 1;
                return true;
            }
            // Nodes of one mesh agree on the greatest number.
            self.group = self.group.max(group);
        }
        self.counters.frames_received += 1;
        self.join(vlan);
        match message {
            Message::Claim { client, .. } => {
                if self.hear(now, node, vlan) {
                    self.claims.claim(now, Key { vlan, address: client }, node);
                }
            }
            Message::Unclaim { client, .. } => {
                if self.backbones.contains(node, vlan) {
                    self.claims.release(Key { vlan, address: client });
                }
            }
            Message::Announce { checksum, .. } => self.compare(now, node, vlan, checksum),
            Message::Request { of, .. } => {
                if of == self.own {
                    self.answer(vlan);
                }
            }
            Message::LoopProbe { .. } => {}
        }
        true
    }

    /// Takes a sign of another node on the LAN. Returns whether there is room for it.
    fn hear(&mut self, now: Instant, node: Mac, vlan: u16) -> bool {
        let Some((backbone, is_new)) = self.backbones.hear(now, node, vlan) else { return false };
        backbone.last_heard = now;
        if is_new {
            self.changes.push(Change::Came(node, vlan));
        }
        true
    }

    /// Takes the checksum of another node's claims, and asks for them if they are not those that are known here.
    fn compare(&mut self, now: Instant, node: Mac, vlan: u16, checksum: u16) {
        if !self.hear(now, node, vlan) {
            return;
        }
        let asked = self.claims.checksum(node, vlan) != checksum;
        if asked {
            self.claims.release_all(node, vlan);
            self.send(vlan, Message::Request { node: self.own, of: node });
        }
        if let Some((backbone, _)) = self.backbones.hear(now, node, vlan) {
            backbone.asked = asked;
        }
    }

    /// Repeats the node's claims in a VLAN.
    fn answer(&mut self, vlan: u16) {
        let Some(left) = self.answers_left.checked_sub(1) else {
            self.counters.requests_unanswered += 1;
            return;
        };
        self.answers_left = left;
        for client in self.claims.of(self.own, vlan) {
            self.send(vlan, Message::Claim { node: self.own, client: client.address });
        }
        self.announce(vlan);
    }

    /// Claims a client. The node need not wait to do so: nobody else knows of the client.
    pub(super) fn claim(&mut self, now: Instant, client: Key) {
        self.backbones.join(client.vlan, false);
        if self.claims.claim(now, client, self.own) {
            self.send(client.vlan, Message::Claim { node: self.own, client: client.address });
        }
    }

    pub(super) fn unclaim(&mut self, client: Key) {
        self.claims.release(client);
        self.send(client.vlan, Message::Unclaim { node: self.own, client: client.address });
    }

    /// Has the node be on the LAN of a VLAN.
    pub(super) fn join(&mut self, vlan: u16) {
        if self.backbones.join(vlan, true) {
            self.announce(vlan);
        }
    }

    pub(super) fn announce(&mut self, vlan: u16) {
        let checksum = self.claims.checksum(self.own, vlan);
        self.send(vlan, Message::Announce { node: self.own, checksum });
    }

    pub(super) fn send(&mut self, vlan: u16, message: Message) {
        self.counters.frames_sent += 1;
        self.out.push_back(ClaimFrame { group: self.group, vlan, message }.bytes());
    }
}
