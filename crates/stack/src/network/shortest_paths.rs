//! The shortest paths of a network towards one node, or one segment, at a time.
//!
//! A path goes over the fewest hops, among those over the minimum total delay, and among those over the link that
//! stands first in the file. A medium is one hop from each of its stations to each other that hears it, and a mesh one
//! from each of its nodes to each other, whatever becomes of the links below it. A path to a segment ends with the hop
//! onto it.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap};

use hopcast_core::Duration;
use hopcast_link::Attachment;

use super::segments::{Segment, SegmentEnd, SegmentId, Segments};
use super::{Hop, Link, LinkId, NodeId, directions};

/// A place that paths lead to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Target {
    /// A node.
    Node(NodeId),
    /// Any host of a segment, each of which reaches all others.
    Segment(SegmentId),
}

/// A hop of a path, and the segment that it crosses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Crossing {
    /// The hop.
    pub hop: Hop,
    /// The segment.
    pub segment: SegmentId,
}

/// The links of a network, and the paths that the last search found.
#[derive(Debug)]
pub struct ShortestPaths {
    /// The ends of all segments, in the order of the links.
    ends: Vec<End>,
    /// For each segment, the number of its first end; and the number of ends.
    of_segment: Vec<u32>,
    /// For each medium of which stations hear only some of the others, the pairs of a sender and one whom it reaches.
    heard: BTreeMap<LinkId, BTreeSet<(u32, u32)>>,
    /// For each link, where its part of `at_link` begins; and where the last ends.
    of_link: Vec<u32>,
    /// For each link, the numbers of the ends that send on it.
    at_link: Vec<u32>,
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
    /// The nodes that it has reached, in the order in which it did.
    found: Vec<NodeId>,
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
    /// Whether it sends by a mesh, and not by that attachment itself.
    is_meshed: bool,
    up: bool,
}

/// Hops and total delay to the destination.
type Cost = (u32, Duration);

