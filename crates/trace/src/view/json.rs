//! Stories as JSON.

use serde_json::{Value, json};

use super::summary::Summary;
use super::text::step_text;
use crate::log::{EventKind, Place, Truncation};
use crate::story::{Fate, Packet, Relation, Step, Story};
use crate::verdict::{Finding, Verdict, finding, kind_of, verdicts};

/// A story: the verdicts, and this many packets with all their steps.
pub fn story_json(story: &Story<'_>, packets: usize) -> Value {
    let verdicts = verdicts(story);
    json!({
        "verdict": verdicts.first().map(ToString::to_string),
        "verdicts": verdicts.iter().map(verdict_json).collect::<Vec<_>>(),
        "packets": story.packets.iter().take(packets).map(|packet| packet_json(story, packet)).collect::<Vec<_>>(),
        "packets_in_all": story.packets.len(),
        "truncation": story.log.truncation().map(truncation_json),
    })
}

/// A summary of all drops.
pub fn summary_json(summary: &Summary) -> Value {
    let drops = summary.drops.iter().map(|drops| {
        json!({
            "place": drops.place,
            "reason": drops.reason,
            "words": drops.words,
            "count": drops.count,
            "first_packet": drops.first,
        })
    });
    json!({
        "drops": drops.collect::<Vec<_>>(),
        "truncation": summary.truncation.map(truncation_json),
    })
}

fn truncation_json(truncation: Truncation) -> Value {
    match truncation {
        Truncation::Full { from, left_out } => {
            json!({ "full_at_ns": from.as_nanos(), "events_left_out": left_out })
        }
        Truncation::Overrun { from, left_out } => {
            json!({ "overrun_at_ns": from.as_nanos(), "events_left_out": left_out })
        }
        Truncation::Cut { offset } => json!({ "cut_at_byte": offset }),
    }
}

fn verdict_json(verdict: &Verdict) -> Value {
    json!({
        "text": verdict.to_string(),
        "kind": verdict.kind,
        "finding": finding_json(&verdict.finding),
        "packets": verdict.packets,
        "of": verdict.of,
        "course": verdict.course,
        "note": verdict.note,
    })
}

fn finding_json(finding: &Finding) -> Value {
    match finding {
        Finding::Died { place, reason, counter, round } => {
            json!({ "died": place, "reason": reason, "counter": counter, "loop": round })
        }
        Finding::Unclaimed { at } => json!({ "unclaimed": at }),
        Finding::Lost { place, inside } => json!({ "lost_after": place, "inside": inside }),
        Finding::Held { place } => json!({ "held": place }),
        Finding::Partly { at, died } => json!({ "arrived": at, "copies_died": died }),
        Finding::Arrived { at } => json!({ "arrived": at }),
    }
}

fn packet_json(story: &Story<'_>, packet: &Packet) -> Value {
    let steps = packet.steps.iter().map(|&place| step_json(story, place));
    json!({
        "number": packet.number,
        "kind": kind_of(story, packet),
        "finding": finding_json(&finding(story, packet)),
        "steps": steps.collect::<Vec<_>>(),
    })
}

fn step_json(story: &Story<'_>, number: usize) -> Value {
    let step: &Step = &story.steps[number];
    let log = story.log;
    let place = match &log.places()[step.event.place as usize] {
        Place::Interface { node, name, link, .. } => json!({ "node": node, "interface": name, "link": link }),
        Place::Machine { node, name, flow } => json!({ "node": node, "machine": name, "flow": flow }),
    };
    let event = match step.event.kind {
        EventKind::Offered => "offered",
        EventKind::Sent => "sent",
        EventKind::Delivered { .. } => "received",
        EventKind::Dropped { .. } => "dropped",
        EventKind::HandedOn { .. } => "handed on",
        EventKind::Ended { .. } => match story.fate(step) {
            Fate::Dropped { .. } => "dropped",
            Fate::Ignored => "ignored",
            Fate::Repeated => "repeated",
            Fate::Held | Fate::Lost => "kept",
            Fate::Taken => "taken",
        },
        EventKind::Seen => "seen",
    };
    let relation = match step.relation {
        Relation::First => "first",
        Relation::Same => "same",
        Relation::Changed => "changed",
        Relation::Carried => "carried",
        Relation::Fragment => "fragment",
        Relation::Reassembled => "reassembled",
        Relation::HeldBack => "held back",
        Relation::Decoded => "decoded",
    };
    let reason = match step.event.kind {
        EventKind::Dropped { reason, .. } | EventKind::Ended { reason, .. } => log.reason(reason),
        EventKind::Offered
        | EventKind::Sent
        | EventKind::Delivered { .. }
        | EventKind::HandedOn { .. }
        | EventKind::Seen => None,
    };
    json!({
        "step": number,
        "before": step.before,
        "time_ns": step.event.at.as_nanos(),
        "place": place,
        "event": event,
        "relation": relation,
        "duplicate": step.is_duplicate,
        "reason": reason,
        "bytes": log.content(step.event.content).map(|content| content.length),
        "text": step_text(story, step),
    })
}
