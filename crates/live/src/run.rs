//! One live run: a lab, the links between its nodes, a process for each node, and what they found.

mod conductor;
mod workloads;

use std::ffi::OsString;
use std::fs::File;
use std::io::BufWriter;
use std::path::{Path, PathBuf};

use hopcast_core::{Duration, Instant};
use hopcast_node::Clock;
use hopcast_runner::{Executor, Job, RunError};
use hopcast_twin::collect::{Gathered, ObservedLink};
use hopcast_twin::results::{Live, Run};
use hopcast_twin::scenario::model::Scenario;
use hopcast_twin::scenario::needs_virtual_time;
use hopcast_twin::{Identities, Monitor, end_of};

use self::conductor::Conductor;
use self::workloads::Workloads;
use crate::capture::{Devices, Tape};
use crate::emulator::{Emulator, EmulatorReport, Options, Readings};
use crate::lab::Lab;
use crate::layout::Captured;
use crate::worker::NodeReport;
use crate::{network, programs};

/// After the run's end nothing is sent any more, and what is under way may arrive for so long.
const DRAIN: Duration = Duration::from_secs(2);

/// From the moment in which all nodes have loaded to the start of the run: they open their sockets in it.
const LEAD: Duration = Duration::from_secs(1);
/// So much more for each flow at each node.
const LEAD_OF_SITE: Duration = Duration::from_millis(20);
const LONGEST_LEAD: Duration = Duration::from_secs(60);
/// So much more for programs that are to listen by then.
const LEAD_OF_PROGRAMS: Duration = Duration::from_secs(2);

/// How often a person is told how far the run has come, and programs are looked after.
const STEP: Duration = Duration::from_millis(50);

/// No busier than this.
const LEAST_STEP: Duration = Duration::from_millis(1);

/// Programs that are told to end have so long for it.
const PATIENCE: Duration = Duration::from_secs(10);

/// The share of frames that may be dropped at sockets and devices without the run being about the machine.
const HOST_DROPS: f64 = 0.001;

/// How often a run that the machine could not keep up with is made again. A host that stands still for a moment is no
/// reason to lose a figure; one that is too slow is too slow again.
const RETRIES: u64 = 2;

/// A node that is woken so late has been without a processor for longer than any network would hold its packets back; and
/// routes that change so late are no longer those of a network whose routing has converged.
const STANDSTILL: Duration = Duration::from_millis(100);

/// Why the kernel of this machine cannot run `scenario` as it says, before anything is made: one line.
///
/// # Errors
/// A transport's option that is not the kernel's, a program that is not there or cannot be what it is asked to be.
pub fn check(scenario: &Scenario) -> Result<(), String> {
    needs_virtual_time(scenario).map_or(Ok(()), Err)?;
    programs::check(scenario)
}

/// The kernel of this machine.
pub struct Kernel {
    /// The command that runs a node of the scenario, but for which node, case and repeat it is.
    pub node: Vec<OsString>,
    /// Where what programs write is kept.
    pub output: PathBuf,
}

impl Executor for Kernel {
    fn run(&self, job: &Job<'_>, monitor: &Monitor) -> Result<Option<Run>, RunError> {
        let (mut retries, mut reported) = (0, Instant::ZERO);
        let mut spoiled: Option<Run> = None;
        let mut whole;
        let ran = loop {
            let conducted = self.conduct(job, monitor, &mut reported);
            whole = matches!(conducted, Ok(Some(_)));
            let mut run = match conducted {
                // What was asked to end may end in any way.
                _ if monitor.is_cancelled() => break Ok(None),
                Err(Trouble::Busy(why)) => invalid(job, why),
                // What went well the first time did not go wrong because of the file.
                Err(Trouble::Error(why)) => break spoiled.map_or(Err(why), |run| Ok(Some(run))),
                Ok(None) => break Ok(None),
                Ok(Some(run)) => run,
            };
            let Some(live) = &mut run.live else { break Ok(Some(run)) };
            live.retries = retries;
            if live.invalid.is_none() || retries == RETRIES {
                break Ok(Some(run));
            }
            retries += 1;
            spoiled = Some(run);
        };
        if let Some(path) = job.capture.as_ref().filter(|_| !whole) {
            // One that is cut short passes for none.
            let _ = std::fs::remove_file(path);
        }
        ran.map_err(|why| RunError::Executor(why.into()))
    }
}

