//! Counters of a node.

use super::Mesh;

/// Figures of a node, but for those of routing and of the translation table.
#[derive(Debug, Default)]
pub(super) struct Counters {
    /// Frames of clients that were taken from above.
    pub(super) frames_in: u64,
    /// Frames that were handed up.
    pub(super) frames_out: u64,
    pub(super) unicast_sent: u64,
    pub(super) unicast_forwarded: u64,
    pub(super) unicast_rerouted: u64,
    pub(super) broadcasts_sent: u64,
    pub(super) broadcasts_forwarded: u64,
    pub(super) broadcasts_repeated: u64,
    pub(super) broadcasts_suppressed: u64,
    pub(super) broadcast_duplicates: u64,
    /// Frames to groups that were sent in multicast packets.
    pub(super) multicast_as_packet: u64,
    pub(super) multicast_as_unicast: u64,
    pub(super) multicast_as_broadcast: u64,
    /// Frames to groups that no node wants.
    pub(super) multicast_without_receiver: u64,
    pub(super) multicast_copies_sent: u64,
    pub(super) multicast_packets_sent: u64,
    pub(super) multicast_packets_received: u64,
    pub(super) multicast_packets_forwarded: u64,
    pub(super) multicast_packets_delivered: u64,
    /// Frames of clients for DHCP servers that the node sent to its gateway, and those that it dropped since it is a
    /// gateway itself or has none.
    pub(super) gateway_requests_sent: u64,
    pub(super) gateway_requests_dropped: u64,
    /// Frames of servers for clients that were sent to one node alone.
    pub(super) gateway_answers_sent: u64,
    /// Clients' requests of ARP that were answered from the node's own entries, or were for one of its own clients.
    pub(super) arp_requests_answered: u64,
    /// Those that were not flooded because the answer came in time.
    pub(super) arp_requests_resolved: u64,
    pub(super) arp_gets_sent: u64,
    pub(super) arp_puts_sent: u64,
    /// Requests by others that were answered.
    pub(super) arp_cache_replies_sent: u64,
    /// Answers to requests that were not handed up: they had been answered before, or are for this node to keep.
    pub(super) arp_replies_taken: u64,
    pub(super) fragments_sent: u64,
    pub(super) fragments_forwarded: u64,
    pub(super) fragments_received: u64,
    pub(super) echoes_answered: u64,
    pub(super) echo_replies: u64,
    // Reasons for which a packet goes no further.
    /// It is no packet of a mesh, or none that is understood.
    pub(super) malformed: u64,
    /// Its type is known, and not supported yet.
    pub(super) not_supported: u64,
    /// It is of another routing algorithm than the node's.
    pub(super) of_other_routing: u64,
    /// It is another's, or a group's, and is not of a type that is sent there.
    pub(super) wrong_destination: u64,
    /// It comes from the node itself.
    pub(super) from_own: u64,
    pub(super) ttl_exceeded: u64,
    pub(super) no_route: u64,
    /// Its client is nowhere, as far as is known.
    pub(super) client_not_known: u64,
    /// Its version of the table is old, and its client is not here any more.
    pub(super) table_outdated: u64,
    /// It is from an originator that is not known.
    pub(super) originator_not_known: u64,
    pub(super) too_long: u64,
    /// It is a frame of the mesh's own type, or one of bridges among themselves.
    pub(super) not_carried: u64,
    pub(super) queue_full: u64,
    pub(super) wrong_items: u64,
}

