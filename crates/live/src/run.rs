//! A live run: a lab, the links between its nodes, a process for each node, and the results of all of them.

mod ends;
mod error;
mod probe;
mod supervisor;
mod workloads;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};

use hopcast_core::{Duration, Instant};
use hopcast_node::Clock;
use hopcast_runner::{Executor, Job, RunError};
use hopcast_stack::network::NetworkPlan;
use hopcast_trace::log::Place;
use hopcast_twin::collect::{LiveObservations, ObservedLink};
use hopcast_twin::results::{Live, Run};
use hopcast_twin::scenario::model::{Link, NodeId, Reporting, Scenario};
use hopcast_twin::scenario::needs_virtual_time;
use hopcast_twin::world::{log_interfaces, log_names};
use hopcast_twin::{Identities, Monitor, run_end};

pub use self::error::{Error, NodeFailure};
pub use self::probe::probe;
use self::supervisor::Supervisor;
use self::workloads::Workloads;
use crate::capture::{CaptureWriter, Devices, LogOutput, Outputs};
use crate::emulator::{Emulator, EmulatorReport, Options, Readings, Transfer};
use crate::lab::Lab;
use crate::layout::Captured;
use crate::worker::NodeReport;
use crate::{network, programs};

/// Time after the end of the run in which frames under way may arrive, and applications send nothing. Chosen; with
/// less, frames under way over a long path count as lost, with more each run takes longer.
const DRAIN: Duration = Duration::from_secs(2);

/// Time between the moment in which all nodes have loaded and the start of the run: nodes open their sockets in it.
/// Chosen; with less, a busy machine is late for the start.
const START_LEAD: Duration = Duration::from_secs(1);
/// Additional lead for each flow at each node, whose sockets and devices are opened one after the other. Chosen; with
/// less, a busy machine is late for the start, with more each run takes longer.
const START_LEAD_PER_FLOW: Duration = Duration::from_millis(20);
/// Maximum lead for flows. Chosen: with less, runs of thousands of flows start late; with more, their users wait
/// longer.
const MAX_FLOWS_LEAD: Duration = Duration::from_secs(60);
/// Additional lead if there are programs, whose servers must listen by then. Chosen; with less, a busy machine is late
/// for the start, with more each run takes longer.
const START_LEAD_OF_PROGRAMS: Duration = Duration::from_secs(2);

/// Time between two checks of progress and programs. Chosen; shorter takes processor time from the run, longer shows
/// progress late and ends later.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Minimum time between two checks. Chosen; with less, a due deadline of a program makes the loop busy; longer starts
/// programs later.
const MIN_POLL_INTERVAL: Duration = Duration::from_millis(1);

/// Time that programs have to end after the run. Chosen; with less, a busy one is killed and its figures are missing;
/// with more, one that hangs delays the end.
const PROGRAM_EXIT_TIMEOUT: Duration = Duration::from_secs(10);

/// Maximum share of frames dropped at sockets and devices in a valid run. Chosen: with more, the run measures the
/// machine and not the network; with less, a single burst invalidates it.
const MAX_HOST_DROP_RATIO: f64 = 0.001;

/// Maximum number of repetitions of a run that the machine could not keep up with. Chosen: a machine that stalls for a
/// moment is no reason to lose a figure; one that is too slow is too slow again.
const MAX_RETRIES: u64 = 2;

/// Maximum lateness of a node's wake-up and of a change of routes in a valid run. Chosen: more would be seen as the
/// network's delay or slow convergence; with less, busy machines invalidate more runs.
const MAX_STALL: Duration = Duration::from_millis(100);

/// Checks that the kernel of this machine can run `scenario`, before anything is set up.
///
/// # Errors
/// A transport's option that the kernel does not have, a program that is not installed or cannot be used like this.
pub fn check(scenario: &Scenario) -> Result<(), Error> {
    needs_virtual_time(scenario).map_or(Ok(()), |why| Err(Error::NeedsVirtualTime(why)))?;
    Ok(programs::check(scenario)?)
}

/// The world of live runs: this machine's kernel.
pub struct Kernel {
    /// Command that runs a node of the scenario, without the options that name the node, the case and the repeat.
    pub node: Vec<OsString>,
    /// Directory for the output of programs.
    pub output: PathBuf,
}

