//! The routes of flows through meshes of ships, as their nodes know them at one time.

use std::collections::BTreeMap;

use hopcast_stack::network::{MacAddress, MeshNode, NetworkPlan};
use hopcast_stack::service::{ORIGINATORS, StatusCell};

use super::World;
use crate::results::FlowRoute;
use crate::scenario::model::NodeId;

/// Maximum number of routes at one time. Chosen: a map with more shows nothing.
const MAX_ROUTES: usize = 50;

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
                    let nodes = self.route(mesh, &owners, (flow.from, to));
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
        owners: &BTreeMap<MacAddress, NodeId>,
        (from, to): (NodeId, NodeId),
    ) -> Vec<NodeId> {
        let mut route = vec![from];
        let Some(target) = at(mesh, to) else { return route };
        while let Some(node) = route.last().and_then(|&last| at(mesh, last)).filter(|node| node.node != to) {
            let next = self.next_hop(node, target.address).and_then(|next| owners.get(&next));
            match next {
                Some(next) if !route.contains(next) => route.push(*next),
                _ => break,
            }
        }
        route
    }

    /// The next hop of a node of a mesh to an originator.
    fn next_hop(&self, at: &MeshNode, originator: MacAddress) -> Option<MacAddress> {
        let tables = self.service_tables(at.node);
        let (.., table) =
            tables.iter().find(|(place, _, table)| *place == at.service && table.name == ORIGINATORS)?;
        table.rows.iter().find_map(|row| match row.as_slice() {
            [StatusCell::Address(address), _, _, StatusCell::Address(next), ..] if *address == originator => {
                Some(*next)
            }
            _ => None,
        })
    }
}

fn at(mesh: &[MeshNode], node: NodeId) -> Option<&MeshNode> {
    mesh.iter().find(|other| other.node == node)
}
