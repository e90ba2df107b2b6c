//! A plan in a person's words, for `hopcast check`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Write};

use hopcast_core::{Duration, Instant, Rate};
use hopcast_link::{
    Change, Config, Csma, Direction, Duplex, Jitter, Loss, Mac, MediumConfig, PairLoss, Queue, QueueLimit,
    Rts, SwitchConfig,
};
use hopcast_stack::network::ShortestPaths;

use super::capacity::{Capacities, mean_loss};
use super::model::{
    Action, Capture, Case, Destinations, Event, Exec, Flow, FlowId, Group, Layer, LinkModel, Neighbours,
    NodeId, Plan, Reporting, Scenario, ServiceSpec,
};

/// Maximum number of nodes, links, events or flows that are listed; more are summed up. Chosen: about a screen.
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
    write_nodes(out, scenario)?;
    write_links(out, scenario)?;
    write_routes(out, scenario)?;
    write_events(out, scenario)?;
    write_services(out, scenario)?;
    write_groups(out, scenario)?;
    write_flows(out, scenario)?;
    write_execs(out, scenario)?;
    write_sweep(out, &plan.cases)?;
    if !plan.published.is_empty() {
        let whose = if plan.measured { "Measured" } else { "Published" };
        writeln!(out, "\n{whose} figures: {}", counted(plan.published.len(), "row"))?;
    }
    write_notes(out, plan)
}

/// The routes of the file.
fn write_routes(out: &mut String, scenario: &Scenario) -> fmt::Result {
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

/// Links of one model on one line; what they are, then which they are.
fn write_links(out: &mut String, scenario: &Scenario) -> fmt::Result {
    writeln!(out, "\nLinks: {}", scenario.links.len())?;
    let mut kinds: Vec<(String, Vec<&str>)> = Vec::new();
    let mut places = BTreeMap::new();
    for link in &scenario.links {
        let model = match &link.model {
            LinkModel::PointToPoint(config) => point_to_point(config),
            LinkModel::Medium(config) => medium(config, &link.ends, scenario),
            LinkModel::Switch(config) => switch(config, &link.ends, scenario),
        };
        let place = *places.entry(model).or_insert_with_key(|model| {
            kinds.push((model.clone(), Vec::new()));
            kinds.len() - 1
        });
        kinds[place].1.push(&link.name);
    }
    let more = kinds.len().saturating_sub(MAX_LISTED);
    for (model, names) in kinds.iter().take(MAX_LISTED) {
        writeln!(out, "  {}", shortened(names))?;
        for line in model.lines() {
            writeln!(out, "    {line}")?;
        }
    }
    if more > 0 { writeln!(out, "  and {more} more kinds of links") } else { Ok(()) }
}

fn medium(config: &MediumConfig, ends: &[NodeId], scenario: &Scenario) -> String {
    let mut text = format!("a medium of {} stations: {}", ends.len(), Words(&config.direction));
    // Writing to a string cannot fail.
    let _ = match &config.mac {
        Mac::Perfect => Ok(()),
        Mac::Csma(csma) => {
            let Csma { slot, sifs, difs, cw_min, cw_max, retries, overhead, ack, channel, rts } = csma;
            let channel = loss(channel);
            write!(
                text,
                "\nCSMA/CA: slot {slot}, SIFS {sifs}, DIFS {difs}, window {cw_min} to {cw_max}, overhead {overhead}, \
                 acknowledgement {ack}, {retries} retries, channel loss {channel}"
            )
            .and_then(|()| match rts {
                None => Ok(()),
                Some(Rts { threshold, rts, cts }) => {
                    write!(text, "\nRTS of {rts} and CTS of {cts} before frames of at least {threshold}")
                }
            })
        }
    };
    for (from, station) in ends.iter().enumerate().filter(|_| config.hears.is_some()) {
        let heard = config.hears.iter().flatten().filter(|(sender, _)| *sender == from);
        let heard: Vec<&str> = heard.map(|(_, to)| scenario.nodes[ends[*to]].name.as_str()).collect();
        let by = if heard.is_empty() { "nobody".to_owned() } else { shortened(&heard) };
        let _ = write!(text, "\n{} is heard by {by}", scenario.nodes[*station].name);
    }
    text + &pairs(&config.pairs, ends, scenario)
}

/// The sender whose values most have, and each that differs.
fn switch(config: &SwitchConfig, ends: &[NodeId], scenario: &Scenario) -> String {
    let same = |one: &&Direction| config.directions.iter().filter(|other| other == one).count();
    let usual = config.directions.iter().rev().max_by_key(same);
    let mut text = format!("a switch with {} stations", ends.len());
    // Writing to a string cannot fail.
    let _ = usual.map_or(Ok(()), |usual| write!(text, ": {}", Words(usual)));
    for (end, direction) in ends.iter().zip(&config.directions) {
        if usual != Some(direction) {
            let _ = write!(text, "\n{}: {}", scenario.nodes[*end].name, Words(direction));
        }
    }
    text + &pairs(&config.pairs, ends, scenario)
}

/// The losses from one station to another that differ, a line each.
fn pairs(pairs: &[PairLoss], ends: &[NodeId], scenario: &Scenario) -> String {
    let line = |pair: &PairLoss| {
        let [from, to] = [pair.from, pair.to].map(|end| &scenario.nodes[ends[end]].name);
        format!("\n{from} to {to}: loss {}", loss(&pair.loss))
    };
    pairs.iter().map(line).collect()
}

fn point_to_point(config: &Config) -> String {
    let half = if config.duplex == Duplex::Half { ", half duplex" } else { "" };
    if config.forward == config.backward {
        format!("{}{half}", Words(&config.forward))
    } else {
        format!("forward:  {}{half}\nbackward: {}", Words(&config.forward), Words(&config.backward))
    }
}

/// The values of one direction, all of them, defaults too where they matter.
struct Words<'a>(&'a Direction);

