//! How hosts find their neighbours, how routers hear of memberships, and how routes are made.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::model::{Destinations, Neighbours, NodeId, Reporting, Routing, StaticRoute};
use super::segments::Joined;
use super::topology::Topology;
use hopcast_config::Diagnostic;
use hopcast_config::decode::{self, Fields, choice, list};
use hopcast_config::yaml::Node;
use hopcast_stack::network::{NetworkPlan, Prefix};

/// Maximum number of static routes. Chosen: a node looks at all of its own for a destination that it has not sent to
/// before.
const MAX_ROUTES: usize = 10_000;

/// How Ethernet addresses of neighbours are known.
pub(crate) fn neighbours(node: &Node, key: &str) -> Result<Neighbours, Diagnostic> {
    let (found, ..) = choice(node, key, &["plan", "resolve"])?;
    Ok(if found == "resolve" { Neighbours::Resolve } else { Neighbours::Plan })
}

/// How routers know of hosts' memberships.
pub(crate) fn membership(node: &Node, key: &str) -> Result<Reporting, Diagnostic> {
    let (found, ..) = choice(node, key, &["plan", "report"])?;
    Ok(if found == "report" { Reporting::Report } else { Reporting::Plan })
}

/// How routes follow the network.
pub(crate) fn routing(node: &Node, _: &str) -> Result<Routing, Diagnostic> {
    let fields = Fields::of(node, "`routing`", &["convergence"])?;
    let convergence = fields.read("convergence", decode::duration)?.unwrap_or_default();
    Ok(Routing { convergence })
}

/// The routes of the file.
pub(crate) fn routes(
    node: Option<&Node>,
    topology: &Topology,
    joined: &Joined<'_>,
) -> Result<Vec<StaticRoute>, Diagnostic> {
    let Some(node) = node else { return Ok(Vec::new()) };
    let mut known = NetworkPlan::of(joined.network).routes(joined.network);
    let (mut routes, mut seen) = (Vec::new(), BTreeSet::new());
    for item in list(node, "routes")? {
        let fields = Fields::of(item, "a route", &["node", "to", "via"])?;
        let nodes = topology.node_list(fields.need("node", "node: a")?, "node")?;
        let destination = fields.need("to", "to: default")?;
        let to = destinations(destination, topology)?;
        check_host(destination, to, joined)?;
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
                let around = neighbours_of(node, joined);
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

/// A route to one address needs one that a host may have.
fn check_host(node: &Node, to: Destinations, joined: &Joined<'_>) -> Result<(), Diagnostic> {
    let Destinations::Prefix(address) = to else { return Ok(()) };
    match joined.addresses.of_no_host(address.first()).filter(|_| address.host_bits() == 0) {
        Some((prefix, what)) => {
            let address = address.first();
            Err(node.error(format!("`to`: {address} is the {what} address of {prefix}, and no host's")))
        }
        None => Ok(()),
    }
}

/// The names of the nodes on the segments of a node, the first few.
fn neighbours_of(node: NodeId, joined: &Joined<'_>) -> Vec<String> {
    let around = joined.segments.iter().filter(|segment| segment.ends.iter().any(|end| end.node == node));
    let others: BTreeSet<NodeId> =
        around.flat_map(|segment| &segment.ends).map(|end| end.node).filter(|&end| end != node).collect();
    others.into_iter().take(8).map(|other| joined.network.nodes[other].name.clone()).collect()
}

/// A node, `default`, an address or a prefix.
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
        // Not an address at all: most likely a misspelt node.
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
