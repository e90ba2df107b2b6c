//! `hopcast trace`: what became of packets, in the log of a run or in captures.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use hopcast_report::{Topology, TopologyLink, TopologyNode, read_run_directory, route_picture};
use hopcast_trace::capture::{is_capture, log_of_captures};
use hopcast_trace::log::{EXTENSION, Place};
use hopcast_trace::verdict::verdicts;
use hopcast_trace::view;
use hopcast_trace::{KnownNetwork, Log, Query, follow};
use hopcast_twin::scenario::Overrides;
use hopcast_twin::world::known_network;

use crate::failure::Failure;
use crate::output;

/// Maximum size of a log that is read, in bytes. Chosen: what a computer of today has memory for, as it is read whole,
/// and takes some three times as much.
const MAX_LOG: u64 = 4 << 30;

#[derive(clap::Args)]
pub(crate) struct TraceOptions {
    /// Run directories, logs or captures, and then the query: `arp between a and b`, `icmp from a to b`,
    /// `udp port 5000 to b`, `flow NAME`, `vlan 7`, `group NAME`, `at a:eth0`, `packet 17`, `frame at 1.5 s`. Without a
    /// query: all drops by place and reason
    #[arg(required = true, value_name = "FILE... [QUERY]")]
    words: Vec<String>,
    /// Which run of a directory with several: its place in summary.json, from 0
    #[arg(long, value_name = "N")]
    run: Option<usize>,
    /// The scenario in whose network captures were taken: queries can name its nodes, groups and flows
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
    /// Write a drawing of the network with the way that the packets took to this file
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Number of packets whose steps are printed
    #[arg(long, value_name = "N", default_value_t = 3)]
    packets: usize,
}

pub(crate) fn trace(options: &TraceOptions) -> Result<(), Failure> {
    let (files, query) = files_and_query(&options.words)?;
    let log = read(&files, options)?;
    if query.is_empty() {
        let summary = view::summary(&log);
        return output::write(match options.json {
            true => output::json(&view::summary_json(&summary))?,
            false => view::summary_text(&summary).into_bytes(),
        });
    }
    let query = Query::parse(&query, &log).map_err(Failure::input)?;
    let story = follow(&log, &query);
    if let Some(svg) = &options.svg {
        let caption = verdicts(&story).first().map_or("no packet".to_owned(), ToString::to_string);
        let picture = route_picture(&topology(&log, &files), &view::marks(&story), &caption);
        fs::write(svg, picture).map_err(|error| Failure::run(format!("{}: {error}", svg.display())))?;
    }
    output::write(match options.json {
        true => output::json(&view::story_json(&story, options.packets))?,
        false => view::story_text(&story, options.packets).into_bytes(),
    })
}

/// The network of a log: that of its run directory, which has positions, or else that of its interfaces.
fn topology(log: &Log, files: &[PathBuf]) -> Topology {
    if let Some(Ok(run)) = files.first().map(|dir| read_run_directory(dir)) {
        return run.topology;
    }
    let mut topology = Topology::default();
    let mut nodes: BTreeMap<&str, usize> = BTreeMap::new();
    let mut links: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for place in log.places() {
        let Place::Interface { node, link, .. } = place else { continue };
        let index = *nodes.entry(node).or_insert_with(|| {
            topology.nodes.push(TopologyNode { name: node.clone(), position: None });
            topology.nodes.len() - 1
        });
        links.entry(link).or_default().push(index);
    }
    let link =
        |(name, ends): (&str, Vec<usize>)| TopologyLink { name: name.to_owned(), ends, rate_mbps: None };
    topology.links = links.into_iter().filter(|(name, _)| !name.is_empty()).map(link).collect();
    topology
}

