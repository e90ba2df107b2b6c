//! A router's figures.

use crate::refusal::Refusals;

/// Counters of a router, cumulative since it began.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Counters {
    /// Packets of Xcast, those out of tunnels included.
    pub(super) packets: u64,
    /// Copies to Xcast routers that are neighbours.
    pub(super) copies: u64,
    /// Copies in tunnels.
    pub(super) tunnels: u64,
    /// Plain packets.
    pub(super) unicast: u64,
    /// Registrations of channels sent, and received.
    pub(super) registrations_sent: u64,
    pub(super) registrations: u64,
    /// Registrations of strangers, and those for which there was no room.
    pub(super) registrations_refused: u64,
    /// Packets to groups that became packets of Xcast.
    pub(super) from_multicast: u64,
    /// Packets to groups, of those of Xcast and of sources here.
    pub(super) to_multicast: u64,
    /// Destinations without a route.
    pub(super) no_route: u64,
    /// Packets that went on as they were.
    pub(super) passed: u64,
    /// Items that the port does not carry.
    pub(super) wrong_items: u64,
    /// Packets that were dropped.
    pub(super) refusals: Refusals,
}

impl Counters {
    pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
        report("xcast_packets", self.packets);
        report("xcast_copies", self.copies);
        report("xcast_tunnels", self.tunnels);
        report("xcast_unicast", self.unicast);
        report("xcast_registrations_sent", self.registrations_sent);
        report("xcast_registrations", self.registrations);
        report("xcast_registrations_refused", self.registrations_refused);
        report("xcast_from_multicast", self.from_multicast);
        report("xcast_to_multicast", self.to_multicast);
        report("xcast_no_route", self.no_route);
        report("xcast_passed", self.passed);
        report("xcast_wrong_items", self.wrong_items);
        self.refusals.counters(report);
    }
}