impl Executor for Kernel {
    fn run(&self, job: &Job<'_>, monitor: &Monitor) -> Result<Option<Run>, RunError> {
        let (mut retries, mut reported) = (0, Instant::ZERO);
        let mut spoiled: Option<Run> = None;
        let mut whole;
        let ran = loop {
            let attempted = self.attempt(job, monitor, &mut reported);
            whole = matches!(attempted, Ok(Some(_)));
            let mut run = match attempted {
                // The error of a cancelled run does not matter.
                _ if monitor.is_cancelled() => break Ok(None),
                Err(error) if error.is_overload() => invalid(job, error.to_string()),
                // An earlier attempt without this error shows that the file is not at fault.
                Err(error) => break spoiled.map_or_else(|| Err(error), |run| Ok(Some(run))),
                Ok(None) => break Ok(None),
                Ok(Some(run)) => run,
            };
            let Some(live) = &mut run.live else { break Ok(Some(run)) };
            live.retries = retries;
            if live.invalid.is_none() || retries == MAX_RETRIES {
                break Ok(Some(run));
            }
            retries += 1;
            spoiled = Some(run);
        };
        // An incomplete capture must not pass for a complete one.
        for path in job.capture.iter().chain(job.record.as_ref().map(|(log, _)| log)).filter(|_| !whole) {
            let _ = std::fs::remove_file(path);
        }
        ran.map_err(|error| RunError::Executor(error.into()))
    }
}

/// A run without results, because the machine could not keep up.
fn invalid(job: &Job<'_>, why: String) -> Run {
    let live = Live { invalid: Some(why), ..Live::default() };
    let links = job.case.scenario.links.iter().map(|_| ObservedLink::default()).collect();
    LiveObservations { links, live, ..LiveObservations::default() }.collect(job.case, job.repeat, job.bounds)
}

impl Kernel {
    fn attempt(
        &self,
        job: &Job<'_>,
        monitor: &Monitor,
        reported: &mut Instant,
    ) -> Result<Option<Run>, Error> {
        let scenario = &job.case.scenario;
        let mut layout = network::layout(scenario, job.repeat, job.record.is_some());
        let mut lab = Lab::set_up(&layout, &Lab::fresh_id())?;
        let mut supervisor = Supervisor::start(&lab, scenario, |name| self.node_of(name, job))?;
        let identity = Identities::new("").case(job.case).to_string();
        // A sweep that is resumed may have another case at this place.
        let what = &identity[..identity.len().min(8)];
        let kept = self.output.join(format!("case-{:03}-{what}-repeat-{:03}", job.place, job.repeat));
        let mut workloads = Workloads::new(scenario, &kept)?;
        let Some(()) = supervisor.all_loaded(&identity, monitor)? else { return Ok(None) };

        layout.captured.extend(network::captured_devices(scenario, job.repeat, job.record.is_some())?);
        let of_programs = if workloads.is_done() { Duration::ZERO } else { START_LEAD_OF_PROGRAMS };
        let sites = (scenario.nodes.len() * scenario.flows.len()) as u64;
        let lead = START_LEAD + of_programs + (START_LEAD_PER_FLOW * sites).min(MAX_FLOWS_LEAD);
        let clock = Clock::starting_in(lead);
        let links = std::mem::take(&mut layout.links);
        let changes = std::mem::take(&mut layout.changes);
        let observed = job.capture.is_some() || job.record.is_some();
        let writer = observed.then(|| writer(job, &layout.captured)).transpose()?;
        let without_reports = layout.routes_groups() && scenario.membership == Reporting::Plan;
        let options = Options { without_reports, ..options(scenario, writer.as_ref()) };
        let emulator = Emulator::start(&mut lab, links, changes, clock, options)?;
        let rerouter = lab.reroute_on_time(layout.reroutes, clock)?;
        supervisor.set_zero(clock)?;
        let listen =
            |writer: &CaptureWriter| Devices::listen(&lab, &layout.captured, clock, writer.recorder());
        let devices = writer.as_ref().map(listen).transpose()?;
        // Programs may listen on devices of the nodes.
        workloads.prepare(&lab)?;
        if clock.now() > Instant::ZERO {
            return Err(Error::SlowStart(lead));
        }
        let mut run = Running {
            lab: &lab,
            supervisor: &mut supervisor,
            workloads: &mut workloads,
            clock,
            monitor,
            receivers: scenario.transfer().map(|flow| flow.to.as_slice()),
        };
        if !run.attend(run_end(scenario), reported)? {
            return Ok(None);
        }
        // Devices disappear with the nodes.
        let heard = devices.map_or(Ok(()), Devices::finish);
        let nodes = supervisor.finish()?;
        let routes_late = rerouter.finish()?;
        let mut report = emulator.finish(&lab)?;
        let transfer = std::mem::take(&mut report.transfer);
        let written = writer.map_or(Ok(()), CaptureWriter::finish);
        written.map_err(Error::CaptureIncomplete)?;
        heard.map_err(Error::CaptureMissed)?;
        let mut observed = observations(nodes, report, routes_late);
        observed.sent = self::transfer(scenario).map(|_| transfer.sent);
        workloads.finish(scenario, transfer.began, &mut observed);
        Ok(Some(observed.collect(job.case, job.repeat, job.bounds)))
    }