impl Display for Words<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let direction = self.0;
        write!(f, "{}, delay {}, loss {}", rate(direction.rate), direction.delay, loss(&direction.loss))?;
        if direction.jitter != Jitter::None {
            let order = if direction.reorder { "reordering" } else { "in order" };
            write!(f, ", jitter {} {order}", jitter(direction.jitter))?;
        }
        if direction.duplicate.get() > 0.0 {
            write!(f, ", {} duplicated", direction.duplicate)?;
        }
        if direction.corrupt.get() > 0.0 {
            write!(f, ", {} corrupted", direction.corrupt)?;
        }
        write!(f, ", queue {}, MTU {}", queue(direction.queue), direction.mtu)
    }
}

fn rate(rate: Option<Rate>) -> String {
    rate.map_or_else(|| "unlimited rate".to_owned(), |rate| rate.to_string())
}

fn loss(loss: &Loss) -> String {
    let mean = || format!("{} on average", Percent(mean_loss(loss)));
    match loss {
        Loss::None => "none".to_owned(),
        Loss::Independent(share) => share.to_string(),
        Loss::GilbertElliott { p, r, k, h } => {
            format!("Gilbert-Elliott (p {p}, r {r}, k {k}, h {h}; {})", mean())
        }
        Loss::FourState { p13, p31, p32, p23, p14 } => {
            format!("four-state (p13 {p13}, p31 {p31}, p32 {p32}, p23 {p23}, p14 {p14}; {})", mean())
        }
        Loss::Trace(trace) => format!("a trace of {} ({})", counted(trace.len(), "frame"), mean()),
    }
}

fn jitter(jitter: Jitter) -> String {
    match jitter {
        Jitter::None => "none".to_owned(),
        Jitter::Uniform(width) => format!("±{width} uniform"),
        Jitter::Normal(width) => format!("{width} normal"),
    }
}

fn queue(queue: Queue) -> String {
    let full = |limit| match limit {
        QueueLimit::Packets(packets) => counted(packets as usize, "packet"),
        QueueLimit::Bytes(bytes) => bytes.to_string(),
    };
    match queue {
        Queue::DropTail { limit } => full(limit),
        Queue::CoDel { limit, target, interval } => {
            format!("CoDel (target {target}, interval {interval}, at most {})", full(limit))
        }
    }
}