/// Why there is no run.
enum Trouble {
    /// The machine could not keep up.
    Busy(String),
    /// Something that would not be otherwise another time.
    Error(String),
}

impl From<String> for Trouble {
    fn from(error: String) -> Self {
        Self::Error(error)
    }
}

/// A run that has found nothing, because the machine could not keep up.
fn invalid(job: &Job<'_>, why: String) -> Run {
    let live = Live { invalid: Some(why), ..Live::default() };
    let links = job.case.scenario.links.iter().map(|_| ObservedLink::default()).collect();
    Gathered { links, live, ..Gathered::default() }.collect(job.case, job.repeat, job.bounds)
}

impl Kernel {
    fn conduct(
        &self,
        job: &Job<'_>,
        monitor: &Monitor,
        reported: &mut Instant,
    ) -> Result<Option<Run>, Trouble> {
        let scenario = &job.case.scenario;
        let mut layout = network::layout(scenario, job.repeat);
        let mut lab = Lab::set_up(&layout, &Lab::fresh_id())?;
        let mut conductor = Conductor::start(&lab, scenario, |name| self.node_of(name, job))?;
        let identity = Identities::new("").case(job.case).to_string();
        // A sweep that is gone on with may have another case at this place.
        let what = &identity[..identity.len().min(8)];
        let kept = self.output.join(format!("case-{:03}-{what}-repeat-{:03}", job.place, job.repeat));
        let mut workloads = Workloads::new(scenario, &kept)?;
        let Some(()) = conductor.all_loaded(&identity, monitor)? else { return Ok(None) };

        layout.captured.extend(network::captured_devices(scenario, job.repeat)?);
        let of_programs = if workloads.is_done() { Duration::ZERO } else { LEAD_OF_PROGRAMS };
        let sites = (scenario.nodes.len() * scenario.flows.len()) as u64;
        let lead = LEAD + of_programs + (LEAD_OF_SITE * sites).min(LONGEST_LEAD);
        let clock = Clock::starting_in(lead);
        let links = std::mem::take(&mut layout.links);
        let changes = std::mem::take(&mut layout.changes);
        let tape = job.capture.as_ref().map(|path| tape(scenario, &layout.captured, path)).transpose()?;
        let options = options(scenario, tape.as_ref());
        let emulator = Emulator::start(&mut lab, links, changes, clock, options)?;
        let rerouter = lab.reroute_on_time(layout.reroutes, clock)?;
        conductor.set_zero(clock)?;
        let listen = |tape: &Tape| Devices::listen(&lab, &layout.captured, clock, tape.recorder());
        let devices = tape.as_ref().map(listen).transpose()?;
        // They may listen on devices of the nodes.
        workloads.prepare(&lab)?;
        if clock.now() > Instant::ZERO {
            let why = format!("the machine was too busy: nodes and programs took more than {lead} to begin");
            return Err(Trouble::Busy(why));
        }
        let mut run =
            Running { lab: &lab, conductor: &mut conductor, workloads: &mut workloads, clock, monitor };
        if !run.attend(end_of(scenario), reported)? {
            return Ok(None);
        }
        // Devices go with the nodes.
        let heard = devices.map_or(Ok(()), Devices::finish);
        let nodes = conductor.finish()?;
        let routes_late = rerouter.finish()?;
        let report = emulator.finish(&lab)?;
        let written = tape.map_or(Ok(()), Tape::finish);
        written.map_err(|error| format!("the capture is not complete: {error}"))?;
        heard.map_err(|error| Trouble::Busy(format!("the machine was too busy to capture: {error}")))?;
        let mut gathered = gather(nodes, report, routes_late)?;
        workloads.finish(scenario, &mut gathered);
        Ok(Some(gathered.collect(job.case, job.repeat, job.bounds)))
    }

    /// The command that runs the node of this name.
    fn node_of(&self, name: &str, job: &Job<'_>) -> Vec<OsString> {
        let (case, repeat) = (job.place.to_string(), job.repeat.to_string());
        let own = ["--as", name, "--case", &case, "--repeat", &repeat, "--conducted"];
        self.node.iter().cloned().chain(own.map(OsString::from)).collect()
    }
}

