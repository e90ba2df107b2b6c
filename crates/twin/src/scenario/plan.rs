//! From a file and the command line to a [`Plan`].

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use hopcast_core::{Duration, Instant};

use super::comparable::Changes;
use super::events::{events, schedule};
use super::files::{self, Contents};
use super::flows::Flows;
use super::groups::Groups;
use super::model::{Capture, Case, Measure, NodeId, Plan, Reporting, Scenario, WorldChoice};
use super::programs::{LiveOnly, execs};
use super::published;
use super::routing;
use super::segments::SegmentMap;
use super::services::Services;
use super::set;
use super::sweep::Sweep;
use super::topology::Topology;
use crate::results::{Parameters, Publication};
use hopcast_config::decode::{self, Fields, entries, one_or_list, some_duration, whole};
use hopcast_config::yaml::{self, Entry, Kind, Node, Span, parse};
use hopcast_config::{Diagnostic, Files};
use hopcast_stack::Variants;

/// The keys of a scenario.
pub(crate) const TOP: [&str; 31] = [
    "title",
    "seed",
    "duration",
    "measure",
    "topology",
    "motion",
    "neighbours",
    "membership",
    "routing",
    "routes",
    "events",
    "services",
    "groups",
    "flows",
    "exec",
    "variants",
    "roles",
    "capture",
    "sweep",
    "repeats",
    "published",
    "reference",
    "axis",
    "measured",
    "expected",
    "source",
    "quick",
    "include",
    "description",
    "world",
    "notes",
];
const WORLDS: [&str; 3] = ["virtual", "live", "both"];
const ROLES: [&str; 4] = ["helper", "peer", "proxy", "relay"];
/// Maximum number of repeats. Chosen: more is most likely a slip.
const MAX_REPEATS: u64 = 100_000;
/// Minimum default step of the time series. Chosen; a shorter one counts single packets, a longer one hides changes.
const MIN_STEP: Duration = Duration::from_millis(10);
/// Maximum number of steps of the time series. Chosen: it bounds memory.
const MAX_STEPS: u64 = 1_000_000;
/// Maximum number of nodes, links, events and flows of all cases together. Chosen: it bounds memory to a few gigabytes.
const MAX_ELEMENTS: usize = 20_000_000;

/// Settings of the command line, which override the file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Overrides {
    /// `--set path=value`, in order: a later one overrides an earlier one.
    pub sets: Vec<String>,
    /// `--seed`.
    pub seed: Option<u64>,
    /// `--repeats`.
    pub repeats: Option<u64>,
    /// `--quick`: whether the file's `quick:` applies. Other settings of the command line override it.
    pub quick: bool,
}

/// Reads the scenario at `path`, with all that it names, from `files`.
///
/// # Errors
/// The first mistake: where it is, and what to write instead.
pub fn load(files: &dyn Files, path: &Path, overrides: &Overrides) -> Result<Plan, Diagnostic> {
    plan(files, files::tree(files, path)?, path, overrides)
}

/// Reads a scenario from `text` as if it were in the file `path`, which is not read; what it names is read from
/// `files`.
///
/// # Errors
/// As [`load`].
pub fn load_text(
    files: &dyn Files,
    path: &Path,
    text: &str,
    overrides: &Overrides,
) -> Result<Plan, Diagnostic> {
    plan(files, files::tree_of_text(files, path, text)?, path, overrides)
}

