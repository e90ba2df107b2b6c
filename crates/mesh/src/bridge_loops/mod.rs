//! Bridge-loop avoidance: nodes whose interfaces above are bridged to one LAN bring each frame to it once, and none
//! back into the mesh.
//!
//! ```text
//!    mesh:   ... c ------ a        b ------ c ...
//!                         |        |
//!    LAN:        ---------+--------+------ host ---
//! ```
//!
//! - The nodes on a LAN, *backbone gateways*, find each other by announcements that each sends there every ten seconds,
//!   in each VLAN. What one of them floods, the others do not take from the mesh: they have it from the LAN.
//! - One of them is responsible for each client in the mesh: the first to which a frame of the client comes *claims*
//!   it, and tells the others. The others bring none of its broadcasts to the LAN, and none that they hear on the LAN
//!   into the mesh. A frame for one station is carried where it comes, and moves the claim there.
//! - An announcement has a checksum of the claims of its sender. Whoever knows others asks for all of them, and carries
//!   no broadcasts until it has them. A node that has just come carries none for three periods.
//! - A host on the LAN is claimed by nobody. Each node floods its broadcasts, and whoever gets the same one by two
//!   nodes drops the second.
//! - Every minute a node sends a probe to the LAN from an address that it has made up. If that comes back by the mesh,
//!   there is a loop that claims do not open, such as by a LAN that is part of two meshes.
//!
//! | file | state |
//! |---|---|
//! | `wire` | claim frames |
//! | `claims` | which node has claimed which client |
//! | `backbones` | the nodes on the LAN |
//! | `duplicates` | the broadcasts that came last |
//! | `exchange` | no state: the exchange of claim frames |
//!
//! # Scope and departures
//!
//! - A node is on the LAN from its start. The kernel's is when a frame comes, such as the first that Linux sends by an
//!   interface when it is set up.
//! - Claims, nodes on the LAN, VLANs, and answers to requests have bounds; the kernel's is its memory.
//! - A frame to a group that came in a multicast packet is brought to the LAN by the node that has claimed its sender
//!   alone, as one that was flooded; the kernel brings it at each node that has it.
//! - A frame from the mesh whose source is a group is dropped; the kernel leaves that to the bridge.
//! - If there is no room for a node on the LAN, it takes the place of one that is not in the mesh. A node whose claims
//!   find no room is not asked for them again until there is room.
//! - A request to a node that is not the frame's destination, and an announcement without a checksum, are malformed
//!   before their sender is taken for a node on the LAN.

mod backbones;
mod claims;
mod counters;
mod duplicates;
mod exchange;
mod status;
#[cfg(test)]
mod tests;
mod wire;

use std::collections::VecDeque;

use hopcast_core::{Buffer, Duration, Instant, Stream};
use hopcast_wire::ethernet::{self, Mac};

use crate::translation::Key;
use backbones::Backbones;
use claims::Claims;
use counters::Counters;
use duplicates::Duplicates;
pub use status::{BackboneStatus, ClaimStatus};
pub(crate) use wire::is_loop_probe;
use wire::{Found, Message, PROBE};

/// Time from one announcement to the next (`BATADV_BLA_PERIOD_LENGTH`).
pub(crate) const PERIOD: Duration = Duration::from_secs(10);
/// Number of periods from one loop probe to the next (`BATADV_BLA_LOOPDETECT_PERIODS`).
const PROBE_PERIODS: u8 = 6;
/// Time after which a probe that comes back is taken for chance (`BATADV_BLA_LOOPDETECT_TIMEOUT`).
const PROBE_TIMEOUT: Duration = Duration::from_secs(3);
/// Time after the last frame of a client by the mesh within which one on the LAN is a copy of it, and later a sign that
/// the client has come to the LAN (`batadv_bla_tx`).
const RACE: Duration = Duration::from_millis(100);
/// Maximum number of requests that are answered in a period. Chosen: each other node asks once in a period, and an
/// answer is a frame for each claim; the kernel answers all.
const MAX_ANSWERS: u8 = 16;

/// How a frame came through the mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encapsulation {
    /// It was flooded.
    Broadcast,
    /// It was sent to this node: to each that wants it, if it is for a group.
    Unicast,
    /// It was sent to this node alone, also if it is for a group: to a gateway.
    Unicast4Addr,
}

/// A change of the nodes on the LAN of a VLAN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BackboneChange {
    Appeared(Mac, u16),
    Removed(Mac, u16),
}

/// The state of bridge-loop avoidance in a node.
pub(crate) struct BridgeLoops {
    enabled: bool,
    own: Mac,
    group: u16,
    backbones: Backbones,
    claims: Claims,
    duplicates: Duplicates,
    /// Address of the last probe, and the time at which it was sent.
    last_probe: Option<(Mac, Instant)>,
    periods_to_probe: u8,
    answers_left: u8,
    random: Stream,
    out: VecDeque<Buffer>,
    changes: Vec<BackboneChange>,
    counters: Counters,
}

impl BridgeLoops {
    /// Nothing is known yet of the LAN of the node that has this address in the mesh.
    pub(crate) fn new(enabled: bool, own: Mac, random: Stream) -> Self {
        Self {
            enabled,
            own,
            group: wire::crc16(own),
            backbones: Backbones::default(),
            claims: Claims::new(own),
            duplicates: Duplicates::default(),
            last_probe: None,
            periods_to_probe: PROBE_PERIODS,
            answers_left: MAX_ANSWERS,
            random,
            out: VecDeque::new(),
            changes: Vec::new(),
            counters: Counters::default(),
        }
    }

