//! Checks that flows fit their network: the hop limit, MTUs, and a rate at which to pace.
//!
//! A flow that could never arrive is an error before anything runs: hosts do not fragment, and IP limits hops.

use hopcast_stack::network::{Crossing, ShortestPaths, Target};

use super::model::{App, ETHERNET_HEADER, Flow, Group, NodeId};
use super::segments::SegmentMap;
use hopcast_config::Diagnostic;
use hopcast_config::yaml::Node;

/// Maximum hop limit of a packet (RFC 791, RFC 8200), with which hosts send.
const HOP_LIMIT: usize = 255;
/// Minimum MTU of a link that carries IPv6 (RFC 8200 section 5).
pub(crate) const MIN_IPV6_MTU: u32 = 1280;
/// Place in the file at which a flow's parts are written.
pub(crate) struct Written<'a> {
    pub(crate) to: &'a Node,
    pub(crate) app: &'a Node,
    pub(crate) ip: Option<&'a Node>,
    pub(crate) paths: Option<&'a Node>,
}

/// Reports the first flow that does not fit. Each has a route from its sender to its receiver.
pub(crate) fn check(
    flows: &[Flow],
    groups: &[Group],
    written: &[Written<'_>],
    segment_map: &SegmentMap<'_>,
) -> Result<(), Diagnostic> {
    let mut paths = segment_map.paths();
    for (flow, written) in flows.iter().zip(written) {
        check_first_links(flow, written, segment_map, &paths)?;
    }
    let delivery =
        |flow: &Flow| flow.group.map_or(0, |group| groups[group].delivery.settings().min_overhead());
    let checks: Vec<_> = flows
        .iter()
        .zip(written)
        .map(|(flow, written)| FlowCheck { flow, written, delivery: delivery(flow) })
        .collect();
    let links = segment_map.network.links;
    let of_ends = segment_map
        .segments
        .iter()
        .filter_map(|segment| segment.ends.iter().map(|end| segment.mtu(links, end.hop())).min());
    let narrowest = of_ends.min().unwrap_or(u32::MAX);
    let (mut routes, mut plain) = (Vec::new(), Vec::new());
    for (number, check) in checks.iter().enumerate() {
        let flow = check.flow;
        if let Some(paths) = check.written.paths.filter(|_| flow.paths > 1) {
            check.disjoint(paths, segment_map)?;
        }
        let route = |direction, from, to| {
            let target = flow.target(&segment_map.addresses, to);
            Route { target, to, flow: number, direction, from }
        };
        let has_tree = flow.has_tree(groups);
        let there = flow.to.iter().map(|&to| match has_tree {
            true => Route { target: Target::Node(flow.from), ..route(Direction::Tree, to, flow.from) },
            false => route(Direction::There, flow.from, to),
        });
        if check.min_mtu() <= u64::from(narrowest) {
            // The shortest path to a segment need not lead on to the nearest of its hosts.
            let (near, others): (Vec<_>, Vec<_>) =
                there.partition(|route| matches!(route.target, Target::Node(_)));
            plain.extend(near);
            routes.extend(others);
            continue;
        }
        routes.extend(there);
        if flow.is_echoed() || flow.is_ping() {
            // Echoes have the size of their messages.
            routes.extend(flow.to.iter().map(|&from| route(Direction::Back, from, flow.from)));
        }
    }
    routes.extend(too_long(plain, &mut paths));
    routes.sort_unstable();
    let mut first: Option<(Route, Diagnostic)> = None;
    for routes in routes.chunk_by(|one, other| one.target == other.target) {
        let sources: Vec<_> = routes.iter().map(|route| route.from).collect();
        paths.search_from(routes[0].target, &sources);
        for route in routes {
            let place = |route: &Route| (route.flow, route.direction);
            let earlier = first.as_ref().is_none_or(|(found, _)| place(route) < place(found));
            if earlier && let Err(error) = checks[route.flow].route(route, segment_map, &paths) {
                first = Some((*route, error));
            }
        }
    }
    first.map_or(Ok(()), |(_, error)| Err(error))
}

/// The first route with more hops than the hop limit; `routes` are in the order of the flows.
///
/// Not every destination needs a search: the search towards one of them bounds the distance of any two nodes.
fn too_long(mut routes: Vec<Route>, paths: &mut ShortestPaths) -> Option<Route> {
    while let Some(&first) = routes.first() {
        let ends: Vec<_> = routes.iter().flat_map(|route| [route.from, route.to]).collect();
        paths.search_from(first.target, &ends);
        let near = |node: NodeId| paths.hops(node).unwrap_or(HOP_LIMIT + 1);
        if near(first.from) > HOP_LIMIT {
            return Some(first);
        }
        routes.retain(|route| near(route.from) + near(route.to) > HOP_LIMIT);
    }
    None
}

/// A flow whose packets are to fit its routes.
struct FlowCheck<'a> {
    flow: &'a Flow,
    written: &'a Written<'a>,
    /// Bytes that its group's delivery adds to the longest datagrams.
    delivery: u64,
}

