//! The shortest paths of a network towards one node at a time.
//!
//! A path goes over the fewest hops, among those over the minimum total delay, and among those over the link that
//! stands first in the file. A medium is one hop from each of its stations to each other that hears it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use hopcast_core::Duration;
use hopcast_link::Attachment;

use super::layers::{Layers, Segment, SegmentEnd};
use super::{Hop, Link, LinkId, NodeId, directions};

/// The links of a network, and the paths that the last search found.
#[derive(Debug)]
pub struct ShortestPaths {
    /// The ends of all segments, in the order of the links.
    ends: Vec<End>,
    /// For each medium of which stations hear only some of the others, the pairs of a sender and one whom it reaches.
    heard: BTreeMap<LinkId, BTreeSet<(Attachment, Attachment)>>,
    /// For each segment, the number of its first end; and the number of ends.
    of_segment: Vec<u32>,
    /// For each link, the number of the first end of its segments; and the number of ends.
    of_link: Vec<u32>,
    /// For each node, where its part of `at_node` begins; and where the last ends.
    of_node: Vec<u32>,
    /// For each node, the numbers of the ends that are attached to it: of its interfaces.
    at_node: Vec<u32>,
    /// For each node, its first step, if a search has reached it in this round.
    steps: Vec<Reached>,
    /// For each segment, the lowest cost at which it was crossed, if it was in this round.
    crossed: Vec<Crossed>,
    /// One search is one round, so that nothing needs to be cleared.
    round: u32,
}

/// A host's interface, as it sends.
#[derive(Clone, Copy, Debug)]
struct End {
    node: NodeId,
    /// Its number at its host.
    interface: u32,
    segment: u32,
    link: LinkId,
    attachment: u32,
    delay: Duration,
    up: bool,
}

/// Hops and total delay to the destination.
type Cost = (u32, Duration);

/// The first step of a path: the numbers of the end that sends and of the end that receives. In the order of the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Step {
    from: u32,
    to: u32,
}

#[derive(Clone, Copy, Debug, Default)]
struct Reached {
    round: u32,
    cost: Cost,
    step: Step,
}

#[derive(Clone, Copy, Debug, Default)]
struct Crossed {
    round: u32,
    cost: Cost,
}

impl ShortestPaths {
    /// The network of `nodes` nodes and `links`, all of which are up, without services.
    pub fn new(nodes: usize, links: &[Link]) -> Self {
        Self::over(nodes, links, &Layers::plain(nodes, links))
    }

    /// The network of `nodes` nodes whose hosts are on these segments of `links`, all of which are up.
    pub(super) fn over(nodes: usize, links: &[Link], segments: &[Segment]) -> Self {
        let mut ends: Vec<End> = Vec::new();
        let (mut of_segment, mut of_link) = (vec![0], Vec::new());
        let mut heard = BTreeMap::new();
        for (number, link) in links.iter().enumerate().filter(|(_, link)| link.partly_heard().is_some()) {
            let reached = directions(link.ends.len()).filter(|&(from, to)| link.reaches(from, to));
            heard.insert(number, reached.collect());
        }
        for (number, segment) in segments.iter().enumerate() {
            of_link.resize(of_link.len().max(segment.link + 1), ends.len() as u32);
            let link = &links[segment.link];
            ends.extend(segment.ends.iter().map(|&SegmentEnd { node, interface, attachment }| End {
                node,
                interface,
                segment: number as u32,
                link: segment.link,
                attachment: attachment as u32,
                delay: link.direction(attachment).delay,
                up: true,
            }));
            of_segment.push(ends.len() as u32);
        }
        of_link.resize(links.len() + 1, ends.len() as u32);
        let mut of_node = vec![0; nodes + 1];
        for end in &ends {
            of_node[end.node + 1] += 1;
        }
        for node in 0..nodes {
            of_node[node + 1] += of_node[node];
        }
        let mut free = of_node.clone();
        let mut at_node = vec![0; ends.len()];
        for (number, end) in ends.iter().enumerate() {
            at_node[free[end.node] as usize] = number as u32;
            free[end.node] += 1;
        }
        let (steps, crossed) = (vec![Reached::default(); nodes], vec![Crossed::default(); segments.len()]);
        Self { ends, heard, of_segment, of_link, of_node, at_node, steps, crossed, round: 0 }
    }