fn plan(files: &dyn Files, mut root: Node, path: &Path, overrides: &Overrides) -> Result<Plan, Diagnostic> {
    Fields::of(&root, "a scenario", &TOP)?;
    let mut changes = Changes::of(&root);
    apply(&mut root, overrides, &mut changes)?;
    let fields = Fields::of(&root, "a scenario", &TOP)?;
    let title = match fields.get("title") {
        Some(node) => decode::text(node, "title")?.to_owned(),
        None => path.file_stem().map(|stem| stem.to_string_lossy().into_owned()).unwrap_or_default(),
    };
    let repeats = fields.read("repeats", |node, key| whole(node, key, 1..=MAX_REPEATS))?.unwrap_or(1);

    let (comparable, remarks) = changes.remarks(&root);
    let sweep = root.take("sweep");
    let mut tables = published::ORIGINS.into_iter().filter_map(|key| Some((key, root.take(key)?)));
    let (beside, second) = (tables.next(), tables.next());
    if let (Some((first, _)), Some((key, node))) = (&beside, &second) {
        return Err(
            node.error(format!("a scenario has `{first}` figures or `{key}` ones beside ours, not both"))
        );
    }
    let sweep = Sweep::of(sweep.as_ref(), &root)?;
    let mut contents = Contents::new(files);
    let mut cases = Vec::new();
    let mut elements = 0;
    for number in 0..sweep.cases {
        let mut case = root.clone();
        let mut parameters = Vec::new();
        for setting in sweep.case(number) {
            set::assign(&mut case, setting.path, setting.at, setting.value.clone())?;
            parameters.push((setting.path.to_owned(), setting.written()));
        }
        let (scenario, left_out) = scenario(&case, &mut contents)?;
        elements +=
            scenario.nodes.len() + scenario.links.len() + scenario.events.len() + scenario.flows.len();
        elements += scenario.groups.iter().map(|group| group.members.iter().len()).sum::<usize>();
        if elements > MAX_ELEMENTS {
            return Err(root.error(format!(
                "all cases together may have {MAX_ELEMENTS} nodes, links, events and flows; the first {} have more",
                number + 1
            )));
        }
        cases.push(Case { parameters, scenario: Arc::new(scenario), left_out });
    }
    let reference = reference(root.get("reference"), &sweep)?;
    let axis = axis(root.get("axis"), &sweep)?;
    let beside = beside.as_ref().map(|(key, node)| (*key, node));
    let published = published::published(beside, &sweep, &cases, &contents)?;
    let published = if comparable { published } else { Vec::new() };
    let origin = beside.map_or(published::ORIGINS[0], |(key, _)| key);
    let fields = Fields::of(&root, "a scenario", &TOP)?;
    let world = fields.read("world", world)?.unwrap_or_default();
    let notes = notes(fields.get("notes"))?;
    let source = fields.read("source", source)?;
    Ok(Plan { title, repeats, cases, published, origin, source, reference, axis, world, notes, remarks })
}

fn world(node: &Node, key: &str) -> Result<WorldChoice, Diagnostic> {
    let text = decode::text(node, key)?;
    let worlds = [WorldChoice::Virtual, WorldChoice::Live, WorldChoice::Both];
    let place = WORLDS.iter().position(|word| *word == text);
    place.map(|place| worlds[place]).ok_or_else(|| {
        let hint = decode::did_you_mean(text, WORLDS);
        node.error(format!("`{key}`: expected one of {}, found `{text}`{hint}", decode::listed(&WORLDS)))
    })
}

/// Swept paths, each with the value of the runs against which savings are told.
fn reference(node: Option<&Node>, sweep: &Sweep<'_>) -> Result<Parameters, Diagnostic> {
    let Some(node) = node else { return Ok(Parameters::new()) };
    let mut reference = Parameters::new();
    for entry in entries(node, "`reference`")? {
        let paths = sweep.paths();
        let Some((path, values)) = paths.iter().find(|(path, _)| *path == entry.key) else {
            return Err(not_swept("reference", &entry.key, &entry.key_span, sweep));
        };
        // What `--set` leaves out of a sweep may be its reference: then there are no savings to tell.
        let value = published::as_swept(&entry.value.written(), values);
        reference.insert((*path).to_owned(), value.into());
    }
    Ok(reference)
}

/// The swept path along which plots go, if the file names one.
fn axis(node: Option<&Node>, sweep: &Sweep<'_>) -> Result<Option<String>, Diagnostic> {
    let Some(node) = node else { return Ok(None) };
    let found = decode::text(node, "axis")?;
    let is_swept = sweep.paths().iter().any(|(path, _)| *path == found);
    if is_swept { Ok(Some(found.to_owned())) } else { Err(not_swept("axis", found, &node.span, sweep)) }
}

fn not_swept(key: &str, path: &str, place: &Span, sweep: &Sweep<'_>) -> Diagnostic {
    let paths: Vec<_> = sweep.paths().iter().map(|(path, _)| *path).collect();
    let hint = decode::did_you_mean(path, paths.iter().copied());
    let all = if paths.is_empty() { "nothing".to_owned() } else { decode::listed(&paths) };
    place.error(format!("`{key}`: `{path}` is not swept{hint} (swept here: {all})"))
}

