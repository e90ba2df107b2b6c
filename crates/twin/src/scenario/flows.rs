//! Flows: their senders, receivers, stacks and applications.

use std::collections::BTreeMap;

use super::apps::app;
use super::files::Contents;
use super::fits::{self, Written};
use super::groups::{self, Groups};
use super::model::{App, Flow, FlowId, GroupId, NodeId, Program};
use super::programs;
use super::segments::SegmentMap;
use super::topology::Topology;
use hopcast_config::Diagnostic;
use hopcast_config::decode::{self, Fields, did_you_mean, list, one_or_list, whole};
use hopcast_config::yaml::{Kind, Node};
use hopcast_stack::group::{Exchange, Group, GroupFlow, GroupReach};
use hopcast_stack::transport::{Count, PortKind, Row, can_relay, fit};
use hopcast_stack::{Stack, TRANSPORTS, Variants, deliveries};

/// Maximum number of flows: each has two ports of its own, from 10,000 on.
const MAX_FLOWS: usize = 25_000;
/// Maximum number of `short-flows` that a node sends: each has 1,024 ports of its own, below those of flows.
const MAX_SHORT_FLOWS: usize = 8;
/// The keys of a flow.
const KEYS: [&str; 8] = ["name", "from", "to", "delivery", "over", "app", "ip", "paths"];
/// Maximum number of disjoint routes. Chosen: no network of this repository has more.
const MAX_PATHS: u64 = 8;

/// All flows, by name.
pub(crate) struct Flows {
    pub(crate) flows: Vec<Flow>,
    /// The reason why the first flow that needs a live run does.
    pub(crate) live: Option<Diagnostic>,
    names: BTreeMap<String, FlowId>,
}

