//! Which datagrams and fragments are in each node, so that a fragment is told from what it was cut, and a datagram from
//! what it was put together.

use super::follower::At;
use super::quick::QuickMap;
use crate::fragment::{Fragment, are_all};

/// Maximum number of fragments of a datagram in a node. Chosen: 64 KiB over links of 280 bytes; a damaged log may say
/// anything.
const MAX_PARTS: usize = 256;

/// Datagrams, whole or in fragments, by node and by the key of the datagram.
#[derive(Default)]
pub(super) struct Datagrams(QuickMap<(At, u64), Vec<Part>>);

/// A datagram, or a fragment of it, in a node.
struct Part {
    /// `None` if it is whole.
    fragment: Option<Fragment>,
    /// Whether it has arrived there; otherwise it was made there.
    has_arrived: bool,
    step: usize,
}

/// Where a datagram or a fragment that leaves a node comes from.
pub(super) enum Found {
    /// It is part of what arrived at this step.
    Whole(usize),
    /// It consists of what arrived at these steps.
    Fragments(Vec<usize>),
    /// It was made there, as what was made at this step.
    Sibling(usize),
}

impl Datagrams {
    /// A part is in a node now. One that has bytes of those before it is of a later datagram with the same numbers.
    pub(super) fn note(
        &mut self,
        node: At,
        key: u64,
        fragment: Option<Fragment>,
        has_arrived: bool,
        step: usize,
    ) {
        let parts = self.0.entry((node, key)).or_default();
        if parts.len() >= MAX_PARTS || parts.iter().any(|part| overlap(part.fragment, fragment)) {
            parts.clear();
        }
        parts.push(Part { fragment, has_arrived, step });
    }

    /// Where what leaves a node comes from: a whole datagram, or a fragment.
    pub(super) fn find(&self, node: At, key: u64, leaving: Option<Fragment>) -> Option<Found> {
        let parts = self.0.get(&(node, key))?;
        let mut arrived = parts.iter().filter(|part| part.has_arrived);
        let Some(leaving) = leaving else {
            let steps: Vec<(usize, Fragment)> =
                arrived.filter_map(|part| Some((part.step, part.fragment?))).collect();
            let (steps, fragments): (Vec<usize>, Vec<Fragment>) = steps.into_iter().unzip();
            return are_all(fragments).then_some(Found::Fragments(steps));
        };
        let covers = |part: &&Part| part.fragment.is_none_or(|fragment| fragment.covers(&leaving));
        if let Some(part) = arrived.find(covers) {
            return Some(Found::Whole(part.step));
        }
        let is_next = parts.iter().all(|part| !part.has_arrived && !overlap(part.fragment, Some(leaving)));
        parts.last().filter(|_| is_next).map(|part| Found::Sibling(part.step))
    }
}

/// Whether two parts of one datagram have bytes in common, as a whole one has with all.
fn overlap(one: Option<Fragment>, other: Option<Fragment>) -> bool {
    one.zip(other).is_none_or(|(one, other)| one.overlaps(&other))
}
