//! The layers of each node between its links and its host: interfaces, and the services that are attached to them.
//!
//! A node begins with an interface for each of its links. A service takes some, and makes others on top of them; the
//! host has those that are left.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_config::decode::did_you_mean;
use hopcast_wire::vlan::Tag;

use super::bridged::{Place, Wire};
use super::errors::{PlacementError, ServiceError};
use super::found_segments::find_segments;
use super::meshed::join_meshes;
use super::numbering::{MacAddress, interface_name, mac_address};
use super::segments::{SegmentPrefix, Segments, less_tags, mtu_within};
use super::{Hop, Link, Network, NodeId};
use crate::service::{InterfaceUser, JoinedPorts, LowerInterface, UpperInterface};

/// Maximum number of interfaces that all services make. Chosen: they take a gigabyte of memory; with fewer, large
/// networks with many VLANs are refused, and with more, a slip in a file takes all memory.
const MAX_SERVICE_INTERFACES: usize = 2_000_000;
/// Name that stands for all interfaces of links.
const ALL: &str = "all";
/// Maximum number of tags of a frame. Chosen: they fit a buffer's headroom, and no network stacks more than three.
pub(super) const MAX_TAGS: usize = 8;

/// The layers of all nodes, and the segments that their hosts are on.
#[derive(Debug)]
pub struct Layers {
    nodes: Vec<NodeLayers>,
    segments: Segments,
    /// The attachments on which bridges are.
    bridged: BTreeSet<Hop>,
}

/// A node of a mesh.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeshNode {
    /// The node.
    pub node: NodeId,
    /// The place of its mesh among its services.
    pub service: usize,
    /// Its address in the mesh.
    pub address: MacAddress,
}

/// The layers of one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeLayers {
    /// Every interface that there is at some layer; those of links come first, in the order of the links.
    pub(crate) interfaces: Vec<LayerInterface>,
    /// The services here, from the bottom up.
    pub(crate) services: Vec<PlacedService>,
    /// What those among them join that are bridges, by their places.
    pub(crate) bridges: BTreeMap<usize, JoinedPorts>,
    /// Those among them that make meshes, by their places: maximum length of a packet that leaves by the interface that
    /// each makes, in bytes.
    pub(super) meshes: BTreeMap<usize, u32>,
    /// The places in `interfaces` of those that the host has, in its order.
    pub(crate) host: Vec<usize>,
}

/// An interface at some layer of a node.
#[derive(Clone, Debug)]
pub(crate) struct LayerInterface {
    /// Its name: `eth0`, `eth0.7`.
    pub(crate) name: String,
    /// The attachment through which its frames leave; the first of those of a bridge or a mesh.
    pub(crate) hop: Hop,
    /// The wire on which its frames are: that attachment's link, the host's port of a bridge, or a mesh.
    pub(crate) wire: Wire,
    /// The tags that its frames have there, from the outermost.
    pub(crate) tags: Vec<Tag>,
    /// The prefixes whose addresses the host has there, beside those of the link.
    pub(crate) prefixes: Vec<SegmentPrefix>,
    /// The machine whose upper port it is.
    pub(crate) below: Below,
    /// Whether a service is attached to it.
    pub(crate) is_taken: bool,
}

/// The machine whose upper port an interface is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Below {
    /// The attachment of this number of the node.
    Attachment(u32),
    /// The service at this place among the node's, and the number of its upper port.
    Service(usize, u32),
}

/// A service at a node.
#[derive(Clone, Debug)]
pub(crate) struct PlacedService {
    /// Its place among the network's services.
    pub(crate) service: usize,
    /// The places in the node's interfaces of those that it is attached to.
    pub(crate) takes: Vec<usize>,
}

