//! Interfaces of nodes as attachments of links, and what follows from it: Ethernet addresses, link models, routes.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use hopcast_core::Seed;
use hopcast_link::{
    Attachment, Link as AnyLink, Medium, MediumConfig, PointToPoint, Station, Switch, SwitchConfig,
};

use super::address_plan::AddressPlan;
use super::layers::{Below, LayerInterface, Layers, MeshNode};
use super::numbering::{MacAddress, mac_address};
use super::routes::GlobalRoutes;
use super::segments::{SegmentEnd, Segments};
use super::shortest_paths::{Crossing, ShortestPaths};
use super::{LinkId, LinkModel, Network, NodeId};

/// A link and one of its attachments: an interface of a node, or a hop of a route, by the attachment that sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hop {
    /// The link.
    pub link: LinkId,
    /// The attachment; of a route, the one that sends.
    pub attachment: Attachment,
}

/// An interface of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct HostInterface<'a> {
    /// Its name.
    pub name: &'a str,
    /// Its Ethernet address.
    pub mac: MacAddress,
    /// The number of the node's attachment that it is; `None` of one that a service makes.
    pub attachment: Option<u32>,
}

/// The hops from one node to another.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Path {
    /// The hops; none where there is no path.
    pub hops: Vec<Hop>,
    /// Maximum length of a packet that fits all of them, in bytes; 1500 without any.
    pub mtu: u32,
}

/// Interfaces and links of a network: who is attached where.
pub struct NetworkPlan {
    /// For each link, for each attachment, the node and its interface.
    ends: Vec<Vec<(NodeId, u32)>>,
    /// For each node, for each interface, the link and the attachment.
    interfaces: Vec<Vec<Hop>>,
    /// For each link, the number of those before it that join the same two nodes: parallel links have random streams of
    /// their own.
    ordinals: Vec<u64>,
    layers: Layers,
    addresses: Arc<AddressPlan>,
    /// Whether all hosts' interfaces have the same MTU.
    has_one_mtu: bool,
}

impl NetworkPlan {
    /// The plan of a network: a node's interfaces are numbered in the order of the links.
    ///
    /// # Panics
    /// If a service cannot be placed or a segment cannot have its prefix, which the caller has checked by
    /// [`Layers::of`] and [`AddressPlan::of`].
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
        let addresses = AddressPlan::of(network, layers.segments()).expect("prefixes that have been checked");
        let has_one_mtu = layers.segments().have_one_mtu(network.links);
        Self { ends, interfaces, ordinals, layers, addresses: Arc::new(addresses), has_one_mtu }
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

    /// The addresses of all nodes.
    pub fn addresses(&self) -> &AddressPlan {
        &self.addresses
    }

    /// The address that a node sends from and is sent to.
    pub fn address(&self, node: NodeId, ipv6: bool) -> IpAddr {
        self.addresses.first(node, ipv6)
    }

    /// The segments of hosts' interfaces.
    pub fn segments(&self) -> &Segments {
        self.layers.segments()
    }

    /// The nodes of each mesh.
    pub fn meshes(&self) -> Vec<Vec<MeshNode>> {
        self.layers.meshes()
    }

    /// A node's end of the first segment that joins it with all `others`.
    pub fn joining(&self, node: NodeId, others: &[NodeId]) -> Option<SegmentEnd> {
        self.segments().joining(node, others)
    }

    /// Whether all hosts' interfaces have the same MTU.
    pub const fn has_one_mtu(&self) -> bool {
        self.has_one_mtu
    }

    /// Maximum length of a packet that leaves by each of a host's interfaces, in bytes.
    pub fn mtus(&self, network: Network<'_>, node: NodeId) -> impl Iterator<Item = u32> {
        let layers = self.layers.node(node);
        layers.host.iter().map(move |&place| layers.mtu(place, network.links))
    }