/// The publication whose experiment this repeats.
fn source(node: &Node, _: &str) -> Result<Publication, Diagnostic> {
    let fields = Fields::of(node, "`source`", &["authors", "title", "year", "section", "venue", "url"])?;
    let text = |node: &Node, key: &str| decode::text(node, key).map(str::to_owned);
    let authors = one_or_list(fields.need("authors", "authors: [A. Author, B. Author]")?);
    Ok(Publication {
        authors: authors.iter().map(|node| text(node, "authors")).collect::<Result<_, _>>()?,
        title: text(fields.need("title", "title: What was published")?, "title")?,
        year: whole(fields.need("year", "year: 2024")?, "year", 1900..=2200)? as u16,
        section: fields.read("section", text)?,
        venue: fields.read("venue", text)?,
        url: fields.read("url", text)?,
    })
}

/// Notes on transports, by name.
fn notes(node: Option<&Node>) -> Result<BTreeMap<String, String>, Diagnostic> {
    let Some(node) = node else { return Ok(BTreeMap::new()) };
    let note = |entry: &Entry| Ok((entry.key.clone(), decode::text(&entry.value, &entry.key)?.to_owned()));
    entries(node, "`notes`")?.iter().map(note).collect()
}

/// Applies `quick:`, then the other settings of the command line.
fn apply(root: &mut Node, overrides: &Overrides, changes: &mut Changes) -> Result<(), Diagnostic> {
    if let Some(quick) = root.take("quick") {
        for entry in entries(&quick, "`quick`")? {
            if overrides.quick {
                changes.quick(&entry.key);
                set::override_value(root, &entry.key, &entry.key_span, entry.value.clone())?;
            }
        }
    }
    for text in &overrides.sets {
        let source = command_line(format!("--set {text}"));
        let span = Span::start(&source);
        let Some((path, value)) = text.split_once('=') else {
            return Err(span.error("expected `path=value`, for example `flows.bulk.over=udp`"));
        };
        let value = match value.trim() {
            "" => Node { span: span.clone(), kind: Kind::Scalar(String::new()) },
            value => parse(value, &source)?,
        };
        changes.set(path.trim());
        set::override_value(root, path.trim(), &span, value)?;
    }
    for (key, value) in [("seed", overrides.seed), ("repeats", overrides.repeats)] {
        if let Some(value) = value {
            let span = Span::start(&command_line(format!("--{key} {value}")));
            let node = Node { span: span.clone(), kind: Kind::Scalar(value.to_string()) };
            set::override_value(root, key, &span, node)?;
        }
    }
    Ok(())
}

/// The source of values of the command line, whose relative paths are relative to the current directory.
fn command_line(name: String) -> Arc<yaml::Source> {
    Arc::new(yaml::Source { name, dir: PathBuf::new(), lines: false })
}