    /// Number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.steps.len()
    }

    /// Takes a link out of use or back into it, for what attachment `from` sends or for all of them.
    pub(super) fn set_up(&mut self, link: LinkId, from: Option<Attachment>, up: bool) {
        self.change(link, from, |end| end.up = up);
    }

    /// Gives a link a new delay, likewise.
    pub(super) fn set_delay(&mut self, link: LinkId, from: Option<Attachment>, delay: Duration) {
        self.change(link, from, |end| end.delay = delay);
    }

    fn change(&mut self, link: LinkId, from: Option<Attachment>, apply: impl Fn(&mut End)) {
        if link + 1 < self.of_link.len() {
            let range = self.of_link[link] as usize..self.of_link[link + 1] as usize;
            let ends = self.ends[range].iter_mut();
            let meant = ends.filter(|end| from.is_none_or(|from| from == end.attachment as usize));
            meant.for_each(apply);
        }
    }

    /// A node's attachments to links, in the order of the file.
    pub fn attachments(&self, node: NodeId) -> impl Iterator<Item = Hop> {
        self.at_node(node).iter().map(|&end| self.hop(end))
    }

    /// Searches for the paths to `to` from all nodes, against the direction of travel (Dijkstra).
    pub fn search(&mut self, to: NodeId) {
        self.search_until(to, |_, _| false);
    }

    /// Searches for the paths to `to` from `sources`, and no farther out than those are.
    pub fn search_from(&mut self, to: NodeId, sources: &[NodeId]) {
        let mut missing = sources.to_vec();
        self.search_until(to, |paths, cost| {
            // Whatever has been reached at no more than this cost will not be reached at less, nor by an earlier link.
            while missing.last().is_some_and(|&node| paths.reached(node).is_some_and(|it| it.cost <= cost)) {
                missing.pop();
            }
            missing.is_empty()
        });
    }

    /// Settles nodes in the order of their cost, until `is_done` at one of them.
    fn search_until(&mut self, to: NodeId, mut is_done: impl FnMut(&Self, Cost) -> bool) {
        self.round += 1;
        let zero = (0, Duration::ZERO);
        self.steps[to] = Reached { round: self.round, cost: zero, step: Step::default() };
        let mut open = BinaryHeap::from([Reverse((zero, to))]);
        while let Some(Reverse((cost, node))) = open.pop() {
            if self.steps[node].cost < cost {
                continue;
            }
            if is_done(self, cost) {
                break;
            }
            for place in self.of_node[node]..self.of_node[node + 1] {
                self.cross(self.at_node[place as usize], cost, &mut open);
            }
        }
    }

    /// Reaches the nodes that are one hop before the end number `to`, whose node is at `cost`.
    fn cross(&mut self, to: u32, cost: Cost, open: &mut BinaryHeap<Reverse<(Cost, NodeId)>>) {
        let round = self.round;
        let segment = self.ends[to as usize].segment as usize;
        let heard = self.heard.get(&self.ends[to as usize].link);
        let crossed = &mut self.crossed[segment];
        if crossed.round == round && crossed.cost < cost && heard.is_none() {
            // Each station was reached from another one at less.
            return;
        }
        *crossed = Crossed { round, cost };
        for from in self.of_segment[segment]..self.of_segment[segment + 1] {
            let End { node, attachment, delay, up, .. } = self.ends[from as usize];
            let pair = (attachment as Attachment, self.ends[to as usize].attachment as Attachment);
            if !up || from == to || heard.is_some_and(|heard| !heard.contains(&pair)) {
                continue;
            }
            let (cost, step) = ((cost.0 + 1, cost.1 + delay), Step { from, to });
            let known = &mut self.steps[node];
            if known.round != round || cost < known.cost {
                *known = Reached { round, cost, step };
                open.push(Reverse((cost, node)));
            } else if cost == known.cost {
                known.step = known.step.min(step);
            }
        }
    }

    /// Number of hops from a node; `None` if no links lead from there to the destination.
    ///
    /// After [`search_from`](Self::search_from), of one of the sources.
    pub fn hops(&self, from: NodeId) -> Option<usize> {
        self.reached(from).map(|reached| reached.cost.0 as usize)
    }

    /// The path from a node, likewise; empty if there is none.
    pub fn path(&self, from: NodeId) -> impl Iterator<Item = Hop> {
        let mut node = from;
        (0..self.hops(from).unwrap_or(0)).map(move |_| {
            let Step { from, to } = self.steps[node].step;
            node = self.ends[to as usize].node;
            self.hop(from)
        })
    }

    /// The first step of the path from a node, likewise.
    pub(super) fn step(&self, from: NodeId) -> Option<Step> {
        self.reached(from).filter(|reached| reached.cost.0 > 0).map(|reached| reached.step)
    }

    /// The hop of a step, the node that it leads to, and that node's attachment to the link.
    pub(super) fn describe(&self, step: Step) -> (Hop, NodeId, Attachment) {
        (self.hop(step.from), self.ends[step.to as usize].node, self.hop(step.to).attachment)
    }

    /// The number of the interface by which a step leaves its node.
    pub(super) fn interface(&self, step: Step) -> u32 {
        self.ends[step.from as usize].interface
    }

    /// The number of the interface by which a step reaches the node that it leads to.
    pub(super) fn far_interface(&self, step: Step) -> u32 {
        self.ends[step.to as usize].interface
    }

    /// The hop of a neighbour on one of a node's interfaces: the link, and the neighbour's attachment to it.
    pub(super) fn neighbour(&self, node: NodeId, interface: u32, neighbour: NodeId) -> Option<Hop> {
        let mut own = self.at_node(node).iter().map(|&end| &self.ends[end as usize]);
        let own = own.find(|end| end.interface == interface)?;
        let segment = own.segment as usize;
        let mut others = self.of_segment[segment]..self.of_segment[segment + 1];
        let hop =
            others.find(|&other| self.ends[other as usize].node == neighbour).map(|other| self.hop(other))?;
        let pair = (own.attachment as Attachment, hop.attachment);
        self.heard.get(&hop.link).is_none_or(|heard| heard.contains(&pair)).then_some(hop)
    }

    fn reached(&self, node: NodeId) -> Option<&Reached> {
        Some(&self.steps[node]).filter(|reached| reached.round == self.round)
    }

    fn at_node(&self, node: NodeId) -> &[u32] {
        &self.at_node[self.of_node[node] as usize..self.of_node[node + 1] as usize]
    }

    fn hop(&self, end: u32) -> Hop {
        let End { link, attachment, .. } = self.ends[end as usize];
        Hop { link, attachment: attachment as usize }
    }
}

