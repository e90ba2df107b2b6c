//! Max-flows of one network between many pairs of its nodes.
//!
//! A group needs a max-flow for each member, and most of these are limited near their ends. So the search proceeds from
//! both ends at once (Dinic, with levels from either side), stops as soon as the flow equals the capacity that leaves
//! the source or enters the destination, and afterwards restores only the edges that it has changed.

use petgraph::graph::{DiGraph, EdgeIndex};

/// A network of edges, in which one flow at a time is found.
#[derive(Debug, Default)]
pub(super) struct MaxFlow {
    nodes: Vec<Vertex>,
    /// The arcs; numbers `2 i` and `2 i + 1` are the two directions of one edge.
    arcs: Vec<Arc>,
    /// Arcs that the flow has changed, some more than once.
    changed: Vec<u32>,
    /// The number of the search: entries of earlier rounds are stale, so that nothing needs to be cleared.
    round: u32,
    /// The nodes that the search has reached in its last step, from the source and from the destination.
    frontiers: [Vec<u32>; 2],
    next: Vec<u32>,
    /// The path from the source that is being tried.
    path: Vec<u32>,
    /// Number of arcs that searches have looked at, for tests of what they cost.
    looked_at: u64,
}

/// Number that stands for no arc.
const NONE: u32 = u32::MAX;

/// A node.
#[derive(Clone, Copy, Debug)]
struct Vertex {
    /// Its first arc, or [`NONE`].
    first: u32,
    /// The first of its arcs that the flow of this round may still use.
    open: u32,
    round: u32,
    /// Distance in arcs from the end from which the search has reached it in this round.
    distance: u32,
    end: End,
}

/// One direction of an edge.
#[derive(Clone, Copy, Debug)]
struct Arc {
    to: u32,
    /// The next arc of the same node, or [`NONE`].
    next: u32,
    capacity: u128,
    /// Residual capacity.
    left: u128,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Source,
    Destination,
}

/// The size of a network, to which it can be truncated.
#[derive(Clone, Copy, Debug)]
pub(super) struct Size {
    nodes: usize,
    arcs: usize,
}

impl MaxFlow {
    /// Adds a node, and returns its number.
    pub(super) fn add_node(&mut self) -> usize {
        self.nodes.push(Vertex { first: NONE, open: NONE, round: 0, distance: 0, end: End::Source });
        self.nodes.len() - 1
    }

    /// Adds an edge with its capacity in both directions, and returns its number in [`graph`](Self::graph) from the
    /// first node to the second.
    pub(super) fn add_edge(&mut self, [from, to]: [usize; 2], [there, back]: [u128; 2]) -> EdgeIndex {
        let edge = EdgeIndex::new(self.arcs.len());
        for (node, other, capacity) in [(from, to, there), (to, from, back)] {
            let number = self.arcs.len() as u32;
            let next = std::mem::replace(&mut self.nodes[node].first, number);
            self.arcs.push(Arc { to: other as u32, next, capacity, left: capacity });
        }
        edge
    }

    /// The network as a graph, with an edge for each direction of each edge.
    pub(super) fn graph(&self) -> DiGraph<(), u128> {
        let mut graph = DiGraph::with_capacity(self.nodes.len(), self.arcs.len());
        self.nodes.iter().for_each(|_| _ = graph.add_node(()));
        for (number, arc) in self.arcs.iter().enumerate() {
            let from = self.arcs[number ^ 1].to;
            graph.add_edge(from.into(), arc.to.into(), arc.capacity);
        }
        graph
    }

    /// The current size of the network.
    pub(super) fn size(&self) -> Size {
        Size { nodes: self.nodes.len(), arcs: self.arcs.len() }
    }

    /// Removes the nodes and edges that were added since the network had this size.
    pub(super) fn truncate(&mut self, size: Size) {
        while self.arcs.len() > size.arcs
            && let (Some(back), Some(there)) = (self.arcs.pop(), self.arcs.pop())
        {
            // Each arc belongs to the node that the opposite one leads to.
            self.nodes[there.to as usize].first = back.next;
            self.nodes[back.to as usize].first = there.next;
        }
        self.nodes.truncate(size.nodes);
    }

    /// The nodes that an edge with any capacity leads to from `node`, or from which one leads to it.
    pub(super) fn neighbours(&self, node: usize, incoming: bool) -> impl Iterator<Item = usize> {
        let open = move |arc: &u32| self.arcs[*arc as usize ^ usize::from(incoming)].capacity > 0;
        self.arcs_at(node as u32).filter(open).map(|arc| self.arcs[arc as usize].to as usize)
    }

