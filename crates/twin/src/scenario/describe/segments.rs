//! The prefixes of segments with the addresses of their hosts, and the routes of the file.

use std::fmt::{self, Write};

use super::super::model::{Destinations, Scenario};
use super::{DescribedSegments, MAX_LISTED, shortened};

/// The prefixes of segments, a line each, and their hosts in the order of their addresses.
pub(super) fn write_prefixes(
    out: &mut String,
    scenario: &Scenario,
    network: &DescribedSegments,
) -> fmt::Result {
    let prefixes: Vec<_> = network
        .segments
        .iter()
        .flat_map(|segment| segment.prefixes().map(move |prefix| (segment, prefix)))
        .collect();
    if prefixes.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nPrefixes: {}", prefixes.len())?;
    for (segment, prefix) in prefixes.iter().take(MAX_LISTED) {
        let host = |node: usize, interface| {
            let mut all = network.addresses.in_prefixes(node, interface);
            let own = all.find(|(_, of)| of == prefix).map(|(address, _)| address.to_string());
            format!("{} {}", scenario.nodes[node].name, own.unwrap_or_default())
        };
        let hosts: Vec<String> = segment.ends.iter().map(|end| host(end.node, end.interface)).collect();
        let hosts: Vec<&str> = hosts.iter().map(String::as_str).collect();
        writeln!(out, "  {prefix} on {}: {}", segment.name(&scenario.links), shortened(&hosts))?;
    }
    match prefixes.len().saturating_sub(MAX_LISTED) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}

/// The routes of the file.
pub(super) fn write_routes(out: &mut String, scenario: &Scenario) -> fmt::Result {
    if scenario.routes.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nRoutes: {}, before shortest paths", scenario.routes.len())?;
    for route in scenario.routes.iter().take(MAX_LISTED) {
        let [node, via] = [route.node, route.via].map(|node| &scenario.nodes[node].name);
        match route.to {
            Destinations::Default => writeln!(out, "  {node}: default via {via}")?,
            Destinations::Node(to) => writeln!(out, "  {node}: {} via {via}", scenario.nodes[to].name)?,
            Destinations::Prefix(prefix) => writeln!(out, "  {node}: {prefix} via {via}")?,
        }
    }
    let more = scenario.routes.len().saturating_sub(MAX_LISTED);
    if more > 0 { writeln!(out, "  and {more} more") } else { Ok(()) }
}