/// The first step of a path: the numbers of the end that sends and of the end that receives. In the order of the file.
/// Onto the segment that the path leads to, both are the one that sends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Step {
    pub(super) from: u32,
    pub(super) to: u32,
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
    /// The network of `nodes` nodes whose hosts are on these segments of `links`, all of which are up.
    pub fn over(nodes: usize, links: &[Link], segments: &Segments) -> Self {
        let mut heard = BTreeMap::new();
        for (number, link) in links.iter().enumerate().filter(|(_, link)| link.partly_heard().is_some()) {
            let reached = directions(link.ends.len()).filter(|&(from, to)| link.reaches(from, to));
            heard.insert(number, reached.map(|(from, to)| (from as u32, to as u32)).collect());
        }
        let mut ends: Vec<End> = Vec::new();
        let mut of_segment = vec![0];
        for (number, Segment { ends: hosts, .. }) in segments.iter().enumerate() {
            ends.extend(hosts.iter().map(|&SegmentEnd { node, interface, link, attachment, is_meshed }| {
                End {
                    node,
                    interface,
                    segment: number as u32,
                    link,
                    attachment: attachment as u32,
                    delay: links[link].direction(attachment).delay,
                    is_meshed,
                    up: true,
                }
            }));
            of_segment.push(ends.len() as u32);
        }
        let (of_node, at_node) = sorted_by(&ends, nodes, |end| Some(end.node));
        let (of_link, at_link) = sorted_by(&ends, links.len(), |end| (!end.is_meshed).then_some(end.link));
        let (steps, crossed) =
            (vec![Reached::default(); nodes], vec![Crossed::default(); of_segment.len() - 1]);
        Self {
            ends,
            of_segment,
            heard,
            of_link,
            at_link,
            of_node,
            at_node,
            steps,
            crossed,
            round: 0,
            found: Vec::new(),
        }
    }

    /// Number of nodes.
    pub(super) fn nodes(&self) -> usize {
        self.steps.len()
    }

    /// Takes a link out of use or back into it, for what attachment `from` sends or for all of them.
    pub(super) fn set_up(&mut self, link: LinkId, from: Option<Attachment>, up: bool) {
        self.change(link, from, |end| end.up = up);
    }

    /// Sets the delay of a link, for what attachment `from` sends or for all of them.
    pub(super) fn set_delay(&mut self, link: LinkId, from: Option<Attachment>, delay: Duration) {
        self.change(link, from, |end| end.delay = delay);
    }

    fn change(&mut self, link: LinkId, from: Option<Attachment>, apply: impl Fn(&mut End)) {
        if link + 1 < self.of_link.len() {
            for &number in &self.at_link[self.of_link[link] as usize..self.of_link[link + 1] as usize] {
                let end = &mut self.ends[number as usize];
                if from.is_none_or(|from| from == end.attachment as usize) {
                    apply(end);
                }
            }
        }
    }

    /// The hops that a node's host can take, in the order of the file.
    pub fn attachments(&self, node: NodeId) -> impl Iterator<Item = Crossing> {
        self.at_node(node).iter().map(|&end| self.crossing(end))
    }

    /// Searches for the paths to `to` from all nodes, against the direction of travel (Dijkstra).
    pub fn search(&mut self, to: Target) {
        self.search_until(to, |_, _| false);
    }

    /// Searches for the paths to `to` from `sources`, and no farther out than those are.
    pub fn search_from(&mut self, to: Target, sources: &[NodeId]) {
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
    fn search_until(&mut self, to: Target, mut is_done: impl FnMut(&Self, Cost) -> bool) {
        self.round += 1;
        self.found.clear();
        let mut open = BinaryHeap::new();
        match to {
            Target::Node(node) => self.begin(node, (0, Duration::ZERO), Step::default(), &mut open),
            Target::Segment(segment) => {
                // All of its hosts are reached, so that crossing it again reaches nobody at less.
                self.crossed[segment] = Crossed { round: self.round, cost: (0, Duration::ZERO) };
                for end in self.ends_of(segment) {
                    let End { node, delay, up, .. } = self.ends[end as usize];
                    if up {
                        self.begin(node, (1, delay), Step { from: end, to: end }, &mut open);
                    }
                }
            }
        }
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

    /// Starts a search at a node.
    fn begin(
        &mut self,
        node: NodeId,
        cost: Cost,
        step: Step,
        open: &mut BinaryHeap<Reverse<(Cost, NodeId)>>,
    ) {
        if self.steps[node].round != self.round {
            self.found.push(node);
        }
        self.steps[node] = Reached { round: self.round, cost, step };
        open.push(Reverse((cost, node)));
    }

    /// Reaches the nodes that are one hop before the end number `to`, whose node is at `cost`.
    fn cross(&mut self, to: u32, cost: Cost, open: &mut BinaryHeap<Reverse<(Cost, NodeId)>>) {
        let round = self.round;
        let End { segment, link, attachment: receiver, is_meshed, .. } = self.ends[to as usize];
        let (segment, heard) = (segment as usize, self.heard.get(&link).filter(|_| !is_meshed));
        let crossed = &mut self.crossed[segment];
        if crossed.round == round && crossed.cost < cost && heard.is_none() {
            // Each station was reached from another one at less.
            return;
        }
        *crossed = Crossed { round, cost };
        for from in self.of_segment[segment]..self.of_segment[segment + 1] {
            let End { node, delay, up, attachment, link: by, .. } = self.ends[from as usize];
            let (pair, on_link) = ((attachment, receiver), by == link);
            if !up || from == to || heard.is_some_and(|heard| on_link && !heard.contains(&pair)) {
                continue;
            }
            let (cost, step) = ((cost.0 + 1, cost.1 + delay), Step { from, to });
            let known = &mut self.steps[node];
            if known.round != round || cost < known.cost {
                if known.round != round {
                    self.found.push(node);
                }
                *known = Reached { round, cost, step };
                open.push(Reverse((cost, node)));
            } else if cost == known.cost {
                known.step = known.step.min(step);
            }
        }
    }

    /// Number of hops from a node; `None` if no links lead from there to the destination.
    ///
    /// After [`search_from`](Self::search_from), of one of the sources. To a host of a segment that was searched for it
    /// may be one hop less: [`path`](Self::path) ends there.
    pub fn hops(&self, from: NodeId) -> Option<usize> {
        self.reached(from).map(|reached| reached.cost.0 as usize)
    }

    /// The path from a node to `to`, the node that was searched for or a host of the segment, likewise; empty if there
    /// is none.
    pub fn path(&self, from: NodeId, to: NodeId) -> impl Iterator<Item = Crossing> {
        self.steps_between(from, to).map(|step| self.crossing(step.from))
    }

    /// The path by which a group's tree comes from `to`, the node that was searched for, to `from`: that from there,
    /// backwards.
    pub fn path_back(&self, from: NodeId, to: NodeId) -> Vec<Crossing> {
        let mut back: Vec<_> = self.steps_between(from, to).map(|step| self.crossing(step.to)).collect();
        back.reverse();
        back
    }

    /// Paths from one node to another that have no link and no node between the ends in common, at most `count`: each
    /// is the shortest that those before it leave.
    pub fn disjoint(mut self, from: NodeId, to: NodeId, count: usize) -> Vec<Vec<Crossing>> {
        let mut found = Vec::new();
        while found.len() < count {
            self.search_from(Target::Node(to), &[from]);
            let steps: Vec<_> = self.steps_between(from, to).collect();
            if steps.is_empty() {
                break;
            }
            found.push(steps.iter().map(|step| self.crossing(step.from)).collect());
            for step in steps {
                let End { node, link, .. } = self.ends[step.from as usize];
                self.set_up(link, None, false);
                self.ends[step.from as usize].up = false;
                // No path leads over a node that cannot send.
                for end in self.at_node(node).iter().filter(|_| node != from).copied().collect::<Vec<_>>() {
                    self.ends[end as usize].up = false;
                }
            }
        }
        found
    }

    /// The steps of a path, as [`path`](Self::path) has it.
    fn steps_between(&self, from: NodeId, to: NodeId) -> impl Iterator<Item = Step> {
        let mut node = from;
        (0..self.hops(from).unwrap_or(0)).map_while(move |_| {
            if node == to {
                return None;
            }
            let step = self.steps[node].step;
            node = self.ends[step.to as usize].node;
            Some(step)
        })
    }

    /// The first step of the path from a node, likewise; `None` at the end of a path, and onto the segment that was
    /// searched for.
    pub(super) fn step(&self, from: NodeId) -> Option<Step> {
        let reached = self.reached(from).filter(|reached| reached.cost.0 > 0);
        reached.map(|reached| reached.step).filter(|step| step.from != step.to)
    }

    /// The nodes that the search has reached, the destination included, in no order that matters.
    pub(super) fn found(&self) -> &[NodeId] {
        &self.found
    }

    /// A node's step to a neighbour on one of its interfaces.
    pub(super) fn neighbour(&self, node: NodeId, interface: u32, neighbour: NodeId) -> Option<Step> {
        let mut own = self.at_node(node).iter().copied();
        let own = own.find(|&end| self.ends[end as usize].interface == interface)?;
        self.beside(own, neighbour)
    }

    /// A node's step to a neighbour on the first of its interfaces that has it.
    pub(super) fn any_neighbour(&self, node: NodeId, neighbour: NodeId) -> Option<Step> {
        let mut own = self.at_node(node).iter().filter(|_| node != neighbour);
        own.find_map(|&own| self.beside(own, neighbour))
    }

    /// The step from an end to a neighbour on its segment.
    pub(super) fn beside(&self, own: u32, neighbour: NodeId) -> Option<Step> {
        let End { segment, link, attachment, is_meshed, .. } = self.ends[own as usize];
        let to = self.ends_on(neighbour, segment as usize).next()?;
        let End { attachment: receiver, link: by, .. } = self.ends[to as usize];
        let heard = self.heard.get(&link).filter(|_| by == link && !is_meshed);
        let hears = heard.is_none_or(|heard| heard.contains(&(attachment, receiver)));
        hears.then_some(Step { from: own, to })
    }

    /// The steps from an end to all neighbours on its segment.
    pub(super) fn all_beside(&self, own: u32) -> impl Iterator<Item = Step> {
        self.nodes_beside(own).filter_map(move |other| self.beside(own, other))
    }

    /// The other nodes on the segment of an end.
    pub(super) fn nodes_beside(&self, own: u32) -> impl Iterator<Item = NodeId> {
        let End { node, segment, .. } = self.ends[own as usize];
        let others = self.ends_of(segment as usize).map(|end| self.ends[end as usize].node);
        others.filter(move |&other| other != node)
    }

    /// The numbers of a node's ends, in order.
    pub(super) fn ends_at(&self, node: NodeId) -> impl Iterator<Item = u32> {
        self.at_node(node).iter().copied()
    }

    /// Whether an end can send.
    pub(super) fn is_up(&self, end: u32) -> bool {
        self.ends[end as usize].up
    }

    /// The end of a node on a segment, where it can send.
    pub(super) fn on_segment(&self, node: NodeId, segment: SegmentId) -> Option<u32> {
        self.ends_on(node, segment).find(|&end| self.ends[end as usize].up)
    }

    /// The ends of a node on a segment, in order.
    fn ends_on(&self, node: NodeId, segment: SegmentId) -> impl Iterator<Item = u32> {
        let (own, all) = (self.at_node(node), self.ends_of(segment));
        let first = own.partition_point(|&end| end < all.start);
        own[first..].iter().copied().take_while(move |&end| end < all.end)
    }

    /// The node of an end.
    pub(super) fn node(&self, end: u32) -> NodeId {
        self.ends[end as usize].node
    }

    /// The number of an end's interface at its host.
    pub(super) fn interface(&self, end: u32) -> u32 {
        self.ends[end as usize].interface
    }

    /// The hop that begins at an end.
    pub(super) fn crossing(&self, end: u32) -> Crossing {
        let End { link, attachment, segment, .. } = self.ends[end as usize];
        let hop = Hop { link, attachment: attachment as usize };
        Crossing { hop, segment: segment as usize }
    }

    fn ends_of(&self, segment: SegmentId) -> std::ops::Range<u32> {
        self.of_segment[segment]..self.of_segment[segment + 1]
    }

    fn reached(&self, node: NodeId) -> Option<&Reached> {
        Some(&self.steps[node]).filter(|reached| reached.round == self.round)
    }

    fn at_node(&self, node: NodeId) -> &[u32] {
        &self.at_node[self.of_node[node] as usize..self.of_node[node + 1] as usize]
    }
}

/// The numbers of those ends that have a number, in its order, and where the part of each such number begins; and
/// where the last ends.
fn sorted_by(ends: &[End], count: usize, of: impl Fn(&End) -> Option<usize>) -> (Vec<u32>, Vec<u32>) {
    let mut begins = vec![0; count + 1];
    for number in ends.iter().filter_map(&of) {
        begins[number + 1] += 1;
    }
    for number in 0..count {
        begins[number + 1] += begins[number];
    }
    let (mut free, mut sorted) = (begins.clone(), vec![0; begins[count] as usize]);
    for (number, end) in ends.iter().enumerate() {
        let Some(of) = of(end) else { continue };
        sorted[free[of] as usize] = number as u32;
        free[of] += 1;
    }
    (begins, sorted)
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
            Link { name: number.to_string(), ends: ends.to_vec(), prefixes: Vec::new(), model }
        };
        links.iter().enumerate().map(link).collect()
    }

    fn paths_of(nodes: usize, links: &[Link]) -> ShortestPaths {
        ShortestPaths::over(nodes, links, &Segments::plain(nodes, links))
    }

    fn path(links: &[Link], from: NodeId, to: NodeId) -> Vec<LinkId> {
        let mut paths = paths_of(8, links);
        paths.search_from(Target::Node(to), &[from]);
        paths.path(from, to).map(|crossing| crossing.hop.link).collect()
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
        let mut paths = paths_of(8, &links);
        paths.search_from(Target::Node(3), &[0, 1]);
        assert_eq!((paths.hops(0), paths.hops(1), paths.hops(7)), (Some(2), Some(1), None));
        // The second search knows nothing of the first.
        paths.search_from(Target::Node(7), &[0]);
        assert_eq!(paths.hops(0), None);
    }

    #[test]
    fn a_medium_is_crossed_from_station_to_station_where_not_all_hear_all() {
        let mut links = network(&[(&[0, 1, 2, 3], 1)]);
        let LinkModel::Medium(config) = &mut links[0].model else { panic!("a medium") };
        let pairs = [(0, 1), (1, 2), (2, 3)].into_iter().flat_map(|(a, b)| [(a, b), (b, a)]);
        config.hears = Some(pairs.chain([(0, 3)]).collect());
        let mut paths = paths_of(8, &links);
        paths.search_from(Target::Node(3), &[0]);
        // With acknowledgements what is heard one way only is of no use.
        assert_eq!(paths.hops(0), Some(1));
        assert_eq!(paths.neighbour(1, 0, 3), None);
        assert_eq!(paths.neighbour(1, 0, 2), Some(Step { from: 1, to: 2 }));
        let LinkModel::Medium(config) = &mut links[0].model else { panic!("a medium") };
        config.mac = hopcast_link::Mac::Csma(hopcast_link::Csma::default());
        let mut paths = paths_of(8, &links);
        for (to, from, attachments) in [(3, 0, vec![0, 1, 2]), (0, 3, vec![3, 2, 1])] {
            paths.search_from(Target::Node(to), &[from]);
            let path = paths.path(from, to).map(|crossing| crossing.hop.attachment);
            assert_eq!(path.collect::<Vec<_>>(), attachments);
        }
    }

    #[test]
    fn of_stations_from_which_the_rest_is_equal_the_first_of_the_medium_is_next() {
        let links = network(&[(&[0, 2, 1], 1), (&[1, 3], 5), (&[2, 3], 5)]);
        assert_eq!(path(&links, 0, 3), [0, 2]);
    }

    #[test]
    fn a_path_to_a_segment_ends_at_its_nearest_host_and_crosses_it() {
        // 0 - 1 - 3, and 1, 2 and 3 on a segment, which 3 cannot send on.
        let links = network(&[(&[0, 1], 1), (&[1, 2, 3], 1), (&[3, 4], 1), (&[4, 2], 1)]);
        let mut paths = paths_of(8, &links);
        paths.set_up(1, Some(2), false);
        paths.search(Target::Segment(1));
        let links_to = |from, to| paths.path(from, to).map(|crossing| crossing.hop.link).collect::<Vec<_>>();
        assert_eq!(links_to(0, 3), [0, 1]);
        assert_eq!(links_to(0, 1), [0], "the first host of the segment is there");
        assert_eq!(links_to(3, 2), [2, 3], "by others, since its own attachment is down");
        assert_eq!((paths.step(1), paths.on_segment(1, 1), paths.on_segment(3, 1)), (None, Some(2), None));
        assert_eq!(paths.hops(7), None);
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
        let (mut all, mut some) = (paths_of(16, &links), paths_of(16, &links));
        for to in 0..16 {
            all.search(Target::Node(to));
            for from in 0..16 {
                some.search_from(Target::Node(to), &[from]);
                assert!(all.path(from, to).eq(some.path(from, to)), "{from} to {to}");
                assert_eq!(all.hops(from), some.hops(from));
            }
        }
    }
}
