//! Running a plan: every case and repeat, on every core, into one [`Document`].

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

use hopcast_core::{Duration, Instant};
use serde_json::Value;

use crate::capture::Capture;
use crate::meter::Meter;
use crate::results::{Document, Figures, Flow, LatencyCurve, Link, Parameters, Receiver, Run, Series};
use crate::scenario::Capacities;
use crate::scenario::model::{self, Case, LinkModel, Plan, Scenario};
use crate::stats::summarise;
use crate::world::{RunningFlow, World};

/// How far a run has come, shared with whoever shows it, and the means to cut it short.
#[derive(Debug, Default)]
pub struct Monitor {
    simulated_ns: AtomicU64,
    total_ns: AtomicU64,
    done: AtomicUsize,
    total: AtomicUsize,
    cancelled: AtomicBool,
}

impl Monitor {
    /// The share of all virtual time that has been simulated, 0 to 1.
    pub fn share(&self) -> f64 {
        let total = self.total_ns.load(Ordering::Relaxed).max(1);
        (self.simulated_ns.load(Ordering::Relaxed) as f64 / total as f64).min(1.0)
    }

    /// How many runs are done, and of how many.
    pub fn runs(&self) -> (usize, usize) {
        (self.done.load(Ordering::Relaxed), self.total.load(Ordering::Relaxed))
    }

    /// Ends every run at the next opportunity; what is finished is kept.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::Relaxed);
    }

    /// Whether someone has called [`cancel`](Self::cancel).
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::Relaxed)
    }

    pub(crate) fn advance(&self, by: Duration) {
        self.simulated_ns.fetch_add(by.as_nanos(), Ordering::Relaxed);
    }
}

