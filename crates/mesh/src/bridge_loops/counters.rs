//! Counters of bridge-loop avoidance.

use super::BridgeLoops;

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) claim_frames_sent: u64,
    pub(super) claim_frames_received: u64,
    pub(super) claim_frames_foreign: u64,
    pub(super) claim_frames_malformed: u64,
    pub(super) claim_requests_unanswered: u64,
    pub(super) bridge_loops_found: u64,
    /// Frames to groups that were dropped while nodes may not know each other's claims.
    pub(super) frames_before_claims: u64,
    /// Those of clients that another node has claimed.
    pub(super) frames_claimed_elsewhere: u64,
    /// Frames from the LAN whose client has just sent by the mesh.
    pub(super) frames_racing_claims: u64,
    /// Frames from the mesh whose source is a group.
    pub(super) frames_from_groups: u64,
    /// Frames that came by two nodes.
    pub(super) frames_by_two_nodes: u64,
    /// Frames by nodes on the same LAN.
    pub(super) frames_of_own_lan: u64,
}

impl BridgeLoops {
    pub(crate) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let Self { counters, claims, backbones, .. } = self;
        report("claim_frames_sent", counters.claim_frames_sent);
        report("claim_frames_received", counters.claim_frames_received);
        report("claim_frames_foreign", counters.claim_frames_foreign);
        report("claim_frames_malformed", counters.claim_frames_malformed);
        report("claim_requests_unanswered", counters.claim_requests_unanswered);
        report("claims", claims.len() as u64);
        report("claims_refused", claims.refused);
        report("backbones", backbones.len() as u64);
        report("backbones_refused", backbones.refused);
        report("bridge_loops_found", counters.bridge_loops_found);
        report("frames_before_claims", counters.frames_before_claims);
        report("frames_claimed_elsewhere", counters.frames_claimed_elsewhere);
        report("frames_racing_claims", counters.frames_racing_claims);
        report("frames_from_groups", counters.frames_from_groups);
        report("frames_by_two_nodes", counters.frames_by_two_nodes);
        report("frames_of_own_lan", counters.frames_of_own_lan);
    }
}
