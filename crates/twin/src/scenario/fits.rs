//! Whether flows fit their network: hop limit, MTUs, and a rate to be paced at.
//!
//! A flow that could never arrive is an error before anything runs: hosts do not fragment, and IP counts hops.

use hopcast_link::Attachment;

use super::model::{App, ETHERNET, Flow, Link, NodeId, Program};
use super::paths::Paths;
use super::topology::Topology;
use hopcast_config::Diagnostic;
use hopcast_config::yaml::Node;

/// The largest hop limit that a packet can have (RFC 791, RFC 8200), and what hosts send with.
const HOP_LIMIT: usize = 255;
/// RFC 8200, section 5: what every link that carries IPv6 takes.
pub(crate) const LEAST_IPV6_MTU: u32 = 1280;
/// Where a flow's parts are written.
pub(crate) struct Written<'a> {
    pub(crate) to: &'a Node,
    pub(crate) app: &'a Node,
    pub(crate) ip: Option<&'a Node>,
}

/// The first flow that does not fit. Each has a way from its sender to its receiver.
pub(crate) fn check(flows: &[Flow], written: &[Written<'_>], topology: &Topology) -> Result<(), Diagnostic> {
    let mut paths = Paths::new(topology.nodes.len(), &topology.links);
    for (flow, written) in flows.iter().zip(written) {
        check_first_links(flow, written, topology, &paths)?;
    }
    let narrowest =
        topology.links.iter().flat_map(|link| (0..link.ends.len()).map(|end| link.direction(end).mtu));
    let narrowest = narrowest.min().unwrap_or(u32::MAX);
    let (mut ways, mut plain) = (Vec::new(), Vec::new());
    for (number, flow) in flows.iter().enumerate() {
        let there = flow.to.iter().map(|&to| Way { to, flow: number, back: false, from: flow.from });
        if least_mtu(flow) <= u64::from(narrowest) {
            plain.extend(there);
            continue;
        }
        ways.extend(there);
        if matches!(flow.app, App::Messages { .. } | App::Program { program: Program::Ping(_), .. }) {
            // Their echoes are as large as they are.
            ways.extend(flow.to.iter().map(|&from| Way { to: flow.from, flow: number, back: true, from }));
        }
    }
    ways.extend(too_long(plain, &mut paths));
    ways.sort_unstable();
    let mut first: Option<(Way, Diagnostic)> = None;
    for ways in ways.chunk_by(|one, other| one.to == other.to) {
        let sources: Vec<_> = ways.iter().map(|way| way.from).collect();
        paths.towards(ways[0].to, &sources);
        for way in ways {
            let (flow, written) = (&flows[way.flow], &written[way.flow]);
            let earlier =
                first.as_ref().is_none_or(|(found, _)| (way.flow, way.back) < (found.flow, found.back));
            if earlier && let Err(error) = check_way(flow, written, way, topology, &paths) {
                first = Some((*way, error));
            }
        }
    }
    first.map_or(Ok(()), |(_, error)| Err(error))
}

/// The first way that has more hops than are allowed; `ways` are in the order of the flows.
///
/// Not each destination needs a search of its own: the search towards one bounds the distance of any two nodes.
fn too_long(mut ways: Vec<Way>, paths: &mut Paths<'_>) -> Option<Way> {
    while let Some(&first) = ways.first() {
        let ends: Vec<_> = ways.iter().flat_map(|way| [way.from, way.to]).collect();
        paths.towards(first.to, &ends);
        let near = |node: NodeId| paths.hops(node).unwrap_or(HOP_LIMIT + 1);
        if near(first.from) > HOP_LIMIT {
            return Some(first);
        }
        ways.retain(|way| near(way.from) + near(way.to) > HOP_LIMIT);
    }
    None
}

/// The least MTU of every link on its way that a flow needs.
fn least_mtu(flow: &Flow) -> u64 {
    let datagram = datagram(flow).map_or(0, |size| size + overhead(flow) - ETHERNET);
    let franc = flow.frame_payload().unwrap_or(0);
    datagram.max(if flow.ipv6 { u64::from(LEAST_IPV6_MTU) } else { franc })
}

/// One direction of a flow; those to one destination are looked at together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Way {
    to: NodeId,
    flow: usize,
    back: bool,
    from: NodeId,
}

