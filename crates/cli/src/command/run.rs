//! `hopcast run`: a scenario in, a table and a run directory out.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use hopcast_report::{Shard, Topology, TopologyLink, TopologyNode, write_run_directory};
use hopcast_twin::scenario::{self, model, model::Plan};
use hopcast_twin::{Identities, Jobs, Journal, Monitor, Part, run_jobs};

use crate::manifest::{self, VERSION};
use crate::output::{self, RunDirectory};
use crate::{Failure, RunOptions, interrupt, progress};

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
    let part = options.shard.unwrap_or(Part::ALL);
    let runs = part.runs(plan.cases.len() as u64 * plan.repeats);
    check(&plan, runs, options)?;
    let name = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or("run");
    let dir = RunDirectory::take(options.out.as_deref(), name)?;

    let monitor = Arc::new(Monitor::default());
    interrupt::cancels(&monitor);
    let threads = options.threads.or_else(|| std::thread::available_parallelism().ok());
    let threads = threads.map_or(1, |threads| threads.get());
    let captured = |case: &model::Case| case.scenario.capture != model::Capture::Nothing;
    let captures = if plan.cases.iter().any(captured) { Some(dir.captures()?) } else { None };
    // What is captured is run: a capture is no part of what the journal keeps.
    let journal = match captures {
        Some(_) => None,
        None => Some(open_journal(&dir, &plan, options.fresh)?),
    };
    #[allow(clippy::disallowed_methods)] // a person waits: the manifest says how long
    let began = Instant::now();
    let jobs = Jobs { threads, part, captures: captures.as_deref(), journal: journal.as_ref() };
    let result = progress::shown_while(&monitor, || run_jobs(&plan, &jobs, &monitor));
    let document = match result {
        Ok(document) if document.runs.is_empty() && document.interrupted => {
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
    if let Some(journal) = journal {
        close_journal(journal, &plan, document.interrupted)?;
    }

    if captures.is_none() {
        dir.drop_captures()?;
    }
    let shard = options.shard.map(|part| {
        let sweep = Identities::new(VERSION).sweep(&plan).to_string();
        Shard { number: part.numbers().0, of: part.numbers().1, sweep }
    });
    let manifest = manifest::manifest(file, &text, &plan, shard.as_ref(), began.elapsed());
    write_run_directory(dir.path(), &document, &topology(&plan), manifest).map_err(Failure::run)?;
    output::print(&document, options.format, &options.choice)?;
    eprintln!("report: {}", dir.path().join("report.html").display());
    if document.interrupted {
        let message = format!(
            "interrupted: {} of {runs} runs are finished and written; to go on:\n  {}",
            document.runs.len(),
            manifest::resuming(dir.path())
        );
        return Err(Failure { message, code: 130 });
    }
    if let Some(Shard { number, of, .. }) = shard {
        eprintln!("this is shard {number} of {of}; when all are there: hopcast report DIR DIR ... --out DIR");
    }
    Ok(())
}

/// What would only be found wrong once all is run.
fn check(plan: &Plan, runs: u64, options: &RunOptions) -> Result<(), Failure> {
    if runs == 0 {
        let all = plan.cases.len() as u64 * plan.repeats;
        return Err(Failure::input(format!("--shard: there are {all} runs, this shard has none of them")));
    }
    let flows = plan.cases.first().map(|case| &case.scenario.flows);
    let flows: Vec<&str> = flows.into_iter().flatten().map(|flow| flow.name.as_str()).collect();
    output::check(options.format, &options.choice, runs as usize, &flows)
}

/// The runs that an earlier call has finished here, or none if all are to be run again.
fn open_journal(dir: &RunDirectory, plan: &Plan, fresh: bool) -> Result<Journal, Failure> {
    let path = dir.journal();
    if fresh && path.exists() {
        fs::remove_file(&path).map_err(|error| Failure::run(format!("{}: {error}", path.display())))?;
    }
    let journal = Journal::open(&path, VERSION).map_err(Failure::run)?;
    let (held, all) = (journal.holds(plan), plan.cases.len() as u64 * plan.repeats);
    if held > 0 {
        eprintln!("{held} of {all} runs are finished already (--fresh runs them again)");
    }
    Ok(journal)
}

fn close_journal(journal: Journal, plan: &Plan, interrupted: bool) -> Result<(), Failure> {
    match journal.damaged() {
        0 => {}
        1 => eprintln!("{}: a damaged line is ignored", output::JOURNAL),
        lines => eprintln!("{}: {lines} damaged lines are ignored", output::JOURNAL),
    }
    if interrupted { Ok(()) } else { journal.tidy(plan).map_err(Failure::run) }
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
