//! The services of a network's nodes: where each runs, and what events change.

use hopcast_core::Instant;

use super::NodeId;
use crate::service::ServiceLayer;

/// A service of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceSpec {
    /// Its name.
    pub name: String,
    /// What it is, with its settings.
    pub layer: ServiceLayer,
    /// The nodes that it runs on.
    pub on: Vec<NodeId>,
    /// The interfaces that it stands on at each of them: their own names, or those of the links that they lead to. None
    /// of one that stands on the host.
    pub interfaces: Vec<String>,
    /// What events change at its nodes, in the order of time.
    pub changes: Vec<ServiceChange>,
}

/// A change of a service by an event.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceChange {
    /// When.
    pub at: Instant,
    /// The nodes at which it changes, in their order.
    pub on: Vec<NodeId>,
    /// What it is from now on; `None` where it is stopped.
    pub to: Option<ServiceLayer>,
}

/// A service cannot be placed on a node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceError {
    /// Its place among the network's services.
    pub service: usize,
    /// The node.
    pub node: NodeId,
    /// Why.
    pub why: String,
}

impl ServiceSpec {
    /// What events change at one of its nodes, in the order of time.
    pub(crate) fn changes_at(&self, node: NodeId) -> impl Iterator<Item = (Instant, Option<ServiceLayer>)> {
        let here = self.changes.iter().filter(move |change| change.on.binary_search(&node).is_ok());
        here.map(|change| (change.at, change.to.clone()))
    }
}
