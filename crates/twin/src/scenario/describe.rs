//! A plan in a person's words, for `hopcast check`.

use std::collections::{BTreeMap, VecDeque};
use std::fmt::{self, Display, Write};

use hopcast_core::{Instant, Rate};
use hopcast_link::{Change, Config, Direction, Duplex, Jitter, Loss, Queue, QueueLimit};

use super::capacity::{Capacities, mean_loss};
use super::model::{Action, App, Capture, Case, Event, Flow, LinkModel, NodeId, Plan, Scenario, Span};

/// More nodes, links, events or flows than this are summed up.
const MOST_LISTED: usize = 40;

/// The resolved network of a plan: nodes, links with all their values, events, flows with their paths, and the cases.
///
/// What is swept is shown as it is in the first case.
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
    write_events(out, scenario)?;
    write_flows(out, scenario)?;
    write_sweep(out, &plan.cases)?;
    if !plan.published.is_empty() {
        writeln!(out, "\nPublished figures: {}", counted(plan.published.len(), "row"))?;
    }
    Ok(())
}

fn write_nodes(out: &mut String, scenario: &Scenario) -> fmt::Result {
    let names: Vec<_> = scenario.nodes.iter().map(|node| node.name.as_str()).collect();
    writeln!(out, "\nNodes: {}", names.len())?;
    writeln!(out, "  {}", shortened(&names))?;
    for (role, nodes) in &scenario.roles {
        writeln!(out, "  {role}: {}", names_of(scenario, nodes))?;
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
            LinkModel::Medium(direction) => {
                format!("a medium of {} stations: {}", link.ends.len(), Words(direction))
            }
        };
        let place = *places.entry(model).or_insert_with_key(|model| {
            kinds.push((model.clone(), Vec::new()));
            kinds.len() - 1
        });
        kinds[place].1.push(&link.name);
    }
    let more = kinds.len().saturating_sub(MOST_LISTED);
    for (model, names) in kinds.iter().take(MOST_LISTED) {
        writeln!(out, "  {}", shortened(names))?;
        for line in model.lines() {
            writeln!(out, "    {line}")?;
        }
    }
    if more > 0 { writeln!(out, "  and {more} more kinds of links") } else { Ok(()) }
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
                let from = from.map(|end| format!(" from {}", scenario.nodes[link.ends[end]].name));
                (format!("{}{}", changed(change), from.unwrap_or_default()), Some(link.name.as_str()))
            }
            Action::Start(flow) => (format!("flow {} starts", scenario.flows[*flow].name), None),
            Action::Stop(flow) => (format!("flow {} stops", scenario.flows[*flow].name), None),
        };
        let same = lines.iter_mut().rev().take_while(|line| line.0 == *at).find(|line| line.1 == what);
        match same {
            Some(line) => line.2.extend(link),
            None => lines.push((*at, what, link.into_iter().collect())),
        }
    }
    writeln!(out, "\nEvents: {}", lines.len())?;
    for (at, what, links) in lines.iter().take(MOST_LISTED) {
        let links = match links.len() {
            0 => String::new(),
            all if all == scenario.links.len() => " on all links".to_owned(),
            _ => format!(" on {}", shortened(links)),
        };
        let late = if *at > Instant::ZERO + scenario.duration { " (after the end)" } else { "" };
        writeln!(out, "  {at}: {what}{links}{late}")?;
    }
    match lines.len().saturating_sub(MOST_LISTED) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}

fn changed(change: &Change) -> String {
    match change {
        Change::Rate(new) => rate(*new),
        Change::Delay(delay) => format!("delay {delay}"),
        Change::Jitter(new) => format!("jitter {}", jitter(*new)),
        Change::Loss(new) => format!("loss {}", loss(new)),
        Change::Corrupt(share) => format!("{share} corrupted"),
        Change::Duplicate(share) => format!("{share} duplicated"),
        Change::Down => "down".to_owned(),
        Change::Up => "up".to_owned(),
    }
}

