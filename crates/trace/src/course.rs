//! How one packet became several copies or fragments on its way.

use std::collections::{BTreeMap, BTreeSet};

use crate::fragment::are_all;
use crate::log::{EventKind, Place};
use crate::story::{Fate, Packet, Relation, Step, Story};
use crate::verdict::{listed, name_of_place};

/// Where a packet was fragmented, reassembled and duplicated; `None` of one that remained one.
pub(crate) fn course(story: &Story<'_>, packet: &Packet) -> Option<String> {
    let parts = [
        fragmented(story, packet),
        reassembled(story, packet).map(|nodes| format!("reassembled at {}", listed(&nodes))),
        duplicated(story, packet).map(|links| format!("duplicated {}", listed(&links))),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(", "))
}

/// Number of fragments that were made of it, and where.
fn fragmented(story: &Story<'_>, packet: &Packet) -> Option<String> {
    if !story.has_fragments {
        return None;
    }
    let mut made: BTreeMap<&str, BTreeSet<u32>> = BTreeMap::new();
    for step in steps(story, packet) {
        let is_made = match step.relation {
            Relation::Fragment => true,
            Relation::First => matches!(step.event.kind, EventKind::Offered | EventKind::Sent),
            _ => false,
        };
        if is_made && let Some(fragment) = story.layers(step).fragment {
            made.entry(node_of(story, step)).or_default().insert(fragment.offset);
        }
    }
    let made: Vec<String> =
        made.iter().map(|(node, offsets)| format!("fragmented into {} at {node}", offsets.len())).collect();
    (!made.is_empty()).then(|| made.join(", "))
}

/// The nodes that put fragments together: on the way, or where all of them arrived.
fn reassembled(story: &Story<'_>, packet: &Packet) -> Option<BTreeSet<String>> {
    if !story.has_fragments {
        return None;
    }
    let on_the_way = steps(story, packet).filter(|step| step.relation == Relation::Reassembled);
    let mut nodes: BTreeSet<String> = on_the_way.map(|step| node_of(story, step).to_owned()).collect();
    let mut ends: BTreeMap<&str, Vec<_>> = BTreeMap::new();
    for step in story.ends(packet).filter(|step| !step.is_merged && story.fate(step) == Fate::Taken) {
        if let Some(fragment) = story.layers(step).fragment {
            ends.entry(node_of(story, step)).or_default().push(fragment);
        }
    }
    let all = ends.into_iter().filter(|(_, fragments)| are_all(fragments.clone()));
    nodes.extend(all.map(|(node, _)| node.to_owned()));
    (!nodes.is_empty()).then_some(nodes)
}

/// The links that delivered it once more than it was sent.
fn duplicated(story: &Story<'_>, packet: &Packet) -> Option<BTreeSet<String>> {
    let duplicates = steps(story, packet).filter(|step| step.is_duplicate);
    let link = |step: &Step| match &story.log.places()[step.event.place as usize] {
        Place::Interface { link, .. } if !link.is_empty() => format!("on link {link}"),
        place => format!("before {}", name_of_place(place)),
    };
    let links: BTreeSet<String> = duplicates.map(link).collect();
    (!links.is_empty()).then_some(links)
}

fn steps<'s>(story: &'s Story<'_>, packet: &Packet) -> impl Iterator<Item = &'s Step> {
    packet.steps.iter().map(|&step| &story.steps[step])
}

fn node_of<'s>(story: &'s Story<'_>, step: &Step) -> &'s str {
    story.log.places()[step.event.place as usize].node()
}
