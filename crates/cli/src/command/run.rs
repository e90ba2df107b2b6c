//! `hopcast run`: a scenario in, a table and a run directory out.

use std::ffi::OsString;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use hopcast_live::privileges::{self, Capable};
use hopcast_live::run::{Kernel, check as check_live};
use hopcast_report::{Shard, Topology, TopologyLink, TopologyNode, write_run_directory};
use hopcast_runner::{Executor, Jobs, Journal, Part, VirtualTime, run_jobs_on};
use hopcast_twin::results::Document;
use hopcast_twin::scenario;
use hopcast_twin::scenario::model::{self, Plan, WorldChoice};
use hopcast_twin::{Identities, Monitor};

use crate::directory::{JOURNAL, OtherResults, Owner, RunDirectory, VIRTUAL};
use crate::failure::Failure;
use crate::manifest::{self, VERSION};
use crate::options::RunOptions;
use crate::output;
use crate::{interrupt, progress};

pub(crate) fn run(file: &Path, options: &RunOptions) -> Result<(), Failure> {
    let mut overrides = options.overrides.resolve();
    if !options.capture.is_empty() {
        let nodes = match &options.capture[..] {
            [all] if all == "all" => "all".to_owned(),
            nodes => format!("[{}]", nodes.join(", ")),
        };
        overrides.sets.push(format!("capture={nodes}"));
    }
    let plan = hopcast_runner::load(file, &overrides).map_err(Failure::input)?;
    let text = hopcast_runner::read_scenario(file)
        .map_err(|why| Failure::input(format!("{}: cannot read this file: {why}", file.display())))?;
    let part = options.shard.unwrap_or(Part::ALL);
    let runs = part.runs(plan.cases.len() as u64 * plan.repeats);
    check(&plan, runs, options)?;
    let name = file.file_stem().and_then(|stem| stem.to_str()).unwrap_or("run");
    let world = if options.live { WorldChoice::Live } else { plan.world };
    if world == WorldChoice::Virtual {
        // Before anything is written.
        let needs = plan.cases.iter().find_map(|case| scenario::needs_live(&case.scenario));
        needs.map_or(Ok(()), |why| Err(Failure::input(why)))?;
    } else {
        let checked = plan.cases.iter().try_for_each(|case| check_live(&case.scenario));
        checked.map_err(Failure::input)?;
        become_capable()?;
    }
    if world == WorldChoice::Both && options.shard.is_some() {
        return Err(Failure::input(
            "--shard: a scenario in both worlds is run whole; with --live it can be run in parts",
        ));
    }
    let owner = Owner::new(file, &plan.title);
    let others = if options.fresh { OtherResults::Replace } else { OtherResults::Keep };
    let dir = RunDirectory::take(options.out.as_deref(), name, &owner, others)?;
    for note in scenario::notes(&plan) {
        eprintln!("note: {note}");
    }

    let monitor = Arc::new(Monitor::default());
    let jobs = Execution { file, owner, overrides: &overrides, options, part, monitor: &monitor };
    match world {
        WorldChoice::Virtual => interrupt::cancel_on_ctrl_c(&monitor),
        WorldChoice::Live | WorldChoice::Both => interrupt::cancel_live_on_ctrl_c(&monitor),
    }
    #[allow(clippy::disallowed_methods)] // a person waits: the manifest says how long
    let began = Instant::now();
    let result = match world {
        WorldChoice::Virtual => jobs.run(&plan, &dir, false),
        WorldChoice::Live => jobs.run(&plan, &dir, true),
        WorldChoice::Both => jobs.both(&plan, &dir, &text),
    };
    let document = match result {
        Ok(document) if document.runs.is_empty() && document.interrupted => {
            let message = match dir.give_up() {
                Some(kept) => format!("interrupted: {kept}"),
                None => "interrupted: no run was finished, nothing is written".to_owned(),
            };
            return Err(Failure { message, code: 130 });
        }
        Ok(document) => document,
        Err(Failure { message, code }) => {
            let kept = dir.give_up().map(|kept| format!("\n{kept}")).unwrap_or_default();
            return Err(Failure { message: message + &kept, code });
        }
    };
    let shard = options.shard.map(|part| {
        let sweep = Identities::new(version(world != WorldChoice::Virtual)).sweep(&plan).to_string();
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
    programs_went_well(&document)
}

/// An error if programs of live runs failed: the report is written, but is not what the user wanted.
fn programs_went_well(document: &Document) -> Result<(), Failure> {
    let live = document.runs.iter().filter_map(|run| run.live.as_ref());
    let failed: Vec<_> = live.filter(|live| live.failed_programs > 0).collect();
    match failed.iter().map(|live| live.failed_programs).sum::<u64>() {
        0 => Ok(()),
        1 => Err(Failure::run("a program failed, or did not end as expected: the report says which")),
        many => {
            let runs =
                if failed.len() == 1 { "one run".to_owned() } else { format!("{} runs", failed.len()) };
            Err(Failure::run(format!(
                "{many} programs in {runs} failed, or did not end as expected: the report says which"
            )))
        }
    }
}

/// The common settings of the runs of a scenario, in either world.
struct Execution<'e> {
    file: &'e Path,
    owner: Owner,
    overrides: &'e scenario::Overrides,
    options: &'e RunOptions,
    part: Part,
    monitor: &'e Arc<Monitor>,
}

impl Execution<'_> {
    /// Runs everything in one world, with captures and the journal in the directory.
    fn run(&self, plan: &Plan, dir: &RunDirectory, live: bool) -> Result<Document, Failure> {
        let executor: Box<dyn Executor> = if live {
            Box::new(Kernel { node: node_command(self.file, self.overrides)?, output: dir.path().to_owned() })
        } else {
            Box::new(VirtualTime)
        };
        let threads = self.options.threads.or_else(|| std::thread::available_parallelism().ok());
        // On the kernel, runs take place one at a time.
        let threads = if live { 1 } else { threads.map_or(1, |threads| threads.get()) };
        let record = self.options.record.map(|size| size.get());
        let captured =
            |case: &model::Case| record.is_some() || case.scenario.capture != model::Capture::Nothing;
        let captures = if plan.cases.iter().any(captured) { Some(dir.captures()?) } else { None };
        // Runs with captures or logs are never taken from the journal, which has none.
        let journal = match captures {
            Some(_) => {
                dir.say_what_is_replaced();
                None
            }
            None => {
                let journal = open_journal(&dir.journal(), plan, &version(live), self.options.fresh)?;
                // The journal was deleted, and only the results remain.
                if journal.is_empty() && !self.options.fresh {
                    dir.say_what_is_replaced();
                }
                Some(journal)
            }
        };
        let jobs = Jobs {
            threads,
            part: self.part,
            captures: captures.as_deref(),
            record,
            journal: journal.as_ref(),
        };
        let run = || run_jobs_on(&*executor, plan, &jobs, self.monitor);
        let document = progress::shown_while(self.monitor, run).map_err(Failure::run)?;
        if let Some(journal) = journal {
            close_journal(journal, plan, document.interrupted)?;
        }
        if captures.is_none() {
            dir.drop_captures()?;
        }
        Ok(document)
    }

    /// Runs everything in virtual time, in a directory inside this one, and then live; the document has the live
    /// figures, with the others beside them.
    fn both(&self, plan: &Plan, dir: &RunDirectory, text: &[u8]) -> Result<Document, Failure> {
        let others = if self.options.fresh { OtherResults::Replace } else { OtherResults::Keep };
        let inner = RunDirectory::take(Some(&dir.path().join(VIRTUAL)), VIRTUAL, &self.owner, others)?;
        let cases = plan.cases.iter().filter(|case| scenario::needs_live(&case.scenario).is_none());
        let twin = Plan { cases: cases.cloned().collect(), ..plan.clone() };
        let left_out = plan.cases.iter().find_map(|case| scenario::needs_live(&case.scenario));
        if let Some(why) = left_out {
            eprintln!(
                "{} of {} cases are live only: {why}",
                plan.cases.len() - twin.cases.len(),
                plan.cases.len()
            );
        }
        eprintln!("in virtual time");
        #[allow(clippy::disallowed_methods)] // a person waits: the manifest says how long
        let began = Instant::now();
        let virtual_time = self.run(&twin, &inner, false)?;
        if virtual_time.interrupted {
            return Ok(Document { interrupted: true, ..Document::default() });
        }
        let manifest = manifest::manifest(self.file, text, &twin, None, began.elapsed());
        write_run_directory(inner.path(), &virtual_time, &topology(&twin), manifest).map_err(Failure::run)?;
        eprintln!("live");
        let mut live = self.run(plan, dir, true)?;
        live.compare_with(&virtual_time, "virtual time");
        Ok(live)
    }
}

