//! The destination of a frame: the first six bytes of its Ethernet header.

use std::collections::BTreeMap;

use hopcast_core::Buffer;

use crate::Attachment;

/// The stations by their addresses.
#[derive(Debug)]
pub(crate) struct Addresses {
    all: Vec<[u8; 6]>,
    /// The first station of each address.
    first: BTreeMap<[u8; 6], Attachment>,
}

impl Addresses {
    pub(crate) fn new(addresses: impl Iterator<Item = [u8; 6]>) -> Self {
        let all: Vec<_> = addresses.collect();
        let first = all.iter().enumerate().rev().map(|(station, &address)| (address, station)).collect();
        Self { all, first }
    }

    /// The one station that a frame from `from` is for; `None` for a group, and for an address that no other has.
    pub(crate) fn addressee(&self, from: Attachment, frame: &Buffer) -> Option<Attachment> {
        let address = frame.first_chunk::<6>().filter(|_| !is_group(frame))?;
        match *self.first.get(address)? {
            first if first != from => Some(first),
            _ => (0..self.all.len()).find(|&to| to != from && self.all[to] == *address),
        }
    }
}

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
