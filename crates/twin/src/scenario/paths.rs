//! Shortest paths, as the engine's routing finds them while every link is up.

use hopcast_core::Duration;
use hopcast_link::Attachment;

use super::model::{Link, LinkId, NodeId};

/// The links of a network by node, and the ways towards one destination at a time.
pub(crate) struct Paths<'a> {
    links: &'a [Link],
    /// Index in `attached` at which each node's part begins, and the end of the last.
    begins: Vec<usize>,
    /// For each node, its links and its attachment to each, in the order of the file.
    attached: Vec<(LinkId, Attachment)>,
    /// For each node, its way towards the destination of this or an earlier round.
    steps: Vec<Step>,
    /// For each link, the round in which it was last crossed.
    crossed: Vec<u32>,
    /// One destination is one round, so that nothing needs to be cleared.
    round: u32,
}

/// A node's first step towards the destination.
#[derive(Clone, Copy, Default)]
struct Step {
    round: u32,
    hops: usize,
    delay: Duration,
    link: LinkId,
    from: Attachment,
    next: NodeId,
}

impl<'a> Paths<'a> {
    pub(crate) fn new(nodes: usize, links: &'a [Link]) -> Self {
        let mut begins = vec![0; nodes + 1];
        for end in links.iter().flat_map(|link| &link.ends) {
            begins[end + 1] += 1;
        }
        for node in 0..nodes {
            begins[node + 1] += begins[node];
        }
        let mut attached = vec![(0, 0); begins[nodes]];
        let mut free = begins.clone();
        for (number, link) in links.iter().enumerate() {
            for (attachment, end) in link.ends.iter().enumerate() {
                attached[free[*end]] = (number, attachment);
                free[*end] += 1;
            }
        }
        let (steps, crossed) = (vec![Step::default(); nodes], vec![0; links.len()]);
        Self { links, begins, attached, steps, crossed, round: 0 }
    }

    /// The links of a node, each with the node's attachment to it.
    pub(crate) fn links_of(&self, node: NodeId) -> &[(LinkId, Attachment)] {
        &self.attached[self.begins[node]..self.begins[node + 1]]
    }

    /// Looks for the ways to `to`, as far out as the `sources` are.
    ///
    /// Over the fewest hops; among those, with the minimum delay; among those, over the link that stands first.
    pub(crate) fn towards(&mut self, to: NodeId, sources: &[NodeId]) {
        self.round += 1;
        self.steps[to] = Step { round: self.round, ..Step::default() };
        let mut missing = sources.to_vec();
        let mut level = vec![to];
        while !level.is_empty() {
            while missing.last().is_some_and(|source| self.steps[*source].round == self.round) {
                missing.pop();
            }
            if missing.is_empty() {
                break;
            }
            // Whoever crosses a medium first then has the minimum delay, so each link needs crossing once.
            level.sort_unstable_by_key(|node| (self.steps[*node].delay, *node));
            level = self.level_after(&level);
        }
    }

    /// The nodes that are one hop farther out than those of `level`, with their steps.
    fn level_after(&mut self, level: &[NodeId]) -> Vec<NodeId> {
        let mut after = Vec::new();
        for &node in level {
            let Step { hops, delay, .. } = self.steps[node];
            for place in self.begins[node]..self.begins[node + 1] {
                let (link, own) = self.attached[place];
                let crossed = std::mem::replace(&mut self.crossed[link], self.round) == self.round;
                if crossed && self.links[link].partly_heard().is_none() {
                    continue;
                }
                for (from, &end) in self.links[link].ends.iter().enumerate() {
                    if from != own && !self.links[link].reaches(from, own) {
                        continue;
                    }
                    let delay = delay + self.links[link].direction(from).delay;
                    let known = &mut self.steps[end];
                    let reached = known.round == self.round;
                    if !reached {
                        after.push(end);
                    }
                    if !reached || known.hops > hops && (delay, link) < (known.delay, known.link) {
                        *known = Step { round: self.round, hops: hops + 1, delay, link, from, next: node };
                    }
                }
            }
        }
        after
    }

    /// Number of hops from one of the sources; `None` if no links lead there.
    pub(crate) fn hops(&self, from: NodeId) -> Option<usize> {
        let step = self.steps[from];
        (step.round == self.round).then_some(step.hops)
    }

    /// The links on the way from one of the sources, each with the attachment that it is entered at.
    pub(crate) fn way(&self, from: NodeId) -> impl Iterator<Item = (&'a Link, Attachment)> {
        let mut node = from;
        (0..self.hops(from).unwrap_or(0)).map(move |_| {
            let Step { link, from, next, .. } = self.steps[node];
            node = next;
            (&self.links[link], from)
        })
    }
}

#[cfg(test)]
mod tests {
    use hopcast_link::{Config, Direction, MediumConfig};

    use super::*;
    use crate::scenario::model::LinkModel;

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

    fn way(links: &[Link], from: NodeId, to: NodeId) -> Vec<&str> {
        let mut paths = Paths::new(8, links);
        paths.towards(to, &[from]);
        paths.way(from).map(|(link, _)| link.name.as_str()).collect()
    }

    #[test]
    fn the_fewest_hops_win_then_the_least_delay_then_the_order_of_the_file() {
        let longer = network(&[(&[0, 1], 1), (&[1, 2], 1), (&[2, 3], 1), (&[0, 4], 9), (&[4, 3], 9)]);
        assert_eq!(way(&longer, 0, 3), ["3", "4"]);
        let slower = network(&[(&[0, 1], 9), (&[1, 3], 9), (&[0, 4], 9), (&[4, 3], 8)]);
        assert_eq!(way(&slower, 0, 3), ["2", "3"]);
        assert_eq!(way(&slower, 3, 0), ["3", "2"]);
        let equal = network(&[(&[0, 1], 9), (&[0, 4], 9), (&[4, 3], 9), (&[1, 3], 9)]);
        assert_eq!(way(&equal, 0, 3), ["0", "3"]);
        assert_eq!(way(&equal, 0, 7), Vec::<&str>::new());
    }

    #[test]
    fn a_medium_is_one_hop_and_is_left_where_the_rest_is_shortest() {
        let links = network(&[(&[0, 1, 2], 1), (&[1, 3], 9), (&[2, 3], 5)]);
        assert_eq!(way(&links, 0, 3), ["0", "2"]);
        let mut paths = Paths::new(8, &links);
        paths.towards(3, &[0, 1]);
        assert_eq!((paths.hops(0), paths.hops(1), paths.hops(7)), (Some(2), Some(1), None));
        // The second round knows nothing of the first.
        paths.towards(7, &[0]);
        assert_eq!(paths.hops(0), None);
    }
}
