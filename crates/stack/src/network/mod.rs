//! The network that flows cross: nodes, links, their addresses and routes.

mod address_plan;
mod bridged;
mod disjoint_sets;
mod errors;
mod found_segments;
mod groups;
mod layers;
mod meshed;
mod node_routes;
mod numbering;
mod plan;
mod prefixes;
mod routes;
mod segments;
mod services;
mod shortest_paths;
mod static_routes;

use std::collections::BTreeMap;
use std::net::IpAddr;

use hopcast_link::{Attachment, Config, Direction, Mac, MediumConfig, SwitchConfig};

pub use address_plan::{AddressPlan, Subnet};
pub use errors::{PlacementError, PrefixCause, PrefixError, ServiceError};
pub(crate) use groups::NodeGroups;
pub use hopcast_host::Prefix;
pub(crate) use layers::{Below, NodeLayers, PlacedService};
pub use layers::{Layers, MeshNode};
pub(crate) use node_routes::{NodeRoutes, NodeServices};
pub use numbering::{HOP_LIMIT, MacAddress, addresses_of, interface_name};
pub use plan::{Hop, HostInterface, NetworkPlan, Path, directions};
pub use prefixes::read_prefixes;
pub use routes::{Gateway, GlobalRoutes, Route};
pub use segments::{Segment, SegmentEnd, SegmentId, SegmentPrefix, Segments};
pub use services::{ServiceChange, ServiceSpec};
pub use shortest_paths::{Crossing, ShortestPaths, Target};
pub use static_routes::{Destinations, StaticRoute};

/// A node's place among the nodes of a network.
pub type NodeId = usize;
/// A link's place among the links of a network.
pub type LinkId = usize;

/// A host or router.
#[derive(Clone, Debug, PartialEq)]
pub struct Node {
    /// The name, which flows and links use.
    pub name: String,
    /// Place at which to draw it, if the file or the generator says: arbitrary units, y downwards.
    pub position: Option<(f64, f64)>,
    /// Addresses that its host has beside its own, and that are another node's: a mistake that is to be found.
    pub claims: Vec<IpAddr>,
}

/// A link between nodes.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    /// The name: `a-b` unless the file gives one.
    pub name: String,
    /// The nodes it joins, in the order of attachments.
    pub ends: Vec<NodeId>,
    /// The prefixes of which its ends have an address each, where no service has taken their interfaces: at most one of
    /// each version of IP.
    pub prefixes: Vec<Prefix>,
    /// Its model.
    pub model: LinkModel,
}

/// The model of a link, with its configuration.
#[derive(Clone, Debug, PartialEq)]
pub enum LinkModel {
    /// Between two nodes.
    PointToPoint(Config),
    /// Among all of a link's ends; the stations' addresses are filled in by [`NetworkPlan::model`].
    Medium(MediumConfig),
    /// Among all of a link's ends, each of which sends on a line of its own; the stations' addresses are filled in by
    /// [`NetworkPlan::model`].
    Switch(SwitchConfig),
}

impl Link {
    /// The direction that leaves attachment `from`; a medium has the same one for every station.
    pub fn direction(&self, from: Attachment) -> &Direction {
        match &self.model {
            LinkModel::PointToPoint(config) if from == 0 => &config.forward,
            LinkModel::PointToPoint(config) => &config.backward,
            LinkModel::Medium(config) => &config.direction,
            LinkModel::Switch(config) => &config.directions[from],
        }
    }
}

impl Link {
    /// Whether its stations have radios, whose signals decide about rates and losses.
    pub fn has_radios(&self) -> bool {
        matches!(&self.model, LinkModel::Medium(config) if config.radios.is_some())
    }

    /// Whether its stations have radios that contend.
    pub fn has_contending_radios(&self) -> bool {
        matches!(self.model, LinkModel::Medium(MediumConfig { radios: Some(_), mac: Mac::Csma(_), .. }))
    }

    /// The medium, of whose stations each hears only some of the others.
    pub fn partly_heard(&self) -> Option<&MediumConfig> {
        match &self.model {
            LinkModel::Medium(config) if config.hears.is_some() => Some(config),
            LinkModel::Medium(_) | LinkModel::PointToPoint(_) | LinkModel::Switch(_) => None,
        }
    }

    /// Whether packets for `to` can be sent from `from`. With acknowledgements the two must hear each other.
    pub fn reaches(&self, from: Attachment, to: Attachment) -> bool {
        let Some(MediumConfig { hears: Some(hears), mac, .. }) = self.partly_heard() else {
            return from != to;
        };
        hears.contains(&(from, to)) && (*mac == Mac::Perfect || hears.contains(&(to, from)))
    }
}

/// A network as flows are built on it: a view of the scenario.
#[derive(Clone, Copy, Debug)]
pub struct Network<'a> {
    /// The nodes, in the order of the file; names are unique.
    pub nodes: &'a [Node],
    /// The links, in the order of the file; names are unique.
    pub links: &'a [Link],
    /// The nodes of each role (`helper`, `proxy`, `relay`); without `relay`, every node of a route relays.
    pub roles: &'a BTreeMap<String, Vec<NodeId>>,
    /// The services of nodes, in the order of the file: a later one may be attached to an interface that an earlier one
    /// makes.
    pub services: &'a [ServiceSpec],
}

impl<'a> Network<'a> {
    /// The nodes of a role; none if the file does not name any.
    pub fn role(&self, name: &str) -> &'a [NodeId] {
        self.roles.get(name).map_or(&[], Vec::as_slice)
    }
}