/// What a scenario has beside its flows: nodes, links, roles and variants.
pub(crate) type Scene<'s> =
    (&'s Topology, &'s SegmentMap<'s>, &'s BTreeMap<String, Vec<NodeId>>, &'s Variants);

impl Flows {
    pub(crate) fn of(
        node: &Node,
        scene: Scene<'_>,
        groups: &mut Groups,
        contents: &mut Contents,
    ) -> Result<Self, Diagnostic> {
        let (topology, segment_map, ..) = scene;
        let mut flows = Self { flows: Vec::new(), live: None, names: BTreeMap::new() };
        let mut written = Vec::new();
        for (number, item) in list(node, "flows")?.iter().enumerate() {
            let fields = Fields::of(item, "a flow", &KEYS)?;
            let (name, span) = match fields.get("name") {
                Some(node) => (decode::name(node, "name")?.to_owned(), &node.span),
                None => (format!("flow{number}"), &item.span),
            };
            let from_node = fields.need("from", "from: n0")?;
            if named_group(from_node, groups, topology).is_some() {
                let found = from_node.found();
                return Err(
                    from_node.error(format!("`from`: expected the node that sends, and {found} is a group"))
                );
            }
            let (senders, together) = senders(from_node, to_group(fields, groups, topology), topology)?;
            for from in senders {
                let own_name =
                    if together { format!("{name}-{}", topology.nodes[from].name) } else { name.clone() };
                if flows.flows.len() >= MAX_FLOWS {
                    return Err(
                        item.error(format!("a scenario has at most {MAX_FLOWS} flows, this is one more"))
                    );
                }
                if flows.names.insert(own_name.clone(), flows.flows.len()).is_some() {
                    return Err(span.error(format!("the flow name `{own_name}` is taken already")));
                }
                let names = (own_name, together.then(|| name.clone()));
                written.push(flows.add((item, fields), names, from, scene, groups, contents)?);
            }
        }
        if flows.flows.is_empty() {
            return Err(node.error("`flows`: expected at least one flow, found none"));
        }
        fits::check(&flows.flows, &groups.groups, &written, segment_map)?;
        Ok(flows)
    }

    /// Adds the flow of one sender: its name, and that which it has together with those of others.
    fn add<'n>(
        &mut self,
        (item, fields): (&'n Node, Fields<'n>),
        (name, senders): (String, Option<String>),
        from: NodeId,
        (topology, segment_map, roles, variants): Scene<'_>,
        groups: &mut Groups,
        contents: &mut Contents,
    ) -> Result<Written<'n>, Diagnostic> {
        let to_node = fields.need("to", "to: n6")?;
        let group = named_group(to_node, groups, topology);
        let to = match group {
            Some(group) => groups::receivers(&groups.groups[group], from),
            None => receivers(to_node, groups, topology)?,
        };
        check_receivers(to_node, from, &to, segment_map)?;
        let over = fields.need("over", "over: tcp-cubic")?;
        let mut stack = variants.stack(over)?;
        let app_node = fields.need("app", "app: bulk")?;
        let live = [programs::live_app(app_node), programs::live_stack(over, &stack.layers)];
        programs::carries_something(&stack, over, app_node)?;
        let app = app(app_node, &stack, contents)?;
        let deadline = match app {
            App::Video { deadline, .. } => Some(deadline),
            _ => None,
        };
        fit(&mut stack.layers, deadline);
        self.live = self.live.take().or_else(|| live.into_iter().flatten().next());
        let delivery = fields.read("delivery", |node, _| variants.delivery(node))?;
        let group = match (group, &delivery, to.len()) {
            (Some(_), Some(_), _) => {
                let node = fields.need("delivery", "")?;
                return Err(node.error("`delivery`: the group of `to` has one of its own"));
            }
            (Some(group), None, _) => Some(group),
            // A tree of its own needs no delivery, so that one may stand beside transports that do.
            (None, _, _) if relaying(&stack, |row| row.receivers) == Some(0) => None,
            (None, None, 1) => None,
            (None, _, _) => {
                let delivery = delivery.unwrap_or_else(deliveries::default_delivery);
                Some(groups.add(String::new(), &to, delivery, item)?)
            }
        };
        if group.is_some() {
            serves_members(to_node, &stack)?;
        }
        if group.is_some() || to.len() > 1 {
            needs_no_answer(to_node, &app, group.map(|group| &groups.groups[group]), &to)?;
            several_may_read(app_node, &app, &stack)?;
        }
        let ipv6 = fields.read("ip", ip_version)?.unwrap_or(false);
        if let Some((number, group)) = group.map(|group| (group, &groups.groups[group])) {
            let is_second = self.flows.iter().any(|flow| flow.group == Some(number) && flow.from == from);
            if is_second && group.delivery.settings().is_of_one_flow() {
                return Err(to_node.error(format!(
                    "`to`: members of `{}` join by a `directory`, and `{}` has a flow to it already",
                    group.name, topology.nodes[from].name
                )));
            }
            let named = roles.get("peer").map_or(&[][..], Vec::as_slice);
            is_reached(to_node, (group, from, &to, ipv6), &stack, named, segment_map)?;
        }
        if matches!(app, App::ShortFlows { .. }) {
            self.have_ports_left(from, app_node, topology)?;
        }
        if let App::Program { program: Program::GroupFile(file), .. } = &app {
            let name = file.with.name();
            if group.is_none() {
                return Err(to_node.error(format!(
                    "`to`: `{name}` sends to groups: add `delivery: ip-multicast`, also for one receiver"
                )));
            }
            if let Some(node) = fields.get("ip").filter(|_| ipv6) {
                return Err(node.error(format!("`ip`: `{name}` sends over IPv4 alone")));
            }
        }
        let paths = match fields.get("paths") {
            Some(node) => paths(node, &stack, &to, group)?,
            None => 1,
        };
        let flow = Flow {
            name,
            senders,
            from,
            to,
            group,
            protocol: stack.protocol,
            over: stack.layers,
            app,
            ipv6,
            paths,
        };
        self.flows.push(flow);
        let ip = fields.get("ip").filter(|_| ipv6);
        Ok(Written { to: to_node, app: app_node, ip, paths: fields.get("paths") })
    }

    /// Checks that ports are left for one more flow of `short-flows` from a node.
    fn have_ports_left(&self, from: NodeId, app: &Node, topology: &Topology) -> Result<(), Diagnostic> {
        let uses_ports = |flow: &&Flow| flow.from == from && matches!(flow.app, App::ShortFlows { .. });
        if self.flows.iter().filter(uses_ports).count() < MAX_SHORT_FLOWS {
            return Ok(());
        }
        let name = &topology.nodes[from].name;
        Err(app.error(format!(
            "`app`: a node sends at most {MAX_SHORT_FLOWS} flows of `short-flows`, this is one more from `{name}`"
        )))
    }

    /// One flow for each node whose links are saturated by a flow.
    pub(crate) fn saturating(&self) -> BTreeMap<NodeId, &Flow> {
        let saturating = self.flows.iter().filter(|flow| fits::saturating(flow).is_some());
        saturating.map(|flow| (flow.from, flow)).collect()
    }

    /// The flow that `node` names.
    pub(crate) fn flow(&self, node: &Node, key: &str) -> Result<FlowId, Diagnostic> {
        let found = decode::text(node, key)?;
        self.names.get(found).copied().ok_or_else(|| {
            let hint = did_you_mean(found, self.names.keys().map(String::as_str));
            node.error(format!("`{key}`: there is no flow `{found}`{hint}"))
        })
    }
}