#[cfg(test)]
mod tests {
    use hopcast_link::{Config, Direction, MediumConfig};

    use super::*;
    use crate::network::LinkModel;

    /// `(ends, microseconds)`; more than two ends are a medium.
    fn network(links: &[(&[NodeId], u64)]) -> Vec<Link> {
        let link = |(number, (ends, micros)): (usize, &(&[NodeId], u64))| {
            let direction = Direction { delay: Duration::from_micros(*micros), ..Direction::default() };
            let model = match ends.len() {
                2 => LinkModel::PointToPoint(Config {
                    forward: direction.clone(),
                    backward: direction,
                    ..Config::default()
                }),
                _ => LinkModel::Medium(MediumConfig { direction, ..MediumConfig::default() }),
            };
            Link { name: number.to_string(), ends: ends.to_vec(), model }
        };
        links.iter().enumerate().map(link).collect()
    }

    fn path(links: &[Link], from: NodeId, to: NodeId) -> Vec<LinkId> {
        let mut paths = ShortestPaths::new(8, links);
        paths.search_from(to, &[from]);
        paths.path(from).map(|hop| hop.link).collect()
    }

    #[test]
    fn the_fewest_hops_win_then_the_minimum_delay_then_the_order_of_the_file() {
        let longer = network(&[(&[0, 1], 1), (&[1, 2], 1), (&[2, 3], 1), (&[0, 4], 9), (&[4, 3], 9)]);
        assert_eq!(path(&longer, 0, 3), [3, 4]);
        let slower = network(&[(&[0, 1], 9), (&[1, 3], 9), (&[0, 4], 9), (&[4, 3], 8)]);
        assert_eq!(path(&slower, 0, 3), [2, 3]);
        assert_eq!(path(&slower, 3, 0), [3, 2]);
        let equal = network(&[(&[0, 1], 9), (&[0, 4], 9), (&[4, 3], 9), (&[1, 3], 9)]);
        assert_eq!(path(&equal, 0, 3), [0, 3]);
        assert!(path(&equal, 0, 7).is_empty());
    }

