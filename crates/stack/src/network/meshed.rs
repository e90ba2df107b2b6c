//! The meshes of a network: between which nodes' interfaces a mesh carries frames.
//!
//! Two nodes are in one mesh if frames pass between interfaces below it, or by way of others. The wire of the
//! interfaces that they make is one: that of the first node's.

use std::collections::BTreeMap;

use super::bridged::{Bridged, Place, Wire, search_error};
use super::disjoint_sets::DisjointSets;
use super::errors::ServiceError;
use super::layers::NodeLayers;
use super::{Hop, Link, NodeId, ServiceSpec};

/// An interface below a mesh.
#[derive(Clone, Copy)]
struct Below {
    /// The number of the node's mesh.
    member: usize,
    hop: Hop,
}

/// Gives the interfaces that meshes make the same wire where one mesh has them.
pub(super) fn join_meshes(
    nodes: &mut [NodeLayers],
    links: &[Link],
    services: &[ServiceSpec],
) -> Result<(), ServiceError> {
    // The node of each mesh, and the place among its services.
    let members: Vec<(NodeId, usize)> = (0..nodes.len())
        .flat_map(|node| nodes[node].meshes.keys().map(move |&place| (node, place)).collect::<Vec<_>>())
        .collect();
    if members.is_empty() {
        return Ok(());
    }
    let segments = places_of_segments(nodes, &members)?;
    // By the segment, and the kind of mesh: those of different kinds do not understand each other.
    let mut beside: BTreeMap<(Place, &str), Vec<Below>> = BTreeMap::new();
    let mut meshes = DisjointSets::default();
    for &(node, service) in &members {
        let (member, placed) = (meshes.add(), &nodes[node].services[service]);
        let kind = services[placed.service].layer.row().name;
        for &taken in &placed.takes {
            let interface = &nodes[node].interfaces[taken];
            let own = interface.place();
            let segment = segments.get(&own).cloned().unwrap_or(own);
            beside.entry((segment, kind)).or_default().push(Below { member, hop: interface.hop });
        }
    }
    for all in beside.values() {
        if all.iter().all(|below| links[below.hop.link].partly_heard().is_none()) {
            all.windows(2).for_each(|pair| meshes.join(pair[0].member, pair[1].member));
            continue;
        }
        for (place, one) in all.iter().enumerate() {
            for other in &all[..place] {
                if hear_each_other(links, one.hop, other.hop) {
                    meshes.join(one.member, other.member);
                }
            }
        }
    }
    for (member, &(node, service)) in members.iter().enumerate() {
        let (first_node, first) = members[meshes.root(member)];
        for interface in &mut nodes[node].interfaces {
            if interface.wire == Wire::Mesh(node, service) {
                interface.wire = Wire::Mesh(first_node, first);
            }
        }
    }
    Ok(())
}

/// The first place of the segment of each place that bridges join with others, as far as meshes have interfaces there.
fn places_of_segments(
    nodes: &[NodeLayers],
    members: &[(NodeId, usize)],
) -> Result<BTreeMap<Place, Place>, ServiceError> {
    let mut first = BTreeMap::new();
    let Some(mut bridged) = Bridged::of(nodes) else { return Ok(first) };
    for &(node, service) in members {
        for &taken in &nodes[node].services[service].takes {
            let from = nodes[node].interfaces[taken].place();
            bridged.search(from).map_err(|bridge| search_error(nodes, bridge))?;
        }
    }
    for places in bridged.segments() {
        first.extend(places.iter().map(|place| (place.clone(), places[0].clone())));
    }
    Ok(first)
}

/// Whether frames pass both ways between two attachments of a segment.
fn hear_each_other(links: &[Link], one: Hop, other: Hop) -> bool {
    let reaches = |from: Hop, to: Hop| links[from.link].reaches(from.attachment, to.attachment);
    one.link != other.link || (reaches(one, other) && reaches(other, one))
}
