//! The text of a plan, for `hopcast check`.
//!
//! | module | what |
//! |---|---|
//! | `links` | links with all their values |
//! | `segments` | the prefixes of segments, and the routes of the file |
//! | `events` | the events, in the order of time |
//! | `groups` | services and groups |
//! | `flows` | flows with their paths |
//! | `notes` | settings that are most likely not intended |

mod events;
mod flows;
mod groups;
mod links;
mod notes;
mod segments;

use std::collections::BTreeSet;
use std::fmt::{self, Write};

use hopcast_core::Duration;

use hopcast_stack::network::{AddressPlan, Layers, Segments};

use super::model::{Capture, Case, Exec, Neighbours, NodeId, Plan, Reporting, Scenario};

pub use notes::notes;

/// Maximum number of nodes, links, events or flows that are listed; further ones are only counted. Chosen: about a
/// screen.
const MAX_LISTED: usize = 40;

/// The resolved network of a plan: nodes, links with all their values, events, flows with their paths, and the cases.
///
/// Swept values are shown as in the first case.
pub fn describe(plan: &Plan) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = write_plan(&mut text, plan);
    text
}

fn write_plan(out: &mut String, plan: &Plan) -> fmt::Result {
    let Some(first) = plan.cases.first() else { return Ok(()) };
    let scenario = &*first.scenario;
    let measure = scenario.measure;
    writeln!(out, "{}", plan.title)?;
    writeln!(
        out,
        "  {} of virtual time, measured from {} to {} in steps of {}; seed {}",
        scenario.duration, measure.from, measure.to, measure.interval, scenario.seed
    )?;
    writeln!(
        out,
        "  {}, {} each: {}",
        counted(plan.cases.len(), "case"),
        counted(plan.repeats as usize, "run"),
        counted(plan.cases.len().saturating_mul(plan.repeats as usize), "run")
    )?;
    let network = DescribedSegments::of(scenario);
    write_nodes(out, scenario)?;
    links::write_links(out, scenario)?;
    segments::write_prefixes(out, scenario, &network)?;
    segments::write_routes(out, scenario)?;
    events::write_events(out, scenario)?;
    groups::write_services(out, scenario)?;
    groups::write_groups(out, scenario)?;
    flows::write_flows(out, scenario, &network)?;
    write_execs(out, scenario)?;
    write_sweep(out, &plan.cases)?;
    if !plan.published.is_empty() {
        let (first, rest) = plan.origin.split_at(1);
        let rows = counted(plan.published.len(), "row");
        writeln!(out, "\n{}{rest} figures: {rows}", first.to_uppercase())?;
    }
    notes::write_notes(out, plan)
}

/// The segments of a network, and the addresses of its hosts there.
struct DescribedSegments {
    segments: Segments,
    addresses: AddressPlan,
}

impl DescribedSegments {
    /// The segments of a scenario, whose services and prefixes have been checked.
    fn of(scenario: &Scenario) -> Self {
        let segments = Layers::segments_of(scenario.network());
        let addresses = AddressPlan::of(scenario.network(), &segments).unwrap_or_default();
        Self { segments, addresses }
    }
}

fn write_nodes(out: &mut String, scenario: &Scenario) -> fmt::Result {
    let names: Vec<_> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
    writeln!(out, "\nNodes: {}", names.len())?;
    writeln!(out, "  {}", shortened(&names))?;
    for (role, nodes) in &scenario.roles {
        writeln!(out, "  {role}: {}", names_of(scenario, nodes))?;
    }
    if scenario.membership == Reporting::Report {
        writeln!(out, "  memberships are reported, by IGMP and MLD")?;
    }
    if scenario.neighbours == Neighbours::Resolve {
        writeln!(out, "  neighbours are asked for, by ARP and neighbour discovery")?;
    }
    if scenario.routing.convergence > Duration::ZERO {
        writeln!(out, "  routes follow the links after {}", scenario.routing.convergence)?;
    }
    if let Capture::Nodes(nodes) = &scenario.capture {
        writeln!(out, "  captured: {}", names_of(scenario, nodes))?;
    }
    Ok(())
}

fn write_execs(out: &mut String, scenario: &Scenario) -> fmt::Result {
    if !scenario.execs.is_empty() {
        writeln!(out, "\nCommands: {}", scenario.execs.len())?;
    }
    for Exec { name, at, command, start, stop, .. } in scenario.execs.iter().take(MAX_LISTED) {
        let stop = stop.map(|stop| format!(" to {stop}")).unwrap_or_default();
        writeln!(out, "  {name}: at {} from {start}{stop}: {}", scenario.nodes[*at].name, command.join(" "))?;
    }
    match scenario.execs.len().saturating_sub(MAX_LISTED) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}

/// Each swept path with its values, in the order of the cases.
fn write_sweep(out: &mut String, cases: &[Case]) -> fmt::Result {
    let mut paths: Vec<(&str, Vec<&str>, BTreeSet<&str>)> = Vec::new();
    for case in cases {
        for (place, (path, value)) in case.parameters.iter().enumerate() {
            if paths.len() <= place {
                paths.push((path, Vec::new(), BTreeSet::new()));
            }
            let (_, values, seen) = &mut paths[place];
            if seen.insert(value) {
                values.push(value);
            }
        }
    }
    if !paths.is_empty() {
        writeln!(out, "\nSweep: {}", counted(cases.len(), "case"))?;
    }
    for (path, values, _) in paths {
        writeln!(out, "  {path}: {}", shortened(&values))?;
    }
    Ok(())
}

fn names_of(scenario: &Scenario, nodes: &[NodeId]) -> String {
    let names: Vec<_> = nodes.iter().map(|node| scenario.nodes[*node].name.as_str()).collect();
    shortened(&names)
}

/// The names; of many, the first few and the last.
fn shortened(names: &[&str]) -> String {
    match names {
        [first @ .., last] if names.len() > 12 => {
            format!("{}, … {last} ({} in all)", first[..8].join(", "), names.len())
        }
        names => names.join(", "),
    }
}

fn counted(number: usize, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}
