//! A LAN that nodes' interfaces above are bridged to, with a switch that learns where stations are, and hosts.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_core::{Duration, Instant};
use hopcast_wire::ethernet::{self, Mac};

/// Delay of the LAN. Shorter than a link's: two nodes that have a frame at once both claim its client.
pub(crate) const DELAY: Duration = Duration::from_micros(100);

/// The LAN, whose ports are the nodes on it and one for all of its hosts (`None`).
#[derive(Default)]
pub(crate) struct Lan {
    pub(crate) nodes: BTreeSet<usize>,
    stations: BTreeMap<Mac, Option<usize>>,
    /// Frames that its hosts were given.
    pub(crate) heard: Vec<(Instant, Vec<u8>)>,
}

impl Lan {
    /// Takes a frame by a port, and returns the nodes that are given it.
    pub(crate) fn switch(&mut self, now: Instant, from: Option<usize>, frame: &[u8]) -> Vec<usize> {
        if from.is_some_and(|node| !self.nodes.contains(&node)) {
            return Vec::new();
        }
        let header = ethernet::parse(frame).unwrap();
        self.stations.insert(header.source, from);
        let known = self.stations.get(&header.destination).copied();
        let takes = |port: Option<usize>| port != from && known.is_none_or(|known| known == port);
        if takes(None) {
            self.heard.push((now, frame.to_vec()));
        }
        self.nodes.iter().copied().filter(|&node| takes(Some(node))).collect()
    }
}