impl Layers {
    /// The layers of a network.
    ///
    /// # Errors
    /// A service that finds no such interface, or finds it taken, at one of its nodes; bridges that join too much.
    pub fn of(network: Network<'_>) -> Result<Self, ServiceError> {
        let mut nodes = vec![NodeLayers::default(); network.nodes.len()];
        for (number, link) in network.links.iter().enumerate() {
            for (attachment, &node) in link.ends.iter().enumerate() {
                nodes[node].attach(Hop { link: number, attachment });
            }
        }
        let mut made = 0;
        for (number, service) in network.services.iter().enumerate() {
            check_names(&nodes, number, network)?;
            for &node in &service.on {
                let found = nodes[node].place(node, number, network);
                made += found.map_err(|cause| ServiceError { service: number, node, cause })?;
                if made > MAX_SERVICE_INTERFACES {
                    let cause = PlacementError::TooManyInterfaces(MAX_SERVICE_INTERFACES);
                    return Err(ServiceError { service: number, node, cause });
                }
            }
        }
        for node in &mut nodes {
            node.host =
                (0..node.interfaces.len()).filter(|&place| !node.interfaces[place].is_taken).collect();
        }
        join_meshes(&mut nodes, network.links, network.services)?;
        let segments = find_segments(&nodes, network.links)?;
        let bridged = nodes.iter().flat_map(NodeLayers::bridged).collect();
        Ok(Self { nodes, segments, bridged })
    }

    /// The layers of one node.
    pub(crate) fn node(&self, node: NodeId) -> &NodeLayers {
        &self.nodes[node]
    }

    /// Whether a bridge is attached to an attachment, so that frames for anybody are for it.
    pub(crate) fn is_bridged(&self, hop: Hop) -> bool {
        self.bridged.contains(&hop)
    }

    /// The nodes of each mesh: of each the service, by its place among the node's, and its address in the mesh.
    pub(super) fn meshes(&self) -> Vec<Vec<MeshNode>> {
        let mut meshes: BTreeMap<Wire, Vec<MeshNode>> = BTreeMap::new();
        for (node, layers) in self.nodes.iter().enumerate() {
            for &service in layers.meshes.keys() {
                let is_its = |made: &&LayerInterface| made.below == Below::Service(service, 0);
                if let Some(made) = layers.interfaces.iter().find(is_its) {
                    let address = mac_address(made.hop.link, made.hop.attachment);
                    meshes.entry(made.wire).or_default().push(MeshNode { node, service, address });
                }
            }
        }
        meshes.into_values().collect()
    }

    /// The segments of the hosts' interfaces.
    pub fn segments(&self) -> &Segments {
        &self.segments
    }

    /// The segments of a network, for those who need nothing else of its layers.
    ///
    /// # Panics
    /// If a service cannot be placed, which [`Layers::of`] says of a network before.
    pub fn segments_of(network: Network<'_>) -> Segments {
        if network.services.is_empty() {
            return Segments::plain(network.nodes.len(), network.links);
        }
        Self::of(network).expect("services that have been placed before").segments
    }
}

/// Checks that each interface or link that options of a service name is at one of its nodes.
fn check_names(nodes: &[NodeLayers], number: usize, network: Network<'_>) -> Result<(), ServiceError> {
    let service = &network.services[number];
    let later = service.changes.iter().filter_map(|change| change.to.as_ref());
    let all = std::iter::once(&service.layer).chain(later);
    for (key, name) in all.flat_map(|layer| layer.settings().names_interfaces()) {
        let found = service.on.iter().map(|&node| (node, nodes[node].find(name, network.links)));
        let mut missing = None;
        let is_there = found.into_iter().any(|(node, found)| match found {
            Ok(_) => true,
            Err(cause) => {
                missing.get_or_insert((node, cause));
                false
            }
        });
        if let Some((node, cause)) = missing.filter(|_| !is_there) {
            let cause = PlacementError::Named { key, cause: Box::new(cause) };
            return Err(ServiceError { service: number, node, cause });
        }
    }
    Ok(())
}

impl LayerInterface {
    /// The place of its frames.
    pub(super) fn place(&self) -> Place {
        (self.wire, self.tags.clone())
    }

    /// The interface, with this MTU and perhaps of a mesh, as a service that is to be attached to it sees it.
    fn as_lower(&self, (mtu, is_mesh): (u32, bool), links: &[Link]) -> LowerInterface {
        let Self { name, hop, tags, below, .. } = self;
        let link = matches!(below, Below::Attachment(_)).then(|| links[hop.link].name.clone());
        let mac = mac_address(hop.link, hop.attachment);
        let rate = links[hop.link].direction(hop.attachment).rate;
        let is_radio = links[hop.link].has_contending_radios();
        LowerInterface { name: name.clone(), link, mac, mtu, tags: tags.clone(), rate, is_mesh, is_radio }
    }
}