    /// The max-flow from one node to another, at most `limit`.
    pub(super) fn between(&mut self, from: usize, to: usize, limit: u128) -> u128 {
        let (from, to) = (from as u32, to as u32);
        let leaves: u128 = self.arcs_at(from).map(|arc| self.arcs[arc as usize].capacity).sum();
        let enters: u128 = self.arcs_at(to).map(|arc| self.arcs[arc as usize ^ 1].capacity).sum();
        let limit = limit.min(leaves).min(enters);
        let mut flow = 0;
        while flow < limit
            && let Some(length) = self.search(from, to)
        {
            flow += self.augment(from, to, length, limit - flow);
        }
        for arc in self.changed.drain(..) {
            let arc = &mut self.arcs[arc as usize];
            arc.left = arc.capacity;
        }
        flow
    }

    /// Number of arcs that searches have looked at so far.
    #[cfg(test)]
    fn looked_at(&self) -> u64 {
        self.looked_at
    }

    /// Reaches nodes from both ends, each time from the end with the smaller frontier, until they meet; returns the
    /// length of the shortest paths, if there are any.
    fn search(&mut self, from: u32, to: u32) -> Option<u32> {
        self.round += 1;
        let mut distances = [0, 0];
        for (frontier, node, end) in [(0, from, End::Source), (1, to, End::Destination)] {
            self.reach(node, 0, end);
            self.frontiers[frontier].clear();
            self.frontiers[frontier].push(node);
        }
        loop {
            let (side, end) = match self.frontiers[0].len() <= self.frontiers[1].len() {
                true => (0, End::Source),
                false => (1, End::Destination),
            };
            distances[side] += 1;
            let frontier = std::mem::take(&mut self.frontiers[side]);
            let met = frontier.iter().any(|&node| self.expand(node, distances[side], end));
            self.frontiers[side] = std::mem::replace(&mut self.next, frontier);
            self.next.clear();
            if met {
                return Some(distances[0] + distances[1]);
            }
            if self.frontiers[side].is_empty() {
                return None;
            }
        }
    }

    /// Reaches the nodes one arc from a node; true if one of them was reached from the other end.
    fn expand(&mut self, node: u32, distance: u32, end: End) -> bool {
        let against = usize::from(end == End::Destination);
        let mut arc = self.nodes[node as usize].first;
        while arc != NONE {
            self.looked_at += 1;
            let Arc { to, next, .. } = self.arcs[arc as usize];
            if self.arcs[arc as usize ^ against].left > 0 {
                let other = &self.nodes[to as usize];
                if other.round != self.round {
                    self.reach(to, distance, end);
                    self.next.push(to);
                } else if other.end != end {
                    return true;
                }
            }
            arc = next;
        }
        false
    }

    fn reach(&mut self, node: u32, distance: u32, end: End) {
        let vertex = &mut self.nodes[node as usize];
        *vertex = Vertex { open: vertex.first, round: self.round, distance, end, first: vertex.first };
    }

    /// Sends the flow that the shortest paths of this round can carry, at most `limit`, and returns it.
    fn augment(&mut self, from: u32, to: u32, length: u32, limit: u128) -> u128 {
        let (mut flow, mut node) = (0, from);
        self.path.clear();
        while flow < limit {
            if node == to {
                flow += self.send(limit - flow);
                // At the first full arc another path begins.
                let full = |arc: &u32| self.arcs[*arc as usize].left == 0;
                let Some(place) = self.path.iter().position(full) else { break };
                node = self.arcs[self.path[place] as usize ^ 1].to;
                self.path.truncate(place);
                continue;
            }
            let open = self.nodes[node as usize].open;
            if open == NONE {
                // No path continues from here: the node before tries its next arc.
                let Some(arc) = self.path.pop() else { break };
                node = self.arcs[arc as usize ^ 1].to;
                self.nodes[node as usize].open = self.arcs[arc as usize].next;
                continue;
            }
            self.looked_at += 1;
            let Arc { to: next, left, next: after, .. } = self.arcs[open as usize];
            let place = self.place(node, length);
            if left > 0 && place.is_some_and(|place| self.place(next, length) == Some(place + 1)) {
                self.path.push(open);
                node = next;
            } else {
                self.nodes[node as usize].open = after;
            }
        }
        flow
    }

    /// A node's distance from the source on the shortest paths of this round, which have this length; `None` if it was
    /// not reached.
    fn place(&self, node: u32, length: u32) -> Option<u32> {
        let Vertex { round, distance, end, .. } = self.nodes[node as usize];
        let reached = round == self.round;
        reached.then(|| if end == End::Source { distance } else { length - distance })
    }

    /// Sends the flow that the path can carry, at most `limit`, and returns it.
    fn send(&mut self, limit: u128) -> u128 {
        let Self { path, arcs, changed, .. } = self;
        let amount = path.iter().map(|&arc| arcs[arc as usize].left).fold(limit, u128::min);
        for &arc in &*path {
            arcs[arc as usize].left -= amount;
            arcs[arc as usize ^ 1].left += amount;
            changed.extend([arc, arc ^ 1]);
        }
        amount
    }

