//! Where packets went, for a drawing of the network.

use std::collections::BTreeMap;

use crate::log::{EventKind, Place};
use crate::story::{Fate, Step, Story};

/// What is to be marked on a drawing of the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Marks {
    /// For each pair of nodes, by their names: frames that arrived, and frames that the link between them dropped.
    pub hops: BTreeMap<(String, String), [u64; 2]>,
    /// Copies that were dropped in each node.
    pub died: BTreeMap<String, u64>,
    /// Copies that were taken in each node.
    pub taken: BTreeMap<String, u64>,
}

/// The marks of a story.
pub fn marks(story: &Story<'_>) -> Marks {
    marks_of(story, &story.steps)
}

/// The marks of some packets of a story, by their places in [`Story::packets`].
pub fn marks_of_packets(story: &Story<'_>, packets: &[usize]) -> Marks {
    let packets = packets.iter().filter_map(|&place| story.packets.get(place));
    marks_of(story, packets.flat_map(|packet| &packet.steps).filter_map(|&step| story.steps.get(step)))
}

fn marks_of<'s>(story: &Story<'_>, steps: impl IntoIterator<Item = &'s Step>) -> Marks {
    let mut marks = Marks::default();
    let node = |place: u32| story.log.places().get(place as usize).map_or("", Place::node).to_owned();
    for step in steps {
        match step.event.kind {
            EventKind::Delivered { from } if from != step.event.place => {
                marks.hops.entry((node(from), node(step.event.place))).or_default()[0] += 1;
            }
            EventKind::Dropped { to: Some(to), .. } if to != step.event.place => {
                marks.hops.entry((node(step.event.place), node(to))).or_default()[1] += 1;
                continue;
            }
            EventKind::Dropped { .. }
            | EventKind::Delivered { .. }
            | EventKind::Offered
            | EventKind::Sent
            | EventKind::HandedOn { .. }
            | EventKind::Ended { .. }
            | EventKind::Seen => {}
        }
        if !step.goes_on {
            match story.fate(step) {
                Fate::Dropped { .. } => *marks.died.entry(node(step.event.place)).or_default() += 1,
                Fate::Taken => *marks.taken.entry(node(step.event.place)).or_default() += 1,
                Fate::Ignored | Fate::Repeated | Fate::Held | Fate::Lost => {}
            }
        }
    }
    marks
}
