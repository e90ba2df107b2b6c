//! Idealised shortest-path routes, converged at once: computed on demand from the whole network as it is now.
//!
//! A route goes over the fewest hops, among those over the minimum total delay, and among those over the link that
//! stands first in the file. Links that are down are not used, from the very instant on at which they go down.
//! Protocols that route for themselves do without these routes.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::IpAddr;
use std::rc::Rc;

use hopcast_core::Duration;
use hopcast_host::{NextHop, Routes};
use hopcast_link::{Attachment, Change};

use super::addresses::{MacAddress, node_of};
use super::{LinkId, NodeId};

/// The network as routing sees it.
pub struct GlobalRoutes {
    edges: Vec<Edge>,
    /// For each node, the numbers of the edges that lead to it.
    arriving: Vec<Vec<u32>>,
    /// For each link, the numbers of its edges, from the first on.
    of_link: BTreeMap<LinkId, (u32, u32)>,
    /// For each edge, whether it can be used.
    up: Vec<bool>,
    /// For each destination asked for, the edge by which each node reaches it, or `NONE`.
    tables: BTreeMap<NodeId, Vec<u32>>,
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

/// One direction of a link: from one node to a neighbour.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    pub(super) from: NodeId,
    pub(super) to: NodeId,
    pub(super) interface: u32,
    pub(super) link: LinkId,
    pub(super) attachment: Attachment,
    pub(super) delay: Duration,
    pub(super) mac: MacAddress,
}

const NONE: u32 = u32::MAX;

/// Entries in all tables together: a quarter of a gigabyte.
const MAX_ENTRIES: usize = 1 << 26;

impl GlobalRoutes {
    /// The network of `nodes` nodes and `edges`, in the order of the file.
    pub(super) fn new(nodes: usize, edges: Vec<Edge>) -> Self {
        let mut arriving = vec![Vec::new(); nodes];
        let mut of_link = BTreeMap::new();
        for (number, edge) in edges.iter().enumerate() {
            let number = number as u32;
            arriving[edge.to].push(number);
            of_link.entry(edge.link).or_insert((number, number)).1 = number + 1;
        }
        let up = vec![true; edges.len()];
        Self { edges, arriving, of_link, up, tables: BTreeMap::new(), version: 0 }
    }

    /// Takes a link out of use or back into it, for what attachment `from` sends or for all of them.
    pub(super) fn set_up(&mut self, link: LinkId, from: Option<Attachment>, up: bool) {
        self.change(link, from, |_, usable| *usable = up);
    }

    /// Gives a link a new delay, likewise.
    pub(super) fn set_delay(&mut self, link: LinkId, from: Option<Attachment>, delay: Duration) {
        self.change(link, from, |edge, _| edge.delay = delay);
    }

    /// Follows a change of a link, for the direction that leaves attachment `from` or for all; true if routes may
    /// change with it.
    pub fn change_link(&mut self, link: LinkId, from: Option<Attachment>, change: &Change) -> bool {
        match change {
            Change::Up => self.set_up(link, from, true),
            Change::Down => self.set_up(link, from, false),
            Change::Delay(delay) => self.set_delay(link, from, *delay),
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
        true
    }

    fn change(&mut self, link: LinkId, from: Option<Attachment>, apply: impl Fn(&mut Edge, &mut bool)) {
        let Some(&(start, end)) = self.of_link.get(&link) else { return };
        for number in start as usize..end as usize {
            let edge = &mut self.edges[number];
            if from.is_none_or(|from| from == edge.attachment) {
                apply(edge, &mut self.up[number]);
            }
        }
        self.tables.clear();
        self.version += 1;
    }

    /// A node's route to each other node that it can reach now, in the order of nodes.
    pub fn from(&mut self, node: NodeId) -> Vec<Route> {
        let others = (0..self.arriving.len()).filter(|&to| to != node);
        let route = |to| {
            let edge = self.next_edge(node, to)?;
            Some(Route { to, interface: edge.interface, via: edge.to, mac: edge.mac })
        };
        others.filter_map(route).collect()
    }

    /// The first edge from a node towards another, over links that are up.
    pub(super) fn next_edge(&mut self, from: NodeId, to: NodeId) -> Option<&Edge> {
        if !self.tables.contains_key(&to) {
            if (self.tables.len() + 1) * self.arriving.len() > MAX_ENTRIES {
                self.tables.pop_first();
            }
            let table = self.table_towards(to);
            self.tables.insert(to, table);
        }
        self.edges.get(self.tables[&to][from] as usize)
    }

    /// Dijkstra from the destination against the direction of travel.
    fn table_towards(&self, to: NodeId) -> Vec<u32> {
        let mut best = vec![(u32::MAX, Duration::MAX); self.arriving.len()];
        let mut table = vec![NONE; self.arriving.len()];
        let mut open = BinaryHeap::from([Reverse((0, Duration::ZERO, to))]);
        best[to] = (0, Duration::ZERO);
        while let Some(Reverse((hops, delay, node))) = open.pop() {
            if best[node] < (hops, delay) {
                continue;
            }
            for &number in &self.arriving[node] {
                let edge = &self.edges[number as usize];
                let cost = (hops + 1, delay + edge.delay);
                if !self.up[number as usize] || cost > best[edge.from] {
                    continue;
                }
                if cost < best[edge.from] {
                    best[edge.from] = cost;
                    table[edge.from] = number;
                    open.push(Reverse((cost.0, cost.1, edge.from)));
                } else {
                    // As good: the link that stands first in the file. Edges are numbered in its order.
                    table[edge.from] = table[edge.from].min(number);
                }
            }
        }
        table
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
        let to = node_of(destination).filter(|&to| to < routes.arriving.len())?;
        routes.next_edge(self.node, to).map(|edge| NextHop { interface: edge.interface, mac: edge.mac })
    }

    fn version(&self) -> u64 {
        self.routes.borrow().version
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// 0 - 1 - 3 and 0 - 2 - 3, the second with more delay.
    fn square() -> GlobalRoutes {
        let links = [(0, 1, 10), (0, 2, 90), (1, 3, 10), (2, 3, 10)];
        let both_ways = links.iter().enumerate().flat_map(|(link, &(a, b, micros))| {
            let edge = move |from, to, attachment| Edge {
                from,
                to,
                interface: link as u32,
                link,
                attachment,
                delay: Duration::from_micros(micros),
                mac: [0; 6],
            };
            [edge(a, b, 0), edge(b, a, 1)]
        });
        GlobalRoutes::new(4, both_ways.collect())
    }

    #[test]
    fn among_equal_hops_the_lesser_delay_wins_and_a_link_that_is_down_is_avoided() {
        let mut routes = square();
        let via = |routes: &mut GlobalRoutes| routes.next_edge(0, 3).map(|edge| edge.link);
        assert_eq!(via(&mut routes), Some(0));
        routes.set_up(2, None, false);
        assert_eq!(via(&mut routes), Some(1));
        routes.set_up(3, Some(0), false);
        assert_eq!(via(&mut routes), None);
        routes.set_up(2, None, true);
        assert_eq!(via(&mut routes), Some(0));
    }

    #[test]
    fn a_new_delay_moves_the_route_and_of_equals_the_first_link_wins() {
        let mut routes = square();
        routes.set_delay(0, None, Duration::from_micros(500));
        assert_eq!(routes.next_edge(0, 3).map(|edge| edge.link), Some(1));
        routes.set_delay(0, None, Duration::from_micros(90));
        assert_eq!(routes.next_edge(0, 3).map(|edge| edge.link), Some(0));
    }
}
