//! The nodes whose interfaces above are bridged to one LAN, by VLAN: backbone gateways.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant};
use hopcast_wire::ethernet::Mac;

/// Time for which a node on the LAN is kept that announces nothing (`BATADV_BLA_BACKBONE_TIMEOUT`).
const TIMEOUT: Duration = Duration::from_secs(60);
/// Number of periods that a node which has just come to a LAN carries no broadcasts (`BATADV_BLA_WAIT_PERIODS`).
const WAITING_PERIODS: u8 = 3;
/// Maximum number of other nodes on the LAN, each VLAN counted, some 20 kB. Chosen: far more than share one.
const MAX_OTHERS: usize = 256;
/// Maximum number of VLANs in which the node is on a LAN. Chosen: each costs a frame in every period.
const MAX_VLANS: usize = 256;

/// Another node on the LAN.
#[derive(Clone, Copy, Debug)]
struct Backbone {
    last_heard: Instant,
    /// Whether it was asked for its claims, and they are not complete yet.
    asked: bool,
    /// Whether there was no room for one of its claims since it was asked.
    incomplete: bool,
}

/// Result of a sign of another node.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Heard {
    /// It is known.
    Again,
    /// It is new, in place of another if there was no room.
    New { replaced: Option<(Mac, u16)> },
    /// There is no room for it.
    Refused,
}

/// The nodes on a LAN.
#[derive(Debug, Default)]
pub(super) struct Backbones {
    /// The VLANs in which this node is one, with the number of periods that it still waits.
    own: BTreeMap<u16, u8>,
    others: BTreeMap<(Mac, u16), Backbone>,
    /// Number of the own VLANs that wait, and of the others that were asked.
    unsettled: usize,
    /// Number of nodes and VLANs for which there was no room.
    pub(super) refused: u64,
}

impl Backbones {
    /// Has this node be on the LAN of a VLAN, and wait if it was not. Returns whether it is new there.
    pub(super) fn join(&mut self, vlan: u16, waits: bool) -> bool {
        if self.own.contains_key(&vlan) {
            return false;
        }
        if self.own.len() >= MAX_VLANS {
            self.refused += 1;
            return false;
        }
        self.own.insert(vlan, if waits { WAITING_PERIODS } else { 0 });
        self.unsettled += usize::from(waits);
        true
    }

    /// Takes a sign of another node. If there is no room, a node of the mesh takes the place of one that is not in it.
    pub(super) fn hear(
        &mut self,
        now: Instant,
        node: Mac,
        vlan: u16,
        in_mesh: impl Fn(Mac) -> bool,
    ) -> Heard {
        if let Some(backbone) = self.others.get_mut(&(node, vlan)) {
            backbone.last_heard = now;
            return Heard::Again;
        }
        let mut replaced = None;
        if self.others.len() >= MAX_OTHERS {
            if in_mesh(node) {
                replaced = self.others.keys().copied().find(|(other, _)| !in_mesh(*other));
            }
            let Some(other) = replaced else {
                self.refused += 1;
                return Heard::Refused;
            };
            self.remove(other);
        }
        self.others.insert((node, vlan), Backbone { last_heard: now, asked: false, incomplete: false });
        Heard::New { replaced }
    }

    fn remove(&mut self, place: (Mac, u16)) {
        if let Some(backbone) = self.others.remove(&place) {
            self.unsettled -= usize::from(backbone.asked);
        }
    }

    #[inline]
    pub(super) fn contains(&self, node: Mac, vlan: u16) -> bool {
        self.others.contains_key(&(node, vlan))
    }

    /// Notes that there was no room for a claim of a node.
    pub(super) fn set_incomplete(&mut self, node: Mac, vlan: u16) {
        if let Some(backbone) = self.others.get_mut(&(node, vlan)) {
            backbone.incomplete = true;
        }
    }

    pub(super) fn is_incomplete(&self, node: Mac, vlan: u16) -> bool {
        self.others.get(&(node, vlan)).is_some_and(|backbone| backbone.incomplete)
    }

    /// Notes that a node is asked for its claims, or that nothing of them is missing for which there is room.
    pub(super) fn set_asked(&mut self, node: Mac, vlan: u16, asked: bool) {
        let Some(backbone) = self.others.get_mut(&(node, vlan)) else { return };
        self.unsettled = self.unsettled + usize::from(asked) - usize::from(backbone.asked);
        backbone.asked = asked;
        backbone.incomplete &= !asked;
    }

    /// Whether nodes may not know all claims of each other yet.
    #[inline]
    pub(super) const fn are_unsettled(&self) -> bool {
        self.unsettled > 0
    }

    /// The VLANs in which this node is on a LAN.
    pub(super) fn vlans(&self) -> Vec<u16> {
        self.own.keys().copied().collect()
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (Mac, u16, Instant)> {
        self.others.iter().map(|(&(node, vlan), other)| (node, vlan, other.last_heard))
    }

    pub(super) fn len(&self) -> usize {
        self.others.len()
    }

    /// Notes that a period is over.
    pub(super) fn pass_period(&mut self) {
        for left in self.own.values_mut().filter(|left| **left > 0) {
            *left -= 1;
            self.unsettled -= usize::from(*left == 0);
        }
    }

    /// Forgets the nodes that have been silent for long, and returns them.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<(Mac, u16)> {
        let over = self.others.iter().filter(|(_, other)| other.last_heard + TIMEOUT < now);
        let over: Vec<_> = over.map(|(&place, _)| place).collect();
        over.iter().for_each(|&place| self.remove(place));
        over
    }
}
