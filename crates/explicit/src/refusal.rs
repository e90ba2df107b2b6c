//! Reasons why a packet is dropped.

/// The reason why a packet of explicit multicast is dropped, of which each is counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
pub enum Refusal {
    /// The bytes are no packet of IP, or not all of it is there.
    #[error("it is no whole IP packet")]
    Packet,
    /// It has none of the protocol's headers where that has to be.
    #[error("it has no header of the protocol")]
    NoHeader,
    /// A routing header follows another.
    #[error("a routing header is behind another")]
    NestedRouting,
    /// An extension header other than the routing header and the list of ports; a fragment has one.
    #[error("it has an extension header that the protocol does not use")]
    Extension,
    /// The header's length, or a field that is always the same, does not fit.
    #[error("the header has another form")]
    Form,
    /// The flags contradict each other, or the version is unknown.
    #[error("the flags have no meaning")]
    Flags,
    /// The list has no address.
    #[error("the list is empty")]
    EmptyList,
    /// The list has more addresses than its bitmaps.
    #[error("the list is longer than a bitmap")]
    LongList,
    /// A bitmap marks an address behind the end of the list.
    #[error("a bitmap reaches past the list")]
    PastList,
    /// A bitmap marks addresses that it must not mark.
    #[error("the bitmaps contradict each other")]
    Bitmaps,
    /// Nothing in the list is to be delivered.
    #[error("nothing is to be delivered")]
    Delivered,
    /// A receiver without a router, or a router without receivers.
    #[error("receivers and routers do not belong together")]
    Unassigned,
    /// A multicast, link-local, loopback, broadcast or unspecified address in the list.
    #[error("an address in the list is that of no single host")]
    Listed,
    /// An address is in the list twice.
    #[error("an address is in the list twice")]
    Repeated,
    /// The packet's source is no address of a single host beyond its link.
    #[error("the source is that of no single host")]
    Source,
    /// The packet's destination does not fit its list.
    #[error("the destination does not fit the list")]
    Destination,
    /// The list of ports is malformed, or has another number of ports than there are receivers.
    #[error("the ports do not fit the list")]
    Ports,
    /// Bytes where nothing may follow, or none where a transport header must, or more than a length field can say.
    #[error("the payload does not fit the header")]
    Payload,
    /// The header's checksum does not fit it.
    #[error("the header's checksum does not fit")]
    Checksum,
    /// The count of the protocol's hops is at its limit.
    #[error("the count of hops is at its limit")]
    Hops,
    /// The hop limit of IP allows no further hop.
    #[error("the hop limit allows no further hop")]
    HopLimit,
    /// Tunnels within tunnels.
    #[error("a tunnel is within a tunnel")]
    NestedTunnel,
    /// The nonce or the authentication code of a response is not the right one.
    #[error("it is forged")]
    Forged,
    /// More copies or answers than the router makes in that time.
    #[error("the rate is beyond its bound")]
    Rate,
}

impl Refusal {
    /// Every reason, with the name of its counter.
    pub const ALL: [(Self, &'static str); 24] = [
        (Self::Packet, "refused_packet"),
        (Self::NoHeader, "refused_no_header"),
        (Self::NestedRouting, "refused_nested_routing"),
        (Self::Extension, "refused_extension"),
        (Self::Form, "refused_form"),
        (Self::Flags, "refused_flags"),
        (Self::EmptyList, "refused_empty_list"),
        (Self::LongList, "refused_long_list"),
        (Self::PastList, "refused_past_list"),
        (Self::Bitmaps, "refused_bitmaps"),
        (Self::Delivered, "refused_delivered"),
        (Self::Unassigned, "refused_unassigned"),
        (Self::Listed, "refused_listed"),
        (Self::Repeated, "refused_repeated"),
        (Self::Source, "refused_source"),
        (Self::Destination, "refused_destination"),
        (Self::Ports, "refused_ports"),
        (Self::Payload, "refused_payload"),
        (Self::Checksum, "refused_checksum"),
        (Self::Hops, "refused_hops"),
        (Self::HopLimit, "refused_hop_limit"),
        (Self::NestedTunnel, "refused_nested_tunnel"),
        (Self::Forged, "refused_forged"),
        (Self::Rate, "refused_rate"),
    ];
}

/// Number of packets that were dropped for each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals([u64; Refusal::ALL.len()]);

impl Refusals {
    /// Counts a packet.
    pub const fn add(&mut self, reason: Refusal) {
        self.0[reason as usize] += 1;
    }

    /// Number of packets that were dropped for a reason.
    pub const fn get(&self, reason: Refusal) -> u64 {
        self.0[reason as usize]
    }

    /// Number of all packets that were dropped.
    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// Reports all reasons.
    pub fn counters(&self, report: &mut dyn FnMut(&'static str, u64)) {
        for (reason, name) in Refusal::ALL {
            report(name, self.get(reason));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_is_counted_by_its_own_name() {
        for (place, (reason, name)) in Refusal::ALL.into_iter().enumerate() {
            assert_eq!(reason as usize, place, "{name}");
            let mut refusals = Refusals::default();
            refusals.add(reason);
            let mut found = Vec::new();
            refusals.counters(&mut |name, count| found.push((name, count)));
            assert_eq!(found.iter().filter(|(_, count)| *count > 0).collect::<Vec<_>>(), [&(name, 1)]);
        }
    }
}
