//! A LAN that a node of ours and one of the kernel's are on: a switch that learns where stations are, and a host.

use std::collections::BTreeMap;

use hopcast_wire::ethernet::{self, Mac};

use crate::host::Host;

/// The host's address.
pub(crate) const HOST: Mac = [6, 1, 0, 0, 0, 9];
/// Last byte of its address of IPv4.
pub(crate) const NUMBER: u8 = 9;

/// Port of the switch, by what is attached to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Place {
    Ours,
    Kernel,
    Host,
}

pub(crate) struct Lan {
    /// Number of our node.
    pub(crate) node: usize,
    /// The guest's port.
    pub(crate) port: usize,
    pub(crate) host: Host,
    stations: BTreeMap<Mac, Place>,
}

impl Lan {
    pub(crate) const fn new(node: usize, port: usize) -> Self {
        Self { node, port, host: Host::new(HOST, NUMBER), stations: BTreeMap::new() }
    }

    /// Takes a frame by a port, and returns those that are given it.
    pub(crate) fn switch(&mut self, from: Place, frame: &[u8]) -> Vec<Place> {
        let Ok(header) = ethernet::parse(frame) else { return Vec::new() };
        self.stations.insert(header.source, from);
        let known = self.stations.get(&header.destination);
        let all = [Place::Ours, Place::Kernel, Place::Host].into_iter();
        all.filter(|place| *place != from && known.is_none_or(|known| known == place)).collect()
    }
}
