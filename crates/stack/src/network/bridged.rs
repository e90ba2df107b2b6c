//! The wires that bridges join: between which links, and VLANs on them, frames pass.
//!
//! A place is a wire and the tags that a frame bears there. Wires are links, the hosts' own ports of bridges, and
//! meshes. From each place of a host's interface the search follows frames through the bridges on its wire; the places
//! that it comes by are one segment. Frames that pass one way only, by VLANs that differ at two ends, join their places
//! all the same. Frames with more than [`MAX_TAGS`] tags are not followed, since no host's interface has so many:
//! otherwise bridges that add a tag on each way round would have no end.

use std::collections::BTreeMap;

use hopcast_wire::vlan::Tag;

use super::disjoint_sets::DisjointSets;
use super::errors::{PlacementError, ServiceError};
use super::layers::{MAX_TAGS, NodeLayers};
use super::{LinkId, NodeId};
use crate::service::{JoinedPorts, PortVlans};

/// Maximum number of places that are searched. Chosen: as many as services make interfaces; a network with more is
/// refused, since what would be left of it are parts.
const MAX_PLACES: usize = 2_000_000;

/// What frames are on between machines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Wire {
    /// A link.
    Link(LinkId),
    /// The host's port of the bridge at this place among a node's services.
    Host(NodeId, usize),
    /// The mesh of the service at this place among a node's, its first.
    Mesh(NodeId, usize),
}

/// A wire, and the tags that frames bear there, from the outermost.
pub(crate) type Place = (Wire, Vec<Tag>);

/// The places of a network, and which of them are one segment.
pub(super) struct Bridged<'a> {
    /// The ports of bridges on each wire: the node, the bridge, and the number of the port.
    ports: BTreeMap<Wire, Vec<(NodeId, usize, usize)>>,
    nodes: &'a [NodeLayers],
    /// The number of each place that was found, by which `joined` knows it.
    found: BTreeMap<Place, usize>,
    joined: DisjointSets,
}

impl<'a> Bridged<'a> {
    /// The bridges of these nodes; `None` if they have none.
    pub(super) fn of(nodes: &'a [NodeLayers]) -> Option<Self> {
        let mut ports: BTreeMap<Wire, Vec<_>> = BTreeMap::new();
        for (node, layers) in nodes.iter().enumerate() {
            for &bridge in layers.bridges.keys() {
                for (port, &taken) in layers.services[bridge].takes.iter().enumerate() {
                    ports.entry(layers.interfaces[taken].wire).or_default().push((node, bridge, port));
                }
            }
        }
        let bridged = Self { ports, nodes, found: BTreeMap::new(), joined: DisjointSets::default() };
        (!bridged.ports.is_empty()).then_some(bridged)
    }

    /// Searches for the places that frames come by from this one.
    ///
    /// # Errors
    /// There are more than [`MAX_PLACES`]: the node, and the place among its services of a bridge there.
    pub(super) fn search(&mut self, from: Place) -> Result<(), (NodeId, usize)> {
        let (start, is_new) = self.number(&from);
        let mut open = if is_new { vec![from] } else { Vec::new() };
        while let Some(place) = open.pop() {
            for next in self.beside(&place) {
                if next.1.len() > MAX_TAGS {
                    continue;
                }
                let (number, is_new) = self.number(&next);
                if self.found.len() > MAX_PLACES {
                    return Err(self.bridge_on(place.0));
                }
                self.joined.join(start, number);
                if is_new {
                    open.push(next);
                }
            }
        }
        Ok(())
    }

    /// The places of each segment, which have been searched for, in order.
    pub(super) fn segments(mut self) -> Vec<Vec<Place>> {
        let mut all: BTreeMap<usize, Vec<Place>> = BTreeMap::new();
        for (place, number) in std::mem::take(&mut self.found) {
            all.entry(self.joined.root(number)).or_default().push(place);
        }
        let mut all: Vec<_> = all.into_values().collect();
        all.sort();
        all
    }

