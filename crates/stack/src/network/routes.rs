//! Idealised shortest-path routes, converged at once: computed on demand from the whole network as it is now.
//!
//! A route goes over the fewest hops, among those over the minimum total delay, and among those over the link that
//! stands first in the file. Links that are down are not used, from the instant on at which their owner says so: that
//! at which they go down, or later, if the scenario gives routing a time to converge. All nodes change at that one
//! instant. Routes that the file writes itself win over them, for all destinations that they cover. Protocols that
//! route for themselves do without these routes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use hopcast_host::{NextHop, RouteEntry, Routes};
use hopcast_link::{Attachment, Change};

use super::addresses::{MacAddress, addresses_of, mac_address, node_of};
use super::groups::GroupTrees;
use super::shortest_paths::{ShortestPaths, Step};
use super::static_routes::{StaticRoute, StaticTable};
use super::{Hop, LinkId, NodeId};

/// The network as routing sees it.
pub struct GlobalRoutes {
    paths: ShortestPaths,
    /// For each destination asked for, the step by which each node reaches it.
    tables: BTreeMap<NodeId, Vec<Option<Step>>>,
    pub(super) groups: GroupTrees,
    statics: StaticTable,
    version: u64,
}

/// The first step from one node to another.
pub(super) struct FirstStep {
    /// The number of the interface by which it leaves.
    pub(super) interface: u32,
    /// The next node.
    pub(super) via: NodeId,
    /// The number of the next node's interface to the first.
    pub(super) far_interface: u32,
    /// The Ethernet address of that interface.
    pub(super) mac: MacAddress,
}

/// A node's next hop towards another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Route {
    /// The destination.
    pub to: NodeId,
    /// The number of the interface that leads there.
    pub interface: u32,
    /// The next hop.
    pub via: NodeId,
    /// The next hop's Ethernet address there.
    pub mac: MacAddress,
}

/// Entries in all tables together: a quarter of a gigabyte.
const MAX_ENTRIES: usize = (1 << 28) / size_of::<Option<Step>>();

/// Maximum metric: no packet has more hops (RFC 791, RFC 8200).
const MAX_METRIC: u32 = 255;

impl GlobalRoutes {
    /// The routes of these paths.
    pub(super) fn new(paths: ShortestPaths) -> Self {
        let groups = GroupTrees::default();
        Self { paths, tables: BTreeMap::new(), groups, statics: StaticTable::default(), version: 0 }
    }

    /// Gives a node a route that wins over the shortest paths of all destinations that it covers; false, and nothing is
    /// changed, if the next hop is no neighbour. A link that goes down does not end it.
    pub fn add_static(&mut self, route: &StaticRoute) -> bool {
        let interface = self.paths.interface_to(route.node, route.via);
        if let Some(interface) = interface {
            self.statics.add(route.node, route.to, (interface, route.via));
            self.version += 1;
        }
        interface.is_some()
    }

    /// Follows a change of a link, for the direction that leaves attachment `from` or for all; true if routes may
    /// change with it.
    pub fn change_link(&mut self, link: LinkId, from: Option<Attachment>, change: &Change) -> bool {
        match change {
            Change::Up => self.paths.set_up(link, from, true),
            Change::Down => self.paths.set_up(link, from, false),
            Change::Delay(delay) => self.paths.set_delay(link, from, *delay),
            Change::Rate(_)
            | Change::Jitter(_)
            | Change::Loss(_)
            | Change::LossTo(..)
            | Change::Queue(_)
            | Change::Mtu(_)
            | Change::Reorder(_)
            | Change::Corrupt(_)
            | Change::Duplicate(_) => return false,
        }
        self.tables.clear();
        self.groups.forget_trees();
        self.version += 1;
        true
    }

    /// Number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.paths.nodes()
    }

    /// A number that changes whenever a tree of a group may have changed.
    pub(super) fn groups_version(&self) -> u64 {
        self.version + self.groups.changes
    }

    /// The first step of a node on its way to another.
    pub(super) fn first_step(&mut self, from: NodeId, to: NodeId) -> Option<FirstStep> {
        let step = self.step(from, to)?;
        let (Hop { link, .. }, via, attachment) = self.paths.describe(step);
        let (interface, far_interface) = (self.paths.interface(step), self.paths.far_interface(step));
        Some(FirstStep { interface, via, far_interface, mac: mac_address(link, attachment) })
    }

    /// A node's route to the address, IPv6 or IPv4, of each other node that it can reach now, in the order of nodes.
    pub fn from(&mut self, node: NodeId, ipv6: bool) -> Vec<Route> {
        let others = (0..self.paths.nodes()).filter(|&to| to != node);
        others.filter_map(|to| self.route(node, to, ipv6)).collect()
    }

    /// The first hop from a node towards another, over links that are up, and the node that it leads to.
    pub(super) fn next_hop(&mut self, from: NodeId, to: NodeId) -> Option<(Hop, NodeId)> {
        let step = self.step(from, to)?;
        let (hop, via, _) = self.paths.describe(step);
        Some((hop, via))
    }

    /// The hop by which packets come to a node against its shortest path to a root, as those to groups do, and the
    /// node that they come from.
    pub(super) fn last_hop(&mut self, root: NodeId, node: NodeId) -> Option<(Hop, NodeId)> {
        let step = self.step(node, root)?;
        let (Hop { link, .. }, via, attachment) = self.paths.describe(step);
        Some((Hop { link, attachment }, via))
    }

    fn route(&mut self, from: NodeId, to: NodeId, ipv6: bool) -> Option<Route> {
        if let Some((interface, via)) = self.statics.find(from, addresses_of(to)[usize::from(ipv6)]) {
            let Hop { link, attachment } = self.paths.neighbour(from, interface, via)?;
            return Some(Route { to, interface, via, mac: mac_address(link, attachment) });
        }
        let step = self.step(from, to)?;
        let (Hop { link, .. }, via, attachment) = self.paths.describe(step);
        Some(Route { to, interface: self.paths.interface(step), via, mac: mac_address(link, attachment) })
    }

    fn step(&mut self, from: NodeId, to: NodeId) -> Option<Step> {
        if !self.tables.contains_key(&to) {
            let nodes = self.paths.nodes();
            if (self.tables.len() + 1) * nodes > MAX_ENTRIES {
                self.tables.pop_first();
            }
            self.paths.search(to);
            let table = (0..nodes).map(|node| self.paths.step(node)).collect();
            self.tables.insert(to, table);
        }
        self.tables[&to][from]
    }
}