/// The group that `to` names; `None` if it names a node.
fn named_group(node: &Node, groups: &Groups, topology: &Topology) -> Option<GroupId> {
    match &node.kind {
        Kind::Scalar(name) if !topology.has_node(name) => groups.find(name),
        Kind::Scalar(_) | Kind::List(_) | Kind::Map(_) => None,
    }
}

/// The group that a flow goes to, if it goes to one by its name.
fn to_group(fields: Fields<'_>, groups: &Groups, topology: &Topology) -> Option<GroupId> {
    fields.get("to").and_then(|node| named_group(node, groups, topology))
}

/// The nodes that `from` names, and whether they are several, or may be: each sends a flow of its own to the group.
fn senders(
    node: &Node,
    group: Option<GroupId>,
    topology: &Topology,
) -> Result<(Vec<NodeId>, bool), Diagnostic> {
    let several = match &node.kind {
        Kind::Scalar(name) => !topology.has_node(name) && topology.is_list(name),
        Kind::List(_) => true,
        Kind::Map(_) => false,
    };
    if !several {
        return Ok((vec![topology.node(node, "from")?], false));
    }
    if group.is_none() {
        return Err(node.error("`from`: several nodes can send to a group, and `to` names none"));
    }
    Ok((topology.node_list(node, "from")?, true))
}

/// The nodes that `to` names.
fn receivers(node: &Node, groups: &Groups, topology: &Topology) -> Result<Vec<NodeId>, Diagnostic> {
    if let Kind::Scalar(name) = &node.kind
        && !topology.has_node(name)
        && topology.is_list(name)
    {
        return Err(node.error(format!("`to`: `{name}` may be several nodes: write `to: [{name}]`")));
    }
    if let Kind::Scalar(name) = &node.kind
        && !topology.has_node(name)
        && groups.names().next().is_some()
    {
        let hint = did_you_mean(name, groups.names().chain(topology.node_names()));
        return Err(node.error(format!("`to`: there is no node or group `{name}`{hint}")));
    }
    let is_group = |item: &&Node| named_group(item, groups, topology).is_some();
    match &node.kind {
        Kind::List(items) => match items.iter().find(is_group) {
            Some(item) => {
                let found = item.found();
                Err(item.error(format!("`to`: {found} is a group, and a flow goes to one or to some nodes")))
            }
            None => topology.node_list(node, "to"),
        },
        Kind::Scalar(_) | Kind::Map(_) => topology.node(node, "to").map(|to| vec![to]),
    }
}

/// Checks that a flow from a node has receivers, and that segments lead to all of them.
fn check_receivers(
    node: &Node,
    from: NodeId,
    to: &[NodeId],
    segment_map: &SegmentMap<'_>,
) -> Result<(), Diagnostic> {
    let items = one_or_list(node);
    let receivers = to.len();
    for (place, &to) in to.iter().enumerate() {
        // If one word stands for several nodes, the error is at that word.
        let item = items.get(place).filter(|_| items.len() == receivers).unwrap_or(node);
        if from == to {
            return Err(item.error("`to`: a flow needs another node to go to than it comes from"));
        }
        if let Some(why) = segment_map.no_path(from, to) {
            return Err(item.error(format!("`to`: {why}")));
        }
    }
    match (to, items) {
        ([], []) => Err(node.error("`to`: expected a node or a group, found an empty list")),
        ([], _) => Err(node.error(format!("`to`: {} has no members but the sender", node.found()))),
        _ => Ok(()),
    }
}

/// Reads the number of routes: several need a transport that merges what arrives by them, and a single receiver.
fn paths(node: &Node, stack: &Stack, to: &[NodeId], group: Option<GroupId>) -> Result<usize, Diagnostic> {
    let paths = whole(node, "paths", 1..=MAX_PATHS)?;
    if paths > 1 && relaying(stack, |row| row.paths).is_none() {
        return Err(node.error(format!(
            "`paths`: `{}` takes one route; several are taken by {}",
            stack.protocol,
            those(|row| row.paths == Count::Several)
        )));
    }
    if paths > 1 && (to.len() > 1 || group.is_some()) {
        return Err(node.error("`paths`: several routes lead to one receiver, and `to` has several"));
    }
    Ok(paths as usize)
}

