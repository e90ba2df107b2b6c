//! The segments of a network with services: between which of the hosts' interfaces frames pass.

use std::collections::BTreeMap;

use super::bridged::{Bridged, Place, Wire, search_error};
use super::errors::ServiceError;
use super::layers::{Below, LayerInterface, NodeLayers};
use super::segments::{Segment, SegmentEnd, SegmentPrefix, Segments, given, less_tags, smallest_mtu};
use super::{Link, LinkId};

/// The places that are one segment, and the interfaces and prefixes of hosts there.
#[derive(Default)]
struct Joined {
    ends: Vec<SegmentEnd>,
    prefixes: Vec<SegmentPrefix>,
    /// All of its places, if bridges join them.
    places: Vec<Place>,
}

/// The segments of the interfaces that hosts have: those between which frames pass.
pub(super) fn find_segments(nodes: &[NodeLayers], links: &[Link]) -> Result<Segments, ServiceError> {
    // By the first place of each: its link comes before its other places.
    let mut all: BTreeMap<Place, Joined> = BTreeMap::new();
    let mut first: BTreeMap<Place, Place> = BTreeMap::new();
    if let Some(mut bridged) = Bridged::of(nodes) {
        for layers in nodes {
            for &place in &layers.host {
                let from = layers.interfaces[place].place();
                bridged.search(from).map_err(|bridge| search_error(nodes, bridge))?;
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
            let is_meshed = layers.is_meshed(place);
            ends.push(SegmentEnd { node, interface: interface as u32, link, attachment, is_meshed });
            for given in prefixes {
                // The same prefix may be written at each of its ends.
                if known.iter().all(|other| other.prefix != given.prefix) {
                    known.push(*given);
                }
            }
        }
    }
    let meshes = mesh_mtus(nodes);
    let used = all.into_iter().filter(|(_, joined)| !joined.ends.is_empty());
    Ok(Segments::new(used.map(|(place, joined)| segment(place, joined, links, &meshes)).collect()))
}

/// The smallest MTU on each mesh, in bytes.
fn mesh_mtus(nodes: &[NodeLayers]) -> BTreeMap<Wire, u32> {
    let mut mtus = BTreeMap::new();
    for layers in nodes {
        for interface in &layers.interfaces {
            if let (Wire::Mesh(..), Below::Service(service, _)) = (interface.wire, interface.below)
                && let Some(&mtu) = layers.meshes.get(&service)
            {
                mtus.entry(interface.wire).and_modify(|min: &mut u32| *min = mtu.min(*min)).or_insert(mtu);
            }
        }
    }
    mtus
}

/// The segment of the first of its places.
fn segment(place: Place, joined: Joined, links: &[Link], meshes: &BTreeMap<Wire, u32>) -> Segment {
    let Joined { mut ends, mut prefixes, mut places } = joined;
    // In the order of the file, whichever node has the lower number.
    ends.sort_by_key(|end| (end.link, end.attachment));
    let (wire, tags) = place.clone();
    if places.is_empty() {
        places.push(place);
    }
    // A VLAN of a bridge that has nobody but its host is named by the link that its frames would leave by, and a mesh
    // by one of those below it.
    let link = match wire {
        Wire::Link(link) => link,
        Wire::Host(..) | Wire::Mesh(..) => ends.first().map_or(0, |end| end.link),
    };
    let on_link = |(wire, tags): &Place| match *wire {
        Wire::Link(link) => Some((link, tags.clone())),
        Wire::Host(..) | Wire::Mesh(..) => None,
    };
    let in_mesh = |(wire, tags): &Place| meshes.get(wire).map(|&mtu| less_tags(mtu, tags));
    let mesh_mtu = places.iter().filter_map(in_mesh).min();
    let is_meshed = mesh_mtu.is_some();
    let joins: Vec<_> = places.iter().filter_map(on_link).collect();
    let joins = if joins.len() > 1 || is_meshed { joins } else { Vec::new() };
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
    let joined_mtu = smallest_mtu(&joins, links).into_iter().chain(mesh_mtu).min();
    Segment { link, tags, ends, prefixes, joins, is_meshed, joined_mtu }
}
