//! Flows: what is sent, from where to where, over what.

use std::collections::BTreeMap;

use hopcast_core::{Duration, Instant};

use super::decode::{
    self, Fields, choice, did_you_mean, duration, list, one_or_list, rate, size, some_duration, whole,
};
use super::diagnostic::Diagnostic;
use super::files::Contents;
use super::fits::{self, Written};
use super::model::{App, Flow, FlowId, Layer, NodeId, Span};
use super::topology::Topology;
use super::transports::{Port, Ports, Stack, Variants};
use super::yaml::{Kind, Node};

const APPS: [&str; 4] = ["cbr", "bulk", "file", "messages"];
/// The largest UDP payload over IPv4.
const LARGEST_DATAGRAM: u64 = 65_507;
/// The largest message over a stream: one that buffers can hold.
const LARGEST_MESSAGE: u64 = 16 << 20;
/// A unit carries its number and its time.
const SMALLEST_UNIT: u64 = 16;
/// How many flows there may be: each has two ports of its own, from 10,000 on.
const MOST: usize = 25_000;
/// More disjoint ways than this no network here has.
const MOST_PATHS: u64 = 8;

/// All flows, by name.
pub(crate) struct Flows {
    pub(crate) flows: Vec<Flow>,
    names: BTreeMap<String, FlowId>,
}

impl Flows {
    pub(crate) fn of(
        node: &Node,
        topology: &Topology,
        variants: &Variants,
        contents: &mut Contents,
    ) -> Result<Self, Diagnostic> {
        let mut flows = Self { flows: Vec::new(), names: BTreeMap::new() };
        let mut written = Vec::new();
        let parts = parts(topology);
        for (number, item) in list(node, "flows")?.iter().enumerate() {
            if number >= MOST {
                return Err(item.error(format!("a scenario has at most {MOST} flows, this is one more")));
            }
            let fields = Fields::of(item, "a flow", &["name", "from", "to", "over", "app", "ip", "paths"])?;
            let (name, span) = match fields.get("name") {
                Some(node) => (decode::name(node, "name")?.to_owned(), &node.span),
                None => (format!("flow{number}"), &item.span),
            };
            if flows.names.insert(name.clone(), number).is_some() {
                return Err(span.error(format!("the flow name `{name}` is taken already")));
            }
            let from = topology.node(fields.need("from", "from: n0")?, "from")?;
            let to_node = fields.need("to", "to: n6")?;
            let to = receivers(to_node, from, &parts, topology)?;
            let over = fields.need("over", "over: tcp-cubic")?;
            let stack = variants.stack(over)?;
            let app_node = fields.need("app", "app: bulk")?;
            let app = app(app_node, stack.offers, &stack.protocol, contents)?;
            if to.len() > 1 {
                serves_a_group(to_node, &stack, &app)?;
            }
            let ipv6 = fields.read("ip", ip_version)?.unwrap_or(false);
            let paths = match fields.get("paths") {
                Some(node) => paths(node, &stack, &to)?,
                None => 1,
            };
            let flow =
                Flow { name, from, to, protocol: stack.protocol, over: stack.layers, app, ipv6, paths };
            flows.flows.push(flow);
            written.push(Written { to: to_node, app: app_node, ip: fields.get("ip").filter(|_| ipv6) });
        }
        if flows.flows.is_empty() {
            return Err(node.error("`flows`: expected at least one flow, found none"));
        }
        fits::check(&flows.flows, &written, topology)?;
        Ok(flows)
    }

