//! Frames of a LAN that other nodes are bridged to, too; see [`bridge_loops`](crate::bridge_loops).

use hopcast_core::{Buffer, Frame, Instant, Item};
use hopcast_wire::ethernet::Mac;

use super::Mesh;
use super::clients::ClientFrame;
use crate::bridge_loops::{BackboneChange, BackboneStatus, ClaimStatus, Encapsulation};
use crate::translation::crc32c;

impl Mesh {
    /// The claims of the nodes on the LAN, as `batctl cl` shows them.
    pub fn claims(&self) -> Vec<ClaimStatus> {
        self.bridge_loops.claims().collect()
    }

    /// The other nodes on the LAN, as `batctl bbt` shows them.
    pub fn backbones(&self) -> Vec<BackboneStatus> {
        self.bridge_loops.backbones().collect()
    }

    /// Whether a frame of the LAN goes into the mesh.
    pub(super) fn takes_from_lan(&mut self, now: Instant, client: ClientFrame, frame: &[u8]) -> bool {
        let (Self { bridge_loops, routing, .. }, ends) = (&mut *self, (client.source, client.destination));
        let taken = bridge_loops.take_from_lan(now, frame, ends, |node| routing.knows(node));
        self.apply_bridge_loops();
        taken
    }

    /// Whether a frame of the mesh goes to the LAN.
    pub(super) fn takes_from_mesh(
        &mut self,
        now: Instant,
        encapsulation: Encapsulation,
        client: ClientFrame,
        frame: &[u8],
    ) -> bool {
        let ends = (client.source, client.destination);
        let taken = self.bridge_loops.take_from_mesh(now, encapsulation, ends, || crc32c(0, frame));
        self.apply_bridge_loops();
        taken
    }

    /// Whether the originator of a frame is on the same LAN, from which this node has the frame.
    pub(super) fn is_of_lan(&mut self, node: Mac, frame: &[u8]) -> bool {
        let client = ClientFrame::parse(frame);
        client.is_some_and(|client| self.bridge_loops.refuses(node, client.source.vlan))
    }

    /// Sends what is to be sent to the LAN. What nodes on it announce is not in the table: their clients are there.
    pub(super) fn apply_bridge_loops(&mut self) {
        while let Some(frame) = self.bridge_loops.next_frame() {
            self.send_up(frame);
        }
        for change in self.bridge_loops.take_changes() {
            match change {
                BackboneChange::Appeared(node, vlan) => self.translation.exclude(node, vlan),
                BackboneChange::Removed(node, vlan) => self.translation.include(node, vlan),
            }
        }
    }

    fn send_up(&mut self, frame: Buffer) {
        self.out.up(Item::Frame(Frame::new(frame)));
    }
}
