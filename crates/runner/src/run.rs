//! Running a plan: every case and repeat, on every core, into one [`Document`].

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, OnceLock};

use hopcast_trace::log::EXTENSION;
use hopcast_twin::bounds::Bounds;
use hopcast_twin::identity::Identity;
use hopcast_twin::results::{Document, Run};
use hopcast_twin::scenario::model::{self, Case, Plan};
use hopcast_twin::{Monitor, document};

use crate::error::RunError;
use crate::journal::Journal;
use crate::virtual_time::VirtualTime;

/// Maximum number of threads. Chosen: more than the cores of today's computers; a larger number is most likely a slip.
const MAX_THREADS: usize = 256;

/// A part of a plan's runs, of several that are run apart: each `of`-th run, from the `number`-th on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Part {
    number: u64,
    of: u64,
}

impl Part {
    /// All runs of a plan.
    pub const ALL: Self = Self { number: 1, of: 1 };

    /// Part number `number` of `of` parts, counted from 1; `None` if there is no such part.
    pub fn new(number: u64, of: u64) -> Option<Self> {
        (1..=of).contains(&number).then_some(Self { number, of })
    }

    /// Its place among the parts, from 1, and the number of parts.
    pub fn numbers(self) -> (u64, u64) {
        (self.number, self.of)
    }

    /// Number of runs in this part, of `all` runs.
    pub fn runs(self, all: u64) -> u64 {
        all.saturating_sub(self.number - 1).div_ceil(self.of)
    }
}

/// The settings of running a plan.
#[derive(Clone, Copy, Debug)]
pub struct Jobs<'j> {
    /// Number of runs at once.
    pub threads: usize,
    /// The runs to make.
    pub part: Part,
    /// Directory of captures and logs, if any are asked for.
    pub captures: Option<&'j Path>,
    /// Maximum size in bytes of the log of each run, in which what happens to each packet is recorded; `None` records
    /// nothing.
    pub record: Option<u64>,
    /// The runs that are finished already; those that finish are written to it.
    pub journal: Option<&'j Journal>,
}

/// Runs all of `plan` on `threads` threads. Captures go to files in `captures`, if the scenario asks for any.
///
/// # Errors
/// As [`run_jobs`].
pub fn run(
    plan: &Plan,
    threads: usize,
    captures: Option<&Path>,
    monitor: &Monitor,
) -> Result<Document, RunError> {
    run_jobs(plan, &Jobs { threads, part: Part::ALL, captures, record: None, journal: None }, monitor)
}

/// A world in which runs take place.
pub trait Executor: Sync {
    /// Makes one run, and keeps `monitor` informed of its progress; `None` if it was cut short.
    ///
    /// # Errors
    /// If the run cannot be built, or its capture cannot be written.
    fn run(&self, job: &Job<'_>, monitor: &Monitor) -> Result<Option<Run>, RunError>;
}

/// One run: one repeat of one case.
pub struct Job<'j> {
    /// The case.
    pub case: &'j Case,
    /// Its place among the plan's cases.
    pub place: usize,
    /// Number of the repeat, from 0.
    pub repeat: u64,
    /// Upper bounds of its flows.
    pub bounds: &'j Bounds,
    /// File of its capture, if it captures anything.
    pub capture: Option<PathBuf>,
    /// File of its log, if it records, and the log's maximum size in bytes.
    pub record: Option<(PathBuf, u64)>,
}

/// Runs a part of `plan` in virtual time, but for what the journal holds.
///
/// # Errors
/// As [`run_jobs_on`].
pub fn run_jobs(plan: &Plan, jobs: &Jobs<'_>, monitor: &Monitor) -> Result<Document, RunError> {
    run_jobs_on(&VirtualTime, plan, jobs, monitor)
}

/// Runs a part of `plan` on `executor`, but for what the journal holds.
///
/// The document depends neither on the number of threads nor on what was in the journal. If `monitor` is cancelled it
/// holds the runs that are finished, those of the journal too, and says so.
///
/// # Errors
/// The first error of a run, in the order of the plan, or of the journal.
pub fn run_jobs_on(
    executor: &dyn Executor,
    plan: &Plan,
    jobs: &Jobs<'_>,
    monitor: &Monitor,
) -> Result<Document, RunError> {
    let runs = jobs.part.runs(plan.cases.len() as u64 * plan.repeats);
    let place = |number: u64| {
        let number = jobs.part.number - 1 + number * jobs.part.of;
        ((number / plan.repeats) as usize, number % plan.repeats)
    };
    let virtual_time = |number| plan.cases[place(number).0].scenario.duration.as_nanos();
    monitor.begin(runs as usize, (0..runs).map(virtual_time).fold(0, u64::saturating_add));
    let cases: Vec<(Bounds, OnceLock<Identity>)> = plan.cases.iter().map(|_| Default::default()).collect();
    let one = |number: u64| -> Result<Option<Run>, RunError> {
        let (place, repeat) = place(number);
        let (case, (bounds, identity)) = (&plan.cases[place], &cases[place]);
        let identity = jobs.journal.map(|journal| {
            (journal, identity.get_or_init(|| journal.identities().case(case)).repeat(repeat))
        });
        if let Some(run) = identity.and_then(|(journal, identity)| journal.find(identity)) {
            monitor.advance(case.scenario.duration);
            return Ok(Some(run));
        }
        if monitor.is_cancelled() {
            return Ok(None);
        }
        let file = |ending: &str| {
            let name = format!("case-{place:03}-repeat-{repeat:03}.{ending}");
            jobs.captures.map(|dir| dir.join(name))
        };
        let capture = file("pcapng").filter(|_| case.scenario.capture != model::Capture::Nothing);
        let record = file(EXTENSION).zip(jobs.record);
        let run = executor.run(&Job { case, place, repeat, bounds, capture, record }, monitor)?;
        // What the machine could not keep up with, or its programs could not do, is worth another try.
        let went_well = |run: &&Run| {
            run.live.as_ref().is_none_or(|live| live.invalid.is_none() && live.failed_programs == 0)
        };
        if let (Some((journal, identity)), Some(run)) = (identity, run.as_ref().filter(went_well)) {
            journal.add(identity, run)?;
        }
        Ok(run)
    };

    let next = AtomicU64::new(0);
    let results: Mutex<Vec<(u64, Result<Run, RunError>)>> = Mutex::new(Vec::new());
    let failed = AtomicBool::new(false);
    // What is in the journal is finished, however early the others are cut short.
    let goes_on = || !failed.load(Ordering::Relaxed) && (jobs.journal.is_some() || !monitor.is_cancelled());
    let work = || {
        while goes_on() {
            let number = next.fetch_add(1, Ordering::Relaxed);
            if number >= runs {
                break;
            }
            if let Some(result) = one(number).transpose() {
                if result.is_err() {
                    failed.store(true, Ordering::Relaxed);
                    monitor.cancel();
                }
                results.lock().expect("no thread panics with the lock held").push((number, result));
                monitor.finished_one();
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = jobs.threads.min(MAX_THREADS).min(runs as usize);
        for _ in 1..threads {
            // Where the system gives no more threads, those there are do the work.
            if std::thread::Builder::new().spawn_scoped(scope, work).is_err() {
                break;
            }
        }
        work();
    });

    let mut results = results.into_inner().expect("no thread panics with the lock held");
    results.sort_by_key(|&(number, _)| number);
    let done: Vec<Run> = results.into_iter().map(|(_, result)| result).collect::<Result<_, _>>()?;
    let interrupted = (done.len() as u64) < runs;
    Ok(document(plan, done, interrupted))
}