    pub(crate) const fn is_enabled(&self) -> bool {
        self.enabled
    }

    /// Has the node be on the LAN of what has no VLAN; of others when a frame comes.
    pub(crate) fn start(&mut self) {
        self.join(0);
    }

    /// The next frame that is to be sent to the LAN.
    pub(crate) fn next_frame(&mut self) -> Option<Buffer> {
        self.out.pop_front()
    }

    /// Takes the changes of the backbones since the last call.
    pub(crate) fn take_changes(&mut self) -> Vec<BackboneChange> {
        std::mem::take(&mut self.changes)
    }

    /// Whether a node is on the LAN of this VLAN, too.
    #[inline]
    pub(crate) fn is_backbone(&self, node: Mac, vlan: u16) -> bool {
        self.backbones.contains(node, vlan)
    }

    /// Whether the frame's originator is a backbone of this VLAN; if so, the frame is counted and dropped, since the
    /// LAN brings it.
    pub(crate) fn refuses(&mut self, node: Mac, vlan: u16) -> bool {
        let found = self.is_backbone(node, vlan);
        self.counters.frames_of_own_lan += u64::from(found);
        found
    }

    /// Whether another node on the LAN has claimed a client.
    pub(crate) fn is_claimed_elsewhere(&self, client: Key) -> bool {
        self.claims.find(client).is_some_and(|claim| claim.node != self.own)
    }

    /// Takes a flooded frame, of this checksum. Returns whether it has come by another node just before.
    pub(crate) fn is_duplicate(&mut self, now: Instant, originator: Option<Mac>, checksum: u32) -> bool {
        let found = self.duplicates.is_duplicate(now, originator, checksum);
        self.counters.frames_by_two_nodes += u64::from(found);
        found
    }

    /// Takes a frame from the LAN. Returns whether it goes into the mesh (`batadv_bla_tx`).
    pub(crate) fn take_from_lan(
        &mut self,
        now: Instant,
        frame: &[u8],
        (source, destination): (Key, Key),
        in_mesh: impl Fn(Mac) -> bool,
    ) -> bool {
        if !self.enabled {
            return true;
        }
        match wire::read(frame) {
            Found::Malformed => {
                self.counters.claim_frames_malformed += 1;
                return false;
            }
            Found::Frame(frame) if self.take_claim_frame(now, frame, in_mesh) => return false,
            Found::Frame(_) | Found::Other => {}
        }
        let for_group = ethernet::is_group(destination.address);
        if for_group && self.backbones.are_unsettled() {
            self.counters.frames_before_claims += 1;
            return false;
        }
        match self.claims.find(source) {
            Some(claim) if claim.node == self.own => {
                if claim.last_used + RACE >= now {
                    self.counters.frames_racing_claims += 1;
                    return false;
                }
                self.unclaim(source);
            }
            Some(_) if for_group => {
                self.counters.frames_claimed_elsewhere += 1;
                return false;
            }
            Some(_) | None => {}
        }
        self.join(source.vlan);
        true
    }

    /// Takes a frame from the mesh. Returns whether it goes to the LAN (`batadv_bla_rx`).
    pub(crate) fn take_from_mesh(
        &mut self,
        now: Instant,
        encapsulation: Encapsulation,
        (source, destination): (Key, Key),
        checksum: impl FnOnce() -> u32,
    ) -> bool {
        if !self.enabled {
            return true;
        }
        if let Some((_, sent)) = self.last_probe.filter(|(address, _)| *address == source.address) {
            if sent + PROBE_TIMEOUT >= now {
                self.counters.bridge_loops_found += 1;
                self.join(source.vlan);
            }
            return false;
        }
        if ethernet::is_group(source.address) {
            self.counters.frames_from_groups += 1;
            return false;
        }
        let is_shared =
            ethernet::is_group(destination.address) && encapsulation != Encapsulation::Unicast4Addr;
        if is_shared && self.backbones.are_unsettled() {
            self.counters.frames_before_claims += 1;
            return false;
        }
        if is_shared && encapsulation == Encapsulation::Unicast && self.is_duplicate(now, None, checksum()) {
            return false;
        }
        match self.claims.find(source) {
            Some(claim) if claim.node == self.own => self.claims.refresh(now, source),
            Some(_) if is_shared => {
                self.counters.frames_claimed_elsewhere += 1;
                return false;
            }
            // Without a claim each node on the LAN would bring it.
            Some(_) | None => return self.claim(now, source) || !is_shared,
        }
        true
    }

    /// Does what is due in each period.
    pub(crate) fn pass_period(&mut self, now: Instant) {
        self.claims.expired(now).into_iter().for_each(|client| self.unclaim(client));
        for (node, vlan) in self.backbones.expire(now) {
            self.forget(node, vlan);
        }
        self.answers_left = MAX_ANSWERS;
        self.periods_to_probe -= 1;
        let probe = (self.periods_to_probe == 0).then(|| {
            let mut address = [0; 6];
            self.random.fill(&mut address);
            address[..2].copy_from_slice(&PROBE);
            address
        });
        if let Some(address) = probe {
            (self.last_probe, self.periods_to_probe) = (Some((address, now)), PROBE_PERIODS);
        }
        for vlan in self.backbones.vlans() {
            self.announce(vlan);
            if let Some(address) = probe {
                self.send(vlan, Message::LoopProbe { node: self.own, address });
            }
        }
        self.backbones.pass_period();
    }
}
