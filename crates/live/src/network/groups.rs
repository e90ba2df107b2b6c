//! Groups whose packets routers forward to the members, by the same idealised trees as in virtual time, with their
//! changes over the run.

use std::collections::BTreeSet;
use std::net::IpAddr;

use hopcast_core::Instant;
use hopcast_stack::group::GroupFlow;
use hopcast_stack::network::{GlobalRoutes, NetworkPlan};
use hopcast_twin::scenario::model::{NodeId, Scenario};

use crate::layout::{GroupRouteLayout, NetworkLayout};

/// The senders to such groups, and the outstanding changes of members.
pub(super) struct Groups {
    /// Each sender with its address, and the group.
    senders: BTreeSet<(NodeId, IpAddr, IpAddr)>,
    /// The groups whose trees are left to services: a sender sends on all of its interfaces, and no kernel forwards.
    left_to_services: BTreeSet<IpAddr>,
    /// Number of interfaces of each node.
    interfaces: Vec<u32>,
    /// The changes of members that are to come, the next one last.
    changes: Vec<Change>,
}

/// The time at which a node begins, or ceases, to want the packets of a group.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Change {
    at: Instant,
    node: NodeId,
    group: IpAddr,
    source: Option<IpAddr>,
    joined: bool,
}

impl Groups {
    pub(super) fn of(scenario: &Scenario, plan: &NetworkPlan) -> Self {
        let addresses = plan.addresses();
        let (mut senders, mut changes) = (BTreeSet::new(), BTreeSet::new());
        let mut left_to_services = BTreeSet::new();
        for flow in &scenario.flows {
            let Some(group) = flow.group.map(|group| &scenario.groups[group]) else { continue };
            let delivery = group.delivery.settings();
            if !delivery.is_routed() {
                continue;
            }
            let (address, sender) = (group.address(flow.ipv6), addresses.first(flow.from, flow.ipv6));
            let peers = flow.peers(scenario);
            let (exchange, peers) = (flow.exchange(), &*peers);
            let to_group = GroupFlow { group, sender: flow.from, exchange, peers };
            senders.insert((flow.from, sender, address));
            if delivery.is_left_to_services() {
                left_to_services.insert(address);
                continue;
            }
            let source = delivery.is_of_one_source().then_some(sender);
            // Those that hear the sender, and the sender if it hears them.
            let own = to_group.listener(flow.from);
            for member in to_group.hearers(flow.from).into_iter().chain(own) {
                let change = |(at, joined)| Change { at, node: member.node, group: address, source, joined };
                changes.extend(member.changes(group.linger).into_iter().map(change));
                if exchange.is_mutual() {
                    senders.insert((member.node, addresses.first(member.node, flow.ipv6), address));
                }
            }
        }
        let changes = changes.into_iter().rev().collect();
        let interfaces = (0..scenario.nodes.len()).map(|node| plan.interfaces_of_host(node)).collect();
        Self { senders, left_to_services, interfaces, changes }
    }

    /// The time of the next change.
    pub(super) fn next_at(&self) -> Option<Instant> {
        self.changes.last().map(|change| change.at)
    }

    /// Makes the changes that are due at `at`; true if there were any.
    pub(super) fn change(&mut self, at: Instant, routes: &mut GlobalRoutes) -> bool {
        let mut changed = false;
        while let Some(Change { node, group, source, joined, .. }) =
            self.changes.pop_if(|change| change.at <= at)
        {
            routes.change_member(node, group, source, joined);
            changed = true;
        }
        changed
    }

    /// The current routes of groups at a node.
    pub(super) fn routes(&self, routes: &mut GlobalRoutes, node: NodeId) -> Vec<GroupRouteLayout> {
        let route = |&(sender, source, group): &(NodeId, IpAddr, IpAddr)| {
            let own = sender == node;
            if self.left_to_services.contains(&group) {
                let egress = (0..self.interfaces[node]).filter(|_| own).collect();
                return GroupRouteLayout { source, group, ingress: None, own, egress };
            }
            let found = routes.group_route(node, source, group);
            let (ingress, egress) =
                found.map_or((None, Vec::new()), |found| (found.ingress, found.egress.to_vec()));
            GroupRouteLayout { source, group, ingress, own, egress }
        };
        self.senders.iter().map(route).collect()
    }
}

/// Clears the routes of groups of nodes that never forward to groups, and sets `group_interfaces` of the other nodes.
pub(super) fn settle(layout: &mut NetworkLayout) {
    for (number, node) in layout.nodes.iter_mut().enumerate() {
        let mut later: Vec<_> =
            layout.reroutes.iter_mut().filter(|reroute| reroute.what.node == number).collect();
        let all = || {
            let later = later.iter().filter_map(|reroute| reroute.what.tables.as_ref());
            later.flat_map(|tables| &tables.groups).chain(&node.group_routes)
        };
        if all().all(|route| route.egress.is_empty() && !route.own) {
            node.group_routes.clear();
            let later = later.iter_mut().filter_map(|reroute| reroute.what.tables.as_mut());
            later.for_each(|tables| tables.groups.clear());
            continue;
        }
        let interfaces: BTreeSet<_> =
            all().flat_map(|route| route.ingress.iter().chain(&route.egress)).copied().collect();
        node.group_interfaces = interfaces.into_iter().collect();
    }
}
