//! The real programs of a run.

use std::path::Path;
use std::sync::Arc;
use std::time;

use hopcast_core::Instant;
use hopcast_twin::collect::{Gathered, ProgramFound};
use hopcast_twin::scenario::model::{FlowId, Scenario};
use hopcast_twin::world::Site;

use crate::lab::Lab;
use crate::programs::{ChildProcess, CommandLine, Ends, FlowOutcome, Programs, Running, Spawner};

/// A server that does not listen after so long never will.
const PATIENCE: time::Duration = time::Duration::from_secs(10);
/// How often to look whether servers listen.
const LOOK: time::Duration = time::Duration::from_millis(20);

pub(super) struct Workloads {
    programs: Programs,
}

/// Programs are started in the namespaces of a lab.
struct InLab<'l>(&'l Lab);

impl Spawner for InLab<'_> {
    fn spawn(&mut self, node: usize, line: &CommandLine, output: &Path) -> Result<Box<dyn Running>, String> {
        let mut command = self.0.command(node, &line.program);
        line.apply_to(&mut command, output)?;
        let child = self.0.start(command).map_err(|error| line.cannot_start(&error))?;
        Ok(Box::new(ChildProcess::new(child)))
    }
}

impl Workloads {
    /// The programs of a scenario, which write into `dir`.
    pub(super) fn new(scenario: &Arc<Scenario>, dir: &Path) -> Result<Self, String> {
        let ends =
            (0..scenario.flows.len()).map(|flow| ends(scenario, flow)).collect::<Result<Vec<_>, _>>()?;
        let programs = Programs::new(scenario.clone(), dir, |flow| ends[flow])?;
        Ok(Self { programs })
    }

    /// Starts the servers, and waits until they listen.
    pub(super) fn prepare(&mut self, lab: &Lab) -> Result<(), String> {
        let mut waited = time::Duration::ZERO;
        while !self.programs.prepare(&mut InLab(lab)) {
            self.failure()?;
            if waited > PATIENCE {
                return Err(format!("a program's server does not listen after {} s", PATIENCE.as_secs()));
            }
            #[allow(clippy::disallowed_methods)] // real programs take real time
            std::thread::sleep(LOOK);
            waited += LOOK;
        }
        self.failure()
    }

    fn failure(&self) -> Result<(), String> {
        let first = self.programs.failures().next();
        first.map_or(Ok(()), |failure| Err(failure.to_owned()))
    }

    pub(super) fn step(&mut self, now: Instant, lab: &Lab) {
        self.programs.step(now, &mut InLab(lab));
    }

    pub(super) fn next_deadline(&self) -> Option<Instant> {
        self.programs.next_deadline()
    }

    pub(super) fn is_done(&self) -> bool {
        self.programs.is_done()
    }

    /// What they have measured, and what became of them.
    pub(super) fn finish(self, scenario: &Scenario, gathered: &mut Gathered) -> Result<(), String> {
        let ended = self.programs.finish();
        let step = scenario.measure.interval;
        let steps = (scenario.duration.as_nanos() / step.as_nanos().max(1)) as usize;
        let outcomes = &mut gathered.live.programs;
        for FlowOutcome { flow, measured, note, recording } in ended.flows {
            let name = &scenario.flows[flow].name;
            let measured = measured.map_err(|error| format!("flow `{name}`: {error}"))?;
            if let Some(note) = note {
                outcomes.insert(name.clone(), note);
            }
            drop(recording);
            gathered.programs.push(ProgramFound {
                flow,
                figures: measured.figures((scenario.measure.from, scenario.measure.to)),
                series: measured.series(step, steps),
                latency: measured.curves(name),
                counters: measured.counters,
            });
        }
        for exec in ended.execs {
            let went = match (exec.exit, exec.signal) {
                (Some(status), _) => format!("ended with exit status {status}"),
                (None, Some(signal)) => format!("was ended by signal {signal}"),
                (None, None) => "never ran".to_owned(),
            };
            outcomes.insert(exec.name, exec.failure.unwrap_or(went));
        }
        for (flow, failure) in ended.failures {
            outcomes.insert(scenario.flows[flow].name.clone(), failure);
        }
        Ok(())
    }
}

/// Where the programs of a flow find each other.
fn ends(scenario: &Scenario, flow: FlowId) -> Result<Ends, String> {
    let (from, to) = Site::ends_of_flow(scenario, flow)?;
    // The scenario language gives each flow a receiver.
    let to = to.first().copied().unwrap_or(from);
    Ok(Ends { from: from.ip(), to: to.ip(), connect: to.ip(), port: to.port() })
}