    /// For each node that a flow saturates the links of, one such flow.
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

/// The node or the nodes that a flow goes to.
fn receivers(
    node: &Node,
    from: NodeId,
    parts: &[usize],
    topology: &Topology,
) -> Result<Vec<NodeId>, Diagnostic> {
    let mut receivers = Vec::new();
    for item in one_or_list(node) {
        let to = topology.node(item, "to")?;
        let name = |node: NodeId| &topology.nodes[node].name;
        if from == to {
            return Err(item.error("`to`: a flow needs another node to go to than it comes from"));
        }
        if parts[from] != parts[to] {
            return Err(item.error(format!("`to`: no links lead from `{}` to `{}`", name(from), name(to))));
        }
        if receivers.contains(&to) {
            return Err(item.error(format!("`to`: `{}` stands here twice", name(to))));
        }
        receivers.push(to);
    }
    if receivers.is_empty() {
        return Err(node.error("`to`: expected a node, found an empty list"));
    }
    Ok(receivers)
}

/// Several ways need a transport that puts together what comes by them, and end at one receiver.
fn paths(node: &Node, stack: &Stack, to: &[NodeId]) -> Result<usize, Diagnostic> {
    let paths = whole(node, "paths", 1..=MOST_PATHS)?;
    if paths > 1 && !matches!(stack.layers.as_slice(), [.., Layer::Bats(_) | Layer::Proxy(_), Layer::Udp]) {
        return Err(node.error(format!(
            "`paths`: `{}` takes one way; several are taken by `btp`, `brtp` and `bats-proxy`",
            stack.protocol
        )));
    }
    if paths > 1 && to.len() > 1 {
        return Err(node.error("`paths`: several ways lead to one receiver, and `to` has several"));
    }
    Ok(paths as usize)
}

/// Several receivers need a transport that serves them all, and an application that needs no answer.
fn serves_a_group(node: &Node, stack: &Stack, app: &App) -> Result<(), Diagnostic> {
    if !matches!(stack.layers.as_slice(), [Layer::Bats(_), Layer::Udp]) {
        return Err(node.error(format!(
            "`to`: `{}` has one receiver; several are served by `btp` and `brtp`",
            stack.protocol
        )));
    }
    match app {
        App::Messages { .. } => Err(node
            .error("`to`: `messages` are echoed by one receiver; several may have `cbr`, `bulk` or `file`")),
        App::Cbr { .. } | App::Bulk { .. } | App::File { .. } => Ok(()),
    }
}

fn ip_version(node: &Node, key: &str) -> Result<bool, Diagnostic> {
    match decode::text(node, key)? {
        "4" => Ok(false),
        "6" => Ok(true),
        other => Err(node.error(format!("`{key}`: expected the version of IP, `4` or `6`, found `{other}`"))),
    }
}

/// For each node, a number that it shares with the nodes it can reach, all links counted.
fn parts(topology: &Topology) -> Vec<usize> {
    let mut parts = petgraph::unionfind::UnionFind::new(topology.nodes.len());
    for link in &topology.links {
        for end in &link.ends[1..] {
            parts.union(link.ends[0], *end);
        }
    }
    parts.into_labeling()
}

fn app(node: &Node, offers: Ports, over: &str, contents: &mut Contents) -> Result<App, Diagnostic> {
    let (app, _, options) = choice(node, "app", &APPS)?;
    if app == "cbr" && !offers.has(Port::Datagram) {
        return Err(node.error(format!(
            "`app`: `cbr` sends datagrams, and `{over}` offers {offers}: use `udp`, or `bulk` or `messages`"
        )));
    }
    let options = options.unwrap_or(node);
    let what = format!("`{app}`");
    let fields = |allowed: &[&str]| -> Result<Fields<'_>, Diagnostic> {
        match &options.kind {
            // The bare form `app: bulk` has no keys.
            Kind::Scalar(text) if text == app => Ok(Fields::empty(options, &what)),
            _ => Fields::of(options, &what, allowed),
        }
    };
    match app {
        "cbr" => {
            let fields = fields(&["rate", "size", "start", "stop"])?;
            let rate = match fields.need("rate", "rate: 10 Mbit/s")? {
                Node { kind: Kind::Scalar(text), .. } if text == "saturate" => None,
                node => Some(rate(node, "rate")?),
            };
            let size = fields.read("size", |node, key| size(node, key, SMALLEST_UNIT..=LARGEST_DATAGRAM))?;
            Ok(App::Cbr { rate, size: size.unwrap_or(hopcast_core::Bytes::new(1472)), span: span(fields)? })
        }
        "bulk" => {
            let fields = fields(&["rate", "bytes", "start", "stop"])?;
            let rate = fields.read("rate", rate)?;
            let bytes = fields.read("bytes", |node, key| size(node, key, 1..=1 << 50))?;
            Ok(App::Bulk { rate, bytes, span: span(fields)? })
        }
        "file" => {
            let fields = fields(&["path", "start", "stop"])?;
            let contents = contents.file(fields.need("path", "path: data/picture.jpg")?, "path")?;
            Ok(App::File { contents, span: span(fields)? })
        }
        _ => {
            let fields = fields(&["size", "rate", "every", "start", "stop"])?;
            let largest = if offers.has(Port::Stream) { LARGEST_MESSAGE } else { LARGEST_DATAGRAM };
            let size = size(fields.need("size", "size: 200 B")?, "size", SMALLEST_UNIT..=largest)?;
            let every = match (fields.get("rate"), fields.get("every")) {
                (Some(_), Some(node)) => {
                    return Err(node.error("`messages` takes `rate` or `every`, not both"));
                }
                (Some(node), None) => frequency(node, "rate")?,
                (None, Some(node)) => some_duration(node, "every")?,
                (None, None) => {
                    return Err(
                        fields.error("`messages` needs `rate` or `every`, for example `rate: 100 Hz`")
                    );
                }
            };
            Ok(App::Messages { size, every, span: span(fields)? })
        }
    }
}

/// `start` and `stop`; without them, from the start of the run to its end.
fn span(fields: Fields<'_>) -> Result<Span, Diagnostic> {
    let after = |span: Duration| Instant::ZERO + span;
    let start = match fields.get("start") {
        None => Some(Instant::ZERO),
        Some(Node { kind: Kind::Scalar(text), .. }) if text == "event" => None,
        Some(node) => Some(after(duration(node, "start")?)),
    };
    let stop = fields.read("stop", duration)?.map(after);
    if let (Some(node), Some(stop), Some(start)) = (fields.get("stop"), stop, start)
        && start >= stop
    {
        return Err(node.error(format!("`stop`: expected a time after `start`, found {}", node.found())));
    }
    Ok(Span { start, stop })
}

/// So often in a second, as the time between two.
fn frequency(node: &Node, key: &str) -> Result<Duration, Diagnostic> {
    let text = decode::text(node, key)?.trim();
    let expected = "expected a frequency such as `100 Hz` (units: Hz, kHz, /s)";
    let units = [("kHz", 1e3), ("Hz", 1.0), ("/s", 1.0)];
    let Some((number, factor)) =
        units.iter().find_map(|(unit, factor)| text.strip_suffix(unit).map(|number| (number.trim(), factor)))
    else {
        let hint = match text.parse::<f64>() {
            Ok(_) => format!(": write `{text} Hz`"),
            Err(_) => String::new(),
        };
        return Err(node.error(format!("`{key}`: {expected}, found `{text}`{hint}")));
    };
    match number.replace('_', "").parse::<f64>().map(|number| number * factor) {
        // A microsecond apart is faster than any of these links; an hour apart is never.
        Ok(hertz) if (1.0 / 3600.0..=1e6).contains(&hertz) => Ok(Duration::from_secs_f64(1.0 / hertz)),
        Ok(_) => Err(node.error(format!("`{key}`: expected one an hour to 1000 kHz, found `{text}`"))),
        Err(_) => Err(node.error(format!("`{key}`: {expected}, found `{text}`"))),
    }
}