    fn arcs_at(&self, node: u32) -> impl Iterator<Item = u32> {
        let first = Some(self.nodes[node as usize].first).filter(|&arc| arc != NONE);
        std::iter::successors(first, |&arc| Some(self.arcs[arc as usize].next).filter(|&next| next != NONE))
    }
}

#[cfg(test)]
mod tests {
    use petgraph::algo::ford_fulkerson;
    use petgraph::graph::NodeIndex;
    use proptest::prelude::*;

    use super::*;

    const NO_LIMIT: u128 = u128::MAX;

    fn network(nodes: usize, edges: &[([usize; 2], [u128; 2])]) -> MaxFlow {
        let mut network = MaxFlow::default();
        (0..nodes).for_each(|_| _ = network.add_node());
        edges.iter().for_each(|&(ends, capacities)| _ = network.add_edge(ends, capacities));
        network
    }

    /// A network of up to ten nodes whose edges have small capacities, mostly in one direction only.
    fn edges() -> impl Strategy<Value = Vec<([usize; 2], [u128; 2])>> {
        let edge = (0..10usize, 1..10usize, 0..6u128, 0..3u128);
        let edge = edge.prop_map(|(from, step, there, back)| ([from, (from + step) % 10], [there, back]));
        proptest::collection::vec(edge, 0..40)
    }

    proptest! {
        #[test]
        fn it_is_what_another_algorithm_finds_and_each_search_leaves_the_network_as_it_was(edges in edges()) {
            let mut graph: DiGraph<(), u64> = DiGraph::new();
            let nodes: Vec<NodeIndex> = (0..10).map(|_| graph.add_node(())).collect();
            for &([from, to], [there, back]) in &edges {
                graph.add_edge(nodes[from], nodes[to], there as u64);
                graph.add_edge(nodes[to], nodes[from], back as u64);
            }
            let mut network = network(10, &edges);
            for (from, to) in (0..10).flat_map(|from| (0..10).map(move |to| (from, to))) {
                if from == to {
                    continue;
                }
                let expected = u128::from(ford_fulkerson(&graph, nodes[from], nodes[to]).0);
                prop_assert_eq!(network.between(from, to, NO_LIMIT), expected, "{} to {}", from, to);
                prop_assert_eq!(network.between(from, to, 3), expected.min(3));
            }
        }
    }

    #[test]
    fn what_was_added_is_taken_away_again() {
        let mut network = network(3, &[([0, 1], [5, 0]), ([1, 2], [4, 0])]);
        let size = network.size();
        let air = network.add_node();
        network.add_edge([0, air], [3, 0]);
        network.add_edge([air, 2], [2, 0]);
        assert_eq!(network.between(0, 2, NO_LIMIT), 6);
        network.truncate(size);
        assert_eq!(network.between(0, 2, NO_LIMIT), 4);
        assert_eq!(network.neighbours(1, false).collect::<Vec<_>>(), [2]);
        assert_eq!(network.neighbours(1, true).collect::<Vec<_>>(), [0]);
    }

    #[test]
    fn a_flow_that_its_ends_bound_is_found_without_a_look_at_the_rest_of_a_mesh() {
        // A torus of 100 by 100, of whose 20,000 edges a few near the ends matter.
        const SIDE: usize = 100;
        let at = |x: usize, y: usize| x % SIDE + y % SIDE * SIDE;
        let all = (0..SIDE * SIDE).map(|node| (node % SIDE, node / SIDE));
        let edges: Vec<_> =
            all.flat_map(|(x, y)| [at(x + 1, y), at(x, y + 1)].map(|to| ([at(x, y), to], [7, 7]))).collect();
        let mut network = network(SIDE * SIDE, &edges);
        assert_eq!(network.between(at(0, 0), at(3, 3), NO_LIMIT), 4 * 7);
        // Four searches, each over the nodes within a few hops of an end.
        let looked_at = network.looked_at();
        assert!(looked_at < 2000, "{looked_at} arcs");
        network.add_edge([at(50, 50), at(1, 0)], [9, 9]);
        assert_eq!(network.between(at(0, 0), at(3, 3), NO_LIMIT), 4 * 7);
        // That a source is cut off is found at the source, though its destination reaches everybody.
        let cut_off = network.add_node();
        network.add_edge([cut_off, at(0, 0)], [0, 7]);
        let before = network.looked_at();
        assert_eq!(network.between(cut_off, at(50, 50), NO_LIMIT), 0);
        assert_eq!(network.looked_at(), before, "nothing leaves it");
    }
}