/// Decodes one case, with the parts of its network's file that are left out.
fn scenario(root: &Node, contents: &mut Contents) -> Result<(Scenario, Vec<String>), Diagnostic> {
    let fields = Fields::of(root, "a scenario", &TOP)?;
    let seed = fields.read("seed", |node, key| whole(node, key, 0..=u64::MAX))?.unwrap_or(1);
    let duration = some_duration(fields.need("duration", "duration: 60s")?, "duration")?;
    let measure = measure(fields.get("measure"), duration)?;
    let topology = fields.need("topology", "topology: { chain: { hops: 6 } }")?;
    let topology = Topology::of(topology, fields.get("motion"), contents)?;
    let neighbours = fields.read("neighbours", routing::neighbours)?.unwrap_or_default();
    let membership = fields.read("membership", routing::membership)?.unwrap_or_default();
    let routing = fields.read("routing", routing::routing)?.unwrap_or_default();
    let variants = Variants::of(fields.get("variants"))?;
    let flows = fields.need("flows", "flows: [{ from: n0, to: n6, over: udp, app: bulk }]")?;
    let services = Services::of(fields.get("services"), fields.get("events"), &topology, duration)?;
    let segment_map = SegmentMap::of(&topology, &services.services, root)?;
    let routes = routing::routes(fields.get("routes"), &topology, &segment_map)?;
    let mut groups = {
        let (groups, events) = (fields.get("groups"), fields.get("events"));
        Groups::of(groups, events, &topology, &variants, (duration, seed))?
    };
    let roles = roles(fields.get("roles"), &topology)?;
    let flows = Flows::of(flows, (&topology, &segment_map, &roles, &variants), &mut groups, contents)?;
    let Groups { groups, events: mut acts, .. } = groups;
    if let Some(group) = groups.iter().find(|group| group.delivery.settings().is_left_to_services())
        && membership == Reporting::Plan
    {
        let place =
            ["membership", "groups", "flows"].into_iter().find_map(|key| fields.get(key)).unwrap_or(root);
        return Err(place.error(format!(
            "`membership`: expected `report`: routers learn the members of `{}` by IGMP and MLD alone",
            group.delivery
        )));
    }
    acts.extend(services.events);
    let services = services.services;
    let events = events(fields.get("events"), (&topology, &roles), &flows, acts, (duration, contents))?;
    let schedule = schedule(fields.get("events"), duration);
    let capture = match fields.get("capture") {
        None => Capture::Nothing,
        Some(Node { kind: Kind::Scalar(text), .. }) if text == "none" => Capture::Nothing,
        Some(Node { kind: Kind::Scalar(text), .. }) if text == "all" => {
            Capture::Nodes((0..topology.nodes.len()).collect())
        }
        Some(node) => Capture::Nodes(topology.node_list(node, "capture")?),
    };
    let (execs, live) = execs(fields.get("exec"), &topology)?;
    let live_only = LiveOnly::first(vec![flows.live, live]);
    let Topology { nodes, links, fleets, notes, .. } = topology;
    let flows = flows.flows;
    let scenario = Scenario {
        seed,
        duration,
        measure,
        nodes,
        links,
        fleets,
        neighbours,
        membership,
        routing,
        routes,
        events,
        schedule,
        services,
        groups,
        flows,
        roles,
        capture,
        execs,
        live_only,
    };
    Ok((scenario, notes))
}

fn measure(node: Option<&Node>, duration: Duration) -> Result<Measure, Diagnostic> {
    let end = Instant::ZERO + duration;
    let mut measure = Measure { from: Instant::ZERO, to: end, interval: usual_step(duration, 100) };
    let Some(node) = node else { return Ok(measure) };
    let fields = Fields::of(node, "`measure`", &["from", "to", "interval"])?;
    let time = |node: &Node, key: &str| Ok(Instant::ZERO + decode::duration(node, key)?);
    measure.to = fields.read("to", time)?.unwrap_or(measure.to);
    measure.from = fields.read("from", time)?.unwrap_or(measure.from);
    measure.interval = fields.read("interval", some_duration)?.unwrap_or(measure.interval);
    if let (Some(node), true) = (fields.get("to"), measure.to > end) {
        return Err(
            node.error(format!("`to`: expected at most the duration {duration}, found {}", node.found()))
        );
    }
    if let (Some(node), true) = (fields.get("from").or(fields.get("to")), measure.from >= measure.to) {
        return Err(
            node.error(format!("`measure`: the window from {} to {} is empty", measure.from, measure.to))
        );
    }
    if let (Some(node), true) =
        (fields.get("interval"), duration.as_nanos() / measure.interval.as_nanos() > MAX_STEPS)
    {
        return Err(node.error(format!("`interval`: a run has at most {MAX_STEPS} steps, this makes more")));
    }
    Ok(measure)
}

/// The smallest of 10, 20, 50, 100 ms and so on by which a time has at most so many parts.
pub(crate) fn usual_step(duration: Duration, parts: u64) -> Duration {
    let wanted = duration.as_nanos().div_ceil(parts).max(MIN_STEP.as_nanos());
    let mut decade = MIN_STEP.as_nanos();
    loop {
        for step in [decade, 2 * decade, 5 * decade] {
            if step >= wanted {
                return Duration::from_nanos(step);
            }
        }
        decade = decade.saturating_mul(10);
    }
}

fn roles(node: Option<&Node>, topology: &Topology) -> Result<BTreeMap<String, Vec<NodeId>>, Diagnostic> {
    let Some(node) = node else { return Ok(BTreeMap::new()) };
    let fields = Fields::of(node, "`roles`", &ROLES)?;
    let role = |role: &str| {
        Ok(fields
            .read(role, |node, key| topology.node_list(node, key))?
            .map(|nodes| (role.to_owned(), nodes)))
    };
    ROLES.iter().filter_map(|name| role(name).transpose()).collect()
}
