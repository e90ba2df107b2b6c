//! The layers of each node between its links and its host: interfaces, and the services that are attached to them.
//!
//! A node begins with an interface for each of its links. A service takes some, and makes others on top of them; the
//! host has those that are left.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_config::decode::did_you_mean;
use hopcast_wire::vlan::Tag;

use super::errors::{PlacementError, ServiceError};
use super::numbering::interface_name;
use super::segments::{Segment, SegmentEnd, SegmentPrefix, Segments, given, mtu_within};
use super::{Hop, Link, Network, NodeId};
use crate::service::{LowerInterface, UpperInterface};

/// Maximum number of interfaces that all services make. Chosen: they take a gigabyte of memory; with fewer, large
/// networks with many VLANs are refused, and with more, a slip in a file takes all memory.
const MAX_SERVICE_INTERFACES: usize = 2_000_000;
/// Maximum number of tags of a frame. Chosen: they fit a buffer's headroom, and no network stacks more than three.
const MAX_TAGS: usize = 8;

/// The layers of all nodes, and the segments that their hosts are on.
#[derive(Debug)]
pub struct Layers {
    nodes: Vec<NodeLayers>,
    segments: Segments,
}

/// The layers of one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeLayers {
    /// Every interface that there is at some layer; those of links come first, in the order of the links.
    pub(crate) interfaces: Vec<LayerInterface>,
    /// The services here, from the bottom up.
    pub(crate) services: Vec<PlacedService>,
    /// The places in `interfaces` of those that the host has, in its order.
    pub(crate) host: Vec<usize>,
}

/// An interface at some layer of a node.
#[derive(Clone, Debug)]
pub(crate) struct LayerInterface {
    /// Its name: `eth0`, `eth0.7`.
    pub(crate) name: String,
    /// The attachment through which its frames leave.
    pub(crate) hop: Hop,
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
    /// A service that finds no such interface, or finds it taken, at one of its nodes.
    pub fn of(network: Network<'_>) -> Result<Self, ServiceError> {
        let mut nodes = vec![NodeLayers::default(); network.nodes.len()];
        for (number, link) in network.links.iter().enumerate() {
            for (attachment, &node) in link.ends.iter().enumerate() {
                nodes[node].attach(Hop { link: number, attachment });
            }
        }
        let mut made = 0;
        for (number, service) in network.services.iter().enumerate() {
            for &node in &service.on {
                let found = nodes[node].place(number, network);
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
        let segments = segments(&nodes, network.links);
        Ok(Self { nodes, segments })
    }

    /// The layers of one node.
    pub(crate) fn node(&self, node: NodeId) -> &NodeLayers {
        &self.nodes[node]
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

impl LayerInterface {
    /// Maximum length of a packet that leaves by it, in bytes.
    pub(crate) fn mtu(&self, links: &[Link]) -> u32 {
        mtu_within(&links[self.hop.link], self.hop.attachment, &self.tags)
    }

    /// The interface as a service that is to be attached to it sees it.
    fn as_lower(&self) -> LowerInterface<'_> {
        LowerInterface { name: &self.name, tags: &self.tags }
    }
}

impl NodeLayers {
    fn attach(&mut self, hop: Hop) {
        let number = self.interfaces.len() as u32;
        let (name, below) = (interface_name(number), Below::Attachment(number));
        let (tags, prefixes) = (Vec::new(), Vec::new());
        self.interfaces.push(LayerInterface { name, hop, tags, prefixes, below, is_taken: false });
    }

    /// Places a service of the network; returns the number of interfaces that it makes.
    fn place(&mut self, number: usize, network: Network<'_>) -> Result<usize, PlacementError> {
        let service = &network.services[number];
        let row = service.layer.row();
        let mut others = self.services.iter().map(|placed| &network.services[placed.service]);
        if let Some(other) = others.find(|other| row.on_host && std::ptr::eq(other.layer.row(), row)) {
            return Err(PlacementError::RunsAlready { kind: row.name, other: other.name.clone() });
        }
        let mut takes = Vec::new();
        for wanted in &service.interfaces {
            let place = self.find(wanted, network.links)?;
            if takes.contains(&place) {
                return Err(PlacementError::ListedTwice(wanted.clone()));
            }
            if self.interfaces[place].is_taken {
                return Err(PlacementError::Taken(self.interfaces[place].name.clone()));
            }
            takes.push(place);
        }
        let lower: Vec<_> = takes.iter().map(|&place| self.interfaces[place].as_lower()).collect();
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
            let hop = self.interfaces[takes[over]].hop;
            let given = |prefix| SegmentPrefix { prefix, service: Some(number) };
            let prefixes = prefixes.into_iter().map(given).collect();
            self.interfaces.push(LayerInterface { name, hop, tags, prefixes, below, is_taken: false });
        }
        takes.iter().for_each(|&taken| self.interfaces[taken].is_taken = true);
        self.services.push(PlacedService { service: number, takes });
        Ok(made)
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

/// The interfaces and prefixes of hosts on one link, by the tags of their frames.
type ByTags<'a> = BTreeMap<&'a [Tag], (Vec<SegmentEnd>, Vec<SegmentPrefix>)>;

/// The segments of the interfaces that hosts have: those on one link with the same tags.
fn segments(nodes: &[NodeLayers], links: &[Link]) -> Segments {
    let mut of_link: Vec<ByTags<'_>> = vec![BTreeMap::new(); links.len()];
    for (node, layers) in nodes.iter().enumerate() {
        for (interface, &place) in layers.host.iter().enumerate() {
            let LayerInterface { hop, tags, prefixes, .. } = &layers.interfaces[place];
            let end = SegmentEnd { node, interface: interface as u32, attachment: hop.attachment };
            let (ends, known) = of_link[hop.link].entry(tags).or_default();
            ends.push(end);
            for given in prefixes {
                // The same prefix may be written at each of its ends.
                if known.iter().all(|other| other.prefix != given.prefix) {
                    known.push(*given);
                }
            }
        }
    }
    let mut segments = Vec::new();
    for ((number, by_tags), link) in of_link.into_iter().enumerate().zip(links) {
        for (tags, (mut ends, mut prefixes)) in by_tags {
            if tags.is_empty() {
                prefixes.extend(given(link));
            }
            // In the order of the file, whichever node has the lower number.
            ends.sort_by_key(|end| end.attachment);
            prefixes.sort_by_key(|given| given.service);
            segments.push(Segment { link: number, tags: tags.to_vec(), ends, prefixes });
        }
    }
    Segments::new(segments)
}
