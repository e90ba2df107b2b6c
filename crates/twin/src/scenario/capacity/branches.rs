//! The branches of a network that are trees: between two nodes of one, and from it to the rest, there is one path.
//!
//! A max-flow search covers the whole network; in a tree the result is the minimum capacity on the path. Networks with
//! very many receivers are mostly trees towards their ends.

use hopcast_link::Attachment;

use super::super::model::{Link, LinkId, LinkModel, NodeId};

/// The branches: the nodes that are removed when nodes with a single point-to-point link are removed repeatedly.
#[derive(Debug)]
pub(super) struct Branches {
    /// The step from each removed node towards the rest of the network; `None` of a node that was not removed.
    rest: Vec<Option<Step>>,
    /// Number of steps from each node to the rest of the network, or to the last node of its tree.
    depth: Vec<u32>,
}

/// The step from a node towards the rest of the network: a link, and the next node.
#[derive(Clone, Copy, Debug)]
struct Step {
    to: NodeId,
    link: LinkId,
    /// The node's own attachment to the link.
    own: Attachment,
}

/// The part of the paths from one node to another that is outside of branches.
pub(super) enum Core {
    /// None: both nodes are in one branch.
    Within,
    /// The paths from one node to another.
    Between(NodeId, NodeId),
}

impl Branches {
    pub(super) fn of(nodes: usize, links: &[Link]) -> Self {
        let mut at: Vec<Vec<(LinkId, Attachment)>> = vec![Vec::new(); nodes];
        for (number, link) in links.iter().enumerate() {
            link.ends.iter().enumerate().for_each(|(end, &node)| at[node].push((number, end)));
        }
        let mut left: Vec<usize> = at.iter().map(Vec::len).collect();
        let mut rest: Vec<Option<Step>> = vec![None; nodes];
        let mut taken = vec![false; links.len()];
        let mut order = Vec::new();
        let mut leaves: Vec<NodeId> = (0..nodes).filter(|&node| left[node] == 1).collect();
        while let Some(node) = leaves.pop() {
            // Of two nodes with one link between them, one was removed before.
            let Some(&(link, own)) = at[node].iter().find(|&&(link, _)| !taken[link]) else { continue };
            if !matches!(links[link].model, LinkModel::PointToPoint(_)) {
                continue;
            }
            let to = links[link].ends[1 - own];
            taken[link] = true;
            rest[node] = Some(Step { to, link, own });
            order.push(node);
            left[to] -= 1;
            if left[to] == 1 {
                leaves.push(to);
            }
        }
        let mut depth = vec![0; nodes];
        for &node in order.iter().rev() {
            depth[node] = rest[node].map_or(0, |step| depth[step.to] + 1);
        }
        Self { rest, depth }
    }

    /// The minimum of `capacity` over the hops from one node to another that lie in branches, and the part outside of
    /// them.
    pub(super) fn between(
        &self,
        (mut from, mut to): (NodeId, NodeId),
        capacity: impl Fn(LinkId, Attachment) -> u128,
    ) -> (u128, Core) {
        let mut min = u128::MAX;
        while from != to {
            let (up, down) = (self.rest[from], self.rest[to]);
            // The deeper of the two takes the next step, so that they meet where their paths do.
            match (up, down) {
                (Some(step), _) if down.is_none() || self.depth[from] >= self.depth[to] => {
                    min = min.min(capacity(step.link, step.own));
                    from = step.to;
                }
                (_, Some(step)) => {
                    min = min.min(capacity(step.link, 1 - step.own));
                    to = step.to;
                }
                (_, None) => return (min, Core::Between(from, to)),
            }
        }
        (min, Core::Within)
    }
}