/// The first links of a flow: it may take any link of its sender, so all are checked.
fn check_first_links(
    flow: &Flow,
    written: &Written<'_>,
    topology: &Topology,
    paths: &Paths<'_>,
) -> Result<(), Diagnostic> {
    let leaving = || paths.links_of(flow.from).iter().map(|(link, from)| (&topology.links[*link], *from));
    if let Some(app) = saturating(flow)
        && leaving().any(|(link, from)| link.direction(from).rate.is_none())
    {
        return Err(written.app.error(format!(
            "`app`: {app} over `{}` saturates its first link, so the links of `{}` need a rate, for example `rate: 300 Mbit/s`",
            flow.protocol, topology.nodes[flow.from].name
        )));
    }
    leaving().try_for_each(|(link, from)| check_ipv6(written, link, from))
}

/// The application of a flow that is paced at its first link's rate, in a person's words.
pub(crate) fn saturating(flow: &Flow) -> Option<&'static str> {
    if flow.on_stream() {
        return None;
    }
    match flow.app {
        App::Bulk { rate: None, .. } => Some("`bulk`"),
        App::File { .. } => Some("`file`"),
        App::Cbr { rate: None, .. } => Some("`cbr` with `rate: saturate`"),
        App::Cbr { .. }
        | App::Bulk { .. }
        | App::Messages { .. }
        | App::Video { .. }
        | App::ShortFlows { .. }
        | App::Program { .. } => None,
    }
}

fn check_way(
    flow: &Flow,
    written: &Written<'_>,
    way: &Way,
    topology: &Topology,
    paths: &Paths<'_>,
) -> Result<(), Diagnostic> {
    let hops = paths.hops(way.from).unwrap_or(0);
    if hops > HOP_LIMIT {
        let [from, to] = [way.from, way.to].map(|node| &topology.nodes[node].name);
        return Err(written
            .to
            .error(format!("`to`: `{to}` is {hops} hops from `{from}`, and IP's hop limit is {HOP_LIMIT}")));
    }
    paths.way(way.from).try_for_each(|(link, from)| check_ipv6(written, link, from))?;
    match paths.way(way.from).min_by_key(|(link, from)| link.direction(*from).mtu) {
        Some((link, from)) => check_size(flow, written, link, from, way.back),
        None => Ok(()),
    }
}

fn check_ipv6(written: &Written<'_>, link: &Link, from: Attachment) -> Result<(), Diagnostic> {
    let mtu = link.direction(from).mtu;
    match written.ip.filter(|_| mtu < LEAST_IPV6_MTU) {
        None => Ok(()),
        Some(ip) => Err(ip.error(format!(
            "`ip`: IPv6 needs an MTU of at least {LEAST_IPV6_MTU} (RFC 8200), and the link `{}` has {mtu}",
            link.name
        ))),
    }
}

/// A datagram that does not cross the narrowest link on its way in one packet never arrives.
fn check_size(
    flow: &Flow,
    written: &Written<'_>,
    link: &Link,
    from: Attachment,
    back: bool,
) -> Result<(), Diagnostic> {
    let mtu = link.direction(from).mtu;
    if let Some(filled) = flow.frame_payload().filter(|&filled| u64::from(mtu) < filled) {
        let name = &link.name;
        return Err(written.app.error(format!(
            "`{}` fills frames of {filled} B, and the link `{name}` has an MTU of {mtu}",
            flow.protocol
        )));
    }
    let largest = (u64::from(mtu) + ETHERNET).saturating_sub(overhead(flow));
    let Some(size) = datagram(flow).filter(|size| *size > largest) else { return Ok(()) };
    let (name, protocol) = (&link.name, &flow.protocol);
    let back = if back { " on the way back" } else { "" };
    Err(written.app.error(format!(
        "`size`: expected at most {largest} B, what the MTU of {mtu} of the link `{name}` leaves over `{protocol}`{back} (hosts do not fragment), found {size} B"
    )))
}

/// The headers before the payload, in bytes a full frame.
fn overhead(flow: &Flow) -> u64 {
    let own = match &flow.app {
        App::Program { program, .. } => program.headers(flow.ipv6),
        _ => 0,
    };
    flow.overhead(0) + own
}

/// The payload of a flow's datagrams, if the file says it: the others fill what the way takes.
fn datagram(flow: &Flow) -> Option<u64> {
    match &flow.app {
        App::Program { program, .. } => program.datagram(flow.socket()),
        App::Cbr { size, .. } | App::Messages { size, .. } if !flow.on_stream() => Some(size.get()),
        App::Cbr { .. }
        | App::Messages { .. }
        | App::Bulk { .. }
        | App::File { .. }
        | App::Video { .. }
        | App::ShortFlows { .. } => None,
    }
}
