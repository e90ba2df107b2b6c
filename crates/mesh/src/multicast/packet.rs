//! Multicast packets: made by the sender, and divided by next hop by each node on the way.
//!
//! A packet bears its destinations in a [tracker](crate::wire::tvlv::Tracker). Every node strips those that are not
//! behind a next hop from the copy that it sends there, so that each link carries the frame once, and nothing can
//! multiply: a destination is in one copy only.

use std::collections::BTreeSet;

use hopcast_core::{Buffer, Malformed};
use hopcast_wire::ethernet::{self, Mac};

use crate::routing::Via;
use crate::wire::data::Multicast;
use crate::wire::tvlv::{self, Tracker};
use crate::wire::{Header, TTL};

/// Version of the tracker.
const TRACKER_VERSION: u8 = 1;

/// Length of all headers of a packet to a number of destinations (`batadv_mcast_forw_packet_hdrlen`).
pub(crate) const fn header_len(destinations: usize) -> usize {
    let padding = if destinations.is_multiple_of(2) { 2 } else { 0 };
    Multicast::LEN + tvlv::HEADER + 2 + 6 * destinations + padding
}

/// Puts the headers of a packet in front of a frame.
pub(crate) fn prepend(frame: &mut Buffer, destinations: &[Mac]) {
    put_in_front(frame, TTL, (&[], &[]), destinations);
}

fn put_in_front(frame: &mut Buffer, ttl: u8, others: (&[u8], &[u8]), destinations: &[Mac]) {
    let mut value = Vec::with_capacity(4 + 6 * destinations.len());
    Tracker::put(&mut value, destinations);
    let mut containers = others.0.to_vec();
    tvlv::put(&mut containers, tvlv::MULTICAST_TRACKER, TRACKER_VERSION, &value);
    containers.extend(others.1);
    frame.prepend(containers.len()).copy_from_slice(&containers);
    Multicast { ttl, tvlv_len: containers.len() as u16 }.prepend(frame);
}

/// Destinations by next hop, each in the order in which it was first listed.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct ByNextHop {
    pub(crate) hops: Vec<(Via, Vec<Mac>)>,
    /// Whether this node is a destination.
    pub(crate) own: bool,
    /// Number of destinations to which there is no route.
    pub(crate) unreachable: u64,
}

/// Divides destinations by next hop. What is listed twice counts once; group addresses and the zero address do not.
pub(crate) fn by_next_hop(
    destinations: impl Iterator<Item = Mac>,
    is_own: impl Fn(Mac) -> bool,
    next_hop: impl Fn(Mac) -> Option<Via>,
) -> ByNextHop {
    let mut found = ByNextHop::default();
    let mut seen = BTreeSet::new();
    for destination in destinations {
        if destination == [0; 6] || ethernet::is_group(destination) || !seen.insert(destination) {
            continue;
        }
        if is_own(destination) {
            found.own = true;
            continue;
        }
        let Some(via) = next_hop(destination) else {
            found.unreachable += 1;
            continue;
        };
        match found.hops.iter_mut().find(|(known, _)| *known == via) {
            Some((_, behind)) => behind.push(destination),
            None => found.hops.push((via, vec![destination])),
        }
    }
    found
}

/// A packet that has arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Received<'a> {
    pub(crate) header: Multicast,
    tracker: Tracker<'a>,
    /// The containers in front of the tracker and behind it, which are passed on.
    others: (&'a [u8], &'a [u8]),
    pub(crate) frame: &'a [u8],
}

impl<'a> Received<'a> {
    /// Reads a packet.
    ///
    /// # Errors
    /// The header or the containers are cut off, there is no tracker or another than it says, or no frame is behind.
    pub(crate) fn parse(packet: &'a [u8]) -> Result<Self, Malformed> {
        let (header, rest) = Multicast::parse(packet)?;
        let len = usize::from(header.tvlv_len);
        let (containers, frame) = rest.split_at_checked(len).ok_or(Malformed { field: "containers" })?;
        Malformed::unless(frame.len() >= ethernet::HEADER, "frame")?;
        let mut at = 0;
        for container in tvlv::containers(containers) {
            let end = at + tvlv::HEADER + container.value.len();
            if (container.kind, container.version) == (tvlv::MULTICAST_TRACKER, TRACKER_VERSION) {
                let tracker = Tracker::parse(container.value)?;
                return Ok(Self { header, tracker, others: (&containers[..at], &containers[end..]), frame });
            }
            at = end;
        }
        Err(Malformed { field: "tracker" })
    }

    pub(crate) fn destinations(&self) -> impl Iterator<Item = Mac> + use<'a> {
        self.tracker.destinations()
    }

    /// The packet for one next hop, one hop further.
    pub(crate) fn copy_for(&self, destinations: &[Mac]) -> Buffer {
        let mut copy = Buffer::copy_from(self.frame);
        put_in_front(&mut copy, self.header.ttl - 1, self.others, destinations);
        copy
    }
}