/// The version of finished runs, which distinguishes live runs from runs in virtual time.
fn version(live: bool) -> String {
    if live { format!("{VERSION}, live") } else { VERSION.to_owned() }
}

/// Obtains the privileges to set up networks; if that needs another process, replaces this one by it.
pub(super) fn become_capable() -> Result<(), Failure> {
    match privileges::become_capable().map_err(Failure::run)? {
        Capable::Already => Ok(()),
        // The command replaces this process, and receives its signals.
        Capable::Through(mut command) => {
            Err(Failure::run(format!("cannot start a user namespace: {}", command.exec())))
        }
    }
}

/// The command that runs one node of the scenario, without the options that name it.
pub(super) fn node_command(file: &Path, overrides: &scenario::Overrides) -> Result<Vec<OsString>, Failure> {
    let program = std::env::current_exe().map_err(|error| Failure::run(format!("this program: {error}")))?;
    let mut words: Vec<OsString> = vec![program.into(), "node".into(), file.into()];
    for set in &overrides.sets {
        words.extend(["--set".into(), set.into()]);
    }
    if let Some(seed) = overrides.seed {
        words.extend(["--seed".into(), seed.to_string().into()]);
    }
    if overrides.quick {
        words.push("--quick".into());
    }
    Ok(words)
}

