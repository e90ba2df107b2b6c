//! A host's reports of its memberships by IGMP and MLD, and its answers to queries.

use std::net::IpAddr;

use hopcast_core::{Instant, Stream};
use hopcast_wire::ip::{self, Header, Version};
use hopcast_wire::mld;

use crate::forward::Station;
use crate::host::Host;
use crate::membership::{Config, Interface, MembershipReports};

/// Whether a packet is one of IGMP or MLD, which no router forwards: they have a hop limit of 1 (RFC 3376 section 4,
/// RFC 3810 section 5).
pub(crate) fn is_membership(header: &Header, packet: &[u8]) -> bool {
    match header.protocol {
        ip::IGMP => true,
        ip::ICMPV6 => {
            !header.fragment && packet.get(header.payload().start).copied().is_some_and(mld::is_mld)
        }
        _ => false,
    }
}

impl Host {
    /// Lets the host report its memberships by IGMP and MLD, and answer queries. Without it, only
    /// [`GroupRoutes`](crate::GroupRoutes) learns of them.
    pub fn report_memberships(&mut self, config: Config, random: Stream) {
        let interfaces = Interface::of_host(&self.config);
        self.reports = Some(Box::new(MembershipReports::new(config, interfaces, random)));
    }

    /// A machine has joined or left a group: tells routers on each interface what the host wants of it now, and those
    /// interfaces that want to know.
    pub(crate) fn membership_changed(&mut self, now: Instant, group: IpAddr) {
        self.tell_membership(group);
        let Some(reports) = &mut self.reports else { return };
        for interface in 0..self.config.interfaces.len() as u32 {
            reports.set(now, interface, group, self.groups.filter(group, interface));
        }
        self.send_reports(now);
    }

    /// Takes a packet of IGMP or MLD that arrived on an interface; false if it is none, or the host sends no reports.
    pub(crate) fn receive_membership(
        &mut self,
        now: Instant,
        interface: u32,
        packet: &[u8],
        header: &Header,
    ) -> bool {
        let Some(reports) = &mut self.reports else { return false };
        if !matches!(header.protocol, ip::IGMP | ip::ICMPV6) {
            return false;
        }
        let taken = reports.receive(now, interface, packet, header);
        if taken {
            self.send_reports(now);
        }
        taken
    }

    /// Sends what is to be reported now.
    pub(crate) fn send_reports(&mut self, now: Instant) {
        while let Some(report) = self.reports.as_mut().and_then(|reports| reports.poll(now)) {
            let version = Version::of(report.destination);
            let to = Station::Group(report.destination);
            self.counters.originated += 1;
            self.transmit(report.packet, version, to, report.interface);
        }
    }

    /// Sends the reports that are due.
    pub(crate) fn wake_reports(&mut self, now: Instant) {
        if let Some(reports) = &mut self.reports {
            reports.wake(now);
            self.send_reports(now);
        }
    }
}
