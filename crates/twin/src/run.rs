//! Running a plan: every case and repeat, on every core, into one [`Document`].

use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use hopcast_core::{Duration, Instant};

use crate::capture::Capture;
use crate::collect::{Bounds, collect};
use crate::monitor::Monitor;
use crate::results::{Document, Run};
use crate::scenario::model::{self, Case, Plan, Scenario};
use crate::stats::summarise;
use crate::world::World;

/// After the run's end nothing is sent any more, and what is under way may arrive for so long. Where nothing happens
/// this takes no time.
const DRAIN: Duration = Duration::from_secs(60);

/// More threads than this help nobody.
const MAX_THREADS: usize = 256;

/// When a run of `scenario` ends.
pub fn end_of(scenario: &Scenario) -> Instant {
    Instant::ZERO + scenario.duration
}

/// Runs all of `plan` on `threads` threads. Captures go to files in `captures`, if the scenario asks for any.
///
/// The document does not depend on `threads`. If `monitor` is cancelled it holds the runs that are finished, and
/// says so.
///
/// # Errors
/// What cannot be built or written, in one line.
pub fn run(
    plan: &Plan,
    threads: usize,
    captures: Option<&Path>,
    monitor: &Monitor,
) -> Result<Document, String> {
    let jobs = plan.cases.len() as u64 * plan.repeats;
    let virtual_time = |case: &Case| case.scenario.duration.as_nanos().saturating_mul(plan.repeats);
    monitor.begin(jobs as usize, plan.cases.iter().map(virtual_time).fold(0, u64::saturating_add));
    let bounds: Vec<Bounds> = plan.cases.iter().map(|_| Bounds::default()).collect();

    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(u64, Result<Run, String>)>> = Mutex::new(Vec::new());
    let work = || {
        while !monitor.is_cancelled() {
            let number = next.fetch_add(1, Ordering::Relaxed) as u64;
            if number >= jobs {
                break;
            }
            let (case, repeat) = ((number / plan.repeats) as usize, number % plan.repeats);
            let capture = captures.map(|dir| dir.join(format!("case-{case:03}-repeat-{repeat:03}.pcapng")));
            let result = run_one(&plan.cases[case], repeat, &bounds[case], capture, monitor);
            if let Some(result) = result.transpose() {
                if result.is_err() {
                    monitor.cancel();
                }
                results.lock().expect("no thread panics with the lock held").push((number, result));
                monitor.finished_one();
            }
        }
    };
    std::thread::scope(|scope| {
        let threads = threads.min(MAX_THREADS).min(jobs as usize);
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
    let runs: Vec<Run> = results.into_iter().map(|(_, result)| result).collect::<Result<_, _>>()?;
    let interrupted = (runs.len() as u64) < jobs;
    let summary = summarise(&runs, &plan.published);
    Ok(Document { scenario: plan.title.clone(), runs, summary, interrupted })
}

/// One repeat of one case; `None` if it was cut short.
fn run_one(
    case: &Case,
    repeat: u64,
    bounds: &Bounds,
    capture: Option<PathBuf>,
    monitor: &Monitor,
) -> Result<Option<Run>, String> {
    let scenario = &case.scenario;
    let wanted = capture.filter(|_| scenario.capture != model::Capture::Nothing);
    let writing = |error: std::io::Error| {
        format!("{}: {error}", wanted.as_ref().map_or_else(String::new, |path| path.display().to_string()))
    };
    let capture = match &wanted {
        Some(path) => {
            let file = File::create(path).map_err(writing)?;
            Some(Capture::new(Box::new(BufWriter::new(file))).map_err(writing)?)
        }
        None => None,
    };
    let mut world = World::new(scenario.clone(), repeat, capture)?;
    let end = end_of(scenario);
    let finished = world.run_until(end, monitor) && world.drain_until(end + DRAIN, monitor);
    world.finish_capture().map_err(writing)?;
    Ok(finished.then(|| collect(case, repeat, bounds, &world)))
}
