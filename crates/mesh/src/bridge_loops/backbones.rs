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
pub(super) struct Backbone {
    pub(super) last_heard: Instant,
    /// Whether it was asked for its claims, and they are not complete yet.
    pub(super) asked: bool,
}

/// The nodes on a LAN.
#[derive(Debug, Default)]
pub(super) struct Backbones {
    /// The VLANs in which this node is one, with the number of periods that it still waits.
    own: BTreeMap<u16, u8>,
    others: BTreeMap<(Mac, u16), Backbone>,
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
        true
    }

    /// Takes a sign of another node. Returns it, and whether it is new; `None` if there is no room.
    pub(super) fn hear(&mut self, now: Instant, node: Mac, vlan: u16) -> Option<(&mut Backbone, bool)> {
        let is_new = !self.others.contains_key(&(node, vlan));
        if is_new && self.others.len() >= MAX_OTHERS {
            self.refused += 1;
            return None;
        }
        let heard = Backbone { last_heard: now, asked: false };
        Some((self.others.entry((node, vlan)).or_insert(heard), is_new))
    }

    #[inline]
    pub(super) fn contains(&self, node: Mac, vlan: u16) -> bool {
        self.others.contains_key(&(node, vlan))
    }

    /// Whether nodes may not know all claims of each other yet.
    pub(super) fn are_unsettled(&self) -> bool {
        self.own.values().any(|left| *left > 0) || self.others.values().any(|other| other.asked)
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
        self.own.values_mut().for_each(|left| *left = left.saturating_sub(1));
    }

    /// Forgets the nodes that have been silent for long, and returns them.
    pub(super) fn expire(&mut self, now: Instant) -> Vec<(Mac, u16)> {
        let over = self.others.iter().filter(|(_, other)| other.last_heard + TIMEOUT < now);
        let over: Vec<_> = over.map(|(&place, _)| place).collect();
        over.iter().for_each(|place| _ = self.others.remove(place));
        over
    }
}