/// One direction of a flow; those to one target are checked together.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Route {
    /// The target of its routing.
    target: Target,
    to: NodeId,
    flow: usize,
    direction: Direction,
    from: NodeId,
}

/// The direction in which a flow's packets take a route.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Direction {
    /// To a receiver.
    There,
    /// Back to the sender.
    Back,
    /// From its end to its beginning, which is a member of a group.
    Tree,
}

/// Checks the first links of a flow: it may leave by any link of its sender.
fn check_first_links(
    flow: &Flow,
    written: &Written<'_>,
    segment_map: &SegmentMap<'_>,
    paths: &ShortestPaths,
) -> Result<(), Diagnostic> {
    let links = segment_map.network.links;
    let has_no_rate =
        |Crossing { hop, .. }: Crossing| links[hop.link].direction(hop.attachment).rate.is_none();
    if let Some(app) = saturating(flow)
        && paths.attachments(flow.from).any(has_no_rate)
    {
        let name = &segment_map.network.nodes[flow.from].name;
        let is_radio = paths.attachments(flow.from).any(|Crossing { hop, .. }| links[hop.link].has_radios());
        let hint = match is_radio {
            true => format!("and the rates of the radios of `{name}` change: give the flow a rate"),
            false => format!("so the links of `{name}` need a rate, for example `rate: 300 Mbit/s`"),
        };
        return Err(written
            .app
            .error(format!("`app`: {app} over `{}` saturates its first link, {hint}", flow.protocol)));
    }
    paths
        .attachments(flow.from)
        .try_for_each(|crossing| check_ipv6(written, &Narrow::of(crossing, segment_map)))
}