/// After the run's end, what is still under way may arrive for so long; nothing is sent any more.
const DRAIN: Duration = Duration::from_secs(1);

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
    let jobs: Vec<(usize, u64)> =
        (0..plan.cases.len()).flat_map(|case| (0..plan.repeats).map(move |repeat| (case, repeat))).collect();
    monitor.total.store(jobs.len(), Ordering::Relaxed);
    let virtual_time = |case: &Case| (case.scenario.duration + DRAIN).as_nanos().saturating_mul(plan.repeats);
    let total = plan.cases.iter().map(virtual_time).fold(0, u64::saturating_add);
    monitor.total_ns.store(total, Ordering::Relaxed);

    let next = AtomicUsize::new(0);
    let results: Mutex<Vec<(usize, Result<Run, String>)>> = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..threads.clamp(1, jobs.len().max(1)) {
            scope.spawn(|| {
                while !monitor.is_cancelled()
                    && let Some((number, &(case, repeat))) = take(&next, &jobs)
                {
                    let capture =
                        captures.map(|dir| dir.join(format!("case-{case:03}-repeat-{repeat:03}.pcapng")));
                    if let Some(result) = run_one(&plan.cases[case], repeat, capture, monitor).transpose() {
                        if result.is_err() {
                            monitor.cancel();
                        }
                        results.lock().expect("no thread panics with the lock held").push((number, result));
                        monitor.done.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });

    let mut results = results.into_inner().expect("no thread panics with the lock held");
    results.sort_by_key(|&(number, _)| number);
    let runs: Vec<Run> = results.into_iter().map(|(_, result)| result).collect::<Result<_, _>>()?;
    let interrupted = runs.len() < jobs.len();
    let summary = summarise(&runs, &plan.published);
    Ok(Document { scenario: plan.title.clone(), runs, summary, interrupted })
}

fn take<'a, T>(next: &AtomicUsize, jobs: &'a [T]) -> Option<(usize, &'a T)> {
    let number = next.fetch_add(1, Ordering::Relaxed);
    jobs.get(number).map(|job| (number, job))
}

/// One repeat of one case; `None` if it was cut short.
fn run_one(
    case: &Case,
    repeat: u64,
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
    let finished = world.run_until(end, monitor) && world.run_until(end + DRAIN, monitor);
    world.finish_capture().map_err(writing)?;
    Ok(finished.then(|| collect(case, repeat, &world)))
}

/// Points of a latency curve: enough for a smooth line.
const CURVE_POINTS: usize = 200;

fn collect(case: &Case, repeat: u64, world: &World) -> Run {
    let scenario = &case.scenario;
    let mut latency = Vec::new();
    let mut flows = Vec::new();
    let capacities = Capacities::of(scenario);
    for (spec, running) in scenario.flows.iter().zip(world.flows()) {
        let meter = running.meter.borrow();
        latency.extend(curves(&spec.name, &meter));
        let min_cut = capacities.between(spec.from, spec.to).filter(|&rate| rate > 0.0);
        flows.push(flow(scenario, spec, running, &meter, min_cut, world));
    }
    let parameters: Parameters =
        case.parameters.iter().map(|(path, value)| (path.clone(), Value::String(value.clone()))).collect();
    Run {
        parameters,
        repeat,
        seed: scenario.seed,
        flows,
        links: links(scenario, world),
        hosts: hosts(scenario, world),
        series: series(scenario, world),
        latency,
    }
}

fn curves(flow: &str, meter: &Meter) -> impl Iterator<Item = LatencyCurve> {
    let latency = meter.latency.curve(flow, "latency", CURVE_POINTS);
    latency.into_iter().chain(meter.round_trip.curve(flow, "round_trip", CURVE_POINTS))
}

fn flow(
    scenario: &Scenario,
    spec: &model::Flow,
    running: &RunningFlow,
    meter: &Meter,
    min_cut: Option<f64>,
    world: &World,
) -> Flow {
    let window = window(scenario, spec, meter).as_secs_f64();
    let goodput = if window > 0.0 { meter.payload_bytes as f64 * 8.0 / window } else { 0.0 };
    let figures = Figures {
        goodput_mbps: goodput / 1e6,
        sent_units: meter.sent_units,
        delivered_units: meter.delivered_units,
        reliability: (meter.sent_units > 0).then(|| meter.delivered_units as f64 / meter.sent_units as f64),
        min_cut_fraction: min_cut.map(|rate| goodput / rate),
        payload_bound_fraction: min_cut.map(|rate| goodput / (rate * payload_share(spec))),
        completed_s: meter.completed.zip(meter.started).map(|(end, start)| end.since(start).as_secs_f64()),
        hash_ok: matches!(spec.app, model::App::File { .. }).then(|| meter.hash_ok == Some(true)),
        latency_ms: meter.latency.quantiles(),
        round_trip_ms: meter.round_trip.quantiles(),
        jitter_ms: meter.jitter.millis(),
    };
    let mut counters = world.flow_counters(running);
    counters.insert("damaged_units".to_owned(), meter.damaged_units);
    counters.insert("duplicate_units".to_owned(), meter.duplicate_units);
    let to = scenario.nodes[spec.to].name.clone();
    Flow {
        name: spec.name.clone(),
        protocol: spec.protocol.clone(),
        from: scenario.nodes[spec.from].name.clone(),
        to: to.clone(),
        figures: figures.clone(),
        counters,
        receivers: vec![Receiver { node: to, figures }],
    }
}

/// The window over which a flow's goodput is taken: the scenario's, and of a flow that has an end only as much of it as
/// the flow lasted.
fn window(scenario: &Scenario, spec: &model::Flow, meter: &Meter) -> Duration {
    let model::Measure { from, to, .. } = scenario.measure;
    let bounded = matches!(spec.app, model::App::File { .. } | model::App::Bulk { bytes: Some(_), .. });
    match meter.started.filter(|_| bounded) {
        Some(started) => meter.completed.unwrap_or(to).min(to).since(from.max(started)),
        None => to.since(from),
    }
}

/// What a full packet leaves for the payload after the headers of the stack.
fn payload_share(flow: &model::Flow) -> f64 {
    let full = 1514.0;
    let overhead = flow.overhead(0) as f64;
    match &flow.app {
        model::App::Cbr { size, .. } | model::App::Messages { size, .. }
            if !matches!(flow.over.first(), Some(model::Layer::Tcp(_))) =>
        {
            let size = size.get() as f64;
            size / (size + overhead)
        }
        model::App::Cbr { .. }
        | model::App::Messages { .. }
        | model::App::Bulk { .. }
        | model::App::File { .. } => (full - overhead) / full,
    }
}

fn links(scenario: &Scenario, world: &World) -> Vec<Link> {
    let window = scenario.measure.to.since(scenario.measure.from).as_secs_f64();
    let mut links = Vec::new();
    for (number, spec) in scenario.links.iter().enumerate() {
        for ((from, to), counters) in world.link_figures(number) {
            let rate = match &spec.model {
                LinkModel::PointToPoint(config) if from == 0 => config.forward.rate,
                LinkModel::PointToPoint(config) => config.backward.rate,
                LinkModel::Medium(direction) => direction.rate,
            };
            links.push(Link {
                from: scenario.nodes[spec.ends[from]].name.clone(),
                to: scenario.nodes[spec.ends[to]].name.clone(),
                sent_bytes: counters.sent_bytes,
                sent_packets: counters.sent_packets,
                delivered_packets: counters.delivered_packets,
                lost_packets: counters.lost_packets,
                queue_dropped_packets: counters.queue_dropped_packets,
                utilisation: rate.map(|_| counters.busy.as_secs_f64() / window),
            });
        }
    }
    links
}

fn hosts(scenario: &Scenario, world: &World) -> BTreeMap<String, u64> {
    let mut sums: BTreeMap<String, u64> = BTreeMap::new();
    for node in 0..scenario.nodes.len() {
        for (counter, value) in world.host_counters(node) {
            if value > 0 {
                *sums.entry(counter.to_owned()).or_default() += value;
            }
        }
    }
    sums
}

fn series(scenario: &Scenario, world: &World) -> Series {
    let step_s = scenario.measure.interval.as_secs_f64();
    let steps = (scenario.duration.as_nanos() / scenario.measure.interval.as_nanos().max(1)) as usize;
    let mbps = |bytes: u64| bytes as f64 * 8.0 / step_s / 1e6;
    let flows = scenario.flows.iter().zip(world.flows()).map(|(spec, running)| {
        let bytes = &running.meter.borrow().step_bytes;
        let values = (0..steps).map(|step| mbps(bytes.get(step).copied().unwrap_or(0))).collect();
        (spec.name.clone(), values)
    });
    let mut links = Vec::new();
    for (number, spec) in scenario.links.iter().enumerate() {
        let pairs = crate::world::directions(spec.ends.len());
        for ((from, to), steps) in pairs.zip(&world.link_samples(number).steps) {
            if steps.iter().all(|&[bytes, _, _]| bytes == 0) {
                continue;
            }
            let name =
                format!("{}>{}", scenario.nodes[spec.ends[from]].name, scenario.nodes[spec.ends[to]].name);
            let lost = |&[_, lost, delivered]: &[u64; 3]| lost as f64 / ((lost + delivered) as f64).max(1.0);
            links.push((
                name,
                steps.iter().map(|&[bytes, _, _]| mbps(bytes)).collect(),
                steps.iter().map(lost).collect(),
            ));
        }
    }
    Series { step_s, flows: flows.collect(), links }
}
