//! All drops of a log, by place and reason.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use crate::log::{Event, EventKind, Log, Place, Truncation};
use crate::outcome::{Outcome, outcome};
use crate::verdict::{from_to, name_of_place};

/// All drops of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Summary {
    /// The drops of each place and reason, the most first.
    pub drops: Vec<DropCount>,
    /// How the log ends before its run does.
    pub truncation: Option<Truncation>,
}

/// Drops at one place for one reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DropCount {
    /// Where: `link a-b, from a to b`, or the name of a machine.
    pub place: String,
    /// The link's reason, or the counter of the machine that rose.
    pub reason: String,
    /// The reason in words; `None` of a link's, which is in words.
    pub words: Option<&'static str>,
    /// Number of drops.
    pub count: u64,
    /// The number of the first packet that was dropped there; `None` if the log does not have it.
    pub first: Option<u32>,
}

/// Counts the drops of a log.
pub fn summary(log: &Log) -> Summary {
    let mut counts: BTreeMap<(u32, Option<u32>, u16), (u64, u32)> = BTreeMap::new();
    for event in log.events() {
        if let Some((to, reason)) = drop_of(log, &event) {
            counts.entry((event.place, to, reason)).or_insert((0, event.content)).0 += 1;
        }
    }
    let row = |((place, to, reason), (count, first)): ((u32, Option<u32>, u16), (u64, u32))| {
        let from = place;
        let place = &log.places()[from as usize];
        let reason = log.reason(reason).unwrap_or("unknown");
        DropCount {
            place: match (place, to) {
                (Place::Interface { node, link, .. }, Some(to)) if !link.is_empty() => {
                    format!("link {link}, {}", from_to(log, node, from, to))
                }
                (Place::Interface { node, name, link, .. }, None) if !link.is_empty() => {
                    format!("{node}:{name}, before link {link}")
                }
                (place, _) => name_of_place(place),
            },
            reason: reason.to_owned(),
            words: outcome(reason).map(|(_, words)| words),
            count,
            first: Some(first).filter(|&first| first != 0),
        }
    };
    let mut drops: Vec<DropCount> = counts.into_iter().map(row).collect();
    drops.sort_by_key(|drops| Reverse(drops.count));
    Summary { drops, truncation: log.truncation() }
}

/// The receiver that missed it and the number of the reason, of an event that is a drop.
fn drop_of(log: &Log, event: &Event) -> Option<(Option<u32>, u16)> {
    match event.kind {
        EventKind::Dropped { to, reason } => Some((to, reason)),
        EventKind::Ended { reason, .. } => {
            let (outcome, _) = outcome(log.reason(reason)?)?;
            (outcome == Outcome::Dropped).then_some((None, reason))
        }
        EventKind::Offered
        | EventKind::Sent
        | EventKind::Delivered { .. }
        | EventKind::HandedOn { .. }
        | EventKind::Seen => None,
    }
}
