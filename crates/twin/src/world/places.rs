//! The interfaces of a scenario, and its names, as the log of a run has them in either world.

use hopcast_stack::network::{NetworkPlan, interface_name};
use hopcast_trace::KnownNetwork;
use hopcast_trace::log::{Flow, Named, Place};

use super::flow::spec;
use crate::scenario::model::Scenario;

/// The interfaces of each link, in the order of its attachments.
pub fn log_interfaces(scenario: &Scenario, plan: &NetworkPlan) -> Vec<Vec<Place>> {
    let of_link = |link: usize| {
        let spec = &scenario.links[link];
        let of_end = |(attachment, &(node, interface)): (usize, &(usize, u32))| Place::Interface {
            node: scenario.nodes[node].name.clone(),
            name: interface_name(interface),
            link: spec.name.clone(),
            mtu: spec.direction(attachment).mtu,
            mac: NetworkPlan::mac(link, attachment),
        };
        plan.ends(link).iter().enumerate().map(of_end).collect()
    };
    (0..scenario.links.len()).map(of_link).collect()
}

/// The network of a scenario, for captures that were taken in it.
pub fn known_network(scenario: &Scenario) -> KnownNetwork {
    let plan = NetworkPlan::of(scenario.network());
    let interfaces = log_interfaces(scenario, &plan).into_iter().flatten().collect();
    KnownNetwork { interfaces, names: log_names(scenario, &plan) }
}

/// The names that queries may use.
pub fn log_names(scenario: &Scenario, plan: &NetworkPlan) -> Vec<Named> {
    let name_of = |node: usize| scenario.nodes[node].name.clone();
    let claims = |node: usize| scenario.nodes[node].claims.iter().copied();
    let addresses = |node: usize| plan.addresses().all(node).into_iter().chain(claims(node)).collect();
    let nodes =
        (0..scenario.nodes.len()).map(|node| Named::Node { name: name_of(node), addresses: addresses(node) });
    let groups = scenario.groups.iter().filter(|group| !group.name.is_empty()).map(|group| Named::Group {
        name: group.name.clone(),
        addresses: [false, true].map(|v6| group.address(v6)).to_vec(),
    });
    let flows = scenario.flows.iter().enumerate().map(|(number, flow)| {
        let to = flow.to.iter().map(|&to| name_of(to)).collect();
        let port = spec(scenario, number).port();
        Named::Flow(Flow { name: flow.name.clone(), from: name_of(flow.from), port, to })
    });
    nodes.chain(groups).chain(flows).collect()
}
