//! The packets of reports: as few as hold the records, none longer than the MTU.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use hopcast_core::Buffer;
use hopcast_wire::ip;
use hopcast_wire::membership::{RecordType, Version, all_routers, record_len, report_routers};
use hopcast_wire::{igmp, mld, router_alert};

use super::Interface;

/// A packet of IGMP or MLD that is to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The interface on which it leaves.
    pub interface: u32,
    /// Its version of IGMP or MLD.
    pub version: Version,
    /// Its destination, a group; the frame's destination is the group's [Ethernet
    /// address](hopcast_wire::ethernet::of_group).
    pub destination: IpAddr,
    /// The IP packet, with its header.
    pub packet: Buffer,
}

/// One group in a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Record {
    pub(super) kind: RecordType,
    pub(super) group: IpAddr,
    pub(super) sources: Vec<IpAddr>,
}

impl Interface {
    /// The packets of a report of version 3.
    pub(super) fn report(&self, number: u32, version: ip::Version, records: Vec<Record>) -> Vec<Report> {
        let destination = report_routers(version);
        let packet = |records: Vec<Record>| {
            let records: Vec<_> = records.iter().map(|one| (one.kind, one.group, &one.sources[..])).collect();
            let mut packet = Buffer::default();
            match destination {
                IpAddr::V4(_) => igmp::prepend_report(&mut packet, &records),
                IpAddr::V6(to) => mld::prepend_report(&mut packet, self.source_v6(), to, &records),
            }
            self.packet(number, Version::V3, packet, destination)
        };
        split(version, self.mtu, records).into_iter().map(packet).collect()
    }

    /// The report of a group of version 1 or 2.
    pub(super) fn older_report(&self, number: u32, version: Version, group: IpAddr) -> Report {
        let mut packet = Buffer::default();
        match group {
            IpAddr::V4(group) => igmp::prepend_older_report(&mut packet, version, group),
            IpAddr::V6(group) => mld::prepend_older_report(&mut packet, self.source_v6(), group, group),
        }
        self.packet(number, version, packet, group)
    }

    /// The leave of a group.
    pub(super) fn leave(&self, number: u32, group: IpAddr) -> Report {
        let destination = all_routers(ip::Version::of(group));
        let mut packet = Buffer::default();
        match (group, destination) {
            (IpAddr::V6(group), IpAddr::V6(to)) => {
                mld::prepend_done(&mut packet, self.source_v6(), to, group);
            }
            (IpAddr::V4(group), _) => igmp::prepend_leave(&mut packet, group),
            (IpAddr::V6(_), IpAddr::V4(_)) => unreachable!("the routers' address is of the group's version"),
        }
        self.packet(number, Version::V2, packet, destination)
    }

    fn packet(&self, interface: u32, version: Version, mut packet: Buffer, destination: IpAddr) -> Report {
        match destination {
            IpAddr::V4(to) => {
                router_alert::prepend_v4(&mut packet, self.v4.unwrap_or(Ipv4Addr::UNSPECIFIED), to);
            }
            IpAddr::V6(to) => router_alert::prepend_v6(&mut packet, self.source_v6(), to),
        }
        Report { interface, version, destination, packet }
    }

    fn source_v6(&self) -> Ipv6Addr {
        self.v6.unwrap_or(Ipv6Addr::UNSPECIFIED)
    }

    /// The interface's own address of a version, if it has one.
    pub(super) fn address(&self, version: ip::Version) -> Option<IpAddr> {
        match version {
            ip::Version::V4 => self.v4.map(IpAddr::V4),
            ip::Version::V6 => self.v6.map(IpAddr::V6),
        }
    }
}

/// Distributes records to packets (RFC 3376 section 4.2.16, RFC 3810 section 5.2.15). A record that does not fit a
/// packet is divided, except one of an EXCLUDE filter, whose sources beyond the first packet are left out.
fn split(version: ip::Version, mtu: u32, records: Vec<Record>) -> Vec<Vec<Record>> {
    let headers = match version {
        ip::Version::V4 => router_alert::V4_HEADER + igmp::REPORT_HEADER,
        ip::Version::V6 => router_alert::V6_HEADER + mld::REPORT_HEADER,
    };
    // The maximum length of a packet without IPv6's header, which the length field does not count.
    let room = (mtu as usize).min(0xffff).saturating_sub(headers);
    let max = {
        let (none, one) = (record_len(version, 0), record_len(version, 1));
        (room.saturating_sub(none) / (one - none)).max(1)
    };
    let mut packets: Vec<Vec<Record>> = Vec::new();
    let mut left = 0;
    let mut put = |record: Record| {
        let len = record_len(version, record.sources.len());
        match packets.last_mut().filter(|_| len <= left) {
            Some(last) => {
                last.push(record);
                left -= len;
            }
            None => {
                packets.push(vec![record]);
                left = room.saturating_sub(len);
            }
        }
    };
    for mut record in records {
        if record.kind.is_exclude() {
            record.sources.truncate(max);
        }
        if record.sources.len() <= max {
            put(record);
            continue;
        }
        for sources in record.sources.chunks(max) {
            put(Record { sources: sources.to_vec(), ..record });
        }
    }
    packets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(kind: RecordType, sources: usize) -> Record {
        let sources = (0..sources as u32).map(|number| IpAddr::from(number.to_be_bytes())).collect();
        Record { kind, group: [239, 0, 0, 1].into(), sources }
    }

    #[test]
    fn no_packet_is_longer_than_the_mtu_and_every_source_is_in_one() {
        for (mtu, sources) in [(1500, 1000), (68, 100), (576, 135), (40, 3), (0, 3)] {
            let interface = Interface { mtu, v4: None, v6: None };
            let records = vec![record(RecordType::Allow, sources), record(RecordType::Block, 1)];
            let expected = sources + 1;
            let parts = split(ip::Version::V4, mtu, records.clone());
            assert_eq!(parts.iter().flatten().map(|record| record.sources.len()).sum::<usize>(), expected);
            // A packet has at least one source, and the headers.
            for report in interface.report(0, ip::Version::V4, records) {
                assert!(report.packet.len() <= (mtu as usize).max(44), "{mtu}");
            }
        }
    }

    #[test]
    fn sources_that_are_excluded_are_named_as_far_as_they_fit() {
        let parts = split(ip::Version::V4, 100, vec![record(RecordType::ToExclude, 50)]);
        assert_eq!((parts.len(), parts[0][0].sources.len()), (1, (100 - 32 - 8) / 4));
    }

    #[test]
    fn many_groups_share_few_packets() {
        let records = vec![record(RecordType::IsExclude, 0); 1000];
        let parts = split(ip::Version::V4, 1500, records);
        assert_eq!(parts.len(), 1000_usize.div_ceil((1500 - 32) / 8));
    }
}
