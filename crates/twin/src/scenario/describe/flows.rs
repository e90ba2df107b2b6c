//! Flows with their paths.

use std::fmt::{self, Write};

use hopcast_core::Rate;
use hopcast_stack::network::{Crossing, ShortestPaths, Target};

use super::super::capacity::Capacities;
use super::super::model::{Flow, Layer, Scenario};
use super::{DescribedSegments, MAX_LISTED, counted, shortened};

pub(super) fn write_flows(out: &mut String, scenario: &Scenario, network: &DescribedSegments) -> fmt::Result {
    writeln!(out, "\nFlows: {}", scenario.flows.len())?;
    let mut capacities = Capacities::of(scenario);
    let mut paths = ShortestPaths::over(scenario.nodes.len(), &scenario.links, &network.segments);
    for flow in scenario.flows.iter().take(MAX_LISTED) {
        let Flow { name, from, to, protocol, app, ipv6, .. } = flow;
        // With several receivers, the path to the farthest and the bound of the worst placed one.
        let cut = match capacities.min_of_flow(flow) {
            None if !scenario.fleets.is_empty() => {
                "unknown: rates of radio links follow from places".to_owned()
            }
            None => "unbounded".to_owned(),
            Some(bits) => Rate::from_bits_per_sec(bits.round() as u64).to_string(),
        };
        let routes = longest_routes(&mut paths, scenario, network, flow);
        let hops = hops(&routes);
        let names: Vec<&str> = to.iter().map(|&to| &*scenario.nodes[to].name).collect();
        let group = flow.group.map(|group| &scenario.groups[group]);
        let to = match group {
            Some(group) if !group.name.is_empty() => group.name.clone(),
            Some(group) => format!("{} by {}", names.join(", "), group.delivery),
            None => names.join(", "),
        };
        let from = &scenario.nodes[*from].name;
        let ip = if *ipv6 { ", IPv6" } else { "" };
        let several = if flow.paths > 1 { format!(", {} routes", flow.paths) } else { String::new() };
        writeln!(out, "  {name}: {from} to {to} over {protocol}{ip}{several}: {app}")?;
        let stack = stack(flow);
        if stack != *protocol && !stack.is_empty() {
            writeln!(out, "    stack: {stack}")?;
        }
        writeln!(out, "    {hops}, min-cut {cut}")?;
        routes.iter().try_for_each(|path| write_vlans(out, scenario, network, path))?;
    }
    match scenario.flows.len().saturating_sub(MAX_LISTED) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}

/// The route to the receiver of a flow, or to the farthest of several; every route of a flow that takes disjoint ones.
fn longest_routes(
    paths: &mut ShortestPaths,
    scenario: &Scenario,
    network: &DescribedSegments,
    flow: &Flow,
) -> Vec<Vec<Crossing>> {
    let mut farthest = flow.to.first().copied().unwrap_or(flow.from);
    if flow.paths > 1 {
        let paths = ShortestPaths::over(scenario.nodes.len(), &scenario.links, &network.segments);
        return paths.disjoint(flow.from, farthest, flow.paths);
    }
    let has_tree = flow.has_tree(&scenario.groups);
    if has_tree || flow.to.len() > 1 {
        // Without events the path back has the same number of hops, and one search finds those from all receivers.
        paths.search_from(Target::Node(flow.from), &flow.to);
        farthest = flow.to.iter().rev().copied().max_by_key(|&to| paths.hops(to)).unwrap_or(farthest);
    }
    if has_tree {
        return vec![paths.path_back(farthest, flow.from)];
    }
    paths.search_from(flow.target(&network.addresses, farthest), &[flow.from]);
    vec![paths.path(flow.from, farthest).collect()]
}

/// Number of hops of a route, or of each of several that differ: `2 and 3 hops`.
fn hops(routes: &[Vec<Crossing>]) -> String {
    match routes {
        [] => "no path".to_owned(),
        [path, ..] if path.is_empty() => "no path".to_owned(),
        [path, others @ ..] if others.iter().all(|other| other.len() == path.len()) => {
            counted(path.len(), "hop")
        }
        [first @ .., last] => {
            let first: Vec<_> = first.iter().map(|path| path.len().to_string()).collect();
            format!("{} and {} hops", first.join(", "), last.len())
        }
    }
}

/// The segments of a path over VLANs, with the longest packet that each takes.
fn write_vlans(
    out: &mut String,
    scenario: &Scenario,
    network: &DescribedSegments,
    path: &[Crossing],
) -> fmt::Result {
    let segment = |crossing: &Crossing| network.segments.get(crossing.segment);
    if path.iter().all(|crossing| segment(crossing).vlan().is_none()) {
        return Ok(());
    }
    let shown = |crossing: &Crossing| {
        let (segment, links) = (segment(crossing), &scenario.links);
        format!("{} (MTU {})", segment.name(links), segment.mtu(links, crossing.hop))
    };
    let shown: Vec<String> = path.iter().map(shown).collect();
    writeln!(out, "    over {}", shortened(&shown.iter().map(String::as_str).collect::<Vec<_>>()))
}

/// The layers under their own names, each with the options that are not the default.
fn stack(flow: &Flow) -> String {
    let layers: Vec<_> = flow.over.iter().map(Layer::to_string).collect();
    layers.join("/")
}
