//! Exchange of claim frames with the other nodes on a LAN.

use hopcast_core::Instant;
use hopcast_wire::ethernet::Mac;

use super::backbones::Heard;
use super::wire::{ClaimFrame, Message};
use super::{BackboneChange, BridgeLoops};
use crate::translation::Key;

impl BridgeLoops {
    /// Takes a claim frame. Returns whether it is one of another node; all others are clients' frames.
    pub(super) fn take_claim_frame(
        &mut self,
        now: Instant,
        frame: ClaimFrame,
        in_mesh: impl Fn(Mac) -> bool,
    ) -> bool {
        let ClaimFrame { group, vlan, message } = frame;
        let node = message.node();
        if matches!(message, Message::LoopProbe { .. }) || node == self.own {
            return false;
        }
        if group != self.group {
            if !in_mesh(node) {
                self.counters.claim_frames_foreign += 1;
                return true;
            }
            // Nodes of one mesh agree on the greatest number.
            self.group = self.group.max(group);
        }
        self.counters.claim_frames_received += 1;
        self.join(vlan);
        match message {
            Message::Claim { client, .. } => {
                let client = Key { vlan, address: client };
                if self.hear(now, node, vlan, in_mesh) && !self.claims.claim(now, client, node) {
                    self.backbones.set_incomplete(node, vlan);
                }
            }
            Message::Unclaim { client, .. } => {
                if self.backbones.contains(node, vlan) {
                    self.claims.release(Key { vlan, address: client });
                }
            }
            Message::Announce { checksum, .. } => {
                if self.hear(now, node, vlan, in_mesh) {
                    self.compare(node, vlan, checksum);
                }
            }
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
    fn hear(&mut self, now: Instant, node: Mac, vlan: u16, in_mesh: impl Fn(Mac) -> bool) -> bool {
        match self.backbones.hear(now, node, vlan, in_mesh) {
            Heard::Again => {}
            Heard::New { replaced } => {
                if let Some((other, vlan)) = replaced {
                    self.forget(other, vlan);
                }
                self.changes.push(BackboneChange::Appeared(node, vlan));
            }
            Heard::Refused => return false,
        }
        true
    }

    /// Forgets the claims of a node that is on the LAN no more.
    pub(super) fn forget(&mut self, node: Mac, vlan: u16) {
        self.claims.release_all(node, vlan);
        self.changes.push(BackboneChange::Removed(node, vlan));
    }

    /// Takes the checksum of another node's claims, and asks for them if they are not those that are known here.
    fn compare(&mut self, node: Mac, vlan: u16, checksum: u16) {
        // While there is no room for some of them, they cannot be the same.
        let no_room = self.backbones.is_incomplete(node, vlan) && self.claims.is_full_of_others();
        let asked = self.claims.checksum(node, vlan) != checksum && !no_room;
        if asked {
            self.claims.release_all(node, vlan);
            self.send(vlan, Message::Request { node: self.own, of: node });
        }
        self.backbones.set_asked(node, vlan, asked);
    }

    /// Repeats the node's claims in a VLAN.
    fn answer(&mut self, vlan: u16) {
        let Some(left) = self.answers_left.checked_sub(1) else {
            self.counters.claim_requests_unanswered += 1;
            return;
        };
        self.answers_left = left;
        for client in self.claims.of(self.own, vlan) {
            self.send(vlan, Message::Claim { node: self.own, client: client.address });
        }
        self.announce(vlan);
    }

    /// Claims a client, and returns whether there is room. The node need not wait to do so: nobody else knows of the
    /// client.
    pub(super) fn claim(&mut self, now: Instant, client: Key) -> bool {
        self.backbones.join(client.vlan, false);
        let claimed = self.claims.claim(now, client, self.own);
        if claimed {
            self.send(client.vlan, Message::Claim { node: self.own, client: client.address });
        }
        claimed
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
        self.counters.claim_frames_sent += 1;
        self.out.push_back(ClaimFrame { group: self.group, vlan, message }.bytes());
    }
}