/// Divides the words of the command line: the first ones are files, the rest is the query.
fn files_and_query(words: &[String]) -> Result<(Vec<PathBuf>, String), Failure> {
    let is_file = |word: &&String| Path::new(word.as_str()).exists();
    let files = words.iter().take_while(is_file).count().max(1);
    let (files, query) = words.split_at(files);
    let files: Vec<PathBuf> = files.iter().map(PathBuf::from).collect();
    match files.first() {
        Some(first) if !first.exists() => Err(Failure::input(format!(
            "{}: expected a run directory, a log or a capture, found nothing by this name",
            first.display()
        ))),
        Some(_) | None => Ok((files, query.join(" "))),
    }
}

/// Reads one log, or several captures as one.
fn read(files: &[PathBuf], options: &TraceOptions) -> Result<Log, Failure> {
    let mut found = Vec::new();
    for file in files {
        found.push(if file.is_dir() { in_directory(file, options.run)? } else { file.clone() });
    }
    let mut contents = Vec::new();
    for file in &found {
        let failure = |error: std::io::Error| Failure::input(format!("{}: {error}", file.display()));
        let size = fs::metadata(file).map_err(failure)?.len();
        if size > MAX_LOG {
            let message = format!("{}: is larger than the {MAX_LOG} bytes that are read", file.display());
            return Err(Failure::input(message));
        }
        contents.push((file.display().to_string(), fs::read(file).map_err(failure)?));
    }
    let named = |name: &str, error: &dyn std::fmt::Display| Failure::input(format!("{name}: {error}"));
    if contents.iter().all(|(_, bytes)| is_capture(bytes)) {
        let known = options.scenario.as_ref().map(|scenario| network_of(scenario, &found)).transpose()?;
        return log_of_captures(&contents, known.as_ref()).map_err(|error| named(&contents[0].0, &error));
    }
    if let Some(scenario) = &options.scenario {
        let message = format!(
            "--scenario {}: expected captures, as a log has the names of its run",
            scenario.display()
        );
        return Err(Failure::input(message));
    }
    let mut contents = contents.into_iter();
    match (contents.next(), contents.next()) {
        (Some((name, bytes)), None) => Log::read(bytes).map_err(|error| named(&name, &error)),
        (_, other) => {
            let name = other.map_or(String::new(), |(name, _)| name);
            Err(named(&name, &"expected one log, or captures alone: a log has all of its run"))
        }
    }
}

/// The network of the case that the captures of a run are of: of the first one, if they are of no run.
fn network_of(scenario: &Path, captures: &[PathBuf]) -> Result<KnownNetwork, Failure> {
    let plan = hopcast_runner::load(scenario, &Overrides::default()).map_err(Failure::input)?;
    let of_run = |capture: &PathBuf| {
        let name = capture.file_stem()?.to_str()?.strip_prefix("case-")?;
        name.split('-').next()?.parse().ok()
    };
    let case: usize = captures.iter().find_map(of_run).unwrap_or(0);
    let case = plan.cases.get(case).or(plan.cases.first());
    Ok(case.map(|case| known_network(&case.scenario)).unwrap_or_default())
}

/// The log of a run in a run directory, or else its capture.
fn in_directory(dir: &Path, run: Option<usize>) -> Result<PathBuf, Failure> {
    let captures = dir.join("captures");
    let entries = fs::read_dir(&captures).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.sort();
    let ending = |wanted: &'static str| {
        move |file: &&PathBuf| file.extension().is_some_and(|extension| extension == wanted)
    };
    let mut found: Vec<&PathBuf> = files.iter().filter(ending(EXTENSION)).collect();
    if found.is_empty() {
        found = files.iter().filter(ending("pcapng")).collect();
    }
    let dir = dir.display();
    match (&found[..], run) {
        ([], _) => Err(Failure::input(format!(
            "{dir}: has no log and no capture; `hopcast run FILE --record` writes a log"
        ))),
        ([only], None) => Ok((*only).clone()),
        (several, None) => Err(Failure::input(format!(
            "{dir}: has {} runs; choose one with --run 0 to --run {}",
            several.len(),
            several.len() - 1
        ))),
        (several, Some(run)) => several.get(run).map(|file| (*file).clone()).ok_or_else(|| {
            Failure::input(format!("--run {run}: {dir} has {} runs, counted from 0", several.len()))
        }),
    }
}
