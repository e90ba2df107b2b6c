//! Counters of bridge-loop avoidance.

use super::BridgeLoops;

#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) frames_sent: u64,
    pub(super) frames_received: u64,
    pub(super) frames_foreign: u64,
    pub(super) frames_malformed: u64,
    pub(super) requests_unanswered: u64,
    pub(super) loops: u64,
    /// Frames to groups that were dropped while nodes may not know each other's claims.
    pub(super) held_back: u64,
    /// Those of clients that another node has claimed.
    pub(super) of_claimed: u64,
    /// Frames from the LAN whose client has just sent by the mesh.
    pub(super) racing: u64,
    /// Frames from the mesh whose source is a group.
    pub(super) from_groups: u64,
    /// Frames that came by two nodes.
    pub(super) duplicates: u64,
    /// Frames by nodes on the same LAN.
    pub(super) of_backbones: u64,
}

impl BridgeLoops {
    pub(crate) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let Self { counters, claims, backbones, .. } = self;
        report("claim_frames_sent", counters.frames_sent);
        report("claim_frames_received", counters.frames_received);
        report("claim_frames_foreign", counters.frames_foreign);
        report("claim_frames_malformed", counters.frames_malformed);
        report("claim_requests_unanswered", counters.requests_unanswered);
        report("claims", claims.len() as u64);
        report("claims_refused", claims.refused);
        report("backbones", backbones.len() as u64);
        report("backbones_refused", backbones.refused);
        report("bridge_loops_found", counters.loops);
        report("frames_before_claims", counters.held_back);
        report("frames_claimed_elsewhere", counters.of_claimed);
        report("frames_racing_claims", counters.racing);
        report("frames_from_groups", counters.from_groups);
        report("frames_by_two_nodes", counters.duplicates);
        report("frames_of_own_lan", counters.of_backbones);
    }
}
