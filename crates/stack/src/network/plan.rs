//! Interfaces of nodes as attachments of links, and what follows from it: Ethernet addresses, link models, routes.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_core::Seed;
use hopcast_link::{
    Attachment, Link as AnyLink, Medium, MediumConfig, PointToPoint, Station, Switch, SwitchConfig,
};

use super::addresses::{MacAddress, mac_address};
use super::layers::Layers;
use super::routes::GlobalRoutes;
use super::shortest_paths::ShortestPaths;
use super::{LinkId, LinkModel, Network, NodeId};

/// One link of a route, and the attachment by which it is entered.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// The link.
    pub link: LinkId,
    /// The attachment that sends.
    pub attachment: Attachment,
}

/// Interfaces and links of a network: who is attached where.
pub struct NetworkPlan {
    /// For each link, for each attachment, the node and its interface.
    ends: Vec<Vec<(NodeId, u32)>>,
    /// For each node, for each interface, the link and the attachment.
    interfaces: Vec<Vec<Hop>>,
    /// For each link, how many before it join the same two nodes: parallel links have random streams of their own.
    ordinals: Vec<u64>,
    layers: Layers,
}

impl NetworkPlan {
    /// The plan of a network: a node's interfaces are numbered in the order of the links.
    ///
    /// # Panics
    /// If a service cannot be placed, which [`Layers::of`] says of a network before.
    pub fn of(network: Network<'_>) -> Self {
        let mut interfaces: Vec<Vec<Hop>> = vec![Vec::new(); network.nodes.len()];
        let mut ends = Vec::with_capacity(network.links.len());
        let mut parallel: BTreeMap<Vec<NodeId>, u64> = BTreeMap::new();
        let mut ordinals = Vec::with_capacity(network.links.len());
        for (number, link) in network.links.iter().enumerate() {
            let attach = |(attachment, &node): (usize, &NodeId)| {
                interfaces[node].push(Hop { link: number, attachment });
                (node, interfaces[node].len() as u32 - 1)
            };
            ends.push(link.ends.iter().enumerate().map(attach).collect());
            // Whichever end is named first, it is the same two nodes.
            let mut nodes = link.ends.clone();
            nodes.sort_unstable();
            let before = parallel.entry(nodes).or_default();
            ordinals.push(*before);
            *before += 1;
        }
        let layers = Layers::of(network).expect("services that have been placed before");
        Self { ends, interfaces, ordinals, layers }
    }

    /// For each attachment of a link, the node and its interface.
    pub fn ends(&self, link: LinkId) -> &[(NodeId, u32)] {
        &self.ends[link]
    }

    /// For each interface of a node, the link and the attachment.
    pub fn interfaces(&self, node: NodeId) -> &[Hop] {
        &self.interfaces[node]
    }

    /// The number of a host's first interface on a link; `None` where services have taken its attachments.
    pub fn host_interface(&self, node: NodeId, link: LinkId) -> Option<u32> {
        let layers = self.layers.node(node);
        let on_link = |&place: &usize| layers.interfaces[place].hop.link == link;
        layers.host.iter().position(on_link).map(|place| place as u32)
    }

    /// The layers of nodes between their links and their hosts.
    pub(crate) const fn layers(&self) -> &Layers {
        &self.layers
    }

    /// The Ethernet address of a link's attachment.
    pub fn mac(link: LinkId, attachment: Attachment) -> MacAddress {
        mac_address(link, attachment)
    }