fn write_flows(out: &mut String, scenario: &Scenario) -> fmt::Result {
    writeln!(out, "\nFlows: {}", scenario.flows.len())?;
    let capacities = Capacities::of(scenario);
    let hops = Hops::of(scenario);
    for Flow { name, from, to, protocol, app: sent, .. } in scenario.flows.iter().take(MOST_LISTED) {
        let cut = match capacities.between(*from, *to) {
            None => "unbounded".to_owned(),
            Some(bits) => Rate::from_bits_per_sec(bits.round() as u64).to_string(),
        };
        let hops = hops.between(*from, *to).map_or_else(|| "no path".to_owned(), |hops| counted(hops, "hop"));
        let (from, to) = (&scenario.nodes[*from].name, &scenario.nodes[*to].name);
        writeln!(out, "  {name}: {from} to {to} over {protocol}: {}", app(sent))?;
        writeln!(out, "    {hops}, min-cut {cut}")?;
    }
    match scenario.flows.len().saturating_sub(MOST_LISTED) {
        0 => Ok(()),
        more => writeln!(out, "  and {more} more"),
    }
}

fn app(app: &App) -> String {
    match app {
        App::Cbr { rate, size, span } => {
            let rate = rate.map_or_else(|| "saturating".to_owned(), |rate| rate.to_string());
            format!("datagrams of {size}, {rate}, {}", when(span))
        }
        App::Bulk { bytes: Some(bytes), span } => format!("{bytes} in bulk, {}", when(span)),
        App::Bulk { bytes: None, span } => format!("as much as goes, {}", when(span)),
        App::File { contents, span } => format!("a file of {} bytes, {}", contents.len(), when(span)),
        App::Messages { size, every, span } => format!("messages of {size} every {every}, {}", when(span)),
    }
}

fn when(span: &Span) -> String {
    let start = span.start.map_or_else(|| "from its start event".to_owned(), |start| format!("from {start}"));
    match span.stop {
        None => start,
        Some(stop) => format!("{start} to {stop}"),
    }
}

/// Each swept path with the values it takes, in the order in which the cases first take them.
fn write_sweep(out: &mut String, cases: &[Case]) -> fmt::Result {
    let mut paths: Vec<(&str, Vec<&str>)> = Vec::new();
    for case in cases {
        for (place, (path, value)) in case.parameters.iter().enumerate() {
            if paths.len() <= place {
                paths.push((path, Vec::new()));
            }
            let values = &mut paths[place].1;
            // Values past what is shown are not looked for, or a long sweep would be quadratic.
            if values.len() <= MOST_LISTED && !values.contains(&value.as_str()) {
                values.push(value);
            }
        }
    }
    if !paths.is_empty() {
        writeln!(out, "\nSweep: {}", counted(cases.len(), "case"))?;
    }
    for (path, values) in paths {
        writeln!(out, "  {path}: {}", shortened(&values))?;
    }
    Ok(())
}

/// The least number of links between nodes, all links counted.
struct Hops<'a> {
    scenario: &'a Scenario,
    links: Vec<Vec<usize>>,
}

impl<'a> Hops<'a> {
    fn of(scenario: &'a Scenario) -> Self {
        let mut links = vec![Vec::new(); scenario.nodes.len()];
        for (number, link) in scenario.links.iter().enumerate() {
            for end in &link.ends {
                links[*end].push(number);
            }
        }
        Self { scenario, links }
    }

    fn between(&self, from: NodeId, to: NodeId) -> Option<usize> {
        let mut hops = vec![None; self.links.len()];
        hops[from] = Some(0);
        let mut next = VecDeque::from([(from, 0)]);
        while let Some((node, distance)) = next.pop_front() {
            if node == to {
                return Some(distance);
            }
            for end in self.links[node].iter().flat_map(|link| &self.scenario.links[*link].ends) {
                if hops[*end].is_none() {
                    hops[*end] = Some(distance + 1);
                    next.push_back((*end, distance + 1));
                }
            }
        }
        None
    }
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
