//! Idealised trees of groups, converged at once: whoever joins is known everywhere at the same instant, and packets
//! come to each member by the reverse of its shortest path to their sender. Groups whose delivery leaves them to the
//! routers' own services have none: what such a service has found is the route.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::sync::Arc;

use hopcast_host::pim::GroupTable;
use hopcast_host::{GroupRoute, GroupRoutes};

use super::NodeId;
use super::node_routes::NodeRoutes;
use super::routes::GlobalRoutes;

/// The members of all groups, and the trees to them.
#[derive(Default)]
pub(super) struct GroupTrees {
    members: BTreeMap<IpAddr, BTreeMap<NodeId, Wanted>>,
    /// For each source and group that was asked for, the tree.
    trees: BTreeMap<(IpAddr, IpAddr), Tree>,
    /// Number of changes of members so far.
    pub(super) changes: u64,
    /// The groups whose trees routers make themselves.
    by_services: BTreeSet<IpAddr>,
}

/// The packets of a group that a node wants.
#[derive(Default)]
struct Wanted {
    of_any: bool,
    of: BTreeSet<IpAddr>,
}

/// Maximum number of trees that are kept. Chosen: more than the pairs of sender and group of the largest scenarios;
/// with more, they are made anew.
const MAX_TREES: usize = 100_000;

/// For each node of a tree, the numbers of the interfaces on which it sends packets on.
type Tree = BTreeMap<NodeId, BTreeSet<u32>>;

impl GroupTrees {
    /// Forgets the trees, since routes have changed.
    pub(super) fn forget_trees(&mut self) {
        self.trees.clear();
    }

    fn change(&mut self, node: NodeId, group: IpAddr, source: Option<IpAddr>, joined: bool) {
        let members = self.members.entry(group).or_default();
        let wanted = members.entry(node).or_default();
        match (source, joined) {
            (None, _) => wanted.of_any = joined,
            (Some(source), true) => _ = wanted.of.insert(source),
            (Some(source), false) => _ = wanted.of.remove(&source),
        }
        if !wanted.of_any && wanted.of.is_empty() {
            members.remove(&node);
        }
        if members.is_empty() {
            self.members.remove(&group);
        }
        self.trees.retain(|(_, of), _| *of != group);
        self.changes += 1;
    }

    /// The members that want what a sender sends to a group, in the order of nodes.
    fn members(&self, source: IpAddr, group: IpAddr) -> Vec<NodeId> {
        let wants = |wanted: &Wanted| wanted.of_any || wanted.of.contains(&source);
        let members = self.members.get(&group).into_iter().flatten();
        members.filter(|(_, wanted)| wants(wanted)).map(|(&node, _)| node).collect()
    }
}

impl GlobalRoutes {
    /// Notes that a node wants the packets of a group from now on, or no longer does: those of one source, or of any.
    pub fn change_member(&mut self, node: NodeId, group: IpAddr, source: Option<IpAddr>, joined: bool) {
        self.groups.change(node, group, source, joined);
    }

    /// Leaves the trees of a group to the services of routers.
    pub fn leave_to_services(&mut self, group: IpAddr) {
        self.groups.by_services.insert(group);
    }

    /// The groups whose trees are left to the services of routers.
    pub fn left_to_services(&self) -> impl Iterator<Item = IpAddr> {
        self.groups.by_services.iter().copied()
    }

    /// Whether the trees of a group are left to the services of routers.
    pub(crate) fn is_left_to_services(&self, group: IpAddr) -> bool {
        self.groups.by_services.contains(&group)
    }

    /// The route of packets from `source` to `group` through a node. `None` for a source that is no node's address, and
    /// at a node from which the source cannot be reached.
    pub fn group_route(&mut self, node: NodeId, source: IpAddr, group: IpAddr) -> Option<GroupRoute> {
        let root = self.addresses().owner(source)?;
        let towards = match node == root {
            true => None,
            false => Some(self.first_step(node, root)?),
        };
        let (ingress, upstream) = towards.map(|step| (step.interface, step.mac)).unzip();
        if !self.groups.trees.contains_key(&(source, group)) {
            let tree = self.tree(root, self.groups.members(source, group));
            if self.groups.trees.len() >= MAX_TREES {
                self.groups.trees.clear();
            }
            self.groups.trees.insert((source, group), tree);
        }
        let egress = self.groups.trees[&(source, group)].get(&node).into_iter().flatten().copied();
        Some(GroupRoute { ingress, upstream, egress: egress.collect() })
    }

    /// The tree from a sender to members: each member's shortest path to the sender, backwards.
    fn tree(&mut self, root: NodeId, members: Vec<NodeId>) -> Tree {
        let mut tree = Tree::new();
        let mut joined = BTreeSet::from([root]);
        for member in members {
            let mut node = member;
            // What has joined has brought all nodes before it into the tree.
            while joined.insert(node) {
                let Some(step) = self.first_step(node, root) else { break };
                tree.entry(step.via).or_default().insert(step.far_interface);
                node = step.via;
            }
        }
        tree
    }
}

