//! The figures of neighbours.

use crate::counters::counters;

counters! {
    /// Requests sent for neighbours' addresses, repeated ones and probes included.
    neighbour_requests_sent,
    /// Requests for the host's own address that were answered.
    neighbour_requests_answered,
    /// Requests for other stations' addresses that were heard.
    neighbour_requests_for_others,
    /// Neighbours that answered while packets waited.
    neighbours_resolved,
    /// Neighbours that were asked for and did not answer.
    neighbours_failed,
    /// Neighbours that were known and no longer answer probes.
    neighbours_lost,
    /// Claims that a known neighbour has another Ethernet address than is known.
    neighbours_changed,
    /// Unsolicited answers of stations without an entry.
    neighbours_unasked,
    /// Neighbours forgotten to make room for others.
    neighbours_evicted,
    /// Neighbours without an entry because the table was full.
    neighbours_refused,
    /// ARP and ND packets of senders that cannot be neighbours.
    neighbours_invalid,
    /// Claims of other stations that they have the host's address.
    address_conflicts,
    /// Packets dropped because too many waited for one neighbour.
    neighbour_queue_dropped,
    /// Packets dropped because their next hop did not answer, or because there was no room for it.
    unresolved,
}
