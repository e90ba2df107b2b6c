//! The services of a network's nodes: where each runs, and what events change.

use std::collections::BTreeSet;

use hopcast_core::Instant;

use super::NodeId;
use crate::service::ServiceLayer;

/// A service of a scenario.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceSpec {
    /// Its name.
    pub name: String,
    /// The row of its table, with its settings.
    pub layer: ServiceLayer,
    /// The nodes that it runs on.
    pub on: Vec<NodeId>,
    /// The interfaces that it is attached to at each of them: their own names, or those of the links that they lead to.
    /// Empty of one that is attached to the host.
    pub interfaces: Vec<String>,
    /// The changes by events at its nodes, in the order of time.
    pub changes: Vec<ServiceChange>,
}

/// A change of a service by an event.
#[derive(Clone, Debug, PartialEq)]
pub struct ServiceChange {
    /// The time.
    pub at: Instant,
    /// The nodes at which it changes, in their order.
    pub on: Vec<NodeId>,
    /// The service with its new settings; `None` where it is stopped.
    pub to: Option<ServiceLayer>,
}

impl ServiceSpec {
    /// The changes by events at one of its nodes, in the order of time: when, and to what.
    pub(crate) fn changes_at(&self, node: NodeId) -> impl Iterator<Item = (Instant, Option<ServiceLayer>)> {
        let here = self.changes.iter().filter(move |change| change.on.binary_search(&node).is_ok());
        here.map(|change| (change.at, change.to.clone()))
    }
}

/// The services that run at some moment, and the deliveries that send, by names of their tables, which differ.
#[derive(Debug, Default)]
pub(super) struct RunningServices(BTreeSet<(&'static str, NodeId, usize)>);

impl RunningServices {
    /// Those of a network's beginning.
    pub(super) fn of(services: &[ServiceSpec]) -> Self {
        let at_nodes = |(number, service): (usize, &ServiceSpec)| {
            let kind = service.layer.row().name;
            service.on.iter().map(move |&node| (kind, node, number)).collect::<Vec<_>>()
        };
        Self(services.iter().enumerate().flat_map(at_nodes).collect())
    }

    /// Notes that the service of a number and kind runs at a node from now on, or no longer does.
    pub(super) fn change(&mut self, (number, kind): (usize, &'static str), node: NodeId, runs: bool) {
        match runs {
            true => _ = self.0.insert((kind, node, number)),
            false => _ = self.0.remove(&(kind, node, number)),
        }
    }

    /// Whether one of a kind runs at a node.
    pub(super) fn runs(&self, kind: &str, node: NodeId) -> bool {
        self.0.range((kind, node, 0)..=(kind, node, usize::MAX)).next().is_some()
    }
}