    /// The interfaces of a host, by their numbers.
    pub fn host_interfaces(&self, node: NodeId) -> impl Iterator<Item = HostInterface<'_>> {
        let layers = self.layers.node(node);
        layers.host.iter().map(|&place| {
            let LayerInterface { name, hop, below, .. } = &layers.interfaces[place];
            let attachment = match *below {
                Below::Attachment(number) => Some(number),
                Below::Service(..) => None,
            };
            HostInterface { name, mac: mac_address(hop.link, hop.attachment), attachment }
        })
    }

    /// Number of a host's interfaces.
    pub fn interfaces_of_host(&self, node: NodeId) -> u32 {
        self.layers.node(node).host.len() as u32
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
                    promiscuous: overhear || self.layers.is_bridged(Hop { link, attachment }),
                    echo: overhear,
                };
                let stations = (0..spec.ends.len()).map(station).collect();
                // Two media may share some of their stations, but not their name.
                let stream = |from, to| seed.stream(&["medium", &spec.name, name(from), name(to)], 0);
                Box::new(Medium::new(MediumConfig { stations, ..config.clone() }, stream, &seed))
            }
            LinkModel::Switch(config) => {
                let addresses =
                    (0..spec.ends.len()).map(|attachment| mac_address(link, attachment)).collect();
                let stream = |from, to| seed.stream(&["switch", &spec.name, name(from), name(to)], 0);
                let is_bridged = |&attachment: &usize| self.layers.is_bridged(Hop { link, attachment });
                let bridges = (0..spec.ends.len()).filter(is_bridged).collect();
                Box::new(Switch::new(&SwitchConfig { addresses, bridges, ..config.clone() }, stream))
            }
        }
    }

    /// The routes of the network as it is at the start.
    pub fn routes(&self, network: Network<'_>) -> GlobalRoutes {
        GlobalRoutes::new(self.paths(network), self.addresses.clone(), network.services)
    }

    fn paths(&self, network: Network<'_>) -> ShortestPaths {
        ShortestPaths::over(network.nodes.len(), network.links, self.layers.segments())
    }

    /// The path of what a node sends to an address of another, by `routes` as they are now but for those of the file;
    /// as far as they lead.
    pub fn route(
        &self,
        network: Network<'_>,
        routes: &mut GlobalRoutes,
        (from, to): (NodeId, NodeId),
        address: IpAddr,
    ) -> Path {
        self.follow(network, (from, to), |node| routes.next_hop(node, address))
    }

    /// The path of what a node sends to a group, to a member: the member's to the node, backwards.
    pub(crate) fn tree_route(
        &self,
        network: Network<'_>,
        routes: &mut GlobalRoutes,
        (root, member): (NodeId, NodeId),
    ) -> Path {
        let mut path = self.follow(network, (member, root), |node| routes.last_hop(root, node));
        path.hops.reverse();
        path
    }

    /// The path by the steps that `step` returns for each node, as far as they lead.
    fn follow(
        &self,
        network: Network<'_>,
        (from, to): (NodeId, NodeId),
        mut step: impl FnMut(NodeId) -> Option<(Crossing, NodeId)>,
    ) -> Path {
        let mut node = from;
        let crossed = std::iter::from_fn(|| {
            let (crossing, next) = (node != to).then(|| step(node)).flatten()?;
            node = next;
            Some(crossing)
        });
        self.path(network, crossed.take(self.interfaces.len()))
    }

    fn path(&self, network: Network<'_>, crossed: impl Iterator<Item = Crossing>) -> Path {
        let (mut hops, mut mtu) = (Vec::new(), None);
        for crossing in crossed {
            let own = self.mtu(network, &crossing);
            mtu = Some(mtu.map_or(own, |mtu: u32| mtu.min(own)));
            hops.push(crossing.hop);
        }
        Path { hops, mtu: mtu.unwrap_or(1500) }
    }

    /// Maximum length of a packet that crosses a segment, in bytes.
    fn mtu(&self, network: Network<'_>, crossing: &Crossing) -> u32 {
        self.segments().get(crossing.segment).mtu(network.links, crossing.hop)
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
        let mut min = None;
        for &member in members {
            let mut node = member;
            while !std::mem::replace(&mut joined[node], true)
                && let Some((crossing, via)) = routes.last_hop(root, node)
            {
                let mtu = self.mtu(network, &crossing);
                min = Some(min.map_or(mtu, |min: u32| min.min(mtu)));
                node = via;
            }
        }
        min
    }

    /// Paths to a node that share no link and no node between the ends, as the network is at the start, at most `count`
    /// of them: to the node itself, since those to one of its prefixes all share the last link.
    pub(crate) fn disjoint_routes(
        &self,
        network: Network<'_>,
        (from, to): (NodeId, NodeId),
        count: usize,
    ) -> Vec<Path> {
        let paths = self.paths(network).disjoint(from, to, count);
        paths.into_iter().map(|path| self.path(network, path.into_iter())).collect()
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
