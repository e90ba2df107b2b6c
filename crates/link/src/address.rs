//! The destination of a frame: the first six bytes of its Ethernet header.

use hopcast_core::Buffer;

/// Whether `frame` is for the station with this address. A frame too short to have an address is for nobody.
pub(crate) fn is_for(frame: &Buffer, address: [u8; 6]) -> bool {
    match frame.first_chunk::<6>() {
        Some(destination) => is_group(frame) || *destination == address,
        None => false,
    }
}

/// Whether `frame` is for several stations: the lowest bit of the first octet (IEEE 802-2014, section 8.2.2).
pub(crate) fn is_group(frame: &Buffer) -> bool {
    frame.len() >= 6 && frame[0] & 1 == 1
}