    /// The command that runs the node of this name.
    fn node_of(&self, name: &str, job: &Job<'_>) -> Vec<OsString> {
        let (case, repeat) = (job.place.to_string(), job.repeat.to_string());
        let own = ["--as", name, "--case", &case, "--repeat", &repeat, "--supervised"];
        self.node.iter().cloned().chain(own.map(OsString::from)).collect()
    }
}

/// The writer of a run's capture and log, of which it has one at least.
fn writer(job: &Job<'_>, captured: &[Captured]) -> Result<CaptureWriter, Error> {
    let scenario = &job.case.scenario;
    let create = |path: &Path| {
        File::create(path).map_err(|source| Error::CaptureFile { path: path.to_owned(), source })
    };
    let mut outputs = Outputs::default();
    if let Some(path) = &job.capture {
        outputs.capture = Some(Box::new(BufWriter::new(create(path)?)));
    }
    if let Some((path, max_size)) = &job.record {
        // Its recorder gathers what it writes.
        outputs.log = Some(log_output(scenario, captured, Box::new(create(path)?), *max_size));
    }
    let interfaces = captured.iter().map(|captured| named(scenario, captured)).collect();
    Ok(CaptureWriter::start(outputs, interfaces)?)
}

/// A captured interface with its name in a capture.
fn named(scenario: &Scenario, captured: &Captured) -> (String, Captured) {
    (format!("{}:{}", scenario.nodes[captured.node].name, captured.name), captured.clone())
}

/// The log of a run, with all interfaces of its links, and then the devices of machines.
fn log_output(
    scenario: &Scenario,
    captured: &[Captured],
    into: Box<dyn Write + Send>,
    max_size: u64,
) -> LogOutput {
    let plan = NetworkPlan::of(scenario.network());
    let device = |captured: &Captured| Place::Interface {
        node: scenario.nodes[captured.node].name.clone(),
        name: captured.name.clone(),
        link: String::new(),
        mtu: 0,
        mac: [0; 6],
    };
    let devices = captured.iter().filter(|captured| !captured.by_link).map(device);
    let places = log_interfaces(scenario, &plan).into_iter().flatten().chain(devices).collect();
    LogOutput { into, max_size, places, names: log_names(scenario, &plan) }
}

fn options(scenario: &Scenario, writer: Option<&CaptureWriter>) -> Options {
    let readings = Readings {
        from: scenario.measure.from,
        to: scenario.measure.to,
        interval: Some(scenario.measure.interval),
        end: run_end(scenario),
    };
    let capture = writer.map(CaptureWriter::recorder);
    Options { readings, capture, transfer: transfer(scenario), ..Options::default() }
}

/// The transfer of a run whose one flow is of bounded size and to several receivers.
fn transfer(scenario: &Scenario) -> Option<Transfer> {
    let flow = scenario.transfer()?;
    let mtu =
        |link: &Link| link.ends.iter().position(|&end| end == flow.from).map(|from| link.direction(from).mtu);
    let mtu = scenario.links.iter().filter_map(mtu).min()?;
    // What programs say before they begin has at most some hundred bytes; data fill their packets.
    Some(Transfer { sender: flow.from, data_frame: mtu as usize / 2 })
}

/// A run in progress.
struct Running<'r> {
    lab: &'r Lab,
    supervisor: &'r mut Supervisor,
    workloads: &'r mut Workloads,
    clock: Clock,
    monitor: &'r Monitor,
    /// The receivers of a transfer that is the run's only flow.
    receivers: Option<&'r [NodeId]>,
}