/// One node's view of the routes, for its host.
pub(crate) struct NodeRoutes {
    pub(crate) node: NodeId,
    pub(crate) routes: Rc<RefCell<GlobalRoutes>>,
}

impl Routes for NodeRoutes {
    fn next_hop(&mut self, destination: IpAddr) -> Option<NextHop> {
        let mut routes = self.routes.borrow_mut();
        let to = node_of(destination).filter(|&to| to < routes.paths.nodes())?;
        routes
            .route(self.node, to, destination.is_ipv6())
            .map(|route| NextHop { interface: route.interface, mac: route.mac })
    }

    fn version(&self) -> u64 {
        self.routes.borrow().version
    }

    fn route(&mut self, destination: IpAddr) -> Option<RouteEntry> {
        let mut routes = self.routes.borrow_mut();
        let to = node_of(destination).filter(|&to| to < routes.nodes())?;
        let ipv6 = destination.is_ipv6();
        let Route { interface, via, .. } = routes.route(self.node, to, ipv6)?;
        let (mut node, mut metric) = (via, 1);
        // Static routes may lead in a circle.
        while let Some(next) = routes.route(node, to, ipv6).filter(|_| node != to && metric < MAX_METRIC) {
            node = next.via;
            metric += 1;
        }
        let neighbour = addresses_of(via)[usize::from(destination.is_ipv6())];
        Some(RouteEntry { interface, neighbour, metric })
    }

    fn neighbour(&mut self, destination: IpAddr) -> Option<(u32, IpAddr)> {
        let mut routes = self.routes.borrow_mut();
        let to = node_of(destination).filter(|&to| to < routes.nodes())?;
        let Route { interface, via, .. } = routes.route(self.node, to, destination.is_ipv6())?;
        Some((interface, addresses_of(via)[usize::from(destination.is_ipv6())]))
    }

    fn station(&mut self, interface: u32, neighbour: IpAddr) -> Option<MacAddress> {
        let hop = self.routes.borrow().paths.neighbour(self.node, interface, node_of(neighbour)?)?;
        Some(mac_address(hop.link, hop.attachment))
    }
}

#[cfg(test)]
mod tests {
    use hopcast_core::Duration;
    use hopcast_link::{Config, Direction};

    use super::*;
    use crate::network::{Link, LinkModel};

    /// 0 - 1 - 3 and 0 - 2 - 3, the second with more delay.
    fn square() -> GlobalRoutes {
        let links = [(0, 1, 10), (0, 2, 90), (1, 3, 10), (2, 3, 10)].map(|(a, b, micros)| {
            let direction = Direction { delay: Duration::from_micros(micros), ..Direction::default() };
            let (forward, backward) = (direction.clone(), direction);
            let model = LinkModel::PointToPoint(Config { forward, backward, ..Config::default() });
            Link { name: String::new(), ends: vec![a, b], model }
        });
        GlobalRoutes::new(ShortestPaths::new(4, &links))
    }

    fn via(routes: &mut GlobalRoutes) -> Option<LinkId> {
        routes.next_hop(0, 3).map(|(hop, _)| hop.link)
    }

    #[test]
    fn among_equal_hops_the_lesser_delay_wins_and_a_link_that_is_down_is_avoided() {
        let mut routes = square();
        assert_eq!(via(&mut routes), Some(0));
        routes.change_link(2, None, &Change::Down);
        assert_eq!(via(&mut routes), Some(1));
        routes.change_link(3, Some(0), &Change::Down);
        assert_eq!(via(&mut routes), None);
        routes.change_link(2, None, &Change::Up);
        assert_eq!(via(&mut routes), Some(0));
    }

    #[test]
    fn a_new_delay_moves_the_route_and_of_equals_the_first_link_wins() {
        let mut routes = square();
        routes.change_link(0, None, &Change::Delay(Duration::from_micros(500)));
        assert_eq!(via(&mut routes), Some(1));
        routes.change_link(0, None, &Change::Delay(Duration::from_micros(90)));
        assert_eq!(via(&mut routes), Some(0));
    }

    #[test]
    fn a_route_names_the_interface_that_it_leaves_by_and_the_address_that_it_leads_to() {
        let route = |interface, via, link, attachment| Route {
            to: 2,
            interface,
            via,
            mac: mac_address(link, attachment),
        };
        let mut routes = square();
        assert_eq!(routes.from(0, false)[1], route(1, 2, 1, 1));
        assert_eq!(routes.from(3, true)[2], route(1, 2, 3, 0));
        assert_eq!(routes.from(1, false)[1], route(1, 3, 2, 1), "by less delay");
    }
}
