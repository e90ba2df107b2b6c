//! Scheduled events: links change, flows start and stop, nodes begin anew.

use std::collections::BTreeMap;
use std::iter;

use hopcast_core::{Duration, Instant};
use hopcast_link::Change;
use hopcast_stack::TRANSPORTS;

use super::files::Contents;
use super::flows::Flows;
use super::link;
use super::model::{Action, Event, Flow, LinkId, LinkModel, NodeId};
use super::topology::Topology;
use hopcast_config::Diagnostic;
use hopcast_config::decode::{self, Fields, flag, list, one_or_list, share, some_duration};
use hopcast_config::yaml::{Kind, Node};

const CHANGES: [&str; 11] =
    ["rate", "delay", "jitter", "loss", "corrupt", "duplicate", "reorder", "queue", "mtu", "down", "up"];
pub(super) const ALLOWED: [&str; 27] = [
    "name",
    "at",
    "every",
    "until",
    "links",
    "from",
    "to",
    "rate",
    "delay",
    "jitter",
    "loss",
    "corrupt",
    "duplicate",
    "reorder",
    "queue",
    "mtu",
    "down",
    "up",
    "start",
    "stop",
    "group",
    "join",
    "leave",
    "restart",
    "service",
    "on",
    "set",
];
/// The changes of what a radio link's signals decide.
const BY_SIGNAL: [&str; 3] = ["rate", "loss", "to"];
/// Maximum number of entries of the schedule in words. Chosen: a plot has no room for more.
const MAX_WORDS: usize = 100;
/// Maximum number of changes of single links, members and services by all events. Chosen: it bounds the memory that a
/// file can ask for.
pub(super) const MAX_CHANGES: usize = 10_000_000;

/// All events in the order of time, and of the file for one time.
pub(crate) fn events(
    node: Option<&Node>,
    (topology, roles): (&Topology, &BTreeMap<String, Vec<NodeId>>),
    flows: &Flows,
    joins: Vec<Event>,
    (duration, contents): (Duration, &mut Contents),
) -> Result<Vec<Event>, Diagnostic> {
    let mut events = joins;
    let Some(node) = node else { return Ok(events) };
    let saturating = flows.saturating();
    for item in list(node, "events")? {
        let fields = Fields::of(item, "an event", &ALLOWED)?;
        fields.read("name", decode::name)?;
        let times = times(fields, duration)?;
        let mut push = |action: Action| {
            if events.len() + times.len() > MAX_CHANGES {
                return Err(
                    item.error(format!("events come to at most {MAX_CHANGES} changes, these to more"))
                );
            }
            events.extend(times.iter().map(|&at| Event { at, action: action.clone() }));
            Ok(())
        };
        let changes = changes(fields, contents)?;
        let of_service = fields.get("service").is_some();
        let mut acts = !changes.is_empty() || of_service || fields.get("group").is_some();
        if let (Some(stray), None) = (fields.get("on").or(fields.get("set")), fields.get("service")) {
            return Err(stray.error("`on` and `set` need the `service` that is meant"));
        }
        if let (Some(who), None) = (fields.get("join").or(fields.get("leave")), fields.get("group")) {
            return Err(who.error("`join` and `leave` need the `group` that is meant"));
        }
        if let Some(to) = fields.get("to")
            && !matches!(changes.as_slice(), [Change::Loss(_)])
        {
            return Err(to.error("`to`: only `loss` can change towards one station of a medium or switch"));
        }
        for (link, from) in targets(fields, topology, !changes.is_empty())? {
            if let (Some(rate), true) = (fields.get("rate"), changes.contains(&Change::Rate(None))) {
                let ends = &topology.links[link].ends;
                let paced = ends.iter().enumerate().filter(|(end, _)| from.is_none_or(|from| from == *end));
                if let Some(flow) = paced.filter_map(|(_, node)| saturating.get(node)).next() {
                    return Err(rate.error(format!(
                        "`rate`: the flow `{}` saturates its first link, so the links of `{}` need a rate at any time",
                        flow.name, topology.nodes[flow.from].name
                    )));
                }
            }
            let to = fields.get("to").map(|to| listener(to, topology, link, from)).transpose()?;
            for change in &changes {
                let change = match (to, change) {
                    (Some(to), Change::Loss(loss)) => Change::LossTo(to, loss.clone()),
                    (_, change) => change.clone(),
                };
                push(Action::Link { link, from, change })?;
            }
        }
        for (key, action) in [("start", Action::Start as fn(_) -> _), ("stop", Action::Stop as fn(_) -> _)] {
            if of_service {
                break;
            }
            for named in fields.read(key, one_or_several)?.unwrap_or_default() {
                push(action(flows.flow(named, key)?))?;
                acts = true;
            }
        }
        if let Some(node) = fields.get("restart") {
            one_or_several(node, "restart")?;
            for restarted in topology.node_list(node, "restart")? {
                is_restartable(node, (restarted, &topology.nodes[restarted].name), roles, flows)?;
                push(Action::Restart(restarted))?;
                acts = true;
            }
        }
        if !acts {
            return Err(item.error(format!(
                "an event needs something to do: one of {}, `start`, `stop`, `restart`, a `group` with `join` or `leave`, or a `service`",
                decode::listed(&CHANGES)
            )));
        }
    }
    events.sort_by_key(|event| event.at);
    Ok(events)
}