impl NodeLayers {
    fn attach(&mut self, hop: Hop) {
        let number = self.interfaces.len() as u32;
        let (name, below) = (interface_name(number), Below::Attachment(number));
        let (wire, tags, prefixes) = (Wire::Link(hop.link), Vec::new(), Vec::new());
        self.interfaces.push(LayerInterface { name, hop, wire, tags, prefixes, below, is_taken: false });
    }

    /// Places a service of the network; returns the number of interfaces that it makes.
    fn place(&mut self, node: NodeId, number: usize, network: Network<'_>) -> Result<usize, PlacementError> {
        let service = &network.services[number];
        let row = service.layer.row();
        let mut others = self.services.iter().map(|placed| &network.services[placed.service]);
        if let Some(other) = others.find(|other| row.on_host && std::ptr::eq(other.layer.row(), row)) {
            return Err(PlacementError::RunsAlready { kind: row.name, other: other.name.clone() });
        }
        let takes = self.wanted(&service.interfaces, network.links)?;
        let lower = self.lower(&takes, network.links);
        let names = |made: &[UpperInterface]| {
            made.iter().map(|made| (made.name.clone(), made.prefixes.clone())).collect::<Vec<_>>()
        };
        let makes = service.layer.settings().makes(&service.name, &lower)?;
        for layer in service.changes.iter().filter_map(|change| change.to.as_ref()) {
            let later = layer.settings().makes(&service.name, &lower)?;
            if names(&later) != names(&makes) {
                return Err(PlacementError::OtherInterfaces);
            }
        }
        let bridge = service.layer.settings().joins(&lower)?;
        let lowest = lower.iter().map(|interface| interface.mtu).min().unwrap_or(0);
        let mesh = service.layer.settings().mesh_mtu(lowest);
        let on_mesh = |&&taken: &&usize| matches!(self.interfaces[taken].wire, Wire::Mesh(..));
        if let Some(taken) = takes.iter().find(on_mesh).filter(|_| mesh.is_some()) {
            return Err(PlacementError::MeshOnMesh(self.interfaces[*taken].name.clone()));
        }
        let (place, made) = (self.services.len(), makes.len());
        let mut taken_names: BTreeSet<String> =
            self.interfaces.iter().map(|interface| interface.name.clone()).collect();
        for (port, UpperInterface { name, over, tags, prefixes }) in makes.into_iter().enumerate() {
            if tags.len() > MAX_TAGS {
                let tags = tags.len();
                return Err(PlacementError::TooManyTags { interface: name, tags, max: MAX_TAGS });
            }
            if !taken_names.insert(name.clone()) {
                return Err(PlacementError::NameTaken(name));
            }
            let below = Below::Service(place, port as u32);
            let LayerInterface { hop, wire, .. } = self.interfaces[takes[over]];
            let wire = match (&bridge, mesh) {
                (Some(_), _) => Wire::Host(node, place),
                (None, Some(_)) => Wire::Mesh(node, place),
                (None, None) => wire,
            };
            let given = |prefix| SegmentPrefix { prefix, service: Some(number) };
            let prefixes = prefixes.into_iter().map(given).collect();
            self.interfaces.push(LayerInterface { name, hop, wire, tags, prefixes, below, is_taken: false });
        }
        self.bridges.extend(bridge.map(|joined| (place, joined)));
        self.meshes.extend(mesh.map(|mtu| (place, mtu)));
        takes.iter().for_each(|&taken| self.interfaces[taken].is_taken = true);
        self.services.push(PlacedService { service: number, takes });
        Ok(made)
    }

    /// The places of the interfaces with these names, all of which are free. `all` is each one of a link that is.
    fn wanted(&self, names: &[String], links: &[Link]) -> Result<Vec<usize>, PlacementError> {
        let is_free = |&place: &usize| {
            let LayerInterface { below, is_taken, .. } = &self.interfaces[place];
            matches!(below, Below::Attachment(_)) && !is_taken
        };
        if matches!(names, [name] if name == ALL && self.find(name, links).is_err()) {
            return Ok((0..self.interfaces.len()).filter(is_free).collect());
        }
        let mut takes = Vec::new();
        for wanted in names {
            let place = self.find(wanted, links)?;
            if takes.contains(&place) {
                return Err(PlacementError::ListedTwice(wanted.clone()));
            }
            if self.interfaces[place].is_taken {
                return Err(PlacementError::Taken(self.interfaces[place].name.clone()));
            }
            takes.push(place);
        }
        Ok(takes)
    }

