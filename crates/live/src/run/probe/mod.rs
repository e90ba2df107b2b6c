//! The staged checks of a network in a lab, with real packets: frames on links, echo requests between hosts'
//! kernels, and datagrams to groups from the nodes' processes.
//!
//! The lab is that of a live run that is recorded, and its log says where packets were lost.

mod echoes;
mod frames;
mod memory;

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::sync::Arc;

use hopcast_core::{Duration, Instant};
use hopcast_node::Clock;
use hopcast_trace::Log;
use hopcast_twin::bounds::Bounds;
use hopcast_twin::probe::{Check, Findings, HostPair, KernelChecks, KernelResults, LinkDirection, Pairs};
use hopcast_twin::probe::{SETTLING, Stage};
use hopcast_twin::scenario::model::{Case, Reporting, Scenario};
use hopcast_twin::{Identities, Monitor};

use self::memory::SharedMemory;
use super::error::Error;
use super::supervisor::Supervisor;
use super::{
    MAX_FLOWS_LEAD, START_LEAD, START_LEAD_PER_FLOW, check, log_output, named, observations, options,
};
use crate::capture::{CaptureWriter, Devices, Outputs};
use crate::emulator::{Emulator, Options};
use crate::lab::Lab;
use crate::network;

/// Maximum size of the log, in bytes. Chosen: it bounds memory, and holds the checks of hundreds of hosts.
const MAX_LOG: u64 = 256 << 20;
/// Maximum number of frames or requests of a check. Chosen: of a path that loses half of them there and back, one is
/// answered in all but 1 of 100,000 checks; more takes longer where nothing is.
pub(super) const TRIES: u64 = 40;
/// Maximum number of checks of a stage that fail; those that remain of the stage are left out. Chosen: each takes
/// seconds.
const MAX_FAILED: usize = 12;
/// Time for which datagrams are sent to groups at least.
const TO_GROUPS: Duration = Duration::from_secs(4);

/// Checks the network of a case as it is at `at`, on this machine's kernel; `None` if the monitor was cancelled. The
/// command `node` runs a node of it, without the option that names the node.
///
/// # Errors
/// A scenario that the kernel cannot run, or a lab that cannot be set up.
pub fn probe(
    node: &[OsString],
    case: &Case,
    at: Instant,
    wanted: Pairs,
    monitor: &Monitor,
) -> Result<Option<Findings>, Error> {
    let checks = KernelChecks::of(&case.scenario, at, wanted);
    let case = Case { scenario: Arc::new(checks.scenario.clone()), ..case.clone() };
    let scenario = &case.scenario;
    check(scenario)?;
    let mut layout = network::layout(scenario, 0, true);
    let mut lab = Lab::set_up(&layout, &Lab::fresh_id())?;
    let command = |name: &str| {
        let own = ["--as", name, "--supervised"].map(OsString::from);
        node.iter().cloned().chain(own).collect()
    };
    let mut supervisor = Supervisor::start(&lab, scenario, command)?;
    let identity = Identities::new("").case(&case).to_string();
    let Some(()) = supervisor.all_loaded(&identity, monitor)? else { return Ok(None) };

    layout.captured.extend(network::captured_devices(scenario, 0, true)?);
    let sites = (scenario.nodes.len() * scenario.flows.len()) as u64;
    let clock = Clock::starting_in(START_LEAD + (START_LEAD_PER_FLOW * sites).min(MAX_FLOWS_LEAD));
    let memory = SharedMemory::default();
    let log = log_output(scenario, &layout.captured, Box::new(memory.clone()), MAX_LOG);
    let outputs = Outputs { log: Some(log), ..Outputs::default() };
    let interfaces = layout.captured.iter().map(|captured| named(scenario, captured)).collect();
    let writer = CaptureWriter::start(outputs, interfaces)?;
    let without_reports = layout.routes_groups() && scenario.membership == Reporting::Plan;
    let options = Options { without_reports, ..options(scenario, Some(&writer)) };
    let links = std::mem::take(&mut layout.links);
    let changes = std::mem::take(&mut layout.changes);
    let emulator = Emulator::start(&mut lab, links, changes, clock, options)?;
    let rerouter = lab.reroute_on_time(std::mem::take(&mut layout.reroutes), clock)?;
    supervisor.set_zero(clock)?;
    let devices = Devices::listen(&lab, &layout.captured, clock, writer.recorder())?;

    let mut prober = Prober { lab: &lab, supervisor: &mut supervisor, clock, monitor, left_out: Vec::new() };
    prober.wait_until(Instant::ZERO + SETTLING)?;
    let links = prober.links(scenario, &checks.directions)?;
    let hosts = prober.hosts(scenario, &checks.pairs)?;
    if !scenario.flows.is_empty() {
        prober.wait_until(Instant::ZERO + SETTLING + TO_GROUPS)?;
    }
    let mut left_out = prober.left_out;
    if monitor.is_cancelled() {
        return Ok(None);
    }

    let heard = devices.finish();
    let nodes = supervisor.finish()?;
    let late = rerouter.finish()?;
    let report = emulator.finish(&lab)?;
    writer.finish().map_err(Error::CaptureIncomplete)?;
    heard.map_err(Error::CaptureMissed)?;
    let services = nodes.iter().map(|(_, node)| node.services.clone()).collect();
    let observed = observations(nodes, report, late);
    left_out
        .extend(observed.live.invalid.as_ref().map(|why| format!("{why}, so that failures may be its own")));
    let run = observed.collect(&case, 0, &Bounds::default());
    let delivered = |flow: &hopcast_twin::results::Flow| {
        flow.receivers.iter().map(|receiver| receiver.figures.delivered_units).collect()
    };
    let groups = run.flows.iter().map(delivered).collect();
    let log = Log::read(memory.take())?;
    let mut findings = checks.findings(KernelResults { links, hosts, groups, services }, &log);
    findings.left_out.extend(left_out);
    Ok(Some(findings))
}