/// The events in words, in the order of time: `loss 5 %`, or `down on a-b` if the event is not for all links. Entries
/// that cannot be read are left out: [`events`] reports them.
pub(crate) fn schedule(node: Option<&Node>, duration: Duration) -> Vec<(Instant, String)> {
    let items = node.and_then(|node| list(node, "events").ok()).unwrap_or_default();
    let mut schedule = Vec::new();
    for (times, words) in items.iter().filter_map(|item| in_words(item, duration)) {
        schedule.extend(times.into_iter().take(MAX_WORDS).map(|at| (at, words.clone())));
    }
    schedule.sort_by_key(|(at, _)| *at);
    schedule.truncate(MAX_WORDS);
    schedule
}

fn in_words(item: &Node, duration: Duration) -> Option<(Vec<Instant>, String)> {
    let fields = Fields::of(item, "an event", &ALLOWED).ok()?;
    let times = times(fields, duration).ok()?;
    let scalar = |node: &Node| match &node.kind {
        Kind::Scalar(text) => Some(text.clone()),
        Kind::List(_) | Kind::Map(_) => None,
    };
    let names = |node: &Node| one_or_list(node).iter().filter_map(scalar).collect::<Vec<_>>();
    let mut parts = Vec::new();
    for key in fields.keys() {
        let Some(node) = fields.get(key) else { continue };
        match key {
            "down" | "up" => {
                let stays = flag(node, key).ok()?;
                parts.push(if stays == (key == "down") { "down" } else { "up" }.to_owned());
            }
            "join" | "leave" => {
                let group = fields.get("group").and_then(scalar)?;
                let names = names(node);
                let who = if names.len() > 3 { format!("{} nodes", names.len()) } else { names.join(", ") };
                parts.push(format!("{who} {} {group}", if key == "join" { "into" } else { "out of" }));
            }
            "start" | "stop" | "set" if fields.get("service").is_some() => {
                let service = fields.get("service").and_then(scalar)?;
                let at =
                    fields.get("on").map(|on| format!(" on {}", names(on).join(", "))).unwrap_or_default();
                parts.push(format!("{key} {service}{at}"));
            }
            "start" | "stop" | "restart" => parts.push(format!("{key} {}", names(node).join(", "))),
            change if CHANGES.contains(&change) => {
                parts.push(
                    scalar(node).map_or_else(|| change.to_owned(), |value| format!("{change} {value}")),
                );
            }
            _ => {}
        }
    }
    let links = fields.get("links").map(names).unwrap_or_default();
    let whose = match links.as_slice() {
        [] => String::new(),
        [all] if all == "all" => String::new(),
        [link] => format!(" on {link}"),
        links => format!(" on {} links", links.len()),
    };
    Some((times, parts.join(", ") + &whose))
}

/// The times at which an event happens: one, or with `every` those from it on and before `until`, by default up to the
/// end of the run.
pub(super) fn times(fields: Fields<'_>, duration: Duration) -> Result<Vec<Instant>, Diagnostic> {
    let time = |node: &Node, key: &str| Ok(Instant::ZERO + decode::duration(node, key)?);
    let first = time(fields.need("at", "at: 5s")?, "at")?;
    let until = fields.read("until", time)?;
    let Some(every) = fields.read("every", some_duration)? else {
        return match fields.get("until") {
            Some(node) => {
                Err(node.error("`until` needs `every`, which says how often it happens until then"))
            }
            None => Ok(vec![first]),
        };
    };
    if let (Some(node), true) = (fields.get("until"), until.is_some_and(|until| until <= first)) {
        return Err(node.error(format!("`until`: expected more than `at`, which is {first}")));
    }
    let end = Instant::ZERO + duration;
    let last = until.map_or(end, |until| Instant::from_nanos(until.as_nanos() - 1).min(end));
    let repeats = last.since(first).as_nanos() / every.as_nanos();
    if repeats >= MAX_CHANGES as u64 {
        return Err(fields
            .error(format!("`every`: an event happens at most {MAX_CHANGES} times, this one more often")));
    }
    Ok((0..=repeats).map(|number| first + every * number).collect())
}

fn changes(fields: Fields<'_>, contents: &mut Contents) -> Result<Vec<Change>, Diagnostic> {
    let mut changes = Vec::new();
    for key in fields.keys() {
        let Some(node) = fields.get(key) else { continue };
        match key {
            "rate" => changes.push(Change::Rate(link::rate_or_unlimited(node, key)?)),
            "delay" => changes.push(Change::Delay(decode::duration(node, key)?)),
            "jitter" => changes.push(Change::Jitter(link::jitter(node, key)?)),
            "loss" => changes.push(Change::Loss(link::loss(node, key, contents)?)),
            "corrupt" => changes.push(Change::Corrupt(share(node, key)?)),
            "duplicate" => changes.push(Change::Duplicate(share(node, key)?)),
            "reorder" => changes.push(Change::Reorder(flag(node, key)?)),
            "queue" => changes.push(Change::Queue(link::queue(node, key)?)),
            "mtu" => changes.push(Change::Mtu(link::mtu(node, key)?)),
            "down" => changes.push(if flag(node, key)? { Change::Down } else { Change::Up }),
            "up" => changes.push(if flag(node, key)? { Change::Up } else { Change::Down }),
            _ => {}
        }
    }
    Ok(changes)
}