impl Mesh {
    pub(super) fn report(&self, report: &mut dyn FnMut(&'static str, u64)) {
        let Self { counters, routing, translation, arp_table, bridge_loops, .. } = self;
        report("frames_in", counters.frames_in);
        report("frames_out", counters.frames_out);
        report("unicast_sent", counters.unicast_sent);
        report("unicast_forwarded", counters.unicast_forwarded);
        report("unicast_rerouted", counters.unicast_rerouted);
        report("broadcasts_sent", counters.broadcasts_sent);
        report("broadcasts_forwarded", counters.broadcasts_forwarded);
        report("broadcasts_repeated", counters.broadcasts_repeated);
        report("broadcasts_suppressed", counters.broadcasts_suppressed);
        report("broadcast_duplicates", counters.broadcast_duplicates);
        report("multicast_as_packet", counters.multicast_as_packet);
        report("multicast_as_unicast", counters.multicast_as_unicast);
        report("multicast_as_broadcast", counters.multicast_as_broadcast);
        report("multicast_without_receiver", counters.multicast_without_receiver);
        report("multicast_copies_sent", counters.multicast_copies_sent);
        report("multicast_packets_sent", counters.multicast_packets_sent);
        report("multicast_packets_received", counters.multicast_packets_received);
        report("multicast_packets_forwarded", counters.multicast_packets_forwarded);
        report("multicast_packets_delivered", counters.multicast_packets_delivered);
        report("gateway_requests_sent", counters.gateway_requests_sent);
        report("gateway_requests_dropped", counters.gateway_requests_dropped);
        report("gateway_answers_sent", counters.gateway_answers_sent);
        report("arp_requests_answered", counters.arp_requests_answered);
        report("arp_requests_resolved", counters.arp_requests_resolved);
        report("arp_gets_sent", counters.arp_gets_sent);
        report("arp_puts_sent", counters.arp_puts_sent);
        report("arp_cache_replies_sent", counters.arp_cache_replies_sent);
        report("arp_replies_taken", counters.arp_replies_taken);
        report("arp_entries", arp_table.entries().count() as u64);
        report("arp_entries_refused", arp_table.refused);
        bridge_loops.report(report);
        report("fragments_sent", counters.fragments_sent);
        report("fragments_forwarded", counters.fragments_forwarded);
        report("fragments_received", counters.fragments_received);
        report("echoes_answered", counters.echoes_answered);
        report("echo_replies", counters.echo_replies);
        report("malformed", counters.malformed);
        report("not_supported", counters.not_supported);
        report("of_other_routing", counters.of_other_routing);
        report("wrong_destination", counters.wrong_destination);
        report("from_own", counters.from_own);
        report("ttl_exceeded", counters.ttl_exceeded);
        report("no_route", counters.no_route);
        report("client_not_known", counters.client_not_known);
        report("table_outdated", counters.table_outdated);
        report("originator_not_known", counters.originator_not_known);
        report("too_long", counters.too_long);
        report("not_carried", counters.not_carried);
        report("queue_full", counters.queue_full);
        report("wrong_items", counters.wrong_items);
        let ogms = routing.counters();
        report("ogms_received", ogms.ogms_received);
        report("ogms_sent", ogms.ogms_sent);
        report("ogms_forwarded", ogms.ogms_forwarded);
        report("ogm_packets_sent", ogms.ogm_packets_sent);
        report("ogms_of_own", ogms.ogms_of_own);
        report("ogms_not_best", ogms.ogms_not_best);
        report("ogms_outdated", ogms.ogms_outdated);
        report("ogms_looping", ogms.ogms_looping);
        report("ogms_of_restart_refused", ogms.ogms_of_restart_refused);
        report("ogms_without_quality", ogms.ogms_without_quality);
        report("ogms_by_unknown_neighbours", ogms.ogms_by_unknown_neighbours);
        report("ogms_expired", ogms.ogms_expired);
        report("ogms_too_long", ogms.ogms_too_long);
        report("ogms_queue_full", ogms.queue_full);
        report("originators", routing.len() as u64);
        report("originators_refused", ogms.originators_refused);
        report("neighbours_refused", ogms.neighbours_refused);
        report("route_changes", ogms.route_changes);
        report("elps_sent", ogms.elps_sent);
        report("elps_received", ogms.elps_received);
        report("elps_of_own", ogms.elps_of_own);
        report("elps_outdated", ogms.elps_outdated);
        report("elp_probes_sent", ogms.elp_probes_sent);
        report("elp_probes_received", ogms.elp_probes_received);
        let table = &translation.counters;
        report("tt_clients", translation.len() as u64);
        report("tt_requests_sent", table.requests_sent);
        report("tt_requests_received", table.requests_received);
        report("tt_responses_sent", table.responses_sent);
        report("tt_responses_received", table.responses_received);
        report("tt_responses_not_asked_for", table.responses_not_asked_for);
        report("tt_responses_too_long", table.responses_too_long);
        report("tt_requests_too_many", table.requests_too_many);
        report("tt_requests_held_back", table.requests_held_back);
        report("tt_roamings_sent", table.roamings_sent);
        report("tt_roamings_received", table.roamings_received);
        report("tt_roamings_too_often", table.roamings_too_often);
        report("tt_clients_refused", table.clients_refused);
        report("tt_foreign_clients_refused", table.foreign_clients_refused);
    }
}
