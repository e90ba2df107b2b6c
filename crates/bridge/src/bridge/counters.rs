//! Counters of a bridge.

/// Figures of a bridge. A frame is counted once where it is taken, and once more for each port that it leaves by, or
/// for the reason for which it leaves by none.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Frames that have arrived.
    pub(super) frames_in: u64,
    /// Copies that have left, those to the host included.
    pub(super) frames_out: u64,
    /// Frames to one station that were sent to all ports: it was not known.
    pub(super) not_learned: u64,
    /// Frames to groups that were sent to those ports alone that want them.
    pub(super) frames_to_members: u64,
    /// Addresses that were heard behind another port than before.
    pub(super) addresses_moved: u64,
    /// Frames whose sender there was no room for.
    pub(super) addresses_refused: u64,
    /// Frames from the host's own address that came from outside.
    pub(super) own_address_heard: u64,
    // Reasons for which a frame leaves by no port.
    /// It is too short for an Ethernet header.
    pub(super) malformed: u64,
    /// Its sender is a group, or nobody.
    pub(super) source_not_allowed: u64,
    /// Its address is one that bridges do not forward (IEEE 802.1D-2004 section 7.12.6).
    pub(super) reserved_address: u64,
    /// It has no tag, and its port no native VLAN.
    pub(super) untagged_not_allowed_in: u64,
    /// Its port is not in its VLAN.
    pub(super) vlan_not_allowed_in: u64,
    /// The port of its station is not in its VLAN.
    pub(super) vlan_not_allowed_out: u64,
    /// Its station is behind the port that it came from.
    pub(super) same_port: u64,
    /// It is for all ports, and there is no other in its VLAN.
    pub(super) no_other_port: u64,
    /// It is for a group that has neither members nor routers behind another port.
    pub(super) no_port_for_group: u64,
    /// It is for a group, and its IP header or message of IGMP or MLD is malformed.
    pub(super) malformed_group_frame: u64,
    /// It is something else than a frame, or came by a port that does not exist.
    pub(super) wrong_items: u64,
}

/// Figures of snooping.
#[derive(Debug, Default)]
pub(super) struct SnoopingCounters {
    pub(super) queries: u64,
    pub(super) queries_heard: u64,
    pub(super) reports: u64,
    pub(super) leaves: u64,
    pub(super) leaves_ignored: u64,
    pub(super) groups_refused: u64,
}

impl Counters {
    pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("frames_in", self.frames_in);
        report("frames_out", self.frames_out);
        report("not_learned", self.not_learned);
        report("frames_to_members", self.frames_to_members);
        report("addresses_moved", self.addresses_moved);
        report("addresses_refused", self.addresses_refused);
        report("own_address_heard", self.own_address_heard);
        report("malformed", self.malformed);
        report("source_not_allowed", self.source_not_allowed);
        report("reserved_address", self.reserved_address);
        report("untagged_not_allowed_in", self.untagged_not_allowed_in);
        report("vlan_not_allowed_in", self.vlan_not_allowed_in);
        report("vlan_not_allowed_out", self.vlan_not_allowed_out);
        report("same_port", self.same_port);
        report("no_other_port", self.no_other_port);
        report("no_port_for_group", self.no_port_for_group);
        report("malformed_group_frame", self.malformed_group_frame);
        report("wrong_items", self.wrong_items);
    }
}

impl SnoopingCounters {
    pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("queries", self.queries);
        report("queries_heard", self.queries_heard);
        report("reports", self.reports);
        report("leaves", self.leaves);
        report("leaves_ignored", self.leaves_ignored);
        report("groups_refused", self.groups_refused);
    }
}