fn write_events(out: &mut String, scenario: &Scenario) -> fmt::Result {
    if scenario.events.is_empty() {
        return Ok(());
    }
    // One written event may change many links: they are one line again.
    let mut lines: Vec<(Instant, String, Vec<&str>)> = Vec::new();
    for Event { at, action } in &scenario.events {
        let (what, link) = match action {
            Action::Link { link, from, change } => {
                let link = &scenario.links[*link];
                let name = |end: usize| &scenario.nodes[link.ends[end]].name;
                let from = from.map(|end| format!(" from {}", name(end))).unwrap_or_default();
                let to = match change {
                    Change::LossTo(to, _) => format!(" to {}", name(*to)),
                    _ => String::new(),
                };
                (format!("{}{from}{to}", changed(change)), Some(link.name.as_str()))
            }
            Action::Start(flow) => (format!("flow {} starts", scenario.flows[*flow].name), None),
            Action::Stop(flow) => (format!("flow {} stops", scenario.flows[*flow].name), None),
            Action::Service { service, on, what } => {
                let service = &scenario.services[*service];
                let at = if on.len() == service.on.len() {
                    String::new()
                } else {
                    format!(" on {}", names_of(scenario, on))
                };
                (format!("{} {what}{at}", service.name), None)
            }
            Action::Join { group, node } => {
                (format!("{} joins {}", scenario.nodes[*node].name, scenario.groups[*group].name), None)
            }
            Action::Leave { group, node } => {
                (format!("{} leaves {}", scenario.nodes[*node].name, scenario.groups[*group].name), None)
            }
        };
        let same = lines.iter_mut().rev().take_while(|line| line.0 == *at).find(|line| line.1 == what);
        match same {
            Some(line) => line.2.extend(link),
            None => lines.push((*at, what, link.into_iter().collect())),
        }
    }
    writeln!(out, "\nEvents: {}", lines.len())?;
    for (at, what, links) in lines.iter().take(MAX_LISTED) {
        let links = match links.len() {
            0 => String::new(),
            all if all == scenario.links.len() => " on all links".to_owned(),
            _ => format!(" on {}", shortened(links)),
        };
        let late = if *at > Instant::ZERO + scenario.duration { " (after the end)" } else { "" };
        writeln!(out, "  {at}: {what}{links}{late}")?;
    }
    match lines.len().saturating_sub(MAX_LISTED) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}

fn changed(change: &Change) -> String {
    match change {
        Change::Rate(new) => rate(*new),
        Change::Delay(delay) => format!("delay {delay}"),
        Change::Jitter(new) => format!("jitter {}", jitter(*new)),
        Change::Loss(new) | Change::LossTo(_, new) => format!("loss {}", loss(new)),
        Change::Corrupt(share) => format!("{share} corrupted"),
        Change::Queue(new) => format!("queue {}", queue(*new)),
        Change::Mtu(mtu) => format!("MTU {mtu}"),
        Change::Reorder(true) => "reordering".to_owned(),
        Change::Reorder(false) => "in order".to_owned(),
        Change::Duplicate(share) => format!("{share} duplicated"),
        Change::Down => "down".to_owned(),
        Change::Up => "up".to_owned(),
    }
}

/// Services, a line each: what runs, where, and on which interfaces.
fn write_services(out: &mut String, scenario: &Scenario) -> fmt::Result {
    if scenario.services.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nServices: {}", scenario.services.len())?;
    for ServiceSpec { name, layer, on, interfaces, .. } in scenario.services.iter().take(MAX_LISTED) {
        let of =
            if interfaces.is_empty() { String::new() } else { format!("on {} of ", interfaces.join(", ")) };
        writeln!(out, "  {name}: {layer} {of}{}", names_of(scenario, on))?;
    }
    match scenario.services.len().saturating_sub(MAX_LISTED) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}

