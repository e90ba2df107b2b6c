//! Claims and backbones, as `batctl cl` and `bbt` show them.

use hopcast_core::Instant;
use hopcast_wire::ethernet::Mac;

use super::BridgeLoops;
use crate::translation::Key;

/// A client's claim, as `batctl cl` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClaimStatus {
    /// The client.
    pub client: Key,
    /// The node that has claimed it.
    pub node: Mac,
    /// Checksum of that node's claims in the VLAN.
    pub checksum: u16,
}

/// Another node on the LAN, as `batctl bbt` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackboneStatus {
    /// The node.
    pub node: Mac,
    /// The VLAN, as in the [translation table](crate::wire::translation).
    pub vlan: u16,
    /// Time at which it was heard last.
    pub last_heard: Instant,
    /// Checksum of its claims, as far as they are known here.
    pub checksum: u16,
}

impl BridgeLoops {
    /// The claims, as `batctl cl` shows them.
    pub(crate) fn claims(&self) -> impl Iterator<Item = ClaimStatus> {
        self.claims.iter().map(|(client, node)| {
            let checksum = self.claims.checksum(node, client.vlan);
            ClaimStatus { client, node, checksum }
        })
    }

    /// The other nodes on the LAN, as `batctl bbt` shows them.
    pub(crate) fn backbones(&self) -> impl Iterator<Item = BackboneStatus> {
        self.backbones.iter().map(|(node, vlan, last_heard)| {
            let checksum = self.claims.checksum(node, vlan);
            BackboneStatus { node, vlan, last_heard, checksum }
        })
    }
}
