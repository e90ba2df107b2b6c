//! The outcome of a packet at a machine, by the counter that rose.

/// What a counter's rise says of the packet that the machine had received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The machine dropped it.
    Dropped,
    /// It was not for this machine, and another is to have it.
    Ignored,
    /// It had arrived before.
    Repeated,
}

/// The outcome of a packet for which a machine's counter of this name rose, and the reason in words; `None` of a
/// counter that says neither.
///
/// Names are those of `docs/counters.md`, whose every counter of dropped packets is here; a test holds both together.
pub fn outcome(counter: &str) -> Option<(Outcome, &'static str)> {
    if let Ok(found) = TABLE.binary_search_by(|&(name, ..)| name.cmp(counter)) {
        let (_, outcome, reason) = TABLE[found];
        return Some((outcome, reason));
    }
    let refused = REFUSED.iter().any(|prefix| counter.starts_with(prefix));
    refused.then_some((Outcome::Dropped, "the protocol refuses its form or sender"))
}

/// Families of counters, one for each way in which a header can be wrong.
const REFUSED: [&str; 4] = ["directory_refused_", "link_state_refused_", "pim_refused_", "refused_"];

/// Counters in the order of their names.
#[rustfmt::skip]
const TABLE: &[(&str, Outcome, &str)] = {
    use Outcome::{Dropped, Ignored, Repeated};
    &[
        ("broadcast_duplicates", Repeated, "it is a broadcast that had arrived before"),
        ("cache_dropped", Dropped, "the cache was full"),
        ("cache_expired", Dropped, "its time was over"),
        ("checksum_errors", Dropped, "its checksum is wrong: it was changed on the way"),
        ("claim_frames_foreign", Dropped, "it is a claim of a node of another mesh"),
        ("claim_frames_malformed", Dropped, "it is a claim frame that says nothing"),
        ("client_not_known", Dropped, "no node of the mesh announces its receiver"),
        ("closed_port", Dropped, "nothing has its port or protocol"),
        ("datagrams_refused", Dropped, "it is too long, of another version of IP, or unsound"),
        ("directory_member_refused", Dropped, "it answers nothing that was asked"),
        ("dropped_while_stopped", Dropped, "the service was stopped"),
        ("duplicates_received", Repeated, "a copy had arrived before"),
        ("element_confirmations_refused", Dropped, "the confirmation does not fit its session"),
        ("element_repairs_unasked", Dropped, "nobody behind the router had asked for the repair"),
        ("element_requests_refused", Dropped, "the request does not fit its session"),
        ("element_spms_old", Dropped, "a newer SPM came before"),
        ("element_wrong_items", Dropped, "the port does not carry it"),
        ("feedback_refused", Dropped, "it asks for, or answers, what was never sent"),
        ("firewall_dropped_all", Dropped, "a firewall drops all packets"),
        ("firewall_dropped_icmp", Dropped, "a firewall drops ICMP"),
        ("firewall_dropped_routing_header", Dropped, "a firewall drops packets with a routing header"),
        ("firewall_dropped_tcp", Dropped, "a firewall drops TCP"),
        ("firewall_dropped_udp", Dropped, "a firewall drops UDP"),
        ("firewall_wrong_items", Dropped, "the port does not carry it"),
        ("flows_skipped", Dropped, "too many flows waited"),
        ("foreign", Dropped, "it is from another than the peer or a neighbour"),
        ("forger_wrong_items", Dropped, "the port does not carry it"),
        ("fragments", Dropped, "it is a fragment, and the host does not reassemble"),
        ("frames_before_claims", Dropped, "nodes on the LAN may not know each other's claims yet"),
        ("frames_by_two_nodes", Repeated, "another node had sent it from the same LAN"),
        ("frames_claimed_elsewhere", Dropped, "another node on the LAN has claimed its sender"),
        ("frames_from_groups", Dropped, "its source is a group address"),
        ("frames_of_other_vlans", Dropped, "its VLAN has no interface here"),
        ("frames_of_own_lan", Repeated, "it is by a node on the same LAN, which has it"),
        ("frames_racing_claims", Dropped, "its sender has just sent by the mesh"),
        ("frames_without_tag", Dropped, "it bears no VLAN tag"),
        ("from_own", Ignored, "it is the node's own, and came back"),
        ("gateway_requests_dropped", Dropped, "it is for a DHCP server, and the node is a gateway or has none"),
        ("hook_excess", Dropped, "a hook answered with too many packets"),
        ("hop_limit_exceeded", Dropped, "its hop limit is used up"),
        ("icmp_ignored", Dropped, "nothing takes this ICMP message"),
        ("late_received", Dropped, "its block was given up before"),
        ("link_state_wrong_items", Dropped, "the port does not carry it"),
        ("malformed", Dropped, "it does not parse"),
        ("malformed_group_frame", Dropped, "its IP header, or its message of IGMP or MLD, does not parse"),
        ("meadcast_wrong_items", Dropped, "the port does not carry it"),
        ("membership_malformed", Dropped, "the membership report or query does not parse"),
        ("membership_wrong_items", Dropped, "the interface does not exist"),
        ("messages_damaged", Dropped, "the message does not have its checksum"),
        ("multicast_dropped", Dropped, "the host is no member of the group and does not forward it"),
        ("multicast_without_receiver", Dropped, "no node of the mesh has a member of its group"),
        ("neighbour_queue_dropped", Dropped, "too many packets waited for one neighbour"),
        ("neighbour_requests_for_others", Ignored, "it asks for another station's address"),
        ("neighbours_invalid", Dropped, "its sender can be no neighbour"),
        ("neighbours_unasked", Ignored, "nobody here had asked for its sender's address"),
        ("no_other_port", Dropped, "no other port of the bridge is in its VLAN"),
        ("no_port_for_group", Dropped, "its group has no members or routers behind another port of the bridge"),
        ("no_route", Dropped, "there is no route to its destination"),
        ("not_carried", Dropped, "a mesh carries no frames of its kind"),
        ("not_for_us", Ignored, "it is addressed to another station"),
        ("not_forwarding", Dropped, "it is for another host, and this one is no router"),
        ("not_ip", Dropped, "nothing takes frames of its type"),
        ("not_supported", Dropped, "its type of packet is not supported"),
        ("of_other_routing", Dropped, "it is of the mesh's other routing algorithm"),
        ("originator_not_known", Dropped, "no message of its originator has been heard"),
        ("out_of_window", Dropped, "it is outside the receive window"),
        ("overheard", Ignored, "it is for another station, and was only heard"),
        ("packets_dropped_at_input", Dropped, "the queue in front of the transport dropped it"),
        ("packets_ignored", Dropped, "it is no whole request"),
        ("packets_refused", Dropped, "there was no memory for it"),
        ("paws_rejected", Dropped, "its timestamp is too old"),
        ("pim_wrong_items", Dropped, "the port does not carry it"),
        ("pings_ignored", Dropped, "it is neither a first answer nor an error about a request"),
        ("querier_malformed", Dropped, "the report or query does not parse"),
        ("querier_reports_ignored", Dropped, "nobody may report this group, or from this address"),
        ("querier_wrong_items", Dropped, "the port does not carry it"),
        ("receive_buffer_full", Dropped, "the receive buffer was full"),
        ("received_beyond_window", Dropped, "its batch is beyond the window"),
        ("received_own", Ignored, "it is the node's own, reflected"),
        ("received_repeated", Repeated, "it had arrived before, or was overtaken"),
        ("refused_packet", Dropped, "it is no whole packet of IP"),
        ("reserved_address", Dropped, "bridges do not forward its address"),
        ("same_port", Ignored, "its station is behind the port that it came by"),
        ("source_not_allowed", Dropped, "its sender is a group, or nobody"),
        ("streams_refused", Dropped, "there was no room for another stream"),
        ("symbols_refused", Dropped, "the symbol does not fit its object"),
        ("syns_dropped", Dropped, "too many handshakes were under way"),
        ("table_outdated", Dropped, "its client is not here any more"),
        ("too_big", Dropped, "it is larger than the MTU of the next link"),
        ("too_long", Dropped, "it is too long for an interface of the mesh"),
        ("ttl_exceeded", Dropped, "it had gone too many hops in the mesh"),
        ("unfragmented", Dropped, "it is larger than the MTU of the next link, and hosts do not fragment"),
        ("units_expired", Dropped, "it had waited past its deadline"),
        ("units_refused", Dropped, "there was no room for it"),
        ("unresolved", Dropped, "its next hop did not answer"),
        ("unsendable", Dropped, "it cannot be sent: its addresses, length or hop limit do not allow it"),
        ("untagged_not_allowed_in", Dropped, "it has no VLAN tag, and its port no native VLAN"),
        ("vlan_not_allowed_in", Dropped, "the port that it came by is not in its VLAN"),
        ("vlan_not_allowed_out", Dropped, "the port of its station is not in its VLAN"),
        ("wrong_destination", Dropped, "it is for another station of the mesh, or not of a type for all"),
        ("wrong_interface", Dropped, "it did not come from the direction of its sender"),
        ("wrong_items", Dropped, "the port does not carry it"),
        ("xcast_wrong_items", Dropped, "the port does not carry it"),
    ]
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Counters whose line speaks of drops, but not of one packet that a machine had just received.
    const OF_NO_PACKET: [&str; 5] =
        ["cache_bytes_dropped", "flows_skipped", "frames_in", "repairs_given_up", "neighbours_lost"];

    fn documented() -> Vec<(String, String)> {
        let line = |line: &str| {
            line.strip_prefix("| `")?.split_once("` | ").map(|(name, about)| (name.into(), about.into()))
        };
        include_str!("../../../docs/counters.md").lines().filter_map(line).collect()
    }

    #[test]
    fn the_table_is_in_the_order_of_names() {
        assert!(TABLE.is_sorted_by(|one, other| one.0 < other.0));
    }

    #[test]
    fn every_counter_of_dropped_packets_has_a_reason() {
        for (name, about) in documented() {
            let is_drop = about.contains("dropped") && !OF_NO_PACKET.contains(&&*name);
            assert!(!is_drop || outcome(&name).is_some(), "{name}: {about}");
        }
    }

    #[test]
    fn every_reason_is_that_of_a_counter() {
        let documented = documented();
        for (name, ..) in TABLE {
            assert!(documented.iter().any(|(known, _)| known == name), "{name}");
        }
        assert_eq!(outcome("forwarded"), None);
        assert_eq!(outcome("refused_bitmaps").map(|(outcome, _)| outcome), Some(Outcome::Dropped));
    }
}