/// The name in messages of an application that is paced at its first link's rate; `None` of any other.
pub(crate) fn saturating(flow: &Flow) -> Option<&'static str> {
    // What several read is paced too.
    if flow.on_stream() && !flow.is_to_several() || flow.on_messages() {
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

impl FlowCheck<'_> {
    /// All headers before the payload, including Ethernet's, in bytes for a full frame.
    fn headers(&self) -> u64 {
        self.flow.full_overhead() + self.delivery
    }

    /// Minimum MTU that it needs of every link of its route.
    fn min_mtu(&self) -> u64 {
        let datagram = datagram(self.flow).map_or(0, |size| size + self.headers() - ETHERNET_HEADER);
        let franc = self.flow.frame_payload().unwrap_or(0);
        datagram.max(if self.flow.ipv6 { u64::from(MIN_IPV6_MTU) } else { franc })
    }

    fn route(
        &self,
        route: &Route,
        segment_map: &SegmentMap<'_>,
        paths: &ShortestPaths,
    ) -> Result<(), Diagnostic> {
        let path: Vec<_> = match route.direction {
            Direction::There | Direction::Back => paths.path(route.from, route.to).collect(),
            Direction::Tree => paths.path_back(route.from, route.to),
        };
        self.path(&path, route, segment_map)
    }

    /// Checks its disjoint routes, each of which takes a part of its packets.
    fn disjoint(&self, paths: &Node, segment_map: &SegmentMap<'_>) -> Result<(), Diagnostic> {
        let flow = self.flow;
        let Some(&to) = flow.to.first() else { return Ok(()) };
        let routes = segment_map.paths().disjoint(flow.from, to, flow.paths);
        if routes.len() < flow.paths {
            let (found, wanted) = (routes.len(), flow.paths);
            let [from, to] = [flow.from, to].map(|node| &segment_map.network.nodes[node].name);
            let lead = if found == 1 { "1 route leads".to_owned() } else { format!("{found} routes lead") };
            return Err(paths.error(format!(
                "`paths`: expected no more routes than lead from `{from}` to `{to}` without a link or a node between in common: \
                 {lead}, found {wanted}"
            )));
        }
        let target = Target::Node(to);
        let route = Route { target, to, flow: 0, direction: Direction::There, from: flow.from };
        routes.iter().try_for_each(|path| self.path(path, &route, segment_map))
    }

    /// Checks that packets of the longest size fit every hop of a path, and its length the hop limit.
    fn path(&self, path: &[Crossing], route: &Route, segment_map: &SegmentMap<'_>) -> Result<(), Diagnostic> {
        let hops = path.len();
        if hops > HOP_LIMIT {
            let ends = match route.direction {
                Direction::There | Direction::Back => [route.from, route.to],
                Direction::Tree => [route.to, route.from],
            };
            let [from, to] = ends.map(|node| &segment_map.network.nodes[node].name);
            return Err(self.written.to.error(format!(
                "`to`: `{to}` is {hops} hops from `{from}`, and IP's hop limit is {HOP_LIMIT}"
            )));
        }
        let path = || path.iter().map(|&crossing| Narrow::of(crossing, segment_map));
        path().try_for_each(|narrow| check_ipv6(self.written, &narrow))?;
        path()
            .min_by_key(|narrow| narrow.mtu)
            .map_or(Ok(()), |narrow| self.size(&narrow, route.direction == Direction::Back))
    }

    /// Checks that its datagrams fit the narrowest link of its route: longer ones never arrive.
    fn size(&self, narrow: &Narrow<'_>, back: bool) -> Result<(), Diagnostic> {
        let (flow, mtu) = (self.flow, narrow.mtu);
        if let Some(filled) = flow.frame_payload().filter(|&filled| u64::from(mtu) < filled) {
            return Err(self.written.app.error(format!(
                "`{}` fills frames of {filled} B, and {} has an MTU of {mtu}",
                flow.protocol,
                narrow.name()
            )));
        }
        let largest = (u64::from(mtu) + ETHERNET_HEADER).saturating_sub(self.headers());
        let Some(size) = datagram(flow).filter(|size| *size > largest) else { return Ok(()) };
        let (name, protocol) = (narrow.name(), &flow.protocol);
        let delivery = match self.delivery {
            0 => String::new(),
            bytes => format!(" beside {bytes} B of the group's delivery"),
        };
        let back = if back { " on the way back" } else { "" };
        Err(self.written.app.error(format!(
            "`size`: expected at most {largest} B, what the MTU of {mtu} of {name} leaves over `{protocol}`{delivery}{back} (hosts do not fragment), found {size} B"
        )))
    }
}

/// A hop of a route, and the maximum length of a packet there.
struct Narrow<'a> {
    crossing: Crossing,
    mtu: u32,
    segment_map: &'a SegmentMap<'a>,
}

impl<'a> Narrow<'a> {
    fn of(crossing: Crossing, segment_map: &'a SegmentMap<'a>) -> Self {
        let segment = segment_map.segments.get(crossing.segment);
        Self { crossing, mtu: segment.mtu(segment_map.network.links, crossing.hop), segment_map }
    }

    /// Its name in messages: ``the link `a-b` ``.
    fn name(&self) -> String {
        let links = self.segment_map.network.links;
        let (segment, link) = (self.segment_map.segments.get(self.crossing.segment), self.crossing.hop.link);
        let (vlan, kind) = (segment.vlan(), if segment.is_meshed() { "mesh over" } else { "link" });
        let of_link = format!("the {kind} `{}`", links[link].name);
        vlan.map_or_else(|| of_link.clone(), |vlan| format!("{vlan} of {of_link}"))
    }
}

fn check_ipv6(written: &Written<'_>, narrow: &Narrow<'_>) -> Result<(), Diagnostic> {
    match written.ip.filter(|_| narrow.mtu < MIN_IPV6_MTU) {
        None => Ok(()),
        Some(ip) => Err(ip.error(format!(
            "`ip`: IPv6 needs an MTU of at least {MIN_IPV6_MTU} (RFC 8200), and {} has {}",
            narrow.name(),
            narrow.mtu
        ))),
    }
}

/// The payload of a flow's datagrams, if the file has it; other flows fill the longest packet of the route.
fn datagram(flow: &Flow) -> Option<u64> {
    match &flow.app {
        App::Program { program, .. } => program.datagram(flow.socket()),
        App::Cbr { size, .. } | App::Messages { size, .. } if !flow.on_stream() && !flow.on_messages() => {
            Some(size.get())
        }
        App::Cbr { .. }
        | App::Messages { .. }
        | App::Bulk { .. }
        | App::File { .. }
        | App::Video { .. }
        | App::ShortFlows { .. } => None,
    }
}