    /// The interfaces at these places as the service that is attached to them sees them.
    pub(crate) fn lower(&self, takes: &[usize], links: &[Link]) -> Vec<LowerInterface> {
        let lower = |&place: &usize| {
            self.interfaces[place].as_lower((self.mtu(place, links), self.is_of_mesh(place)), links)
        };
        takes.iter().map(lower).collect()
    }

    /// Whether a mesh makes the interface at a place.
    pub(crate) fn is_of_mesh(&self, place: usize) -> bool {
        match self.interfaces[place].below {
            Below::Service(service, _) => self.meshes.contains_key(&service),
            Below::Attachment(_) => false,
        }
    }

    /// The user of the first interface that the service at a place makes.
    pub(crate) fn user(&self, service: usize) -> InterfaceUser {
        let is_made = |interface: &LayerInterface| interface.below == Below::Service(service, 0);
        let Some(made) = self.interfaces.iter().position(is_made) else { return InterfaceUser::Other };
        match self.services.iter().position(|placed| placed.takes.contains(&made)) {
            None => InterfaceUser::Host,
            Some(user) if self.bridges.contains_key(&user) => InterfaceUser::Bridge,
            Some(_) => InterfaceUser::Other,
        }
    }

    /// Maximum length of a packet that leaves by the interface at a place, in bytes; of a bridge, that which all of its
    /// ports take.
    pub(crate) fn mtu(&self, place: usize, links: &[Link]) -> u32 {
        let LayerInterface { hop, tags, below, .. } = &self.interfaces[place];
        let service = match *below {
            Below::Attachment(_) => return mtu_within(&links[hop.link], hop.attachment, tags),
            Below::Service(service, _) => service,
        };
        if let Some(&mtu) = self.meshes.get(&service) {
            return mtu;
        }
        let takes = &self.services[service].takes;
        let lowest = takes.iter().map(|&taken| self.mtu(taken, links)).min().unwrap_or(0);
        // Those of VLANs have tags behind those of the interface that they are on.
        let of_lower = takes.first().map_or(0, |&taken| self.interfaces[taken].tags.len());
        less_tags(lowest, tags.get(of_lower..).unwrap_or_default())
    }

    /// Whether frames of the interface at a place leave by a mesh, of a bridge by its first port; otherwise by the
    /// attachment `hop`.
    pub(super) fn is_meshed(&self, place: usize) -> bool {
        let interface = &self.interfaces[place];
        match (interface.wire, interface.below) {
            (Wire::Mesh(..), _) => true,
            (Wire::Host(..), Below::Service(service, _)) => {
                self.services[service].takes.first().is_some_and(|&taken| self.is_meshed(taken))
            }
            (Wire::Link(_) | Wire::Host(..), _) => false,
        }
    }

    /// The attachments on which its bridges are.
    fn bridged(&self) -> impl Iterator<Item = Hop> {
        let taken = self.bridges.keys().flat_map(|&bridge| &self.services[bridge].takes);
        // Those of a mesh are for the mesh's own addresses.
        let on_links = taken.filter(|&&place| !matches!(self.interfaces[place].wire, Wire::Mesh(..)));
        on_links.map(|&place| self.interfaces[place].hop)
    }

    /// The interface that a name stands for: its own, or that of the link that it leads to.
    fn find(&self, wanted: &str, links: &[Link]) -> Result<usize, PlacementError> {
        let own = self.interfaces.iter().position(|interface| interface.name == wanted);
        let of_link = || {
            let leads = |interface: &LayerInterface| {
                matches!(interface.below, Below::Attachment(_)) && links[interface.hop.link].name == wanted
            };
            self.interfaces.iter().position(leads)
        };
        own.or_else(of_link).ok_or_else(|| {
            let names: Vec<String> = self
                .interfaces
                .iter()
                .map(|interface| format!("`{}` on {}", interface.name, links[interface.hop.link].name))
                .collect();
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            let own = self.interfaces.iter().map(|interface| &*interface.name);
            let leads = self.interfaces.iter().map(|interface| &*links[interface.hop.link].name);
            let hint = did_you_mean(wanted, own.chain(leads));
            PlacementError::NoSuchInterface { wanted: wanted.to_owned(), hint, known }
        })
    }
}