/// The items of a list that is not empty, or a single name.
pub(super) fn one_or_several<'a>(node: &'a Node, key: &str) -> Result<&'a [Node], Diagnostic> {
    match one_or_list(node) {
        [] => Err(node.error(format!("`{key}`: expected a name or several, found an empty list"))),
        names => Ok(names),
    }
}

/// Checks that a node takes part in a flow, and that the transports of all flows there keep what they hold.
fn is_restartable(
    node: &Node,
    (restarted, name): (NodeId, &str),
    roles: &BTreeMap<String, Vec<NodeId>>,
    flows: &Flows,
) -> Result<(), Diagnostic> {
    let named = roles.get("peer").map_or(&[][..], Vec::as_slice);
    let takes_part = |flow: &&Flow| {
        let mut ends = iter::once(&flow.from).chain(&flow.to);
        ends.any(|&end| end == restarted)
            || flow.exchange().peers(named, flow.from, &flow.to).contains(&restarted)
    };
    let mut of_node = flows.flows.iter().filter(takes_part).peekable();
    if of_node.peek().is_none() {
        return Err(node.error(format!("`restart`: `{name}` is neither an end of a flow nor a peer of one")));
    }
    let loses = |flow: &&Flow| !flow.over.first().is_some_and(|top| top.settings().keeps_over_restart());
    match of_node.find(loses) {
        Some(flow) => {
            let (flow, over) = (&flow.name, &flow.protocol);
            let keeping = TRANSPORTS.iter().filter(|row| row.layer().settings().keeps_over_restart());
            let keeping: Vec<_> = keeping.map(|row| row.name).collect();
            Err(node.error(format!(
                "`restart`: the flow `{flow}` of `{name}` is over `{over}`, which keeps nothing over that; {} does",
                decode::listed(&keeping)
            )))
        }
        None => Ok(()),
    }
}

/// The station of a medium or switch towards which a loss changes.
fn listener(
    node: &Node,
    topology: &Topology,
    link: LinkId,
    from: Option<usize>,
) -> Result<usize, Diagnostic> {
    let (link, id) = (&topology.links[link], topology.node(node, "to")?);
    if matches!(link.model, LinkModel::PointToPoint(_)) {
        return Err(node.error(format!("`to`: the link `{}` is neither a medium nor a switch", link.name)));
    }
    let station = link.ends.iter().position(|end| *end == id);
    match station {
        Some(station) if from != Some(station) => Ok(station),
        Some(_) => Err(node.error(format!("`to`: {} does not hear itself", node.found()))),
        None => Err(node.error(format!("`to`: {} is no end of the link `{}`", node.found(), link.name))),
    }
}

/// The links that change, each with the direction.
fn targets(
    fields: Fields<'_>,
    topology: &Topology,
    changes: bool,
) -> Result<Vec<(LinkId, Option<usize>)>, Diagnostic> {
    let Some(links) = fields.get("links") else {
        return if changes {
            Err(fields
                .error("an event that changes links needs `links`: `all`, a link's name or a list of names"))
        } else {
            Ok(Vec::new())
        };
    };
    let all = matches!(&links.kind, Kind::Scalar(text) if text == "all");
    let of_signal = BY_SIGNAL.into_iter().find_map(|key| Some((key, fields.get(key)?)));
    let by_signal = |id: &LinkId| topology.links[*id].has_radios() && of_signal.is_some();
    let ids: Vec<LinkId> = if all {
        (0..topology.links.len()).collect()
    } else {
        let ids: Result<Vec<_>, _> =
            one_or_several(links, "links")?.iter().map(|node| topology.link(node, "links")).collect();
        ids?
    };
    if let (Some(id), Some((key, node))) = (ids.iter().find(|id| by_signal(id)), of_signal) {
        let name = &topology.links[*id].name;
        return Err(node.error(format!(
            "`{key}`: rate and loss of the radio link `{name}` follow from its ships' places"
        )));
    }
    let Some(from_node) = fields.get("from") else {
        return Ok(ids.into_iter().map(|id| (id, None)).collect());
    };
    let from = topology.node(from_node, "from")?;
    let mut targets = Vec::new();
    for id in ids {
        let link = &topology.links[id];
        match link.ends.iter().position(|end| *end == from) {
            Some(attachment) => targets.push((id, Some(attachment))),
            // With `all` links, only those of this node.
            None if all => {}
            None => {
                return Err(from_node.error(format!(
                    "`from`: {} is no end of the link `{}`",
                    from_node.found(),
                    link.name
                )));
            }
        }
    }
    Ok(targets)
}
