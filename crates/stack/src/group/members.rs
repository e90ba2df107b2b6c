//! The members of a group, found by node: a group may have every node of a large network.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant};

use crate::network::NodeId;

/// A node with the times at which it is a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The node.
    pub node: NodeId,
    /// The times at which it joins and leaves, in order; `None` if it never leaves.
    pub spans: Vec<(Instant, Option<Instant>)>,
}

impl Member {
    /// A node that is a member from the beginning and for ever.
    pub fn always(node: NodeId) -> Self {
        Self { node, spans: vec![(Instant::ZERO, None)] }
    }

    /// Whether it is a member at `at`: from the instant of its join to just before that of its leave.
    pub fn is_member(&self, at: Instant) -> bool {
        self.spans.iter().any(|&(from, to)| from <= at && to.is_none_or(|to| at < to))
    }

    /// The times at which its host starts and stops to receive, in order: it stops `linger` after each leave.
    pub fn changes(&self, linger: Duration) -> Vec<(Instant, bool)> {
        let mut changes = Vec::new();
        for &(from, to) in &self.spans {
            // Back before it has stopped to receive: it never does.
            match changes.last() {
                Some(&(left, false)) if from <= left => _ = changes.pop(),
                _ => changes.push((from, true)),
            }
            changes.extend(to.map(|to| (to + linger, false)));
        }
        changes
    }
}

/// Every node that is a member of a group at some time, each once.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Members {
    /// In the order in which they were added.
    list: Vec<Member>,
    /// The place of each in `list`.
    places: BTreeMap<NodeId, usize>,
}

impl Members {
    /// Nodes that are members from the beginning and for ever.
    pub fn always(nodes: &[NodeId]) -> Self {
        let mut members = Self::default();
        for &node in nodes {
            members.entry(node).spans = vec![(Instant::ZERO, None)];
        }
        members
    }

    /// The members, in the order in which they were added.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Member> {
        self.list.iter()
    }

    /// Maximum number of nodes that are members at one time, without `node`.
    pub fn at_a_time_without(&self, node: NodeId) -> usize {
        let spans = self.iter().filter(|member| member.node != node).flat_map(|member| &member.spans);
        // At one time leaves come first.
        let changes = spans.flat_map(|&(from, to)| [Some((from, 1)), to.map(|to| (to, -1))]).flatten();
        let mut changes: Vec<(Instant, isize)> = changes.collect();
        changes.sort_unstable();
        let mut members = 0_isize;
        let counts = changes.into_iter().map(|(_, change)| {
            members += change;
            members
        });
        counts.max().unwrap_or(0).unsigned_abs()
    }

    /// The member that a node is at some time.
    pub fn get(&self, node: NodeId) -> Option<&Member> {
        self.places.get(&node).map(|&place| &self.list[place])
    }

    /// The member that a node is, to be changed; one without times if it was none.
    pub fn entry(&mut self, node: NodeId) -> &mut Member {
        let list = &mut self.list;
        let place = *self.places.entry(node).or_insert_with(|| {
            list.push(Member { node, spans: Vec::new() });
            list.len() - 1
        });
        &mut self.list[place]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_at_a_time_are_counted_and_one_that_leaves_makes_room_at_once() {
        let at = |seconds| Instant::ZERO + Duration::from_secs(seconds);
        let mut members = Members::always(&[0, 1]);
        assert_eq!((members.at_a_time_without(9), members.at_a_time_without(1)), (2, 1));
        members.entry(2).spans = vec![(at(1), Some(at(2))), (at(5), None)];
        members.entry(3).spans = vec![(at(2), Some(at(5)))];
        assert_eq!(members.at_a_time_without(9), 3);
        members.entry(4).spans = vec![(at(3), Some(at(4)))];
        assert_eq!(members.at_a_time_without(9), 4);
        assert_eq!(Members::default().at_a_time_without(0), 0);
    }
}
