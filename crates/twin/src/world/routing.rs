//! Shortest-path routing by an oracle: routes are computed on demand from the whole network as it is now.
//!
//! A route goes over the fewest hops, among those over the least total delay, and among those over the link that
//! stands first in the file. Links that are down are not used, from the very instant on at which they go down: the
//! oracle stands for a routing protocol that has converged. Protocols that route for themselves do without it.

use std::cell::RefCell;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use hopcast_core::Duration;
use hopcast_host::{NextHop, Routes};

use crate::scenario::model::{LinkId, NodeId};
use hopcast_link::Attachment;

/// An Ethernet address.
pub(super) type Mac = [u8; 6];

/// The network as routing sees it.
pub(super) struct Oracle {
    /// For each node, the directed edges that lead *to* it.
    arriving: Vec<Vec<Edge>>,
    /// For each link, which of its attachments cannot send.
    down: Vec<Vec<Attachment>>,
    /// For each destination asked for, each node's next hop towards it.
    tables: BTreeMap<NodeId, Vec<Option<NextHop>>>,
    /// How many attachments each link has.
    ends: Vec<usize>,
    version: u64,
}

/// A way from one node to a neighbour.
#[derive(Clone, Copy)]
pub(super) struct Edge {
    pub(super) from: NodeId,
    pub(super) interface: u32,
    pub(super) link: LinkId,
    pub(super) attachment: Attachment,
    pub(super) delay: Duration,
    pub(super) mac: Mac,
}

/// Tables kept at once: a bound on memory, far above the destinations that flows have.
const MAX_TABLES: usize = 4096;

impl Oracle {
    pub(super) fn new(arriving: Vec<Vec<Edge>>, ends: Vec<usize>) -> Self {
        Self { arriving, down: vec![Vec::new(); ends.len()], ends, tables: BTreeMap::new(), version: 0 }
    }

    /// Takes a link out of use or back into it, for what attachment `from` sends or for all of them.
    pub(super) fn set_up(&mut self, link: LinkId, from: Option<Attachment>, up: bool) {
        let down = &mut self.down[link];
        let ends = match from {
            Some(from) => from..from + 1,
            None => 0..self.ends[link],
        };
        down.retain(|attachment| !ends.contains(attachment));
        if !up {
            down.extend(ends);
        }
        self.tables.clear();
        self.version += 1;
    }

    /// The way from a node towards another, over links that are up.
    pub(super) fn next_hop(&mut self, from: NodeId, to: NodeId) -> Option<NextHop> {
        if !self.tables.contains_key(&to) {
            if self.tables.len() >= MAX_TABLES {
                self.tables.pop_first();
            }
            let table = self.table_towards(to);
            self.tables.insert(to, table);
        }
        self.tables[&to][from]
    }

    /// Dijkstra from the destination against the direction of travel.
    fn table_towards(&self, to: NodeId) -> Vec<Option<NextHop>> {
        let mut best: Vec<Option<(u32, Duration, usize)>> = vec![None; self.arriving.len()];
        let mut next = vec![None; self.arriving.len()];
        let mut open = BinaryHeap::new();
        open.push(Reverse((0u32, Duration::ZERO, to)));
        while let Some(Reverse((hops, delay, node))) = open.pop() {
            if best[node].is_some_and(|(h, d, _)| (h, d) < (hops, delay)) {
                continue;
            }
            for edge in self.arriving[node]
                .iter()
                .filter(|edge| !self.down[edge.link].contains(&edge.attachment) && edge.from != to)
            {
                let cost = (hops + 1, delay + edge.delay, edge.link);
                if best[edge.from].is_none_or(|known| cost < known) {
                    let cheaper = best[edge.from].is_none_or(|known| (cost.0, cost.1) < (known.0, known.1));
                    best[edge.from] = Some(cost);
                    next[edge.from] = Some(NextHop { interface: edge.interface, mac: edge.mac });
                    if cheaper {
                        open.push(Reverse((cost.0, cost.1, edge.from)));
                    }
                }
            }
        }
        next
    }
}

/// One node's view of the oracle.
pub(super) struct OracleRoutes {
    pub(super) node: NodeId,
    pub(super) oracle: Rc<RefCell<Oracle>>,
}

impl Routes for OracleRoutes {
    fn next_hop(&mut self, destination: IpAddr) -> Option<NextHop> {
        let mut oracle = self.oracle.borrow_mut();
        let to = node_of(destination).filter(|&to| to < oracle.arriving.len())?;
        oracle.next_hop(self.node, to)
    }

    fn version(&self) -> u64 {
        self.oracle.borrow().version
    }
}

/// The addresses of a node: 10.0.0.1 and fd00::1 for the first of the file.
pub(super) fn addresses_of(node: NodeId) -> [IpAddr; 2] {
    let number = node as u32 + 1;
    [
        IpAddr::V4(Ipv4Addr::from_bits(0x0a00_0000 | number)),
        IpAddr::V6(Ipv6Addr::from_bits((0xfd00 << 112) | u128::from(number))),
    ]
}

fn node_of(address: IpAddr) -> Option<NodeId> {
    let number = match address {
        IpAddr::V4(address) if address.octets()[0] == 10 => address.to_bits() & 0x00ff_ffff,
        IpAddr::V6(address) if address.to_bits() >> 32 == 0xfd00 << 80 => address.to_bits() as u32,
        IpAddr::V4(_) | IpAddr::V6(_) => return None,
    };
    (number as usize).checked_sub(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_leads_back_to_its_node() {
        for node in [0, 1, 255, 9_999, 1_000_000] {
            for address in addresses_of(node) {
                assert_eq!(node_of(address), Some(node), "{address}");
            }
        }
        assert_eq!(node_of("192.0.2.1".parse().unwrap()), None);
        assert_eq!(node_of("10.0.0.0".parse().unwrap()), None);
    }

    fn square() -> Oracle {
        // 0 - 1 - 3 and 0 - 2 - 3, the second with more delay.
        let edge = |from, interface, link, micros| Edge {
            from,
            interface,
            link,
            attachment: 0,
            delay: Duration::from_micros(micros),
            mac: [0; 6],
        };
        let arriving = vec![
            vec![edge(1, 0, 0, 10), edge(2, 0, 1, 90)],
            vec![edge(0, 0, 0, 10), edge(3, 0, 2, 10)],
            vec![edge(0, 1, 1, 90), edge(3, 1, 3, 10)],
            vec![edge(1, 1, 2, 10), edge(2, 1, 3, 10)],
        ];
        Oracle::new(arriving, vec![2; 4])
    }

    #[test]
    fn among_equal_hops_the_lesser_delay_wins_and_a_link_that_is_down_is_avoided() {
        let mut oracle = square();
        assert_eq!(oracle.next_hop(0, 3).map(|hop| hop.interface), Some(0));
        oracle.set_up(2, None, false);
        assert_eq!(oracle.next_hop(0, 3).map(|hop| hop.interface), Some(1));
        oracle.set_up(3, Some(0), false);
        assert_eq!(oracle.next_hop(0, 3), None);
        oracle.set_up(2, None, true);
        assert_eq!(oracle.next_hop(0, 3).map(|hop| hop.interface), Some(0));
    }
}
