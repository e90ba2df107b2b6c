//! The branches of a network that are trees: between two nodes of one, and from it to the rest, there is one way.
//!
//! A max-flow search looks at the whole network; a tree's answer is the least capacity on the way. Networks with very
//! many receivers are mostly trees towards their ends.

use hopcast_link::Attachment;

use super::super::model::{Link, LinkId, LinkModel, NodeId};

/// The branches: what is left when nodes with a single link, point-to-point, are taken off again and again.
#[derive(Debug)]
pub(super) struct Branches {
    /// For each node that was taken off, the next one towards the rest of the network, and the link to it.
    rest: Vec<Option<Step>>,
    /// For each node, how many nodes lead from it to the rest or to the last node of its tree.
    depth: Vec<u32>,
}

/// The way from a node towards the rest of the network.
#[derive(Clone, Copy, Debug)]
struct Step {
    to: NodeId,
    link: LinkId,
    /// The node's own attachment to the link.
    own: Attachment,
}

/// What is left of the way from one node to another outside of branches.
pub(super) enum Core {
    /// Nothing: both are in one branch.
    Within,
    /// From one node to another.
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
            // Of two that are each other's last link, one was taken off before.
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

    /// The least of `capacity` over the hops from one node to another that lie in branches, and what is left between.
    pub(super) fn between(
        &self,
        (mut from, mut to): (NodeId, NodeId),
        capacity: impl Fn(LinkId, Attachment) -> u128,
    ) -> (u128, Core) {
        let mut least = u128::MAX;
        while from != to {
            let (up, down) = (self.rest[from], self.rest[to]);
            // The deeper of the two goes on, so that they meet where their ways do.
            match (up, down) {
                (Some(step), _) if down.is_none() || self.depth[from] >= self.depth[to] => {
                    least = least.min(capacity(step.link, step.own));
                    from = step.to;
                }
                (_, Some(step)) => {
                    least = least.min(capacity(step.link, 1 - step.own));
                    to = step.to;
                }
                (_, None) => return (least, Core::Between(from, to)),
            }
        }
        (least, Core::Within)
    }
}
