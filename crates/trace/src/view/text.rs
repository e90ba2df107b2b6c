//! Stories as text.

use std::fmt::Write;

use hopcast_core::{Instant, Port};
use hopcast_wire::ethernet;

use super::summary::Summary;
use crate::content::Layers;
use crate::log::{EventKind, Log, Place, Truncation};
use crate::outcome::outcome;
use crate::story::{Fate, Packet, Relation, Step, Story};
use crate::verdict::{kind_of, name_of_place, verdicts};

/// Maximum number of steps of a packet that are printed. Chosen: a loop has hundreds, and its first rounds show it.
const MAX_STEPS: usize = 60;

/// A story: its verdicts, and the steps of this many packets.
pub fn story_text(story: &Story<'_>, packets: usize) -> String {
    let mut text = String::new();
    let verdicts = verdicts(story);
    if verdicts.is_empty() {
        text.push_str("no packet of the log fits the query\n");
    }
    for verdict in &verdicts {
        _ = writeln!(text, "{verdict}");
    }
    text.extend(story.log.truncation().map(truncation_text));
    // Of each verdict one packet, then the others.
    let first = verdicts.iter().filter_map(|verdict| verdict.places.first().copied());
    let rest = verdicts.iter().flat_map(|verdict| verdict.places.iter().skip(1).copied());
    for place in first.chain(rest).take(packets) {
        _ = write!(text, "\n{}", packet_text(story, &story.packets[place]));
    }
    if let Some(more) = story.packets.len().checked_sub(packets).filter(|more| *more > 0) {
        _ = writeln!(
            text,
            "\n{more} more packets: `--packets N` shows more, and `packet N` one by its number"
        );
    }
    text
}

/// A summary of all drops as a table.
pub fn summary_text(summary: &Summary) -> String {
    let total: u64 = summary.drops.iter().map(|drops| drops.count).sum();
    let mut text = match total {
        0 => "no packet was dropped\n".to_owned(),
        1 => "one packet was dropped\n".to_owned(),
        total => format!("{total} packets were dropped\n"),
    };
    text.extend(summary.truncation.map(truncation_text));
    let width = |of: fn(&super::DropCount) -> usize| summary.drops.iter().map(of).max().unwrap_or(0);
    let (places, reasons) = (width(|drops| drops.place.len()), width(|drops| drops.reason.len()));
    for drops in &summary.drops {
        let first = drops.first.map(|first| format!("  packet {first}")).unwrap_or_default();
        let words = drops.words.map(|words| format!("  {words}")).unwrap_or_default();
        _ = writeln!(
            text,
            "{:>9}  {:places$}  {:reasons$}{words}{first}",
            drops.count, drops.place, drops.reason
        );
    }
    text
}

fn truncation_text(truncation: Truncation) -> String {
    match truncation {
        Truncation::Full { from, left_out } => format!(
            "the log reached its maximum size at {}: {left_out} events after that are not in it\n",
            time_text(from)
        ),
        Truncation::Overrun { from, left_out } => format!(
            "the log could not be written as fast as frames came, and ends at {}: {left_out} events after that are not in it\n",
            time_text(from)
        ),
        Truncation::Cut { offset } => {
            format!("the log is cut off or damaged at byte {offset}: what came after that is not here\n")
        }
    }
}

fn packet_text(story: &Story<'_>, packet: &Packet) -> String {
    let mut text = format!("packet {}: {}\n", packet.number, kind_of(story, packet));
    let depths = depths(story, packet);
    let mut last = None;
    for (&place, depth) in packet.steps.iter().zip(depths).take(MAX_STEPS) {
        let step = &story.steps[place];
        let time = match last {
            None => time_text(step.event.at),
            Some(last) if last == step.event.at => String::new(),
            Some(last) => format!("+{}", span_text(step.event.at.since(last).as_nanos())),
        };
        last = Some(step.event.at);
        let indent = "  ".repeat(depth);
        _ = writeln!(text, "  {time:>15}  {indent}{}", step_text(story, step));
    }
    if packet.steps.len() > MAX_STEPS {
        _ = writeln!(text, "  {:>15}  {} more steps", "", packet.steps.len() - MAX_STEPS);
        if let Some(&end) = packet.steps.last() {
            let step = &story.steps[end];
            _ = writeln!(text, "  {:>15}  {}", time_text(step.event.at), step_text(story, step));
        }
    }
    text
}

/// How far in each step of a packet is printed: a copy that is not the first of its step is a branch.
fn depths(story: &Story<'_>, packet: &Packet) -> Vec<usize> {
    let mut depths = std::collections::BTreeMap::new();
    let mut branched = std::collections::BTreeSet::new();
    let mut depth_of = |&place: &usize| {
        let before = story.steps[place].before;
        let depth = before.map_or(0, |before| {
            let is_branch = !branched.insert(before);
            depths.get(&before).copied().unwrap_or(0) + usize::from(is_branch)
        });
        depths.insert(place, depth);
        depth.min(12)
    };
    packet.steps.iter().map(&mut depth_of).collect()
}