/// Groups, a line each: their address, their delivery, and who is a member from the beginning.
fn write_groups(out: &mut String, scenario: &Scenario) -> fmt::Result {
    let groups: Vec<&Group> = scenario.groups.iter().filter(|group| !group.name.is_empty()).collect();
    if groups.is_empty() {
        return Ok(());
    }
    writeln!(out, "\nGroups: {}", groups.len())?;
    for group in groups.iter().take(MAX_LISTED) {
        let Group { name, delivery, members, linger, .. } = group;
        let (first, later): (Vec<_>, Vec<_>) =
            members.iter().partition(|member| member.is_member(Instant::ZERO));
        let first: Vec<NodeId> = first.iter().map(|member| member.node).collect();
        let [v4, v6] = [false, true].map(|ipv6| group.address(ipv6));
        writeln!(out, "  {name}: {delivery}, {v4} or {v6}")?;
        let later = match later.len() {
            0 => String::new(),
            later => format!(
                "; {} by events, who receive for {linger} after a leave",
                counted(later, "later member")
            ),
        };
        writeln!(out, "    {}: {}{later}", counted(first.len(), "member"), names_of(scenario, &first))?;
    }
    match groups.len().saturating_sub(MAX_LISTED) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}

fn write_flows(out: &mut String, scenario: &Scenario) -> fmt::Result {
    writeln!(out, "\nFlows: {}", scenario.flows.len())?;
    let mut capacities = Capacities::of(scenario);
    let mut paths = ShortestPaths::new(scenario.nodes.len(), &scenario.links);
    for flow in scenario.flows.iter().take(MAX_LISTED) {
        let Flow { name, from, to, protocol, app, ipv6, .. } = flow;
        // Of several receivers the farthest, and the one with the smallest bound.
        let cut = match capacities.least_of_flow(flow) {
            None => "unbounded".to_owned(),
            Some(bits) => Rate::from_bits_per_sec(bits.round() as u64).to_string(),
        };
        // As the network is written, the way back has as many hops, and one search finds those from all receivers.
        paths.search_from(*from, to);
        let hops = to.iter().map(|&to| paths.hops(to));
        let hops = hops.max().flatten().map_or_else(|| "no path".to_owned(), |hops| counted(hops, "hop"));
        let names: Vec<&str> = to.iter().map(|&to| &*scenario.nodes[to].name).collect();
        let group = flow.group.map(|group| &scenario.groups[group]);
        let to = match group {
            Some(group) if !group.name.is_empty() => group.name.clone(),
            Some(group) => format!("{} by {}", names.join(", "), group.delivery),
            None => names.join(", "),
        };
        let from = &scenario.nodes[*from].name;
        let ip = if *ipv6 { ", IPv6" } else { "" };
        let routes = if flow.paths > 1 { format!(", {} routes", flow.paths) } else { String::new() };
        writeln!(out, "  {name}: {from} to {to} over {protocol}{ip}{routes}: {app}")?;
        let stack = stack(flow);
        if stack != *protocol && !stack.is_empty() {
            writeln!(out, "    stack: {stack}")?;
        }
        writeln!(out, "    {hops}, min-cut {cut}")?;
    }
    match scenario.flows.len().saturating_sub(MAX_LISTED) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
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

/// The layers under their own names, each with the options that are not the default.
fn stack(flow: &Flow) -> String {
    let layers: Vec<_> = flow.over.iter().map(Layer::to_string).collect();
    layers.join("/")
}

/// Each swept path with the values it takes, in the order in which the cases first take them.
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

fn write_notes(out: &mut String, plan: &Plan) -> fmt::Result {
    let notes = notes(plan);
    if !notes.is_empty() {
        writeln!(out)?;
    }
    notes.iter().try_for_each(|note| writeln!(out, "note: {note}"))
}

/// Settings that are allowed and most likely not meant, in any case, a line each; of very many the first.
pub fn notes(plan: &Plan) -> Vec<String> {
    let mut notes: Vec<(String, usize)> = Vec::new();
    let mut places = BTreeMap::new();
    for note in plan.cases.iter().flat_map(notes_of) {
        let place = *places.entry(note).or_insert_with_key(|note| {
            notes.push((note.clone(), 0));
            notes.len() - 1
        });
        notes[place].1 += 1;
    }
    let more = notes.len().saturating_sub(MAX_LISTED);
    let told = |(note, cases): (String, usize)| match plan.cases.len() {
        all if all == cases => note,
        all => format!("{note} (in {cases} of {all} cases)"),
    };
    let shown = notes.into_iter().take(MAX_LISTED).map(told);
    shown.chain((more > 0).then(|| format!("and {more} more"))).collect()
}

/// Each once.
fn notes_of(case: &Case) -> BTreeSet<String> {
    let scenario = &*case.scenario;
    let end = Instant::ZERO + scenario.duration;
    let mut notes: BTreeSet<String> = case.left_out.iter().cloned().collect();
    notes.extend(written_both_ways(scenario));
    let mut starts: BTreeMap<FlowId, Instant> = BTreeMap::new();
    let used: BTreeSet<_> = scenario.flows.iter().filter_map(|flow| flow.group).collect();
    let unused = scenario.groups.iter().enumerate().filter(|(number, _)| !used.contains(number));
    notes.extend(unused.map(|(_, group)| format!("no flow goes to group {}", group.name)));
    for Event { at, action } in &scenario.events {
        let of = match action {
            Action::Join { group, .. } | Action::Leave { group, .. } => {
                Some(("group", &scenario.groups[*group].name))
            }
            Action::Service { service, .. } => Some(("service", &scenario.services[*service].name)),
            Action::Start(_) | Action::Stop(_) | Action::Link { .. } => None,
        };
        if let Some((what, name)) = of.filter(|_| *at >= end) {
            notes.insert(format!(
                "the event of {what} {name} at {at} is not before the end of the run at {end}"
            ));
        }
        let Action::Start(flow) = action else { continue };
        // Events are in the order of time, so the first is the earliest.
        starts.entry(*flow).or_insert(*at);
        if *at >= end {
            let name = &scenario.flows[*flow].name;
            notes.insert(format!(
                "the start event of flow {name} at {at} is not before the end of the run at {end}"
            ));
        }
    }
    for (number, flow) in scenario.flows.iter().enumerate() {
        let name = &flow.name;
        let span = flow.app.span();
        let event = starts.get(&number);
        match span.start {
            None if event.is_none() => {
                notes.insert(format!(
                    "flow {name} waits for a start event, and there is none: it sends nothing"
                ));
            }
            // An earlier event starts it all the same.
            Some(start) if start >= end && event.is_none_or(|at| *at >= end) => {
                notes.insert(format!(
                    "flow {name} starts at {start}, not before the end of the run at {end}: it sends nothing"
                ));
            }
            Some(_) | None => {}
        }
        if let Some(stop) = span.stop.filter(|stop| *stop > end) {
            notes.insert(format!("flow {name} stops at {stop}, after the end of the run at {end}"));
        }
    }
    notes
}

/// Two links between one pair of nodes, the second from the other end, which most likely are meant to be the two
/// directions of one link.
fn written_both_ways(scenario: &Scenario) -> Option<String> {
    let mut first: BTreeMap<[NodeId; 2], &str> = BTreeMap::new();
    let mut pairs = Vec::new();
    for link in &scenario.links {
        let (LinkModel::PointToPoint(_), &[from, to]) = (&link.model, link.ends.as_slice()) else { continue };
        match first.get(&[to, from]) {
            Some(other) => pairs.push((*other, link.name.as_str())),
            None => _ = first.entry([from, to]).or_insert(&link.name),
        }
    }
    let (one, other) = pairs.first()?;
    let more = match pairs.len() - 1 {
        0 => String::new(),
        more => format!(" (and {})", counted(more, "other pair")),
    };
    Some(format!(
        "links {one} and {other}{more} join the same two nodes, one written each way: they are two links, and each carries \
         both ways; for one link whose directions differ write `forward` and `backward`"
    ))
}

fn names_of(scenario: &Scenario, nodes: &[NodeId]) -> String {
    let names: Vec<_> = nodes.iter().map(|node| scenario.nodes[*node].name.as_str()).collect();
    shortened(&names)
}

/// The names, or of many the first few and the last.
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

/// A share as a percentage of three digits.
struct Percent(f64);

impl Display for Percent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let percent = format!("{:.3}", self.0 * 100.0);
        write!(f, "{} %", percent.trim_end_matches('0').trim_end_matches('.'))
    }
}