impl Running<'_> {
    /// Waits for the end of the run, or until all receivers of its only transfer have it, and for frames under way;
    /// false if the monitor was cancelled. Reports progress beyond `reported`.
    fn attend(&mut self, last: Instant, reported: &mut Instant) -> Result<bool, Error> {
        let mut end = last;
        loop {
            let now = self.clock.now();
            if end == last && now > Instant::ZERO && self.is_complete() {
                // Nothing more comes, and hours of that would show nothing.
                end = now.min(last);
            }
            if self.monitor.is_cancelled() {
                return Ok(false);
            }
            // Time beyond the end of the run is not part of the announced progress.
            let reached = if end < last { last } else { now.min(last) }.max(*reported);
            self.monitor.advance(reached.since(*reported));
            *reported = reached;
            self.supervisor.check_running()?;
            // Before time zero the clock stands still.
            if now > Instant::ZERO {
                self.workloads.step(now, self.lab);
            }
            let programs_over = self.workloads.is_done() || now >= end + PROGRAM_EXIT_TIMEOUT;
            if now >= end + DRAIN && programs_over {
                return Ok(true);
            }
            let next =
                self.workloads.next_deadline().map_or(POLL_INTERVAL, |at| at.since(now).min(POLL_INTERVAL));
            #[allow(clippy::disallowed_methods)] // real time is what passes here
            std::thread::sleep(std::time::Duration::from_nanos(
                next.as_nanos().max(MIN_POLL_INTERVAL.as_nanos()),
            ));
        }
    }

    /// Whether all receivers of the run's only transfer have it, or its programs have ended.
    fn is_complete(&mut self) -> bool {
        let Some(receivers) = self.receivers else { return false };
        if self.workloads.has_programs() {
            return self.workloads.is_done();
        }
        receivers.iter().all(|&node| self.supervisor.is_complete(node))
    }
}

fn observations(
    nodes: Vec<(String, NodeReport)>,
    emulator: EmulatorReport,
    routes_late: Duration,
) -> LiveObservations {
    let mut live = Live { routes_late_ms: routes_late.as_nanos() as f64 / 1e6, ..live(&emulator) };
    let (mut sites, mut tables, mut latest_wake) = (Vec::new(), Vec::new(), Duration::ZERO);
    let mut services: BTreeMap<String, u64> = BTreeMap::new();
    for (name, node) in nodes {
        sites.extend(node.sites);
        tables.extend(node.tables);
        node.services.into_iter().for_each(|(name, value)| *services.entry(name).or_default() += value);
        live.node_cpu_s.insert(name, node.cpu_s);
        let figure = |name: &str| node.sockets.get(name).copied().unwrap_or(0);
        live.host_drops += figure("socket_send_dropped") + figure("socket_device_dropped");
        latest_wake = latest_wake.max(Duration::from_nanos(figure("latest_wake_ns")));
    }
    // The machine is at fault for losses between programs and links, as for lateness.
    if live.invalid.is_none() && live.host_drops as f64 > live.frames as f64 * MAX_HOST_DROP_RATIO {
        let drops = live.host_drops;
        live.invalid = Some(format!(
            "the machine was too busy: {drops} datagrams and packets were dropped at sockets and devices"
        ));
    }
    if live.invalid.is_none() && latest_wake > MAX_STALL {
        live.invalid = Some(format!("the machine was too busy: a node was woken {latest_wake} late"));
    }
    if live.invalid.is_none() && routes_late > MAX_STALL {
        live.invalid = Some(format!("the machine was too busy: routes were changed {routes_late} late"));
    }
    let link = |directions: Vec<crate::emulator::DirectionReport>| ObservedLink {
        window: directions.iter().map(|d| ((d.from, d.to), d.closed - d.opened)).collect(),
        steps: directions.into_iter().map(|d| d.steps).collect(),
    };
    let links = emulator.links.into_iter().map(link).collect();
    LiveObservations { sites, services, tables, links, live, ..LiveObservations::default() }
}

fn live(report: &EmulatorReport) -> Live {
    let fidelity = &report.fidelity;
    let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
    Live {
        invalid: report.verdict.clone(),
        lateness_us: [fidelity.lateness_p50, fidelity.lateness_p99, fidelity.lateness_max].map(micros),
        late_frames: fidelity.late,
        frames: fidelity.delivered,
        host_drops: fidelity.unseen + fidelity.refused + fidelity.socket_full,
        emulator_cpu_s: report.processor.iter().map(|time| time.as_secs_f64()).sum(),
        ..Live::default()
    }
}