/// The checks in progress.
struct Prober<'p> {
    lab: &'p Lab,
    supervisor: &'p mut Supervisor,
    clock: Clock,
    monitor: &'p Monitor,
    /// Checks that were left out.
    left_out: Vec<String>,
}

impl Prober<'_> {
    /// Waits until a time, or until the monitor is cancelled.
    fn wait_until(&mut self, at: Instant) -> Result<(), Error> {
        while self.clock.now() < at && !self.monitor.is_cancelled() {
            self.supervisor.check_running()?;
            #[allow(clippy::disallowed_methods)] // real time is what passes here
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        Ok(())
    }

    /// Sends frames over links.
    fn links(
        &mut self,
        scenario: &Scenario,
        directions: &[LinkDirection],
    ) -> Result<Vec<(usize, Check)>, Error> {
        self.each(scenario, directions, |prober, direction| {
            let ports = frames::Ports::open(prober.lab, scenario, direction)?;
            Ok((direction.sizes(), move |size| {
                let mut check = direction.check(scenario, size);
                ports.send(direction, size, &mut check).map(|()| check)
            }))
        })
    }

    /// Sends echo requests to hosts.
    fn hosts(&mut self, scenario: &Scenario, pairs: &[HostPair]) -> Result<Vec<(usize, Check)>, Error> {
        let mut identifier = 0_u16;
        self.each(scenario, pairs, move |prober, pair| {
            identifier = identifier.wrapping_add(1);
            let asker = prober.lab.enter(pair.from.0, || echoes::Asker::open(pair, identifier))??;
            Ok((pair.sizes(), move |size| {
                let mut check = pair.check(scenario, size);
                asker.ask(size, &mut check).map(|()| check)
            }))
        })
    }

    /// Makes the checks of each item, those with a larger size where the smaller passes. A check that the kernel
    /// refuses has failed.
    fn each<'i, T, C: FnMut(usize) -> io::Result<Check>>(
        &mut self,
        scenario: &Scenario,
        items: &'i [T],
        mut open: impl FnMut(&Self, &'i T) -> Result<([usize; 2], C), Refused>,
    ) -> Result<Vec<(usize, Check)>, Error>
    where
        T: Checked,
    {
        let mut checks = Vec::new();
        let (mut failures, mut left_out) = (BTreeMap::<Stage, usize>::new(), BTreeMap::<Stage, usize>::new());
        for (number, item) in items.iter().enumerate() {
            if self.monitor.is_cancelled() {
                break;
            }
            self.supervisor.check_running()?;
            let stage = item.stage();
            if failures.get(&stage).is_some_and(|&failed| failed >= MAX_FAILED) {
                *left_out.entry(stage).or_default() += 1;
                continue;
            }
            let refused = |error: &io::Error, size| {
                let reasons = vec![format!("the kernel refuses: {error}")];
                Check { reasons, ..item.check(scenario, size) }
            };
            let (sizes, mut send) = match open(self, item) {
                Ok(opened) => opened,
                Err(Refused::Lab(error)) => return Err(error.into()),
                Err(Refused::Kernel(error)) => {
                    *failures.entry(stage).or_default() += 1;
                    checks.push((number, refused(&error, item.small())));
                    continue;
                }
            };
            for size in sizes {
                let check = send(size).unwrap_or_else(|error| refused(&error, size));
                let failed = !check.passed;
                checks.push((number, check));
                if failed {
                    *failures.entry(stage).or_default() += 1;
                    break;
                }
            }
        }
        self.left_out.extend(
            left_out.into_iter().map(|(stage, count)| {
                format!("{stage}: {count} more, after {MAX_FAILED} checks that failed")
            }),
        );
        Ok(checks)
    }
}

/// A check that sends small and large packets.
trait Checked {
    fn stage(&self) -> Stage;
    fn small(&self) -> usize;
    fn check(&self, scenario: &Scenario, size: usize) -> Check;
}

impl Checked for LinkDirection {
    fn stage(&self) -> Stage {
        Stage::Links
    }

    fn small(&self) -> usize {
        self.sizes()[0]
    }

    fn check(&self, scenario: &Scenario, size: usize) -> Check {
        Self::check(self, scenario, size)
    }
}

impl Checked for HostPair {
    fn stage(&self) -> Stage {
        self.stage
    }

    fn small(&self) -> usize {
        self.sizes()[0]
    }

    fn check(&self, scenario: &Scenario, size: usize) -> Check {
        Self::check(self, scenario, size)
    }
}

/// A check for which no socket can be opened.
enum Refused {
    /// The node cannot be entered.
    Lab(crate::lab::Error),
    /// The kernel's reason.
    Kernel(io::Error),
}

impl From<crate::lab::Error> for Refused {
    fn from(error: crate::lab::Error) -> Self {
        Self::Lab(error)
    }
}

impl From<io::Error> for Refused {
    fn from(error: io::Error) -> Self {
        Self::Kernel(error)
    }
}
