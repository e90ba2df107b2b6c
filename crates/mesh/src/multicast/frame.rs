//! Properties of a frame to a group that say who may want it.

use std::net::IpAddr;

use hopcast_wire::ethernet;
use hopcast_wire::ip;
use hopcast_wire::membership::{self, Message, all_nodes};

/// Kind of a frame to a group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// For all nodes: it bears no IP packet, or one in a VLAN, or a report of IGMP or MLD, which must not reach other
    /// hosts that then do without their own, or a packet to a group of the host's own.
    ForAll,
    /// Cut off before the IP packet's end of header.
    Malformed,
    /// For those that want the group.
    Group {
        ipv6: bool,
        /// Hosts need not report the group.
        unsnoopable: bool,
        /// Multicast routers want it too.
        routable: bool,
    },
}

/// The kind of a frame (`batadv_mcast_forw_mode_check`).
pub(crate) fn kind(frame: &[u8]) -> Kind {
    let Some(packet) = ip_packet(frame) else { return Kind::ForAll };
    let ipv6 = ethernet::parse(frame).is_ok_and(|header| header.ether_type == ethernet::IPV6);
    let destination = match ipv6 {
        false => packet.get(16..20).and_then(|bytes| <[u8; 4]>::try_from(bytes).ok()).map(IpAddr::from),
        true => packet.get(24..40).and_then(|bytes| <[u8; 16]>::try_from(bytes).ok()).map(IpAddr::from),
    };
    let Some(group) = destination else { return Kind::Malformed };
    let report = ip::parse(packet).is_ok_and(|header| {
        let message = membership::parse(packet, &header);
        matches!(message, Ok(Some(Message::Report(_) | Message::OlderReport(..))))
    });
    if report || scope(group).is_some_and(|scope| scope < LINK_LOCAL) {
        return Kind::ForAll;
    }
    let unsnoopable = is_unsnoopable(group);
    Kind::Group { ipv6, unsnoopable, routable: !unsnoopable && !is_link_local(group) }
}

/// Scope of a link (RFC 4291 section 2.7).
const LINK_LOCAL: u16 = 2;

/// Scope of a group of IPv6.
const fn scope(group: IpAddr) -> Option<u16> {
    match group {
        IpAddr::V4(_) => None,
        IpAddr::V6(group) => Some(group.segments()[0] & 0x000f),
    }
}

/// The IP packet of a frame without a tag.
pub(crate) fn ip_packet(frame: &[u8]) -> Option<&[u8]> {
    let header = ethernet::parse(frame).ok()?;
    matches!(header.ether_type, ethernet::IPV4 | ethernet::IPV6).then(|| &frame[ethernet::HEADER..])
}

/// Whether hosts need not report a group, or bridges may not snoop it: 224.0.0.0/24 and ff02::1.
pub(crate) fn is_unsnoopable(group: IpAddr) -> bool {
    match group {
        IpAddr::V4(group) => group.octets()[..3] == [224, 0, 0],
        IpAddr::V6(_) => group == all_nodes(ip::Version::V6),
    }
}

/// Whether routers do not forward packets to a group.
pub(crate) fn is_link_local(group: IpAddr) -> bool {
    match scope(group) {
        None => is_unsnoopable(group),
        Some(scope) => scope <= LINK_LOCAL,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopcast_core::Buffer;
    use hopcast_wire::ethernet::Header;
    use hopcast_wire::igmp;
    use hopcast_wire::membership::Version;
    use std::net::Ipv4Addr;

    fn frame(group: &str, payload: &[u8], protocol: u8) -> Vec<u8> {
        let group: IpAddr = group.parse().unwrap();
        let source: IpAddr = if group.is_ipv6() { "fe80::1" } else { "10.0.0.1" }.parse().unwrap();
        let mut buffer = Buffer::copy_from(payload);
        ip::prepend(&mut buffer, source, group, protocol, 1, 0);
        let ether_type = if group.is_ipv6() { ethernet::IPV6 } else { ethernet::IPV4 };
        let header = Header { destination: ethernet::of_group(group), source: [6; 6], ether_type };
        ethernet::prepend(&mut buffer, header);
        buffer.to_vec()
    }

    fn group(ipv6: bool, unsnoopable: bool, routable: bool) -> Kind {
        Kind::Group { ipv6, unsnoopable, routable }
    }

    #[test]
    fn groups_are_told_apart_by_their_scope() {
        let kind_of = |group: &str| kind(&frame(group, b"data", ip::UDP));
        assert_eq!(kind_of("239.1.2.3"), group(false, false, true));
        assert_eq!(kind_of("224.0.0.251"), group(false, true, false));
        assert_eq!(kind_of("ff0e::1"), group(true, false, true));
        assert_eq!(kind_of("ff02::1"), group(true, true, false));
        assert_eq!(kind_of("ff02::fb"), group(true, false, false));
        assert_eq!(kind_of("ff01::1"), Kind::ForAll);
    }

    #[test]
    fn reports_and_what_is_not_ip_are_for_all_and_queries_are_not() {
        let group_address = Ipv4Addr::new(239, 1, 2, 3);
        let (mut report, mut leave) = (Buffer::copy_from(&[]), Buffer::copy_from(&[]));
        igmp::prepend_older_report(&mut report, Version::V2, group_address);
        igmp::prepend_leave(&mut leave, group_address);
        assert_eq!(kind(&frame("239.1.2.3", &report, ip::IGMP)), Kind::ForAll);
        assert_eq!(kind(&frame("224.0.0.2", &leave, ip::IGMP)), group(false, true, false));
        let mut tagged = frame("239.1.2.3", b"data", ip::UDP);
        tagged[12..14].copy_from_slice(&[0x81, 0]);
        assert_eq!(kind(&tagged), Kind::ForAll);
        assert_eq!(kind(&frame("239.1.2.3", b"data", ip::UDP)[..33]), Kind::Malformed);
    }
}
