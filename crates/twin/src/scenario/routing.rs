//! The keys `neighbours`, `membership`, `routing` and `routes`.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::model::{Destinations, Neighbours, NodeId, Reporting, Routing, StaticRoute};
use super::segments::SegmentMap;
use super::topology::Topology;
use hopcast_config::Diagnostic;
use hopcast_config::decode::{self, Fields, choice, list};
use hopcast_config::yaml::Node;
use hopcast_stack::network::{NetworkPlan, Prefix};

/// Maximum number of static routes. Chosen: a node searches all of its routes for each new destination; more make that
/// slow.
const MAX_ROUTES: usize = 10_000;

/// Reads the source of neighbours' Ethernet addresses.
pub(crate) fn neighbours(node: &Node, key: &str) -> Result<Neighbours, Diagnostic> {
    let (found, ..) = choice(node, key, &["plan", "resolve"])?;
    Ok(if found == "resolve" { Neighbours::Resolve } else { Neighbours::Plan })
}

/// Reads the source of routers' knowledge of hosts' memberships.
pub(crate) fn membership(node: &Node, key: &str) -> Result<Reporting, Diagnostic> {
    let (found, ..) = choice(node, key, &["plan", "report"])?;
    Ok(if found == "report" { Reporting::Report } else { Reporting::Plan })
}

/// Reads the way in which routes follow the network.
pub(crate) fn routing(node: &Node, _: &str) -> Result<Routing, Diagnostic> {
    let fields = Fields::of(node, "`routing`", &["convergence"])?;
    let convergence = fields.read("convergence", decode::duration)?.unwrap_or_default();
    Ok(Routing { convergence })
}

/// Reads the routes of the file.
pub(crate) fn routes(
    node: Option<&Node>,
    topology: &Topology,
    segment_map: &SegmentMap<'_>,
) -> Result<Vec<StaticRoute>, Diagnostic> {
    let Some(node) = node else { return Ok(Vec::new()) };
    let mut known = NetworkPlan::of(segment_map.network).routes(segment_map.network);
    let (mut routes, mut seen) = (Vec::new(), BTreeSet::new());
    for item in list(node, "routes")? {
        let fields = Fields::of(item, "a route", &["node", "to", "via"])?;
        let nodes = topology.node_list(fields.need("node", "node: a")?, "node")?;
        let destination = fields.need("to", "to: default")?;
        let to = destinations(destination, topology)?;
        check_host(destination, to, segment_map)?;
        let next = fields.need("via", "via: b")?;
        let via = topology.node(next, "via")?;
        for node in nodes {
            let name = &topology.nodes[node].name;
            if routes.len() >= MAX_ROUTES {
                return Err(
                    item.error(format!("a scenario has at most {MAX_ROUTES} routes, this is one more"))
                );
            }
            if !seen.insert((node, to)) {
                let found = destination.found();
                return Err(destination.error(format!("`to`: `{name}` has a route to {found} already")));
            }
            if to == Destinations::Node(node) {
                return Err(destination.error(format!("`to`: a route of `{name}` leads to other nodes")));
            }
            let route = StaticRoute { node, to, via };
            if !known.add_static(&route) {
                let found = next.found();
                let around = neighbours_of(node, segment_map);
                let around = decode::listed(&around.iter().map(String::as_str).collect::<Vec<_>>());
                return Err(
                    next.error(format!("`via`: {found} is no neighbour of `{name}`, which has {around}"))
                );
            }
            routes.push(route);
        }
    }
    Ok(routes)
}

/// Checks that the single address of a route can be a host's.
fn check_host(node: &Node, to: Destinations, segment_map: &SegmentMap<'_>) -> Result<(), Diagnostic> {
    let Destinations::Prefix(address) = to else { return Ok(()) };
    match segment_map.addresses.of_no_host(address.first()).filter(|_| address.host_bits() == 0) {
        Some((prefix, what)) => {
            let address = address.first();
            Err(node.error(format!("`to`: {address} is the {what} address of {prefix}, and no host's")))
        }
        None => Ok(()),
    }
}

/// The names of the nodes on the segments of a node, the first few.
fn neighbours_of(node: NodeId, segment_map: &SegmentMap<'_>) -> Vec<String> {
    let around =
        segment_map.segments.iter().filter(|segment| segment.ends.iter().any(|end| end.node == node));
    let others: BTreeSet<NodeId> =
        around.flat_map(|segment| &segment.ends).map(|end| end.node).filter(|&end| end != node).collect();
    others.into_iter().take(8).map(|other| segment_map.network.nodes[other].name.clone()).collect()
}

/// Reads the destinations of a route: a node, `default`, an address or a prefix.
fn destinations(node: &Node, topology: &Topology) -> Result<Destinations, Diagnostic> {
    let text = decode::text(node, "to")?;
    if topology.has_node(text) {
        return topology.node(node, "to").map(Destinations::Node);
    }
    if text == "default" {
        return Ok(Destinations::Default);
    }
    let (address, length) =
        text.split_once('/').map_or((text, None), |(address, length)| (address, Some(length)));
    let Ok(address) = address.parse::<IpAddr>() else {
        // It does not look like an address: most likely a misspelt node.
        return topology.node(node, "to").map(Destinations::Node);
    };
    let whole = if address.is_ipv4() { 32 } else { 128 };
    let length = length.map_or(Ok(whole), str::parse::<u8>).ok();
    length.and_then(|length| Prefix::new(address, length)).map(Destinations::Prefix).ok_or_else(|| {
        let expected =
            format!("a prefix of at most {whole} bits, and zeros behind it, such as `10.0.0.0/24`");
        node.error(format!("`to`: expected {expected}, found `{text}`"))
    })
}