    #[test]
    fn a_medium_is_one_hop_and_is_left_where_the_rest_is_shortest() {
        let links = network(&[(&[0, 1, 2], 1), (&[1, 3], 9), (&[2, 3], 5)]);
        assert_eq!(path(&links, 0, 3), [0, 2]);
        let mut paths = ShortestPaths::new(8, &links);
        paths.search_from(3, &[0, 1]);
        assert_eq!((paths.hops(0), paths.hops(1), paths.hops(7)), (Some(2), Some(1), None));
        // The second search knows nothing of the first.
        paths.search_from(7, &[0]);
        assert_eq!(paths.hops(0), None);
    }

    #[test]
    fn a_medium_is_crossed_from_station_to_station_where_not_all_hear_all() {
        let mut links = network(&[(&[0, 1, 2, 3], 1)]);
        let LinkModel::Medium(config) = &mut links[0].model else { panic!("a medium") };
        let pairs = [(0, 1), (1, 2), (2, 3)].into_iter().flat_map(|(a, b)| [(a, b), (b, a)]);
        config.hears = Some(pairs.chain([(0, 3)]).collect());
        let mut paths = ShortestPaths::new(8, &links);
        paths.search_from(3, &[0]);
        // With acknowledgements what is heard one way only is of no use.
        assert_eq!(paths.hops(0), Some(1));
        assert_eq!(paths.neighbour(1, 0, 3), None);
        assert_eq!(paths.neighbour(1, 0, 2), Some(Hop { link: 0, attachment: 2 }));
        let LinkModel::Medium(config) = &mut links[0].model else { panic!("a medium") };
        config.mac = hopcast_link::Mac::Csma(hopcast_link::Csma::default());
        let mut paths = ShortestPaths::new(8, &links);
        for (to, from, attachments) in [(3, 0, vec![0, 1, 2]), (0, 3, vec![3, 2, 1])] {
            paths.search_from(to, &[from]);
            assert_eq!(paths.path(from).map(|hop| hop.attachment).collect::<Vec<_>>(), attachments);
        }
    }

    #[test]
    fn of_stations_from_which_the_rest_is_equal_the_first_of_the_medium_is_next() {
        let links = network(&[(&[0, 2, 1], 1), (&[1, 3], 5), (&[2, 3], 5)]);
        assert_eq!(path(&links, 0, 3), [0, 2]);
    }

    #[test]
    fn a_search_from_some_nodes_finds_the_same_paths_as_one_from_all() {
        // A grid of 4 by 4 whose delays often tie, and a medium across it.
        let mut ends: Vec<Vec<NodeId>> = vec![vec![0, 5, 10, 15]];
        for node in 0..16 {
            ends.extend((node % 4 < 3).then(|| vec![node, node + 1]));
            ends.extend((node < 12).then(|| vec![node, node + 4]));
        }
        let links: Vec<_> = ends.iter().enumerate().map(|(at, ends)| (&ends[..], at as u64 % 3)).collect();
        let links = network(&links);
        let (mut all, mut some) = (ShortestPaths::new(16, &links), ShortestPaths::new(16, &links));
        for to in 0..16 {
            all.search(to);
            for from in 0..16 {
                some.search_from(to, &[from]);
                assert!(all.path(from).eq(some.path(from)), "{from} to {to}");
                assert_eq!(all.hops(from), some.hops(from));
            }
        }
    }
}
