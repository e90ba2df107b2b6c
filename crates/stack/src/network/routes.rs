//! Idealised shortest-path routes, converged at once: computed on demand from the whole network as it is now.
//!
//! A route goes over the fewest hops, among those over the minimum total delay, and among those over the link that
//! stands first in the file. Links that are down are not used, from the very instant on at which they go down.
//! Protocols that route for themselves do without these routes.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::IpAddr;
use std::rc::Rc;

use hopcast_host::{NextHop, RouteEntry, Routes};
use hopcast_link::{Attachment, Change};

use super::addresses::{MacAddress, addresses_of, mac_address, node_of};
use super::groups::GroupTrees;
use super::shortest_paths::{ShortestPaths, Step};
use super::{Hop, LinkId, NodeId};

/// The network as routing sees it.
pub struct GlobalRoutes {
    paths: ShortestPaths,
    /// For each destination asked for, the step by which each node reaches it.
    tables: BTreeMap<NodeId, Vec<Option<Step>>>,
    pub(super) groups: GroupTrees,
    version: u64,
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

impl GlobalRoutes {
    /// The routes of these paths.
    pub(super) fn new(paths: ShortestPaths) -> Self {
        let groups = GroupTrees::default();
        Self { paths, tables: BTreeMap::new(), groups, version: 0 }
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

    /// The number of the interface by which a node reaches the next on its way to another; the next node, and the
    /// number of its interface to the first.
    pub(super) fn hop_between(&mut self, from: NodeId, to: NodeId) -> Option<(u32, NodeId, u32)> {
        let step = self.step(from, to)?;
        let (_, via, _) = self.paths.describe(step);
        Some((self.paths.interface(step), via, self.paths.far_interface(step)))
    }

    /// A node's route to each other node that it can reach now, in the order of nodes.
    pub fn from(&mut self, node: NodeId) -> Vec<Route> {
        (0..self.paths.nodes()).filter(|&to| to != node).filter_map(|to| self.route(node, to)).collect()
    }

    /// The first hop from a node towards another, over links that are up, and the node that it leads to.
    pub(super) fn next_hop(&mut self, from: NodeId, to: NodeId) -> Option<(Hop, NodeId)> {
        let step = self.step(from, to)?;
        let (hop, via, _) = self.paths.describe(step);
        Some((hop, via))
    }

    fn route(&mut self, from: NodeId, to: NodeId) -> Option<Route> {
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
        routes.route(self.node, to).map(|route| NextHop { interface: route.interface, mac: route.mac })
    }

    fn version(&self) -> u64 {
        self.routes.borrow().version
    }

    fn route(&mut self, destination: IpAddr) -> Option<RouteEntry> {
        let mut routes = self.routes.borrow_mut();
        let to = node_of(destination).filter(|&to| to < routes.nodes())?;
        let Route { interface, via, .. } = routes.route(self.node, to)?;
        let (mut node, mut metric) = (via, 1);
        while let Some((_, next)) = routes.next_hop(node, to).filter(|_| node != to) {
            node = next;
            metric += 1;
        }
        let neighbour = addresses_of(via)[usize::from(destination.is_ipv6())];
        Some(RouteEntry { interface, neighbour, metric })
    }

    fn neighbour(&mut self, destination: IpAddr) -> Option<(u32, IpAddr)> {
        let mut routes = self.routes.borrow_mut();
        let to = node_of(destination).filter(|&to| to < routes.nodes())?;
        let Route { interface, via, .. } = routes.route(self.node, to)?;
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
        assert_eq!(routes.from(0)[1], route(1, 2, 1, 1));
        assert_eq!(routes.from(3)[2], route(1, 2, 3, 0));
        assert_eq!(routes.from(1)[1], route(1, 3, 2, 1), "by less delay");
    }
}