/// What happens at a step.
pub(crate) fn step_text(story: &Story<'_>, step: &Step) -> String {
    let log = story.log;
    let place = &log.places()[step.event.place as usize];
    let name = name_of_place(place);
    let length = log.content(step.event.content).map_or(0, |content| content.length);
    let changes = changes_text(story, step);
    match step.event.kind {
        EventKind::Offered => format!("{name} has {length} B to send{changes}"),
        EventKind::Sent => format!("{name} sends {length} B{changes}"),
        EventKind::Delivered { .. } if step.is_duplicate => {
            format!("{name} receives it once more: the link has duplicated it")
        }
        EventKind::Delivered { .. } => format!("{name} receives it{changes}"),
        EventKind::Seen => format!("{name} has {length} B{changes}"),
        EventKind::Dropped { to, reason } => {
            let reason = log.reason(reason).unwrap_or("unknown");
            match (place, to) {
                (Place::Interface { link, .. }, Some(to)) if !link.is_empty() => {
                    let receiver = log.places().get(to as usize).filter(|_| to != step.event.place);
                    let way = receiver.map(|receiver| format!(" on its way to {}", receiver.node()));
                    format!("✗ link {link} drops it{}: {reason}", way.unwrap_or_default())
                }
                _ => format!("✗ {name} drops it: {reason}"),
            }
        }
        EventKind::HandedOn { port, .. } => {
            let verb = match step.relation {
                Relation::First => "makes it, and hands it",
                Relation::Same if is_copy(story, step) => "makes a copy, and hands it",
                Relation::Same | Relation::Changed => "hands it",
                Relation::Fragment => "cuts it into fragments, and hands one",
                Relation::Reassembled => "has put its fragments together, and hands it",
                Relation::Carried => "puts it into another packet, and hands that",
                Relation::HeldBack => "had held it back, and hands it",
                Relation::Decoded => "has decoded it, and hands it",
            };
            format!("{name} {verb} {}{changes}", port_text(log, place, port))
        }
        EventKind::Ended { reason, .. } => {
            let counter = log.reason(reason);
            let words = counter.and_then(outcome).map(|(_, words)| words);
            let because = counter.map(|counter| format!(" ({counter})")).unwrap_or_default();
            match story.fate(step) {
                Fate::Dropped { words, reason } => {
                    format!("✗ {name} drops it: {} ({reason})", words.unwrap_or(""))
                }
                Fate::Ignored => format!("{name} leaves it: {}{because}", words.unwrap_or("")),
                Fate::Repeated => format!("{name} has it already: {}{because}", words.unwrap_or("")),
                Fate::Held | Fate::Lost => format!("{name} keeps it{because}"),
                Fate::Taken if step.goes_on => format!("{name} keeps it{because}"),
                Fate::Taken => format!("✓ {name} takes it{because}"),
            }
        }
    }
}

/// Whether a machine has handed the same on already.
fn is_copy(story: &Story<'_>, step: &Step) -> bool {
    let before = step.before.map(|before| &story.steps[before]);
    before.is_some_and(|before| {
        before.event.place == step.event.place && matches!(before.event.kind, EventKind::HandedOn { .. })
    })
}

/// By which port a machine hands something on.
fn port_text(log: &Log, place: &Place, port: Port) -> String {
    match port {
        Port::Above(_) => "up".to_owned(),
        Port::Below(number) if place.is_host() => {
            let interfaces = log.places().iter().filter_map(|other| match other {
                Place::Interface { node, name, .. } if node == place.node() => Some(name),
                Place::Interface { .. } | Place::Machine { .. } => None,
            });
            let name = interfaces.into_iter().nth(number as usize);
            name.map_or_else(|| "down".to_owned(), |name| format!("down to {name}"))
        }
        Port::Below(_) => "down".to_owned(),
    }
}

/// What differs from the step before, in brackets.
fn changes_text(story: &Story<'_>, step: &Step) -> String {
    let Some(before) = step.before.map(|before| &story.steps[before]) else { return String::new() };
    if before.event.content == step.event.content {
        return String::new();
    }
    let (old, new) = (story.layers(before), story.layers(step));
    let mut changes = changes(&old, &new);
    match (step.relation, new.fragment) {
        (Relation::Fragment, Some(fragment)) => {
            let end = fragment.end().saturating_sub(1);
            changes.insert(0, format!("a fragment of it, bytes {} to {end}", fragment.offset));
        }
        (Relation::Reassembled, _) => changes.insert(0, "put together of its fragments".to_owned()),
        _ => {}
    }
    if changes.is_empty() { String::new() } else { format!(" ({})", changes.join(", ")) }
}

fn changes(old: &Layers, new: &Layers) -> Vec<String> {
    let mut changes = Vec::new();
    if let (Some(before), Some(after)) = (old.ethernet, new.ethernet) {
        if old.vlans != new.vlans {
            let tags = |vlans: &[u16]| match vlans {
                [] => "no tag".to_owned(),
                vlans => vlans.iter().map(|vlan| format!("VLAN {vlan}")).collect::<Vec<_>>().join(" in "),
            };
            changes.push(format!("{} → {}", tags(&old.vlans), tags(&new.vlans)));
        }
        if before.destination != after.destination {
            changes.push(format!("to {}", ethernet::text(after.destination)));
        }
    }
    if let (Some(before), Some(after)) = (old.ip, new.ip) {
        if before.destination != after.destination {
            changes.push(format!("for {} → {}", before.destination, after.destination));
        }
        if before.source != after.source {
            changes.push(format!("from {} → {}", before.source, after.source));
        }
        if before.hop_limit != after.hop_limit {
            changes.push(format!("hop limit {} → {}", before.hop_limit, after.hop_limit));
        }
    }
    changes
}

/// A time of the run in seconds, to the nanosecond.
pub(crate) fn time_text(at: Instant) -> String {
    let nanos = at.as_nanos();
    format!("{}.{:09} s", nanos / 1_000_000_000, nanos % 1_000_000_000)
}

/// A length of time in the unit that suits it.
fn span_text(nanos: u64) -> String {
    match nanos {
        0..1_000 => format!("{nanos} ns"),
        1_000..1_000_000 => format!("{:.1} us", nanos as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.2} ms", nanos as f64 / 1e6),
        _ => format!("{:.3} s", nanos as f64 / 1e9),
    }
}
