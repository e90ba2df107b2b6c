//! Notes on settings that are permitted and most likely not intended.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write};

use hopcast_core::Instant;
use hopcast_stack::transport::Layer;

use super::super::model::{Action, Case, Event, Flow, FlowId, LinkModel, NodeId, Plan, Scenario};
use super::{MAX_LISTED, counted};

pub(super) fn write_notes(out: &mut String, plan: &Plan) -> fmt::Result {
    let notes = notes(plan);
    if !notes.is_empty() {
        writeln!(out)?;
    }
    notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))
}

/// Notes on settings of any case that are permitted and most likely not intended, a line each, up to a maximum.
pub fn notes(plan: &Plan) -> Vec<String> {
    let mut notes: Vec<(String, usize)> = Vec::new();
    let mut places = BTreeMap::new();
    for note in plan.cases.iter().flat_map(notes_of) {
        let place = *places.entry(note).or_insert_with_key(|note| {
            notes.push((note.clone(), 0));
            notes.len() - 1
        });
        notes[place].1 += 1;
    }
    let more = notes.len().saturating_sub(MAX_LISTED);
    let told = |(note, cases): (String, usize)| match plan.cases.len() {
        all if all == cases => note,
        all => format!("{note} (in {cases} of {all} cases)"),
    };
    let shown = notes.into_iter().take(MAX_LISTED).map(told);
    shown.chain((more > 0).then(|| format!("and {more} more"))).collect()
}

/// The notes of one case, each once.
fn notes_of(case: &Case) -> BTreeSet<String> {
    let scenario = &*case.scenario;
    let end = Instant::ZERO + scenario.duration;
    let mut notes: BTreeSet<String> = case.left_out.iter().cloned().collect();
    notes.extend(written_both_ways(scenario));
    notes.extend(scenario.flows.iter().filter_map(|flow| too_many_members(scenario, flow)));
    let mut starts: BTreeMap<FlowId, Instant> = BTreeMap::new();
    let used: BTreeSet<_> = scenario.flows.iter().filter_map(|flow| flow.group).collect();
    let unused = scenario.groups.iter().enumerate().filter(|(number, _)| !used.contains(number));
    notes.extend(unused.map(|(_, group)| format!("no flow goes to group {}", group.name)));
    for Event { at, action } in &scenario.events {
        let of = match action {
            Action::Join { group, .. } | Action::Leave { group, .. } => {
                Some(("group", &scenario.groups[*group].name))
            }
            Action::Service { service, .. } => Some(("service", &scenario.services[*service].name)),
            Action::Restart(node) => Some(("node", &scenario.nodes[*node].name)),
            Action::Start(_) | Action::Stop(_) | Action::Link { .. } => None,
        };
        if let Some((what, name)) = of.filter(|_| *at >= end) {
            notes.insert(format!(
                "the event of {what} {name} at {at} is not before the end of the run at {end}"
            ));
        }
        let Action::Start(flow) = action else { continue };
        // Events are in the order of time, so the first is the earliest.
        starts.entry(*flow).or_insert(*at);
        if *at >= end {
            let name = &scenario.flows[*flow].name;
            notes.insert(format!(
                "the start event of flow {name} at {at} is not before the end of the run at {end}"
            ));
        }
    }
    for (number, flow) in scenario.flows.iter().enumerate() {
        let name = &flow.name;
        let span = flow.app.span();
        let event = starts.get(&number);
        match span.start {
            None if event.is_none() => {
                notes.insert(format!(
                    "flow {name} waits for a start event, and there is none: it sends nothing"
                ));
            }
            // An earlier event has started it nevertheless.
            Some(start) if start >= end && event.is_none_or(|at| *at >= end) => {
                notes.insert(format!(
                    "flow {name} starts at {start}, not before the end of the run at {end}: it sends nothing"
                ));
            }
            Some(_) | None => {}
        }
        if let Some(stop) = span.stop.filter(|stop| *stop > end) {
            notes.insert(format!("flow {name} stops at {stop}, after the end of the run at {end}"));
        }
    }
    notes
}

/// A note on a group with more members than its transport serves at a time.
fn too_many_members(scenario: &Scenario, flow: &Flow) -> Option<String> {
    let members = 1 + scenario.groups[flow.group?].members.at_a_time_without(flow.from);
    let limit = |layer: &Layer| Some((layer.row().name, layer.settings().max_members(flow.ipv6)?));
    let (name, max) = flow.over.iter().filter_map(limit).find(|&(_, max)| members > max)?;
    Some(format!(
        "flow {} has {members} members with its sender, and `{name}` serves {max} at a time{}: the others get nothing until one leaves",
        flow.name,
        if flow.ipv6 { " over IPv6" } else { "" }
    ))
}

/// A note on two links between one pair of nodes, the second from the other end: most likely they are intended as the
/// two directions of one link.
fn written_both_ways(scenario: &Scenario) -> Option<String> {
    let mut first: BTreeMap<[NodeId; 2], &str> = BTreeMap::new();
    let mut pairs = Vec::new();
    for link in &scenario.links {
        let (LinkModel::PointToPoint(_), &[from, to]) = (&link.model, link.ends.as_slice()) else { continue };
        match first.get(&[to, from]) {
            Some(other) => pairs.push((*other, link.name.as_str())),
            None => _ = first.entry([from, to]).or_insert(&link.name),
        }
    }
    let (one, other) = pairs.first()?;
    let more = match pairs.len() - 1 {
        0 => String::new(),
        more => format!(" (and {})", counted(more, "other pair")),
    };
    Some(format!(
        "links {one} and {other}{more} join the same two nodes, one written each way: they are two links, and each carries \
         both ways; for one link whose directions differ write `forward` and `backward`"
    ))
}
