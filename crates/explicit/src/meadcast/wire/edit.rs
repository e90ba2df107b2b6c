//! Changes in place to packets that were read: IPv6's header is at their beginning, and MEADcast's follows at once.

use std::ops::Range;

use hopcast_wire::ip;

use super::FIXED;
use crate::Bitmap;

/// Places in the packet, in bytes.
const PAYLOAD_LEN: Range<usize> = 4..6;
const NEXT_HEADER: usize = 6;
const DESTINATION: Range<usize> = 24..40;
const FLAGS: usize = ip::V6_HEADER + 5;
const DELIVERY: Range<usize> = ip::V6_HEADER + 8..ip::V6_HEADER + 12;
const LIST: usize = ip::V6_HEADER + FIXED;

/// One more hop of MEADcast, for which there must be room.
pub(crate) fn increment_hops(packet: &mut [u8]) {
    packet[FLAGS] += 1;
}

/// The routers that are still to be delivered, of data.
pub(crate) fn set_delivery(packet: &mut [u8], delivery: Bitmap) {
    packet[DELIVERY].copy_from_slice(&delivery.bytes()[..DELIVERY.end - DELIVERY.start]);
}

/// Address at a place of the list.
pub(crate) fn listed(packet: &[u8], place: usize) -> [u8; 16] {
    let mut octets = [0; 16];
    octets.copy_from_slice(&packet[LIST + 16 * place..LIST + 16 * (place + 1)]);
    octets
}

/// Port at a place of the list of ports, of a packet that has one, behind `listed` addresses.
pub(crate) fn listed_port(packet: &[u8], listed: usize, place: usize) -> [u8; 2] {
    let at = LIST + 16 * listed + 4 + 2 * place;
    [packet[at], packet[at + 1]]
}

/// Changes the destination of a packet of IPv6, and returns the old one.
pub(crate) fn set_destination(packet: &mut [u8], new: &[u8; 16]) -> [u8; 16] {
    let mut old = [0; 16];
    old.copy_from_slice(&packet[DESTINATION]);
    packet[DESTINATION].copy_from_slice(new);
    old
}

/// Makes IPv6's header fit a packet that has lost the extension headers behind it: its payload has this protocol.
pub(crate) fn set_payload(packet: &mut [u8], protocol: u8) {
    let len = (packet.len() - ip::V6_HEADER) as u16;
    packet[PAYLOAD_LEN].copy_from_slice(&len.to_be_bytes());
    packet[NEXT_HEADER] = protocol;
}
