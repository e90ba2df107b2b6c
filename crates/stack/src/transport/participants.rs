//! The nodes that take part in a flow whose transport relays: a tree from the sender to the receivers, or disjoint
//! routes to one of them.

use std::collections::{BTreeMap, BTreeSet};
use std::net::SocketAddr;

use super::{FlowSpec, can_relay};
use crate::network::{Network, NetworkPlan, NodeId, Path, addresses_of};

/// A node that takes part in a flow, with its place between the sender and the receivers.
#[derive(Clone, Debug)]
pub struct Participant {
    /// The node.
    pub node: NodeId,
    /// Its address in the flow.
    pub address: SocketAddr,
    /// Places of the participants before it: one, but at the end of several routes.
    parents: Vec<usize>,
    /// Places of the participants after it.
    children: Vec<usize>,
}

/// The participants of a flow. The first is the root: the sender, or the gateway that takes its connections over.
#[derive(Clone, Debug, Default)]
pub struct Participants {
    all: Vec<Participant>,
    /// For each node at an end of a route, the place of its first participant there.
    ends: BTreeMap<NodeId, usize>,
}

impl Participants {
    /// From the sender to the receivers, or from a gateway that takes the sender's connections over to another, by
    /// those nodes of the routes that relay. A receiver on the route to another does both, its edge at the sender's
    /// port.
    pub(super) fn of(network: Network<'_>, plan: &NetworkPlan, spec: &FlowSpec<'_>, routes: &[Path]) -> Self {
        let source = spec.ends(plan, spec.to[0]);
        let nodes = |route: &Path| -> Vec<NodeId> {
            route.hops.iter().skip(1).map(|&hop| plan.sender(hop)).collect()
        };
        // Gateways are on the hosts' own datagrams, as relays are.
        let taken_over = can_relay(spec.over, 1)
            && spec.over.get(1).is_some_and(|layer| layer.settings().ends_connections());
        let proxies = if taken_over { network.role("proxy") } else { &[] };
        let named_relays = network.roles.get("relay");
        let relays = |node: &&NodeId| named_relays.is_none_or(|relays| relays.contains(node));
        // A prefix may be that of a link beside the route, and end with it: a node's own address is reached as long as
        // any link leads to it.
        let at = |node| SocketAddr::new(addresses_of(node)[usize::from(spec.ipv6)], source.remote.port());
        let relaying: BTreeSet<NodeId> = routes.iter().flat_map(nodes).filter(|node| relays(&node)).collect();
        let edge_at = |node| {
            let ports = if relaying.contains(&node) { source.local } else { source.remote };
            SocketAddr::new(spec.address(plan, node), ports.port())
        };
        let (mut tree, mut places) = (Self::default(), BTreeMap::new());
        // Several routes to one receiver have participants of their own.
        let receivers = spec.to.iter().chain(std::iter::repeat(&spec.to[0]));
        for (&receiver, route) in receivers.zip(routes) {
            let between = nodes(route);
            let is_proxy = |node: &NodeId| proxies.contains(node);
            let gateways = (between.iter().position(is_proxy), between.iter().rposition(is_proxy));
            let mut branch = vec![(spec.from, source.local)];
            match gateways {
                (Some(first), Some(last)) if first < last => {
                    branch = vec![(between[first], at(between[first]))];
                    let inner = between[first + 1..last].iter();
                    branch.extend(inner.filter(relays).map(|&node| (node, at(node))));
                    branch.push((between[last], at(between[last])));
                }
                _ => {
                    branch.extend(between.iter().filter(relays).map(|&node| (node, at(node))));
                    branch.extend(relaying.get(&receiver).map(|&node| (node, at(node))));
                    branch.push((receiver, edge_at(receiver)));
                }
            }
            tree.grow(&branch, &mut places);
        }
        let is_end =
            |participant: &Participant| participant.parents.is_empty() || participant.children.is_empty();
        for (place, participant) in tree.all.iter().enumerate().filter(|(_, one)| is_end(one)) {
            tree.ends.entry(participant.node).or_insert(place);
        }
        tree
    }

    /// Adds those participants of a branch from the root that are not known yet, each as a child of the one before it.
    /// `known` has the place of each known participant by its address.
    fn grow(&mut self, branch: &[(NodeId, SocketAddr)], known: &mut BTreeMap<SocketAddr, usize>) {
        let places: Vec<Option<usize>> =
            branch.iter().map(|(_, address)| known.get(address).copied()).collect();
        let end = branch.len().saturating_sub(1);
        let joins = places[..end].iter().rposition(Option::is_some);
        let mut parent = joins.and_then(|at| places[at]);
        for (&(node, address), place) in branch.iter().zip(places).skip(joins.map_or(0, |at| at + 1)) {
            let place = place.unwrap_or_else(|| {
                self.all.push(Participant { node, address, parents: Vec::new(), children: Vec::new() });
                known.insert(address, self.all.len() - 1);
                self.all.len() - 1
            });
            if let Some(parent) = parent {
                self.all[parent].children.push(place);
                self.all[place].parents.push(parent);
            }
            parent = Some(place);
        }
    }

    /// The first: the sender, or the gateway that takes its connections over.
    pub fn root(&self) -> &Participant {
        &self.all[0]
    }

    /// The last of a single route: the receiver, or the gateway that opens the connections to it.
    pub fn far_end(&self) -> &Participant {
        self.all.iter().find(|participant| participant.children.is_empty()).unwrap_or(self.root())
    }

    /// The address of the first participant after the root.
    pub fn first_after_root(&self) -> Option<SocketAddr> {
        self.root().children.first().map(|&place| self.all[place].address)
    }

    /// The participants between the ends.
    pub fn between(&self) -> impl Iterator<Item = &Participant> {
        self.all
            .iter()
            .filter(|participant| !participant.parents.is_empty() && !participant.children.is_empty())
    }

    /// The address of the first participant before one of those between the ends.
    pub fn before(&self, participant: &Participant) -> Option<SocketAddr> {
        participant.parents.first().map(|&place| self.all[place].address)
    }

    /// The address of the first participant after one of those between the ends.
    pub fn after(&self, participant: &Participant) -> Option<SocketAddr> {
        participant.children.first().map(|&place| self.all[place].address)
    }

    /// The addresses of a participant's neighbours, towards the root and away from it.
    pub fn neighbours(&self, participant: &Participant) -> (Vec<SocketAddr>, Vec<SocketAddr>) {
        let addresses = |places: &[usize]| places.iter().map(|&place| self.all[place].address).collect();
        (addresses(&participant.parents), addresses(&participant.children))
    }

    /// The edge at a node.
    pub(super) fn end(&self, node: NodeId) -> Option<&Participant> {
        self.ends.get(&node).map(|&place| &self.all[place])
    }

    /// The address of the edge at a receiver.
    pub(super) fn address(&self, receiver: NodeId) -> Option<SocketAddr> {
        self.end(receiver).map(|participant| participant.address)
    }
}
