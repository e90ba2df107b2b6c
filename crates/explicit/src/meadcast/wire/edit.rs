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
const HOLD: usize = ip::V6_HEADER + 6;
const DELIVERY: Range<usize> = ip::V6_HEADER + 8..ip::V6_HEADER + 12;
const LIST: usize = ip::V6_HEADER + FIXED;

/// One more hop of MEADcast, for which there must be room.
pub(crate) fn increment_hops(packet: &mut [u8]) {
    packet[FLAGS] += 1;
}

/// The number of MEADcast routers that pass data on before it is copied.
pub(crate) fn set_hold(packet: &mut [u8], hold: u8) {
    packet[HOLD] = hold;
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

/// Destination of a packet of IPv6.
pub(crate) fn destination(packet: &[u8]) -> [u8; 16] {
    let mut octets = [0; 16];
    octets.copy_from_slice(&packet[DESTINATION]);
    octets
}

/// Changes the destination of a packet of IPv6.
pub(crate) fn set_destination(packet: &mut [u8], new: &[u8; 16]) {
    packet[DESTINATION].copy_from_slice(new);
}

/// IPv6's header of a packet, in front of nothing but a payload of this protocol and length.
pub(crate) fn plain_header(packet: &[u8], protocol: u8, len: usize) -> [u8; ip::V6_HEADER] {
    let mut header = [0; ip::V6_HEADER];
    header.copy_from_slice(&packet[..ip::V6_HEADER]);
    header[PAYLOAD_LEN].copy_from_slice(&(len as u16).to_be_bytes());
    header[NEXT_HEADER] = protocol;
    header
}