    /// The model of a link, with its random streams. On a medium whose stations `overhear`, each hears the frames for
    /// others, and what becomes of its own.
    pub fn model(
        &self,
        network: Network<'_>,
        link: LinkId,
        overhear: bool,
        seed: Seed,
    ) -> Box<dyn AnyLink + Send> {
        let spec = &network.links[link];
        let name = |end: usize| network.nodes[spec.ends[end]].name.as_str();
        let ordinal = self.ordinals[link];
        match &spec.model {
            LinkModel::PointToPoint(config) => {
                let stream = |from, to| seed.stream(&["link", name(from), name(to)], ordinal);
                Box::new(PointToPoint::new(config.clone(), [stream(0, 1), stream(1, 0)]))
            }
            LinkModel::Medium(config) => {
                let station = |attachment| Station {
                    address: mac_address(link, attachment),
                    promiscuous: overhear,
                    echo: overhear,
                };
                let stations = (0..spec.ends.len()).map(station).collect();
                // Two media may share some of their stations, but not their name.
                let stream = |from, to| seed.stream(&["medium", &spec.name, name(from), name(to)], 0);
                Box::new(Medium::new(MediumConfig { stations, ..config.clone() }, stream))
            }
            LinkModel::Switch(config) => {
                let addresses =
                    (0..spec.ends.len()).map(|attachment| mac_address(link, attachment)).collect();
                let stream = |from, to| seed.stream(&["switch", &spec.name, name(from), name(to)], 0);
                Box::new(Switch::new(&SwitchConfig { addresses, ..config.clone() }, stream))
            }
        }
    }

    /// The routes of the network as it is at the start.
    pub fn routes(&self, network: Network<'_>) -> GlobalRoutes {
        GlobalRoutes::new(self.paths(network))
    }

    fn paths(&self, network: Network<'_>) -> ShortestPaths {
        ShortestPaths::over(network.nodes.len(), network.links, self.layers.segments())
    }

    /// The hops from a node to another, by `routes` as they are now; as far as they lead.
    pub fn route(&self, routes: &mut GlobalRoutes, from: NodeId, to: NodeId) -> Vec<Hop> {
        let mut route = Vec::new();
        let mut node = from;
        while node != to
            && route.len() < self.interfaces.len()
            && let Some((hop, next)) = routes.next_hop(node, to)
        {
            route.push(hop);
            node = next;
        }
        route
    }

    /// Maximum length of a packet that fits each link of the tree by which packets come from a node to a group with
    /// these members, in bytes; `None` of a tree without links.
    pub(crate) fn tree_mtu(
        &self,
        network: Network<'_>,
        routes: &mut GlobalRoutes,
        root: NodeId,
        members: &[NodeId],
    ) -> Option<u32> {
        let mut joined = vec![false; self.interfaces.len()];
        joined[root] = true;
        let mut least = None;
        for &member in members {
            let mut node = member;
            while !std::mem::replace(&mut joined[node], true)
                && let Some((Hop { link, attachment }, via)) = routes.last_hop(root, node)
            {
                let mtu = network.links[link].direction(attachment).mtu;
                least = Some(least.map_or(mtu, |least: u32| least.min(mtu)));
                node = via;
            }
        }
        least
    }

    /// A shortest route that shares no link and no node between the ends with `others`, as the network is at the start.
    pub(crate) fn disjoint_route(
        &self,
        network: Network<'_>,
        others: &[Vec<Hop>],
        from: NodeId,
        to: NodeId,
    ) -> Option<Vec<Hop>> {
        let taken = others.iter().flatten();
        let links: BTreeSet<LinkId> = taken.clone().map(|hop| hop.link).collect();
        let mut nodes: BTreeSet<NodeId> = taken.map(|&hop| self.sender(hop)).collect();
        nodes.remove(&from);
        let mut paths = self.paths(network);
        links.iter().for_each(|&link| paths.set_up(link, None, false));
        // No path leads over a node that cannot send.
        for &Hop { link, attachment } in nodes.iter().flat_map(|&node| self.interfaces(node)) {
            paths.set_up(link, Some(attachment), false);
        }
        paths.search_from(to, &[from]);
        let route: Vec<Hop> = paths.path(from).collect();
        (!route.is_empty()).then_some(route)
    }

    /// The node that sends on a hop.
    pub fn sender(&self, hop: Hop) -> NodeId {
        self.ends[hop.link][hop.attachment].0
    }
}

/// Every ordered pair of a link's attachments, in order.
pub fn directions(ends: usize) -> impl Iterator<Item = (Attachment, Attachment)> {
    (0..ends).flat_map(move |from| (0..ends).filter(move |&to| to != from).map(move |to| (from, to)))
}
