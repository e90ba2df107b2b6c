//! The routes of flows through meshes of ships, as their nodes know them at one time.

use std::collections::BTreeMap;

use hopcast_stack::network::{MacAddress, MeshNode, NetworkPlan};
use hopcast_stack::service::StatusCell;

use super::World;
use crate::results::FlowRoute;
use crate::scenario::model::NodeId;

/// Maximum number of routes at one time. Chosen: a map with more shows nothing.
const MAX_ROUTES: usize = 50;

/// The next hop to each originator.
type NextHops = BTreeMap<MacAddress, MacAddress>;
/// Those of each node that was asked, and of each of its meshes.
type KnownHops = BTreeMap<(NodeId, usize), NextHops>;

impl World {
    /// The routes of flows between the ships of each radio link, from each sender to each receiver.
    pub(super) fn routes_of_flows(&self) -> Vec<Vec<FlowRoute>> {
        let scenario = &self.scenario;
        let network = scenario.network();
        let plan = NetworkPlan::of(network);
        let meshes = plan.meshes();
        let mut owners: BTreeMap<MacAddress, NodeId> = BTreeMap::new();
        for (link, spec) in scenario.links.iter().enumerate() {
            owners
                .extend(spec.ends.iter().enumerate().map(|(end, &node)| (NetworkPlan::mac(link, end), node)));
        }
        // Flows share nodes, and a node's tables are long.
        let mut known = KnownHops::new();
        let of_link = |&(link, _): &(usize, _)| {
            let ships = &scenario.links[link].ends;
            let mut routes = Vec::new();
            for flow in &scenario.flows {
                for &to in &flow.to {
                    let mesh =
                        meshes.iter().find(|mesh| [flow.from, to].iter().all(|end| at(mesh, *end).is_some()));
                    let Some(mesh) = mesh.filter(|_| routes.len() < MAX_ROUTES && flow.from != to) else {
                        continue;
                    };
                    let nodes = self.route(mesh, (&owners, &mut known), (flow.from, to));
                    let arrives = nodes.last() == Some(&to);
                    let known = nodes.iter().map(|node| ships.iter().position(|ship| ship == node));
                    // A part of the route may be over other links.
                    if let Some(ships) = known.collect::<Option<Vec<_>>>() {
                        routes.push(FlowRoute { flow: flow.name.clone(), ships, arrives });
                    }
                }
            }
            routes
        };
        scenario.fleets.iter().map(of_link).collect()
    }

    /// The nodes on the route between two nodes of a mesh, as far as next hops lead: each node once.
    fn route(
        &self,
        mesh: &[MeshNode],
        (owners, known): (&BTreeMap<MacAddress, NodeId>, &mut KnownHops),
        (from, to): (NodeId, NodeId),
    ) -> Vec<NodeId> {
        let mut route = vec![from];
        let Some(target) = at(mesh, to) else { return route };
        while let Some(node) = route.last().and_then(|&last| at(mesh, last)).filter(|node| node.node != to) {
            let next_hops = known.entry((node.node, node.service)).or_insert_with(|| self.next_hops(node));
            match next_hops.get(&target.address).and_then(|next| owners.get(next)) {
                Some(next) if !route.contains(next) => route.push(*next),
                _ => break,
            }
        }
        route
    }

    /// The next hops of a node of a mesh, by originator.
    fn next_hops(&self, at: &MeshNode) -> NextHops {
        let rows = self.originators(at).map_or_else(Vec::new, |table| table.rows);
        let next_hop = |row: &Vec<StatusCell>| match row.as_slice() {
            [StatusCell::Address(originator), _, _, StatusCell::Address(next), ..] => {
                Some((*originator, *next))
            }
            _ => None,
        };
        rows.iter().filter_map(next_hop).collect()
    }
}

fn at(mesh: &[MeshNode], node: NodeId) -> Option<&MeshNode> {
    mesh.iter().find(|other| other.node == node)
}
