//! The topology in drawings, and the places of its nodes.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use crate::error::TopologyError;

pub(crate) mod layout;

/// The nodes and links of a scenario; `topology.json` in a run directory.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Topology {
    /// The nodes, in the order of the file.
    pub nodes: Vec<TopologyNode>,
    /// The links, in the order of the file.
    pub links: Vec<TopologyLink>,
}

/// A host or router.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TopologyNode {
    /// Its name.
    pub name: String,
    /// Its position in arbitrary units, y downwards; `None` leaves it to the layout.
    #[serde(default)]
    pub position: Option<(f64, f64)>,
}

/// A link between nodes, or a medium among them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TopologyLink {
    /// Its name.
    pub name: String,
    /// The indices in [`Topology::nodes`] of the nodes that it joins.
    pub ends: Vec<usize>,
    /// Its rate in Mbit/s, if it has one.
    #[serde(default)]
    pub rate_mbps: Option<f64>,
}

/// Maximum number of nodes of a topology that is drawn whole; of a larger one only the nodes on used links are drawn.
/// Chosen: more cannot be distinguished in a picture.
pub(crate) const MAX_DRAWN_NODES: usize = 400;

impl Topology {
    /// Checks that links end at nodes and that positions are numbers.
    ///
    /// # Errors
    /// The first link or node that is wrong.
    pub(crate) fn check(&self) -> Result<(), TopologyError> {
        let missing = |link: &&TopologyLink| link.ends.iter().any(|end| *end >= self.nodes.len());
        if let Some(link) = self.links.iter().find(missing) {
            return Err(TopologyError::NoSuchNode(link.name.clone()));
        }
        let astray = |node: &&TopologyNode| node.position.is_some_and(|(x, y)| !(x + y).is_finite());
        match self.nodes.iter().find(astray) {
            Some(node) => Err(TopologyError::Position(node.name.clone())),
            None => Ok(()),
        }
    }

    /// The part to draw: all of it, or of a large topology the nodes on links that carried something.
    pub(crate) fn drawn(&self, used: &BTreeSet<(String, String)>) -> Self {
        if self.nodes.len() <= MAX_DRAWN_NODES {
            return self.clone();
        }
        let mut keep = BTreeSet::new();
        let places: BTreeMap<&str, usize> =
            self.nodes.iter().enumerate().map(|(place, node)| (node.name.as_str(), place)).collect();
        for (from, to) in used {
            keep.extend([from, to].into_iter().filter_map(|name| places.get(name.as_str())).copied());
        }
        let renumbered: BTreeMap<usize, usize> =
            keep.iter().enumerate().map(|(new, old)| (*old, new)).collect();
        let used: BTreeSet<(&str, &str)> =
            used.iter().map(|(from, to)| (from.as_str(), to.as_str())).collect();
        let carried = |link: &TopologyLink| match link.ends.as_slice() {
            [a, b] => {
                let (a, b) = (self.nodes[*a].name.as_str(), self.nodes[*b].name.as_str());
                used.contains(&(a, b)) || used.contains(&(b, a))
            }
            ends => ends.len() > 2,
        };
        let links = self.links.iter().filter_map(|link| {
            let ends: Vec<usize> = link.ends.iter().filter_map(|end| renumbered.get(end)).copied().collect();
            (ends.len() >= 2 && carried(link)).then(|| TopologyLink { ends, ..link.clone() })
        });
        Self { nodes: keep.iter().map(|old| self.nodes[*old].clone()).collect(), links: links.collect() }
    }
}