/// One node's view of the trees, for its host.
pub(crate) struct NodeGroups {
    routes: NodeRoutes,
    /// The routes of groups that are left to services: those of this node's, or `None` where none runs. One that brings
    /// packets to members by hooks leaves it empty.
    table: Option<GroupTable>,
    /// The numbers of all interfaces, by which a host without such a service sends.
    all: Arc<[u32]>,
}

impl NodeGroups {
    /// The view of a node with this number of interfaces.
    pub(crate) fn new(routes: NodeRoutes, table: Option<GroupTable>, interfaces: usize) -> Self {
        Self { routes, table, all: (0..interfaces as u32).collect() }
    }

    fn is_left_to_services(&self, group: IpAddr) -> bool {
        self.routes.routes.borrow().is_left_to_services(group)
    }
}

impl GroupRoutes for NodeGroups {
    fn route(&mut self, source: IpAddr, group: IpAddr) -> Option<GroupRoute> {
        match (self.is_left_to_services(group), &mut self.table) {
            (false, _) => self.routes.routes.borrow_mut().group_route(self.routes.node, source, group),
            (true, Some(table)) => table.route(source, group),
            // A host knows no trees: it sends to all routers beside it, and takes what it is sent.
            (true, None) => {
                let owner = self.routes.routes.borrow().addresses().owner(source);
                let own = || GroupRoute { egress: self.all.clone(), ..GroupRoute::default() };
                (owner == Some(self.routes.node)).then(own)
            }
        }
    }

    fn version(&self) -> u64 {
        let own = self.table.as_ref().map_or(0, GroupRoutes::version);
        self.routes.routes.borrow().groups_version() + own
    }

    fn member(&mut self, group: IpAddr, source: Option<IpAddr>, joined: bool) {
        match (self.is_left_to_services(group), &mut self.table) {
            (false, _) => {
                self.routes.routes.borrow_mut().groups.change(self.routes.node, group, source, joined);
            }
            (true, Some(table)) => table.member(group, source, joined),
            // Its own reports say so.
            (true, None) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use hopcast_host::Prefix;
    use hopcast_link::Config;

    use super::*;
    use crate::network::{Link, LinkModel, Network, NetworkPlan, Node};

    const HUB: NodeId = 4;

    /// Nodes 0 to 3, each with a link to the hub, whose interfaces have their numbers; that of 0 has a prefix.
    fn star() -> GlobalRoutes {
        let nodes: Vec<_> =
            (0..=HUB).map(|n| Node { name: format!("n{n}"), position: None, claims: Vec::new() }).collect();
        let link = |node: NodeId| Link {
            name: String::new(),
            ends: vec![node, HUB],
            prefixes: Prefix::new([10, 7, 0, 0].into(), 24).into_iter().filter(|_| node == 0).collect(),
            model: LinkModel::PointToPoint(Config::default()),
        };
        let links: Vec<_> = (0..HUB).map(link).collect();
        let network = Network { nodes: &nodes, links: &links, roles: &BTreeMap::new(), services: &[] };
        NetworkPlan::of(network).routes(network)
    }

    /// The nodes that the hub sends on to.
    fn onwards(routes: &mut GlobalRoutes, source: &str, group: &str) -> Vec<u32> {
        let route = routes.group_route(HUB, source.parse().unwrap(), group.parse().unwrap()).unwrap();
        route.egress.to_vec()
    }

    #[test]
    fn trees_are_those_of_a_source_and_a_group() {
        let (g, h, k) = ("239.0.0.1", "239.0.0.2", "232.0.0.1");
        let mut routes = star();
        for (group, source, members) in [(g, None, &[1, 2][..]), (h, None, &[3]), (k, Some("10.7.0.1"), &[2])]
        {
            let source = source.map(|source| source.parse().unwrap());
            members.iter().for_each(|&node| routes.change_member(node, group.parse().unwrap(), source, true));
        }
        // Asked for twice: found, and then known.
        for _ in 0..2 {
            // Of several senders to one group, each at a place of its own.
            assert_eq!(onwards(&mut routes, "10.0.0.1", g), [1, 2]);
            assert_eq!(onwards(&mut routes, "10.0.0.2", g), [2]);
            assert_eq!(onwards(&mut routes, "10.0.0.3", g), [1]);
            // Of one sender to several groups.
            assert_eq!(onwards(&mut routes, "10.0.0.1", h), [3]);
            // Of one node by each of its addresses, of which the members want one.
            assert_eq!(onwards(&mut routes, "10.7.0.1", k), [2]);
            assert!(onwards(&mut routes, "10.0.0.1", k).is_empty());
        }
        let at_hub = |routes: &mut GlobalRoutes, source: &str| {
            let route = routes.group_route(HUB, source.parse().unwrap(), g.parse().unwrap()).unwrap();
            route.ingress
        };
        assert_eq!(["10.7.0.1", "10.0.0.3"].map(|source| at_hub(&mut routes, source)), [Some(0), Some(2)]);
        routes.change_member(1, g.parse().unwrap(), None, false);
        assert_eq!(
            (onwards(&mut routes, "10.0.0.1", g), onwards(&mut routes, "10.0.0.1", h)),
            (vec![2], vec![3])
        );
    }
}