/// Checks options whose mistakes would show only after the runs.
fn check(plan: &Plan, runs: u64, options: &RunOptions) -> Result<(), Failure> {
    if runs == 0 {
        let all = plan.cases.len() as u64 * plan.repeats;
        return Err(Failure::input(format!("--shard: there are {all} runs, this shard has none of them")));
    }
    let flows = plan.cases.first().map(|case| &case.scenario.flows);
    let flows: Vec<&str> = flows.into_iter().flatten().map(|flow| flow.name.as_str()).collect();
    output::check(options.format, &options.choice, runs as usize, &flows)
}

/// The finished runs of an earlier call; none with `--fresh`.
fn open_journal(path: &Path, plan: &Plan, version: &str, fresh: bool) -> Result<Journal, Failure> {
    if fresh && path.exists() {
        fs::remove_file(path).map_err(|error| Failure::run(format!("{}: {error}", path.display())))?;
    }
    let journal = Journal::open(path, version).map_err(Failure::run)?;
    let (held, all) = (journal.holds(plan), plan.cases.len() as u64 * plan.repeats);
    if held > 0 {
        eprintln!("{held} of {all} runs are finished already (--fresh runs them again)");
    }
    if let Some(other) = journal.len().checked_sub(held).filter(|other| *other > 0) {
        let dir = path.parent().unwrap_or(path).display();
        let runs = if other == 1 { "a finished run".to_owned() } else { format!("{other} finished runs") };
        eprintln!(
            "{dir}: replaces {runs} of other settings or of another version of hopcast, once all is run"
        );
    }
    Ok(journal)
}

fn close_journal(journal: Journal, plan: &Plan, interrupted: bool) -> Result<(), Failure> {
    match journal.damaged() {
        0 => {}
        1 => eprintln!("{JOURNAL}: a damaged line is ignored"),
        lines => eprintln!("{JOURNAL}: {lines} damaged lines are ignored"),
    }
    if interrupted { Ok(()) } else { journal.tidy(plan).map_err(Failure::run) }
}

/// The topology in the report: that of the first case.
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