    /// The first bridge on a wire that has one.
    fn bridge_on(&self, wire: Wire) -> (NodeId, usize) {
        match wire {
            Wire::Host(node, bridge) => (node, bridge),
            Wire::Link(_) | Wire::Mesh(..) => {
                let of_wire = self.ports.get(&wire).and_then(|ports| ports.first());
                of_wire.map_or((0, 0), |&(node, bridge, _)| (node, bridge))
            }
        }
    }

    /// The places to which bridges send what they are given at one.
    fn beside(&self, (wire, tags): &Place) -> Vec<Place> {
        let mut beside = Vec::new();
        if let Wire::Host(node, bridge) = *wire {
            self.through((node, bridge), None, tags, &mut beside);
        }
        for &(node, bridge, port) in self.ports.get(wire).into_iter().flatten() {
            let taken = self.nodes[node].services[bridge].takes[port];
            if let Some(rest) = tags.strip_prefix(&*self.nodes[node].interfaces[taken].tags) {
                self.through((node, bridge), Some(port), rest, &mut beside);
            }
        }
        beside
    }

    /// Adds the places to which a bridge sends a frame with these tags that has come by a port, or from its host.
    fn through(&self, at: (NodeId, usize), port: Option<usize>, tags: &[Tag], beside: &mut Vec<Place>) {
        let (node, bridge) = at;
        let layers = &self.nodes[node];
        let joined = &layers.bridges[&bridge];
        let of_port = |port: Option<usize>| port.map_or(Some(&joined.host), |port| joined.ports.get(port));
        let Some(own) = of_port(port) else { return };
        let Some((vlan, inner)) = classify(joined, own, tags) else { return };
        let others = (0..joined.ports.len()).map(Some).chain([None]).filter(|&other| other != port);
        for other in others {
            let (wire, base): (Wire, &[Tag]) = match other {
                None => (Wire::Host(node, bridge), &[]),
                Some(other) => {
                    let interface = &layers.interfaces[layers.services[bridge].takes[other]];
                    (interface.wire, &interface.tags)
                }
            };
            let outer = match (joined.tag_kind, of_port(other)) {
                (None, Some(_)) => None,
                (Some(_), Some(port)) if port.untagged.contains(&vlan) => None,
                (Some(kind), Some(port)) if port.tagged.contains(&vlan) => Some(Tag { kind, id: vlan }),
                _ => continue,
            };
            beside.push((wire, base.iter().copied().chain(outer).chain(inner.iter().copied()).collect()));
        }
    }

    /// The number of a place, and whether it is new.
    fn number(&mut self, place: &Place) -> (usize, bool) {
        if let Some(&number) = self.found.get(place) {
            return (number, false);
        }
        let number = self.joined.add();
        self.found.insert(place.clone(), number);
        (number, true)
    }
}

/// The error of a search that has found too many places, by a bridge there.
pub(super) fn search_error(nodes: &[NodeLayers], (node, bridge): (NodeId, usize)) -> ServiceError {
    let cause = PlacementError::TooManyPlaces(MAX_PLACES);
    ServiceError { service: nodes[node].services[bridge].service, node, cause }
}

/// The VLAN of a frame with these tags that a port takes, and the tags that are left inside it; VLAN 0 on a bridge that
/// knows none. `None` of a frame that the port does not take.
fn classify<'t>(joined: &JoinedPorts, port: &PortVlans, tags: &'t [Tag]) -> Option<(u16, &'t [Tag])> {
    let Some(kind) = joined.tag_kind else { return Some((0, tags)) };
    match tags.split_first() {
        Some((tag, inner)) if tag.kind == kind => {
            let is_member = port.tagged.contains(&tag.id) || port.untagged.contains(&tag.id);
            is_member.then_some((tag.id, inner))
        }
        _ => Some((port.native?, tags)),
    }
}
