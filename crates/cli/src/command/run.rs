//! `hopcast run`: a scenario in, a table and a run directory out.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use hopcast_report::{Topology, TopologyLink, TopologyNode, write_run_directory};
use hopcast_twin::scenario::{self, model, model::Plan};
use hopcast_twin::{Monitor, run as run_plan};

use crate::output::{self, RunDirectory};
use crate::{Failure, RunOptions, interrupt, manifest, progress};

pub(crate) fn run(file: &Path, options: &RunOptions) -> Result<(), Failure> {
    let mut overrides = options.overrides.resolve();
    if !options.capture.is_empty() {
        let nodes = match &options.capture[..] {
            [all] if all == "all" => "all".to_owned(),
            nodes => format!("[{}]", nodes.join(", ")),
        };
        overrides.sets.push(format!("capture={nodes}"));
    }
    let plan = scenario::load(file, &overrides).map_err(Failure::input)?;
    let text = fs::read(file).map_err(|error| Failure::input(format!("{}: {error}", file.display())))?;
    let name = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or("run");
    let dir = RunDirectory::take(options.out.as_deref(), name)?;

    let monitor = Arc::new(Monitor::default());
    interrupt::cancels(&monitor);
    let threads = options.threads.or_else(|| std::thread::available_parallelism().ok());
    let threads = threads.map_or(1, |threads| threads.get());
    let captured = |case: &model::Case| case.scenario.capture != model::Capture::Nothing;
    let captures = if plan.cases.iter().any(captured) { Some(dir.captures()?) } else { None };
    #[allow(clippy::disallowed_methods)] // a person waits: the manifest says how long
    let began = Instant::now();
    let result = progress::shown_while(&monitor, || run_plan(&plan, threads, captures.as_deref(), &monitor));
    let document = match result {
        Ok(document) if document.runs.is_empty() => {
            dir.give_up();
            let message = "interrupted: no run was finished, nothing is written".to_owned();
            return Err(Failure { message, code: 130 });
        }
        Ok(document) => document,
        Err(error) => {
            dir.give_up();
            return Err(Failure::run(error));
        }
    };

    if captures.is_none() {
        dir.drop_captures()?;
    }
    let seed = plan.cases.first().map_or(0, |case| case.scenario.seed);
    let about = (plan.cases.len(), plan.repeats, seed);
    let manifest = manifest::manifest(&file.display().to_string(), &text, about, began.elapsed());
    write_run_directory(dir.path(), &document, &topology(&plan), manifest).map_err(Failure::run)?;
    output::print(&document, options.format)?;
    eprintln!("report: {}", dir.path().join("report.html").display());
    if document.interrupted {
        let wanted = plan.cases.len() as u64 * plan.repeats;
        let message =
            format!("interrupted: {} of {wanted} runs are finished and written", document.runs.len());
        return Err(Failure { message, code: 130 });
    }
    Ok(())
}

/// The topology as the report draws it: that of the first case.
fn topology(plan: &Plan) -> Topology {
    let Some(case) = plan.cases.first() else { return Topology::default() };
    let node = |node: &model::Node| TopologyNode { name: node.name.clone(), position: node.position };
    let link = |link: &model::Link| {
        let rate = link.direction(0).rate;
        let rate_mbps = rate.map(|rate| rate.as_mbit());
        TopologyLink { name: link.name.clone(), ends: link.ends.clone(), rate_mbps }
    };
    let scenario = &case.scenario;
    Topology {
        nodes: scenario.nodes.iter().map(node).collect(),
        links: scenario.links.iter().map(link).collect(),
    }
}