fn tape(scenario: &Scenario, captured: &[Captured], path: &Path) -> Result<Tape, String> {
    let file = File::create(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let named = |captured: &Captured| {
        (format!("{}:{}", scenario.nodes[captured.node].name, captured.name), captured.clone())
    };
    Tape::start(Box::new(BufWriter::new(file)), captured.iter().map(named).collect())
}

fn options(scenario: &Scenario, tape: Option<&Tape>) -> Options {
    let readings = Readings {
        from: scenario.measure.from,
        to: scenario.measure.to,
        interval: Some(scenario.measure.interval),
        end: end_of(scenario),
    };
    Options { threads: None, readings, capture: tape.map(Tape::recorder) }
}

/// A run that is under way.
struct Running<'r> {
    lab: &'r Lab,
    conductor: &'r mut Conductor,
    workloads: &'r mut Workloads,
    clock: Clock,
    monitor: &'r Monitor,
}

impl Running<'_> {
    /// Sees the run through to its end, and what is under way then; false if the monitor said to stop. Progress is told
    /// beyond what was `reported` already.
    fn attend(&mut self, end: Instant, reported: &mut Instant) -> Result<bool, String> {
        loop {
            let now = self.clock.now();
            if self.monitor.is_cancelled() {
                return Ok(false);
            }
            // What is beyond the run's end is no part of what was announced.
            let reached = now.min(end).max(*reported);
            self.monitor.advance(reached.since(*reported));
            *reported = reached;
            self.conductor.look_after()?;
            // Before zero the clock stands still.
            if now > Instant::ZERO {
                self.workloads.step(now, self.lab);
            }
            let programs_over = self.workloads.is_done() || now >= end + PATIENCE;
            if now >= end + DRAIN && programs_over {
                return Ok(true);
            }
            let next = self.workloads.next_deadline().map_or(STEP, |at| at.since(now).min(STEP));
            #[allow(clippy::disallowed_methods)] // real time is what passes here
            std::thread::sleep(std::time::Duration::from_nanos(next.as_nanos().max(LEAST_STEP.as_nanos())));
        }
    }
}

fn gather(
    nodes: Vec<(String, NodeReport)>,
    emulator: EmulatorReport,
    routes_late: Duration,
) -> Result<Gathered, String> {
    let mut live = Live { routes_late_ms: routes_late.as_nanos() as f64 / 1e6, ..live(&emulator) };
    let (mut sites, mut latest_wake) = (Vec::new(), Duration::ZERO);
    for (name, node) in nodes {
        if let Some(error) = node.failed {
            return Err(format!("node `{name}`: {error}"));
        }
        sites.extend(node.sites);
        live.node_cpu_s.insert(name, node.cpu_s);
        let figure = |name: &str| node.sockets.get(name).copied().unwrap_or(0);
        live.host_drops += figure("socket_send_dropped") + figure("socket_device_dropped");
        latest_wake = latest_wake.max(Duration::from_nanos(figure("latest_wake_ns")));
    }
    // What is lost between programs and links is the machine's doing, as much as what is late.
    if live.invalid.is_none() && live.host_drops as f64 > live.frames as f64 * HOST_DROPS {
        let drops = live.host_drops;
        live.invalid = Some(format!(
            "the machine was too busy: {drops} datagrams and packets were dropped at sockets and devices"
        ));
    }
    if live.invalid.is_none() && latest_wake > STANDSTILL {
        live.invalid = Some(format!("the machine was too busy: a node was woken {latest_wake} late"));
    }
    if live.invalid.is_none() && routes_late > STANDSTILL {
        live.invalid = Some(format!("the machine was too busy: routes were changed {routes_late} late"));
    }
    let link = |directions: Vec<crate::emulator::DirectionReport>| ObservedLink {
        window: directions.iter().map(|d| ((d.from, d.to), d.closed - d.opened)).collect(),
        steps: directions.into_iter().map(|d| d.steps).collect(),
    };
    let links = emulator.links.into_iter().map(link).collect();
    Ok(Gathered { sites, links, programs: Vec::new(), live })
}

fn live(report: &EmulatorReport) -> Live {
    let truth = &report.truth;
    let micros = |time: Duration| time.as_nanos() as f64 / 1e3;
    Live {
        invalid: report.verdict.clone(),
        lateness_us: [truth.lateness_p50, truth.lateness_p99, truth.lateness_max].map(micros),
        late_frames: truth.late,
        frames: truth.delivered,
        host_drops: truth.unseen + truth.refused + truth.socket_full,
        emulator_cpu_s: report.processor.iter().map(|time| time.as_secs_f64()).sum(),
        ..Live::default()
    }
}
