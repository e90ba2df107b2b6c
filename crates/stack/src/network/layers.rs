//! The layers of each node between its links and its host: interfaces, and the services that are attached to them.
//!
//! A node begins with an interface for each of its links. A service takes some, and makes others on top of them; the
//! host has those that are left.

use std::collections::{BTreeMap, BTreeSet};

use hopcast_config::decode::did_you_mean;
use hopcast_wire::vlan::Tag;

use super::bridged::{Bridged, MAX_PLACES, Place, Wire};
use super::errors::{PlacementError, ServiceError};
use super::numbering::{interface_name, mac_address};
use super::segments::{
    Segment, SegmentEnd, SegmentPrefix, Segments, given, less_tags, mtu_within, smallest_mtu,
};
use super::{Hop, Link, LinkId, Network, NodeId};
use crate::service::{JoinedPorts, LowerInterface, UpperInterface};

/// Maximum number of interfaces that all services make. Chosen: they take a gigabyte of memory; with fewer, large
/// networks with many VLANs are refused, and with more, a slip in a file takes all memory.
const MAX_SERVICE_INTERFACES: usize = 2_000_000;
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

/// The layers of one node.
#[derive(Clone, Debug, Default)]
pub(crate) struct NodeLayers {
    /// Every interface that there is at some layer; those of links come first, in the order of the links.
    pub(crate) interfaces: Vec<LayerInterface>,
    /// The services here, from the bottom up.
    pub(crate) services: Vec<PlacedService>,
    /// What those among them join that are bridges, by their places.
    pub(crate) bridges: BTreeMap<usize, JoinedPorts>,
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
    /// The wire on which its frames are: that attachment's link, or the host's port of a bridge.
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
        let segments = segments(&nodes, network.links)?;
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
    /// The place of its frames.
    fn place(&self) -> Place {
        (self.wire, self.tags.clone())
    }

    /// The interface as a service that is to be attached to it sees it.
    fn as_lower(&self, links: &[Link]) -> LowerInterface {
        let Self { name, hop, tags, below, .. } = self;
        let link = matches!(below, Below::Attachment(_)).then(|| links[hop.link].name.clone());
        let mac = mac_address(hop.link, hop.attachment);
        LowerInterface { name: name.clone(), link, mac, tags: tags.clone() }
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
            let wire = if bridge.is_some() { Wire::Host(node, place) } else { wire };
            let given = |prefix| SegmentPrefix { prefix, service: Some(number) };
            let prefixes = prefixes.into_iter().map(given).collect();
            self.interfaces.push(LayerInterface { name, hop, wire, tags, prefixes, below, is_taken: false });
        }
        self.bridges.extend(bridge.map(|joined| (place, joined)));
        takes.iter().for_each(|&taken| self.interfaces[taken].is_taken = true);
        self.services.push(PlacedService { service: number, takes });
        Ok(made)
    }

    /// The interfaces at these places as the service that is attached to them sees them.
    pub(crate) fn lower(&self, takes: &[usize], links: &[Link]) -> Vec<LowerInterface> {
        takes.iter().map(|&place| self.interfaces[place].as_lower(links)).collect()
    }

    /// Maximum length of a packet that leaves by the interface at a place, in bytes; of a bridge, that which all of its
    /// ports take.
    pub(crate) fn mtu(&self, place: usize, links: &[Link]) -> u32 {
        let LayerInterface { hop, wire, tags, .. } = &self.interfaces[place];
        match *wire {
            Wire::Link(_) => mtu_within(&links[hop.link], hop.attachment, tags),
            Wire::Host(_, bridge) => {
                let ports = self.services[bridge].takes.iter().map(|&taken| self.mtu(taken, links));
                less_tags(ports.min().unwrap_or(0), tags)
            }
        }
    }

    /// The attachments on which its bridges are.
    fn bridged(&self) -> impl Iterator<Item = Hop> {
        let taken = self.bridges.keys().flat_map(|&bridge| &self.services[bridge].takes);
        taken.map(|&place| self.interfaces[place].hop)
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

/// The places that are one segment, and the interfaces and prefixes of hosts there.
#[derive(Default)]
struct Joined {
    ends: Vec<SegmentEnd>,
    prefixes: Vec<SegmentPrefix>,
    /// All of its places, if bridges join them.
    places: Vec<Place>,
}

/// The segments of the interfaces that hosts have: those between which frames pass.
fn segments(nodes: &[NodeLayers], links: &[Link]) -> Result<Segments, ServiceError> {
    // By the first place of each: its link comes before its other places.
    let mut all: BTreeMap<Place, Joined> = BTreeMap::new();
    let mut first: BTreeMap<Place, Place> = BTreeMap::new();
    if let Some(mut bridged) = Bridged::of(nodes) {
        for layers in nodes {
            for &place in &layers.host {
                bridged.search(layers.interfaces[place].place()).map_err(|(node, bridge)| ServiceError {
                    service: nodes[node].services[bridge].service,
                    node,
                    cause: PlacementError::TooManyPlaces(MAX_PLACES),
                })?;
            }
        }
        for places in bridged.segments() {
            let name = places[0].clone();
            first.extend(places.iter().map(|place| (place.clone(), name.clone())));
            all.insert(name, Joined { places, ..Joined::default() });
        }
    }
    for (node, layers) in nodes.iter().enumerate() {
        for (interface, &place) in layers.host.iter().enumerate() {
            let LayerInterface { hop, prefixes, .. } = &layers.interfaces[place];
            let (link, attachment) = (hop.link, hop.attachment);
            let own = layers.interfaces[place].place();
            let Joined { ends, prefixes: known, .. } =
                all.entry(first.get(&own).cloned().unwrap_or(own)).or_default();
            ends.push(SegmentEnd { node, interface: interface as u32, link, attachment });
            for given in prefixes {
                // The same prefix may be written at each of its ends.
                if known.iter().all(|other| other.prefix != given.prefix) {
                    known.push(*given);
                }
            }
        }
    }
    let segment = |(place, joined): (Place, Joined)| {
        let Joined { mut ends, mut prefixes, places } = joined;
        // In the order of the file, whichever node has the lower number.
        ends.sort_by_key(|end| (end.link, end.attachment));
        let (wire, tags) = &place;
        // A VLAN of a bridge that has nobody but its host is named by the link that its frames would leave by.
        let link = match *wire {
            Wire::Link(link) => link,
            Wire::Host(..) => ends.first().map_or(0, |end| end.link),
        };
        let on_link = |(wire, tags): &Place| match *wire {
            Wire::Link(link) => Some((link, tags.clone())),
            Wire::Host(..) => None,
        };
        let joins: Vec<_> = places.iter().filter_map(on_link).collect();
        let joins = if joins.len() > 1 { joins } else { Vec::new() };
        let mut bare: Vec<LinkId> =
            joins.iter().filter(|(_, tags)| tags.is_empty()).map(|&(link, _)| link).collect();
        if joins.is_empty() && tags.is_empty() && matches!(wire, Wire::Link(_)) {
            bare.push(link);
        }
        for given in bare.into_iter().flat_map(|link| given(&links[link])) {
            if prefixes.iter().all(|other| other.prefix != given.prefix) {
                prefixes.push(given);
            }
        }
        prefixes.sort_by_key(|given| given.service);
        let joined_mtu = smallest_mtu(&joins, links);
        Segment { link, tags: tags.clone(), ends, prefixes, joins, joined_mtu }
    };
    let used = all.into_iter().filter(|(_, joined)| !joined.ends.is_empty());
    Ok(Segments::new(used.map(segment).collect()))
}