/// Checks that the transport can serve the members of a group over a delivery, in datagrams on the host's packets.
fn serves_members(node: &Node, stack: &Stack) -> Result<(), Diagnostic> {
    let (serving, lowest) = (stack.layers.iter().all(|layer| layer.row().groups), stack.layers.last());
    if serving && lowest.is_some_and(|layer| layer.row().needs == PortKind::Packet) {
        return Ok(());
    }
    if relaying(stack, |row| row.receivers) == Some(0) {
        return Err(node.error(format!(
            "`to`: `{}` has a tree of its own, and no delivery: write its receivers as a list, such as `to: [a, b]`; groups \
             are served by {}",
            stack.protocol,
            those(|row| row.groups)
        )));
    }
    Err(node.error(format!(
        "`to`: `{}` has one receiver; several are served by {} with a tree of their own, and by {} with any delivery",
        stack.protocol,
        those(|row| row.receivers == Count::Several),
        those(|row| row.groups)
    )))
}

/// Checks that the delivery of a group brings datagrams to all that the transport needs to hear them.
fn is_reached(
    node: &Node,
    (group, sender, to, ipv6): (&Group, NodeId, &[NodeId], bool),
    stack: &Stack,
    named: &[NodeId],
    segment_map: &SegmentMap<'_>,
) -> Result<(), Diagnostic> {
    let top = stack.layers.first();
    let exchange = top.map_or(Exchange::FromSender, |top| top.settings().exchange());
    let peers = exchange.peers(named, sender, to);
    let flow = GroupFlow { group, sender, exchange, peers: &peers };
    let reach = GroupReach { flow, network: segment_map.network, segments: &segment_map.segments, ipv6 };
    match group.delivery.settings().refuses(&reach) {
        Some(why) => Err(node.error(format!("`to`: {why}"))),
        None => Ok(()),
    }
}

/// Checks that the application of several receivers needs no answer.
fn needs_no_answer(node: &Node, app: &App, group: Option<&Group>, to: &[NodeId]) -> Result<(), Diagnostic> {
    match app {
        App::ShortFlows { .. } => Err(node.error(
            "`to`: `short-flows` are streams to one receiver; several may have `cbr`, `bulk`, `file`, `messages` or `video`",
        )),
        App::Program { program, .. } => match program.refuses_group(group, to) {
            Some(why) => Err(node.error(format!("`to`: {why}"))),
            None => Ok(()),
        },
        App::Cbr { .. }
        | App::Bulk { .. }
        | App::File { .. }
        | App::Messages { .. }
        | App::Video { .. } => Ok(()),
    }
}

/// A stream has several readers where it goes one way.
fn several_may_read(node: &Node, app: &App, stack: &Stack) -> Result<(), Diagnostic> {
    let two_way = stack.layers.first().is_some_and(|top| top.row().two_way_streams);
    if two_way && matches!(app, App::Bulk { port: Some(PortKind::Stream), .. }) {
        return Err(node.error(format!(
            "`port`: a stream of `{}` has one receiver, and `to` has several; streams to several are those of {}",
            stack.protocol,
            those(|row| row.offers.has(PortKind::Stream) && !row.two_way_streams)
        )));
    }
    Ok(())
}

/// The depth of the transport for which nodes between the ends can relay, if it has several of something.
fn relaying(stack: &Stack, count: impl Fn(&Row) -> Count) -> Option<usize> {
    let has = |&depth: &usize| count(stack.layers[depth].row()) == Count::Several;
    (0..stack.layers.len()).filter(|&depth| can_relay(&stack.layers, depth)).find(has)
}

/// The names of the transports that satisfy `have`: `` `a`, `b` and `c` ``.
fn those(have: impl Fn(&Row) -> bool) -> String {
    let names = TRANSPORTS.iter().filter(|row| have(row));
    let names: Vec<String> = names.map(|row| format!("`{}`", row.name)).collect();
    match names.as_slice() {
        [first @ .., last] if !first.is_empty() => format!("{} and {last}", first.join(", ")),
        names => names.join(""),
    }
}

fn ip_version(node: &Node, key: &str) -> Result<bool, Diagnostic> {
    match decode::text(node, key)? {
        "4" => Ok(false),
        "6" => Ok(true),
        other => Err(node.error(format!("`{key}`: expected the version of IP, `4` or `6`, found `{other}`"))),
    }
}
